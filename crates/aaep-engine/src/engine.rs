//! The engine has one entry point, `handle`, and says with `deadline` when to call it again.
//!
//! It owns sessions, asks, audiences and subscribers. Of its parts, `publish` takes events in,
//! `asks` settles asks, `subscribers` adds and removes subscribers, and `deliver` sends them
//! events.

mod asks;
mod deliver;
mod delivery_state;
mod dropped_ids;
mod ending;
mod history;
mod languages;
mod log_space;
mod member_table;
mod publish;
mod shares;
mod stopping;
mod subscribers;
mod subscription;
mod subscription_ids;
mod views;
mod work;
pub use publish::{FILLED_FIELDS, complete, is_filled, is_same_chunk};
mod recover;
mod session;
mod session_table;
pub(crate) use session_table::SessionTable;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use aaep::{EventId, LanguageTag};

pub use self::asks::OpenAskView;
pub(crate) use self::delivery_state::DeliveryLists;
use self::delivery_state::SubscriberDelivery;
pub use self::recover::{RecoveredState, Replayed};
pub(crate) use self::session::{EngineSession, MAX_PRODUCER_BYTES};
use self::subscribers::NewSubscriber;
pub(crate) use self::subscription::{
    AudienceMember, MissedEvents, SentLast, SubscriptionStart, SubscriptionTerms,
};
use crate::audience::{Audience, SessionKey, SubscriberKey};
use crate::clock::{Now, SECOND_US};
use crate::ids::IdGenerator;
use crate::io::{EngineInput, Output, PrincipalNumber};
use crate::terms::{AudienceKey, Offer};
use asks::AskTimeRequest;

/// The most asks that are open at a time.
pub const MAX_OPEN_ASKS: usize = 4096;
/// The most reply tokens of settled asks that are remembered.
pub const MAX_USED_TOKENS: usize = 65_536;
/// The most sessions that are kept in memory, running or ended.
pub const MAX_SESSIONS: usize = 1024;
/// The most events of a session that are kept in memory.
pub const MAX_SESSION_EVENTS: usize = 8192;

/// How many bytes the histories of sessions and the logs of audiences may take by default.
pub const MEMORY_BYTES: usize = 64 * 1024 * 1024;

/// The longest `agent_id`, in bytes. The specification sets no limit (§3.2.6.1).
pub const MAX_AGENT_ID_BYTES: usize = 1024;

/// How far an agent's clock may be ahead of or behind ours. Timestamps of a session never go back, so one
/// wrong timestamp would spoil the rest of the session (§3.2.5).
pub const MAX_CLOCK_DIFFERENCE_US: i64 = 24 * 3600 * 1_000_000;

/// How the engine is configured.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// What subscribers are offered.
    pub offer: Offer,
    /// The source of ids and tokens: 32 bytes that nobody can guess.
    pub seed: [u8; 32],
    /// How long an ask waits for a disconnected subscriber that alone could answer it, before its default
    /// applies (ruling 4).
    pub resume_grace_us: u64,
    /// How long a disconnected subscription can be resumed.
    pub keep_subscription_us: u64,
    /// The batch: the most events that a lagging subscriber is sent before its wire has taken them. It is
    /// small because a critical event cannot overtake what already waits in a wire. An event longer than 4
    /// KiB counts as several. At least 1.
    pub at_a_time: usize,
    /// How many bytes the histories of sessions and the logs of audiences may take together.
    pub memory_bytes: usize,
    /// How many bytes of history one principal may hold.
    pub memory_bytes_per_principal: usize,
    /// How long an ended session stays in memory.
    pub keep_ended_us: u64,
    /// How many sessions one principal may run at a time.
    pub sessions_per_principal: usize,
    /// How many asks one principal may have open at a time.
    pub asks_per_principal: usize,
}

impl EngineConfig {
    /// The default configuration: ten seconds for an ask, an hour for a subscription and ten minutes for an
    /// ended session. A batch of 64 events. 64 MiB of memory, of which one principal may hold a quarter.
    pub fn new(offer: Offer, seed: [u8; 32]) -> Self {
        EngineConfig {
            offer,
            seed,
            resume_grace_us: 10 * SECOND_US,
            keep_subscription_us: 3600 * SECOND_US,
            at_a_time: 64,
            memory_bytes: MEMORY_BYTES,
            memory_bytes_per_principal: MEMORY_BYTES / 4,
            keep_ended_us: 600 * SECOND_US,
            sessions_per_principal: MAX_SESSIONS / 8,
            asks_per_principal: MAX_OPEN_ASKS / 16,
        }
    }
}

/// A moment that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// The rules of AAEP, without clock, files or sockets.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    primary: LanguageTag,
    /// How many of the offered languages each principal introduced.
    languages_brought: BTreeMap<PrincipalNumber, usize>,
    ids: IdGenerator,
    next_order: u64,
    /// The newest event of all sessions.
    newest: Option<EventId>,
    sessions: session_table::SessionTable,
    asks: asks::AskTable,
    work: work::WorkCounters,
    /// When the last event was recorded, by the machine's clock.
    event_unix_us: Option<i64>,
    shares: shares::SharesByPrincipal,
    audiences: BTreeMap<AudienceKey, Audience>,
    log_space: log_space::LogSpace,
    holdings: history::HistoryHoldings,
    /// The ended sessions, by when they leave memory.
    leaving: VecDeque<(u64, SessionKey)>,
    members: member_table::MemberTable,
    subscriptions: subscription_ids::SubscriptionIds,
    shared_terms: BTreeMap<Box<str>, Arc<SubscriptionTerms>>,
    due: delivery_state::DueTimes,
    /// The subscribers that are owed a gap notice as soon as there is a session to send it in.
    owed_gaps: BTreeSet<SubscriberKey>,
}

impl Engine {
    /// An engine without sessions and subscribers.
    ///
    /// # Panics
    ///
    /// If the offer names no language: the first one is the primary one.
    pub fn new(config: EngineConfig) -> Self {
        let primary = config.offer.languages.first().cloned();
        Engine {
            primary: primary.expect("an offer names at least one language"),
            languages_brought: BTreeMap::new(),
            ids: IdGenerator::new(config.seed),
            config,
            next_order: 0,
            newest: None,
            sessions: session_table::SessionTable::new(),
            asks: asks::AskTable::default(),
            work: work::WorkCounters::default(),
            event_unix_us: None,
            shares: shares::SharesByPrincipal::default(),
            audiences: BTreeMap::new(),
            log_space: log_space::LogSpace::default(),
            holdings: history::HistoryHoldings::default(),
            leaving: VecDeque::new(),
            members: member_table::MemberTable::default(),
            subscriptions: subscription_ids::SubscriptionIds::default(),
            shared_terms: BTreeMap::new(),
            due: delivery_state::DueTimes::default(),
            owed_gaps: BTreeSet::new(),
        }
    }

    /// Handles an input and returns what is to be done, in this order. Handles everything that is due by
    /// `now` first.
    pub fn handle(&mut self, now: Now, input: EngineInput) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.tick(now, &mut outputs);
        let out = &mut outputs;
        match input {
            EngineInput::Publish { principal, tags, event } => {
                self.publish(now, (principal, tags), *event, out);
            }
            EngineInput::Announce { session_id, words } => {
                self.announce(now, &session_id, words, out);
            }
            EngineInput::Withdraw { principal, reply_token } => {
                self.withdraw(now, principal, &reply_token, out);
            }
            EngineInput::Subscribe { principal, door, may_reply, hears, request, resume } => {
                let newcomer = NewSubscriber { principal, may_reply, hears };
                self.subscribe(now, &newcomer, door, *request, resume.as_ref(), out);
            }
            EngineInput::Replace { subscriber, door, request } => {
                self.replace(now, subscriber, door, *request, out);
            }
            EngineInput::Renegotiate { principal, change } => {
                self.renegotiate(now, principal, &change, out);
            }
            EngineInput::Close { principal, message } => {
                self.close(now, principal, &message.subscription_id, out);
            }
            EngineInput::End { subscriber, reason } => self.end(now, subscriber, reason, out),
            EngineInput::Disconnect { subscriber } => self.disconnect(now, subscriber, out),
            EngineInput::Reconnect { principal, subscription_id, last_event_id } => {
                self.reconnect(now, principal, &subscription_id, last_event_id.as_ref(), out);
            }
            EngineInput::Block { subscriber } => self.block(subscriber),
            EngineInput::TakeBack { subscriber, last_event_id } => {
                self.unsend(subscriber, &last_event_id);
            }
            EngineInput::Unblock { subscriber } => self.unblock(now, subscriber, out),
            EngineInput::DeleteSession { session_id } => self.delete_session(&session_id),
            EngineInput::EndSession { session_id, why } => {
                self.end_session(now, &session_id, why, out);
            }
            EngineInput::Confirm { principal, reply } => self.confirm(now, principal, &reply, out),
            EngineInput::Clarify { principal, reply } => self.clarify(now, principal, &reply, out),
            EngineInput::Presented { principal, subscription_id, reply_token } => {
                let about = (&subscription_id, &reply_token);
                self.change_time(now, principal, about, AskTimeRequest::Presented, out);
            }
            EngineInput::Extend { principal, subscription_id, reply_token, by_seconds } => {
                let request = AskTimeRequest::Extend { by_seconds };
                self.change_time(now, principal, (&subscription_id, &reply_token), request, out);
            }
            EngineInput::Pause { principal, subscription_id, reply_token } => {
                let about = (&subscription_id, &reply_token);
                self.change_time(now, principal, about, AskTimeRequest::Pause, out);
            }
            EngineInput::Resume { principal, subscription_id, reply_token } => {
                let about = (&subscription_id, &reply_token);
                self.change_time(now, principal, about, AskTimeRequest::Resume, out);
            }
            EngineInput::Stop => self.stop(out),
            EngineInput::Tick => {}
        }
        outputs
    }

    /// When something is next due. None if only an input can change anything. After `handle`, it is later
    /// than the moment that was handled.
    pub fn deadline(&self) -> Option<u64> {
        let asks = self.asks.next_due_us();
        [asks, self.due.first_us()].into_iter().flatten().min()
    }

    /// Sets the manifest that new subscribers are told of. Existing terms do not change.
    pub fn offer_manifest(
        &mut self,
        manifest_uri: Option<aaep::Uri>,
        signed_manifest: Option<aaep::CompactJws>,
    ) {
        self.config.offer.manifest_uri = manifest_uri;
        self.config.offer.signed_manifest = signed_manifest;
    }

    /// Does everything that is due by now.
    fn tick(&mut self, now: Now, out: &mut Vec<Output>) {
        self.tick_asks(now, out);
        while let Some(subscriber) = self.take_due(now.monotonic_us) {
            self.wake(now, subscriber, out);
        }
    }
}
