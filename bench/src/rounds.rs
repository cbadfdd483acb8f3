//! Repeats an action in several threads at once for a while, and measures how often it ran in all
//! and how long one run took.

use std::thread;
use std::time::{Duration, Instant};

use crate::table::NamedAmount;
use crate::timing::{ValueSpread, float};

/// The repeated action of one thread.
pub(crate) type RepeatedTurn = Box<dyn FnMut() -> Result<(), String> + Send>;

/// The result for one subject.
#[derive(Clone, Copy)]
pub(crate) struct TurnPace {
    pub(crate) per_second: f64,
    /// The duration of one turn, in microseconds.
    pub(crate) spread: ValueSpread,
}

impl TurnPace {
    pub(crate) fn amounts(self, unit: &'static str) -> Vec<NamedAmount> {
        vec![
            NamedAmount::new("", self.per_second, unit),
            NamedAmount::new("median", self.spread.median, "microseconds"),
            NamedAmount::new("p99", self.spread.p99, "microseconds"),
        ]
    }
}

/// Repeats all turns, each in its own thread, for this long.
pub(crate) fn run(turns: Vec<RepeatedTurn>, time: Duration) -> Result<TurnPace, String> {
    let began = Instant::now();
    let threads: Vec<_> =
        turns.into_iter().map(|turn| thread::spawn(move || one(turn, began, time))).collect();
    let mut all = Vec::new();
    for thread in threads {
        all.extend(thread.join().map_err(|_| "a thread gave up")??);
    }
    let took = began.elapsed().as_secs_f64();
    let count = float(all.len() as u64);
    if all.is_empty() {
        return Err("nothing was done in time".to_owned());
    }
    Ok(TurnPace { per_second: count / took, spread: ValueSpread::of(all) })
}

/// Repeats one turn, at least once. Returns the duration of each run in microseconds.
fn one(mut turn: RepeatedTurn, began: Instant, time: Duration) -> Result<Vec<f64>, String> {
    let mut took = Vec::new();
    loop {
        let start = Instant::now();
        turn()?;
        took.push(start.elapsed().as_secs_f64() * 1e6);
        if began.elapsed() >= time {
            return Ok(took);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_turn_of_everyone_counts_and_a_failure_is_told() {
        let quick = || -> RepeatedTurn { Box::new(|| Ok(())) };
        let pace = run(vec![quick(), quick()], Duration::from_millis(10)).expect("a pace");
        assert!(pace.per_second > 0.0 && pace.spread.median <= pace.spread.p99);
        let failing: RepeatedTurn = Box::new(|| Err("no".to_owned()));
        let failed = run(vec![quick(), failing], Duration::from_millis(10));
        assert_eq!(failed.err().as_deref(), Some("no"));
    }
}
