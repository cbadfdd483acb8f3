//! The delivery state of each subscription: whether the next event reaches its subscriber at once, together with
//! others, later, or not at all.
//!
//! This file alone changes the state, the lists of an audience and the times at which subscribers are due, so that
//! they always agree. Everything else asks. The tests of this file hold its table of transitions:
//!
//! | from | to | function | when |
//! |---|---|---|---|
//! | any list | `Unlisted` | `unlist` | before any other change |
//! | `Unlisted` | `Together` | `list` | it was sent everything, and has no limits and no exceptions |
//! | `Unlisted` | `Ready` | `list` | it was sent everything, but has limits or exceptions |
//! | `Unlisted` | `HoldsText` | `list` | its pace holds text |
//! | `Unlisted` | `Holds` | `list` | its rate holds something, or a gap notice is due |
//! | `Unlisted` | `AwaitsWire` | `list` | it was sent a full batch |
//! | `Unlisted` | `Ready` | `single_out` | it was together with others, and what comes next may be too early for it |
//! | `AwaitsWire` | `Holds` | `take_wire` | its wire took the batch, or had the time for it |
//! | `Unlisted` | `Blocked` | `block_delivery` | its wire is full |
//! | `Blocked` | `Unlisted` | `connect` | its wire accepts data again, or it reconnects |
//! | `Unlisted` | `Away` | `leave` | its connection broke |
//! | `Blocked` | `Away` | `leave` | its connection broke while its wire was full |
//! | `Away` | `Unlisted` | `connect` | it reconnects |
//!
//! The lists are those of `Together`, `Ready`, `HoldsText`, `Holds` and `AwaitsWire`. `Unlisted` lasts no longer than
//! the input that caused it.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::{Engine, NEVER};
use crate::audience::SubscriberKey;
use crate::keys::SessionKey;

/// How the next event reaches a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryState {
    /// At once, in one output for everyone in this state. The number is its index in their list.
    Together(u32),
    /// At once, in an output of its own: it has limits or exceptions, but nothing is held.
    Ready,
    /// Text is held by the pace. Anything else may go at once (ruling 30).
    HoldsText,
    /// Something is held. Only critical events go at once.
    Holds,
    /// A batch was sent that the wire has yet to take. Only critical events go at once.
    AwaitsWire,
    /// Connected, but in no list. Whether its wire has yet to take a batch stays known.
    Unlisted { awaits_wire: bool },
    /// Connected, but its wire is full: nothing goes.
    Blocked,
    /// Disconnected since this moment: nothing goes.
    Away { since_us: u64 },
}

/// The delivery state of one subscription.
#[derive(Debug)]
pub(crate) struct SubscriberDelivery {
    state: DeliveryState,
    /// When it is due, or [`NEVER`]: because something is held for it, or because its disconnected subscription ends.
    due_us: u64,
    /// While it receives every unit at once, the sessions of which it was sent something later than their last event.
    told_later: Vec<SessionKey>,
}

impl SubscriberDelivery {
    /// Connected, and about to be listed.
    pub(super) fn connected() -> Self {
        let state = DeliveryState::Unlisted { awaits_wire: false };
        SubscriberDelivery { state, due_us: NEVER, told_later: Vec::new() }
    }

    /// Whether it can be sent something now.
    pub(crate) fn is_here(&self) -> bool {
        !matches!(self.state, DeliveryState::Blocked | DeliveryState::Away { .. })
    }

    /// Since when it is disconnected.
    pub(crate) fn away_since(&self) -> Option<u64> {
        match self.state {
            DeliveryState::Away { since_us } => Some(since_us),
            _ => None,
        }
    }

    pub(crate) fn is_away(&self) -> bool {
        self.away_since().is_some()
    }

    /// Whether a batch was sent that its wire has yet to take.
    pub(crate) fn awaits_wire(&self) -> bool {
        use DeliveryState::{AwaitsWire, Unlisted};
        matches!(self.state, AwaitsWire | Unlisted { awaits_wire: true })
    }

    /// Whether events that are not critical can be sent to it now.
    pub(crate) fn takes_more(&self) -> bool {
        self.is_here() && !self.awaits_wire()
    }

    /// Whether it receives every unit at once, in one output with others, and so was sent everything.
    pub(crate) fn is_together(&self) -> bool {
        matches!(self.state, DeliveryState::Together(_))
    }

    /// When it is due, or [`NEVER`].
    pub(super) fn due_us(&self) -> u64 {
        self.due_us
    }

    /// Enters a state, and returns the one before.
    fn enter(&mut self, state: DeliveryState) -> DeliveryState {
        #[cfg(test)]
        tests::note_transition(self.state, state);
        std::mem::replace(&mut self.state, state)
    }
}

/// What is held for a subscriber after a delivery, and when to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeldUntil {
    /// Anything may be held.
    Moment(u64),
    /// Only text is held, by the pace. The next event may go earlier.
    TextMoment(u64),
    /// Its wire has yet to take a batch. If the wire never says so, delivery continues at this moment.
    Written(u64),
}

impl HeldUntil {
    fn at_us(self) -> u64 {
        match self {
            HeldUntil::Moment(at_us) | HeldUntil::TextMoment(at_us) | HeldUntil::Written(at_us) => {
                at_us
            }
        }
    }

    fn state(self) -> DeliveryState {
        match self {
            HeldUntil::Moment(_) => DeliveryState::Holds,
            HeldUntil::TextMoment(_) => DeliveryState::HoldsText,
            HeldUntil::Written(_) => DeliveryState::AwaitsWire,
        }
    }
}

/// The connected subscribers of an audience, sorted by what a new unit means for them.
#[derive(Debug, Default)]
pub(crate) struct DeliveryLists {
    /// Those that receive every unit at once.
    together: Vec<SubscriberKey>,
    /// The others.
    alone: BTreeSet<SubscriberKey>,
    /// Those of the others that may be sent an event that is not critical.
    ready: BTreeSet<SubscriberKey>,
}

impl DeliveryLists {
    /// The subscribers that receive every unit at once, in one output.
    pub(super) fn together(&self) -> &[SubscriberKey] {
        &self.together
    }

    /// The other subscribers that an event concerns. A critical one concerns all of them.
    pub(super) fn alone(&self, is_critical: bool) -> &BTreeSet<SubscriberKey> {
        if is_critical { &self.alone } else { &self.ready }
    }
}

/// The subscribers that were sent something later than the last event of a session, among those that receive every
/// unit at once: what the engine makes next may be too early for them, so they receive the next event one by one.
#[derive(Debug, Default)]
pub(crate) struct ToldLaterList(BTreeSet<SubscriberKey>);

/// The subscribers by when they are due.
#[derive(Debug, Default)]
pub(super) struct DueTimes(BTreeSet<(u64, SubscriberKey)>);

impl DueTimes {
    /// When the first one is due.
    pub(super) fn first_us(&self) -> Option<u64> {
        self.0.first().map(|(at_us, _)| *at_us)
    }

    /// All subscribers that are due at some time.
    pub(super) fn subscribers(&self) -> impl Iterator<Item = SubscriberKey> + '_ {
        self.0.iter().map(|(_, subscriber)| *subscriber)
    }
}

impl Engine {
    /// Lists a connected subscriber that was sent all that may go now.
    pub(super) fn list(&mut self, subscriber: SubscriberKey, held: Option<HeldUntil>) {
        if self.members.get(subscriber).is_none_or(|member| !member.delivery.is_here()) {
            return;
        }
        self.unlist(subscriber);
        let Engine { audiences, members, sessions, .. } = self;
        let Some(member) = members.get_mut(subscriber) else { return };
        let Some(audience) = audiences.get_mut(&member.agreed.audience) else { return };
        let lists = &mut audience.lists;
        let is_plain = member.limits.is_none() && member.cursor.is_plain();
        let next = u32::try_from(lists.together.len()).ok();
        if let Some(index) = next.filter(|_| is_plain && held.is_none()) {
            lists.together.push(subscriber);
            let last_us = |key| sessions.get(key).map(|session| session.last_us);
            let told_later = member.cursor.told_later(last_us);
            for session in &told_later {
                if let Some(session) = sessions.get_mut(*session) {
                    session.told_later.0.insert(subscriber);
                }
            }
            member.delivery.told_later = told_later;
            member.delivery.enter(DeliveryState::Together(index));
            return;
        }
        lists.alone.insert(subscriber);
        let state = held.map_or(DeliveryState::Ready, HeldUntil::state);
        if matches!(state, DeliveryState::Ready | DeliveryState::HoldsText) {
            lists.ready.insert(subscriber);
        }
        member.delivery.enter(state);
        if let Some(held) = held {
            self.set_due(subscriber, held.at_us());
        }
    }

    /// Removes a connected subscriber from all lists, but not from its audience.
    pub(super) fn unlist(&mut self, subscriber: SubscriberKey) {
        let Engine { audiences, members, sessions, .. } = self;
        let Some(member) = members.get_mut(subscriber) else { return };
        if !member.delivery.is_here() {
            return;
        }
        for session in std::mem::take(&mut member.delivery.told_later) {
            if let Some(session) = sessions.get_mut(session) {
                session.told_later.0.remove(&subscriber);
            }
        }
        let Some(audience) = audiences.get_mut(&member.agreed.audience) else { return };
        let awaits_wire = member.delivery.awaits_wire();
        if member.delivery.is_together() {
            member.note_all_sent(audience);
        }
        let unlisted = DeliveryState::Unlisted { awaits_wire };
        let before = member.delivery.enter(unlisted);
        audience.lists.ready.remove(&subscriber);
        audience.lists.alone.remove(&subscriber);
        if let DeliveryState::Together(index) = before {
            let together = &mut audience.lists.together;
            together.swap_remove(index as usize);
            let moved = together.get(index as usize).copied();
            if let Some(moved) = moved.and_then(|it| members.get_mut(it)) {
                moved.delivery.enter(DeliveryState::Together(index));
            }
        }
        self.forget_due(subscriber);
    }

    /// Lets those who were sent something later than the last event of a session receive its next event one by one, so
    /// that nothing that the engine makes goes back in time for them (ruling 7).
    pub(super) fn single_out(&mut self, session: SessionKey) {
        let Some(session) = self.sessions.get_mut(session) else { return };
        for subscriber in std::mem::take(&mut session.told_later.0) {
            self.unlist(subscriber);
            let Engine { audiences, members, .. } = self;
            let Some(member) = members.get_mut(subscriber) else { continue };
            if let Some(audience) = audiences.get_mut(&member.agreed.audience) {
                member.delivery.enter(DeliveryState::Ready);
                audience.lists.alone.insert(subscriber);
                audience.lists.ready.insert(subscriber);
            }
        }
    }

    /// Notes that the wire took what it was sent, or had the time for it. Returns whether that was awaited.
    pub(super) fn take_wire(&mut self, subscriber: SubscriberKey) -> bool {
        let Some(member) = self.members.get_mut(subscriber) else { return false };
        let state = match member.delivery.state {
            DeliveryState::AwaitsWire => DeliveryState::Holds,
            DeliveryState::Unlisted { awaits_wire: true } => {
                DeliveryState::Unlisted { awaits_wire: false }
            }
            _ => return false,
        };
        member.delivery.enter(state);
        true
    }

    /// Notes that the wire of a subscriber is full.
    pub(super) fn block_delivery(&mut self, subscriber: SubscriberKey) {
        self.unlist(subscriber);
        if let Some(member) = self.members.get_mut(subscriber).filter(|it| it.delivery.is_here()) {
            member.delivery.enter(DeliveryState::Blocked);
        }
    }

    /// Notes that a subscriber can be sent something again. It is listed once it was.
    pub(super) fn connect(&mut self, subscriber: SubscriberKey) {
        let Some(member) = self.members.get_mut(subscriber) else { return };
        if !member.delivery.is_here() {
            member.delivery.enter(DeliveryState::Unlisted { awaits_wire: false });
            self.forget_due(subscriber);
        }
    }

    /// Notes that a subscriber is disconnected. Its subscription ends at `end_us`.
    pub(super) fn leave(&mut self, subscriber: SubscriberKey, since_us: u64, end_us: u64) {
        self.unlist(subscriber);
        if let Some(member) = self.members.get_mut(subscriber) {
            member.delivery.enter(DeliveryState::Away { since_us });
        }
        self.set_due(subscriber, end_us);
    }

    /// The next subscriber that is due by now. From then on, it is not.
    pub(super) fn take_due(&mut self, now_us: u64) -> Option<SubscriberKey> {
        let (_, subscriber) = self.due.0.first().copied().filter(|(at_us, _)| *at_us <= now_us)?;
        self.forget_due(subscriber);
        Some(subscriber)
    }

    pub(super) fn set_due(&mut self, subscriber: SubscriberKey, at_us: u64) {
        let Some(member) = self.members.get_mut(subscriber) else { return };
        let before = std::mem::replace(&mut member.delivery.due_us, at_us);
        if before == at_us {
            return;
        }
        self.due.0.remove(&(before, subscriber));
        if at_us != NEVER {
            self.due.0.insert((at_us, subscriber));
        }
    }

    pub(super) fn forget_due(&mut self, subscriber: SubscriberKey) {
        self.set_due(subscriber, NEVER);
    }
}
