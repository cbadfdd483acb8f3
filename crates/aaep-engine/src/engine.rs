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
mod subscription_ids;
mod work;
pub use publish::{FILLED_FIELDS, complete, is_filled, is_same_chunk};
mod recover;
mod session_table;
pub(crate) use session_table::SessionTable;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use aaep::{
    Capabilities, Envelope, Event, EventId, LanguageTag, ReplyToken, SessionId, SubscriptionId,
};

pub use self::asks::OpenAskView;
use self::asks::SubscriberAsks;
pub(crate) use self::delivery_state::DeliveryLists;
use self::delivery_state::SubscriberDelivery;
use self::dropped_ids::DroppedIds;
pub use self::recover::{RecoveredState, Replayed};
use self::subscribers::NewSubscriber;
use crate::audience::{Audience, HistoryEntry, SessionKey, SubscriberKey, TextKey};
use crate::clock::{Now, SECOND_US};
use crate::ids::{IdDigest, IdGenerator};
use crate::io::{AgentTags, EngineInput, HearingScope, Output, PrincipalNumber};
use crate::member::{Cursor, CursorSnapshot, DeliveryLimits, LastSent};
use crate::order::SessionOrder;
use crate::terms::{AudienceKey, Offer, Terms};
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

/// A session and the part of its history that is in memory.
#[derive(Debug)]
pub(crate) struct EngineSession {
    pub(crate) id: SessionId,
    /// The principal that began it, and the only one that may publish in it.
    pub(crate) principal: PrincipalNumber,
    /// Determines which subscribers hear it.
    pub(crate) tags: AgentTags,
    pub(crate) order: SessionOrder,
    /// The events, oldest first, at most [`MAX_SESSION_EVENTS`].
    pub(crate) history: VecDeque<HistoryEntry>,
    /// The incomplete outputs of which a part is no longer in the history, and up to where that part went.
    pub(crate) dropped_texts: BTreeMap<TextKey, u64>,
    /// Its events before this global order are no longer in memory.
    pub(crate) dropped_before: u64,
    /// The events that left memory most recently.
    pub(crate) dropped_ids: DroppedIds,
    /// The envelope of its last event, if that event is no longer in the history.
    pub(crate) last_envelope: Option<Box<Envelope>>,
    /// The global order of its first event.
    pub(crate) first_order: u64,
    pub(crate) ended_us: Option<u64>,
    /// When its agent last published, or when the engine started, if that is later.
    pub(crate) heard_us: u64,
    /// How long its agent had been silent when the engine started. Zero once it publishes again.
    pub(crate) silent_before_us: u64,
    /// Whether it counts among the running sessions of its principal.
    pub(crate) is_counted: bool,
    /// The sequence number of the next event.
    pub(crate) next_number: u64,
    /// The timestamp of the last event.
    pub(crate) last_us: i64,
    /// The subscribers for which its next event may be too early.
    pub(crate) told_later: delivery_state::ToldLaterList,
    /// The state that was last announced for each agent.
    pub(crate) announced: BTreeMap<String, String>,
    /// The state that the engine announced for an agent since that agent's own last announcement.
    pub(crate) spoken: BTreeMap<String, String>,
    /// How far the agent's clock is ahead of ours. Negative if it is behind.
    pub(crate) clock_ahead_us: i64,
    /// The producers in the session, by agent id, for events that the engine makes itself.
    pub(crate) producers: BTreeMap<String, aaep::Producer>,
    /// How many bytes it takes besides its history, as counted for its principal.
    pub(crate) counted_bytes: history::OwnBytes,
}

impl EngineSession {
    pub(crate) fn new(id: SessionId, principal: PrincipalNumber, tags: AgentTags) -> Self {
        EngineSession {
            id,
            principal,
            tags,
            order: SessionOrder::new(),
            history: VecDeque::new(),
            dropped_texts: BTreeMap::new(),
            dropped_before: 0,
            dropped_ids: DroppedIds::default(),
            last_envelope: None,
            first_order: 0,
            ended_us: None,
            heard_us: 0,
            silent_before_us: 0,
            is_counted: false,
            next_number: 0,
            last_us: i64::MIN,
            told_later: delivery_state::ToldLaterList::default(),
            announced: BTreeMap::new(),
            spoken: BTreeMap::new(),
            clock_ahead_us: 0,
            producers: BTreeMap::new(),
            counted_bytes: history::OwnBytes::default(),
        }
    }

    /// The principal whose share of memory its history takes.
    pub(crate) fn owner(&self) -> PrincipalNumber {
        self.principal
    }

    /// Remembers the producer of an event and the difference between the clocks, for events that the engine
    /// makes itself.
    pub(crate) fn note_producer(&mut self, event: &Event, unix_us: i64) {
        let producer = &event.envelope.producer;
        self.clock_ahead_us = event.envelope.timestamp.unix_us() - unix_us;
        if self.producers.get(&producer.agent_id) == Some(producer) {
            return;
        }
        if self.producers.len() < crate::order::MAX_PRODUCERS
            || self.producers.contains_key(&producer.agent_id)
        {
            self.producers.insert(producer.agent_id.clone(), without_long_words(producer));
        }
    }

    /// Whether a subscriber with these terms will hear more from this session.
    pub(crate) fn is_running_for(&self, agreed: &SubscriptionTerms) -> bool {
        !self.order.is_ended() && agreed.hears.includes(&self.tags)
    }

    /// The time of an event that the engine makes now: by the agent's clock, so that the agent's next
    /// timestamp is not earlier, and never before the last timestamp of the session.
    pub(crate) fn own_time_us(&self, now: Now) -> i64 {
        now.unix_us.saturating_add(self.clock_ahead_us).max(self.last_us)
    }

    /// Announces a state on behalf of an agent.
    pub(crate) fn speak_for(&mut self, agent_id: &str, state: &str) {
        self.order.tell(agent_id, state);
        self.announced.insert(agent_id.to_owned(), state.to_owned());
        self.spoken.insert(agent_id.to_owned(), state.to_owned());
    }
}

/// A producer's version, name, model or address is not remembered if it is longer than this.
const MAX_KEPT_WORDS_BYTES: usize = 256;

/// The producer without its long fields.
fn without_long_words(producer: &aaep::Producer) -> aaep::Producer {
    let short = |words: &Option<String>| {
        words.as_ref().filter(|words| words.len() <= MAX_KEPT_WORDS_BYTES).cloned()
    };
    let address = producer.manifest_uri.as_ref();
    aaep::Producer {
        agent_version: short(&producer.agent_version),
        agent_name: short(&producer.agent_name),
        model: short(&producer.model),
        manifest_uri: address.filter(|it| it.as_str().len() <= MAX_KEPT_WORDS_BYTES).cloned(),
        ..aaep::Producer::new(&producer.agent_id)
    }
}

/// The most bytes that such a producer takes besides its agent id, which is stored twice.
pub(crate) const MAX_PRODUCER_BYTES: usize = 4 * MAX_KEPT_WORDS_BYTES + size_of::<aaep::Producer>();

/// A moment that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// One subscription. There may be very many, so common parts are shared.
#[derive(Debug)]
pub(crate) struct AudienceMember {
    pub(crate) id: SubscriptionId,
    pub(crate) principal: PrincipalNumber,
    pub(crate) may_reply: bool,
    pub(crate) delivery: SubscriberDelivery,
    pub(crate) agreed: Arc<SubscriptionTerms>,
    pub(crate) limits: Option<Box<DeliveryLimits>>,
    pub(crate) cursor: Cursor,
    /// What it missed since it connected, for the summaries to mention.
    pub(crate) missing: Option<Box<MissedEvents>>,
    /// Where its subscription started.
    pub(crate) start: SubscriptionStart,
    /// Every event after this one was sent in order. Used only without rate and pace.
    pub(crate) in_order_after: Option<EventId>,
    /// The asks that it was sent.
    pub(crate) asked: SubscriberAsks,
    /// How many summaries it was sent.
    pub(crate) summaries: u64,
    /// While it is away, the global order from which on it will need the log of its audience.
    pub(crate) needs_from: u64,
    /// The last event that was sent before the connection broke, if it was sent in order.
    pub(crate) sent_last: Option<Box<SentLast>>,
    /// The event that it was sent last before it began to receive every unit at once.
    pub(crate) last_sent: LastSent,
}

/// The last event that a subscriber was sent in order. It identifies the position even after the log has
/// dropped the event.
#[derive(Debug)]
pub(crate) struct SentLast {
    /// The position after the event.
    pub(crate) at: u64,
    /// The ids that the event may have had.
    pub(crate) ids: [IdDigest; 2],
}

/// Events that a subscriber missed and that can no longer be delivered.
#[derive(Debug)]
pub(crate) struct MissedEvents {
    /// The event after which they are missing, if known.
    pub(crate) after: Option<EventId>,
}

/// Where to restart a subscriber that reconnects without having received anything.
#[derive(Debug)]
pub(crate) enum SubscriptionStart {
    /// At the event with this global order.
    AtOrder(u64),
    /// Where an earlier subscription left off.
    AtSnapshot(Box<CursorSnapshot>),
    /// Before the hub stopped. What was sent before this global order is not known.
    BeforeStop(u64),
}

impl SubscriptionStart {
    /// What was sent before this global order is not known, or was nothing.
    pub(crate) fn known_from(&self) -> u64 {
        match self {
            SubscriptionStart::AtOrder(order) | SubscriptionStart::BeforeStop(order) => *order,
            SubscriptionStart::AtSnapshot(_) => 0,
        }
    }
}

/// The capabilities that were requested and the terms that were granted. Shared by all subscribers that
/// requested the same.
#[derive(Debug, PartialEq)]
pub(crate) struct SubscriptionTerms {
    pub(crate) asked: Capabilities,
    pub(crate) terms: Terms,
    pub(crate) hears: HearingScope,
    /// The audience that these terms belong to.
    pub(crate) audience: AudienceKey,
}

impl SubscriptionTerms {
    pub(crate) fn new(asked: Capabilities, terms: Terms, hears: HearingScope) -> Self {
        let audience = terms.audience_key().restricted_to(&hears);
        SubscriptionTerms { asked, terms, hears, audience }
    }
}

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

    /// How many subscriptions there are, including disconnected ones that can be resumed.
    pub fn subscriptions(&self) -> usize {
        self.subscriptions.len()
    }

    /// Under which name the engine itself is offered to subscribers.
    pub fn own_producer(&self) -> &aaep::Producer {
        &self.config.offer.producer
    }

    /// How many more subscriptions there can be.
    pub fn free_places(&self) -> usize {
        let most = self.config.offer.max_concurrent_subscriptions;
        most.saturating_sub(self.subscriptions.len())
    }

    /// How many subscriptions there can be.
    pub fn max_subscriptions(&self) -> usize {
        self.config.offer.max_concurrent_subscriptions
    }

    /// The subscriber that has been away longest, of this principal or of all.
    pub fn oldest_away(&self, principal: Option<PrincipalNumber>) -> Option<SubscriberKey> {
        let away = self.subscriptions.subscribers().filter_map(|subscriber| {
            let member = self.members.get(subscriber)?;
            Some((member.delivery.away_since()?, subscriber, member.principal))
        });
        let theirs = away.filter(|(.., whose)| principal.is_none_or(|it| it == *whose));
        theirs.min().map(|(_, subscriber, _)| subscriber)
    }

    /// Whether an event that is not in memory may have been published before: it, or its session, left memory
    /// recently.
    pub fn may_have_dropped(&self, session_id: &SessionId, event_id: &EventId) -> bool {
        self.session(session_id).is_none_or(|session| session.dropped_ids.may_have(event_id))
    }

    /// How many connected subscribers have events held by their rate or pace. Takes time in proportion to the
    /// subscribers that are due.
    pub fn held_subscribers(&self) -> usize {
        let is_here = |key: SubscriberKey| {
            let member = self.members.get(key);
            member.is_some_and(|member| member.delivery.is_here())
        };
        self.due.subscribers().filter(|subscriber| is_here(*subscriber)).count()
    }

    /// How many audiences there are.
    pub fn audiences(&self) -> usize {
        self.audiences.len()
    }

    /// Whether an ask is open.
    pub fn is_open(&self, reply_token: &ReplyToken) -> bool {
        self.asks.contains(reply_token)
    }

    /// How many asks are open.
    pub fn open_asks(&self) -> usize {
        self.asks.len()
    }

    /// What subscribers are offered.
    pub fn offer(&self) -> &crate::terms::Offer {
        &self.config.offer
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

    /// The principal of a session, if the session is in memory.
    pub fn principal_of(&self, session_id: &SessionId) -> Option<PrincipalNumber> {
        self.session(session_id).map(|session| session.principal)
    }

    /// Whether a session has ended.
    pub fn has_ended(&self, session_id: &SessionId) -> bool {
        self.session(session_id).is_some_and(|session| session.order.is_ended())
    }

    /// Which agents the subscriber of this subscription hears, if the subscription exists.
    pub fn hears_of(&self, id: &SubscriptionId) -> Option<&HearingScope> {
        let key = self.subscriptions.get(id)?;
        let member = self.members.get(key)?;
        Some(&member.agreed.hears)
    }

    /// The agent ids under which the principal of a session publishes in it.
    pub fn speakers(&self, session_id: &SessionId) -> impl Iterator<Item = &str> {
        let session = self.session(session_id).into_iter();
        session.flat_map(|session| session.producers.keys().map(String::as_str))
    }

    /// An agent that publishes in a session, as it last described itself.
    pub fn speaker(&self, session_id: &SessionId, agent_id: &str) -> Option<&aaep::Producer> {
        self.session(session_id)?.producers.get(agent_id)
    }

    /// The events of a session that are in memory, newest first.
    pub fn newest_events(&self, session_id: &SessionId) -> impl Iterator<Item = &aaep::Event> {
        let session = self.session(session_id).into_iter();
        session.flat_map(|session| session.history.iter().rev().map(|entry| &*entry.event))
    }

    /// The tags that determine which subscribers hear a session, if it is in memory.
    pub fn tags_of(&self, session_id: &SessionId) -> Option<&AgentTags> {
        self.session(session_id).map(|session| &session.tags)
    }

    /// Whether a principal publishes under this agent id in a running session.
    pub fn speaks_as(&self, principal: PrincipalNumber, agent_id: &str) -> bool {
        let running = self.sessions.values().filter(|session| !session.order.is_ended());
        let mut own = running.filter(|session| session.principal == principal);
        own.any(|session| session.producers.contains_key(agent_id))
    }

    /// The running sessions and their principals.
    pub fn running_sessions(&self) -> impl Iterator<Item = (&SessionId, PrincipalNumber)> {
        let running = self.sessions.values().filter(|session| !session.order.is_ended());
        running.map(|session| (&session.id, session.principal))
    }

    /// The subscriber and the principal of a subscription, if it exists.
    pub fn subscription(&self, id: &SubscriptionId) -> Option<(SubscriberKey, PrincipalNumber)> {
        let key = self.subscriptions.get(id)?;
        let member = self.members.get(key)?;
        Some((key, member.principal))
    }

    fn session(&self, id: &SessionId) -> Option<&EngineSession> {
        self.sessions.get(self.sessions.key_of(id)?)
    }

    /// Does everything that is due by now.
    fn tick(&mut self, now: Now, out: &mut Vec<Output>) {
        self.tick_asks(now, out);
        while let Some(subscriber) = self.take_due(now.monotonic_us) {
            self.wake(now, subscriber, out);
        }
    }
}
