//! Finds the program at the other end of a loopback connection, as the system reports it (Linux).
//!
//! TCP does not tell programs on one machine apart, so one of them could use the connections of all others.
//! The system knows which process has the other end of a connection. Looking it up can take milliseconds, so
//! it is done only when connections are scarce, for several connections together where they arrive together.
//! On other systems nothing is found, and all programs share one limit.

#[cfg(target_os = "linux")]
mod socket_table;

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
    lookups: std::sync::Arc<tokio::sync::Mutex<ProgramLookups>>,
}

/// What is known from the look-ups before.
#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
struct ProgramLookups {
    /// The programs that connected last, the newest first.
    recent: Vec<u32>,
    /// When the next look-up may begin.
    next_at: Option<tokio::time::Instant>,
}

/// How many times as long as the last look-up took the hub waits until the next. A program that opens connections
/// all the time must not take a whole processor: the more sockets it has, the longer each look-up takes.
#[cfg(target_os = "linux")]
const PAUSE_FACTOR: u32 = 4;

#[cfg(not(target_os = "linux"))]
impl ProgramFinder {
    #[expect(clippy::unused_async, reason = "it takes a while where it can be done")]
    pub(crate) async fn find(&self, _ends: ConnectionEnds) -> Option<u32> {
        None
    }

    #[expect(clippy::unused_async, reason = "it takes a while where it can be done")]
    pub(crate) async fn find_all(&self, ends: Vec<ConnectionEnds>) -> Vec<Option<u32>> {
        vec![None; ends.len()]
    }
}

#[cfg(target_os = "linux")]
impl ProgramFinder {
    /// The process at the other end.
    pub(crate) async fn find(&self, ends: ConnectionEnds) -> Option<u32> {
        self.find_all(vec![ends]).await.pop().flatten()
    }

    /// The processes at the other ends of these connections, in their order.
    pub(crate) async fn find_all(&self, ends: Vec<ConnectionEnds>) -> Vec<Option<u32>> {
        let count = ends.len();
        let mut lookups = std::sync::Arc::clone(&self.lookups).lock_owned().await;
        if let Some(next_at) = lookups.next_at {
            tokio::time::sleep_until(next_at).await;
        }
        let began = tokio::time::Instant::now();
        let looking = tokio::task::spawn_blocking(move || {
            let found = linux::programs_of(&ends, &lookups.recent);
            found.iter().flatten().for_each(|it| linux::remember(&mut lookups.recent, *it));
            lookups.next_at = Some(began + began.elapsed() * (PAUSE_FACTOR + 1));
            found
        });
        let found = looking.await.unwrap_or_else(|_| vec![None; count]);
        found.into_iter().map(|it| it.or(Some(UNKNOWN_PROGRAM))).collect()
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{HashMap, HashSet};
    use std::fs;

    use super::ConnectionEnds;
    use super::socket_table::SocketTable;

    /// The number of recently connected programs that are checked first.
    const MAX_RECENT: usize = 16;

    /// The processes that have the other ends of these connections. Those in `recent` are checked first. A
    /// process that may not be inspected counts as having none.
    pub(super) fn programs_of(ends: &[ConnectionEnds], recent: &[u32]) -> Vec<Option<u32>> {
        let inodes: Vec<Option<u64>> = match SocketTable::open() {
            Ok(table) => ends.iter().map(|ends| table.inode_of_peer(*ends)).collect(),
            // Some sandboxes do not let programs ask.
            Err(_) => vec![None; ends.len()],
        };
        let mut wanted: HashSet<u64> = inodes.iter().copied().flatten().collect();
        let mut holders = HashMap::new();
        let others = || {
            let processes = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
            let numbers = processes.filter_map(|it| it.file_name().to_str()?.parse().ok());
            numbers.filter(|process| !recent.contains(process)).collect::<Vec<u32>>()
        };
        // The list of all processes is made only when it is needed.
        let lists: [&dyn Fn() -> Vec<u32>; 2] = [&|| recent.to_vec(), &others];
        for list in lists {
            if wanted.is_empty() {
                break;
            }
            for process in list() {
                for inode in sockets_of(process) {
                    if wanted.remove(&inode) {
                        holders.insert(inode, process);
                    }
                }
            }
        }
        inodes.into_iter().map(|inode| holders.get(&inode?).copied()).collect()
    }

    pub(super) fn remember(recent: &mut Vec<u32>, process: u32) {
        recent.retain(|it| *it != process);
        recent.insert(0, process);
        recent.truncate(MAX_RECENT);
    }

    /// The inodes of the sockets that a process has open.
    fn sockets_of(process: u32) -> impl Iterator<Item = u64> {
        let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten();
        let links = open.filter_map(Result::ok).filter_map(|it| fs::read_link(it.path()).ok());
        links.filter_map(|link| {
            link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
        })
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
            let (own, nobody) = (ConnectionEnds { peer, hub }, ConnectionEnds { peer: hub, hub });
            for _ in 0..2 {
                assert_eq!(finder.find(own).await, Some(std::process::id()), "{address}");
            }
            let found = finder.find_all(vec![own, nobody, own]).await;
            let process = Some(std::process::id());
            assert_eq!(found, [process, Some(UNKNOWN_PROGRAM), process]);
        }
    }
}
