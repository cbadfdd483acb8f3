//! What the engine needs after a start, made of what the store has, and the terms of a subscription as
//! they are stored.

use std::collections::HashMap;
use std::sync::Arc;

use aaep::{
    Capabilities, EventId, Message, Mode, ReplyToken, SessionId, SubscriptionId, Version, printable,
};
use aaep_engine::{AgentTags, AskTimeRecord, Author, Hears, Record, Recovered, Subscription};
use serde_json::{Value, json};

use super::entry;
use super::owner::OpenAsk;
use super::session_agent::SessionAgent;
use super::settlement::Asked;
use crate::store::{self, StoredEvent, StoredSession, StoredSubscription};

/// The terms of a subscription as JSON.
pub(super) fn terms_to_json(subscription: &Subscription) -> Vec<u8> {
    let hears = match &subscription.hears {
        Hears::All => Value::Null,
        Hears::Tagged(tags) => tags.iter().collect::<Vec<&str>>().into(),
    };
    let terms = json!({
        "hears": hears,
        "aaep_version": subscription.aaep_version,
        "asked": subscription.asked,
        "former_id": subscription.former_id,
        "in_order_after": subscription.in_order_after,
    });
    terms.to_string().into_bytes()
}

/// The same, read back. What cannot be read is no subscription: its listener subscribes again. So does
/// one of an earlier version, in which lists of agents were numbers.
fn subscription(stored: &StoredSubscription) -> Option<Subscription> {
    let terms: Value = serde_json::from_slice(&stored.json).ok()?;
    let hears = match terms.get("hears")? {
        Value::Null => Hears::All,
        tags => {
            let tags = tags.as_array()?.iter().map(|tag| tag.as_str().map(str::to_owned));
            Hears::Tagged(AgentTags::new(tags.collect::<Option<Vec<_>>>()?))
        }
    };
    Some(Subscription {
        subscription_id: stored.subscription_id.clone(),
        principal: stored.principal,
        may_reply: stored.may_reply,
        hears,
        aaep_version: Version::parse(terms.get("aaep_version")?.as_str()?).ok()?,
        asked: capabilities(terms.get("asked")?)?,
        former_id: match terms.get("former_id")? {
            Value::Null => None,
            id => Some(SubscriptionId::parse(id.as_str()?).ok()?),
        },
        in_order_after: match terms.get("in_order_after")? {
            Value::Null => None,
            event_id => Some(EventId::parse(event_id.as_str()?).ok()?),
        },
    })
}

/// Capabilities are read as part of a request, which is how they came.
fn capabilities(asked: &Value) -> Option<Capabilities> {
    let request = json!({
        "type": "subscription.request",
        "aaep_version": "1.0.0",
        "subscriber_id": "stored",
        "capabilities": asked,
    });
    match aaep::read(request.to_string().as_bytes(), Mode::Strict).message? {
        Message::SubscriptionRequest(request) => Some(request.capabilities),
        _ => None,
    }
}

/// What was stored, as the engine and the owner go on with it.
pub(super) struct Loaded {
    pub(super) engine: Recovered,
    pub(super) asks: HashMap<ReplyToken, OpenAsk>,
}

/// Reads it all back.
pub(super) fn load(stored: &store::Recovered) -> Loaded {
    let agents = agents_of(stored);
    let whose = |event: &StoredEvent| agents.get(&event.session_id).cloned().unwrap_or_default();
    let records: Vec<Record> =
        stored.events.iter().filter_map(|event| record(event, whose(event))).collect();
    let mut events = HashMap::new();
    for record in &records {
        if let Some(token) = entry::question(&record.event) {
            events.insert(token, (record.event.envelope.event_id.clone(), record.unix_us));
        }
    }
    let mut asks = HashMap::new();
    let mut times = Vec::new();
    for ask in &stored.open_asks {
        let Some((event_id, asked_unix_us)) = events.get(&ask.reply_token) else { continue };
        times.push(AskTimeRecord {
            reply_token: ask.reply_token.clone(),
            ends_unix_us: ask.time.ends_unix_us,
            left_us: ask.time.left_us,
            limit_unix_us: ask.time.limit_unix_us,
            changes: ask.time.changes,
        });
        let asked = Asked {
            principal: agents.get(&ask.session_id).map_or(0, |(principal, _)| *principal),
            event_id: event_id.clone(),
            session_id: ask.session_id.clone(),
        };
        asks.insert(
            ask.reply_token.clone(),
            OpenAsk {
                asked,
                is_stored: true,
                ends_unix_us: ask.time.ends_unix_us,
                asked_unix_us: *asked_unix_us,
                waiting: Vec::new(),
                connection: None,
            },
        );
    }
    drop(events);
    let subscriptions = stored.subscriptions.iter().filter_map(subscription).collect();
    let used_tokens = stored.used_tokens().cloned().collect();
    let engine = Recovered { records, times, used_tokens, subscriptions };
    Loaded { engine, asks }
}

/// Whose each session is, and what decides who hears it.
fn agents_of(stored: &store::Recovered) -> HashMap<SessionId, (u64, AgentTags)> {
    let agents: HashMap<u64, &str> =
        stored.agents.iter().map(|(key, name)| (*key, name.as_str())).collect();
    let principals: HashMap<u64, &str> =
        stored.principals.iter().map(|(key, name)| (*key, name.as_str())).collect();
    let of = |session: &StoredSession| {
        let name = agents.get(&session.agent).copied();
        let agent = SessionAgent::of(session, name, principals.get(&session.principal).copied());
        (session.session_id.clone(), (session.principal, agent.tags))
    };
    stored.sessions.iter().map(of).collect()
}

fn record(stored: &StoredEvent, (principal, tags): (u64, AgentTags)) -> Option<Record> {
    let reading = aaep::read(&stored.json, Mode::Tolerant);
    let Some(Message::Event(event)) = reading.message else {
        let event_id = printable(stored.event_id.as_str()).into_owned();
        tracing::error!(
            event_id,
            "A stored event cannot be read. Its session takes no more events."
        );
        return None;
    };
    Some(Record {
        principal,
        tags,
        event: Arc::new(*event),
        is_urgent: stored.is_urgent,
        author: if stored.by_hub { Author::Hub } else { Author::Agent },
        unix_us: stored.unix_us,
    })
}
