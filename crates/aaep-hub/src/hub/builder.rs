//! Builds a hub: loads the store, then starts the threads.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc as std_mpsc;
use std::thread::{self, JoinHandle};

use aaep::{LanguageTag, Prefix, Producer, Uri, Version};
use aaep_engine::terms::Offer;
use aaep_engine::{EngineConfig, Now};
use aaep_transport::local::HUB_NAME;
use aaep_transport::wire::{Wire, WireHandle, WireSettings};
use tokio::sync::mpsc;

use super::answers::KeyedAnswers;
use super::clock::Clock;
use super::ears::{self, WireReporter, WireRole};
use super::holders::{NAME_HOLD_US, NameHolders, NameKind};
use super::keeper::{CommitBatch, MAX_WAITING_BATCHES, MAX_WAITING_DELETIONS, StoreKeeper};
use super::names::PrincipalNumbers;
use super::owner::{EngineOwner, MAX_WAITING_REQUESTS};
use super::posts::AgentPosts;
use super::refusals::RefusedReplies;
use super::running_bytes::RunningBytes;
use super::status::HubStatus;
use super::{Hub, HubShared, stored};
use crate::access::{Guard, Limits, Roster};
use crate::bounds::{MAX_NAMES, MAX_SUBSCRIPTIONS};
use crate::name_reading::{CachedReadings, NameReading};
use crate::redact::{RedactConfig, RedactError, Redactor};
use crate::store::{OpenError, OpenOptions, ReadError, RecoveredStore, Store, StoreChange};

/// How many messages one agent may send on its socket each second. The limits for publishing come on top.
const AGENT_MESSAGES_PER_SECOND: u16 = 5000;

/// How long a subscriber of server-sent events should wait before it reconnects.
const RETRY_MS: u32 = 2000;

/// Configures a hub. Every setting has a sensible default.
#[derive(Debug, Clone)]
pub struct HubBuilder {
    offer: Offer,
    folder: Option<PathBuf>,
    open: OpenOptions,
    guard: Option<Guard>,
    redactor: Option<Arc<Redactor>>,
    resume_grace_us: Option<u64>,
    roster: Arc<Roster>,
    wire: WireSettings,
}

/// Why a hub did not start. No part of it is running.
#[derive(Debug)]
pub enum StartError {
    /// The store could not be opened.
    Store(OpenError),
    /// The stored data could not be read.
    Unreadable(ReadError),
    /// The patterns for secrets are not valid.
    Redact(RedactError),
    /// The system provided no thread, no randomness, or no way to wait for sockets.
    System(std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Store(error) => error.fmt(f),
            StartError::Unreadable(error) => error.fmt(f),
            StartError::Redact(error) => error.fmt(f),
            StartError::System(error) => {
                write!(f, "The system does not let the hub start: {error}. Try again later.")
            }
        }
    }
}

impl std::error::Error for StartError {}

impl HubBuilder {
    pub(super) fn new() -> Self {
        HubBuilder {
            offer: default_offer(),
            folder: None,
            open: OpenOptions::default(),
            guard: None,
            redactor: None,
            resume_grace_us: None,
            roster: Arc::default(),
            wire: WireSettings { retry_ms: RETRY_MS, ..WireSettings::default() },
        }
    }

    /// Sets what the hub offers subscribers.
    pub fn offer(mut self, offer: Offer) -> Self {
        self.offer = offer;
        self
    }

    /// Keeps everything in this folder, across restarts. Without a folder, everything is in memory and is lost
    /// when the hub stops.
    pub fn store(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets how the store is opened: how long it keeps sessions. A hub always
    /// sets aside what it cannot read.
    pub fn open_options(mut self, open: OpenOptions) -> Self {
        self.open = open;
        self
    }

    /// Sets the guard that enforces limits for each principal.
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    /// Sets the redactor that removes secrets from what agents publish.
    pub fn redactor(mut self, redactor: Arc<Redactor>) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// Sets how long the hub waits for a disconnected subscriber to resume, before an ask that only this
    /// subscriber could answer gets its default (ruling 4).
    pub fn resume_grace_us(mut self, microseconds: u64) -> Self {
        self.resume_grace_us = Some(microseconds);
        self
    }

    /// Sets which local programs may answer, and which names are bound to which principals.
    pub fn roster(mut self, roster: Arc<Roster>) -> Self {
        self.roster = roster;
        self
    }

    /// Sets how the wires behave.
    pub fn wire(mut self, settings: WireSettings) -> Self {
        self.wire = settings;
        self
    }

    /// Opens the store, resumes from its contents, and starts the threads.
    pub fn start(self) -> Result<Hub, StartError> {
        let Some(folder) = self.folder.clone() else {
            return self.start_on(Store::in_memory(), RecoveredStore::default());
        };
        let open = OpenOptions { repairs: true, ..self.open };
        let opened = Store::open_with(&folder, open).map_err(StartError::Store)?;
        match self.clone().start_on_opened(opened) {
            // The pages with events are read only here.
            Err(StartError::Unreadable(ReadError::Corrupt { why })) => {
                let rebuilt = Store::rebuild(&folder, open, &why).map_err(StartError::Store)?;
                self.start_on_opened(rebuilt)
            }
            started => started,
        }
    }

    fn start_on_opened(
        self,
        (mut store, mut recovered): (Store, RecoveredStore),
    ) -> Result<Hub, StartError> {
        let held_since = Clock::start().now().unix_us.saturating_sub(NAME_HOLD_US);
        // If the disk is full and this fails, there is still room for as many names again.
        if let Err(error) =
            store.forget_unused_principals(&mut recovered, MAX_NAMES / 2, held_since)
        {
            tracing::warn!(%error, "Names that nothing refers to could not be forgotten.");
        }
        self.start_on(store, recovered)
    }

    /// Starts on a store that is already open.
    pub(super) fn start_on(
        mut self,
        mut store: Store,
        recovered: RecoveredStore,
    ) -> Result<Hub, StartError> {
        let built_in = || Redactor::new(&RedactConfig::default()).map(Arc::new);
        let redactor = self.redactor.take().map_or_else(built_in, Ok);
        let redactor = redactor.map_err(StartError::Redact)?;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)
            .map_err(|error| StartError::System(std::io::Error::other(error.to_string())))?;
        let most = usize::try_from(MAX_SUBSCRIPTIONS).unwrap_or(usize::MAX);
        let offered = self.offer.max_concurrent_subscriptions;
        self.offer.max_concurrent_subscriptions = offered.min(most);
        let mut config = EngineConfig::new(self.offer.clone(), seed);
        if let Some(guard) = &self.guard {
            let limits = guard.limits();
            config.memory_bytes = limits.memory_bytes;
            config.memory_bytes_per_principal = limits.memory_bytes_per_principal;
            config.sessions_per_principal = limits.sessions_per_principal;
            config.asks_per_principal = limits.asks_per_principal;
        }
        if let Some(grace) = self.resume_grace_us {
            config.resume_grace_us = grace;
        }
        let clock = Clock::start();
        let now = clock.now();
        let loaded = stored::load(config, now, &recovered, &store.reader());
        let loaded = loaded.map_err(StartError::Unreadable)?;
        let notes = store.set_aside(&recovered, &loaded.lost, now.unix_us);
        let notes = notes.map_err(StartError::Unreadable)?;
        self.run((clock, now), store, (recovered, loaded, notes), redactor)
            .map_err(StartError::System)
    }

    fn run(
        self,
        (clock, now): (Clock, Now),
        store: Store,
        (recovered, loaded, notes): (RecoveredStore, stored::LoadedState, Vec<String>),
        redactor: Arc<Redactor>,
    ) -> std::io::Result<Hub> {
        let status = Arc::new(HubStatus::default());
        for note in notes {
            tracing::error!("{note}");
            status.note(note);
        }
        let guard = self.guard.unwrap_or_else(|| Guard::new(Limits::default()));
        let (requests, received) = mpsc::channel(MAX_WAITING_REQUESTS);
        let (heard, hearing) = mpsc::unbounded_channel();
        let (batches, kept) = std_mpsc::sync_channel::<CommitBatch>(MAX_WAITING_BATCHES);
        let (delete, deletions) = std_mpsc::sync_channel(MAX_WAITING_DELETIONS);
        let (reports, told) = std_mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let ears =
            |wire| WireReporter { wire, reader: reports.clone(), waiting: Arc::clone(&waiting) };
        let subscribers = Wire::start(self.wire.clone(), ears(WireRole::Subscribers))?;
        let agents = WireSettings {
            number: 1,
            max_messages_per_second: AGENT_MESSAGES_PER_SECOND,
            ..self.wire
        };
        let agents = Wire::start(agents, ears(WireRole::Agents))?;
        drop(reports);
        let (wire, agent_wire) = (subscribers.handle().clone(), agents.handle().clone());
        let reader = store.reader();

        let mut owner = EngineOwner {
            engine: loaded.engine,
            clock,
            former_agents: recovered.agents.iter().cloned().collect(),
            holders: NameHolders::recovered(NameKind::AgentId, &recovered.held_names),
            spoken: NameHolders::recovered(NameKind::Spoken, &recovered.held_names),
            readings: CachedReadings::default(),
            own_readings: own_readings(&self.offer.producer),
            roster: self.roster,
            principals: PrincipalNumbers::new(recovered.principals.clone()),
            next_order: recovered.next_order,
            event_unix_us: None,
            asks: loaded.asks,
            subscribers: std::collections::HashMap::new(),
            connections: std::collections::HashMap::new(),
            legacy: std::collections::HashMap::new(),
            posts: AgentPosts::default(),
            answers: KeyedAnswers::new(&recovered.answers),
            refusals: RefusedReplies::default(),
            running_bytes: RunningBytes::new(
                guard.limits().running_bytes_per_principal,
                &recovered.sessions,
            ),
            guard: guard.clone(),
            reader: reader.clone(),
            wire: wire.clone(),
            agent_wire: agent_wire.clone(),
            status: Arc::clone(&status),
            is_stopping: false,
            batch: CommitBatch::default(),
            delete,
            remembered: HashMap::new(),
            must_withdraw: false,
            blocked: HashSet::new(),
            permission_note: None,
        };
        for lost in &loaded.lost {
            owner.running_bytes.end(&lost.session_id);
        }
        let gone = loaded.unreadable.into_iter();
        let gone = gone.map(|subscription_id| StoreChange::Unsubscribed { subscription_id });
        owner.batch.changes.extend(gone);
        for reply_token in loaded.stray {
            owner.settle_lost(now, reply_token);
        }
        owner.carry_out(now, loaded.outputs, None);
        owner.settle_forgotten(now);
        owner.review_programs();

        let keeper = StoreKeeper {
            store,
            batches: kept,
            deletions,
            deleted: HashSet::new(),
            wire: wire.clone(),
            agent_wire: agent_wire.clone(),
            clock,
            status: Arc::clone(&status),
        };
        let read = {
            let (heard, redactor, waiting) = (heard, Arc::clone(&redactor), waiting);
            move || ears::read_all(&told, &heard, &redactor, &waiting)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let own = move || runtime.block_on(owner.run(received, hearing, batches));
        let threads = vec![
            spawn("aaep-keeper", move || keeper.run())?,
            spawn("aaep-reader", read)?,
            spawn("aaep-owner", own)?,
        ];
        let wires = vec![subscribers, agents];
        Ok(Hub::new(HubShared { requests, clock, guard, redactor, reader, status }, threads, wires))
    }
}

/// How the names of the hub itself read.
fn own_readings(own: &Producer) -> Vec<NameReading> {
    let names = [Some(own.agent_id.as_str()), own.agent_name.as_deref(), Some(HUB_NAME)];
    names.into_iter().flatten().map(NameReading::of).collect()
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// The default offer of a hub: version 1.0.0, English, all conformance levels, our extension.
///
/// # Panics
/// Never: the constants are well-formed.
pub fn default_offer() -> Offer {
    const RIGHT: &str = "a constant of the right form";
    Offer {
        producer: Producer::new("aaep-hub"),
        versions: vec![Version::parse("1.0.0").expect(RIGHT)],
        languages: vec![LanguageTag::parse("en-US").expect(RIGHT)],
        max_events_per_second: None,
        extensions: vec![(
            Uri::parse(aaep::extension::CONTEXT).expect(RIGHT),
            Prefix::parse(aaep::extension::PREFIX).expect(RIGHT),
        )],
        conformance_levels: vec![1, 2, 3],
        max_concurrent_subscriptions: 10_000,
        manifest_uri: None,
        signed_manifest: None,
        only_offered_languages: false,
    }
}

/// Stops both wires after their pending messages.
pub(super) fn stop_wires(handles: &[WireHandle], grace: std::time::Duration) {
    for handle in handles {
        // If the wire has already stopped, there is nothing to do.
        let _ = handle.send(vec![aaep_transport::wire::Command::Stop { grace }]);
    }
}
