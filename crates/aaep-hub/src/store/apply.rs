//! Applies the changes of a commit inside its transaction.
//!
//! Events are first gathered into chunks for each session; everything else follows in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep::SessionId;
use aaep_engine::PrincipalNumber;
use redb::{ReadableTable, ReadableTableMetadata, WriteTransaction};

use crate::bounds::{MAX_IDEMPOTENCY_KEYS, MAX_SETTLED_ASKS};
use crate::store::asks;
use crate::store::change::StoreChange;
use crate::store::error::CommitError;
use crate::store::event_ids::NewestIds;
use crate::store::fault::StoreFault;
use crate::store::held_names;
use crate::store::reader::session_of;
use crate::store::session::{EventChunk, EventFacts, StoredSession};
use crate::store::sweep::is_before;
use crate::store::table::{
    AGENTS, ANSWERS, ANSWERS_BY_AGE, ENDED, EVENT_ID_RUNS, EVENTS, PRINCIPALS, RUNNING, RowReader,
    SESSIONS, SUBSCRIPTIONS, StoreCounters, answer_key, pair, sortable,
};

/// The events of one session in a commit.
struct SessionEvents {
    chunks: Vec<EventChunk>,
    agent: u64,
    principal: PrincipalNumber,
    first_unix_us: i64,
    last_unix_us: i64,
}

/// Applies all changes except the audit entries.
pub(super) fn apply(
    transaction: &WriteTransaction,
    counters: &mut StoreCounters,
    newest: &mut NewestIds,
    changes: &[StoreChange],
) -> Result<(), StoreFault> {
    apply_events(transaction, counters, newest, changes)?;
    changes.iter().try_for_each(|change| apply_one(transaction, counters, change))
}

fn apply_one(
    transaction: &WriteTransaction,
    counters: &mut StoreCounters,
    change: &StoreChange,
) -> Result<(), StoreFault> {
    match change {
        StoreChange::Event { .. } | StoreChange::Audit(_) => Ok(()),
        StoreChange::SessionAbout { session_id, json } => {
            describe_session(transaction, session_id, json)
        }
        StoreChange::SessionEnded { session_id, unix_us } => {
            end_session(transaction, counters, session_id, *unix_us)
        }
        StoreChange::AskOpened { reply_token, session_id, time } => {
            asks::open(transaction, reply_token, session_id, *time)
        }
        StoreChange::AskMoved { reply_token, time } => {
            asks::move_time(transaction, reply_token, *time)
        }
        StoreChange::AskSettled { reply_token, unix_us, resolution } => {
            asks::settle(transaction, counters, reply_token, *unix_us, resolution, MAX_SETTLED_ASKS)
        }
        StoreChange::Subscribed { subscription_id, principal, may_reply, json } => {
            let mut table = transaction.open_table(SUBSCRIPTIONS)?;
            let row = [&principal.0.to_le_bytes()[..], &[u8::from(*may_reply)], json].concat();
            table.insert(subscription_id.as_str(), row.as_slice())?;
            Ok(())
        }
        StoreChange::Unsubscribed { subscription_id } => {
            transaction.open_table(SUBSCRIPTIONS)?.remove(subscription_id.as_str())?;
            Ok(())
        }
        StoreChange::Agent { key, name } => {
            transaction.open_table(AGENTS)?.insert(key, name.as_str())?;
            Ok(())
        }
        StoreChange::Principal { key, name } => {
            transaction.open_table(PRINCIPALS)?.insert(key, name.as_str())?;
            Ok(())
        }
        StoreChange::NameHeld(name) => held_names::put(transaction, name),
        StoreChange::NameForgotten { agent_id } => held_names::remove(transaction, agent_id),
        StoreChange::Answered { principal, idempotency_key, unix_us, answer } => {
            let key = answer_key(*principal, idempotency_key);
            if answer.is_empty() {
                return forget_answer(transaction, &key);
            }
            keep_answer(transaction, counters, &key, *unix_us, answer, MAX_IDEMPOTENCY_KEYS)
        }
    }
}

fn apply_events(
    transaction: &WriteTransaction,
    counters: &mut StoreCounters,
    newest: &mut NewestIds,
    changes: &[StoreChange],
) -> Result<(), StoreFault> {
    // In the order of the session ids, so that the same changes always produce the same file.
    let mut gathered: BTreeMap<&SessionId, SessionEvents> = BTreeMap::new();
    for change in changes {
        let StoreChange::Event {
            order,
            session_id,
            event_id,
            agent,
            principal,
            by_hub,
            unix_us,
            json,
        } = change
        else {
            continue;
        };
        if *order < counters.next_order || *order == u64::MAX {
            let next_order = counters.next_order;
            return Err(StoreFault::Refused(CommitError::OutOfOrder { order: *order, next_order }));
        }
        counters.next_order = order + 1;
        let session = gathered.entry(session_id).or_insert_with(|| SessionEvents {
            chunks: Vec::new(),
            agent: *agent,
            principal: *principal,
            first_unix_us: *unix_us,
            last_unix_us: *unix_us,
        });
        session.last_unix_us = *unix_us;
        let facts = EventFacts {
            order: *order,
            event_id,
            agent: *agent,
            by_hub: *by_hub,
            unix_us: *unix_us,
        };
        match session.chunks.last_mut() {
            Some(chunk) if chunk.has_room(json) => chunk.push(facts, json),
            _ => session.chunks.push(EventChunk::begin(facts, json)),
        }
    }
    if gathered.is_empty() {
        return Ok(());
    }
    store_events(transaction, counters, newest, gathered)
}

fn store_events(
    transaction: &WriteTransaction,
    counters: &mut StoreCounters,
    newest: &mut NewestIds,
    gathered: BTreeMap<&SessionId, SessionEvents>,
) -> Result<(), StoreFault> {
    let mut sessions = transaction.open_table(SESSIONS)?;
    let mut events = transaction.open_table(EVENTS)?;
    let mut runs = transaction.open_table(EVENT_ID_RUNS)?;
    for (session_id, SessionEvents { chunks, agent, principal, first_unix_us, last_unix_us }) in
        gathered
    {
        let mut session = if let Some(session) = session_of(&sessions, session_id.as_str())? {
            session
        } else {
            let whose = (agent, principal);
            start_session(transaction, counters, session_id, whose, first_unix_us)?
        };
        session.last_unix_us = last_unix_us;
        let (brought, mut ids) = (chunks.len(), Vec::new());
        for chunk in chunks {
            session.events += chunk.events;
            session.bytes += chunk.len() as u64;
            counters.event_bytes += chunk.len() as u64;
            ids.extend(&chunk.ids);
            let key = pair(session.number, chunk.first_order);
            events.insert(key, chunk.into_bytes().as_slice())?;
        }
        newest.add(&events, &mut runs, session.number, (brought, &ids))?;
        sessions.insert(session_id.as_str(), session.to_bytes().as_slice())?;
    }
    Ok(())
}

fn start_session(
    transaction: &WriteTransaction,
    counters: &mut StoreCounters,
    session_id: &SessionId,
    (agent, principal): (u64, PrincipalNumber),
    unix_us: i64,
) -> Result<StoredSession, StoreFault> {
    // Numbers begin at one; zero means no session.
    counters.next_session += 1;
    let number = counters.next_session;
    transaction.open_table(RUNNING)?.insert(number, session_id.as_str())?;
    Ok(StoredSession {
        session_id: session_id.clone(),
        agent,
        principal,
        first_unix_us: unix_us,
        last_unix_us: unix_us,
        ended_unix_us: None,
        events: 0,
        bytes: 0,
        number,
        about: [].into(),
        ended_counted_us: 0,
    })
}

fn describe_session(
    transaction: &WriteTransaction,
    session_id: &SessionId,
    about: &Arc<[u8]>,
) -> Result<(), StoreFault> {
    let mut sessions = transaction.open_table(SESSIONS)?;
    let Some(mut session) = session_of(&sessions, session_id.as_str())? else { return Ok(()) };
    session.about = Arc::clone(about);
    sessions.insert(session_id.as_str(), session.to_bytes().as_slice())?;
    Ok(())
}

pub(super) fn end_session(
    transaction: &WriteTransaction,
    counters: &StoreCounters,
    session_id: &SessionId,
    unix_us: i64,
) -> Result<(), StoreFault> {
    let mut sessions = transaction.open_table(SESSIONS)?;
    let found = sessions.get(session_id.as_str())?.map(|row| row.value().to_vec());
    let Some(row) = found else { return Ok(()) };
    let mut session = StoredSession::parse(session_id.clone(), &row)?;
    if session.ended_unix_us.is_some() {
        return Ok(());
    }
    let unix_us = unix_us.max(i64::MIN + 1);
    session.ended_unix_us = Some(unix_us);
    session.ended_counted_us = counters.counted_us;
    sessions.insert(session_id.as_str(), session.to_bytes().as_slice())?;
    transaction.open_table(RUNNING)?.remove(session.number)?;
    let key = pair(sortable(unix_us), session.number);
    transaction.open_table(ENDED)?.insert(key, session_id.as_str())?;
    Ok(())
}

/// Keeps an answer under its key. Of all answers, the newest `max` are kept.
pub(super) fn keep_answer(
    transaction: &WriteTransaction,
    counters: &mut StoreCounters,
    key: &[u8],
    unix_us: i64,
    answer: &[u8],
    max: u64,
) -> Result<(), StoreFault> {
    let mut answers = transaction.open_table(ANSWERS)?;
    let mut by_age = transaction.open_table(ANSWERS_BY_AGE)?;
    let age = counters.next_age;
    counters.next_age += 1;
    let row = [&age.to_le_bytes(), &unix_us.to_le_bytes(), answer].concat();
    let replaced = answers.insert(key, row.as_slice())?.map(|row| row.value().to_vec());
    if let Some(replaced) = replaced {
        by_age.remove(RowReader::new(&replaced, "answers").number()?)?;
    }
    by_age.insert(age, key)?;
    while by_age.len()? > max {
        let oldest = by_age.pop_first()?.map(|(_, key)| key.value().to_vec());
        let Some(oldest) = oldest else { break };
        answers.remove(oldest.as_slice())?;
    }
    Ok(())
}

fn forget_answer(transaction: &WriteTransaction, key: &[u8]) -> Result<(), StoreFault> {
    let mut answers = transaction.open_table(ANSWERS)?;
    let gone = answers.remove(key)?.map(|row| row.value().to_vec());
    if let Some(gone) = gone {
        let age = RowReader::new(&gone, "answers").number()?;
        transaction.open_table(ANSWERS_BY_AGE)?.remove(age)?;
    }
    Ok(())
}

/// Forgets answers from before this time, at most `max` of them. Returns how many.
pub(super) fn forget_answers(
    transaction: &WriteTransaction,
    before_unix_us: i64,
    max: usize,
) -> Result<usize, StoreFault> {
    let mut answers = transaction.open_table(ANSWERS)?;
    let mut by_age = transaction.open_table(ANSWERS_BY_AGE)?;
    for forgotten in 0..max {
        let oldest = by_age.first()?.map(|(age, key)| (age.value(), key.value().to_vec()));
        let Some((age, key)) = oldest else { return Ok(forgotten) };
        if let Some(row) = answers.get(key.as_slice())?
            && !is_before(row.value(), before_unix_us)?
        {
            return Ok(forgotten);
        }
        answers.remove(key.as_slice())?;
        by_age.remove(age)?;
    }
    Ok(max)
}
