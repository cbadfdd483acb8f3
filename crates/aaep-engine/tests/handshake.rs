//! The handshake through the engine: what is granted, refused, changed and ended (chapter 5).

#[path = "common/support.rs"]
mod support;

use aaep::extension::{AskOutcome, DecidedBy};
use aaep::handshake::ReasonCode;
use aaep::{Message, Severity};
use aaep_engine::terms::Door;
use aaep_engine::{EndReason, EngineConfig, EngineInput, HearingScope, Output, PrincipalNumber};
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use support::*;

/// The answer to a request at this door, in this version.
fn answer(world: &mut World, door: Door, version: &str, wishes: Json) -> Vec<Output> {
    let mut document = json!({
        "type": "subscription.request",
        "aaep_version": version,
        "subscriber_id": "reader",
    });
    document["capabilities"] = wishes;
    let Message::SubscriptionRequest(request) = message(&document) else { panic!("request") };
    let (principal, may_reply, hears, resume) = (1, true, HearingScope::All, None);
    world.handle(EngineInput::Subscribe {
        principal: PrincipalNumber(principal),
        door,
        may_reply,
        hears,
        request,
        resume,
    })
}

#[test]
fn a_request_is_granted_with_terms_no_wider_than_asked() {
    let mut config = EngineConfig::new(offer(), [7; 32]);
    config.offer.max_events_per_second = Some(4);
    let mut world = World::with(config);
    let wishes = json!({
        "max_events_per_second": 9,
        "languages": ["fr", "yo", "es"],
        "coalesce_boundaries": ["completion", "sentence"],
        "event_filters": { "include": ["aaep:agent.tool.*"], "exclude": ["aaep:agent.tool.invoked"] },
        "haptic": { "patterns": ["pulse"] },
    });
    let outputs = answer(&mut world, Door::Open, "1.0.0", wishes);
    let (_, message) = accepted(&outputs).expect("a grant");
    let errors = aaep::check(message).into_iter().filter(|it| it.severity == Severity::Error);
    assert_eq!(errors.count(), 0);
    let honored = serde_json::to_value(&message.honored_capabilities).expect("json");
    assert_eq!(honored["max_events_per_second"], json!(4));
    assert_eq!(honored["languages"], json!(["yo", "es"]));
    assert_eq!(honored["coalesce_boundaries"], json!(["sentence", "completion"]));
    assert_eq!(honored["event_filters"]["exclude"], json!(["aaep:agent.tool.invoked"]));
    assert!(honored.get("haptic").is_none(), "unknown extensions have no effect");
    assert!(message.negotiation_notes.is_some());
}

#[test]
fn every_reason_to_reject_a_subscriber_has_its_code_and_leaves_nothing_behind() {
    let signed = json!({ "accept_signed_manifests_only": true });
    let reserved = json!({ "aaep": { "x": 1 } });
    let cases = [
        (Door::AuthenticationRequired, "1.0.0", json!({}), ReasonCode::AuthenticationRequired),
        (Door::AuthorizationDenied, "1.0.0", json!({}), ReasonCode::AuthorizationDenied),
        (Door::TransportUnavailable, "1.0.0", json!({}), ReasonCode::TransportUnavailable),
        (Door::Failing, "1.0.0", json!({}), ReasonCode::Unknown),
        (Door::Open, "2.0.0", json!({}), ReasonCode::VersionUnsupported),
        (Door::Open, "1.0.0", signed, ReasonCode::ManifestSignatureRequired),
        (Door::Open, "1.0.0", reserved, ReasonCode::CapabilitiesIncompatible),
        (Door::Open, "1.0.0", json!({ "languages": ["fr"] }), ReasonCode::CapabilitiesIncompatible),
    ];
    let mut config = EngineConfig::new(offer(), [7; 32]);
    config.offer.only_offered_languages = true;
    let mut world = World::with(config);
    world.start(SESSION);
    for (door, version, wishes, code) in cases {
        let outputs = answer(&mut world, door, version, wishes);
        assert_eq!(outputs.len(), 1, "{outputs:?}");
        let message = rejected(&outputs).expect("a rejection");
        assert_eq!(message.reason_code, code);
        assert!(message.reason_message.ends_with('.'));
        assert_eq!((world.engine.subscriptions(), world.engine.audiences()), (0, 0));
    }
}

#[test]
fn a_full_hub_refuses_subscribers_until_one_leaves() {
    let mut config = EngineConfig::new(offer(), [7; 32]);
    config.offer.max_concurrent_subscriptions = 2;
    let mut world = World::with(config);
    let one = world.listen(1, json!({}));
    let two = world.listen(2, json!({}));
    let full = answer(&mut world, Door::Open, "1.0.0", json!({}));
    let message = rejected(&full).expect("a rejection");
    assert_eq!(message.reason_code, ReasonCode::RateLimit);
    assert!(message.retry_after_seconds.is_some());
    world.disconnect(&two);
    assert!(rejected(&answer(&mut world, Door::Open, "1.0.0", json!({}))).is_some(), "kept");
    world.close(&one);
    assert!(accepted(&answer(&mut world, Door::Open, "1.0.0", json!({}))).is_some());
}

#[test]
fn a_broken_subscription_is_kept_for_its_time_and_then_closed() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.disconnect(&one);
    world.pass_s(3599);
    assert_eq!(world.engine.subscriptions(), 1);
    let outputs = world.pass_s(2);
    assert!(outputs.contains(&Output::Closed { subscriber: one.key }));
    assert_eq!((world.engine.subscriptions(), world.engine.audiences()), (0, 0));
    assert_eq!(world.reconnect(&one, None), [Output::NoSuchSubscription]);
}

#[test]
fn a_broken_subscription_ends_in_time_even_if_it_was_renegotiated_meanwhile() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.disconnect(&one);
    world.renegotiate(&one, json!({ "preferred_verbosity": "terse" }));
    world.pass_s(3601);
    assert_eq!(world.engine.subscriptions(), 0);
}

#[test]
fn a_closed_subscription_gets_nothing_more_and_only_its_owner_closes_it() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let thief = Subscriber { principal: 2, ..one.clone() };
    assert_eq!(world.close(&thief), [Output::NoSuchSubscription]);
    assert!(world.close(&one).contains(&Output::Closed { subscriber: one.key }));
    world.take(&one);
    world.fail(SESSION);
    assert!(world.heard(&one).is_empty());
    assert_eq!(world.close(&one), [Output::NoSuchSubscription]);
    assert_eq!(world.reconnect(&one, None), [Output::NoSuchSubscription]);
}

#[test]
fn a_producer_that_ends_a_subscription_says_so_first() {
    let reasons = [EndReason::ProducerShutdown, EndReason::AccessEnded, EndReason::TooSlow];
    for reason in reasons {
        let mut world = World::started();
        let one = world.listen(1, everything());
        world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
        world.take(&one);
        let outputs = world.handle(EngineInput::End { subscriber: one.key, reason });
        let said = outputs.iter().position(|it| {
            matches!(it, Output::Ended { subscriber, message } if *subscriber == one.key
                && message.subscription_id == one.id
                && message.reason_code.as_ref().is_some_and(|code| code.as_str() == reason.code())
                && aaep::check(&**message).is_empty())
        });
        let closed = outputs.iter().position(|it| *it == Output::Closed { subscriber: one.key });
        assert!(said.is_some() && said < closed, "{outputs:?}");
        let settled = [("rpl_1", AskOutcome::Reject, DecidedBy::NoListener)];
        assert_eq!(resolved(&outputs), settled, "nobody else could answer");
        world.fail(SESSION);
        assert!(world.heard(&one).is_empty());
        assert_eq!(world.reconnect(&one, None), [Output::NoSuchSubscription]);
        assert_eq!(world.handle(EngineInput::End { subscriber: one.key, reason }), []);
    }
}

#[test]
fn a_disconnected_subscriber_is_not_written_to_when_its_subscription_ends() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.disconnect(&one);
    let reason = EndReason::AccessEnded;
    let outputs = world.handle(EngineInput::End { subscriber: one.key, reason });
    assert!(!outputs.iter().any(|it| matches!(it, Output::Ended { .. })));
    assert!(outputs.contains(&Output::Closed { subscriber: one.key }));
    assert_eq!(world.engine.subscriptions(), 0);
    assert_eq!(world.engine.deadline(), None, "nothing is due for it any more");
}

#[test]
fn only_the_owner_renegotiates_or_comes_back() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let thief = Subscriber { principal: 2, ..one.clone() };
    assert_eq!(world.renegotiate(&thief, json!({})), [Output::NoSuchSubscription]);
    assert_eq!(world.reconnect(&thief, None), [Output::NoSuchSubscription]);
    world.change("idle", "thinking");
    assert_eq!(world.heard(&one).last().map(Heard::kind), Some("state.changed"));
}

#[test]
fn a_renegotiation_changes_only_what_it_names_and_from_then_on() {
    let mut world = World::started();
    let one = world
        .listen(1, json!({ "preferred_verbosity": "terse", "languages": ["es"], "pace_wpm": 900 }));
    let words = json!({
        "from_state": "idle", "to_state": "thinking",
        "summary_terse": "Thinks.", "summary_normal": "Is thinking.",
        "summary_detailed": "Is thinking about the folder.",
    });
    world.say("state.changed", words);
    let outputs = world.renegotiate(&one, json!({ "preferred_verbosity": "detailed" }));
    let (_, message) = accepted(&outputs).expect("a grant");
    assert_eq!(message.subscription_id, one.id);
    let honored = serde_json::to_value(&message.honored_capabilities).expect("json");
    assert_eq!(honored["preferred_verbosity"], json!("detailed"));
    assert_eq!((&honored["languages"], &honored["pace_wpm"]), (&json!(["es"]), &json!(900)));
    let words = json!({
        "from_state": "thinking", "to_state": "deciding",
        "summary_terse": "Chooses.", "summary_normal": "Is choosing.",
        "summary_detailed": "Is choosing a folder.",
    });
    world.say("state.changed", words);
    let heard = world.heard(&one);
    let last_two: Vec<_> = heard.iter().rev().take(2).collect();
    assert_eq!(last_two[1].text("summary_terse"), "Thinks.");
    assert!(last_two[1].json.get("summary_detailed").is_none());
    assert_eq!(last_two[0].text("summary_detailed"), "Is choosing a folder.");
    assert!(last_two[0].json.get("summary_terse").is_none());
}

#[test]
fn another_request_on_the_same_connection_replaces_all_terms_and_tells_nothing_twice() {
    let mut world = World::started();
    let terse = json!({
        "preferred_verbosity": "terse", "supports_confirmation_reply": true, "pace_wpm": 900,
    });
    let one = world.listen(1, terse);
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    world.take(&one);
    let outputs = world.replace(&one, json!({ "supports_confirmation_reply": true }));
    let (subscriber, message) = accepted(&outputs).expect("a grant");
    assert_eq!(subscriber, one.key);
    assert_ne!(message.subscription_id, one.id);
    let honored = serde_json::to_value(&message.honored_capabilities).expect("json");
    assert!(honored.get("pace_wpm").is_none(), "what is not named is at its default: {honored}");
    world.pass_s(2);
    assert!(world.take(&one).is_empty(), "it had heard everything, the question too");
    assert_eq!(
        world.confirm(&one, "rpl_1", "accept").first(),
        Some(&Output::Replied { is_accepted: false })
    );
    let renamed = granted(1, &outputs);
    let settled = world.confirm(&renamed, "rpl_1", "reject");
    assert!(settled.contains(&Output::Replied { is_accepted: true }), "{settled:?}");
    assert_eq!(world.heard(&renamed).len(), 1, "how it was settled");
}

#[test]
fn another_request_that_is_not_granted_leaves_the_terms_as_they_were() {
    let mut world = World::started();
    let one = world.listen(1, json!({ "preferred_verbosity": "terse" }));
    world.take(&one);
    let outputs = world.replace(&one, json!({ "accept_signed_manifests_only": true }));
    assert!(accepted(&outputs).is_none());
    assert!(matches!(&outputs[..], [Output::Rejected { subscriber: None, .. }]), "{outputs:?}");
    world.change("idle", "thinking");
    assert_eq!(world.heard(&one).len(), 1);
    assert!(accepted(&world.renegotiate(&one, json!({}))).is_some(), "under its old name");
}

#[test]
fn what_is_held_goes_on_under_the_terms_of_another_request() {
    let mut world = World::started();
    let one = world.listen(1, limited(1, json!({})));
    world.pass_s(2);
    world.take(&one);
    for number in 0..4 {
        let id = format!("call_{number}");
        let fields = json!({ "tool": "list", "summary_normal": "Lists.", "tool_call_id": id });
        world.say("tool.invoked", fields);
    }
    assert_eq!(world.take(&one).len(), 1);
    let outputs = world.replace(&one, json!({}));
    assert!(accepted(&outputs).is_some());
    assert_eq!(world.take(&one).len(), 3, "the rate is gone, and what it held comes once");
}

#[test]
fn a_renegotiated_rate_applies_at_once_and_delivery_goes_on() {
    let mut world = World::started();
    let one = world.listen(1, limited(5, json!({})));
    let outputs = world.renegotiate(&one, json!({ "max_events_per_second": 2 }));
    assert!(accepted(&outputs).is_some());
    world.pass_s(2);
    world.take(&one);
    for number in 0..5 {
        let id = format!("call_{number}");
        let fields = json!({ "tool": "list", "summary_normal": "Lists.", "tool_call_id": id });
        world.say("tool.invoked", fields);
    }
    assert_eq!(world.heard(&one).len(), 2);
    world.pass_s(5);
    assert_eq!(world.heard(&one).len(), 5);
}

#[test]
fn a_renegotiated_filter_holds_for_what_follows() {
    let mut world = World::started();
    let one = world.listen(1, json!({}));
    world.change("idle", "thinking");
    let filters = json!({ "event_filters": { "exclude": ["aaep:agent.state.*"] } });
    world.renegotiate(&one, filters);
    world.take(&one);
    world.change("thinking", "deciding");
    assert!(world.heard(&one).is_empty());
    world.say("progress.updated", json!({ "progress": { "percent": 3 } }));
    assert_eq!(kinds(world.heard(&one)), ["progress.updated"]);
}

#[test]
fn a_renegotiated_language_holds_for_what_follows() {
    let mut world = World::started();
    let one = world.listen(1, json!({ "languages": ["es"] }));
    let say = |world: &mut World, call: &str| {
        let words = json!({
            "tool": "list", "tool_call_id": call,
            "summary_normal": "Lists the folder.", "summary_normal_es": "Lista la carpeta.",
            "summary_normal_yo": "Ó ń ka àpò.",
        });
        world.say("tool.invoked", words);
        let heard = world.heard(&one).last().expect("told");
        let language = heard.json["localization_hints"]["primary_language"].clone();
        (heard.text("summary_normal").to_owned(), language)
    };
    assert_eq!(say(&mut world, "call_1"), ("Lista la carpeta.".to_owned(), json!("es")));
    let outputs = world.renegotiate(&one, json!({ "languages": ["yo", "en"] }));
    assert!(accepted(&outputs).is_some());
    assert_eq!(say(&mut world, "call_2"), ("Ó ń ka àpò.".to_owned(), json!("yo")));
}

#[test]
fn a_renegotiation_that_cannot_be_granted_ends_the_subscription() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    let outputs = world.renegotiate(&one, json!({ "accept_signed_manifests_only": true }));
    let lost = outputs.iter().find_map(|output| match output {
        Output::Rejected { subscriber, message } => {
            Some((*subscriber, message.reason_code.clone()))
        }
        _ => None,
    });
    assert_eq!(lost, Some((Some(one.key), ReasonCode::ManifestSignatureRequired)));
    assert_eq!(resolved(&outputs).len(), 1, "nobody is left who could answer");
    assert_eq!(world.engine.subscriptions(), 0);
    world.take(&one);
    world.fail(SESSION);
    assert!(world.heard(&one).is_empty());
}

#[test]
fn subscribers_with_the_same_terms_share_an_audience_and_leave_it_one_by_one() {
    let mut world = World::started();
    let one = world.listen(1, json!({}));
    let two = world.listen(2, json!({ "max_events_per_second": 3 }));
    assert_eq!(world.engine.audiences(), 1);
    world.close(&one);
    world.change("idle", "thinking");
    assert_eq!(world.heard(&two).last().map(Heard::kind), Some("state.changed"));
    world.close(&two);
    assert_eq!(world.engine.audiences(), 0);
}

#[test]
fn two_subscribers_with_like_or_unlike_terms_each_get_what_they_requested() {
    let mut world = World::started();
    let all = world.listen(1, everything());
    let tools = world.listen(2, json!({ "event_filters": { "include": ["aaep:agent.tool.*"] } }));
    world.take(&all);
    world.take(&tools);
    world.change("idle", "thinking");
    world.say("tool.invoked", json!({ "tool": "list", "summary_normal": "Lists." }));
    assert_eq!(kinds(world.heard(&all)), ["state.changed", "tool.invoked"]);
    assert_eq!(kinds(world.heard(&tools)), ["tool.invoked"]);
}

/// Random text with sentences, paragraphs and characters of several code points.
fn texts() -> impl Strategy<Value = Vec<String>> {
    let piece = prop_oneof![
        4 => "[a-z]{1,6} ",
        2 => "[A-Z][a-z]{0,5}[.!?] ",
        1 => Just("\n\n".to_owned()),
        1 => Just("e\u{301}👩‍🚀".to_owned()),
        1 => Just(" ".to_owned()),
    ];
    proptest::collection::vec(piece.prop_map(String::from), 2..24)
}

fn boundaries() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["none", "word", "sentence", "paragraph", "completion"])
}

/// Streams chunks; after some of them the subscriber asks for other boundaries.
fn stream_and_change(
    wishes: Json,
    chunks: &[String],
    changes: &[(usize, &str)],
) -> (String, String) {
    let mut world = World::started();
    let subscriber = world.listen(1, wishes);
    let mut position = 0;
    for (number, chunk) in chunks.iter().enumerate() {
        let is_last = number + 1 == chunks.len();
        world.chunk(chunk, position, is_last);
        position += chunk.chars().count();
        world.pass_us(130_000);
        for (_, boundary) in changes.iter().filter(|(at, _)| *at == number) {
            let outputs =
                world.renegotiate(&subscriber, json!({ "coalesce_boundaries": [boundary] }));
            assert!(accepted(&outputs).is_some());
        }
    }
    world.pass_s(60);
    (text_of(world.heard(&subscriber), None), chunks.iter().map(|it| as_sent(it)).collect())
}

#[test]
fn without_limits_what_was_told_before_a_change_is_not_told_again() {
    let chunks = ["The cat ", "sits. ", "It purrs."].map(String::from);
    let wishes = json!({ "coalesce_boundaries": ["none"] });
    let (heard, said) = stream_and_change(wishes, &chunks, &[(0, "sentence")]);
    assert_eq!(heard, said);
}

#[test]
fn what_was_told_before_two_changes_is_not_told_again() {
    let chunks = ["The cat ", "sits ", "there. ", "It purrs."].map(String::from);
    let wishes = json!({ "coalesce_boundaries": ["none"], "max_events_per_second": 9 });
    let changes = [(0, "sentence"), (1, "paragraph")];
    let (heard, said) = stream_and_change(wishes, &chunks, &changes);
    assert_eq!(heard, said);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn held_text_survives_changes_of_boundaries_without_limits(
        chunks in texts(),
        first in boundaries(),
        changes in proptest::collection::vec((0usize..24, boundaries()), 1..4),
    ) {
        let wishes = json!({ "coalesce_boundaries": [first] });
        let (heard, said) = stream_and_change(wishes, &chunks, &changes);
        prop_assert_eq!(heard, said);
    }

    #[test]
    fn held_text_survives_one_change_of_boundaries_with_a_rate(
        chunks in texts(),
        (first, then) in (boundaries(), boundaries()).prop_filter("a change", |it| it.0 != it.1),
        rate in 1u64..8,
        at in 0usize..24,
    ) {
        let wishes = json!({ "coalesce_boundaries": [first], "max_events_per_second": rate });
        let (heard, said) = stream_and_change(wishes, &chunks, &[(at, then)]);
        prop_assert_eq!(heard, said);
    }

    #[test]
    fn held_text_survives_changes_of_boundaries_with_a_rate(
        chunks in texts(),
        first in boundaries(),
        rate in 1u64..8,
        changes in proptest::collection::vec((0usize..24, boundaries()), 1..4),
    ) {
        let wishes = json!({ "coalesce_boundaries": [first], "max_events_per_second": rate });
        let (heard, said) = stream_and_change(wishes, &chunks, &changes);
        prop_assert_eq!(heard, said);
    }

    #[test]
    fn held_tools_survive_a_change_of_words_each_once_and_in_order(
        before in 1usize..8,
        after in 0usize..8,
        rate in 1u64..4,
        change in prop::sample::select(vec![
            json!({ "preferred_verbosity": "terse" }),
            json!({ "coalesce_boundaries": ["word"] }),
            json!({ "supports_confirmation_reply": true, "cognitive_load": "high" }),
            json!({ "event_filters": { "exclude": ["aaep:agent.output.*"] } }),
        ]),
    ) {
        let mut world = World::new();
        let one = world.listen(1, json!({ "max_events_per_second": rate }));
        world.start(SESSION);
        for number in 0..before + after {
            if number == before {
                world.renegotiate(&one, change.clone());
            }
            let id = format!("call_{number}");
            let fields = json!({ "tool": "list", "summary_normal": "Lists.", "tool_call_id": id });
            world.say("tool.invoked", fields);
            world.chunk("One. ", number * 5, false);
        }
        world.pass_s(60);
        let calls: Vec<&str> = world
            .heard(&one)
            .iter()
            .filter(|it| it.kind() == "tool.invoked")
            .map(|it| it.text("tool_call_id"))
            .collect();
        let expected: Vec<String> = (0..before + after).map(|number| format!("call_{number}")).collect();
        prop_assert_eq!(calls, expected);
    }
}
