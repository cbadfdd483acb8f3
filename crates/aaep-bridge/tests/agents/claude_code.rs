//! What people hear of Claude Code, and what it may do, from payloads of the shapes that it really sends.

use std::ops::{Deref, DerefMut};

use aaep_bridge::{AskAnswer, AskPolicy, BridgedAgent, HookAnswer, HookCall, HookPlan};
use serde_json::{Value, json};

use crate::harness::{Session, assert_sound, assert_valid};

/// A Claude Code with one turn.
struct ClaudeCode(Session);

impl Deref for ClaudeCode {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl DerefMut for ClaudeCode {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.0
    }
}

impl ClaudeCode {
    fn new(policy: AskPolicy) -> Self {
        ClaudeCode(Session::new(BridgedAgent::ClaudeCode, policy))
    }

    /// Calls a hook, and takes over its events.
    #[expect(clippy::needless_pass_by_value, reason = "made where it is passed")]
    fn hook(&mut self, event: &str, fields: Value) -> HookPlan {
        let mut payload = json!({
            "session_id": "8c1f6a52-0000-4000-8000-000000000001",
            "transcript_path": "/home/ada/.claude/t.jsonl",
            "cwd": "/home/ada/work/shop",
            "prompt_id": "p-1",
            "permission_mode": "auto",
            "hook_event_name": event,
        });
        for (key, value) in fields.as_object().expect("fields") {
            payload[key] = value.clone();
        }
        self.call("", &payload)
    }

    fn prompt(&mut self) {
        self.hook("UserPromptSubmit", json!({ "prompt": "Tidy the build folder." }));
    }

    fn remove(&mut self, event: &str) -> HookPlan {
        let mut fields = json!({
            "tool_name": "Bash",
            "tool_input": { "command": "rm -rf build", "description": "Only lists files" },
        });
        if event != "PermissionRequest" {
            fields["tool_use_id"] = "toolu_1".into();
        }
        if event == "PostToolUse" {
            fields["tool_response"] = json!({ "stdout": "", "stderr": "", "interrupted": false });
        }
        self.hook(event, fields)
    }

    fn stop(&mut self, last: &str) -> HookPlan {
        self.hook("Stop", json!({ "last_assistant_message": last, "background_tasks": [] }))
    }
}

#[test]
fn a_turn_is_told_from_its_prompt_to_its_end() {
    let mut session = ClaudeCode::new(AskPolicy::AskWhenRisky);
    session.hook("SessionStart", json!({ "source": "startup" }));
    session.prompt();
    session.hook(
        "MessageDisplay",
        json!({ "message_id": "m1", "index": 0, "final": true, "delta": "I run the tests.\n" }),
    );
    let test = json!({ "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": { "command": "cargo test" } });
    assert!(session.hook("PreToolUse", test.clone()).answer.is_nothing());
    let mut done = test;
    done["tool_response"] = json!({ "stdout": "running\n41 passed\n" });
    done["duration_ms"] = 205.into();
    session.hook("PostToolUse", done);
    let edit = json!({ "tool_name": "Edit", "tool_use_id": "toolu_2", "tool_input": {
        "file_path": "/home/ada/work/shop/src/cart.rs", "old_string": "a", "new_string": "b" } });
    session.hook("PreToolUse", edit.clone());
    let mut done = edit;
    done["tool_response"] = json!({ "structuredPatch": [{ "lines": ["-a", "+b", " c", "+d"] }] });
    session.hook("PostToolUse", done);
    session.hook(
        "MessageDisplay",
        json!({ "message_id": "m2", "index": 0, "final": true, "delta": "All is done." }),
    );
    session.stop("All is done.");
    assert_eq!(
        session.words(),
        [
            "session.started: Claude Code begins: Tidy the build folder.",
            "state.changed: thinking",
            "output.streaming: I run the tests.\n",
            "tool.invoked: Runs: cargo test",
            "tool.completed: Done. Its last line: 41 passed",
            "tool.invoked: Changes src/cart.rs.",
            "tool.completed: src/cart.rs: 2 lines added, 1 line removed.",
            "output.streaming: All is done.",
            "session.completed: Done after 7 seconds: 2 tools used, changed src/cart.rs.",
        ]
    );
    assert_eq!(session.told[0]["extensions"]["agentvoice"]["project"], "work/shop");
    assert_sound(&session.told);
}

#[test]
fn what_is_risky_is_asked_and_runs_only_when_the_person_accepts() {
    let mut session = ClaudeCode::new(AskPolicy::AskWhenRisky);
    session.prompt();
    let before = session.remove("PreToolUse");
    let decision = |answer: HookAnswer| {
        answer.print.map(|it| it["hookSpecificOutput"]["permissionDecision"].clone())
    };
    assert_eq!(decision(before.answer), Some("ask".into()));
    assert_eq!(before.answer_without_hub.map(decision), Some(Some("deny".into())));
    let asked = session.remove("PermissionRequest");
    let event = &asked.ask.as_ref().expect("a question").questions[0].event;
    assert_eq!(event["action"], "Run the command: rm -rf build");
    assert_eq!(event["consequence"], "It deletes whole folders.");
    assert_eq!(event["risk_level"], "high");
    assert_eq!(event["irreversible"], true);
    assert_eq!(event["default_decision"], "reject");
    let print = session.answer(&asked, &[AskAnswer::Accepted]).print.expect("an answer");
    assert_eq!(print["hookSpecificOutput"]["decision"], json!({ "behavior": "allow" }));
    let invoked = session.told.last().expect("an event");
    assert_eq!(invoked["type"], "aaep:agent.tool.invoked");
    assert_eq!(invoked["tool_call_id"], "toolu_1");
    assert_eq!(
        invoked["extensions"]["agentvoice"]["action_digest"],
        event["extensions"]["agentvoice"]["action_digest"]
    );
    session.remove("PostToolUse");
    session.stop("Gone.");
    let words = session.words();
    assert_eq!(words.iter().filter(|it| it.starts_with("tool.invoked")).count(), 1, "{words:?}");
    assert!(session.withdrawn.is_empty());
    assert_sound(&session.told);
}

#[test]
fn a_no_is_told_once_whatever_the_agent_claims() {
    let mut session = ClaudeCode::new(AskPolicy::AskWhenRisky);
    session.prompt();
    session.remove("PreToolUse");
    let asked = session.remove("PermissionRequest");
    let print = session.answer(&asked, &[AskAnswer::Rejected]).print.expect("an answer");
    assert_eq!(print["hookSpecificOutput"]["decision"]["behavior"], "deny");
    session.hook(
        "PostToolBatch",
        json!({ "tool_calls": [{ "tool_name": "Bash",
        "tool_input": { "command": "rm -rf build", "description": "Only lists files" },
        "tool_use_id": "toolu_1", "tool_response": "The person said no." }] }),
    );
    session.stop("Done. The build folder is gone.");
    let words = session.words();
    assert!(!words.iter().any(|it| it.starts_with("tool.")), "{words:?}");
    assert_eq!(
        words.last().expect("an end"),
        "session.completed: Done after 4 seconds: 1 not run."
    );
    assert_sound(&session.told);
}

#[test]
fn silence_and_a_lost_hub_decide_nothing() {
    let mut session = ClaudeCode::new(AskPolicy::AskWhenRisky);
    session.prompt();
    session.remove("PreToolUse");
    let asked = session.remove("PermissionRequest");
    assert_eq!(asked.answer_without_hub, None, "the agent's own dialog stays");
    assert!(session.answer(&asked, &[AskAnswer::Nothing]).is_nothing());
    for answers in
        [&[][..], &[AskAnswer::Words("yes".into())], &[AskAnswer::Accepted, AskAnswer::Accepted]]
    {
        assert!(asked.ask.as_ref().expect("a question").answered(answers).answer.is_nothing());
    }
}

#[test]
fn an_answer_at_the_keyboard_withdraws_the_question_and_counts_alone() {
    let mut session = ClaudeCode::new(AskPolicy::AskWhenRisky);
    session.prompt();
    session.remove("PreToolUse");
    let asked = session.remove("PermissionRequest");
    session.memory.note_asked(&asked.ask.as_ref().expect("a question").about, "rpl_7");
    let after = session.remove("PostToolUse");
    assert_eq!(after.withdrawn, ["rpl_7"]);
    let words = session.words();
    assert!(
        words.contains(&"tool.invoked: Allowed in its own window. Runs: rm -rf build".to_owned()),
        "{words:?}"
    );
    // The person's late yes comes to nothing.
    let ask = asked.ask.as_ref().expect("a question");
    assert!(!session.memory.note_answered(ask, "rpl_7", &[AskAnswer::Accepted]));
    assert_sound(&session.told);
}

#[test]
fn a_tool_that_the_agent_denied_itself_is_told_not_to_have_run() {
    let mut session = ClaudeCode::new(AskPolicy::Tell);
    session.prompt();
    assert!(session.remove("PreToolUse").answer.is_nothing());
    session.hook(
        "PostToolBatch",
        json!({ "tool_calls": [{ "tool_name": "Bash",
        "tool_input": { "command": "rm -rf build", "description": "Only lists files" },
        "tool_use_id": "toolu_1", "tool_response": "This needs approval." }] }),
    );
    session.stop("Done. It is gone.");
    let words = session.words();
    assert_eq!(
        words[2],
        "progress.updated: Is about to act. It deletes whole folders. Runs: rm -rf build"
    );
    assert_eq!(words[3], "progress.updated: Was not run. Runs: rm -rf build This needs approval.");
    assert_sound(&session.told);
}

#[test]
fn what_the_agent_did_without_asking_is_told_as_such() {
    let mut session = ClaudeCode::new(AskPolicy::Tell);
    session.prompt();
    session.remove("PreToolUse");
    session.remove("PostToolUse");
    let words = session.words();
    assert_eq!(
        words[2],
        "progress.updated: Is about to act. It deletes whole folders. Runs: rm -rf build"
    );
    assert_eq!(words[3], "tool.invoked: Without asking you. Runs: rm -rf build");
    assert_sound(&session.told);
}

#[test]
fn pieces_that_overtake_each_other_are_told_in_order_and_once() {
    let mut session = ClaudeCode::new(AskPolicy::Tell);
    session.prompt();
    let piece = |index: u64, last: bool, text: &str| json!({ "message_id": "m1", "index": index, "final": last, "delta": text });
    session.hook("MessageDisplay", piece(1, false, "two "));
    session.hook("MessageDisplay", piece(0, false, "one "));
    session.hook("MessageDisplay", piece(1, false, "two "));
    session.hook("MessageDisplay", piece(3, true, "four"));
    // The end comes before the last pieces, and repeats the message.
    session.stop("one two three four");
    session.hook("MessageDisplay", piece(2, false, "three "));
    let said: String = session
        .told
        .iter()
        .filter(|it| it["type"] == "aaep:agent.output.streaming")
        .filter_map(|it| it["chunk"].as_str())
        .collect();
    assert_eq!(said, "one two  three four");
    assert_sound(&session.told);
}

#[test]
fn questions_of_the_agent_are_answered_from_here() {
    let mut session = ClaudeCode::new(AskPolicy::AskWhenRisky);
    session.prompt();
    let input = json!({ "questions": [
        { "question": "Which colour?", "header": "Colour", "multiSelect": false,
          "options": [{ "label": "Red", "description": "warm" }, { "label": "Blue", "description": "" }] },
        { "question": "Which days?", "header": "Days", "multiSelect": true,
          "options": [{ "label": "Monday" }, { "label": "Friday" }] },
    ] });
    let fields =
        json!({ "tool_name": "AskUserQuestion", "tool_input": input, "tool_use_id": "toolu_3" });
    assert_eq!(
        session.hook("PreToolUse", fields.clone()),
        HookPlan {
            opening: session.hook("PreToolUse", fields.clone()).opening,
            ..HookPlan::default()
        }
    );
    let asked = session.hook("PermissionRequest", fields);
    let words = |text: &str| AskAnswer::Words(text.to_owned());
    assert!(asked.ask.as_ref().expect("questions").answered(&[words("Blue")]).answer.is_nothing());
    let print =
        session.answer(&asked, &[words("Blue"), words("Monday, Friday")]).print.expect("an answer");
    let allowed = &print["hookSpecificOutput"]["decision"];
    assert_eq!(allowed["behavior"], "allow");
    assert_eq!(
        allowed["updatedInput"]["answers"],
        json!({ "Which colour?": "Blue", "Which days?": "Monday, Friday" })
    );
    assert_eq!(allowed["updatedInput"]["questions"], input["questions"]);
    assert_sound(&session.told);
}

#[test]
fn a_dialog_that_cannot_be_answered_here_is_told_at_once() {
    let mut session = ClaudeCode::new(AskPolicy::Tell);
    session.prompt();
    let needs = json!({ "notification_type": "agent_needs_input", "message": "Auto mode cannot check this." });
    session.hook("Notification", needs);
    session.hook("Notification", json!({ "notification_type": "idle_prompt", "message": "x" }));
    let long = json!({ "tool_name": "Bash", "tool_input": { "command": "a".repeat(20_000) } });
    assert!(session.hook("PermissionRequest", long).ask.is_none());
    let waits: Vec<&Value> =
        session.told.iter().filter(|it| it["to_state"] == "awaiting_input").collect();
    assert_eq!(waits.len(), 2);
    assert!(waits.iter().all(|it| it["urgency"] == "critical"));
    assert_sound(&session.told);
}

#[test]
fn a_turn_without_an_end_ends_when_the_next_begins_or_the_agent_closes() {
    let mut session = ClaudeCode::new(AskPolicy::AskWhenRisky);
    session.prompt();
    session.remove("PreToolUse");
    let asked = session.remove("PermissionRequest");
    session.memory.note_asked(&asked.ask.as_ref().expect("a question").about, "rpl_9");
    let next =
        session.hook("UserPromptSubmit", json!({ "prompt_id": "p-2", "prompt": "Stop that." }));
    assert_eq!(next.withdrawn, ["rpl_9"]);
    session.hook("SessionEnd", json!({ "prompt_id": "p-2", "reason": "other" }));
    let words = session.words();
    assert_eq!(words[2], "progress.updated: It was not reported that this ran. Runs: rm -rf build");
    assert_eq!(words[3], "session.cancelled: It was interrupted by a new prompt.");
    assert_eq!(
        words.last().expect("an end"),
        "session.cancelled: It was closed in the middle of its work."
    );
    assert!(session.hook("SessionEnd", json!({ "prompt_id": "p-2" })).events.is_empty());
    assert_sound(&session.told);
}

#[test]
fn helpers_in_the_background_keep_the_turn_open() {
    let mut session = ClaudeCode::new(AskPolicy::Tell);
    session.prompt();
    session.hook("SubagentStart", json!({ "agent_type": "Explore" }));
    session.hook("Stop", json!({ "last_assistant_message": "I wait.", "background_tasks": [{}] }));
    session
        .hook("UserPromptSubmit", json!({ "prompt_id": "p-2", "prompt": "<task-notification>x" }));
    session.hook("Stop", json!({ "prompt_id": "p-2", "last_assistant_message": "All done." }));
    let words = session.words();
    assert!(
        words.contains(&"progress.updated: Goes on in the background with 1 task.".to_owned()),
        "{words:?}"
    );
    assert!(
        words.iter().any(|it| it.contains("because a helper in the background is done")),
        "{words:?}"
    );
    assert_sound(&session.told);
}

#[test]
fn a_helper_that_is_done_interrupts_nothing() {
    let mut session = ClaudeCode::new(AskPolicy::Tell);
    session.prompt();
    let helper = json!({ "tool_name": "Agent", "tool_use_id": "toolu_7",
        "tool_input": { "subagent_type": "Explore", "prompt": "Count." } });
    session.hook("PreToolUse", helper.clone());
    let mut begun = helper;
    begun["tool_response"] = json!({ "isAsync": true, "status": "async_launched" });
    session.hook("PostToolUse", begun);
    // In the middle of the turn, and under its id.
    let done = json!({ "prompt": "<task-notification>x" });
    session.hook("UserPromptSubmit", done.clone());
    session.hook("Stop", json!({ "last_assistant_message": "I wait.", "background_tasks": [{}] }));
    // The message itself comes after the end of it.
    session.hook(
        "MessageDisplay",
        json!({ "message_id": "m1", "index": 0, "final": true, "delta": "I wait." }),
    );
    session.hook("UserPromptSubmit", done);
    session.stop("All done.");
    let words = session.words();
    assert_eq!(words.iter().filter(|it| it.ends_with("I wait.")).count(), 1, "{words:?}");
    assert!(!words.iter().any(|it| it.contains("cancelled")), "{words:?}");
    assert_eq!(words.iter().filter(|it| it.starts_with("session.started")).count(), 1, "{words:?}");
    assert!(
        words.contains(&"tool.completed: Agent goes on in the background.".to_owned()),
        "{words:?}"
    );
    assert!(words.iter().any(|it| it.starts_with("session.completed")), "{words:?}");
    // A prompt of the person, while helpers go on, ends what was done.
    let mut other = ClaudeCode::new(AskPolicy::Tell);
    other.prompt();
    other.hook("Stop", json!({ "last_assistant_message": "I wait.", "background_tasks": [{}] }));
    other.hook("UserPromptSubmit", json!({ "prompt_id": "p-2", "prompt": "And now?" }));
    let words = other.words();
    assert!(words.iter().any(|it| it.starts_with("session.completed")), "{words:?}");
    assert!(!words.iter().any(|it| it.contains("cancelled")), "{words:?}");
    assert_sound(&session.told);
    assert_sound(&other.told);
}

#[test]
fn strange_payloads_are_refused_and_never_end_the_bridge() {
    for text in [
        "",
        "[]",
        "null",
        "{",
        "{\"hook_event_name\":1}",
        "{\"hook_event_name\":\"Stop\"}",
        "\u{0}",
    ] {
        assert!(HookCall::read(BridgedAgent::ClaudeCode, "", text.as_bytes()).is_none(), "{text}");
    }
    let mut session = ClaudeCode::new(AskPolicy::AskBeforeChanges);
    for event in BridgedAgent::ClaudeCode.hook_events() {
        for junk in [json!(null), json!(1), json!([]), json!({}), json!("x".repeat(100_000))] {
            let mut fields = json!({});
            for field in [
                "prompt_id",
                "cwd",
                "tool_name",
                "tool_input",
                "tool_use_id",
                "tool_response",
                "tool_calls",
                "prompt",
                "message",
                "message_id",
                "index",
                "final",
                "delta",
                "last_assistant_message",
                "background_tasks",
                "duration_ms",
                "notification_type",
                "agent_type",
                "error",
                "permission_mode",
            ] {
                fields[field] = junk.clone();
            }
            session.hook(event, fields);
        }
    }
    // A hub refuses what breaks the order, and goes on.
    assert_valid(&session.told);
    let kept = serde_json::to_vec(&session.memory).expect("JSON");
    assert!(kept.len() < 1024 * 1024, "{}", kept.len());
}
