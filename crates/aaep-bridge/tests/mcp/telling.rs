//! What the person hears of tools that run.

use aaep_bridge::AskPolicy;
use serde_json::{Value, json};

use crate::stream_check::assert_sound;
use crate::wire::{Wire, call, result};

fn progress(token: &Value, fields: &Value) -> Value {
    let mut params = fields.clone();
    params["progressToken"] = token.clone();
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
}

#[test]
fn a_call_is_told_from_its_name_and_arguments_to_its_end() {
    let mut wire = Wire::new(AskPolicy::Tell);
    wire.client(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "desk", "title": "Desk", "version": "1" } } }));
    wire.server(json!({ "jsonrpc": "2.0", "id": 0, "result": {
        "protocolVersion": "2025-11-25", "serverInfo": { "name": "Claude Code", "version": "1" } } }));
    let mut commit = call(
        &json!(1),
        "git_commit",
        &json!({ "message": "Fix the lamp", "files": ["a", "b"], "body": "one\ntwo\n", "sign": true,
            "x": 1 }),
    );
    commit["params"]["_meta"] = json!({ "progressToken": "t" });
    wire.client(commit);
    wire.server(progress(&json!("t"), &json!({ "progress": 1, "total": 4, "message": "Signing" })));
    wire.server(progress(&json!("t"), &json!({ "progress": 1, "total": 4, "message": "Signing" })));
    wire.server(progress(&json!("t"), &json!({ "progress": 3, "total": 4 })));
    wire.server(progress(&json!("other"), &json!({ "progress": 9 })));
    wire.server(result(&json!(1), "Committed 1a2b3c.\n2 files changed.\n"));
    wire.client(call(&json!(2), "git_push", &Value::Null));
    wire.server(json!({ "jsonrpc": "2.0", "id": 2, "result": { "isError": true,
        "content": [{ "type": "text", "text": "No remote." }] } }));
    wire.client(call(&json!(3), "nothing", &json!({})));
    wire.server(json!({ "jsonrpc": "2.0", "id": 3,
        "error": { "code": -32602, "message": "Unknown tool" } }));
    wire.ends();
    assert_eq!(
        wire.words(),
        [
            "session.started: Desk uses the tools of shop.",
            "tool.invoked: Uses git_commit: body 2 lines, files 2 items, message “Fix the lamp”, sign true, and 1 more \
             argument.",
            "progress.updated: Signing",
            "progress.updated: 75 percent.",
            "tool.completed: Done, 2 lines. The first: Committed 1a2b3c.",
            "tool.invoked: Uses git_push.",
            "tool.completed: No remote.",
            "tool.invoked: Uses nothing.",
            "tool.completed: Unknown tool",
            "session.completed: Closed after 10 seconds: 3 tools used, 2 failed.",
        ]
    );
    assert_sound(&wire.told);
    // Everything went through as it was.
    assert_eq!((wire.server.len(), wire.client.len()), (4, 8));
}

#[test]
fn a_call_that_goes_on_as_a_task_is_told_to_its_end() {
    let mut wire = Wire::new(AskPolicy::Tell);
    let mut slow = call(&json!(1), "print", &json!({}));
    slow["params"]["task"] = json!({ "ttl": 60_000 });
    wire.client(slow);
    wire.server(json!({ "jsonrpc": "2.0", "id": 1, "result": { "task": {
        "taskId": "k-1", "status": "working", "statusMessage": "In the queue." } } }));
    let status = |status: &str, said: &str| {
        json!({ "jsonrpc": "2.0", "method": "notifications/tasks/status",
            "params": { "taskId": "k-1", "status": status, "statusMessage": said } })
    };
    wire.server(status("working", "Page 1."));
    wire.client(json!({ "jsonrpc": "2.0", "id": 2, "method": "tasks/get",
        "params": { "taskId": "k-1" } }));
    wire.server(json!({ "jsonrpc": "2.0", "id": 2, "result": {
        "taskId": "k-1", "status": "working", "statusMessage": "Page 1." } }));
    wire.server(status("input_required", "Paper?"));
    wire.client(json!({ "jsonrpc": "2.0", "id": 3, "method": "tasks/result",
        "params": { "taskId": "k-1" } }));
    wire.server(result(&json!(3), "Printed."));
    assert_eq!(
        wire.words()[1..],
        [
            "tool.invoked: Uses print.",
            "progress.updated: Goes on in the background: In the queue.",
            "progress.updated: Page 1.",
            "state.changed: shop needs something first. Answer in the program. Paper? Uses print.",
            "tool.completed: Done: Printed.",
        ]
    );
    assert_sound(&wire.told);
}

#[test]
fn a_task_of_the_revision_without_a_handshake_ends_with_its_last_status() {
    let mut wire = Wire::new(AskPolicy::Tell);
    wire.client(call(&json!(1), "print", &json!({})));
    wire.server(json!({ "jsonrpc": "2.0", "id": 1, "result": {
        "resultType": "task", "taskId": "k-2", "status": "working" } }));
    wire.client(json!({ "jsonrpc": "2.0", "id": 2, "method": "tasks/get",
        "params": { "taskId": "k-2" } }));
    wire.server(json!({ "jsonrpc": "2.0", "id": 2, "result": { "taskId": "k-2",
        "status": "failed", "error": { "code": 1, "message": "No paper." } } }));
    assert_eq!(wire.last_words(), "tool.completed: No paper.");
    wire.ends();
    assert_eq!(
        wire.last_words(),
        "session.completed: Closed after 4 seconds: 1 tool used, 1 failed."
    );
    assert_sound(&wire.told);
}

#[test]
fn a_server_that_ends_in_the_middle_is_told_so() {
    let mut wire = Wire::new(AskPolicy::Tell);
    wire.client(call(&json!(1), "print", &json!({})));
    wire.ends();
    assert_eq!(wire.last_words(), "session.errored: The server ended.");
    assert_sound(&wire.told);
}
