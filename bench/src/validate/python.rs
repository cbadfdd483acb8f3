//! The same events with Python's jsonschema, in a child process. Our own reader is timed before and after it.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aaep::Mode;
use serde_json::{Value as Json, json};

use super::ValidateFindings;
use crate::sample::{MessageSample, samples};
use crate::table::{BenchReport, NamedAmount, ReportBlock};
use crate::timing::{TurnPlan, ValueSpread};

const SCRIPT: &str = include_str!("python.py");

const TURNS: TurnPlan = TurnPlan { rounds: 150, batch: 200 };

/// Measures every sample; the targets refer to the first one.
pub(super) fn measure(
    found: &mut ValidateFindings,
    report: &mut BenchReport,
) -> Result<(), String> {
    let python = find_python(report)?;
    let folder = std::env::temp_dir().join(format!("aaep-bench-{}", std::process::id()));
    let samples = samples();
    let before: Vec<ValueSpread> = samples.iter().map(time_ours).collect();
    let result = write_files(&folder, &samples)
        .map_err(|error| format!("the files for Python could not be written: {error}"))
        .and_then(|()| run_script(&python, &folder));
    // If this fails, a folder stays in the system's temporary directory, which does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    let result = result?;
    let after: Vec<ValueSpread> = samples.iter().map(time_ours).collect();

    report.say(format!(
        "\nWith Python {}, jsonschema {}, in {}.",
        result["python"].as_str().unwrap_or("?"),
        result["jsonschema"].as_str().unwrap_or("?"),
        python.display(),
    ));
    for (index, sample) in samples.iter().enumerate() {
        let time = |name: &str| result["events"][index][name].as_f64();
        let (Some(median), Some(p99)) = (time("median_ns"), time("p99_ns")) else {
            return Err(format!("Python said nothing of {}", sample.label));
        };
        let ours = f64::midpoint(before[index].median, after[index].median);
        let mut block = ReportBlock::new(format!("{}, time per event", sample.label));
        let around = vec![
            NamedAmount::new("median before Python", before[index].median, "ns"),
            NamedAmount::new("after it", after[index].median, "ns"),
        ];
        block.line("aaep::read, strict", around);
        block.line("Python, json.loads and validate", ValueSpread { median, p99 }.amounts());
        block.line("aaep::read against Python", vec![NamedAmount::times(median, ours)]);
        report.add(&block);
        if index == 0 {
            found.python_ratio = Some(median / ours);
        }
    }
    Ok(())
}

fn time_ours(sample: &MessageSample) -> ValueSpread {
    let [spread] = TURNS.run([&mut || {
        black_box(aaep::read(black_box(&sample.bytes), Mode::Strict));
    }]);
    spread
}

fn write_files(folder: &Path, samples: &[MessageSample]) -> std::io::Result<()> {
    let schemas = aaep::schemas();
    std::fs::create_dir_all(folder)?;
    let all: Vec<&Json> = schemas.iter().map(|file| &file.schema).collect();
    std::fs::write(folder.join("schemas.json"), json!(all).to_string())?;
    let events: Vec<Json> = samples
        .iter()
        .map(|sample| {
            let file = schemas.iter().find(|file| file.path == sample.schema);
            json!({
                "schema": file.map(|file| &file.schema["$id"]),
                "text": String::from_utf8_lossy(&sample.bytes),
            })
        })
        .collect();
    std::fs::write(folder.join("events.json"), json!(events).to_string())
}

fn run_script(python: &Path, folder: &Path) -> Result<Json, String> {
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{} did not start: {error}", python.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or("nothing");
        return Err(format!("Python ended with {} and said: {last}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("Python's answer: {error}"))
}

/// Finds a Python that has jsonschema, or else sets up one of our own.
fn find_python(report: &mut BenchReport) -> Result<PathBuf, String> {
    let own = super::end_to_end::target_folder()?.join("bench-venv");
    let own_python = own.join("bin/python");
    let ready = [Path::new("python3"), Path::new("/usr/bin/python3"), &own_python];
    if let Some(python) = ready.into_iter().find(|python| has_jsonschema(python)) {
        return Ok(python.to_owned());
    }
    report.say(format!("No Python has jsonschema. Installing it into {}.", own.display()));
    let made = run_quietly(Command::new("python3").args(["-m", "venv"]).arg(&own))
        .and_then(|()| {
            run_quietly(Command::new(&own_python).args(["-m", "pip", "install", "jsonschema"]))
        })
        .and_then(|()| {
            let wrong = || "it cannot be imported after it was installed".to_owned();
            has_jsonschema(&own_python).then_some(own_python).ok_or_else(wrong)
        });
    made.map_err(|reason| format!("no Python has jsonschema, and none could be made: {reason}"))
}

fn has_jsonschema(python: &Path) -> bool {
    run_quietly(Command::new(python).args(["-c", "import jsonschema, referencing"])).is_ok()
}

fn run_quietly(command: &mut Command) -> Result<(), String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{} did not start: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().last().unwrap_or("it said nothing").to_owned())
}
