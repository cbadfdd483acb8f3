//! The few messages of the protocol that we write, and the ids of requests.

use serde_json::{Value, json};

/// The longest id of a request that is remembered.
const MAX_ID_BYTES: usize = 256;

/// The id of a request, so that equal ids compare as equal however they are written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestId(String);

impl RequestId {
    pub(super) fn of(id: &Value) -> Option<Self> {
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

    /// The id of a response. `None` if the message is not a response.
    pub(super) fn of_response(message: &Value) -> Option<Self> {
        let is_response = message.get("method").is_none()
            && (message.get("result").is_some() || message.get("error").is_some());
        if is_response { RequestId::of(&message["id"]) } else { None }
    }
}

/// The answer to a permission request: the option that was chosen.
pub(super) fn selected(id: &Value, option: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id,
        "result": { "outcome": { "outcome": "selected", "optionId": option } } })
}

/// The answer to a permission request of a turn that was cancelled.
pub(super) fn cancelled(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": { "outcome": "cancelled" } } })
}

/// Asks the editor to close a request that was answered elsewhere.
pub(super) fn cancel_request(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } })
}

/// Asks the agent to stop its turn.
pub(super) fn cancel_session(session: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } })
}
