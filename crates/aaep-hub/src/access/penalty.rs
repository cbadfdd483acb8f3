//! Penalties for sources that send wrong credentials, as in sshd.
//!
//! After a few wrong credentials from one source, its further ones are not checked at once for a while, and that
//! pause grows with each wrong one. They are not refused unseen, because another program of the same machine may
//! have a good one: the caller checks them in turn. Two kinds are always checked at once: a credential that was
//! good lately, and the one that was wrong just now, because a program that repeats it is not guessing. Other
//! sources are not affected. Memory is bounded. This file reads no clock: callers pass the time.
//!
//! Credentials have 256 random bits or a signature, so nobody finds one by guessing, however fast. What is slowed is
//! the work and the log that a flood of guesses would cause.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::access::PeerAddress;

/// The most sources that are remembered. The one that has been quiet the longest makes room.
pub(crate) const MAX_SOURCES: usize = 4096;

/// The most good credentials that are remembered, and for how long. The oldest makes room.
const MAX_GOOD: usize = 4096;
const GOOD_US: u64 = 24 * 3600 * 1_000_000;

/// The number of wrong credentials that are checked without a pause, to allow for typing errors and old
/// tokens.
const FREE_FAILURES: u32 = 10;

/// The first and the longest pause in checking after that.
const FIRST_PENALTY: Duration = Duration::from_millis(100);
const LONGEST_PENALTY: Duration = Duration::from_secs(10);

/// The time after which one wrong credential is forgiven, and the most that are counted.
const FORGIVEN_US: u64 = 10_000_000;
const MAX_FAILURES: u32 = 64;

/// Remembers which sources failed. Clones share their memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct CredentialPenalties {
    shared: Arc<Mutex<PenaltyState>>,
}

#[derive(Debug, Default)]
struct PenaltyState {
    sources: HashMap<PenaltySource, SourceFailures>,
    /// When each credential was last good.
    good: HashMap<CredentialHash, u64>,
}

/// The hash of a credential. The credential itself is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CredentialHash([u8; 32]);

impl CredentialHash {
    pub(crate) fn of(credential: &str) -> Self {
        CredentialHash(Sha256::digest(credential).into())
    }
}

/// Where credentials come from. For IPv6 only the first half of the address counts, because one person has
/// many addresses that differ in the second half. This machine is one source, because a program chooses any of
/// its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PenaltySource {
    V4(Ipv4Addr),
    V6([u16; 4]),
    Loopback,
    SameUser,
    OtherUser(u32),
}

#[derive(Debug, Clone, Copy, Default)]
struct SourceFailures {
    count: u32,
    /// When forgiving of the last failure began.
    since_us: u64,
    last_us: u64,
    /// The last wrong credential.
    last_wrong: Option<CredentialHash>,
    /// The time until which nothing is checked at once.
    penalty_until_us: u64,
    /// The number of checks in progress.
    checking: u32,
}

/// Permission to check one credential.
#[derive(Debug)]
pub(crate) struct CredentialCheck {
    source: PenaltySource,
    credential: CredentialHash,
    penalties: CredentialPenalties,
}

/// Nothing from this source is checked at once now. Says when it will be again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyFailures {
    pub(crate) retry_after: Duration,
}

impl CredentialPenalties {
    /// Starts the check of a credential, if it may be checked now.
    pub(crate) fn begin_check(
        &self,
        from: &PeerAddress,
        credential: CredentialHash,
        now_us: u64,
    ) -> Result<CredentialCheck, TooManyFailures> {
        let source = PenaltySource::of(from);
        let mut state = self.state();
        let is_known = state.good.get(&credential).is_some_and(|at| now_us <= at + GOOD_US);
        state.make_room(source);
        let failures = state.sources.entry(source).or_default();
        failures.forgive(now_us);
        let is_free = failures.count + failures.checking < FREE_FAILURES;
        let is_over = failures.penalty_until_us <= now_us && failures.checking == 0;
        if !(is_known || is_free || is_over || failures.last_wrong == Some(credential)) {
            let left_us = failures.penalty_until_us.saturating_sub(now_us);
            return Err(TooManyFailures { retry_after: Duration::from_micros(left_us) });
        }
        failures.checking += 1;
        drop(state);
        Ok(CredentialCheck { source, credential, penalties: self.clone() })
    }

    /// Notes that a credential is good.
    pub(crate) fn note_good(&self, credential: CredentialHash, now_us: u64) {
        let mut state = self.state();
        if state.good.len() >= MAX_GOOD && !state.good.contains_key(&credential) {
            let oldest = state.good.iter().min_by_key(|(_, at)| **at).map(|(hash, _)| *hash);
            oldest.and_then(|hash| state.good.remove(&hash));
        }
        state.good.insert(credential, now_us);
    }

    fn state(&self) -> MutexGuard<'_, PenaltyState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CredentialCheck {
    /// Notes that the credential is good.
    pub(crate) fn succeed(self, now_us: u64) {
        self.penalties.note_good(self.credential, now_us);
    }

    /// Notes that the credential is wrong.
    pub(crate) fn fail(self, now_us: u64) {
        let mut state = self.penalties.state();
        state.good.remove(&self.credential);
        let failures = state.sources.entry(self.source).or_default();
        failures.last_us = now_us;
        if failures.last_wrong.replace(self.credential) == Some(self.credential) {
            return;
        }
        failures.count = (failures.count + 1).min(MAX_FAILURES);
        if let Some(beyond) = failures.count.checked_sub(FREE_FAILURES) {
            let penalty = FIRST_PENALTY.saturating_mul(1 << beyond.min(16)).min(LONGEST_PENALTY);
            let penalty_us = u64::try_from(penalty.as_micros()).unwrap_or(u64::MAX);
            failures.penalty_until_us = now_us.saturating_add(penalty_us);
        }
    }
}

impl Drop for CredentialCheck {
    fn drop(&mut self) {
        let mut state = self.penalties.state();
        if let Some(failures) = state.sources.get_mut(&self.source) {
            failures.checking = failures.checking.saturating_sub(1);
        }
    }
}

impl PenaltyState {
    fn make_room(&mut self, new: PenaltySource) {
        if self.sources.len() < MAX_SOURCES || self.sources.contains_key(&new) {
            return;
        }
        // Sources with a check in progress are few, and stay.
        let quiet = self.sources.iter().filter(|(_, failures)| failures.checking == 0);
        let longest = quiet.min_by_key(|(_, failures)| failures.last_us).map(|(source, _)| *source);
        if let Some(source) = longest {
            self.sources.remove(&source);
        }
    }
}

impl SourceFailures {
    fn forgive(&mut self, now_us: u64) {
        let passed = now_us.saturating_sub(self.since_us) / FORGIVEN_US;
        let forgiven = u32::try_from(passed).unwrap_or(u32::MAX);
        if forgiven >= self.count {
            (self.count, self.since_us) = (0, now_us);
        } else {
            self.count -= forgiven;
            self.since_us = self.since_us.saturating_add(passed * FORGIVEN_US);
        }
    }
}

impl PenaltySource {
    fn of(address: &PeerAddress) -> Self {
        match address {
            PeerAddress::Ip(address) => match address.to_canonical() {
                address if address.is_loopback() => PenaltySource::Loopback,
                IpAddr::V4(address) => PenaltySource::V4(address),
                IpAddr::V6(address) => {
                    let [one, two, three, four, ..] = address.segments();
                    PenaltySource::V6([one, two, three, four])
                }
            },
            PeerAddress::SameUser => PenaltySource::SameUser,
            PeerAddress::OtherUser(user_id) => PenaltySource::OtherUser(*user_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> PeerAddress {
        PeerAddress::Ip(address.parse().expect("an address"))
    }

    /// Presents a wrong credential. Returns whether it was checked.
    fn guess(
        penalties: &CredentialPenalties,
        from: &PeerAddress,
        guess: &str,
        now_us: u64,
    ) -> bool {
        let check = penalties.begin_check(from, CredentialHash::of(guess), now_us);
        check.map(|check| check.fail(now_us)).is_ok()
    }

    #[test]
    fn hardly_any_guess_of_a_flood_is_checked_and_in_the_end_it_is_forgiven() {
        let penalties = CredentialPenalties::default();
        let here = from("127.0.0.1");
        // A thousand guesses a second, for a minute.
        let checked = |from_us: u64| {
            let numbers = (0..60_000).map(|number| from_us + number * 1000);
            numbers.filter(|us| guess(&penalties, &here, &us.to_string(), *us)).count()
        };
        assert_eq!(checked(0), 22, "ten at once, and then fewer and fewer");
        assert!(checked(60_000_000) < 10);
        let later = 120_000_000 + u64::from(MAX_FAILURES) * FORGIVEN_US;
        assert!((0..FREE_FAILURES).all(|number| guess(
            &penalties,
            &here,
            &number.to_string(),
            later
        )));
    }

    #[test]
    fn what_was_good_lately_and_other_sources_are_checked_at_once() {
        let penalties = CredentialPenalties::default();
        let (here, good) = (from("127.0.0.1"), CredentialHash::of("good"));
        penalties.begin_check(&here, good, 0).expect("a check").succeed(0);
        for number in 0..100 {
            guess(&penalties, &here, &number.to_string(), 0);
        }
        let refused = penalties.begin_check(&here, CredentialHash::of("new"), 0);
        assert_eq!(refused.expect_err("a penalty").retry_after, FIRST_PENALTY);
        assert!(!guess(&penalties, &from("127.0.0.2"), "new", 0), "it is the same machine");
        assert!(!guess(&penalties, &from("::1"), "new", 0), "it is the same machine");
        assert!(penalties.begin_check(&here, good, 0).is_ok());
        assert!(penalties.begin_check(&here, good, GOOD_US + 1).is_ok(), "the penalty is over");
        assert!(guess(&penalties, &from("192.0.2.1"), "new", 0));
    }

    #[test]
    fn a_program_that_repeats_an_old_token_is_not_guessing() {
        let penalties = CredentialPenalties::default();
        let here = from("127.0.0.1");
        assert!((0..100).all(|_| guess(&penalties, &here, "revoked", 0)));
        assert!(guess(&penalties, &here, "new", 0), "and keeps nobody out");
    }

    #[test]
    fn a_flood_at_one_moment_is_not_checked_either() {
        let penalties = CredentialPenalties::default();
        let here = from("::ffff:127.0.0.1");
        let begin =
            |number: u32| penalties.begin_check(&here, CredentialHash::of(&number.to_string()), 0);
        let checks: Vec<_> = (0..1000).filter_map(|number| begin(number).ok()).collect();
        assert_eq!(checks.len(), FREE_FAILURES as usize);
        assert!(!guess(&penalties, &from("127.0.0.1"), "one more", 0), "it is the same source");
        drop(checks);
        assert!(begin(0).is_ok());
    }

    #[test]
    fn a_crowd_of_sources_takes_bounded_memory_and_one_network_is_one_source() {
        let penalties = CredentialPenalties::default();
        for number in 0..u32::try_from(2 * MAX_SOURCES).expect("a number") {
            let address = PeerAddress::Ip(IpAddr::V4(Ipv4Addr::from(number)));
            let hash = CredentialHash::of(&number.to_string());
            let now_us = u64::from(number);
            penalties.begin_check(&address, hash, now_us).expect("a check").succeed(now_us);
            guess(&penalties, &address, "wrong", now_us);
        }
        assert_eq!(penalties.state().sources.len(), MAX_SOURCES);
        assert_eq!(penalties.state().good.len(), MAX_GOOD);
        for number in 0..=FREE_FAILURES {
            let address = from(&format!("2001:db8::{number:x}"));
            let is_checked = guess(&penalties, &address, &number.to_string(), u64::MAX / 2);
            assert_eq!(is_checked, number < FREE_FAILURES);
        }
    }
}
