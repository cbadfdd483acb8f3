//! The proxy itself: lines from one side to the other, and what the bridge makes of them.

use std::io::{BufReader, Read};
use std::process::ChildStdin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aaep_bridge::acp::{AcpBridge, AcpForward, AcpPlan, AcpSetup, AcpSide};
use aaep_bridge::risk::RiskTable;
use aaep_bridge::{AskAnswer, AskPolicy, ProxyAskNumber};
use serde_json::Value;

use super::front::AcpFront;
use crate::keys::now_unix_ms;
use crate::proxied::hub::HubSide;
use crate::proxied::lines::{PassedLines, ReadLine, SharedOutput, line_of, read_line};
use crate::proxied::note::ProxyNote;
use crate::proxied::queue::HubQueue;

/// What the person chose.
pub(crate) struct ProxySetup {
    pub(crate) table: RiskTable,
    pub(crate) policy: AskPolicy,
}

/// An agent, its editor or chat, and what waits for the hub.
pub(crate) struct AcpProxy {
    bridge: Mutex<AcpBridge>,
    setup: ProxySetup,
    agent: SharedOutput<ChildStdin>,
    front: Box<dyn AcpFront>,
    pub(crate) queue: HubQueue,
    /// The lines of the agent.
    pub(crate) lines: PassedLines,
}

impl AcpProxy {
    pub(crate) fn new(
        bridge: AcpBridge,
        setup: ProxySetup,
        agent: ChildStdin,
        front: Box<dyn AcpFront>,
    ) -> Self {
        AcpProxy {
            bridge: Mutex::new(bridge),
            setup,
            agent: SharedOutput::new(agent),
            front,
            queue: HubQueue::default(),
            lines: PassedLines::default(),
        }
    }

    fn bridge(&self) -> MutexGuard<'_, AcpBridge> {
        self.bridge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on what one side writes, until it ends or nobody reads it.
    pub(crate) fn pump(&self, from: AcpSide, input: impl Read) {
        let mut input = BufReader::with_capacity(64 * 1024, input);
        let mut line = Vec::new();
        loop {
            if from == AcpSide::Agent {
                self.front.wait_for_room();
            }
            let is_read = match read_line(&mut input, &mut line) {
                Ok(ReadLine::End) | Err(_) => return,
                Ok(ReadLine::Whole) => self.pass(from, &line),
                Ok(ReadLine::Beginning) => {
                    self.front.note(&ProxyNote::TooLong);
                    self.note_writing(from, true);
                    match from {
                        AcpSide::Editor => self.agent.write_long(&line, &mut input),
                        AcpSide::Agent => self.front.pass_long(&line, &mut input),
                    }
                }
            };
            self.note_writing(from, false);
            if !is_read {
                return;
            }
        }
    }

    /// Writes a message of the editor or the chat to the agent.
    pub(crate) fn say(&self, message: &Value) {
        self.pass(AcpSide::Editor, &line_of(message));
    }

    /// Passes on a line. Returns false if nobody reads it.
    fn pass(&self, from: AcpSide, line: &[u8]) -> bool {
        let message = serde_json::from_slice::<Value>(line.trim_ascii()).ok();
        let plan = message.map(|it| self.hear(from, &it)).unwrap_or_default();
        self.note_writing(from, true);
        let other;
        let forwarded = match &plan.forward {
            AcpForward::Unchanged => Some(line),
            AcpForward::Nothing => None,
            AcpForward::Instead(message) => {
                other = line_of(message);
                Some(other.as_slice())
            }
        };
        let is_read = forwarded.is_none_or(|line| match from {
            AcpSide::Editor => self.agent.write(line),
            AcpSide::Agent => self.front.pass(line),
        });
        self.send(&plan);
        is_read
    }

    fn hear(&self, from: AcpSide, message: &Value) -> AcpPlan {
        let setup =
            AcpSetup { table: &self.setup.table, policy: self.setup.policy, now_ms: now_unix_ms() };
        let mut bridge = self.bridge();
        let mut plan = bridge.hear(from, message, &setup);
        self.enqueue(&mut bridge, &mut plan);
        plan
    }

    /// The person chose from a menu.
    pub(crate) fn choose(&self, menu: ProxyAskNumber, option: &str) {
        let plan = {
            let mut bridge = self.bridge();
            let mut plan = bridge.choose(menu, option);
            self.enqueue(&mut bridge, &mut plan);
            plan
        };
        self.send(&plan);
    }

    /// The agent is gone.
    pub(crate) fn end(&self, words: &str) {
        let mut bridge = self.bridge();
        let mut plan = bridge.end(words);
        self.enqueue(&mut bridge, &mut plan);
    }

    /// Shows what is for the person here, and puts into the queue what is for the hub, while nobody else changes the
    /// bridge, so that both keep their order.
    fn enqueue(&self, bridge: &mut AcpBridge, plan: &mut AcpPlan) {
        self.front.show(plan);
        plan.withdrawn.iter().for_each(|number| self.queue.withdraw(*number));
        for event in std::mem::take(&mut plan.events) {
            self.queue.tell(event);
        }
        let Some(ask) = plan.ask.take() else { return };
        let number = ask.number;
        if !self.queue.ask(ask) {
            let unasked = bridge.answer(number, &AskAnswer::Nothing);
            self.front.show(&unasked);
            for event in unasked.events {
                self.queue.tell(event);
            }
        }
    }

    /// Writes our own messages.
    fn send(&self, plan: &AcpPlan) {
        // Nobody to write to is noticed where its lines are read.
        for message in &plan.to_agent {
            self.agent.write(&line_of(message));
        }
        for message in &plan.to_editor {
            self.front.pass(&line_of(message));
        }
        if let Some(notice) = &plan.notice {
            self.front.note(&ProxyNote::Notice(notice.clone()));
        }
    }

    /// Closes the input of the agent, so that it ends.
    pub(crate) fn close_agent(&self) {
        self.agent.close();
    }

    fn note_writing(&self, from: AcpSide, is_writing: bool) {
        if from == AcpSide::Agent {
            self.lines.note(is_writing);
        }
    }
}

impl HubSide for AcpProxy {
    fn queue(&self) -> &HubQueue {
        &self.queue
    }

    fn agent_id(&self) -> String {
        self.bridge().agent_id().to_owned()
    }

    fn answer(&self, number: ProxyAskNumber, answer: &AskAnswer) {
        let plan = {
            let mut bridge = self.bridge();
            let mut plan = bridge.answer(number, answer);
            self.enqueue(&mut bridge, &mut plan);
            plan
        };
        self.send(&plan);
    }

    fn window(&self) -> &'static str {
        self.bridge().window()
    }

    fn note(&self, note: &ProxyNote) {
        self.front.note(note);
    }

    fn cancel(&self, session: &str) -> bool {
        let plan = {
            let mut bridge = self.bridge();
            if !bridge.is_working_in(session) {
                return false;
            }
            let mut plan = bridge.cancel(session);
            self.enqueue(&mut bridge, &mut plan);
            plan
        };
        self.send(&plan);
        true
    }
}
