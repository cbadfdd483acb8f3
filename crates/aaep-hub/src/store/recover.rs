//! Reads everything that is needed to resume after a start, within bounds.
//!
//! Running sessions are recovered completely, event by event. Of the ended sessions, the newest are recovered,
//! as far as the bounds allow; the others stay in the store and are read on request. A row that is not valid is
//! left out and listed, so that it can be set aside: one bad row never prevents the others from being served.

use std::sync::Arc;

use aaep::{ReplyToken, SubscriptionId};
use aaep_engine::PrincipalNumber;
use redb::{ReadTransaction, ReadableTable};

use crate::store::age::CountedTime;
use crate::store::asks::{SettledAsk, StoredOpenAsk};
use crate::store::fault::StoreFault;
use crate::store::held_names::{self, StoredName};
use crate::store::reader::{Reader, session_of};
use crate::store::replay::Replay;
use crate::store::session::StoredSession;
use crate::store::table::{
    AGENTS, ANSWERS, ANSWERS_BY_AGE, ASKS, ENDED, META, PRINCIPALS, RUNNING, RowReader, SESSIONS,
    SETTLED, SETTLED_BY_AGE, SUBSCRIPTIONS, StoreCounters, parse,
};

/// How many sessions are recovered: all running ones, and ended ones up to this total.
pub const MAX_RECOVERED_SESSIONS: usize = 1024;

/// How many events of an ended session are recovered: the last ones.
pub const MAX_RECOVERED_EVENTS: usize = 8192;

/// How many bytes of ended sessions are recovered.
pub const MAX_RECOVERED_ENDED_BYTES: u64 = 64 << 20;

/// How many bytes of resolutions, and of answers, are recovered. The newest first.
pub const MAX_RECOVERED_WORDS_BYTES: usize = 16 << 20;

/// A subscription as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSubscription {
    /// Its id.
    pub subscription_id: SubscriptionId,
    /// The principal that it belongs to.
    pub principal: PrincipalNumber,
    /// Whether the subscriber may answer asks.
    pub may_reply: bool,
    /// The terms, as JSON.
    pub json: Arc<[u8]>,
}

/// An answer as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The principal that got it.
    pub principal: PrincipalNumber,
    /// The key of its request.
    pub idempotency_key: String,
    /// When.
    pub unix_us: i64,
    /// The answer.
    pub answer: Arc<[u8]>,
}

/// The contents of the store when it is opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveredStore {
    /// The sessions whose events are recovered: running ones, then ended ones, the newest first.
    pub sessions: Vec<StoredSession>,
    /// The open asks.
    pub open_asks: Vec<StoredOpenAsk>,
    /// The settled asks, the oldest first. Their tokens are used.
    pub settled_asks: Vec<SettledAsk>,
    /// The subscriptions.
    pub subscriptions: Vec<StoredSubscription>,
    /// Numbers and names of agents.
    pub agents: Vec<(u64, String)>,
    /// Numbers and names of principals.
    pub principals: Vec<(u64, String)>,
    /// Which principal used which agent name last, the one that was used the longest ago first.
    pub held_names: Vec<StoredName>,
    /// The answers to agents, the oldest first.
    pub answers: Vec<StoredAnswer>,
    /// The order of the next event. It was never used before, whatever was deleted since.
    pub next_order: u64,
    /// What was found wrong and what was done about it, each as one sentence for people.
    pub notes: Vec<String>,
    /// Whether acknowledged data is lost.
    pub is_incomplete: bool,
    /// The rows that are not valid.
    pub(crate) damaged: Vec<DamagedRow>,
}

/// A row that is not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DamagedRow {
    pub(crate) table: &'static str,
    pub(crate) key: Vec<u8>,
    pub(crate) row: Vec<u8>,
}

impl RecoveredStore {
    /// The events of these sessions, in one common order, one at a time.
    pub fn replay(&self, reader: &Reader) -> Replay {
        Replay::new(reader.clone(), &self.sessions)
    }

    /// The tokens that must never be used again, the oldest first.
    pub fn used_tokens(&self) -> impl Iterator<Item = &ReplyToken> {
        self.settled_asks.iter().map(|ask| &ask.reply_token)
    }
}

/// Reads everything from one snapshot of the store.
pub(super) fn recover(transaction: &ReadTransaction) -> Result<RecoveredStore, StoreFault> {
    let mut damaged = Vec::new();
    Ok(RecoveredStore {
        sessions: recover_sessions(transaction, &mut damaged)?,
        open_asks: recover_asks(transaction, &mut damaged)?,
        settled_asks: recover_settled(transaction, &mut damaged)?,
        subscriptions: recover_subscriptions(transaction, &mut damaged)?,
        agents: names(&transaction.open_table(AGENTS)?)?,
        principals: names(&transaction.open_table(PRINCIPALS)?)?,
        held_names: held_names::recover(transaction, &mut damaged)?,
        answers: recover_answers(transaction, &mut damaged)?,
        next_order: counters(&transaction.open_table(META)?)?.next_order,
        notes: Vec::new(),
        is_incomplete: false,
        damaged,
    })
}

/// Returns what was read from a row; `None` if the row is not valid, and then notes it.
pub(super) fn read_or_note<T>(
    damaged: &mut Vec<DamagedRow>,
    (table, key, row): (&'static str, &[u8], &[u8]),
    read: Result<T, StoreFault>,
) -> Result<Option<T>, StoreFault> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(StoreFault::Corrupt(_)) => {
            damaged.push(DamagedRow { table, key: key.to_vec(), row: row.to_vec() });
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// The counters; those of an empty store if there are none.
pub(super) fn counters(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<StoreCounters, StoreFault> {
    let row = meta.get(StoreCounters::KEY)?;
    let counters =
        row.map_or(Ok(StoreCounters::default()), |row| StoreCounters::parse(row.value()))?;
    Ok(StoreCounters { counted_us: CountedTime::read(meta)?.counted_us, ..counters })
}

fn recover_sessions(
    transaction: &ReadTransaction,
    damaged: &mut Vec<DamagedRow>,
) -> Result<Vec<StoredSession>, StoreFault> {
    let sessions = transaction.open_table(SESSIONS)?;
    let mut found = Vec::new();
    let mut read = |id: &str| {
        let Some(row) = sessions.get(id)? else { return Ok(None) };
        let read = session_of(&sessions, id)
            .transpose()
            .unwrap_or_else(|| Err(StoreFault::row("sessions")));
        read_or_note(damaged, ("sessions", id.as_bytes(), row.value()), read)
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
) -> Result<Vec<StoredOpenAsk>, StoreFault> {
    let mut found = Vec::new();
    for row in transaction.open_table(ASKS)?.iter()? {
        let (token, row) = row?;
        let read = parse(Some(token.value()), "asks");
        let read = read.and_then(|token| StoredOpenAsk::parse(token, row.value()));
        found.extend(read_or_note(damaged, ("asks", token.value().as_bytes(), row.value()), read)?);
    }
    Ok(found)
}

fn recover_settled(
    transaction: &ReadTransaction,
    damaged: &mut Vec<DamagedRow>,
) -> Result<Vec<SettledAsk>, StoreFault> {
    let settled = transaction.open_table(SETTLED)?;
    let mut found = Vec::new();
    let mut bytes = 0;
    for row in transaction.open_table(SETTLED_BY_AGE)?.iter()?.rev() {
        let (_, token) = row?;
        let Some(row) = settled.get(token.value())? else { continue };
        let read = parse(Some(token.value()), "settled by age");
        let read = read.and_then(|token| SettledAsk::parse(token, row.value()));
        let key = ("settled", token.value().as_bytes(), row.value());
        let Some(mut ask) = read_or_note(damaged, key, read)? else { continue };
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
) -> Result<Vec<StoredSubscription>, StoreFault> {
    let mut found = Vec::new();
    for row in transaction.open_table(SUBSCRIPTIONS)?.iter()? {
        let (id, row) = row?;
        let read = || {
            let mut row = RowReader::new(row.value(), "subscriptions");
            Ok(StoredSubscription {
                subscription_id: parse(Some(id.value()), "subscriptions")?,
                principal: PrincipalNumber(row.number()?),
                may_reply: row.flag()?,
                json: row.rest().into(),
            })
        };
        let key = ("subscriptions", id.value().as_bytes(), row.value());
        found.extend(read_or_note(damaged, key, read())?);
    }
    Ok(found)
}

fn names(table: &impl ReadableTable<u64, &'static str>) -> Result<Vec<(u64, String)>, StoreFault> {
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
) -> Result<Vec<StoredAnswer>, StoreFault> {
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
        found.extend(read_or_note(damaged, ("answers", key.value(), answer.value()), read)?);
    }
    found.reverse();
    Ok(found)
}

fn read_answer(key: &[u8], answer: &[u8]) -> Result<StoredAnswer, StoreFault> {
    let (principal, idempotency_key) =
        key.split_first_chunk().ok_or_else(|| StoreFault::row("answers by age"))?;
    let mut row = RowReader::new(answer, "answers");
    row.number()?;
    Ok(StoredAnswer {
        principal: PrincipalNumber(u64::from_be_bytes(*principal)),
        idempotency_key: parse(std::str::from_utf8(idempotency_key).ok(), "answers by age")?,
        unix_us: row.moment()?,
        answer: row.rest().into(),
    })
}
