//! `publish`: how many events agents can publish durably, compared with what the disk allows.
//!
//! Agents send events over HTTP to `aaep serve`, whose store is on a real disk. Each waits for its
//! answer, which comes when the event is stored. In the same run, in alternation, they send the same
//! to a hub without a journal, which shows what the journal is good for, and to the hub of another
//! build if one is named. As many threads hand the same bytes to one writer that appends them to a
//! file, or commits them to a table of redb, with one wait for the disk for all pending writes. That
//! is the limit: it reads no request, checks nothing and notifies nobody. Between the two is a
//! hand-written HTTP server that does nothing but append.

mod by_hand;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tempfile::TempDir;

use crate::group::{GroupDisk, GroupWriter, WriteRequest};
use crate::rounds::{self, RepeatedTurn, TurnPace};
use crate::serve::{HttpConnection, ServedHub};
use crate::table::{BenchReport, BenchTarget, NamedAmount, ReportBlock, TargetBound};
use crate::timing::{float, timestamp};

/// How many agents are many.
const MANY_AGENTS: u64 = 8;

/// The length of an event's JSON in bytes.
const EVENT_BYTES: usize = 500;

/// The number of events after which an agent begins another session.
const MAX_EVENTS: u64 = 8000;

#[derive(Args)]
pub(crate) struct PublishBenchOptions {
    /// How many agents publish at once.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64],
          value_parser = clap::value_parser!(u64).range(1..=256))]
    agents: Vec<u64>,
    /// How many events each request has.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 32],
          value_parser = clap::value_parser!(u64).range(1..=256))]
    batch: Vec<u64>,
    /// How long each is measured at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// How often each is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// Where files are written; it should be on a real disk.
    #[arg(long, value_name = "DIR", default_value = "target")]
    folder: PathBuf,
    /// How much memory the hubs may use for histories, in MiB; the default of a hub if not given. A hub whose
    /// memory is full also drops an old event for each new one.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    memory: Option<u64>,
    /// Measure the hub of this program in the same run, too: `aaep` of another build.
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,
    /// Write the numbers to this file as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The result for one subject: how fast it is, and how often it waited for the disk per second.
#[derive(Clone, Copy)]
struct PublishFindings {
    pace: TurnPace,
    syncs_per_second: f64,
    /// The hub's processor time for one event, in microseconds.
    cpu: Option<f64>,
}

pub(crate) fn run(options: &PublishBenchOptions) -> ExitCode {
    match compare(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => fail(&why),
    }
}

#[expect(clippy::print_stderr, reason = "it is a program that says why it failed")]
fn fail(why: &str) -> ExitCode {
    eprintln!("Publishing could not be measured: {why}");
    ExitCode::from(2)
}

fn compare(options: &PublishBenchOptions) -> Result<(), String> {
    let place = |error| format!("{}: {error}", options.folder.display());
    let own = TempDir::new_in(&options.folder).map_err(place)?;
    let folder = TempDir::new_in(&options.folder).map_err(place)?;
    let plain_folder = TempDir::new_in(&options.folder).map_err(place)?;
    let memory = options.memory.map_or_else(String::new, |mebibytes| {
        let bytes = mebibytes << 20;
        format!("memory_bytes = {bytes}\nmemory_bytes_per_principal = {bytes}\n")
    });
    let served = ServedHub::start_in(folder.path(), 300, &memory)?;
    let plain = ServedHub::start_without_journal(plain_folder.path(), 300, &memory)?;
    let other_folder = TempDir::new_in(&options.folder).map_err(place)?;
    let other = options.beside.as_ref();
    let other = other.map(|it| ServedHub::start_other(it, other_folder.path(), 400)).transpose()?;
    if !ServedHub::has_journal(folder.path()) || ServedHub::has_journal(plain_folder.path()) {
        return Err("the hubs do not differ by their journal".to_owned());
    }
    let file = GroupWriter::start(GroupDisk::file(own.path())?);
    let table = GroupWriter::start(GroupDisk::table(own.path())?);
    let by_hand = by_hand::start(&file)?;
    let mut report = BenchReport::default();
    report.say(format!(
        "{EVENT_BYTES} bytes an event, {} seconds at a time, best of {}.",
        options.seconds, options.rounds
    ));
    let time = Duration::from_secs(options.seconds);
    let mut sessions = 0;
    let mut worst: [Option<f64>; 3] = [None; 3];
    for batch in &options.batch {
        for agents in &options.agents {
            let (agents, batch) = (*agents, *batch);
            let mut best: [Option<PublishFindings>; 5] = [None; 5];
            let mut best_other: Option<PublishFindings> = None;
            for _ in 0..options.rounds {
                if let Some(other) = &other {
                    let found = hub(other, agents, batch, &mut sessions, time)?;
                    best_other = Some(found.better(best_other));
                }
                let found = [
                    hub(&served, agents, batch, &mut sessions, time)?,
                    hub(&plain, agents, batch, &mut sessions, time)?,
                    over_http(by_hand, &file, agents, batch, time)?,
                    bare(&file, agents, batch, time)?,
                    bare(&table, agents, batch, time)?,
                ];
                for (best, found) in best.iter_mut().zip(found) {
                    *best = Some(found.better(*best));
                }
            }
            let [Some(hub), Some(plain), Some(by_hand), Some(file), Some(table)] = best else {
                continue;
            };
            let plain_of_many = (agents >= MANY_AGENTS).then_some(plain);
            let others = [Some(file), Some(by_hand), plain_of_many];
            for (worst, other) in worst.iter_mut().zip(others) {
                let Some(other) = other else { continue };
                let ratio = hub.pace.per_second / other.pace.per_second;
                *worst = Some(worst.map_or(ratio, |worst| worst.min(ratio)));
            }
            let title = format!("Agents at once: {agents}. Events in a request: {batch}");
            let mut block = block(title, batch, [hub, plain, by_hand, file, table]);
            if let Some(other) = best_other {
                let ratio = hub.pace.per_second / other.pace.per_second;
                block.line("the other hub", other.amounts(batch));
                block.line("the hub", vec![NamedAmount::new("by the other hub", ratio, "times")]);
            }
            report.add(&block);
        }
    }
    report.judge(&[
        BenchTarget {
            what: "Events published in a second, by those that are only appended, where it is least",
            wanted: TargetBound::AtLeast(0.5),
            unit: "times",
            found: worst[0],
        },
        BenchTarget {
            what: "The same by those that a server written by hand appends",
            wanted: TargetBound::AtLeast(0.5),
            unit: "times",
            found: worst[1],
        },
        BenchTarget {
            what: "The same by those of a hub without a journal, with many agents",
            wanted: TargetBound::AtLeast(1.5),
            unit: "times",
            found: worst[2],
        },
    ]);
    served.stop()?;
    plain.stop()?;
    if let Some(other) = other {
        other.stop()?;
    }
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", report.to_json());
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

impl PublishFindings {
    fn better(self, other: Option<Self>) -> Self {
        other.filter(|it| it.pace.per_second > self.pace.per_second).unwrap_or(self)
    }

    fn amounts(self, batch: u64) -> Vec<NamedAmount> {
        let mut amounts =
            vec![NamedAmount::new("", self.pace.per_second * float(batch), "events a second")];
        amounts.extend(self.pace.amounts("requests a second"));
        amounts.push(NamedAmount::new("", self.syncs_per_second, "waits for the disk a second"));
        if let Some(cpu) = self.cpu {
            amounts.push(NamedAmount::new("", cpu, "processor microseconds an event"));
        }
        amounts
    }
}

fn block(
    title: String,
    batch: u64,
    [hub, plain, by_hand, file, table]: [PublishFindings; 5],
) -> ReportBlock {
    let mut block = ReportBlock::new(title);
    block.line("the hub", hub.amounts(batch));
    block.line("a hub without a journal", plain.amounts(batch));
    block.line("a server by hand", by_hand.amounts(batch));
    block.line("appending", file.amounts(batch));
    block.line("redb alone", table.amounts(batch));
    let by = |other: PublishFindings| hub.pace.per_second / other.pace.per_second;
    block.line(
        "the hub",
        vec![
            NamedAmount::new("by a hub without a journal", by(plain), "times"),
            NamedAmount::new("by appending", by(file), "times"),
            NamedAmount::new("by redb alone", by(table), "times"),
            NamedAmount::new("by a server by hand", by(by_hand), "times"),
        ],
    );
    block
}

/// Measures the hub with this many agents.
fn hub(
    served: &ServedHub,
    agents: u64,
    batch: u64,
    sessions: &mut u64,
    time: Duration,
) -> Result<PublishFindings, String> {
    let mut turns: Vec<RepeatedTurn> = Vec::new();
    for _ in 0..agents {
        *sessions += 1;
        let mut agent = PublishBenchAgent::start(served.address(), *sessions, batch)?;
        turns.push(Box::new(move || agent.publish()));
    }
    let (before, cpu_before) = (served.commits()?, served.usage()?.cpu);
    let pace = rounds::run(turns, time)?;
    let cpu = served.usage()?.cpu.saturating_sub(cpu_before).as_secs_f64();
    let commits = served.commits()? - before;
    let events = pace.per_second * time.as_secs_f64() * float(batch);
    let cpu = Some(cpu * 1e6 / events);
    Ok(PublishFindings { pace, syncs_per_second: commits / time.as_secs_f64(), cpu })
}

/// Measures the hand-written server with as many agents and the same events.
fn over_http(
    address: SocketAddr,
    writer: &GroupWriter,
    agents: u64,
    batch: u64,
    time: Duration,
) -> Result<PublishFindings, String> {
    let mut turns: Vec<RepeatedTurn> = Vec::new();
    for number in 0..agents {
        let mut agent = PublishBenchAgent::start(address, number, batch)?;
        turns.push(Box::new(move || agent.publish()));
    }
    let before = writer.syncs();
    let pace = rounds::run(turns, time)?;
    let syncs = float(writer.syncs() - before);
    Ok(PublishFindings { pace, syncs_per_second: syncs / time.as_secs_f64(), cpu: None })
}

/// Measures the bare writer with as many threads and the same events.
fn bare(
    writer: &GroupWriter,
    agents: u64,
    batch: u64,
    time: Duration,
) -> Result<PublishFindings, String> {
    let mut turns: Vec<RepeatedTurn> = Vec::new();
    for agent in 0..agents {
        let events: Vec<String> = (0..batch).map(|number| event(agent, 0, number)).collect();
        let bytes: Arc<[u8]> = events.concat().into_bytes().into();
        let writer = writer.clone();
        let (sender, stored) = mpsc::sync_channel(1);
        turns.push(Box::new(move || {
            let sender = sender.clone();
            let then = Box::new(move || {
                // A caller that has gone away needs no answer.
                let _ = sender.send(());
            });
            writer.store(WriteRequest { bytes: Arc::clone(&bytes), then })?;
            stored.recv().map_err(|_| "it could not be stored".to_owned())
        }));
    }
    let before = writer.syncs();
    let pace = rounds::run(turns, time)?;
    let syncs = float(writer.syncs() - before);
    Ok(PublishFindings { pace, syncs_per_second: syncs / time.as_secs_f64(), cpu: None })
}

/// An agent with a persistent connection.
struct PublishBenchAgent {
    connection: HttpConnection,
    number: u64,
    batch: u64,
    /// How many times it began another session.
    session: u64,
    events: u64,
}

impl PublishBenchAgent {
    fn start(address: SocketAddr, number: u64, batch: u64) -> Result<Self, String> {
        let connection = HttpConnection::open(address)?;
        let mut agent = PublishBenchAgent { connection, number, batch, session: 0, events: 0 };
        agent.begin_session()?;
        Ok(agent)
    }

    fn begin_session(&mut self) -> Result<(), String> {
        self.session += 1;
        self.events = 0;
        let started = json!({
            "type": "aaep:agent.session.started",
            "session_id": session_id(self.number, self.session),
            "producer": { "agent_id": "bench" }, "summary_normal": "It begins.",
        });
        self.post("application/json", &started.to_string())
    }

    fn end_session(&mut self) -> Result<(), String> {
        let ended = json!({
            "type": "aaep:agent.session.completed",
            "session_id": session_id(self.number, self.session),
            "producer": { "agent_id": "bench" }, "summary_normal": "Done.",
        });
        self.post("application/json", &ended.to_string())
    }

    fn post(&mut self, kind: &str, body: &str) -> Result<(), String> {
        self.connection.post("/aaep/v1/publish", kind, body).map(drop)
    }

    fn publish(&mut self) -> Result<(), String> {
        if self.events + self.batch > MAX_EVENTS {
            self.end_session()?;
            self.begin_session()?;
        }
        let mut body = String::with_capacity(EVENT_BYTES + 1);
        for _ in 0..self.batch {
            let event = event(self.number, self.session, self.events);
            writeln!(body, "{event}").map_err(|error| error.to_string())?;
            self.events += 1;
        }
        let kind = if self.batch == 1 { "application/json" } else { "application/x-ndjson" };
        self.post(kind, &body)
    }
}

fn session_id(agent: u64, session: u64) -> String {
    format!("sess_bench{agent}s{session}")
}

/// An event with everything that a hub would fill in, so that the stored bytes are the sent bytes.
fn event(agent: u64, session: u64, number: u64) -> String {
    let timestamp = timestamp();
    let text = |padding: usize| {
        format!(
            "{{\"@context\":\"https://aaep-protocol.org/context/v1\",\
             \"type\":\"aaep:agent.progress.updated\",\"event_id\":\"evt_bench{agent}s{session}n{number}\",\
             \"session_id\":\"{}\",\"timestamp\":\"{timestamp}\",\
             \"producer\":{{\"agent_id\":\"bench\"}},\"progress\":{{\"percent\":50}},\
             \"summary_normal\":\"{:x<padding$}\"}}",
            session_id(agent, session),
            ""
        )
    };
    let bare = text(0).len();
    text(EVENT_BYTES.saturating_sub(bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_valid_as_it_is_and_has_its_length() {
        let event = event(7, 3, 99);
        assert_eq!(event.len(), EVENT_BYTES);
        let reading = aaep::read(event.as_bytes(), aaep::Mode::Strict);
        assert!(reading.message.is_some(), "{:?}", reading.violations);
    }
}
