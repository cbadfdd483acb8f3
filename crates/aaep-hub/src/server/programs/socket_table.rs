//! Asks the system for one TCP socket of this machine, by the addresses of its connection (`sock_diag`).
//!
//! The tables in `/proc/net` say the same, but reading them takes longer the more sockets there are, and those
//! of closed connections are among them for a minute.

use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::ConnectionEnds;

/// The numbers of the system for this kind of socket and question.
const NETLINK: i32 = 16;
const SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const IS_REQUEST: u16 = 1;
const INET: u8 = 2;
const INET6: u8 = 10;
const TCP: u8 = 6;

/// The length of a request, which is a header and a question.
const REQUEST_BYTES: u32 = 16 + 56;
/// The position of the state in an answer, and the state of a socket that only listens. The system finds that one if
/// there is no connection.
const STATE_AT: usize = 16 + 1;
const LISTENS: u8 = 10;
/// The position of the inode in an answer.
const INODE_AT: usize = 16 + 68;

/// How long the system may take. It answers at once.
const PATIENCE: Duration = Duration::from_millis(100);

/// A socket on which the system is asked.
#[derive(Debug)]
pub(super) struct SocketTable(Socket);

impl SocketTable {
    pub(super) fn open() -> io::Result<Self> {
        let protocol = Some(Protocol::from(SOCK_DIAG));
        let socket = Socket::new(Domain::from(NETLINK), Type::DGRAM, protocol)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(SocketTable(socket))
    }

    /// The inode of the peer's socket; `None` if it is closed.
    pub(super) fn inode_of_peer(&self, ends: ConnectionEnds) -> Option<u64> {
        self.0.send(&request(ends)).ok()?;
        let mut answer = [0; 512];
        let count = (&self.0).read(&mut answer).ok()?;
        let answer = answer.get(..count)?;
        let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
        let inode = u32::from_ne_bytes(answer.get(INODE_AT..INODE_AT + 4)?.try_into().ok()?);
        let is_connection = answer.get(STATE_AT) != Some(&LISTENS) && inode != 0;
        (kind == SOCK_DIAG_BY_FAMILY && is_connection).then(|| inode.into())
    }
}

/// The request for the peer's socket. The header is in the byte order of this machine; addresses and ports are
/// in that of the network.
fn request(ends: ConnectionEnds) -> Vec<u8> {
    let (peer, hub) = (canonical(ends.peer), canonical(ends.hub));
    let family = if peer.is_ipv4() { INET } else { INET6 };
    let mut bytes = Vec::new();
    bytes.extend(REQUEST_BYTES.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(IS_REQUEST.to_ne_bytes());
    // The numbers of the request and of the sender, which nobody needs.
    bytes.extend([0; 8]);
    // Nothing but the socket, in any state.
    bytes.extend([family, TCP, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(peer.port().to_be_bytes());
    bytes.extend(hub.port().to_be_bytes());
    bytes.extend(octets(peer.ip()));
    bytes.extend(octets(hub.ip()));
    // Any interface, and no cookie.
    bytes.extend([0; 4]);
    bytes.extend([0xff; 8]);
    bytes
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
        IpAddr::V6(address) => address.octets(),
    }
}
