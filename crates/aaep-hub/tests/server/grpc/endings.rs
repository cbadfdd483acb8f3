//! How calls end: by either side, with a reason or without.

use std::time::Duration;

use serde_json::json;
use tonic::Code;

use super::support::*;
use crate::support::*;

#[test]
fn a_rejected_subscription_ends_the_call() {
    let hub = TestHub::new();
    let mut call = Call::begin(&hub, "").expect("a call");
    let mut wish = subscription_request();
    wish["aaep_version"] = json!("9.0.0");
    call.say(&wish);
    let rejected = call.next();
    assert_eq!(rejected["type"], "subscription.rejected");
    assert_eq!(rejected["reason_code"], "version_unsupported");
    assert_eq!(call.end(), (Code::FailedPrecondition, Some(4001)));
}

#[test]
fn a_subscriber_that_closes_its_subscription_ends_well() {
    let hub = TestHub::new();
    let mut call = Call::begin(&hub, "").expect("a call");
    let id = call.subscribe();
    call.say(&close(&id));
    assert_eq!(call.end(), (Code::Ok, Some(4005)));
}

#[test]
fn what_was_said_before_the_last_word_counts() {
    let hub = TestHub::new();
    let mut call = Call::begin(&hub, "").expect("a call");
    let id = call.subscribe();
    hub.begin("sess_1");
    let open = asked(&hub);
    let asked = call.next_of("aaep:agent.awaiting.confirmation");
    call.say(&reply(asked["reply_token"].as_str().expect("a token"), &id, "accept"));
    call.say = None;
    assert_eq!(call.end(), (Code::Ok, Some(1000)));
    assert_eq!(outcome(&hub, &open), (json!("accept"), json!("reply")));
}

#[test]
fn a_subscriber_that_is_cut_off_lets_the_default_decide() {
    let hub = TestHub::new();
    let mut call = Call::begin(&hub, "").expect("a call");
    call.subscribe();
    hub.begin("sess_1");
    let mut ask = question("sess_1");
    ask["timeout_seconds"] = json!(5);
    let open = hub.post("/aaep/v1/asks?wait_seconds=0", &ask);
    call.next_of("aaep:agent.awaiting.confirmation");
    drop(call);
    let state = hub.get(open.header("location").expect("a place")).json();
    assert_eq!(state["outcome"], "reject", "{state}");
    assert_ne!(state["decided_by"], "reply", "{state}");
}

#[test]
fn a_subscriber_that_comes_back_goes_on_where_it_was() {
    let hub = TestHub::new();
    let mut call = Call::begin(&hub, "").expect("a call");
    let id = call.subscribe();
    hub.begin("sess_1");
    let last = call.next()["event_id"].clone();
    drop(call);
    let event = progress("sess_1", "evt_00000000000000000000000000000001");
    assert_eq!(hub.post("/aaep/v1/publish", &event).status, 200);
    let mut call = Call::begin(&hub, "").expect("a call");
    let mut wish = subscription_request();
    wish["extensions"] =
        json!({ "agentvoice": { "resume": { "subscription_id": id, "last_event_id": last } } });
    call.say(&wish);
    assert_eq!(call.next()["type"], "subscription.accepted");
    assert_eq!(call.next()["event_id"], event["event_id"]);
}

#[test]
fn a_message_that_is_too_long_ends_the_call() {
    let hub = TestHub::new();
    // One message is a little too long, and one so long that it is not even read.
    for bytes in [(1 << 20) + 1, 3 << 20] {
        let mut call = Call::begin(&hub, "").expect("a call");
        call.say_bytes(&vec![b' '; bytes]);
        assert_eq!(call.end(), (Code::ResourceExhausted, Some(1009)), "{bytes}");
    }
    Call::begin(&hub, "").expect("a call").subscribe();
}

#[test]
fn what_is_not_text_ends_the_call() {
    let hub = TestHub::new();
    let mut call = Call::begin(&hub, "").expect("a call");
    call.say_bytes(b"\"\xff\"");
    assert_eq!(call.end(), (Code::InvalidArgument, Some(1007)));
}

#[test]
fn a_caller_that_sends_only_invalid_messages_is_disconnected() {
    let hub = TestHub::new();
    let mut call = Call::begin(&hub, "").expect("a call");
    for _ in 0..16 {
        call.say_bytes(b"{");
    }
    assert_eq!(call.end(), (Code::InvalidArgument, Some(4004)));
}

#[test]
fn a_call_ends_when_its_time_is_over() {
    let hub = TestHub::new();
    let mut call =
        Call::with(&mut client(&hub), "", Some(Duration::from_millis(300))).expect("a call");
    assert_eq!(call.end().0, Code::DeadlineExceeded);
    drop(call);
    hub.wait_until_empty();
}

#[test]
fn a_hub_that_stops_says_so() {
    let hub = TestHub::new();
    let mut client = client(&hub);
    let mut calls = [(); 2].map(|()| Call::with(&mut client, "", None).expect("a call"));
    for call in &mut calls {
        call.subscribe();
    }
    hub.stop();
    for call in &mut calls {
        assert_eq!(call.end(), (Code::Unavailable, Some(1001)));
    }
}

#[test]
fn a_subscriber_that_is_elsewhere_now_is_told_so() {
    let hub = TestHub::new();
    let mut first = Call::begin(&hub, "").expect("a call");
    let id = first.subscribe();
    let mut second = Call::begin(&hub, "").expect("a call");
    let mut wish = subscription_request();
    wish["extensions"] = json!({ "agentvoice": { "resume": { "subscription_id": id } } });
    second.say(&wish);
    assert_eq!(second.next()["type"], "subscription.accepted");
    assert_eq!(first.end(), (Code::Ok, Some(4000)));
}
