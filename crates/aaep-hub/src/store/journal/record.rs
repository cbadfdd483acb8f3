//! A commit as a record of the journal: its changes, and the lines that it adds to the audit log.

use aaep::SessionId;
use aaep_engine::PrincipalNumber;

use super::{END, HEAD_BYTES, HEAD_END, MARK, StoreId, checksum};
use crate::audit::{ChainHead, Hash};
use crate::store::asks;
use crate::store::change::StoreChange;
use crate::store::fault::StoreFault;
use crate::store::held_names::StoredName;
use crate::store::log::PreparedEntry;
use crate::store::table::{RowReader, parse};

/// The content of a record.
pub(in crate::store) struct DecodedCommit {
    pub(in crate::store) changes: Vec<StoreChange>,
    pub(in crate::store) lines: Vec<PreparedEntry>,
}

const JOURNAL: &str = "the journal";

/// Encodes a commit of this store. The entries of the audit log are encoded as lines, not as changes.
pub(in crate::store) fn encode(
    id: &StoreId,
    number: u64,
    changes: &[StoreChange],
    lines: &[PreparedEntry],
) -> Vec<u8> {
    let mut writer = RecordWriter(vec![0; HEAD_BYTES]);
    writer.number(changes.iter().filter(|it| !matches!(it, StoreChange::Audit(_))).count() as u64);
    for change in changes {
        writer.change(change);
    }
    writer.number(lines.len() as u64);
    for line in lines {
        writer.line(line);
    }
    let RecordWriter(mut bytes) = writer;
    let (head, content) = bytes.split_at_mut(HEAD_BYTES);
    head[..8].copy_from_slice(&MARK);
    head[8..16].copy_from_slice(&number.to_le_bytes());
    head[16..24].copy_from_slice(&(content.len() as u64).to_le_bytes());
    let of_content = checksum(id, &head[..24], content);
    head[24..32].copy_from_slice(&of_content);
    let of_head = checksum(id, &head[..32], &[]);
    head[32..40].copy_from_slice(&of_head);
    head[40..].copy_from_slice(&HEAD_END);
    bytes.extend(END);
    bytes
}

/// Decodes the content of a record.
pub(in crate::store) fn decode(content: &[u8]) -> Result<DecodedCommit, StoreFault> {
    let mut row = RowReader::new(content, JOURNAL);
    let mut changes = Vec::new();
    for _ in 0..row.number()? {
        changes.push(change(&mut row)?);
    }
    let mut lines = Vec::new();
    for _ in 0..row.number()? {
        lines.push(line(&mut row)?);
    }
    if row.is_empty() {
        Ok(DecodedCommit { changes, lines })
    } else {
        Err(StoreFault::row(JOURNAL))
    }
}

struct RecordWriter(Vec<u8>);

impl RecordWriter {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn moment(&mut self, moment: i64) {
        self.0.extend(moment.to_le_bytes());
    }

    fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn change(&mut self, change: &StoreChange) {
        match change {
            StoreChange::Event {
                order,
                session_id,
                event_id,
                agent,
                principal,
                by_hub,
                unix_us,
                json,
            } => {
                self.0.push(14);
                self.number(*order);
                self.text(session_id.as_str());
                self.text(event_id.as_str());
                self.number(*agent);
                self.number(principal.0);
                self.flag(*by_hub);
                self.moment(*unix_us);
                self.bytes(json);
            }
            StoreChange::SessionEnded { session_id, unix_us } => {
                self.0.push(2);
                self.text(session_id.as_str());
                self.moment(*unix_us);
            }
            StoreChange::AskOpened { reply_token, session_id, time } => {
                self.0.push(3);
                self.text(reply_token.as_str());
                self.text(session_id.as_str());
                self.0.extend(asks::time_to_bytes(*time));
            }
            StoreChange::AskMoved { reply_token, time } => {
                self.0.push(4);
                self.text(reply_token.as_str());
                self.0.extend(asks::time_to_bytes(*time));
            }
            StoreChange::AskSettled { reply_token, unix_us, resolution } => {
                self.0.push(5);
                self.text(reply_token.as_str());
                self.moment(*unix_us);
                self.bytes(resolution);
            }
            StoreChange::Subscribed { subscription_id, principal, may_reply, json } => {
                self.0.push(6);
                self.text(subscription_id.as_str());
                self.number(principal.0);
                self.flag(*may_reply);
                self.bytes(json);
            }
            StoreChange::Unsubscribed { subscription_id } => {
                self.0.push(7);
                self.text(subscription_id.as_str());
            }
            StoreChange::Agent { key, name } => {
                self.0.push(8);
                self.number(*key);
                self.text(name);
            }
            StoreChange::Principal { key, name } => {
                self.0.push(9);
                self.number(*key);
                self.text(name);
            }
            StoreChange::Answered { principal, idempotency_key, unix_us, answer } => {
                self.0.push(10);
                self.number(principal.0);
                self.text(idempotency_key);
                self.moment(*unix_us);
                self.bytes(answer);
            }
            StoreChange::SessionAbout { session_id, json } => {
                self.0.push(11);
                self.text(session_id.as_str());
                self.bytes(json);
            }
            StoreChange::NameHeld(StoredName { agent_id, principal, used_unix_us, taken_from }) => {
                self.0.push(12);
                self.text(agent_id);
                self.number(*principal);
                self.moment(*used_unix_us);
                self.number(taken_from.unwrap_or(0));
            }
            StoreChange::NameForgotten { agent_id } => {
                self.0.push(13);
                self.text(agent_id);
            }
            StoreChange::Audit(_) => {}
        }
    }

    fn line(&mut self, line: &PreparedEntry) {
        let PreparedEntry { head, line, session_id, unix_us, details } = line;
        self.number(head.seq);
        self.0.extend(head.hash.0);
        self.bytes(line);
        self.text(session_id.as_ref().map_or("", SessionId::as_str));
        self.moment(*unix_us);
        self.flag(details.is_some());
        if let Some((salt, words)) = details {
            self.0.extend(salt);
            self.text(words);
        }
    }
}

fn change(row: &mut RowReader<'_>) -> Result<StoreChange, StoreFault> {
    Ok(match row.array::<1>()? {
        [kind @ (1 | 14)] => StoreChange::Event {
            order: row.number()?,
            session_id: parsed(row)?,
            event_id: parsed(row)?,
            agent: row.number()?,
            principal: PrincipalNumber(row.number()?),
            by_hub: row.flag()?,
            unix_us: {
                // Up to format 6, a flag said whether the event is critical. The event itself says that.
                if kind == 1 {
                    row.flag()?;
                }
                row.moment()?
            },
            json: row.sized()?.into(),
        },
        [2] => StoreChange::SessionEnded { session_id: parsed(row)?, unix_us: row.moment()? },
        [3] => StoreChange::AskOpened {
            reply_token: parsed(row)?,
            session_id: parsed(row)?,
            time: asks::time_of(row)?,
        },
        [4] => StoreChange::AskMoved { reply_token: parsed(row)?, time: asks::time_of(row)? },
        [5] => StoreChange::AskSettled {
            reply_token: parsed(row)?,
            unix_us: row.moment()?,
            resolution: row.sized()?.into(),
        },
        [6] => StoreChange::Subscribed {
            subscription_id: parsed(row)?,
            principal: PrincipalNumber(row.number()?),
            may_reply: row.flag()?,
            json: row.sized()?.into(),
        },
        [7] => StoreChange::Unsubscribed { subscription_id: parsed(row)? },
        [8] => StoreChange::Agent { key: row.number()?, name: parsed(row)? },
        [9] => StoreChange::Principal { key: row.number()?, name: parsed(row)? },
        [10] => StoreChange::Answered {
            principal: PrincipalNumber(row.number()?),
            idempotency_key: parsed(row)?,
            unix_us: row.moment()?,
            answer: row.sized()?.into(),
        },
        [11] => StoreChange::SessionAbout { session_id: parsed(row)?, json: row.sized()?.into() },
        [12] => StoreChange::NameHeld(StoredName {
            agent_id: parsed(row)?,
            principal: row.number()?,
            used_unix_us: row.moment()?,
            taken_from: Some(row.number()?).filter(|number| *number != 0),
        }),
        [13] => StoreChange::NameForgotten { agent_id: parsed(row)? },
        _ => return Err(StoreFault::row(JOURNAL)),
    })
}

fn line(row: &mut RowReader<'_>) -> Result<PreparedEntry, StoreFault> {
    let head = ChainHead { seq: row.number()?, hash: Hash(row.array()?) };
    let line = row.sized()?.to_vec();
    let session_id = match row.sized()? {
        [] => None,
        id => Some(parse(std::str::from_utf8(id).ok(), JOURNAL)?),
    };
    let unix_us = row.moment()?;
    let details = if row.flag()? { Some((row.array()?, parsed(row)?)) } else { None };
    Ok(PreparedEntry { head, line, session_id, unix_us, details })
}

/// Parses text that is preceded by its length.
fn parsed<T: std::str::FromStr>(row: &mut RowReader<'_>) -> Result<T, StoreFault> {
    parse(std::str::from_utf8(row.sized()?).ok(), JOURNAL)
}

#[cfg(test)]
mod tests {
    use aaep::SubscriptionId;

    use super::*;
    use crate::store::change::StoredTime;
    use crate::store::tests::{event, session, token};

    const ID: &StoreId = &[7; 16];

    fn one_of_each() -> Vec<StoreChange> {
        let reply_token = token("one");
        let subscription_id = SubscriptionId::parse("sub_1").expect("an id");
        let runs = StoredTime {
            ends_unix_us: Some(-1),
            left_us: None,
            limit_unix_us: i64::MAX,
            changes: 3,
            stored_unix_us: Some(i64::MIN),
            event_unix_us: Some(5),
        };
        let waits = StoredTime {
            ends_unix_us: None,
            left_us: Some(7),
            stored_unix_us: None,
            event_unix_us: None,
            ..runs
        };
        vec![
            event(1, "a"),
            event(2, "b"),
            StoreChange::SessionEnded { session_id: session("a"), unix_us: i64::MIN },
            StoreChange::AskOpened {
                reply_token: reply_token.clone(),
                session_id: session("a"),
                time: runs,
            },
            StoreChange::AskMoved { reply_token: reply_token.clone(), time: waits },
            StoreChange::AskSettled {
                reply_token,
                unix_us: 5,
                resolution: b"{}".as_slice().into(),
            },
            StoreChange::Subscribed {
                subscription_id: subscription_id.clone(),
                principal: PrincipalNumber(9),
                may_reply: true,
                json: b"[]".as_slice().into(),
            },
            StoreChange::Unsubscribed { subscription_id },
            StoreChange::Agent { key: 1, name: "Ägent".to_owned() },
            StoreChange::Principal { key: 2, name: String::new() },
            StoreChange::SessionAbout { session_id: session("a"), json: b"{}".as_slice().into() },
            StoreChange::NameHeld(StoredName {
                agent_id: "photos".to_owned(),
                principal: 4,
                used_unix_us: -3,
                taken_from: Some(2),
            }),
            StoreChange::NameHeld(StoredName {
                agent_id: "pay".to_owned(),
                principal: 4,
                used_unix_us: 3,
                taken_from: None,
            }),
            StoreChange::NameForgotten { agent_id: "photos".to_owned() },
            StoreChange::Answered {
                principal: PrincipalNumber(1),
                idempotency_key: "key".to_owned(),
                unix_us: 6,
                answer: b"".as_slice().into(),
            },
        ]
    }

    fn lines() -> Vec<PreparedEntry> {
        let head = ChainHead { seq: 4, hash: Hash([5; 32]) };
        let with = PreparedEntry {
            head,
            line: b"{}\n".to_vec(),
            session_id: Some(session("a")),
            unix_us: 7,
            details: Some(([8; 32], "Ja, löschen".to_owned())),
        };
        let without =
            PreparedEntry { head, line: Vec::new(), session_id: None, unix_us: -7, details: None };
        vec![with, without]
    }

    #[test]
    fn every_change_and_line_comes_back_as_it_was() {
        let record = encode(ID, 3, &one_of_each(), &lines());
        let (number, content, length) = super::super::first_record(ID, &record).expect("a record");
        assert_eq!((number, length), (3, record.len()));
        let DecodedCommit { changes, lines: found } = decode(content).expect("readable");
        assert_eq!(changes, one_of_each());
        assert_eq!(format!("{found:?}"), format!("{:?}", lines()));
    }

    #[test]
    fn what_is_cut_or_too_long_is_refused_and_never_a_panic() {
        let record = encode(ID, 3, &one_of_each(), &lines());
        let content = &record[HEAD_BYTES..record.len() - END.len()];
        for length in 0..content.len() {
            assert!(decode(&content[..length]).is_err(), "{length}");
        }
        assert!(decode(&[content, b"\0"].concat()).is_err());
        assert!(super::super::first_record(&[8; 16], &record).is_none(), "of another store");
        for length in 0..record.len() {
            assert!(super::super::first_record(ID, &record[..length]).is_none(), "{length}");
        }
    }
}
