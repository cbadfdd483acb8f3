//! What the kit tells the program, in the order in which it happened.

use std::fmt;
use std::time::Duration;

use aaep::handshake::SubscriptionRejected;
use aaep::{Event, EventId, SessionId, printable};
use aaep_engine::subscriber::SubscriberViolation;
use aaep_engine::terms::Terms;

use crate::ask::Ask;

/// One piece of news.
#[derive(Debug)]
#[non_exhaustive]
pub enum News {
    /// An event of any type that was not received before. Asks arrive as [`News::Ask`] instead.
    Event(Box<Event>),
    /// An ask waits for the person.
    Ask(Ask),
    /// An ask has ended, or it is not known whether the person's answer counts: [`Ask::state`] says which. Remove
    /// it from the display and tell the person.
    AskEnded(Ask),
    /// The producer says that the person's answer to this ask does not count, for example because its disk is full.
    /// Tell the person. The ask is open again, so that they can answer once more.
    AnswerNotCounted {
        /// The ask.
        ask: Ask,
        /// The error code, for machines.
        error: String,
        /// The reason, for people. The text is foreign: escape it.
        message: String,
    },
    /// The time to answer an ask was extended, shortened, paused or resumed.
    AskTimeChanged(Ask),
    /// Events of a session were missed.
    Gap {
        /// The session.
        session_id: SessionId,
        /// The last event before the gap, if the producer names it.
        after: Option<EventId>,
        /// The number of missed events, if it is known.
        missed: Option<u64>,
    },
    /// The producer does not support the handshake, so nothing is negotiated with it: earlier events, other
    /// subscribers and the outcome of asks are known only as far as its events tell.
    WithoutHandshake,
    /// The subscription has new terms.
    TermsChanged(Box<Terms>),
    /// The link broke. The kit reconnects by itself; events that are missed meanwhile are delivered afterwards.
    Reconnecting {
        /// The reason, in words for people.
        why: String,
        /// The number of attempts in a row without success.
        attempt: u32,
        /// How long the kit waits before the next attempt.
        wait: Duration,
    },
    /// The link is back.
    Reconnected,
    /// The agent received the last instruction of [`Voice::instruct`](crate::Voice::instruct), in this session (a
    /// new one for a prompt). If it did not, [`News::Refused`] arrives with the error `not_accepted`. These
    /// answers arrive in the order of the instructions.
    Instructed {
        /// The session.
        session_id: SessionId,
    },
    /// The producer did not accept something that was sent, and did not say that it was an answer
    /// ([`News::AnswerNotCounted`] tells that). The texts are foreign: escape them.
    Refused {
        /// The error code, for machines.
        error: String,
        /// The error, for people.
        message: String,
    },
    /// The producer broke a rule. Log it; no other action is needed.
    Violation(SubscriberViolation),
    /// The producer exceeded its promised rate for so long that this many events were left out, none of them
    /// critical (§10 T4).
    LeftOut {
        /// The number of events left out within the last second.
        count: u64,
    },
    /// The subscription has ended, and nothing more arrives.
    Ended(Ended),
}

/// How a subscription ended for good.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Ended {
    /// The program closed it.
    Closed,
    /// The producer rejected it, or rejected other terms for it (§5.5, §5.7).
    Rejected(Box<SubscriptionRejected>),
    /// The producer closed it (§5.8), with its reason for people if it gave one.
    ClosedByProducer(Option<String>),
    /// The producer no longer lets this subscriber in.
    Refused(String),
    /// The producer does not support the handshake.
    NoHandshake,
    /// The producer sent more than it had promised, again and again, so the kit left it (§10 T4).
    Flooded,
    /// A signed manifest was required, and the producer's is not signed, or not by the right key.
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
