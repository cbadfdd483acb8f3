//! Counts the stored bytes of each principal's running sessions (ruling 38).
//!
//! Running sessions are never swept, so without a limit one of them could fill the whole disk. A principal at
//! its limit is told to end a session; its ended sessions are swept before those of others.

use std::collections::HashMap;

use aaep::SessionId;
use aaep_engine::PrincipalNumber;

use crate::store::StoredSession;

/// All principals together may have as many bytes in running sessions as this many principals at their limit.
/// Beyond that, a principal may not have more than an equal part.
const SHARES_IN_ALL: u64 = 4;

/// The stored bytes of running sessions.
#[derive(Debug)]
pub(super) struct RunningBytes {
    max_each: u64,
    sessions: HashMap<SessionId, (PrincipalNumber, u64)>,
    held: HashMap<PrincipalNumber, u64>,
    total: u64,
}

impl RunningBytes {
    /// Counts the bytes of all stored sessions that are running.
    pub(super) fn new(max_each: u64, stored: &[StoredSession]) -> Self {
        let mut all =
            RunningBytes { max_each, sessions: HashMap::new(), held: HashMap::new(), total: 0 };
        for session in stored.iter().filter(|session| session.ended_unix_us.is_none()) {
            all.add(&session.session_id, session.principal, session.bytes);
        }
        all
    }

    /// Adds bytes that are stored for a session.
    pub(super) fn add(&mut self, session_id: &SessionId, principal: PrincipalNumber, bytes: u64) {
        if let Some((_, of_session)) = self.sessions.get_mut(session_id) {
            *of_session += bytes;
        } else {
            self.sessions.insert(session_id.clone(), (principal, bytes));
        }
        *self.held.entry(principal).or_default() += bytes;
        self.total += bytes;
    }

    /// Removes a session that has ended and can be swept.
    pub(super) fn end(&mut self, session_id: &SessionId) {
        let Some((principal, bytes)) = self.sessions.remove(session_id) else { return };
        self.total = self.total.saturating_sub(bytes);
        if let Some(held) = self.held.get_mut(&principal) {
            *held = held.saturating_sub(bytes);
            if *held == 0 {
                self.held.remove(&principal);
            }
        }
    }

    /// Whether more may be stored in the sessions of this principal.
    pub(super) fn has_room(&self, principal: PrincipalNumber) -> bool {
        let held = self.held.get(&principal).copied().unwrap_or(0);
        let in_all = self.max_each.saturating_mul(SHARES_IN_ALL);
        let even_part = in_all / (self.held.len() as u64).max(1);
        held < self.max_each && (self.total < in_all || held < even_part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> SessionId {
        SessionId::parse(&format!("sess_{name}")).expect("letters")
    }

    #[test]
    fn each_has_its_bound_and_the_end_of_a_session_gives_room_back() {
        let mut bytes = RunningBytes::new(100, &[]);
        bytes.add(&session("a"), PrincipalNumber(1), 99);
        assert!(bytes.has_room(PrincipalNumber(1)));
        bytes.add(&session("a"), PrincipalNumber(1), 1);
        assert!(!bytes.has_room(PrincipalNumber(1)) && bytes.has_room(PrincipalNumber(2)));
        bytes.end(&session("a"));
        assert!(bytes.has_room(PrincipalNumber(1)));
        assert_eq!(bytes.total, 0);
    }

    #[test]
    fn many_principals_together_leave_room_for_one_that_has_less() {
        let mut bytes = RunningBytes::new(100, &[]);
        for principal in 0..8 {
            bytes.add(&session(&principal.to_string()), PrincipalNumber(principal), 60);
        }
        assert!((0..8).all(|principal| !bytes.has_room(PrincipalNumber(principal))));
        assert!(bytes.has_room(PrincipalNumber(9)));
    }
}
