//! Everything that is needed to go on after a start, within bounds.
//!
//! Running sessions come whole, event by event. Of the ended ones come the newest, as far as the bounds
//! allow; the rest stays in the store and is read when someone asks. A row that cannot be understood is left
//! out and named, so that it can be set aside: one bad row never keeps the rest from being served.

use std::sync::Arc;

use aaep::{ReplyToken, SubscriptionId};
use redb::{ReadTransaction, ReadableTable};

use crate::store::age::CountedTime;
use crate::store::asks::{OpenAsk, SettledAsk};
use crate::store::fault::Fault;
use crate::store::reader::{Reader, session_of};
use crate::store::replay::Replay;
use crate::store::session::StoredSession;
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
    /// What was found wrong, and what was done about it, each as a sentence for people.
    pub notes: Vec<String>,
    /// Whether something that was acknowledged is lost.
    pub is_incomplete: bool,
    /// The rows that could not be understood.
    pub(crate) damaged: Vec<DamagedRow>,
}

/// A row that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DamagedRow {
    pub(crate) table: &'static str,
    pub(crate) key: Vec<u8>,
    pub(crate) row: Vec<u8>,
}

impl Recovered {
    /// The events of these sessions, in their order over all of them, one at a time.
    pub fn replay(&self, reader: &Reader) -> Replay {
        Replay::new(reader.clone(), &self.sessions)
    }

    /// The tokens that must never be used again, oldest first.
    pub fn used_tokens(&self) -> impl Iterator<Item = &ReplyToken> {
        self.settled_asks.iter().map(|ask| &ask.reply_token)
    }
}

/// Reads all of it from one moment of the store.
pub(super) fn recover(transaction: &ReadTransaction) -> Result<Recovered, Fault> {
    let mut damaged = Vec::new();
    Ok(Recovered {
        sessions: recover_sessions(transaction, &mut damaged)?,
        open_asks: recover_asks(transaction, &mut damaged)?,
        settled_asks: recover_settled(transaction, &mut damaged)?,
        subscriptions: recover_subscriptions(transaction, &mut damaged)?,
        agents: names(&transaction.open_table(AGENTS)?)?,
        principals: names(&transaction.open_table(PRINCIPALS)?)?,
        answers: recover_answers(transaction, &mut damaged)?,
        next_order: counters(&transaction.open_table(META)?)?.next_order,
        notes: Vec::new(),
        is_incomplete: false,
        damaged,
    })
}

/// What was read of a row; none if it cannot be understood, which is noted.
fn understood<T>(
    damaged: &mut Vec<DamagedRow>,
    (table, key, row): (&'static str, &[u8], &[u8]),
    read: Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Fault::Corrupt(_)) => {
            damaged.push(DamagedRow { table, key: key.to_vec(), row: row.to_vec() });
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// The counters; those of an empty store if there are none.
pub(super) fn counters(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Counters, Fault> {
    let row = meta.get(Counters::KEY)?;
    let counters = row.map_or(Ok(Counters::default()), |row| Counters::parse(row.value()))?;
    Ok(Counters { counted_us: CountedTime::read(meta)?.counted_us, ..counters })
}

fn recover_sessions(
    transaction: &ReadTransaction,
    damaged: &mut Vec<DamagedRow>,
) -> Result<Vec<StoredSession>, Fault> {
    let sessions = transaction.open_table(SESSIONS)?;
    let mut found = Vec::new();
    let mut read = |id: &str| {
        let Some(row) = sessions.get(id)? else { return Ok(None) };
        let read =
            session_of(&sessions, id).transpose().unwrap_or_else(|| Err(Fault::row("sessions")));
        understood(damaged, ("sessions", id.as_bytes(), row.value()), read)
    };
    for row in transaction.open_table(RUNNING)?.iter()?.rev() {
        found.extend(read(row?.1.value())?);
    }
    let mut bytes = 0;
    for row in transaction.open_table(ENDED)?.iter()?.rev() {
        let Some(session): Option<StoredSession> = read(row?.1.value())? else { continue };
        bytes += session.bytes;
        if found.len() >= MAX_RECOVERED_SESSIONS || bytes > MAX_RECOVERED_ENDED_BYTES {
            break;
        }
        found.push(session);
    }
    Ok(found)
}

fn recover_asks(
    transaction: &ReadTransaction,
    damaged: &mut Vec<DamagedRow>,
) -> Result<Vec<OpenAsk>, Fault> {
    let mut found = Vec::new();
    for row in transaction.open_table(ASKS)?.iter()? {
        let (token, row) = row?;
        let read = parse(Some(token.value()), "asks");
        let read = read.and_then(|token| OpenAsk::parse(token, row.value()));
        found.extend(understood(damaged, ("asks", token.value().as_bytes(), row.value()), read)?);
    }
    Ok(found)
}

fn recover_settled(
    transaction: &ReadTransaction,
    damaged: &mut Vec<DamagedRow>,
) -> Result<Vec<SettledAsk>, Fault> {
    let settled = transaction.open_table(SETTLED)?;
    let mut found = Vec::new();
    let mut bytes = 0;
    for row in transaction.open_table(SETTLED_BY_AGE)?.iter()?.rev() {
        let (_, token) = row?;
        let Some(row) = settled.get(token.value())? else { continue };
        let read = parse(Some(token.value()), "settled by age");
        let read = read.and_then(|token| SettledAsk::parse(token, row.value()));
        let key = ("settled", token.value().as_bytes(), row.value());
        let Some(mut ask) = understood(damaged, key, read)? else { continue };
        bytes += ask.resolution.as_ref().map_or(0, |resolution| resolution.len());
        if bytes > MAX_RECOVERED_WORDS_BYTES {
            ask.resolution = None;
        }
        found.push(ask);
    }
    found.reverse();
    Ok(found)
}

fn recover_subscriptions(
    transaction: &ReadTransaction,
    damaged: &mut Vec<DamagedRow>,
) -> Result<Vec<StoredSubscription>, Fault> {
    let mut found = Vec::new();
    for row in transaction.open_table(SUBSCRIPTIONS)?.iter()? {
        let (id, row) = row?;
        let read = || {
            let mut row = Row::new(row.value(), "subscriptions");
            Ok(StoredSubscription {
                subscription_id: parse(Some(id.value()), "subscriptions")?,
                principal: row.number()?,
                may_reply: row.flag()?,
                json: row.rest().into(),
            })
        };
        let key = ("subscriptions", id.value().as_bytes(), row.value());
        found.extend(understood(damaged, key, read())?);
    }
    Ok(found)
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

fn recover_answers(
    transaction: &ReadTransaction,
    damaged: &mut Vec<DamagedRow>,
) -> Result<Vec<StoredAnswer>, Fault> {
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
        let read = read_answer(key.value(), answer.value());
        found.extend(understood(damaged, ("answers", key.value(), answer.value()), read)?);
    }
    found.reverse();
    Ok(found)
}

fn read_answer(key: &[u8], answer: &[u8]) -> Result<StoredAnswer, Fault> {
    let (agent, idempotency_key) =
        key.split_first_chunk().ok_or_else(|| Fault::row("answers by age"))?;
    let mut row = Row::new(answer, "answers");
    row.number()?;
    Ok(StoredAnswer {
        agent: u64::from_be_bytes(*agent),
        idempotency_key: parse(std::str::from_utf8(idempotency_key).ok(), "answers by age")?,
        unix_us: row.moment()?,
        answer: row.rest().into(),
    })
}
