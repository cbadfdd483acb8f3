//! Reading a document: a value, what is inside it, and what it equals.

use serde_json::{Map, Number};

use super::{Document, Kind, Node};

/// A place in a document.
#[derive(Clone, Copy)]
pub(crate) struct Value<'t, 'a> {
    document: &'t Document<'a>,
    pub(super) at: usize,
}

impl<'t, 'a> Value<'t, 'a> {
    pub(super) fn new(document: &'t Document<'a>, at: usize) -> Self {
        Value { document, at }
    }

    fn node(self) -> &'t Node<'a> {
        &self.document.nodes[self.at]
    }

    /// The index behind the last node of this value.
    pub(super) fn end(self) -> usize {
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

    pub(super) fn children(self) -> Children<'t, 'a> {
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

pub(super) struct Children<'t, 'a> {
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
