//! The subscribers of one server, as seen from the process that measures.

use std::fmt::Write as _;

use super::crowd::Crowd;
use super::part::Helper;
use super::server::Server;
use super::wire::Wire;

/// How many seconds it is waited for events before those that are missing count as lost.
const PATIENCE_SECONDS: u64 = 30;

/// Many subscribers, in a process of their own.
pub(super) struct Subscribers {
    helper: Helper,
    /// How many of them hear everything.
    full: usize,
}

/// How long deliveries took, in milliseconds.
#[derive(Clone, Copy)]
pub(super) struct Latencies {
    /// How many deliveries were timed.
    pub(super) count: u64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) p999: f64,
}

impl Subscribers {
    /// Lets them in; comes back when all are there.
    pub(super) fn start(
        server: &dyn Server,
        wire: Wire,
        crowd: Crowd,
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
        let mut helper = Helper::start(&arguments)?;
        helper.line()?;
        Ok(Subscribers { helper, full: crowd.full(subscribers) })
    }

    pub(super) fn full(&self) -> usize {
        self.full
    }

    /// Nothing has come, as of now.
    pub(super) fn forget(&mut self) -> Result<(), String> {
        self.helper.ask("forget").map(drop)
    }

    /// Waits until everyone has so many ordinary events since the last [`Subscribers::forget`]; whether they
    /// have.
    pub(super) fn wait(&mut self, events: usize) -> Result<bool, String> {
        Ok(self.helper.ask(&format!("wait {events} {PATIENCE_SECONDS}"))? == "reached")
    }

    /// How many deliveries are missing, or came too often.
    pub(super) fn losses(&mut self, ordinary: usize, critical: usize) -> Result<u64, String> {
        let answer = self.helper.ask(&format!("losses {ordinary} {critical}"))?;
        answer.parse().map_err(|_| format!("no number: {answer}"))
    }

    /// How many events those got who want few.
    pub(super) fn few(&mut self) -> Result<u64, String> {
        let answer = self.helper.ask("few")?;
        answer.parse().map_err(|_| format!("no number: {answer}"))
    }

    /// The most events that one of those got who want few.
    pub(super) fn most(&mut self) -> Result<u64, String> {
        let answer = self.helper.ask("most")?;
        answer.parse().map_err(|_| format!("no number: {answer}"))
    }

    /// From now on, it is noted when events come.
    pub(super) fn time(&mut self) -> Result<(), String> {
        self.helper.ask("time").map(drop)
    }

    /// How long deliveries took of events that were published at these moments.
    pub(super) fn latencies(
        &mut self,
        published_ns: &[u64],
        critical: bool,
    ) -> Result<Latencies, String> {
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
        Ok(Latencies { count, p50: ms(p50), p99: ms(p99), p999: ms(p999) })
    }

    /// Those who did not read do now.
    pub(super) fn resume(&mut self) -> Result<(), String> {
        self.helper.ask("resume").map(drop)
    }

    /// For each who was stalled and has heard something critical: how many ordinary events it had before,
    /// and how many it has in all.
    pub(super) fn overtaken(&mut self) -> Result<Vec<(u64, u64)>, String> {
        let answer = self.helper.ask("overtaken")?;
        let pair = |word: &str| {
            let (before, all) = word.split_once('/')?;
            Some((before.parse().ok()?, all.parse().ok()?))
        };
        Ok(answer.split_whitespace().filter_map(pair).collect())
    }
}
