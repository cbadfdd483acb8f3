//! `soak`: a hub with a mixed crowd of subscribers for a long time. Nothing may be lost, and memory may not grow.
//!
//! The subscribers are spread evenly over server-sent events, WebSocket and the Unix socket. Half
//! of them take three events a second in whole sentences. A tenth stops reading now and then.
//! Others lose their connection and come back, leave (a tenth of those without closing their
//! subscription), or just listen. Agents begin sessions, stream text, ask, and end. The contents of
//! a session follow from its number, so that every subscriber knows what it must have received.
//!
//! Before the subscribers join, the hub is given as many sessions as it remembers, so that later
//! growth is not its memory of sessions.

mod agents;
mod crowd;
mod hearing;
mod jobs;
mod plan;
mod slope;
mod subscriber;
mod totals;

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{self, ProcessUsage};
use crate::serve::ServedHub;
use crate::timing::float;
use crate::wire::HubAddress;
use agents::SoakAgents;
use crowd::{SoakCrowd, SoakEnding};
use totals::SoakTotals;

/// The number of sessions that the hub is given first: more than it remembers.
const FILLED: u64 = 1100;

/// The longest that the subscribers may take to connect.
const PATIENCE: Duration = Duration::from_mins(15);

/// How long all subscribers stay connected before the agents end.
const SETTLE: Duration = Duration::from_secs(10);

/// Makes the hub sweep its store within the hour, as it does when the store is full.
const TABLES: &str = "[retention]\nmax_age_days = 1\nmax_megabytes = 16\n";

#[derive(Args)]
pub(crate) struct SoakBenchOptions {
    /// For how many minutes.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: u64,
    /// How many subscribers there are.
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u64).range(20..=9000))]
    subscribers: u64,
    /// How many agents there are at a time.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..=500))]
    agents: u64,
    /// How many events all agents together publish in a second, about. With many more than the default, those
    /// who take three a second fall so far behind that they are told of gaps.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    events_per_second: u64,
    /// Report progress every this many seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    every_seconds: u64,
    /// Where the hub has its files; a folder for the time of the soak is made there.
    #[arg(long, value_name = "DIR", default_value = "target")]
    folder: PathBuf,
    /// Write every line to this file, too, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(options: &SoakBenchOptions) -> ExitCode {
    match soak(options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => fail(&why),
    }
}

#[expect(clippy::print_stderr, reason = "it is a program that says why it failed")]
fn fail(why: &str) -> ExitCode {
    eprintln!("The soak could not be finished: {why}");
    ExitCode::from(2)
}

/// The resources that the hub uses at one moment.
struct HubReading {
    minutes: f64,
    usage: ProcessUsage,
    handles: usize,
}

/// One run of the soak.
struct SoakRun {
    served: ServedHub,
    totals: Arc<SoakTotals>,
    began: Instant,
    json: Option<File>,
    moments: Vec<HubReading>,
    /// The number of readings before the end phase.
    steady: usize,
}

/// Runs the soak. Returns whether nothing was lost.
fn soak(options: &SoakBenchOptions) -> Result<bool, String> {
    let json = options.json.as_ref().map(File::create).transpose();
    let json = json.map_err(|error| format!("the file for JSON: {error}"))?;
    let subscribers = usize::try_from(options.subscribers).map_err(|error| error.to_string())?;
    let folder = TempDir::new_in(&options.folder)
        .map_err(|error| format!("{}: {error}", options.folder.display()))?;
    let room = subscribers + usize::try_from(options.agents).unwrap_or(0);
    let served = ServedHub::start_in(folder.path(), room, TABLES)?;
    let totals = Arc::new(SoakTotals::default());
    let next = Arc::new(AtomicU64::new(0));
    let agents = Arc::new(SoakAgents {
        address: served.address(),
        totals: Arc::clone(&totals),
        next: Arc::clone(&next),
        pause: Duration::from_secs(options.agents)
            / u32::try_from(options.events_per_second).unwrap_or(1),
        is_over: AtomicBool::new(false),
    });
    println!("The hub is given {FILLED} sessions, so that its memory of sessions is full.");
    agents.fill(FILLED)?;
    println!("{subscribers} subscribers come.");
    let ending = Arc::new(SoakEnding::default());
    let place = HubAddress { address: served.address(), socket: served.socket() };
    let crowd =
        SoakCrowd::new(&place, subscribers, Arc::clone(&totals), next, Arc::clone(&ending))?;
    let crowd = thread::spawn(move || crowd.run());
    wait_for_all(&totals, options.subscribers)?;
    let mut soak =
        SoakRun { served, totals, began: Instant::now(), json, moments: Vec::new(), steady: 0 };
    soak.tell()?;
    let threads = SoakAgents::start(&agents, options.agents);
    let lines = options.minutes * 60 / options.every_seconds;
    for line in 1..=lines.max(1) {
        let at = soak.began + Duration::from_secs(line * options.every_seconds);
        thread::sleep(at.saturating_duration_since(Instant::now()));
        soak.tell()?;
    }
    println!("Everyone comes and stays.");
    ending.must_gather.store(true, Ordering::Relaxed);
    wait_until_gathered(&ending);
    println!("The agents end their sessions, and everyone hears the rest.");
    agents.is_over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().map_err(|_| "an agent gave up")?;
    }
    ending.is_over.store(true, Ordering::Relaxed);
    soak.steady = soak.moments.len();
    let mut told = Instant::now();
    while !crowd.is_finished() {
        thread::sleep(Duration::from_millis(50));
        if told.elapsed().as_secs() >= options.every_seconds {
            soak.tell()?;
            told = Instant::now();
        }
    }
    crowd.join().map_err(|_| "the subscribers gave up")??;
    soak.tell()?;
    soak.finish()
}

/// Waits until all subscribers are connected, and then for the events that they receive at once.
/// Subscribers that do not connect are found later.
fn wait_until_gathered(ending: &SoakEnding) {
    let began = Instant::now();
    while !ending.has_gathered.load(Ordering::Relaxed) && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(50));
    }
    thread::sleep(SETTLE);
}

fn wait_for_all(totals: &SoakTotals, subscribers: u64) -> Result<(), String> {
    let began = Instant::now();
    // Some may already have left again.
    while totals.have_come.load(Ordering::Relaxed) < subscribers {
        if began.elapsed() > PATIENCE {
            let words = totals.words().join("\n");
            return Err(format!("the subscribers did not come in time.\n{words}"));
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

impl SoakRun {
    fn count(count: &AtomicU64) -> u64 {
        count.load(Ordering::Relaxed)
    }

    /// Reports the current figures in one line.
    fn tell(&mut self) -> Result<(), String> {
        let process = self.served.process();
        let usage = ProcessUsage::of(process)?;
        let handles = process::handles(process)?;
        let minutes = self.began.elapsed().as_secs_f64() / 60.0;
        let cpu_percent = self.moments.last().map_or(0.0, |before| {
            let seconds = (minutes - before.minutes) * 60.0;
            let cpu = usage.cpu.saturating_sub(before.usage.cpu).as_secs_f64();
            100.0 * cpu / seconds.max(0.001)
        });
        let totals = &self.totals;
        let (published, deliveries) =
            (Self::count(&totals.published), Self::count(&totals.deliveries));
        let (here, returns) = (Self::count(&totals.here), Self::count(&totals.returns));
        let (arrivals, let_go) = (Self::count(&totals.arrivals), Self::count(&totals.let_go));
        let vanished = Self::count(&totals.vanished);
        let (gaps, asks) = (Self::count(&totals.gaps), Self::count(&totals.asks));
        let faults = totals.faults();
        println!(
            "Minute {minutes:.1}: {published} events published, {deliveries} deliveries, {faults} lost or wrong, \
             {:.1} MiB resident, {handles} handles, processor {cpu_percent:.0} percent, {here} subscribers here, \
             {returns} returns, {arrivals} arrivals, {vanished} gone without a word, {let_go} let go, {gaps} gaps told, {asks} questions settled.",
            usage.resident_bytes / 1_048_576.0
        );
        let line = json!({
            "minutes": minutes, "published": published, "deliveries": deliveries,
            "faults": faults, "resident_bytes": usage.resident_bytes, "own_bytes": usage.bytes,
            "handles": handles, "cpu_percent": cpu_percent, "here": here, "returns": returns,
            "arrivals": arrivals, "vanished": vanished, "let_go": let_go, "gaps_told": gaps, "asks_settled": asks,
            "sessions": Self::count(&totals.sessions),
        });
        self.write(&line)?;
        self.moments.push(HubReading { minutes, usage, handles });
        for what in self.totals.new_words() {
            println!("  {what}");
        }
        Ok(())
    }

    fn write(&mut self, line: &Value) -> Result<(), String> {
        let Some(file) = &mut self.json else { return Ok(()) };
        writeln!(file, "{line}").map_err(|error| format!("the file for JSON: {error}"))
    }

    /// Reports the results. Returns whether nothing was lost.
    fn finish(mut self) -> Result<bool, String> {
        // The end phase, in which subscribers join and agents leave, is not part of the slope.
        let half = self.moments.get(self.steady / 2..self.steady).unwrap_or_default();
        let points = |of: fn(&HubReading) -> f64| -> Vec<(f64, f64)> {
            half.iter().map(|moment| (moment.minutes / 60.0, of(moment))).collect()
        };
        let resident = slope::slope(&points(|it| it.usage.resident_bytes / 1024.0));
        let own = slope::slope(&points(|it| it.usage.bytes / 1024.0));
        let handles = slope::slope(&points(|it| float(it.handles as u64)));
        let faults = self.totals.faults();
        if let (Some(resident), Some(own), Some(handles)) = (resident, own, handles) {
            println!(
                "Over the second half, resident memory grew by {resident:.0} KiB an hour, memory of its own \
                 by {own:.0} KiB an hour, handles by {handles:.1} an hour."
            );
        }
        println!("Lost or wrong: {faults}.");
        let line = json!({
            "resident_kib_per_hour": resident, "own_kib_per_hour": own,
            "handles_per_hour": handles, "faults": faults, "words": self.totals.words(),
        });
        self.write(&line)?;
        self.served.stop()?;
        Ok(faults == 0)
    }
}
