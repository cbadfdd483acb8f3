//! `fanout`: what it costs a running hub to send events to many subscribers, compared with other
//! servers that do the same.
//!
//! The limit is a server that does nothing but write the same bytes to each socket. It is compared
//! with the hub, with a server as one would write it by hand and, where it is installed, with nginx
//! and nchan. Every server runs in its own process, and so do the subscribers of each. Processor
//! time and memory are read from `/proc`, so this benchmark needs Linux.
//!
//! All servers have their subscribers from the beginning and are measured in turns. The best turn
//! of each counts, because a shared machine varies. The next event is published when all
//! subscribers have the previous one, so that all servers do the same work for each event.

mod by_hand;
mod cell;
mod critical;
mod crowd;
mod growth;
mod hub;
mod listen;
mod measure;
mod nchan;
pub(crate) mod part;
mod plots;
mod raw;
mod rows;
mod server;
mod subscribers;
mod tally;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::table::{BenchReport, BenchTarget, TargetBound};
use crate::timing::float;
use cell::FanoutCell;
use critical::CriticalLateness;
use crowd::SubscriberCrowd;
use growth::GrowthCosts;
use rows::FanoutRow;
use wire::{FanoutWire, ServerKind};

/// The number of events in a burst, where events are published together.
const BURST: usize = 32;

/// The length of an event's JSON in bytes.
const EVENT_BYTES: usize = 500;

/// The most files that a server has open besides its subscribers.
const OTHER_FILES: usize = 200;

#[derive(Args)]
pub(crate) struct FanoutBenchOptions {
    /// How many subscribers there are.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000, 5000, 10_000],
        value_parser = clap::value_parser!(u64).range(10..=25_000))]
    subscribers: Vec<u64>,
    /// What events travel on; all wires if it is not said.
    #[arg(long, value_delimiter = ',')]
    wires: Vec<FanoutWire>,
    /// Which crowds are measured; all if it is not said.
    #[arg(long, value_delimiter = ',')]
    crowds: Vec<CrowdCase>,
    /// Who is measured beside the hub and the limit; all if it is not said.
    #[arg(long, value_delimiter = ',')]
    peers: Vec<ComparedPeer>,
    /// How often each is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=20))]
    rounds: u64,
    /// Small numbers: whether all of it works, within two minutes. Says nothing about speed.
    #[arg(long)]
    smoke: bool,
    /// Write the numbers to this file as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table to this file as Markdown, too.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Draw pictures into this folder, as SVG with descriptions.
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
}

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CrowdCase {
    /// Everyone has the same terms.
    One,
    /// Eight different terms.
    Eight,
    /// Half want three events a second in whole sentences, and a tenth does not read.
    Mixed,
    /// Critical events among ordinary ones, with a tenth stalled and with nobody stalled.
    Critical,
    /// What more subscribers, more audiences and idle subscribers cost.
    Growth,
}

/// Another server to measure.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ComparedPeer {
    /// A server as one would write it by hand.
    Axum,
    /// nginx with nchan.
    Nchan,
}

/// An event exactly as a subscriber of the hub receives it, and the JSON in it.
struct FanoutSample {
    frame: Vec<u8>,
    json: String,
}

impl FanoutSample {
    fn of(frame: Vec<u8>) -> Result<Self, String> {
        let text = String::from_utf8_lossy(&frame);
        let json = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to));
        let json = json.ok_or("the hub sent no event")?.to_owned();
        let marks = [listen::ORDINARY, listen::CRITICAL, listen::ANY];
        if marks.map(|mark| tally::count(&frame, mark)) != [1, 0, 1] {
            return Err(format!("this is not one event: {text:?}"));
        }
        Ok(FanoutSample { frame, json })
    }
}

/// The time in nanoseconds on a clock that all processes of the machine share.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

/// How much is measured.
struct FanoutEffort {
    rounds: u64,
    /// The number of deliveries in a round, for events published one at a time and for bursts.
    deliveries: [usize; 2],
    /// How long a round measures latency.
    lateness: Duration,
}

pub(crate) fn run(options: &FanoutBenchOptions) -> ExitCode {
    match compare(options) {
        Ok(code) => code,
        Err(why) => fail(&why),
    }
}

#[expect(clippy::print_stderr, reason = "it is a program that says why it failed")]
fn fail(why: &str) -> ExitCode {
    eprintln!("The fan-out could not be measured: {why}");
    ExitCode::from(2)
}

impl FanoutBenchOptions {
    fn effort(&self) -> FanoutEffort {
        if self.smoke {
            let lateness = Duration::from_millis(200);
            return FanoutEffort { rounds: 1, deliveries: [10_000, 64_000], lateness };
        }
        let lateness = Duration::from_secs(3);
        FanoutEffort { rounds: self.rounds, deliveries: [200_000, 640_000], lateness }
    }

    fn subscribers(&self) -> Vec<usize> {
        if self.smoke {
            return vec![100];
        }
        self.subscribers.iter().filter_map(|it| usize::try_from(*it).ok()).collect()
    }

    fn wires(&self) -> Vec<FanoutWire> {
        if self.wires.is_empty() { FanoutWire::ALL.to_vec() } else { self.wires.clone() }
    }

    fn has(&self, case: CrowdCase) -> bool {
        self.crowds.is_empty() || self.crowds.contains(&case)
    }

    /// The servers to measure besides the hub and the limit.
    fn peers(&self, report: &mut BenchReport) -> Vec<ServerKind> {
        let has = |peer| self.peers.is_empty() || self.peers.contains(&peer);
        let mut peers = Vec::new();
        if has(ComparedPeer::Axum) {
            peers.push(ServerKind::Axum);
        }
        if has(ComparedPeer::Nchan) && nchan::is_there() {
            peers.push(ServerKind::Nchan);
        } else if has(ComparedPeer::Nchan) {
            report.say(
                "nginx with nchan is left out, because it is not installed. \
                 To measure it too: apt-get install nginx libnginx-mod-nchan",
            );
        }
        peers
    }
}

fn compare(options: &FanoutBenchOptions) -> Result<ExitCode, String> {
    let most = options.subscribers().into_iter().max().unwrap_or(0);
    let files = crate::process::raise_open_files()?;
    if files < (most + OTHER_FILES) as u64 {
        return Err(format!(
            "a process may open {files} files here, which is too few for {most} subscribers. \
             Allow more, or choose fewer with --subscribers"
        ));
    }
    let mut report = BenchReport::default();
    let effort = options.effort();
    report.say(crate::process::machine());
    report.say(format!(
        "Events of {EVENT_BYTES} bytes of JSON; each server is measured {} times, and its best counts.",
        effort.rounds
    ));
    let rows = cells(options, &effort, &mut report)?;
    // Report the results so far even if something else cannot be measured.
    let critical = options.has(CrowdCase::Critical).then(|| critical::measure(most, &effort));
    let critical = measured("Critical events", critical, &mut report);
    let growth = options.has(CrowdCase::Growth).then(|| growth::measure(most.div_ceil(4), &effort));
    let growth = measured("Growth", growth, &mut report);
    let is_complete = critical.is_ok() && growth.is_ok();
    let (critical, growth) = (critical.unwrap_or(None), growth.unwrap_or(None));
    let mut targets = rows::targets(&rows);
    if let Some(critical) = &critical {
        report.add(&critical.block());
        targets.extend(critical.targets());
    }
    if let Some(growth) = &growth {
        report.add(&growth.block());
        targets.extend(growth.targets());
    }
    let losses = rows.iter().map(FanoutRow::losses).sum::<u64>()
        + critical.as_ref().map_or(0, |it| it.losses)
        + growth.as_ref().map_or(0, |it| it.losses);
    targets.push(BenchTarget {
        what: "Deliveries that did not arrive, or came to those who want few beyond what they want",
        wanted: TargetBound::AtMost(0.0),
        unit: "deliveries",
        found: Some(float(losses)),
    });
    report.judge(&targets);
    keep(options, &report, &rows)?;
    if !is_complete {
        return Ok(ExitCode::from(2));
    }
    if options.smoke {
        rows::check_sanity(&rows)?;
        critical.iter().try_for_each(CriticalLateness::check_sanity)?;
        growth.iter().try_for_each(GrowthCosts::check_sanity)?;
    }
    Ok(if losses == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The result of a measurement, if it was requested; reports why it failed, if it did.
fn measured<T>(
    what: &str,
    found: Option<Result<T, String>>,
    report: &mut BenchReport,
) -> Result<Option<T>, ()> {
    found.transpose().map_err(|why| report.say(format!("\n{what} could not be measured: {why}")))
}

/// Measures all wires, numbers of subscribers and crowds.
fn cells(
    options: &FanoutBenchOptions,
    effort: &FanoutEffort,
    report: &mut BenchReport,
) -> Result<Vec<FanoutRow>, String> {
    let peers = options.peers(report);
    let crowds = [
        (CrowdCase::One, SubscriberCrowd::One),
        (CrowdCase::Eight, SubscriberCrowd::Eight),
        (CrowdCase::Mixed, SubscriberCrowd::Mixed),
    ];
    let mut rows = Vec::new();
    for wire in options.wires() {
        for subscribers in options.subscribers() {
            for (case, crowd) in crowds {
                // A smoke run tests the other crowds on one wire only, because a crowd is the same on every wire.
                if !options.has(case)
                    || (options.smoke && wire != FanoutWire::Sse && case != CrowdCase::One)
                {
                    continue;
                }
                let cell = FanoutCell { wire, subscribers, crowd };
                let found = cell.measure(effort, &peers)?;
                report.add(&rows::block(&cell, &found));
                rows.extend(found);
            }
        }
    }
    Ok(rows)
}

/// Writes the results to the requested files.
fn keep(
    options: &FanoutBenchOptions,
    report: &BenchReport,
    rows: &[FanoutRow],
) -> Result<(), String> {
    write(options.json.as_ref(), || {
        let mut json = report.to_json();
        json["rows"] = rows.iter().map(|row| row.to_json(rows)).collect();
        format!("{json:#}\n")
    })?;
    write(options.table.as_ref(), || rows::markdown(rows))?;
    let drawn = options.plots.as_ref().map(|folder| plots::draw(rows, folder));
    drawn.transpose().map(drop)
}

fn write(path: Option<&PathBuf>, text: impl FnOnce() -> String) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, text()).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_exactly_one_ordinary_event() {
        let event = br#"data: {"@context":"c","summary_normal":"Some ^ x. "}"#;
        let sample = FanoutSample::of(event.to_vec()).expect("an event");
        assert_eq!(sample.json, r#"{"@context":"c","summary_normal":"Some ^ x. "}"#);
        for wrong in [&b""[..], b": alive", b"{\"@context\":\"c\"}", &event.repeat(2)] {
            assert!(FanoutSample::of(wrong.to_vec()).is_err(), "{wrong:?}");
        }
    }
}
