//! Subscribers over server-sent events and WebSocket.

use serde_json::json;

use crate::support::{
    Peer, Stream, confirmation, hub, progress, publish, reply, request, somebody_else, started,
    subscribe, tool,
};
use aaep_hub::hub::MessageOutcome;

#[tokio::test]
async fn a_subscriber_hears_what_an_agent_publishes() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_one")).await;
    let event = stream.next_of("session.started");
    assert_eq!(event["session_id"], "sess_one");
    assert_eq!(stream.last_id.as_deref(), event["event_id"].as_str());
    hub.stop().await;
    stream.ends();
}

#[tokio::test]
async fn nothing_is_lost_between_subscribing_and_the_first_stream() {
    let hub = hub();
    publish(&hub, started("sess_one")).await;
    let subscription = subscribe(&hub, json!({})).await;
    publish(&hub, progress("sess_one", "Half of it is done.")).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    let summary = stream.next();
    assert_eq!(summary["type"], "aaep:agent.state.changed", "a summary of the session: {summary}");
    assert_eq!(stream.next()["summary_normal"], "Half of it is done.");
}

#[tokio::test]
async fn a_subscriber_that_was_cut_off_goes_on_where_it_was() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_one")).await;
    publish(&hub, progress("sess_one", "One.")).await;
    stream.next_of("progress.updated");
    let last = stream.last_id.clone();
    drop(stream);
    publish(&hub, tool("sess_one", "call_2")).await;
    publish(&hub, tool("sess_one", "call_3")).await;
    let mut stream = Stream::open(&hub, &subscription, last.as_deref()).await;
    publish(&hub, tool("sess_one", "call_4")).await;
    for call in ["call_2", "call_3", "call_4"] {
        assert_eq!(stream.next()["tool_call_id"], call);
    }
}

#[tokio::test]
async fn a_subscriber_that_resumes_after_an_unknown_event_hears_a_summary_first() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_one")).await;
    stream.next_of("session.started");
    drop(stream);
    let mut stream = Stream::open(&hub, &subscription, Some("evt_longforgotten")).await;
    let summary = stream.next();
    assert_eq!(summary["type"], "aaep:agent.state.changed", "{summary}");
    assert_eq!(summary["session_id"], "sess_one");
    publish(&hub, tool("sess_one", "call_1")).await;
    assert_eq!(stream.next()["tool_call_id"], "call_1");
}

#[tokio::test]
async fn a_subscriber_without_limits_gets_every_tool_that_it_missed() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_one")).await;
    stream.next_of("session.started");
    let last = stream.last_id.clone();
    drop(stream);
    for number in 0..40 {
        publish(&hub, tool("sess_one", &format!("call_{number}"))).await;
    }
    let mut stream = Stream::open(&hub, &subscription, last.as_deref()).await;
    for number in 0..40 {
        assert_eq!(stream.next()["tool_call_id"], format!("call_{number}").as_str());
    }
}

#[tokio::test]
async fn subscribers_held_by_their_rate_are_counted() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({ "max_events_per_second": 1 })).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    publish(&hub, started("sess_one")).await;
    for number in 0..5 {
        publish(&hub, tool("sess_one", &format!("call_{number}"))).await;
    }
    stream.next_of("session.started");
    hub.count().await.expect("answered");
    let text = hub.metrics().text();
    assert!(text.lines().any(|line| line == "aaep_subscribers_held 1"), "{text}");
}

#[tokio::test]
async fn a_second_stream_of_a_subscription_takes_the_place_of_the_first() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let first = Stream::open(&hub, &subscription, None).await;
    let mut second = Stream::open(&hub, &subscription, None).await;
    first.ends();
    publish(&hub, started("sess_one")).await;
    second.next_of("session.started");
}

#[tokio::test]
async fn a_subscription_of_somebody_else_cannot_be_heard() {
    let hub = hub();
    let accepted = hub
        .subscribe(&somebody_else(), aaep_engine::terms::Door::Open, request(&json!({})))
        .await
        .expect("answered")
        .expect("accepted");
    Stream::open(&hub, &accepted.subscription_id, None).await.ends();
}

#[tokio::test]
async fn everything_goes_over_one_websocket() {
    let hub = hub();
    let mut peer = Peer::subscriber(&hub).await;
    peer.send(&serde_json::to_value(request(&json!({}))).expect("JSON"));
    let accepted = peer.next();
    assert_eq!(accepted["type"], "subscription.accepted");
    let subscription = accepted["subscription_id"].clone();
    publish(&hub, started("sess_one")).await;
    publish(&hub, confirmation("sess_one", "rpl_0123456789abcdef0123456789abcdef")).await;
    let ask = peer.next_of("aaep:agent.awaiting.confirmation");
    peer.send(&json!({
        "type": "confirmation.reply", "reply_token": ask["reply_token"], "decision": "accept",
        "subscription_id": subscription, "timestamp": "2020-01-01T00:00:00.000Z",
    }));
    let settled = peer.next_of("aaep:agent.state.changed");
    assert_eq!(settled["to_state"], "calling_tool");
    peer.send(&json!({
        "type": "subscription.renegotiate", "subscription_id": subscription,
        "capabilities": { "preferred_verbosity": "detailed" },
    }));
    let renewed = peer.next_of("subscription.accepted");
    assert_eq!(renewed["honored_capabilities"]["preferred_verbosity"], "detailed");
    peer.send(&json!({ "type": "subscription.close", "subscription_id": subscription }));
    assert_eq!(peer.close_code(), 4005);
}

#[tokio::test]
async fn what_cannot_be_read_is_said_and_too_much_of_it_ends_the_connection() {
    let hub = hub();
    let mut peer = Peer::subscriber(&hub).await;
    peer.say("{");
    let error = peer.next();
    assert_eq!(error["error"], "not_valid");
    assert!(error["violations"][0]["message"].is_string(), "{error}");
    for _ in 1..16 {
        peer.say("[]");
        assert_eq!(peer.next()["type"], "agentvoice:error");
    }
    assert_eq!(peer.close_code(), 4004);
}

#[tokio::test]
async fn messages_that_are_refused_never_end_the_connection_of_a_listener() {
    let hub = hub();
    let mut peer = Peer::subscriber(&hub).await;
    peer.send(&serde_json::to_value(request(&json!({}))).expect("JSON"));
    let subscription = peer.next_of("subscription.accepted")["subscription_id"].clone();
    for number in 0..40 {
        // It was presented, but its agent has withdrawn it meanwhile.
        peer.send(&json!({
            "type": "agentvoice:ask.presented", "subscription_id": subscription,
            "reply_token": format!("rpl_{number}"),
        }));
        assert!(peer.next_of("agentvoice:error")["error"].is_string());
    }
    publish(&hub, started("sess_1")).await;
    assert_eq!(peer.next_of("aaep:agent.session.started")["session_id"], "sess_1");
}

#[tokio::test]
async fn a_request_that_is_rejected_ends_a_websocket_with_4001() {
    let hub = hub();
    let mut peer = Peer::subscriber(&hub).await;
    let mut request = serde_json::to_value(request(&json!({}))).expect("JSON");
    request["aaep_version"] = "9.0.0".into();
    peer.send(&request);
    assert_eq!(peer.next()["reason_code"], "version_unsupported");
    assert_eq!(peer.close_code(), 4001);
}

#[tokio::test]
async fn a_websocket_resumes_by_the_extension_field_of_its_request() {
    let hub = hub();
    let mut peer = Peer::subscriber(&hub).await;
    peer.send(&serde_json::to_value(request(&json!({}))).expect("JSON"));
    let subscription = peer.next()["subscription_id"].clone();
    publish(&hub, started("sess_one")).await;
    let last = peer.next_of("aaep:agent.session.started")["event_id"].clone();
    drop(peer);
    publish(&hub, progress("sess_one", "While away.")).await;
    let mut peer = Peer::subscriber(&hub).await;
    let mut again = serde_json::to_value(request(&json!({}))).expect("JSON");
    again["extensions"] = json!({ "agentvoice": { "resume": {
        "subscription_id": subscription, "last_event_id": last,
    } } });
    peer.send(&again);
    assert_eq!(peer.next()["type"], "subscription.accepted");
    assert_eq!(peer.next()["summary_normal"], "While away.");
}

#[tokio::test]
async fn a_reply_right_before_the_end_of_a_connection_counts() {
    let hub = hub();
    let mut peer = Peer::subscriber(&hub).await;
    peer.send(&serde_json::to_value(request(&json!({}))).expect("JSON"));
    let subscription = peer.next()["subscription_id"].clone();
    publish(&hub, started("sess_one")).await;
    let token = "rpl_0123456789abcdef0123456789abcdef";
    publish(&hub, confirmation("sess_one", token)).await;
    peer.next_of("aaep:agent.awaiting.confirmation");
    peer.send(&json!({
        "type": "confirmation.reply", "reply_token": token, "decision": "accept",
        "subscription_id": subscription, "timestamp": "2020-01-01T00:00:00.000Z",
    }));
    drop(peer);
    let wait = std::time::Duration::from_secs(20);
    let state = hub.ask_state(&crate::support::me(), &crate::support::token(token), wait).await;
    let settlement = state.expect("known").settlement.expect("settled");
    assert_eq!(settlement.outcome, aaep::extension::AskOutcome::Accept);
}

#[tokio::test]
async fn a_reply_to_nothing_does_not_count() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let told = reply(&hub, &crate::support::me(), &subscription, "rpl_none", "accept").await;
    assert_eq!(told, MessageOutcome::NotCounted);
}

#[tokio::test]
async fn a_new_subscription_in_place_of_an_earlier_one_ends_the_earlier_connection() {
    let hub = hub();
    let mut first = Peer::subscriber(&hub).await;
    first.send(&serde_json::to_value(request(&json!({}))).expect("JSON"));
    let subscription = first.next()["subscription_id"].clone();
    publish(&hub, started("sess_one")).await;
    let last = first.next_of("aaep:agent.session.started")["event_id"].clone();
    let mut again = serde_json::to_value(request(&json!({}))).expect("JSON");
    again["extensions"] = json!({ "agentvoice": { "resume": {
        "subscription_id": subscription, "last_event_id": last,
    } } });
    let mut second = Peer::subscriber(&hub).await;
    second.send(&again);
    assert_eq!(second.next()["type"], "subscription.accepted");
    assert_eq!(first.close_code(), 4000);
    publish(&hub, tool("sess_one", "call_1")).await;
    assert_eq!(second.next()["tool_call_id"], "call_1");
}

#[tokio::test]
async fn terms_that_are_rejected_later_end_the_subscription() {
    let hub = hub();
    let mut peer = Peer::subscriber(&hub).await;
    peer.send(&serde_json::to_value(request(&json!({}))).expect("JSON"));
    let subscription = peer.next()["subscription_id"].clone();
    peer.send(&json!({
        "type": "subscription.renegotiate", "subscription_id": subscription,
        "capabilities": { "accept_signed_manifests_only": true },
    }));
    assert_eq!(peer.next()["reason_code"], "manifest_signature_required");
    assert_eq!(peer.close_code(), 4001);
    let id = aaep::SubscriptionId::parse(subscription.as_str().expect("text")).expect("an id");
    assert!(!hub.has_subscription(&crate::support::me(), &id).await.expect("answered"));
}

#[tokio::test]
async fn a_subscriber_that_may_no_longer_listen_is_told_and_disconnected() {
    let hub = hub();
    let mut peer = Peer::subscriber(&hub).await;
    peer.send(&serde_json::to_value(request(&json!({}))).expect("JSON"));
    let subscription = peer.next()["subscription_id"].clone();
    assert_eq!(hub.everyone().await.expect("answered").len(), 1);
    hub.end_access(&crate::support::me().id).await.expect("answered");
    let close = peer.next();
    assert_eq!(close["type"], "subscription.close");
    assert_eq!(close["reason_code"], "access_ended");
    assert_eq!(peer.close_code(), 4003);
    let id = aaep::SubscriptionId::parse(subscription.as_str().expect("text")).expect("an id");
    assert!(!hub.has_subscription(&crate::support::me(), &id).await.expect("answered"));
}
