//! What a subscriber gives back: what was heard, what changed, and what the producer did wrong.

use aaep::extension::{DecidedBy, Outcome};
use aaep::{Event, EventId, Message, ReplyToken, SessionId};

use super::asks::WhyWithdrawn;
use super::handshake::HowEnded;
use super::sessions::Ending;
use super::violation::SubscriberViolation;

/// What came of a message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Received {
    /// What was heard; nothing if the message could not be understood.
    pub heard: Option<Heard>,
    /// What changed, in order.
    pub changes: Vec<Change>,
    /// What the producer did wrong.
    pub violations: Vec<SubscriberViolation>,
}

/// What was heard.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// An event that is new, of whatever type.
    Event(Box<Event>),
    /// An event that was heard before. It changes nothing.
    Repeated(EventId),
    /// A message that is not an event, such as an answer of the handshake.
    Other(Box<Message>),
}

/// What changed for the subscriber.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A question waits for the person.
    AskOpened {
        /// Its token.
        reply_token: ReplyToken,
    },
    /// A question is no longer asked. Take it away and say so.
    AskWithdrawn {
        /// Its token.
        reply_token: ReplyToken,
        /// Why.
        why: WhyWithdrawn,
    },
    /// A question was settled, by the person's own reply or otherwise.
    AskResolved {
        /// Its token.
        reply_token: ReplyToken,
        /// How it ended.
        outcome: Outcome,
        /// What decided it.
        decided_by: DecidedBy,
    },
    /// There is more or less time to answer than before, or it is paused or goes on.
    AskTimeChanged {
        /// Its token.
        reply_token: ReplyToken,
    },
    /// Nobody answered in time; the producer's default applies.
    AskExpired {
        /// Its token.
        reply_token: ReplyToken,
    },
    /// A question had to be given up because there are too many. It cannot be answered here.
    AskForgotten {
        /// Its token.
        reply_token: ReplyToken,
    },
    /// A session began.
    SessionStarted {
        /// The session.
        session_id: SessionId,
    },
    /// A session was heard of that had begun before, as far as can be told.
    SessionJoined {
        /// The session.
        session_id: SessionId,
    },
    /// An agent is in another state.
    StateChanged {
        /// Its session.
        session_id: SessionId,
        /// The state, at most [`MAX_NAME_CHARS`](super::MAX_NAME_CHARS) of it.
        state: String,
    },
    /// A session ended.
    SessionEnded {
        /// The session.
        session_id: SessionId,
        /// How.
        ending: Ending,
    },
    /// A session is no longer remembered because there are too many; nothing was open in it.
    SessionForgotten {
        /// The session.
        session_id: SessionId,
    },
    /// Something of a session was not heard.
    Gap {
        /// The session.
        session_id: SessionId,
        /// The last event before the gap, where the producer says it.
        after: Option<EventId>,
        /// How many events are missing, where that is known.
        missed: Option<u64>,
    },
    /// The subscription holds, on new terms.
    TermsChanged,
    /// The producer says that it stops. The subscription may go on where it was when the producer is back; until then
    /// nothing comes.
    ProducerStops {
        /// Why, for people, if it says so.
        reason: Option<String>,
    },
    /// The subscription is over.
    SubscriptionEnded {
        /// How.
        how: HowEnded,
    },
}

impl Received {
    pub(super) fn wrong(&mut self, violation: SubscriberViolation) {
        self.violations.push(violation);
    }
}
