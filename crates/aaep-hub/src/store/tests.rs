//! Tests of the store: the helpers that they share.

mod audit;
mod backup;
mod broken_log;
mod corrupt;
mod deletion;
mod event_ids;
mod facts;
pub(crate) mod full;
mod journal;
mod salvage;

use std::path::Path;
use std::sync::Arc;

use aaep::{EventId, ReplyToken, SessionId};
use aaep_engine::PrincipalNumber;

use crate::audit::Entry;
use crate::store::{
    OpenError, RecoveredStore, ReplayedEvent, Retention, Store, StoreChange, StoredEvent,
    StoredTime,
};

pub(super) fn session(name: &str) -> SessionId {
    SessionId::parse(&format!("sess_{name}")).expect("letters")
}

pub(super) fn token(name: &str) -> ReplyToken {
    ReplyToken::parse(&format!("rpl_{name}")).expect("letters")
}

fn event_id(order: u64) -> EventId {
    EventId::parse(&format!("evt_{order}")).expect("digits")
}

fn json(order: u64) -> Arc<[u8]> {
    format!("{{\"number\":{order}}}").into_bytes().into()
}

/// The time of an ask.
fn time(ends_unix_us: Option<i64>, left_us: Option<u64>) -> StoredTime {
    let (stored_unix_us, event_unix_us) = (Some(700), Some(600));
    StoredTime {
        ends_unix_us,
        left_us,
        limit_unix_us: 900,
        changes: 3,
        stored_unix_us,
        event_unix_us,
    }
}

/// An event whose facts all follow from its order.
pub(super) fn event(order: u64, name: &str) -> StoreChange {
    StoreChange::Event {
        order,
        session_id: session(name),
        event_id: event_id(order),
        agent: 7,
        principal: PrincipalNumber(8),
        by_hub: order % 2 == 1,
        unix_us: moment(order),
        json: json(order),
    }
}

fn moment(order: u64) -> i64 {
    1_700_000_000_000_000 + i64::try_from(order).expect("small") * 1_000_000
}

fn stored(order: u64, name: &str) -> StoredEvent {
    StoredEvent {
        order,
        session_id: session(name),
        event_id: event_id(order),
        agent: 7,
        by_hub: order % 2 == 1,
        unix_us: moment(order),
        json: json(order),
    }
}

fn ended(name: &str, unix_us: i64) -> StoreChange {
    StoreChange::SessionEnded { session_id: session(name), unix_us }
}

fn entry(name: &str, words: Option<&str>) -> StoreChange {
    StoreChange::Audit(Entry {
        unix_us: moment(1),
        kind: "asked",
        session_id: Some(session(name)),
        reply_token: Some(token("one")),
        who: Some("Ada".to_owned()),
        outcome: "two were told".to_owned(),
        details: words.map(str::to_owned),
    })
}

fn open(folder: &Path) -> (Store, RecoveredStore) {
    Store::open(folder, Retention::default()).expect("the store opens")
}

fn open_error(folder: &Path) -> OpenError {
    Store::open(folder, Retention::default()).map(|_| ()).expect_err("the store does not open")
}

/// The events of a replay, none of which may be damaged.
fn events(store: &Store, recovered: &RecoveredStore) -> Vec<StoredEvent> {
    let read = |it: Result<ReplayedEvent, _>| match it.expect("read") {
        ReplayedEvent::Event(event) => event,
        ReplayedEvent::Damaged(damaged) => panic!("{damaged:?}"),
    };
    recovered.replay(&store.reader()).map(read).collect()
}

fn orders(store: &Store, recovered: &RecoveredStore) -> Vec<u64> {
    events(store, recovered).iter().map(|event| event.order).collect()
}

/// The same for a store that is opened only for this.
fn orders_in(folder: &Path) -> Vec<u64> {
    let (store, recovered) = open(folder);
    orders(&store, &recovered)
}
