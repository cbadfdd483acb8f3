//! The table of constraints: what a row is, and the rows that a kind of field always has.
//!
//! A row fails for one reason only, named by code and place. No field is known here by name.

use aaep::Code;
use serde_json::{Value as Json, json};

use crate::support::{Change, assert_accepted, assert_refused, drop, set, words};

/// A constraint: a change that keeps to it, one that does not, and what is said of the latter.
pub(crate) struct Row {
    about: String,
    right: Change,
    wrong: Change,
    code: Code,
    at: String,
}

/// The fault is reported where the wrong change is made last, unless [`Row::at`] says otherwise.
pub(crate) fn row(about: &str, right: Change, wrong: Change, code: Code) -> Row {
    let at = wrong.pointer().to_owned();
    Row { about: about.to_owned(), right, wrong, code, at }
}

impl Row {
    pub(crate) fn at(mut self, pointer: &str) -> Row {
        pointer.clone_into(&mut self.at);
        self
    }
}

/// Holds a document to a table.
pub(crate) fn check(name: &str, base: &Json, rows: impl IntoIterator<Item = Vec<Row>>) {
    assert_accepted(base, name);
    for row in rows.into_iter().flatten() {
        let about = format!("{name}, {}", row.about);
        assert_accepted(&row.right.on(base), &about);
        assert_refused(&row.wrong.on(base), &[(row.code, &row.at)], &about);
    }
}

/// No field of these may be left out.
pub(crate) fn required(pointers: &[&str]) -> Vec<Row> {
    let rows = pointers.iter().map(|pointer| Row {
        about: format!("{pointer} is required"),
        right: Change::Nothing,
        wrong: drop(pointer),
        code: Code::MissingField,
        at: (*pointer).to_owned(),
    });
    rows.collect()
}

/// Every one of these may be left out.
pub(crate) fn optional(pointers: &[&str]) -> Vec<Row> {
    let rows = pointers.iter().map(|pointer| {
        let wrong = set(pointer, Json::Null);
        row(&format!("{pointer} is optional, not null"), drop(pointer), wrong, Code::WrongType)
    });
    rows.collect()
}

/// Text of so many characters.
pub(crate) fn text(pointer: &str, min: usize, max: usize) -> Vec<Row> {
    let full = set(pointer, words(max));
    let mut rows = vec![
        row(
            &format!("{pointer} has at most {max} characters"),
            full.clone(),
            set(pointer, words(max + 1)),
            Code::TooLong,
        ),
        row(&format!("{pointer} is text"), full, set(pointer, 7), Code::WrongType),
    ];
    if min == 0 {
        rows[1].right = set(pointer, "");
    } else {
        let least = set(pointer, words(min));
        let wrong = set(pointer, words(min - 1));
        rows.push(row(&format!("{pointer} is not empty"), least, wrong, Code::TooShort));
    }
    rows
}

/// Text that may be empty and has no bound but the general one.
pub(crate) fn any_text(pointer: &str) -> Vec<Row> {
    text(pointer, 0, 16_384)
}

/// Text that is not empty and has no bound but the general one.
pub(crate) fn some_text(pointer: &str) -> Vec<Row> {
    text(pointer, 1, 16_384)
}

/// A whole number from the least to the greatest.
pub(crate) fn whole(pointer: &str, min: i64, max: i64) -> Vec<Row> {
    let about = |what: &str| format!("{pointer} {what}");
    vec![
        row(&about("at least"), set(pointer, min), set(pointer, min - 1), Code::OutOfRange),
        row(&about("at most"), set(pointer, max), set(pointer, max + 1), Code::OutOfRange),
        row(&about("whole"), set(pointer, json!(60.0)), set(pointer, 60.5), Code::OutOfRange),
        row(&about("a number"), set(pointer, max), set(pointer, max.to_string()), Code::WrongType),
    ]
}

/// A whole number from the least to the greatest that JSON carries exactly.
pub(crate) fn count(pointer: &str, min: i64) -> Vec<Row> {
    const LAST: i64 = 1 << 53;
    let about = |what: &str| format!("{pointer} {what}");
    vec![
        row(&about("at least"), set(pointer, min), set(pointer, min - 1), Code::OutOfRange),
        row(&about("at most"), set(pointer, LAST), set(pointer, LAST + 1), Code::NumberTooBig),
        row(&about("a number"), set(pointer, 12), set(pointer, "12"), Code::WrongType),
    ]
}

pub(crate) fn truth(pointer: &str) -> Vec<Row> {
    let row = |right: bool, wrong: Json| {
        let about = format!("{pointer} is {right}, not {wrong}");
        row(&about, set(pointer, right), set(pointer, wrong), Code::WrongType)
    };
    vec![row(true, json!("true")), row(false, json!(0))]
}

/// One of these values, and no other.
pub(crate) fn one_of(pointer: &str, values: &[&str]) -> Vec<Row> {
    let rows = values.iter().map(|value| {
        let wrong = set(pointer, format!("{value}x"));
        row(&format!("{pointer} may be {value}"), set(pointer, *value), wrong, Code::UnknownValue)
    });
    let capital = values[0].to_uppercase();
    let case = row(
        &format!("{pointer} minds the case"),
        set(pointer, values[0]),
        set(pointer, capital),
        Code::UnknownValue,
    );
    rows.chain([case]).collect()
}

/// A form that some strings have and others do not.
pub(crate) fn form(pointer: &str, right: &[&str], wrong: &[&str]) -> Vec<Row> {
    let longest = right.len().max(wrong.len());
    let pairs = right.iter().cycle().zip(wrong.iter().cycle()).take(longest);
    let mut rows: Vec<_> = pairs
        .map(|(right, wrong)| {
            let about = format!("{pointer} may be {right:?}, not {wrong:?}");
            row(&about, set(pointer, *right), set(pointer, *wrong), Code::WrongFormat)
        })
        .collect();
    let wrong = set(pointer, json!([right[0]]));
    let about = format!("{pointer} is a string");
    rows.push(row(&about, set(pointer, right[0]), wrong, Code::WrongType));
    rows
}

/// A prefix and 1 to 64 letters or digits.
pub(crate) fn id(pointer: &str, prefix: &str) -> Vec<Row> {
    let (most, more) = ("Z".repeat(64), "Z".repeat(65));
    let with = |rest: &str| format!("{prefix}{rest}");
    form(
        pointer,
        &[&with("a"), &with("0Az9"), &with(&most)],
        &[&with(""), &with("a-b"), &with("é"), &with(&more), "zzz_a", &with("a ")],
    )
}

pub(crate) fn uri(pointer: &str) -> Vec<Row> {
    let right = ["https://books.example/a?b=c#d", "queue://loans/desk", "urn:isbn:0000000000"];
    form(pointer, &right, &["books.example/a", "/a", "https://books.example/a b", ""])
}

pub(crate) fn language(pointer: &str) -> Vec<Row> {
    form(pointer, &["yo", "en-GB", "es-419", "zh-Hant-TW", "de-1996"], &["en_GB", "e", "en-", ""])
}

/// An object with whatever fields.
pub(crate) fn free_object(pointer: &str) -> Vec<Row> {
    let free = json!({ "shelf": { "row": 3 }, "aaep_note": null, "": [1, 1] });
    vec![
        row(&format!("{pointer} is free"), set(pointer, free), set(pointer, "x"), Code::WrongType),
        row(
            &format!("{pointer} may be empty"),
            set(pointer, json!({})),
            set(pointer, json!([])),
            Code::WrongType,
        ),
    ]
}

/// An object that takes no field beyond its own.
pub(crate) fn closed(pointer: &str) -> Vec<Row> {
    let row = |name: &str, code| {
        let wrong = set(&format!("{pointer}/{name}"), "x");
        Row {
            about: format!("{pointer} is closed to {name}"),
            right: Change::Nothing,
            at: wrong.pointer().to_owned(),
            wrong,
            code,
        }
    };
    vec![
        row("shelf_mark", Code::UnknownField),
        row("aaep_shelf", Code::ReservedField),
        row("@id", Code::ReservedField),
        row("sh~1elf~0", Code::UnknownField),
    ]
}

/// How many items an array has, at most all different.
pub(crate) fn items(
    pointer: &str,
    min: usize,
    max: usize,
    nth: impl Fn(usize) -> Json,
) -> Vec<Row> {
    let list = |count: usize| Json::Array((0..count).map(&nth).collect());
    let mut rows = vec![row(
        &format!("{pointer} is a list"),
        set(pointer, list(max)),
        set(pointer, nth(0)),
        Code::WrongType,
    )];
    if min > 0 {
        let wrong = set(pointer, list(min - 1));
        let about = format!("{pointer} has at least {min} items");
        rows.push(row(&about, set(pointer, list(min)), wrong, Code::TooFewItems));
    } else {
        rows[0].right = set(pointer, json!([]));
    }
    rows
}

pub(crate) fn at_most(pointer: &str, max: usize, nth: impl Fn(usize) -> Json) -> Vec<Row> {
    let list = |count: usize| Json::Array((0..count).map(&nth).collect());
    let about = format!("{pointer} has at most {max} items");
    vec![row(&about, set(pointer, list(max)), set(pointer, list(max + 1)), Code::TooManyItems)]
}

pub(crate) fn unique(pointer: &str, nth: impl Fn(usize) -> Json) -> Vec<Row> {
    let about = format!("{pointer} has no item twice");
    let right = set(pointer, json!([nth(0), nth(1)]));
    let wrong = set(pointer, json!([nth(0), nth(1), nth(0)]));
    vec![row(&about, right, wrong, Code::DuplicateItem).at(&format!("{pointer}/2"))]
}
