//! Everything that was acknowledged is still there after the next start.

use std::fs;
use std::time::Duration;

use aaep::extension::AskOutcome;
use aaep_engine::PrincipalNumber;
use aaep_hub::audit;
use aaep_hub::hub::MessageOutcome;
use aaep_hub::store::{DeleteError, Retention, Store, StoreChange};
use serde_json::json;

use crate::support::{
    Stream, confirmation, hub_in, me, progress, publish, reply, started, subscribe, token,
    try_publish,
};

const TOKEN: &str = "rpl_0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn sessions_questions_and_subscriptions_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = hub_in(folder.path());
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_one")).await;
    publish(&hub, confirmation("sess_one", TOKEN)).await;
    stream.next_of("awaiting.confirmation");
    let last = stream.last_id.clone();
    hub.stop().await;
    drop((hub, stream));

    let hub = hub_in(folder.path());
    let open = hub.ask_state(&me(), &token(TOKEN), Duration::ZERO).await.expect("known");
    assert!(open.settlement.is_none(), "it waits for its answer");
    let mut stream = Stream::open(&hub, &subscription, last.as_deref()).await;
    assert_eq!(
        reply(&hub, &me(), &subscription, TOKEN, "accept").await,
        aaep_hub::hub::MessageOutcome::Counted
    );
    // After a stop, critical events may come again before it.
    while stream.next_of("state.changed")["to_state"] != "calling_tool" {}
    hub.stop().await;
    drop((hub, stream));

    let hub = hub_in(folder.path());
    let settled = hub.ask_state(&me(), &token(TOKEN), Duration::ZERO).await.expect("known");
    assert_eq!(settled.settlement.map(|it| it.outcome), Some(AskOutcome::Accept));
    let used = try_publish(&hub, &me(), confirmation("sess_one", TOKEN)).await;
    assert_eq!(used.expect_err("a token is used once").code(), "token_used");
    publish(&hub, progress("sess_one", "It goes on.")).await;
    hub.stop().await;
    drop(hub);

    let verified = audit::verify(&folder.path().join("audit.jsonl")).expect("an unbroken chain");
    assert!(verified.entries >= 3, "asked, replied, settled: {verified:?}");
    let (store, _) = Store::open(folder.path(), Retention::default()).expect("a store");
    let words = store.reader().details(1).expect("read").expect("what was asked");
    assert!(words.contains("Delete the build folder") && !words.contains(TOKEN), "{words}");
}

#[tokio::test]
async fn after_a_restart_silence_is_not_consent_and_a_yes_still_is() {
    let tool = |session: &str| {
        let fields = json!({ "tool": "wipe", "tool_call_id": "call_1", "irreversible": true,
            "risk_level": "low", "summary_normal": "Wiping." });
        crate::support::event("tool.invoked", Some(session), &fields)
    };
    let harmless = |session: &str, token: &str| {
        let mut asked = confirmation(session, token);
        asked["risk_level"] = "low".into();
        asked["irreversible"] = false.into();
        asked["reversibility"] = "reversible".into();
        asked["default_decision"] = "accept".into();
        asked
    };
    let folder = tempfile::tempdir().expect("a folder");
    let hub = hub_in(folder.path());
    publish(&hub, started("sess_one")).await;
    publish(&hub, harmless("sess_one", TOKEN)).await;
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_two")).await;
    let other = "rpl_ffffffffffffffffffffffffffffffff";
    publish(&hub, confirmation("sess_two", other)).await;
    stream.next_of("awaiting.confirmation");
    assert_eq!(
        reply(&hub, &me(), &subscription, other, "accept").await,
        aaep_hub::hub::MessageOutcome::Counted
    );
    hub.stop().await;
    drop((hub, stream));

    let hub = hub_in(folder.path());
    let silence = hub.ask_state(&me(), &token(TOKEN), Duration::ZERO).await.expect("known");
    assert_eq!(silence.settlement.map(|it| it.outcome), Some(AskOutcome::Accept));
    let refused = try_publish(&hub, &me(), tool("sess_one")).await;
    assert_eq!(refused.expect_err("nobody answered").code(), "accepted_by_default");
    publish(&hub, tool("sess_two")).await;
}

#[tokio::test]
async fn a_request_with_an_idempotency_key_is_known_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = || Some("the-same".to_owned());
    let hub = hub_in(folder.path());
    let first = hub.publish(&me(), vec![started("sess_one")], key()).await.expect("answered");
    hub.stop().await;
    drop(hub);
    let hub = hub_in(folder.path());
    let again = hub.publish(&me(), vec![started("sess_one")], key()).await.expect("answered");
    let (first, again) = (first[0].as_ref().expect("taken"), again[0].as_ref().expect("taken"));
    assert!(again.is_repeated && first.event_id == again.event_id);
    let later =
        hub.publish(&me(), vec![progress("sess_one", "On.")], key()).await.expect("answered");
    let refused = later[0].as_ref().expect_err("a key is for one request");
    assert_eq!((refused.code(), refused.status()), ("idempotency_key_used", 409));
    // The fields that were filled in the first time.
    let named = |text: &str| {
        let mut event = progress("sess_one", text);
        event.insert("event_id".to_owned(), "evt_named".into());
        event
    };
    publish(&hub, named("On.")).await;
    hub.stop().await;
    drop(hub);
    let hub = hub_in(folder.path());
    assert!(publish(&hub, named("On.")).await.is_repeated);
    let other = try_publish(&hub, &me(), named("Off.")).await.expect_err("another event");
    assert_eq!(other.code(), "event_id_used");
}

#[tokio::test]
async fn a_deleted_session_is_gone_from_memory_and_disk() {
    let hub = crate::support::hub();
    publish(&hub, started("sess_one")).await;
    let session_id = aaep::SessionId::parse("sess_one").expect("an id");
    let running = hub.delete_session(&me(), &session_id).await.expect("answered");
    assert_eq!(running, Err(DeleteError::StillRunning));
    let done = crate::support::event(
        "session.completed",
        Some("sess_one"),
        &json!({ "summary_normal": "Done." }),
    );
    publish(&hub, done).await;
    assert_eq!(hub.sessions(&me(), None, 10).await.expect("answered").sessions.len(), 1);
    let events = hub.session_events(&me(), &session_id, 0, 10).await.expect("answered");
    assert_eq!(events.expect("there").len(), 2);
    let mut deaf = me();
    deaf.hears = aaep_hub::access::HeardAgents::only(["other".to_owned()]).expect("a name");
    assert_eq!(hub.session_events(&deaf, &session_id, 0, 10).await, Ok(None));
    assert!(hub.sessions(&deaf, None, 10).await.expect("answered").sessions.is_empty());
    let kept = hub.delete_session(&deaf, &session_id).await.expect("answered");
    assert_eq!(kept, Err(DeleteError::NoSuchSession), "nobody deletes what they may not hear");

    let deleted = hub.delete_session(&me(), &session_id).await.expect("answered");
    assert_eq!(deleted.expect("deleted").events, 2);
    assert_eq!(hub.session_events(&me(), &session_id, 0, 10).await, Ok(None));
    let again = hub.delete_session(&me(), &session_id).await.expect("answered");
    assert_eq!(again, Err(DeleteError::NoSuchSession));
}

/// A store with this many ended sessions, alternately of two agents, each with one event.
fn store_sessions(folder: &std::path::Path, count: u64) {
    let (mut store, _) = Store::open(folder, Retention::default()).expect("a store");
    let mut changes = vec![
        StoreChange::Agent { key: 1, name: "builder".to_owned() },
        StoreChange::Agent { key: 2, name: "mail".to_owned() },
        StoreChange::Principal { key: 1, name: me().id },
    ];
    let now = i64::try_from(now_unix_us()).expect("a moment");
    for order in 1..=count {
        let session_id = aaep::SessionId::parse(&format!("sess_{order}")).expect("an id");
        let json = started(session_id.as_str());
        changes.push(StoreChange::Event {
            order,
            session_id: session_id.clone(),
            event_id: aaep::EventId::parse(&format!("evt_{order}")).expect("an id"),
            agent: 1 + order % 2,
            principal: PrincipalNumber(1),
            by_hub: false,
            unix_us: now,
            json: serde_json::to_vec(&json).expect("JSON").into(),
        });
        // Several end at the same moment.
        let unix_us = now + i64::try_from(order / 3).expect("a number");
        changes.push(StoreChange::SessionEnded { session_id, unix_us });
        if changes.len() > 4000 {
            store.commit(&std::mem::take(&mut changes)).expect("stored");
        }
    }
    store.commit(&changes).expect("stored");
}

fn now_unix_us() -> u128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("after 1970").as_micros()
}

#[tokio::test]
async fn every_session_is_on_some_page_however_many_there_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = 9000;
    store_sessions(folder.path(), count);
    let hub = hub_in(folder.path());
    publish(&hub, started("sess_running")).await;
    let mut mail = me();
    mail.hears = aaep_hub::access::HeardAgents::only(["mail".to_owned()]).expect("a name");
    for (who, limit, expected) in [(me(), 1000, count + 1), (mail, 700, count / 2)] {
        let (mut found, mut next) = (Vec::new(), None);
        loop {
            let page = hub.sessions(&who, next, limit).await.expect("answered");
            assert!(page.sessions.len() <= limit);
            found.extend(page.sessions.into_iter().map(|it| it.session_id));
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        let different: std::collections::HashSet<_> = found.iter().collect();
        assert_eq!(different.len(), found.len(), "none comes twice");
        assert_eq!(found.len() as u64, expected);
    }
}

#[tokio::test]
async fn replies_that_do_not_count_fill_no_audit_log_and_every_one_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = hub_in(folder.path());
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_one")).await;
    let refused = 500;
    for _ in 0..refused {
        let forged = reply(&hub, &me(), &subscription, TOKEN, "accept").await;
        assert_eq!(forged, aaep_hub::hub::MessageOutcome::NotCounted);
    }
    publish(&hub, confirmation("sess_one", TOKEN)).await;
    stream.next_of("awaiting.confirmation");
    let counted = reply(&hub, &me(), &subscription, TOKEN, "accept").await;
    assert_eq!(counted, aaep_hub::hub::MessageOutcome::Counted);
    hub.stop().await;
    drop((hub, stream));
    let (store, _) = Store::open(folder.path(), Retention::default()).expect("a store");
    let entries: Vec<_> = audit::show(&store.reader()).map(|it| it.expect("whole").line).collect();
    let of = |kind: &str, outcome: &str| {
        let is_it = |line: &&audit::AuditLine| line.kind == kind && line.outcome.contains(outcome);
        entries.iter().filter(is_it).count() as u64
    };
    assert_eq!(of("reply", "counted"), 1, "what counts is written, also beyond the limit");
    let written = of("reply", "refused");
    assert!(written < 100, "{written} of {refused} one by one");
    let rest = format!("{} more refused", refused - written);
    assert_eq!(of("refused_replies", &rest), 1, "{entries:?}");
}

/// Some pages of the database, one after the other; then a file that is not a database, a changed audit log, and a journal
/// with a flipped bit.
#[tokio::test]
async fn a_hub_starts_on_a_damaged_store_says_so_and_accepts_no_question_whose_state_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = hub_in(folder.path());
    let subscription = subscribe(&hub, json!({})).await;
    publish(&hub, started("sess_one")).await;
    for number in 0..20 {
        publish(&hub, progress("sess_one", &format!("Step {number}."))).await;
    }
    hub.stop().await;
    drop(hub);
    let hub = hub_in(folder.path());
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, confirmation("sess_one", TOKEN)).await;
    stream.next_of("awaiting.confirmation");
    let read = |file: &str| fs::read(folder.path().join(file)).expect("bytes");
    let files = ["store.redb", "store.journal", "audit.jsonl"];
    let whole = files.map(read);
    let pages = (0..whole[0].len()).step_by(4096);
    let pages = pages.filter(|at| whole[0][*at..].iter().take(4096).any(|byte| *byte != 0));
    let mut damages: Vec<(usize, usize, usize)> =
        pages.step_by(6).map(|at| (0, at, 4096)).collect();
    damages.extend([(0, 0, usize::MAX), (2, 20, 1)]);
    let last = whole[1].iter().rposition(|byte| *byte != 0).expect("records");
    damages.push((1, last - 20, 1));
    let mut said = 0;
    for (file, at, length) in damages {
        let copy = tempfile::tempdir().expect("a folder");
        for (number, name) in files.iter().enumerate() {
            let mut bytes = whole[number].clone();
            if number == file {
                bytes[at..].iter_mut().take(length).for_each(|byte| *byte ^= 0xa5);
            }
            fs::write(copy.path().join(name), bytes).expect("written");
        }
        let hub = hub_in(copy.path());
        let about = format!("file {file} at {at}: {:?}", hub.notes());
        let answered = reply(&hub, &me(), &subscription, TOKEN, "accept").await;
        let is_lost = hub.notes().iter().any(|note| note.contains("without consent"));
        if is_lost {
            assert_ne!(answered, MessageOutcome::Counted, "{about}");
            let state = hub.ask_state(&me(), &token(TOKEN), Duration::ZERO).await;
            let settlement = state.ok().and_then(|state| state.settlement);
            assert_ne!(settlement.map(|it| it.outcome), Some(AskOutcome::Accept), "{about}");
        }
        said += usize::from(!hub.notes().is_empty());
        publish(&hub, started("sess_two")).await;
        assert!(hub.trouble().is_none(), "{about}");
        hub.stop().await;
        drop(hub);
        let hub = hub_in(copy.path());
        assert_eq!(hub.notes(), Vec::<String>::new(), "told once: {about}");
        hub.stop().await;
        drop(hub);
        let log = audit::verify(&copy.path().join("audit.jsonl")).expect("it holds");
        assert_eq!(log.replaced.is_some(), file == 2, "{about}");
    }
    assert!(said > 3, "{said}");
    hub.stop().await;
}

/// A subscription with a pace, as people listen. Its last event alone does not say how far it is.
async fn paced(hub: &aaep_hub::hub::Hub) -> aaep::SubscriptionId {
    let terms = json!({ "pace_wpm": 180, "max_events_per_second": 5,
        "supported_extensions": [aaep::extension::CONTEXT] });
    subscribe(hub, terms).await
}

fn tells_of_a_gap(event: &serde_json::Value) -> bool {
    event["extensions"].to_string().contains("\"gap\"")
}

#[tokio::test]
async fn after_an_orderly_stop_a_subscriber_with_a_pace_is_told_of_no_gap() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut hub = hub_in(folder.path());
    let subscription = paced(&hub).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    // Before the first round, it was sent nothing at all.
    for round in 0..4 {
        let last = stream.last_id.clone();
        assert_eq!(last.is_none(), round == 0);
        hub.stop().await;
        drop((hub, stream));
        hub = hub_in(folder.path());
        stream = Stream::open(&hub, &subscription, last.as_deref()).await;
        let event = if round == 0 { started("sess_one") } else { progress("sess_one", "On.") };
        let kind = event["type"].clone();
        publish(&hub, event).await;
        let told = stream.next();
        assert!(told["type"] == kind && !tells_of_a_gap(&told), "{told}");
    }
    // A copy of the folder is what a kill leaves.
    let last = stream.last_id.clone();
    let killed = tempfile::tempdir().expect("a folder");
    for file in fs::read_dir(folder.path()).expect("listed") {
        let file = file.expect("listed");
        fs::copy(file.path(), killed.path().join(file.file_name())).expect("copied");
    }
    let hub_after_kill = hub_in(killed.path());
    let mut stream = Stream::open(&hub_after_kill, &subscription, last.as_deref()).await;
    let told = stream.next();
    assert!(tells_of_a_gap(&told), "{told}");
    hub.stop().await;
    hub_after_kill.stop().await;
}

/// The events say that the question was settled, but the store has it as open.
#[tokio::test]
async fn a_question_that_the_engine_does_not_find_open_after_a_start_ends_in_the_audit_log_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = hub_in(folder.path());
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_one")).await;
    publish(&hub, confirmation("sess_one", TOKEN)).await;
    stream.next_of("awaiting.confirmation");
    reply(&hub, &me(), &subscription, TOKEN, "reject").await;
    hub.stop().await;
    drop((hub, stream));

    let session_id = aaep::SessionId::parse("sess_one").expect("an id");
    let (mut store, _) = Store::open(folder.path(), Retention::default()).expect("a store");
    let time = aaep_hub::store::StoredTime {
        ends_unix_us: Some(i64::MAX),
        left_us: None,
        limit_unix_us: i64::MAX,
        changes: 0,
        stored_unix_us: None,
        event_unix_us: None,
    };
    let reply_token = token(TOKEN);
    let again = StoreChange::AskOpened { reply_token, session_id: session_id.clone(), time };
    // The other one has no event at all.
    let reply_token = token("rpl_ffffffffffffffffffffffffffffffff");
    let lost = StoreChange::AskOpened { reply_token, session_id, time };
    store.commit(&[again, lost]).expect("stored");
    drop(store);

    let before = settled_entries(folder.path());
    let hub = hub_in(folder.path());
    for token_text in [TOKEN, "rpl_ffffffffffffffffffffffffffffffff"] {
        let used = try_publish(&hub, &me(), confirmation("sess_one", token_text)).await;
        assert_eq!(used.expect_err("a token is used once").code(), "token_used");
    }
    hub.stop().await;
    drop(hub);
    let entries = settled_entries(folder.path());
    assert_eq!(entries.len(), before.len() + 2, "{entries:?}");
    let new = &entries[before.len()..];
    assert!(new.iter().all(|it| it == "reject by no_listener"), "{entries:?}");
}

/// What the audit log says about how questions were settled.
fn settled_entries(folder: &std::path::Path) -> Vec<String> {
    let (store, _) = Store::open(folder, Retention::default()).expect("a store");
    let entries = audit::show(&store.reader()).map(|it| it.expect("whole").line);
    entries.filter(|it| it.kind == "settled").map(|it| it.outcome).collect()
}
