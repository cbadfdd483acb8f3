//! Everything that the engine asks its caller to do.

use std::sync::Arc;

use aaep::extension::{AskOutcome, DecidedBy};
use aaep::handshake::{SubscriptionAccepted, SubscriptionClose, SubscriptionRejected};
use aaep::reply::Response;
use aaep::{Event, EventId, ReplyToken, SubscriptionId};

use super::{AskAnswerer, AskTimeRecord, Audit, PrincipalNumber, Record, Subscription};
use crate::audience::SubscriberKey;
use crate::frame::Frame;
use crate::order::OrderViolation;

/// Something for the caller to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// The event was admitted. The agent is told once it is stored.
    Published {
        /// The principal that published it.
        principal: PrincipalNumber,
        /// The event.
        event_id: EventId,
    },
    /// The event was refused, and no trace remains.
    Refused {
        /// The principal that published it.
        principal: PrincipalNumber,
        /// The event.
        event_id: EventId,
        /// Why it was refused.
        refusal: Refusal,
    },
    /// An event became part of a session's history: an agent's, or one that the engine made. It
    /// must be stored before anyone is told that it was admitted.
    Record(Record),
    /// How long an ask can be answered. It replaces what was stored for this ask before.
    Time(AskTimeRecord),
    /// A subscription to store. It replaces an earlier one with the same id.
    Remember(Box<Subscription>),
    /// A subscription ended and no longer needs to be stored.
    Forget {
        /// The subscription.
        subscription_id: SubscriptionId,
    },
    /// A subscription was restored after a restart. Its subscriber is away until it reconnects.
    Recovered {
        /// The key of the subscriber from now on.
        subscriber: SubscriberKey,
        /// Its subscription.
        subscription_id: SubscriptionId,
    },
    /// An encoded event to send to these subscribers.
    Deliver {
        /// The encoded event, shared by all of them.
        frame: Arc<Frame>,
        /// The subscribers.
        to: Vec<SubscriberKey>,
    },
    /// The subscriber has more pending events than one batch. When its wire has taken what was sent
    /// so far, the caller reports [`EngineInput::Unblock`](super::EngineInput::Unblock), and the next batch
    /// follows.
    More {
        /// The subscriber.
        subscriber: SubscriberKey,
    },
    /// Terms were granted, in answer to a request or a renegotiation.
    Accepted {
        /// The key of the subscriber from now on.
        subscriber: SubscriberKey,
        /// The message for the subscriber.
        message: Box<SubscriptionAccepted>,
    },
    /// A subscriber continues where it was. This answers a reconnection, and follows the terms if
    /// it requested some.
    Resumed {
        /// The subscriber.
        subscriber: SubscriberKey,
        /// Whether it is sent everything that it missed. If not, it is told about the gap.
        is_complete: bool,
    },
    /// Terms were not granted. A subscriber that had terms loses them.
    Rejected {
        /// The subscriber that lost its terms; none for a new one.
        subscriber: Option<SubscriberKey>,
        /// The message for the subscriber.
        message: Box<SubscriptionRejected>,
    },
    /// The producer ends the subscription of a connected subscriber. Send it the message before
    /// closing the connection.
    Ended {
        /// The subscriber.
        subscriber: SubscriberKey,
        /// The message for the subscriber.
        message: Box<SubscriptionClose>,
    },
    /// A subscription ended.
    Closed {
        /// The subscriber.
        subscriber: SubscriberKey,
    },
    /// The answer to a request about a subscription that does not exist or belongs to another
    /// principal.
    NoSuchSubscription,
    /// The answer to a reply: whether it counted, and nothing else (ruling 12).
    Replied {
        /// Whether it was the reply that counts.
        is_accepted: bool,
    },
    /// The answer to a request about the time of an ask: whether it counts, and nothing else
    /// (ruling 12).
    TimeReplied {
        /// Whether it counts.
        is_accepted: bool,
    },
    /// The answer to an agent that withdrew an ask that is not open, or is not its own. The agent
    /// does not learn which of the two applies.
    NoSuchAsk {
        /// The principal that withdrew it.
        principal: PrincipalNumber,
        /// The token that it named.
        reply_token: ReplyToken,
    },
    /// An ask was made and is open from now on.
    Asked {
        /// The principal that asks.
        principal: PrincipalNumber,
        /// The token of the ask.
        reply_token: ReplyToken,
        /// The event that asks.
        event: Arc<Event>,
        /// How many subscribers that can answer were told.
        told: usize,
    },
    /// An ask is settled: this is the answer for the agent.
    Settled {
        /// The principal that asked.
        principal: PrincipalNumber,
        /// The token of the ask.
        reply_token: ReplyToken,
        /// How it was settled.
        outcome: AskOutcome,
        /// What settled it.
        decided_by: DecidedBy,
        /// The answer to a clarification: a person's, or the agent's own default.
        response: Option<Response>,
        /// Who answered, if a reply settled it.
        answered_by: Option<AskAnswerer>,
    },
    /// For the audit log: what happened to an ask between [`Output::Asked`] and [`Output::Settled`],
    /// and why, without omission.
    Audit(Audit),
}

/// Why an event was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It breaks the order of its session.
    Order(OrderViolation),
    /// The session belongs to another principal.
    NotYourSession,
    /// The token of the ask was used before (§6.2.2).
    TokenUsed,
    /// Another ask with this token is open.
    TokenOpen,
    /// It has data of our own extension with which only the hub states how asks were settled, or
    /// how something was delivered.
    SpeaksForTheHub,
    /// It has data of our own extension that an agent may state, but not here or not in this form.
    /// The text says what to do instead.
    MisusesExtension(&'static str),
    /// Its timestamp is further from our clock than [`crate::MAX_CLOCK_DIFFERENCE_US`]: set the clock
    /// of the agent, or leave the timestamp out and the hub stamps the event.
    ClockDiffers {
        /// How far the timestamp is ahead of our clock, or behind it if negative.
        ahead_us: i64,
    },
    /// Silence would accept an action that is not stated to be of low risk and reversible (rulings
    /// 16 and 35).
    UnsafeDefault,
    /// The same action is already waiting for an answer. Wait for the answer, or withdraw the ask
    /// (§6.1).
    AlreadyAsked,
    /// A field is longer than what is kept.
    TooLong {
        /// The field.
        what: &'static str,
        /// How many bytes it may have.
        max_bytes: usize,
    },
    /// There are too many open asks, sessions or events.
    TooMany(&'static str),
    /// The principal has reached its share of these. Other principals may still have theirs.
    OverShare(&'static str),
    /// An event with this id was admitted before and stands.
    Repeated,
}
