//! Telling subscribers: urgent things at once, everything else as their terms allow (§5.5.4, §5.6).

use std::sync::Arc;

use super::{Engine, Member, NEVER, Presence};
use crate::audience::{Audience, Entry, SubscriberKey};
use crate::clock::Now;
use crate::frame::Frame;
use crate::io::Output;
use crate::member::{Cursor, Progressed, Telling};

/// How long a wire has at most to take what goes at a time. It says when it has; should that get lost, it goes on.
const REST_US: u64 = 1_000_000;

/// When to go on with what is held for a subscriber.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldUntil {
    pub(super) at_us: u64,
    /// Only text is held, for the sake of the pace: the next event may go before (ruling 30).
    is_text: bool,
}

impl HeldUntil {
    pub(super) fn new(at_us: u64) -> Self {
        HeldUntil { at_us, is_text: false }
    }
}

impl Engine {
    /// Shapes an event for every audience and tells who can be told now.
    pub(super) fn deliver(&mut self, now: Now, entry: &Entry, out: &mut Vec<Output>) {
        let log_bytes = self.log_bytes();
        let Engine { audiences, members, primary, config, rooms, .. } = self;
        let mut told = Vec::new();
        for full in audiences.values_mut() {
            full.room_bytes = rooms.room(full.weight, log_bytes);
            let begin = full.take(entry);
            let grown = full.end() - begin;
            if grown == 0 {
                // Its room may have become smaller since it last grew.
                full.trim(0);
                continue;
            }
            let audience = &*full;
            if !audience.subscribers.unlimited.is_empty() {
                for unit in (begin..audience.end()).filter_map(|at| audience.unit(at)) {
                    let frame = audience.frame(unit, primary);
                    out.push(Output::Deliver { frame, to: audience.subscribers.unlimited.clone() });
                }
            }
            // Something urgent concerns everyone; anything else only those for whom nothing is held.
            let others = &audience.subscribers;
            let others = if entry.is_urgent { &others.connected } else { &others.ready };
            for subscriber in others {
                let Some(Some(member)) = members.get_mut(*subscriber as usize) else { continue };
                told.push((
                    *subscriber,
                    proceed(member, *subscriber, (audience, config.at_a_time), now, primary, out),
                ));
            }
            full.trim(grown);
        }
        for (subscriber, held) in told {
            let held = self.or_tell_of_deleted(now, subscriber, held);
            self.sort_in(subscriber, held);
            self.note_order(subscriber, out);
        }
    }

    /// A subscriber is due: something held for it can go, or its time to come back is over.
    pub(super) fn wake(&mut self, now: Now, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        let Some(Some(member)) = self.members.get_mut(subscriber as usize) else { return };
        member.due_us = NEVER;
        match member.presence {
            Presence::Away(since) => {
                let end_us = since.saturating_add(self.config.keep_subscription_us);
                if end_us <= now.monotonic_us {
                    self.remove(now, subscriber, out);
                    out.push(Output::Closed { subscriber });
                } else {
                    self.set_due(subscriber, end_us);
                }
            }
            Presence::Blocked => {}
            Presence::Here => {
                member.rests = false;
                self.catch_up(now, subscriber, out);
            }
        }
    }

    /// Tells a subscriber everything that it may be told now, and notes when to go on.
    pub(super) fn catch_up(&mut self, now: Now, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        let must_be_asked = self.tell_gap(subscriber);
        if must_be_asked {
            self.note_late(subscriber);
        }
        self.sum_up(now, subscriber, out);
        self.send_late(subscriber, out);
        if must_be_asked {
            self.look_at_asks_of(now, subscriber, out);
        }
        self.tell_more(now, subscriber, out);
    }

    /// Tells a subscriber what is critical and was left behind, and then what goes on now.
    pub(super) fn sum_up(&mut self, now: Now, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        let Engine { audiences, members, primary, config, .. } = self;
        let Some(Some(member)) = members.get_mut(subscriber as usize) else { return };
        let Some(audience) = audiences.get(&member.wish.audience) else { return };
        if member.presence != Presence::Here || member.rests {
            return;
        }
        let (cursor, mut telling) =
            telling(member, subscriber, (audience, config.at_a_time), now, primary, out);
        let is_told = cursor.tell_left_behind(&mut telling);
        drop(telling);
        if is_told {
            self.tell_summaries(now, subscriber, out);
        }
    }

    /// Tells a subscriber what it may be told now, after the summaries.
    pub(super) fn tell_more(&mut self, now: Now, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        let held = self.proceed_now(now, subscriber, out);
        if let Some(Some(member)) = self.members.get(subscriber as usize)
            && let Some(audience) = self.audiences.get_mut(&member.wish.audience)
        {
            audience.trim(0);
        }
        let held = self.or_tell_of_deleted(now, subscriber, held);
        self.sort_in(subscriber, held);
        self.note_order(subscriber, out);
    }

    /// Stores from when on everything was sent in its place, if something just was not: after a stop,
    /// an urgent event that came last tells where a subscriber is only if it overtook nothing. With a
    /// rate or a pace that happens all the time, and is not known after a stop.
    fn note_order(&mut self, subscriber: SubscriberKey, out: &mut Vec<Output>) {
        let Some(Some(member)) = self.members.get_mut(subscriber as usize) else { return };
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
        let Engine { audiences, members, primary, config, .. } = self;
        let Some(Some(member)) = members.get_mut(subscriber as usize) else { return None };
        if member.presence != Presence::Here {
            return None;
        }
        let audience = audiences.get(&member.wish.audience)?;
        proceed(member, subscriber, (audience, config.at_a_time), now, primary, out)
    }

    /// Files a subscriber by what the next event means for it.
    fn sort_in(&mut self, subscriber: SubscriberKey, held: Option<HeldUntil>) {
        let Some(Some(member)) = self.members.get(subscriber as usize) else { return };
        if member.presence != Presence::Here {
            return;
        }
        let is_plain = member.limits.is_none() && member.cursor.is_plain();
        let key = member.wish.audience.clone();
        self.leave_lists(subscriber);
        let Engine { audiences, members, .. } = self;
        let Some(audience) = audiences.get_mut(&key) else { return };
        let Some(Some(member)) = members.get_mut(subscriber as usize) else { return };
        if is_plain && held.is_none() {
            member.slot = SubscriberKey::try_from(audience.subscribers.unlimited.len()).ok();
            audience.subscribers.unlimited.push(subscriber);
            return;
        }
        audience.subscribers.connected.insert(subscriber);
        if held.is_none_or(|held| held.is_text) {
            audience.subscribers.ready.insert(subscriber);
        }
        if let Some(held) = held {
            self.set_due(subscriber, held.at_us);
        }
    }

    /// Takes a subscriber out of all lists of who is told what when; it stays in its audience. One that
    /// is away is in none of them, and its subscription still ends when it is due.
    pub(super) fn leave_lists(&mut self, subscriber: SubscriberKey) {
        let is_away = |member: &Member| matches!(member.presence, Presence::Away(_));
        if self.members.get(subscriber as usize).and_then(Option::as_ref).is_none_or(is_away) {
            return;
        }
        self.forget_due(subscriber);
        let Engine { audiences, members, .. } = self;
        let Some(Some(member)) = members.get_mut(subscriber as usize) else { return };
        let Some(audience) = audiences.get_mut(&member.wish.audience) else { return };
        audience.subscribers.ready.remove(&subscriber);
        audience.subscribers.connected.remove(&subscriber);
        if let Some(slot) = member.slot.take() {
            // Whoever takes everything as it comes has had everything up to now.
            (member.cursor.at, member.cursor.urgent_at) = (audience.end(), audience.end());
            let unlimited = &mut audience.subscribers.unlimited;
            unlimited.swap_remove(slot as usize);
            let moved = unlimited.get(slot as usize).copied();
            if let Some(Some(moved)) = moved.map(|it| members[it as usize].as_mut()) {
                moved.slot = Some(slot);
            }
        }
    }

    pub(super) fn set_due(&mut self, subscriber: SubscriberKey, at_us: u64) {
        if let Some(Some(member)) = self.members.get_mut(subscriber as usize) {
            let before = std::mem::replace(&mut member.due_us, at_us);
            if before == at_us {
                return;
            }
            self.due.remove(&(before, subscriber));
            if at_us != NEVER {
                self.due.insert((at_us, subscriber));
            }
        }
    }

    pub(super) fn forget_due(&mut self, subscriber: SubscriberKey) {
        self.set_due(subscriber, NEVER);
    }
}

/// Tells a subscriber what it may be told now; when the rest may go, if something is held.
fn proceed(
    member: &mut Member,
    subscriber: SubscriberKey,
    (audience, at_a_time): (&Audience, usize),
    now: Now,
    primary: &aaep::LanguageTag,
    out: &mut Vec<Output>,
) -> Option<HeldUntil> {
    let now_us = now.monotonic_us;
    let (rests, due_us) = (member.rests, member.due_us);
    let (cursor, mut telling) =
        telling(member, subscriber, (audience, at_a_time), now, primary, out);
    let owes_summaries = cursor.owes_summaries();
    // A subscriber that receives every event receives them in their order.
    let counts = audience.terms.keeps_every_event();
    if rests {
        if !counts {
            cursor.tell_urgent(&mut telling);
        }
        return Some(HeldUntil::new(due_us.min(now_us + REST_US)));
    }
    let progressed = if owes_summaries {
        // Urgent things do not wait for summaries; everything else comes after them.
        let is_told = counts || cursor.tell_urgent(&mut telling);
        let next_us = telling.limits.as_deref_mut().map_or(now_us, |it| it.next_us(now_us));
        if is_told && next_us > now_us { Progressed::Until(next_us) } else { Progressed::Enough }
    } else {
        cursor.proceed(&mut telling)
    };
    drop(telling);
    match progressed {
        Progressed::CaughtUp => None,
        Progressed::Until(at_us) => Some(HeldUntil::new(at_us)),
        Progressed::TextUntil(at_us) => Some(HeldUntil { at_us, is_text: true }),
        Progressed::Enough => {
            member.rests = true;
            out.push(Output::More { subscriber });
            Some(HeldUntil::new(now_us + REST_US))
        }
    }
}

/// Where a subscriber is, and how it is told things now.
fn telling<'a>(
    member: &'a mut Member,
    subscriber: SubscriberKey,
    (audience, at_a_time): (&'a Audience, usize),
    now: Now,
    primary: &'a aaep::LanguageTag,
    out: &'a mut Vec<Output>,
) -> (&'a mut Cursor, Telling<'a, impl FnMut(Arc<Frame>)>) {
    let is_gap_owed = member.missing.is_some() && member.cursor.owes_summaries();
    let Member { cursor, limits, .. } = member;
    let send = move |frame: Arc<Frame>| out.push(Output::Deliver { frame, to: vec![subscriber] });
    let limits = limits.as_deref_mut();
    let left = at_a_time.max(1);
    (cursor, Telling { audience, limits, now, primary, is_gap_owed, left, send })
}
