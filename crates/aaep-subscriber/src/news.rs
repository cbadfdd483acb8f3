//! What a subscriber is told, in the order in which it happened.

use std::fmt;
use std::time::Duration;

use aaep::handshake::SubscriptionRejected;
use aaep::{Event, EventId, SessionId, printable};
use aaep_engine::subscriber::SubscriberViolation;
use aaep_engine::terms::Terms;

use crate::ask::Ask;

/// Something new.
#[derive(Debug)]
#[non_exhaustive]
pub enum News {
    /// An event that was not heard before, of whatever type. Questions come as [`News::Ask`] in its place.
    Event(Box<Event>),
    /// A question waits for the person.
    Ask(Ask),
    /// A question is over, or it is no longer sure that it is open: [`Ask::state`] says which. Take it away
    /// and say so.
    AskEnded(Ask),
    /// There is more or less time to answer a question than before, or its time stands still or goes on.
    AskTimeChanged(Ask),
    /// Something of a session was not heard.
    Gap {
        /// The session.
        session_id: SessionId,
        /// The last event before the gap, where the producer says it.
        after: Option<EventId>,
        /// How many events are missing, where that is known.
        missed: Option<u64>,
    },
    /// The producer knows no handshake, so nothing is agreed with it: what happened before, who else listens, and how
    /// questions are settled is known only as far as its events say it.
    WithoutHandshake,
    /// The subscription holds on new terms.
    TermsChanged(Box<Terms>),
    /// The line broke. The kit tries again by itself; what is missed meanwhile comes afterwards.
    Reconnecting {
        /// Why, in words for people.
        why: String,
        /// How many times it was tried in a row without success.
        attempt: u32,
        /// How long it waits before it tries.
        wait: Duration,
    },
    /// The line is there again.
    Reconnected,
    /// The agent is told what [`Voice::instruct`](crate::Voice::instruct) said last, in this session: a new one for a
    /// prompt. Where it is not, [`News::Refused`] comes with the error `not_accepted`. Each comes in the order in which
    /// things were said.
    Instructed {
        /// The session.
        session_id: SessionId,
    },
    /// The producer did not take something that was said. The texts are foreign: escape them.
    Refused {
        /// What it is, for machines.
        error: String,
        /// What it is, for people.
        message: String,
    },
    /// The producer broke a rule. Worth a log; nobody has to do anything.
    Violation(SubscriberViolation),
    /// The producer has sent more than it promised for so long that this many events were left out, none of
    /// them critical (§10 T4).
    LeftOut {
        /// How many within the last second.
        count: u64,
    },
    /// The subscription is over, and nothing more comes.
    Ended(Ended),
}

/// How a subscription ended for good.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Ended {
    /// The program closed it.
    Closed,
    /// The producer refused it, or refused other terms for it (§5.5, §5.7).
    Rejected(Box<SubscriptionRejected>),
    /// The producer closed it (§5.8), with its reason for people if it gave one.
    ClosedByProducer(Option<String>),
    /// The producer does not let us in any more.
    Refused(String),
    /// The producer knows no handshake.
    NoHandshake,
    /// The producer flooded us with more than it had promised, again and again, and was left (§10 T4).
    Flooded,
    /// Only a signed manifest was acceptable, and the producer's is not, or not by the right key.
    NotTrusted(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Closed => f.write_str("The subscription was closed."),
            Ended::Rejected(why) => {
                write!(f, "The producer refused: {}", printable(&why.reason_message))
            }
            Ended::ClosedByProducer(Some(why)) => {
                write!(f, "The producer closed the subscription: {}", printable(why))
            }
            Ended::ClosedByProducer(None) => f.write_str("The producer closed the subscription."),
            Ended::Refused(why) => write!(f, "The producer does not let us in: {}", printable(why)),
            Ended::NoHandshake => f.write_str("The producer knows no handshake."),
            Ended::Flooded => {
                f.write_str("The producer sent far more than it had promised, and was left.")
            }
            Ended::NotTrusted(why) => write!(f, "The producer is not trusted: {}", printable(why)),
        }
    }
}
