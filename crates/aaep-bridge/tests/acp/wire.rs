//! An agent, an editor, and the bridge between them, with a hub that takes every event.

use aaep_bridge::acp::{AcpBridge, AcpForward, AcpPlan, AcpSetup, AcpSide};
use aaep_bridge::risk::RiskTable;
use aaep_bridge::{AskAnswer, AskPolicy, ProxyAskNumber};
use serde_json::{Value, json};

use crate::stream_check::words_of;

/// An agent and an editor with the bridge between them, and a hub that takes every event.
pub(crate) struct Wire {
    pub(crate) bridge: AcpBridge,
    pub(crate) table: RiskTable,
    pub(crate) policy: AskPolicy,
    now_ms: i64,
    pub(crate) told: Vec<Value>,
    pub(crate) asked: Vec<ProxyAskNumber>,
    pub(crate) withdrawn: Vec<ProxyAskNumber>,
    /// What reached the agent and the editor, in order.
    pub(crate) agent: Vec<Value>,
    pub(crate) editor: Vec<Value>,
}

impl Wire {
    pub(crate) fn new(policy: AskPolicy) -> Self {
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
    pub(crate) fn begun(policy: AskPolicy) -> Self {
        Wire::begun_with(policy, |it| it)
    }

    /// The same with another bridge.
    pub(crate) fn begun_with(
        policy: AskPolicy,
        change: impl FnOnce(AcpBridge) -> AcpBridge,
    ) -> Self {
        let mut wire = Wire::new(policy);
        wire.bridge = change(wire.bridge);
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

    pub(crate) fn hear(&mut self, from: AcpSide, message: &Value) -> AcpPlan {
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

    pub(crate) fn take(&mut self, plan: &AcpPlan) {
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
    pub(crate) fn editor(&mut self, message: Value) -> AcpPlan {
        self.hear(AcpSide::Editor, &message)
    }

    #[expect(clippy::needless_pass_by_value, reason = "made where it is passed")]
    pub(crate) fn agent(&mut self, message: Value) -> AcpPlan {
        self.hear(AcpSide::Agent, &message)
    }

    #[expect(clippy::needless_pass_by_value, reason = "made where it is passed")]
    pub(crate) fn update(&mut self, update: Value) -> AcpPlan {
        self.agent(json!({ "jsonrpc": "2.0", "method": "session/update",
            "params": { "sessionId": "s-1", "update": update } }))
    }

    /// The agent asks whether it may remove the build folder.
    #[expect(clippy::needless_pass_by_value, reason = "made where it is passed")]
    pub(crate) fn asks(&mut self, id: Value) -> AcpPlan {
        self.agent(permission(&id, &removal(), &plain_options()))
    }

    pub(crate) fn person(&mut self, number: ProxyAskNumber, answer: &AskAnswer) -> AcpPlan {
        let plan = self.bridge.answer(number, answer);
        self.take(&plan);
        plan
    }

    pub(crate) fn ends(&mut self, reason: &str) -> AcpPlan {
        self.agent(json!({ "jsonrpc": "2.0", "id": 2, "result": { "stopReason": reason } }))
    }

    pub(crate) fn words(&self) -> Vec<String> {
        self.told.iter().map(words_of).collect()
    }

    /// The answers to a request that reached the agent.
    pub(crate) fn answers_to(&self, id: &Value) -> Vec<Value> {
        let is_answer = |it: &&Value| it["id"] == *id && it.get("method").is_none();
        self.agent.iter().filter(is_answer).map(|it| it["result"]["outcome"].clone()).collect()
    }
}

pub(crate) fn removal() -> Value {
    json!({ "toolCallId": "t-1", "status": "pending", "kind": "execute", "title": "Lists the files",
        "rawInput": { "command": "rm -rf build" } })
}

pub(crate) fn plain_options() -> Value {
    json!([
        { "optionId": "always", "name": "Allow for this session", "kind": "allow_always" },
        { "optionId": "once", "name": "Allow", "kind": "allow_once" },
        { "optionId": "no", "name": "Reject", "kind": "reject_once" },
    ])
}

pub(crate) fn permission(id: &Value, call: &Value, options: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission",
        "params": { "sessionId": "s-1", "toolCall": call, "options": options } })
}

pub(crate) fn chosen(id: &Value, option: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id,
        "result": { "outcome": { "outcome": "selected", "optionId": option } } })
}
