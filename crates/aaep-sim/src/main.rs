//! Runs worlds: `aaep-sim --start S --seeds N [--story] [--survey]`.
#![expect(clippy::print_stdout, reason = "this is a command line program, and this is its voice")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aaep_sim::{Outcome, run};

const USAGE: &str = "Usage: aaep-sim [--start S] [--seeds N] [--story] [--survey]";

/// What was asked for.
struct Wish {
    start: u64,
    seeds: u64,
    story: bool,
    /// Goes on after a failure and counts which invariants broke.
    survey: bool,
}

fn main() -> ExitCode {
    let wish = match wish(std::env::args().skip(1)) {
        Ok(wish) => wish,
        Err(problem) => {
            println!("{problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if wish.survey {
        return survey(&wish);
    }
    let began = Instant::now();
    let failed = run_all(&wish);
    let seconds = began.elapsed().as_secs_f64();
    match failed {
        None => {
            let Wish { start, seeds, .. } = wish;
            println!("{seeds} worlds from seed {start} on held in {seconds:.1} s.");
            ExitCode::SUCCESS
        }
        Some(outcome) => {
            report(&outcome);
            ExitCode::FAILURE
        }
    }
}

fn wish(mut args: impl Iterator<Item = String>) -> Result<Wish, String> {
    let mut wish = Wish { start: 0, seeds: 1000, story: false, survey: false };
    while let Some(arg) = args.next() {
        let mut number = || {
            let text = args.next().ok_or(format!("{arg} needs a number."))?;
            text.parse().map_err(|_| format!("{text} is no number."))
        };
        match arg.as_str() {
            "--start" => wish.start = number()?,
            "--seeds" => wish.seeds = number()?,
            "--story" => wish.story = true,
            "--survey" => wish.survey = true,
            other => return Err(format!("{other} is not known.")),
        }
    }
    Ok(wish)
}

/// Runs all worlds, on as many threads as the machine has; the failure of the lowest seed, if any.
fn run_all(wish: &Wish) -> Option<Outcome> {
    let next = AtomicU64::new(0);
    let done = AtomicU64::new(0);
    let failed: Mutex<Option<Outcome>> = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= wish.seeds {
                        break;
                    }
                    let outcome = run(wish.start + number);
                    done.fetch_add(1, Ordering::Relaxed);
                    if wish.story && outcome.failure.is_none() {
                        println!("The story of seed {}:\n{}", outcome.seed, outcome.story);
                    }
                    if outcome.failure.is_some() {
                        let mut failed = failed.lock().expect("no thread panics with it");
                        if failed.as_ref().is_none_or(|it| outcome.seed < it.seed) {
                            *failed = Some(outcome);
                        }
                        // Lower seeds are under way; higher ones need not begin.
                        next.store(wish.seeds, Ordering::Relaxed);
                    }
                }
            });
        }
        let mut told = Instant::now();
        while done.load(Ordering::Relaxed) < wish.seeds
            && failed.lock().expect("no thread panics with it").is_none()
        {
            std::thread::sleep(Duration::from_millis(20));
            if told.elapsed() > Duration::from_secs(5) {
                println!("{} of {} worlds held.", done.load(Ordering::Relaxed), wish.seeds);
                told = Instant::now();
            }
        }
    });
    failed.into_inner().expect("no thread panics with it")
}

fn report(outcome: &Outcome) {
    let Some(failure) = &outcome.failure else { return };
    println!("The story of seed {}:\n{}", outcome.seed, outcome.story);
    println!("Seed {} broke \"{}\": {}", outcome.seed, failure.invariant, failure.what);
    println!("It demands: {}", failure.meaning);
    println!(
        "To repeat it: cargo run --release -p aaep-sim -- --start {} --seeds 1 --story",
        outcome.seed
    );
}

/// Runs all worlds one after the other; says how often each invariant broke, and for which seeds.
fn survey(wish: &Wish) -> ExitCode {
    let mut broken: BTreeMap<&str, Vec<(u64, String)>> = BTreeMap::new();
    for seed in wish.start..wish.start + wish.seeds {
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
