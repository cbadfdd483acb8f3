//! Subscribing, changing terms and leaving.

use aaep::ReasonName;

use super::*;
use crate::subscriber::{CannotAsk, HowEnded, IN_FLIGHT_US};

fn rejected() -> Json {
    json!({ "type": "subscription.rejected", "reason_code": "rate_limit", "reason_message": "Full." })
}

fn paced(max_events_per_second: u64) -> Capabilities {
    Capabilities { max_events_per_second: Some(max_events_per_second), ..able() }
}

#[test]
fn the_request_says_what_the_subscriber_can_take() {
    let mut subscriber = SubscriberRules::new(config());
    let request = subscriber.request(able()).expect("a request");
    assert_eq!((request.capabilities.clone(), request.subscriber_id.as_str()), (able(), "reader"));
    assert_eq!(aaep::check(&request), []);
    let got = subscriber.get(1, &accepted(&able()));
    assert_eq!(got.changes, [SubscriberChange::TermsChanged]);
    assert_eq!(subscriber.subscription_id(), Some(&subscription("1")));
    assert!(subscriber.terms().expect("terms").confirmation_reply);
}

#[test]
fn level_2_is_not_claimed_without_answers() {
    let mut subscriber = SubscriberRules::new(config());
    let claim =
        Capabilities { supported_conformance_levels: Some(vec![1, 2]), ..Capabilities::new() };
    assert!(matches!(subscriber.request(claim), Err(CannotAsk::Malformed(_))));
    let claim = Capabilities { supported_conformance_levels: Some(vec![1, 2]), ..able() };
    subscriber.request(claim).expect("a request");
}

#[test]
fn terms_wider_than_asked_count_for_no_more_than_asked() {
    let mut subscriber = SubscriberRules::new(config());
    subscriber.request(paced(2)).expect("a request");
    let got = subscriber.get(1, &accepted(&paced(9)));
    let wide = SubscriberViolation::HonoredTooWide(vec!["max_events_per_second"]);
    assert_eq!(got.violations, [wide]);
    assert_eq!(subscriber.terms().expect("terms").max_events_per_second, Some(2));
}

#[test]
fn narrower_terms_count() {
    let mut subscriber = SubscriberRules::new(config());
    subscriber.request(paced(9)).expect("a request");
    let honored = Capabilities { supports_clarification_reply: Some(false), ..paced(2) };
    assert_eq!(subscriber.get(1, &accepted(&honored)).violations, []);
    let terms = subscriber.terms().expect("terms");
    assert_eq!((terms.max_events_per_second, terms.clarification_reply), (Some(2), false));
}

#[test]
fn another_version_than_asked_is_a_fault_and_an_older_one_is_not() {
    for (spoken, codes_of) in
        [("0.1.0", vec!["wrong_version"]), ("1.1.0", vec!["wrong_version"]), ("1.0.0", vec![])]
    {
        let mut subscriber = SubscriberRules::new(config());
        subscriber.request(able()).expect("a request");
        let got = subscriber.get(1, &with(accepted(&able()), "aaep_version", spoken));
        assert_eq!(codes(&got), codes_of, "{spoken}");
        assert!(subscriber.subscription_id().is_some());
    }
}

#[test]
fn a_manifest_that_had_to_be_signed_is_missed() {
    let mut subscriber = SubscriberRules::new(config());
    let strict = Capabilities { accept_signed_manifests_only: Some(true), ..able() };
    subscriber.request(strict.clone()).expect("a request");
    assert_eq!(codes(&subscriber.get(1, &accepted(&strict))), ["not_signed"]);
    subscriber.request(strict.clone()).expect("a request");
    let signed = with(accepted(&strict), "signed_manifest", "a.b.c");
    assert_eq!(codes(&subscriber.get(2, &signed)), [""; 0]);
}

#[test]
fn a_refused_request_ends_it() {
    let mut subscriber = SubscriberRules::new(config());
    subscriber.request(able()).expect("a request");
    let got = subscriber.get(1, &rejected());
    let [SubscriberChange::SubscriptionEnded { how: HowEnded::Rejected(why) }] = &got.changes[..]
    else {
        panic!("{got:?}")
    };
    assert_eq!(why.reason_message, "Full.");
    assert_eq!(subscriber.subscription_id(), None);
}

#[test]
fn other_terms_change_only_what_they_name() {
    let mut subscriber = subscribed(&paced(5));
    let change = Capabilities { max_events_per_second: Some(1), ..Capabilities::new() };
    let message = subscriber.renegotiate(change.clone()).expect("a message");
    assert_eq!(
        (message.subscription_id, message.capabilities),
        (subscription("1"), change.clone())
    );
    assert_eq!(subscriber.renegotiate(change), Err(CannotAsk::AlreadyAsked));
    assert_eq!(subscriber.terms().expect("terms").max_events_per_second, Some(5), "not yet");
    let got = subscriber.get(1, &accepted(&paced(1)));
    assert_eq!((got.changes, got.violations), (vec![SubscriberChange::TermsChanged], vec![]));
    let terms = subscriber.terms().expect("terms");
    assert_eq!((terms.max_events_per_second, terms.confirmation_reply), (Some(1), true));
}

#[test]
fn events_under_the_old_terms_may_still_come_for_a_while() {
    let mut subscriber = subscribed(&paced(3));
    let change = Capabilities { max_events_per_second: Some(1), ..Capabilities::new() };
    subscriber.renegotiate(change).expect("a message");
    subscriber.get(1, &accepted(&paced(1)));
    for percent in 0..3 {
        assert_eq!(subscriber.get(2, &progress(percent)).violations, []);
    }
    let later = IN_FLIGHT_US / 1000 + 2000;
    subscriber.get(later, &progress(10));
    assert_eq!(codes(&subscriber.get(later, &progress(11))), ["too_fast"]);
}

#[test]
fn a_refused_change_of_terms_ends_the_subscription_and_its_questions() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    subscriber.renegotiate(Capabilities::new()).expect("a message");
    let got = subscriber.get(2, &rejected());
    assert_eq!(got.changes[0], withdrawn("q", WhyWithdrawn::SubscriptionEnded));
    assert!(matches!(
        got.changes[1],
        SubscriberChange::SubscriptionEnded { how: HowEnded::Rejected(_) }
    ));
    assert_eq!(codes(&subscriber.get(3, &progress(1))), ["not_subscribed"]);
}

#[test]
fn leaving_says_goodbye_and_answers_nothing_more() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    let reason = ReasonName::parse("subscriber_shutdown").ok();
    let (message, changes) = subscriber.close(reason, None).expect("a message");
    assert_eq!(message.subscription_id, subscription("1"));
    assert_eq!(aaep::check(&message), []);
    assert_eq!(changes[0], withdrawn("q", WhyWithdrawn::SubscriptionEnded));
    assert_eq!(changes[1], SubscriberChange::SubscriptionEnded { how: HowEnded::ClosedByUs });
    let why = CannotReply::Withdrawn(WhyWithdrawn::SubscriptionEnded);
    assert_eq!(subscriber.accept(2, "q"), Err(why));
    assert_eq!(subscriber.close(None, None), Err(CannotAsk::NotSubscribed));
    assert_eq!(subscriber.renegotiate(able()), Err(CannotAsk::NotSubscribed));
}

#[test]
fn a_producer_may_close_its_own_subscription_only() {
    let mut subscriber = listening();
    let close = |id: &str| json!({ "type": "subscription.close", "subscription_id": id });
    assert_eq!(codes(&subscriber.get(1, &close("sub_2"))), ["wrong_subscription"]);
    assert!(subscriber.subscription_id().is_some());
    let got = subscriber.get(2, &close("sub_1"));
    let how = HowEnded::ClosedByProducer(None);
    assert_eq!(got.changes, [SubscriberChange::SubscriptionEnded { how }]);
}

#[test]
fn a_producer_that_stops_ends_nothing() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    let got = subscriber.get(
        2,
        &json!({
            "type": "subscription.close", "subscription_id": "sub_1",
            "reason_code": "producer_shutdown", "reason_message": "Good night.",
        }),
    );
    let reason = Some("Good night.".to_owned());
    assert_eq!(got.changes, [SubscriberChange::ProducerStops { reason }]);
    assert!(subscriber.subscription_id().is_some());
    assert_eq!(subscriber.open_asks().count(), 1);
}

#[test]
fn a_question_asked_again_on_a_new_subscription_opens_again() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    subscriber.get(1, &confirmation("r", 60));
    subscriber.accept(2, "r").expect("a reply");
    subscriber.get(3, &json!({ "type": "subscription.close", "subscription_id": "sub_1" }));
    subscriber.request(able()).expect("a request");
    subscriber.get(4, &with(accepted(&able()), "subscription_id", "sub_2"));
    let got = subscriber.get(5, &confirmation("q", 60));
    assert!(is_repeated(&got) && got.changes == [opened("q")], "{got:?}");
    let got = subscriber.get(5, &confirmation("r", 60));
    assert!(is_repeated(&got) && got.changes.is_empty(), "what was answered stays answered");
    assert_eq!(subscriber.accept(6, "q").expect("a reply").subscription_id, subscription("2"));
}

#[test]
fn what_nothing_called_for_is_named_and_ignored() {
    let mut subscriber = listening();
    let reply = json!({
        "type": "confirmation.reply", "reply_token": "rpl_q", "decision": "accept",
        "subscription_id": "sub_1", "timestamp": moment(0),
    });
    let request = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "x",
        "capabilities": {},
    });
    for message in [accepted(&able()), rejected(), reply, request] {
        let got = subscriber.get(1, &message);
        assert_eq!(codes(&got), ["unexpected"], "{message}");
        assert!(matches!(got.heard, Some(HeardMessage::Other(_))));
    }
    assert_eq!(subscriber.subscription_id(), Some(&subscription("1")));
    let change = Capabilities::new();
    subscriber.renegotiate(change).expect("a message");
    let other = with(accepted(&able()), "subscription_id", "sub_9");
    assert_eq!(codes(&subscriber.get(2, &other)), ["wrong_subscription"]);
}

#[test]
fn a_change_of_terms_that_got_lost_can_be_asked_for_again() {
    let mut subscriber = subscribed(&able());
    subscriber.renegotiate(paced(2)).expect("a message");
    subscriber.interrupted();
    subscriber.renegotiate(paced(2)).expect("a message");
}

#[test]
fn a_question_of_an_ended_session_does_not_open_again() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    subscriber.close(None, None).expect("a message");
    subscriber.get(2, &completed());
    subscriber.request(able()).expect("a request");
    subscriber.get(3, &accepted(&able()));
    let got = subscriber.get(4, &confirmation("q", 60));
    assert!(is_repeated(&got) && got.changes.is_empty(), "{got:?}");
}
