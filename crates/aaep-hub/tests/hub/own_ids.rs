//! Agents leave out ids and positions, or bring ids of their own form: UUIDs, `toolu_…`.

use std::time::Duration;

use aaep::extension::Accepts;
use aaep_hub::hub::{Hub, MessageOutcome};
use serde_json::{Value, json};

use crate::support::{
    Peer, Stream, confirmation, event, hub, hub_in, me, publish, read, reply, somebody_else,
    started, subscribe, try_publish,
};

const UUID: &str = "0c6f3c1e-4d0b-4a52-9f3e-1b9b2a7d6c55";

fn piece(text: &str, complete: bool) -> aaep::Object {
    event("output.streaming", Some(UUID), &json!({ "chunk": text, "complete": complete }))
}

/// The original ids that an event tells.
fn original(event: &Value) -> &Value {
    &event["extensions"]["agentvoice"]["original"]
}

async fn everything(hub: &Hub) -> Stream {
    let subscription = subscribe(hub, json!({ "coalesce_boundaries": ["none"] })).await;
    Stream::open(hub, &subscription, None).await
}

#[tokio::test]
async fn ids_of_an_agents_own_are_mapped_and_kept() {
    let hub = hub();
    let mut stream = everything(&hub).await;
    let mut start = started(UUID);
    start.insert("event_id".to_owned(), "1".into());
    let published = publish(&hub, start.clone()).await;
    let heard = stream.next_of("session.started");
    assert_eq!(heard["session_id"], published.session_id.as_str());
    assert_eq!(original(&heard), &json!({ "event_id": "1", "session_id": UUID }));
    let again = publish(&hub, start.clone()).await;
    assert!(again.is_repeated && again.event_id == published.event_id, "a retry is the same");
    start.insert("summary_normal".to_owned(), "Something else.".into());
    let other = try_publish(&hub, &me(), start).await.expect_err("another event under its id");
    assert_eq!(other.code(), "event_id_used");

    let call = json!({ "tool": "shell", "summary_normal": "Runs.", "tool_call_id": "toolu_01-x" });
    publish(&hub, event("tool.invoked", Some(UUID), &call)).await;
    let done = json!({ "tool": "shell", "status": "success", "tool_call_id": "toolu_01-x" });
    publish(&hub, event("tool.completed", Some(UUID), &done)).await;
    let (invoked, completed) = (stream.next_of("tool.invoked"), stream.next_of("tool.completed"));
    assert_eq!(invoked["tool_call_id"], completed["tool_call_id"]);
    assert_eq!(original(&completed)["tool_call_id"], "toolu_01-x");

    let text = json!({ "chunk": "Hm.", "complete": true, "output_id": "msg_7#0" });
    publish(&hub, event("output.streaming", Some(UUID), &text)).await;
    assert_eq!(original(&stream.next_of("output.streaming"))["output_id"], "msg_7#0");
}

#[tokio::test]
async fn the_same_id_of_another_principal_is_another_id() {
    let hub = hub();
    let mine = publish(&hub, started(UUID)).await;
    let mut start = started(UUID);
    start.insert("producer".to_owned(), json!({ "agent_id": "another" }));
    let theirs = try_publish(&hub, &somebody_else(), start).await.expect("their own session");
    assert_ne!(mine.session_id, theirs.session_id);
}

#[tokio::test]
async fn no_agent_states_what_the_hub_keeps_of_its_ids() {
    let hub = hub();
    let mut start = started(UUID);
    let forged = json!({ "agentvoice": { "original": { "event_id": "theirs" } } });
    start.insert("extensions".to_owned(), forged);
    start.insert("@context".to_owned(), json!([aaep::CORE_CONTEXT, aaep::extension::CONTEXT]));
    let refused = try_publish(&hub, &me(), start).await.expect_err("not for an agent to say");
    assert_eq!(refused.code(), "speaks_for_the_hub");
}

#[tokio::test]
async fn positions_go_on_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = hub_in(folder.path());
    publish(&hub, started(UUID)).await;
    publish(&hub, piece("Ọlá 🚀 ", false)).await;
    let call = json!({ "tool": "shell", "summary_normal": "Runs." });
    publish(&hub, event("tool.invoked", Some(UUID), &call)).await;
    hub.stop().await;
    drop(hub);

    let hub = hub_in(folder.path());
    let mut stream = everything(&hub).await;
    publish(&hub, piece("flies.", true)).await;
    publish(
        &hub,
        event("tool.completed", Some(UUID), &json!({ "tool": "shell", "status": "success" })),
    )
    .await;
    assert_eq!(stream.next_of("output.streaming")["position"], "Ọlá 🚀 ".chars().count());
    assert!(stream.next_of("tool.completed")["tool_call_id"].is_string());
    publish(&hub, event("session.completed", Some(UUID), &json!({ "summary_normal": "Done." })))
        .await;
    hub.stop().await;
}

#[tokio::test]
async fn a_question_is_found_by_the_token_that_its_agent_gave_it() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started(UUID)).await;
    let mut agent = Peer::agent(&hub).await;
    agent.send(&Value::Object(confirmation(UUID, "ask/1")));
    let published = agent.next();
    let token = published["reply_token"].as_str().expect("a token").to_owned();
    assert!(token.starts_with("rpl_"), "{token}");
    assert_eq!(original(&stream.next_of("awaiting.confirmation"))["reply_token"], "ask/1");
    agent.send(&json!({ "type": "agentvoice:ask.withdraw", "reply_token": "ask/1" }));
    assert_eq!(agent.next()["outcome"], "withdrawn");
    let late = reply(&hub, &me(), &subscription, &token, "accept").await;
    assert_ne!(late, MessageOutcome::Counted);
}

#[tokio::test]
async fn an_agent_is_told_of_a_session_under_the_id_that_it_knows() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    hub.declare(&me(), "builder", vec![Accepts::Cancel]).await.expect("declared");
    let session = publish(&hub, started(UUID)).await.session_id;
    let cancel = read(&json!({
        "type": "agentvoice:session.cancel", "subscription_id": subscription.as_str(),
        "session_id": session.as_str(),
    }));
    assert!(matches!(hub.tell(&me(), cancel).await, Ok(MessageOutcome::Instructed(_))));
    let told = hub.instructions(&me(), "builder", 0, Duration::ZERO).await.expect("told");
    assert_eq!(told[0].original_session_id.as_deref(), Some(UUID));
}
