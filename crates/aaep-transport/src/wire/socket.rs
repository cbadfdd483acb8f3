//! The kinds of sockets that a loop owns, with non-blocking reads and writes.
//!
//! TLS is rustls without its own I/O: bytes that it encrypted but could not write stay with it until the socket
//! accepts them. This module never decides what a failure means.

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::time::Duration;

use mio::{Interest, Registry, Token};
use rustls::ServerConnection;
use socket2::SockRef;

/// How many unsent bytes the kernel may buffer, so that a critical event never waits behind megabytes.
#[cfg(any(target_os = "linux", target_os = "android"))]
const MAX_UNSENT_BYTES: u32 = 16 << 10;

/// How long the kernel tries to reach a peer that acknowledges nothing.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_mins(1);

/// How many bytes rustls may buffer for a connection before it must write them.
const MAX_TLS_BUFFER_BYTES: usize = 64 << 10;

/// A connected socket to hand over to a loop.
pub enum Socket {
    /// TCP, for loopback (ruling 28).
    Tcp(TcpStream),
    /// A Unix socket.
    #[cfg(unix)]
    Unix(UnixStream),
    /// TCP with TLS, after the handshake.
    Tls(Box<(TcpStream, ServerConnection)>),
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp(_) => "Tcp",
            #[cfg(unix)]
            Self::Unix(_) => "Unix",
            Self::Tls(_) => "Tls",
        })
    }
}

/// A socket in a loop.
pub(super) enum LoopSocket {
    Tcp(mio::net::TcpStream),
    #[cfg(unix)]
    Unix(mio::net::UnixStream),
    Tls(Box<TlsSocket>),
}

pub(super) struct TlsSocket {
    tcp: mio::net::TcpStream,
    session: ServerConnection,
}

impl LoopSocket {
    pub(super) fn new(socket: Socket) -> io::Result<Self> {
        Ok(match socket {
            Socket::Tcp(tcp) => Self::Tcp(prepare(tcp)?),
            #[cfg(unix)]
            Socket::Unix(unix) => {
                unix.set_nonblocking(true)?;
                Self::Unix(mio::net::UnixStream::from_std(unix))
            }
            Socket::Tls(parts) => {
                let (tcp, mut session) = *parts;
                session.set_buffer_limit(Some(MAX_TLS_BUFFER_BYTES));
                Self::Tls(Box::new(TlsSocket { tcp: prepare(tcp)?, session }))
            }
        })
    }

    /// TCP reports that it is writable only after it was full, so writability is requested once for good. A Unix
    /// socket reports it after every read of the peer, so it is requested only while bytes are queued.
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        match self {
            Self::Tcp(tcp) => registry.register(tcp, token, both),
            #[cfg(unix)]
            Self::Unix(unix) => registry.register(unix, token, Interest::READABLE),
            Self::Tls(tls) => registry.register(&mut tls.tcp, token, both),
        }
    }

    /// Requests or cancels notifications that the socket is writable.
    pub(super) fn ask_writable(
        &mut self,
        registry: &Registry,
        token: Token,
        is_wanted: bool,
    ) -> io::Result<()> {
        match self {
            #[cfg(unix)]
            Self::Unix(unix) if is_wanted => {
                registry.reregister(unix, token, Interest::READABLE | Interest::WRITABLE)
            }
            #[cfg(unix)]
            Self::Unix(unix) => registry.reregister(unix, token, Interest::READABLE),
            _ => {
                let _ = (registry, token, is_wanted);
                Ok(())
            }
        }
    }

    pub(super) fn deregister(&mut self, registry: &Registry) {
        // Closing the socket has the same effect; nothing can be done about a failure.
        let _ = match self {
            Self::Tcp(tcp) => registry.deregister(tcp),
            #[cfg(unix)]
            Self::Unix(unix) => registry.deregister(unix),
            Self::Tls(tls) => registry.deregister(&mut tls.tcp),
        };
    }

    /// Reads the available bytes. Zero bytes mean that the peer writes no more.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => tcp.read(into),
            #[cfg(unix)]
            Self::Unix(unix) => unix.read(into),
            Self::Tls(tls) => tls.read(into),
        }
    }

    /// Writes some of the bytes, in one call to the kernel.
    pub(super) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match (self, slices) {
            (Self::Tcp(tcp), [one]) => tcp.write(one),
            (Self::Tcp(tcp), many) => tcp.write_vectored(many),
            #[cfg(unix)]
            (Self::Unix(unix), [one]) => unix.write(one),
            #[cfg(unix)]
            (Self::Unix(unix), many) => unix.write_vectored(many),
            (Self::Tls(tls), many) => {
                tls.flush()?;
                let written = tls.session.writer().write_vectored(many)?;
                match tls.flush() {
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
                    _ => Ok(written),
                }
            }
        }
    }

    /// Writes the bytes that TLS still holds.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(tls) => tls.flush(),
            _ => Ok(()),
        }
    }

    /// Whether accepted bytes have not reached the kernel.
    pub(super) fn has_unsent(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.session.wants_write())
    }

    /// Tells the peer that nothing more will be written.
    pub(super) fn end_writing(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(tcp) => tcp.shutdown(Shutdown::Write),
            #[cfg(unix)]
            Self::Unix(unix) => unix.shutdown(Shutdown::Write),
            Self::Tls(tls) => {
                tls.session.send_close_notify();
                tls.flush()?;
                tls.tcp.shutdown(Shutdown::Write)
            }
        }
    }

    /// Lets the kernel discard bytes that the peer did not read, as soon as the socket is closed.
    pub(super) fn forget_unsent(&self) {
        let tcp = match self {
            Self::Tcp(tcp) => tcp,
            Self::Tls(tls) => &tls.tcp,
            #[cfg(unix)]
            Self::Unix(_) => return,
        };
        // If this fails, the kernel keeps the bytes for a while; nothing worse happens.
        let _ = SockRef::from(tcp).set_linger(Some(std::time::Duration::ZERO));
    }
}

impl TlsSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The peer closed TCP without a TLS close. It is gone either way.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            if self.session.read_tls(&mut self.tcp)? == 0 {
                return Ok(0);
            }
            let state = self.session.process_new_packets();
            state.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.tcp)?;
        }
        Ok(())
    }
}

fn prepare(tcp: TcpStream) -> io::Result<mio::net::TcpStream> {
    tcp.set_nonblocking(true)?;
    tcp.set_nodelay(true)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let socket = SockRef::from(&tcp);
        // Both options only help; the connection works without them.
        let _ = socket.set_tcp_notsent_lowat(MAX_UNSENT_BYTES);
        let _ = socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_TIMEOUT));
    }
    Ok(mio::net::TcpStream::from_std(tcp))
}
