//! The least that durable storage takes: one writer collects all pending requests, stores them with
//! one wait for the disk, and only then answers. The hub is compared with this limit.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use redb::{Database, TableDefinition};

/// The most requests that may wait for the writer.
const MAX_WAITING: usize = 1024;

/// The most requests that are stored together.
const MAX_TOGETHER: usize = 16_384;

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");

/// Bytes to store.
pub(crate) struct WriteRequest {
    pub(crate) bytes: Arc<[u8]>,
    /// Called once the bytes are stored.
    pub(crate) then: Box<dyn FnOnce() + Send>,
}

/// Where requests are stored.
pub(crate) enum GroupDisk {
    /// A file to append to.
    File(File),
    /// A table of redb; one row for each group.
    Table { database: Box<Database>, rows: u64 },
}

impl GroupDisk {
    pub(crate) fn file(folder: &Path) -> Result<Self, String> {
        let path = folder.join("append");
        File::create(&path)
            .map(GroupDisk::File)
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(crate) fn table(folder: &Path) -> Result<Self, String> {
        let database = Database::create(folder.join("bare.redb")).map_err(text)?;
        Ok(GroupDisk::Table { database: Box::new(database), rows: 0 })
    }

    /// Stores all requests; when this returns, they are on the disk.
    fn store(&mut self, items: &[WriteRequest]) -> Result<(), String> {
        let bytes: Vec<u8> = items.iter().flat_map(|item| item.bytes.iter().copied()).collect();
        match self {
            GroupDisk::File(file) => {
                file.write_all(&bytes).map_err(text)?;
                file.sync_data().map_err(text)
            }
            GroupDisk::Table { database, rows } => {
                let transaction = database.begin_write().map_err(text)?;
                let mut table = transaction.open_table(TABLE).map_err(text)?;
                table.insert(*rows, bytes.as_slice()).map_err(text)?;
                drop(table);
                *rows += 1;
                transaction.commit().map_err(text)
            }
        }
    }
}

/// A handle to the writer.
#[derive(Clone)]
pub(crate) struct GroupWriter {
    items: SyncSender<WriteRequest>,
    syncs: Arc<AtomicU64>,
}

impl GroupWriter {
    pub(crate) fn start(disk: GroupDisk) -> Self {
        let (items, waiting) = mpsc::sync_channel(MAX_WAITING);
        let syncs = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&syncs);
        thread::spawn(move || run(disk, &waiting, &counted));
        GroupWriter { items, syncs }
    }

    pub(crate) fn store(&self, item: WriteRequest) -> Result<(), String> {
        self.items.send(item).map_err(|_| "nothing can be stored any more".to_owned())
    }

    /// How often the writer has waited for the disk.
    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }
}

/// Runs until all handles are dropped or storing fails.
fn run(mut disk: GroupDisk, waiting: &Receiver<WriteRequest>, syncs: &AtomicU64) {
    while let Ok(first) = waiting.recv() {
        let mut items = vec![first];
        items.extend(waiting.try_iter().take(MAX_TOGETHER - 1));
        // Waiting callers learn of a failure because they get no answer.
        if disk.store(&items).is_err() {
            return;
        }
        syncs.fetch_add(1, Ordering::Relaxed);
        for item in items {
            (item.then)();
        }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_is_answered_once_everything_is_stored() {
        let folder = tempfile::tempdir().expect("a folder");
        let disks = [GroupDisk::file(folder.path()), GroupDisk::table(folder.path())];
        for disk in disks {
            let writer = GroupWriter::start(disk.expect("a disk"));
            let (sender, answers) = mpsc::channel();
            for number in 0..100 {
                let sender = sender.clone();
                let then = Box::new(move || sender.send(number).expect("someone waits"));
                writer
                    .store(WriteRequest { bytes: b"0123456789".as_slice().into(), then })
                    .expect("stored");
            }
            drop(sender);
            assert_eq!(answers.iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
            assert!((1..=100).contains(&writer.syncs()));
        }
        let written = std::fs::read(folder.path().join("append")).expect("a file");
        assert_eq!(written, b"0123456789".repeat(100));
    }
}
