//! Codex in a terminal. The messages are our own, in the shapes and the order that were recorded.

use aaep_bridge::follow::FollowedAgent;
use aaep_bridge::{AskAnswer, AskPolicy};
use serde_json::{Value, json};

use crate::server::FollowedServer;
use crate::stream_check::assert_sound;

const FOLDER: &str = "/home/ada/work/shop";

/// A thread that is heard, in a turn that began with a prompt.
fn at_work() -> FollowedServer {
    let mut server = attached(AskPolicy::AskWhenRisky);
    server.says(notice("turn/started", json!({ "threadId": "t1", "turn": { "id": "u1" } })));
    item(
        &mut server,
        true,
        json!({ "type": "userMessage", "id": "i1",
        "content": [{ "type": "text", "text": "Tidy up." }] }),
    );
    item(
        &mut server,
        false,
        json!({ "type": "userMessage", "id": "i1",
        "content": [{ "type": "text", "text": "Tidy up." }] }),
    );
    server
}

/// A thread that is heard and rests.
fn attached(policy: AskPolicy) -> FollowedServer {
    let mut server = FollowedServer::new(FollowedAgent::Codex, policy);
    let hello = server.requests("initialize");
    assert_eq!(hello.len(), 1);
    assert_eq!(hello[0].get("jsonrpc"), None);
    server.says(json!({ "id": hello[0]["id"], "result": { "platformOs": "linux" } }));
    assert_eq!(server.requests("initialized").len(), 1);
    let list = server.requests("thread/loaded/list").last().expect("a request").clone();
    server.says(json!({ "id": list["id"], "result": { "data": ["t1"], "nextCursor": null } }));
    resumed(&mut server, "t1", json!([]));
    server
}

fn resumed(server: &mut FollowedServer, thread: &str, turns: Value) {
    let resume = server.requests("thread/resume").last().expect("a request").clone();
    assert_eq!(resume["params"]["threadId"], thread);
    server.says(json!({ "id": resume["id"], "result": { "thread": { "id": thread, "cwd": FOLDER,
        "ephemeral": false, "status": { "type": "idle" }, "turns": turns } } }));
}

fn notice(method: &str, params: Value) -> Value {
    json!({ "method": method, "params": params, "emittedAtMs": 1 })
}

fn item(server: &mut FollowedServer, is_begin: bool, item: Value) {
    let method = if is_begin { "item/started" } else { "item/completed" };
    server.says(notice(method, json!({ "threadId": "t1", "turnId": "u1", "item": item })));
}

fn command(status: &str) -> Value {
    let code = if status == "completed" { json!(0) } else { Value::Null };
    json!({ "type": "commandExecution", "id": "c1", "command": "/bin/bash -lc 'rm -rf build'",
        "cwd": FOLDER, "source": "agent", "status": status, "exitCode": code,
        "aggregatedOutput": null })
}

fn waiting(server: &mut FollowedServer, flags: Value) {
    server.says(notice(
        "thread/status/changed",
        json!({ "threadId": "t1", "status": { "type": "active", "activeFlags": flags } }),
    ));
}

/// Codex asks whether it may remove the build folder.
fn asks(server: &mut FollowedServer) {
    waiting(server, json!(["waitingOnApproval"]));
    item(server, true, command("inProgress"));
    server.says(approval());
}

fn approval() -> Value {
    json!({ "id": 0, "method": "item/commandExecution/requestApproval", "params": {
        "kind": "command", "threadId": "t1", "turnId": "u1", "itemId": "c1", "startedAtMs": 1,
        "environmentId": "local", "reason": "It is only a cache, is it not?",
        "command": "/bin/bash -lc 'rm -rf build'", "cwd": FOLDER,
        "proposedExecpolicyAmendment": ["rm", "-rf", "build"],
        "availableDecisions": ["accept",
            { "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["rm"] } }, "cancel"] } })
}

fn resolved(server: &mut FollowedServer) {
    server.says(notice("serverRequest/resolved", json!({ "threadId": "t1", "requestId": 0 })));
    waiting(server, json!([]));
}

fn ends(server: &mut FollowedServer, status: &str) {
    let turn = json!({ "id": "u1", "status": status, "error": { "message": "Out of credit." } });
    server.says(notice("turn/completed", json!({ "threadId": "t1", "turn": turn })));
}

fn claims(server: &mut FollowedServer) {
    let message = |text: &str| json!({ "type": "agentMessage", "id": "m1", "text": text });
    item(server, true, message(""));
    for piece in ["The folder ", "is gone."] {
        server.says(notice(
            "item/agentMessage/delta",
            json!({ "threadId": "t1", "turnId": "u1", "itemId": "m1", "delta": piece }),
        ));
    }
    item(server, false, message("The folder is gone."));
}

fn decisions(server: &FollowedServer) -> Vec<Value> {
    let answers = server.sent.iter().filter(|it| it.get("method").is_none());
    answers.cloned().collect()
}

#[test]
fn a_no_is_told_as_not_run_whatever_the_model_claims() {
    let mut server = at_work();
    asks(&mut server);
    let ask = server.told.last().expect("a question").clone();
    assert_eq!(ask["action"], "Run the command: rm -rf build");
    assert_eq!(
        ask["consequence"],
        "It deletes whole folders. Yes means “yes, once”, and no means “no”."
    );
    assert_eq!(ask["default_decision"], "reject");
    server.person(&AskAnswer::Rejected);
    assert_eq!(decisions(&server), [json!({ "id": 0, "result": { "decision": "decline" } })]);
    resolved(&mut server);
    item(&mut server, false, command("declined"));
    claims(&mut server);
    ends(&mut server, "completed");
    assert_eq!(
        server.words(),
        [
            "session.started: Codex begins: Tidy up.",
            "state.changed: thinking",
            "awaiting.confirmation: Run the command: rm -rf build",
            "progress.updated: Was not run. Runs: rm -rf build",
            "output.streaming: The folder ",
            "output.streaming: is gone.",
            "output.streaming: ",
            "session.completed: Done after 12 seconds: 1 not run.",
        ]
    );
    assert_eq!(decisions(&server).len(), 1, "answered once");
    assert!(server.withdrawn.is_empty());
    assert_sound(&server.told);
}

#[test]
fn a_yes_is_for_one_time_and_the_command_is_told_once() {
    let mut server = at_work();
    asks(&mut server);
    server.person(&AskAnswer::Accepted);
    assert_eq!(decisions(&server), [json!({ "id": 0, "result": { "decision": "accept" } })]);
    resolved(&mut server);
    server.says(notice(
        "item/commandExecution/outputDelta",
        json!({ "threadId": "t1", "turnId": "u1", "itemId": "c1", "delta": "x" }),
    ));
    item(&mut server, false, command("completed"));
    ends(&mut server, "completed");
    assert_eq!(
        server.words_from("awaiting"),
        [
            "awaiting.confirmation: Run the command: rm -rf build",
            "tool.invoked: Runs: rm -rf build",
            "tool.completed: Done.",
            "session.completed: Done after 9 seconds: 1 tool used.",
        ]
    );
    assert!(server.withdrawn.is_empty());
    assert_sound(&server.told);
}

#[test]
fn an_answer_at_the_keyboard_withdraws_the_question_here() {
    for (status, words) in [
        (
            "completed",
            "tool.invoked: In its own window it was answered: “yes, once”. Runs: rm -rf build",
        ),
        (
            "declined",
            "progress.updated: Was not run. In its own window it was answered: “no”. Runs: rm -rf build",
        ),
    ] {
        let mut server = at_work();
        asks(&mut server);
        resolved(&mut server);
        assert_eq!(server.withdrawn, server.asked);
        // A reply that comes too late reaches nobody.
        server.person(&AskAnswer::Accepted);
        assert!(decisions(&server).is_empty());
        item(&mut server, false, command(status));
        assert!(server.words().contains(&words.to_owned()), "{:#?}", server.words());
        ends(&mut server, "completed");
        assert_sound(&server.told);
    }
}

#[test]
fn the_turn_that_is_stopped_at_the_keyboard_closes_its_question() {
    let mut server = at_work();
    asks(&mut server);
    ends(&mut server, "interrupted");
    assert_eq!(server.withdrawn, server.asked);
    let words = server.words();
    assert!(words.contains(&"progress.updated: Was not run. It was not allowed in its own window. Runs: rm -rf build".to_owned()), "{words:#?}");
    assert!(words.last().expect("one").starts_with("session.cancelled"), "{words:#?}");
    server.person(&AskAnswer::Accepted);
    assert!(decisions(&server).is_empty());
}

#[test]
fn no_answer_here_is_no_answer_and_the_dialog_stays() {
    for answer in [AskAnswer::Nothing, AskAnswer::NobodyThere, AskAnswer::Words("accept".into())] {
        let mut server = at_work();
        asks(&mut server);
        server.person(&answer);
        assert!(decisions(&server).is_empty(), "{answer:?}");
        let last = server.words().last().cloned().expect("words");
        assert_eq!(
            last,
            "state.changed: Nobody answered here. The question stays open in its own window."
        );
    }
}

#[test]
fn an_open_dialog_is_found_on_attaching() {
    let mut server = FollowedServer::new(FollowedAgent::Codex, AskPolicy::AskWhenRisky);
    let hello = server.requests("initialize")[0].clone();
    server.says(json!({ "id": hello["id"], "result": {} }));
    let list = server.requests("thread/loaded/list")[0].clone();
    server.says(json!({ "id": list["id"], "result": { "data": ["t1"] } }));
    resumed(
        &mut server,
        "t1",
        json!([
        { "id": "u0", "status": "completed", "items": [{ "type": "agentMessage", "id": "m0", "text": "Old." }] },
        { "id": "u1", "status": "inProgress", "items": [
            { "type": "userMessage", "id": "i1", "completedAtMs": 2,
              "content": [{ "type": "text", "text": "Tidy up." }] },
            { "type": "agentMessage", "id": "m1", "completedAtMs": 3, "text": "I remove it." },
            command("inProgress")] }]),
    );
    server.says(approval());
    assert_eq!(
        server.words(),
        [
            "session.started: Codex begins: Tidy up.",
            "state.changed: thinking",
            "output.streaming: I remove it.",
            "output.streaming: ",
            "progress.updated: Is about to act. It deletes whole folders. Runs: rm -rf build",
            "awaiting.confirmation: Run the command: rm -rf build",
        ]
    );
    server.person(&AskAnswer::Rejected);
    assert_eq!(decisions(&server), [json!({ "id": 0, "result": { "decision": "decline" } })]);
    assert_sound(&server.told);
}

#[test]
fn a_change_of_files_is_asked_with_what_it_changes() {
    let mut server = at_work();
    waiting(&mut server, json!(["waitingOnApproval"]));
    let change = |status: &str| {
        json!({ "type": "fileChange", "id": "f1", "status": status, "changes": [
        { "path": format!("{FOLDER}/notes.txt"), "kind": { "type": "update", "move_path": null },
          "diff": "@@ -1,2 +1,2 @@\n one\n-two\n+2\n" },
        { "path": format!("{FOLDER}/old.txt"), "kind": { "type": "delete" }, "diff": "gone\n" },
        { "path": format!("{FOLDER}/new.txt"), "kind": { "type": "add" }, "diff": "a\nb\n" }] })
    };
    item(&mut server, true, change("inProgress"));
    let request = |more: Value| {
        let mut params = json!({ "threadId": "t1", "turnId": "u1", "itemId": "f1", "startedAtMs": 1,
            "reason": null, "grantRoot": null });
        params.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
        json!({ "id": 4, "method": "item/fileChange/requestApproval", "params": params })
    };
    server.says(request(json!({})));
    let ask = server.told.last().expect("a question").clone();
    assert_eq!(
        ask["action"],
        "Change notes.txt: replace “two” by “2”. Delete old.txt. Create new.txt, 2 lines."
    );
    server.person(&AskAnswer::Accepted);
    server.says(notice("serverRequest/resolved", json!({ "threadId": "t1", "requestId": 4 })));
    item(&mut server, false, change("completed"));
    let words = server.words();
    assert!(
        words.last().expect("one").ends_with(
            "notes.txt: 1 line added, 1 line removed. old.txt was deleted. new.txt was created, 2 lines."
        ),
        "{words:#?}"
    );
    assert_sound(&server.told);
}

#[test]
fn a_change_that_becomes_another_one_is_no_longer_asked_here() {
    let mut server = at_work();
    let changes = |diff: &str| json!([{ "path": format!("{FOLDER}/a.txt"), "kind": { "type": "update" }, "diff": diff }]);
    let change = json!({ "type": "fileChange", "id": "f1", "status": "inProgress",
        "changes": changes("-one\n+two\n") });
    item(&mut server, true, change);
    server.says(json!({ "id": 4, "method": "item/fileChange/requestApproval",
        "params": { "threadId": "t1", "turnId": "u1", "itemId": "f1" } }));
    assert_eq!(server.asked.len(), 1);
    server.says(notice(
        "item/fileChange/patchUpdated",
        json!({ "threadId": "t1", "turnId": "u1", "itemId": "f1", "changes": changes("-one\n+evil\n") }),
    ));
    assert_eq!(server.withdrawn, server.asked);
    server.person(&AskAnswer::Accepted);
    assert!(decisions(&server).is_empty());
}

#[test]
fn what_wants_more_than_one_time_is_answered_in_the_window_alone() {
    let more = [
        ("item/fileChange/requestApproval", json!({ "grantRoot": "/home/ada" })),
        ("item/fileChange/requestApproval", json!({ "itemId": "not-told" })),
        (
            "item/commandExecution/requestApproval",
            json!({ "networkApprovalContext": { "host": "x" } }),
        ),
        (
            "item/commandExecution/requestApproval",
            json!({ "additionalPermissions": { "network": true } }),
        ),
        ("item/commandExecution/requestApproval", json!({ "kind": "writeStdin" })),
        (
            "item/commandExecution/requestApproval",
            json!({ "availableDecisions": ["acceptForSession", "cancel"] }),
        ),
        ("item/commandExecution/requestApproval", json!({ "availableDecisions": "accept" })),
        ("item/commandExecution/requestApproval", json!({ "command": null })),
        (
            "item/permissions/requestApproval",
            json!({ "permissions": { "network": { "enabled": true } } }),
        ),
        ("item/tool/requestUserInput", json!({ "questions": [{ "question": "Which one?" }] })),
        ("mcpServer/elicitation/request", json!({ "message": "Your name?" })),
    ];
    for (method, fields) in more {
        let mut server = at_work();
        item(&mut server, true, command("inProgress"));
        let mut request = approval();
        request["method"] = method.into();
        let params = request["params"].as_object_mut().expect("fields");
        if method != "item/commandExecution/requestApproval" {
            params.retain(|name, _| {
                ["threadId", "turnId", "itemId", "startedAtMs"].contains(&name.as_str())
            });
        }
        params.extend(fields.as_object().expect("fields").clone());
        server.says(request);
        assert!(server.asked.is_empty(), "{method} {fields}");
        let last = server.told.last().expect("an event").clone();
        assert_eq!(last["urgency"], "critical", "{last}");
        assert!(
            last["summary_normal"].as_str().expect("words").contains("its own window"),
            "{last}"
        );
        resolved(&mut server);
        ends(&mut server, "completed");
        assert!(decisions(&server).is_empty(), "{method} {fields}");
        assert_sound(&server.told);
    }
}

#[test]
fn what_ran_without_a_question_is_told_as_such() {
    let mut server = at_work();
    item(&mut server, true, command("inProgress"));
    item(&mut server, false, command("completed"));
    let mut failed = command("failed");
    failed["id"] = "c2".into();
    failed["exitCode"] = 3.into();
    item(&mut server, true, failed.clone());
    item(&mut server, false, failed);
    let mut declined = command("declined");
    declined["id"] = "c3".into();
    item(&mut server, true, declined.clone());
    item(&mut server, false, declined);
    server.says(notice(
        "item/autoApprovalReview/completed",
        json!({ "threadId": "t1", "turnId": "u1",
        "review": { "status": "denied" },
        "action": { "type": "command", "command": "rm -rf /", "cwd": FOLDER, "source": "shell" } }),
    ));
    server.says(notice("future/thing", json!({ "threadId": "t1" })));
    ends(&mut server, "completed");
    let about = "progress.updated: Is about to act. It deletes whole folders. Runs: rm -rf build";
    assert_eq!(
        server.words_from("Is about to act"),
        [
            about,
            "tool.invoked: Without asking you. Runs: rm -rf build",
            "tool.completed: Done.",
            about,
            "tool.invoked: Without asking you. Runs: rm -rf build",
            "tool.completed: It ended with exit code 3.",
            about,
            "progress.updated: Was not run. It was declined. Runs: rm -rf build",
            "progress.updated: A model, and not you, denied the command: rm -rf /",
            "session.completed: Done after 10 seconds: 2 tools used, 1 failed, 1 not run, 1 message of a form that is not known here.",
        ]
    );
    assert_sound(&server.told);
}

#[test]
fn ephemeral_threads_are_left_alone_and_later_ones_are_heard() {
    let mut server = attached(AskPolicy::AskWhenRisky);
    let started = |id: &str, is_ephemeral: bool| {
        notice(
            "thread/started",
            json!({ "thread": { "id": id, "ephemeral": is_ephemeral,
            "status": { "type": "idle" } } }),
        )
    };
    let active = |id: &str| {
        notice(
            "thread/status/changed",
            json!({ "threadId": id, "status": { "type": "active", "activeFlags": [] } }),
        )
    };
    server.says(started("title", true));
    server.says(active("title"));
    server.ticks();
    assert_eq!(server.requests("thread/resume").len(), 1);
    server.says(started("t2", false));
    assert_eq!(server.requests("thread/resume").len(), 1, "its first turn has not begun");
    server.says(active("t2"));
    // It can take a moment until it can be heard.
    for tries in 2..5 {
        let resume = server.requests("thread/resume").last().expect("a request").clone();
        assert_eq!(server.requests("thread/resume").len(), tries);
        server.says(
            json!({ "id": resume["id"], "error": { "code": -32603, "message": "is empty" } }),
        );
        server.ticks();
    }
    resumed(&mut server, "t2", json!([]));
    server.says(notice("turn/started", json!({ "threadId": "t2", "turn": { "id": "u9" } })));
    server.says(notice(
        "item/started",
        json!({ "threadId": "t2", "turnId": "u9",
        "item": { "type": "reasoning", "id": "r1" } }),
    ));
    assert_eq!(server.words(), ["session.started: Codex begins.", "state.changed: thinking"]);
    assert_eq!(server.bridge.sessions(), ["t1", "t2"]);
}

#[test]
fn a_thread_that_cannot_be_heard_is_given_up() {
    let mut server = attached(AskPolicy::AskWhenRisky);
    server.says(notice(
        "thread/status/changed",
        json!({ "threadId": "t2", "status": { "type": "active" } }),
    ));
    for _ in 0..100 {
        let resume = server.requests("thread/resume").last().expect("a request").clone();
        server.says(json!({ "id": resume["id"], "error": { "code": -32603, "message": "no" } }));
        server.ticks();
    }
    assert!(server.requests("thread/resume").len() < 60);
    assert_eq!(server.bridge.sessions(), ["t1"], "the hooks tell the other one");
}

#[test]
fn a_daemon_that_dies_while_it_asks_closes_the_question_and_can_come_back() {
    let mut server = at_work();
    asks(&mut server);
    server.dies();
    assert_eq!(server.withdrawn, server.asked);
    let words = server.words();
    assert_eq!(words.last().expect("one"), "session.errored: The connection was lost.");
    server.person(&AskAnswer::Accepted);
    assert!(decisions(&server).is_empty(), "a reply that is late reaches nobody");
    server.connects();
    let hello = server.requests("initialize").last().expect("a request").clone();
    server.says(json!({ "id": hello["id"], "result": {} }));
    let list = server.requests("thread/loaded/list").last().expect("a request").clone();
    server.says(json!({ "id": list["id"], "result": { "data": ["t1"] } }));
    resumed(&mut server, "t1", json!([{ "id": "u1", "status": "inProgress", "items": [] }]));
    // The same number means another request now.
    item(&mut server, true, command("inProgress"));
    server.says(approval());
    assert_eq!(server.asked.len(), 2);
    server.person(&AskAnswer::Rejected);
    assert_eq!(decisions(&server), [json!({ "id": 0, "result": { "decision": "decline" } })]);
    assert_sound(&server.told);
}

#[test]
fn a_tool_whose_end_is_not_reported_is_told_as_such() {
    let mut server = at_work();
    asks(&mut server);
    server.person(&AskAnswer::Accepted);
    resolved(&mut server);
    ends(&mut server, "interrupted");
    let words = server.words_from("tool.invoked");
    assert_eq!(words[1], "tool.completed: It was not reported how it ended.");
    assert!(words[2].starts_with("session.cancelled"), "{words:#?}");
    assert_sound(&server.told);
}

#[test]
fn a_connection_that_breaks_over_the_past_of_a_thread_is_made_without_it() {
    let mut server = attached(AskPolicy::AskWhenRisky);
    server.says(notice(
        "thread/status/changed",
        json!({ "threadId": "t2", "status": { "type": "active" } }),
    ));
    let excludes = |server: &FollowedServer| {
        server.requests("thread/resume").last().expect("one")["params"]["excludeTurns"].clone()
    };
    assert_eq!(excludes(&server), false);
    server.dies();
    server.connects();
    server.says(notice(
        "thread/status/changed",
        json!({ "threadId": "t2", "status": { "type": "active" } }),
    ));
    assert_eq!(excludes(&server), true);
}

#[test]
fn a_person_can_stop_the_turn() {
    let mut server = at_work();
    asks(&mut server);
    let session = server.told[0]["session_id"].as_str().expect("a session").to_owned();
    assert!(server.bridge.is_working_in(&session));
    let plan = server.bridge.cancel(&session);
    server.take(&plan);
    assert_eq!(
        server.requests("turn/interrupt")[0]["params"],
        json!({ "threadId": "t1", "turnId": "u1" })
    );
    assert_eq!(decisions(&server), [json!({ "id": 0, "result": { "decision": "cancel" } })]);
}

#[test]
fn with_the_policy_tell_the_window_alone_is_asked() {
    let mut server = attached(AskPolicy::Tell);
    asks(&mut server);
    assert!(server.asked.is_empty());
    let last = server.words().last().cloned().expect("words");
    assert_eq!(
        last,
        "state.changed: Codex asks in its own window: Run the command: rm -rf build It deletes whole folders. Answer there."
    );
}

#[test]
fn strange_messages_never_end_the_bridge() {
    let mut server = at_work();
    asks(&mut server);
    let methods = [
        "thread/started",
        "thread/status/changed",
        "turn/started",
        "turn/completed",
        "item/started",
        "item/completed",
        "item/agentMessage/delta",
        "turn/plan/updated",
        "serverRequest/resolved",
        "item/autoApprovalReview/completed",
        "thread/closed",
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "item/tool/requestUserInput",
        "x",
    ];
    let deep = (0..90).fold(json!(1), |inner, _| json!([inner]));
    let long = "ä".repeat(100_000);
    for method in methods {
        for params in [
            json!(null),
            json!([]),
            json!("x"),
            json!({ "threadId": 5 }),
            deep.clone(),
            json!({ "threadId": "t2", "item": { "type": 7 }, "turn": [] }),
            json!({ "threadId": long, "turnId": long, "itemId": long, "delta": long,
                "item": { "id": long, "type": "commandExecution", "command": long } }),
        ] {
            server.says(json!({ "method": method, "params": params }));
            server.says(json!({ "id": { "a": 1 }, "method": method, "params": params }));
            server.says(json!({ "id": long, "method": method, "params": params }));
        }
    }
    for odd in
        [json!(null), json!([]), json!(7), json!({}), json!({ "id": -1 }), json!({ "id": 0.5 })]
    {
        server.says(odd);
    }
    server.person(&AskAnswer::Rejected);
    assert_eq!(decisions(&server).len(), 1);
    ends(&mut server, "failed");
    assert_eq!(
        server.words().last().expect("one"),
        "session.errored: It stopped because of an error. Out of credit."
    );
    assert_sound(&server.told);
}
