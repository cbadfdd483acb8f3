//! Names, keys, terms and sockets at and beyond their bounds: it is taken or refused to its sender, the hub goes
//! on, and a start with the same store works.

use std::time::Duration;

use aaep::extension::Accepts;
use aaep_hub::access::Principal;
use aaep_hub::bounds::{MAX_AGENT_ID_BYTES, MAX_KEY_BYTES, MAX_PRINCIPAL_BYTES};
use aaep_hub::hub::{Hub, MessageOutcome, Refused};
use serde_json::{Value, json};

use crate::support::{Peer, Stream, hub_in, me, publish, started, subscribe, token, try_publish};

/// Texts of the lengths at which something may break: of characters of one byte, of four, and of those that JSON
/// writes as six.
fn texts() -> Vec<Value> {
    let of = |c: char, lengths: &[usize]| -> Vec<Value> {
        lengths.iter().map(|it| Value::from(c.to_string().repeat(*it))).collect()
    };
    let mut all = of('a', &[0, 1, 64, 65, 1023, 1024, 1025, 16_384, 70_000]);
    all.extend(of('\u{1f600}', &[64, 256, 257, 16_385]));
    all.extend(of('\u{1}', &[171, 1024, 12_000]));
    all
}

/// Whether the hub still does all of its work, and has taken nothing that it should not have.
pub(crate) async fn assert_works(hub: &Hub, about: &str) {
    assert!(!hub.is_dead() && hub.trouble().is_none(), "{about}: {:?}", hub.trouble());
    let metrics = hub.metrics().text();
    assert!(metrics.contains("\naaep_store_beyond_bounds 0\n"), "{about}: beyond a bound");
    hub.waiting_asks(&me()).await.expect("it answers");
}

/// Limits that no test reaches.
pub(crate) fn unlimited() -> aaep_hub::access::Guard {
    let many = aaep_hub::access::Limits {
        publishes_per_second: 1_000_000,
        publish_burst: 1_000_000,
        subscriptions_per_principal: 10_000,
        ..aaep_hub::access::Limits::default()
    };
    aaep_hub::access::Guard::new(many)
}

#[tokio::test]
async fn names_of_every_length() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = hub_in(folder.path());
    for (number, name) in texts().into_iter().enumerate() {
        let name = name.as_str().expect("text").to_owned();
        let mut event = started(&format!("sess_n{number}"));
        event["producer"] = json!({ "agent_id": name });
        match try_publish(&hub, &me(), event).await {
            Ok(_) => assert!(name.len() <= MAX_AGENT_ID_BYTES),
            Err(refused @ Refused::NameTooLong) => {
                assert!(name.len() > MAX_AGENT_ID_BYTES);
                assert!(refused.to_string().contains("1024 bytes"), "{refused}");
            }
            // The specification bounds it too.
            Err(refused) => {
                assert!(name.is_empty() || name.len() > MAX_AGENT_ID_BYTES, "{refused}");
            }
        }
        let declared = hub.declare(&me(), &name, vec![Accepts::Prompt]).await;
        assert!(declared.is_ok() == (name.len() <= MAX_AGENT_ID_BYTES), "{}", name.len());
        drop(hub.instructions(&me(), &name, 0, Duration::ZERO).await);
    }
    for length in [1, MAX_PRINCIPAL_BYTES, 10_000] {
        let who = Principal { id: "\u{7f}".repeat(length), ..Principal::local() };
        drop(hub.publish(&who, vec![started("sess_who")], None).await);
        drop(hub.withdraw(&who, &token("rpl_none")).await);
    }
    assert_works(&hub, "names").await;
    hub.stop().await;
    drop(hub);
    hub_in(folder.path()).stop().await;
}

/// Each name is new to the hub, also as one that people hear, and pushes another one out.
#[tokio::test]
async fn more_names_than_a_commit_holds_or_a_principal_are_answered_in_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::builder().guard(unlimited()).store(folder.path()).start().expect("a hub");
    let owners = (0..64).map(|it| format!("owner {it}"));
    let many = Principal::new("token:many", "many", aaep_hub::access::Scopes::ALL).owned_by(owners);
    for round in 0..2 {
        let event = |it: usize| {
            let mut event = started(&format!("sess_n{it}"));
            let name = format!("agent {it} of {round}");
            event["producer"] = json!({ "agent_id": name, "agent_name": format!("The {name}") });
            event
        };
        let events = (0..4096).map(event).collect();
        let outcomes = hub.publish(&many, events, None).await.expect("in time");
        let is_refused_for_its_name =
            |it: &Result<_, Refused>| it.as_ref().is_err_and(|it| it.code() == "name_taken");
        assert!(!outcomes.iter().any(is_refused_for_its_name));
        assert_works(&hub, "many names").await;
    }
    hub.stop().await;
    drop(hub);
    hub_in(folder.path()).stop().await;
}

#[tokio::test]
async fn terms_that_grow_with_every_change_are_refused_before_they_are_too_long() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = hub_in(folder.path());
    let uris: Vec<String> =
        (0..64).map(|it| format!("https://example.org/{it}/{}", "u".repeat(900))).collect();
    let patterns: Vec<String> =
        (0..200).map(|it| format!("aaep:{}.{it}.*", "p".repeat(100))).collect();
    let filters = json!({ "include": patterns, "exclude": ["aaep:none.*"] });
    let id = subscribe(&hub, json!({ "supported_extensions": uris })).await;
    let change = json!({ "type": "subscription.renegotiate", "subscription_id": id,
        "capabilities": { "event_filters": filters } });
    let told = hub.tell(&me(), crate::support::read(&change)).await.expect("answered");
    assert!(matches!(told, MessageOutcome::Rejected(_)), "{told:?}");
    assert_works(&hub, "terms").await;
    hub.stop().await;
    drop(hub);
    hub_in(folder.path()).stop().await;
}

#[tokio::test]
async fn idempotency_keys_of_every_length() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = hub_in(folder.path());
    for length in [0, 1, MAX_KEY_BYTES, MAX_KEY_BYTES + 1, 5000, 100_000] {
        let key = "\u{1f600}".repeat(length / 4) + &"k".repeat(length % 4);
        let event = started(&format!("sess_k{length}"));
        let outcome = hub.publish(&me(), vec![event], Some(key)).await.expect("answered");
        assert_eq!(outcome[0].is_ok(), length <= MAX_KEY_BYTES, "{length}");
    }
    let many = (0..5000).map(|it| started(&format!("sess_m{it}"))).collect();
    let outcome = hub.publish(&me(), many, Some("many".to_owned())).await.expect("answered");
    assert!(outcome.iter().all(Result::is_err));
    assert_works(&hub, "keys").await;
    hub.stop().await;
}

#[tokio::test]
async fn what_sockets_say_at_and_beyond_the_bounds() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = hub_in(folder.path());
    let hello = |name: &str| {
        json!({ "type": "agentvoice:agent.hello", "agent_id": name,
        "accepts": ["prompt"], "idempotency_key": name })
    };
    for length in [0, 1, 1023, 1024, 1025, 70_000] {
        let name = "n".repeat(length);
        let mut agent = Peer::agent(&hub).await;
        agent.send(&hello(&name));
        agent.send(&json!({ "kind": "user_input", "text": name }));
        let mut event = started(&format!("sess_s{length}"));
        event["producer"] = json!({ "agent_id": name });
        agent.send(&Value::Object(event));
        let mut legacy = Peer::legacy(&hub).await;
        legacy.send(&json!({ "kind": "user_input", "text": name }));
        legacy.send(&json!({ "type": "confirmation.reply", "reply_token": name }));
        let mut subscriber = Peer::subscriber(&hub).await;
        subscriber.send(&json!({ "type": "subscription.request", "aaep_version": "1.0.0",
            "subscriber_id": name, "capabilities": {} }));
        drop(
            hub.legacy_message(&me(), json!({ "kind": "user_input", "text": name }).to_string())
                .await,
        );
        assert_works(&hub, &length.to_string()).await;
    }
    hub.stop().await;
    drop(hub);
    hub_in(folder.path()).stop().await;
}

/// A session as long as one of an agent that streams token by token, then a question, a kill, and a start.
#[tokio::test]
async fn a_session_beyond_sixteen_thousand_events_goes_on_over_a_restart() {
    const EVENTS: u64 = 20_000;
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::builder().guard(unlimited()).store(folder.path()).start().expect("a hub");
    let subscription = subscribe(&hub, json!({})).await;
    publish(&hub, started("sess_long")).await;
    let chunk = |at: u64| {
        let event = json!({ "type": "aaep:agent.output.streaming", "session_id": "sess_long",
            "producer": { "agent_id": "builder" }, "chunk": "a", "position": at, "complete": false });
        event.as_object().cloned().expect("an object")
    };
    for first in (0..EVENTS).step_by(1000) {
        let some = (first..first + 1000).map(chunk).collect();
        let outcomes = hub.publish(&me(), some, None).await.expect("answered");
        assert!(outcomes.iter().all(Result::is_ok), "{:?}", outcomes.iter().find(|it| it.is_err()));
    }
    let mut ask = crate::support::confirmation("sess_long", "rpl_long");
    ask["timeout_seconds"] = 1.into();
    let stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, ask).await;
    let settled = hub.ask_state(&me(), &token("rpl_long"), Duration::from_secs(20)).await;
    assert!(settled.expect("known").settlement.is_some(), "settling always has room");
    drop(stream);
    hub.stop().await;
    drop(hub);
    let hub = Hub::builder().guard(unlimited()).store(folder.path()).start().expect("it starts");
    hub.publish(&me(), vec![chunk(EVENTS)], None).await.expect("answered")[0]
        .as_ref()
        .expect("taken");
    let id = aaep::SessionId::parse("sess_long").expect("an id");
    let (mut next, mut seen) = (0, 0);
    loop {
        let page = hub.session_events(&me(), &id, next, 1024).await.expect("read").expect("there");
        let Some(last) = page.last() else { break };
        next = last.order + 1;
        seen += page.len() as u64;
    }
    assert!(seen > EVENTS, "all of it can be read in pages: {seen}");
    assert_works(&hub, "a long session").await;
    hub.stop().await;
}
