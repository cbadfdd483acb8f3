//! What the integration tests of the words share: reading, comparing, and changes to documents.
//!
//! It carries no rule of the specification by itself and never touches files, network or clock.

#![allow(dead_code, reason = "each test file uses its part of this one")]

use aaep::{Code, Message, Mode, Reading, Severity};
use serde_json::Value as Json;

// Reading.

pub(crate) fn strict(document: &Json) -> Reading {
    aaep::read(document.to_string().as_bytes(), Mode::Strict)
}

pub(crate) fn tolerant(document: &Json) -> Reading {
    aaep::read(document.to_string().as_bytes(), Mode::Tolerant)
}

/// The code and place of every violation of one severity.
pub(crate) fn listed(reading: &Reading, severity: Severity) -> Vec<(Code, String)> {
    let of_severity = reading.violations.iter().filter(|it| it.severity == severity);
    of_severity.map(|it| (it.code, it.pointer.clone())).collect()
}

pub(crate) fn errors(reading: &Reading) -> Vec<(Code, String)> {
    listed(reading, Severity::Error)
}

pub(crate) fn notes(reading: &Reading) -> Vec<(Code, String)> {
    listed(reading, Severity::Note)
}

/// The document is valid as a producer must write it, and is written back as it came.
pub(crate) fn assert_accepted(document: &Json, about: &str) -> Message {
    let reading = strict(document);
    assert_eq!(errors(&reading), [], "{about}: {document}");
    let message = reading.message.unwrap_or_else(|| panic!("{about}: no message: {document}"));
    assert_same(&written(&message), document, about);
    message
}

/// The document is refused for exactly this, as a producer must write it.
pub(crate) fn assert_refused(document: &Json, expected: &[(Code, &str)], about: &str) {
    let reading = strict(document);
    let expected: Vec<_> = expected.iter().map(|(code, at)| (*code, (*at).to_owned())).collect();
    assert_eq!(errors(&reading), expected, "{about}: {document}");
    assert!(reading.message.is_none(), "{about}: there is a message: {document}");
}

/// The document stands for a subscriber, with exactly these notes, and is written back as it came.
pub(crate) fn assert_borne(document: &Json, expected: &[(Code, &str)], about: &str) -> Message {
    let reading = tolerant(document);
    assert_eq!(errors(&reading), [], "{about}: {document}");
    let expected: Vec<_> = expected.iter().map(|(code, at)| (*code, (*at).to_owned())).collect();
    assert_eq!(notes(&reading), expected, "{about}: {document}");
    let message = reading.message.unwrap_or_else(|| panic!("{about}: no message: {document}"));
    assert_same(&written(&message), document, about);
    message
}

pub(crate) fn written(message: &Message) -> Json {
    serde_json::to_value(message).expect("every message can be written")
}

pub(crate) fn assert_same(left: &Json, right: &Json, about: &str) {
    assert!(same(left, right), "{about}:\n  left: {left}\n right: {right}");
}

/// Whether two values are equal as JSON Schema means it: 1 and 1.0 are.
pub(crate) fn same(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => {
            left == right || left.as_f64() == right.as_f64()
        }
        (Json::Array(left), Json::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(a, b)| same(a, b))
        }
        (Json::Object(left), Json::Object(right)) => {
            let has = |(key, value): (&String, &Json)| {
                right.get(key).is_some_and(|other| same(value, other))
            };
            left.len() == right.len() && left.iter().all(has)
        }
        _ => left == right,
    }
}

// Changes.

/// What is different about a document.
#[derive(Clone)]
pub(crate) enum Change {
    Nothing,
    Set(String, Json),
    Drop(String),
    Both(Box<Change>, Box<Change>),
}

impl Change {
    pub(crate) fn and(self, next: Change) -> Change {
        Change::Both(Box::new(self), Box::new(next))
    }

    pub(crate) fn on(&self, document: &Json) -> Json {
        let mut changed = document.clone();
        self.apply(&mut changed);
        changed
    }

    fn apply(&self, document: &mut Json) {
        match self {
            Change::Nothing => {}
            Change::Set(pointer, value) => {
                let (parent, key) = split(pointer);
                match document.pointer_mut(parent).expect("a place to put it") {
                    Json::Object(fields) => {
                        fields.insert(key, value.clone());
                    }
                    Json::Array(items) => {
                        items[key.parse::<usize>().expect("index")] = value.clone();
                    }
                    other => panic!("{parent} is {other}"),
                }
            }
            Change::Drop(pointer) => {
                let (parent, key) = split(pointer);
                let fields = document.pointer_mut(parent).and_then(Json::as_object_mut);
                fields.expect("an object").remove(&key);
            }
            Change::Both(first, second) => {
                first.apply(document);
                second.apply(document);
            }
        }
    }

    /// The place of the last change.
    pub(crate) fn pointer(&self) -> &str {
        match self {
            Change::Nothing => "",
            Change::Set(pointer, _) | Change::Drop(pointer) => pointer,
            Change::Both(_, second) => second.pointer(),
        }
    }
}

fn split(pointer: &str) -> (&str, String) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    (parent, key.replace("~1", "/").replace("~0", "~"))
}

pub(crate) fn set(pointer: &str, value: impl Into<Json>) -> Change {
    Change::Set(pointer.to_owned(), value.into())
}

pub(crate) fn drop(pointer: &str) -> Change {
    Change::Drop(pointer.to_owned())
}

/// So many characters of three bytes each: lengths count characters, in every script.
pub(crate) fn words(count: usize) -> String {
    "ọ".repeat(count)
}
