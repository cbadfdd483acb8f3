//! `ask`: how fast questions are asked, answered and settled, next to the least that takes.
//!
//! Agents ask over HTTP and wait for the outcome. A subscriber hears the questions on a stream of server-sent
//! events and answers each at once by POST, half of them with accept and half with reject. Every outcome must be
//! the one that was answered. In the same run and in turn, the same number of messages goes over as many bare
//! sockets, and what the hub has to store is appended to a file, with one wait for the disk for all that wait.

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

use crate::rounds::{self, Pace, Turn};
use crate::serve::{Connection, Served};
use crate::table::{Amount, Block, Report, Target, Wanted};
use crate::timing::float;
use bare::Bare;
pub(crate) use subscriber::Subscriber;

/// After so many questions an agent begins another session.
const MAX_ASKS: u64 = 1000;

#[derive(Args)]
pub(crate) struct Options {
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

pub(crate) fn run(options: &Options) -> ExitCode {
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

/// Whether every question was settled as it was answered.
fn compare(options: &Options) -> Result<bool, String> {
    let place = |error| format!("{}: {error}", options.folder.display());
    let own = TempDir::new_in(&options.folder).map_err(place)?;
    let folder = TempDir::new_in(&options.folder).map_err(place)?;
    let served = Served::start_in(folder.path(), 300, "")?;
    let mut report = Report::default();
    report.say(format!("{} seconds at a time, best of {}.", options.seconds, options.rounds));
    let time = Duration::from_secs(options.seconds);
    let most = options.agents.iter().copied().max().unwrap_or(1);
    let _subscriber = Subscriber::start(&served, most)?;
    let bare = Bare::start(own.path(), most)?;
    let wrong = Arc::new(AtomicU64::new(0));
    let settled = Arc::new(AtomicU64::new(0));
    let mut sessions = 0;
    for agents in &options.agents {
        let mut best: [Option<Pace>; 2] = [None; 2];
        for _ in 0..options.rounds {
            let mut turns: Vec<Turn> = Vec::new();
            for _ in 0..*agents {
                sessions += 1;
                let mut agent = Agent::start(served.address(), sessions)?;
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
        let mut block = Block::new(format!("Agents that ask at once: {agents}"));
        block.line("the hub", hub.amounts("questions settled a second"));
        block.line("bare sockets and a file", least.amounts("round trips a second"));
        let ratio = hub.per_second / least.per_second;
        let slower = hub.spread.median / least.spread.median;
        block.line(
            "the hub by that",
            vec![Amount::new("rate", ratio, "times"), Amount::new("median", slower, "times")],
        );
        report.add(&block);
    }
    let (settled, wrong) = (settled.load(Ordering::Relaxed), wrong.load(Ordering::Relaxed));
    report.say(format!("\n{settled} questions were settled as they were answered."));
    report.judge(&[Target {
        what: "Questions that were settled otherwise than they were answered",
        wanted: Wanted::AtMost(0.0),
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

/// What is answered to a question, by its number.
fn decision(number: u64) -> &'static str {
    if number.is_multiple_of(2) { "accept" } else { "reject" }
}

/// An agent with a connection that stays.
struct Agent {
    connection: Connection,
    number: u64,
    session: u64,
    /// How many questions it has asked.
    asked: u64,
}

impl Agent {
    fn start(address: SocketAddr, number: u64) -> Result<Self, String> {
        let connection = Connection::open(address)?;
        let mut agent = Agent { connection, number, session: 0, asked: 0 };
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

    /// Asks and waits; whether the outcome is what was answered.
    fn ask(&mut self) -> Result<bool, String> {
        self.asked += 1;
        if self.asked.is_multiple_of(MAX_ASKS) {
            self.tell("completed")?;
            self.begin_session()?;
        }
        let token = format!("rpl_ask{}n{}", self.number, self.asked);
        let question = json!({
            "type": "aaep:agent.awaiting.confirmation", "session_id": self.session_id(),
            "producer": { "agent_id": "bench" }, "reply_token": token,
            "action": "Delete the database.", "consequence": "All that is in it is gone.",
            "risk_level": "high", "irreversible": true, "default_decision": "reject",
            "timeout_seconds": 300, "summary_normal": "May I delete the database?",
        });
        let path = "/aaep/v1/asks?wait_seconds=60";
        let answer = self.connection.post(path, "application/json", &question.to_string())?;
        let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        let is_same = answer["reply_token"] == token && answer["decided_by"] == "reply";
        Ok(is_same && answer["outcome"] == decision(self.asked))
    }
}
