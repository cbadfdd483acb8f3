//! Simulated agents: what they publish and when, and how they react to answers. They are
//! well-behaved, chatty or wrong.

mod consent;
mod plan;
mod said;

use std::collections::VecDeque;

use aaep::extension::AskOutcome;
use aaep::{Event, Message, Mode, ReplyToken};
use aaep_engine::{AgentTags, EngineInput, PrincipalNumber};
use serde_json::{Value, json};

use crate::rng::SeededRng;
use crate::truth::WorldTruth;
use consent::IntendedAction;
use plan::{PlannedAct, PlannedEnd};
use said::state_maximum;

/// How an agent behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentManner {
    /// Follows the rules and takes its time.
    WellBehaved,
    /// Follows the rules and never stops talking.
    Chatty,
    /// Sometimes breaks the rules.
    Wrong,
}

/// One simulated agent and its current session.
#[derive(Debug)]
pub struct SimulatedAgent {
    /// The principal under which the hub knows it.
    pub key: PrincipalNumber,
    /// Its name in stories and in its events.
    pub name: String,
    manner: AgentManner,
    session: Option<SimulatedSession>,
    sessions_left: u64,
    /// The last timestamp that it wrote. Its own clock never goes back.
    last_ms: i64,
    counter: u64,
    /// Earlier events, for an agent that repeats itself.
    said: Vec<Event>,
    used_token: Option<ReplyToken>,
    is_stopping: bool,
}

#[derive(Debug)]
struct SimulatedSession {
    id: String,
    state: String,
    acts: VecDeque<PlannedAct>,
    /// The ask that it waits for, and for how many turns it has waited.
    waits_for: Option<(ReplyToken, u64)>,
    /// The action that it will take if the ask is accepted, which may differ from what was asked.
    intends: Option<IntendedAction>,
    /// The action that it last took or tried to take.
    did: Option<IntendedAction>,
}

impl SimulatedAgent {
    /// Creates an agent that has not published anything yet.
    pub fn new(key: PrincipalNumber, rng: &mut SeededRng) -> Self {
        let manner = *rng.pick(&[
            AgentManner::WellBehaved,
            AgentManner::WellBehaved,
            AgentManner::Chatty,
            AgentManner::Wrong,
        ]);
        SimulatedAgent {
            key,
            name: format!("agent-{key}"),
            manner,
            session: None,
            sessions_left: rng.between(1, 3),
            last_ms: 0,
            counter: 0,
            said: Vec::new(),
            used_token: None,
            is_stopping: false,
        }
    }

    /// Creates the agent that runs the last session, after all others have finished.
    pub fn last(rng: &mut SeededRng) -> Self {
        SimulatedAgent {
            manner: AgentManner::WellBehaved,
            sessions_left: 1,
            ..SimulatedAgent::new(PrincipalNumber(990), rng)
        }
    }

    /// Creates an agent that begins as many sessions as it can.
    pub fn hog(rng: &mut SeededRng) -> Self {
        SimulatedAgent { sessions_left: u64::MAX, ..SimulatedAgent::new(PrincipalNumber(970), rng) }
    }

    /// How it behaves.
    pub fn manner(&self) -> AgentManner {
        self.manner
    }

    /// Lets the agent finish its session and begin no other.
    pub fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// How long it pauses before it acts again; none if it has finished.
    pub fn pause_us(&self, rng: &mut SeededRng) -> Option<u64> {
        if self.session.is_none() && (self.sessions_left == 0 || self.is_stopping) {
            return None;
        }
        Some(match self.manner {
            AgentManner::Chatty => rng.between(0, 60_000),
            _ => rng.between(5_000, 900_000),
        })
    }

    /// Tells the agent the outcome of one of its asks.
    pub fn learn_outcome(&mut self, token: &ReplyToken, outcome: &AskOutcome) {
        let Some(session) = &mut self.session else { return };
        if session.waits_for.as_ref().is_none_or(|(waits, _)| waits != token) {
            return;
        }
        session.waits_for = None;
        if *outcome == AskOutcome::Accept
            && let Some(deed) = session.intends.take()
        {
            self.carry_out(deed);
        }
    }

    /// Takes the next action.
    pub fn act(
        &mut self,
        unix_us: i64,
        rng: &mut SeededRng,
        truth: &mut WorldTruth,
    ) -> Vec<EngineInput> {
        if self.manner == AgentManner::Wrong && rng.chance(15) {
            return self.blunder(unix_us, rng, truth).into_iter().collect();
        }
        if self.session.is_none() {
            if self.sessions_left == 0 || self.is_stopping {
                return Vec::new();
            }
            return vec![self.start(unix_us, rng)];
        }
        if let Some(input) = self.wait(unix_us, rng) {
            return input;
        }
        let burst = if self.manner == AgentManner::Chatty { rng.between(1, 4) } else { 1 };
        let mut inputs = Vec::new();
        for _ in 0..burst {
            inputs.extend(self.next(unix_us, rng, truth));
            if self.session.as_ref().is_none_or(|session| session.waits_for.is_some()) {
                break;
            }
        }
        inputs
    }

    /// Waits for an open ask, until the agent loses patience.
    fn wait(&mut self, unix_us: i64, rng: &mut SeededRng) -> Option<Vec<EngineInput>> {
        let principal = self.key;
        let session = self.session.as_mut()?;
        let (token, turns) = session.waits_for.as_mut()?;
        *turns += 1;
        let reply_token = token.clone();
        if *turns > 40 && rng.chance(3) {
            session.waits_for = None;
            return Some(match rng.below(3) {
                0 => vec![EngineInput::Withdraw { principal, reply_token }],
                1 => self.change_state(unix_us, "awaiting_input", "thinking").into_iter().collect(),
                _ => self.end(unix_us, PlannedEnd::Cancelled).into_iter().collect(),
            });
        }
        Some(Vec::new())
    }

    /// Starts a session.
    ///
    /// # Panics
    /// Never: a start is valid.
    pub fn start(&mut self, unix_us: i64, rng: &mut SeededRng) -> EngineInput {
        self.sessions_left -= 1;
        let number = self.count();
        let id = format!("sess_{}x{number}", self.key);
        let acts = plan::plan(rng, self.manner == AgentManner::Chatty);
        self.session = Some(SimulatedSession {
            id,
            state: "idle".to_owned(),
            acts,
            waits_for: None,
            intends: None,
            did: None,
        });
        let words = json!({"summary_normal": "Looking for trains.",
            "summary_normal_es": "Busco trenes.", "summary_terse": "Trains."});
        self.publish(unix_us, "session.started", words).expect("a start is valid")
    }

    /// Carries out the next act of the plan.
    fn next(
        &mut self,
        unix_us: i64,
        rng: &mut SeededRng,
        truth: &mut WorldTruth,
    ) -> Option<EngineInput> {
        let number = self.count();
        let is_stopping = self.is_stopping;
        let session = self.session.as_mut()?;
        let act = session.acts.pop_front().unwrap_or(PlannedAct::End(PlannedEnd::Completed));
        match act {
            PlannedAct::State(to) => {
                let from = session.state.clone();
                if from == to {
                    return None;
                }
                self.change_state(unix_us, &from, to)
            }
            PlannedAct::Progress => {
                let percent = rng.below(101);
                let urgency = *rng.pick(&["normal", "background"]);
                let words = json!({"progress": {"percent": percent}, "urgency": urgency,
                    "summary_normal": format!("{percent} percent done.")});
                self.publish(unix_us, "progress.updated", words)
            }
            PlannedAct::Tool => {
                session.acts.push_front(PlannedAct::Finish { call: number });
                let words = json!({"tool": "search", "irreversible": false,
                    "summary_normal": "Searching the time table.",
                    "tool_call_id": format!("call_{number}")});
                self.publish(unix_us, "tool.invoked", words)
            }
            PlannedAct::Do { call, deed } => {
                self.publish(unix_us, "tool.invoked", deed.words(call))
            }
            PlannedAct::Finish { call } => {
                let status = if rng.chance(80) { "success" } else { "error" };
                let words = json!({"tool": "search", "status": status,
                    "tool_call_id": format!("call_{call}")});
                self.publish(unix_us, "tool.completed", words)
            }
            PlannedAct::Output => {
                let sentences =
                    rng.size(1, if self.manner == AgentManner::Chatty { 16 } else { 6 });
                let output = rng.chance(70).then(|| format!("out_{number}"));
                let session_id = session.id.clone();
                let chunks = truth.write(&session_id, output.as_deref(), sentences, rng);
                let session = self.session.as_mut()?;
                let Some(chunks) = chunks else { return self.next(unix_us, rng, truth) };
                let count = chunks.len();
                let mut language = None;
                let mut acts = Vec::new();
                for (at, (position, chunk, begins)) in chunks.into_iter().enumerate() {
                    // The language changes only between sentences, where every reader agrees on
                    // what a full stop means.
                    if begins && rng.chance(15) {
                        language = if language.is_none() { Some("en-GB") } else { None };
                    }
                    if begins && rng.chance(10) {
                        acts.push(PlannedAct::Confirm);
                    }
                    let (output, complete) = (output.clone(), at + 1 == count);
                    acts.push(PlannedAct::Chunk { output, position, chunk, complete, language });
                }
                for act in acts.into_iter().rev() {
                    session.acts.push_front(act);
                }
                self.next(unix_us, rng, truth)
            }
            PlannedAct::Chunk { output, position, chunk, complete, language } => {
                let mut words = json!({"chunk": chunk, "position": position, "complete": complete});
                if let Some(language) = language {
                    words["language"] = language.into();
                }
                if let Some(output) = output {
                    words["output_id"] = output.into();
                }
                self.publish(unix_us, "output.streaming", words)
            }
            PlannedAct::Confirm | PlannedAct::Clarify if is_stopping => None,
            PlannedAct::Confirm => self.confirm(unix_us, number, rng),
            PlannedAct::Clarify => self.clarify(unix_us, number, rng),
            PlannedAct::Handoff => {
                let words = json!({"reason": "A person should look at this.",
                    "target_kind": "human", "urgency": "critical"});
                self.publish(unix_us, "handoff.requested", words)
            }
            PlannedAct::End(end) => self.end(unix_us, end),
        }
    }

    fn change_state(&mut self, unix_us: i64, from: &str, to: &str) -> Option<EngineInput> {
        let session = self.session.as_mut()?;
        to.clone_into(&mut session.state);
        self.publish(unix_us, "state.changed", json!({"from_state": from, "to_state": to}))
    }

    fn confirm(&mut self, unix_us: i64, number: u64, rng: &mut SeededRng) -> Option<EngineInput> {
        let token = format!("rpl_{:04}{number:012}", self.key);
        let (mut words, deed) = consent::ask(self, &token, number, rng);
        state_maximum(&mut words, rng);
        self.ask(&token);
        if let Some(session) = &mut self.session {
            session.intends = Some(deed);
        }
        self.publish(unix_us, "awaiting.confirmation", words)
    }

    fn clarify(&mut self, unix_us: i64, number: u64, rng: &mut SeededRng) -> Option<EngineInput> {
        let token = format!("rpl_{:04}{number:012}", self.key);
        let mut words = json!({"question": format!("Which train, {}?", self.name),
            "reply_token": token, "timeout_seconds": *rng.pick(&[2, 5, 15]), "urgency": "critical"});
        if rng.chance(50) {
            words["default_response"] = json!("the first");
        }
        if rng.chance(40) {
            words["accepted_response_kinds"] = json!(["yes_no"]);
        }
        state_maximum(&mut words, rng);
        self.ask(&token);
        self.publish(unix_us, "awaiting.clarification", words)
    }

    fn ask(&mut self, token: &str) {
        let token = ReplyToken::parse(token).expect("a token of the right form");
        self.used_token = Some(token.clone());
        if let Some(session) = &mut self.session {
            session.waits_for = Some((token, 0));
        }
    }

    fn end(&mut self, unix_us: i64, end: PlannedEnd) -> Option<EngineInput> {
        let (name, words) = match end {
            PlannedEnd::Completed => ("session.completed", json!({"summary_normal": "Done."})),
            PlannedEnd::Errored => (
                "session.errored",
                json!({"error_category": "transient", "summary_normal": "The line broke.",
                    "urgency": "critical"}),
            ),
            PlannedEnd::Cancelled => (
                "session.cancelled",
                json!({"cancelled_by": "user", "summary_normal": "Called off."}),
            ),
        };
        let input = self.publish(unix_us, name, words);
        self.session = None;
        input
    }

    /// Publishes something that the hub must refuse, or at least survive.
    fn blunder(
        &mut self,
        unix_us: i64,
        rng: &mut SeededRng,
        truth: &WorldTruth,
    ) -> Option<EngineInput> {
        let number = self.count();
        if let Some(event) = self.said.last().filter(|_| rng.chance(30)) {
            // The same event again, from this agent or from another one.
            let principal = if rng.chance(50) { self.key } else { PrincipalNumber(self.key.0 + 1) };
            let tags = AgentTags::default();
            return Some(EngineInput::Publish { principal, tags, event: Box::new(event.clone()) });
        }
        match rng.below(5) {
            0 => {
                let words = IntendedAction::unasked(&self.name, number, rng).words(number);
                self.publish(unix_us, "tool.invoked", words)
            }
            1 => {
                let words = json!({"chunk": "Nonsense.", "position": 7, "complete": false,
                    "output_id": format!("out_wrong{number}")});
                self.publish(unix_us, "output.streaming", words)
            }
            2 => {
                let token = self.used_token.as_ref()?.as_str().to_owned();
                let words = json!({"action": "Delete everything", "consequence": "All is gone.",
                    "reply_token": token, "timeout_seconds": 5, "default_decision": "reject",
                    "urgency": "critical"});
                self.publish(unix_us, "awaiting.confirmation", words)
            }
            3 => {
                // An event in a session that belongs to another agent or has ended.
                let session = truth.any_session(rng)?;
                let words = json!({"progress": {"percent": 1}, "session_id": session});
                self.publish(unix_us, "progress.updated", words)
            }
            _ => {
                let words = json!({"tool": "search", "status": "success",
                    "tool_call_id": format!("call_never{number}")});
                self.publish(unix_us, "tool.completed", words)
            }
        }
    }

    /// Builds an event of this agent, and reads it as strictly as a hub does.
    fn publish(&mut self, unix_us: i64, name: &str, mut words: Value) -> Option<EngineInput> {
        let number = self.count();
        self.last_ms = self.last_ms.max(unix_us / 1000);
        let moment = aaep::Timestamp::from_unix_ms(self.last_ms).expect("a moment of our time");
        let mut event = json!({
            "@context": aaep::CORE_CONTEXT, "type": format!("aaep:agent.{name}"),
            "event_id": format!("evt_{}a{number}", self.key),
            "session_id": self.session.as_ref().map(|session| session.id.clone()),
            "timestamp": moment.as_str(), "producer": {"agent_id": self.name},
            "localization_hints": {"primary_language": "en-US"},
        });
        for (key, value) in words.as_object_mut().into_iter().flatten() {
            event[key] = value.take();
        }
        if event["session_id"].is_null() {
            return None;
        }
        let reading = aaep::read(event.to_string().as_bytes(), Mode::Strict);
        let Ok(Message::Event(event)) = reading.into_result() else {
            unreachable!("agents here write what a strict reader takes: {event}");
        };
        if self.manner == AgentManner::Wrong {
            self.said.truncate(3);
            self.said.insert(0, (*event).clone());
        }
        Some(EngineInput::Publish { principal: self.key, tags: AgentTags::default(), event })
    }

    fn count(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }
}
