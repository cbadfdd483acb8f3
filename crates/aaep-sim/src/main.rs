//! Runs worlds: `aaep-sim --start S --seeds N [--story] [--survey]`.
#![expect(clippy::print_stdout, reason = "this is a command line program, and this is its voice")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aaep_sim::{WorldOutcome, run};

const USAGE: &str = "Usage: aaep-sim [--start S] [--seeds N] [--story] [--survey]";

/// The options of the command line.
struct SimOptions {
    start: u64,
    seeds: u64,
    story: bool,
    /// Continue after a failure, and count how often each invariant broke.
    survey: bool,
}

fn main() -> ExitCode {
    let options = match parse_options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            println!("{problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if options.survey {
        return survey(&options);
    }
    let began = Instant::now();
    let failed = run_all(&options);
    let seconds = began.elapsed().as_secs_f64();
    match failed {
        None => {
            let SimOptions { start, seeds, .. } = options;
            println!("{seeds} worlds from seed {start} on held in {seconds:.1} s.");
            ExitCode::SUCCESS
        }
        Some(outcome) => {
            report(&outcome);
            ExitCode::FAILURE
        }
    }
}

fn parse_options(mut args: impl Iterator<Item = String>) -> Result<SimOptions, String> {
    let mut options = SimOptions { start: 0, seeds: 1000, story: false, survey: false };
    while let Some(arg) = args.next() {
        let mut number = || {
            let text = args.next().ok_or(format!("{arg} needs a number."))?;
            text.parse().map_err(|_| format!("{text} is not a number."))
        };
        match arg.as_str() {
            "--start" => options.start = number()?,
            "--seeds" => options.seeds = number()?,
            "--story" => options.story = true,
            "--survey" => options.survey = true,
            other => return Err(format!("{other} is not known.")),
        }
    }
    Ok(options)
}

/// Runs all worlds on as many threads as the machine has, and returns the failure with the lowest seed, if any.
fn run_all(options: &SimOptions) -> Option<WorldOutcome> {
    let next = AtomicU64::new(0);
    let done = AtomicU64::new(0);
    let failed: Mutex<Option<WorldOutcome>> = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= options.seeds {
                        break;
                    }
                    let outcome = run(options.start + number);
                    done.fetch_add(1, Ordering::Relaxed);
                    if options.story && outcome.failure.is_none() {
                        println!("The story of seed {}:\n{}", outcome.seed, outcome.story);
                    }
                    if outcome.failure.is_some() {
                        let mut failed = failed.lock().expect("no thread panics with it");
                        if failed.as_ref().is_none_or(|it| outcome.seed < it.seed) {
                            *failed = Some(outcome);
                        }
                        // Lower seeds are already running; higher ones need not start.
                        next.store(options.seeds, Ordering::Relaxed);
                    }
                }
            });
        }
        let mut last_report = Instant::now();
        while done.load(Ordering::Relaxed) < options.seeds
            && failed.lock().expect("no thread panics with it").is_none()
        {
            std::thread::sleep(Duration::from_millis(20));
            if last_report.elapsed() > Duration::from_secs(5) {
                println!("{} of {} worlds held.", done.load(Ordering::Relaxed), options.seeds);
                last_report = Instant::now();
            }
        }
    });
    failed.into_inner().expect("no thread panics with it")
}

fn report(outcome: &WorldOutcome) {
    let Some(failure) = &outcome.failure else { return };
    println!("The story of seed {}:\n{}", outcome.seed, outcome.story);
    println!("Seed {} broke \"{}\": {}", outcome.seed, failure.invariant, failure.what);
    println!("It demands: {}", failure.meaning);
    println!(
        "To repeat it: cargo run --release -p aaep-sim -- --start {} --seeds 1 --story",
        outcome.seed
    );
}

/// Runs all worlds one after the other, and prints how often each invariant broke and for which seeds.
fn survey(options: &SimOptions) -> ExitCode {
    let mut broken: BTreeMap<&str, Vec<(u64, String)>> = BTreeMap::new();
    for seed in options.start..options.start + options.seeds {
        if let Some(failure) = run(seed).failure {
            broken.entry(failure.invariant).or_default().push((seed, failure.what));
        }
    }
    for (invariant, cases) in &broken {
        println!("\"{invariant}\" broke {} times:", cases.len());
        for (seed, what) in cases.iter().take(4) {
            println!("  seed {seed}: {what}");
        }
    }
    println!("{} of {} invariants broke.", broken.len(), aaep_sim::check::COUNT);
    ExitCode::from(u8::from(!broken.is_empty()))
}
