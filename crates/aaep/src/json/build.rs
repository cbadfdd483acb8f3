//! Builds a document from what `serde_json` reads, and adds what it does not report: duplicate
//! keys, numbers that a double cannot represent, long strings, and depth.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::{JsonDocument, JsonNode, JsonValue, LONG_STRING, MAX_DEPTH, MAX_SAFE_INTEGER};

/// Appends what `serde_json` reads to a document.
pub(super) struct DocumentBuilder<'d, 'a> {
    document: &'d mut JsonDocument<'a>,
    depth: usize,
}

pub(super) const TOO_DEEP: &str = "nested too deep";

impl<'d, 'a> DocumentBuilder<'d, 'a> {
    pub(super) fn new(document: &'d mut JsonDocument<'a>) -> Self {
        DocumentBuilder { document, depth: 0 }
    }

    fn push(&mut self, node: JsonNode<'a>) {
        self.document.nodes.push(node);
    }

    fn push_number(&mut self, number: Number) {
        if !is_safe(&number) {
            self.document.big_numbers.push(self.document.nodes.len());
        }
        self.push(JsonNode::Number(number));
    }

    fn push_string(&mut self, text: Cow<'a, str>) {
        if text.len() > LONG_STRING {
            self.document.long_strings.push(self.document.nodes.len());
        }
        self.push(JsonNode::String(text));
    }

    /// Enters an array or object.
    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.depth += 1;
        self.document.deepest = self.document.deepest.max(self.depth);
        if self.depth > MAX_DEPTH { Err(E::custom(TOO_DEEP)) } else { Ok(()) }
    }

    fn inside(&mut self) -> DocumentBuilder<'_, 'a> {
        DocumentBuilder { document: &mut *self.document, depth: self.depth }
    }
}

/// Whether a double represents the number exactly. A number above 2^53 has no fraction, so it
/// counts as an integer in any notation.
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

impl<'a> DeserializeSeed<'a> for DocumentBuilder<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for DocumentBuilder<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(mut self) -> Result<(), E> {
        self.push(JsonNode::Null);
        Ok(())
    }

    fn visit_bool<E>(mut self, value: bool) -> Result<(), E> {
        self.push(JsonNode::Bool(value));
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
        self.push(JsonNode::Array { end: 0 });
        while let Some(()) = items.next_element_seed(self.inside())? {}
        self.document.nodes[start] = JsonNode::Array { end: self.document.nodes.len() };
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut fields: A) -> Result<(), A::Error> {
        self.enter::<A::Error>()?;
        let start = self.document.nodes.len();
        self.push(JsonNode::Object { end: 0 });
        while let Some(()) = fields.next_key_seed(KeySeed(&mut *self.document))? {
            fields.next_value_seed(self.inside())?;
        }
        self.document.nodes[start] = JsonNode::Object { end: self.document.nodes.len() };
        note_duplicates(self.document, start);
        Ok(())
    }
}

struct KeySeed<'d, 'a>(&'d mut JsonDocument<'a>);

impl<'a> DeserializeSeed<'a> for KeySeed<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'a> for KeySeed<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'a str) -> Result<(), E> {
        self.0.nodes.push(JsonNode::Key(Cow::Borrowed(key)));
        Ok(())
    }

    fn visit_str<E>(self, key: &str) -> Result<(), E> {
        self.0.nodes.push(JsonNode::Key(Cow::Owned(key.to_owned())));
        Ok(())
    }
}

/// Notes the repeated keys of the object at `start`.
fn note_duplicates(document: &mut JsonDocument<'_>, start: usize) {
    let object = JsonValue::new(document, start);
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

/// Whether keys may repeat. Small objects are compared pair by pair, without allocating. Large ones
/// are left to sorting, so that a hostile object of ten thousand keys does not cost quadratic time.
fn has_duplicates(object: JsonValue<'_, '_>) -> bool {
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
