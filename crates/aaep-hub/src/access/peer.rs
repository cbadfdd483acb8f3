//! The other end of a connection, as the socket and TLS report it.
//!
//! Nothing here comes from headers: a peer's statements about itself are not trusted.

use std::net::IpAddr;

use crate::access::{ClientCertificate, is_loopback};

/// Where a request comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The address that the socket reports.
    pub address: PeerAddress,
    /// Whether the connection is encrypted.
    pub is_tls: bool,
    /// The client's certificate, after TLS has verified it against the configured authority.
    pub certificate: Option<ClientCertificate>,
}

/// The address of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerAddress {
    /// A network address, of this machine or of another.
    Ip(IpAddr),
    /// A Unix socket or named pipe whose other end runs as the same user, as the system reports (§10.1.1).
    SameUser,
    /// A Unix socket or named pipe whose other end runs as the user with this number.
    OtherUser(u32),
}

impl Peer {
    /// A plain connection from this address.
    pub fn plain(address: IpAddr) -> Self {
        Peer { address: PeerAddress::Ip(address), is_tls: false, certificate: None }
    }

    /// An encrypted connection from this address.
    pub fn tls(address: IpAddr, certificate: Option<ClientCertificate>) -> Self {
        Peer { address: PeerAddress::Ip(address), is_tls: true, certificate }
    }

    /// A local socket of the same user.
    pub fn same_user() -> Self {
        Peer { address: PeerAddress::SameUser, is_tls: false, certificate: None }
    }

    /// A local socket of another user of this machine.
    pub fn other_user(user_id: u32) -> Self {
        Peer { address: PeerAddress::OtherUser(user_id), is_tls: false, certificate: None }
    }

    /// Whether the connection stays on this machine.
    pub fn is_local(&self) -> bool {
        match self.address {
            PeerAddress::Ip(address) => is_loopback(address),
            PeerAddress::SameUser | PeerAddress::OtherUser(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_local() {
        for (address, expected) in [
            ("127.0.0.1", true),
            ("127.8.9.10", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("192.168.1.4", false),
            ("128.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("fe80::1", false),
        ] {
            let address = address.parse().expect("an address");
            assert_eq!(Peer::plain(address).is_local(), expected, "{address}");
        }
        assert!(Peer::same_user().is_local());
    }
}
