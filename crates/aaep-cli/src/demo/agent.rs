//! The scripted agent: it takes prompts from the hub and plays the matching scenes.
//!
//! It acts only on accepts that the hub reports. A cancelled session stops where it is, and its open ask is
//! withdrawn. A prompt that arrives instead of an answer also withdraws the ask.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aaep::extension::{Accepts, AskOutcome};
use aaep::reply::Response;
use aaep::{Object, ReplyToken, SessionId};
use aaep_hub::access::Principal;
use aaep_hub::hub::{Hub, HubError, Refused};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::scenes::steps_for;
use super::script::{SceneAnswer, SceneStep};
use crate::console;

/// The name of the agent.
pub(crate) const AGENT_ID: &str = "photo-keeper";

/// How many prompts are handled at the same time. Further ones get an error.
const MAX_SESSIONS: usize = 64;

/// How long one query of the inbox or of an ask may wait.
const WAIT: Duration = Duration::from_secs(30);

/// The agent and its access to the hub.
#[derive(Debug, Clone)]
pub(crate) struct DemoAgent {
    hub: Hub,
    principal: Principal,
    /// Whether to pause between events, for someone who follows along.
    is_unhurried: bool,
}

/// A scene that is being played.
#[derive(Debug)]
struct RunningScene {
    task: JoinHandle<()>,
    /// Whether it waits for an answer.
    is_asking: Arc<AtomicBool>,
}

/// Why a scene was not played to its end.
#[derive(Debug)]
pub(crate) enum SceneError {
    /// The hub refused an event.
    Refused(Refused),
    /// The hub is gone or does not work.
    Hub(HubError),
}

impl fmt::Display for SceneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SceneError::Refused(refused) => refused.fmt(f),
            SceneError::Hub(error) => error.fmt(f),
        }
    }
}

impl DemoAgent {
    /// An agent that publishes to this hub.
    pub(crate) fn new(hub: Hub, is_unhurried: bool) -> Self {
        DemoAgent { hub, principal: Principal::local(), is_unhurried }
    }

    /// Declares the agent and what it accepts.
    pub(crate) async fn announce(&self) -> Result<(), HubError> {
        let accepts = vec![Accepts::Prompt, Accepts::Cancel];
        self.hub.declare(&self.principal, AGENT_ID, accepts).await
    }

    /// Takes prompts until the hub stops.
    pub(crate) async fn serve(self) {
        let mut running: HashMap<SessionId, RunningScene> = HashMap::new();
        let mut after = 0;
        loop {
            let taken = match self.announce().await {
                Ok(()) => self.hub.instructions(&self.principal, AGENT_ID, after, WAIT).await,
                Err(error) => Err(error),
            };
            let Ok(instructions) = taken else { return };
            for instruction in instructions {
                after = instruction.number;
                running.retain(|_, session| !session.task.is_finished());
                let session_id = instruction.session_id;
                match (instruction.kind, instruction.text) {
                    ("agentvoice:agent.prompt", Some(text)) => {
                        self.give_up_asking(&mut running).await;
                        let is_busy = running.len() >= MAX_SESSIONS;
                        let steps = if is_busy { busy() } else { steps_for(&text) };
                        running.insert(session_id.clone(), self.run(session_id, steps));
                    }
                    ("agentvoice:session.cancel", _) => {
                        if let Some(session) = running.remove(&session_id) {
                            self.cancel(&session_id, session, "Stopped, as you asked.").await;
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Plays a scene in the background.
    fn run(&self, session: SessionId, steps: Vec<SceneStep>) -> RunningScene {
        let is_asking = Arc::new(AtomicBool::new(false));
        let (agent, asks) = (self.clone(), Arc::clone(&is_asking));
        let task = tokio::spawn(async move {
            if let Err(why) = agent.play(&session, steps, &asks).await {
                console::say(&format!("The agent had to stop. {why}"));
            }
        });
        RunningScene { task, is_asking }
    }

    /// A person who asks for something else instead of answering no longer wants what was asked.
    async fn give_up_asking(&self, running: &mut HashMap<SessionId, RunningScene>) {
        let asking = running.extract_if(|_, session| session.is_asking.load(Ordering::SeqCst));
        let asking: Vec<(SessionId, RunningScene)> = asking.collect();
        for (session_id, session) in asking {
            let summary = "You asked for something else, so I no longer ask.";
            self.cancel(&session_id, session, summary).await;
        }
    }

    /// Stops a scene where it is and ends its session. The hub then withdraws its open ask.
    async fn cancel(&self, session_id: &SessionId, session: RunningScene, summary: &str) {
        session.task.abort();
        let was_stopped = session.task.await.is_err_and(|error| error.is_cancelled());
        if was_stopped {
            let fields = json!({ "cancelled_by": "user", "summary_normal": summary });
            // If it has just ended by itself, there is nothing left to end.
            let _ = self.tell(session_id, "session.cancelled", fields).await;
        }
    }

    /// Plays a scene in a session from start to end, and marks when it waits for an answer.
    async fn play(
        &self,
        session: &SessionId,
        steps: Vec<SceneStep>,
        is_asking: &AtomicBool,
    ) -> Result<(), SceneError> {
        let mut steps = VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            match step {
                SceneStep::Pause(_) if !self.is_unhurried => {}
                SceneStep::Pause(time) => tokio::time::sleep(time).await,
                SceneStep::Tell(name, fields) => {
                    self.tell(session, name, fields).await?;
                }
                SceneStep::Ask(name, fields, then) => {
                    is_asking.store(true, Ordering::SeqCst);
                    let token = self.tell(session, name, fields).await?;
                    let answer = match token {
                        Some(token) => self.answer(&token).await?,
                        None => SceneAnswer::default(),
                    };
                    is_asking.store(false, Ordering::SeqCst);
                    steps.extend(then(&answer));
                }
            }
        }
        Ok(())
    }

    /// Publishes an event; returns the reply token if it is an ask.
    async fn tell(
        &self,
        session: &SessionId,
        name: &str,
        fields: Value,
    ) -> Result<Option<ReplyToken>, SceneError> {
        let event = event(session, name, fields);
        let outcomes = self.hub.publish(&self.principal, vec![event], None).await;
        match outcomes.map_err(SceneError::Hub)?.pop() {
            Some(Ok(published)) => Ok(published.reply_token),
            Some(Err(refused)) => Err(SceneError::Refused(refused)),
            None => Err(SceneError::Hub(HubError::Stopped)),
        }
    }

    /// Waits until an ask is settled.
    async fn answer(&self, token: &ReplyToken) -> Result<SceneAnswer, SceneError> {
        loop {
            let asked = self.hub.ask_state(&self.principal, token, WAIT).await;
            if let Some(settlement) = asked.map_err(SceneError::Hub)?.settlement {
                return Ok(SceneAnswer {
                    is_accepted: settlement.outcome == AskOutcome::Accept,
                    response: settlement.response.map(|response| match response {
                        Response::Text(text) => text,
                        Response::YesNo(yes) => yes.to_string(),
                        Response::Number(number) => number.to_string(),
                    }),
                });
            }
        }
    }
}

/// What the agent says when too many sessions run.
fn busy() -> Vec<SceneStep> {
    use super::script::{errored, started};
    let hint = "Wait until some of them have ended, and ask again.";
    vec![
        started("There is too much to do."),
        errored("TOO_BUSY", "Too many sessions run already.", hint),
    ]
}

fn event(session: &SessionId, name: &str, fields: Value) -> Object {
    let mut event = Object::new();
    event.insert("type".to_owned(), format!("aaep:agent.{name}").into());
    event.insert("session_id".to_owned(), session.as_str().into());
    event.insert(
        "producer".to_owned(),
        json!({ "agent_id": AGENT_ID, "agent_name": "Photo keeper" }),
    );
    event.insert("localization_hints".to_owned(), json!({ "primary_language": "en" }));
    if let Value::Object(fields) = fields {
        event.extend(fields);
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_a_hub<T>(work: impl AsyncFnOnce(Hub, DemoAgent) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let hub = Hub::builder().start().expect("a hub");
            let agent = DemoAgent::new(hub.clone(), false);
            let result = work(hub.clone(), agent).await;
            hub.stop().await;
            result
        })
    }

    #[test]
    fn a_hub_takes_every_scene_when_nobody_is_there_to_answer() {
        in_a_hub(async |_, agent| {
            for (at, prompt) in [
                "photos",
                "hello",
                "moon",
                "tool",
                "paragraph",
                "does not exist",
                "api_key",
                "book a room",
                "email",
                "delete record",
                "weather",
                "confirmation for any action",
                "human",
                "rainbow",
                "deliberate error",
            ]
            .into_iter()
            .enumerate()
            {
                let session = SessionId::parse(&format!("sess_{at}")).expect("an id");
                let played = agent.play(&session, steps_for(prompt), &AtomicBool::new(false)).await;
                assert!(played.is_ok(), "{prompt}: {played:?}");
            }
        });
    }

    #[test]
    fn a_hub_does_not_let_it_act_without_consent() {
        in_a_hub(async |_, agent| {
            let session = SessionId::parse("sess_1").expect("an id");
            let start = json!({ "summary_normal": "It begins." });
            agent.tell(&session, "session.started", start).await.expect("a start");
            let act = json!({ "tool": "wipe", "summary_normal": "Wiping.", "irreversible": true });
            let refused = agent.tell(&session, "tool.invoked", act).await;
            assert!(matches!(refused, Err(SceneError::Refused(_))), "{refused:?}");
        });
    }
}
