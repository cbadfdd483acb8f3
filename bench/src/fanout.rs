//! `fanout`: what it costs a running hub to tell many listeners something, next to a server that does
//! nothing but write the same bytes to each of them.
//!
//! Both servers are processes of their own, and their processor time is read from `/proc`, so this is for
//! Linux. Both have all their listeners from the beginning, and are measured in turn several times; the best
//! of each counts, because a shared machine swings. The next event is published when everyone has the one
//! before, so that both do the same work for each.

mod hub;
mod readers;
mod yardstick;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;

use crate::process::Usage;
use crate::table::{Amount, Block, Report, Target, Wanted};
use crate::timing::float;
use hub::Hub;
use readers::Readers;
use yardstick::Yardstick;

/// How often each is measured.
const ROUNDS: usize = 3;

/// How many events are published together, where they are.
const BURST: usize = 32;

/// How long the JSON of an event is.
const EVENT_BYTES: usize = 500;

#[derive(Args)]
pub(crate) struct Options {
    /// How many listeners there are.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=8000))]
    listeners: u64,
    /// How many events are published in each round.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u64).range(32..=4096))]
    events: u64,
    /// Write the numbers to this file as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Be the server that only writes; for this program itself.
    #[arg(long, hide = true)]
    only_write: bool,
}

/// Something that tells its listeners events.
trait Server {
    /// Tells everyone so many events, and comes back when it has them in hand.
    fn tell(&mut self, events: usize) -> Result<(), String>;
    fn usage(&self) -> Result<Usage, String>;
}

/// What was found for one server and one way of publishing.
#[derive(Clone, Copy)]
struct Figures {
    deliveries_per_second: f64,
    cpu_seconds_per_million: f64,
    losses: u64,
}

impl Figures {
    const WORST: Self =
        Figures { deliveries_per_second: 0.0, cpu_seconds_per_million: f64::INFINITY, losses: 0 };

    fn better(self, other: Self) -> Self {
        Figures {
            deliveries_per_second: self.deliveries_per_second.max(other.deliveries_per_second),
            cpu_seconds_per_million: self
                .cpu_seconds_per_million
                .min(other.cpu_seconds_per_million),
            losses: self.losses + other.losses,
        }
    }
}

pub(crate) fn run(options: &Options) -> ExitCode {
    if options.only_write {
        return match yardstick::serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => fail(&why),
        };
    }
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

fn compare(options: &Options) -> Result<ExitCode, String> {
    let listeners = usize::try_from(options.listeners).unwrap_or(usize::MAX);
    let events = usize::try_from(options.events).unwrap_or(usize::MAX);
    let mut report = Report::default();
    report.say(format!(
        "{listeners} listeners, {EVENT_BYTES} bytes an event, {events} events a round, best of {ROUNDS}."
    ));
    let (mut hub, hub_readers, hub_memory) = Hub::start(listeners)?;
    let frame = hub.frame(&hub_readers)?;
    let (mut yardstick, bare_readers, bare_memory) = Yardstick::start(listeners, &frame)?;
    let mut ratios = Vec::new();
    let mut losses = 0;
    for burst in [1, BURST] {
        let mut best = [Figures::WORST; 2];
        for _ in 0..ROUNDS {
            hub.begin_session()?;
            best[0] = best[0].better(measure(&mut hub, &hub_readers, events, burst)?);
            best[1] = best[1].better(measure(&mut yardstick, &bare_readers, events, burst)?);
        }
        losses += best[0].losses + best[1].losses;
        let [one, other] = best;
        let ratio = one.cpu_seconds_per_million / other.cpu_seconds_per_million;
        ratios.push(ratio);
        let mut block = Block::new(format!("Published {burst} at a time"));
        for (name, figures) in [("the hub", one), ("only writing", other)] {
            block.line(name, figures.amounts());
        }
        let rate = one.deliveries_per_second / other.deliveries_per_second;
        block.line(
            "the hub by only writing",
            vec![Amount::new("processor time", ratio, "times"), Amount::new("rate", rate, "times")],
        );
        report.add(&block);
    }
    let mut block = Block::new("Memory of an idle listener");
    block.line("the hub", vec![Amount::only(hub_memory / float(options.listeners), "bytes")]);
    block.line("only writing", vec![Amount::only(bare_memory / float(options.listeners), "bytes")]);
    report.add(&block);
    // With too few events, there are no ticks of processor time to compare.
    let is_measured = ratios.iter().all(|ratio| ratio.is_finite());
    let worst = is_measured.then(|| ratios.iter().copied().fold(0.0, f64::max));
    report.judge(&[
        Target {
            what: "Processor time of a delivery, by that of only writing",
            wanted: Wanted::AtMost(2.0),
            unit: "times",
            found: worst,
        },
        Target {
            what: "Deliveries that did not arrive",
            wanted: Wanted::AtMost(0.0),
            unit: "deliveries",
            found: Some(float(losses)),
        },
    ]);
    hub.stop()?;
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", report.to_json());
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(if losses == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Figures {
    fn amounts(self) -> Vec<Amount> {
        vec![
            Amount::new(
                "",
                self.cpu_seconds_per_million,
                "processor seconds per million deliveries",
            ),
            Amount::new("", self.deliveries_per_second, "deliveries a second"),
            Amount::new("lost", float(self.losses), "deliveries"),
        ]
    }
}

/// Tells everyone these events, so many at a time, each when everyone has those before.
fn measure(
    server: &mut dyn Server,
    readers: &Readers,
    events: usize,
    burst: usize,
) -> Result<Figures, String> {
    readers.forget();
    let before = server.usage()?;
    let began = Instant::now();
    let mut told = 0;
    while told < events {
        let now = burst.min(events - told);
        server.tell(now)?;
        told += now;
        if !readers.wait(told) {
            break;
        }
    }
    let took = began.elapsed();
    let cpu = server.usage()?.cpu.saturating_sub(before.cpu);
    let wanted = float((told * readers.listeners()) as u64);
    let losses = readers.losses(told);
    Ok(Figures {
        deliveries_per_second: wanted / took.as_secs_f64(),
        cpu_seconds_per_million: cpu.as_secs_f64() / wanted * 1e6,
        losses,
    })
}
