//! The engine: one entry, `handle`, and the moment when to call it again, `deadline`.
//!
//! It owns sessions, questions, audiences and subscribers. Its parts are below: `publish` takes events
//! in, `asks` settles questions, `subscribers` lets people in and out, `deliver` tells them.

mod asks;
mod deliver;
mod dropped_ids;
mod ending;
mod history;
mod languages;
mod publish;
mod rooms;
mod shares;
mod subscribers;
mod work;
pub use publish::{FILLED_FIELDS, complete, is_filled, is_same_chunk};
mod recover;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use aaep::{
    Capabilities, Envelope, Event, EventId, LanguageTag, ReplyToken, SessionId, SubscriptionId,
};

use self::asks::AskedOf;
pub use self::asks::WaitingAsk;
use self::dropped_ids::DroppedIds;
pub use self::recover::{Recovered, Replayed};
use self::subscribers::Newcomer;
use crate::ask::Ask;
use crate::audience::{Audience, Entry, SessionKey, SubscriberKey, TextKey};
use crate::clock::{Now, SECOND_US};
use crate::ids::{Digest, Ids};
use crate::io::{AgentTags, Hears, Input, Output, Principal};
use crate::member::{Cursor, Limits, Place};
use crate::order::SessionOrder;
use crate::terms::{AudienceKey, Offer, Terms};
use asks::TimeWish;

/// The most questions that are open at a time.
pub const MAX_OPEN_ASKS: usize = 4096;
/// The most tokens of settled questions that are remembered.
pub const MAX_USED_TOKENS: usize = 65_536;
/// The most sessions that are remembered, running or ended.
pub const MAX_SESSIONS: usize = 1024;
/// The most events of a session that are remembered.
pub const MAX_SESSION_EVENTS: usize = 8192;

/// How many bytes the histories of sessions and the logs of audiences may take, unless it is configured.
pub const MEMORY_BYTES: usize = 64 * 1024 * 1024;

/// The longest name of an agent, in bytes. The specification sets no limit (§3.2.6.1).
pub const MAX_AGENT_ID_BYTES: usize = 1024;

/// How far the clock of an agent may be ahead of ours or behind it. Every later event of a session
/// has to follow, so one wrong moment would spoil the session for good (§3.2.5).
pub const MAX_CLOCK_DIFFERENCE_US: i64 = 24 * 3600 * 1_000_000;

/// How the engine is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// What subscribers are offered.
    pub offer: Offer,
    /// Where ids and tokens come from: 32 bytes that nobody can guess.
    pub seed: [u8; 32],
    /// How long it is waited for a subscriber whose connection broke before a question that only it
    /// could answer gets its default (ruling 4).
    pub resume_grace_us: u64,
    /// How long a broken subscription can be taken up again.
    pub keep_subscription_us: u64,
    /// The most events that a subscriber who is behind is sent at a time, until its wire has taken them: so little waits
    /// in it, where something critical could not overtake it. What is longer than 4 KiB counts as several. Not less
    /// than 1.
    pub at_a_time: usize,
    /// How many bytes the histories of sessions and the logs of audiences may take together.
    pub memory_bytes: usize,
    /// How many bytes of histories one principal may hold.
    pub memory_bytes_per_principal: usize,
    /// How long a session that is over stays in memory.
    pub keep_ended_us: u64,
    /// How many sessions of one principal may run at a time.
    pub sessions_per_principal: usize,
    /// How many questions of one principal may be open at a time.
    pub asks_per_principal: usize,
}

impl Config {
    /// The usual times: ten seconds for a question, an hour for a subscription, ten minutes for a session that is
    /// over. 64 events at a time. 64 MiB of memory, of which one principal has a quarter.
    pub fn new(offer: Offer, seed: [u8; 32]) -> Self {
        Config {
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

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// Who began it, and alone may speak in it.
    pub(crate) principal: Principal,
    /// What decides who hears it.
    pub(crate) tags: AgentTags,
    pub(crate) order: SessionOrder,
    /// The events, the oldest first, within [`MAX_SESSION_EVENTS`].
    pub(crate) history: VecDeque<Entry>,
    /// Up to where the outputs went that are not complete and of which something is no longer in the history.
    pub(crate) dropped_texts: BTreeMap<TextKey, u64>,
    /// Its events before this place among all are no longer in memory.
    pub(crate) dropped_before: u64,
    /// Which events left memory lately.
    pub(crate) dropped_ids: DroppedIds,
    /// The envelope of its last event, if that is no longer in the history.
    pub(crate) last_envelope: Option<Box<Envelope>>,
    /// The place of its first event among all.
    pub(crate) first_order: u64,
    /// When it ended.
    pub(crate) ended_us: Option<u64>,
    /// When its agent was last heard, or when the engine started since.
    pub(crate) heard_us: u64,
    /// How long its agent had not been heard when the engine started; zero once it is heard again.
    pub(crate) silent_before_us: u64,
    /// Whether it counts among the running sessions of its principal.
    pub(crate) is_counted: bool,
    /// The number of the next event as subscribers count.
    pub(crate) next_number: u64,
    /// The moment of the last event.
    pub(crate) last_us: i64,
    /// The state that was announced last, by agent.
    pub(crate) announced: BTreeMap<String, String>,
    /// The state that the engine announced for an agent since its own last announcement.
    pub(crate) spoken: BTreeMap<String, String>,
    /// How far the agent's clock is ahead of ours, or behind if negative.
    pub(crate) clock_ahead_us: i64,
    /// Who speaks in the session, by name, as far as it is needed for events of the engine's own.
    pub(crate) producers: BTreeMap<String, aaep::Producer>,
    /// How many bytes it takes beside its history, as they are counted for its principal.
    pub(crate) counted_bytes: history::OwnBytes,
}

impl Session {
    pub(crate) fn new(id: SessionId, principal: Principal, tags: AgentTags) -> Self {
        Session {
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
            announced: BTreeMap::new(),
            spoken: BTreeMap::new(),
            clock_ahead_us: 0,
            producers: BTreeMap::new(),
            counted_bytes: history::OwnBytes::default(),
        }
    }

    /// Whose share of the memory its history takes.
    pub(crate) fn owner(&self) -> Principal {
        self.principal
    }

    /// Notices who speaks in the session and how its clock goes, for events of the engine's own.
    pub(crate) fn take_note(&mut self, event: &Event, unix_us: i64) {
        let producer = &event.envelope.producer;
        self.clock_ahead_us = event.envelope.timestamp.unix_us() - unix_us;
        if self.producers.len() < crate::order::MAX_PRODUCERS
            || self.producers.contains_key(&producer.agent_id)
        {
            self.producers.insert(producer.agent_id.clone(), without_long_words(producer));
        }
    }

    /// Whether there is more to come of it for who has this wish.
    pub(crate) fn is_running_for(&self, wish: &Wish) -> bool {
        !self.order.is_ended() && wish.hears.includes(&self.tags)
    }

    /// The engine announces a state for an agent.
    pub(crate) fn speak_for(&mut self, agent_id: &str, state: &str) {
        self.order.tell(agent_id, state);
        self.announced.insert(agent_id.to_owned(), state.to_owned());
        self.spoken.insert(agent_id.to_owned(), state.to_owned());
    }
}

/// The longest version, name, model or address of a producer that is remembered.
const MAX_KEPT_WORDS_BYTES: usize = 256;

/// A producer without what is long.
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

/// The most bytes that such a producer takes beside its name, which it has twice.
pub(crate) const MAX_PRODUCER_BYTES: usize = 4 * MAX_KEPT_WORDS_BYTES + size_of::<aaep::Producer>();

/// A moment that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// Whether a subscriber can be told something now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Here,
    /// Here, but its wire is full.
    Blocked,
    /// Its connection broke at this moment.
    Away(u64),
}

/// One subscription. What many subscribers have in common is shared.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: SubscriptionId,
    pub(crate) principal: Principal,
    pub(crate) may_reply: bool,
    pub(crate) presence: Presence,
    /// It was sent as much as goes at a time, and its wire has yet to take that. Only what is urgent goes now.
    pub(crate) rests: bool,
    pub(crate) wish: Arc<Wish>,
    pub(crate) limits: Option<Box<Limits>>,
    pub(crate) cursor: Cursor,
    /// When it is due, or [`NEVER`].
    pub(crate) due_us: u64,
    /// Its place among those who take everything as it comes.
    pub(crate) slot: Option<SubscriberKey>,
    /// What is missing since it was connected, for the summaries to say.
    pub(crate) missing: Option<Box<Missing>>,
    /// Where its subscription began.
    pub(crate) began: Began,
    /// Everything after this event was sent in its place, if there is neither a rate nor a pace.
    pub(crate) in_order_after: Option<EventId>,
    /// The questions that it was asked.
    pub(crate) asked: AskedOf,
    /// How many summaries it was told.
    pub(crate) summaries: u64,
    /// From which place among all events on it needs the log of its audience again, while it is away.
    pub(crate) needs_from: u64,
    /// The ids of what it was sent last before its connection broke, if that was in its place.
    pub(crate) sent_last: Option<Box<SentLast>>,
}

/// What a subscriber was sent last, in its place: it is found again by this, also when the log has it no more.
#[derive(Debug)]
pub(crate) struct SentLast {
    /// The position behind it.
    pub(crate) at: u64,
    /// The ids that it may have.
    pub(crate) ids: [Digest; 2],
}

/// Something that a subscriber can no longer be told.
#[derive(Debug)]
pub(crate) struct Missing {
    /// The event after which it is missing, if that is known.
    pub(crate) after: Option<EventId>,
}

/// Where a subscription began: there it goes on for who got nothing of it yet.
#[derive(Debug)]
pub(crate) enum Began {
    /// Before this event, by its place among all.
    At(u64),
    /// Where an earlier subscription left off.
    Where(Box<Place>),
    /// Before the hub stopped; what it was sent until this event is not known.
    BeforeStop(u64),
}

impl Began {
    /// What was sent before this event is not known, or was nothing.
    pub(crate) fn known_from(&self) -> u64 {
        match self {
            Began::At(order) | Began::BeforeStop(order) => *order,
            Began::Where(_) => 0,
        }
    }
}

/// What was asked for and what was granted, shared by all who asked for the same.
#[derive(Debug, PartialEq)]
pub(crate) struct Wish {
    pub(crate) asked: Capabilities,
    pub(crate) terms: Terms,
    pub(crate) hears: Hears,
    /// The audience that these terms belong to.
    pub(crate) audience: AudienceKey,
}

impl Wish {
    pub(crate) fn new(asked: Capabilities, terms: Terms, hears: Hears) -> Self {
        let audience = terms.audience_key().of_those_who_hear(&hears);
        Wish { asked, terms, hears, audience }
    }
}

/// The rules of AAEP at work.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    primary: LanguageTag,
    /// How many of the offered languages each principal brought.
    languages_brought: BTreeMap<Principal, usize>,
    ids: Ids,
    next_session: SessionKey,
    next_order: u64,
    /// The newest event of all.
    newest: Option<EventId>,
    sessions: BTreeMap<SessionKey, Session>,
    session_keys: HashMap<SessionId, SessionKey>,
    /// The ids of the events in the histories, so that a repeated one is noticed.
    event_ids: HashMap<EventId, SessionKey>,
    asks: BTreeMap<ReplyToken, Ask>,
    /// The open questions by their places among all events, which are shorter than tokens.
    ask_tokens: BTreeMap<u64, ReplyToken>,
    /// Which question is due when: its default, or that people are told how much time is left.
    asks_due: BTreeSet<(u64, ReplyToken)>,
    /// The open questions of each session that has any.
    asks_of: BTreeMap<SessionKey, BTreeSet<ReplyToken>>,
    /// The places of the open questions that are heard by whoever hears a tag.
    asks_by_tag: BTreeMap<String, BTreeSet<u64>>,
    work: work::Work,
    used_tokens: shares::UsedTokens,
    /// When the last event was recorded, by the clock of the machine.
    event_unix_us: Option<i64>,
    shares: shares::Shares,
    audiences: BTreeMap<AudienceKey, Audience>,
    rooms: rooms::Rooms,
    holdings: history::Holdings,
    /// The sessions that are over, by when they leave memory.
    leaving: VecDeque<(u64, SessionKey)>,
    members: Vec<Option<Member>>,
    free: Vec<SubscriberKey>,
    subscriptions: BTreeMap<SubscriptionId, SubscriberKey>,
    /// The ids that subscribers may still believe to have, because the answer with the new one was cut off.
    former_ids: BTreeMap<SubscriptionId, SubscriberKey>,
    /// The same, by subscriber; most have none.
    former_id_of: BTreeMap<SubscriberKey, SubscriptionId>,
    wishes: BTreeMap<Box<str>, Arc<Wish>>,
    /// Who is due when: something held, or a broken subscription that ends.
    due: BTreeSet<(u64, SubscriberKey)>,
    /// Who is to be told that something is missing, as soon as there is a session to say it in.
    owed_gaps: BTreeSet<SubscriberKey>,
}

impl Engine {
    /// An engine with nothing in it.
    ///
    /// # Panics
    /// If the offer names no language: the first one is the primary one.
    pub fn new(config: Config) -> Self {
        let primary = config.offer.languages.first().cloned();
        Engine {
            primary: primary.expect("an offer names at least one language"),
            languages_brought: BTreeMap::new(),
            ids: Ids::new(config.seed),
            config,
            next_session: 0,
            next_order: 0,
            newest: None,
            sessions: BTreeMap::new(),
            session_keys: HashMap::new(),
            event_ids: HashMap::new(),
            asks: BTreeMap::new(),
            ask_tokens: BTreeMap::new(),
            asks_due: BTreeSet::new(),
            asks_of: BTreeMap::new(),
            asks_by_tag: BTreeMap::new(),
            work: work::Work::default(),
            used_tokens: shares::UsedTokens::default(),
            event_unix_us: None,
            shares: shares::Shares::default(),
            audiences: BTreeMap::new(),
            rooms: rooms::Rooms::default(),
            holdings: history::Holdings::default(),
            leaving: VecDeque::new(),
            members: Vec::new(),
            free: Vec::new(),
            subscriptions: BTreeMap::new(),
            former_ids: BTreeMap::new(),
            former_id_of: BTreeMap::new(),
            wishes: BTreeMap::new(),
            due: BTreeSet::new(),
            owed_gaps: BTreeSet::new(),
        }
    }

    /// Handles what happened and says what is to be done, in this order. Everything that was due by
    /// now comes first.
    pub fn handle(&mut self, now: Now, input: Input) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.tick(now, &mut outputs);
        let out = &mut outputs;
        match input {
            Input::Publish { principal, tags, event } => {
                self.publish(now, (principal, tags), *event, out);
            }
            Input::Announce { session_id, words } => self.announce(now, &session_id, words, out),
            Input::Withdraw { principal, reply_token } => {
                self.withdraw(now, principal, &reply_token, out);
            }
            Input::Subscribe { principal, door, may_reply, hears, request, resume } => {
                let who = Newcomer { principal, may_reply, hears };
                self.subscribe(now, &who, door, *request, resume.as_ref(), out);
            }
            Input::Replace { subscriber, door, request } => {
                self.replace(now, subscriber, door, *request, out);
            }
            Input::Renegotiate { principal, change } => {
                self.renegotiate(now, principal, &change, out);
            }
            Input::Close { principal, message } => {
                self.close(now, principal, &message.subscription_id, out);
            }
            Input::End { subscriber, reason } => self.end(now, subscriber, reason, out),
            Input::Disconnect { subscriber } => self.disconnect(now, subscriber, out),
            Input::Reconnect { principal, subscription_id, last_event_id } => {
                self.reconnect(now, principal, &subscription_id, last_event_id.as_ref(), out);
            }
            Input::Block { subscriber } => self.block(subscriber),
            Input::TakeBack { subscriber, last_event_id } => {
                self.unsend(subscriber, &last_event_id);
            }
            Input::Unblock { subscriber } => self.unblock(now, subscriber, out),
            Input::DeleteSession { session_id } => self.delete_session(&session_id),
            Input::EndSession { session_id, why } => self.end_session(now, &session_id, why, out),
            Input::Confirm { principal, reply } => self.confirm(now, principal, &reply, out),
            Input::Clarify { principal, reply } => self.clarify(now, principal, &reply, out),
            Input::Presented { principal, subscription_id, reply_token } => {
                let about = (&subscription_id, &reply_token);
                self.change_time(now, principal, about, TimeWish::Presented, out);
            }
            Input::Extend { principal, subscription_id, reply_token, by_seconds } => {
                let wish = TimeWish::Extend { by_seconds };
                self.change_time(now, principal, (&subscription_id, &reply_token), wish, out);
            }
            Input::Pause { principal, subscription_id, reply_token } => {
                let about = (&subscription_id, &reply_token);
                self.change_time(now, principal, about, TimeWish::Pause, out);
            }
            Input::Resume { principal, subscription_id, reply_token } => {
                let about = (&subscription_id, &reply_token);
                self.change_time(now, principal, about, TimeWish::Resume, out);
            }
            Input::Tick => {}
        }
        outputs
    }

    /// When something is due next; nothing, if only an input can change anything. After `handle`, it
    /// is later than the moment that was handled.
    pub fn deadline(&self) -> Option<u64> {
        let asks = self.asks_due.first().map(|(at, _)| *at);
        let subscribers = self.due.first().map(|(at, _)| *at);
        [asks, subscribers].into_iter().flatten().min()
    }

    /// How many subscriptions there are, broken ones that may come back counted.
    pub fn subscriptions(&self) -> usize {
        self.subscriptions.len()
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
    pub fn oldest_away(&self, principal: Option<Principal>) -> Option<SubscriberKey> {
        let away = self.subscriptions.values().filter_map(|subscriber| {
            let member = self.members.get(*subscriber as usize)?.as_ref()?;
            match member.presence {
                Presence::Away(since) => Some((since, *subscriber, member.principal)),
                _ => None,
            }
        });
        let theirs = away.filter(|(.., whose)| principal.is_none_or(|it| it == *whose));
        theirs.min().map(|(_, subscriber, _)| subscriber)
    }

    /// Whether an event may have come before although it is not in memory: it left memory lately, or its
    /// session did.
    pub fn may_have_dropped(&self, session_id: &SessionId, event_id: &EventId) -> bool {
        self.session(session_id).is_none_or(|session| session.dropped_ids.may_have(event_id))
    }

    /// How many subscribers are here and have something waiting for their rate or pace. Looks at all that
    /// are due.
    pub fn held_subscribers(&self) -> usize {
        let is_here = |key: SubscriberKey| {
            let member = self.members.get(key as usize).and_then(Option::as_ref);
            member.is_some_and(|member| member.presence == Presence::Here)
        };
        self.due.iter().filter(|(_, subscriber)| is_here(*subscriber)).count()
    }

    /// How many different audiences there are.
    pub fn audiences(&self) -> usize {
        self.audiences.len()
    }

    /// Whether a question waits for its answer.
    pub fn is_open(&self, reply_token: &ReplyToken) -> bool {
        self.asks.contains_key(reply_token)
    }

    /// How many questions are open.
    pub fn open_asks(&self) -> usize {
        self.asks.len()
    }

    /// What is offered to subscribers.
    pub fn offer(&self) -> &crate::terms::Offer {
        &self.config.offer
    }

    /// From now on, subscribers are told of this manifest. Who has terms keeps them.
    pub fn offer_manifest(
        &mut self,
        manifest_uri: Option<aaep::Uri>,
        signed_manifest: Option<aaep::CompactJws>,
    ) {
        self.config.offer.manifest_uri = manifest_uri;
        self.config.offer.signed_manifest = signed_manifest;
    }

    /// Whose session this is, if it is remembered.
    pub fn principal_of(&self, session_id: &SessionId) -> Option<Principal> {
        self.session(session_id).map(|session| session.principal)
    }

    /// Whether a session is over.
    pub fn has_ended(&self, session_id: &SessionId) -> bool {
        self.session(session_id).is_some_and(|session| session.order.is_ended())
    }

    /// Whom the subscriber of this subscription hears, if it is remembered.
    pub fn hears_of(&self, id: &SubscriptionId) -> Option<&Hears> {
        let key = *self.subscriptions.get(id)?;
        let member = self.members.get(key as usize)?.as_ref()?;
        Some(&member.wish.hears)
    }

    /// The names under which its principal speaks in a session.
    pub fn speakers(&self, session_id: &SessionId) -> impl Iterator<Item = &str> {
        let session = self.session(session_id).into_iter();
        session.flat_map(|session| session.producers.keys().map(String::as_str))
    }

    /// An agent that speaks in a session, as it described itself last.
    pub fn speaker(&self, session_id: &SessionId, agent_id: &str) -> Option<&aaep::Producer> {
        self.session(session_id)?.producers.get(agent_id)
    }

    /// The events of a session that are remembered, the newest first.
    pub fn newest_events(&self, session_id: &SessionId) -> impl Iterator<Item = &aaep::Event> {
        let session = self.session(session_id).into_iter();
        session.flat_map(|session| session.history.iter().rev().map(|entry| &*entry.event))
    }

    /// What decides who hears a session, if it is remembered.
    pub fn tags_of(&self, session_id: &SessionId) -> Option<&AgentTags> {
        self.session(session_id).map(|session| &session.tags)
    }

    /// Whether a principal speaks under this name in a session that runs.
    pub fn speaks_as(&self, principal: Principal, agent_id: &str) -> bool {
        let running = self.sessions.values().filter(|session| !session.order.is_ended());
        let mut own = running.filter(|session| session.principal == principal);
        own.any(|session| session.producers.contains_key(agent_id))
    }

    /// The sessions that run, with their principals.
    pub fn running_sessions(&self) -> impl Iterator<Item = (&SessionId, Principal)> {
        let running = self.sessions.values().filter(|session| !session.order.is_ended());
        running.map(|session| (&session.id, session.principal))
    }

    /// Whose subscription this is, if it is remembered, and its subscriber.
    pub fn subscription(&self, id: &SubscriptionId) -> Option<(SubscriberKey, Principal)> {
        let key = *self.subscriptions.get(id)?;
        let member = self.members.get(key as usize)?.as_ref()?;
        Some((key, member.principal))
    }

    fn session(&self, id: &SessionId) -> Option<&Session> {
        self.sessions.get(self.session_keys.get(id)?)
    }

    /// Does everything that is due by now.
    fn tick(&mut self, now: Now, out: &mut Vec<Output>) {
        self.tick_asks(now, out);
        while let Some(&(at, subscriber)) = self.due.first() {
            if at > now.monotonic_us {
                break;
            }
            self.due.pop_first();
            self.wake(now, subscriber, out);
        }
    }
}
