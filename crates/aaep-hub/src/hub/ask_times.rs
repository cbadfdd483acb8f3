//! Stores the time of open asks again and again, so that a clock that is set back while the hub is down gives no
//! ask more time.

use std::time::Duration;

use aaep_engine::Now;

use super::owner::EngineOwner;
use crate::store::{StoreChange, StoredTime};

/// How often the time of open asks is stored. In one commit for all of them.
pub(super) const STORE_TIMES_EVERY: Duration = Duration::from_secs(15);

/// The time of an ask, as it was stored last, and when that was by the clock that never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LastAskTime {
    pub(super) time: StoredTime,
    pub(super) monotonic_us: u64,
}

impl LastAskTime {
    /// The same time by the clock of the machine as it goes now, whether or not it was set meanwhile.
    fn at(&self, now: Now, event_unix_us: Option<i64>) -> StoredTime {
        let passed_us = now.monotonic_us.saturating_sub(self.monotonic_us);
        let passed_us = i64::try_from(passed_us).unwrap_or(i64::MAX);
        let before = self.time.stored_unix_us.unwrap_or(now.unix_us);
        let set_by_us = now.unix_us.saturating_sub(before).saturating_sub(passed_us);
        StoredTime {
            ends_unix_us: self.time.ends_unix_us.map(|it| it.saturating_add(set_by_us)),
            limit_unix_us: self.time.limit_unix_us.saturating_add(set_by_us),
            stored_unix_us: Some(now.unix_us),
            event_unix_us,
            ..self.time
        }
    }
}

/// What is known of the time of an ask after a stop. If the clock was set back, it is not known how long the hub
/// went on after it stored the time. So that many restarts never add up to more time for an ask, it counts as long
/// as it can have been.
pub(super) fn after_stop(time: StoredTime, now: Now) -> StoredTime {
    let most_us = i64::try_from(STORE_TIMES_EVERY.as_micros()).unwrap_or(i64::MAX);
    let went_on =
        |stored: i64| if now.unix_us < stored { stored.saturating_add(most_us) } else { stored };
    StoredTime { stored_unix_us: time.stored_unix_us.map(went_on), ..time }
}

impl EngineOwner {
    /// Stores how much time all open asks have left, unless something else waits for the disk.
    pub(super) fn store_ask_times_again(&mut self) {
        if self.batch.is_empty() {
            self.store_ask_times();
        }
    }

    /// Stores how much time all open asks have left.
    pub(super) fn store_ask_times(&mut self) {
        let now = self.clock.now();
        let event_unix_us = self.event_unix_us;
        let moved = self.asks.iter().filter_map(|(reply_token, ask)| {
            let time = ask.time?.at(now, event_unix_us);
            Some(StoreChange::AskMoved { reply_token: reply_token.clone(), time })
        });
        self.batch.changes.extend(moved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn stored(now: Now, left_us: i64) -> LastAskTime {
        let time = StoredTime {
            ends_unix_us: Some(now.unix_us + left_us),
            left_us: None,
            limit_unix_us: now.unix_us + 2 * left_us,
            changes: 1,
            stored_unix_us: Some(now.unix_us),
            event_unix_us: Some(3),
        };
        LastAskTime { time, monotonic_us: now.monotonic_us }
    }

    fn at(seconds: i64, unix_seconds: i64) -> Now {
        let monotonic_us = u64::try_from(seconds * SECOND).expect("not negative");
        Now { monotonic_us, unix_us: unix_seconds * SECOND }
    }

    /// How much is left at a start, by the rule of the engine: never more than when it was stored.
    fn left_us(time: StoredTime, now: Now) -> i64 {
        let from = time.stored_unix_us.expect("when").max(now.unix_us);
        (time.ends_unix_us.expect("it runs") - from).max(0)
    }

    #[test]
    fn what_is_stored_again_follows_the_clock_that_never_goes_back() {
        let last = stored(at(100, 5000), 60 * SECOND);
        for clock in [5015, 5000, 1400, 90_000] {
            let time = last.at(at(115, clock), Some(7));
            assert_eq!(time.stored_unix_us, Some(clock * SECOND));
            assert_eq!(time.ends_unix_us, Some((clock + 45) * SECOND));
            assert_eq!(time.limit_unix_us, (clock + 105) * SECOND);
            assert_eq!((time.changes, time.event_unix_us), (1, Some(7)));
        }
    }

    #[test]
    fn many_kills_with_the_clock_set_back_give_an_ask_no_more_time() {
        for run in [1, 2, 7, 14] {
            let mut clock = 1_000_000;
            let mut last = stored(at(0, clock), 60 * SECOND);
            let mut open = 0;
            for _ in 0..100 {
                // It runs for less than it takes to store the time again, and is killed.
                open += run;
                clock -= 3600;
                let now = at(0, clock);
                let left = left_us(after_stop(last.time, now), now);
                if left == 0 {
                    break;
                }
                last = stored(now, left);
            }
            assert!(open <= 60 + 15, "killed every {run} s, it was open for {open} s");
        }
    }

    #[test]
    fn a_restart_with_a_right_clock_takes_only_the_time_that_passed() {
        let last = stored(at(0, 5000), 60 * SECOND);
        let now = at(0, 5010);
        assert_eq!(after_stop(last.time, now), last.time);
        assert_eq!(left_us(after_stop(last.time, now), now), 50 * SECOND);
    }
}
