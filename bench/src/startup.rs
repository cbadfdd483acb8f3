//! `startup`: how long `aaep serve` takes until it answers, and how much time `aaep emit` and `aaep
//! ask` add to an agent's work, compared with starting a program that does nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use clap::Args;
use serde_json::json;
use tempfile::TempDir;

use crate::ask::AnsweringSubscriber;
use crate::serve::{self, HttpConnection, ServedHub};
use crate::table::{BenchReport, BenchTarget, NamedAmount, ReportBlock, TargetBound};
use crate::timing::ValueSpread;

/// The number of events per session in the store.
const SESSION_EVENTS: u64 = 100;

#[derive(Args)]
pub(crate) struct StartupBenchOptions {
    /// How often each command is run.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    runs: u64,
    /// How often the hub is started.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    starts: u64,
    /// How many events the store has that is not empty.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    events: u64,
    /// Where files are written; it should be on a real disk.
    #[arg(long, value_name = "DIR", default_value = "target")]
    folder: PathBuf,
    /// Write the numbers to this file as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(options: &StartupBenchOptions) -> ExitCode {
    match measure(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => fail(&why),
    }
}

#[expect(clippy::print_stderr, reason = "it is a program that says why it failed")]
fn fail(why: &str) -> ExitCode {
    eprintln!("Starting could not be measured: {why}");
    ExitCode::from(2)
}

fn measure(options: &StartupBenchOptions) -> Result<(), String> {
    let mut report = BenchReport::default();
    report.say(format!(
        "The hub is started {} times, each command is run {} times.",
        options.starts, options.runs
    ));
    report.add(&starts(options)?);
    let commands = CommandTimes::run(options)?;
    report.add(&commands.block());
    report.judge(&[BenchTarget {
        what: "aaep emit say from start to end, median",
        wanted: TargetBound::Below(15.0),
        unit: "milliseconds",
        found: Some(commands.emit.median),
    }]);
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", report.to_json());
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Describes a spread of milliseconds.
fn amounts(spread: ValueSpread) -> Vec<NamedAmount> {
    vec![
        NamedAmount::new("median", spread.median, "milliseconds"),
        NamedAmount::new("p99", spread.p99, "milliseconds"),
    ]
}

/// Measures how long a hub takes to start, alternately with an empty store and with a filled one.
fn starts(options: &StartupBenchOptions) -> Result<ReportBlock, String> {
    let new = || {
        TempDir::new_in(&options.folder)
            .map_err(|error| format!("{}: {error}", options.folder.display()))
    };
    let filled = new()?;
    fill(filled.path(), options.events)?;
    let (mut empty_times, mut filled_times) = (Vec::new(), Vec::new());
    for _ in 0..options.starts {
        let empty = new()?;
        empty_times.push(start(empty.path())?);
        filled_times.push(start(filled.path())?);
    }
    let mut block =
        ReportBlock::new("From starting aaep serve to its first answer that it is ready");
    block.line("an empty store", amounts(ValueSpread::of(empty_times)));
    let label = format!("a store of {} events", options.events);
    block.line(label, amounts(ValueSpread::of(filled_times)));
    Ok(block)
}

/// Starts a hub and stops it. Returns how many milliseconds it took to become ready.
fn start(folder: &Path) -> Result<f64, String> {
    let began = Instant::now();
    let served = ServedHub::start_in(folder, 10, "")?;
    let (status, text) = HttpConnection::open(served.address())?.get("/readyz")?;
    let took = began.elapsed().as_secs_f64() * 1000.0;
    if status != 200 {
        return Err(format!("the hub is not ready: {status} {text}"));
    }
    served.stop()?;
    Ok(took)
}

/// Creates a store with this many events in a folder.
fn fill(folder: &Path, events: u64) -> Result<(), String> {
    let served = ServedHub::start_in(folder, 10, "")?;
    let mut connection = HttpConnection::open(served.address())?;
    let mut left = events;
    let mut session = 0;
    while left > 0 {
        session += 1;
        let now = left.min(SESSION_EVENTS);
        let mut body = String::new();
        for number in 0..now {
            let kind = match number {
                0 => "session.started",
                _ if number + 1 == now => "session.completed",
                _ => "progress.updated",
            };
            let mut event = json!({
                "type": format!("aaep:agent.{kind}"), "session_id": format!("sess_{session}"),
                "producer": { "agent_id": "bench" }, "summary_normal": "Something like this.",
            });
            if kind == "progress.updated" {
                event["progress"] = json!({ "percent": number });
            }
            writeln!(body, "{event}").map_err(|error| error.to_string())?;
        }
        connection.post("/aaep/v1/publish", "application/x-ndjson", &body)?;
        left -= now;
    }
    served.stop()
}

/// The time that each command took, in milliseconds.
struct CommandTimes {
    nothing: ValueSpread,
    version: ValueSpread,
    emit: ValueSpread,
    ask: ValueSpread,
}

impl CommandTimes {
    fn run(options: &StartupBenchOptions) -> Result<Self, String> {
        let folder = TempDir::new_in(&options.folder)
            .map_err(|error| format!("{}: {error}", options.folder.display()))?;
        let served = ServedHub::start_in(folder.path(), 10, "")?;
        let subscriber = AnsweringSubscriber::start(&served, 1)?;
        let hub = format!("http://{}", served.address());
        let program = serve::program()?;
        let mut times: [Vec<f64>; 4] = Default::default();
        for _ in 0..options.runs {
            let commands: [(&Path, &[&str]); 4] = [
                (Path::new("/bin/true"), &[]),
                (&program, &["--version"]),
                (&program, &["emit", "say", "All is well.", "--hub", &hub]),
                (&program, &["ask", "May I?", "--hub", &hub]),
            ];
            for ((program, arguments), times) in commands.into_iter().zip(&mut times) {
                times.push(time(program, arguments)?);
            }
        }
        drop(subscriber);
        served.stop()?;
        let [nothing, version, emit, ask] = times.map(ValueSpread::of);
        Ok(CommandTimes { nothing, version, emit, ask })
    }

    fn block(&self) -> ReportBlock {
        let mut block = ReportBlock::new("Commands from start to end, with a hub that runs");
        block.line("/bin/true", amounts(self.nothing));
        block.line("aaep --version", amounts(self.version));
        block.line("aaep emit say", amounts(self.emit));
        block.line("aaep ask, answered at once", amounts(self.ask));
        block.line(
            "more than /bin/true, median",
            vec![
                NamedAmount::new("emit", self.emit.median - self.nothing.median, "milliseconds"),
                NamedAmount::new("ask", self.ask.median - self.nothing.median, "milliseconds"),
            ],
        );
        block
    }
}

/// Runs a program, which must succeed. Returns how many milliseconds it took.
fn time(program: &Path, arguments: &[&str]) -> Result<f64, String> {
    let began = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .env_remove("AAEP_SESSION")
        .env_remove("AAEP_TOKEN")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let took = began.elapsed().as_secs_f64() * 1000.0;
    if status.success() {
        Ok(took)
    } else {
        Err(format!("{} {} ended with {status}", program.display(), arguments.join(" ")))
    }
}
