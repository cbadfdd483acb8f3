//! The few messages of the protocol that we write.

use serde_json::{Value, json};

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
