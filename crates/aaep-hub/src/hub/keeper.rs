//! The keeper: the thread that stores changes first and only then lets anyone hear of them.
//!
//! It stores all pending batches together, with one wait for the disk. If the disk is full or fails, nobody is
//! told anything; the keeper retries until it works, and `/readyz` and the log report the failure meanwhile.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use aaep::SessionId;
use aaep_transport::wire::{Command, WireHandle};

use super::clock::Clock;
use super::status::HubStatus;
use crate::bounds::MAX_CHANGES;
use crate::store::{CommitError, Store, StoreChange};

/// How many batches may wait for the disk. Beyond that, the owner waits, and everyone with it.
pub(super) const MAX_WAITING_BATCHES: usize = 256;

/// How many changes from several batches are stored at once. A single batch may contain more.
const MAX_TOGETHER: usize = MAX_CHANGES / 6;

/// How long to wait before a failed commit is retried.
const RETRY: Duration = Duration::from_secs(1);

/// How often the store is checked for data that is beyond its retention.
const SWEEP: Duration = Duration::from_mins(1);

/// Something to do once everything before it is stored.
pub(super) enum DeferredEffect {
    /// Sends a command to the subscriber wire.
    Wire(Command),
    /// Sends a command to the agent wire.
    AgentWire(Command),
    /// Does something with the store itself.
    Store(Box<dyn FnOnce(&mut Store) + Send>),
    /// Marks the point where every earlier change of this deleted session has been stored or left out.
    Deleted(SessionId),
    /// Answers a caller that waits.
    Answer(Box<dyn FnOnce() + Send>),
}

/// Deletes a session, or ends one so that it can be deleted. Returns the session if it is gone.
pub(super) type DeletionWork = Box<dyn FnOnce(&mut Store) -> Option<SessionId> + Send>;

pub(super) const MAX_WAITING_DELETIONS: usize = 64;

/// The result of one turn of the owner: stored as a whole, then carried out.
#[derive(Default)]
pub(super) struct CommitBatch {
    pub(super) changes: Vec<StoreChange>,
    pub(super) effects: Vec<DeferredEffect>,
    /// When the first critical event among the effects was taken in.
    pub(super) critical_since: Option<Instant>,
    /// How many deliveries are among the effects.
    pub(super) deliveries: u64,
}

impl CommitBatch {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.effects.is_empty()
    }

    fn add(&mut self, mut other: CommitBatch) {
        self.changes.append(&mut other.changes);
        self.effects.append(&mut other.effects);
        self.deliveries += other.deliveries;
        self.critical_since = match (self.critical_since, other.critical_since) {
            (Some(one), Some(another)) => Some(one.min(another)),
            (one, another) => one.or(another),
        };
    }
}

pub(super) struct StoreKeeper {
    pub(super) store: Store,
    pub(super) batches: Receiver<CommitBatch>,
    /// Work that makes room, and is therefore done even while nothing can be stored.
    pub(super) deletions: Receiver<DeletionWork>,
    /// Sessions that were deleted while changes of theirs were pending. Those changes are left out.
    pub(super) deleted: HashSet<SessionId>,
    pub(super) wire: WireHandle,
    pub(super) agent_wire: WireHandle,
    pub(super) clock: Clock,
    pub(super) status: Arc<HubStatus>,
}

impl StoreKeeper {
    /// Works until the owner is gone or the store can no longer be trusted.
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
                    // Deletions that were requested just before the disk had room again.
                    self.delete_all();
                    if !self.deleted.is_empty() {
                        remove_deleted(&mut batch.changes, &self.deleted);
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

    /// Adds all other pending batches that fit. Returns the first batch that did not fit.
    fn gather(&self, first: CommitBatch) -> (CommitBatch, Option<CommitBatch>) {
        let mut all = first;
        while let Ok(next) = self.batches.try_recv() {
            if all.changes.len() + next.changes.len() > MAX_TOGETHER {
                return (all, Some(next));
            }
            all.add(next);
        }
        (all, None)
    }

    /// Stores the changes, however long it takes. Returns false if the hub stops before that, or if its memory and the
    /// disk may differ, so that it has to be restarted.
    fn keep(&mut self, changes: &mut Vec<StoreChange>) -> bool {
        let began = Instant::now();
        let mut is_first_failure = true;
        loop {
            match self.commit_once(changes) {
                Ok(()) => break,
                Err(error @ (CommitError::Corrupt { .. } | CommitError::OutOfOrder { .. })) => {
                    tracing::error!(%error, "The hub stops: what is stored may not be what it believes.");
                    self.status.note_failure(&error.to_string(), true);
                    return false;
                }
                Err(error) => {
                    if is_first_failure {
                        tracing::error!(%error, "Nothing can be stored. Nobody is told anything until it can.");
                        is_first_failure = false;
                    }
                    self.status.metrics.commit_failed();
                    self.status.note_failure(&error.to_string(), false);
                    if self.status.is_stopping() {
                        if self.store.is_in_doubt() {
                            // Nobody may be told that the last changes are lost.
                            self.status.note_failure(&error.to_string(), true);
                        }
                        return false;
                    }
                    self.make_room(changes);
                }
            }
        }
        if !is_first_failure {
            tracing::info!("The store works again.");
        }
        self.status.clear_failure();
        if !changes.is_empty() {
            self.status.metrics.committed(began.elapsed().as_secs_f64(), changes.len() as u64);
            let missing = self.store.audit().missing_in_file;
            self.status.metrics.audit_missing(missing);
            self.status.metrics.beyond_bounds(self.store.beyond_bounds());
        }
        true
    }

    /// Stores the changes, unless an attempt counts that seemed to fail.
    fn commit_once(&mut self, changes: &[StoreChange]) -> Result<(), CommitError> {
        match self.store.settle_doubt()? {
            Some(true) => Ok(()),
            Some(false) | None => self.store.commit(changes),
        }
    }

    /// Waits before the next attempt. Meanwhile it performs a requested deletion, which may make room.
    fn make_room(&mut self, changes: &mut Vec<StoreChange>) {
        if let Ok(delete) = self.deletions.recv_timeout(RETRY) {
            self.deleted.extend(delete(&mut self.store));
            remove_deleted(changes, &self.deleted);
        }
    }

    /// Performs all requested deletions.
    fn delete_all(&mut self) {
        while let Ok(delete) = self.deletions.try_recv() {
            self.deleted.extend(delete(&mut self.store));
        }
    }

    fn carry_out(&mut self, batch: CommitBatch) {
        let mut commands = Vec::with_capacity(batch.effects.len());
        let mut to_agents = Vec::new();
        let mut answers = Vec::new();
        for effect in batch.effects {
            match effect {
                DeferredEffect::Wire(command) => commands.push(command),
                DeferredEffect::AgentWire(command) => to_agents.push(command),
                DeferredEffect::Store(work) => work(&mut self.store),
                DeferredEffect::Deleted(session_id) => {
                    self.deleted.remove(&session_id);
                }
                DeferredEffect::Answer(answer) => answers.push(answer),
            }
        }
        if !commands.is_empty() {
            // If the wire has stopped, there is nobody to tell.
            let _ = self.wire.send(commands);
        }
        if !to_agents.is_empty() {
            let _ = self.agent_wire.send(to_agents);
        }
        if batch.deliveries > 0 {
            self.status.metrics.delivered(batch.deliveries);
        }
        if let Some(since) = batch.critical_since {
            self.status.metrics.critical_latency(since.elapsed().as_secs_f64());
        }
        for answer in answers {
            answer();
        }
    }

    /// Deletes some of the data beyond the retention. Returns when to look again.
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

/// Removes the changes of deleted sessions.
fn remove_deleted(changes: &mut Vec<StoreChange>, deleted: &HashSet<SessionId>) {
    changes.retain(|change| match change {
        StoreChange::Event { session_id, .. }
        | StoreChange::SessionAbout { session_id, .. }
        | StoreChange::SessionEnded { session_id, .. }
        | StoreChange::AskOpened { session_id, .. } => !deleted.contains(session_id),
        _ => true,
    });
}
