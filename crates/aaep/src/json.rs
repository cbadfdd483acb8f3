//! One JSON text as a flat list of nodes that borrow from it (§3.8).
//!
//! `serde_json` does the lexing. This file adds what it does not report: duplicate keys, whether an
//! integer still fits a double, and how deep the text nests, all within fixed bounds. It knows
//! nothing about AAEP's fields and never recurses deeper than [`MAX_DEPTH`]. `build` makes the list
//! and `value` reads it.

mod build;
mod value;

use std::borrow::Cow;
use std::fmt;

use serde::de::DeserializeSeed;
use serde_json::Number;

use self::build::{DocumentBuilder, TOO_DEEP};
pub(crate) use self::value::JsonValue;
use crate::read::Object;
use crate::violation::{Code, Violation};

/// The largest text that is parsed at all. §3.7 allows 64 KiB; larger texts up to this limit are
/// reported and, by a subscriber, tolerated. Anything beyond is refused unread.
pub const MAX_BYTES: usize = 1 << 20;

/// How deep arrays and objects may nest before a text is refused unread. §3.7 allows 8.
pub const MAX_DEPTH: usize = 64;

/// The largest integer that JSON represents exactly everywhere (§3.8).
pub const MAX_SAFE_INTEGER: u64 = 1 << 53;

/// Strings with more characters than this count as long (§3.7).
pub(crate) const LONG_STRING: usize = 16384;

/// A parsed JSON text.
#[derive(Debug)]
pub(crate) struct JsonDocument<'a> {
    nodes: Vec<JsonNode<'a>>,
    duplicates: Vec<usize>,
    big_numbers: Vec<usize>,
    long_strings: Vec<usize>,
    deepest: usize,
}

#[derive(Debug)]
enum JsonNode<'a> {
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'a, str>),
    Key(Cow<'a, str>),
    /// `end` is the index after the last node inside.
    Array {
        end: usize,
    },
    Object {
        end: usize,
    },
}

/// The kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonKind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl fmt::Display for JsonKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JsonKind::Null => "null",
            JsonKind::Bool => "true or false",
            JsonKind::Number => "a number",
            JsonKind::String => "a string",
            JsonKind::Array => "an array",
            JsonKind::Object => "an object",
        })
    }
}

impl<'a> JsonDocument<'a> {
    /// Parses one JSON text. Whitespace around it is allowed.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Violation> {
        bound(bytes.len())?;
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let at = error.valid_up_to();
            Violation::of_text(Code::NotUtf8, format!("Byte {at} is not valid UTF-8."))
        })?;
        let mut document = JsonDocument::with_capacity(bytes.len() / 12 + 4);
        let mut deserializer = serde_json::Deserializer::from_str(text);
        DocumentBuilder::new(&mut document)
            .deserialize(&mut deserializer)
            .and_then(|()| deserializer.end())
            .map_err(|error| explain(text, &error))?;
        Ok(document)
    }

    /// The document of an object that was parsed elsewhere, in which keys cannot repeat. `bytes` is
    /// its length as text.
    pub(crate) fn of(object: &'a Object, bytes: usize) -> Result<Self, Violation> {
        bound(bytes)?;
        let mut document = JsonDocument::with_capacity(2 * object.len() + 8);
        DocumentBuilder::new(&mut document).deserialize(object).map_err(|_| {
            let problem = format!("The message nests deeper than {MAX_DEPTH} levels.");
            Violation::of_text(Code::TooDeep, problem)
        })?;
        Ok(document)
    }

    fn with_capacity(nodes: usize) -> Self {
        JsonDocument {
            nodes: Vec::with_capacity(nodes),
            duplicates: Vec::new(),
            big_numbers: Vec::new(),
            long_strings: Vec::new(),
            deepest: 0,
        }
    }

    pub(crate) fn root(&self) -> JsonValue<'_, 'a> {
        JsonValue::new(self, 0)
    }

    /// The greatest depth of nested arrays and objects; 1 for a flat object.
    pub(crate) fn deepest(&self) -> usize {
        self.deepest
    }

    /// The JSON Pointers of keys that are repeated in their object.
    pub(crate) fn duplicate_keys(&self) -> impl Iterator<Item = String> + '_ {
        self.duplicates.iter().map(|&at| self.pointer_to(at))
    }

    /// The JSON Pointers of numbers that a double cannot represent exactly.
    pub(crate) fn big_numbers(&self) -> impl Iterator<Item = String> + '_ {
        self.big_numbers.iter().map(|&at| self.pointer_to(at))
    }

    /// The JSON Pointers of strings with more characters than [`LONG_STRING`], and their lengths.
    pub(crate) fn long_strings(&self) -> impl Iterator<Item = (String, usize)> + '_ {
        self.long_strings.iter().filter_map(|&at| {
            let length = JsonValue::new(self, at).as_str()?.chars().count();
            (length > LONG_STRING).then(|| (self.pointer_to(at), length))
        })
    }

    /// The pointer to a node, found by walking down from the root. Used only for reports.
    fn pointer_to(&self, target: usize) -> String {
        let mut pointer = String::new();
        let mut at = self.root();
        'down: while at.at != target {
            for (index, (key, value)) in at.children().enumerate() {
                let starts = if key.is_some() { value.at - 1 } else { value.at };
                if (starts..value.end()).contains(&target) {
                    match key {
                        Some(key) => push_key(&mut pointer, key),
                        None => push_key(&mut pointer, &index.to_string()),
                    }
                    if starts == target {
                        return pointer;
                    }
                    at = value;
                    continue 'down;
                }
            }
            return pointer;
        }
        pointer
    }
}

/// Refuses a text that is too large to be parsed.
fn bound(bytes: usize) -> Result<(), Violation> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let problem = format!("The message has {bytes} bytes; nothing over {MAX_BYTES} is read.");
    Err(Violation::of_text(Code::TooLarge, problem))
}

/// Appends one step to a JSON Pointer (RFC 6901).
pub(crate) fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    for c in key.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// Turns a syntax error into one that says where it is and what most likely caused it.
fn explain(text: &str, error: &serde_json::Error) -> Violation {
    let (line, column) = (error.line(), error.column());
    let place = if text.trim_end().contains('\n') {
        format!("line {line} of the message, column {column}")
    } else {
        format!("column {column}")
    };
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    if reason == TOO_DEEP || reason.starts_with("recursion limit") {
        return Violation::of_text(
            Code::TooDeep,
            format!("At {place} the message nests deeper than {MAX_DEPTH} levels."),
        );
    }
    if breaks_at_surrogate(text, line, column) {
        return Violation::of_text(
            Code::LoneSurrogate,
            format!("Near {place} an escape is half of a surrogate pair."),
        );
    }
    if text.starts_with('\u{feff}') {
        return Violation::of_text(
            Code::NotJson,
            "The text starts with a byte order mark; save it without one.".to_owned(),
        );
    }
    Violation::of_text(Code::NotJson, format!("At {place}: {reason}."))
}

/// Whether the last bytes before a position contain an escape in the surrogate range.
fn breaks_at_surrogate(text: &str, line: usize, column: usize) -> bool {
    let Some(line) = text.as_bytes().split(|&byte| byte == b'\n').nth(line.saturating_sub(1))
    else {
        return false;
    };
    let end = column.min(line.len());
    line[end.saturating_sub(13)..end].windows(4).any(|window| {
        matches!(window, [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F'])
    })
}

#[cfg(test)]
mod tests;
