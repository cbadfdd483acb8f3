//! What is heard: every event once, whatever its type, and critical ones always.

use aaep::{Code, EventFilters, Payload, TypePattern};

use super::*;

#[test]
fn an_event_that_comes_again_is_heard_once() {
    let mut subscriber = listening();
    let event = progress(10);
    assert_eq!(heard_event(&subscriber.get(1, &event)).envelope.event_id, event_id(&event));
    let again = subscriber.get(2, &event);
    assert_eq!(again.heard, Some(HeardMessage::Repeated(event_id(&event))));
    assert_eq!((again.changes, again.violations), (vec![], vec![]));
}

#[test]
fn the_last_new_event_is_where_to_resume() {
    assert_eq!(SubscriberRules::new(config()).last_event_id(), None);
    let mut subscriber = listening();
    subscriber.get(1, &progress(10));
    subscriber.get(2, &started());
    assert_eq!(subscriber.last_event_id(), Some(&event_id(&progress(10))));
}

#[test]
fn an_id_given_out_twice_does_not_cost_the_second_event() {
    let mut subscriber = listening();
    subscriber.get(1, &progress(10));
    let ask = with(confirmation("q", 60), "event_id", progress(10)["event_id"].clone());
    let got = subscriber.get(2, &ask);
    assert_eq!(codes(&got), ["event_id_reused"]);
    assert_eq!(got.changes.last(), Some(&opened("q")));
    assert!(matches!(heard_event(&got).payload, Payload::AwaitingConfirmation(_)));
}

#[test]
fn an_unknown_type_is_passed_on_and_the_subscription_lives() {
    let mut subscriber = listening();
    for name in ["aaep:agent.purple.flamingo", "medai:patient.consulted"] {
        let id = format!("evt_{}", name.len());
        let event = with(with(event("x", json!({ "mood": "calm" })), "type", name), "event_id", id);
        let got = subscriber.get(1, &event);
        let Payload::Extension(payload) = &heard_event(&got).payload else { panic!("not kept") };
        assert_eq!(payload.fields["mood"], "calm");
    }
    assert_eq!(codes(&subscriber.get(2, &progress(20))), [""; 0]);
    assert!(subscriber.subscription_id().is_some());
}

#[test]
fn an_unknown_extension_is_not_a_fault() {
    let mut subscriber = listening();
    let event = with(
        progress(10),
        "@context",
        json!(["https://aaep-protocol.org/context/v1", "https://example.org/haptic"]),
    );
    let got = subscriber.get(1, &with(event, "extensions", json!({ "haptic": { "pulse": 3 } })));
    assert_eq!(got.violations, []);
    heard_event(&got);
}

#[test]
fn fields_of_a_newer_version_are_borne_with_and_logged() {
    let mut subscriber = listening();
    let got = subscriber.get(1, &with(progress(10), "mood", "calm"));
    heard_event(&got);
    let [SubscriberViolation::Tolerated(notes)] = &got.violations[..] else { panic!("{got:?}") };
    assert_eq!(notes[0].code, Code::UnknownField);
}

#[test]
fn each_of_the_five_invalid_envelopes_is_reported() {
    let mut without_id = progress(1);
    without_id.as_object_mut().expect("an object").remove("event_id");
    let undeclared = with(progress(4), "@context", "https://aaep-protocol.org/context/v1");
    let five = [
        (without_id, "invalid"),
        (with(progress(2), "timestamp", "May 24, 2026 14:22:11"), "invalid"),
        (with(progress(3), "type", "aaep:agent.purple.flamingo"), "tolerated"),
        (with(undeclared, "extensions", json!({ "medai": { "x": true } })), "tolerated"),
        (with(progress(5), "custom_field", "value"), "tolerated"),
    ];
    let mut subscriber = listening();
    for (document, code) in five {
        let got = subscriber.get(1, &document);
        assert!(codes(&got).contains(&code), "{document}: {got:?}");
        assert_eq!(got.heard.is_none(), code == "invalid", "{document}");
    }
}

#[test]
fn what_is_dropped_for_its_size_is_reported_with_the_reason() {
    let mut subscriber = listening();
    let got = subscriber.get(1, &with(progress(1), "padding", "x".repeat(aaep::MAX_BYTES)));
    let [SubscriberViolation::Invalid { violations, .. }] = &got.violations[..] else {
        panic!("{got:?}")
    };
    assert_eq!((violations[0].code, got.heard), (Code::TooLarge, None));
}

#[test]
fn a_burst_as_large_as_the_promise_is_fine_and_one_more_is_too_fast() {
    let terms = Capabilities { max_events_per_second: Some(3), ..able() };
    let mut subscriber = subscribed(&terms);
    for percent in 0..3 {
        assert_eq!(subscriber.get(10, &progress(percent)).violations, []);
    }
    let got = subscriber.get(20, &progress(3));
    assert_eq!(got.violations, [SubscriberViolation::TooFast { honored: 3, heard: 4 }]);
    heard_event(&got);
    assert_eq!(subscriber.get(30, &progress(4)).violations, [], "said once a second");
    assert_eq!(subscriber.get(2000, &progress(5)).violations, [], "the second is over");
}

#[test]
fn an_even_stream_at_the_promised_rate_is_never_too_fast() {
    let terms = Capabilities { max_events_per_second: Some(5), ..able() };
    let mut subscriber = subscribed(&terms);
    for turn in 0..100 {
        assert_eq!(subscriber.get(turn * 200, &progress(turn)).violations, [], "event {turn}");
    }
}

#[test]
fn a_flooded_subscriber_still_hears_every_critical_event() {
    let terms = Capabilities { max_events_per_second: Some(1), ..able() };
    let mut subscriber = subscribed(&terms);
    for turn in 0..200 {
        heard_event(&subscriber.get(1, &progress(turn)));
        let got = subscriber.get(1, &confirmation(&turn.to_string(), 60));
        assert_eq!(got.violations, [], "critical events do not count");
        assert!(got.changes.contains(&opened(&turn.to_string())));
    }
    assert_eq!(subscriber.open_asks().count(), 200);
}

#[test]
fn a_critical_event_that_the_terms_rule_out_is_heard_without_complaint() {
    let filters = EventFilters {
        include: None,
        exclude: Some(vec![TypePattern::parse("aaep:agent.*").expect("pattern")]),
        other: aaep::Object::new(),
    };
    let mut subscriber = subscribed(&Capabilities { event_filters: Some(filters), ..able() });
    let got = subscriber.get(1, &confirmation("q", 60));
    assert_eq!(got.violations, []);
    heard_event(&got);
    let got = subscriber.get(2, &progress(1));
    assert_eq!(codes(&got), ["excluded"]);
    heard_event(&got);
    let got = subscriber.get(3, &notice("q", "accept", "reply"));
    assert_eq!(got.violations, [], "a notice passes filters (ruling 18)");
}

#[test]
fn text_is_joined_and_kept_as_heard() {
    let mut subscriber = listening();
    subscriber.get(1, &chunk(0, "Ọ̀sán. ", false));
    subscriber.get(2, &chunk(6, "Done.", true));
    let text = subscriber.text(&session("1"), None).expect("a text");
    assert_eq!((text.text.as_str(), text.is_complete, text.is_cut), ("Ọ̀sán. Done.", true, false));
    assert_eq!(subscriber.texts(&session("1")).count(), 1);
    assert_eq!(subscriber.texts(&session("2")).count(), 0);
}

#[test]
fn text_with_a_hole_is_a_fault_and_is_kept() {
    let mut subscriber = listening();
    subscriber.get(1, &chunk(0, "One.", false));
    let got = subscriber.get(2, &chunk(9, "Three.", true));
    assert_eq!(codes(&got), ["position_does_not_follow"]);
    assert_eq!(subscriber.text(&session("1"), None).expect("a text").text, "One.Three.");
}

#[test]
fn nothing_is_said_of_a_stream_without_handshake() {
    let mut subscriber = SubscriberRules::new(config());
    assert_eq!(codes(&subscriber.get(0, &started())), ["not_subscribed"]);
    subscriber.without_handshake(Some(subscription("legacy")));
    for percent in 0..50 {
        assert_eq!(subscriber.get(1, &progress(percent)).violations, []);
    }
    subscriber.get(2, &confirmation("q", 60));
    assert_eq!(subscriber.accept(3, "q").expect("a reply").subscription_id, subscription("legacy"));
}
