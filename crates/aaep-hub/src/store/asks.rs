//! Asks as they are stored: open ones with their deadline, settled ones with their resolution.
//!
//! The token of a settled ask stays used until there are too many. Its resolution is kept as long, unless its
//! session is deleted.

use std::sync::Arc;

use aaep::{ReplyToken, SessionId};
use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata, WriteTransaction};

use crate::store::change::StoredTime;
use crate::store::fault::StoreFault;
use crate::store::session::StoredSession;
use crate::store::settled_shares;
use crate::store::table::{
    ASKS, RowReader, SESSIONS, SETTLED, SETTLED_BY_AGE, SETTLED_OF_SESSION, StoreCounters, pair,
    parse, second,
};

/// An open ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOpenAsk {
    /// Its token.
    pub reply_token: ReplyToken,
    /// Its session.
    pub session_id: SessionId,
    /// How long it waits.
    pub time: StoredTime,
}

impl StoredOpenAsk {
    fn to_bytes(&self) -> Vec<u8> {
        [&time_to_bytes(self.time), self.session_id.as_str().as_bytes()].concat()
    }

    pub(crate) fn parse(reply_token: ReplyToken, bytes: &[u8]) -> Result<Self, StoreFault> {
        let mut row = RowReader::new(bytes, "asks");
        Ok(StoredOpenAsk { reply_token, time: time_of(&mut row)?, session_id: row.parsed()? })
    }
}

/// A flag in the number of changes: the time of storing follows. Earlier versions did not store it.
const IS_DATED: u64 = 1 << 63;

/// A flag in the same number: the time of the last event before the ask follows.
const IS_AFTER_AN_EVENT: u64 = 1 << 62;

/// Encodes the time of an ask. The bytes themselves say how long they are.
pub(super) fn time_to_bytes(time: StoredTime) -> Vec<u8> {
    let StoredTime { ends_unix_us, left_us, limit_unix_us, changes, stored_unix_us, event_unix_us } =
        time;
    let mut bytes = Vec::with_capacity(48);
    bytes.extend(ends_unix_us.unwrap_or(i64::MIN).to_le_bytes());
    bytes.extend(left_us.unwrap_or(u64::MAX).to_le_bytes());
    bytes.extend(limit_unix_us.to_le_bytes());
    let dated = if stored_unix_us.is_some() { IS_DATED } else { 0 };
    let after = if event_unix_us.is_some() { IS_AFTER_AN_EVENT } else { 0 };
    bytes.extend((u64::from(changes) | dated | after).to_le_bytes());
    for moment in [stored_unix_us, event_unix_us].into_iter().flatten() {
        bytes.extend(moment.to_le_bytes());
    }
    bytes
}

/// Decodes the time of an ask.
pub(super) fn time_of(row: &mut RowReader<'_>) -> Result<StoredTime, StoreFault> {
    let ends_unix_us = row.optional_moment()?;
    let left_us = Some(row.number()?).filter(|left| *left != u64::MAX);
    let limit_unix_us = row.moment()?;
    let number = row.number()?;
    let changes = u32::try_from(number & !(IS_DATED | IS_AFTER_AN_EVENT)).unwrap_or(u32::MAX);
    let mut moment = |flag| if number & flag == 0 { Ok(None) } else { row.moment().map(Some) };
    let stored_unix_us = moment(IS_DATED)?;
    let event_unix_us = moment(IS_AFTER_AN_EVENT)?;
    Ok(StoredTime { ends_unix_us, left_us, limit_unix_us, changes, stored_unix_us, event_unix_us })
}

/// A settled ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledAsk {
    /// Its token, which stays used.
    pub reply_token: ReplyToken,
    /// When it was settled.
    pub unix_us: i64,
    /// How, as JSON; `None` if its session was deleted, or if it was omitted to save memory.
    pub resolution: Option<Arc<[u8]>>,
}

impl SettledAsk {
    pub(crate) fn parse(reply_token: ReplyToken, bytes: &[u8]) -> Result<Self, StoreFault> {
        let mut row = RowReader::new(bytes, "settled");
        let (_age, _session) = (row.number()?, row.number()?);
        let unix_us = row.moment()?;
        let is_kept = row.flag()?;
        let resolution = is_kept.then(|| Arc::from(row.rest()));
        Ok(SettledAsk { reply_token, unix_us, resolution })
    }
}

pub(super) fn open(
    transaction: &WriteTransaction,
    reply_token: &ReplyToken,
    session_id: &SessionId,
    time: StoredTime,
) -> Result<(), StoreFault> {
    let ask =
        StoredOpenAsk { reply_token: reply_token.clone(), session_id: session_id.clone(), time };
    let mut asks = transaction.open_table(ASKS)?;
    asks.insert(reply_token.as_str(), ask.to_bytes().as_slice())?;
    Ok(())
}

pub(super) fn move_time(
    transaction: &WriteTransaction,
    reply_token: &ReplyToken,
    time: StoredTime,
) -> Result<(), StoreFault> {
    let mut asks = transaction.open_table(ASKS)?;
    let found = asks.get(reply_token.as_str())?.map(|row| row.value().to_vec());
    let Some(row) = found else { return Ok(()) };
    let ask = StoredOpenAsk::parse(reply_token.clone(), &row)?;
    let moved = StoredOpenAsk { time, ..ask };
    asks.insert(reply_token.as_str(), moved.to_bytes().as_slice())?;
    Ok(())
}

/// Settles an ask. Of all settled asks, `max` are remembered; the principal with the most loses its oldest
/// first.
pub(super) fn settle(
    transaction: &WriteTransaction,
    counters: &mut StoreCounters,
    reply_token: &ReplyToken,
    unix_us: i64,
    resolution: &[u8],
    max: u64,
) -> Result<(), StoreFault> {
    let token = reply_token.as_str();
    let found = transaction.open_table(ASKS)?.remove(token)?.map(|row| row.value().to_vec());
    let (session, principal) = match found {
        Some(row) => {
            let ask = StoredOpenAsk::parse(reply_token.clone(), &row)?;
            session_numbers(transaction, &ask.session_id)?
        }
        None => (0, 0),
    };
    let mut settled = transaction.open_table(SETTLED)?;
    let before = settled.get(token)?.map(|row| row.value().to_vec());
    if let Some(before) = before {
        let mut row = RowReader::new(&before, "settled");
        let (age, session, unix_us) = (row.number()?, row.number()?, row.moment()?);
        // A settled ask stays settled: the first resolution is the one that was told. If the session was ended
        // only in the store, none was told yet.
        if !row.flag()? && session != 0 {
            let row = settled_row(age, session, unix_us, Some(resolution));
            settled.insert(token, row.as_slice())?;
        }
        return Ok(());
    }
    let age = counters.next_age;
    counters.next_age += 1;
    let row = settled_row(age, session, unix_us, Some(resolution));
    settled.insert(token, row.as_slice())?;
    transaction.open_table(SETTLED_OF_SESSION)?.insert(pair(session, age), token)?;
    settled_shares::add(transaction, principal, age, token)?;
    let mut by_age = transaction.open_table(SETTLED_BY_AGE)?;
    by_age.insert(age, token)?;
    while by_age.len()? > max {
        let oldest = settled_shares::take_oldest(transaction)?;
        let oldest = match oldest {
            Some((age, token)) => {
                by_age.remove(age)?;
                Some((age, token))
            }
            None => by_age.pop_first()?.map(|(age, token)| (age.value(), token.value().to_owned())),
        };
        let Some((age, token)) = oldest else { break };
        let removed = settled.remove(token.as_str())?.map(|row| row.value().to_vec());
        let Some(removed) = removed else { continue };
        let mut row = RowReader::new(&removed, "settled");
        row.number()?;
        transaction.open_table(SETTLED_OF_SESSION)?.remove(pair(row.number()?, age))?;
    }
    Ok(())
}

/// Withdraws the open asks of a session. If there is a hub, it stores later how that was told.
pub(super) fn withdraw_all(
    transaction: &WriteTransaction,
    counters: &mut StoreCounters,
    session_id: &SessionId,
    unix_us: i64,
) -> Result<(), StoreFault> {
    let (session, principal) = session_numbers(transaction, session_id)?;
    let mut asks = transaction.open_table(ASKS)?;
    let mut tokens = Vec::new();
    for row in asks.iter()? {
        let (token, row) = row?;
        let ask = parse(Some(token.value()), "asks")
            .and_then(|reply_token| StoredOpenAsk::parse(reply_token, row.value()));
        // An ask that cannot be read is set aside at the next start.
        if ask.is_ok_and(|ask| ask.session_id == *session_id) {
            tokens.push(token.value().to_owned());
        }
    }
    let mut settled = transaction.open_table(SETTLED)?;
    let mut of_session = transaction.open_table(SETTLED_OF_SESSION)?;
    let mut by_age = transaction.open_table(SETTLED_BY_AGE)?;
    for token in tokens {
        asks.remove(token.as_str())?;
        let age = counters.next_age;
        counters.next_age += 1;
        settled.insert(token.as_str(), settled_row(age, session, unix_us, None).as_slice())?;
        of_session.insert(pair(session, age), token.as_str())?;
        by_age.insert(age, token.as_str())?;
        settled_shares::add(transaction, principal, age, token.as_str())?;
    }
    Ok(())
}

/// Forgets the answers in a session. The tokens stay used.
pub(super) fn forget_resolutions(
    transaction: &WriteTransaction,
    session: u64,
) -> Result<(), StoreFault> {
    let mut of_session = transaction.open_table(SETTLED_OF_SESSION)?;
    let mut settled = transaction.open_table(SETTLED)?;
    let mut tokens = Vec::new();
    for row in of_session.range(pair(session, 0)..=pair(session, u64::MAX))? {
        let (key, token) = row?;
        tokens.push((second(key.value()), token.value().to_owned()));
    }
    for (age, token) in tokens {
        let found = settled.get(token.as_str())?.map(|row| row.value().to_vec());
        if let Some(found) = found {
            let mut row = RowReader::new(&found, "settled");
            let (age, _session, unix_us) = (row.number()?, row.number()?, row.moment()?);
            settled.insert(token.as_str(), settled_row(age, 0, unix_us, None).as_slice())?;
            of_session.insert(pair(0, age), token.as_str())?;
        }
        of_session.remove(pair(session, age))?;
    }
    Ok(())
}

/// Whether this session has an open ask.
pub(super) fn has_open(
    transaction: &ReadTransaction,
    session_id: &SessionId,
) -> Result<bool, StoreFault> {
    let asks = transaction.open_table(ASKS)?;
    for row in asks.iter()? {
        let (token, row) = row?;
        let token = parse(Some(token.value()), "asks")?;
        if StoredOpenAsk::parse(token, row.value())?.session_id == *session_id {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The number of a session; zero if it is not stored.
pub(super) fn session_number(
    transaction: &WriteTransaction,
    session_id: &SessionId,
) -> Result<u64, StoreFault> {
    session_numbers(transaction, session_id).map(|(session, _)| session)
}

/// The numbers of a session and of its principal; zeros if it is not stored.
fn session_numbers(
    transaction: &WriteTransaction,
    session_id: &SessionId,
) -> Result<(u64, u64), StoreFault> {
    let sessions = transaction.open_table(SESSIONS)?;
    let Some(row) = sessions.get(session_id.as_str())? else { return Ok((0, 0)) };
    let session = StoredSession::parse(session_id.clone(), row.value())?;
    Ok((session.number, session.principal.0))
}

fn settled_row(age: u64, session: u64, unix_us: i64, resolution: Option<&[u8]>) -> Vec<u8> {
    let mut row = Vec::with_capacity(25 + resolution.map_or(0, <[u8]>::len));
    row.extend(age.to_le_bytes());
    row.extend(session.to_le_bytes());
    row.extend(unix_us.to_le_bytes());
    row.push(u8::from(resolution.is_some()));
    row.extend(resolution.unwrap_or_default());
    row
}
