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

/// The code where the wire has one: server-sent events have none.
fn code_on(wire: Wire, code: u16) -> Option<u16> {
    (wire != Wire::Sse).then_some(code)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_ends_its_subscription() {
    for &wire in WIRES {
        let hub = TestHub::new().await;
        let mut listener = hub.listener(wire).await;
        let id = SubscriptionId::parse(&listener.id).expect("an id");
        listener
            .say(&json!({ "type": "subscription.close", "subscription_id": listener.id }))
            .await;
        assert_eq!(closed_with(&listener.end().await), code_on(wire, 4005), "{wire:?}");
        let local = Principal::local();
        assert!(!hub.hub().has_subscription(&local, &id).await.expect("an answer"), "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_is_rejected_is_told_and_then_ends() {
    for &wire in WIRES {
        let hub = TestHub::new().await;
        let mut listener = hub.dial(wire, DialOptions::default()).await.expect("a link");
        let mut request = subscription_request();
        request["aaep_version"] = "99.0.0".into();
        listener.say(&request).await;
        let rejected = listener.next().await;
        assert_eq!(rejected["type"], "subscription.rejected", "{wire:?}");
        assert_eq!(rejected["reason_code"], "version_unsupported");
        assert_eq!(closed_with(&listener.end().await), Some(4001), "{wire:?}");
        assert!(listener.link.sender.send("late".to_owned()).await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_stops_says_so() {
    let mut hub = TestHub::new().await;
    let mut listeners = Vec::new();
    for &wire in WIRES {
        listeners.push((wire, hub.target(wire), hub.listener(wire).await));
    }
    hub.publish(started("sess_1", "I begin.")).await;
    for (_, _, listener) in &mut listeners {
        listener.next_of("aaep:agent.session.started").await;
    }
    hub.stop().await;
    for (wire, target, mut listener) in listeners {
        let close = listener.next_of("subscription.close").await;
        assert_eq!(close["subscription_id"], listener.id.as_str(), "{wire:?}");
        assert_eq!(close["reason_code"], "producer_shutdown", "{wire:?}");
        assert_eq!(closed_with(&listener.end().await), code_on(wire, 1001), "{wire:?}");
        let error = dial(&target, &DialOptions::default()).await.err();
        assert!(matches!(error, Some(DialError::Unreachable { .. })), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_be_here_any_more_is_refused() {
    for &wire in WIRES {
        let hub = TestHub::new().await;
        let mut listener = hub.listener(wire).await;
        hub.publish(started("sess_1", "I begin.")).await;
        listener.next_of("aaep:agent.session.started").await;
        hub.hub().end_access("local").await.expect("told");
        match (wire, listener.end().await) {
            // What the next request is told decides there.
            (Wire::Sse, LinkEnd::Closed { code: None, .. }) => {}
            (_, LinkEnd::Refused { reason }) => assert!(reason.contains("token"), "{reason}"),
            (wire, other) => panic!("{wire:?} {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_is_gone_leaves_no_connection() {
    for &wire in WIRES {
        let hub = TestHub::new().await;
        let listener = hub.listener(wire).await;
        assert!(hub.hub().guard().connections() > 0);
        drop(listener);
        let gone = async {
            while hub.hub().guard().connections() > 0 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.expect("the connections are given back");
    }
}
