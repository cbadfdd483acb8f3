//! The subscribers of one server, as the measuring process controls them.

use std::fmt::Write as _;

use super::crowd::SubscriberCrowd;
use super::part::HelperProcess;
use super::server::FanoutServer;
use super::wire::FanoutWire;

/// How many seconds to wait for events before the missing ones count as lost.
const PATIENCE_SECONDS: u64 = 30;

/// Many subscribers in their own process.
pub(super) struct SubscriberProcess {
    helper: HelperProcess,
    /// The number of subscribers that receive everything.
    full: usize,
}

/// How long deliveries took, in milliseconds.
#[derive(Clone, Copy)]
pub(super) struct DeliveryLatencies {
    /// The number of timed deliveries.
    pub(super) count: u64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) p999: f64,
}

impl SubscriberProcess {
    /// Connects the subscribers. Returns when all are connected.
    pub(super) fn start(
        server: &dyn FanoutServer,
        wire: FanoutWire,
        crowd: SubscriberCrowd,
        subscribers: usize,
    ) -> Result<Self, String> {
        let arguments = [
            "listen",
            "--kind",
            server.kind().word(),
            "--wire",
            wire.word(),
            "--crowd",
            crowd.word(),
            "--address",
            &server.address().text(),
            "--subscribers",
            &subscribers.to_string(),
        ];
        let mut helper = HelperProcess::start(&arguments)?;
        helper.line()?;
        Ok(SubscriberProcess { helper, full: crowd.full(subscribers) })
    }

    pub(super) fn full(&self) -> usize {
        self.full
    }

    /// Resets all counts.
    pub(super) fn forget(&mut self) -> Result<(), String> {
        self.helper.ask("forget").map(drop)
    }

    /// Waits until all subscribers have this many ordinary events since the last
    /// [`SubscriberProcess::forget`]. Returns whether they do.
    pub(super) fn wait(&mut self, events: usize) -> Result<bool, String> {
        Ok(self.helper.ask(&format!("wait {events} {PATIENCE_SECONDS}"))? == "reached")
    }

    /// The number of deliveries that are missing or were repeated.
    pub(super) fn losses(&mut self, ordinary: usize, critical: usize) -> Result<u64, String> {
        let answer = self.helper.ask(&format!("losses {ordinary} {critical}"))?;
        answer.parse().map_err(|_| format!("not a number: {answer}"))
    }

    /// The number of events that the subscribers that want few received.
    pub(super) fn few(&mut self) -> Result<u64, String> {
        let answer = self.helper.ask("few")?;
        answer.parse().map_err(|_| format!("not a number: {answer}"))
    }

    /// The most events that one of the subscribers that want few received.
    pub(super) fn most(&mut self) -> Result<u64, String> {
        let answer = self.helper.ask("most")?;
        answer.parse().map_err(|_| format!("not a number: {answer}"))
    }

    /// Starts to record when events arrive.
    pub(super) fn time(&mut self) -> Result<(), String> {
        self.helper.ask("time").map(drop)
    }

    /// The latencies of events that were published at these times.
    pub(super) fn latencies(
        &mut self,
        published_ns: &[u64],
        critical: bool,
    ) -> Result<DeliveryLatencies, String> {
        let mut line = if critical { "critical" } else { "ordinary" }.to_owned();
        for moment in published_ns {
            write!(line, " {moment}").map_err(|error| error.to_string())?;
        }
        let answer = self.helper.ask(&line)?;
        let numbers: Vec<u64> = answer.split(' ').filter_map(|it| it.parse().ok()).collect();
        let [count, p50, p99, p999] = numbers[..] else {
            return Err(format!("no numbers: {answer}"));
        };
        let ms = |ns: u64| crate::timing::float(ns) / 1e6;
        Ok(DeliveryLatencies { count, p50: ms(p50), p99: ms(p99), p999: ms(p999) })
    }

    /// Lets the stalled subscribers read again.
    pub(super) fn resume(&mut self) -> Result<(), String> {
        self.helper.ask("resume").map(drop)
    }

    /// For each stalled subscriber that received a critical event: how many ordinary events it had
    /// before that, and how many in all.
    pub(super) fn overtaken(&mut self) -> Result<Vec<(u64, u64)>, String> {
        let answer = self.helper.ask("overtaken")?;
        let pair = |word: &str| {
            let (before, all) = word.split_once('/')?;
            Some((before.parse().ok()?, all.parse().ok()?))
        };
        Ok(answer.split_whitespace().filter_map(pair).collect())
    }
}
