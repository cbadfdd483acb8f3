//! The proxy itself: lines from one side to the other, and what the bridge makes of them.

use std::io::{self, BufReader, Read, Stdout};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aaep_bridge::acp::{AcpAskNumber, AcpBridge, AcpForward, AcpPlan, AcpSetup, AcpSide};
use aaep_bridge::risk::RiskTable;
use aaep_bridge::{AskAnswer, AskPolicy};
use serde_json::Value;

use super::hub::HubSide;
use super::lines::{ReadLine, SharedOutput, read_line};
use super::queue::HubQueue;
use crate::console;
use crate::keys::now_unix_ms;

/// What the person chose.
pub(super) struct ProxySetup {
    pub(super) table: RiskTable,
    pub(super) policy: AskPolicy,
}

/// An agent, its editor, and what waits for the hub.
pub(super) struct AcpProxy {
    bridge: Mutex<AcpBridge>,
    setup: ProxySetup,
    agent: SharedOutput<ChildStdin>,
    editor: SharedOutput<Stdout>,
    pub(super) queue: HubQueue,
    /// How many lines of the agent have passed, and whether one is being written.
    passed: AtomicU64,
    is_writing: AtomicBool,
}

impl AcpProxy {
    pub(super) fn new(bridge: AcpBridge, setup: ProxySetup, agent: ChildStdin) -> Self {
        AcpProxy {
            bridge: Mutex::new(bridge),
            setup,
            agent: SharedOutput::new(agent),
            editor: SharedOutput::new(io::stdout()),
            queue: HubQueue::default(),
            passed: AtomicU64::new(0),
            is_writing: AtomicBool::new(false),
        }
    }

    fn bridge(&self) -> MutexGuard<'_, AcpBridge> {
        self.bridge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on what one side writes, until it ends or nobody reads it.
    pub(super) fn pump(&self, from: AcpSide, input: impl Read) {
        let mut input = BufReader::with_capacity(64 * 1024, input);
        let mut line = Vec::new();
        loop {
            let is_read = match read_line(&mut input, &mut line) {
                Ok(ReadLine::End) | Err(_) => return,
                Ok(ReadLine::Whole) => self.pass(from, &line),
                Ok(ReadLine::Beginning) => {
                    console::say("A message is too long to be told. It is passed on as it is.");
                    self.note_writing(from, true);
                    match from {
                        AcpSide::Editor => self.agent.write_long(&line, &mut input),
                        AcpSide::Agent => self.editor.write_long(&line, &mut input),
                    }
                }
            };
            self.note_writing(from, false);
            if !is_read {
                return;
            }
        }
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
            AcpSide::Agent => self.editor.write(line),
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

    /// The agent is gone.
    pub(super) fn end(&self, words: &str) {
        let mut bridge = self.bridge();
        let mut plan = bridge.end(words);
        self.enqueue(&mut bridge, &mut plan);
    }

    /// Puts into the queue what is for the hub, while nobody else changes the bridge, so that it keeps its order.
    fn enqueue(&self, bridge: &mut AcpBridge, plan: &mut AcpPlan) {
        plan.withdrawn.iter().for_each(|number| self.queue.withdraw(*number));
        for event in std::mem::take(&mut plan.events) {
            self.queue.tell(event);
        }
        let Some(ask) = plan.ask.take() else { return };
        let number = ask.number;
        if !self.queue.ask(ask) {
            for event in bridge.answer(number, &AskAnswer::Nothing).events {
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
            self.editor.write(&line_of(message));
        }
        if let Some(notice) = &plan.notice {
            console::say(&aaep::printable(notice));
        }
    }

    /// Closes the input of the agent, so that it ends.
    pub(super) fn close_agent(&self) {
        self.agent.close();
    }

    fn note_writing(&self, from: AcpSide, is_writing: bool) {
        if from == AcpSide::Agent {
            self.is_writing.store(is_writing, Ordering::SeqCst);
            self.passed.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(super) fn passed(&self) -> u64 {
        self.passed.load(Ordering::SeqCst)
    }

    pub(super) fn is_writing(&self) -> bool {
        self.is_writing.load(Ordering::SeqCst)
    }
}

impl HubSide for AcpProxy {
    fn queue(&self) -> &HubQueue {
        &self.queue
    }

    fn agent_id(&self) -> String {
        self.bridge().agent_id().to_owned()
    }

    fn window(&self) -> &'static str {
        "the editor"
    }

    fn answer(&self, number: AcpAskNumber, answer: &AskAnswer) {
        let plan = {
            let mut bridge = self.bridge();
            let mut plan = bridge.answer(number, answer);
            self.enqueue(&mut bridge, &mut plan);
            plan
        };
        self.send(&plan);
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

fn line_of(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}
