//! `validate`: how fast a message is read and validated, beside JSON Schema in Rust and in Python,
//! and how fast the command does it with a large file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::table::{Report, Target, Wanted};

mod end_to_end;
mod in_process;
mod python;

/// The code to exit with when something that was asked for could not be measured.
const NOT_MEASURED: u8 = 3;

#[derive(Args)]
pub(crate) struct Options {
    /// Run one part only.
    #[arg(long)]
    only: Option<Part>,
    /// Write the numbers to this file as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// How many events the capture has.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    events: u64,
    /// Keep the capture.
    #[arg(long)]
    keep: bool,
    /// The aaep command to measure, if not the one beside this program.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Single events, beside the jsonschema crate.
    InProcess,
    /// Single events, beside Python's jsonschema.
    Python,
    /// A capture, with the aaep command.
    EndToEnd,
}

/// The numbers that targets are set for.
#[derive(Default)]
struct Found {
    read_ns: Option<f64>,
    schema_ratio: Option<f64>,
    python_ratio: Option<f64>,
    mb_per_second: Option<f64>,
    memory_mb: Option<f64>,
}

impl Found {
    fn targets(&self) -> [Target; 5] {
        [
            Target {
                what: "Median time to read the event of 500 bytes",
                wanted: Wanted::AtMost(3000.0),
                unit: "ns",
                found: self.read_ns,
            },
            Target {
                what: "Speed of aaep::read against serde_json and jsonschema",
                wanted: Wanted::AtLeast(1.5),
                unit: "times",
                found: self.schema_ratio,
            },
            Target {
                what: "Speed of aaep::read against Python",
                wanted: Wanted::AtLeast(150.0),
                unit: "times",
                found: self.python_ratio,
            },
            Target {
                what: "Median speed of aaep validate",
                wanted: Wanted::AtLeast(150.0),
                unit: "MB/s",
                found: self.mb_per_second,
            },
            Target {
                what: "Peak memory of aaep validate",
                wanted: Wanted::Below(50.0),
                unit: "MB",
                found: self.memory_mb,
            },
        ]
    }
}

/// Runs the parts that are asked for and says what came out.
pub(crate) fn run(options: &Options) -> ExitCode {
    let mut report = Report::default();
    let mut found = Found::default();
    let mut missing = false;
    if let Some(load) = load() {
        report.say(load);
    }
    let parts = options.only.map_or(Part::value_variants().to_vec(), |part| vec![part]);
    for part in parts {
        let (name, result) = match part {
            Part::InProcess => ("in process", in_process::measure(&mut found, &mut report)),
            Part::Python => ("with Python", python::measure(&mut found, &mut report)),
            Part::EndToEnd => ("end to end", end_to_end::measure(options, &mut found, &mut report)),
        };
        if let Err(reason) = result {
            report.say(format!("\nNot measured {name}: {reason}"));
            missing = true;
        }
    }
    report.judge(&found.targets());
    if let Some(path) = &options.json {
        match std::fs::write(path, format!("{:#}\n", report.to_json())) {
            Ok(()) => report.say(format!("\nWritten to {}.", path.display())),
            Err(error) => {
                report.say(format!("\nNot written to {}: {error}.", path.display()));
                missing = true;
            }
        }
    }
    if missing { ExitCode::from(NOT_MEASURED) } else { ExitCode::SUCCESS }
}

/// How busy the machine is with other things, as Linux says; the end-to-end part wants all cores.
fn load() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load = text.split(' ').next()?;
    let cores = std::thread::available_parallelism().ok()?;
    Some(format!("Load of the machine at the start: {load}, on {cores} cores."))
}
