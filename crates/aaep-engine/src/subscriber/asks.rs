//! Asks as a subscriber sees them, from opening to the one reply (chapter 6).
//!
//! A reply is made only from a person's answer, once per token, while the ask is open here. An
//! answer is remembered until the ask cannot be repeated any more. If there is no room to remember,
//! nothing more is answered: when in doubt there is no reply, and the producer's default applies.
//!
//! Time is measured on our own clock from when the ask arrived (§6.4.3). The timestamp of the event
//! is not trusted: a wrong clock at the producer must not take time from the person.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use aaep::extension::{AskOutcome, DecidedBy, Delivery};
use aaep::{Event, EventId, ReplyToken, SessionId};

use super::{CannotReply, SubscriberChange};
use crate::ask::question;
use crate::clock::{Now, SECOND_US};

/// How many asks can be open at a time. Beyond that the oldest is forgotten, and a change reports
/// it.
pub const MAX_OPEN_ASKS: usize = 256;
/// How many bytes the open asks take, as they were received. Beyond that the oldest is forgotten,
/// too.
pub const MAX_OPEN_ASK_BYTES: usize = 16 * 1024 * 1024;
/// How many asks are remembered that were closed without an answer from here.
pub const MAX_CLOSED_ASKS: usize = 4096;
/// How many answers are remembered. Beyond that, those that are old enough are forgotten; if none
/// is, nothing more is answered.
pub const MAX_ANSWERED: usize = 32_768;
/// How long an answer is remembered at least after the time of the ask: until then the ask might
/// come again (§6.2.2 requires tokens to differ for this long).
pub const ANSWERED_KEPT_SECONDS: u64 = 86_400;

/// The longest word of a newer version that is remembered.
const MAX_WORD_BYTES: usize = 64;

/// An ask that waits for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct UnsettledAsk {
    /// The token, to be sent back unchanged.
    pub reply_token: ReplyToken,
    /// The session that asks.
    pub session_id: SessionId,
    /// The event with the ask.
    pub event: Arc<Event>,
    /// When the producer's default applies, in microseconds on our own monotonic clock. If the
    /// clock of the ask waits for presentation, this is the producer's maximum until the producer
    /// announces the end.
    pub deadline_us: u64,
    /// Whether the clock of the ask is paused (`docs/extension.md`).
    pub is_paused: bool,
    /// Whether the terms let this subscriber answer.
    pub can_reply: bool,
    size: usize,
    /// The sequence number of the ask, in the order of opening.
    opened: u64,
}

impl UnsettledAsk {
    /// How many microseconds are left to answer.
    pub fn remaining_us(&self, now: Now) -> u64 {
        self.deadline_us.saturating_sub(now.monotonic_us)
    }
}

/// Why an ask is no longer open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyWithdrawn {
    /// The producer announced it in its notice.
    Said,
    /// The agent continued without waiting (§6.8). Someone else may have answered.
    WentOn,
    /// The session ended.
    SessionEnded,
    /// The subscription ended.
    SubscriptionEnded,
    /// The token came with a second ask (§6.2.2).
    TokenReused,
}

/// How an ask was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AskClosure {
    Withdrawn(WhyWithdrawn),
    Resolved(AskOutcome, DecidedBy),
    Expired,
    Forgotten,
}

impl From<AskClosure> for CannotReply {
    fn from(closed: AskClosure) -> Self {
        match closed {
            AskClosure::Withdrawn(why) => CannotReply::Withdrawn(why),
            AskClosure::Resolved(outcome, decided_by) => {
                CannotReply::Resolved { outcome, decided_by }
            }
            AskClosure::Expired => CannotReply::Expired,
            AskClosure::Forgotten => CannotReply::Forgotten,
        }
    }
}

#[derive(Debug)]
struct ClosedAsk {
    session_id: SessionId,
    /// The event that asked; `None` if only the outcome is known.
    event_id: Option<EventId>,
    closed: AskClosure,
}

#[derive(Debug)]
struct AnsweredAsk {
    event_id: EventId,
    session_id: SessionId,
    until_us: u64,
    is_resolved: bool,
}

/// How an arriving ask is classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskArrival {
    Opened,
    /// The ask is already known, open or not.
    Known,
    TokenReused,
}

/// The asks of a subscription.
#[derive(Debug, Default)]
pub(super) struct SubscriptionAsks {
    open: BTreeMap<ReplyToken, UnsettledAsk>,
    bytes: usize,
    opened: u64,
    past: BTreeMap<ReplyToken, ClosedAsk>,
    oldest_past: VecDeque<ReplyToken>,
    answered: BTreeMap<ReplyToken, AnsweredAsk>,
}

impl SubscriptionAsks {
    pub(super) fn open(&self) -> impl Iterator<Item = &UnsettledAsk> {
        self.open.values()
    }

    /// The ask, if it can still be answered in time.
    pub(super) fn answerable(
        &self,
        now: Now,
        token: &ReplyToken,
    ) -> Result<&UnsettledAsk, CannotReply> {
        if self.answered.contains_key(token) {
            return Err(CannotReply::AlreadyAnswered);
        }
        let Some(ask) = self.open.get(token) else {
            let past = self.past.get(token).map(|past| past.closed.clone());
            return Err(past.map_or(CannotReply::UnknownAsk, CannotReply::from));
        };
        if ask.deadline_us <= now.monotonic_us {
            return Err(CannotReply::Expired);
        }
        let is_kept = |answered: &AnsweredAsk| answered.until_us > now.monotonic_us;
        if self.answered.len() >= MAX_ANSWERED && self.answered.values().all(is_kept) {
            return Err(CannotReply::TooManyAnswered);
        }
        Ok(ask)
    }

    /// Records that a person answered. From here on the token is used up, even if the reply is
    /// lost.
    pub(super) fn answer(&mut self, now: Now, token: &ReplyToken) {
        let Some(ask) = self.take(token) else { return };
        if self.answered.len() >= MAX_ANSWERED {
            self.answered.retain(|_, answered| answered.until_us > now.monotonic_us);
        }
        let until_us = ask.deadline_us.saturating_add(ANSWERED_KEPT_SECONDS * SECOND_US);
        let event_id = ask.event.envelope.event_id.clone();
        let answered =
            AnsweredAsk { event_id, session_id: ask.session_id, until_us, is_resolved: false };
        self.answered.insert(token.clone(), answered);
    }

    /// Opens an ask again whose answer the producer did not count. Returns false if its outcome is known by now,
    /// if it is not the ask that was answered, or if there is no room for it.
    pub(super) fn reopen(&mut self, ask: UnsettledAsk) -> bool {
        let event_id = &ask.event.envelope.event_id;
        let is_it = |it: &AnsweredAsk| !it.is_resolved && it.event_id == *event_id;
        let has_room = self.open.len() < MAX_OPEN_ASKS
            && self.bytes.saturating_add(ask.size) <= MAX_OPEN_ASK_BYTES;
        if !has_room || !self.answered.get(&ask.reply_token).is_some_and(is_it) {
            return false;
        }
        self.answered.remove(&ask.reply_token);
        self.bytes += ask.size;
        self.open.insert(ask.reply_token.clone(), ask);
        true
    }

    /// Records an ask that arrived. Asks that have to give way are reported in `changes`.
    pub(super) fn ask(
        &mut self,
        now: Now,
        (event, size): (&Event, usize),
        (can_reply, may_wait): (bool, bool),
        changes: &mut Vec<SubscriberChange>,
    ) -> Option<AskArrival> {
        let (token, timeout_seconds) = question(&event.payload)?;
        let said = event.extensions.as_ref().and_then(|_| Delivery::of(event));
        let most_seconds = said.as_ref().filter(|_| may_wait).and_then(|it| it.max_timeout_seconds);
        let most_seconds = timeout_seconds.max(most_seconds.unwrap_or(0));
        // An ask that comes late has less time than its own.
        let left = said.and_then(|it| it.seconds_left).unwrap_or(most_seconds);
        let timeout_seconds = most_seconds.min(left);
        if let Some(coming) = self.known(token, event) {
            if coming == AskArrival::TokenReused && self.open.contains_key(token) {
                let why = WhyWithdrawn::TokenReused;
                self.close(token, AskClosure::Withdrawn(why.clone()));
                changes.push(SubscriberChange::AskWithdrawn { reply_token: token.clone(), why });
            }
            return Some(coming);
        }
        self.make_room(size, changes);
        self.opened += 1;
        self.bytes += size;
        let timeout_us = timeout_seconds.saturating_mul(SECOND_US);
        let ask = UnsettledAsk {
            reply_token: token.clone(),
            session_id: event.envelope.session_id.clone(),
            event: Arc::new(event.clone()),
            deadline_us: now.monotonic_us.saturating_add(timeout_us),
            is_paused: false,
            can_reply,
            size,
            opened: self.opened,
        };
        self.open.insert(token.clone(), ask);
        changes.push(SubscriberChange::AskOpened { reply_token: token.clone() });
        Some(AskArrival::Opened)
    }

    /// Applies a new deadline that the producer announced. Nothing changes if the ask belongs to
    /// another session or is no longer open.
    pub(super) fn change_time(
        &mut self,
        now: Now,
        event: &Event,
        deadline: &aaep::extension::Deadline,
        changes: &mut Vec<SubscriberChange>,
    ) {
        let (token, session) = (&deadline.reply_token, &event.envelope.session_id);
        let Some(ask) = self.open.get_mut(token).filter(|ask| ask.session_id == *session) else {
            return;
        };
        // Counted from the timestamp of the announcement, because the two clocks need not agree.
        let left = deadline.at.unix_us().saturating_sub(event.envelope.timestamp.unix_us());
        ask.deadline_us = now.monotonic_us.saturating_add(u64::try_from(left).unwrap_or(0));
        ask.is_paused = deadline.paused;
        changes.push(SubscriberChange::AskTimeChanged { reply_token: token.clone() });
    }

    /// Records how the producer settled an ask. Returns false if the ask belongs to another
    /// session.
    pub(super) fn resolve(
        &mut self,
        session: &SessionId,
        resolution: &aaep::extension::Resolution,
        changes: &mut Vec<SubscriberChange>,
    ) -> bool {
        let token = &resolution.reply_token;
        let change = change_for(resolution);
        if let Some(ask) = self.open.get(token) {
            if ask.session_id != *session {
                return false;
            }
            changes.push(change);
            self.close(token, closed_by(resolution));
        } else if let Some(answered) = self.answered.get_mut(token) {
            if answered.session_id != *session {
                return false;
            }
            if !std::mem::replace(&mut answered.is_resolved, true) {
                changes.push(change);
            }
        } else if !self.past.contains_key(token) {
            // A subscriber that was not asked is told the outcome, too (ruling 18).
            let closed = closed_by(resolution);
            let past = ClosedAsk { session_id: session.clone(), event_id: None, closed };
            self.remember(token.clone(), past);
        }
        true
    }

    /// Withdraws the open asks for which `is_meant` is true, and returns their tokens.
    pub(super) fn withdraw(
        &mut self,
        is_meant: impl Fn(&UnsettledAsk) -> bool,
        why: &WhyWithdrawn,
        changes: &mut Vec<SubscriberChange>,
    ) -> Vec<ReplyToken> {
        let tokens: Vec<_> = self
            .open
            .values()
            .filter(|ask| is_meant(ask))
            .map(|ask| ask.reply_token.clone())
            .collect();
        for token in &tokens {
            self.close(token, AskClosure::Withdrawn(why.clone()));
            changes.push(SubscriberChange::AskWithdrawn {
                reply_token: token.clone(),
                why: why.clone(),
            });
        }
        tokens
    }

    /// Forgets that an ask was closed, if that was only because the subscription ended and this is
    /// the same ask again. An answered ask stays answered.
    pub(super) fn let_reopen(&mut self, event: &Event) -> bool {
        let Some((token, _)) = question(&event.payload) else { return false };
        let closed = AskClosure::Withdrawn(WhyWithdrawn::SubscriptionEnded);
        let can = self.past.get(token).is_some_and(|past| {
            past.closed == closed && past.event_id.as_ref() == Some(&event.envelope.event_id)
        });
        if can {
            self.past.remove(token);
            self.oldest_past.retain(|past| past != token);
        }
        can
    }

    /// Applies new terms, which decide whether the open asks can be answered.
    pub(super) fn allow(&mut self, can_reply: impl Fn(&Event) -> bool) {
        for ask in self.open.values_mut() {
            ask.can_reply = can_reply(&ask.event);
        }
    }

    /// Closes the asks that nobody answered in time.
    pub(super) fn tick(&mut self, now: Now, changes: &mut Vec<SubscriberChange>) {
        let is_due = |ask: &&UnsettledAsk| ask.deadline_us <= now.monotonic_us;
        let mut due: Vec<_> = self.open.values().filter(is_due).collect();
        due.sort_by_key(|ask| (ask.deadline_us, ask.opened));
        let due: Vec<_> = due.into_iter().map(|ask| ask.reply_token.clone()).collect();
        for token in due {
            self.close(&token, AskClosure::Expired);
            changes.push(SubscriberChange::AskExpired { reply_token: token });
        }
    }

    /// When the next ask expires.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.open.values().map(|ask| ask.deadline_us).min()
    }

    /// Whether a token is known, and if so, whether from another event than this one. For some
    /// tokens only the outcome is known; then this may be the event, unless another session
    /// announced the outcome.
    fn known(&self, token: &ReplyToken, event: &Event) -> Option<AskArrival> {
        let asked_by = if let Some(ask) = self.open.get(token) {
            Some(&ask.event.envelope.event_id)
        } else if let Some(answered) = self.answered.get(token) {
            Some(&answered.event_id)
        } else {
            let past = self.past.get(token)?;
            if past.event_id.is_none() && past.session_id != event.envelope.session_id {
                return None;
            }
            past.event_id.as_ref()
        };
        let is_same = asked_by.is_none_or(|id| *id == event.envelope.event_id);
        Some(if is_same { AskArrival::Known } else { AskArrival::TokenReused })
    }

    fn make_room(&mut self, size: usize, changes: &mut Vec<SubscriberChange>) {
        while self.open.len() >= MAX_OPEN_ASKS
            || (self.bytes + size > MAX_OPEN_ASK_BYTES && !self.open.is_empty())
        {
            let Some(oldest) = self.open.values().min_by_key(|ask| ask.opened) else { return };
            let token = oldest.reply_token.clone();
            self.close(&token, AskClosure::Forgotten);
            changes.push(SubscriberChange::AskForgotten { reply_token: token });
        }
    }

    fn close(&mut self, token: &ReplyToken, closed: AskClosure) {
        let Some(ask) = self.take(token) else { return };
        let event_id = Some(ask.event.envelope.event_id.clone());
        let past = ClosedAsk { session_id: ask.session_id, event_id, closed };
        self.remember(token.clone(), past);
    }

    fn take(&mut self, token: &ReplyToken) -> Option<UnsettledAsk> {
        let ask = self.open.remove(token)?;
        self.bytes = self.bytes.saturating_sub(ask.size);
        Some(ask)
    }

    fn remember(&mut self, token: ReplyToken, past: ClosedAsk) {
        if self.past.insert(token.clone(), past).is_none() {
            self.oldest_past.push_back(token);
        }
        if self.oldest_past.len() > MAX_CLOSED_ASKS
            && let Some(oldest) = self.oldest_past.pop_front()
        {
            self.past.remove(&oldest);
        }
    }

    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        (self.open.len(), self.past.len().max(self.oldest_past.len()), self.answered.len())
    }
}

/// What is remembered of a notice. Words that are too long to be meaningful are not kept.
fn closed_by(resolution: &aaep::extension::Resolution) -> AskClosure {
    let (outcome, decided_by) = (&resolution.outcome, &resolution.decided_by);
    let is_long = outcome.as_str().len().max(decided_by.as_str().len()) > MAX_WORD_BYTES;
    if *outcome == AskOutcome::Withdrawn || is_long {
        return AskClosure::Withdrawn(WhyWithdrawn::Said);
    }
    AskClosure::Resolved(outcome.clone(), decided_by.clone())
}

/// The change that a notice announces.
fn change_for(resolution: &aaep::extension::Resolution) -> SubscriberChange {
    let reply_token = resolution.reply_token.clone();
    if resolution.outcome == AskOutcome::Withdrawn {
        return SubscriberChange::AskWithdrawn { reply_token, why: WhyWithdrawn::Said };
    }
    let (outcome, decided_by) = (resolution.outcome.clone(), resolution.decided_by.clone());
    SubscriberChange::AskResolved { reply_token, outcome, decided_by }
}
