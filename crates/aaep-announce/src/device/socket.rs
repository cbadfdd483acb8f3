//! Where a speech or braille server is, and the connection to it: over TCP everywhere, over Unix sockets where
//! there are any.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::english::devices;

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A host and a port.
    Tcp(String, u16),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => f.write_str(&aaep::printable(&path.to_string_lossy())),
            Address::Tcp(host, port) => {
                f.write_str(&devices::host_and_port(&aaep::printable(host), *port))
            }
        }
    }
}

/// A connection. Reading and writing are done by different threads, each with its own clone.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Socket {
    /// Connects. Over TCP within the patience, for each address of the host; a Unix socket answers at once or,
    /// with a server that hangs, not for a long time: so this is called on a thread that may wait.
    pub(crate) fn connect(address: &Address, patience: Duration) -> io::Result<Self> {
        match address {
            #[cfg(unix)]
            Address::Unix(path) => UnixStream::connect(path).map(Socket::Unix),
            #[cfg(not(unix))]
            Address::Unix(_) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, devices::NO_UNIX_SOCKETS))
            }
            Address::Tcp(host, port) => {
                let mut last =
                    io::Error::new(io::ErrorKind::NotFound, devices::HOST_WITHOUT_ADDRESS);
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, patience) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            return Ok(Socket::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    /// The same connection for another thread.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        match self {
            Socket::Tcp(stream) => stream.try_clone().map(Socket::Tcp),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.try_clone().map(Socket::Unix),
        }
    }

    /// Waits for some bytes.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(buffer),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.read(buffer),
        }
    }

    /// Sends all of it within the patience, also to a server that takes a byte now and then.
    pub(crate) fn send(&mut self, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
        let until = Instant::now() + patience;
        while !bytes.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match self.write_within(bytes, left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_within(&mut self, bytes: &[u8], time: Duration) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => {
                stream.set_write_timeout(Some(time))?;
                stream.write(bytes)
            }
            #[cfg(unix)]
            Socket::Unix(stream) => {
                stream.set_write_timeout(Some(time))?;
                stream.write(bytes)
            }
        }
    }

    /// Ends the connection for all clones, so that the thread that reads ends too.
    pub(crate) fn shutdown(&self) {
        // It may have ended already, and then there is nothing to do.
        let _ = match self {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Both),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}
