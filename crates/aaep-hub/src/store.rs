//! The hub's embedded store: what was committed survives `kill -9`.
//!
//! One writer commits groups of plain facts, each group completely or not at all, with one wait for the disk:
//! an append to the journal, which the database follows. Each reader sees one consistent snapshot and never
//! waits for the writer. The audit log next to the database can be read without this code, see
//! [`crate::audit`]. Why the database is redb, and what was measured, is in `docs/decisions/store.md`.
//!
//! The store blocks, so use it from a thread of its own. It does not know what an event means. Deleted data is
//! gone for every reader; the disk itself may keep traces until their room is used again.

mod age;
mod apply;
mod asks;
mod backup;
mod change;
mod cursor;
mod database;
mod ending;
mod error;
mod event_ids;
mod fault;
pub(crate) mod folder;
mod held_names;
mod journal;
mod log;
mod open;
mod reader;
mod recover;
mod replay;
mod salvage;
mod session;
mod set_aside;
mod settled_shares;
mod spare;
mod sweep;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod tests;
mod unused_names;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aaep::SessionId;
use aaep_engine::Now;
use redb::{Durability, WriteTransaction};

pub use asks::{SettledAsk, StoredOpenAsk};
pub use backup::{BackupError, Restored, restore};
pub use change::{StoreChange, StoredTime};
pub use cursor::SessionCursor;
pub use ending::EndedSession;
pub use error::{CommitError, DeleteError, OpenError, ReadError};
pub(crate) use fault::StoreFault;
pub use held_names::StoredName;
pub use open::OpenOptions;
pub use reader::{MAX_PAGE_BYTES, MAX_PAGE_ROWS, Reader};
pub use recover::{
    MAX_RECOVERED_ENDED_BYTES, MAX_RECOVERED_EVENTS, MAX_RECOVERED_SESSIONS,
    MAX_RECOVERED_WORDS_BYTES, RecoveredStore, StoredAnswer, StoredSubscription,
};
pub use replay::{DamagedEvents, Replay, ReplayedEvent};
pub use session::{StoredEvent, StoredSession};
pub use set_aside::LostSession;
pub use sweep::{Deleted, MAX_SWEPT_SESSIONS, Swept};
pub(crate) use table::SyncedAudit;

use crate::audit::{Entry, Hash};
use age::AgeClock;
use database::SharedDatabase;
use event_ids::NewestIds;
use folder::LockedFolder;
use journal::JournalWriter;
use log::AuditLogWriter;
use table::{META, StoreCounters, set_has_journal, set_incomplete};

/// How long ended sessions are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Ended sessions older than this are deleted.
    pub max_age_seconds: u64,
    /// Ended sessions are deleted until all events have at most this many bytes: those of the principal with
    /// the most bytes go first, the oldest first, and a principal with less than an equal part loses none. The
    /// file is about twice as large, because its pages are not full.
    pub max_bytes: u64,
}

impl Default for Retention {
    /// Thirty days, and a quarter of a gibibyte.
    fn default() -> Self {
        Retention { max_age_seconds: 30 * 24 * 60 * 60, max_bytes: 256 << 20 }
    }
}

/// The state of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditState {
    /// The number of the last entry; zero if there is none.
    pub last_seq: u64,
    /// The hash of the last entry; zeros if there is none.
    pub last_hash: Hash,
    /// How many entries are safe in the store but not yet in the file. If this is not zero, the file could not
    /// be written; every commit tries again.
    pub missing_in_file: u64,
}

/// The single writer of a store.
pub struct Store {
    pub(crate) shared: Arc<SharedDatabase>,
    log: AuditLogWriter,
    /// `None` for a store in memory, and where the journal could not be created.
    journal: Option<JournalWriter>,
    retention: Retention,
    /// How many transactions the store has.
    commits: u64,
    /// Whether the last transaction found no room.
    is_full: bool,
    /// Whether the database could not be opened again after a failure, so that it is not known how far it got.
    is_stale: bool,
    /// The last commit of the hub, if it failed in a way that leaves open whether it counts.
    doubt: Option<CommitDoubt>,
    /// Whether acknowledged data was lost. The hub's first commit clears this.
    is_incomplete: bool,
    /// How many commits contained something beyond its bound.
    beyond_bounds: u64,
    newest_ids: NewestIds,
    /// How much time has passed, which decides how long ended sessions are kept.
    age: AgeClock,
    audit_path: Option<Arc<PathBuf>>,
    _lock: Option<LockedFolder>,
}

/// A commit of which it is not known whether it counts.
#[derive(Debug, Clone, Copy)]
struct CommitDoubt {
    number: u64,
    /// What the database says, once it is open again.
    is_there: Option<bool>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("retention", &self.retention).finish_non_exhaustive()
    }
}

impl Store {
    /// Whether there is a store in this folder. Creates nothing.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(folder::DATABASE).is_file()
    }

    /// Opens the store in a folder, or creates one. No other process can open it meanwhile.
    pub fn open(folder: &Path, retention: Retention) -> Result<(Store, RecoveredStore), OpenError> {
        open::open(folder, OpenOptions { retention, repairs: false })
    }

    /// The same as [`Store::open`], with all options.
    pub fn open_with(
        folder: &Path,
        options: OpenOptions,
    ) -> Result<(Store, RecoveredStore), OpenError> {
        open::open(folder, options)
    }

    /// Takes over everything that can be read of a damaged store into a new one, and opens that. The damaged files
    /// are kept under other names; the notes of what was recovered say so.
    pub fn rebuild(
        folder: &Path,
        options: OpenOptions,
        why: &str,
    ) -> Result<(Store, RecoveredStore), OpenError> {
        open::rebuild(folder, options, why)
    }

    /// A store in memory, which is lost when it is dropped.
    pub fn in_memory() -> Store {
        open::in_memory()
    }

    /// Stores all changes or none, and returns when they are on disk. This waits for the disk once, and now and
    /// then once more for the audit file, so pass many changes at a time.
    pub fn commit(&mut self, changes: &[StoreChange]) -> Result<(), CommitError> {
        self.doubt = None;
        if changes.is_empty() {
            return Ok(());
        }
        if let Some((what, found, max)) = change::beyond_bounds(changes) {
            self.beyond_bounds += 1;
            tracing::error!(what, found, max, "Stored beyond a bound. Please report this mistake.");
        }
        let entries: Vec<&Entry> = changes
            .iter()
            .filter_map(
                |change| if let StoreChange::Audit(entry) = change { Some(entry) } else { None },
            )
            .collect();
        // The remembered ids stay valid only if this succeeds at once; otherwise they are dropped.
        let newest = Cell::new(std::mem::take(&mut self.newest_ids));
        self.transact_with(&entries, Some(changes), |transaction, counters| {
            let mut remembered = newest.take();
            apply::apply(transaction, counters, &mut remembered, changes)?;
            newest.set(remembered);
            Ok(())
        })?;
        self.newest_ids = newest.into_inner();
        Ok(())
    }

    /// Whether it is not known if the last commit counts, because the disk failed.
    pub fn is_in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    /// Finds out whether the last commit counts, if that is in doubt. Fails as long as the disk does not let the store
    /// be opened again; try again later. Commit nothing in between that must not be stored twice.
    pub fn settle_doubt(&mut self) -> Result<Option<bool>, CommitError> {
        if self.doubt.is_none() {
            return Ok(None);
        }
        self.reload_if_stale()?;
        let is_there = self.doubt.and_then(|doubt| doubt.is_there).unwrap_or(false);
        if is_there {
            if self.journal.as_ref().is_some_and(JournalWriter::is_in_doubt) {
                // The journal has it, but perhaps not on the disk.
                self.transact(&[], |_, _| Ok(()))?;
            }
            self.log.catch_up(&self.reader());
            self.is_full = false;
            self.is_incomplete = false;
        }
        self.doubt = None;
        Ok(Some(is_there))
    }

    /// Writes into the database what only the journal has on disk so far.
    pub fn checkpoint(&mut self) -> Result<(), CommitError> {
        match &self.journal {
            Some(journal) if !journal.is_empty() => self.transact(&[], |_, _| Ok(())),
            _ => Ok(()),
        }
    }

    /// A reader, for use from any thread while the store writes.
    pub fn reader(&self) -> Reader {
        Reader { shared: Arc::clone(&self.shared), audit_path: self.audit_path.clone() }
    }

    /// Deletes data beyond the retention: whole ended sessions only. Each call does a bounded amount of work;
    /// call it again while [`Swept::is_done`] is false. The age of a session does not depend on the machine's
    /// clock alone, which may jump, so call this about once a minute.
    pub fn sweep(&mut self, now: Now) -> Result<Swept, CommitError> {
        self.age.look(now);
        let swept = self.with_spare_room(|store| sweep::sweep(store, now.unix_us))?;
        self.keep_spare_room();
        Ok(swept)
    }

    /// Deletes an ended session: its events, its answers, and its words in the audit log. The log records the
    /// deletion and the principal behind it, and its chain still holds.
    pub fn delete_session(
        &mut self,
        session_id: &SessionId,
        who: Option<&str>,
        now_unix_us: i64,
    ) -> Result<Deleted, DeleteError> {
        let is_full = |result: &Result<Deleted, DeleteError>| {
            matches!(result, Err(DeleteError::Commit(CommitError::Full)))
        };
        let deleted = sweep::delete(self, session_id, who, now_unix_us);
        if !is_full(&deleted) || !self.shared.release_spare_room() {
            return deleted;
        }
        let deleted = sweep::delete(self, session_id, who, now_unix_us);
        self.give_room_back();
        deleted
    }

    /// Ends a running session without an event: in a folder that no hub uses, or on a full disk. Its open asks
    /// are withdrawn. Afterwards it can be deleted.
    pub fn end_session(
        &mut self,
        session_id: &SessionId,
        who: Option<&str>,
        now_unix_us: i64,
    ) -> Result<EndedSession, CommitError> {
        self.with_spare_room(|store| ending::end(store, session_id, who, now_unix_us))
    }

    /// After a deletion on a full disk: gives the freed room back to the disk, and reserves spare room again.
    fn give_room_back(&mut self) {
        // If this fails, later writes still find room within the file.
        let _ = self.shared.compact();
        self.keep_spare_room();
    }

    /// Does work that makes room. On a full disk, it may use the room that is reserved for this.
    fn with_spare_room<T>(
        &mut self,
        work: impl Fn(&mut Self) -> Result<T, CommitError>,
    ) -> Result<T, CommitError> {
        match work(self) {
            Err(CommitError::Full) if self.shared.release_spare_room() => {
                let done = work(self);
                self.give_room_back();
                done
            }
            done => done,
        }
    }

    fn keep_spare_room(&self) {
        if let Some(folder) = self.shared.folder() {
            spare::keep(folder);
        }
    }

    /// If there are more than `many` principals, forgets those that nothing refers to any more.
    pub(crate) fn forget_unused_principals(
        &mut self,
        recovered: &mut RecoveredStore,
        many: u64,
        names_held_since_unix_us: i64,
    ) -> Result<(), CommitError> {
        if recovered.principals.len() as u64 <= many {
            return Ok(());
        }
        let unused = self.transact(&[], |transaction, _| {
            unused_names::forget(transaction, names_held_since_unix_us)
        })?;
        recovered.held_names.retain(|name| !unused.contains(&name.principal));
        recovered.principals.retain(|(number, _)| !unused.contains(number));
        Ok(())
    }

    /// Moves rows that could not be read at this start into a table of their own, ends the sessions that lost
    /// data, and writes all that into the audit log. Returns one sentence for each, for people. Nothing is
    /// deleted. If this cannot be stored, it is still reported, and is found again at the next start. Fails if the
    /// database itself is damaged, so that nothing can be moved.
    pub fn set_aside(
        &mut self,
        recovered: &RecoveredStore,
        lost: &[LostSession],
        now_unix_us: i64,
    ) -> Result<Vec<String>, ReadError> {
        set_aside::set_aside(self, recovered, lost, now_unix_us)
    }

    /// How many commits contained something beyond its bound. If this is not zero, the hub has a bug: it should
    /// have refused the data. It is stored all the same.
    pub fn beyond_bounds(&self) -> u64 {
        self.beyond_bounds
    }

    /// The state of the audit log.
    pub fn audit(&self) -> AuditState {
        self.log.state()
    }

    /// Waits until the audit file is on disk, and drops its copies in the store.
    pub fn sync_audit(&mut self) -> Result<AuditState, CommitError> {
        self.log.catch_up(&self.reader());
        self.log.sync();
        if self.log.has_forgettable() {
            self.transact(&[], |_, _| Ok(()))?;
        }
        Ok(self.log.state())
    }

    /// Does the work and writes the entries in one transaction of the database, on disk.
    fn transact<T>(
        &mut self,
        entries: &[&Entry],
        work: impl Fn(&WriteTransaction, &mut StoreCounters) -> Result<T, StoreFault>,
    ) -> Result<T, CommitError> {
        self.transact_with(entries, None, work)
    }

    /// Does the work and writes the entries in one transaction, then appends to the audit file. If there is
    /// room, work that consists only of changes goes to the disk through the journal.
    fn transact_with<T>(
        &mut self,
        entries: &[&Entry],
        changes: Option<&[StoreChange]>,
        work: impl Fn(&WriteTransaction, &mut StoreCounters) -> Result<T, StoreFault>,
    ) -> Result<T, CommitError> {
        let mut may_retry = true;
        let is_hubs = changes.is_some();
        self.reload_if_stale()?;
        loop {
            let lines = self.log.prepare(entries)?;
            let expected = self.commits + 1;
            // Only the database forgets entries that are safe in the audit file, and settles what is in doubt.
            let is_in_doubt = self.journal.as_ref().is_some_and(JournalWriter::is_in_doubt);
            let changes = changes.filter(|_| !self.log.has_forgettable() && !is_in_doubt);
            let mut done = None;
            let (journal, age) = (&mut self.journal, self.age.now);
            let is_older = age != self.age.stored;
            let is_incomplete = self.is_incomplete;
            let (generation, result) = self.shared.write(|transaction| {
                let mut meta = transaction.open_table(META)?;
                let mut counters = recover::counters(&meta)?;
                counters.counted_us = age.counted_us;
                done = Some(work(transaction, &mut counters)?);
                self.log.write(transaction, &mut meta, &lines)?;
                counters.commits = expected;
                meta.insert(StoreCounters::KEY, counters.to_bytes().as_slice())?;
                if is_older {
                    age.write(&mut meta)?;
                }
                if is_incomplete {
                    set_incomplete(&mut meta, !is_hubs)?;
                }
                let is_journaled = changes
                    .zip(journal.as_mut())
                    .is_some_and(|(changes, journal)| journal.append(expected, changes, &lines));
                if is_journaled {
                    return Ok(Durability::None);
                }
                set_has_journal(&mut meta, journal.is_some())?;
                Ok(Durability::Immediate)
            });
            match result {
                Ok(Durability::Immediate) => {
                    self.age.stored = age;
                    self.clear_journal();
                }
                Ok(_) => {}
                Err(StoreFault::Refused(error)) => return Err(error),
                // An earlier failure, seen before anything was done.
                Err(StoreFault::Latched) if may_retry && done.is_none() => {
                    may_retry = false;
                    self.reopen(generation)?;
                    continue;
                }
                Err(fault) => {
                    self.is_full = matches!(fault, StoreFault::Full);
                    let was_done = (done.is_some(), is_hubs);
                    self.resolve_failed_commit(generation, expected, was_done, fault)?;
                }
            }
            self.is_full = false;
            self.is_incomplete &= !is_hubs;
            self.commits = expected;
            self.log.append_to_file(lines, &self.reader());
            let why = "the work was not done".to_owned();
            return done.ok_or(CommitError::InDoubt { why });
        }
    }

    /// After a failure: opens the database again and checks whether the transaction counts after all.
    fn resolve_failed_commit(
        &mut self,
        generation: u64,
        expected: u64,
        (was_done, is_hubs): (bool, bool),
        fault: StoreFault,
    ) -> Result<(), CommitError> {
        let error = CommitError::from(fault);
        let is_in_doubt = self.journal.as_ref().is_some_and(JournalWriter::is_in_doubt);
        let reopened = self.reopen(generation).map(|()| self.commits == expected);
        match reopened {
            Ok(is_there) if !is_in_doubt => return if is_there { Ok(()) } else { Err(error) },
            Err(_) if !is_in_doubt && !was_done => return Err(error),
            _ => {}
        }
        if is_hubs {
            let is_there = reopened.as_ref().ok().copied();
            self.doubt = Some(CommitDoubt { number: expected, is_there });
        }
        Err(CommitError::InDoubt { why: reopened.err().unwrap_or(error).to_string() })
    }

    /// Empties the journal, because the database has everything on disk.
    fn clear_journal(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.clear();
        }
    }

    /// Opens the database again after a failure, and reads how far it got.
    fn reopen(&mut self, generation: u64) -> Result<(), CommitError> {
        self.is_stale = true;
        self.shared.reopen(generation)?;
        self.reload_if_stale()
    }

    /// Reads how far the database got, if that is not known since a failure. Opens it again first if it has to.
    fn reload_if_stale(&mut self) -> Result<(), CommitError> {
        if !self.is_stale {
            return Ok(());
        }
        let (counters, head) = self.shared.read(|transaction| {
            let meta = transaction.open_table(META)?;
            Ok((recover::counters(&meta)?, log::head(transaction)?))
        })?;
        self.commits = counters.commits;
        self.log.reload(head);
        self.is_stale = false;
        if let Some(doubt) = &mut self.doubt {
            doubt.is_there.get_or_insert(counters.commits == doubt.number);
        }
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // From here on no journal is needed. If this fails, the journal still has everything. On a full disk it
        // would fail, and use room.
        if self.journal.take().is_some() && !self.is_full {
            let _ = self.transact(&[], |_, _| Ok(()));
        }
        // Readers may live longer, but the files must not stay open for them.
        self.shared.close();
    }
}
