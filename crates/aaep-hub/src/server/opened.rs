//! The sockets of the hub: those that it opens, and those that are already open.

use std::net::SocketAddr;
use std::path::PathBuf;

use aaep_transport::local::LocalDoor;

use super::config::DEFAULT_ADDRESS;
use super::daemon::{DaemonError, DaemonOptions};
use super::listen::ListeningSocket;
use crate::access::Access;

/// A socket that is already open, perhaps by the system. A TCP socket replaces the default address.
#[derive(Debug)]
pub enum Given {
    /// A TCP socket.
    Tcp(std::net::TcpListener),
    /// A local socket or, on Windows, a named pipe.
    Local(LocalDoor),
}

/// All sockets on which the hub accepts connections.
pub(super) struct OpenedSockets {
    pub(super) listening: Vec<ListeningSocket>,
    pub(super) doors: Vec<LocalDoor>,
}

/// Opens the requested addresses, and takes the sockets that were given.
pub(super) fn open(
    options: &DaemonOptions,
    given: Vec<Given>,
    access: &Access,
    has_tls: bool,
) -> Result<OpenedSockets, DaemonError> {
    let mut opened = OpenedSockets { listening: Vec::new(), doors: Vec::new() };
    let has_credentials = access.has_credentials();
    let allow_plain_http = options.allow_plain_http;
    for given in given {
        match given {
            Given::Tcp(socket) => {
                let socket =
                    ListeningSocket::given(socket, has_tls, has_credentials, allow_plain_http);
                opened.listening.push(socket.map_err(DaemonError::Listen)?);
            }
            Given::Local(door) => opened.doors.push(door),
        }
    }
    for address in addresses(options, !opened.listening.is_empty()) {
        let socket = ListeningSocket::bind(address, has_tls, has_credentials, allow_plain_http);
        opened.listening.push(socket.map_err(DaemonError::Listen)?);
    }
    Ok(opened)
}

/// The addresses to open: those requested, or else the default unless there is a socket already.
fn addresses(options: &DaemonOptions, has_some: bool) -> Vec<SocketAddr> {
    let mut addresses = options.bind.clone();
    if addresses.is_empty() {
        addresses.clone_from(&options.config.hub.bind);
    }
    if addresses.is_empty() && !has_some {
        addresses.extend(DEFAULT_ADDRESS.parse::<SocketAddr>().ok());
    }
    addresses
}

impl OpenedSockets {
    /// The paths of the local sockets.
    pub(super) fn sockets(&self) -> Vec<PathBuf> {
        self.doors.iter().map(|door| door.path().to_owned()).collect()
    }
}
