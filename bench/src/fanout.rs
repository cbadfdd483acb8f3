//! `fanout`: what it costs a running hub to tell many subscribers something, next to others that do the same.
//!
//! The limit is a server that does nothing but write the same bytes to each socket. Beside it stand a server
//! as one would write it by hand and, where it is installed, nginx with nchan. Every server is a process of
//! its own, and so are the subscribers of each. Processor time and memory are read from `/proc`, so this is for
//! Linux.
//!
//! All have their subscribers from the beginning and are measured in turns; the best turn of each counts,
//! because a shared machine swings. The next event is published when everyone has the one before, so that all
//! do the same work for each.

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

use crate::table::{Report, Target, Wanted};
use crate::timing::float;
use cell::Cell;
use critical::Critical;
use crowd::Crowd;
use growth::Growth;
use rows::Row;
use wire::{Kind, Wire};

/// How many events are published together, where they are.
const BURST: usize = 32;

/// How long the JSON of an event is.
const EVENT_BYTES: usize = 500;

/// How many files a server has open beside its subscribers, at most.
const OTHER_FILES: usize = 200;

#[derive(Args)]
pub(crate) struct Options {
    /// How many subscribers there are.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000, 5000, 10_000],
        value_parser = clap::value_parser!(u64).range(10..=25_000))]
    subscribers: Vec<u64>,
    /// What events travel on; all wires if it is not said.
    #[arg(long, value_delimiter = ',')]
    wires: Vec<Wire>,
    /// Which crowds are measured; all if it is not said.
    #[arg(long, value_delimiter = ',')]
    crowds: Vec<Case>,
    /// Who is measured beside the hub and the limit; all if it is not said.
    #[arg(long, value_delimiter = ',')]
    peers: Vec<Peer>,
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
enum Case {
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

/// Who else can be measured.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Peer {
    /// A server as one would write it by hand.
    Axum,
    /// nginx with nchan.
    Nchan,
}

/// An event exactly as a subscriber of the hub gets it, and the JSON in it.
struct Sample {
    frame: Vec<u8>,
    json: String,
}

impl Sample {
    fn of(frame: Vec<u8>) -> Result<Self, String> {
        let text = String::from_utf8_lossy(&frame);
        let json = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to));
        let json = json.ok_or("the hub sent no event")?.to_owned();
        let marks = [listen::ORDINARY, listen::CRITICAL, listen::ANY];
        if marks.map(|mark| tally::count(&frame, mark)) != [1, 0, 1] {
            return Err(format!("this is not one event: {text:?}"));
        }
        Ok(Sample { frame, json })
    }
}

/// Nanoseconds on a clock that all processes of the machine share.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

/// How much of it all is measured.
struct Effort {
    rounds: u64,
    /// How many deliveries there are in a round, published one at a time and together.
    deliveries: [usize; 2],
    /// How long it is measured in a round how late events are.
    lateness: Duration,
}

pub(crate) fn run(options: &Options) -> ExitCode {
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

impl Options {
    fn effort(&self) -> Effort {
        if self.smoke {
            let lateness = Duration::from_millis(200);
            return Effort { rounds: 1, deliveries: [10_000, 64_000], lateness };
        }
        let lateness = Duration::from_secs(3);
        Effort { rounds: self.rounds, deliveries: [200_000, 640_000], lateness }
    }

    fn subscribers(&self) -> Vec<usize> {
        if self.smoke {
            return vec![100];
        }
        self.subscribers.iter().filter_map(|it| usize::try_from(*it).ok()).collect()
    }

    fn wires(&self) -> Vec<Wire> {
        if self.wires.is_empty() { Wire::ALL.to_vec() } else { self.wires.clone() }
    }

    fn has(&self, case: Case) -> bool {
        self.crowds.is_empty() || self.crowds.contains(&case)
    }

    /// Who is measured beside the hub and the limit.
    fn peers(&self, report: &mut Report) -> Vec<Kind> {
        let has = |peer| self.peers.is_empty() || self.peers.contains(&peer);
        let mut peers = Vec::new();
        if has(Peer::Axum) {
            peers.push(Kind::Axum);
        }
        if has(Peer::Nchan) && nchan::is_there() {
            peers.push(Kind::Nchan);
        } else if has(Peer::Nchan) {
            report.say(
                "nginx with nchan is left out, because it is not installed. \
                 To measure it too: apt-get install nginx libnginx-mod-nchan",
            );
        }
        peers
    }
}

fn compare(options: &Options) -> Result<ExitCode, String> {
    let most = options.subscribers().into_iter().max().unwrap_or(0);
    let files = crate::process::raise_open_files()?;
    if files < (most + OTHER_FILES) as u64 {
        return Err(format!(
            "a process may open {files} files here, which is too few for {most} subscribers. \
             Allow more, or choose fewer with --subscribers"
        ));
    }
    let mut report = Report::default();
    let effort = options.effort();
    report.say(crate::process::machine());
    report.say(format!(
        "Events of {EVENT_BYTES} bytes of JSON; each server is measured {} times, and its best counts.",
        effort.rounds
    ));
    let rows = cells(options, &effort, &mut report)?;
    // What was found so far is told even if something else cannot be measured.
    let critical = options.has(Case::Critical).then(|| critical::measure(most, &effort));
    let critical = measured("Critical events", critical, &mut report);
    let growth = options.has(Case::Growth).then(|| growth::measure(most.div_ceil(4), &effort));
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
    let losses = rows.iter().map(Row::losses).sum::<u64>()
        + critical.as_ref().map_or(0, |it| it.losses)
        + growth.as_ref().map_or(0, |it| it.losses);
    targets.push(Target {
        what: "Deliveries that did not arrive, or came to those who want few beyond what they want",
        wanted: Wanted::AtMost(0.0),
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
        critical.iter().try_for_each(Critical::check_sanity)?;
        growth.iter().try_for_each(Growth::check_sanity)?;
    }
    Ok(if losses == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What was found, if it was looked for; says why it could not be.
fn measured<T>(
    what: &str,
    found: Option<Result<T, String>>,
    report: &mut Report,
) -> Result<Option<T>, ()> {
    found.transpose().map_err(|why| report.say(format!("\n{what} could not be measured: {why}")))
}

/// All wires, numbers of subscribers and crowds.
fn cells(options: &Options, effort: &Effort, report: &mut Report) -> Result<Vec<Row>, String> {
    let peers = options.peers(report);
    let crowds =
        [(Case::One, Crowd::One), (Case::Eight, Crowd::Eight), (Case::Mixed, Crowd::Mixed)];
    let mut rows = Vec::new();
    for wire in options.wires() {
        for subscribers in options.subscribers() {
            for (case, crowd) in crowds {
                // Whether it works is known from one wire; a crowd is the same on every one.
                if !options.has(case) || (options.smoke && wire != Wire::Sse && case != Case::One) {
                    continue;
                }
                let cell = Cell { wire, subscribers, crowd };
                let found = cell.measure(effort, &peers)?;
                report.add(&rows::block(&cell, &found));
                rows.extend(found);
            }
        }
    }
    Ok(rows)
}

/// Writes what was found to where it is wanted.
fn keep(options: &Options, report: &Report, rows: &[Row]) -> Result<(), String> {
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
        let sample = Sample::of(event.to_vec()).expect("an event");
        assert_eq!(sample.json, r#"{"@context":"c","summary_normal":"Some ^ x. "}"#);
        for wrong in [&b""[..], b": alive", b"{\"@context\":\"c\"}", &event.repeat(2)] {
            assert!(Sample::of(wrong.to_vec()).is_err(), "{wrong:?}");
        }
    }
}
