//! Why a connection ended, as data and as a sentence.
//!
//! It never contains a peer's words, so it can be logged unchanged.

use std::fmt;
use std::io;

use crate::websocket::WebSocketViolation;

/// Why a connection is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoneReason {
    /// The peer ended it.
    ClosedByPeer {
        /// The code of its WebSocket close frame, if there was one.
        code: Option<u16>,
    },
    /// The caller ended it with [`super::Command::Close`].
    ClosedByUs,
    /// The loop was stopped.
    Stopped,
    /// More was queued for it than [`super::MAX_BACKLOG_BYTES`] or [`super::MAX_BACKLOG_PACKETS`] allow.
    TooSlow,
    /// A WebSocket client did not answer two pings.
    Silent,
    /// A WebSocket client broke a rule.
    Violation(WebSocketViolation),
    /// A subscriber of server-sent events sent more than [`super::MAX_DISCARDED_BYTES`].
    UnexpectedBytes,
    /// The socket failed.
    Failed(io::ErrorKind),
    /// The loop already has [`super::MAX_CONNECTIONS`].
    Full,
    /// A subscriber was attached to a connection that does not exist (any more).
    Unknown,
}

impl fmt::Display for GoneReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClosedByPeer { code: Some(code) } => {
                write!(f, "The subscriber ended the connection with code {code}.")
            }
            Self::ClosedByPeer { code: None } => f.write_str("The subscriber ended the connection."),
            Self::ClosedByUs => f.write_str("The hub ended the connection."),
            Self::Stopped => f.write_str("The hub is stopping. The subscriber can connect later."),
            Self::TooSlow => f.write_str(
                "The subscriber read too slowly. It can connect again and resume from its last event.",
            ),
            Self::Silent => f.write_str("The subscriber answered no pings. It can connect again."),
            Self::Violation(violation) => violation.fmt(f),
            Self::UnexpectedBytes => {
                f.write_str("The subscriber sent bytes on a stream that only goes to it. Send replies by POST.")
            }
            Self::Failed(kind) => write!(f, "The connection failed: {kind}. The subscriber can connect again."),
            Self::Full => f.write_str("There are too many connections. The subscriber can connect later."),
            Self::Unknown => f.write_str("The connection had already ended. The subscriber can connect again."),
        }
    }
}
