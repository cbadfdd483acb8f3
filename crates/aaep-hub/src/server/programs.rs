//! Finds the program at the other end of a loopback connection, as the system reports it (Linux).
//!
//! TCP does not tell programs on one machine apart, so one of them could use the connections of all others.
//! The system knows which process has the other end of a connection. Looking it up takes milliseconds, so it
//! is done only when connections are scarce, and one at a time. On other systems nothing is found, and all
//! programs share one limit.

use std::net::SocketAddr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionEnds {
    pub(crate) peer: SocketAddr,
    pub(crate) hub: SocketAddr,
}

/// Stands for a process that cannot be found: it belongs to another user, or has ended.
#[cfg(target_os = "linux")]
const UNKNOWN_PROGRAM: u32 = 0;

/// Finds the processes at the other end of connections.
#[derive(Debug, Default)]
pub(crate) struct ProgramFinder {
    #[cfg(target_os = "linux")]
    recent: std::sync::Arc<tokio::sync::Mutex<Vec<u32>>>,
}

#[cfg(not(target_os = "linux"))]
impl ProgramFinder {
    #[expect(clippy::unused_async, reason = "it takes a while where it can be done")]
    pub(crate) async fn find(&self, _ends: ConnectionEnds) -> Option<u32> {
        None
    }
}

#[cfg(target_os = "linux")]
impl ProgramFinder {
    /// The process at the other end.
    pub(crate) async fn find(&self, ends: ConnectionEnds) -> Option<u32> {
        let mut recent = std::sync::Arc::clone(&self.recent).lock_owned().await;
        let looking = tokio::task::spawn_blocking(move || {
            let found = linux::program_of(ends, &recent);
            linux::remember(&mut recent, found);
            found
        });
        Some(looking.await.ok().flatten().unwrap_or(UNKNOWN_PROGRAM))
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fmt::Write as _;
    use std::fs;
    use std::net::{IpAddr, SocketAddr};
    use std::path::Path;

    use super::ConnectionEnds;

    /// The number of recently connected programs that are checked first.
    const MAX_RECENT: usize = 16;

    /// The process that has the other end of a connection. Those in `recent` are checked first.
    pub(super) fn program_of(ends: ConnectionEnds, recent: &[u32]) -> Option<u32> {
        let inode = inode_of(ends)?;
        let socket = format!("socket:[{inode}]");
        let has_it = |process: &u32| has_open(*process, &socket);
        recent.iter().copied().find(has_it).or_else(|| {
            let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
            let numbers = processes.filter_map(|it| it.file_name().to_str()?.parse().ok());
            numbers.filter(|process| !recent.contains(process)).find(has_it)
        })
    }

    pub(super) fn remember(recent: &mut Vec<u32>, found: Option<u32>) {
        let Some(process) = found else { return };
        recent.retain(|it| *it != process);
        recent.insert(0, process);
        recent.truncate(MAX_RECENT);
    }

    /// Whether a process has this file open. A process that may not be inspected counts as having none.
    fn has_open(process: u32, what: &str) -> bool {
        let Ok(open) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
        let mut links = open.filter_map(Result::ok).filter_map(|it| fs::read_link(it.path()).ok());
        links.any(|link| link == Path::new(what))
    }

    /// The inode of the peer's socket, from the tables of all sockets on this machine.
    fn inode_of(ends: ConnectionEnds) -> Option<u64> {
        let in_table = |table: &str, is_v6: bool| {
            let (peer, hub) = (written(ends.peer, is_v6)?, written(ends.hub, is_v6)?);
            let text = fs::read_to_string(table).ok()?;
            text.lines().find_map(|line| {
                let mut fields = line.split_ascii_whitespace().skip(1);
                let is_it = fields.next()? == peer && fields.next()? == hub;
                is_it.then(|| fields.nth(6)?.parse().ok()).flatten()
            })
        };
        in_table("/proc/net/tcp", false).or_else(|| in_table("/proc/net/tcp6", true))
    }

    /// An address as the tables write it: words of four bytes in native byte order, and the port.
    fn written(address: SocketAddr, is_v6: bool) -> Option<String> {
        let octets = match (address.ip().to_canonical(), is_v6) {
            (IpAddr::V4(it), false) => it.octets().to_vec(),
            (IpAddr::V4(it), true) => it.to_ipv6_mapped().octets().to_vec(),
            (IpAddr::V6(it), true) => it.octets().to_vec(),
            (IpAddr::V6(_), false) => return None,
        };
        let mut text = String::new();
        for word in octets.chunks_exact(4) {
            let word = u32::from_ne_bytes(word.try_into().ok()?);
            write!(text, "{word:08X}").ok()?;
        }
        write!(text, ":{:04X}", address.port()).ok()?;
        Some(text)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn the_process_at_the_other_end_is_found() {
        let finder = ProgramFinder::default();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let hub = listener.local_addr().expect("an address");
            let stream = TcpStream::connect(hub).expect("connects");
            let peer = stream.local_addr().expect("an address");
            for _ in 0..2 {
                let found = finder.find(ConnectionEnds { peer, hub }).await;
                assert_eq!(found, Some(std::process::id()), "{address}");
            }
            let nobody = ConnectionEnds { peer: hub, hub };
            assert_eq!(finder.find(nobody).await, Some(UNKNOWN_PROGRAM));
        }
    }
}
