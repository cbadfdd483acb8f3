//! What people hear of an agent that speaks the Agent Client Protocol, and how its questions are answered.

#![expect(clippy::disallowed_methods, reason = "recordings are files")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use aaep::{Message, Mode, Severity};
use aaep_bridge::acp::{AcpBridge, AcpForward, AcpPlan, AcpSetup, AcpSide, AskNumber};
use aaep_bridge::risk::RiskTable;
use aaep_bridge::{AskAnswer, AskPolicy};
use aaep_engine::order::StreamOrder;
use serde_json::{Value, json};

/// An agent and an editor with the bridge between them, and a hub that takes every event.
struct Wire {
    bridge: AcpBridge,
    table: RiskTable,
    policy: AskPolicy,
    now_ms: i64,
    told: Vec<Value>,
    asked: Vec<AskNumber>,
    withdrawn: Vec<AskNumber>,
    /// What reached the agent and the editor, in order.
    agent: Vec<Value>,
    editor: Vec<Value>,
}

impl Wire {
    fn new(policy: AskPolicy) -> Self {
        Wire {
            bridge: AcpBridge::new("gemini", false, "r1"),
            table: RiskTable::standard(),
            policy,
            now_ms: 1_793_600_000_000,
            told: Vec::new(),
            asked: Vec::new(),
            withdrawn: Vec::new(),
            agent: Vec::new(),
            editor: Vec::new(),
        }
    }

    /// A turn that has begun.
    fn begun(policy: AskPolicy) -> Self {
        let mut wire = Wire::new(policy);
        wire.editor(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} }));
        wire.agent(json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": 1,
            "agentInfo": { "name": "gemini-cli", "title": "Gemini CLI" } } }));
        wire.editor(json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new",
            "params": { "cwd": "/home/ada/work/shop", "mcpServers": [] } }));
        wire.agent(json!({ "jsonrpc": "2.0", "id": 1, "result": { "sessionId": "s-1" } }));
        wire.editor(json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt",
            "params": { "sessionId": "s-1", "prompt": [{ "type": "text", "text": "Tidy up." }] } }));
        wire
    }

    fn hear(&mut self, from: AcpSide, message: &Value) -> AcpPlan {
        self.now_ms += 1000;
        let setup = AcpSetup { table: &self.table, policy: self.policy, now_ms: self.now_ms };
        let plan = self.bridge.hear(from, message, &setup);
        match (&plan.forward, from) {
            (AcpForward::Unchanged, AcpSide::Editor) => self.agent.push(message.clone()),
            (AcpForward::Unchanged, AcpSide::Agent) => self.editor.push(message.clone()),
            (AcpForward::Instead(other), AcpSide::Editor) => self.agent.push(other.clone()),
            (AcpForward::Instead(other), AcpSide::Agent) => self.editor.push(other.clone()),
            (AcpForward::Nothing, _) => {}
        }
        self.take(&plan);
        plan
    }

    fn take(&mut self, plan: &AcpPlan) {
        self.withdrawn.extend(&plan.withdrawn);
        self.told.extend(plan.events.clone());
        if let Some(ask) = &plan.ask {
            self.asked.push(ask.number);
            self.told.push(ask.event.clone());
        }
        self.agent.extend(plan.to_agent.clone());
        self.editor.extend(plan.to_editor.clone());
    }

    #[expect(clippy::needless_pass_by_value, reason = "made where it is passed")]
    fn editor(&mut self, message: Value) -> AcpPlan {
        self.hear(AcpSide::Editor, &message)
    }

    #[expect(clippy::needless_pass_by_value, reason = "made where it is passed")]
    fn agent(&mut self, message: Value) -> AcpPlan {
        self.hear(AcpSide::Agent, &message)
    }

    #[expect(clippy::needless_pass_by_value, reason = "made where it is passed")]
    fn update(&mut self, update: Value) -> AcpPlan {
        self.agent(json!({ "jsonrpc": "2.0", "method": "session/update",
            "params": { "sessionId": "s-1", "update": update } }))
    }

    /// The agent asks whether it may remove the build folder.
    #[expect(clippy::needless_pass_by_value, reason = "made where it is passed")]
    fn asks(&mut self, id: Value) -> AcpPlan {
        self.agent(permission(&id, &removal(), &plain_options()))
    }

    fn person(&mut self, number: AskNumber, answer: &AskAnswer) -> AcpPlan {
        let plan = self.bridge.answer(number, answer);
        self.take(&plan);
        plan
    }

    fn ends(&mut self, reason: &str) -> AcpPlan {
        self.agent(json!({ "jsonrpc": "2.0", "id": 2, "result": { "stopReason": reason } }))
    }

    fn words(&self) -> Vec<String> {
        self.told.iter().map(words_of).collect()
    }

    /// The answers to a request that reached the agent.
    fn answers_to(&self, id: &Value) -> Vec<Value> {
        let is_answer = |it: &&Value| it["id"] == *id && it.get("method").is_none();
        self.agent.iter().filter(is_answer).map(|it| it["result"]["outcome"].clone()).collect()
    }
}

fn removal() -> Value {
    json!({ "toolCallId": "t-1", "status": "pending", "kind": "execute", "title": "Lists the files",
        "rawInput": { "command": "rm -rf build" } })
}

fn plain_options() -> Value {
    json!([
        { "optionId": "always", "name": "Allow for this session", "kind": "allow_always" },
        { "optionId": "once", "name": "Allow", "kind": "allow_once" },
        { "optionId": "no", "name": "Reject", "kind": "reject_once" },
    ])
}

fn permission(id: &Value, call: &Value, options: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission",
        "params": { "sessionId": "s-1", "toolCall": call, "options": options } })
}

fn chosen(id: &Value, option: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id,
        "result": { "outcome": { "outcome": "selected", "optionId": option } } })
}

fn words_of(event: &Value) -> String {
    let name = event["type"].as_str().expect("a type").trim_start_matches("aaep:agent.");
    let fields = ["action", "question", "chunk", "summary_normal", "error_message", "to_state"];
    let words = fields.iter().find_map(|field| event[*field].as_str());
    format!("{name}: {}", words.unwrap_or_default())
}

/// All events are valid as the hub completes them, and in order.
fn assert_sound(events: &[Value]) {
    let mut order = StreamOrder::new();
    let (mut positions, mut states, mut names) = (HashMap::new(), HashMap::new(), HashMap::new());
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
        let (second, ms) = (number / 1000, number % 1000);
        event["timestamp"] = format!("2026-11-02T06:20:{second:02}.{ms:03}Z").into();
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
            event["from_state"] = states.insert(session, to).unwrap_or("idle".to_owned()).into();
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
        let broken: Vec<String> = broken.iter().map(|it| format!("{it:?}")).collect();
        assert!(broken.iter().all(|it| it.contains("Accept")), "{event}: {broken:?}");
    }
}

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

/// Every recording: each event valid and in order, no question without an outcome, nothing said twice, each request
/// answered once.
#[test]
#[ignore = "needs the recordings of real agents beside the checkout, or AAEP_TRAFFIC"]
fn recordings_of_real_agents_are_told_soundly() {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/facts/traffic");
    let folder = std::env::var_os("AAEP_TRAFFIC").map_or_else(beside, PathBuf::from);
    let mut played = 0;
    for agent in std::fs::read_dir(folder).expect("a folder") {
        let agent = agent.expect("an entry").path();
        let Ok(files) = std::fs::read_dir(&agent) else { continue };
        for file in files {
            let path = file.expect("a file").path();
            let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default().to_owned();
            if !name.starts_with("acp-") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a file");
            let recording: Value = serde_json::from_str(&text).expect("JSON");
            let lines = recording["lines"].as_array().expect("lines");
            for (_, policy) in AskPolicy::NAMES {
                for is_answered_here in [false, true] {
                    play(&path, lines, policy, is_answered_here);
                    played += 1;
                }
            }
        }
    }
    assert!(played >= 80, "only {played} plays were found");
}

/// Plays a recording. If the person answers here, they always say no, before the editor answers.
fn play(path: &Path, lines: &[Value], policy: AskPolicy, is_answered_here: bool) {
    let mut wire = Wire::new(policy);
    let mut requests = Vec::new();
    let mut answered = Vec::new();
    let (mut written, mut is_at_work) = (String::new(), false);
    for line in lines {
        let message = &line["msg"];
        is_at_work |= message["method"] == "session/prompt";
        is_at_work &= message["result"].get("stopReason").is_none();
        let update = &message["params"]["update"];
        if is_at_work && update["sessionUpdate"] == "agent_message_chunk" {
            written.push_str(update["content"]["text"].as_str().unwrap_or_default());
        }
        let from = if line["dir"] == "client" { AcpSide::Editor } else { AcpSide::Agent };
        let plan = wire.hear(from, message);
        if message["method"] == "session/request_permission" {
            requests.push(message["id"].clone());
            assert_eq!(plan.ask.is_some(), policy != AskPolicy::Tell, "{}", path.display());
        }
        if let Some(ask) = plan.ask.filter(|_| is_answered_here) {
            let answer = if ask.is_confirmation {
                AskAnswer::Rejected
            } else {
                let choices = ask.event["choices"].as_array().expect("choices");
                AskAnswer::Words(
                    choices.last().expect("one")["value"].as_str().expect("text").to_owned(),
                )
            };
            wire.person(ask.number, &answer);
            answered.push(ask.number);
        }
    }
    assert_sound(&wire.told);
    let place = format!("{} {policy:?}", path.display());
    for id in &requests {
        assert_eq!(wire.answers_to(id).len(), 1, "{place}: {id}");
    }
    let mut settled = [answered, wire.withdrawn.clone()].concat();
    settled.sort();
    let mut asked = wire.asked.clone();
    asked.sort();
    assert_eq!(settled, asked, "{place}");
    let words = wire.words();
    let mut calls = HashMap::new();
    for event in &wire.told {
        if let Some(call) = event["tool_call_id"].as_str() {
            *calls.entry((call.to_owned(), event["type"].clone())).or_insert(0) += 1;
        }
    }
    assert!(calls.values().all(|it| *it == 1), "{place}: {words:#?}");
    let count = |begin: &str| words.iter().filter(|it| it.starts_with(begin)).count();
    let turns = lines.iter().filter(|it| it["msg"]["method"] == "session/prompt").count();
    assert_eq!(count("session.started"), turns, "{place}: {words:#?}");
    let ends = count("session.completed") + count("session.cancelled") + count("session.errored");
    assert_eq!(ends, turns, "{place}: {words:#?}");
    let said: String = wire
        .told
        .iter()
        .filter(|it| it["type"] == "aaep:agent.output.streaming")
        .filter_map(|it| it["chunk"].as_str())
        .collect();
    assert_eq!(said, written, "{place}");
}
