//! What hooks keep: the memory of each session of an agent, and the person's own risk table.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use aaep_bridge::AgentMemory;
use aaep_bridge::risk::RiskTable;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::console::CommandFailure;
use crate::folders::state_folder;
use crate::kept::{KeptFile, KeptState};
use crate::settings;

/// Files of sessions that were never closed are deleted after this time.
const KEPT_FOR: Duration = Duration::from_hours(7 * 24);

/// The memory of one session, as it is kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct KeptMemory(AgentMemory);

impl KeptState for KeptMemory {
    const FILE: &'static str = "hooks";
    const CALLED: &'static str = "What AAEP remembers of this session of the agent";
    const WITHOUT_IT: &'static str = "The session is told from here on as if it had just begun.";

    fn is_sound(&self) -> bool {
        true
    }
}

/// The file that keeps the memory of one session.
pub(super) struct MemoryFile {
    path: PathBuf,
    file: KeptFile<KeptMemory>,
}

impl MemoryFile {
    /// The file for a session of an agent. Its name says nothing about the session.
    pub(super) fn of_session(session: &str) -> Result<Self, CommandFailure> {
        use std::fmt::Write as _;
        let mut name = String::new();
        for byte in &Sha256::digest(session.as_bytes())[..16] {
            let _ = write!(name, "{byte:02x}");
        }
        let folder = state_folder()?.join(KeptMemory::FILE);
        let path = folder.join(format!("{name}.json"));
        if !path.exists() {
            delete_old(&folder);
        }
        Ok(MemoryFile { file: KeptFile::at(path.clone()), path })
    }

    /// Changes the memory while no other hook of the session does.
    pub(super) fn change<V>(
        &self,
        change: impl FnOnce(&mut AgentMemory) -> V,
    ) -> Result<V, CommandFailure> {
        self.file.change(|kept| change(&mut kept.0))
    }

    /// Forgets the session.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.path.with_extension("lock"));
    }
}

/// Deletes what sessions left behind that were never closed.
fn delete_old(folder: &std::path::Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry.metadata().ok().and_then(|it| it.modified().ok()?.elapsed().ok());
        if age.is_some_and(|age| age > KEPT_FOR) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The risk table with the person's own rows, from `risk.toml` beside their settings.
pub(crate) fn risk_table() -> Result<RiskTable, CommandFailure> {
    let path = settings::path()?.with_file_name("risk.toml");
    match fs::read_to_string(&path) {
        Ok(text) => RiskTable::with_own_rows(&text).map_err(|error| {
            let what = format!(
                "the risk table {} cannot be used: {error}",
                crate::console::name_of(&path)
            );
            CommandFailure::new(what, "Correct it, or delete it to use the standard one.")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(RiskTable::standard()),
        Err(error) => {
            let next = "Look at the rights of the file.";
            Err(CommandFailure::of_file("read", &path, &error, next))
        }
    }
}
