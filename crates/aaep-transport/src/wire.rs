//! The wire: one thread that owns the sockets of many subscribers and writes shared bytes to them.
//!
//! A message is encoded once ([`Packet`]) and its bytes are never copied for a subscriber. What a turn of
//! the loop brings for a connection goes out in one gathered write. An idle connection owns no buffer.
//! The order on a connection is that of the commands: the wire never reorders, because resuming depends
//! on it. So that something critical can overtake what waits for a full socket, it is given back to the caller. It never waits for a peer: whoever reads too slowly is let go and resumes later (§8.8).

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
pub use why::Why;

use std::sync::Arc;
use std::time::Duration;

use crate::packet::{Packet, Protocol};

/// The most bytes that may wait for one connection behind its first message. Past it, the connection is let
/// go as too slow.
pub const MAX_BACKLOG_BYTES: usize = 1 << 20;

/// The most packets that may wait for one connection. Past it, the connection is let go as too slow.
pub const MAX_BACKLOG_PACKETS: usize = 4096;

/// The most connections of one loop. Another one is let go at once.
pub const MAX_CONNECTIONS: usize = 1 << 16;

/// The most batches that may wait for the loop. Past it, [`WireHandle::send`] waits.
pub const MAX_BATCHES: usize = 1024;

/// The longest message taken from a client unless the settings say otherwise (§8.3).
pub const MAX_MESSAGE_BYTES: u32 = 1 << 20;

/// The most messages and control frames taken from a client within a second unless the settings say
/// otherwise.
pub const MAX_MESSAGES_PER_SECOND: u16 = 100;

/// The most bytes that a client may send where it has nothing to say: on a stream of server-sent events,
/// and after the end.
pub const MAX_DISCARDED_BYTES: u32 = 64 << 10;

/// The longest time between two signs of life to a subscriber (ruling 27).
pub const MAX_HEARTBEAT: Duration = Duration::from_secs(15);

/// One connection, unique among all loops: see [`WireHandle::new_key`].
pub type ConnectionKey = u64;

/// How a loop behaves.
#[derive(Debug, Clone)]
pub struct WireSettings {
    /// Which of the caller's loops this is. It becomes part of each key.
    pub number: u16,
    /// After how long without a message a subscriber gets a sign of life. At most [`MAX_HEARTBEAT`].
    pub heartbeat: Duration,
    /// After how many milliseconds a subscriber of server-sent events should connect again when its
    /// connection breaks. It is told so at the start; 0 tells nothing.
    pub retry_ms: u32,
    /// How long a peer has to answer the end of a connection.
    pub close_timeout: Duration,
    /// The longest message taken from a client.
    pub max_message_bytes: u32,
    /// The most messages and control frames taken from a client within a second.
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

/// What the loop is told. Commands are obeyed in the order in which they are sent.
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
        /// What was already read from it, past the HTTP head.
        read_ahead: Vec<u8>,
    },
    /// A subscriber hears on this connection from now on. It leaves any other; any other leaves it.
    /// In one batch with [`Command::Add`], nothing that the client does comes between.
    Attach {
        /// The connection.
        connection: ConnectionKey,
        /// The subscriber.
        subscriber: u32,
    },
    /// A subscriber no longer hears on its connection, which stays.
    Detach {
        /// The subscriber.
        subscriber: u32,
    },
    /// One packet to many subscribers. Who is not here is passed over.
    Deliver {
        /// The packet.
        packet: Arc<Packet>,
        /// To whom.
        to: Vec<u32>,
    },
    /// One packet to one connection, whether or not a subscriber is attached.
    Send {
        /// The connection.
        connection: ConnectionKey,
        /// The packet.
        packet: Arc<Packet>,
    },
    /// Give back what waits for a subscriber and was not begun, if its connection takes nothing: something critical is
    /// to overtake it. What was given back is told with [`Report::Withdrawn`].
    Withdraw {
        /// The connection.
        connection: ConnectionKey,
    },
    /// It is known what was given back; what is delivered from now on comes after it.
    GoOn {
        /// The connection.
        connection: ConnectionKey,
    },
    /// Say with [`Report::Unblocked`] when all that was delivered to a subscriber until now is written.
    TellWhenWritten {
        /// The subscriber.
        subscriber: u32,
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
        /// Whether what waits goes out first, or is dropped.
        after_flush: bool,
    },
    /// End all connections, after what waits for them and with code 1001 on a WebSocket, and then the
    /// loop. New connections are let go.
    Stop {
        /// How long that may take.
        grace: Duration,
    },
}

/// What the loop tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// A whole message from a peer.
    Message {
        /// From which connection.
        connection: ConnectionKey,
        /// The message.
        text: String,
    },
    /// The subscriber reads more slowly than it is told things: its bytes wait here (§8.8).
    Blocked {
        /// On which connection: it may have another one by now.
        connection: ConnectionKey,
        /// Who.
        subscriber: u32,
    },
    /// Everything for a blocked subscriber after this event was dropped before any of it was sent, and so is everything
    /// that is delivered before [`Command::GoOn`]. Told after [`Report::Blocked`]; [`Report::Unblocked`] comes after
    /// that command.
    Withdrawn {
        /// On which connection.
        connection: ConnectionKey,
        /// Who.
        subscriber: u32,
        /// The last event that was sent, or is being sent.
        last_event_id: Box<str>,
    },
    /// Nothing waits for the subscriber any more. Told after [`Report::Blocked`] and [`Command::TellWhenWritten`].
    Unblocked {
        /// On which connection.
        connection: ConnectionKey,
        /// Who.
        subscriber: u32,
    },
    /// The connection takes nothing more. Told once for each that was added, and for each attachment
    /// to a connection that is not there.
    Gone {
        /// Which connection.
        connection: ConnectionKey,
        /// The subscriber that was attached to it.
        subscriber: Option<u32>,
        /// Why.
        why: Why,
    },
}

/// Whether more messages of a connection may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// This message was taken; read no more from the connection until [`Command::Resume`].
    Pause,
}

/// Who hears the reports.
///
/// It is called on the loop's thread and must neither block nor call [`WireHandle::send`], which may wait
/// for that same thread.
pub trait Reports: Send + 'static {
    /// Something happened. The answer counts for [`Report::Message`] only.
    fn report(&mut self, report: Report) -> Flow;
}
