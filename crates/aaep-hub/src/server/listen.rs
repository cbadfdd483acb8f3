//! Where the hub listens: addresses that may be listened on, and are free.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

use crate::access::{BindError, is_loopback, may_bind};

/// How many connections wait for the hub to take them.
const BACKLOG: i32 = 1024;

/// One address that the hub listens on.
#[derive(Debug)]
pub struct Subscriber {
    pub(crate) socket: TcpListener,
    address: SocketAddr,
    is_tls: bool,
}

/// Why the hub does not listen.
#[derive(Debug)]
pub enum ListenError {
    /// It may not listen there as it is set up.
    NotAllowed(BindError),
    /// Another program has the address.
    InUse(SocketAddr),
    /// The system does not let it listen there.
    Denied(SocketAddr),
    /// This machine does not have the address.
    NotHere(SocketAddr),
    /// Something else is wrong.
    Failed(SocketAddr, io::Error),
}

impl Subscriber {
    /// Listens on an address. TLS is spoken where other machines can connect and there is a certificate;
    /// programs of this machine need none (ruling 28).
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
        Ok(Subscriber { socket, address: real, is_tls: has_tls && !is_loopback(address.ip()) })
    }

    /// Takes a socket that the system opened, such as systemd, if it may be listened on.
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
        Ok(Subscriber { socket, address, is_tls: has_tls && !is_loopback(address.ip()) })
    }

    /// The address, with the port that the system chose if none was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether connections are encrypted.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The beginning of every address of the hub here, such as `http://127.0.0.1:7117`.
    pub fn origin(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // On Windows the same option would let two programs have one address.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // An IPv6 address is that alone, so that what the rules say of it is all there is.
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

    fn bind(text: &str) -> Result<Subscriber, ListenError> {
        Subscriber::bind(text.parse().expect("an address"), false, false, false)
    }

    #[tokio::test]
    async fn a_free_port_is_found_and_told() {
        let subscriber = bind("127.0.0.1:0").expect("a port");
        assert_ne!(subscriber.address().port(), 0);
        assert_eq!(subscriber.origin(), format!("http://{}", subscriber.address()));
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
        let bind = |text: &str| Subscriber::bind(text.parse().expect("one"), true, true, false);
        assert!(bind("0.0.0.0:0").expect("a port").is_tls());
        assert!(!bind("127.0.0.1:0").expect("a port").is_tls());
    }
}
