//! What the engine wants to be done.

use std::sync::Arc;

use aaep::handshake::{SubscriptionAccepted, SubscriptionClose, SubscriptionRejected};
use aaep::{EventId, ReplyToken, SubscriptionId};

use super::{AskTimeRecord, Audit, Principal, Record, Resolution, Subscription};
use crate::audience::SubscriberKey;
use crate::frame::Frame;
use crate::order::OrderViolation;

/// Something is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// The event stands; the agent is told when it is stored.
    Published {
        /// Who spoke.
        principal: Principal,
        /// The event.
        event_id: EventId,
    },
    /// The event was refused; nothing of it remains.
    Refused {
        /// Who spoke.
        principal: Principal,
        /// The event.
        event_id: EventId,
        /// Why.
        refusal: Refusal,
    },
    /// An event is part of a session's history: an agent's, or one that the engine made. To be
    /// stored before anyone is told that it stands.
    Record(Record),
    /// Until when a question can be answered, to be stored in place of what was stored of it before.
    Time(AskTimeRecord),
    /// A subscription to be stored, in place of an earlier one with its id.
    Remember(Box<Subscription>),
    /// A subscription is over and needs not be stored any more.
    Forget {
        /// Which one.
        subscription_id: SubscriptionId,
    },
    /// A subscription is there again after a stop; its subscriber is away until it comes back.
    Recovered {
        /// The subscriber, from now on.
        subscriber: SubscriberKey,
        /// Its subscription.
        subscription_id: SubscriptionId,
    },
    /// An encoded event goes to these subscribers.
    Deliver {
        /// The event, shared by all.
        frame: Arc<Frame>,
        /// To whom.
        to: Vec<SubscriberKey>,
    },
    /// More waits for a subscriber than goes at a time. When its wire has taken what it was sent until now,
    /// [`Input::Unblock`](super::Input::Unblock) says so, and the next part follows.
    More {
        /// For whom.
        subscriber: SubscriberKey,
    },
    /// Terms were granted: the answer to a request or a renegotiation.
    Accepted {
        /// The subscriber, from now on.
        subscriber: SubscriberKey,
        /// The message for it.
        message: Box<SubscriptionAccepted>,
    },
    /// A subscriber goes on where it was: the answer to a return, after the terms if it wanted some.
    Resumed {
        /// The subscriber.
        subscriber: SubscriberKey,
        /// Whether it is told everything that it missed; if not, it is told so.
        is_complete: bool,
    },
    /// Terms were not granted. A subscriber that had some has none any more.
    Rejected {
        /// The subscriber that lost its terms; none for a new one.
        subscriber: Option<SubscriberKey>,
        /// The message for it.
        message: Box<SubscriptionRejected>,
    },
    /// The producer ends the subscription of a subscriber that is here: the message for it, before its
    /// connection is closed.
    Ended {
        /// Whose.
        subscriber: SubscriberKey,
        /// The message for it.
        message: Box<SubscriptionClose>,
    },
    /// A subscription is over.
    Closed {
        /// Whose.
        subscriber: SubscriberKey,
    },
    /// An answer to whoever said something about a subscription that is not theirs, or not there.
    NoSuchSubscription,
    /// The answer to a reply: whether it counted, and nothing else (ruling 12).
    Replied {
        /// Whether it was the reply that counts.
        is_accepted: bool,
    },
    /// The answer to who said something about the time of a question: whether it counts, and nothing
    /// else (ruling 12).
    TimeReplied {
        /// Whether it counts.
        is_accepted: bool,
    },
    /// An answer to an agent that withdrew a question that is not open, or not its own; which of the
    /// two, it does not learn.
    NoSuchAsk {
        /// Who spoke.
        principal: Principal,
        /// The question that it named.
        reply_token: ReplyToken,
    },
    /// A question is settled: this is the agent's answer.
    Resolved {
        /// Who spoke.
        principal: Principal,
        /// The question.
        reply_token: ReplyToken,
        /// How it was settled.
        resolution: Resolution,
        /// What settled it.
        decided_by: aaep::extension::DecidedBy,
    },
    /// For the audit log: what happened to questions and why, without leaving anything out.
    Audit(Audit),
}

/// Why an event was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It breaks the order of its session.
    Order(OrderViolation),
    /// The session belongs to another principal.
    NotYourSession,
    /// The token of the question was used before (§6.2.2).
    TokenUsed,
    /// Another question with this token is open.
    TokenOpen,
    /// It has data of our own extension with which only the hub says how questions were settled, or
    /// how something was delivered.
    SpeaksForTheHub,
    /// It has data of our own extension that an agent may state, but not here or not so: what to do
    /// instead.
    MisusesExtension(&'static str),
    /// Its timestamp is further from our clock than [`crate::MAX_CLOCK_DIFFERENCE_US`]: set the clock
    /// of the agent, or leave the timestamp out and the hub stamps the event.
    ClockDiffers {
        /// How far the timestamp is ahead of our clock, or behind it if negative.
        ahead_us: i64,
    },
    /// Silence would accept an action that is not stated to be of low risk and reversible (rulings 16 and 35).
    UnsafeDefault,
    /// The same action waits for an answer already; wait for it, or withdraw it (§6.1).
    AlreadyAsked,
    /// Something of it is longer than is kept.
    TooLong {
        /// Which field.
        what: &'static str,
        /// How many bytes it may have.
        max_bytes: usize,
    },
    /// There are too many open questions, sessions or events.
    TooMany(&'static str),
    /// The principal has as many of these as one may have; others may have theirs.
    OverShare(&'static str),
    /// An event with this id came before; the first one stands.
    Repeated,
}
