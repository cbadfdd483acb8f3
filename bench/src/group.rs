//! The least that durable storing takes: one writer gathers what waits, stores it with one wait for the disk,
//! and only then answers. This is the limit with which the hub is compared.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use redb::{Database, TableDefinition};

/// How many may wait for the writer.
const MAX_WAITING: usize = 1024;

/// How many are stored together at most.
const MAX_TOGETHER: usize = 16_384;

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");

/// Something to be stored.
pub(crate) struct Item {
    pub(crate) bytes: Arc<[u8]>,
    /// What follows once it is stored.
    pub(crate) then: Box<dyn FnOnce() + Send>,
}

/// Where things are stored.
pub(crate) enum Disk {
    /// A file that is appended to.
    File(File),
    /// A table of redb; one row for each group.
    Table { database: Box<Database>, rows: u64 },
}

impl Disk {
    pub(crate) fn file(folder: &Path) -> Result<Self, String> {
        let path = folder.join("append");
        File::create(&path).map(Disk::File).map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(crate) fn table(folder: &Path) -> Result<Self, String> {
        let database = Database::create(folder.join("bare.redb")).map_err(text)?;
        Ok(Disk::Table { database: Box::new(database), rows: 0 })
    }

    /// Stores all of it; it is on the disk afterwards.
    fn store(&mut self, items: &[Item]) -> Result<(), String> {
        let bytes: Vec<u8> = items.iter().flat_map(|item| item.bytes.iter().copied()).collect();
        match self {
            Disk::File(file) => {
                file.write_all(&bytes).map_err(text)?;
                file.sync_data().map_err(text)
            }
            Disk::Table { database, rows } => {
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

/// The writer, as those who store see it.
#[derive(Clone)]
pub(crate) struct Writer {
    items: SyncSender<Item>,
    syncs: Arc<AtomicU64>,
}

impl Writer {
    pub(crate) fn start(disk: Disk) -> Self {
        let (items, waiting) = mpsc::sync_channel(MAX_WAITING);
        let syncs = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&syncs);
        thread::spawn(move || run(disk, &waiting, &counted));
        Writer { items, syncs }
    }

    pub(crate) fn store(&self, item: Item) -> Result<(), String> {
        self.items.send(item).map_err(|_| "nothing can be stored any more".to_owned())
    }

    /// How often it has waited for the disk.
    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }
}

/// Works until nobody stores any more, or nothing can be stored.
fn run(mut disk: Disk, waiting: &Receiver<Item>, syncs: &AtomicU64) {
    while let Ok(first) = waiting.recv() {
        let mut items = vec![first];
        items.extend(waiting.try_iter().take(MAX_TOGETHER - 1));
        // Whoever waits learns of a failure by getting no answer.
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
        let disks = [Disk::file(folder.path()), Disk::table(folder.path())];
        for disk in disks {
            let writer = Writer::start(disk.expect("a disk"));
            let (sender, answers) = mpsc::channel();
            for number in 0..100 {
                let sender = sender.clone();
                let then = Box::new(move || sender.send(number).expect("someone waits"));
                writer
                    .store(Item { bytes: b"0123456789".as_slice().into(), then })
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
