//! `aaep keys`: makes, lists and retires the keys that sign manifests (§10.4.3).
//!
//! No private key is ever printed.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use aaep::Timestamp;
use aaep_trust::keys::{KeyRecord, KeyRing, KeyRingError, KeyState, SigningAlgorithm, Thumbprint};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use crate::console::{CommandFailure, name_of};
use crate::english::signing;
use crate::folders::data_folder;
use crate::order::example;

const EXIT_CODES: &str = "\
The keys are in a folder that only you can read.
Exit codes:
  0  it is done
  2  it could not be done: wrong usage, no such key, or a folder that cannot be used";

/// What to do with the keys.
#[derive(Debug, Args)]
#[command(after_help = example("aaep keys list --jwks", EXIT_CODES))]
pub(crate) struct KeysOptions {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Make a new key that signs from now on.
    ///
    /// The previous key stays published for a while, so that what it signed can still be verified.
    #[command(after_help = example("aaep keys new --overlap-days 90", EXIT_CODES))]
    New {
        /// The algorithm that the key signs with.
        #[arg(long, value_enum, default_value_t = AlgorithmName::Es256)]
        algorithm: AlgorithmName,
        /// How many days the previous key stays published.
        #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=3650))]
        overlap_days: u32,
        #[command(flatten)]
        place: KeysFolderFlag,
    },
    /// List the keys: which one signs, which are still published, which are retired.
    #[command(after_help = example("aaep keys list --jwks", EXIT_CODES))]
    List {
        /// Print a JSON array, for programs.
        #[arg(long, conflicts_with = "jwks")]
        json: bool,
        /// Print the key set to publish: public keys only.
        #[arg(long)]
        jwks: bool,
        #[command(flatten)]
        place: KeysFolderFlag,
    },
    /// Retire a key that no longer signs: stop publishing it, and delete its private half.
    #[command(after_help = example("aaep keys retire KID", EXIT_CODES))]
    Retire {
        /// The key, as `aaep keys list` names it.
        kid: Thumbprint,
        #[command(flatten)]
        place: KeysFolderFlag,
    },
}

/// Where the keys are.
#[derive(Debug, Args)]
pub(crate) struct KeysFolderFlag {
    /// The folder of the keys, created with the first key. By default a folder of your own.
    #[arg(long, value_name = "DIR", env = "AAEP_KEYS")]
    folder: Option<PathBuf>,
}

impl KeysFolderFlag {
    /// Opens the key ring in this folder.
    pub(crate) fn open(&self) -> Result<KeyRing, CommandFailure> {
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => data_folder("--folder")?.join("keys"),
        };
        KeyRing::open(&folder).map_err(|error| failure(&error))
    }
}

/// The algorithms that keys are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AlgorithmName {
    /// ECDSA on the curve P-256, which the specification recommends.
    Es256,
    /// Ed25519.
    Eddsa,
}

pub(crate) fn run(arguments: &KeysOptions) -> Result<ExitCode, CommandFailure> {
    match &arguments.command {
        KeysCommand::New { algorithm, overlap_days, place } => {
            let algorithm = match algorithm {
                AlgorithmName::Es256 => SigningAlgorithm::Es256,
                AlgorithmName::Eddsa => SigningAlgorithm::EdDsa,
            };
            new(place.open()?, algorithm, *overlap_days)?;
        }
        KeysCommand::List { json, jwks, place } => list(&place.open()?, *json, *jwks)?,
        KeysCommand::Retire { kid, place } => {
            place.open()?.retire(kid, now_unix_ms()).map_err(|error| failure(&error))?;
            tell(&signing::retired(kid))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn new(
    mut ring: KeyRing,
    algorithm: SigningAlgorithm,
    overlap_days: u32,
) -> Result<(), CommandFailure> {
    let overlap = Duration::from_hours(24 * u64::from(overlap_days));
    let kid = ring.new_key(algorithm, overlap, now_unix_ms()).map_err(|error| failure(&error))?;
    tell(&signing::made(&kid, &name_of(ring.folder())))?;
    if ring.records().len() > 1 {
        tell(&signing::previous_stays(u64::from(overlap_days)))?;
        tell(&signing::tell_subscribers(&kid))?;
    }
    Ok(())
}

fn list(ring: &KeyRing, as_json: bool, as_jwks: bool) -> Result<(), CommandFailure> {
    let now = now_unix_ms();
    if as_jwks {
        return tell(&format!("{:#}", ring.jwks(now)));
    }
    if as_json {
        let keys: Vec<_> = ring
            .records()
            .iter()
            .map(|record| {
                json!({
                    "kid": record.kid().as_str(),
                    "algorithm": record.algorithm().name(),
                    "state": state_name(record.state(now)),
                    "created_at": moment(record.created_unix_ms),
                    "retires_at": record.retires_unix_ms.map(moment),
                })
            })
            .collect();
        return tell(&format!("{:#}", json!(keys)));
    }
    let folder = name_of(ring.folder());
    if ring.records().is_empty() {
        return tell(&signing::no_keys(&folder));
    }
    tell(&signing::keys(ring.records().len() as u64, &folder))?;
    ring.records().iter().try_for_each(|record| tell(&sentence(record, now)))
}

fn sentence(record: &KeyRecord, now_unix_ms: i64) -> String {
    let retires = record.retires_unix_ms.map(moment).unwrap_or_default();
    let state = match record.state(now_unix_ms) {
        KeyState::Active => signing::SIGNS_NOW.to_owned(),
        KeyState::Published => signing::published_until(&retires),
        KeyState::Retired => signing::retired_since(&retires),
    };
    let made = moment(record.created_unix_ms);
    signing::key(record.kid(), &record.algorithm(), &made, &state)
}

const fn state_name(state: KeyState) -> &'static str {
    match state {
        KeyState::Active => "active",
        KeyState::Published => "published",
        KeyState::Retired => "retired",
    }
}

/// Turns an error of the key ring into a failure. Its message already contains the next step.
pub(crate) fn failure(error: &KeyRingError) -> CommandFailure {
    CommandFailure::new(error.to_string(), signing::MORE_HELP)
}

/// The time by this computer's clock.
pub(crate) fn now_unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A moment as a timestamp.
pub(crate) fn moment(unix_ms: i64) -> String {
    Timestamp::from_unix_ms(unix_ms)
        .map_or_else(|| signing::TIME_NOT_WRITTEN.to_owned(), |at| at.as_str().to_owned())
}

/// Writes a line to standard output.
pub(crate) fn tell(line: &str) -> Result<(), CommandFailure> {
    writeln!(io::stdout(), "{line}").map_err(|error| CommandFailure::of_output(&error))
}
