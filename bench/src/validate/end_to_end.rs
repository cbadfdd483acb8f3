//! The `aaep validate` command on a large capture, compared with what reading and parsing the same
//! file costs this process. The four subjects take turns.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aaep::Mode;
use serde_json::Value as Json;

use super::{ValidateBenchOptions, ValidateFindings};
use crate::capture::{WRONG_EVENT, push_event};
use crate::table::{BenchReport, NamedAmount, ReportBlock};
use crate::timing::float;

const RUNS: usize = 3;

/// How often to read the memory of the command.
const POLL: Duration = Duration::from_millis(10);

/// How often a long wait reports its progress.
const PROGRESS: Duration = Duration::from_secs(4);

/// Writes the capture, runs the command on it, and removes it unless it should be kept.
pub(super) fn measure(
    options: &ValidateBenchOptions,
    found: &mut ValidateFindings,
    report: &mut BenchReport,
) -> Result<(), String> {
    let binary = match &options.binary {
        Some(path) => path.clone(),
        None => find_binary(report)?,
    };
    let folder = target_folder()?.join("bench");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("{} could not be made: {error}", folder.display()))?;
    check_that_it_refuses(&binary, &folder)?;
    let path = folder.join("capture.jsonl");
    let result = write_capture(&path, options.events, report)
        .map_err(|error| format!("the capture could not be written: {error}"))
        .and_then(|bytes| take_turns(&binary, &path, bytes))
        .map(|runs| runs.tell(&binary, options.events, found, report));
    if options.keep || result.is_err() {
        report.say(format!("The capture stays in {}.", path.display()));
    } else if let Err(error) = std::fs::remove_file(&path) {
        report.say(format!("The capture could not be removed: {error}."));
    }
    result
}

/// The target folder of builds.
pub(super) fn target_folder() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| format!("no own path: {error}"))?;
    let folder = program.ancestors().nth(2).map(Path::to_owned);
    folder.ok_or_else(|| format!("{} is in no build folder", program.display()))
}

/// The command next to this program; builds it first if it does not exist.
fn find_binary(report: &mut BenchReport) -> Result<PathBuf, String> {
    let name = format!("aaep{}", std::env::consts::EXE_SUFFIX);
    let binary = target_folder()?.join("release").join(name);
    if !binary.exists() {
        report.say("\nThere is no aaep yet. Running: cargo build --release -p aaep-cli");
        let built = Command::new("cargo")
            .args(["build", "--release", "-p", "aaep-cli"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .map_err(|error| format!("cargo did not start: {error}"))?;
        if !built.success() || !binary.exists() {
            return Err(format!("{} could not be built", binary.display()));
        }
    }
    Ok(binary)
}

/// Checks that the command rejects a wrong event: one that passes everything would be fast and worthless.
fn check_that_it_refuses(binary: &Path, folder: &Path) -> Result<(), String> {
    let path = folder.join("wrong.jsonl");
    std::fs::write(&path, WRONG_EVENT).map_err(|error| format!("{}: {error}", path.display()))?;
    let run = run_binary(binary, &path);
    // If this fails, one line stays in a folder that `cargo clean` removes.
    let _ = std::fs::remove_file(&path);
    match run?.code {
        Some(0) => Err(format!("{} passes an event that is not valid", binary.display())),
        Some(_) => Ok(()),
        None => Err(format!("{} was stopped from outside", binary.display())),
    }
}

/// Writes this many events. Returns their size in bytes.
fn write_capture(path: &Path, events: u64, report: &mut BenchReport) -> std::io::Result<u64> {
    report.say(format!("\nWriting a capture of {events} events to {}.", path.display()));
    let mut file = File::create(path)?;
    let mut bytes = 0;
    let mut text = String::new();
    let mut told = Instant::now();
    for number in 0..events {
        push_event(&mut text, number);
        if text.len() > 1 << 20 || number + 1 == events {
            file.write_all(text.as_bytes())?;
            bytes += text.len() as u64;
            text.clear();
            if told.elapsed() > PROGRESS {
                told = Instant::now();
                println!("{number} of {events} events are written.");
            }
        }
    }
    // Otherwise the disk would still be busy while the first run is timed.
    file.sync_all()?;
    Ok(bytes)
}

/// The seconds of each run, and the memory of the command.
struct CaptureRuns {
    bytes: u64,
    command: Vec<f64>,
    lines: Vec<f64>,
    parse: Vec<f64>,
    read: Vec<f64>,
    peak_bytes: Option<u64>,
}

fn take_turns(binary: &Path, path: &Path, bytes: u64) -> Result<CaptureRuns, String> {
    let cannot_read = |error| format!("{} could not be read: {error}", path.display());
    let mut runs = CaptureRuns {
        bytes,
        command: Vec::new(),
        lines: Vec::new(),
        parse: Vec::new(),
        read: Vec::new(),
        peak_bytes: None,
    };
    for _ in 0..RUNS {
        runs.lines.push(seconds(|| count_lines(path)).map_err(cannot_read)?);
        runs.parse.push(seconds(|| parse_lines(path)).map_err(cannot_read)?);
        runs.read.push(seconds(|| read_lines(path)).map_err(cannot_read)?);
        let run = run_binary(binary, path)?;
        if run.code != Some(0) {
            let code = run.code.map_or("no code".to_owned(), |code| format!("code {code}"));
            let (binary, path) = (binary.display(), path.display());
            return Err(format!("{binary} validate {path} ended with {code}"));
        }
        runs.command.push(run.seconds);
        runs.peak_bytes = runs.peak_bytes.max(run.peak_bytes);
    }
    Ok(runs)
}

impl CaptureRuns {
    fn tell(
        &self,
        binary: &Path,
        events: u64,
        found: &mut ValidateFindings,
        report: &mut BenchReport,
    ) {
        let speed = |seconds: f64| float(self.bytes) / 1e6 / seconds;
        let speeds = |times: &[f64]| {
            let (best, median) = best_and_median(times);
            vec![
                NamedAmount::new("median", speed(median), "MB/s"),
                NamedAmount::new("best", speed(best), "MB/s"),
            ]
        };
        let median = |times: &[f64]| best_and_median(times).1;
        let ours = median(&self.command);
        let per_second = |seconds: f64| NamedAmount::only(float(events) / seconds, "per second");
        let mut block = ReportBlock::new(format!(
            "End to end: {} on {events} events, {:.1} MB, {RUNS} runs in turns",
            binary.display(),
            float(self.bytes) / 1e6
        ));
        block.line("aaep validate", speeds(&self.command));
        block.line("aaep validate, events", vec![per_second(ours)]);
        block.line("Reading and counting lines, here", speeds(&self.lines));
        block.line("serde_json line by line, one core, here", speeds(&self.parse));
        block.line("aaep::read line by line, one core, here", speeds(&self.read));
        let ratio = |times: &[f64]| vec![NamedAmount::times(median(times), ours)];
        block.line("aaep validate against counting lines", ratio(&self.lines));
        block.line("aaep validate against serde_json", ratio(&self.parse));
        block.line("aaep validate against aaep::read on one core", ratio(&self.read));
        found.mb_per_second = Some(speed(ours));
        found.memory_mb = self.peak_bytes.map(|bytes| float(bytes) / 1e6);
        if let Some(memory) = found.memory_mb {
            block.line("Peak memory of aaep validate", vec![NamedAmount::only(memory, "MB")]);
        }
        report.add(&block);
        if found.memory_mb.is_none() {
            report.say("The peak memory could not be seen: no /proc, or too short a run.");
        }
    }
}

fn best_and_median(times: &[f64]) -> (f64, f64) {
    let mut times = times.to_vec();
    times.sort_unstable_by(f64::total_cmp);
    (times[0], times[times.len() / 2])
}

fn seconds(work: impl FnOnce() -> std::io::Result<u64>) -> std::io::Result<f64> {
    let start = Instant::now();
    black_box(work()?);
    Ok(start.elapsed().as_secs_f64())
}

fn count_lines(path: &Path) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 18];
    let mut lines = 0;
    loop {
        let filled = file.read(&mut buffer)?;
        if filled == 0 {
            return Ok(lines);
        }
        // 255 at a time fit into a byte, which lets the compiler vectorize the loop.
        let in_some = |some: &[u8]| some.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>();
        lines += buffer[..filled].chunks(255).map(|some| u64::from(in_some(some))).sum::<u64>();
    }
}

fn parse_lines(path: &Path) -> std::io::Result<u64> {
    each_line(path, |line| serde_json::from_slice::<Json>(line).is_ok())
}

fn read_lines(path: &Path) -> std::io::Result<u64> {
    each_line(path, |line| aaep::read(line, Mode::Strict).is_valid())
}

/// The number of lines for which `is_right` holds.
fn each_line(path: &Path, mut is_right: impl FnMut(&[u8]) -> bool) -> std::io::Result<u64> {
    let mut file = BufReader::with_capacity(1 << 18, File::open(path)?);
    let mut line = Vec::new();
    let mut right = 0;
    while file.read_until(b'\n', &mut line)? > 0 {
        right += u64::from(is_right(&line));
        line.clear();
    }
    Ok(right)
}

/// One run of the command.
struct CommandRun {
    code: Option<i32>,
    seconds: f64,
    peak_bytes: Option<u64>,
}

fn run_binary(binary: &Path, path: &Path) -> Result<CommandRun, String> {
    let failed = |error| format!("{} could not be run: {error}", binary.display());
    let start = Instant::now();
    let mut child = Command::new(binary)
        .arg("validate")
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let id = child.id();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch_memory(id, &is_done));
        let status = child.wait();
        let seconds = start.elapsed().as_secs_f64();
        is_done.store(true, Ordering::Relaxed);
        let peak_bytes = watcher.join().ok().flatten();
        Ok(CommandRun { code: status.map_err(failed)?.code(), seconds, peak_bytes })
    })
}

/// The peak memory of a process in bytes, as Linux counts it; polled until the process is done.
fn watch_memory(id: u32, is_done: &AtomicBool) -> Option<u64> {
    let mut peak = None;
    while !is_done.load(Ordering::Relaxed) {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        peak = peak.max(high_water_bytes(&status));
        std::thread::sleep(POLL);
    }
    peak
}

fn high_water_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_from_what_linux_says() {
        let status = "Name:\taaep\nVmPeak:\t    9000 kB\nVmHWM:\t    1234 kB\n";
        assert_eq!(high_water_bytes(status), Some(1234 * 1024));
        assert_eq!(high_water_bytes("Name:\taaep\n"), None);
    }
}
