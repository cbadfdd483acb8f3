//! The sockets on which the hub listens.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

use crate::access::{BindError, is_loopback, may_bind};

/// The most connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// One address that the hub listens on.
#[derive(Debug)]
pub struct ListeningSocket {
    pub(crate) socket: TcpListener,
    address: SocketAddr,
    is_tls: bool,
}

/// Why the hub cannot listen on an address.
#[derive(Debug)]
pub enum ListenError {
    /// The configuration does not allow it.
    NotAllowed(BindError),
    /// Another program has the address.
    InUse(SocketAddr),
    /// The system refuses permission.
    Denied(SocketAddr),
    /// This machine does not have the address.
    NotHere(SocketAddr),
    /// Listening failed for another reason.
    Failed(SocketAddr, io::Error),
}

impl ListeningSocket {
    /// Listens on an address. TLS is used where other machines can connect and there is a certificate;
    /// programs on this machine do not need it (ruling 28).
    ///
    /// Must be called within a tokio runtime.
    pub fn bind(
        address: SocketAddr,
        has_tls: bool,
        has_authentication: bool,
        allow_plain_http: bool,
    ) -> Result<Self, ListenError> {
        may_bind(address, has_tls, has_authentication, allow_plain_http)
            .map_err(ListenError::NotAllowed)?;
        let socket = open(address).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse(address),
            io::ErrorKind::PermissionDenied => ListenError::Denied(address),
            io::ErrorKind::AddrNotAvailable => ListenError::NotHere(address),
            _ => ListenError::Failed(address, error),
        })?;
        let real = socket.local_addr().map_err(|error| ListenError::Failed(address, error))?;
        Ok(ListeningSocket { socket, address: real, is_tls: has_tls && !is_loopback(address.ip()) })
    }

    /// Takes a socket that is already open, for example from systemd, if the hub may listen on it.
    ///
    /// Must be called within a tokio runtime.
    pub fn given(
        socket: std::net::TcpListener,
        has_tls: bool,
        has_authentication: bool,
        allow_plain_http: bool,
    ) -> Result<Self, ListenError> {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let address = socket.local_addr().map_err(|error| ListenError::Failed(nowhere, error))?;
        may_bind(address, has_tls, has_authentication, allow_plain_http)
            .map_err(ListenError::NotAllowed)?;
        let failed = |error| ListenError::Failed(address, error);
        socket.set_nonblocking(true).map_err(failed)?;
        let socket = TcpListener::from_std(socket).map_err(failed)?;
        Ok(ListeningSocket { socket, address, is_tls: has_tls && !is_loopback(address.ip()) })
    }

    /// The address, with the port that the system chose if none was given.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether connections are encrypted.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The origin of every URL of the hub here, such as `http://127.0.0.1:7117`.
    pub fn origin(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // On Windows the same option would let two programs use one address.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // An IPv6 socket accepts IPv6 only, so that the rules checked for its address cover everything.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::NotAllowed(error) => error.fmt(f),
            ListenError::InUse(address) => write!(
                f,
                "Another program listens on {address}, perhaps another hub. Stop it, or choose \
                 another address with: --bind {}:0",
                address.ip()
            ),
            ListenError::Denied(address) => write!(
                f,
                "The system does not let this program listen on {address}. Choose a port above 1023."
            ),
            ListenError::NotHere(address) => write!(
                f,
                "This machine does not have the address {}. Choose one that it has, such as 127.0.0.1.",
                address.ip()
            ),
            ListenError::Failed(address, error) => write!(
                f,
                "Listening on {address} failed: {error}. Choose another address with --bind."
            ),
        }
    }
}

impl std::error::Error for ListenError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(text: &str) -> Result<ListeningSocket, ListenError> {
        ListeningSocket::bind(text.parse().expect("an address"), false, false, false)
    }

    #[tokio::test]
    async fn a_free_port_is_found_and_told() {
        let listening = bind("127.0.0.1:0").expect("a port");
        assert_ne!(listening.address().port(), 0);
        assert_eq!(listening.origin(), format!("http://{}", listening.address()));
    }

    #[tokio::test]
    async fn an_address_in_use_is_said_with_the_next_step() {
        let first = bind("127.0.0.1:0").expect("a port");
        let error = bind(&first.address().to_string()).expect_err("in use");
        assert!(matches!(error, ListenError::InUse(_)), "{error:?}");
        assert!(error.to_string().contains("--bind 127.0.0.1:0"), "{error}");
    }

    #[tokio::test]
    async fn no_address_is_opened_that_others_could_reach_unprotected() {
        for address in ["0.0.0.0:0", "[::]:0"] {
            let error = bind(address).expect_err("not allowed");
            assert!(matches!(error, ListenError::NotAllowed(_)), "{error:?}");
        }
    }

    #[tokio::test]
    async fn tls_is_for_addresses_that_others_can_reach() {
        let bind =
            |text: &str| ListeningSocket::bind(text.parse().expect("one"), true, true, false);
        assert!(bind("0.0.0.0:0").expect("a port").is_tls());
        assert!(!bind("127.0.0.1:0").expect("a port").is_tls());
    }
}
