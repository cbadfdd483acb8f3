//! The subscriber's side of the rules: one subscription as the listening program sees it.
//!
//! A [`SubscriberRules`] takes the messages of a producer one by one and reports what is new, what
//! changed and what the producer did wrong. It hears every event once (§3.2.3, §9.5.2), follows
//! sessions, keeps the asks that wait for a person (chapter 6), and makes at most one reply to
//! each. It survives any input: unknown types and extensions are passed on (§3.2.2, §3.4.3,
//! §12.6.1), a broken rule is a [`SubscriberViolation`] and never the end, and a critical event is
//! never dropped (§5.5.4, §5.6.2).
//!
//! It never answers for the person, never reads a clock, never sends anything itself, and never
//! looks into a reply token (§6.2.3). Memory is bounded, and each bound has a name. Handled
//! elsewhere: what to say and when (`aaep-announce`), connections (`aaep-transport`), signatures.

mod asks;
mod change;
mod doubt;
mod handshake;
mod rate;
mod reply;
mod seen;
mod sessions;
mod terms;
#[cfg(test)]
mod tests;
mod text;
mod violation;

use aaep::event::human::Decision;
use aaep::event::reasoning::state;
use aaep::extension::Delivery;
use aaep::reply::ConfirmationReply;
use aaep::{
    Code, Event, EventId, Message, Mode, Object, OutputId, Payload, ReplyToken, SessionId,
    SubscriptionId, Version, Violation,
};

use crate::ask::question;
use crate::clock::Now;
use crate::order::{OrderViolation, StreamOrder};
use crate::terms::Terms;
use asks::{AskArrival, SubscriptionAsks};
use doubt::OrderDoubts;
use handshake::SubscriptionState;
use rate::ObservedRate;
use seen::{EventSighting, SeenEvents};
use sessions::{SubscriberSessions, may_be_made_by_hub};
use text::SubscriberTexts;

pub use asks::{
    ANSWERED_KEPT_SECONDS, MAX_ANSWERED, MAX_CLOSED_ASKS, MAX_OPEN_ASK_BYTES, MAX_OPEN_ASKS,
    UnsettledAsk, WhyWithdrawn,
};
pub use change::{HeardMessage, Received, SubscriberChange};
pub use handshake::{HowEnded, IN_FLIGHT_US};
pub use reply::{CannotReply, ClarificationDetails, ConfirmationDetails, NotAllowed};
pub use seen::MAX_EVENT_IDS;
pub use sessions::{
    MAX_NAME_CHARS, MAX_RUNNING_TOOLS, MAX_SESSIONS, RunningTool, Session, SessionEnding,
};
pub use terms::CannotAsk;
pub use text::{MAX_TEXT_BYTES, MAX_TEXTS, MAX_TEXTS_BYTES, Text};
pub use violation::SubscriberViolation;

/// Names the subscriber in its handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriberConfig {
    /// The stable name of the subscriber.
    pub subscriber_id: String,
    /// Its name for people.
    pub subscriber_name: Option<String>,
    /// Its version.
    pub subscriber_version: Option<String>,
    /// The version of AAEP to request.
    pub version: Version,
}

/// One subscription as the subscriber sees it.
#[derive(Debug)]
pub struct SubscriberRules {
    config: SubscriberConfig,
    standing: SubscriptionState,
    seen: SeenEvents,
    rate: ObservedRate,
    order: StreamOrder,
    doubts: OrderDoubts,
    sessions: SubscriberSessions,
    asks: SubscriptionAsks,
    texts: SubscriberTexts,
    last_event_id: Option<EventId>,
}

impl SubscriberRules {
    /// A subscriber that has heard nothing.
    pub fn new(config: SubscriberConfig) -> Self {
        SubscriberRules {
            config,
            standing: SubscriptionState::New,
            seen: SeenEvents::default(),
            rate: ObservedRate::new(),
            order: StreamOrder::new(),
            doubts: OrderDoubts::default(),
            sessions: SubscriberSessions::default(),
            asks: SubscriptionAsks::default(),
            texts: SubscriberTexts::default(),
            last_event_id: None,
        }
    }

    /// Takes a message from the producer. Asks whose time is up expire first.
    pub fn receive(&mut self, now: Now, bytes: &[u8]) -> Received {
        let mut out = Received { changes: self.tick(now), ..Received::default() };
        let reading = aaep::read(bytes, Mode::Tolerant);
        let Some(message) = reading.message else {
            let (event_id, violations) = (reading.event_id, reading.violations);
            out.add_violation(SubscriberViolation::Invalid { event_id, violations });
            return out;
        };
        let tolerated: Vec<_> = reading.violations.into_iter().filter(is_fault).collect();
        if !tolerated.is_empty() {
            out.add_violation(SubscriberViolation::Tolerated(tolerated));
        }
        match message {
            Message::Event(event) => self.hear(now, event, bytes.len(), &mut out),
            message => self.take_message(now, message, &mut out),
        }
        out
    }

    /// Does what is due: asks that nobody answered in time expire.
    pub fn tick(&mut self, now: Now) -> Vec<SubscriberChange> {
        let mut changes = Vec::new();
        self.asks.tick(now, &mut changes);
        changes
    }

    /// When to call [`SubscriberRules::tick`] again, in microseconds on the monotonic clock.
    pub fn deadline(&self) -> Option<u64> {
        self.asks.deadline()
    }

    /// Notes that the connection broke, with or without a message (§5.8). Asks stay open until
    /// their time is up. The next message may follow a gap, so the producer is not accused of a
    /// wrong order around it. A requested change of terms that was not answered yet has to be
    /// requested again.
    pub fn interrupted(&mut self) {
        self.order = StreamOrder::new();
        if let SubscriptionState::Holds(held) = &mut self.standing {
            held.changing = None;
        }
    }

    /// The asks that wait for the person, by token.
    pub fn open_asks(&self) -> impl Iterator<Item = &UnsettledAsk> {
        self.asks.open()
    }

    /// The sessions that are remembered, including ended ones.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter()
    }

    /// A session, if it is remembered.
    pub fn session(&self, id: &SessionId) -> Option<&Session> {
        self.sessions.get(id)
    }

    /// The text of an output so far. Without an id: the output of the session that has none.
    pub fn text(&self, session: &SessionId, output: Option<&OutputId>) -> Option<&Text> {
        self.texts.get(session, output)
    }

    /// All remembered texts of a session.
    pub fn texts<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> impl Iterator<Item = (Option<&'a OutputId>, &'a Text)> {
        self.texts.of(session)
    }

    /// The event that was heard last, to resume after.
    pub fn last_event_id(&self) -> Option<&EventId> {
        self.last_event_id.as_ref()
    }

    /// The id of the subscription, if it is active and has one.
    pub fn subscription_id(&self) -> Option<&SubscriptionId> {
        match &self.standing {
            SubscriptionState::Holds(held) => held.id.as_ref(),
            _ => None,
        }
    }

    /// The terms that apply: what was granted, and never more than what was requested.
    pub fn terms(&self) -> Option<&Terms> {
        match &self.standing {
            SubscriptionState::Holds(held) => held.terms(),
            _ => None,
        }
    }

    fn hear(&mut self, now: Now, event: Box<Event>, size: usize, out: &mut Received) {
        let delivery = event.extensions.as_ref().and_then(|_| Delivery::of(&event));
        self.check_terms(now, &event, delivery.as_ref(), out);
        match self.seen.look(&event) {
            EventSighting::First => {}
            EventSighting::Repeated => {
                self.reopen(now, &event, size, out);
                out.heard = Some(HeardMessage::Repeated(event.envelope.event_id));
                return;
            }
            EventSighting::Reused => {
                let id = event.envelope.event_id.clone();
                out.add_violation(SubscriberViolation::EventIdReused(id));
            }
        }
        self.last_event_id = Some(event.envelope.event_id.clone());
        self.follow(now, &event, delivery.as_ref(), size, out);
        out.heard = Some(HeardMessage::Event(event));
    }

    /// Checks that the event keeps to the terms. After a change, the earlier terms still count for
    /// a while (§5.7.2).
    fn check_terms(
        &mut self,
        now: Now,
        event: &Event,
        delivery: Option<&Delivery>,
        out: &mut Received,
    ) {
        let SubscriptionState::Holds(held) = &self.standing else {
            return out.add_violation(SubscriberViolation::NotSubscribed);
        };
        // Critical events, and those that a hub made for this subscriber, pass filters and rate
        // (§5.5.4, rulings 18 and 19).
        if event.is_critical() || delivery.is_some_and(is_made_by_hub) || may_be_made_by_hub(event)
        {
            return;
        }
        let mut counting = held.counting(now.monotonic_us).peekable();
        if counting.peek().is_none() {
            return;
        }
        let (mut is_wanted, mut max) = (false, Some(0));
        let event_type = event.event_type();
        for terms in counting {
            is_wanted |= terms.wants(&event_type);
            max = max.zip(terms.max_events_per_second).map(|(one, other)| one.max(other));
        }
        if !is_wanted {
            out.add_violation(SubscriberViolation::Excluded(event_type));
        }
        if let (Some(heard), Some(honored)) = (self.rate.count(now.monotonic_us, max), max) {
            out.add_violation(SubscriberViolation::TooFast { honored, heard });
        }
    }

    /// Applies a new event.
    fn follow(
        &mut self,
        now: Now,
        event: &Event,
        delivery: Option<&Delivery>,
        size: usize,
        out: &mut Received,
    ) {
        let id = &event.envelope.session_id;
        let mut faults = self.order.observe_event(event);
        let is_over = self.sessions.is_ended(id) || faults.contains(&OrderViolation::Ended);
        if is_over && !faults.contains(&OrderViolation::Ended) {
            faults = vec![OrderViolation::Ended];
        }
        for violation in faults.into_iter().filter(|it| self.doubts.is_certain(it, event, delivery))
        {
            out.add_violation(SubscriberViolation::Order { session_id: id.clone(), violation });
        }
        if let Some(resolution) = delivery.and_then(|delivery| delivery.resolution.as_ref())
            && !self.asks.resolve(id, resolution, &mut out.changes)
        {
            let token = resolution.reply_token.clone();
            out.add_violation(SubscriberViolation::ForeignResolution(token));
        }
        if is_over {
            return;
        }
        let violations = self.sessions.hear(now, event, &mut out.changes);
        out.violations.extend(violations);
        if let Some(gap) = delivery.and_then(|delivery| delivery.gap.as_ref()) {
            let (after, missed) = (gap.after_event_id.clone(), gap.missed);
            out.changes.push(SubscriberChange::Gap { session_id: id.clone(), after, missed });
        }
        if let Payload::OutputStreaming(chunk) = &event.payload {
            self.texts.take(id, chunk);
        }
        self.follow_asks(now, event, delivery, size, out);
        self.forget_sessions(out);
    }

    /// Opens an ask, or notices that some were withdrawn (§6.8).
    fn follow_asks(
        &mut self,
        now: Now,
        event: &Event,
        delivery: Option<&Delivery>,
        size: usize,
        out: &mut Received,
    ) {
        let id = &event.envelope.session_id;
        if self.sessions.is_ended(id) {
            let why = WhyWithdrawn::SessionEnded;
            self.asks.withdraw(|ask| ask.session_id == *id, &why, &mut out.changes);
            return;
        }
        let names_one = delivery.is_some_and(|delivery| delivery.resolution.is_some());
        if !names_one && has_gone_on(event) {
            let agent_id = &event.envelope.producer.agent_id;
            let is_paced = self.terms().is_some_and(|it| it.max_events_per_second.is_some());
            let is_meant = |ask: &UnsettledAsk| {
                ask.session_id == *id
                    && ask.event.envelope.producer.agent_id == *agent_id
                    && is_after(event, &ask.event, is_paced)
            };
            let gone = self.asks.withdraw(is_meant, &WhyWithdrawn::WentOn, &mut out.changes);
            for token in &gone {
                self.suppose_accepted(token);
            }
            return;
        }
        if let Some(deadline) = delivery.and_then(|delivery| delivery.deadline.as_ref()) {
            self.asks.change_time(now, event, deadline, &mut out.changes);
        }
        self.open_ask(now, event, size, out);
    }

    /// Opens an ask again that was closed only because the subscription ended (ruling 19).
    fn reopen(&mut self, now: Now, event: &Event, size: usize, out: &mut Received) {
        if self.subscription_id().is_some()
            && !self.sessions.is_ended(&event.envelope.session_id)
            && self.asks.let_reopen(event)
        {
            self.open_ask(now, event, size, out);
        }
    }

    fn open_ask(&mut self, now: Now, event: &Event, size: usize, out: &mut Received) {
        let Some((token, _)) = question(&event.payload) else { return };
        if matches!(self.standing, SubscriptionState::Over) {
            return;
        }
        let can_reply = can_answer(self.terms(), event);
        let may_wait = self.terms().is_some_and(Terms::counts_from_presented);
        let able = (can_reply, may_wait);
        let coming = self.asks.ask(now, (event, size), able, &mut out.changes);
        if coming == Some(AskArrival::TokenReused) {
            out.add_violation(SubscriberViolation::TokenReused(token.clone()));
        } else if coming == Some(AskArrival::Opened) && !can_reply {
            out.add_violation(SubscriberViolation::AskWithoutReplySupport(token.clone()));
        }
    }

    /// The agent continued without saying why. Someone else may have accepted, so the producer is
    /// not accused of what follows. This concerns only the order; nothing is sent.
    fn suppose_accepted(&mut self, token: &ReplyToken) {
        const RIGHT: &str = "a constant of the right form";
        let reply = ConfirmationReply {
            reply_token: token.clone(),
            decision: Decision::Accept,
            subscription_id: SubscriptionId::parse("sub_0").expect(RIGHT),
            timestamp: aaep::DecisionTime::parse("1970-01-01T00:00:00Z").expect(RIGHT),
            decided_by: None,
            decision_rationale: None,
            modified_action: None,
            correlation_id: None,
            other: Object::new(),
        };
        self.order.observe(&Message::ConfirmationReply(Box::new(reply)));
    }

    fn forget_sessions(&mut self, out: &mut Received) {
        let asking = || self.asks.open().map(|ask| &ask.session_id).collect();
        for session_id in self.sessions.make_room(asking) {
            self.texts.forget(&session_id);
            out.changes.push(SubscriberChange::SessionForgotten { session_id });
        }
    }
}

/// Whether a reader's note is about a broken rule. Some notes only recommend something.
fn is_fault(violation: &Violation) -> bool {
    !matches!(violation.code, Code::LanguageNotDeclared | Code::RiskyDefault | Code::CannotReply)
}

/// Whether the extension data says that a hub made the event for its subscribers.
fn is_made_by_hub(delivery: &Delivery) -> bool {
    delivery.resolution.is_some() || delivery.gap.is_some()
}

/// Whether the terms let a subscriber answer the ask in this event. Without terms nothing forbids
/// it.
fn can_answer(terms: Option<&Terms>, event: &Event) -> bool {
    terms.is_none_or(|terms| match &event.payload {
        Payload::AwaitingConfirmation(_) => terms.confirmation_reply,
        _ => terms.clarification_reply,
    })
}

/// Whether the agent indicates that it no longer waits (§6.8).
fn has_gone_on(event: &Event) -> bool {
    matches!(&event.payload, Payload::StateChanged(changed)
        if changed.from_state == state::AWAITING_INPUT && changed.to_state != state::AWAITING_INPUT)
}

/// Whether an event was made after an ask. An ask overtakes events that are held back (ruling 7),
/// so an older state change may arrive later and says nothing about the ask.
fn is_after(event: &Event, ask: &Event, is_paced: bool) -> bool {
    let (event_at, ask_at) = (&event.envelope, &ask.envelope);
    if let (Some(number), Some(asked)) = (event_at.sequence_number, ask_at.sequence_number) {
        return number > asked;
    }
    let (at_us, asked_us) = (event_at.timestamp.unix_us(), ask_at.timestamp.unix_us());
    at_us > asked_us || (at_us == asked_us && (event.is_critical() || !is_paced))
}
