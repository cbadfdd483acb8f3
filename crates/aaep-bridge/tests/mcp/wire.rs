//! A client, a server, and the bridge between them, with a hub that takes every event.

use aaep_bridge::mcp::{McpBridge, McpForward, McpPlan, McpSetup, McpSide};
use aaep_bridge::risk::RiskTable;
use aaep_bridge::{AskAnswer, AskPolicy, ProxyAskNumber};
use serde_json::{Value, json};

use crate::stream_check::words_of;

pub(crate) struct Wire {
    pub(crate) bridge: McpBridge,
    pub(crate) table: RiskTable,
    pub(crate) policy: AskPolicy,
    now_ms: i64,
    pub(crate) told: Vec<Value>,
    pub(crate) asked: Vec<ProxyAskNumber>,
    pub(crate) withdrawn: Vec<ProxyAskNumber>,
    /// The lines that reached each side, in order.
    pub(crate) server: Vec<Vec<u8>>,
    pub(crate) client: Vec<Vec<u8>>,
}

impl Wire {
    pub(crate) fn new(policy: AskPolicy) -> Self {
        Wire {
            bridge: McpBridge::new("shop", "r1"),
            table: RiskTable::standard(),
            policy,
            now_ms: 1_793_600_000_000,
            told: Vec::new(),
            asked: Vec::new(),
            withdrawn: Vec::new(),
            server: Vec::new(),
            client: Vec::new(),
        }
    }

    pub(crate) fn with_rows(policy: AskPolicy, rows: &str) -> Self {
        let table = RiskTable::with_own_rows(rows).expect("a table");
        Wire { table, ..Wire::new(policy) }
    }

    fn run(&mut self, decide: impl FnOnce(&mut McpBridge, &McpSetup<'_>) -> McpPlan) -> McpPlan {
        self.now_ms += 1000;
        let setup = McpSetup { table: &self.table, policy: self.policy, now_ms: self.now_ms };
        let plan = decide(&mut self.bridge, &setup);
        self.withdrawn.extend(&plan.withdrawn);
        self.told.extend(plan.events.clone());
        for ask in &plan.asks {
            self.asked.push(ask.number);
            self.told.push(ask.event.clone());
        }
        plan
    }

    pub(crate) fn hear(&mut self, from: McpSide, line: &[u8]) -> McpPlan {
        let plan = self.run(|bridge, setup| bridge.hear(from, line, setup));
        let passed = match &plan.forward {
            McpForward::Unchanged => Some(line.to_vec()),
            McpForward::Nothing => None,
            McpForward::Instead(other) => Some(other.clone()),
        };
        match from {
            McpSide::Client => self.server.extend(passed),
            McpSide::Server => self.client.extend(passed),
        }
        self.take(&plan);
        plan
    }

    fn take(&mut self, plan: &McpPlan) {
        self.server.extend(plan.to_server.clone());
        self.client.extend(plan.to_client.clone());
    }

    #[expect(clippy::needless_pass_by_value, reason = "made where it is passed")]
    pub(crate) fn client(&mut self, message: Value) -> McpPlan {
        self.hear(McpSide::Client, format!("{message}\n").as_bytes())
    }

    #[expect(clippy::needless_pass_by_value, reason = "made where it is passed")]
    pub(crate) fn server(&mut self, message: Value) -> McpPlan {
        self.hear(McpSide::Server, format!("{message}\n").as_bytes())
    }

    pub(crate) fn person(&mut self, number: ProxyAskNumber, answer: &AskAnswer) -> McpPlan {
        let plan = self.run(|bridge, setup| bridge.answer(number, answer, setup));
        self.take(&plan);
        plan
    }

    /// Answers the newest question.
    pub(crate) fn says(&mut self, words: &str) -> McpPlan {
        let number = *self.asked.last().expect("a question");
        let answer = match words {
            "yes" => AskAnswer::Accepted,
            "no" => AskAnswer::Rejected,
            words => AskAnswer::Words(words.trim_start_matches(':').to_owned()),
        };
        self.person(number, &answer)
    }

    pub(crate) fn hub_is_away(&mut self, number: ProxyAskNumber) -> McpPlan {
        let plan = self.run(|bridge, _| bridge.not_asked(number));
        self.take(&plan);
        plan
    }

    pub(crate) fn client_leaves(&mut self) {
        let plan = self.run(|bridge, _| bridge.client_left());
        self.take(&plan);
    }

    pub(crate) fn ends(&mut self) {
        self.run(|bridge, setup| bridge.end("The server ended.", setup));
    }

    pub(crate) fn person_cancels(&mut self) {
        let session = self.told[0]["session_id"].as_str().expect("a session").to_owned();
        let plan = self.run(|bridge, _| bridge.cancel(&session));
        self.take(&plan);
    }

    pub(crate) fn words(&self) -> Vec<String> {
        self.told.iter().map(words_of).collect()
    }

    pub(crate) fn last_words(&self) -> String {
        self.words().pop().unwrap_or_default()
    }

    /// The messages that reached the client, as JSON.
    pub(crate) fn to_client(&self) -> Vec<Value> {
        self.client.iter().map(|it| serde_json::from_slice(it).expect("JSON")).collect()
    }

    pub(crate) fn to_server(&self) -> Vec<Value> {
        self.server.iter().map(|it| serde_json::from_slice(it).expect("JSON")).collect()
    }
}

pub(crate) fn call(id: &Value, tool: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "name": tool, "arguments": arguments } })
}

/// A call of the revision without a handshake.
pub(crate) fn stateless_call(id: &Value, tool: &str, arguments: &Value) -> Value {
    let mut call = call(id, tool, arguments);
    call["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "desk", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    call
}

pub(crate) fn result(id: &Value, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id,
        "result": { "content": [{ "type": "text", "text": text }] } })
}

/// The text and the mark of a tool error.
pub(crate) fn tool_error(message: &Value) -> (&str, bool) {
    let result = &message["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    (text, result["isError"] == true && message.get("error").is_none())
}
