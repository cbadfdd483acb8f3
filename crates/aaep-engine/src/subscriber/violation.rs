//! The ways in which a producer can break the rules towards a subscriber, one variant each.
//!
//! A producer's mistake is data for a log (§3.11, §10 T4). It never panics, never ends the
//! subscription by itself, and never costs the person a critical event (§5.6.2).

use std::fmt;

use aaep::{
    EventId, EventType, ReplyToken, SessionId, SubscriptionId, Version, Violation, printable,
};

use crate::order::OrderViolation;

/// What a producer did wrong, and beside each what the subscriber makes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubscriberViolation {
    /// A message cannot be understood: no JSON, too large, a required field missing or wrong. It is
    /// dropped, and this is all that is left of it.
    Invalid {
        /// The event id that the text claims; foreign text.
        event_id: Option<String>,
        /// Everything that is wrong with it.
        violations: Vec<Violation>,
    },
    /// A message is not as it should be and can be understood all the same. It is heard.
    Tolerated(Vec<Violation>),
    /// An event breaks the order of its session, as far as that can be told under these terms. It is
    /// heard; after the end of a session it changes nothing.
    Order {
        /// The session.
        session_id: SessionId,
        /// How.
        violation: OrderViolation,
    },
    /// Numbers of a session are missing: something was lost on the way, or left out. The event is
    /// heard, and a change tells of the gap.
    SequenceGap {
        /// The session.
        session_id: SessionId,
        /// The number that was to come.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// An event came after one with a higher number. It is heard when it comes.
    OutOfOrder {
        /// The session.
        session_id: SessionId,
        /// The number that was to come.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// More non-critical events came within a second than were promised. All are heard; whoever
    /// listens may ask for a lower rate or leave. Said at most once a second.
    TooFast {
        /// How many were promised.
        honored: u64,
        /// How many came within a second so far.
        heard: u64,
    },
    /// An event came that the terms leave out and that is not critical. It is heard.
    Excluded(EventType),
    /// Terms were granted that are wider than what was asked for, in these fields (§5.4.4). What was
    /// asked for counts.
    HonoredTooWide(Vec<&'static str>),
    /// The producer wants to speak a version that is newer than the asked one or has another major
    /// (ruling 21). What it sends is read as far as it can be understood.
    WrongVersion {
        /// What was asked for.
        asked: Version,
        /// What was answered.
        spoken: Version,
    },
    /// Only a signed manifest was acceptable, and the subscription was granted without one
    /// (§5.3.1.12). Whoever listens should leave.
    NotSigned,
    /// A question came on terms without answers (§5.3.1.4, §5.3.1.5). The person hears it; it cannot
    /// be answered here.
    AskWithoutReplySupport(ReplyToken),
    /// A token came with a second question (§6.2.2). From now on neither can be answered: an answer
    /// to the one might be taken for an answer to the other.
    TokenReused(ReplyToken),
    /// An id came with a second event (§3.2.3). Both are heard.
    EventIdReused(EventId),
    /// An event of one session claims that a question of another one is settled. The question stays
    /// open.
    ForeignResolution(ReplyToken),
    /// An event came while there was no subscription. It is heard.
    NotSubscribed,
    /// A message names a subscription that is not this one. It is ignored.
    WrongSubscription {
        /// This one.
        expected: SubscriptionId,
        /// The one that it names.
        found: SubscriptionId,
    },
    /// A message came that nothing called for: an answer without a request, or what only
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
