//! Single events on one core of this process: the types of this project compared with `serde_json`
//! and with the jsonschema crate, which is the fastest alternative in Rust that we know.

use std::hint::black_box;

use aaep::{Mode, SchemaFile};
use jsonschema::{Registry, Validator};
use serde_json::Value as Json;

use super::ValidateFindings;
use crate::sample::{MessageSample, samples};
use crate::table::{BenchReport, NamedAmount, ReportBlock};
use crate::timing::{TurnPlan, ValueSpread};

const TURNS: TurnPlan = TurnPlan { rounds: 800, batch: 100 };

/// Measures every sample; the targets refer to the first one.
pub(super) fn measure(
    found: &mut ValidateFindings,
    report: &mut BenchReport,
) -> Result<(), String> {
    let schemas = aaep::schemas();
    let registry = registry(&schemas)?;
    report.say(format!(
        "In process, one core: {} rounds of {} events each way, in turns.",
        TURNS.rounds, TURNS.batch
    ));
    for (index, sample) in samples().iter().enumerate() {
        let validator = validator(sample, &schemas, &registry)?;
        let times = time(sample, &validator)?;
        report.add(&times.block(&sample.label));
        if index == 0 {
            found.read_ns = Some(times.read.median);
            found.schema_ratio = Some(times.is_valid.median / times.read.median);
        }
    }
    Ok(())
}

fn registry(schemas: &[SchemaFile]) -> Result<Registry<'static>, String> {
    let mut builder = Registry::new();
    for file in schemas {
        let id = file.schema["$id"].as_str().unwrap_or_default();
        builder = builder.add(id, file.schema.clone()).map_err(|error| error.to_string())?;
    }
    builder.prepare().map_err(|error| error.to_string())
}

fn validator(
    sample: &MessageSample,
    schemas: &[SchemaFile],
    registry: &Registry<'_>,
) -> Result<Validator, String> {
    let file = schemas.iter().find(|file| file.path == sample.schema);
    let file = file.ok_or_else(|| format!("there is no schema {}", sample.schema))?;
    jsonschema::options()
        .with_registry(registry)
        .offline()
        .should_validate_formats(true)
        .build(&file.schema)
        .map_err(|error| error.to_string())
}

struct SampleTimes {
    read: ValueSpread,
    is_valid: ValueSpread,
    errors: ValueSpread,
    parse: ValueSpread,
    write: ValueSpread,
}

impl SampleTimes {
    fn block(&self, sample: &str) -> ReportBlock {
        let mut block = ReportBlock::new(format!("{sample}, time per event"));
        block.line("aaep::read, strict", self.read.amounts());
        block.line("serde_json and jsonschema, is_valid", self.is_valid.amounts());
        block.line("serde_json and jsonschema, all errors", self.errors.amounts());
        block.line("serde_json, parsing alone", self.parse.amounts());
        block.line("Writing the message, serde_json::to_vec", self.write.amounts());
        let ratio = |other: ValueSpread| vec![NamedAmount::times(other.median, self.read.median)];
        block.line("aaep::read against is_valid", ratio(self.is_valid));
        block.line("aaep::read against all errors", ratio(self.errors));
        block.line("aaep::read against parsing alone", ratio(self.parse));
        block
    }
}

fn time(sample: &MessageSample, validator: &Validator) -> Result<SampleTimes, String> {
    let bytes = sample.bytes.as_slice();
    let parse = || serde_json::from_slice::<Json>(black_box(bytes));
    let reading = aaep::read(bytes, Mode::Strict);
    let message = match reading.message {
        Some(message) if reading.violations.is_empty() => message,
        _ => return Err(format!("{} is not valid: {:?}", sample.label, reading.violations)),
    };
    let json = parse().map_err(|error| error.to_string())?;
    if let Some(error) = validator.iter_errors(&json).next() {
        return Err(format!("{} does not follow its schema: {error}", sample.label));
    }
    let [read, is_valid, errors, parse, write] = TURNS.run([
        &mut || {
            black_box(aaep::read(black_box(bytes), Mode::Strict));
        },
        &mut || {
            black_box(parse().is_ok_and(|json| validator.is_valid(&json)));
        },
        &mut || {
            black_box(parse().map_or(1, |json| validator.iter_errors(&json).count()));
        },
        &mut || {
            black_box(parse().is_ok());
        },
        &mut || {
            black_box(serde_json::to_vec(black_box(&message)).is_ok());
        },
    ]);
    Ok(SampleTimes { read, is_valid, errors, parse, write })
}
