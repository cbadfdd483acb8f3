//! An agent and a hub for tests.

use aaep::{Message, Mode, Severity};
use aaep_bridge::risk::RiskTable;
use aaep_bridge::{
    AgentMemory, AskAnswer, AskPolicy, BridgedAgent, HookAnswer, HookCall, HookPlan, HookSetup,
};
use aaep_engine::order::StreamOrder;
use serde_json::Value;

/// An agent whose hooks are called one after the other, with a hub that takes every event.
pub(crate) struct Session {
    pub(crate) agent: BridgedAgent,
    pub(crate) memory: AgentMemory,
    table: RiskTable,
    policy: AskPolicy,
    pub(crate) project: Option<String>,
    pub(crate) now_ms: i64,
    pub(crate) told: Vec<Value>,
    pub(crate) withdrawn: Vec<String>,
    pub(crate) machine: Option<String>,
    pub(crate) has_window: bool,
    pub(crate) later_hours: Option<u8>,
}

impl Session {
    pub(crate) fn new(agent: BridgedAgent, policy: AskPolicy) -> Self {
        Session {
            agent,
            memory: AgentMemory::default(),
            table: RiskTable::standard(),
            policy,
            project: Some("/home/ada/work/shop".to_owned()),
            now_ms: 1_793_600_000_000,
            machine: None,
            has_window: true,
            later_hours: None,
            told: Vec::new(),
            withdrawn: Vec::new(),
        }
    }

    /// Calls a hook, and takes over its events.
    pub(crate) fn call(&mut self, event: &str, payload: &Value) -> HookPlan {
        self.now_ms += 1000;
        let setup = HookSetup {
            table: &self.table,
            policy: self.policy,
            project: self.project.as_deref(),
            now_ms: self.now_ms,
            machine: self.machine.as_deref(),
            has_window: self.has_window,
            later_hours: self.later_hours,
        };
        let call =
            HookCall::read(self.agent, event, payload.to_string().as_bytes()).expect("a hook");
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

    /// Answers what a hook asked, as the person does, and returns what the agent is told.
    pub(crate) fn answer(&mut self, plan: &HookPlan, answers: &[AskAnswer]) -> HookAnswer {
        let ask = plan.ask.as_ref().expect("a question");
        for question in &ask.questions {
            self.memory.note_asked(&ask.about, "rpl_1");
            self.told.push(question.event.clone());
        }
        let given = ask.answered(answers);
        if !self.memory.note_answered(ask, "rpl_1", answers) {
            return ask.not_counted();
        }
        self.told.extend(given.events);
        given.answer
    }

    /// The words that people hear, one line for each event.
    pub(crate) fn words(&self) -> Vec<String> {
        self.told.iter().map(words_of).collect()
    }
}

pub(crate) fn words_of(event: &Value) -> String {
    let name = event["type"].as_str().expect("a type").trim_start_matches("aaep:agent.");
    let words = ["action", "question", "chunk", "summary_normal", "error_message", "to_state"]
        .iter()
        .find_map(|field| event[*field].as_str());
    format!("{name}: {}", words.unwrap_or_default())
}

/// All events are valid, and in order.
pub(crate) fn assert_sound(events: &[Value]) {
    let broken = assert_valid(events);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// All events are valid as the hub completes them. Returns how they break their order.
pub(crate) fn assert_valid(events: &[Value]) -> Vec<String> {
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
