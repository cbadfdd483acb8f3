//! Messages in both directions on a link.

use std::time::Duration;

use aaep::extension::AskOutcome;
use aaep_transport::link::{DialError, DialOptions, LinkResume, dial};
use serde_json::json;
use tokio::time::timeout;

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn every_wire_carries_a_handshake_events_and_a_confirmation() {
    for &wire in WIRES {
        for (decision, outcome) in [("accept", AskOutcome::Accept), ("reject", AskOutcome::Reject)]
        {
            let hub = TestHub::new().await;
            let mut subscriber = hub.subscriber(wire).await;
            hub.publish(started("sess_1", "I begin.")).await;
            let heard = subscriber.next_of("aaep:agent.session.started").await;
            assert_eq!(heard["summary_normal"], "I begin.", "{wire:?}");
            let token = hub.ask("sess_1").await;
            let asked = subscriber.next_of("aaep:agent.awaiting.confirmation").await;
            assert_eq!(asked["reply_token"], token.as_str(), "{wire:?}");
            assert!(hub.is_open(&token).await);
            subscriber.decide(&token, decision).await;
            assert_eq!(hub.settlement(&token).await.outcome, outcome, "{wire:?}");
            subscriber.next_of("aaep:agent.state.changed").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_does_not_count_is_answered_alike_on_every_wire() {
    for &wire in WIRES {
        let hub = TestHub::new().await;
        let mut subscriber = hub.subscriber(wire).await;
        hub.publish(started("sess_1", "I begin.")).await;
        let token = hub.ask("sess_1").await;
        subscriber.next_of("aaep:agent.awaiting.confirmation").await;
        let forged = "rpl_00000000000000000000000000000000";
        subscriber.say(&reply(forged, &subscriber.id, "accept")).await;
        let error = subscriber.next_of("agentvoice:error").await;
        assert_eq!(error["error"], "invalid_token", "{wire:?}");
        assert!(error["message"].is_string());
        subscriber.say(&reply(token.as_str(), "sub_somebodyElse", "accept")).await;
        assert_eq!(subscriber.next_of("agentvoice:error").await["error"], "invalid_token");
        assert!(hub.is_open(&token).await, "nothing was decided over {wire:?}");
        subscriber.decide(&token, "accept").await;
        hub.settlement(&token).await;
        subscriber.decide(&token, "reject").await;
        assert_eq!(subscriber.next_of("agentvoice:error").await["error"], "invalid_token");
        assert_eq!(
            hub.settlement(&token).await.outcome,
            AskOutcome::Accept,
            "the first one stands"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_messages_are_answered_alike_on_every_wire() {
    for &wire in WIRES {
        let hub = TestHub::new().await;
        let mut subscriber = hub.subscriber(wire).await;
        for wrong in ["{\"type\":\"confirmation.reply\"}", "[1]", "{}"] {
            subscriber.link.sender.send(wrong.to_owned()).await.expect("open");
            let error = subscriber.next_of("agentvoice:error").await;
            assert_eq!(error["error"], "not_valid", "{wire:?} {wrong}");
        }
        hub.publish(started("sess_1", "I begin.")).await;
        subscriber.next_of("aaep:agent.session.started").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn terms_change_on_every_wire() {
    for &wire in WIRES {
        let hub = TestHub::new().await;
        let mut subscriber = hub.subscriber(wire).await;
        let change = json!({
            "type": "subscription.renegotiate", "subscription_id": subscriber.id,
            "capabilities": { "max_events_per_second": 1 },
        });
        subscriber.say(&change).await;
        let accepted = subscriber.next_of("subscription.accepted").await;
        assert_eq!(accepted["honored_capabilities"]["max_events_per_second"], 1, "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_64_kibibytes_comes_whole_on_every_wire() {
    for &wire in WIRES {
        let hub = TestHub::new().await;
        let mut subscriber = hub.subscriber(wire).await;
        hub.publish(started("sess_1", "I begin.")).await;
        let long = "漢".repeat(10_500);
        let mut event = question("sess_1");
        event["action"] = long.as_str().into();
        event["consequence"] = long.as_str().into();
        hub.publish(event).await;
        let heard = subscriber.next_of("aaep:agent.awaiting.confirmation").await;
        assert!(heard.to_string().len() > 63_000, "{wire:?}");
        assert_eq!((&heard["action"], &heard["consequence"]), (&json!(long), &json!(long)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_the_link_is_dropped_arrives() {
    for &wire in WIRES {
        let hub = TestHub::new().await;
        let mut subscriber = hub.subscriber(wire).await;
        hub.publish(started("sess_1", "I begin.")).await;
        let token = hub.ask("sess_1").await;
        subscriber.next_of("aaep:agent.awaiting.confirmation").await;
        subscriber.decide(&token, "accept").await;
        drop(subscriber);
        assert_eq!(hub.settlement(&token).await.outcome, AskOutcome::Accept, "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_where_it_was_left() {
    let hub = TestHub::new().await;
    let mut subscriber = hub.subscriber(Wire::Sse).await;
    hub.publish(started("sess_1", "One.")).await;
    let first = subscriber.next_of("aaep:agent.session.started").await;
    let id = std::mem::take(&mut subscriber.id);
    drop(subscriber);
    hub.publish(started("sess_2", "Two.")).await;
    let resume = LinkResume {
        subscription_id: Some(id),
        last_event_id: Some(first["event_id"].as_str().expect("an id").to_owned()),
    };
    let options = DialOptions { resume: Some(resume), ..DialOptions::default() };
    let mut subscriber = hub.dial(Wire::Sse, options).await.expect("a link");
    let next = subscriber.next_of("aaep:agent.session.started").await;
    assert_eq!(next["summary_normal"], "Two.", "nothing is heard twice and nothing is missed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_is_over_is_not_resumed() {
    let hub = TestHub::new().await;
    let resume = LinkResume { subscription_id: Some("sub_gone&x".to_owned()), last_event_id: None };
    let options = DialOptions { resume: Some(resume), ..DialOptions::default() };
    let error = hub.dial(Wire::Sse, options).await.err();
    assert_eq!(error, Some(DialError::NoSuchSubscription));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_without_a_handshake_is_heard_at_its_own_address() {
    let hub = TestHub::new().await;
    for scheme in ["http", "ws"] {
        let target = target(&format!("{scheme}://127.0.0.1:{}/events", hub.port()));
        let options = DialOptions { without_handshake: true, ..DialOptions::default() };
        let link = dial(&target, &options).await.expect("a link");
        let mut subscriber = Subscriber { link, id: String::new() };
        // No handshake says where the stream begins.
        for number in 0.. {
            hub.publish(started(&format!("sess_{scheme}{number}"), "I begin.")).await;
            if let Ok(heard) = timeout(Duration::from_millis(50), subscriber.next()).await {
                let kind = heard["type"].as_str().expect("a type");
                assert!(kind.starts_with("aaep:agent."), "{kind}");
                break;
            }
        }
        if scheme == "http" {
            // There, only answers have an address.
            subscriber.say(&json!({ "type": "subscription.renegotiate" })).await;
            let error = subscriber.next_of("agentvoice:error").await;
            assert_eq!(error["error"], "no_way_back");
        }
    }
}
