//! Garbage, floods, and messages that are made to mean something else to somebody else.

use aaep_bridge::AskPolicy;
use aaep_bridge::mcp::{McpForward, McpSide};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::wire::{Wire, call, result, tool_error};

#[test]
fn what_is_not_understood_passes_unless_a_call_could_hide_in_it() {
    let mut wire = Wire::new(AskPolicy::AskWhenRisky);
    for line in ["\n", "hello\n", "{\"method\":\"ping\"\n", "\u{feff}\n", "7\n", "\"x\"\n"] {
        let plan = wire.hear(McpSide::Client, line.as_bytes());
        assert_eq!(plan.forward, McpForward::Unchanged, "{line:?}");
    }
    let passed = wire.server.len();
    for line in [
        // Two names: each side would believe another one.
        r#"{"id":1,"method":"ping","method":"tools/call","params":{"name":"t"}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"look","name":"delete"}}"#,
        // Programs that take this for JSON exist.
        r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"x":NaN}}}"#,
        r#"{"id":1,"method":"tools\/call","params":{"name":"\ud800"}}"#,
        r#"{"id":1,"method":"\u0074ools/call","params":{"x":1e999}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"t"}} {"#,
        // Programs that take a carriage return for the end of a line exist too.
        "{\"id\":1,\"method\":\"ping\",\"params\":\r{\"id\":2,\"method\":\"tools/call\"}\r}",
        "\0{\0}\0",
    ] {
        let plan = wire.hear(McpSide::Client, format!("{line}\n").as_bytes());
        assert_eq!(plan.forward, McpForward::Nothing, "{line}");
        let reply: Value = serde_json::from_slice(&plan.to_client[0]).expect("JSON");
        assert_eq!(reply["error"]["code"], -32_700);
    }
    assert_eq!((wire.server.len(), wire.asked.len()), (passed, 0));
    // What the server writes is not judged.
    let plan = wire.hear(McpSide::Server, b"{\"id\":1,\"id\":2,\n");
    assert_eq!(plan.forward, McpForward::Unchanged);
}

#[test]
fn a_call_without_an_id_is_a_call() {
    let mut wire = Wire::new(AskPolicy::AskWhenRisky);
    let mut nameless = call(&json!(1), "t", &json!({}));
    nameless.as_object_mut().expect("an object").remove("id");
    wire.client(nameless);
    wire.client(call(&Value::Null, "t", &json!({})));
    wire.client(call(&json!([1]), "t", &json!({})));
    wire.client(json!({ "method": "tools/call" }));
    assert_eq!((wire.asked.len(), wire.server.len()), (4, 0));
    for number in wire.asked.clone() {
        wire.person(number, &aaep_bridge::AskAnswer::Rejected);
    }
    assert_eq!(wire.server.len(), 0);
}

#[test]
fn what_cannot_be_put_whole_is_not_put_and_does_not_run() {
    let mut wire = Wire::new(AskPolicy::AskWhenRisky);
    wire.client(call(&json!(1), "t", &json!({ "text": "x".repeat(20_000) })));
    assert_eq!((wire.asked.len(), wire.server.len()), (0, 0));
    let replies = wire.to_client();
    let (text, is_tool_error) = tool_error(&replies[0]);
    assert!(is_tool_error && text.contains("too long"), "{text}");
}

#[test]
fn a_flood_of_calls_is_refused_and_not_kept() {
    let mut wire = Wire::new(AskPolicy::AskWhenRisky);
    for id in 0..200 {
        wire.client(call(&json!(id), "t", &json!({})));
    }
    assert_eq!((wire.asked.len(), wire.server.len(), wire.client.len()), (64, 0, 136));
    let replies = wire.to_client();
    assert!(tool_error(&replies[0]).0.contains("Too many calls wait"));
}

#[test]
fn a_server_cannot_answer_a_call_that_waits_into_running() {
    let mut wire = Wire::new(AskPolicy::AskWhenRisky);
    wire.client(call(&json!(1), "t", &json!({})));
    wire.server(result(&json!(1), "Done already."));
    assert_eq!(wire.server.len(), 0);
    wire.says("no");
    assert_eq!(wire.server.len(), 0);
}

#[test]
fn long_messages_that_were_skipped_get_an_answer() {
    let mut wire = Wire::new(AskPolicy::AskWhenRisky);
    let plan = wire.bridge.hear_too_long(&json!(1), Some("tools/call"));
    let reply: Value = serde_json::from_slice(&plan.to_client[0]).expect("JSON");
    assert!(tool_error(&reply).1);
    let plan = wire.bridge.hear_too_long(&json!("x"), Some("completion/complete"));
    let reply: Value = serde_json::from_slice(&plan.to_client[0]).expect("JSON");
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!("x"), &json!(-32_600)));
    // An answer to the server was skipped: the server must not wait for it.
    let plan = wire.bridge.hear_too_long(&json!(9), None);
    let reply: Value = serde_json::from_slice(&plan.to_server[0]).expect("JSON");
    assert_eq!((&reply["id"], reply["error"].is_object()), (&json!(9), true));
    let plan = wire.bridge.hear_too_long(&Value::Null, Some("notifications/x"));
    assert_eq!((plan.to_client.len(), plan.to_server.len()), (0, 0));
}

/// Parts of messages, so that what is made of them often means something.
fn some_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "tools/call",
        "tools/list",
        "elicitation/create",
        "notifications/cancelled",
        "notifications/progress",
        "tasks/get",
        "input_required",
        "t",
        "form",
        "k-1",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4_i64).prop_map(Value::from),
        word.prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "id",
        "method",
        "params",
        "result",
        "error",
        "name",
        "arguments",
        "requestId",
        "progressToken",
        "_meta",
        "task",
        "taskId",
        "status",
        "tools",
        "annotations",
        "mode",
        "message",
        "requestedSchema",
        "properties",
        "type",
        "resultType",
        "inputRequests",
        "requestState",
        "inputResponses",
        "progress",
        "total",
    ]);
    leaf.prop_recursive(4, 48, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..6).prop_map(|fields| {
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}

/// Whether a tool call is anywhere in a message.
fn has_call(line: &[u8]) -> bool {
    let is_call = |it: &Value| it["method"] == "tools/call";
    match serde_json::from_slice::<Value>(line) {
        Ok(Value::Array(batch)) => batch.iter().any(is_call),
        Ok(message) => is_call(&message),
        Err(_) => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_conversation_lets_a_call_through_without_a_yes(
        messages in prop::collection::vec((any::<bool>(), some_json()), 1..24),
        answers in prop::collection::vec(0..4_u8, 0..24),
    ) {
        let mut wire = Wire::new(AskPolicy::AskBeforeChanges);
        let mut answers = answers.into_iter();
        for (is_client, message) in messages {
            let side = if is_client { McpSide::Client } else { McpSide::Server };
            wire.hear(side, format!("{message}\n").as_bytes());
            if let (Some(answer), Some(number)) = (answers.next(), wire.asked.last().copied()) {
                let answer = match answer {
                    0 => aaep_bridge::AskAnswer::Rejected,
                    1 => aaep_bridge::AskAnswer::Nothing,
                    2 => aaep_bridge::AskAnswer::Words("answer".to_owned()),
                    _ => aaep_bridge::AskAnswer::NobodyThere,
                };
                wire.person(number, &answer);
            }
        }
        wire.client_leaves();
        wire.ends();
        prop_assert!(!wire.server.iter().any(|it| has_call(it)));
    }

    #[test]
    fn no_bytes_are_changed_with_tell(line in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut wire = Wire::new(AskPolicy::Tell);
        prop_assert_eq!(wire.hear(McpSide::Client, &line).forward, McpForward::Unchanged);
        prop_assert_eq!(wire.hear(McpSide::Server, &line).forward, McpForward::Unchanged);
    }
}
