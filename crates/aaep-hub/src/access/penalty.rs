//! Penalties for sources that send wrong credentials, as sshd has them.
//!
//! The answer to a wrong credential is held back, longer with each one. A right credential is never held
//! back, whatever other programs do from the same address. Memory is bounded, and so is how many answers are
//! held back at once. No clock: whoever asks brings the time.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::access::PeerAddress;

/// How many sources are remembered. The one that has been quiet for longest makes room.
pub(crate) const MAX_SOURCES: usize = 4096;

/// How many wrong credentials are answered at once, as typing errors and old tokens are.
const FREE: u32 = 10;

/// How long the first answer after that is held back, and how long any one is at most.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// In which time one wrong credential is forgiven, and how many are counted at most.
const FORGIVEN_US: u64 = 10_000_000;
const MAX_FAILURES: u32 = 64;

/// How many answers to one source are held back at once, and to all. Further ones are refused at once.
const MAX_HELD: usize = 8;
const MAX_HELD_IN_ALL: usize = 64;

/// Remembers who failed. Clones remember together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Penalties {
    shared: Arc<Mutex<Sources>>,
}

#[derive(Debug, Default)]
struct Sources {
    sources: HashMap<Source, Failures>,
    held: usize,
}

/// Where credentials come from. One person has many addresses of IPv6, which differ in their second half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    V4(Ipv4Addr),
    V6([u16; 4]),
    SameUser,
    OtherUser(u32),
}

#[derive(Debug, Clone, Copy, Default)]
struct Failures {
    count: u32,
    /// Since when the last of them is being forgiven.
    since_us: u64,
    last_us: u64,
    held: usize,
}

/// An answer that is held back for this long.
#[derive(Debug)]
pub(crate) struct HeldAnswer {
    pub(crate) delay: Duration,
    source: Source,
    penalties: Penalties,
}

/// More answers are held back than may be. The time after which it is worth trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyFailures {
    pub(crate) retry_after: Duration,
}

impl Penalties {
    /// A wrong credential came. None if it is answered at once.
    pub(crate) fn failed(
        &self,
        from: &PeerAddress,
        now_us: u64,
    ) -> Result<Option<HeldAnswer>, TooManyFailures> {
        let source = Source::of(from);
        let mut sources = self.sources();
        sources.make_room(source);
        let is_full = sources.held >= MAX_HELD_IN_ALL;
        let failures = sources.sources.entry(source).or_default();
        failures.forgive(now_us);
        failures.count = (failures.count + 1).min(MAX_FAILURES);
        failures.last_us = now_us;
        let Some(beyond) = failures.count.checked_sub(FREE + 1) else { return Ok(None) };
        let delay = FIRST.saturating_mul(1 << beyond.min(16)).min(LONGEST);
        if is_full || failures.held >= MAX_HELD {
            return Err(TooManyFailures { retry_after: delay });
        }
        failures.held += 1;
        sources.held += 1;
        Ok(Some(HeldAnswer { delay, source, penalties: self.clone() }))
    }

    fn sources(&self) -> MutexGuard<'_, Sources> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HeldAnswer {
    fn drop(&mut self) {
        let mut sources = self.penalties.sources();
        sources.held = sources.held.saturating_sub(1);
        if let Some(failures) = sources.sources.get_mut(&self.source) {
            failures.held = failures.held.saturating_sub(1);
        }
    }
}

impl Sources {
    fn make_room(&mut self, new: Source) {
        if self.sources.len() < MAX_SOURCES || self.sources.contains_key(&new) {
            return;
        }
        // Those whose answers are held back are few, and stay.
        let quiet = self.sources.iter().filter(|(_, failures)| failures.held == 0);
        let longest = quiet.min_by_key(|(_, failures)| failures.last_us).map(|(source, _)| *source);
        if let Some(source) = longest {
            self.sources.remove(&source);
        }
    }
}

impl Failures {
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

impl Source {
    fn of(address: &PeerAddress) -> Self {
        match address {
            PeerAddress::Ip(address) => match address.to_canonical() {
                IpAddr::V4(address) => Source::V4(address),
                IpAddr::V6(address) => {
                    let [one, two, three, four, ..] = address.segments();
                    Source::V6([one, two, three, four])
                }
            },
            PeerAddress::SameUser => Source::SameUser,
            PeerAddress::OtherUser(user_id) => Source::OtherUser(*user_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> PeerAddress {
        PeerAddress::Ip(address.parse().expect("an address"))
    }

    /// How long the next answer is held back, in milliseconds.
    fn next_ms(penalties: &Penalties, from: &PeerAddress, now_us: u64) -> u128 {
        let held = penalties.failed(from, now_us).expect("not too many");
        held.map_or(0, |held| held.delay.as_millis())
    }

    #[test]
    fn answers_to_wrong_credentials_come_later_and_later_up_to_a_limit() {
        let penalties = Penalties::default();
        let here = from("127.0.0.1");
        for _ in 0..FREE {
            assert_eq!(next_ms(&penalties, &here, 0), 0);
        }
        let delays: Vec<_> = (0..10).map(|_| next_ms(&penalties, &here, 0)).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
        assert_eq!(
            next_ms(&penalties, &from("127.0.0.2"), 0),
            0,
            "another source is not held back"
        );
        for _ in 0..1000 {
            next_ms(&penalties, &here, 0);
        }
        let later = u64::from(MAX_FAILURES) * FORGIVEN_US;
        assert_eq!(next_ms(&penalties, &here, later), 0, "and is forgiven in the end");
    }

    #[test]
    fn only_a_few_answers_are_held_back_at_once() {
        let penalties = Penalties::default();
        let here = from("::ffff:127.0.0.1");
        for _ in 0..FREE {
            next_ms(&penalties, &here, 0);
        }
        let mut held: Vec<_> =
            (0..MAX_HELD).map(|_| penalties.failed(&here, 0).expect("room")).collect();
        assert!(penalties.failed(&here, 0).is_err());
        assert!(penalties.failed(&from("127.0.0.1"), 0).is_err(), "it is the same source");
        held.pop();
        assert!(penalties.failed(&here, 0).is_ok());
    }

    #[test]
    fn a_crowd_of_sources_takes_bounded_memory_and_one_network_is_one_source() {
        let penalties = Penalties::default();
        for number in 0..u32::try_from(2 * MAX_SOURCES).expect("a number") {
            let address = PeerAddress::Ip(IpAddr::V4(Ipv4Addr::from(number)));
            let _ = penalties.failed(&address, u64::from(number));
        }
        assert_eq!(penalties.sources().sources.len(), MAX_SOURCES);
        for number in 0..=FREE {
            let held = penalties.failed(&from(&format!("2001:db8::{number:x}")), u64::MAX / 2);
            assert_eq!(held.expect("not too many").is_some(), number == FREE);
        }
    }
}
