//! Why the hub could not do what was requested, in words for the requester.

use std::fmt;

use crate::bounds::MAX_AGENT_ID_BYTES;

/// Why the hub could not do what was requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubError {
    /// The hub has stopped or is stopping.
    Stopped,
    /// The hub could not store something in time, so the result is unknown. The request can be repeated: with
    /// an event id or an idempotency key, it takes effect once.
    NotStored {
        /// What is wrong, if known.
        why: Option<String>,
    },
    /// Nothing can be stored at the moment, so the request was refused: it does not count and changed nothing.
    NotTaken {
        /// What is wrong.
        why: String,
    },
    /// The hub stopped before a reply was stored: the reply does not count.
    ReplyLost,
    /// There is no such ask, or it belongs to another principal.
    NoSuchAsk,
    /// There is no such agent, or another principal speaks for it.
    NoSuchAgent,
    /// The agent's name is longer than the hub stores.
    NameTooLong,
    /// There are more agents or people than the hub can tell apart.
    TooManyNames,
}

impl fmt::Display for HubError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HubError::Stopped => f.write_str("The hub is stopping. Try again when it runs."),
            HubError::NotStored { why: None } => f.write_str(
                "The hub could not store it in time. Send the same again, with the same event_id or idempotency key.",
            ),
            HubError::NotStored { why: Some(why) } => write!(
                f,
                "The hub could not store it in time. {why} Then send the same again, with the same event_id or idempotency key."
            ),
            HubError::NotTaken { why } => write!(
                f,
                "This was not taken and does not count, because nothing can be stored at the moment. {why} What you sent before and was not answered yet is answered when there is room."
            ),
            HubError::ReplyLost => f.write_str(
                "The hub stopped before your answer was stored, so it does not count. Answer again when it runs.",
            ),
            HubError::NoSuchAsk => f.write_str("You have no such question."),
            HubError::NoSuchAgent => f.write_str(
                "You do not speak for such an agent here. PUT /aaep/v1/agents with its agent_id says that you do.",
            ),
            HubError::NameTooLong => {
                write!(f, "The agent_id is longer than {MAX_AGENT_ID_BYTES} bytes. Use a shorter one.")
            }
            HubError::TooManyNames => {
                f.write_str("There are too many different agents and people. Try again later.")
            }
        }
    }
}

impl std::error::Error for HubError {}
