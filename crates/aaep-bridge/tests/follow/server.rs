//! An agent's server, the bridge that follows it, and a hub that takes every event.

use aaep_bridge::acp::AcpSetup;
use aaep_bridge::follow::{FollowBridge, FollowPlan, FollowStep, FollowedAgent, ServerMessage};
use aaep_bridge::risk::RiskTable;
use aaep_bridge::{AskAnswer, AskPolicy, ProxyAskNumber};
use serde_json::{Value, json};

use crate::stream_check::words_of;

pub(crate) struct FollowedServer {
    pub(crate) bridge: FollowBridge,
    table: RiskTable,
    policy: AskPolicy,
    now_ms: i64,
    pub(crate) told: Vec<Value>,
    pub(crate) asked: Vec<ProxyAskNumber>,
    pub(crate) withdrawn: Vec<ProxyAskNumber>,
    /// What reached the server.
    pub(crate) sent: Vec<Value>,
}

impl FollowedServer {
    pub(crate) fn new(agent: FollowedAgent, policy: AskPolicy) -> Self {
        let mut server = FollowedServer {
            bridge: FollowBridge::new(agent, "r1"),
            table: RiskTable::standard(),
            policy,
            now_ms: 1_793_600_000_000,
            told: Vec::new(),
            asked: Vec::new(),
            withdrawn: Vec::new(),
            sent: Vec::new(),
        };
        server.connects();
        server
    }

    fn setup(&mut self) -> AcpSetup<'static> {
        self.now_ms += 1000;
        let table: &'static RiskTable = Box::leak(Box::new(self.table.clone()));
        AcpSetup { table, policy: self.policy, now_ms: self.now_ms }
    }

    pub(crate) fn connects(&mut self) {
        let setup = self.setup();
        let plan = self.bridge.connected(&setup);
        self.take(&plan);
    }

    pub(crate) fn ticks(&mut self) {
        let setup = self.setup();
        let plan = self.bridge.tick(&setup);
        self.take(&plan);
    }

    #[expect(clippy::needless_pass_by_value, reason = "made where it is passed")]
    pub(crate) fn says(&mut self, message: Value) -> FollowPlan {
        let setup = self.setup();
        let plan = self.bridge.hear(&message, &setup);
        self.take(&plan);
        plan
    }

    pub(crate) fn person(&mut self, answer: &AskAnswer) {
        let number = *self.asked.last().expect("a question");
        let plan = self.bridge.answer(number, answer);
        self.take(&plan);
    }

    pub(crate) fn dies(&mut self) {
        let plan = self.bridge.lost("The connection was lost.");
        self.take(&plan);
    }

    pub(crate) fn take(&mut self, plan: &FollowPlan) {
        for step in &plan.steps {
            match step {
                FollowStep::Withdraw(number) => self.withdrawn.push(*number),
                FollowStep::Tell(event) => self.told.push(event.clone()),
                FollowStep::Ask(ask) => {
                    self.asked.push(ask.number);
                    self.told.push(ask.event.clone());
                }
            }
        }
        self.sent.extend(plan.to_agent.iter().map(|it| match it {
            ServerMessage::Message(message) => message.clone(),
            ServerMessage::Post { path, body } => json!({ "path": path, "body": body }),
        }));
    }

    pub(crate) fn words(&self) -> Vec<String> {
        self.told.iter().map(words_of).collect()
    }

    /// The words from the first that contains this.
    pub(crate) fn words_from(&self, begin: &str) -> Vec<String> {
        let words = self.words();
        let from = words.iter().position(|it| it.contains(begin));
        words[from.unwrap_or_else(|| panic!("{begin}: {words:#?}"))..].to_vec()
    }

    /// The requests of a method that reached the server.
    pub(crate) fn requests(&self, method: &str) -> Vec<Value> {
        self.sent.iter().filter(|it| it["method"] == method).cloned().collect()
    }
}
