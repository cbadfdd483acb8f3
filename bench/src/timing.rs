//! Times subjects in turns: each runs one batch, then each runs the next, so that other load on the
//! machine affects all alike.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::table::NamedAmount;

/// The spread of measured values, such as nanoseconds per run of a subject over its batches.
#[derive(Clone, Copy)]
pub(crate) struct ValueSpread {
    pub(crate) median: f64,
    /// The value that 99 of 100 batches stay within.
    pub(crate) p99: f64,
}

impl ValueSpread {
    /// Computes the spread of the numbers, of which there must be at least one.
    pub(crate) fn of(mut numbers: Vec<f64>) -> Self {
        numbers.sort_unstable_by(f64::total_cmp);
        let at = |percent: usize| numbers[(numbers.len() - 1) * percent / 100];
        ValueSpread { median: at(50), p99: at(99) }
    }

    pub(crate) fn amounts(self) -> Vec<NamedAmount> {
        vec![NamedAmount::new("median", self.median, "ns"), NamedAmount::new("p99", self.p99, "ns")]
    }
}

/// How often subjects are run.
#[derive(Clone, Copy)]
pub(crate) struct TurnPlan {
    pub(crate) rounds: u32,
    /// The number of runs of one subject that are timed together.
    pub(crate) batch: u32,
}

impl TurnPlan {
    /// Runs the subjects in turns, after an unmeasured turn to warm up.
    pub(crate) fn run<const N: usize>(
        self,
        mut subjects: [&mut dyn FnMut(); N],
    ) -> [ValueSpread; N] {
        let mut times = [(); N].map(|()| Vec::new());
        for round in 0..=self.rounds {
            for (subject, times) in subjects.iter_mut().zip(&mut times) {
                let start = Instant::now();
                for _ in 0..self.batch {
                    subject();
                }
                let each = start.elapsed().as_secs_f64() * 1e9 / f64::from(self.batch);
                if round > 0 {
                    times.push(each);
                }
            }
        }
        times.map(ValueSpread::of)
    }
}

/// Converts a count for division.
#[expect(clippy::cast_precision_loss, reason = "no count here comes near 2^53")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

/// The current time in the form that messages use.
pub(crate) fn timestamp() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_us = i64::try_from(since.as_micros()).unwrap_or(0);
    let timestamp = aaep::Timestamp::from_unix_us(unix_us);
    timestamp.map_or_else(String::new, |it| it.as_str().to_owned())
}
