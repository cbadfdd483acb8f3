//! The ids of JSON-RPC requests.

use serde_json::Value;

/// The longest id of a request that is remembered.
const MAX_ID_BYTES: usize = 256;

/// The id of a request, so that equal ids compare as equal however they are written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestId(String);

impl RequestId {
    pub(crate) fn of(id: &Value) -> Option<Self> {
        match id {
            Value::Number(number) => {
                // JavaScript may write 1 as 1.0.
                let whole = number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() < 9e15);
                Some(RequestId(whole.map_or_else(|| number.to_string(), |it| format!("{it:.0}"))))
            }
            Value::String(text) if text.len() <= MAX_ID_BYTES => {
                Some(RequestId(format!("\"{text}")))
            }
            _ => None,
        }
    }

    /// The id as it is written in a message.
    pub(crate) fn to_value(&self) -> Value {
        match self.0.strip_prefix('"') {
            Some(text) => text.into(),
            None => serde_json::from_str(&self.0).unwrap_or(Value::Null),
        }
    }

    /// The id of a response. `None` if the message is not a response.
    pub(crate) fn of_response(message: &Value) -> Option<Self> {
        let is_response = message.get("method").is_none()
            && (message.get("result").is_some() || message.get("error").is_some());
        if is_response { RequestId::of(&message["id"]) } else { None }
    }
}
