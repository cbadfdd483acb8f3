//! Making a document from what `serde_json` reads, with what it does not tell: duplicate keys,
//! numbers that a double cannot carry, long strings, and depth.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::{Document, LONG_STRING, MAX_DEPTH, MAX_SAFE_INTEGER, Node, Value};

/// Appends what `serde_json` reads to a document.
pub(super) struct Builder<'d, 'a> {
    document: &'d mut Document<'a>,
    depth: usize,
}

pub(super) const TOO_DEEP: &str = "nested too deep";

impl<'d, 'a> Builder<'d, 'a> {
    pub(super) fn new(document: &'d mut Document<'a>) -> Self {
        Builder { document, depth: 0 }
    }

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
    let object = Value::new(document, start);
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
