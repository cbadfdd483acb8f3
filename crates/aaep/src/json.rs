//! One JSON text as a flat list of nodes that borrow from it (§3.8).
//!
//! `serde_json` does the lexing; this file adds what it does not tell: duplicate keys, whether an
//! integer still fits a double, and how deep the text nests, all within fixed bounds. It knows
//! nothing of AAEP's fields and never recurses deeper than [`MAX_DEPTH`].

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number};

use crate::violation::{Code, Violation};

/// The largest text that is looked into at all. §3.7 asks for 64 KiB; what lies between is reported
/// and, by a subscriber, tolerated. What is larger is refused unread.
pub const MAX_BYTES: usize = 1 << 20;

/// How deep arrays and objects may nest before a text is refused unread. §3.7 asks for 8.
pub const MAX_DEPTH: usize = 64;

/// The largest whole number that JSON carries exactly everywhere (§3.8).
pub const MAX_SAFE_INTEGER: u64 = 1 << 53;

/// The length in characters from which a string counts as long (§3.7).
pub(crate) const LONG_STRING: usize = 16384;

/// A parsed text.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    nodes: Vec<Node<'a>>,
    duplicates: Vec<usize>,
    big_numbers: Vec<usize>,
    long_strings: Vec<usize>,
    deepest: usize,
}

#[derive(Debug)]
enum Node<'a> {
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'a, str>),
    Key(Cow<'a, str>),
    /// `end` is the index behind the last node inside.
    Array {
        end: usize,
    },
    Object {
        end: usize,
    },
}

/// What kind of JSON value stands somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Null => "null",
            Kind::Bool => "true or false",
            Kind::Number => "a number",
            Kind::String => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        })
    }
}

impl<'a> Document<'a> {
    /// Parses one JSON text, whitespace around it allowed.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Violation> {
        if bytes.len() > MAX_BYTES {
            return Err(Violation::of_text(
                Code::TooLarge,
                format!("The message has {} bytes; nothing over {MAX_BYTES} is read.", bytes.len()),
            ));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let at = error.valid_up_to();
            Violation::of_text(Code::NotUtf8, format!("Byte {at} is not valid UTF-8."))
        })?;
        let mut document = Document {
            nodes: Vec::with_capacity(bytes.len() / 12 + 4),
            duplicates: Vec::new(),
            big_numbers: Vec::new(),
            long_strings: Vec::new(),
            deepest: 0,
        };
        let mut deserializer = serde_json::Deserializer::from_str(text);
        Builder { document: &mut document, depth: 0 }
            .deserialize(&mut deserializer)
            .and_then(|()| deserializer.end())
            .map_err(|error| explain(text, &error))?;
        Ok(document)
    }

    pub(crate) fn root(&self) -> Value<'_, 'a> {
        Value { document: self, at: 0 }
    }

    /// How many arrays and objects stand inside one another at most; 1 for a flat object.
    pub(crate) fn deepest(&self) -> usize {
        self.deepest
    }

    /// The JSON Pointers of keys that their object already had.
    pub(crate) fn duplicate_keys(&self) -> impl Iterator<Item = String> + '_ {
        self.duplicates.iter().map(|&at| self.pointer_to(at))
    }

    /// The JSON Pointers of numbers that a double cannot carry exactly.
    pub(crate) fn big_numbers(&self) -> impl Iterator<Item = String> + '_ {
        self.big_numbers.iter().map(|&at| self.pointer_to(at))
    }

    /// The JSON Pointers of strings with more characters than [`LONG_STRING`], and how many.
    pub(crate) fn long_strings(&self) -> impl Iterator<Item = (String, usize)> + '_ {
        self.long_strings.iter().filter_map(|&at| {
            let length = Value { document: self, at }.as_str()?.chars().count();
            (length > LONG_STRING).then(|| (self.pointer_to(at), length))
        })
    }

    /// The pointer to a node, found by walking down from the root: only for reports.
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

/// A place in a document.
#[derive(Clone, Copy)]
pub(crate) struct Value<'t, 'a> {
    document: &'t Document<'a>,
    at: usize,
}

impl<'t, 'a> Value<'t, 'a> {
    fn node(self) -> &'t Node<'a> {
        &self.document.nodes[self.at]
    }

    /// The index behind the last node of this value.
    fn end(self) -> usize {
        match *self.node() {
            Node::Array { end } | Node::Object { end } => end,
            _ => self.at + 1,
        }
    }

    pub(crate) fn kind(self) -> Kind {
        match self.node() {
            Node::Null => Kind::Null,
            Node::Bool(_) => Kind::Bool,
            Node::Number(_) => Kind::Number,
            Node::String(_) | Node::Key(_) => Kind::String,
            Node::Array { .. } => Kind::Array,
            Node::Object { .. } => Kind::Object,
        }
    }

    pub(crate) fn as_bool(self) -> Option<bool> {
        match self.node() {
            Node::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn as_str(self) -> Option<&'t str> {
        match self.node() {
            Node::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_number(self) -> Option<&'t Number> {
        match self.node() {
            Node::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The items of an array; nothing for any other value.
    pub(crate) fn items(self) -> impl Iterator<Item = Value<'t, 'a>> {
        let array = matches!(self.node(), Node::Array { .. });
        self.children().filter(move |_| array).map(|(_, value)| value)
    }

    /// The fields of an object in their order; nothing for any other value.
    pub(crate) fn fields(self) -> impl Iterator<Item = (&'t str, Value<'t, 'a>)> {
        self.children().filter_map(|(key, value)| key.map(|key| (key, value)))
    }

    pub(crate) fn field(self, name: &str) -> Option<Value<'t, 'a>> {
        self.fields().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    fn children(self) -> Children<'t, 'a> {
        let (next, end) = match *self.node() {
            Node::Array { end } | Node::Object { end } => (self.at + 1, end),
            _ => (0, 0),
        };
        Children { document: self.document, next, end }
    }

    /// Whether two values are equal as JSON Schema means it: 1 and 1.0 are, order of keys is not
    /// significant.
    pub(crate) fn same_as(self, other: Value<'_, '_>) -> bool {
        match (self.node(), other.node()) {
            (Node::Number(a), Node::Number(b)) => a == b || a.as_f64() == b.as_f64(),
            (Node::String(a), Node::String(b)) => a == b,
            (Node::Bool(a), Node::Bool(b)) => a == b,
            (Node::Null, Node::Null) => true,
            (Node::Array { .. }, Node::Array { .. }) => {
                self.items().count() == other.items().count()
                    && self.items().zip(other.items()).all(|(a, b)| a.same_as(b))
            }
            (Node::Object { .. }, Node::Object { .. }) => {
                self.fields().count() == other.fields().count()
                    && self.fields().all(|(key, a)| other.field(key).is_some_and(|b| a.same_as(b)))
            }
            _ => false,
        }
    }

    /// A copy that outlives the text: for what is kept without being understood.
    pub(crate) fn to_json(self) -> serde_json::Value {
        match self.node() {
            Node::Null => serde_json::Value::Null,
            Node::Bool(value) => (*value).into(),
            Node::Number(number) => number.clone().into(),
            Node::String(text) | Node::Key(text) => text.as_ref().into(),
            Node::Array { .. } => self.items().map(Value::to_json).collect(),
            Node::Object { .. } => self.to_map().into(),
        }
    }

    /// The same for an object; empty for any other value.
    pub(crate) fn to_map(self) -> Map<String, serde_json::Value> {
        self.fields().map(|(key, value)| (key.to_owned(), value.to_json())).collect()
    }
}

struct Children<'t, 'a> {
    document: &'t Document<'a>,
    next: usize,
    end: usize,
}

impl<'t, 'a> Iterator for Children<'t, 'a> {
    type Item = (Option<&'t str>, Value<'t, 'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let key = match &self.document.nodes[self.next] {
            Node::Key(key) => {
                self.next += 1;
                Some(key.as_ref())
            }
            _ => None,
        };
        let value = Value { document: self.document, at: self.next };
        self.next = value.end();
        Some((key, value))
    }
}

/// Appends what `serde_json` reads to a document.
struct Builder<'d, 'a> {
    document: &'d mut Document<'a>,
    depth: usize,
}

const TOO_DEEP: &str = "nested too deep";

impl<'a> Builder<'_, 'a> {
    fn push(&mut self, node: Node<'a>) {
        self.document.nodes.push(node);
    }

    fn push_number(&mut self, number: Number) {
        if !is_safe(&number) {
            self.document.big_numbers.push(self.document.nodes.len());
        }
        self.push(Node::Number(number));
    }

    fn push_string(&mut self, text: Cow<'a, str>) {
        if text.len() > LONG_STRING {
            self.document.long_strings.push(self.document.nodes.len());
        }
        self.push(Node::String(text));
    }

    /// Steps into an array or object.
    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.depth += 1;
        self.document.deepest = self.document.deepest.max(self.depth);
        if self.depth > MAX_DEPTH { Err(E::custom(TOO_DEEP)) } else { Ok(()) }
    }

    fn inside(&mut self) -> Builder<'_, 'a> {
        Builder { document: &mut *self.document, depth: self.depth }
    }
}

/// Whether a double carries the number exactly. A number above 2^53 has no fraction, so it counts
/// as an integer however it is written.
fn is_safe(number: &Number) -> bool {
    if let Some(value) = number.as_u64() {
        value <= MAX_SAFE_INTEGER
    } else if let Some(value) = number.as_i64() {
        value.unsigned_abs() <= MAX_SAFE_INTEGER
    } else {
        #[expect(clippy::cast_precision_loss, reason = "2^53 is exact as a double")]
        number.as_f64().is_some_and(|value| value.abs() <= MAX_SAFE_INTEGER as f64)
    }
}

impl<'a> DeserializeSeed<'a> for Builder<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Builder<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(mut self) -> Result<(), E> {
        self.push(Node::Null);
        Ok(())
    }

    fn visit_bool<E>(mut self, value: bool) -> Result<(), E> {
        self.push(Node::Bool(value));
        Ok(())
    }

    fn visit_i64<E>(mut self, value: i64) -> Result<(), E> {
        self.push_number(value.into());
        Ok(())
    }

    fn visit_u64<E>(mut self, value: u64) -> Result<(), E> {
        self.push_number(value.into());
        Ok(())
    }

    fn visit_f64<E: serde::de::Error>(mut self, value: f64) -> Result<(), E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        self.push_number(number);
        Ok(())
    }

    fn visit_borrowed_str<E>(mut self, value: &'a str) -> Result<(), E> {
        self.push_string(Cow::Borrowed(value));
        Ok(())
    }

    fn visit_str<E>(mut self, value: &str) -> Result<(), E> {
        self.push_string(Cow::Owned(value.to_owned()));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.enter::<A::Error>()?;
        let start = self.document.nodes.len();
        self.push(Node::Array { end: 0 });
        while let Some(()) = items.next_element_seed(self.inside())? {}
        self.document.nodes[start] = Node::Array { end: self.document.nodes.len() };
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut fields: A) -> Result<(), A::Error> {
        self.enter::<A::Error>()?;
        let start = self.document.nodes.len();
        self.push(Node::Object { end: 0 });
        while let Some(()) = fields.next_key_seed(Key(&mut *self.document))? {
            fields.next_value_seed(self.inside())?;
        }
        self.document.nodes[start] = Node::Object { end: self.document.nodes.len() };
        note_duplicates(self.document, start);
        Ok(())
    }
}

struct Key<'d, 'a>(&'d mut Document<'a>);

impl<'a> DeserializeSeed<'a> for Key<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'a> for Key<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'a str) -> Result<(), E> {
        self.0.nodes.push(Node::Key(Cow::Borrowed(key)));
        Ok(())
    }

    fn visit_str<E>(self, key: &str) -> Result<(), E> {
        self.0.nodes.push(Node::Key(Cow::Owned(key.to_owned())));
        Ok(())
    }
}

/// Notes the keys of the object at `start` that came before.
fn note_duplicates(document: &mut Document<'_>, start: usize) {
    let object = Value { document, at: start };
    if !has_duplicates(object) {
        return;
    }
    let mut keys: Vec<(&str, usize)> =
        object.fields().map(|(key, value)| (key, value.at - 1)).collect();
    keys.sort_unstable();
    let is_repeated = |pair: &&[(&str, usize)]| pair[0].0 == pair[1].0;
    let repeated: Vec<usize> = keys.windows(2).filter(is_repeated).map(|pair| pair[1].1).collect();
    document.duplicates.extend(repeated);
}

/// Whether keys may repeat: small objects are compared pair by pair, without allocating; large ones
/// are left to sorting, so that a hostile object of ten thousand keys does not cost their square.
fn has_duplicates(object: Value<'_, '_>) -> bool {
    const FEW: usize = 32;
    let mut keys = [""; FEW];
    for (count, (key, _)) in object.fields().enumerate() {
        if count == FEW {
            return true;
        }
        if keys[..count].contains(&key) {
            return true;
        }
        keys[count] = key;
    }
    false
}

/// Turns a syntax error into one that says where, and what a person most likely did.
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

/// Whether the twelve bytes before a place hold an escape in the surrogate range.
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
mod tests {
    use super::*;

    fn code(text: &[u8]) -> Code {
        Document::parse(text).expect_err("refused").code
    }

    #[test]
    fn a_text_becomes_the_same_values() {
        let text = r#" {"a":[1,-2,3.5,true,null,"x\n"],"b":{}} "#;
        let document = Document::parse(text.as_bytes()).expect("JSON");
        let again: serde_json::Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(document.root().to_json(), again);
        assert_eq!(document.deepest(), 2);
    }

    #[test]
    fn broken_texts_are_refused_by_name() {
        assert_eq!(code(b""), Code::NotJson);
        assert_eq!(code(b"{\"a\":1} x"), Code::NotJson);
        assert_eq!(code(b"{\"a\":1,}"), Code::NotJson);
        assert_eq!(code(b"{// json5\n}"), Code::NotJson);
        assert_eq!(code(b"\xef\xbb\xbf{}"), Code::NotJson);
        assert_eq!(code(b"{\"a\":\"\xff\"}"), Code::NotUtf8);
        assert_eq!(code(br#"{"a":"\ud800"}"#), Code::LoneSurrogate);
        assert_eq!(code(br#"{"a":"\udc00"}"#), Code::LoneSurrogate);
        assert_eq!(code(br#"{"a":"\ud800\u0041"}"#), Code::LoneSurrogate);
        assert_eq!(code(br#"{"a":"\ud800 and more"}"#), Code::LoneSurrogate);
        assert_eq!(code(&vec![b' '; MAX_BYTES + 1]), Code::TooLarge);
        assert_eq!(code("[".repeat(100_000).as_bytes()), Code::TooDeep);
        assert_eq!(code(r#"{"a":"#.repeat(100_000).as_bytes()), Code::TooDeep);
        assert_eq!(code(b"[1e999]"), Code::NotJson);
    }

    #[test]
    fn a_pair_of_surrogates_is_one_character() {
        let document = Document::parse(br#"["\ud83d\ude00"]"#).expect("JSON");
        assert_eq!(document.root().to_json()[0], "\u{1f600}");
    }

    #[test]
    fn duplicate_keys_and_big_numbers_are_found_where_they_are() {
        let text =
            br#"{"a":[{"x/y":1,"x/y":2}],"n":9007199254740993,"m":-9007199254740992,"f":1e300}"#;
        let document = Document::parse(text).expect("JSON");
        assert_eq!(document.duplicate_keys().collect::<Vec<_>>(), ["/a/0/x~1y"]);
        assert_eq!(document.big_numbers().collect::<Vec<_>>(), ["/n", "/f"]);
    }

    #[test]
    fn a_number_keeps_its_last_digit_when_it_is_written_and_read_again() {
        // Needs serde_json's feature `float_roundtrip`; found by fuzzing.
        let text = format!("[3{}]", "1".repeat(127));
        let once = Document::parse(text.as_bytes()).expect("JSON").root().to_json();
        let written = once.to_string();
        let twice = Document::parse(written.as_bytes()).expect("JSON").root().to_json();
        assert_eq!(once, twice);
    }

    #[test]
    fn ten_thousand_keys_are_read_without_their_square() {
        let fields: Vec<String> = (0..10_000).map(|n| format!("\"k{n}\":0")).collect();
        let text = format!("{{{},\"k7\":1}}", fields.join(","));
        let document = Document::parse(text.as_bytes()).expect("JSON");
        assert_eq!(document.duplicate_keys().collect::<Vec<_>>(), ["/k7"]);
    }

    #[test]
    fn equality_is_that_of_json_schema() {
        let document =
            Document::parse(br#"[1,1.0,{"a":1,"b":2},{"b":2.0,"a":1},[1],[1,2]]"#).expect("JSON");
        let items: Vec<_> = document.root().items().collect();
        assert!(items[0].same_as(items[1]));
        assert!(items[2].same_as(items[3]));
        assert!(!items[4].same_as(items[5]));
    }
}
