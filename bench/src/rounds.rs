//! Several at once do the same again and again for a while: how often in all, and how long one time takes.

use std::thread;
use std::time::{Duration, Instant};

use crate::table::Amount;
use crate::timing::{Spread, float};

/// One of those who do something again and again.
pub(crate) type Turn = Box<dyn FnMut() -> Result<(), String> + Send>;

/// What came out for one subject.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) per_second: f64,
    /// Microseconds of one turn.
    pub(crate) spread: Spread,
}

impl Pace {
    pub(crate) fn amounts(self, unit: &'static str) -> Vec<Amount> {
        vec![
            Amount::new("", self.per_second, unit),
            Amount::new("median", self.spread.median, "microseconds"),
            Amount::new("p99", self.spread.p99, "microseconds"),
        ]
    }
}

/// Lets all of them go on for so long.
pub(crate) fn run(turns: Vec<Turn>, time: Duration) -> Result<Pace, String> {
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
    Ok(Pace { per_second: count / took, spread: Spread::of(all) })
}

/// How many microseconds each turn took; everyone has one at least.
fn one(mut turn: Turn, began: Instant, time: Duration) -> Result<Vec<f64>, String> {
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
        let quick = || -> Turn { Box::new(|| Ok(())) };
        let pace = run(vec![quick(), quick()], Duration::from_millis(10)).expect("a pace");
        assert!(pace.per_second > 0.0 && pace.spread.median <= pace.spread.p99);
        let failing: Turn = Box::new(|| Err("no".to_owned()));
        let failed = run(vec![quick(), failing], Duration::from_millis(10));
        assert_eq!(failed.err().as_deref(), Some("no"));
    }
}
