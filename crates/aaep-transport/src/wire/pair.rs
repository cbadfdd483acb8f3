//! Two sockets connected with each other, for wires that are not a plain socket themselves: gRPC, the standard
//! input and output of a process, a named pipe.
//!
//! One end goes into a loop like any other connection, so that the same code handles backlogs, slow readers and
//! closing. The owner of the other end copies messages between it and the wire.

use std::io;

use socket2::SockRef;

use super::Socket;

/// How many bytes may be buffered between the two ends on their way out of a loop, so that a critical event never
/// waits behind more. The kernel also counts its own overhead and may double it.
const PAIR_BYTES: usize = 32 << 10;

/// The end that is not in a loop.
#[cfg(unix)]
pub type PairEnd = tokio::net::UnixStream;

/// The end that is not in a loop.
#[cfg(not(unix))]
pub type PairEnd = tokio::net::TcpStream;

/// Makes two ends: one for a loop, one to copy from and to. Must be called within a tokio runtime.
#[cfg(unix)]
pub fn pair() -> io::Result<(Socket, PairEnd)> {
    let (one, other) = std::os::unix::net::UnixStream::pair()?;
    other.set_nonblocking(true)?;
    // If this fails, more is buffered there; nothing worse happens.
    let _ = SockRef::from(&one).set_send_buffer_size(PAIR_BYTES);
    Ok((Socket::Unix(one), PairEnd::from_std(other)?))
}

/// Makes two ends: one for a loop, one to copy from and to. Must be called within a tokio runtime.
///
/// On systems without socket pairs, both ends meet on a port of this machine, and any other connection to that
/// port in between is refused.
#[cfg(not(unix))]
pub fn pair() -> io::Result<(Socket, PairEnd)> {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    let meeting = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let other = TcpStream::connect(meeting.local_addr()?)?;
    loop {
        let (one, from) = meeting.accept()?;
        if from == other.local_addr()? {
            other.set_nonblocking(true)?;
            other.set_nodelay(true)?;
            let _ = SockRef::from(&one).set_send_buffer_size(PAIR_BYTES);
            return Ok((Socket::Tcp(one), PairEnd::from_std(other)?));
        }
    }
}
