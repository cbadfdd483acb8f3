//! Answers kept under idempotency keys, so that a repeated request gets the answer to the first one.
//!
//! A key belongs to one request of one principal. The hub never gives an answer to a request unless it can show
//! that the request equals the first one. Every principal has a share; when it is full, the principal's own
//! oldest keys leave first.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use aaep::{EventId, Object, ReplyToken, SessionId};
use aaep_engine::PrincipalNumber;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::publish::Published;
use super::refused::Refused;
use crate::bounds::{MAX_IDEMPOTENCY_KEYS, MAX_IDEMPOTENCY_KEYS_EACH};
use crate::store::{StoreChange, StoredAnswer};

/// A request under an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyedRequest {
    pub(super) key: String,
    digest: String,
}

impl KeyedRequest {
    /// Computes the digest of the events as they arrived, after redaction. It ignores the order of the members
    /// of an object, and everything that the hub fills in later.
    pub(super) fn new(key: String, events: &[Object]) -> Self {
        let mut hasher = Sha256::new();
        for event in events {
            hash_object(event, &mut hasher);
        }
        let digest = hasher.finalize().iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        KeyedRequest { key, digest }
    }
}

fn hash_object(object: &Object, hasher: &mut Sha256) {
    let mut members: Vec<(&String, &Value)> = object.iter().collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    hasher.update(b"{");
    for (name, value) in members {
        hash_text(name, hasher);
        hash_value(value, hasher);
    }
    hasher.update(b"}");
}

fn hash_value(value: &Value, hasher: &mut Sha256) {
    match value {
        Value::Null => hasher.update(b"n"),
        Value::Bool(is_true) => hasher.update(if *is_true { b"t" } else { b"f" }),
        Value::Number(number) => {
            hasher.update(b"#");
            hash_text(&number.to_string(), hasher);
        }
        Value::String(text) => hash_text(text, hasher),
        Value::Array(items) => {
            hasher.update(b"[");
            for item in items {
                hash_value(item, hasher);
            }
            hasher.update(b"]");
        }
        Value::Object(object) => hash_object(object, hasher),
    }
}

/// Writes the length before the text, so that two different requests never produce the same bytes.
fn hash_text(text: &str, hasher: &mut Sha256) {
    hasher.update(b"\"");
    hasher.update((text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

/// The result of looking up a request under a key.
#[derive(Debug, PartialEq)]
pub(super) enum KeyLookup {
    /// The key is new.
    No,
    /// The same request came before and got this answer.
    Same(Vec<Result<Published, Refused>>),
    /// The key was used for another request, or for one that can no longer be compared.
    Another,
}

/// The most bytes for the answers of one principal, and for all answers.
const MAX_BYTES_EACH: usize = 4 << 20;
const MAX_BYTES: usize = 64 << 20;

/// The memory that one answer needs in addition to its key and its bytes.
const ANSWER_COST: usize = 256;

/// The newest answers of each principal.
#[derive(Debug, Default)]
pub(super) struct KeyedAnswers {
    known: HashMap<(PrincipalNumber, String), Arc<[u8]>>,
    /// The share of each principal.
    shares: HashMap<PrincipalNumber, KeyShare>,
    /// The bytes of each principal, for finding the largest share.
    sizes: BTreeSet<(usize, PrincipalNumber)>,
    /// The bytes of all answers.
    bytes: usize,
}

/// The keys of one principal.
#[derive(Debug, Default)]
struct KeyShare {
    /// The oldest first.
    keys: VecDeque<String>,
    bytes: usize,
}

impl KeyedAnswers {
    /// Loads stored answers, the oldest first.
    pub(super) fn new(stored: &[StoredAnswer]) -> Self {
        let mut answers = KeyedAnswers::default();
        for it in stored {
            answers.keep(it.principal, it.idempotency_key.clone(), Arc::clone(&it.answer));
        }
        answers
    }

    /// Checks whether a request came before.
    pub(super) fn find(&self, principal: PrincipalNumber, request: &KeyedRequest) -> KeyLookup {
        let Some(stored) = self.known.get(&(principal, request.key.clone())) else {
            return KeyLookup::No;
        };
        // An earlier version stored no digest. Such an answer cannot be compared, so nobody gets it.
        let Ok(stored) = serde_json::from_slice::<AnswerRecord>(stored) else {
            return KeyLookup::Another;
        };
        if stored.digest != request.digest {
            return KeyLookup::Another;
        }
        let lines = stored.lines.into_iter();
        let lines =
            lines.map(|line| line.map_or(Some(Err(Refused::Before)), PublishedRecord::read));
        lines.collect::<Option<_>>().map_or(KeyLookup::Another, KeyLookup::Same)
    }

    /// Keeps the answer to a request. Returns the changes that store it.
    pub(super) fn add(
        &mut self,
        principal: PrincipalNumber,
        request: KeyedRequest,
        outcomes: &[Result<Published, Refused>],
        unix_us: i64,
    ) -> Vec<StoreChange> {
        let KeyedRequest { key, digest } = request;
        let lines = outcomes.iter().map(|it| it.as_ref().ok().map(PublishedRecord::of)).collect();
        let answer = serde_json::to_vec(&AnswerRecord { digest, lines }).unwrap_or_default();
        let answer: Arc<[u8]> = answer.into();
        let change = |(principal, idempotency_key), answer| StoreChange::Answered {
            principal,
            idempotency_key,
            unix_us,
            answer,
        };
        let gone = self.keep(principal, key.clone(), Arc::clone(&answer));
        // An empty answer deletes its key.
        let gone = gone.into_iter().map(|key| change(key, Arc::default()));
        std::iter::once(change((principal, key), answer)).chain(gone).collect()
    }

    /// Keeps an answer. Returns the keys that had to make room for it; never its own key.
    fn keep(
        &mut self,
        principal: PrincipalNumber,
        key: String,
        answer: Arc<[u8]>,
    ) -> Vec<(PrincipalNumber, String)> {
        let cost = |key: &str, answer: &[u8]| ANSWER_COST + key.len() + answer.len();
        let new = cost(&key, &answer);
        let before = self.known.insert((principal, key.clone()), answer);
        let old = before.as_deref().map_or(0, |answer| cost(&key, answer));
        self.change(principal, |share| {
            share.bytes = share.bytes.saturating_sub(old) + new;
            if before.is_none() {
                share.keys.push_back(key);
            }
        });
        let mut gone = Vec::new();
        while self.is_beyond_share(principal) {
            gone.extend(self.drop_oldest(principal));
        }
        while self.known.len() as u64 > MAX_IDEMPOTENCY_KEYS || self.bytes > MAX_BYTES {
            // The principal with the most bytes makes room, but never with the answer that was just added.
            let has_more = |it: PrincipalNumber| {
                self.shares.get(&it).is_some_and(|share| share.keys.len() > 1)
            };
            let keeps_newest = |it: PrincipalNumber| it != principal || has_more(it);
            let most = self.sizes.iter().rev().find(|(_, it)| keeps_newest(*it)).copied();
            let Some((_, most)) = most else { break };
            gone.extend(self.drop_oldest(most));
        }
        gone
    }

    fn is_beyond_share(&self, principal: PrincipalNumber) -> bool {
        self.shares.get(&principal).is_some_and(|share| {
            let is_large = share.bytes > MAX_BYTES_EACH && share.keys.len() > 1;
            is_large || share.keys.len() > MAX_IDEMPOTENCY_KEYS_EACH
        })
    }

    fn drop_oldest(&mut self, principal: PrincipalNumber) -> Option<(PrincipalNumber, String)> {
        let key = self.shares.get(&principal)?.keys.front()?.clone();
        let gone = (principal, key);
        let answer = self.known.remove(&gone);
        let cost = answer.map_or(0, |answer| ANSWER_COST + gone.1.len() + answer.len());
        self.change(principal, |share| {
            share.keys.pop_front();
            share.bytes = share.bytes.saturating_sub(cost);
        });
        Some(gone)
    }

    fn change(&mut self, principal: PrincipalNumber, change: impl FnOnce(&mut KeyShare)) {
        let share = self.shares.entry(principal).or_default();
        self.sizes.remove(&(share.bytes, principal));
        self.bytes = self.bytes.saturating_sub(share.bytes);
        change(share);
        if share.keys.is_empty() {
            self.shares.remove(&principal);
        } else {
            self.bytes += share.bytes;
            self.sizes.insert((share.bytes, principal));
        }
    }
}

/// An answer as it is stored.
#[derive(Serialize, Deserialize)]
struct AnswerRecord {
    digest: String,
    lines: Vec<Option<PublishedRecord>>,
}

/// A published event, as it is stored under an idempotency key.
#[derive(Serialize, Deserialize)]
struct PublishedRecord {
    event_id: String,
    session_id: String,
    reply_token: Option<String>,
}

impl PublishedRecord {
    fn read(self) -> Option<Result<Published, Refused>> {
        let reply_token = match self.reply_token {
            Some(token) => Some(ReplyToken::parse(&token).ok()?),
            None => None,
        };
        Some(Ok(Published {
            event_id: EventId::parse(&self.event_id).ok()?,
            session_id: SessionId::parse(&self.session_id).ok()?,
            reply_token,
            is_repeated: true,
        }))
    }

    fn of(published: &Published) -> Self {
        PublishedRecord {
            event_id: published.event_id.to_string(),
            session_id: published.session_id.to_string(),
            reply_token: published.reply_token.as_ref().map(ToString::to_string),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(key: &str, event: &Value) -> KeyedRequest {
        let event = event.as_object().cloned().expect("an object");
        KeyedRequest::new(key.to_owned(), &[event])
    }

    fn published(event_id: &str) -> Vec<Result<Published, Refused>> {
        vec![Ok(Published {
            event_id: EventId::parse(event_id).expect("an id"),
            session_id: SessionId::parse("sess_1").expect("an id"),
            reply_token: None,
            is_repeated: false,
        })]
    }

    /// Applies the changes to the stored rows; an empty answer deletes its row.
    fn apply(changes: Vec<StoreChange>, rows: &mut Vec<StoredAnswer>) {
        for change in changes {
            let StoreChange::Answered { principal, idempotency_key, unix_us, answer } = change
            else {
                panic!("not an answer: {change:?}")
            };
            rows.retain(|row| {
                (row.principal, &row.idempotency_key) != (principal, &idempotency_key)
            });
            if !answer.is_empty() {
                rows.push(StoredAnswer { principal, idempotency_key, unix_us, answer });
            }
        }
    }

    #[test]
    fn the_same_request_is_known_whatever_the_order_of_its_members() {
        let mut answers = KeyedAnswers::default();
        let first = request("k", &json!({ "a": [1, { "x": 1, "y": null }], "b": "two" }));
        answers.add(PrincipalNumber(1), first.clone(), &published("evt_1"), 0);
        assert!(matches!(answers.find(PrincipalNumber(1), &first), KeyLookup::Same(_)));
        let event: Value =
            serde_json::from_str(r#"{"b":"two","a":[1,{"y":null,"x":1}]}"#).expect("JSON");
        assert!(matches!(
            answers.find(PrincipalNumber(1), &request("k", &event)),
            KeyLookup::Same(_)
        ));
        assert_eq!(
            answers.find(PrincipalNumber(2), &first),
            KeyLookup::No,
            "another principal has keys of its own"
        );
        assert_eq!(answers.find(PrincipalNumber(1), &request("other", &event)), KeyLookup::No);
    }

    #[test]
    fn a_request_that_differs_in_anything_is_another_one() {
        let mut answers = KeyedAnswers::default();
        let first = json!({ "a": ["x", "y"], "b": { "c": 1 }, "d": null });
        answers.add(PrincipalNumber(1), request("k", &first), &published("evt_1"), 0);
        for other in [
            json!({}),
            json!({ "a": ["x", "y"], "b": { "c": 1 } }),
            json!({ "a": ["xy"], "b": { "c": 1 }, "d": null }),
            json!({ "a": ["x"], "y": {}, "b": { "c": 1 }, "d": null }),
            json!({ "a": ["x", "y"], "b": { "c": "1" }, "d": null }),
            json!({ "a": ["x", "y"], "b": { "c": 1.5 }, "d": null }),
            json!({ "a": ["x", "y"], "b": { "c": 1 }, "d": false }),
            json!({ "a": ["x", "y"], "b": [], "c": 1, "d": null }),
        ] {
            assert_eq!(
                answers.find(PrincipalNumber(1), &request("k", &other)),
                KeyLookup::Another,
                "{other}"
            );
        }
        let twice = first.as_object().cloned().expect("an object");
        let twice = KeyedRequest::new("k".to_owned(), &[twice.clone(), twice]);
        assert_eq!(answers.find(PrincipalNumber(1), &twice), KeyLookup::Another);
    }

    #[test]
    fn what_was_stored_without_a_digest_answers_nobody() {
        let before = br#"[{"event_id":"evt_1","session_id":"sess_1","reply_token":null}]"#;
        let row = |answer: &[u8]| StoredAnswer {
            principal: PrincipalNumber(1),
            idempotency_key: "k".to_owned(),
            unix_us: 0,
            answer: answer.into(),
        };
        for stored in [before.as_slice(), b"{}", b"no JSON"] {
            let answers = KeyedAnswers::new(&[row(stored)]);
            assert_eq!(
                answers.find(PrincipalNumber(1), &request("k", &json!({}))),
                KeyLookup::Another
            );
        }
    }

    #[test]
    fn one_principal_with_many_keys_takes_no_place_of_another() {
        let mut answers = KeyedAnswers::default();
        let mut rows = Vec::new();
        let of = |key: &str| request(key, &json!({ "of": key }));
        apply(answers.add(PrincipalNumber(1), of("quiet"), &published("evt_1"), 0), &mut rows);
        let most = MAX_IDEMPOTENCY_KEYS_EACH;
        for at in 0..=most {
            let key = format!("k{at}");
            apply(answers.add(PrincipalNumber(2), of(&key), &published("evt_2"), 0), &mut rows);
        }
        for answers in [&answers, &KeyedAnswers::new(&rows)] {
            assert!(matches!(answers.find(PrincipalNumber(1), &of("quiet")), KeyLookup::Same(_)));
            assert_eq!(
                answers.find(PrincipalNumber(2), &of("k0")),
                KeyLookup::No,
                "its own oldest key left"
            );
            assert!(matches!(answers.find(PrincipalNumber(2), &of("k1")), KeyLookup::Same(_)));
        }
        assert_eq!(rows.len(), most + 1, "what left is not stored either");
    }

    #[test]
    fn when_all_places_are_taken_the_principal_with_the_most_makes_room() {
        let mut answers = KeyedAnswers::default();
        let shares = MAX_IDEMPOTENCY_KEYS / MAX_IDEMPOTENCY_KEYS_EACH as u64;
        for principal in 0..shares {
            for at in 0..MAX_IDEMPOTENCY_KEYS_EACH {
                answers.keep(PrincipalNumber(principal), format!("k{at}"), Arc::default());
            }
        }
        let gone = answers.keep(PrincipalNumber(shares), "new".to_owned(), Arc::default());
        assert_eq!(gone, [(PrincipalNumber(shares - 1), "k0".to_owned())]);
        assert_eq!(answers.known.len() as u64, MAX_IDEMPOTENCY_KEYS);
    }

    #[test]
    fn long_answers_take_bounded_memory() {
        let mut answers = KeyedAnswers::default();
        let long: Arc<[u8]> = vec![0; 600_000].into();
        answers.keep(PrincipalNumber(1), "quiet".to_owned(), Arc::default());
        for at in 0..2000_u64 {
            answers.keep(PrincipalNumber(2 + at % 40), format!("k{at}"), Arc::clone(&long));
            assert!(answers.bytes <= MAX_BYTES, "{}", answers.bytes);
        }
        assert!(answers.known.contains_key(&(PrincipalNumber(1), "quiet".to_owned())));
        assert!(answers.shares.values().all(|share| share.bytes <= MAX_BYTES_EACH));
        let huge: Arc<[u8]> = vec![0; 2 * MAX_BYTES_EACH].into();
        answers.keep(PrincipalNumber(3), "huge".to_owned(), huge);
        assert!(
            answers.known.contains_key(&(PrincipalNumber(3), "huge".to_owned())),
            "the newest is kept"
        );
        let kept: usize = answers.shares.values().map(|share| share.bytes).sum();
        assert_eq!((kept, answers.sizes.len()), (answers.bytes, answers.shares.len()));
    }
}
