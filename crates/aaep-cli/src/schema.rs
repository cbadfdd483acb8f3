//! `aaep schema`: writes our JSON Schemas, with the folders and names of the public ones.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::console::{CommandFailure, count, name_of};

const EXIT_CODES: &str = "\
For example: aaep schema --out schemas --bundle
Exit codes:
  0  the schemas are written
  2  it could not be done: wrong usage, or a folder that cannot be written";

/// What to write and where.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct SchemaOptions {
    /// The folder to write to, created if it is missing. Files of the same names are replaced.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write schemas that refer to no other file, and aaep.schema.json for any message.
    #[arg(long)]
    bundle: bool,
}

/// Writes all schemas and reports how many.
pub(crate) fn run(arguments: &SchemaOptions) -> Result<ExitCode, CommandFailure> {
    let next = "Choose a folder that you may write to, with --out.";
    let files = if arguments.bundle { aaep::bundled_schemas() } else { aaep::schemas() };
    for file in &files {
        let path = arguments.out.join(&file.path);
        let mut text = serde_json::to_string_pretty(&file.schema).unwrap_or_default();
        text.push('\n');
        path.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| CommandFailure::of_file("write", &path, &error, next))?;
    }
    crate::console::say(&format!(
        "Wrote {} to {}.",
        count(files.len() as u64, "schema"),
        name_of(&arguments.out)
    ));
    Ok(ExitCode::SUCCESS)
}
