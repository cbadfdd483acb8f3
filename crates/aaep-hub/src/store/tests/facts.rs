//! What was committed comes back unchanged, also after a restart.

use super::*;
use crate::bounds::MAX_JSON_BYTES;
use crate::store::StoredName;
use crate::store::{
    CommitError, MAX_PAGE_BYTES, MAX_RECOVERED_EVENTS, StoredOpenAsk, StoredSubscription, apply,
    asks, table,
};
use aaep::SubscriptionId;

#[test]
fn events_come_back_in_their_order_over_all_sessions() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, recovered) = open(folder.path());
    assert_eq!(recovered, RecoveredStore::default());
    store.commit(&[event(0, "b"), event(1, "a"), event(5, "b")]).expect("stored");
    store.commit(&[event(6, "a")]).expect("stored");
    drop(store);
    let (store, recovered) = open(folder.path());
    let expected = [stored(0, "b"), stored(1, "a"), stored(5, "b"), stored(6, "a")];
    assert_eq!(events(&store, &recovered), expected);
    assert_eq!(recovered.next_order, 7);
    let mut ids: Vec<_> = recovered.sessions.iter().map(|it| it.session_id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["sess_a", "sess_b"]);
}

#[test]
fn an_order_is_never_given_twice_whatever_was_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    store.commit(&[event(41, "a"), ended("a", 1)]).expect("stored");
    store.delete_session(&session("a"), None, 2).expect("deleted");
    drop(store);
    let (mut store, recovered) = open(folder.path());
    assert!(events(&store, &recovered).is_empty());
    assert_eq!(recovered.next_order, 42);
    let error = store.commit(&[event(41, "a")]).expect_err("an old order");
    assert_eq!(error, CommitError::OutOfOrder { order: 41, next_order: 42 });
}

#[test]
fn a_refused_commit_leaves_nothing() {
    let mut store = Store::in_memory();
    store.commit(&[event(3, "a")]).expect("stored");
    let agent = StoreChange::Agent { key: 1, name: "builder".to_owned() };
    let refused = store.commit(&[agent, event(4, "b"), event(4, "a"), entry("a", Some("words"))]);
    assert!(matches!(refused, Err(CommitError::OutOfOrder { .. })));
    let reader = store.reader();
    assert_eq!(reader.events(&session("a"), 0, 10).expect("read"), [stored(3, "a")]);
    assert_eq!(reader.session(&session("b")).expect("read"), None);
    assert_eq!(store.audit().last_seq, 0);
    store.commit(&[event(4, "a")]).expect("the order is still free");
}

#[test]
fn what_is_beyond_a_bound_is_stored_and_counted_as_a_mistake() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    let resolution: Arc<[u8]> = vec![b' '; MAX_JSON_BYTES + 1].into();
    let settled = StoreChange::AskSettled { reply_token: token("a"), unix_us: 0, resolution };
    let long = |count| "\u{1}".repeat(count);
    let StoreChange::Audit(plain) = entry("a", None) else { panic!("an entry") };
    let entry = Entry { who: Some(long(9_000)), outcome: long(9_000), ..plain };
    let named = StoreChange::Principal { key: 9, name: long(5_000) };
    assert_eq!(store.beyond_bounds(), 0);
    store.commit(&[event(0, "a"), settled, named, StoreChange::Audit(entry)]).expect("stored");
    assert_eq!(store.beyond_bounds(), 1);
    drop(store);
    let (_, recovered) = open(folder.path());
    assert_eq!(recovered.principals, [(9, long(5_000))]);
    let verified = crate::audit::verify(&folder.path().join("audit.jsonl"));
    assert_eq!(verified.expect("every line can be verified").entries, 1);
}

#[test]
fn a_session_has_no_last_event() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    for round in 0..5 {
        let orders = round * 8_000..(round + 1) * 8_000;
        store
            .commit(&orders.map(|order| event(order, "long")).collect::<Vec<_>>())
            .expect("stored");
    }
    drop(store);
    let (store, recovered) = open(folder.path());
    assert_eq!(orders(&store, &recovered).len(), 40_000);
    let page = store.reader().events(&session("long"), 39_990, 1024).expect("read");
    assert_eq!(page.len(), 10);
}

#[test]
fn questions_keep_their_deadline_and_their_resolution() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    let opened = |name: &str| StoreChange::AskOpened {
        reply_token: token(name),
        session_id: session("a"),
        time: time(Some(100), None),
    };
    let moved = |name: &str, ends_unix_us, left_us| StoreChange::AskMoved {
        reply_token: token(name),
        time: time(ends_unix_us, left_us),
    };
    let settled = |name: &str, resolution: &str| StoreChange::AskSettled {
        reply_token: token(name),
        unix_us: 50,
        resolution: resolution.as_bytes().into(),
    };
    store.commit(&[event(0, "a"), opened("one"), opened("two"), opened("three")]).expect("stored");
    store.commit(&[moved("one", None, Some(30)), moved("two", Some(200), None)]).expect("stored");
    store.commit(&[settled("three", "\"accept\""), moved("three", Some(1), None)]).expect("stored");
    store.commit(&[settled("three", "\"reject\"")]).expect("the first one stands");
    drop(store);
    let (store, recovered) = open(folder.path());
    let ask = |name: &str, ends_unix_us, left_us| StoredOpenAsk {
        reply_token: token(name),
        session_id: session("a"),
        time: time(ends_unix_us, left_us),
    };
    assert_eq!(recovered.open_asks, [ask("one", None, Some(30)), ask("two", Some(200), None)]);
    assert_eq!(recovered.used_tokens().collect::<Vec<_>>(), [&token("three")]);
    let settled = store.reader().settled(&token("three")).expect("read").expect("settled");
    assert_eq!(settled.resolution.as_deref(), Some(&b"\"accept\""[..]));
    assert_eq!(recovered.settled_asks, [settled]);
}

#[test]
fn subscriptions_names_and_answers_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    let id = |name: &str| SubscriptionId::parse(&format!("sub_{name}")).expect("letters");
    let subscribed = |name: &str| StoreChange::Subscribed {
        subscription_id: id(name),
        principal: PrincipalNumber(5),
        may_reply: true,
        json: b"{}".as_slice().into(),
    };
    let answered = |principal, text: &str| StoreChange::Answered {
        principal: PrincipalNumber(principal),
        idempotency_key: "k".to_owned(),
        unix_us: 9,
        answer: text.as_bytes().into(),
    };
    store
        .commit(&[
            subscribed("a"),
            subscribed("b"),
            StoreChange::Unsubscribed { subscription_id: id("a") },
            StoreChange::Agent { key: 3, name: "builder".to_owned() },
            StoreChange::Principal { key: 5, name: "Ada Lovelace, née Byron".to_owned() },
            answered(3, "first"),
            answered(4, "other"),
            answered(3, "second"),
        ])
        .expect("stored");
    drop(store);
    let (store, recovered) = open(folder.path());
    let expected = StoredSubscription {
        subscription_id: id("b"),
        principal: PrincipalNumber(5),
        may_reply: true,
        json: b"{}".as_slice().into(),
    };
    assert_eq!(recovered.subscriptions, [expected]);
    assert_eq!(recovered.agents, [(3, "builder".to_owned())]);
    assert_eq!(recovered.principals, [(5, "Ada Lovelace, née Byron".to_owned())]);
    let answers: Vec<_> =
        recovered.answers.iter().map(|it| (it.principal.0, &*it.answer)).collect();
    assert_eq!(answers, [(4, &b"other"[..]), (3, &b"second"[..])]);
    assert_eq!(
        store.reader().answer(PrincipalNumber(3), "k").expect("read").as_deref(),
        Some(&b"second"[..])
    );
    assert_eq!(store.reader().answer(PrincipalNumber(3), "l").expect("read"), None);
}

#[test]
fn the_oldest_answers_and_tokens_are_forgotten_first() {
    // Does the same as a commit, with a bound that is reached soon.
    const MAX: u64 = 3;
    let mut store = Store::in_memory();
    for number in 0..=MAX {
        let key = table::answer_key(PrincipalNumber(1), &format!("k{number}"));
        let answered = store.transact(&[], |transaction, counters| {
            apply::keep_answer(transaction, counters, &key, 0, b"x", MAX)
        });
        answered.expect("stored");
        let reply_token = token(&number.to_string());
        let settled = store.transact(&[], |transaction, counters| {
            asks::settle(transaction, counters, &reply_token, 0, b"1", MAX)
        });
        settled.expect("stored");
    }
    let reader = store.reader();
    let answers = |number: u64| {
        reader.answer(PrincipalNumber(1), &format!("k{number}")).expect("read").is_some()
    };
    let settled = |number: u64| reader.settled(&token(&number.to_string())).expect("read");
    assert_eq!([0, 1, 2, 3].map(answers), [false, true, true, true]);
    assert_eq!([0, 1, 2, 3].map(|it| settled(it).is_some()), [false, true, true, true]);
}

#[test]
fn a_page_of_events_begins_anywhere_and_ends_where_it_must() {
    let mut store = Store::in_memory();
    store.commit(&(0..10).map(|order| event(order * 10, "a")).collect::<Vec<_>>()).expect("stored");
    store.commit(&[event(100, "a"), event(101, "b"), event(102, "a")]).expect("stored");
    let reader = store.reader();
    let page = |from, limit| {
        let events = reader.events(&session("a"), from, limit).expect("read");
        events.into_iter().map(|event| event.order).collect::<Vec<_>>()
    };
    assert_eq!(page(0, 3), [0, 10, 20]);
    assert_eq!(page(11, 2), [20, 30]);
    assert_eq!(page(90, 100), [90, 100, 102]);
    assert_eq!(page(101, 100), [102]);
    assert_eq!(page(103, 100), [0; 0]);
    assert_eq!(reader.events(&session("c"), 0, 1).expect("read"), []);
    let found = reader.event(&session("a"), &event_id(100)).expect("read");
    assert_eq!(found, Some(stored(100, "a")));
    assert_eq!(reader.event(&session("b"), &event_id(100)).expect("read"), None);
}

#[test]
fn large_events_are_given_in_pages_that_fit_into_memory() {
    let mut store = Store::in_memory();
    let large = |order| {
        let StoreChange::Event { session_id, event_id, .. } = event(order, "a") else {
            panic!("an event")
        };
        let json = vec![b' '; MAX_JSON_BYTES].into();
        StoreChange::Event {
            order,
            session_id,
            event_id,
            agent: 7,
            principal: PrincipalNumber(8),
            by_hub: false,
            unix_us: moment(order),
            json,
        }
    };
    store.commit(&(0..20).map(large).collect::<Vec<_>>()).expect("stored");
    let (mut next, mut pages) = (0, 0);
    while next < 20 {
        let page = store.reader().events(&session("a"), next, 1024).expect("read");
        let bytes: usize = page.iter().map(|event| event.json.len()).sum();
        assert!(bytes <= MAX_PAGE_BYTES + 2 * MAX_JSON_BYTES, "{bytes} bytes at once");
        for event in page {
            assert_eq!(event.order, next);
            next += 1;
        }
        pages += 1;
    }
    assert!(pages >= 4, "{pages} pages");
}

#[test]
fn running_sessions_come_back_whole_and_long_ended_ones_by_their_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    let surplus = 5;
    let count = MAX_RECOVERED_EVENTS as u64 + surplus;
    let run: Vec<_> = (0..count).map(|order| event(order, "run")).collect();
    let end: Vec<_> = (count..2 * count).map(|order| event(order, "end")).collect();
    store.commit(&run).expect("stored");
    store.commit(&end).expect("stored");
    store.commit(&[ended("end", 1)]).expect("stored");
    drop(store);
    let (store, recovered) = open(folder.path());
    let expected: Vec<_> = (0..count).chain(count + surplus..2 * count).collect();
    assert_eq!(orders(&store, &recovered), expected);
}

#[test]
fn sessions_are_listed_running_first_then_newest_first() {
    let mut store = Store::in_memory();
    store
        .commit(&[event(0, "a"), event(1, "b"), event(2, "c"), ended("a", 20), ended("c", 10)])
        .expect("stored");
    store.commit(&[ended("unknown", 5), ended("a", 99)]).expect("both change nothing");
    let list = |skip, limit| {
        let sessions = store.reader().sessions(skip, limit).expect("read");
        sessions.iter().map(|it| it.session_id.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list(0, 10), ["sess_b", "sess_a", "sess_c"]);
    assert_eq!(list(1, 1), ["sess_a"]);
    let a = store.reader().session(&session("a")).expect("read").expect("there");
    assert_eq!((a.ended_unix_us, a.events, a.agent), (Some(20), 1, 7));
}

#[test]
fn readers_see_whole_commits_while_the_writer_writes() {
    let mut store = Store::in_memory();
    let reader = store.reader();
    let watcher = std::thread::spawn(move || {
        let mut seen = 0;
        while seen < 200 {
            let events = reader.events(&session("a"), 0, 1024).expect("read");
            assert_eq!(events.len() % 2, 0, "half a commit was seen");
            assert!(events.len() >= seen, "something stored was gone");
            seen = events.len();
        }
    });
    for pair in 0..100 {
        store.commit(&[event(2 * pair, "a"), event(2 * pair + 1, "a")]).expect("stored");
    }
    watcher.join().expect("the reader saw all of it");
}

#[test]
fn an_empty_answer_forgets_its_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    let answered = |key: &str, answer: &[u8]| StoreChange::Answered {
        principal: PrincipalNumber(1),
        idempotency_key: key.to_owned(),
        unix_us: 5,
        answer: answer.into(),
    };
    store.commit(&[answered("a", b"one"), answered("b", b"two")]).expect("stored");
    store.commit(&[answered("a", b""), answered("never", b"")]).expect("stored");
    assert_eq!(store.reader().answer(PrincipalNumber(1), "a"), Ok(None));
    drop(store);
    let (store, recovered) = open(folder.path());
    let keys: Vec<_> = recovered.answers.iter().map(|it| it.idempotency_key.as_str()).collect();
    assert_eq!(keys, ["b"]);
    assert_eq!(store.reader().answer(PrincipalNumber(1), "a"), Ok(None));
}

#[test]
fn a_principal_that_settles_endlessly_loses_only_its_own_outcomes() {
    const MAX: u64 = 10;
    let mut store = Store::in_memory();
    let StoreChange::Event { order, session_id, event_id, agent, by_hub, unix_us, json, .. } =
        event(0, "ofAda")
    else {
        panic!("an event")
    };
    let of_ada = StoreChange::Event {
        order,
        session_id,
        event_id,
        agent,
        principal: PrincipalNumber(1),
        by_hub,
        unix_us,
        json,
    };
    store.commit(&[of_ada, event(1, "hog")]).expect("stored");
    let mut settle = |name: &str, of: &str| {
        let reply_token = token(name);
        let settled = store.transact(&[], |transaction, counters| {
            asks::open(transaction, &reply_token, &session(of), time(Some(9), None))?;
            asks::settle(transaction, counters, &reply_token, 0, b"1", MAX)
        });
        settled.expect("stored");
    };
    settle("ada1", "ofAda");
    settle("ada2", "ofAda");
    for number in 0..100 {
        settle(&format!("hog{number}"), "hog");
    }
    let reader = store.reader();
    let is_known = |name: &str| reader.settled(&token(name)).expect("read").is_some();
    assert!(is_known("ada1") && is_known("ada2"));
    assert!(!is_known("hog91") && is_known("hog92") && is_known("hog99"));
}

#[test]
fn principals_to_which_nothing_refers_are_forgotten_when_there_are_many() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, _) = open(folder.path());
    let name = |key: u64| StoreChange::Principal { key, name: format!("number {key}") };
    let held = |agent_id: &str, principal, used_unix_us| {
        let agent_id = agent_id.to_owned();
        StoreChange::NameHeld(StoredName { agent_id, principal, used_unix_us, taken_from: None })
    };
    // Principal 8 has a session, 10 holds a name, and 9 used one long ago.
    let others = [event(0, "a"), held("old", 9, 99), held("new", 10, 100)];
    let changes: Vec<_> = (1..=20).map(name).chain(others).collect();
    store.commit(&changes).expect("stored");
    drop(store);
    let (mut store, mut recovered) = open(folder.path());
    store.forget_unused_principals(&mut recovered, 20, 100).expect("done");
    assert_eq!(recovered.principals.len(), 20, "there are not many");
    store.forget_unused_principals(&mut recovered, 19, 100).expect("done");
    let numbers = |recovered: &RecoveredStore| -> Vec<u64> {
        recovered.principals.iter().map(|it| it.0).collect()
    };
    let names = |recovered: &RecoveredStore| -> Vec<String> {
        recovered.held_names.iter().map(|it| it.agent_id.clone()).collect()
    };
    assert_eq!(numbers(&recovered), [8, 10, 20], "the last number is not given again");
    assert_eq!(names(&recovered), ["new"]);
    drop(store);
    let (_, recovered) = open(folder.path());
    assert_eq!(numbers(&recovered), [8, 10, 20]);
    assert_eq!(names(&recovered), ["new"]);
}
