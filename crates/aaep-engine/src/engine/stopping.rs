//! An orderly stop: says of each subscriber that was sent everything which event was the last, so that it continues
//! exactly after the next start.
//!
//! A kill leaves no such word, and neither does a subscriber for which something is held. After the start, both are
//! told that something may be missing, unless their last event alone says how far they are.

use super::{AudienceMember, Engine, SentLast, SubscriptionStart};
use crate::audience::{Audience, SubscriberKey};
use crate::ids::IdDigest;
use crate::io::{CaughtUp, Output};
use crate::member::LastSent;

impl Engine {
    /// Emits the subscriptions for which nothing is held, to be stored.
    pub(super) fn stop(&self, out: &mut Vec<Output>) {
        for subscriber in self.subscriptions.subscribers() {
            let caught_up = self.caught_up(subscriber);
            if caught_up.is_some() {
                self.remember_with(subscriber, caught_up, out);
            }
        }
    }

    /// The last event of a subscriber that was sent everything. None if something is held, or if the log could not
    /// be made again from the events.
    fn caught_up(&self, subscriber: SubscriberKey) -> Option<CaughtUp> {
        let member = self.members.get(subscriber)?;
        let audience = self.audiences.get(&member.agreed.audience)?;
        let is_idle = member.delivery.is_here() && member.asked.none_waits();
        if !(is_idle && member.has_everything(audience) && audience.is_pure()) {
            return None;
        }
        match member.last_sent(audience) {
            LastSent::Nothing => Some(CaughtUp { last_event_id: None }),
            LastSent::Event(id) => Some(CaughtUp { last_event_id: Some(id) }),
            LastSent::Unknown => None,
        }
    }

    /// Lets a restored subscriber that was sent everything before the stop continue from there. Its cursor is at the
    /// end of its log, which was just made again.
    pub(super) fn restore_caught_up(&mut self, subscriber: SubscriberKey, caught_up: &CaughtUp) {
        let Engine { audiences, members, next_order, .. } = self;
        let Some(member) = members.get_mut(subscriber) else { return };
        let Some(audience) = audiences.get(&member.agreed.audience) else { return };
        if !audience.is_pure_before(*next_order) {
            return;
        }
        if let Some(last) = &caught_up.last_event_id {
            let ids = [IdDigest::of(last); 2];
            member.sent_last = Some(Box::new(SentLast { at: member.cursor.at(), ids }));
        } else {
            let snapshot = member.cursor.snapshot(audience, *next_order);
            member.start = SubscriptionStart::AtSnapshot(Box::new(snapshot));
        }
    }
}

impl AudienceMember {
    /// Whether nothing is held for it.
    fn has_everything(&self, audience: &Audience) -> bool {
        self.delivery.is_together() || (self.cursor.is_at_end(audience) && self.cursor.is_plain())
    }

    /// The event that it was sent last. While it receives every unit at once, that is the last unit since it began
    /// to do so.
    fn last_sent(&self, audience: &Audience) -> LastSent {
        if !self.delivery.is_together() || self.cursor.is_at_end(audience) {
            return self.last_sent.clone();
        }
        let last = audience.unit(audience.end() - 1);
        last.map_or(LastSent::Unknown, |last| LastSent::Event(last.event.envelope.event_id.clone()))
    }

    /// Notes that it received every unit at once, up to the end of the log.
    pub(super) fn note_all_sent(&mut self, audience: &Audience) {
        self.last_sent = self.last_sent(audience);
        self.cursor.step_to_end(audience);
    }
}
