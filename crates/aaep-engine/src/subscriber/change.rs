//! What a subscriber reports: what was heard, what changed, and what the producer did wrong.

use aaep::extension::{AskOutcome, DecidedBy};
use aaep::{Event, EventId, Message, ReplyToken, SessionId};

use super::asks::WhyWithdrawn;
use super::handshake::HowEnded;
use super::sessions::SessionEnding;
use super::violation::SubscriberViolation;

/// The result of a message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Received {
    /// What was heard; `None` if the message could not be understood.
    pub heard: Option<HeardMessage>,
    /// What changed, in order.
    pub changes: Vec<SubscriberChange>,
    /// What the producer did wrong.
    pub violations: Vec<SubscriberViolation>,
}

/// What was heard.
#[derive(Debug, Clone, PartialEq)]
pub enum HeardMessage {
    /// A new event, of any type.
    Event(Box<Event>),
    /// An event that was heard before. It changes nothing.
    Repeated(EventId),
    /// A message that is not an event, such as an answer of the handshake.
    Other(Box<Message>),
}

/// What changed for the subscriber.
#[derive(Debug, Clone, PartialEq)]
pub enum SubscriberChange {
    /// An ask is waiting for the person.
    AskOpened {
        /// Its token.
        reply_token: ReplyToken,
    },
    /// An ask was withdrawn. Remove it and tell the person.
    AskWithdrawn {
        /// Its token.
        reply_token: ReplyToken,
        /// Why it was withdrawn.
        why: WhyWithdrawn,
    },
    /// An ask was settled, by the person's own reply or otherwise.
    AskResolved {
        /// Its token.
        reply_token: ReplyToken,
        /// How it ended.
        outcome: AskOutcome,
        /// What decided it.
        decided_by: DecidedBy,
    },
    /// The time to answer was extended, shortened, paused or resumed.
    AskTimeChanged {
        /// Its token.
        reply_token: ReplyToken,
    },
    /// Nobody answered in time; the producer's default applies.
    AskExpired {
        /// Its token.
        reply_token: ReplyToken,
    },
    /// An ask was given up because there are too many. It cannot be answered here.
    AskForgotten {
        /// Its token.
        reply_token: ReplyToken,
    },
    /// A session began.
    SessionStarted {
        /// The session.
        session_id: SessionId,
    },
    /// A session was heard for the first time that had begun earlier, as far as can be known.
    SessionJoined {
        /// The session.
        session_id: SessionId,
    },
    /// An agent changed its state.
    StateChanged {
        /// Its session.
        session_id: SessionId,
        /// The state, cut to [`MAX_NAME_CHARS`](super::MAX_NAME_CHARS).
        state: String,
    },
    /// A session ended.
    SessionEnded {
        /// The session.
        session_id: SessionId,
        /// How it ended.
        ending: SessionEnding,
    },
    /// A session is no longer remembered because there are too many. No ask was open in it.
    SessionForgotten {
        /// The session.
        session_id: SessionId,
    },
    /// Some events of a session were missed.
    Gap {
        /// The session.
        session_id: SessionId,
        /// The last event before the gap, if the producer names it.
        after: Option<EventId>,
        /// How many events are missing, if known.
        missed: Option<u64>,
    },
    /// The subscription is active with new terms.
    TermsChanged,
    /// The producer announced that it stops. The subscription may continue where it was when the
    /// producer is back. Until then nothing arrives.
    ProducerStops {
        /// The reason for people, if given.
        reason: Option<String>,
    },
    /// The subscription ended.
    SubscriptionEnded {
        /// How it ended.
        how: HowEnded,
    },
}

impl Received {
    pub(super) fn add_violation(&mut self, violation: SubscriberViolation) {
        self.violations.push(violation);
    }
}
