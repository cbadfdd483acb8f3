//! The ways in which a producer can break the rules towards a subscriber, one variant each.
//!
//! A producer's mistake is data for a log (§3.11, §10 T4). It never causes a panic, never ends the
//! subscription by itself, and never costs the person a critical event (§5.6.2).

use std::fmt;

use aaep::{
    EventId, EventType, ReplyToken, SessionId, SubscriptionId, Version, Violation, printable,
};

use crate::order::OrderViolation;

/// What a producer did wrong. Each variant says how the subscriber handles it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubscriberViolation {
    /// A message cannot be understood: it is not JSON, it is too large, or a required field is
    /// missing or wrong. It is dropped, and only this report remains.
    Invalid {
        /// The event id that the text claims. Untrusted text.
        event_id: Option<String>,
        /// Everything that is wrong with it.
        violations: Vec<Violation>,
    },
    /// A message breaks a rule but can be understood. It is heard.
    Tolerated(Vec<Violation>),
    /// An event breaks the order of its session, as far as that can be known under these terms. It
    /// is heard. After the end of a session it changes nothing.
    Order {
        /// The session.
        session_id: SessionId,
        /// How it breaks the order.
        violation: OrderViolation,
    },
    /// Sequence numbers of a session are missing: events were lost or left out. The event is heard,
    /// and a change reports the gap.
    SequenceGap {
        /// The session.
        session_id: SessionId,
        /// The number that was expected.
        expected: u64,
        /// The number that arrived.
        found: u64,
    },
    /// An event arrived after one with a higher number. It is heard when it arrives.
    OutOfOrder {
        /// The session.
        session_id: SessionId,
        /// The number that was expected.
        expected: u64,
        /// The number that arrived.
        found: u64,
    },
    /// More non-critical events arrived within a second than were promised. All are heard; the
    /// subscriber may request a lower rate or leave. Reported at most once per second.
    TooFast {
        /// How many were promised.
        honored: u64,
        /// How many have arrived within a second so far.
        heard: u64,
    },
    /// A non-critical event arrived that the terms exclude. It is heard.
    Excluded(EventType),
    /// Terms were granted that are wider than requested, in these fields (§5.4.4). The requested
    /// values count.
    HonoredTooWide(Vec<&'static str>),
    /// The producer wants to speak a version that is newer than the requested one or has another
    /// major version (ruling 21). Its messages are read as far as they can be understood.
    WrongVersion {
        /// The version that was requested.
        asked: Version,
        /// The version that was granted.
        spoken: Version,
    },
    /// Only a signed manifest was acceptable, and the subscription was granted without one
    /// (§5.3.1.12). The subscriber should leave.
    NotSigned,
    /// An ask arrived on terms without replies (§5.3.1.4, §5.3.1.5). The person hears it, but it
    /// cannot be answered here.
    AskWithoutReplySupport(ReplyToken),
    /// A token arrived with a second ask (§6.2.2). From now on neither can be answered, because an
    /// answer to one might be taken for an answer to the other.
    TokenReused(ReplyToken),
    /// An id arrived with a second event (§3.2.3). Both are heard.
    EventIdReused(EventId),
    /// An event of one session claims that an ask of another session is settled. The ask stays
    /// open.
    ForeignResolution(ReplyToken),
    /// An event arrived while there was no subscription. It is heard.
    NotSubscribed,
    /// A message names another subscription. It is ignored.
    WrongSubscription {
        /// This subscription.
        expected: SubscriptionId,
        /// The subscription that the message names.
        found: SubscriptionId,
    },
    /// A message arrived unexpectedly: an answer without a request, or a message that only
    /// subscribers send. It is ignored.
    Unexpected(&'static str),
}

impl SubscriberViolation {
    /// The stable name, for machines and for searching.
    pub const fn code(&self) -> &'static str {
        self.facts().0
    }

    /// The section of the specification that is broken.
    pub const fn section(&self) -> &'static str {
        self.facts().1
    }

    #[rustfmt::skip]
    const fn facts(&self) -> (&'static str, &'static str) {
        match self {
            Self::Invalid { .. } => ("invalid", "3.9"),
            Self::Tolerated(_) => ("tolerated", "3.11"),
            Self::Order { violation, .. } => (violation.code(), violation.section()),
            Self::SequenceGap { .. } => ("sequence_gap", "3.4.1"),
            Self::OutOfOrder { .. } => ("out_of_order", "3.4.1"),
            Self::TooFast { .. } => ("too_fast", "5.3.1.1"),
            Self::Excluded(_) => ("excluded", "5.3.1.7"),
            Self::HonoredTooWide(_) => ("honored_too_wide", "5.4.4"),
            Self::WrongVersion { .. } => ("wrong_version", "12.5"),
            Self::NotSigned => ("not_signed", "5.3.1.12"),
            Self::AskWithoutReplySupport(_) => ("ask_without_reply_support", "5.3.1.4"),
            Self::TokenReused(_) => ("token_reused", "6.2.2"),
            Self::EventIdReused(_) => ("event_id_reused", "3.2.3"),
            Self::ForeignResolution(_) => ("foreign_resolution", "6.7.2"),
            Self::NotSubscribed => ("not_subscribed", "5.8.2"),
            Self::WrongSubscription { .. } => ("wrong_subscription", "5.4.1"),
            Self::Unexpected(_) => ("unexpected", "5.1"),
        }
    }
}

impl fmt::Display for SubscriberViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { violations, .. } => {
                write!(f, "A message cannot be understood: {}", listed(violations))
            }
            Self::Tolerated(violations) => {
                write!(f, "A message is not as it should be: {}", listed(violations))
            }
            Self::Order { session_id, violation } => write!(f, "In {session_id}: {violation}"),
            Self::SequenceGap { session_id, expected, found } => {
                write!(f, "In {session_id} number {found} came where {expected} was to come.")
            }
            Self::OutOfOrder { session_id, expected, found } => {
                write!(f, "In {session_id} number {found} came late, after {expected} was due.")
            }
            Self::TooFast { honored, heard } => {
                write!(f, "{heard} events came within a second; {honored} were promised.")
            }
            Self::Excluded(name) => {
                write!(f, "The terms leave out {}.", printable(name.as_str()))
            }
            Self::HonoredTooWide(fields) => {
                write!(f, "More was granted than was asked for: {}.", fields.join(", "))
            }
            Self::WrongVersion { asked, spoken } => {
                write!(f, "AAEP {asked} was asked for and {spoken} is spoken.")
            }
            Self::NotSigned => write!(f, "The manifest is not signed, as it had to be."),
            Self::AskWithoutReplySupport(token) => {
                write!(f, "The question {token} came to a subscriber that cannot answer it.")
            }
            Self::TokenReused(token) => write!(f, "{token} came with a second question."),
            Self::EventIdReused(id) => write!(f, "{id} came with a second event."),
            Self::ForeignResolution(token) => {
                write!(f, "{token} was called settled in a session that did not ask.")
            }
            Self::NotSubscribed => write!(f, "An event came without a subscription."),
            Self::WrongSubscription { expected, found } => {
                write!(f, "A message is for {found}; this is {expected}.")
            }
            Self::Unexpected(name) => write!(f, "Nothing called for {name}."),
        }
    }
}

impl std::error::Error for SubscriberViolation {}

fn listed(violations: &[Violation]) -> String {
    violations.iter().map(Violation::to_string).collect::<Vec<_>>().join(" ")
}
