//! Waiting for reports, with a bound that only a device that hangs reaches.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use aaep_announce::device::TimedReport;
use aaep_announce::{DeviceReport, Utterance, UtteranceId, UtteranceKind, Weight};

/// How long anything may take before a test gives up. Nothing is measured by it.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The reports of one device, in the order in which they came.
pub(crate) struct Reports {
    receiver: Receiver<TimedReport>,
    seen: Vec<DeviceReport>,
}

impl Reports {
    pub(crate) fn new() -> (Sender<TimedReport>, Self) {
        let (sender, receiver) = mpsc::channel();
        (sender, Reports { receiver, seen: Vec::new() })
    }

    /// Waits for the next report.
    pub(crate) fn next(&mut self) -> DeviceReport {
        let told = self.receiver.recv_timeout(PATIENCE);
        let told = told.unwrap_or_else(|_| panic!("no further report came after {:?}", self.seen));
        self.seen.push(told.report.clone());
        told.report
    }

    /// The next report, if one comes within that time.
    pub(crate) fn within(&mut self, time: Duration) -> Option<DeviceReport> {
        let told = self.receiver.recv_timeout(time).ok()?;
        self.seen.push(told.report.clone());
        Some(told.report)
    }

    /// Waits for a report, passing over others.
    pub(crate) fn until(&mut self, wanted: impl Fn(&DeviceReport) -> bool) -> DeviceReport {
        loop {
            let report = self.next();
            if wanted(&report) {
                return report;
            }
        }
    }

    /// Waits for this report, passing over others.
    pub(crate) fn until_is(&mut self, wanted: &DeviceReport) {
        self.until(|report| report == wanted);
    }

    /// What came so far and what comes within a moment.
    pub(crate) fn after(&mut self, moment: Duration) -> Vec<DeviceReport> {
        let until = Instant::now() + moment;
        while let Ok(told) =
            self.receiver.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            self.seen.push(told.report);
        }
        self.seen.clone()
    }

    pub(crate) fn seen(&self) -> &[DeviceReport] {
        &self.seen
    }
}

/// Waits until something holds.
pub(crate) fn wait_until<T>(what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = holds() {
            return value;
        }
        assert!(Instant::now() < until, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Something to say.
pub(crate) fn utterance(id: UtteranceId, weight: Weight, words: &str) -> Utterance {
    Utterance {
        id,
        kind: UtteranceKind::Reply,
        weight,
        words: words.to_owned(),
        language: None,
        parts: Vec::new(),
        is_right_to_left: false,
        choices: Vec::new(),
        number: None,
        is_continued: false,
    }
}
