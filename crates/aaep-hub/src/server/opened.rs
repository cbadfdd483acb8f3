//! Where the hub can be reached: addresses that it opens, and sockets that are open already.

use std::net::SocketAddr;
use std::path::PathBuf;

use aaep_transport::local::LocalDoor;

use super::config::DEFAULT_ADDRESS;
use super::daemon::{DaemonError, DaemonOptions};
use super::listen::Subscriber;
use crate::access::Access;

/// A socket that is open already, perhaps by the system. One on a network address takes the place of the
/// default address.
#[derive(Debug)]
pub enum Given {
    /// On a network address.
    Tcp(std::net::TcpListener),
    /// A local socket or, on Windows, a named pipe.
    Local(LocalDoor),
}

/// Where the hub can be reached.
pub(super) struct Opened {
    pub(super) subscribers: Vec<Subscriber>,
    pub(super) doors: Vec<LocalDoor>,
}

/// Opens what was asked for, beside what was given.
pub(super) fn open(
    options: &DaemonOptions,
    given: Vec<Given>,
    access: &Access,
    has_tls: bool,
) -> Result<Opened, DaemonError> {
    let mut opened = Opened { subscribers: Vec::new(), doors: Vec::new() };
    let has_credentials = access.has_credentials();
    let allow_plain_http = options.allow_plain_http;
    for given in given {
        match given {
            Given::Tcp(socket) => {
                let subscriber =
                    Subscriber::given(socket, has_tls, has_credentials, allow_plain_http);
                opened.subscribers.push(subscriber.map_err(DaemonError::Listen)?);
            }
            Given::Local(door) => opened.doors.push(door),
        }
    }
    for address in addresses(options, !opened.subscribers.is_empty()) {
        let subscriber = Subscriber::bind(address, has_tls, has_credentials, allow_plain_http);
        opened.subscribers.push(subscriber.map_err(DaemonError::Listen)?);
    }
    Ok(opened)
}

/// The addresses to open: those that were asked for, or else the default unless there is one already.
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

impl Opened {
    /// The paths of the local sockets.
    pub(super) fn sockets(&self) -> Vec<PathBuf> {
        self.doors.iter().map(|door| door.path().to_owned()).collect()
    }
}
