//! Redacts a whole event, as the JSON object that it is before it is parsed.
//!
//! Every string is searched, in extensions and context objects too, except values that programs compare:
//! ids, protocol tokens, types and times are never changed. An address stays an address, and streamed text
//! keeps its number of characters. An ask keeps card and account numbers, because they are part of what the
//! person consents to.

use std::borrow::Cow;

use aaep::{CoreType, EventType};
use serde_json::{Map, Number, Value};

use super::numbers::is_social_security_name;
use super::{REDACTED, Redactor, ReplacementFit, SecretSearch};

/// The greatest depth that is searched. Deeper values are replaced as a whole.
pub const MAX_REDACT_DEPTH: usize = 64;

/// The replacement in an address, where brackets are not allowed.
const REDACTED_IN_URI: &str = "redacted";

/// Fields that programs compare, besides those that end in `_id` or begin with `@`.
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

/// Words in the name of a field that make its value a secret, whatever it looks like.
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
    /// Redacts an event. Returns the number of values that contained a secret.
    pub fn redact_event(&self, event: &mut Map<String, Value>) -> usize {
        let seek = if is_ask(event) { SecretSearch::Secrets } else { SecretSearch::All };
        EventRedactor { redactor: self, seek }.object(event, "", 0)
    }
}

/// Redacts one event.
struct EventRedactor<'r> {
    redactor: &'r Redactor,
    seek: SecretSearch,
}

impl EventRedactor<'_> {
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

    /// The elements of a list have the name of the list.
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
            Value::Number(number) if self.is_number_of_person(key, number) => {
                *value = Value::String(REDACTED.to_owned());
                1
            }
            _ => 0,
        }
    }

    /// A card number may appear in a foreign object as a JSON number.
    fn is_number_of_person(&self, key: &str, number: &Number) -> bool {
        let seek = self.seek_in(key);
        let is_named = seek == SecretSearch::NamedSocialSecurity;
        let find = || self.redactor.numbers.find(&number.to_string(), is_named);
        seek != SecretSearch::Secrets && number.is_u64() && !find().is_empty()
    }

    fn seek_in(&self, key: &str) -> SecretSearch {
        match self.seek {
            SecretSearch::All if is_social_security_name(key) => SecretSearch::NamedSocialSecurity,
            seek => seek,
        }
    }

    fn string(&self, key: &str, text: &mut String) -> bool {
        let redact = |fit| self.redactor.redact(text, fit, self.seek_in(key));
        let redacted = if is_secret_field(key) && !text.is_empty() {
            Cow::Borrowed(REDACTED)
        } else if key == "chunk" {
            redact(ReplacementFit::SameLength)
        } else if ["uri", "url", "href"].iter().any(|end| key.ends_with(end)) {
            Cow::Owned(redact(ReplacementFit::Marker).replace(REDACTED, REDACTED_IN_URI))
        } else {
            redact(ReplacementFit::Marker)
        };
        if *redacted == **text {
            return false;
        }
        *text = redacted.into_owned();
        true
    }
}

/// Whether the event is an ask, which must be delivered whole (§4.4.1, §4.4.2).
fn is_ask(event: &Map<String, Value>) -> bool {
    let name = event.get("type").and_then(Value::as_str).map(EventType::parse);
    matches!(
        name,
        Some(Ok(EventType::Core(CoreType::AwaitingConfirmation | CoreType::AwaitingClarification)))
    )
}

fn is_secret_field(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('-', "_");
    key == "authorization"
        || key == "token"
        || key.ends_with("_token")
        || SECRET_FIELDS.iter().any(|word| key.ends_with(word))
}
