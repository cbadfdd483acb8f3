//! Counts the events that arrived at a subscriber, and records when.

use super::listen::{ANY, CRITICAL, ORDINARY};

/// The number of events that arrived at one subscriber.
#[derive(Clone, Copy, Default)]
pub(super) struct EventTally {
    pub(super) ordinary: u64,
    pub(super) critical: u64,
    pub(super) any: u64,
    /// The number of ordinary events that arrived before the first critical one.
    pub(super) before_critical: Option<u64>,
}

impl EventTally {
    /// Counts the events in these bytes. Returns the number of ordinary ones.
    pub(super) fn take(&mut self, bytes: &[u8]) -> u64 {
        let ordinary = count(bytes, ORDINARY);
        self.any += count(bytes, ANY);
        let critical = count(bytes, CRITICAL);
        if critical > 0 && self.before_critical.is_none() {
            let before = bytes.split(|byte| *byte == CRITICAL).next().unwrap_or_default();
            self.before_critical = Some(self.ordinary + count(before, ORDINARY));
        }
        self.ordinary += ordinary;
        self.critical += critical;
        ordinary
    }

    /// The number of events that are missing or were repeated.
    pub(super) fn differs_from(&self, ordinary: u64, critical: u64) -> u64 {
        self.ordinary.abs_diff(ordinary) + self.critical.abs_diff(critical)
    }
}

/// Counts in pieces whose counts fit into a byte, which lets the compiler vectorize the loop.
pub(super) fn count(bytes: &[u8], wanted: u8) -> u64 {
    let piece = |piece: &[u8]| piece.iter().map(|byte| u8::from(*byte == wanted)).sum::<u8>();
    bytes.chunks(255).map(|bytes| u64::from(piece(bytes))).sum()
}

/// When events arrived: the number of each event among those of its kind, and the time.
#[derive(Default)]
pub(super) struct ArrivalTimes {
    ordinary: Vec<(u64, u64)>,
    critical: Vec<(u64, u64)>,
}

impl ArrivalTimes {
    /// Records the events by which a subscriber's tally grew.
    pub(super) fn note(&mut self, before: EventTally, after: EventTally, now_ns: u64) {
        self.ordinary.extend((before.ordinary..after.ordinary).map(|at| (at, now_ns)));
        self.critical.extend((before.critical..after.critical).map(|at| (at, now_ns)));
    }

    /// How long each delivery took, shortest first, given when the events were published.
    pub(super) fn latencies(&self, published_ns: &[u64], critical: bool) -> Vec<u64> {
        let came = if critical { &self.critical } else { &self.ordinary };
        let took = came.iter().filter_map(|(number, at)| {
            let published = published_ns.get(usize::try_from(*number).ok()?)?;
            Some(at.saturating_sub(*published))
        });
        let mut took: Vec<u64> = took.collect();
        took.sort_unstable();
        took
    }
}

/// The value that this share of the sorted numbers stays within; zero if there are none.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is a place in a list"
)]
pub(super) fn quantile(sorted: &[u64], part: f64) -> u64 {
    let at = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_and_what_came_before_the_critical_one_is_known() {
        let mut tally = EventTally::default();
        assert_eq!(tally.take(b"@^ @^ "), 2);
        assert_eq!(tally.take(b"@^ @| @^"), 2);
        assert_eq!((tally.ordinary, tally.critical, tally.any), (4, 1, 5));
        assert_eq!(tally.before_critical, Some(3));
        assert_eq!(tally.differs_from(4, 1), 0);
        assert_eq!(tally.differs_from(5, 0), 2);
    }

    #[test]
    fn a_latency_belongs_to_the_event_that_came() {
        let mut times = ArrivalTimes::default();
        let mut tally = EventTally::default();
        for (bytes, at) in [(&b"@^@^"[..], 130), (b"@|", 210)] {
            let before = tally;
            tally.take(bytes);
            times.note(before, tally, at);
        }
        assert_eq!(times.latencies(&[100, 125], false), [5, 30]);
        assert_eq!(times.latencies(&[200], true), [10]);
    }

    #[test]
    fn a_quantile_is_one_of_the_numbers() {
        let numbers: Vec<u64> = (1..=1000).collect();
        assert_eq!([0.5, 0.99, 0.999].map(|part| quantile(&numbers, part)), [500, 990, 999]);
        assert_eq!((quantile(&[7], 0.5), quantile(&[], 0.5)), (7, 0));
    }
}
