//! Agents ask, people answer.

use std::time::Duration;

use aaep::extension::{AskOutcome, DecidedBy};
use aaep_hub::hub::{HubError, MessageOutcome};
use serde_json::json;

use crate::support::{
    Stream, confirmation, event, hub, me, progress, publish, reply, somebody_else, started,
    subscribe, token, try_publish,
};

const TOKEN: &str = "rpl_0123456789abcdef0123456789abcdef";
const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn an_agent_waits_for_the_answer_of_a_person() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_one")).await;
    let published = publish(&hub, confirmation("sess_one", TOKEN)).await;
    assert_eq!(published.reply_token, Some(token(TOKEN)));
    stream.next_of("awaiting.confirmation");

    let open = hub.ask_state(&me(), &token(TOKEN), Duration::ZERO).await.expect("known");
    assert!(open.settlement.is_none() && open.ends_unix_us.is_some());
    let waiting = {
        let hub = hub.clone();
        tokio::spawn(async move { hub.ask_state(&me(), &token(TOKEN), LONG).await })
    };
    assert_eq!(
        reply(&hub, &somebody_else(), &subscription, TOKEN, "accept").await,
        MessageOutcome::NotCounted
    );
    assert_eq!(reply(&hub, &me(), &subscription, TOKEN, "accept").await, MessageOutcome::Counted);
    assert_eq!(
        reply(&hub, &me(), &subscription, TOKEN, "reject").await,
        MessageOutcome::NotCounted
    );
    let state = waiting.await.expect("no panic").expect("known");
    let settlement = state.settlement.expect("settled");
    assert_eq!((settlement.outcome, settlement.decided_by), (AskOutcome::Accept, DecidedBy::Reply));
    let again = hub.ask_state(&me(), &token(TOKEN), Duration::ZERO).await.expect("known");
    assert_eq!(again.settlement.map(|it| it.outcome), Some(AskOutcome::Accept));
    assert_eq!(stream.next_of("state.changed")["to_state"], "calling_tool");
}

#[tokio::test]
async fn with_nobody_there_the_safe_default_applies_at_once() {
    let hub = hub();
    publish(&hub, started("sess_one")).await;
    publish(&hub, confirmation("sess_one", TOKEN)).await;
    let state = hub.ask_state(&me(), &token(TOKEN), Duration::ZERO).await.expect("known");
    let settlement = state.settlement.expect("settled");
    assert_eq!(
        (settlement.outcome, settlement.decided_by),
        (AskOutcome::Reject, DecidedBy::NoListener)
    );
    let tool = event(
        "tool.invoked",
        Some("sess_one"),
        &json!({
            "tool": "delete_folder", "tool_call_id": "call_1", "irreversible": true,
            "summary_normal": "Deleting.",
        }),
    );
    let refused = try_publish(&hub, &me(), tool).await.expect_err("nobody allowed it");
    assert_eq!(refused.code(), "irreversible_without_accept");
}

#[tokio::test]
async fn a_subscriber_that_never_received_the_question_cannot_answer_it() {
    let hub = hub();
    let heard = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &heard, None).await;
    let unheard = subscribe(&hub, json!({})).await;
    publish(&hub, started("sess_one")).await;
    publish(&hub, confirmation("sess_one", TOKEN)).await;
    stream.next_of("awaiting.confirmation");
    assert_eq!(reply(&hub, &me(), &unheard, TOKEN, "accept").await, MessageOutcome::NotCounted);
    assert_eq!(reply(&hub, &me(), &heard, TOKEN, "reject").await, MessageOutcome::Counted);
}

#[tokio::test]
async fn the_questions_of_an_agent_are_nobody_elses() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let _stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_one")).await;
    publish(&hub, confirmation("sess_one", TOKEN)).await;
    let other = somebody_else();
    let seen = hub.ask_state(&other, &token(TOKEN), Duration::ZERO).await;
    assert_eq!(seen, Err(HubError::NoSuchAsk));
    assert_eq!(hub.withdraw(&other, &token(TOKEN)).await, Err(HubError::NoSuchAsk));
    assert_eq!(hub.withdraw(&me(), &token(TOKEN)).await, Ok(()));
    assert_eq!(hub.withdraw(&me(), &token(TOKEN)).await, Err(HubError::NoSuchAsk));
    let seen = hub.ask_state(&other, &token(TOKEN), Duration::ZERO).await;
    assert_eq!(seen, Err(HubError::NoSuchAsk), "settled, and still not theirs");
    let mine = hub.ask_state(&me(), &token(TOKEN), Duration::ZERO).await.expect("known");
    assert_eq!(mine.settlement.map(|it| it.outcome), Some(AskOutcome::Withdrawn));
}

#[tokio::test]
async fn only_the_principal_that_began_a_session_publishes_in_it() {
    let hub = hub();
    publish(&hub, started("sess_one")).await;
    let refused = try_publish(&hub, &somebody_else(), progress("sess_one", "Hello.")).await;
    assert_eq!(refused.expect_err("not theirs").code(), "not_your_session");
    publish(&hub, progress("sess_one", "Hello.")).await;
}

#[tokio::test]
async fn a_name_belongs_to_the_principal_that_used_it_first() {
    let hub = hub();
    publish(&hub, started("sess_one")).await;
    let taken = try_publish(&hub, &somebody_else(), started("sess_two")).await;
    assert_eq!(taken.expect_err("the name is taken").code(), "name_taken");
    publish(&hub, started("sess_three")).await;
    for session in ["sess_one", "sess_three"] {
        let fields = json!({ "summary_normal": "Done." });
        publish(&hub, event("session.completed", Some(session), &fields)).await;
    }
    let held = try_publish(&hub, &somebody_else(), started("sess_two")).await;
    assert_eq!(held.expect_err("held for a week").code(), "name_taken");
    let mut posing = progress("sess_one", "Hello.");
    posing["session_id"] = "sess_four".into();
    let mut own = started("sess_four");
    own["producer"] = json!({ "agent_id": "notes" });
    try_publish(&hub, &somebody_else(), own).await.expect("a name of its own");
    let taken = try_publish(&hub, &somebody_else(), posing).await;
    assert_eq!(taken.expect_err("checked on every event").code(), "name_taken");
}

#[tokio::test]
async fn a_request_that_comes_twice_happens_once() {
    let hub = hub();
    let key = || Some("the-same".to_owned());
    let events = || vec![started("sess_one"), progress("sess_one", "Once.")];
    let first = hub.publish(&me(), events(), key()).await.expect("answered");
    let second = hub.publish(&me(), events(), key()).await.expect("answered");
    for (one, other) in first.iter().zip(&second) {
        let (one, other) = (one.as_ref().expect("taken"), other.as_ref().expect("taken"));
        assert_eq!(one.event_id, other.event_id);
        assert!(!one.is_repeated && other.is_repeated);
    }
    let mut theirs = started("sess_two");
    theirs.insert("producer".to_owned(), json!({ "agent_id": "other" }));
    let theirs = hub.publish(&somebody_else(), vec![theirs], key()).await;
    assert!(!theirs.expect("answered")[0].as_ref().expect("taken").is_repeated);

    let mut named = progress("sess_one", "Named.");
    named.insert("event_id".to_owned(), "evt_named".into());
    assert!(!publish(&hub, named.clone()).await.is_repeated);
    assert!(publish(&hub, named).await.is_repeated);
}

#[tokio::test]
async fn what_is_wrong_with_an_event_is_said() {
    let hub = hub();
    let mut unknown = started("sess_one");
    unknown.insert("colour".to_owned(), "red".into());
    let refused = try_publish(&hub, &me(), unknown).await.expect_err("not valid");
    assert_eq!((refused.code(), refused.status()), ("not_valid", 422));
    assert!(refused.to_string().contains("colour"), "{refused}");
    let early = try_publish(&hub, &me(), progress("sess_one", "Early.")).await;
    assert_eq!(early.expect_err("not started").code(), "not_started");
}

#[tokio::test]
async fn secrets_reach_nobody() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_one")).await;
    publish(&hub, progress("sess_one", "Using api_key=sk-test-12345 now.")).await;
    let heard = stream.next_of("progress.updated").to_string();
    assert!(heard.contains("[redacted]") && !heard.contains("sk-test-12345"), "{heard}");
}

#[tokio::test]
async fn an_ask_tells_the_whole_account_and_other_events_do_not() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_one")).await;
    publish(&hub, progress("sess_one", "Found DE89370400440532013000.")).await;
    let heard = stream.next_of("progress.updated").to_string();
    assert!(heard.contains("Found [redacted].") && !heard.contains("DE89"), "{heard}");
    let mut ask = confirmation("sess_one", TOKEN);
    ask.insert("action".to_owned(), "Pay 900 euros to DE89370400440532013000.".into());
    publish(&hub, ask).await;
    let asked = stream.next_of("awaiting.confirmation");
    assert_eq!(asked["action"], "Pay 900 euros to DE89370400440532013000.");
}

#[tokio::test]
async fn an_event_that_comes_again_is_answered_as_the_first_time_also_where_the_hub_filled_it_in() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let _stream = Stream::open(&hub, &subscription, None).await;
    let named = |mut event: aaep::Object, id: &str, left_out: &str| {
        event.insert("event_id".to_owned(), id.into());
        event.remove(left_out);
        event
    };
    let begin = || named(started("sess_one"), "evt_begin", "session_id");
    let first = publish(&hub, begin()).await;
    let again = publish(&hub, begin()).await;
    assert!(again.is_repeated && again.session_id == first.session_id, "{again:?}");

    let ask = |id| named(confirmation(first.session_id.as_str(), TOKEN), id, "reply_token");
    let asked = publish(&hub, ask("evt_ask")).await.reply_token.expect("a token");
    assert_eq!(publish(&hub, ask("evt_ask")).await.reply_token, Some(asked.clone()));
    assert_eq!(
        reply(&hub, &me(), &subscription, asked.as_str(), "accept").await,
        MessageOutcome::Counted,
        "it is one question, and open"
    );
    let settled = publish(&hub, ask("evt_ask")).await;
    assert!(settled.is_repeated && settled.reply_token == Some(asked), "{settled:?}");
    let used = try_publish(&hub, &me(), ask("evt_begin")).await.expect_err("that was no question");
    assert_eq!((used.code(), used.status()), ("event_id_used", 409));
    let theirs = try_publish(&hub, &somebody_else(), ask("evt_ask")).await;
    assert_eq!(theirs.expect_err("not theirs").code(), "not_your_session");
}

/// Variants of a question that are another question: another action, session, agent, or anything else.
fn other_questions(first: &aaep::Object) -> Vec<aaep::Object> {
    [
        ("action", json!("Delete the home folder")),
        ("consequence", json!("Nothing is lost.")),
        ("session_id", json!("sess_two")),
        ("producer", json!({ "agent_id": "stranger" })),
        ("risk_level", json!("low")),
        ("timeout_seconds", json!(61)),
        ("summary_normal", json!("May I?")),
        ("reply_token", json!("rpl_fedcba9876543210fedcba9876543210")),
    ]
    .into_iter()
    .map(|(name, value)| {
        let mut other = first.clone();
        other.insert(name.to_owned(), value);
        other
    })
    .collect()
}

#[tokio::test]
async fn another_question_under_a_used_id_or_key_never_gets_the_first_ones_outcome() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let _stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_one")).await;
    publish(&hub, started("sess_two")).await;
    let mut first = confirmation("sess_one", TOKEN);
    first.insert("event_id".to_owned(), "evt_ask".into());
    let key = || Some("the-same".to_owned());
    let taken = hub.publish(&me(), vec![first.clone()], key()).await.expect("answered");
    taken[0].as_ref().expect("taken");
    assert_eq!(reply(&hub, &me(), &subscription, TOKEN, "accept").await, MessageOutcome::Counted);

    for other in other_questions(&first) {
        let by_id = try_publish(&hub, &me(), other.clone()).await.expect_err("another question");
        assert_eq!((by_id.code(), by_id.status()), ("event_id_used", 409), "{other:?}");
        let by_key = hub.publish(&me(), vec![other.clone()], key()).await.expect("answered");
        let by_key = by_key[0].as_ref().expect_err("another question");
        assert_eq!((by_key.code(), by_key.status()), ("idempotency_key_used", 409), "{other:?}");
        let mut nameless = other;
        nameless.remove("event_id");
        let by_key = hub.publish(&me(), vec![nameless], key()).await.expect("answered");
        assert_eq!(by_key[0].as_ref().expect_err("refused").code(), "idempotency_key_used");
    }
    let same = hub.publish(&me(), vec![first.clone()], key()).await.expect("answered");
    assert!(same[0].as_ref().expect("the same").is_repeated);
    let mut later = first.clone();
    later.insert("timestamp".to_owned(), "2026-05-24T14:22:24.812Z".into());
    assert!(publish(&hub, later).await.is_repeated, "a new moment is not a new question");
}
