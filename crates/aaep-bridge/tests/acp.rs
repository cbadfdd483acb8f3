//! What people hear of an agent that speaks the Agent Client Protocol, and how its questions are answered.

#![expect(clippy::disallowed_methods, reason = "recordings are files")]

#[path = "acp/chat.rs"]
mod chat;
#[path = "acp/recordings.rs"]
mod recordings;
#[path = "stream_check/mod.rs"]
mod stream_check;
#[path = "acp/wire.rs"]
mod wire;

use aaep_bridge::acp::{AcpForward, AcpPlan, AcpSide};
use aaep_bridge::{AskAnswer, AskPolicy};
use serde_json::{Value, json};
use stream_check::assert_sound;
use wire::{Wire, chosen, permission, plain_options, removal};

#[test]
fn a_turn_is_told_from_its_prompt_to_its_end() {
    let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
    let chunk = |text: &str, message: &str| {
        json!({ "sessionUpdate": "agent_message_chunk", "messageId": message,
            "content": { "type": "text", "text": text } })
    };
    wire.update(chunk("I run ", "m1"));
    wire.update(chunk("the tests.", "m1"));
    wire.update(json!({ "sessionUpdate": "agent_thought_chunk",
        "content": { "type": "text", "text": "secret thoughts" } }));
    wire.update(json!({ "sessionUpdate": "plan", "entries": [
        { "content": "Run the tests", "priority": "high", "status": "in_progress" },
        { "content": "Write", "priority": "high", "status": "pending" }] }));
    wire.update(json!({ "sessionUpdate": "tool_call", "toolCallId": "t-1", "kind": "execute",
        "title": "Deletes everything", "status": "in_progress", "rawInput": { "command": "cargo test" } }));
    wire.update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t-1",
        "status": "completed", "content": [{ "type": "content",
        "content": { "type": "text", "text": "running\n41 passed" } }] }));
    wire.update(json!({ "sessionUpdate": "tool_call", "toolCallId": "t-2", "kind": "edit",
        "status": "pending", "title": "Edit" }));
    wire.update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t-2",
        "status": "completed", "content": [{ "type": "diff", "path": "/home/ada/work/shop/src/cart.rs",
        "oldText": "a\nb\n", "newText": "a\nc\nd\n" }] }));
    wire.update(chunk("All is ", "m2"));
    wire.update(chunk("done.", "m3"));
    wire.ends("end_turn");
    assert_eq!(
        wire.words(),
        [
            "session.started: Gemini CLI begins: Tidy up.",
            "state.changed: thinking",
            "output.streaming: I run ",
            "output.streaming: the tests.",
            "output.streaming: ",
            "progress.updated: Its plan: 0 of 2 steps done. Now: Run the tests",
            "tool.invoked: Runs: cargo test",
            "tool.completed: Done. Its last line: 41 passed",
            "tool.invoked: Without asking you. Changes src/cart.rs.",
            "tool.completed: src/cart.rs: 2 lines added, 1 line removed.",
            "output.streaming: All is ",
            "output.streaming: ",
            "output.streaming: done.",
            "output.streaming: ",
            "session.completed: Done after 11 seconds: 2 tools used, changed src/cart.rs.",
        ]
    );
    assert_eq!(wire.told[0]["producer"]["agent_id"], "gemini-cli");
    assert_eq!(wire.told[0]["extensions"]["agentvoice"]["project"], "work/shop");
    assert_sound(&wire.told);
}

#[test]
fn an_accept_here_allows_once_and_closes_the_question_in_the_editor() {
    let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
    let asked = wire.asks(json!(0));
    assert_eq!(asked.forward, AcpForward::Unchanged, "the editor is asked as well");
    let ask = asked.ask.expect("a question");
    assert!(ask.is_confirmation);
    assert_eq!(ask.event["action"], "Run the command: rm -rf build");
    assert_eq!(
        ask.event["consequence"],
        "It deletes whole folders. Yes means “Allow”, and no means “Reject”."
    );
    assert_eq!(
        (&ask.event["risk_level"], &ask.event["irreversible"]),
        (&json!("high"), &json!(true))
    );
    assert_eq!(ask.event["default_decision"], "reject");
    wire.person(ask.number, &AskAnswer::Accepted);
    assert_eq!(wire.answers_to(&json!(0)), [json!({ "outcome": "selected", "optionId": "once" })]);
    let closing = wire.editor.last().expect("a message");
    assert_eq!(closing["method"], "$/cancel_request");
    assert_eq!(closing["params"]["requestId"], 0);
    let invoked = wire.told.last().expect("an event");
    assert_eq!(invoked["summary_normal"], "Runs: rm -rf build");
    assert_eq!(
        invoked["extensions"]["agentvoice"]["action_digest"],
        ask.event["extensions"]["agentvoice"]["action_digest"]
    );
    // The editor's late answer, in whatever form, does not reach the agent.
    let late =
        json!({ "jsonrpc": "2.0", "id": 0.0, "error": { "code": -32800, "message": "cancelled" } });
    assert_eq!(wire.editor(late.clone()).forward, AcpForward::Nothing);
    // Only once: a second one is not ours.
    assert_eq!(wire.editor(late).forward, AcpForward::Unchanged);
    assert!(wire.withdrawn.is_empty());
    assert_sound(&wire.told);
}

#[test]
fn a_reject_here_rejects_and_is_told_whatever_the_agent_says_later() {
    let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
    let ask = wire.asks(json!("u-1")).ask.expect("a question");
    wire.person(ask.number, &AskAnswer::Rejected);
    assert_eq!(
        wire.answers_to(&json!("u-1")),
        [json!({ "outcome": "selected", "optionId": "no" })]
    );
    // Kimi says that it runs before it says that it was rejected.
    for status in ["in_progress", "failed"] {
        wire.update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t-1",
            "title": "Running: rm -rf build", "status": status }));
    }
    wire.update(json!({ "sessionUpdate": "agent_message_chunk",
        "content": { "type": "text", "text": "The folder is gone." } }));
    wire.ends("end_turn");
    let words = wire.words();
    assert!(!words.iter().any(|it| it.starts_with("tool.")), "{words:?}");
    assert_eq!(words[3], "progress.updated: Was not run. Runs: rm -rf build");
    assert_eq!(
        words.last().expect("an end"),
        "session.completed: Done after 5 seconds: 1 not run."
    );
    assert_sound(&wire.told);
}

#[test]
fn the_editors_answer_withdraws_the_question_and_counts_alone() {
    for (option, told) in [
        ("once", "tool.invoked: In the editor it was answered: “Allow”. Runs: rm -rf build"),
        (
            "no",
            "progress.updated: Was not run. In the editor it was answered: “Reject”. Runs: rm -rf build",
        ),
        ("unheard of", "progress.updated: In the editor it was answered: “”."),
    ] {
        let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
        let ask = wire.asks(json!(7)).ask.expect("a question");
        let plan = wire.editor(chosen(&json!(7), option));
        assert_eq!(plan.forward, AcpForward::Unchanged);
        assert_eq!(wire.withdrawn, [ask.number]);
        // The person's late answer comes to nothing.
        for late in [AskAnswer::Accepted, AskAnswer::Rejected, AskAnswer::Nothing] {
            assert_eq!(wire.person(ask.number, &late), AcpPlan::default());
        }
        assert_eq!(wire.answers_to(&json!(7)).len(), 1);
        assert_eq!(wire.words().last().expect("words"), told);
        assert_sound(&wire.told);
    }
}

#[test]
fn silence_and_words_that_mean_no_option_leave_the_question_in_the_editor() {
    for answer in [AskAnswer::Nothing, AskAnswer::Words("always".to_owned())] {
        let mut wire = Wire::begun(AskPolicy::AskBeforeChanges);
        let ask = wire.asks(json!(0)).ask.expect("a question");
        wire.person(ask.number, &answer);
        assert!(wire.answers_to(&json!(0)).is_empty());
        assert_eq!(wire.person(ask.number, &AskAnswer::Accepted), AcpPlan::default());
        assert_eq!(wire.editor(chosen(&json!(0), "once")).forward, AcpForward::Unchanged);
        assert_eq!(wire.answers_to(&json!(0)).len(), 1);
        assert_sound(&wire.told);
    }
}

#[test]
fn options_of_the_same_kind_become_choices_with_the_names_of_the_agent() {
    let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
    let options = json!([
        { "optionId": "p1", "name": "Allow", "kind": "allow_once" },
        { "optionId": "p2", "name": "Switch to Default Mode and allow once", "kind": "allow_once" },
        { "optionId": "c", "name": "Reject", "kind": "reject_once" },
    ]);
    let ask = wire.agent(permission(&json!(0), &removal(), &options)).ask.expect("a question");
    assert!(!ask.is_confirmation);
    assert_eq!(
        ask.event["question"],
        "May it do this? Run the command: rm -rf build It deletes whole folders. It cannot be undone."
    );
    let labels: Vec<&Value> =
        ask.event["choices"].as_array().expect("choices").iter().map(|it| &it["label"]).collect();
    assert_eq!(labels, ["Allow", "Switch to Default Mode and allow once", "Reject"]);
    assert!(ask.event.get("default_response").is_none());
    wire.person(ask.number, &AskAnswer::Words("p2".to_owned()));
    assert_eq!(wire.answers_to(&json!(0)), [json!({ "outcome": "selected", "optionId": "p2" })]);
    let words = wire.words();
    assert_eq!(
        words.last().expect("words"),
        "tool.invoked: You chose: “Switch to Default Mode and allow once”. Runs: rm -rf build"
    );
    assert_sound(&wire.told);
}

#[test]
fn what_is_not_known_exactly_is_never_of_low_risk_and_the_last_call_of_the_id_counts() {
    let only_id = json!({ "toolCallId": "t-9" });
    let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
    wire.update(json!({ "sessionUpdate": "tool_call", "toolCallId": "t-9", "kind": "execute",
        "status": "pending", "rawInput": { "command": "git push --force" } }));
    let ask = wire.agent(permission(&json!(0), &only_id, &plain_options())).ask.expect("one");
    assert_eq!(ask.event["action"], "Run the command: git push --force");
    let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
    let ask = wire.agent(permission(&json!(0), &only_id, &plain_options())).ask.expect("one");
    assert_eq!(ask.event["action"], "Do something. It does not say exactly what.");
    assert_eq!(ask.event["risk_level"], "medium");
    // Gemini has the command in its title alone. A title makes nothing mild, but it can make it worse.
    for (title, level) in [("ls", "medium"), ("rm -rf build && touch a", "high")] {
        let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
        let call = json!({ "toolCallId": "t-1", "kind": "execute", "title": title });
        let ask = wire.agent(permission(&json!(0), &call, &plain_options())).ask.expect("one");
        assert_eq!(ask.event["risk_level"], level, "{title}");
        let words = format!("Run something. It does not say exactly what. It says: “{title}”.");
        assert_eq!(ask.event["action"], words);
        assert_sound(&wire.told);
    }
}

#[test]
fn no_kind_of_an_agent_hides_a_command_or_makes_a_request_mild() {
    let editing = json!({ "command": "create", "path": "/home/ada/work/shop/a.txt" });
    let hidden = json!({ "command": "rm -rf /", "path": "/home/ada/work/shop/a.txt" });
    for (kind, input, level) in [
        ("edit", editing, "low"),
        ("edit", hidden.clone(), "high"),
        ("read", hidden.clone(), "high"),
        ("think", hidden, "high"),
        ("think", json!({ "prompt": "Look around" }), "medium"),
        ("switch_mode", json!({ "plan": "Write it" }), "medium"),
        ("fetch", json!({ "query": "cats" }), "medium"),
        ("other", json!({}), "medium"),
    ] {
        let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
        let call = json!({ "toolCallId": "t-1", "kind": kind, "rawInput": input });
        let ask = wire.agent(permission(&json!(0), &call, &plain_options())).ask.expect("one");
        assert_eq!(ask.event["risk_level"], level, "{kind} {input}");
    }
}

#[test]
fn a_call_that_changes_while_the_person_thinks_is_not_covered_by_their_answer() {
    let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
    let ask = wire.asks(json!(0)).ask.expect("a question");
    wire.update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t-1",
        "rawInput": { "command": "rm -rf /" } }));
    assert_eq!(wire.withdrawn, [ask.number]);
    assert_eq!(wire.person(ask.number, &AskAnswer::Accepted), AcpPlan::default());
    assert!(wire.answers_to(&json!(0)).is_empty());
    assert_eq!(wire.told.last().expect("an event")["urgency"], "critical");
    assert_sound(&wire.told);
}

#[test]
fn what_ran_although_it_was_denied_or_was_not_asked_is_told_as_such() {
    let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
    let ask = wire.asks(json!(0)).ask.expect("a question");
    wire.person(ask.number, &AskAnswer::Rejected);
    let done =
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t-1", "status": "completed" });
    wire.update(done.clone());
    wire.update(done);
    wire.update(json!({ "sessionUpdate": "tool_call", "toolCallId": "t-2", "kind": "execute",
        "status": "in_progress", "rawInput": { "command": "rm -rf dist" } }));
    wire.update(
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t-2", "status": "completed" }),
    );
    let words = wire.words();
    assert_eq!(
        words[4..],
        [
            "tool.invoked: Ran, although it was not allowed. Runs: rm -rf build",
            "tool.completed: Done.",
            "progress.updated: Is about to act. It deletes whole folders. Runs: rm -rf dist",
            "tool.invoked: Without asking you. Runs: rm -rf dist",
            "tool.completed: Done.",
        ]
    );
    assert_sound(&wire.told);
}

#[test]
fn with_the_policy_tell_a_question_is_only_told() {
    let mut wire = Wire::begun(AskPolicy::Tell);
    assert_eq!(wire.asks(json!(0)).ask, None);
    let told = wire.told.last().expect("an event").clone();
    assert_eq!(
        (&told["to_state"], &told["urgency"]),
        (&json!("awaiting_input"), &json!("critical"))
    );
    assert_eq!(
        told["summary_normal"],
        "Gemini CLI asks in the editor: Run the command: rm -rf build It deletes whole folders. Answer there."
    );
    assert_eq!(wire.editor(chosen(&json!(0), "once")).forward, AcpForward::Unchanged);
    assert_sound(&wire.told);
}

#[test]
fn a_cancel_from_either_side_never_allows_anything() {
    // The editor cancels, and then answers its open question itself.
    let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
    let ask = wire.asks(json!(0)).ask.expect("a question");
    wire.editor(
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s-1" } }),
    );
    assert_eq!(wire.withdrawn, [ask.number]);
    assert_eq!(wire.person(ask.number, &AskAnswer::Accepted), AcpPlan::default());
    wire.editor(
        json!({ "jsonrpc": "2.0", "id": 0, "result": { "outcome": { "outcome": "cancelled" } } }),
    );
    wire.ends("cancelled");
    assert_eq!(wire.answers_to(&json!(0)), [json!({ "outcome": "cancelled" })]);
    let words = wire.words();
    assert!(
        words.contains(
            &"progress.updated: Was not run. It was not allowed in the editor. Runs: rm -rf build"
                .to_owned()
        ),
        "{words:?}"
    );
    assert!(words.last().expect("an end").starts_with("session.cancelled: It was stopped"));
    assert_sound(&wire.told);
    // The person cancels here.
    let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
    let ask = wire.asks(json!(0)).ask.expect("a question");
    let session = wire.told[0]["session_id"].as_str().expect("a session").to_owned();
    assert!(wire.bridge.is_working_in(&session));
    assert_eq!(wire.bridge.cancel("another"), AcpPlan::default());
    let plan = wire.bridge.cancel(&session);
    wire.take(&plan);
    assert_eq!(plan.to_agent[0]["method"], "session/cancel");
    assert_eq!(wire.answers_to(&json!(0)), [json!({ "outcome": "cancelled" })]);
    assert_eq!(wire.withdrawn, [ask.number]);
    assert_eq!(wire.editor(chosen(&json!(0), "once")).forward, AcpForward::Nothing);
    wire.ends("cancelled");
    assert!(!wire.bridge.is_working_in(&session));
    assert_sound(&wire.told);
}

#[test]
fn a_question_asked_again_under_a_number_that_the_editor_still_answers_is_cancelled() {
    let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
    let ask = wire.asks(json!(0)).ask.expect("a question");
    wire.person(ask.number, &AskAnswer::Rejected);
    let again = wire.asks(json!(0));
    assert_eq!((again.forward, again.ask), (AcpForward::Nothing, None));
    assert_eq!(again.to_agent[0]["result"]["outcome"]["outcome"], "cancelled");
    assert_eq!(wire.editor(chosen(&json!(0), "once")).forward, AcpForward::Nothing);
}

#[test]
fn a_batch_goes_on_without_what_was_answered_before() {
    let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
    let ask = wire.asks(json!(0)).ask.expect("a question");
    wire.person(ask.number, &AskAnswer::Rejected);
    let other = json!({ "jsonrpc": "2.0", "method": "x/y" });
    let plan = wire.editor(json!([chosen(&json!(0), "once"), other]));
    assert_eq!(plan.forward, AcpForward::Instead(json!([other])));
}

#[test]
fn every_reason_to_stop_is_told_in_words() {
    for (reason, words) in [
        (
            "max_tokens",
            "session.errored: It stopped in the middle, because the model had no more room for words.",
        ),
        (
            "max_turn_requests",
            "session.errored: It stopped in the middle, because it reached its limit of steps",
        ),
        ("refusal", "session.errored: It refuses to go on with this."),
        ("cancelled", "session.cancelled: It was stopped after"),
        ("new_reason", "session.errored: It stopped for a reason of its own."),
    ] {
        let mut wire = Wire::begun(AskPolicy::Tell);
        wire.ends(reason);
        let told = wire.words().pop().expect("an end");
        assert!(told.starts_with(words), "{told}");
        assert_sound(&wire.told);
    }
    let mut wire = Wire::begun(AskPolicy::Tell);
    wire.agent(
        json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32000, "message": "No key." } }),
    );
    assert_eq!(
        wire.words().pop().expect("an end"),
        "session.errored: It stopped because of an error. No key."
    );
    assert_sound(&wire.told);
}

#[test]
fn a_program_that_is_gone_withdraws_its_questions_and_ends_its_turns() {
    let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
    wire.update(json!({ "sessionUpdate": "agent_message_chunk",
        "content": { "type": "text", "text": "I beg" } }));
    let ask = wire.asks(json!(0)).ask.expect("a question");
    let plan = wire.bridge.end("The agent is gone.");
    wire.take(&plan);
    assert_eq!(wire.withdrawn, [ask.number]);
    assert_eq!(wire.words().pop().expect("an end"), "session.errored: The agent is gone.");
    assert_eq!(wire.person(ask.number, &AskAnswer::Accepted), AcpPlan::default());
    assert_sound(&wire.told);
}

#[test]
fn an_old_session_that_is_repeated_is_not_told_again_and_modes_are_told_when_they_change() {
    let mut wire = Wire::new(AskPolicy::Tell);
    wire.editor(json!({ "jsonrpc": "2.0", "id": 5, "method": "session/load",
        "params": { "sessionId": "s-1", "cwd": "/home/ada/work/shop" } }));
    wire.update(json!({ "sessionUpdate": "agent_message_chunk",
        "content": { "type": "text", "text": "old words" } }));
    wire.agent(json!({ "jsonrpc": "2.0", "id": 5, "result": { "modes": { "currentModeId": "auto",
        "availableModes": [
            { "id": "auto", "name": "Auto", "description": "A model decides" },
            { "id": "ask", "name": "Manual", "description": null }] } } }));
    assert!(wire.told.is_empty());
    let prompt = json!({ "sessionId": "s-1", "prompt": [{ "type": "text", "text": "Go on." }] });
    wire.editor(json!({ "jsonrpc": "2.0", "id": 6, "method": "session/prompt", "params": prompt }));
    for _ in 0..2 {
        wire.update(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "ask" }));
    }
    wire.editor(json!({ "jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": prompt }));
    assert_eq!(
        wire.words(),
        [
            "session.started: gemini begins: Go on.",
            "state.changed: thinking",
            "progress.updated: Its mode: Auto. A model decides",
            "progress.updated: Its mode: Manual.",
            "progress.updated: You add: Go on.",
        ]
    );
    wire.agent(json!({ "jsonrpc": "2.0", "id": 6, "result": { "stopReason": "end_turn" } }));
    assert!(!wire.words().pop().expect("words").starts_with("session."));
    wire.agent(json!({ "jsonrpc": "2.0", "id": 7, "result": { "stopReason": "end_turn" } }));
    assert!(wire.words().pop().expect("words").starts_with("session.completed"));
    assert_sound(&wire.told);
}

#[test]
fn an_agent_of_another_version_works_and_is_not_told_wrongly() {
    let mut wire = Wire::new(AskPolicy::AskWhenRisky);
    wire.editor(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize" }));
    let plan = wire.agent(json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": 2 } }));
    assert!(plan.notice.is_some());
    wire.editor(json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt",
        "params": { "sessionId": "s-1", "prompt": [] } }));
    assert_eq!(wire.asks(json!(0)), AcpPlan::default());
    assert!(wire.told.is_empty());
}

#[test]
fn strange_messages_go_on_unchanged_and_never_end_the_bridge() {
    let junk =
        [json!(null), json!(1), json!([]), json!({}), json!([[1]]), json!("x".repeat(100_000))];
    for from in [AcpSide::Editor, AcpSide::Agent] {
        for method in [
            "initialize",
            "session/new",
            "session/load",
            "session/prompt",
            "session/cancel",
            "session/update",
            "session/request_permission",
            "elicitation/create",
            "$/cancel_request",
        ] {
            let mut wire = Wire::begun(AskPolicy::AskWhenRisky);
            for bad in &junk {
                assert_eq!(wire.hear(from, bad).forward, AcpForward::Unchanged);
                for id in &junk {
                    let message = json!({ "id": id, "method": method, "params": bad });
                    assert_eq!(wire.hear(from, &message).forward, AcpForward::Unchanged);
                    let answer = json!({ "id": id, "result": bad });
                    assert_eq!(wire.hear(from, &answer).forward, AcpForward::Unchanged);
                }
                let update = json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "content": bad,
                    "rawInput": bad, "locations": bad, "status": "completed", "_meta": bad });
                wire.update(update);
                wire.update(json!({ "sessionUpdate": "plan", "entries": bad }));
                wire.agent(permission(&json!(3), bad, bad));
                let call =
                    json!({ "toolCallId": "t2", "rawInput": bad, "content": bad, "kind": bad });
                wire.agent(permission(&json!(4), &call, &plain_options()));
            }
            assert_sound(&wire.told);
        }
    }
}
