//! How a subscriber reads (§3.7, §3.11, §12.2.1, §12.6.1, ruling 23): what a newer or sloppier
//! producer sends is kept and noted, and the message stands.
//!
//! And what no reader bears with: something required that is missing or unreadable, a decision that
//! would have to be guessed, a broken token, a key twice. Nothing here is read as a producer reads it.

use aaep::{CORE_CONTEXT, Code, Message, Mode, Payload, Severity};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use documents::{
    LUMEN, accepted, all_full, clarification_reply, confirmation_reply, delivery, full, manifest,
    minimal, rejected, request,
};
use support::{
    assert_borne, assert_same, drop, errors, notes, set, strict, tolerant, words, written,
};

#[path = "common/documents.rs"]
mod documents;
#[path = "common/support.rs"]
mod support;

/// The places below which anything may stand.
fn is_free(pointer: &str) -> bool {
    let last = pointer.rsplit('/').next().unwrap_or_default();
    matches!(last, "lumen" | "extra_context" | "packaged_context" | "modified_action")
}

/// The pointers to all fields of a document, but not into free data.
fn fields(document: &Json, at: &str, found: &mut Vec<String>) {
    let children: Vec<(String, &Json)> = match document {
        Json::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Json::Array(items) => {
            items.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    for (key, value) in children {
        let pointer = format!("{at}/{key}");
        if document.is_object() {
            found.push(pointer.clone());
        }
        if !is_free(&pointer) {
            fields(value, &pointer, found);
        }
    }
}

fn fields_of(document: &Json) -> Vec<String> {
    let mut found = Vec::new();
    fields(document, "", &mut found);
    found
}

#[test]
fn whatever_is_valid_for_a_producer_is_valid_for_a_subscriber() {
    for document in all_full() {
        assert_eq!(errors(&strict(&document)), []);
        assert_borne(&document, &[], "a valid message");
    }
}

#[test]
fn unknown_fields_are_kept_at_every_level() {
    let mut places = 0;
    for document in all_full() {
        let parents = fields_of(&document).into_iter().filter(|at| {
            document.pointer(at).is_some_and(Json::is_object)
                && !is_free(at)
                && at != "/extensions"
                && !at.ends_with("capabilities")
        });
        for parent in [String::new()].into_iter().chain(parents) {
            for (name, code) in [("shelf", Code::UnknownField), ("aaep_shelf", Code::ReservedField)]
            {
                let pointer = format!("{parent}/{name}");
                let value = json!({ "row": [3, null, { "deep": true }] });
                assert_borne(&set(&pointer, value).on(&document), &[(code, &pointer)], &pointer);
                places += 1;
            }
        }
    }
    assert!(places > 80, "{places} places");
}

#[test]
fn unknown_values_are_kept_in_every_open_enumeration() {
    let cases = [
        (full("state.changed"), "/verbosity"),
        (full("state.changed"), "/urgency"),
        (full("state.changed"), "/localization_hints/text_direction"),
        (full("session.errored"), "/error_category"),
        (full("session.cancelled"), "/cancelled_by"),
        (full("tool.invoked"), "/risk_level"),
        (full("tool.completed"), "/status"),
        (full("output.streaming"), "/coalesce_hint"),
        (full("awaiting.confirmation"), "/risk_level"),
        (full("awaiting.confirmation"), "/reversibility"),
        (full("awaiting.clarification"), "/accepted_response_kinds/0"),
        (full("handoff.requested"), "/target_kind"),
        (full("handoff.requested"), "/urgency_for_handoff"),
        (rejected(), "/reason_code"),
        (accepted(), "/honored_capabilities/preferred_verbosity"),
        (accepted(), "/honored_capabilities/cognitive_load"),
        (accepted(), "/honored_capabilities/coalesce_boundaries/0"),
        (manifest(), "/default_verbosity"),
        (delivery(), "/extensions/agentvoice/resolution/outcome"),
        (delivery(), "/extensions/agentvoice/resolution/decided_by"),
    ];
    for (document, pointer) in cases {
        let changed = set(pointer, "of_tomorrow").on(&document);
        assert_borne(&changed, &[(Code::UnknownValue, pointer)], pointer);
    }
}

#[test]
fn unknown_types_are_kept_whole() {
    let mut event = minimal("state.changed");
    event["lamp"] = json!({ "watts": 40.5 });
    let cases = [
        (json!(CORE_CONTEXT), "aaep:agent.future.thing", Some((Code::UnknownType, "/type"))),
        (json!(CORE_CONTEXT), "lumen:lamp.lit", Some((Code::UndeclaredPrefix, "/type"))),
        (json!([CORE_CONTEXT, LUMEN]), "lumen:lamp.lit", None),
        (json!([CORE_CONTEXT, LUMEN]), "https://lumen.example/types/lamp.lit", None),
    ];
    for (context, name, expected) in cases {
        let document = set("/@context", context).and(set("/type", name)).on(&event);
        let message = assert_borne(&document, &Vec::from_iter(expected), name);
        let Message::Event(event) = message else { panic!("{name} is an event") };
        let Payload::Extension(payload) = event.payload else { panic!("{name} is not core") };
        assert_eq!(payload.type_name.as_str(), name);
        assert_eq!(payload.fields["to_state"], "comparing_faces");
    }
}

#[test]
fn what_is_optional_and_unreadable_is_kept_and_what_is_required_must_be_readable() {
    let (mut borne, mut refused) = (0, 0);
    for document in all_full() {
        for pointer in fields_of(&document) {
            let can_do_without = tolerant(&drop(&pointer).on(&document)).is_valid();
            for wrong in
                [json!(null), json!([[7]]), json!(-5.5), json!("\u{7}?"), json!({ "a": 1 })]
            {
                let changed = set(&pointer, wrong).on(&document);
                if strict(&changed).is_valid() {
                    continue;
                }
                let reading = tolerant(&changed);
                if can_do_without {
                    borne += 1;
                    assert_eq!(errors(&reading), [], "{pointer}: {changed}");
                    assert!(!notes(&reading).is_empty(), "{pointer}: {changed}");
                    let message = reading.message.unwrap_or_else(|| panic!("{pointer}: {changed}"));
                    assert_same(&written(&message), &changed, &pointer);
                } else if reading.is_valid() {
                    // A required enumeration may be open, a required text of any form.
                    let message = reading.message.expect("it is valid");
                    assert_same(&written(&message), &changed, &pointer);
                } else {
                    refused += 1;
                    assert!(
                        !errors(&reading).is_empty(),
                        "{pointer}: no error says why: {changed}"
                    );
                }
            }
        }
    }
    assert!(borne > 400 && refused > 100, "{borne} borne, {refused} refused");
}

#[test]
fn values_in_another_language_that_are_not_strings_are_kept() {
    let at = "/summary_normal_yo";
    let document = set(at, 5).on(&minimal("session.started"));
    assert_borne(&document, &[(Code::WrongType, at)], "a number for words");
}

#[test]
fn moments_with_any_number_of_digits_are_read_as_the_same_moment() {
    for (text, as_written) in [
        ("2031-03-09T08:15:42Z", "2031-03-09T08:15:42.000Z"),
        ("2031-03-09T08:15:42.1Z", "2031-03-09T08:15:42.100Z"),
        ("2031-03-09T08:15:42.12Z", "2031-03-09T08:15:42.120Z"),
        ("2031-03-09T08:15:42.1234Z", "2031-03-09T08:15:42.123400Z"),
        ("2031-03-09T08:15:42.12345Z", "2031-03-09T08:15:42.123450Z"),
        ("2031-03-09T10:15:42.1234567+02:00", "2031-03-09T08:15:42.123456Z"),
        ("2031-03-09T08:15:42.123456789Z", "2031-03-09T08:15:42.123456Z"),
    ] {
        let base = minimal("state.changed");
        let reading = tolerant(&set("/timestamp", text).on(&base));
        assert_eq!(errors(&reading), [], "{text}");
        assert_eq!(notes(&reading), [(Code::WrongFormat, "/timestamp".to_owned())], "{text}");
        let message = reading.message.expect("it stands");
        let mended = set("/timestamp", as_written).on(&base);
        assert_same(&written(&message), &mended, text);
        assert_eq!(errors(&strict(&mended)), [], "{text} is right once written");
    }
    for text in ["2031-03-09T08:15:42", "2031-02-30T08:15:42Z", "2031-03-09T08:15:42.Z", "today"] {
        let reading = tolerant(&set("/timestamp", text).on(&minimal("state.changed")));
        assert_eq!(errors(&reading), [(Code::WrongFormat, "/timestamp".to_owned())], "{text}");
    }
}

#[test]
fn words_in_any_normal_form_and_direction_stay_as_they_are() {
    for text in [
        "\u{e9}t\u{e9}",                            // form C
        "e\u{301}te\u{301}",                        // form D
        "\u{fb01}n \u{2460}",                       // what KC and KD would replace
        "o\u{323}\u{301} ka \u{e0}p\u{f2}",         // neither composed nor in order
        "\u{301} alone",                            // a mark that has lost its base
        "\u{5d0}\u{5d1} \u{2066}disk 7\u{2069}",    // Hebrew around an isolated name
        "\u{200f}\u{627}\u{644}\u{200e} A\u{202c}", // marks and an end without a beginning
    ] {
        let event = set("/summary_normal", text).on(&full("session.started"));
        for direction in ["ltr", "rtl", "auto"] {
            let event = set("/localization_hints/text_direction", direction).on(&event);
            assert_borne(&event, &[], text);
            support::assert_accepted(&event, text);
        }
    }
}

#[test]
fn what_exceeds_a_limit_is_kept() {
    let base = full("state.changed");
    let lamp = "/extensions/lumen/lamp";
    let deep = (0..20).fold(json!(1), |inner, _| json!([inner]));
    let many: Json = (0..33).map(|n| json!(format!("cy-{n:03}"))).collect();
    let languages = "/localization_hints/available_languages";
    assert_borne(&set(lamp, words(16_385)).on(&base), &[(Code::TooLong, lamp)], "a long string");
    assert_borne(&set(lamp, deep).on(&base), &[(Code::TooDeep, "")], "many levels");
    assert_borne(&set(languages, many).on(&base), &[(Code::TooManyItems, languages)], "languages");
    let big = 9_007_199_254_740_993_u64;
    assert_borne(&set(lamp, big).on(&base), &[(Code::NumberTooBig, lamp)], "a big number");
    assert_borne(&set("/from_state", "").on(&base), &[(Code::TooShort, "/from_state")], "empty");
    let long = set("/to_state", words(65)).on(&base);
    assert_borne(&long, &[(Code::TooLong, "/to_state")], "a long state");

    let rows: Json = (0..10).map(|_| json!(words(3000))).collect();
    let large = set("/extensions/lumen/rows", rows).on(&base);
    assert_borne(&large, &[(Code::TooLarge, "")], "a large event");

    let mut crowded = set("/type", "lumen:lamp.lit").on(&base);
    let fields = crowded.as_object_mut().expect("an object");
    fields.extend((0..40).map(|n| (format!("own{n}"), json!(n))));
    assert_borne(&crowded, &[(Code::TooManyFields, "")], "many fields");
}

#[test]
fn what_could_hurt_the_reader_is_refused_unread() {
    let padded = format!("{}{}", minimal("state.changed"), " ".repeat(aaep::MAX_BYTES));
    let reading = aaep::read(padded.as_bytes(), Mode::Tolerant);
    assert_eq!(errors(&reading), [(Code::TooLarge, String::new())]);
    let deep = format!("{{\"a\":{}", "[".repeat(aaep::MAX_DEPTH + 1));
    let reading = aaep::read(deep.as_bytes(), Mode::Tolerant);
    assert_eq!(errors(&reading), [(Code::TooDeep, String::new())]);
}

#[test]
fn rules_of_conduct_are_noted_and_the_event_still_reaches_the_person() {
    let confirmation = full("awaiting.confirmation");
    let unsafe_default = set("/default_decision", "accept").on(&confirmation);
    assert_borne(&unsafe_default, &[(Code::UnsafeDefault, "/default_decision")], "default");
    let quiet = drop("/urgency").on(&confirmation);
    let message = assert_borne(&quiet, &[(Code::NotCritical, "/urgency")], "urgency");
    let Message::Event(event) = message else { panic!("an event") };
    assert!(event.is_critical(), "by its type");
    let no_choices = drop("/choices").on(&full("awaiting.clarification"));
    assert_borne(&no_choices, &[(Code::MissingChoices, "/choices")], "choices");
    let newer = set("/aaep_version", "1.7.0").on(&confirmation);
    assert_borne(&newer, &[(Code::UnpublishedVersion, "/aaep_version")], "a newer version");
    let undeclared = set("/@context", CORE_CONTEXT).on(&confirmation);
    assert_borne(&undeclared, &[(Code::UndeclaredPrefix, "/extensions/lumen")], "a prefix");
    let reserved = set("/extensions/rdf", json!({})).on(&confirmation);
    assert_borne(&reserved, &[(Code::ReservedPrefix, "/extensions/rdf")], "a reserved prefix");
}

// What no reader bears with.

#[test]
fn what_is_required_must_be_there() {
    for (document, pointers) in [
        (
            full("awaiting.confirmation"),
            &[
                "/@context",
                "/type",
                "/event_id",
                "/session_id",
                "/timestamp",
                "/producer",
                "/producer/agent_id",
                "/action",
                "/consequence",
                "/reply_token",
                "/timeout_seconds",
                "/default_decision",
            ][..],
        ),
        (full("awaiting.clarification"), &["/question", "/reply_token", "/timeout_seconds"]),
        (full("session.started"), &["/summary_normal"]),
        (request(), &["/aaep_version", "/subscriber_id", "/capabilities"]),
        (accepted(), &["/subscription_id", "/producer", "/honored_capabilities"]),
        (rejected(), &["/reason_code", "/reason_message"]),
        (confirmation_reply(), &["/reply_token", "/decision", "/subscription_id", "/timestamp"]),
        (clarification_reply(), &["/reply_token", "/response", "/subscription_id", "/timestamp"]),
    ] {
        for pointer in pointers {
            let reading = tolerant(&drop(pointer).on(&document));
            assert_eq!(
                errors(&reading),
                [(Code::MissingField, (*pointer).to_owned())],
                "{document}"
            );
            assert!(reading.message.is_none(), "{pointer}");
        }
    }
}

#[test]
fn a_decision_is_never_guessed() {
    for (document, pointer) in
        [(confirmation_reply(), "/decision"), (full("awaiting.confirmation"), "/default_decision")]
    {
        for wrong in ["yes", "Accept", "accept ", ""] {
            let reading = tolerant(&set(pointer, wrong).on(&document));
            assert!(reading.message.is_none(), "{pointer} {wrong:?}");
            assert_eq!(errors(&reading), [(Code::UnknownValue, pointer.to_owned())], "{wrong:?}");
        }
    }
}

#[test]
fn a_broken_token_or_id_is_refused() {
    for (document, pointer, wrong) in [
        (confirmation_reply(), "/reply_token", "rpl_"),
        (clarification_reply(), "/reply_token", "Blur214"),
        (full("awaiting.confirmation"), "/reply_token", "rpl_a-b"),
        (full("awaiting.clarification"), "/reply_token", "rpl_é"),
        (full("state.changed"), "/event_id", "Shelf0001"),
        (full("state.changed"), "/session_id", ""),
        (confirmation_reply(), "/subscription_id", "desk"),
    ] {
        let reading = tolerant(&set(pointer, wrong).on(&document));
        assert_eq!(errors(&reading), [(Code::WrongFormat, pointer.to_owned())], "{wrong}");
        assert!(reading.message.is_none(), "{wrong}");
    }
}

#[test]
fn a_key_that_stands_twice_is_refused_wherever_it_is() {
    for (key, at) in [("\"from_state\"", "/from_state"), ("\"lamp\"", "/extensions/lumen/lamp")] {
        let text = full("state.changed").to_string();
        let twice = text.replace(&format!("{key}:"), &format!("{key}:\"first\",{key}:"));
        let reading = aaep::read(twice.as_bytes(), Mode::Tolerant);
        assert_eq!(errors(&reading), [(Code::DuplicateKey, at.to_owned())]);
        assert!(reading.message.is_none());
    }
}

#[test]
fn a_wrong_core_context_is_refused() {
    let reading = tolerant(&set("/@context", LUMEN).on(&minimal("state.changed")));
    assert_eq!(errors(&reading), [(Code::NoCoreContext, "/@context".to_owned())]);
}

// The list of notes is bounded; what it holds decides nothing.

#[test]
fn many_notes_do_not_turn_the_next_one_into_an_error() {
    let mut document = minimal("state.changed");
    let producer = document["producer"].as_object_mut().expect("an object");
    producer.extend((0..aaep::MAX_VIOLATIONS + 6).map(|n| (format!("shelf{n}"), json!(n))));
    // Fields are read in the order of the text, and `verbosity` comes after `producer`.
    let document = set("/verbosity", 5).on(&document);
    let reading = tolerant(&document);
    assert_eq!(errors(&reading), []);
    let message = reading.message.expect("it stands, however much there is to note");
    assert_same(&written(&message), &document, "many notes");
}

#[test]
fn an_error_does_not_hide_behind_many_notes() {
    let mut document = drop("/to_state").on(&minimal("state.changed"));
    let producer = document["producer"].as_object_mut().expect("an object");
    producer.extend((0..aaep::MAX_VIOLATIONS + 6).map(|n| (format!("shelf{n}"), json!(n))));
    let reading = tolerant(&document);
    assert!(reading.message.is_none());
    assert!(reading.violations.iter().any(|it| it.severity == Severity::Error));
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        (-1e15..1e15).prop_map(|number: f64| json!(number)),
        ".{0,12}".prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map(".{0,8}", inner, 0..4)
                .prop_map(|fields| Json::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn whatever_stands_in_an_unknown_field_or_an_extension_survives(
        which in 0..12_usize, name in "own_[a-z]{1,8}", value in any_json(), lamp in any_json(),
    ) {
        let document = set(&format!("/{name}"), value)
            .and(set("/extensions/lumen/lamp", lamp))
            .on(&full(documents::EVENTS[which]));
        let reading = tolerant(&document);
        prop_assert_eq!(errors(&reading), []);
        let message = reading.message.expect("it stands");
        prop_assert!(support::same(&written(&message), &document), "{}", document);
    }
}
