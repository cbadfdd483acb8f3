//! Malformed handshakes and malformed closes: the same over every wire (rulings 12 and 25).

use aaep::extension::AskOutcome;
use aaep_hub::access::Principal;
use aaep_transport::link::{DialOptions, LinkEnd};
use serde_json::{Value, json};

use crate::support::*;

/// Requests that a strict reader refuses, each in its own way.
fn malformed_requests() -> Vec<Value> {
    let with = |field: &str, value: Value| {
        let mut request = subscription_request();
        request[field] = value;
        request
    };
    let wishing = |field: &str, value: Value| {
        let mut request = subscription_request();
        request["capabilities"][field] = value;
        request
    };
    let without = |field: &str| {
        let mut request = subscription_request();
        request.as_object_mut().expect("an object").remove(field);
        request
    };
    vec![
        json!({ "type": "subscription.request" }),
        without("aaep_version"),
        without("subscriber_id"),
        without("capabilities"),
        with("aaep_version", json!(1)),
        with("subscriber_id", json!("")),
        with("subscriber_id", json!("x".repeat(300))),
        with("subscriber_id", json!({ "name": "\u{1b}[2J" })),
        with("subscriber_name", json!(["\u{202e}"])),
        with("capabilities", json!(null)),
        with("capabilities", json!([])),
        with("extensions", json!("none")),
        with("correlation_id", json!(7)),
        with("timestamp", json!("2020-01-01T00:00:00.000Z")),
        with("\u{1b}]0;title\u{7}", json!(true)),
        wishing("max_events_per_second", json!(0)),
        wishing("max_events_per_second", json!(-1.5)),
        wishing("preferred_verbosity", json!("chatty")),
        wishing("languages", json!([])),
        wishing("languages", json!(["not a language"])),
        wishing("supports_confirmation_reply", json!("yes")),
        wishing("coalesce_boundaries", json!(["line"])),
        wishing("event_filters", json!({ "include": "*" })),
        wishing("supported_conformance_levels", json!([9])),
        wishing("pace_wpm", json!(1)),
        wishing("nested", json!([[[[[[[[[[[["deep"]]]]]]]]]]]])),
    ]
}

fn check_rejected(rejected: &Value, code: &str, about: &str) {
    assert_eq!(rejected["type"], "subscription.rejected", "{about}: {rejected}");
    assert_eq!(rejected["reason_code"], code, "{about}: {rejected}");
    let message = rejected["reason_message"].as_str().expect("words");
    assert!(!message.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{about}: {message:?}");
    let violations = aaep::validate(rejected.to_string().as_bytes(), aaep::Mode::Strict);
    assert!(violations.is_empty(), "{about}: {violations:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_rejected_as_one_however_malformed_it_is_on_every_wire() {
    let hub = TestHub::new().await;
    for &wire in WIRES {
        for request in malformed_requests() {
            let about = format!("{wire:?} {request}");
            let mut subscriber = hub.dial(wire, DialOptions::default()).await.expect("a link");
            subscriber.say(&request).await;
            check_rejected(&subscriber.next().await, "unknown", &about);
            match subscriber.end().await {
                LinkEnd::Closed { code, .. } => assert_eq!(code, Some(4001), "{about}"),
                other => panic!("{about}: {other:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_not_spoken_is_the_reason_whatever_else_is_wrong() {
    let hub = TestHub::new().await;
    for &wire in WIRES {
        for version in ["2.0.0", "0.9", "latest"] {
            let request = json!({
                "type": "subscription.request", "aaep_version": version, "new_in_2": [],
            });
            let mut subscriber = hub.dial(wire, DialOptions::default()).await.expect("a link");
            subscriber.say(&request).await;
            let about = format!("{wire:?} {version}");
            check_rejected(&subscriber.next().await, "version_unsupported", &about);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_counts_whatever_else_is_wrong_with_it_and_the_default_applies() {
    for &wire in WIRES {
        for (field, value) in [
            ("reason_code", json!("USER_EXIT")),
            ("reason_code", json!(["x"])),
            ("reason_message", json!("")),
            ("timestamp", json!("2020-01-01T00:00:00.000Z")),
            ("aaep_version", json!({ "deep": [[[]]] })),
        ] {
            let hub = TestHub::new().await;
            let mut subscriber = hub.subscriber(wire).await;
            hub.publish(started("sess_1", "I begin.")).await;
            let token = hub.ask("sess_1").await;
            subscriber.next_of("aaep:agent.awaiting.confirmation").await;
            let mut close =
                json!({ "type": "subscription.close", "subscription_id": subscriber.id });
            close[field] = value;
            subscriber.say(&close).await;
            let settled = hub.settlement(&token).await;
            assert_eq!(settled.outcome, AskOutcome::Reject, "{wire:?} {close}");
            let id = aaep::SubscriptionId::parse(&subscriber.id).expect("an id");
            let is_there = hub.hub().has_subscription(&Principal::local(), &id).await;
            assert!(!is_there.expect("an answer"), "{wire:?} {close}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_of_a_foreign_subscription_closes_nothing() {
    for &wire in NETWORK_WIRES {
        let hub = TestHub::with(|options, _| {
            options.config.access.loopback_needs_credentials = true;
        })
        .await;
        let scopes = [aaep_hub::access::Scope::Listen, aaep_hub::access::Scope::Reply];
        let as_token = |name: &str| DialOptions {
            bearer: Some(token(&hub.folder, name, &scopes)),
            ..DialOptions::default()
        };
        let mut mine = hub.dial(wire, as_token("mine")).await.expect("a link");
        mine.subscribe(subscription_request()).await;
        let mut other = hub.dial(wire, as_token("other")).await.expect("a link");
        other.subscribe(subscription_request()).await;
        let close = json!({
            "type": "subscription.close", "subscription_id": mine.id, "reason_code": "USER_EXIT",
        });
        other.say(&close).await;
        let error = other.next_of("agentvoice:error").await;
        assert_eq!(error["error"], "no_such_subscription", "{wire:?}");
        hub.publish(started("sess_1", "I begin.")).await;
        mine.next_of("aaep:agent.session.started").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renegotiation_changes_only_what_it_names() {
    for &wire in WIRES {
        let hub = TestHub::new().await;
        let mut subscriber = hub.dial(wire, DialOptions::default()).await.expect("a link");
        let mut request = subscription_request();
        request["capabilities"] = json!({
            "supports_confirmation_reply": true, "max_events_per_second": 4, "pace_wpm": 300,
            "preferred_verbosity": "terse", "languages": ["en"], "cognitive_load": "high",
            "event_filters": { "include": ["aaep:agent.tool.*"] },
            "supported_conformance_levels": [1, 2],
        });
        let asked = request["capabilities"].clone();
        subscriber.subscribe(request).await;
        let change = json!({
            "type": "subscription.renegotiate", "subscription_id": subscriber.id,
            "capabilities": { "max_events_per_second": 1 },
        });
        subscriber.say(&change).await;
        let accepted = subscriber.next_of("subscription.accepted").await;
        let honored = &accepted["honored_capabilities"];
        assert_eq!(honored["max_events_per_second"], 1, "{wire:?}");
        for (field, value) in asked.as_object().expect("an object") {
            if !["max_events_per_second", "event_filters"].contains(&field.as_str()) {
                assert_eq!(&honored[field], value, "{wire:?} {field}");
            }
        }
        assert_eq!(honored["event_filters"]["include"], json!(["aaep:agent.tool.*"]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn levels_that_need_replies_are_not_granted_without_them() {
    let hub = TestHub::new().await;
    for &wire in WIRES {
        let mut subscriber = hub.dial(wire, DialOptions::default()).await.expect("a link");
        let mut request = subscription_request();
        request["capabilities"] = json!({ "supported_conformance_levels": [1, 2, 3] });
        subscriber.say(&request).await;
        let accepted = subscriber.next().await;
        let levels = &accepted["honored_capabilities"]["supported_conformance_levels"];
        assert_eq!(levels, &json!([1]), "{wire:?} {accepted}");
    }
}
