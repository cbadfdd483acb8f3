//! The envelope and the text it comes in: chapter 3.
//!
//! The nine steps of §3.9, the five kinds of invalid events of §3.11, both forms of a type (§3.2.2),
//! the order of writing (§3.6), contexts and prefixes (§3.4.3, §7.3, ruling 29); limits (§3.7) and
//! encoding (§3.8) are in the folder. It never looks at what a type of event tells; `constraints.rs` does.

use aaep::{
    CORE_CONTEXT, CORE_TYPES, Code, CoreType, MAX_MESSAGE_BYTES, MAX_VIOLATIONS, Mode, Severity,
    extension,
};
use serde_json::{Value as Json, json};

use documents::{EVENTS, LUMEN, delivery, full, manifest, minimal};
use support::{
    Change, assert_accepted, assert_refused, assert_same, drop, errors, set, strict, words, written,
};

#[path = "common/documents.rs"]
mod documents;
#[path = "common/support.rs"]
mod support;
#[path = "envelope/text.rs"]
mod text;

fn event() -> Json {
    minimal("session.started")
}

/// The errors in a text that is read as it is.
fn errors_in(text: &[u8]) -> Vec<(Code, String)> {
    let reading = aaep::read(text, Mode::Strict);
    assert!(reading.message.is_none());
    errors(&reading)
}

/// An event with these vocabularies beside the core, and extension data under these prefixes.
fn with_extensions(uris: &[&str], prefixes: &[&str]) -> Json {
    let mut event = event();
    let uris = [CORE_CONTEXT].into_iter().chain(uris.iter().copied());
    event["@context"] = uris.collect::<Vec<_>>().into();
    event["extensions"] = prefixes.iter().map(|prefix| ((*prefix).to_owned(), json!({}))).collect();
    event
}

// The nine steps of §3.9.

#[test]
fn step_1_only_an_object_is_a_message() {
    for text in ["null", "true", "7", "\"x\"", "[]", "[{}]"] {
        assert_eq!(errors_in(text.as_bytes()), [(Code::NotAnObject, String::new())], "{text}");
    }
}

#[test]
fn step_2_every_required_field_is_missed_by_name() {
    for field in ["@context", "type", "event_id", "session_id", "timestamp", "producer"] {
        let pointer = format!("/{field}");
        let document = drop(&pointer).on(&event());
        assert_refused(&document, &[(Code::MissingField, &pointer)], field);
    }
}

#[test]
fn step_3_every_required_field_has_its_kind_of_value() {
    for field in ["@context", "event_id", "session_id", "timestamp", "producer"] {
        for wrong in [json!(1), json!(null), json!(true)] {
            let pointer = format!("/{field}");
            let document = set(&pointer, wrong).on(&event());
            assert_refused(&document, &[(Code::WrongType, &pointer)], field);
        }
    }
    let document = set("/type", 1).on(&event());
    assert_refused(&document, &[(Code::UnknownType, "/type")], "type");
}

#[test]
fn step_4_the_core_context_comes_first() {
    for right in [json!(CORE_CONTEXT), json!([CORE_CONTEXT]), json!([CORE_CONTEXT, LUMEN])] {
        assert_accepted(&set("/@context", right).on(&event()), "the core first");
    }
    for wrong in [json!(LUMEN), json!([]), json!([LUMEN, CORE_CONTEXT]), json!(""), json!([7])] {
        let document = set("/@context", wrong).on(&event());
        assert_refused(&document, &[(Code::NoCoreContext, "/@context")], "the core not first");
    }
}

#[test]
fn step_5_the_type_is_known_or_its_vocabulary_declared() {
    let unknown = [(Code::UnknownType, "/type")];
    for wrong in ["aaep:agent.book.lent", "https://aaep-protocol.org/types/agent.book.lent"] {
        assert_refused(&set("/type", wrong).on(&event()), &unknown, wrong);
    }
    let declared = set("/@context", json!([CORE_CONTEXT, LUMEN]));
    for name in ["lumen:lamp.lit", "https://lumen.example/types/lamp.lit"] {
        let change = set("/type", name);
        let undeclared = [(Code::UndeclaredPrefix, "/type")];
        assert_refused(&change.on(&event()), &undeclared, name);
        assert_accepted(&change.and(declared.clone()).on(&event()), name);
    }
}

#[test]
fn step_6_ids_and_moments_have_their_form() {
    let wrong = [
        ("/event_id", "sess_Shelf1"),
        ("/event_id", "evt_"),
        ("/session_id", "sess_a.b"),
        ("/timestamp", "2031-02-29T08:15:42.107Z"),
        ("/timestamp", "2031-03-09 08:15:42.107Z"),
        ("/timestamp", "2031-03-09T08:15:60.000Z"),
    ];
    for (pointer, text) in wrong {
        let document = set(pointer, text).on(&event());
        assert_refused(&document, &[(Code::WrongFormat, pointer)], text);
    }
}

#[test]
fn step_7_the_payload_is_looked_at() {
    let document = drop("/summary_normal").on(&event());
    assert_refused(&document, &[(Code::MissingField, "/summary_normal")], "payload");
}

#[test]
fn step_8_a_known_extension_is_looked_at_and_an_unknown_one_is_kept() {
    let at = "/extensions/agentvoice/held_back";
    assert_refused(&set(at, 0).on(&delivery()), &[(Code::OutOfRange, at)], "ours");
    let mut unknown = with_extensions(&[LUMEN], &["lumen"]);
    unknown["extensions"]["lumen"] = json!({ "held_back": 0, "aaep_x": [null, { "@id": 1 }] });
    assert_accepted(&unknown, "unknown");
}

#[test]
fn step_9_a_message_that_is_too_large_is_refused() {
    let padded = format!("{}{}", event(), " ".repeat(MAX_MESSAGE_BYTES));
    assert_eq!(errors_in(padded.as_bytes()), [(Code::TooLarge, String::new())]);
}

// The five kinds of §3.11.

#[test]
fn the_five_kinds_of_invalid_events_are_told_apart() {
    let prefixed = set("/extensions", json!({ "lumen": {} }));
    let kinds: [(Change, Code, &str, &str); 5] = [
        (drop("/event_id"), Code::MissingField, "/event_id", "3.2.3"),
        (set("/timestamp", "9 March 2031"), Code::WrongFormat, "/timestamp", "3.2.5"),
        (set("/type", "aaep:agent.blue.heron"), Code::UnknownType, "/type", "3.2.2"),
        (prefixed, Code::UndeclaredPrefix, "/extensions/lumen", "3.4.3"),
        (set("/shelf", "top"), Code::UnknownField, "/shelf", "3.5"),
    ];
    for (change, code, pointer, section) in kinds {
        let document = change.on(&event());
        assert_refused(&document, &[(code, pointer)], pointer);
        assert_eq!(strict(&document).violations[0].section, section, "{pointer}");
    }
}

// Types, order, contexts, prefixes.

#[test]
fn both_forms_of_a_type_are_read_and_the_compact_one_is_written() {
    for core in CoreType::ALL {
        let local = core.local_name();
        let compact = minimal(local.strip_prefix("agent.").expect("an agent's event"));
        assert_eq!(compact["type"], core.as_str());
        let uri = set("/type", format!("{CORE_TYPES}{local}")).on(&compact);
        let message = strict(&uri).message.expect("a valid event");
        assert_same(&written(&message), &compact, "the compact form");
    }
    let uri = set("/type", format!("{CORE_TYPES}producer.manifest")).on(&manifest());
    let message = strict(&uri).message.expect("a valid manifest");
    assert_same(&written(&message), &manifest(), "the compact form");
}

#[test]
fn fields_are_written_in_the_recommended_order() {
    let order = [
        "@context",
        "aaep_version",
        "type",
        "event_id",
        "session_id",
        "sequence_number",
        "timestamp",
        "producer",
        "verbosity",
        "urgency",
        "localization_hints",
        "correlation_id",
        "progress",
        "summary_normal",
        "eta_ms",
        "extensions",
    ];
    let text = assert_accepted(&full("progress.updated"), "full").to_json();
    let places: Vec<_> =
        order.iter().map(|key| text.find(&format!("\"{key}\":")).expect(key)).collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn fields_are_read_in_any_order_and_with_any_whitespace() {
    for name in EVENTS {
        let document = full(name);
        let fields = document.as_object().expect("an object");
        let lines: Vec<_> =
            fields.iter().rev().map(|(key, value)| format!("\"{key}\" :\t{value}")).collect();
        let text = format!("\r\n{{\n{}\n}}\n", lines.join(" ,\n "));
        let message = aaep::read(text.as_bytes(), Mode::Strict).message.expect(name);
        assert_same(&written(&message), &document, name);
    }
}

#[test]
fn an_unknown_vocabulary_stands_for_one_unknown_prefix() {
    let other = "https://other.example/v1";
    assert_accepted(&with_extensions(&[LUMEN], &["lumen"]), "one for one");
    assert_accepted(&with_extensions(&[LUMEN, other], &["lumen", "a"]), "two for two");
    assert_accepted(&with_extensions(&[LUMEN, other], &["lumen"]), "more than enough");
    let at = [(Code::UndeclaredPrefix, "/extensions/b")];
    assert_refused(&with_extensions(&[LUMEN], &["a", "b"]), &at, "one for two");
    let both =
        [(Code::UndeclaredPrefix, "/extensions/a"), (Code::UndeclaredPrefix, "/extensions/b")];
    assert_refused(&with_extensions(&[], &["a", "b"]), &both, "none for two");
}

#[test]
fn a_known_vocabulary_stands_for_its_own_prefix_only() {
    assert_accepted(&with_extensions(&[extension::CONTEXT], &["agentvoice"]), "ours");
    let at = [(Code::UndeclaredPrefix, "/extensions/lumen")];
    assert_refused(&with_extensions(&[extension::CONTEXT], &["lumen"]), &at, "another's");
    let african = "https://aaep-protocol.org/extensions/multilingual-african-languages/v1";
    assert_accepted(&with_extensions(&[african], &["azlearn"]), "the published one");
    assert_refused(&with_extensions(&[african], &["lumen"]), &at, "not the published one");
}

#[test]
fn the_core_context_stands_for_no_prefix_however_often_it_is_named() {
    let at = [(Code::UndeclaredPrefix, "/extensions/lumen")];
    assert_refused(&with_extensions(&[CORE_CONTEXT], &["lumen"]), &at, "the core twice");
}

#[test]
fn a_vocabulary_named_twice_still_stands_for_one_prefix() {
    let at = [(Code::UndeclaredPrefix, "/extensions/b")];
    assert_refused(&with_extensions(&[LUMEN, LUMEN], &["a", "b"]), &at, "the same twice");
}

#[test]
fn a_type_and_its_data_may_share_a_prefix() {
    let mut event = with_extensions(&[LUMEN], &["lumen"]);
    event["type"] = "lumen:lamp.lit".into();
    assert_accepted(&event, "compact");
    event["type"] = "oil:lamp.lit".into();
    assert_refused(&event, &[(Code::UndeclaredPrefix, "/extensions/lumen")], "two prefixes");
}

#[test]
fn a_type_written_as_a_uri_may_belong_to_the_vocabulary_of_a_prefix() {
    let mut event = with_extensions(&[LUMEN], &["lumen"]);
    event["type"] = "https://lumen.example/types/lamp.lit".into();
    assert_accepted(&event, "one vocabulary for both");
}

#[test]
fn reserved_and_misspelt_prefixes_are_refused() {
    let long = "p".repeat(65);
    for prefix in ["aaep", "xsd", "rdf", "rdfs", "@id", "9a", "a b", "é", "", &long] {
        let document = with_extensions(&[LUMEN], &[prefix]);
        let pointer = format!("/extensions/{prefix}");
        assert_refused(&document, &[(Code::ReservedPrefix, &pointer)], prefix);
    }
    let longest = "p".repeat(64);
    for prefix in ["aaepx", "_", "a.b-c_9", &longest] {
        assert_accepted(&with_extensions(&[LUMEN], &[prefix]), prefix);
    }
}

#[test]
fn a_type_may_not_use_a_reserved_prefix() {
    for prefix in ["xsd", "rdf", "rdfs"] {
        let mut event = with_extensions(&[LUMEN], &[]);
        event["type"] = format!("{prefix}:lamp.lit").into();
        let found = errors(&strict(&event));
        assert_eq!(found, [(Code::ReservedPrefix, "/type".to_owned())], "{prefix}");
    }
}

#[test]
fn reserved_names_are_refused_even_on_an_extensions_event() {
    let mut event = with_extensions(&[LUMEN], &[]);
    event["type"] = "lumen:lamp.lit".into();
    event["watts"] = json!({ "now": 40 });
    assert_accepted(&event, "its own field");
    for name in ["aaep_lamp", "@id", "@graph", "@base", "@vocab"] {
        let pointer = format!("/{name}");
        let document = set(&pointer, 1).on(&event);
        assert_refused(&document, &[(Code::ReservedField, &pointer)], name);
    }
}

#[test]
fn an_event_of_an_extension_has_the_whole_envelope() {
    let mut event = with_extensions(&[LUMEN], &["lumen"]);
    event["type"] = "lumen:lamp.lit".into();
    assert_accepted(&event, "the whole envelope");
    for field in ["event_id", "session_id", "timestamp", "producer"] {
        let pointer = format!("/{field}");
        assert_refused(&drop(&pointer).on(&event), &[(Code::MissingField, &pointer)], field);
    }
}

// Everything at once.

#[test]
fn every_fault_of_a_message_is_reported_at_once() {
    let document = json!({
        "@context": LUMEN,
        "aaep_version": "8.0.0",
        "type": "aaep:agent.awaiting.confirmation",
        "event_id": "event-1",
        "timestamp": "soon",
        "producer": { "agent_id": "", "shelf": 1 },
        "verbosity": "loud",
        "sequence_number": -1,
        "action": 5,
        "consequence": words(16_385),
        "reply_token": "rpl_Blur214",
        "timeout_seconds": 0,
        "default_decision": "accept",
        "irreversible": true,
        "allowed_replies": [],
        "aaep_mood": "fine",
        "shelf": "top",
    });
    let mut expected = vec![
        (Code::NoCoreContext, "/@context"),
        (Code::UnpublishedVersion, "/aaep_version"),
        (Code::WrongFormat, "/event_id"),
        (Code::MissingField, "/session_id"),
        (Code::WrongFormat, "/timestamp"),
        (Code::TooShort, "/producer/agent_id"),
        (Code::UnknownField, "/producer/shelf"),
        (Code::UnknownValue, "/verbosity"),
        (Code::OutOfRange, "/sequence_number"),
        (Code::NotCritical, "/urgency"),
        (Code::WrongType, "/action"),
        (Code::TooLong, "/consequence"),
        (Code::OutOfRange, "/timeout_seconds"),
        (Code::UnsafeDefault, "/default_decision"),
        (Code::TooFewItems, "/allowed_replies"),
        (Code::ReservedField, "/aaep_mood"),
        (Code::UnknownField, "/shelf"),
    ];
    let reading = strict(&document);
    let found = errors(&reading);
    let mut found: Vec<_> = found.iter().map(|(code, at)| (*code, at.as_str())).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(reading.event_id.as_deref(), Some("event-1"));
    for violation in &reading.violations {
        assert!(violation.problem.ends_with('.'), "{violation}");
        assert!(violation.section.starts_with(|c: char| c.is_ascii_digit()), "{violation}");
    }
}

#[test]
fn the_list_of_faults_is_cut_and_says_so() {
    let with = |faults: usize| {
        let mut document = event();
        let producer = document["producer"].as_object_mut().expect("an object");
        producer.extend((0..faults).map(|n| (format!("shelf{n:03}"), json!(n))));
        strict(&document).violations
    };
    assert_eq!(with(MAX_VIOLATIONS).len(), MAX_VIOLATIONS);
    assert!(with(MAX_VIOLATIONS).iter().all(|it| it.code == Code::UnknownField));
    for faults in [MAX_VIOLATIONS + 1, 500] {
        let violations = with(faults);
        assert_eq!(violations.len(), MAX_VIOLATIONS + 1);
        let last = violations.last().expect("there are some");
        assert_eq!((last.code, last.severity), (Code::More, Severity::Error));
    }
}

#[test]
fn no_report_repeats_what_could_harm_a_terminal() {
    let hostile = "\u{1b}[2J\u{202e}evil\r\n";
    let document = set("/event_id", hostile).and(set(&format!("/{hostile}"), 1)).on(&event());
    for violation in strict(&document).violations {
        let said = violation.to_string();
        assert!(!said.contains(['\u{1b}', '\u{202e}', '\r', '\n']), "{said:?}");
    }
}
