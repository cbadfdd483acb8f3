//! `aaep backup`: copies everything that a hub has stored into a new folder, also while the hub runs.
//!
//! A running hub is asked first; its folder is opened only if no hub answers. An incomplete copy is not kept.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use aaep_hub::store::{BackupError, Restored, Store, restore};
use clap::Args;

use crate::agent;
use crate::archive::{ArchiveFlags, ArchiveSource};
use crate::console::{CommandFailure, count, name_of, number};
use crate::http::{BodyPieces, HubAnswer, HubClient, HubRequest};
use crate::keys::tell;

/// How long a whole backup may take.
const TIMEOUT: Duration = Duration::from_hours(1);

/// How much of a refusal is read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

const EXIT_CODES: &str = "\
For example: aaep backup ~/aaep-backup
To use a backup, stop the hub and start it with: aaep serve --store DIR
Exit codes:
  0  the backup is complete, and its audit log is as it was written
  2  it could not be made, and nothing of it was kept";

/// Where to copy to, and from.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct BackupOptions {
    /// The folder for the backup. It must be new or empty.
    #[arg(value_name = "DIR")]
    destination: PathBuf,
    #[command(flatten)]
    place: ArchiveFlags,
}

/// Makes the backup and reports what it contains.
pub(crate) fn run(arguments: &BackupOptions) -> Result<ExitCode, CommandFailure> {
    let to = &arguments.destination;
    let restored = match arguments.place.source()? {
        ArchiveSource::Hub(client) => from_hub(&client, to)?,
        ArchiveSource::Store(store) => from_store(&store, to)?,
    };
    let Restored { sessions, audit_entries } = restored;
    let entries = if audit_entries == 1 {
        "1 entry".to_owned()
    } else {
        format!("{} entries", number(audit_entries))
    };
    tell(&format!(
        "The backup in {0} is complete: {1}, and an audit log with {entries} that holds. It has the words of \
         people, so keep it where only you can read it. To run a hub with it: aaep serve --store {0}",
        name_of(to),
        count(sessions, "session"),
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn from_hub(client: &HubClient, to: &Path) -> Result<Restored, CommandFailure> {
    let request =
        HubRequest { method: "GET", path: "/aaep/v1/backup", body: None, timeout: TIMEOUT };
    let pieces = client.stream(&request);
    let pieces = pieces.map_err(|error| agent::not_answered(client, &error))?;
    if pieces.status() != 200 {
        let status = pieces.status();
        let mut body = Vec::new();
        let most = MAX_REFUSAL_BYTES as u64;
        // If the rest cannot be read, report what there is.
        let _ = BackupStream { pieces, held: Vec::new() }.take(most).read_to_end(&mut body);
        return Err(agent::refused(client, &HubAnswer { status, body }));
    }
    let mut stream = BackupStream { pieces, held: Vec::new() };
    restore(&mut stream, to).map_err(|error| failure(&error))
}

fn from_store(store: &Store, to: &Path) -> Result<Restored, CommandFailure> {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(format!(".stream-{}", std::process::id()));
    let path = to.with_file_name(name);
    let restored = (|| {
        let mut file = create(&path)?;
        let written = store.write_backup(&file);
        written.map_err(|error| BackupError::Io(error.to_string()))?;
        file.seek(SeekFrom::Start(0))?;
        restore(&mut file, to)
    })();
    let _ = fs::remove_file(&path);
    restored.map_err(|error| failure(&error))
}

/// Creates a file that only its owner can read.
fn create(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn failure(error: &BackupError) -> CommandFailure {
    CommandFailure::of_sentences(&error.to_string(), "More: aaep backup --help")
}

/// The body of an answer, as a reader.
struct BackupStream {
    pieces: BodyPieces,
    held: Vec<u8>,
}

impl Read for BackupStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.held.is_empty() {
            match self.pieces.next() {
                Ok(Some(piece)) => self.held = piece,
                Ok(None) => return Ok(0),
                Err(error) => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, error.to_string()));
                }
            }
        }
        let count = buffer.len().min(self.held.len());
        let rest = self.held.split_off(count);
        if let Some(filled) = buffer.get_mut(..count) {
            filled.copy_from_slice(&self.held);
        }
        self.held = rest;
        Ok(count)
    }
}
