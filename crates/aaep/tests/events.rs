//! The twelve events of chapter 4: the smallest and the fullest of each, words in several languages
//! (§11.5.1, ruling 22), the safe default (§6.4.1, ruling 16) and what the schemas forget (ruling 24).
//!
//! Single bounds and values are in `constraints.rs`; nothing here is read as a subscriber reads it.

use aaep::{Code, CoreType, Event, Message, Severity};
use serde_json::{Value as Json, json};

use documents::{EVENTS, full, minimal};
use support::{assert_accepted, assert_refused, drop, errors, listed, notes, set, strict};

#[path = "common/documents.rs"]
mod documents;
#[path = "common/support.rs"]
mod support;

fn event(document: &Json) -> Event {
    match assert_accepted(document, "an event") {
        Message::Event(event) => *event,
        other => panic!("not an event: {}", other.to_json()),
    }
}

#[test]
fn the_smallest_form_of_every_event_is_accepted_and_written_back() {
    for name in EVENTS {
        let document = minimal(name);
        assert_eq!(notes(&strict(&document)), [], "{name}");
        let event = event(&document);
        assert_eq!(event.event_type().as_str(), format!("aaep:agent.{name}"));
        assert!(event.variants.is_empty() && event.extensions.is_none());
    }
}

#[test]
fn the_fullest_form_of_every_event_is_accepted_and_written_back() {
    for name in EVENTS {
        let document = full(name);
        assert_eq!(notes(&strict(&document)), [], "{name}");
        let event = event(&document);
        assert!(event.envelope.other.is_empty(), "{name}: everything is understood");
        // What was written is read as the same event again.
        let again = strict(&support::written(&Message::Event(Box::new(event.clone()))));
        assert_eq!(again.message, Some(Message::Event(Box::new(event))), "{name}");
    }
}

#[test]
fn the_list_of_samples_names_every_core_event() {
    let mut names: Vec<_> = EVENTS.iter().map(|name| format!("aaep:agent.{name}")).collect();
    let mut core: Vec<_> = CoreType::ALL.iter().map(|core| core.as_str().to_owned()).collect();
    names.sort_unstable();
    core.sort_unstable();
    assert_eq!(names, core);
}

#[test]
fn four_types_are_critical_by_themselves_and_any_event_by_what_it_says() {
    let critical: Vec<_> =
        EVENTS.into_iter().filter(|name| event(&minimal(name)).is_critical()).collect();
    let expected =
        ["session.errored", "awaiting.confirmation", "awaiting.clarification", "handoff.requested"];
    assert_eq!(critical, expected);
    assert!(event(&set("/urgency", "critical").on(&minimal("state.changed"))).is_critical());
}

// Languages.

#[test]
fn words_in_further_languages_are_accepted_and_kept() {
    let document = set("/summary_normal_yo", "Mo ń to àwòrán.")
        .and(set("/summary_normal_en_US", "Sorting pictures, y'all."))
        .and(set("/summary_terse_zh_Hant_TW", "整理照片"))
        .and(set("/summary_detailed_es_419", "Ordeno las fotos."))
        .on(&minimal("session.started"));
    assert_eq!(notes(&strict(&document)), []);
    let event = event(&document);
    let mut found: Vec<_> = event
        .variants
        .iter()
        .map(|variant| (variant.field, variant.language.as_str(), variant.key()))
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("summary_detailed", "es-419", "summary_detailed_es_419"),
            ("summary_normal", "en-US", "summary_normal_en_US"),
            ("summary_normal", "yo", "summary_normal_yo"),
            ("summary_terse", "zh-Hant-TW", "summary_terse_zh_Hant_TW"),
        ]
    );
}

#[test]
fn every_field_with_words_for_people_may_come_in_another_language() {
    let fields = [
        ("session.started", "summary_normal"),
        ("session.completed", "output_summary"),
        ("session.errored", "remediation_hint"),
        ("session.cancelled", "partial_result"),
        ("state.changed", "summary_detailed"),
        ("progress.updated", "summary_terse"),
        ("tool.invoked", "description"),
        ("tool.invoked", "args_summary"),
        ("tool.completed", "error_message"),
        ("awaiting.confirmation", "action"),
        ("awaiting.confirmation", "consequence"),
        ("awaiting.clarification", "question"),
        ("awaiting.clarification", "context"),
        ("handoff.requested", "reason"),
    ];
    for (name, field) in fields {
        let event = event(&set(&format!("/{field}_ig"), "okwu").on(&minimal(name)));
        assert_eq!(event.variants[0].field, field, "{name}");
    }
}

#[test]
fn only_words_come_in_languages_and_only_languages_follow_words() {
    let wrong =
        ["summary_normal_", "summary_normal_?", "summary_yo", "request_text_yo", "from_state_yo"];
    for name in wrong {
        let pointer = format!("/{name}");
        let document = set(&pointer, "x").on(&minimal("session.started"));
        assert_refused(&document, &[(Code::UnknownField, &pointer)], name);
    }
}

#[test]
fn words_in_another_language_have_the_bounds_of_the_field() {
    let base = minimal("session.started");
    let at = "/summary_terse_yo";
    assert_accepted(&set(at, support::words(4096)).on(&base), "as long as the field");
    assert_refused(&set(at, support::words(4097)).on(&base), &[(Code::TooLong, at)], "longer");
    assert_refused(&set(at, "").on(&base), &[(Code::TooShort, at)], "empty");
}

#[test]
fn a_value_in_another_language_that_is_not_a_string_is_one_violation() {
    let at = "/summary_normal_yo";
    let document = set(at, 5).on(&minimal("session.started"));
    assert_refused(&document, &[(Code::WrongType, at)], "not text");
}

#[test]
fn an_event_with_words_in_an_unknown_language_is_noted() {
    let silent = ["state.changed", "progress.updated", "tool.completed"];
    for name in EVENTS {
        let document = drop("/localization_hints").on(&minimal(name));
        let expected = if silent.contains(&name) {
            vec![]
        } else {
            vec![(Code::LanguageNotDeclared, "/localization_hints".to_owned())]
        };
        let reading = strict(&document);
        assert_eq!((errors(&reading), notes(&reading)), (vec![], expected), "{name}");
    }
    let document = drop("/localization_hints").and(set("/language", "cy"));
    let document = document.on(&minimal("output.streaming"));
    assert_eq!(notes(&strict(&document)), [], "a chunk says it by itself");
}

// The safe default.

/// What comes of silence that accepts.
#[derive(Clone, Copy)]
enum Silence {
    Fine,
    Noted,
    Refused,
}

#[test]
fn silence_never_lets_an_irreversible_action_happen_unless_its_risk_is_low() {
    // Of the two fields, the stricter one counts.
    let irreversible = [
        (json!(null), json!(null), false),
        (json!(null), json!("reversible"), false),
        (json!(null), json!("reversible_with_effort"), false),
        (json!(null), json!("irreversible"), true),
        (json!(false), json!(null), false),
        (json!(false), json!("reversible"), false),
        (json!(false), json!("reversible_with_effort"), false),
        (json!(false), json!("irreversible"), true),
        (json!(true), json!(null), true),
        (json!(true), json!("reversible"), true),
        (json!(true), json!("reversible_with_effort"), true),
        (json!(true), json!("irreversible"), true),
    ];
    let risk = [
        // The risk, what silence may do with something reversible, and with something irreversible.
        (json!(null), Silence::Fine, Silence::Refused),
        (json!("low"), Silence::Fine, Silence::Noted),
        (json!("medium"), Silence::Fine, Silence::Refused),
        (json!("high"), Silence::Noted, Silence::Refused),
    ];
    let place = || "/default_decision".to_owned();
    for (flag, reversibility, is_irreversible) in &irreversible {
        for (level, if_reversible, if_irreversible) in &risk {
            let mut document = minimal("awaiting.confirmation");
            let given =
                [("irreversible", flag), ("reversibility", reversibility), ("risk_level", level)];
            for (field, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
                document[field] = value.clone();
            }
            let about = format!("{flag} {reversibility} {level}");

            document["default_decision"] = "reject".into();
            assert_accepted(&document, &about);
            assert_eq!(notes(&strict(&document)), [], "{about}");

            document["default_decision"] = "accept".into();
            let reading = strict(&document);
            let (faults, remarks) =
                match *(if *is_irreversible { if_irreversible } else { if_reversible }) {
                    Silence::Fine => (vec![], vec![]),
                    Silence::Noted => (vec![], vec![(Code::RiskyDefault, place())]),
                    Silence::Refused => (vec![(Code::UnsafeDefault, place())], vec![]),
                };
            assert_eq!(reading.is_valid(), faults.is_empty(), "{about}");
            assert_eq!(errors(&reading), faults, "{about}");
            assert_eq!(listed(&reading, Severity::Note), remarks, "{about}");
        }
    }
}

#[test]
fn nobody_is_asked_something_that_cannot_be_seen() {
    for (kind, pointers) in [
        ("awaiting.confirmation", &["/action", "/consequence"][..]),
        ("awaiting.clarification", &["/question"]),
    ] {
        for pointer in pointers {
            for blank in [
                " \n",
                "\u{200c}",
                "\u{200d}\u{200d}",
                "\u{34f}",
                "\u{115f}\u{1160}",
                "\u{3164}",
                "\u{ffa0}",
                "\u{17b4}\u{17b5}",
                "\u{200b} \u{feff}",
                "\u{2800}",
                "\u{fdd0}",
                "\u{13440}",
                "\u{1d159}",
                "\u{fffc}",
                "\u{300}",
            ] {
                let document = set(pointer, blank).on(&minimal(kind));
                assert_refused(&document, &[(Code::TooShort, pointer)], &format!("{blank:?}"));
            }
            for text in ["می\u{200c}خواهم", "👩\u{200d}💻", "\u{3164}a", "1"] {
                assert_accepted(&set(pointer, text).on(&minimal(kind)), text);
            }
        }
    }
}

// What the schemas forget.

#[test]
fn a_question_with_choices_offers_them() {
    let base = minimal("awaiting.clarification");
    let kinds = |kinds: Json| set("/accepted_response_kinds", kinds);
    let choices =
        set("/choices", json!([{ "value": "a", "label": "A" }, { "value": "b", "label": "B" }]));
    let missing = [(Code::MissingChoices, "/choices")];
    assert_refused(&kinds(json!(["multiple_choice"])).on(&base), &missing, "only choices");
    let mixed = kinds(json!(["numeric", "multiple_choice"]));
    assert_refused(&mixed.on(&base), &missing, "choices or a number");
    assert_accepted(&mixed.and(choices.clone()).on(&base), "with choices");
    assert_accepted(&kinds(json!(["freetext"])).on(&base), "no choices needed");
    assert_accepted(&choices.on(&base), "choices that nobody asked for");
}

#[test]
fn critical_types_say_that_they_are_critical() {
    for core in CoreType::ALL.iter().filter(|core| core.is_critical()) {
        let name = core.as_str().strip_prefix("aaep:agent.").expect("an agent's event");
        let base = minimal(name);
        for change in [drop("/urgency"), set("/urgency", "normal"), set("/urgency", "background")] {
            assert_refused(&change.on(&base), &[(Code::NotCritical, "/urgency")], name);
        }
    }
}

#[test]
fn a_summary_is_required_where_chapter_four_says_so() {
    let required = [
        "session.started",
        "session.completed",
        "session.errored",
        "session.cancelled",
        "tool.invoked",
    ];
    for name in EVENTS {
        let document = drop("/summary_normal").on(&full(name));
        if required.contains(&name) {
            assert_refused(&document, &[(Code::MissingField, "/summary_normal")], name);
        } else {
            assert_accepted(&document, name);
        }
    }
}

#[test]
fn a_moment_has_three_or_six_digits_of_a_second_and_an_offset() {
    let base = minimal("state.changed");
    for digits in 0..=10 {
        let fraction = if digits == 0 { String::new() } else { format!(".{}", "7".repeat(digits)) };
        for offset in ["Z", "+05:45", "-00:30", ""] {
            let text = format!("2031-03-09T08:15:42{fraction}{offset}");
            let document = set("/timestamp", text.as_str()).on(&base);
            if matches!(digits, 3 | 6) && !offset.is_empty() {
                assert_accepted(&document, &text);
            } else {
                assert_refused(&document, &[(Code::WrongFormat, "/timestamp")], &text);
            }
        }
    }
}

#[test]
fn a_field_that_does_not_belong_is_refused_with_advice() {
    let document = set("/shelf", "top").on(&minimal("tool.completed"));
    assert_refused(&document, &[(Code::UnknownField, "/shelf")], "ruling 23");
    let advice = strict(&document).violations[0].advice();
    assert!(advice.contains("extensions"), "{advice}");
}
