//! Reads a document: values, their contents, and equality.

use serde_json::{Map, Number};

use super::{JsonDocument, JsonKind, JsonNode};

/// A value in a document.
#[derive(Clone, Copy)]
pub(crate) struct JsonValue<'t, 'a> {
    document: &'t JsonDocument<'a>,
    pub(super) at: usize,
}

impl<'t, 'a> JsonValue<'t, 'a> {
    pub(super) fn new(document: &'t JsonDocument<'a>, at: usize) -> Self {
        JsonValue { document, at }
    }

    fn node(self) -> &'t JsonNode<'a> {
        &self.document.nodes[self.at]
    }

    /// The index after the last node of this value.
    pub(super) fn end(self) -> usize {
        match *self.node() {
            JsonNode::Array { end } | JsonNode::Object { end } => end,
            _ => self.at + 1,
        }
    }

    pub(crate) fn kind(self) -> JsonKind {
        match self.node() {
            JsonNode::Null => JsonKind::Null,
            JsonNode::Bool(_) => JsonKind::Bool,
            JsonNode::Number(_) => JsonKind::Number,
            JsonNode::String(_) | JsonNode::Key(_) => JsonKind::String,
            JsonNode::Array { .. } => JsonKind::Array,
            JsonNode::Object { .. } => JsonKind::Object,
        }
    }

    pub(crate) fn as_bool(self) -> Option<bool> {
        match self.node() {
            JsonNode::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn as_str(self) -> Option<&'t str> {
        match self.node() {
            JsonNode::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_number(self) -> Option<&'t Number> {
        match self.node() {
            JsonNode::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The items of an array; empty for any other value.
    pub(crate) fn items(self) -> impl Iterator<Item = JsonValue<'t, 'a>> {
        let array = matches!(self.node(), JsonNode::Array { .. });
        self.children().filter(move |_| array).map(|(_, value)| value)
    }

    /// The fields of an object in order; empty for any other value.
    pub(crate) fn fields(self) -> impl Iterator<Item = (&'t str, JsonValue<'t, 'a>)> {
        self.children().filter_map(|(key, value)| key.map(|key| (key, value)))
    }

    pub(crate) fn field(self, name: &str) -> Option<JsonValue<'t, 'a>> {
        self.fields().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    pub(super) fn children(self) -> ChildValues<'t, 'a> {
        let (next, end) = match *self.node() {
            JsonNode::Array { end } | JsonNode::Object { end } => (self.at + 1, end),
            _ => (0, 0),
        };
        ChildValues { document: self.document, next, end }
    }

    /// Whether two values are equal as JSON Schema defines it: 1 equals 1.0, and the order of keys
    /// does not matter.
    pub(crate) fn same_as(self, other: JsonValue<'_, '_>) -> bool {
        match (self.node(), other.node()) {
            (JsonNode::Number(a), JsonNode::Number(b)) => a == b || a.as_f64() == b.as_f64(),
            (JsonNode::String(a), JsonNode::String(b)) => a == b,
            (JsonNode::Bool(a), JsonNode::Bool(b)) => a == b,
            (JsonNode::Null, JsonNode::Null) => true,
            (JsonNode::Array { .. }, JsonNode::Array { .. }) => {
                self.items().count() == other.items().count()
                    && self.items().zip(other.items()).all(|(a, b)| a.same_as(b))
            }
            (JsonNode::Object { .. }, JsonNode::Object { .. }) => {
                self.fields().count() == other.fields().count()
                    && self.fields().all(|(key, a)| other.field(key).is_some_and(|b| a.same_as(b)))
            }
            _ => false,
        }
    }

    /// A copy that outlives the text, for data that is kept without being understood.
    pub(crate) fn to_json(self) -> serde_json::Value {
        match self.node() {
            JsonNode::Null => serde_json::Value::Null,
            JsonNode::Bool(value) => (*value).into(),
            JsonNode::Number(number) => number.clone().into(),
            JsonNode::String(text) | JsonNode::Key(text) => text.as_ref().into(),
            JsonNode::Array { .. } => self.items().map(JsonValue::to_json).collect(),
            JsonNode::Object { .. } => self.to_map().into(),
        }
    }

    /// The same for an object; empty for any other value.
    pub(crate) fn to_map(self) -> Map<String, serde_json::Value> {
        self.fields().map(|(key, value)| (key.to_owned(), value.to_json())).collect()
    }
}

pub(super) struct ChildValues<'t, 'a> {
    document: &'t JsonDocument<'a>,
    next: usize,
    end: usize,
}

impl<'t, 'a> Iterator for ChildValues<'t, 'a> {
    type Item = (Option<&'t str>, JsonValue<'t, 'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let key = match &self.document.nodes[self.next] {
            JsonNode::Key(key) => {
                self.next += 1;
                Some(key.as_ref())
            }
            _ => None,
        };
        let value = JsonValue { document: self.document, at: self.next };
        self.next = value.end();
        Some((key, value))
    }
}
