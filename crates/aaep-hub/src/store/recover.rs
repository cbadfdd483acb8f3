//! Everything that is needed to go on after a start, within bounds.
//!
//! Running sessions come whole. Of the ended ones come the newest, as far as the bounds allow; the
//! rest stays in the store and is read when someone asks.

use std::sync::Arc;

use aaep::{ReplyToken, SubscriptionId};
use redb::{ReadTransaction, ReadableTable};

use crate::store::asks::{OpenAsk, SettledAsk};
use crate::store::fault::Fault;
use crate::store::reader::{each_chunk, session_of};
use crate::store::session::{StoredEvent, StoredSession};
use crate::store::table::{
    AGENTS, ANSWERS, ANSWERS_BY_AGE, ASKS, Counters, ENDED, META, PRINCIPALS, RUNNING, Row,
    SESSIONS, SETTLED, SETTLED_BY_AGE, SUBSCRIPTIONS, parse,
};

/// How many sessions come back: all running ones, and ended ones up to this many in all.
pub const MAX_RECOVERED_SESSIONS: usize = 1024;

/// How many events of an ended session come back: the last ones.
pub const MAX_RECOVERED_EVENTS: usize = 8192;

/// How many bytes of ended sessions come back.
pub const MAX_RECOVERED_ENDED_BYTES: u64 = 64 << 20;

/// How many bytes of resolutions, and how many of answers, come back. The newest first.
pub const MAX_RECOVERED_WORDS_BYTES: usize = 16 << 20;

/// A subscription as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSubscription {
    /// Its id.
    pub subscription_id: SubscriptionId,
    /// Whose it is.
    pub principal: u64,
    /// Whether they may answer questions.
    pub may_reply: bool,
    /// The terms, as JSON.
    pub json: Arc<[u8]>,
}

/// An answer as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// Which agent got it.
    pub agent: u64,
    /// The key of its request.
    pub idempotency_key: String,
    /// When.
    pub unix_us: i64,
    /// The answer.
    pub answer: Arc<[u8]>,
}

/// What the store holds when it is opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// The sessions whose events are here: running ones, then ended ones, the newest first.
    pub sessions: Vec<StoredSession>,
    /// Their events, in their order over all sessions.
    pub events: Vec<StoredEvent>,
    /// The questions that wait.
    pub open_asks: Vec<OpenAsk>,
    /// The questions that are settled, oldest first. Their tokens are used.
    pub settled_asks: Vec<SettledAsk>,
    /// Who listens.
    pub subscriptions: Vec<StoredSubscription>,
    /// Numbers and names of agents.
    pub agents: Vec<(u64, String)>,
    /// Numbers and names of principals.
    pub principals: Vec<(u64, String)>,
    /// What agents were answered, oldest first.
    pub answers: Vec<StoredAnswer>,
    /// The order of the next event. Never one that was given before, whatever was deleted since.
    pub next_order: u64,
}

impl Recovered {
    /// The tokens that must never be used again, oldest first.
    pub fn used_tokens(&self) -> impl Iterator<Item = &ReplyToken> {
        self.settled_asks.iter().map(|ask| &ask.reply_token)
    }
}

/// Reads all of it from one moment of the store.
pub(super) fn recover(transaction: &ReadTransaction) -> Result<Recovered, Fault> {
    let sessions = recover_sessions(transaction)?;
    let mut events = Vec::new();
    for session in &sessions {
        let before = events.len();
        each_chunk(transaction, &session.session_id, 0, |chunk| {
            events.extend(chunk);
            true
        })?;
        let surplus = (events.len() - before).saturating_sub(MAX_RECOVERED_EVENTS);
        if session.ended_unix_us.is_some() && surplus > 0 {
            events.drain(before..before + surplus);
        }
    }
    events.sort_unstable_by_key(|event| event.order);
    Ok(Recovered {
        sessions,
        events,
        open_asks: recover_asks(transaction)?,
        settled_asks: recover_settled(transaction)?,
        subscriptions: recover_subscriptions(transaction)?,
        agents: names(&transaction.open_table(AGENTS)?)?,
        principals: names(&transaction.open_table(PRINCIPALS)?)?,
        answers: recover_answers(transaction)?,
        next_order: counters(&transaction.open_table(META)?)?.next_order,
    })
}

/// The counters; those of an empty store if there are none.
pub(super) fn counters(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Counters, Fault> {
    let row = meta.get(Counters::KEY)?;
    row.map_or(Ok(Counters::default()), |row| Counters::parse(row.value()))
}

fn recover_sessions(transaction: &ReadTransaction) -> Result<Vec<StoredSession>, Fault> {
    let sessions = transaction.open_table(SESSIONS)?;
    let mut found = Vec::new();
    for row in transaction.open_table(RUNNING)?.iter()?.rev() {
        found.extend(session_of(&sessions, row?.1.value())?);
    }
    let mut bytes = 0;
    for row in transaction.open_table(ENDED)?.iter()?.rev() {
        let Some(session) = session_of(&sessions, row?.1.value())? else { continue };
        bytes += session.bytes;
        if found.len() >= MAX_RECOVERED_SESSIONS || bytes > MAX_RECOVERED_ENDED_BYTES {
            break;
        }
        found.push(session);
    }
    Ok(found)
}

fn recover_asks(transaction: &ReadTransaction) -> Result<Vec<OpenAsk>, Fault> {
    let asks = transaction.open_table(ASKS)?;
    asks.iter()?
        .map(|row| {
            let (token, row) = row?;
            OpenAsk::parse(parse(Some(token.value()), "asks")?, row.value())
        })
        .collect()
}

fn recover_settled(transaction: &ReadTransaction) -> Result<Vec<SettledAsk>, Fault> {
    let settled = transaction.open_table(SETTLED)?;
    let mut found = Vec::new();
    let mut bytes = 0;
    for row in transaction.open_table(SETTLED_BY_AGE)?.iter()?.rev() {
        let (_, token) = row?;
        let Some(row) = settled.get(token.value())? else { continue };
        let reply_token = parse(Some(token.value()), "settled by age")?;
        let mut ask = SettledAsk::parse(reply_token, row.value())?;
        bytes += ask.resolution.as_ref().map_or(0, |resolution| resolution.len());
        if bytes > MAX_RECOVERED_WORDS_BYTES {
            ask.resolution = None;
        }
        found.push(ask);
    }
    found.reverse();
    Ok(found)
}

fn recover_subscriptions(transaction: &ReadTransaction) -> Result<Vec<StoredSubscription>, Fault> {
    let subscriptions = transaction.open_table(SUBSCRIPTIONS)?;
    subscriptions
        .iter()?
        .map(|row| {
            let (id, row) = row?;
            let mut row = Row::new(row.value(), "subscriptions");
            Ok(StoredSubscription {
                subscription_id: parse(Some(id.value()), "subscriptions")?,
                principal: row.number()?,
                may_reply: row.flag()?,
                json: row.rest().into(),
            })
        })
        .collect()
}

fn names(table: &impl ReadableTable<u64, &'static str>) -> Result<Vec<(u64, String)>, Fault> {
    table
        .iter()?
        .map(|row| {
            let (key, name) = row?;
            Ok((key.value(), name.value().to_owned()))
        })
        .collect()
}

fn recover_answers(transaction: &ReadTransaction) -> Result<Vec<StoredAnswer>, Fault> {
    let answers = transaction.open_table(ANSWERS)?;
    let mut found = Vec::new();
    let mut bytes = 0;
    for row in transaction.open_table(ANSWERS_BY_AGE)?.iter()?.rev() {
        let (_, key) = row?;
        let Some(answer) = answers.get(key.value())? else { continue };
        bytes += answer.value().len() + key.value().len();
        if bytes > MAX_RECOVERED_WORDS_BYTES {
            break;
        }
        let (agent, idempotency_key) =
            key.value().split_first_chunk().ok_or_else(|| Fault::row("answers by age"))?;
        let mut row = Row::new(answer.value(), "answers");
        row.number()?;
        found.push(StoredAnswer {
            agent: u64::from_be_bytes(*agent),
            idempotency_key: parse(std::str::from_utf8(idempotency_key).ok(), "answers by age")?,
            unix_us: row.moment()?,
            answer: row.rest().into(),
        });
    }
    found.reverse();
    Ok(found)
}
