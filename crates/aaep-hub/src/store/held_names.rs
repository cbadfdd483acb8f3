//! Which principal spoke under which agent name last (ruling 36), so that a restart frees no name.

use std::collections::{BTreeMap, HashMap};

use redb::{ReadTransaction, ReadableTable, TableError, WriteTransaction};
use serde::Deserialize;

use crate::bounds::MAX_NAME_BYTES;
use crate::store::fault::StoreFault;
use crate::store::recover::{DamagedRow, read_or_note};
use crate::store::session::{StoredSession, events_of};
use crate::store::table::{AGENTS, EVENTS, HELD_NAMES, RowReader, SESSIONS, pair, parse};

/// An agent name as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredName {
    /// The name.
    pub agent_id: String,
    /// The principal that used it last.
    pub principal: u64,
    /// When it was used last, or a little earlier.
    pub used_unix_us: i64,
    /// The principal that held it before, while the takeover was not announced yet.
    pub taken_from: Option<u64>,
}

impl StoredName {
    fn to_bytes(&self) -> Vec<u8> {
        let taken_from = self.taken_from.unwrap_or(0);
        let numbers = [self.principal, self.used_unix_us.cast_unsigned(), taken_from];
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn parse(agent_id: String, row: &[u8]) -> Result<Self, StoreFault> {
        let mut row = RowReader::new(row, "held names");
        Ok(StoredName {
            agent_id,
            principal: row.number()?,
            used_unix_us: row.moment()?,
            // Principals are numbered from one.
            taken_from: Some(row.number()?).filter(|number| *number != 0),
        })
    }
}

/// Stores who uses a name.
pub(super) fn put(transaction: &WriteTransaction, name: &StoredName) -> Result<(), StoreFault> {
    let mut names = transaction.open_table(HELD_NAMES)?;
    names.insert(name.agent_id.as_str(), name.to_bytes().as_slice())?;
    Ok(())
}

/// Forgets a name.
pub(super) fn remove(transaction: &WriteTransaction, agent_id: &str) -> Result<(), StoreFault> {
    transaction.open_table(HELD_NAMES)?.remove(agent_id)?;
    Ok(())
}

/// All names, the one that was used the longest ago first.
pub(super) fn recover(
    transaction: &ReadTransaction,
    damaged: &mut Vec<DamagedRow>,
) -> Result<Vec<StoredName>, StoreFault> {
    let names = match transaction.open_table(HELD_NAMES) {
        Ok(names) => names,
        // The store is of an earlier version, and was not upgraded yet.
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut found = Vec::new();
    for row in names.iter()? {
        let (agent_id, row) = row?;
        let read = parse(Some(agent_id.value()), "held names");
        let read = read.and_then(|agent_id| StoredName::parse(agent_id, row.value()));
        let key = ("held names", agent_id.value().as_bytes(), row.value());
        found.extend(read_or_note(damaged, key, read)?);
    }
    found.sort_by_key(|name| name.used_unix_us);
    Ok(found)
}

/// Adds the names from all stored sessions and events, for a store from before names were stored. Rows that
/// cannot be read are left out; a start finds and reports them.
pub(super) fn add_all(transaction: &WriteTransaction) -> Result<(), StoreFault> {
    let mut newest = BTreeMap::new();
    {
        let agents = transaction.open_table(AGENTS)?;
        let mut by_number = HashMap::new();
        for row in agents.iter()? {
            let (number, name) = row?;
            by_number.insert(number.value(), name.value().to_owned());
        }
        let (sessions, events) =
            (transaction.open_table(SESSIONS)?, transaction.open_table(EVENTS)?);
        for row in sessions.iter()? {
            let (id, row) = row?;
            let session = parse(Some(id.value()), "sessions")
                .and_then(|id| StoredSession::parse(id, row.value()));
            let Ok(session) = session else { continue };
            let mut note = |agent_id: Option<String>, unix_us| {
                note_use(&mut newest, agent_id, (session.principal.0, unix_us));
            };
            let about =
                serde_json::from_slice(&session.about).ok().map(|it: AgentName| it.agent_id);
            note(about.or_else(|| by_number.get(&session.agent).cloned()), session.last_unix_us);
            for chunk in events.range(pair(session.number, 0)..=pair(session.number, u64::MAX))? {
                let (_, chunk) = chunk?;
                let Ok(chunk) = events_of(&session.session_id, chunk.value(), 0) else { continue };
                for event in chunk.iter().filter(|event| !event.by_hub) {
                    let spoken = serde_json::from_slice(&event.json);
                    note(spoken.ok().map(|it: SpokenBy| it.producer.agent_id), event.unix_us);
                }
            }
        }
    }
    let mut names = transaction.open_table(HELD_NAMES)?;
    for (agent_id, (principal, used_unix_us)) in newest {
        if let Some(row) = names.get(agent_id.as_str())?
            && StoredName::parse(agent_id.clone(), row.value())
                .is_ok_and(|known| known.used_unix_us >= used_unix_us)
        {
            continue;
        }
        let name = StoredName { agent_id, principal, used_unix_us, taken_from: None };
        names.insert(name.agent_id.as_str(), name.to_bytes().as_slice())?;
    }
    Ok(())
}

#[derive(Deserialize)]
struct AgentName {
    agent_id: String,
}

#[derive(Deserialize)]
struct SpokenBy {
    producer: AgentName,
}

fn note_use(
    newest: &mut BTreeMap<String, (u64, i64)>,
    agent_id: Option<String>,
    (principal, unix_us): (u64, i64),
) {
    let Some(agent_id) = agent_id.filter(|it| !it.is_empty() && it.len() <= MAX_NAME_BYTES) else {
        return;
    };
    let known = newest.entry(agent_id).or_insert((principal, unix_us));
    if known.1 <= unix_us {
        *known = (principal, unix_us);
    }
}
