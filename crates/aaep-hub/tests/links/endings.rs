//! How links end, from either side.

use aaep::SubscriptionId;
use aaep_hub::access::Principal;
use aaep_transport::link::{DialError, DialOptions, LinkEnd, dial};
use serde_json::json;

use crate::support::*;

fn closed_with(end: &LinkEnd) -> Option<u16> {
    match end {
        LinkEnd::Closed { code, .. } => *code,
        other => panic!("{other:?}"),
    }
}

/// The close code, if the wire has one; server-sent events do not.
fn code_on(wire: Wire, code: u16) -> Option<u16> {
    (wire != Wire::Sse).then_some(code)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_ends_its_subscription() {
    for &wire in WIRES {
        let hub = TestHub::new().await;
        let mut subscriber = hub.subscriber(wire).await;
        let id = SubscriptionId::parse(&subscriber.id).expect("an id");
        subscriber
            .say(&json!({ "type": "subscription.close", "subscription_id": subscriber.id }))
            .await;
        assert_eq!(closed_with(&subscriber.end().await), code_on(wire, 4005), "{wire:?}");
        let local = Principal::local();
        assert!(!hub.hub().has_subscription(&local, &id).await.expect("an answer"), "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_is_rejected_is_told_and_then_ends() {
    for &wire in WIRES {
        let hub = TestHub::new().await;
        let mut subscriber = hub.dial(wire, DialOptions::default()).await.expect("a link");
        let mut request = subscription_request();
        request["aaep_version"] = "99.0.0".into();
        subscriber.say(&request).await;
        let rejected = subscriber.next().await;
        assert_eq!(rejected["type"], "subscription.rejected", "{wire:?}");
        assert_eq!(rejected["reason_code"], "version_unsupported");
        assert_eq!(closed_with(&subscriber.end().await), Some(4001), "{wire:?}");
        assert!(subscriber.link.sender.send("late".to_owned()).await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_stops_says_so() {
    let mut hub = TestHub::new().await;
    let mut subscribers = Vec::new();
    for &wire in WIRES {
        subscribers.push((wire, hub.target(wire), hub.subscriber(wire).await));
    }
    hub.publish(started("sess_1", "I begin.")).await;
    for (_, _, subscriber) in &mut subscribers {
        subscriber.next_of("aaep:agent.session.started").await;
    }
    hub.stop().await;
    for (wire, target, mut subscriber) in subscribers {
        let close = subscriber.next_of("subscription.close").await;
        assert_eq!(close["subscription_id"], subscriber.id.as_str(), "{wire:?}");
        assert_eq!(close["reason_code"], "producer_shutdown", "{wire:?}");
        assert_eq!(closed_with(&subscriber.end().await), code_on(wire, 1001), "{wire:?}");
        let error = dial(&target, &DialOptions::default()).await.err();
        assert!(matches!(error, Some(DialError::Unreachable { .. })), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_whose_access_was_revoked_is_refused() {
    for &wire in WIRES {
        let hub = TestHub::new().await;
        let mut subscriber = hub.subscriber(wire).await;
        hub.publish(started("sess_1", "I begin.")).await;
        subscriber.next_of("aaep:agent.session.started").await;
        hub.hub().end_access("local").await.expect("told");
        match (wire, subscriber.end().await) {
            // There, the answer to the next request decides.
            (Wire::Sse, LinkEnd::Closed { code: None, .. }) => {}
            (_, LinkEnd::Refused { reason }) => assert!(reason.contains("token"), "{reason}"),
            (wire, other) => panic!("{wire:?} {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_that_is_gone_leaves_no_connection() {
    for &wire in WIRES {
        let hub = TestHub::new().await;
        let subscriber = hub.subscriber(wire).await;
        assert!(hub.hub().guard().connections() > 0);
        drop(subscriber);
        let gone = async {
            while hub.hub().guard().connections() > 0 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.expect("the connections are given back");
    }
}
