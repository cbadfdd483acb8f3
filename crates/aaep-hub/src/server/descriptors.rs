//! File descriptors: as many as the system gives this process, and fewer connections than that.
//!
//! Connections use descriptors, and so do the files of the store. Connections must never use up those that
//! the store needs. When none is left, an old connection is asked to end, so that new ones do not wait.

use std::io;

use crate::access::{Limits, RESERVED_CONNECTIONS, UNCLAIMED_CONNECTIONS};

/// The fewest connections of principals, however few descriptors there are.
const MIN_CONNECTIONS: usize = 16;

/// Raises the limit of this process as far as possible and returns it. `None` where there is no such limit.
#[cfg(unix)]
pub(super) fn raise_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // If the system refuses, the limit stays as it is.
    if limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_ok() {
        return limit.maximum;
    }
    limit.current
}

#[cfg(not(unix))]
pub(super) fn raise_limit() -> Option<u64> {
    None
}

/// Lowers the limit on connections to what this many descriptors allow: a quarter of them is for files.
pub(super) fn within(limits: &Limits, descriptors: Option<u64>) -> Limits {
    let Some(descriptors) = descriptors else { return limits.clone() };
    let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
    let beside = UNCLAIMED_CONNECTIONS + 2 * RESERVED_CONNECTIONS;
    let most = (descriptors - descriptors / 4).saturating_sub(beside).max(MIN_CONNECTIONS);
    if most < limits.connections {
        tracing::warn!(
            connections = most,
            "The system allows {descriptors} open files, so there can be fewer connections than configured. Raise the \
             limit, for example with ulimit -n."
        );
    }
    Limits { connections: limits.connections.min(most), ..limits.clone() }
}

/// Whether the system had no descriptor for a connection.
pub(super) fn are_used_up(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        let used_up = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
        error.raw_os_error().is_some_and(|code| used_up.contains(&code))
    }
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_files() {
        let limits = Limits::default();
        for (descriptors, connections) in
            [(None, 1024), (Some(1 << 20), 1024), (Some(1024), 688), (Some(64), MIN_CONNECTIONS)]
        {
            assert_eq!(within(&limits, descriptors).connections, connections, "{descriptors:?}");
        }
    }
}
