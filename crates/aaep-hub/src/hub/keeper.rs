//! The keeper: the thread that stores what happened and only then lets anyone hear of it.
//!
//! What waits is stored together with one wait for the disk. If the disk is full or fails, nothing is
//! told to anybody; it is tried again until it works, and `/readyz` and the log say so meanwhile.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use aaep::SessionId;
use aaep_transport::wire::{Command, WireHandle};

use super::clock::Clock;
use super::status::Status;
use crate::bounds::MAX_CHANGES;
use crate::store::{Change, CommitError, Store};

/// How many batches may wait for the disk. Past it, the owner waits, and everyone with it.
pub(super) const MAX_WAITING_BATCHES: usize = 256;

/// How many changes of several batches are stored at once. A single batch may have more of its own.
const MAX_TOGETHER: usize = MAX_CHANGES / 4;

/// How long to wait before a commit that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How often it is looked whether something is beyond the retention.
const SWEEP: Duration = Duration::from_mins(1);

/// What is to be done once everything before it is stored.
pub(super) enum Effect {
    /// The wire of the subscribers is told something.
    Wire(Command),
    /// The wire of the agents is told something.
    AgentWire(Command),
    /// Something is done with the store itself.
    Store(Box<dyn FnOnce(&mut Store) + Send>),
    /// Everything before this session was deleted, past what waited, has been stored or left out.
    Deleted(SessionId),
    /// Someone who waits gets an answer.
    Answer(Box<dyn FnOnce() + Send>),
}

/// Something that deletes a session, or ends one so that it can be deleted. Gives the session that is gone, if one is.
pub(super) type Deletion = Box<dyn FnOnce(&mut Store) -> Option<SessionId> + Send>;

/// How many deletions may wait.
pub(super) const MAX_WAITING_DELETIONS: usize = 64;

/// What one turn of the owner brought: stored whole, then carried out.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) changes: Vec<Change>,
    pub(super) effects: Vec<Effect>,
    /// When the first urgent event among the effects was taken in.
    pub(super) urgent_since: Option<Instant>,
    /// How many deliveries are among the effects.
    pub(super) deliveries: u64,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.effects.is_empty()
    }

    fn add(&mut self, mut other: Batch) {
        self.changes.append(&mut other.changes);
        self.effects.append(&mut other.effects);
        self.deliveries += other.deliveries;
        self.urgent_since = match (self.urgent_since, other.urgent_since) {
            (Some(one), Some(another)) => Some(one.min(another)),
            (one, another) => one.or(another),
        };
    }
}

pub(super) struct Keeper {
    pub(super) store: Store,
    pub(super) batches: Receiver<Batch>,
    /// What makes room, and so is done even while nothing can be stored.
    pub(super) deletions: Receiver<Deletion>,
    /// The sessions that were deleted while something of them waited to be stored. That is left out.
    pub(super) deleted: HashSet<SessionId>,
    pub(super) wire: WireHandle,
    pub(super) agent_wire: WireHandle,
    pub(super) clock: Clock,
    pub(super) status: Arc<Status>,
}

impl Keeper {
    /// Works until the owner is gone or the store cannot be trusted any more.
    pub(super) fn run(mut self) {
        let mut sweep_at = Instant::now();
        let mut next = None;
        loop {
            let wait = sweep_at.saturating_duration_since(Instant::now());
            let first = match next.take() {
                Some(batch) => Ok(batch),
                None => self.batches.recv_timeout(wait),
            };
            match first {
                Ok(first) => {
                    let mut batch;
                    (batch, next) = self.gather(first);
                    // What was asked for just before the disk had room again.
                    self.delete_all();
                    if !self.deleted.is_empty() {
                        leave_out(&mut batch.changes, &self.deleted);
                    }
                    if !self.keep(&mut batch.changes) {
                        return;
                    }
                    self.carry_out(batch);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    if let Err(error) = self.store.sync_audit() {
                        tracing::warn!(%error, "The audit log is not on the disk yet.");
                    }
                    return;
                }
            }
            if Instant::now() >= sweep_at {
                sweep_at = Instant::now() + self.sweep();
            }
        }
    }

    /// Takes along what else waits already, as long as it fits; gives back what did not.
    fn gather(&self, first: Batch) -> (Batch, Option<Batch>) {
        let mut all = first;
        while let Ok(next) = self.batches.try_recv() {
            if all.changes.len() + next.changes.len() > MAX_TOGETHER {
                return (all, Some(next));
            }
            all.add(next);
        }
        (all, None)
    }

    /// Stores the changes, however long it takes. Says whether they are stored; if it cannot know,
    /// the hub has to start anew, because what it believes may not be what is stored.
    fn keep(&mut self, changes: &mut Vec<Change>) -> bool {
        let began = Instant::now();
        let mut is_first_failure = true;
        loop {
            match self.store.commit(changes) {
                Ok(()) => break,
                Err(
                    error @ (CommitError::InDoubt { .. }
                    | CommitError::Corrupt { .. }
                    | CommitError::OutOfOrder { .. }),
                ) => {
                    tracing::error!(%error, "The hub stops: what is stored may not be what it believes.");
                    self.status.fail(&error.to_string(), true);
                    return false;
                }
                Err(error) => {
                    if is_first_failure {
                        tracing::error!(%error, "Nothing can be stored. Nobody is told anything until it can.");
                        is_first_failure = false;
                    }
                    self.status.metrics.commit_failed();
                    self.status.fail(&error.to_string(), false);
                    if self.status.is_stopping() {
                        return false;
                    }
                    self.make_room(changes);
                }
            }
        }
        if !is_first_failure {
            tracing::info!("The store works again.");
        }
        self.status.works();
        if !changes.is_empty() {
            self.status.metrics.committed(began.elapsed().as_secs_f64(), changes.len() as u64);
            let missing = self.store.audit().missing_in_file;
            self.status.metrics.audit_missing(missing);
            self.status.metrics.beyond_bounds(self.store.beyond_bounds());
        }
        true
    }

    /// Waits before something is tried again, and meanwhile deletes what people want gone, which may make room.
    fn make_room(&mut self, changes: &mut Vec<Change>) {
        if let Ok(delete) = self.deletions.recv_timeout(RETRY) {
            self.deleted.extend(delete(&mut self.store));
            leave_out(changes, &self.deleted);
        }
    }

    /// Deletes what people want gone.
    fn delete_all(&mut self) {
        while let Ok(delete) = self.deletions.try_recv() {
            self.deleted.extend(delete(&mut self.store));
        }
    }

    fn carry_out(&mut self, batch: Batch) {
        let mut commands = Vec::with_capacity(batch.effects.len());
        let mut to_agents = Vec::new();
        let mut answers = Vec::new();
        for effect in batch.effects {
            match effect {
                Effect::Wire(command) => commands.push(command),
                Effect::AgentWire(command) => to_agents.push(command),
                Effect::Store(work) => work(&mut self.store),
                Effect::Deleted(session_id) => {
                    self.deleted.remove(&session_id);
                }
                Effect::Answer(answer) => answers.push(answer),
            }
        }
        if !commands.is_empty() {
            // A wire that has stopped has nobody to tell.
            let _ = self.wire.send(commands);
        }
        if !to_agents.is_empty() {
            let _ = self.agent_wire.send(to_agents);
        }
        if batch.deliveries > 0 {
            self.status.metrics.delivered(batch.deliveries);
        }
        if let Some(since) = batch.urgent_since {
            self.status.metrics.critical_latency(since.elapsed().as_secs_f64());
        }
        for answer in answers {
            answer();
        }
    }

    /// Deletes a piece of what is beyond the retention; says when to look again.
    fn sweep(&mut self) -> Duration {
        match self.store.sweep(self.clock.now()) {
            Ok(swept) if swept.is_done => SWEEP,
            Ok(_) => Duration::ZERO,
            Err(error) => {
                tracing::warn!(%error, "Old sessions could not be deleted.");
                SWEEP
            }
        }
    }
}

/// Leaves out what is about sessions that were deleted.
fn leave_out(changes: &mut Vec<Change>, deleted: &HashSet<SessionId>) {
    changes.retain(|change| match change {
        Change::Event { session_id, .. }
        | Change::SessionAbout { session_id, .. }
        | Change::SessionEnded { session_id, .. }
        | Change::AskOpened { session_id, .. } => !deleted.contains(session_id),
        _ => true,
    });
}
