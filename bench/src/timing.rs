//! Timing in turns: every subject runs a batch, then every subject the next, so that whatever else
//! the machine does hits all alike.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::table::Amount;

/// Nanoseconds per run of a subject, over its batches.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    /// What 99 of 100 batches stay within.
    pub(crate) p99: f64,
}

impl Spread {
    /// The spread of numbers, of which there is at least one.
    pub(crate) fn of(mut numbers: Vec<f64>) -> Self {
        numbers.sort_unstable_by(f64::total_cmp);
        let at = |percent: usize| numbers[(numbers.len() - 1) * percent / 100];
        Spread { median: at(50), p99: at(99) }
    }

    pub(crate) fn amounts(self) -> Vec<Amount> {
        vec![Amount::new("median", self.median, "ns"), Amount::new("p99", self.p99, "ns")]
    }
}

/// How often things are run.
#[derive(Clone, Copy)]
pub(crate) struct Turns {
    pub(crate) rounds: u32,
    /// How many runs of one subject are timed together.
    pub(crate) batch: u32,
}

impl Turns {
    /// Runs the subjects in turns, after an unmeasured turn to warm up.
    pub(crate) fn run<const N: usize>(self, mut subjects: [&mut dyn FnMut(); N]) -> [Spread; N] {
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
        times.map(Spread::of)
    }
}

/// A count as a number to divide with.
#[expect(clippy::cast_precision_loss, reason = "no count here comes near 2^53")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

/// This moment as messages have it.
pub(crate) fn timestamp() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_us = i64::try_from(since.as_micros()).unwrap_or(0);
    let timestamp = aaep::Timestamp::from_unix_us(unix_us);
    timestamp.map_or_else(String::new, |it| it.as_str().to_owned())
}
