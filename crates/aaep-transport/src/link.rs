//! A subscriber's end of a wire: whole JSON messages to a producer and back, over any wire (§8.2.2).
//!
//! A wire is a task that holds the far end ([`Bearer`]) of a [`Link`]. It ends when the link is dropped. It knows
//! message boundaries and addresses, never the meaning of an event.

mod caller;
mod dial;
#[cfg(feature = "grpc")]
mod grpc;
mod sse;
mod stdio;
mod target;
mod unix;
mod websocket;

use std::fmt;
use std::time::Duration;

use tokio::sync::mpsc;

pub use aaep_http::HttpAddress;
pub use dial::{DialError, DialOptions, LinkResume, dial};
pub use sse::NO_HANDSHAKE;
pub use target::{MAX_TARGET_BYTES, Target, TargetError};
pub use websocket::websocket_over;

/// How long a wire keeps running for the last messages, when its subscriber is gone or the producer has ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Why a network connection without a sign of life counts as broken.
const SILENCE: &str = "there was no sign of life for too long";

/// How many messages may be queued in each direction. When the queue is full, the wire is not read, so that a
/// slow subscriber slows its producer and does not fill this process.
pub const MAX_WAITING_MESSAGES: usize = 64;

/// Whole messages to a producer and back.
#[derive(Debug)]
pub struct Link {
    /// Messages to the producer.
    pub sender: LinkSender,
    /// Messages from the producer.
    pub receiver: LinkReceiver,
}

/// Sends messages to a producer.
#[derive(Debug, Clone)]
pub struct LinkSender(mpsc::Sender<String>);

/// Receives messages from a producer.
#[derive(Debug)]
pub struct LinkReceiver {
    incoming: mpsc::Receiver<Result<String, LinkEnd>>,
    end: Option<LinkEnd>,
}

/// The far end of a link, which a wire holds.
#[derive(Debug)]
pub struct Bearer {
    outgoing: mpsc::Receiver<String>,
    incoming: mpsc::Sender<Result<String, LinkEnd>>,
}

/// Why a link has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEnd {
    /// The producer ended it.
    Closed {
        /// The code of B.2.6, if the wire has one.
        code: Option<u16>,
        /// The producer's reason, perhaps empty. It is foreign text.
        reason: String,
    },
    /// The connection broke, or a child process ended.
    Cut(String),
    /// The producer does not let us in. Trying again with the same credentials does not help.
    Refused {
        /// The producer's reason. It is foreign text.
        reason: String,
    },
    /// The producer broke a rule of the wire.
    Violation(String),
}

/// Nothing more can be sent on this link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkClosed;

/// Makes a link and returns both ends.
pub fn link() -> (Link, Bearer) {
    let (outgoing_sender, outgoing) = mpsc::channel(MAX_WAITING_MESSAGES);
    let (incoming_sender, incoming) = mpsc::channel(MAX_WAITING_MESSAGES);
    let receiver = LinkReceiver { incoming, end: None };
    let link = Link { sender: LinkSender(outgoing_sender), receiver };
    (link, Bearer { outgoing, incoming: incoming_sender })
}

impl LinkSender {
    /// Sends a message; waits while the queue is full.
    pub async fn send(&self, message: String) -> Result<(), LinkClosed> {
        self.0.send(message).await.map_err(|_| LinkClosed)
    }
}

impl LinkReceiver {
    /// The next message, or why the link has ended. Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<String, LinkEnd> {
        if let Some(end) = &self.end {
            return Err(end.clone());
        }
        let next = self.incoming.recv().await;
        let next = next.unwrap_or_else(|| Err(LinkEnd::Cut("the wire stopped".to_owned())));
        if let Err(end) = &next {
            self.end = Some(end.clone());
        }
        next
    }
}

impl Bearer {
    /// The subscriber's next message; `None` when the subscriber is gone and the wire must end.
    pub async fn outgoing(&mut self) -> Option<String> {
        self.outgoing.recv().await
    }

    /// Passes a message of the producer to the subscriber; waits while the queue is full. Returns whether the
    /// subscriber is still there.
    pub async fn incoming(&self, message: String) -> bool {
        self.incoming.send(Ok(message)).await.is_ok()
    }

    /// Another sender to the subscriber, for a wire that reads and writes in two tasks.
    pub fn inlet(&self) -> LinkInlet {
        LinkInlet(self.incoming.clone())
    }

    /// Ends the link. Nothing is received after this, and after the subscriber has received it, it cannot send
    /// any more.
    pub async fn end(mut self, end: LinkEnd) {
        self.outgoing.close();
        // If the subscriber is gone, nobody needs to be told.
        let _ = self.incoming.send(Err(end)).await;
    }
}

/// Passes messages of a producer to the subscriber.
#[derive(Debug, Clone)]
pub struct LinkInlet(mpsc::Sender<Result<String, LinkEnd>>);

impl LinkInlet {
    /// Passes a message of the producer to the subscriber; waits while the queue is full. Returns whether the
    /// subscriber is still there.
    pub async fn incoming(&self, message: String) -> bool {
        self.0.send(Ok(message)).await.is_ok()
    }

    /// Whether the subscriber is gone.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl LinkEnd {
    /// The end with a code of B.2.6, if the wire has one. Two of the codes mean that we are not let in.
    pub fn closed(code: Option<u16>, reason: String) -> Self {
        match code {
            Some(4002 | 4003) => LinkEnd::Refused { reason },
            code => LinkEnd::Closed { code, reason },
        }
    }
}

impl fmt::Display for LinkEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkEnd::Closed { code: Some(code), reason } if reason.is_empty() => {
                write!(f, "the producer closed the connection with code {code}")
            }
            LinkEnd::Closed { reason, .. } if reason.is_empty() => {
                f.write_str("the producer closed the connection")
            }
            LinkEnd::Closed { reason, .. } => {
                write!(f, "the producer closed the connection: {}", aaep::printable(reason))
            }
            LinkEnd::Cut(why) => write!(f, "the connection broke: {}", aaep::printable(why)),
            LinkEnd::Refused { reason } => {
                write!(f, "the producer does not let us in: {}", aaep::printable(reason))
            }
            LinkEnd::Violation(what) => {
                write!(f, "the producer broke a rule of the connection: {}", aaep::printable(what))
            }
        }
    }
}

impl std::error::Error for LinkEnd {}

impl fmt::Display for LinkClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection has ended")
    }
}

impl std::error::Error for LinkClosed {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_pass_both_ways_and_the_end_stays_the_end() {
        let (mut link, mut bearer) = link();
        link.sender.send("up".to_owned()).await.expect("open");
        assert_eq!(bearer.outgoing().await.as_deref(), Some("up"));
        assert!(bearer.incoming("down".to_owned()).await);
        let end = LinkEnd::Closed { code: Some(4003), reason: "\u{1b}[2J".to_owned() };
        bearer.end(end.clone()).await;
        assert_eq!(link.receiver.next().await.as_deref(), Ok("down"));
        assert_eq!(link.receiver.next().await, Err(end.clone()));
        assert_eq!(link.receiver.next().await, Err(end.clone()));
        assert!(!end.to_string().contains('\u{1b}'), "{end}");
        assert_eq!(link.sender.send("late".to_owned()).await, Err(LinkClosed));
    }

    #[tokio::test]
    async fn a_wire_that_vanishes_is_a_cut_and_a_subscriber_that_vanishes_is_noticed() {
        let (mut one, bearer) = link();
        drop(bearer);
        assert!(matches!(one.receiver.next().await, Err(LinkEnd::Cut(_))));
        let (two, mut bearer) = link();
        let inlet = bearer.inlet();
        drop(two);
        assert_eq!(bearer.outgoing().await, None);
        assert!(inlet.is_closed() && !bearer.incoming("late".to_owned()).await);
    }
}
