//! The wire: one thread that owns the sockets of many subscribers and writes shared bytes to them.
//!
//! A message is encoded once ([`WirePacket`]), and its bytes are never copied for a subscriber. Each turn of the loop
//! sends everything for a connection in one gathered write. An idle connection owns no buffer. The wire keeps the
//! order of the commands on a connection and never reorders, because resuming depends on it. To let a critical
//! event overtake a backlog, it gives the backlog back to the caller. It never waits for a peer: a subscriber
//! that reads too slowly is disconnected and resumes later (§8.8).

mod backlog;
mod closing;
mod connection;
mod event_loop;
mod handle;
mod heartbeat;
mod incoming;
mod pair;
mod socket;
mod why;
mod withdraw;

pub use closing::CLOSED;
pub use handle::{Wire, WireHandle, WireStopped};
pub use pair::{PairEnd, pair};
pub use socket::Socket;
pub use why::GoneReason;

use std::sync::Arc;
use std::time::Duration;

use crate::packet::{Protocol, WirePacket};

/// The most bytes that may be queued for one connection behind its first message. Beyond that, the connection is
/// dropped as too slow.
pub const MAX_BACKLOG_BYTES: usize = 1 << 20;

/// The most packets that may be queued for one connection. Beyond that, the connection is dropped as too slow.
pub const MAX_BACKLOG_PACKETS: usize = 4096;

/// The most connections of one loop. Further ones are dropped at once.
pub const MAX_CONNECTIONS: usize = 1 << 16;

/// The most batches that may be queued for the loop. When the queue is full, [`WireHandle::send`] waits.
pub const MAX_BATCHES: usize = 1024;

/// The longest message accepted from a client, unless the settings say otherwise (§8.3).
pub const MAX_MESSAGE_BYTES: u32 = 1 << 20;

/// The most messages and control frames accepted from a client within a second, unless the settings say
/// otherwise.
pub const MAX_MESSAGES_PER_SECOND: u16 = 100;

/// The most bytes that a client may send where nothing is expected: on a stream of server-sent events, and after
/// the end.
pub const MAX_DISCARDED_BYTES: u32 = 64 << 10;

/// The longest time between two signs of life to a subscriber (ruling 27).
pub const MAX_HEARTBEAT: Duration = Duration::from_secs(15);

/// One connection, unique among all loops: see [`WireHandle::new_key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionKey(pub u64);

/// The caller's number for the subscriber that a connection serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireSubscriber(pub u32);

/// The settings of a loop.
#[derive(Debug, Clone)]
pub struct WireSettings {
    /// The number of this loop among the caller's loops. It becomes part of each key.
    pub number: u16,
    /// After how long without a message a subscriber gets a sign of life. At most [`MAX_HEARTBEAT`].
    pub heartbeat: Duration,
    /// After how many milliseconds a subscriber of server-sent events should reconnect when its connection
    /// breaks. It is told at the start; 0 tells nothing.
    pub retry_ms: u32,
    /// How long a peer has to answer the end of a connection.
    pub close_timeout: Duration,
    /// The longest message accepted from a client.
    pub max_message_bytes: u32,
    /// The most messages and control frames accepted from a client within a second.
    pub max_messages_per_second: u16,
}

impl Default for WireSettings {
    fn default() -> Self {
        Self {
            number: 0,
            heartbeat: Duration::from_secs(10),
            retry_ms: 0,
            close_timeout: Duration::from_secs(5),
            max_message_bytes: MAX_MESSAGE_BYTES,
            max_messages_per_second: MAX_MESSAGES_PER_SECOND,
        }
    }
}

/// A command to the loop. Commands are carried out in the order in which they are sent.
#[derive(Debug)]
pub enum Command {
    /// Take over a socket whose HTTP head has been answered.
    Add {
        /// A key from [`WireHandle::new_key`].
        connection: ConnectionKey,
        /// The socket.
        socket: Socket,
        /// How bytes are framed on it.
        protocol: Protocol,
        /// The bytes that were already read from it, past the HTTP head.
        read_ahead: Vec<u8>,
    },
    /// Deliver to a subscriber on this connection from now on. The subscriber leaves any other connection, and
    /// any other subscriber leaves this one. In one batch with [`Command::Add`], no action of the client comes
    /// between.
    Attach {
        /// The connection.
        connection: ConnectionKey,
        /// The subscriber.
        subscriber: WireSubscriber,
    },
    /// Stop delivering to a subscriber. Its connection stays.
    Detach {
        /// The subscriber.
        subscriber: WireSubscriber,
    },
    /// Send one packet to many subscribers. Subscribers that are not attached here are skipped.
    Deliver {
        /// The packet.
        packet: Arc<WirePacket>,
        /// The subscribers.
        to: Vec<WireSubscriber>,
    },
    /// Send one packet to one connection, whether or not a subscriber is attached.
    Send {
        /// The connection.
        connection: ConnectionKey,
        /// The packet.
        packet: Arc<WirePacket>,
    },
    /// Give back the queued events of a subscriber that were not begun, if its connection is blocked, so that a
    /// critical event can overtake them. [`WireReport::Withdrawn`] tells what was given back.
    Withdraw {
        /// The connection.
        connection: ConnectionKey,
    },
    /// The caller has noted what was given back; events delivered from now on come after it.
    GoOn {
        /// The connection.
        connection: ConnectionKey,
    },
    /// Report with [`WireReport::Unblocked`] when everything delivered to a subscriber until now is written.
    TellWhenWritten {
        /// The subscriber.
        subscriber: WireSubscriber,
    },
    /// Read again from a connection whose reading was paused with [`Flow::Pause`].
    Resume {
        /// The connection.
        connection: ConnectionKey,
    },
    /// End a connection. Nothing is written to it afterwards.
    Close {
        /// The connection.
        connection: ConnectionKey,
        /// The close code for a WebSocket (B.2.6), passed through.
        code: u16,
        /// The reason for a WebSocket.
        reason: String,
        /// Whether queued bytes are sent first, or dropped.
        after_flush: bool,
    },
    /// End all connections, after their queued bytes and with code 1001 on a WebSocket, and then the loop. New
    /// connections are dropped.
    Stop {
        /// How long that may take.
        grace: Duration,
    },
}

/// A report of the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireReport {
    /// A complete message from a peer.
    Message {
        /// The connection that it came from.
        connection: ConnectionKey,
        /// The message.
        text: String,
    },
    /// The subscriber reads more slowly than events are delivered: its bytes are queued here (§8.8).
    Blocked {
        /// The connection. The subscriber may have another one by now.
        connection: ConnectionKey,
        /// The subscriber.
        subscriber: WireSubscriber,
    },
    /// Everything for a blocked subscriber after this event was dropped before any of it was sent, and so is
    /// everything that is delivered before [`Command::GoOn`]. Reported after [`WireReport::Blocked`];
    /// [`WireReport::Unblocked`] comes after that command.
    Withdrawn {
        /// The connection.
        connection: ConnectionKey,
        /// The subscriber.
        subscriber: WireSubscriber,
        /// The last event that was sent, or is being sent.
        last_event_id: Box<str>,
    },
    /// The subscriber has nothing queued any more. Reported after [`WireReport::Blocked`] and
    /// [`Command::TellWhenWritten`].
    Unblocked {
        /// The connection.
        connection: ConnectionKey,
        /// The subscriber.
        subscriber: WireSubscriber,
    },
    /// The connection accepts nothing more. Reported once for each connection that was added, and for each
    /// attachment to a connection that does not exist.
    Gone {
        /// The connection.
        connection: ConnectionKey,
        /// The subscriber that was attached to it.
        subscriber: Option<WireSubscriber>,
        /// The reason.
        why: GoneReason,
    },
}

/// Whether to read more messages from a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// This message was accepted; read no more from the connection until [`Command::Resume`].
    Pause,
}

/// Receives the reports of a loop.
///
/// It is called on the loop's thread and must neither block nor call [`WireHandle::send`], which may wait for
/// that same thread.
pub trait Reports: Send + 'static {
    /// Handles a report. The returned value matters for [`WireReport::Message`] only.
    fn report(&mut self, report: WireReport) -> Flow;
}
