//! What people hear of Claude Code, and what it may do, from payloads of the shapes that it really sends.

#![expect(clippy::disallowed_methods, reason = "recordings are files")]

use std::path::{Path, PathBuf};

use aaep::{Message, Mode, Severity};
use aaep_bridge::claude_code::{HOOK_EVENTS, HookCall, HookSetup};
use aaep_bridge::risk::RiskTable;
use aaep_bridge::{AgentMemory, AskAnswer, AskPolicy, HookPlan};
use aaep_engine::order::StreamOrder;
use serde_json::{Value, json};

/// A Claude Code whose hooks are called one after the other, with a hub that takes every event.
struct Session {
    memory: AgentMemory,
    table: RiskTable,
    policy: AskPolicy,
    project: Option<String>,
    now_ms: i64,
    told: Vec<Value>,
    withdrawn: Vec<String>,
}

impl Session {
    fn new(policy: AskPolicy) -> Self {
        Session {
            memory: AgentMemory::default(),
            table: RiskTable::standard(),
            policy,
            project: Some("/home/ada/work/shop".to_owned()),
            now_ms: 1_793_600_000_000,
            told: Vec::new(),
            withdrawn: Vec::new(),
        }
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
        self.call(&payload)
    }

    fn call(&mut self, payload: &Value) -> HookPlan {
        self.now_ms += 1000;
        let setup = HookSetup {
            table: &self.table,
            policy: self.policy,
            project: self.project.as_deref(),
            now_ms: self.now_ms,
        };
        let call = HookCall::read(payload.to_string().as_bytes()).expect("a hook");
        // Between two calls, the memory is a file.
        let kept = serde_json::to_vec(&self.memory).expect("JSON");
        self.memory = serde_json::from_slice(&kept).expect("the same memory");
        let plan = call.handle(&mut self.memory, &setup);
        if let Some(opening) = &plan.opening {
            let begins = |it: &Value| {
                it["session_id"] == opening["session_id"] && it["type"] == opening["type"]
            };
            let is_begun = self.told.iter().chain(&plan.events).any(begins);
            if !is_begun && !plan.events.is_empty() {
                self.told.push(opening.clone());
            }
        }
        self.told.extend(plan.events.clone());
        self.withdrawn.extend(plan.withdrawn.clone());
        plan
    }

    /// Answers what a hook asked, as the person does.
    fn answer(&mut self, plan: &HookPlan, answers: &[AskAnswer]) -> Option<Value> {
        let ask = plan.ask.as_ref().expect("a question");
        for question in &ask.questions {
            self.memory.note_asked(&ask.about, "rpl_1");
            self.told.push(question.event.clone());
        }
        let given = ask.answered(answers);
        if !self.memory.note_answered(&ask.about, &answers[0]) {
            return None;
        }
        self.told.extend(given.events);
        given.print
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

    /// The words that people hear, one line for each event.
    fn words(&self) -> Vec<String> {
        self.told.iter().map(words_of).collect()
    }
}

fn words_of(event: &Value) -> String {
    let name = event["type"].as_str().expect("a type").trim_start_matches("aaep:agent.");
    let words = ["action", "question", "chunk", "summary_normal", "error_message", "to_state"]
        .iter()
        .find_map(|field| event[*field].as_str());
    format!("{name}: {}", words.unwrap_or_default())
}

/// All events are valid, and in order.
fn assert_sound(events: &[Value]) {
    let broken = assert_valid(events);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// All events are valid as the hub completes them. Returns how they break their order.
fn assert_valid(events: &[Value]) -> Vec<String> {
    let mut all_broken = Vec::new();
    let mut order = StreamOrder::new();
    let mut positions = std::collections::HashMap::new();
    let mut states = std::collections::HashMap::new();
    let mut names = std::collections::HashMap::new();
    for (number, event) in events.iter().enumerate() {
        let mut event = event.clone();
        let session = event["session_id"].as_str().expect("a session").to_owned();
        let name = event["type"].as_str().expect("a type").to_owned();
        if event.get("@context").is_none() {
            event["@context"] = aaep::CORE_CONTEXT.into();
        }
        event["event_id"] = format!("evt_{number}").into();
        let mut stand_in = |prefix: &str, own: &str| {
            let known = names.len();
            format!("{prefix}{}", names.entry(own.to_owned()).or_insert(known))
        };
        event["session_id"] = stand_in("sess_", &session).into();
        event["timestamp"] =
            format!("2026-11-02T06:20:{:02}.{:03}Z", number / 1000, number % 1000).into();
        for (field, prefix) in [("tool_call_id", "call_"), ("output_id", "out_")] {
            if let Some(own) = event[field].as_str() {
                event[field] = stand_in(prefix, own).into();
            }
        }
        if name.ends_with("output.streaming") {
            let output = event["output_id"].as_str().expect("an output").to_owned();
            let at: &mut usize = positions.entry(output).or_default();
            event["position"] = (*at).into();
            *at += event["chunk"].as_str().expect("words").chars().count();
        }
        if name.ends_with("state.changed") {
            let to = event["to_state"].as_str().expect("a state").to_owned();
            let from = states.insert(session.clone(), to).unwrap_or_else(|| "idle".to_owned());
            event["from_state"] = from.into();
        }
        if name.contains("awaiting.") {
            event["reply_token"] = format!("rpl_{number}").into();
        }
        if name.contains("awaiting.") || name.ends_with("errored") {
            event["urgency"] = "critical".into();
        }
        let reading = aaep::read(event.to_string().as_bytes(), Mode::Strict);
        let errors = reading.violations.iter().filter(|it| it.severity == Severity::Error);
        assert_eq!(errors.count(), 0, "{event}: {:?}", reading.violations);
        let message: Message = reading.message.expect("a message");
        let broken = order.observe(&message);
        // An accept is not seen in a stream without replies.
        let broken = broken.iter().map(|it| format!("{it:?}")).filter(|it| !it.contains("Accept"));
        all_broken.extend(broken.map(|it| format!("{event}: {it}")));
    }
    all_broken
}

#[test]
fn a_turn_is_told_from_its_prompt_to_its_end() {
    let mut session = Session::new(AskPolicy::AskWhenRisky);
    session.hook("SessionStart", json!({ "source": "startup" }));
    session.prompt();
    session.hook(
        "MessageDisplay",
        json!({ "message_id": "m1", "index": 0, "final": true, "delta": "I run the tests.\n" }),
    );
    let test = json!({ "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": { "command": "cargo test" } });
    assert_eq!(session.hook("PreToolUse", test.clone()).print, None);
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
    let mut session = Session::new(AskPolicy::AskWhenRisky);
    session.prompt();
    let before = session.remove("PreToolUse");
    let decision = |plan: &Option<Value>| {
        plan.as_ref().map(|it| it["hookSpecificOutput"]["permissionDecision"].clone())
    };
    assert_eq!(decision(&before.print), Some("ask".into()));
    assert_eq!(decision(&before.print_without_hub), Some("deny".into()));
    let asked = session.remove("PermissionRequest");
    let event = &asked.ask.as_ref().expect("a question").questions[0].event;
    assert_eq!(event["action"], "Run the command: rm -rf build");
    assert_eq!(event["consequence"], "It deletes whole folders.");
    assert_eq!(event["risk_level"], "high");
    assert_eq!(event["irreversible"], true);
    assert_eq!(event["default_decision"], "reject");
    let print = session.answer(&asked, &[AskAnswer::Accepted]).expect("an answer");
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
    let mut session = Session::new(AskPolicy::AskWhenRisky);
    session.prompt();
    session.remove("PreToolUse");
    let asked = session.remove("PermissionRequest");
    let print = session.answer(&asked, &[AskAnswer::Rejected]).expect("an answer");
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
    let mut session = Session::new(AskPolicy::AskWhenRisky);
    session.prompt();
    session.remove("PreToolUse");
    let asked = session.remove("PermissionRequest");
    assert_eq!(asked.print_without_hub, None, "the agent's own dialog stays");
    assert_eq!(session.answer(&asked, &[AskAnswer::Nothing]), None);
    for answers in
        [&[][..], &[AskAnswer::Words("yes".into())], &[AskAnswer::Accepted, AskAnswer::Accepted]]
    {
        assert_eq!(asked.ask.as_ref().expect("a question").answered(answers).print, None);
    }
}

#[test]
fn an_answer_at_the_keyboard_withdraws_the_question_and_counts_alone() {
    let mut session = Session::new(AskPolicy::AskWhenRisky);
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
    let about = &asked.ask.as_ref().expect("a question").about;
    assert!(!session.memory.note_answered(about, &AskAnswer::Accepted));
    assert_sound(&session.told);
}

#[test]
fn a_tool_that_the_agent_denied_itself_is_told_not_to_have_run() {
    let mut session = Session::new(AskPolicy::Tell);
    session.prompt();
    assert_eq!(session.remove("PreToolUse").print, None);
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
    let mut session = Session::new(AskPolicy::Tell);
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
    let mut session = Session::new(AskPolicy::Tell);
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
    let mut session = Session::new(AskPolicy::AskWhenRisky);
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
    assert_eq!(asked.ask.as_ref().expect("questions").answered(&[words("Blue")]).print, None);
    let print =
        session.answer(&asked, &[words("Blue"), words("Monday, Friday")]).expect("an answer");
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
    let mut session = Session::new(AskPolicy::Tell);
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
    let mut session = Session::new(AskPolicy::AskWhenRisky);
    session.prompt();
    session.remove("PreToolUse");
    let asked = session.remove("PermissionRequest");
    session.memory.note_asked(&asked.ask.as_ref().expect("a question").about, "rpl_9");
    let next =
        session.hook("UserPromptSubmit", json!({ "prompt_id": "p-2", "prompt": "Stop that." }));
    assert_eq!(next.withdrawn, ["rpl_9"]);
    session.hook("SessionEnd", json!({ "prompt_id": "p-2", "reason": "other" }));
    let words = session.words();
    assert_eq!(words[2], "session.cancelled: It was interrupted by a new prompt.");
    assert_eq!(
        words.last().expect("an end"),
        "session.cancelled: It was closed in the middle of its work."
    );
    assert!(session.hook("SessionEnd", json!({ "prompt_id": "p-2" })).events.is_empty());
    assert_sound(&session.told);
}

#[test]
fn helpers_in_the_background_keep_the_turn_open() {
    let mut session = Session::new(AskPolicy::Tell);
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
        assert!(HookCall::read(text.as_bytes()).is_none(), "{text}");
    }
    let mut session = Session::new(AskPolicy::AskBeforeChanges);
    for event in HOOK_EVENTS {
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

/// Every recording: each event valid and in order, and everything that was asked or told to run has an end.
#[test]
#[ignore = "needs the recordings of real agents beside the checkout, or AAEP_TRAFFIC"]
fn recordings_of_the_real_agent_are_told_soundly() {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/facts/traffic");
    let folder = std::env::var_os("AAEP_TRAFFIC").map_or_else(beside, PathBuf::from);
    let mut played = 0;
    for entry in std::fs::read_dir(folder.join("claude-code")).expect("a folder") {
        let path = entry.expect("a file").path();
        let recording: Value =
            serde_json::from_str(&std::fs::read_to_string(&path).expect("a file")).expect("JSON");
        let Some(calls) = recording["calls"].as_array() else { continue };
        for policy in AskPolicy::NAMES.map(|(_, policy)| policy) {
            let mut session = Session { project: None, ..Session::new(policy) };
            for call in calls {
                let plan = session.call(&call["stdin"]);
                if plan.ask.is_some() {
                    session.answer(&plan, &[AskAnswer::Nothing]);
                }
            }
            assert_sound(&session.told);
            let count = |name: &str| {
                session.told.iter().filter(|it| it["type"] == format!("aaep:agent.{name}")).count()
            };
            assert!(count("tool.completed") <= count("tool.invoked"), "{}", path.display());
            played += 1;
        }
    }
    assert!(played > 0, "no recording was found");
}
