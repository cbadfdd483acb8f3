//! Opens a store, for the commands that read one directly.
//!
//! Never creates a store, and never reads one that a hub has open.

use std::path::{Path, PathBuf};

use aaep_hub::store::{OpenError, RecoveredStore, Retention, Store};
use clap::Args;

use crate::console::{CommandFailure, name_of};

/// Where the store is.
#[derive(Debug, Args)]
pub(crate) struct StoreFolderFlag {
    /// The folder of the store, as the hub has it. No hub may use it at the same time.
    #[arg(long = "store", value_name = "DIR", env = "AAEP_STORE")]
    folder: PathBuf,
}

impl StoreFolderFlag {
    /// Opens the store in this folder.
    pub(crate) fn open(&self) -> Result<(Store, RecoveredStore), CommandFailure> {
        open(&self.folder)?.map_err(|error| failure(&error))
    }
}

/// Opens the store in a folder. A folder without one is a failure and stays unchanged.
pub(crate) fn open(
    folder: &Path,
) -> Result<Result<(Store, RecoveredStore), OpenError>, CommandFailure> {
    if !Store::is_in(folder) {
        return Err(CommandFailure::new(
            format!("there is no store in {}", name_of(folder)),
            "Say with --store in which folder the hub keeps it.",
        ));
    }
    // Nothing is swept here, so the hub's retention does not matter.
    let opened = Store::open(folder, Retention::default());
    if let Ok((_, recovered)) = &opened {
        for note in &recovered.notes {
            crate::console::say(note);
        }
    }
    Ok(opened)
}

/// Why a store cannot be opened, with the next step on the command line.
pub(crate) fn failure(error: &OpenError) -> CommandFailure {
    match error {
        OpenError::InUse { folder } => CommandFailure::new(
            format!("the store in {} is in use, most likely by a hub that runs", name_of(folder)),
            "Stop that hub, then try again.",
        ),
        OpenError::AuditBroken { path, broken } => {
            let broken = broken.to_string();
            let broken = broken.strip_suffix('.').unwrap_or(&broken);
            CommandFailure::new(
                format!("the audit log {} cannot be trusted. {broken}", name_of(path)),
                "Nothing was changed. Keep a copy of the folder and find out who changed it.",
            )
        }
        other => CommandFailure::of_sentences(&other.to_string(), "More: aaep --help"),
    }
}
