//! `validate`: how fast a message is read and validated, compared with JSON Schema in Rust and in
//! Python, and how fast the command validates a large file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::table::{BenchReport, BenchTarget, TargetBound};

mod end_to_end;
mod in_process;
mod python;

/// The exit code if a requested measurement was not possible.
const NOT_MEASURED: u8 = 3;

#[derive(Args)]
pub(crate) struct ValidateBenchOptions {
    /// Run one part only.
    #[arg(long)]
    only: Option<ValidatePart>,
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
enum ValidatePart {
    /// Single events, beside the jsonschema crate.
    InProcess,
    /// Single events, beside Python's jsonschema.
    Python,
    /// A capture, with the aaep command.
    EndToEnd,
}

/// The numbers that have targets.
#[derive(Default)]
struct ValidateFindings {
    read_ns: Option<f64>,
    schema_ratio: Option<f64>,
    python_ratio: Option<f64>,
    mb_per_second: Option<f64>,
    memory_mb: Option<f64>,
}

impl ValidateFindings {
    fn targets(&self) -> [BenchTarget; 5] {
        [
            BenchTarget {
                what: "Median time to read the event of 500 bytes",
                wanted: TargetBound::AtMost(3000.0),
                unit: "ns",
                found: self.read_ns,
            },
            BenchTarget {
                what: "Speed of aaep::read against serde_json and jsonschema",
                wanted: TargetBound::AtLeast(1.5),
                unit: "times",
                found: self.schema_ratio,
            },
            BenchTarget {
                what: "Speed of aaep::read against Python",
                wanted: TargetBound::AtLeast(150.0),
                unit: "times",
                found: self.python_ratio,
            },
            BenchTarget {
                what: "Median speed of aaep validate",
                wanted: TargetBound::AtLeast(150.0),
                unit: "MB/s",
                found: self.mb_per_second,
            },
            BenchTarget {
                what: "Peak memory of aaep validate",
                wanted: TargetBound::Below(50.0),
                unit: "MB",
                found: self.memory_mb,
            },
        ]
    }
}

/// Runs the requested parts and reports the results.
pub(crate) fn run(options: &ValidateBenchOptions) -> ExitCode {
    let mut report = BenchReport::default();
    let mut found = ValidateFindings::default();
    let mut missing = false;
    if let Some(load) = load() {
        report.say(load);
    }
    let parts = options.only.map_or(ValidatePart::value_variants().to_vec(), |part| vec![part]);
    for part in parts {
        let (name, result) = match part {
            ValidatePart::InProcess => ("in process", in_process::measure(&mut found, &mut report)),
            ValidatePart::Python => ("with Python", python::measure(&mut found, &mut report)),
            ValidatePart::EndToEnd => {
                ("end to end", end_to_end::measure(options, &mut found, &mut report))
            }
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

/// The load of the machine, as Linux reports it; the end-to-end part needs all cores.
fn load() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load = text.split(' ').next()?;
    let cores = std::thread::available_parallelism().ok()?;
    Some(format!("Load of the machine at the start: {load}, on {cores} cores."))
}
