//! Rebuilds the engine from the store after a start, and converts the terms of a subscription to and from their
//! stored form.
//!
//! Events are read one at a time, so that a long session takes no more memory than the engine keeps for it. An
//! event that cannot be read ends its session and is reported; it never prevents the hub from starting.

use std::collections::HashMap;
use std::sync::Arc;

use aaep::{EventId, Message, Mode, ReplyToken, SessionId, SubscriptionId, Version};
use aaep_engine::{
    AgentTags, AskTimeRecord, Author, CaughtUp, Engine, EngineConfig, HearingScope, Now, Output,
    PrincipalNumber, Record, RecoveredState, Replayed, Subscription,
};
use serde_json::{Value, json};

use super::ask_times;
use super::entry;
use super::open_asks::HubOpenAsk;
use super::session_agent::SessionAgent;
use super::settlement::AskOrigin;
use crate::store::{
    self, LostSession, ReadError, Reader, ReplayedEvent, StoredSession, StoredSubscription,
};

/// The terms of a subscription as JSON. `next_order` is the order of the next event that is stored.
pub(super) fn terms_to_json(subscription: &Subscription, next_order: u64) -> Vec<u8> {
    let hears = match &subscription.hears {
        HearingScope::All => Value::Null,
        HearingScope::Tagged(tags) => tags.iter().collect::<Vec<&str>>().into(),
    };
    let mut terms = json!({
        "hears": hears,
        "aaep_version": subscription.aaep_version,
        "asked": subscription.asked,
        "former_id": subscription.former_id,
        "in_order_after": subscription.in_order_after,
    });
    if let Some(CaughtUp { last_event_id }) = &subscription.caught_up {
        terms["caught_up"] = json!({ "next_order": next_order, "last_event_id": last_event_id });
    }
    terms.to_string().into_bytes()
}

/// Reads the terms of a subscription. If they cannot be read, the subscription is dropped and its subscriber
/// subscribes again. The same holds for an earlier version, in which lists of agents were numbers.
/// `next_order` is the order of the next event that is stored.
fn subscription(stored: &StoredSubscription, next_order: u64) -> Option<Subscription> {
    let terms: Value = serde_json::from_slice(&stored.json).ok()?;
    let hears = match terms.get("hears")? {
        Value::Null => HearingScope::All,
        tags => {
            let tags = tags.as_array()?.iter().map(|tag| tag.as_str().map(str::to_owned));
            HearingScope::Tagged(AgentTags::new(tags.collect::<Option<Vec<_>>>()?))
        }
    };
    Some(Subscription {
        subscription_id: stored.subscription_id.clone(),
        principal: stored.principal,
        may_reply: stored.may_reply,
        hears,
        aaep_version: Version::parse(terms.get("aaep_version")?.as_str()?).ok()?,
        asked: aaep::read_capabilities(terms.get("asked")?.as_object()?)?,
        former_id: match terms.get("former_id")? {
            Value::Null => None,
            id => Some(SubscriptionId::parse(id.as_str()?).ok()?),
        },
        in_order_after: match terms.get("in_order_after")? {
            Value::Null => None,
            event_id => Some(EventId::parse(event_id.as_str()?).ok()?),
        },
        caught_up: terms.get("caught_up").and_then(|it| caught_up(it, next_order)),
    })
}

/// Where a subscriber was at an orderly stop. None if an event was stored since: then the hub was started again, and
/// perhaps killed. An earlier version did not store it.
fn caught_up(stored: &Value, next_order: u64) -> Option<CaughtUp> {
    stored.get("next_order")?.as_u64().filter(|it| *it == next_order)?;
    let last_event_id = match stored.get("last_event_id")? {
        Value::Null => None,
        event_id => Some(EventId::parse(event_id.as_str()?).ok()?),
    };
    Some(CaughtUp { last_event_id })
}

/// Everything from the store, in the form that the engine and the owner continue with.
pub(super) struct LoadedState {
    pub(super) engine: Engine,
    /// What the engine wants done first.
    pub(super) outputs: Vec<Output>,
    pub(super) asks: HashMap<ReplyToken, HubOpenAsk>,
    /// Subscriptions that cannot be read, to be deleted from the store. Their subscribers subscribe again.
    pub(super) unreadable: Vec<SubscriptionId>,
    /// Asks that are stored as open but have no readable event, to be stored as settled.
    pub(super) stray: Vec<ReplyToken>,
    /// Sessions with events that cannot be read.
    pub(super) lost: Vec<LostSession>,
}

/// The principal of each session, and the tags that decide which subscribers may hear it.
type SessionOwners = HashMap<SessionId, (PrincipalNumber, AgentTags)>;

fn agents_of(stored: &store::RecoveredStore) -> SessionOwners {
    let agents: HashMap<u64, &str> =
        stored.agents.iter().map(|(key, name)| (*key, name.as_str())).collect();
    let principals: HashMap<u64, &str> =
        stored.principals.iter().map(|(key, name)| (*key, name.as_str())).collect();
    let of = |session: &StoredSession| {
        let name = agents.get(&session.agent).copied();
        let agent = SessionAgent::of(session, name, principals.get(&session.principal.0).copied());
        (session.session_id.clone(), (session.principal, agent.tags))
    };
    stored.sessions.iter().map(of).collect()
}

/// Where and when an ask was published.
struct RecordedAsk {
    event_id: EventId,
    unix_us: i64,
}

/// Replays everything into a new engine, one event at a time.
pub(super) fn load(
    config: EngineConfig,
    now: Now,
    stored: &store::RecoveredStore,
    reader: &Reader,
) -> Result<LoadedState, ReadError> {
    let open: HashMap<&ReplyToken, &store::StoredOpenAsk> =
        stored.open_asks.iter().map(|ask| (&ask.reply_token, ask)).collect();
    let times = stored.open_asks.iter().map(|ask| {
        let time = ask_times::after_stop(ask.time, now);
        AskTimeRecord {
            reply_token: ask.reply_token.clone(),
            ends_unix_us: time.ends_unix_us,
            left_us: time.left_us,
            limit_unix_us: time.limit_unix_us,
            changes: time.changes,
            stored_unix_us: time.stored_unix_us,
            event_unix_us: time.event_unix_us,
        }
    });
    let mut unreadable = Vec::new();
    let mut subscriptions = Vec::new();
    let next_order = stored.next_order;
    for stored in &stored.subscriptions {
        match subscription(stored, next_order) {
            Some(subscription) => subscriptions.push(subscription),
            None => unreadable.push(stored.subscription_id.clone()),
        }
    }
    let recovered = RecoveredState {
        records: Vec::new(),
        times: times.collect(),
        used_tokens: stored.used_tokens().cloned().collect(),
        subscriptions,
        is_incomplete: stored.is_incomplete,
    };
    let agents = agents_of(stored);
    let mut asked = HashMap::new();
    let mut lost = Vec::new();
    let mut failed = None;
    let events = stored.replay(reader).map_while(|event| {
        let event = event.map_err(|error| failed = Some(error)).ok()?;
        let replayed = replayed(event, &agents, &mut lost);
        if let Replayed::Record(record) = &replayed
            && let Some(token) = entry::ask_token(&record.event)
            && open.contains_key(token)
        {
            let event_id = record.event.envelope.event_id.clone();
            asked.insert(token.clone(), RecordedAsk { event_id, unix_us: record.unix_us });
        }
        Some(replayed)
    });
    // A session that was ended only in the store has no event that says so.
    let ended = stored.sessions.iter().filter(|session| session.ended_unix_us.is_some());
    let ended = ended.map(|session| Replayed::Ended(session.session_id.clone()));
    let (engine, outputs) = Engine::recover_from(config, now, events.chain(ended), recovered);
    if let Some(error) = failed {
        return Err(error);
    }
    let asks = open_asks(&open, asked, &agents);
    let is_stray = |token: &&&ReplyToken| !asks.contains_key(**token);
    let stray = open.keys().filter(is_stray).map(|token| (*token).clone()).collect();
    Ok(LoadedState { engine, outputs, asks, unreadable, stray, lost })
}

/// The asks that are stored as open, each with where it was published, if its event can be read.
fn open_asks(
    open: &HashMap<&ReplyToken, &store::StoredOpenAsk>,
    mut asked: HashMap<ReplyToken, RecordedAsk>,
    agents: &SessionOwners,
) -> HashMap<ReplyToken, HubOpenAsk> {
    let ask = |ask: &store::StoredOpenAsk| {
        let RecordedAsk { event_id, unix_us } = asked.remove(&ask.reply_token)?;
        let asked = AskOrigin {
            principal: agents
                .get(&ask.session_id)
                .map_or(PrincipalNumber(0), |(principal, _)| *principal),
            event_id,
            session_id: ask.session_id.clone(),
        };
        let open = HubOpenAsk {
            asked,
            is_stored: true,
            ends_unix_us: ask.time.ends_unix_us,
            time: None,
            asked_unix_us: unix_us,
            round: 0,
            waiting: Vec::new(),
            connection: None,
        };
        Some((ask.reply_token.clone(), open))
    };
    let mut asks: HashMap<ReplyToken, HubOpenAsk> =
        open.values().copied().filter_map(ask).collect();
    let mut by_age: Vec<&mut HubOpenAsk> = asks.values_mut().collect();
    by_age.sort_by_key(|ask| ask.asked_unix_us);
    let mut rounds: HashMap<PrincipalNumber, u64> = HashMap::new();
    for ask in by_age {
        let round = rounds.entry(ask.asked.principal).or_default();
        ask.round = *round;
        *round += 1;
    }
    asks
}

/// Converts a stored event for replay. An event that cannot be read ends its session.
fn replayed(event: ReplayedEvent, agents: &SessionOwners, lost: &mut Vec<LostSession>) -> Replayed {
    let stored = match event {
        ReplayedEvent::Event(stored) => stored,
        ReplayedEvent::Damaged(damaged) => {
            let session_id = damaged.session_id.clone();
            lost.push(LostSession { session_id: session_id.clone(), damaged: Some(damaged) });
            return Replayed::Lost(session_id);
        }
    };
    let (principal, tags) = match agents.get(&stored.session_id) {
        Some((principal, tags)) => (*principal, tags.clone()),
        None => (PrincipalNumber(0), AgentTags::default()),
    };
    let Some(Message::Event(event)) = aaep::read(&stored.json, Mode::Tolerant).message else {
        let session_id = stored.session_id.clone();
        lost.push(LostSession { session_id: session_id.clone(), damaged: None });
        return Replayed::Lost(session_id);
    };
    Replayed::Record(Record {
        principal,
        tags,
        event: Arc::new(*event),
        json: Arc::clone(&stored.json),
        author: if stored.by_hub { Author::Hub } else { Author::Agent },
        unix_us: stored.unix_us,
    })
}
