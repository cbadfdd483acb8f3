//! Delivery to subscribers: critical events at once, everything else as their terms allow (§5.5.4,
//! §5.6).

use std::sync::Arc;

use super::delivery_state::HeldUntil;
use super::{AudienceMember, Engine, SessionTable};
use crate::audience::{Audience, HistoryEntry, SubscriberKey};
use crate::clock::Now;
use crate::frame::Frame;
use crate::io::Output;
use crate::member::{Cursor, DeliveryPass, DeliveryProgress, LastSent};

/// How long a wire has at most to take a batch. The wire says when it has; if that message is lost, delivery
/// continues after this time.
pub(super) const WIRE_WAIT_US: u64 = 1_000_000;

impl Engine {
    /// Shapes an event for every audience and delivers it to every subscriber that may receive it now.
    pub(super) fn deliver(&mut self, now: Now, entry: &HistoryEntry, out: &mut Vec<Output>) {
        self.single_out(entry.session);
        let log_bytes = self.log_bytes();
        let Engine { audiences, members, sessions, primary, config, log_space, .. } = self;
        let mut told = Vec::new();
        for full in audiences.values_mut() {
            full.room_bytes = log_space.bytes_for(full.weight, log_bytes);
            let begin = full.take(entry);
            let grown = full.end() - begin;
            if grown == 0 {
                // Its memory may have shrunk since the log last grew.
                full.trim(0);
                continue;
            }
            let audience = &*full;
            let together = audience.lists.together();
            if !together.is_empty() {
                for unit in (begin..audience.end()).filter_map(|at| audience.unit(at)) {
                    let frame = audience.frame(unit, primary);
                    out.push(Output::Deliver { frame, to: together.to_vec() });
                }
            }
            // A critical event concerns everyone. Any other concerns only subscribers without held events.
            for subscriber in audience.lists.alone(entry.event.is_critical()) {
                let Some(member) = members.get_mut(*subscriber) else { continue };
                told.push((
                    *subscriber,
                    proceed(
                        member,
                        *subscriber,
                        (audience, sessions, config.at_a_time),
                        now,
                        primary,
                        out,
                    ),
                ));
            }
            full.trim(grown);
        }
        for (subscriber, held) in told {
            let held = self.or_schedule_gap_notice(now, subscriber, held);
            self.list(subscriber, held);
            self.note_order(subscriber, out);
        }
    }

    /// Handles a subscriber that is due: a held event can go, or its time to reconnect is over.
    pub(super) fn wake(&mut self, now: Now, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        let Some(member) = self.members.get(subscriber) else { return };
        if let Some(since_us) = member.delivery.away_since() {
            let end_us = since_us.saturating_add(self.config.keep_subscription_us);
            if end_us <= now.monotonic_us {
                self.remove(now, subscriber, out);
                out.push(Output::Closed { subscriber });
            } else {
                self.set_due(subscriber, end_us);
            }
        } else if member.delivery.is_here() {
            self.take_wire(subscriber);
            self.catch_up(now, subscriber, out);
        }
    }

    /// Delivers everything that a subscriber may receive now, and notes when to continue.
    pub(super) fn catch_up(&mut self, now: Now, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        let must_be_asked = self.check_for_gap(subscriber);
        if must_be_asked {
            self.note_late(subscriber);
        }
        self.deliver_summaries(now, subscriber, out);
        self.send_late(now, subscriber, out);
        if must_be_asked {
            self.recheck_asks_of(now, subscriber, out);
        }
        self.tell_more(now, subscriber, out);
    }

    /// Delivers critical events that were left behind, and then summaries of the running sessions.
    pub(super) fn deliver_summaries(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        out: &mut Vec<Output>,
    ) {
        let Engine { audiences, members, sessions, primary, config, .. } = self;
        let Some(member) = members.get_mut(subscriber) else { return };
        let Some(audience) = audiences.get(&member.agreed.audience) else { return };
        if !member.delivery.takes_more() {
            return;
        }
        let (cursor, mut pass) = start_pass(
            member,
            subscriber,
            (audience, sessions, config.at_a_time),
            now,
            primary,
            out,
        );
        let is_told = cursor.tell_left_behind(&mut pass);
        drop(pass);
        if is_told {
            self.tell_summaries(now, subscriber, out);
        }
    }

    /// Delivers what a subscriber may receive now, after the summaries.
    pub(super) fn tell_more(&mut self, now: Now, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        let held = self.proceed_now(now, subscriber, out);
        if let Some(member) = self.members.get(subscriber)
            && let Some(audience) = self.audiences.get_mut(&member.agreed.audience)
        {
            audience.trim(0);
        }
        let held = self.or_schedule_gap_notice(now, subscriber, held);
        self.list(subscriber, held);
        self.note_order(subscriber, out);
    }

    /// If an event was just sent out of order, stores from when on everything was sent in order. After a
    /// restart, a critical event that arrived last says how far a subscriber is only if it overtook nothing.
    /// With a rate or a pace that happens all the time, so it is not stored for those.
    fn note_order(&mut self, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        let Some(member) = self.members.get_mut(subscriber) else { return };
        let has_strayed = member.cursor.has_strayed();
        if !has_strayed || member.limits.is_some() || member.in_order_after == self.newest {
            return;
        }
        member.in_order_after.clone_from(&self.newest);
        self.remember(subscriber, out);
    }

    fn proceed_now(
        &mut self,
        now: Now,
        subscriber: SubscriberKey,
        out: &mut Vec<Output>,
    ) -> Option<HeldUntil> {
        let Engine { audiences, members, sessions, primary, config, .. } = self;
        let member = members.get_mut(subscriber)?;
        if !member.delivery.is_here() {
            return None;
        }
        let audience = audiences.get(&member.agreed.audience)?;
        proceed(member, subscriber, (audience, sessions, config.at_a_time), now, primary, out)
    }
}

/// Delivers what a subscriber may receive now. Returns when to continue, if something is held.
fn proceed(
    member: &mut AudienceMember,
    subscriber: SubscriberKey,
    (audience, sessions, at_a_time): (&Audience, &SessionTable, usize),
    now: Now,
    primary: &aaep::LanguageTag,
    out: &mut Vec<Output>,
) -> Option<HeldUntil> {
    let now_us = now.monotonic_us;
    let (awaits_wire, due_us) = (member.delivery.awaits_wire(), member.delivery.due_us());
    let (cursor, mut pass) =
        start_pass(member, subscriber, (audience, sessions, at_a_time), now, primary, out);
    let owes_summaries = cursor.owes_summaries();
    // A subscriber that receives every event receives them in order.
    let counts = audience.terms.keeps_every_event();
    if awaits_wire {
        if !counts {
            cursor.tell_critical(&mut pass);
        }
        return Some(HeldUntil::Written(due_us.min(now_us + WIRE_WAIT_US)));
    }
    let progressed = if owes_summaries {
        // Critical events do not wait for summaries. Everything else comes after them.
        let is_told = counts || cursor.tell_critical(&mut pass);
        let next_us = pass.limits.as_deref_mut().map_or(now_us, |it| it.next_us(now_us));
        if is_told && next_us > now_us {
            DeliveryProgress::Until(next_us)
        } else {
            DeliveryProgress::Enough
        }
    } else {
        cursor.proceed(&mut pass)
    };
    drop(pass);
    match progressed {
        DeliveryProgress::CaughtUp => None,
        DeliveryProgress::Until(at_us) => Some(HeldUntil::Moment(at_us)),
        DeliveryProgress::TextUntil(at_us) => Some(HeldUntil::TextMoment(at_us)),
        DeliveryProgress::Enough => {
            out.push(Output::More { subscriber });
            Some(HeldUntil::Written(now_us + WIRE_WAIT_US))
        }
    }
}

/// The cursor of a subscriber, and a delivery pass for it.
fn start_pass<'a>(
    member: &'a mut AudienceMember,
    subscriber: SubscriberKey,
    (audience, sessions, at_a_time): (&'a Audience, &'a SessionTable, usize),
    now: Now,
    primary: &'a aaep::LanguageTag,
    out: &'a mut Vec<Output>,
) -> (&'a mut Cursor, DeliveryPass<'a, impl FnMut(Arc<Frame>)>) {
    let is_gap_owed = member.missing.is_some() && member.cursor.owes_summaries();
    let AudienceMember { cursor, limits, last_sent, .. } = member;
    let send = move |frame: Arc<Frame>| {
        *last_sent = LastSent::Event(frame.event_id.clone());
        out.push(Output::Deliver { frame, to: vec![subscriber] });
    };
    let limits = limits.as_deref_mut();
    let left = at_a_time.max(1);
    (cursor, DeliveryPass { audience, sessions, limits, now, primary, is_gap_owed, left, send })
}
