//! `startup`: how long `aaep serve` takes until it answers, and what `aaep emit` and `aaep ask` add to what an
//! agent does, next to starting a program that does nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use clap::Args;
use serde_json::json;
use tempfile::TempDir;

use crate::ask::Subscriber;
use crate::serve::{self, Connection, Served};
use crate::table::{Amount, Block, Report, Target, Wanted};
use crate::timing::Spread;

/// How many events a session of the store has.
const SESSION_EVENTS: u64 = 100;

#[derive(Args)]
pub(crate) struct Options {
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

pub(crate) fn run(options: &Options) -> ExitCode {
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

fn measure(options: &Options) -> Result<(), String> {
    let mut report = Report::default();
    report.say(format!(
        "The hub is started {} times, each command is run {} times.",
        options.starts, options.runs
    ));
    report.add(&starts(options)?);
    let commands = Commands::run(options)?;
    report.add(&commands.block());
    report.judge(&[Target {
        what: "aaep emit say from start to end, median",
        wanted: Wanted::Below(15.0),
        unit: "milliseconds",
        found: Some(commands.emit.median),
    }]);
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", report.to_json());
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// A spread of milliseconds.
fn amounts(spread: Spread) -> Vec<Amount> {
    vec![
        Amount::new("median", spread.median, "milliseconds"),
        Amount::new("p99", spread.p99, "milliseconds"),
    ]
}

/// How long a hub takes to start, with nothing in its store and with something, in turn.
fn starts(options: &Options) -> Result<Block, String> {
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
    let mut block = Block::new("From starting aaep serve to its first answer that it is ready");
    block.line("an empty store", amounts(Spread::of(empty_times)));
    let label = format!("a store of {} events", options.events);
    block.line(label, amounts(Spread::of(filled_times)));
    Ok(block)
}

/// Starts a hub and stops it; how many milliseconds it took until it was ready.
fn start(folder: &Path) -> Result<f64, String> {
    let began = Instant::now();
    let served = Served::start_in(folder, 10, "")?;
    let (status, text) = Connection::open(served.address())?.get("/readyz")?;
    let took = began.elapsed().as_secs_f64() * 1000.0;
    if status != 200 {
        return Err(format!("the hub is not ready: {status} {text}"));
    }
    served.stop()?;
    Ok(took)
}

/// Makes a store of so many events in a folder.
fn fill(folder: &Path, events: u64) -> Result<(), String> {
    let served = Served::start_in(folder, 10, "")?;
    let mut connection = Connection::open(served.address())?;
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

/// How many milliseconds each command took.
struct Commands {
    nothing: Spread,
    version: Spread,
    emit: Spread,
    ask: Spread,
}

impl Commands {
    fn run(options: &Options) -> Result<Self, String> {
        let folder = TempDir::new_in(&options.folder)
            .map_err(|error| format!("{}: {error}", options.folder.display()))?;
        let served = Served::start_in(folder.path(), 10, "")?;
        let subscriber = Subscriber::start(&served, 1)?;
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
        let [nothing, version, emit, ask] = times.map(Spread::of);
        Ok(Commands { nothing, version, emit, ask })
    }

    fn block(&self) -> Block {
        let mut block = Block::new("Commands from start to end, with a hub that runs");
        block.line("/bin/true", amounts(self.nothing));
        block.line("aaep --version", amounts(self.version));
        block.line("aaep emit say", amounts(self.emit));
        block.line("aaep ask, answered at once", amounts(self.ask));
        block.line(
            "more than /bin/true, median",
            vec![
                Amount::new("emit", self.emit.median - self.nothing.median, "milliseconds"),
                Amount::new("ask", self.ask.median - self.nothing.median, "milliseconds"),
            ],
        );
        block
    }
}

/// How many milliseconds a program takes. It has to end well.
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
