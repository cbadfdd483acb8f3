//! Redacting a whole event, as the JSON object that it is before it is read.
//!
//! Every string is looked at, in extensions and context objects too, but for what programs compare:
//! ids, tokens of the protocol, types and times are never touched. Where a field holds an address it
//! stays one, and where it is streamed text it keeps its number of characters.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Fit, REDACTED, Redactor};

/// How deep an event is looked into. What lies deeper is replaced as a whole.
pub const MAX_REDACT_DEPTH: usize = 64;

/// What stands in an address, where brackets may not.
const REDACTED_IN_URI: &str = "redacted";

/// Fields that programs compare, beside those that end in `_id` or begin with `@`.
const NEVER: [&str; 10] = [
    "type",
    "id",
    "timestamp",
    "reply_token",
    "aaep_version",
    "tool",
    "tools_available",
    "allowed_replies",
    "content_type",
    "language",
];

/// Words in the name of a field by which its value is a secret, whatever it looks like.
const SECRET_FIELDS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "credential",
];

impl Redactor {
    /// Takes the secrets out of an event. Gives back how many strings had one.
    pub fn redact_event(&self, event: &mut Map<String, Value>) -> usize {
        self.object(event, "", 0)
    }

    fn object(&self, object: &mut Map<String, Value>, parent: &str, depth: usize) -> usize {
        let is_compared = |key: &str| {
            key.starts_with('@')
                || key.ends_with("_id")
                || NEVER.contains(&key)
                || parent == "choices" && key == "value"
        };
        object
            .iter_mut()
            .filter(|(key, _)| !is_compared(key))
            .map(|(key, value)| self.value(key, value, depth + 1))
            .sum()
    }

    /// The elements of a list go by the name of the list.
    fn value(&self, key: &str, value: &mut Value, depth: usize) -> usize {
        if depth > MAX_REDACT_DEPTH {
            *value = Value::String(REDACTED.to_owned());
            return 1;
        }
        match value {
            Value::Object(object) => self.object(object, key, depth),
            Value::Array(list) => {
                list.iter_mut().map(|element| self.value(key, element, depth + 1)).sum()
            }
            Value::String(text) => usize::from(self.string(key, text)),
            _ => 0,
        }
    }

    fn string(&self, key: &str, text: &mut String) -> bool {
        let redacted = if is_secret_field(key) && !text.is_empty() {
            Cow::Borrowed(REDACTED)
        } else if key == "chunk" {
            self.redact(text, Fit::SameLength)
        } else if ["uri", "url", "href"].iter().any(|end| key.ends_with(end)) {
            Cow::Owned(self.redact(text, Fit::Marker).replace(REDACTED, REDACTED_IN_URI))
        } else {
            self.redact(text, Fit::Marker)
        };
        if *redacted == **text {
            return false;
        }
        *text = redacted.into_owned();
        true
    }
}

fn is_secret_field(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('-', "_");
    key == "authorization"
        || key == "token"
        || key.ends_with("_token")
        || SECRET_FIELDS.iter().any(|word| key.ends_with(word))
}
