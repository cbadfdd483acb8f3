//! A backup of the whole store, made while the hub keeps working.
//!
//! The hub first writes the backup to a file next to the store, at the speed of the disk, so that a slow reader
//! never holds up the store. The file has no name, so nothing can be left behind.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use super::{Hub, HubError};
use crate::access::Principal;
use crate::audit::Entry;
use crate::store::folder::create_file;
use crate::store::{ReadError, StoreChange};

impl Hub {
    /// Copies everything that was acknowledged so far, as one consistent snapshot, to a file that you can read
    /// from its beginning. [`crate::store::restore`] turns it into a store again. Returns `None` if the hub
    /// keeps nothing on disk. The audit log says which principal made the backup.
    pub async fn backup(&self, principal: &Principal) -> Result<Option<File>, HubError> {
        let Some(folder) = self.reader().audit_path().and_then(Path::parent) else {
            return Ok(None);
        };
        let path = folder.join(format!("backup-{}", std::process::id()));
        let who = principal.id.clone();
        self.call(move |owner| {
            let entry = Entry {
                unix_us: owner.clock.now().unix_us,
                kind: "backup",
                session_id: None,
                reply_token: None,
                who: Some(who),
                outcome: "everything that is stored was copied".to_owned(),
                details: None,
            };
            owner.batch.changes.push(StoreChange::Audit(entry));
        })
        .await?;
        let reader = self.reader().clone();
        let written = tokio::task::spawn_blocking(move || {
            let mut file = nameless_file(&path).map_err(|error| error.to_string())?;
            let written = reader.write_backup(&file);
            written.map_err(|error: ReadError| error.to_string())?;
            file.seek(SeekFrom::Start(0)).map_err(|error| error.to_string())?;
            Ok(file)
        });
        let written = written.await.map_err(|_| HubError::Stopped)?;
        written.map(Some).map_err(|why: String| HubError::NotStored { why: Some(why) })
    }
}

/// Creates a file that disappears when it is closed. On systems where an open file keeps its name, the next
/// backup overwrites the file.
fn nameless_file(path: &Path) -> io::Result<File> {
    let file = create_file(path)?;
    if cfg!(unix) {
        fs::remove_file(path)?;
    }
    Ok(file)
}
