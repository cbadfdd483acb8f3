//! Every constraint on every message, as tables: each row has a change that passes and one that
//! fails, and the code and the place of the failure.
//!
//! The tables are in the files of the folder; here is what several of them share. A failing row fails
//! for one reason only. Nothing here is read as a subscriber reads it.

use aaep::Code;
use serde_json::{Value as Json, json};

use crate::support::{drop, set, words};
use crate::table::{
    Row, at_most, closed, form, free_object, items, language, one_of, optional, row, text, truth,
    unique, uri, whole,
};

#[path = "common/documents.rs"]
mod documents;
#[path = "constraints/events.rs"]
mod events;
#[path = "constraints/messages.rs"]
mod messages;
#[path = "constraints/seeded.rs"]
mod seeded;
#[path = "common/support.rs"]
mod support;
#[path = "constraints/table.rs"]
mod table;

pub(crate) const DAY_S: i64 = 86_400;
pub(crate) const DAY_MS: i64 = 86_400_000;

pub(crate) fn nth_language(nth: usize) -> Json {
    json!(format!("cy-{nth:03}"))
}

pub(crate) fn nth_uri(nth: usize) -> Json {
    json!(format!("https://books.example/{nth}"))
}

pub(crate) fn nth_name(nth: usize) -> Json {
    json!(format!("name{nth}"))
}

pub(crate) fn nth_choice(nth: usize) -> Json {
    json!({ "value": format!("{nth}"), "label": "Shelf" })
}

/// One of several values by its position.
pub(crate) fn nth_of(values: &'static [&'static str]) -> impl Fn(usize) -> Json {
    |nth| json!(values[nth])
}

pub(crate) fn version(pointer: &str) -> Vec<Row> {
    let right = ["1.0.0", "0.1.0-draft", "10.20.30-a.b-c"];
    form(pointer, &right, &["1.0", "1.0.0.0", "v1.0.0", "1.0.0-", "1.0.0-ä", "", "1.0.x"])
}

/// The short, the usual and the long form.
pub(crate) fn summaries() -> Vec<Row> {
    let mut rows = text("/summary_terse", 1, 4096);
    rows.extend(text("/summary_normal", 1, 16_384));
    rows.extend(text("/summary_detailed", 1, 16_384));
    rows
}

/// The terms of a subscription, wherever they stand.
pub(crate) fn capabilities(at: &str) -> Vec<Vec<Row>> {
    const BOUNDARIES: &[&str] = &["none", "word", "sentence", "paragraph", "completion"];
    let at = |field: &str| format!("{at}/{field}");
    let patterns = |field: &str| {
        let (list, first) = (at(field), at(&format!("{field}/0")));
        let all = |count: usize| Json::Array((0..count).map(nth_name).collect());
        vec![
            vec![row("may be empty", set(&list, json!([])), set(&list, "x:y"), Code::WrongType)],
            vec![row("may be long", set(&list, all(300)), set(&list, json!({})), Code::WrongType)],
            unique(&list, nth_name),
            vec![row(
                "a pattern has at most 256 characters",
                set(&first, words(256)),
                set(&first, words(257)),
                Code::TooLong,
            )],
            form(&first, &["aaep:agent.tool.*", "*", "lumen:lamp.lit"], &["aaep:*.lit", "**"]),
        ]
    };
    let mut rows = vec![
        closed(&at("event_filters")),
        optional(&[
            &at("max_events_per_second"),
            &at("preferred_verbosity"),
            &at("languages"),
            &at("supports_confirmation_reply"),
            &at("supports_clarification_reply"),
            &at("coalesce_boundaries"),
            &at("event_filters"),
            &at("event_filters/include"),
            &at("event_filters/exclude"),
            &at("supported_conformance_levels"),
            &at("supported_extensions"),
            &at("cognitive_load"),
            &at("pace_wpm"),
            &at("accept_signed_manifests_only"),
        ]),
        whole(&at("max_events_per_second"), 1, 100_000),
        one_of(&at("preferred_verbosity"), &["terse", "normal", "detailed"]),
        items(&at("languages"), 1, 32, nth_language),
        at_most(&at("languages"), 32, nth_language),
        unique(&at("languages"), nth_language),
        language(&at("languages/0")),
        truth(&at("supports_confirmation_reply")),
        truth(&at("supports_clarification_reply")),
        items(&at("coalesce_boundaries"), 1, 5, nth_of(BOUNDARIES)),
        unique(&at("coalesce_boundaries"), nth_of(BOUNDARIES)),
        one_of(&at("coalesce_boundaries/0"), &["none", "word", "sentence", "paragraph"]),
        one_of(&at("coalesce_boundaries/1"), &["none", "word", "sentence", "completion"]),
        items(&at("supported_conformance_levels"), 1, 3, |nth| json!(nth + 1)),
        unique(&at("supported_conformance_levels"), |nth| json!(nth + 1)),
        items(&at("supported_extensions"), 0, 64, nth_uri),
        at_most(&at("supported_extensions"), 64, nth_uri),
        unique(&at("supported_extensions"), nth_uri),
        uri(&at("supported_extensions/0")),
        one_of(&at("cognitive_load"), &["low", "medium", "high"]),
        whole(&at("pace_wpm"), 50, 1000),
        truth(&at("accept_signed_manifests_only")),
        free_object(&at("lumen")),
        levels(&at("supported_conformance_levels/0")),
    ];
    rows.extend(patterns("event_filters/include"));
    rows.extend(patterns("event_filters/exclude"));
    rows
}

/// A conformance level: 1, 2 or 3.
pub(crate) fn levels(at: &str) -> Vec<Row> {
    let wrong = [
        (json!(0), Code::OutOfRange),
        (json!(4), Code::OutOfRange),
        (json!(1.5), Code::OutOfRange),
        (json!("1"), Code::WrongType),
    ];
    let rows = wrong
        .into_iter()
        .map(|(wrong, code)| row("a level is 1, 2 or 3", set(at, 3), set(at, wrong), code));
    rows.collect()
}

/// A type that a person must not miss says so.
pub(crate) fn critical() -> Vec<Row> {
    let says = set("/urgency", "critical");
    vec![
        row("it is critical", says.clone(), set("/urgency", "normal"), Code::NotCritical),
        row("it says that it is critical", says, drop("/urgency"), Code::NotCritical),
    ]
}
