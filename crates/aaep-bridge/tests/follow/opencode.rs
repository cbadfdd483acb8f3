//! `OpenCode`. The events are our own, in the shapes and the order that were recorded.

use aaep_bridge::follow::FollowedAgent;
use aaep_bridge::{AskAnswer, AskPolicy};
use serde_json::{Value, json};

use crate::server::FollowedServer;
use crate::stream_check::assert_sound;

/// A session in a turn that began with a prompt.
fn at_work() -> FollowedServer {
    let mut server = FollowedServer::new(FollowedAgent::OpenCode, AskPolicy::AskWhenRisky);
    server.says(event(
        "session.created",
        json!({ "sessionID": "ses_1", "info": { "id": "ses_1",
        "directory": "/home/ada/work/shop", "title": "A session" } }),
    ));
    server.says(event(
        "message.updated",
        json!({ "sessionID": "ses_1",
        "info": { "id": "msg_1", "role": "user", "sessionID": "ses_1" } }),
    ));
    for (id, text, is_synthetic) in [("prt_1", "Tidy up.", false), ("prt_2", "Files…", true)] {
        part(
            &mut server,
            json!({ "id": id, "messageID": "msg_1", "type": "text", "text": text,
            "synthetic": is_synthetic }),
        );
    }
    status(&mut server, "busy");
    server.says(event(
        "message.updated",
        json!({ "sessionID": "ses_1",
        "info": { "id": "msg_2", "role": "assistant", "sessionID": "ses_1" } }),
    ));
    server
}

fn event(kind: &str, properties: Value) -> Value {
    json!({ "id": "evt_1", "type": kind, "properties": properties })
}

fn part(server: &mut FollowedServer, part: Value) {
    server.says(event("message.part.updated", json!({ "sessionID": "ses_1", "part": part })));
}

fn status(server: &mut FollowedServer, kind: &str) {
    server
        .says(event("session.status", json!({ "sessionID": "ses_1", "status": { "type": kind } })));
}

fn rests(server: &mut FollowedServer) {
    status(server, "idle");
    server.says(event("session.idle", json!({ "sessionID": "ses_1" })));
}

fn bash(server: &mut FollowedServer, state: Value) {
    part(
        server,
        json!({ "id": "prt_9", "messageID": "msg_2", "type": "tool", "tool": "bash",
        "callID": "c1", "state": state }),
    );
}

fn input() -> Value {
    json!({ "command": "rm -rf build", "description": "Lists the files" })
}

fn asks(server: &mut FollowedServer) {
    bash(server, json!({ "status": "pending", "input": {}, "raw": "" }));
    bash(server, json!({ "status": "running", "input": input(), "time": { "start": 1 } }));
    server.says(permission("per_1", "bash", &["rm -rf build"]));
}

fn permission(id: &str, name: &str, patterns: &[&str]) -> Value {
    event(
        "permission.asked",
        json!({ "id": id, "sessionID": "ses_1", "permission": name,
        "patterns": patterns, "metadata": { "command": "rm -rf build" }, "always": ["rm *"],
        "tool": { "messageID": "msg_2", "callID": "c1" } }),
    )
}

fn replied(server: &mut FollowedServer, reply: &str) {
    server.says(event(
        "permission.replied",
        json!({ "sessionID": "ses_1", "requestID": "per_1", "reply": reply }),
    ));
}

fn text(server: &mut FollowedServer, id: &str, pieces: &[&str]) {
    let text = |text: &str, time: Value| {
        json!({ "id": id, "messageID": "msg_2", "type": "text",
        "text": text, "time": time })
    };
    part(server, text("", json!({ "start": 1 })));
    for piece in pieces {
        server.says(event(
            "message.part.delta",
            json!({ "sessionID": "ses_1", "messageID": "msg_2",
            "partID": id, "field": "text", "delta": piece }),
        ));
    }
    for _ in 0..2 {
        part(server, text(&pieces.concat(), json!({ "start": 1, "end": 2 })));
    }
}

#[test]
fn a_no_rejects_and_the_turn_ends() {
    let mut server = at_work();
    text(&mut server, "prt_3", &["I remove ", "it."]);
    asks(&mut server);
    server.person(&AskAnswer::Rejected);
    assert_eq!(
        server.sent,
        [json!({ "path": "/permission/per_1/reply", "body": { "reply": "reject" } })]
    );
    replied(&mut server, "reject");
    bash(
        &mut server,
        json!({ "status": "error", "input": input(), "error": "The user rejected it." }),
    );
    rests(&mut server);
    assert_eq!(
        server.words(),
        [
            "session.started: OpenCode begins: Tidy up.",
            "state.changed: thinking",
            "output.streaming: I remove ",
            "output.streaming: it.",
            "output.streaming: ",
            "awaiting.confirmation: Run the command: rm -rf build",
            "progress.updated: Was not run. Runs: rm -rf build",
            "session.completed: Done after 14 seconds: 1 not run.",
        ]
    );
    assert!(server.withdrawn.is_empty());
    assert_sound(&server.told);
}

#[test]
fn a_yes_is_once_and_never_always() {
    let mut server = at_work();
    asks(&mut server);
    let ask = server.told.last().expect("a question").clone();
    assert_eq!(
        ask["consequence"],
        "It deletes whole folders. Yes means “once”, and no means “reject”."
    );
    server.person(&AskAnswer::Accepted);
    assert_eq!(
        server.sent,
        [json!({ "path": "/permission/per_1/reply", "body": { "reply": "once" } })]
    );
    replied(&mut server, "once");
    for _ in 0..3 {
        bash(
            &mut server,
            json!({ "status": "running", "input": input(), "metadata": { "output": "" } }),
        );
    }
    bash(
        &mut server,
        json!({ "status": "completed", "input": input(), "output": "(no output)",
        "metadata": { "exit": 0 }, "title": "Done" }),
    );
    text(&mut server, "prt_4", &["All is well."]);
    rests(&mut server);
    assert_eq!(
        server.words_from("awaiting"),
        [
            "awaiting.confirmation: Run the command: rm -rf build",
            "tool.invoked: Runs: rm -rf build",
            "tool.completed: Done. Its last line: (no output)",
            "output.streaming: All is well.",
            "output.streaming: ",
            "session.completed: Done after 16 seconds: 1 tool used.",
        ]
    );
    assert_sound(&server.told);
}

#[test]
fn an_answer_at_the_keyboard_withdraws_the_question_here() {
    for (reply, words) in [
        ("once", "tool.invoked: In its own window it was answered: “once”. Runs: rm -rf build"),
        ("always", "tool.invoked: In its own window it was answered: “always”. Runs: rm -rf build"),
        (
            "reject",
            "progress.updated: Was not run. In its own window it was answered: “reject”. Runs: rm -rf build",
        ),
    ] {
        let mut server = at_work();
        asks(&mut server);
        replied(&mut server, reply);
        assert_eq!(server.withdrawn, server.asked);
        server.person(&AskAnswer::Accepted);
        assert!(server.sent.is_empty(), "a reply that comes too late reaches nobody");
        assert_eq!(server.words().last().expect("one"), words);
        rests(&mut server);
        assert_sound(&server.told);
    }
}

#[test]
fn only_an_exact_answer_of_the_person_is_one() {
    for answer in ["always", "once", "yes"]
        .map(|it| AskAnswer::Words(it.to_owned()))
        .into_iter()
        .chain([AskAnswer::Nothing, AskAnswer::NobodyThere])
    {
        let mut server = at_work();
        asks(&mut server);
        server.person(&answer);
        assert!(server.sent.is_empty(), "{answer:?}");
    }
}

#[test]
fn a_question_says_what_else_it_is_for() {
    let mut server = at_work();
    bash(&mut server, json!({ "status": "running", "input": input() }));
    server.says(permission("per_1", "external_directory", &["/etc/*"]));
    let ask = server.told.last().expect("a question");
    assert_eq!(
        ask["consequence"],
        "It deletes whole folders. Yes means “once: external_directory for /etc/*”, and no means “reject”."
    );
    // What cannot be said whole is not put.
    let mut server = at_work();
    bash(&mut server, json!({ "status": "running", "input": input() }));
    server.says(permission("per_1", "external_directory", &["x".repeat(300).as_str()]));
    assert!(server.asked.is_empty());
    assert!(server.words().last().expect("one").contains("Answer there."));
}

#[test]
fn an_open_dialog_is_found_on_attaching_and_asked_once() {
    let mut server = FollowedServer::new(FollowedAgent::OpenCode, AskPolicy::AskWhenRisky);
    for _ in 0..2 {
        server.says(permission("per_1", "bash", &["rm -rf build"]));
    }
    assert_eq!(server.asked.len(), 1);
    assert_eq!(
        server.words().last().expect("one"),
        "awaiting.confirmation: Run the command: rm -rf build"
    );
    // A text that was heard from its middle on is told when it is whole.
    status(&mut server, "busy");
    server.says(event(
        "message.part.delta",
        json!({ "sessionID": "ses_1", "messageID": "msg_2",
        "partID": "prt_5", "field": "text", "delta": "middle" }),
    ));
    part(
        &mut server,
        json!({ "id": "prt_5", "messageID": "msg_2", "type": "text",
        "text": "From the middle.", "time": { "start": 1, "end": 2 } }),
    );
    assert!(server.words().last().expect("one").ends_with("From the middle."));
    assert_sound(&server.told);
}

#[test]
fn edits_are_told_by_their_words_and_failures_by_their_reason() {
    let mut server = at_work();
    let edit =
        json!({ "filePath": "/home/ada/work/shop/a.txt", "oldString": "one", "newString": "two" });
    for state in [
        json!({ "status": "running", "input": edit }),
        json!({ "status": "completed", "input": edit, "output": "ok", "metadata": { "diff": "x" } }),
    ] {
        part(
            &mut server,
            json!({ "id": "prt_6", "messageID": "msg_2", "type": "tool", "tool": "edit",
            "callID": "c2", "state": state }),
        );
    }
    bash(
        &mut server,
        json!({ "status": "completed", "input": { "command": "cargo test" },
        "output": "2 failed", "metadata": { "exit": 101 } }),
    );
    server.says(event(
        "question.asked",
        json!({ "id": "que_1", "sessionID": "ses_1",
        "questions": [{ "question": "Which one?", "header": "h", "options": [] }] }),
    ));
    server.says(event("question.replied", json!({ "sessionID": "ses_1", "requestID": "que_1" })));
    server.says(event(
        "session.error",
        json!({ "sessionID": "ses_1",
        "error": { "name": "APIError", "data": { "message": "Too many requests." } } }),
    ));
    server.says(event("future.thing", json!({ "sessionID": "ses_1" })));
    rests(&mut server);
    assert_eq!(
        server.words_from("a.txt"),
        [
            "tool.invoked: Without asking you. Changes a.txt.",
            "tool.completed: a.txt: 1 line added, 1 line removed.",
            "tool.invoked: Without asking you. Runs: cargo test",
            "tool.completed: 2 failed",
            "state.changed: OpenCode has a question, which can only be answered in its own window. It asks: Which one?",
            "state.changed: It was answered in its own window.",
            "session.errored: It stopped because of an error. Too many requests.",
        ]
    );
    assert_sound(&server.told);
}

#[test]
fn a_server_that_dies_while_it_asks_closes_the_question() {
    let mut server = at_work();
    asks(&mut server);
    server.dies();
    assert_eq!(server.withdrawn, server.asked);
    server.person(&AskAnswer::Accepted);
    assert!(server.sent.is_empty());
    // It comes back, and asks the same.
    server.connects();
    server.says(permission("per_1", "bash", &["rm -rf build"]));
    assert_eq!(server.asked.len(), 2);
    server.person(&AskAnswer::Rejected);
    assert_eq!(server.sent.len(), 1);
    assert_sound(&server.told);
}

#[test]
fn a_person_can_stop_the_turn_and_ids_never_leave_their_place_in_a_path() {
    let mut server = at_work();
    let session = server.told[0]["session_id"].as_str().expect("a session").to_owned();
    let plan = server.bridge.cancel(&session);
    server.take(&plan);
    assert_eq!(server.sent[0]["path"], "/session/ses_1/abort");
    server.says(event(
        "session.error",
        json!({ "sessionID": "ses_1",
        "error": { "name": "MessageAbortedError", "data": {} } }),
    ));
    rests(&mut server);
    assert!(server.words().last().expect("one").starts_with("session.cancelled"));
    let mut server = at_work();
    server.says(permission("../session/ses_1/abort?", "bash", &["rm -rf build"]));
    server.person(&AskAnswer::Accepted);
    assert!(server.sent.is_empty());
}

#[test]
fn strange_events_never_end_the_bridge() {
    let mut server = at_work();
    asks(&mut server);
    let kinds = [
        "session.created",
        "session.updated",
        "session.status",
        "session.error",
        "message.updated",
        "message.part.updated",
        "message.part.delta",
        "permission.asked",
        "permission.replied",
        "question.asked",
        "question.replied",
        "todo.updated",
        "x",
    ];
    let long = "ä".repeat(100_000);
    let deep = (0..90).fold(json!(1), |inner, _| json!([inner]));
    for kind in kinds {
        for properties in [
            json!(null),
            json!([]),
            json!(3),
            deep.clone(),
            json!({ "sessionID": 5, "info": [], "part": "x", "status": 1 }),
            json!({ "sessionID": long, "id": long, "partID": long, "delta": long,
                "part": { "id": long, "messageID": long, "type": "text", "text": long } }),
            json!({ "sessionID": "ses_1", "part": { "type": "tool", "callID": "", "state": 5 } }),
        ] {
            server.says(event(kind, properties));
        }
    }
    for odd in [json!(null), json!([]), json!("x"), json!({}), json!({ "type": 5 })] {
        server.says(odd);
    }
    server.person(&AskAnswer::Rejected);
    assert_eq!(server.sent.len(), 1);
    rests(&mut server);
    assert_sound(&server.told);
}

#[test]
fn old_sessions_and_what_comes_after_the_end_begin_nothing() {
    let mut server = at_work();
    rests(&mut server);
    let before = server.told.len();
    text(&mut server, "prt_8", &["late"]);
    part(
        &mut server,
        json!({ "id": "prt_1", "messageID": "msg_1", "type": "text", "text": "Tidy up." }),
    );
    rests(&mut server);
    assert_eq!(server.told.len(), before, "{:#?}", server.words());
}
