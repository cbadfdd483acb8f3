//! Measures the age of data in time that the hub itself has seen pass.
//!
//! The machine's clock may jump, and one start with a wrong date must not delete what is kept for thirty days.
//! So ages are counted: while the hub runs, time counts as it passes, by the monotonic clock. The time between
//! a stop and the next start looks the same as a jump of the clock. Both are doubted until the hub has run for
//! a part of that time with a stable clock; if the clock is set back, its jump is taken back. The count never
//! goes backwards.

use aaep_engine::Now;
use redb::ReadableTable;

use crate::store::fault::StoreFault;
use crate::store::table::RowReader;

/// A jump of the clock is believed after the hub has run for a fraction of its length: one part in this many.
const PROOF: u64 = 48;

/// A longer jump is not a stop but a clock that was set for the first time. It is not counted.
const MAX_STOP_US: u64 = 366 * 24 * 3_600_000_000;

/// An adjustment of less than this is not a jump.
const JITTER_US: u64 = 1_000_000;

/// The counted time, as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CountedTime {
    /// How much time has passed since a version that counts time first opened the store.
    pub(crate) counted_us: u64,
    /// Up to which time of the machine's clock this counts; `None` before the first reading.
    clock_mark: Option<i64>,
    /// How much of that is doubted and not counted yet.
    doubted_us: u64,
    /// How much was counted when the clock last jumped.
    jumped_at_us: u64,
}

impl CountedTime {
    const KEY: &'static str = "counted time";

    /// Reads the clocks. `passed_us` is the time since the last reading, by the monotonic clock; zero at a
    /// start.
    pub(crate) fn look(&mut self, unix_us: i64, passed_us: u64) {
        self.counted_us = self.counted_us.saturating_add(passed_us);
        let passed = i64::try_from(passed_us).unwrap_or(i64::MAX);
        let expected = self.clock_mark.unwrap_or(unix_us).saturating_add(passed);
        let (ahead_us, is_ahead) = (unix_us.abs_diff(expected), unix_us > expected);
        self.clock_mark = Some(expected.max(unix_us));
        if is_ahead && ahead_us < JITTER_US {
            self.counted_us = self.counted_us.saturating_add(ahead_us);
        } else if is_ahead && ahead_us <= MAX_STOP_US {
            self.doubted_us = self.doubted_us.saturating_add(ahead_us);
            self.jumped_at_us = self.counted_us;
        } else if !is_ahead {
            let back_us = ahead_us.min(self.doubted_us);
            self.doubted_us -= back_us;
            let back = i64::try_from(back_us).unwrap_or(i64::MAX);
            self.clock_mark = Some(expected.saturating_sub(back));
        }
        let proof_us = self.counted_us.saturating_sub(self.jumped_at_us);
        if proof_us >= self.doubted_us.div_ceil(PROOF) {
            self.counted_us = self.counted_us.saturating_add(std::mem::take(&mut self.doubted_us));
        }
    }

    /// Whether the machine's clock is believed.
    pub(crate) fn is_believed(&self) -> bool {
        self.doubted_us == 0
    }

    pub(crate) fn write(
        self,
        meta: &mut redb::Table<'_, &'static str, &'static [u8]>,
    ) -> Result<(), StoreFault> {
        let mark = self.clock_mark.unwrap_or(i64::MIN);
        let mut bytes = Vec::with_capacity(32);
        bytes.extend(self.counted_us.to_le_bytes());
        bytes.extend(mark.to_le_bytes());
        bytes.extend(self.doubted_us.to_le_bytes());
        bytes.extend(self.jumped_at_us.to_le_bytes());
        meta.insert(Self::KEY, bytes.as_slice())?;
        Ok(())
    }

    /// Reads the stored count. It is zero in a store from an earlier version.
    pub(crate) fn read(
        meta: &impl ReadableTable<&'static str, &'static [u8]>,
    ) -> Result<Self, StoreFault> {
        let Some(found) = meta.get(Self::KEY)? else { return Ok(CountedTime::default()) };
        let mut row = RowReader::new(found.value(), "meta");
        Ok(CountedTime {
            counted_us: row.number()?,
            clock_mark: row.optional_moment()?,
            doubted_us: row.number()?,
            jumped_at_us: row.number()?,
        })
    }
}

/// The counted time of an open store.
#[derive(Debug, Default)]
pub(crate) struct AgeClock {
    pub(crate) now: CountedTime,
    /// The part that is stored.
    pub(crate) stored: CountedTime,
    /// When the clocks were last read, by the monotonic clock of this process.
    looked_us: Option<u64>,
}

impl AgeClock {
    pub(crate) fn new(stored: CountedTime) -> Self {
        AgeClock { now: stored, stored, looked_us: None }
    }

    pub(crate) fn look(&mut self, now: Now) {
        let before_us = self.looked_us.replace(now.monotonic_us).unwrap_or(now.monotonic_us);
        self.now.look(now.unix_us, now.monotonic_us.saturating_sub(before_us));
    }

    /// Whether enough time was counted since the last write to write it again.
    pub(crate) fn is_behind(&self) -> bool {
        const HOUR_US: u64 = 3_600_000_000;
        self.now.counted_us.saturating_sub(self.stored.counted_us) >= HOUR_US
            || self.now.doubted_us != self.stored.doubted_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_US: u64 = 3_600_000_000;
    const DAY_US: u64 = 24 * HOUR_US;

    fn at(days: i64) -> i64 {
        1_790_000_000_000_000 + days * DAY_US.cast_signed()
    }

    /// Counts for a while, with regular readings.
    fn run(time: &mut CountedTime, unix_us: &mut i64, for_us: u64) {
        for _ in 0..100 {
            *unix_us += (for_us / 100).cast_signed();
            time.look(*unix_us, for_us / 100);
        }
    }

    #[test]
    fn time_that_the_hub_runs_counts_as_it_passes() {
        let mut time = CountedTime::default();
        let mut unix_us = at(0);
        time.look(unix_us, 0);
        run(&mut time, &mut unix_us, 3 * DAY_US);
        assert_eq!(time.counted_us, 3 * DAY_US);
    }

    #[test]
    fn one_start_with_a_wrong_date_counts_nothing() {
        let mut time = CountedTime::default();
        time.look(at(0), 0);
        let mut unix_us = at(40);
        time.look(unix_us, 0);
        run(&mut time, &mut unix_us, HOUR_US);
        assert_eq!(time.counted_us, HOUR_US, "forty days are doubted");
        // The clock is corrected.
        time.look(at(0) + HOUR_US.cast_signed(), 0);
        assert!(time.is_believed());
        let mut unix_us = at(0) + HOUR_US.cast_signed();
        run(&mut time, &mut unix_us, 2 * DAY_US);
        assert_eq!(time.counted_us, HOUR_US + 2 * DAY_US);
    }

    #[test]
    fn a_stop_counts_when_the_clock_held_still_for_a_while_after_it() {
        let mut time = CountedTime::default();
        time.look(at(0), 0);
        let mut unix_us = at(40);
        time.look(unix_us, 0);
        run(&mut time, &mut unix_us, 2 * DAY_US);
        assert_eq!(time.counted_us, 42 * DAY_US);
        let mut unix_us = unix_us + 8 * HOUR_US.cast_signed();
        time.look(unix_us, 0);
        run(&mut time, &mut unix_us, HOUR_US);
        assert_eq!(time.counted_us, 42 * DAY_US + 9 * HOUR_US, "a night is believed soon");
    }

    #[test]
    fn a_clock_that_is_set_for_the_first_time_counts_nothing() {
        let mut time = CountedTime::default();
        time.look(0, 0);
        let mut unix_us = at(0);
        time.look(unix_us, 0);
        run(&mut time, &mut unix_us, 3 * DAY_US);
        assert_eq!(time.counted_us, 3 * DAY_US);
        assert!(time.is_believed());
    }

    #[test]
    fn a_clock_that_goes_to_and_fro_counts_nothing_twice() {
        let mut time = CountedTime::default();
        time.look(at(0), 0);
        for _ in 0..20 {
            time.look(at(1), 0);
            time.look(at(0), 0);
        }
        assert_eq!(time.counted_us, 0);
        for _ in 0..20 {
            let mut unix_us = at(1);
            time.look(unix_us, 0);
            run(&mut time, &mut unix_us, HOUR_US);
            time.look(at(0), 0);
        }
        assert!(time.counted_us <= 2 * DAY_US + 20 * HOUR_US, "{}", time.counted_us / HOUR_US);
    }

    #[test]
    fn no_clock_makes_it_go_back_or_panic() {
        let mut time = CountedTime::default();
        let mut before = 0;
        for unix_us in [0, i64::MAX, i64::MIN, -1, i64::MAX - 1, 7] {
            for passed_us in [0, 1, u64::MAX / 2, u64::MAX] {
                time.look(unix_us, passed_us);
                assert!(time.counted_us >= before);
                before = time.counted_us;
            }
        }
    }
}
