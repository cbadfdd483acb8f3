//! Why the hub could not do what was asked, in words for whoever asked.

use std::fmt;

use crate::bounds::MAX_AGENT_ID_BYTES;

/// The hub could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubError {
    /// It has stopped, or is stopping.
    Stopped,
    /// It could not store something in time, so nothing is known of what was asked. The same may be asked
    /// again: what has an id or an idempotency key happens once.
    NotStored {
        /// What is wrong, where that is known.
        why: Option<String>,
    },
    /// Nothing can be stored at the moment, so nothing was taken: it does not count, and changed nothing.
    NotTaken {
        /// What is wrong.
        why: String,
    },
    /// The hub stopped before a reply was stored: it does not count.
    ReplyLost,
    /// There is no such question, or it is somebody else's.
    NoSuchAsk,
    /// There is no such agent here, or somebody else speaks for it.
    NoSuchAgent,
    /// The name of an agent is longer than is kept.
    NameTooLong,
    /// There are more different agents or people than the hub can tell apart.
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
            HubError::NoSuchAsk => f.write_str("There is no such question of yours."),
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
