//! A backup of everything that is stored, made while the hub goes on working.
//!
//! It is written to a file beside the store first, at the pace of the disk, so that nobody who reads it slowly
//! holds the store up. The file has no name, so that nothing is left of it whatever happens.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use super::{Hub, HubError};
use crate::access::Principal;
use crate::audit::Entry;
use crate::store::folder::create_file;
use crate::store::{Change, ReadError};

impl Hub {
    /// Everything that was acknowledged until now, as one moment of the store, in a file that can be read from
    /// its beginning; [`crate::store::restore`] makes a store of it. None for a hub that keeps nothing on the
    /// disk. The audit log says who made it.
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
            owner.batch.changes.push(Change::Audit(entry));
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

/// A file that is gone when it is closed. Where the system keeps the name of an open file, it is used again.
fn nameless_file(path: &Path) -> io::Result<File> {
    let file = create_file(path)?;
    if cfg!(unix) {
        fs::remove_file(path)?;
    }
    Ok(file)
}
