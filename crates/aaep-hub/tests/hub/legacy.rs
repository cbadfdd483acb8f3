//! The legacy paths (ruling 27).

use std::time::Duration;

use aaep::extension::{Accepts, AskOutcome};
use aaep_hub::hub::LegacyAnswer;
use serde_json::{Value, json};

use crate::support::{Peer, Stream, confirmation, hub, me, publish, started, token};

const TOKEN: &str = "rpl_0123456789abcdef0123456789abcdef";

fn foreign_reply(decision: &str) -> String {
    json!({
        "type": "confirmation.reply", "reply_token": TOKEN, "decision": decision,
        "subscription_id": "sub_never_given", "timestamp": "2020-01-01T00:00:00.000Z",
    })
    .to_string()
}

async fn outcome(hub: &aaep_hub::hub::Hub) -> Option<AskOutcome> {
    let state = hub.ask_state(&me(), &token(TOKEN), Duration::from_secs(20)).await.expect("known");
    state.settlement.map(|it| it.outcome)
}

#[tokio::test]
async fn a_stream_without_a_handshake_hears_and_answers() {
    let hub = hub();
    let mut stream = Stream::legacy(&hub).await;
    publish(&hub, started("sess_one")).await;
    stream.next_of("session.started");
    publish(&hub, confirmation("sess_one", TOKEN)).await;
    stream.next_of("awaiting.confirmation");
    let posted = hub.legacy_message(&me(), foreign_reply("accept")).await.expect("answered");
    assert_eq!(posted, LegacyAnswer::Taken);
    let twice = hub.legacy_message(&me(), foreign_reply("accept")).await.expect("answered");
    assert_eq!(twice, LegacyAnswer::Taken, "the public suite replies twice");
    assert_eq!(outcome(&hub).await, Some(AskOutcome::Accept));
}

#[tokio::test]
async fn a_reject_counts_whatever_the_agent_allows() {
    let hub = hub();
    let mut stream = Stream::legacy(&hub).await;
    publish(&hub, started("sess_one")).await;
    let mut asked = confirmation("sess_one", TOKEN);
    asked["allowed_replies"] = json!(["accept"]);
    publish(&hub, asked).await;
    stream.next_of("awaiting.confirmation");
    hub.legacy_message(&me(), foreign_reply("reject")).await.expect("answered");
    let state = hub.ask_state(&me(), &token(TOKEN), Duration::ZERO).await.expect("known");
    assert_eq!(state.settlement.map(|it| it.outcome), Some(AskOutcome::Reject), "at once");
}

#[tokio::test]
async fn a_reply_of_somebody_without_a_stream_counts_for_nothing() {
    let hub = hub();
    let mut stream = Stream::legacy(&hub).await;
    publish(&hub, started("sess_one")).await;
    publish(&hub, confirmation("sess_one", TOKEN)).await;
    stream.next_of("awaiting.confirmation");
    let other = crate::support::somebody_else();
    hub.legacy_message(&other, foreign_reply("accept")).await.expect("answered");
    let open = hub.ask_state(&me(), &token(TOKEN), Duration::ZERO).await.expect("known");
    assert!(open.settlement.is_none());
}

#[tokio::test]
async fn new_terms_are_the_next_frame_on_the_stream() {
    let hub = hub();
    let mut stream = Stream::legacy(&hub).await;
    let request = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "suite",
        "capabilities": { "event_filters": { "exclude": ["aaep:agent.session.*"] } },
    });
    hub.legacy_message(&me(), request.to_string()).await.expect("answered");
    assert_eq!(stream.next()["type"], "subscription.accepted");
    let mut wrong = request.clone();
    wrong["aaep_version"] = "99.99.99".into();
    hub.legacy_message(&me(), wrong.to_string()).await.expect("answered");
    assert_eq!(stream.next()["reason_code"], "version_unsupported");
    publish(&hub, started("sess_one")).await;
    publish(&hub, crate::support::progress("sess_one", "Heard.")).await;
    assert_eq!(
        stream.next()["summary_normal"],
        "Heard.",
        "the terms before the wrong request hold"
    );
}

#[tokio::test]
async fn what_a_person_types_waits_for_a_stream_and_reaches_the_agent() {
    let hub = hub();
    hub.declare(&me(), "demo", vec![Accepts::Prompt]).await.expect("declared");
    let typed = json!({ "kind": "user_input", "text": "Say hello." }).to_string();
    let taken = hub.legacy_message(&me(), typed).await.expect("answered");
    assert_eq!(taken, LegacyAnswer::Taken);
    let none = hub.instructions(&me(), "demo", 0, Duration::ZERO).await.expect("known");
    assert!(none.is_empty(), "nobody listens yet");
    let mut stream = Stream::legacy(&hub).await;
    let accepted = stream.next();
    assert_eq!(accepted["type"], "input.accepted");
    let told = hub.instructions(&me(), "demo", 0, Duration::from_secs(20)).await.expect("known");
    assert_eq!(json!(told[0].session_id), accepted["session_id"]);
}

#[tokio::test]
async fn a_legacy_socket_does_it_all() {
    let hub = hub();
    let mut peer = Peer::legacy(&hub).await;
    publish(&hub, started("sess_one")).await;
    peer.next_of("aaep:agent.session.started");
    publish(&hub, confirmation("sess_one", TOKEN)).await;
    peer.next_of("aaep:agent.awaiting.confirmation");
    peer.say(&foreign_reply("reject"));
    assert_eq!(outcome(&hub).await, Some(AskOutcome::Reject));
    peer.send(&json!({ "kind": "user_input", "text": "Hello?" }));
    let error: Value = peer.next_of("agentvoice:error");
    assert_eq!(error["error"], "not_accepted");
}

#[tokio::test]
async fn prompts_that_wait_for_a_stream_are_bounded_in_bytes() {
    let hub = hub();
    let prompt = json!({ "kind": "user_input", "text": "x".repeat(100_000) }).to_string();
    let mut taken = 0;
    while hub.legacy_message(&me(), prompt.clone()).await == Ok(LegacyAnswer::Taken) {
        taken += 1;
        assert!(taken < 1000, "waiting prompts have no bound");
    }
    assert_eq!(taken, 2);
    let mut other = me();
    other.id = "token:other".to_owned();
    let others = hub.legacy_message(&other, prompt).await;
    assert_eq!(others, Ok(LegacyAnswer::Taken), "others have a share of their own");
}

#[tokio::test]
async fn a_close_of_a_legacy_stream_counts_whatever_else_is_wrong_with_it() {
    let hub = hub();
    let _stream = Stream::legacy(&hub).await;
    let close = json!({
        "type": "subscription.close", "subscription_id": "sub_never_given", "reason_code": 7,
    });
    assert_eq!(hub.legacy_message(&me(), close.to_string()).await, Ok(LegacyAnswer::Taken));
}
