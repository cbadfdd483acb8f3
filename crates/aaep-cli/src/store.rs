//! Where a store is, and opening it, for the commands that look into one.
//!
//! Never makes a store, and never looks into one that a hub has open.

use std::path::{Path, PathBuf};

use aaep_hub::store::{OpenError, Recovered, Retention, Store};
use clap::Args;

use crate::console::{Failure, name_of};

/// Where the store is.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The folder of the store, as the hub has it. No hub may be using it meanwhile.
    #[arg(long = "store", value_name = "DIR", env = "AAEP_STORE")]
    folder: PathBuf,
}

impl Place {
    /// Opens the store there.
    pub(crate) fn open(&self) -> Result<(Store, Recovered), Failure> {
        open(&self.folder)?.map_err(|error| failure(&error))
    }
}

/// Opens the store in a folder. A folder without one is a failure; it stays as it is.
pub(crate) fn open(folder: &Path) -> Result<Result<(Store, Recovered), OpenError>, Failure> {
    if !Store::is_in(folder) {
        return Err(Failure::new(
            format!("there is no store in {}", name_of(folder)),
            "Say with --store in which folder the hub keeps it.",
        ));
    }
    // Nothing is swept here, so it does not matter how long the hub keeps sessions.
    let opened = Store::open(folder, Retention::default());
    if let Ok((_, recovered)) = &opened {
        for note in &recovered.notes {
            crate::console::say(note);
        }
    }
    Ok(opened)
}

/// Why a store cannot be looked into, with what to do at the command line.
pub(crate) fn failure(error: &OpenError) -> Failure {
    match error {
        OpenError::InUse { folder } => Failure::new(
            format!("the store in {} is in use, most likely by a hub that runs", name_of(folder)),
            "Stop that hub, then try again.",
        ),
        OpenError::AuditBroken { path, broken } => {
            let broken = broken.to_string();
            let broken = broken.strip_suffix('.').unwrap_or(&broken);
            Failure::new(
                format!("the audit log {} cannot be trusted. {broken}", name_of(path)),
                "Nothing was changed. Keep a copy of the folder and find out who changed it.",
            )
        }
        other => Failure::of_sentences(&other.to_string(), "More: aaep --help"),
    }
}
