//! The address of a speech or braille server, and the connection to it: over TCP everywhere, over Unix sockets where
//! the system has them.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::english::devices;

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceAddress {
    /// A Unix socket.
    Unix(PathBuf),
    /// A host and a port.
    Tcp(String, u16),
}

impl fmt::Display for DeviceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceAddress::Unix(path) => f.write_str(&aaep::printable(&path.to_string_lossy())),
            DeviceAddress::Tcp(host, port) => {
                f.write_str(&devices::host_and_port(&aaep::printable(host), *port))
            }
        }
    }
}

/// A connection. Different threads read and write, each with its own clone.
#[derive(Debug)]
pub(crate) enum DeviceSocket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl DeviceSocket {
    /// Connects. Over TCP, each address of the host gets the given patience. A Unix socket either answers at once or,
    /// if the server hangs, may block for long, so call this on a thread that may wait.
    pub(crate) fn connect(address: &DeviceAddress, patience: Duration) -> io::Result<Self> {
        match address {
            #[cfg(unix)]
            DeviceAddress::Unix(path) => UnixStream::connect(path).map(DeviceSocket::Unix),
            #[cfg(not(unix))]
            DeviceAddress::Unix(_) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, devices::NO_UNIX_SOCKETS))
            }
            DeviceAddress::Tcp(host, port) => {
                let mut last =
                    io::Error::new(io::ErrorKind::NotFound, devices::HOST_WITHOUT_ADDRESS);
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, patience) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            return Ok(DeviceSocket::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    /// Clones the connection for another thread.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        match self {
            DeviceSocket::Tcp(stream) => stream.try_clone().map(DeviceSocket::Tcp),
            #[cfg(unix)]
            DeviceSocket::Unix(stream) => stream.try_clone().map(DeviceSocket::Unix),
        }
    }

    /// Waits for bytes.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            DeviceSocket::Tcp(stream) => stream.read(buffer),
            #[cfg(unix)]
            DeviceSocket::Unix(stream) => stream.read(buffer),
        }
    }

    /// Sends all bytes within the given time, even to a server that takes only a byte now and then.
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
            DeviceSocket::Tcp(stream) => {
                stream.set_write_timeout(Some(time))?;
                stream.write(bytes)
            }
            #[cfg(unix)]
            DeviceSocket::Unix(stream) => {
                stream.set_write_timeout(Some(time))?;
                stream.write(bytes)
            }
        }
    }

    /// Ends the connection for all clones, so that the reading thread ends too.
    pub(crate) fn shutdown(&self) {
        // If it has already ended, there is nothing to do.
        let _ = match self {
            DeviceSocket::Tcp(stream) => stream.shutdown(Shutdown::Both),
            #[cfg(unix)]
            DeviceSocket::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}
