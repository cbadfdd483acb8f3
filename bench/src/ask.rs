//! `ask`: how fast asks are published, answered and settled, compared with the least that this takes.
//!
//! Agents ask over HTTP and wait for the outcome. A subscriber receives the asks on a stream of
//! server-sent events and answers each at once by POST, half of them with accept and half with
//! reject. Every outcome must match its answer. In the same run, in alternation, the same number of
//! messages goes over as many bare sockets, and the bytes that the hub has to store are appended to
//! a file, with one wait for the disk for all pending writes.

mod bare;
mod subscriber;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rounds::{self, RepeatedTurn, TurnPace};
use crate::serve::{HttpConnection, ServedHub};
use crate::table::{BenchReport, BenchTarget, NamedAmount, ReportBlock, TargetBound};
use crate::timing::float;
use bare::BareSockets;
pub(crate) use subscriber::AnsweringSubscriber;

/// The number of asks after which an agent begins another session.
const MAX_ASKS: u64 = 1000;

#[derive(Args)]
pub(crate) struct AskBenchOptions {
    /// How many agents ask at once.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64],
          value_parser = clap::value_parser!(u64).range(1..=128))]
    agents: Vec<u64>,
    /// How long each is measured at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// How often each is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// Where files are written; it should be on a real disk.
    #[arg(long, value_name = "DIR", default_value = "target")]
    folder: PathBuf,
    /// Write the numbers to this file as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(options: &AskBenchOptions) -> ExitCode {
    match compare(options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => fail(&why),
    }
}

#[expect(clippy::print_stderr, reason = "it is a program that says why it failed")]
fn fail(why: &str) -> ExitCode {
    eprintln!("Asking could not be measured: {why}");
    ExitCode::from(2)
}

/// Measures everything. Returns whether every outcome matched its answer.
fn compare(options: &AskBenchOptions) -> Result<bool, String> {
    let place = |error| format!("{}: {error}", options.folder.display());
    let own = TempDir::new_in(&options.folder).map_err(place)?;
    let folder = TempDir::new_in(&options.folder).map_err(place)?;
    let served = ServedHub::start_in(folder.path(), 300, "")?;
    let mut report = BenchReport::default();
    report.say(format!("{} seconds at a time, best of {}.", options.seconds, options.rounds));
    let time = Duration::from_secs(options.seconds);
    let most = options.agents.iter().copied().max().unwrap_or(1);
    let _subscriber = AnsweringSubscriber::start(&served, most)?;
    let bare = BareSockets::start(own.path(), most)?;
    let wrong = Arc::new(AtomicU64::new(0));
    let settled = Arc::new(AtomicU64::new(0));
    let mut sessions = 0;
    for agents in &options.agents {
        let mut best: [Option<TurnPace>; 2] = [None; 2];
        for _ in 0..options.rounds {
            let mut turns: Vec<RepeatedTurn> = Vec::new();
            for _ in 0..*agents {
                sessions += 1;
                let mut agent = AskBenchAgent::start(served.address(), sessions)?;
                let (wrong, settled) = (Arc::clone(&wrong), Arc::clone(&settled));
                turns.push(Box::new(move || {
                    let is_right = agent.ask()?;
                    (if is_right { &settled } else { &wrong }).fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }));
            }
            let found = [rounds::run(turns, time)?, rounds::run(bare.turns(*agents)?, time)?];
            for (best, found) in best.iter_mut().zip(found) {
                let before = best.filter(|best| best.per_second > found.per_second);
                *best = Some(before.unwrap_or(found));
            }
        }
        let [Some(hub), Some(least)] = best else { continue };
        let mut block = ReportBlock::new(format!("Agents that ask at once: {agents}"));
        block.line("the hub", hub.amounts("questions settled a second"));
        block.line("bare sockets and a file", least.amounts("round trips a second"));
        let ratio = hub.per_second / least.per_second;
        let slower = hub.spread.median / least.spread.median;
        block.line(
            "the hub by that",
            vec![
                NamedAmount::new("rate", ratio, "times"),
                NamedAmount::new("median", slower, "times"),
            ],
        );
        report.add(&block);
    }
    let (settled, wrong) = (settled.load(Ordering::Relaxed), wrong.load(Ordering::Relaxed));
    report.say(format!("\n{settled} questions were settled as they were answered."));
    report.judge(&[BenchTarget {
        what: "Questions that were settled otherwise than they were answered",
        wanted: TargetBound::AtMost(0.0),
        unit: "questions",
        found: Some(float(wrong)),
    }]);
    served.stop()?;
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", report.to_json());
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(wrong == 0 && settled > 0)
}

/// The answer to the ask with this number.
fn decision(number: u64) -> &'static str {
    if number.is_multiple_of(2) { "accept" } else { "reject" }
}

/// An agent with a persistent connection.
struct AskBenchAgent {
    connection: HttpConnection,
    number: u64,
    session: u64,
    /// How many times it has asked.
    asked: u64,
}

impl AskBenchAgent {
    fn start(address: SocketAddr, number: u64) -> Result<Self, String> {
        let connection = HttpConnection::open(address)?;
        let mut agent = AskBenchAgent { connection, number, session: 0, asked: 0 };
        agent.begin_session()?;
        Ok(agent)
    }

    fn session_id(&self) -> String {
        format!("sess_ask{}s{}", self.number, self.session)
    }

    fn tell(&mut self, kind: &str) -> Result<(), String> {
        let event = json!({
            "type": format!("aaep:agent.session.{kind}"), "session_id": self.session_id(),
            "producer": { "agent_id": "bench" }, "summary_normal": "A session.",
        });
        let text = event.to_string();
        self.connection.post("/aaep/v1/publish", "application/json", &text).map(drop)
    }

    fn begin_session(&mut self) -> Result<(), String> {
        self.session += 1;
        self.tell("started")
    }

    /// Asks and waits. Returns whether the outcome matches the answer.
    fn ask(&mut self) -> Result<bool, String> {
        self.asked += 1;
        if self.asked.is_multiple_of(MAX_ASKS) {
            self.tell("completed")?;
            self.begin_session()?;
        }
        let token = format!("rpl_ask{}n{}", self.number, self.asked);
        let ask = json!({
            "type": "aaep:agent.awaiting.confirmation", "session_id": self.session_id(),
            "producer": { "agent_id": "bench" }, "reply_token": token,
            "action": "Delete the database.", "consequence": "All that is in it is gone.",
            "risk_level": "high", "irreversible": true, "default_decision": "reject",
            "timeout_seconds": 300, "summary_normal": "May I delete the database?",
        });
        let path = "/aaep/v1/asks?wait_seconds=60";
        let answer = self.connection.post(path, "application/json", &ask.to_string())?;
        let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        let is_same = answer["reply_token"] == token && answer["decided_by"] == "reply";
        Ok(is_same && answer["outcome"] == decision(self.asked))
    }
}
