//! One agent that is followed: its bridge, what waits for the hub, and the way to its server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aaep_bridge::acp::AcpSetup;
use aaep_bridge::follow::{FollowBridge, FollowPlan, FollowStep, FollowedAgent, ServerMessage};
use aaep_bridge::risk::RiskTable;
use aaep_bridge::{AskAnswer, AskPolicy, ProxyAskNumber};
use serde_json::Value;

use super::sessions::FollowedSessions;
use crate::console::{self, CommandFailure};
use crate::english::following;
use crate::keys::now_unix_ms;
use crate::proxied::hub::HubSide;
use crate::proxied::queue::HubQueue;

/// What the person chose.
pub(super) struct FollowSetup {
    pub(super) table: Arc<RiskTable>,
    pub(super) policy: AskPolicy,
}

/// The way to the agent's server. It takes a message, or says that it cannot.
pub(super) type ServerWay = Box<dyn Fn(ServerMessage) -> bool + Send>;

/// An agent that is followed.
pub(super) struct FollowRun {
    pub(super) agent: FollowedAgent,
    setup: FollowSetup,
    state: Mutex<FollowState>,
    queue: HubQueue,
}

struct FollowState {
    bridge: FollowBridge,
    sessions: FollowedSessions,
    /// While there is a connection.
    way: Option<ServerWay>,
    /// Whether it was said that the agent is not reached, so that it is said once.
    is_away: bool,
    is_closed: bool,
}

impl FollowRun {
    /// Claims the agent under this name.
    pub(super) fn new(
        agent: FollowedAgent,
        name: &str,
        id: &str,
        setup: FollowSetup,
    ) -> Result<Self, CommandFailure> {
        let state = FollowState {
            bridge: FollowBridge::new(agent, id),
            sessions: FollowedSessions::claim(name, agent.name())?,
            way: None,
            is_away: false,
            is_closed: false,
        };
        let (state, queue) = (Mutex::new(state), HubQueue::default());
        Ok(FollowRun { agent, setup, state, queue })
    }

    fn state(&self) -> MutexGuard<'_, FollowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> AcpSetup<'_> {
        let now_ms = now_unix_ms();
        AcpSetup { table: &self.setup.table, policy: self.setup.policy, now_ms }
    }

    /// A connection begins.
    pub(super) fn connected(&self, place: &str, way: ServerWay) {
        let mut state = self.state();
        state.is_away = false;
        say(&following::now_heard(self.agent.name(), place));
        state.way = Some(way);
        let plan = state.bridge.connected(&self.now());
        self.act(&mut state, plan);
    }

    /// Hears a message of the server.
    pub(super) fn hear(&self, message: &Value) {
        let mut state = self.state();
        if !state.is_closed {
            let plan = state.bridge.hear(message, &self.now());
            self.act(&mut state, plan);
        }
    }

    /// A little time has passed.
    #[cfg(unix)]
    pub(super) fn tick(&self) {
        let mut state = self.state();
        let plan = state.bridge.tick(&self.now());
        self.act(&mut state, plan);
    }

    /// The connection is gone. Open questions are closed, and nothing more is answered on it.
    pub(super) fn lost(&self, words: &str) {
        let mut state = self.state();
        state.way = None;
        let plan = state.bridge.lost(words);
        self.act(&mut state, plan);
    }

    /// Nothing more is heard.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.queue.close();
    }

    /// Says why the agent is not reached, once.
    pub(super) fn say_away(&self, words: &str) {
        let mut state = self.state();
        if !state.is_away {
            state.is_away = true;
            say(words);
        }
    }

    /// Does what a plan says, while nobody else changes the bridge, so that everything keeps its order.
    fn act(&self, state: &mut FollowState, plan: FollowPlan) {
        for message in plan.to_agent {
            if !state.way.as_ref().is_some_and(|it| it(message)) {
                console::say(following::TOO_MUCH);
            }
        }
        for step in plan.steps {
            match step {
                FollowStep::Withdraw(number) => self.queue.withdraw(number),
                FollowStep::Tell(event) => self.queue.tell(event),
                FollowStep::Ask(ask) => {
                    let number = ask.number;
                    if !self.queue.ask(ask) {
                        // Nobody can be asked; the dialog of the agent stays.
                        let plan = state.bridge.answer(number, &AskAnswer::Nothing);
                        for step in plan.steps {
                            if let FollowStep::Tell(event) = step {
                                self.queue.tell(event);
                            }
                        }
                    }
                }
            }
        }
        let sessions = state.bridge.sessions();
        state.sessions.write(sessions);
    }
}

fn say(words: &str) {
    console::say(&aaep::printable(words));
}

impl HubSide for FollowRun {
    fn queue(&self) -> &HubQueue {
        &self.queue
    }

    fn agent_id(&self) -> String {
        self.agent.id().to_owned()
    }

    fn window(&self) -> &'static str {
        following::OWN_WINDOW
    }

    fn answer(&self, number: ProxyAskNumber, answer: &AskAnswer) {
        let mut state = self.state();
        let plan = state.bridge.answer(number, answer);
        self.act(&mut state, plan);
    }

    fn cancel(&self, session: &str) -> bool {
        let mut state = self.state();
        if !state.bridge.is_working_in(session) {
            return false;
        }
        let plan = state.bridge.cancel(session);
        self.act(&mut state, plan);
        true
    }
}
