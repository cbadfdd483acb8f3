//! Child processes as agents: a program that speaks AAEP over JSON-RPC on its standard input and output (B.6)
//! is started by the hub, and people hear it on every wire that the hub has.
//!
//! Towards the child the hub is a subscriber that wants everything as it is; towards people the child is an
//! agent like any other, under every rule. A question of the child becomes a question of the hub. Only what a
//! person decided goes back as an accept, once, and never after the child's own time; whatever is in doubt
//! goes back as a reject, or not at all, so that the child's own default applies.

mod back;
mod publish;
mod run;
mod translate;

use std::path::Path;
use std::time::Duration;

use aaep::printable;
use aaep_transport::link::{DialOptions, Link, Target, dial};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::access::{HUB_OWNER, MAX_NAME_CHARS, Principal, Scope, Scopes};
use crate::hub::{Hub, HubError, RunningSession};

/// How many children a hub may have.
pub const MAX_CHILDREN: usize = 32;

/// How long it is waited before a child is started again, at first. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// How long it is waited at most.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// How long a child has to run so that the next pause is the first one again.
const RAN_WELL: Duration = Duration::from_mins(1);

/// How long a child may take to end when the hub stops; its link ends it before.
const ENDS_WITHIN: Duration = Duration::from_secs(8);

/// What the id of the principal of a child begins with.
const KIND: &str = "child ";

/// A child in the configuration: the table `[[child]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildTable {
    /// The program, and what it is given. No shell is involved.
    pub command: Vec<String>,
    /// The name under which people hear it, in place of its own.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// Whether it is started again when it ends, after a pause.
    #[serde(default)]
    pub restart: bool,
}

impl ChildTable {
    /// How the child is called: as it is set, or by its program.
    pub fn name(&self) -> String {
        let program = || {
            let program = self.command.first().map(String::as_str).unwrap_or_default();
            let name = Path::new(program).file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        self.agent_id.clone().unwrap_or_else(program)
    }

    /// What is wrong with it, if anything.
    pub fn problem(&self) -> Option<String> {
        if self.command.first().is_none_or(String::is_empty) {
            return Some("names no program. Write such as command = [\"my-agent\"].".to_owned());
        }
        let name = self.name();
        let is_name = (1..=MAX_NAME_CHARS).contains(&name.chars().count());
        if is_name && !name.contains(char::is_control) {
            return None;
        }
        let name = printable(&name).into_owned();
        Some(format!("cannot be called \"{name}\". Give it a short agent_id."))
    }

    fn principal(&self) -> Principal {
        principal(&format!("{KIND}{}", self.name()))
    }
}

fn principal(id: &str) -> Principal {
    let name = id.strip_prefix(KIND).unwrap_or(id);
    // The person who runs the hub runs its children.
    Principal::new(id, name, Scopes::NONE.with(Scope::Publish)).owned_by([HUB_OWNER.to_owned()])
}

/// A child that is looked after.
#[derive(Debug)]
pub struct Relay {
    stopping: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Starts a child and re-serves what it says. Must be called within a tokio runtime.
    pub fn start(hub: Hub, child: ChildTable) -> Self {
        let (stopping, stopped) = watch::channel(false);
        let task = tokio::spawn(look_after(hub, child, stopped));
        Relay { stopping, task }
    }

    /// Ends the child. What it had begun ends in the hub.
    pub async fn stop(self) {
        // If it has ended, that is as wanted.
        let _ = self.stopping.send(true);
        let _ = self.task.await;
    }
}

/// Ends what children of an earlier run of the hub left behind, so that no session runs for ever.
pub async fn end_left_over(hub: &Hub) -> Result<(), HubError> {
    let left = hub.running(|principal_id| principal_id.starts_with(KIND)).await?;
    end(hub, left, "The hub stopped before the agent's work was done.").await;
    Ok(())
}

async fn look_after(hub: Hub, child: ChildTable, mut stopped: watch::Receiver<bool>) {
    let (principal, name) = (child.principal(), printable(&child.name()).into_owned());
    let mut pause = FIRST_PAUSE;
    loop {
        let began = Instant::now();
        tracing::info!(child = %name, "A child process is started.");
        let why = run_once(&hub, &child, &principal, &mut stopped).await;
        let words = match &why {
            Some(_) => "The agent's program ended before its work was done.",
            None => "The hub stops, and the agent with it.",
        };
        let id = principal.id.clone();
        if let Ok(left) = hub.running(move |principal_id| principal_id == id).await {
            end(&hub, left, words).await;
        }
        let Some(why) = why else { return };
        tracing::warn!(child = %name, "A child process is gone: {why}");
        if !child.restart {
            return;
        }
        pause = if began.elapsed() >= RAN_WELL { FIRST_PAUSE } else { pause };
        tracing::info!(child = %name, seconds = pause.as_secs(), "It is started again after a pause.");
        tokio::select! {
            () = sleep(pause) => {}
            _ = stopped.wait_for(|is_stopping| *is_stopping) => return,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Runs a child once. Says why it ended, or none if it was ended because the hub stops.
async fn run_once(
    hub: &Hub,
    child: &ChildTable,
    principal: &Principal,
    stopped: &mut watch::Receiver<bool>,
) -> Option<String> {
    let dialed = dial(&Target::Stdio(child.command.clone()), &DialOptions::default()).await;
    let Link { sender, mut receiver } = match dialed {
        Ok(link) => link,
        Err(error) => return Some(error.to_string()),
    };
    let why = tokio::select! {
        why = run::run(hub, child, principal, sender, &mut receiver) => Some(why),
        _ = stopped.wait_for(|is_stopping| *is_stopping) => None,
    };
    // Nobody speaks to it any more, so it ends, and the link with it.
    let ends = async { while receiver.next().await.is_ok() {} };
    let _ = timeout(ENDS_WITHIN, ends).await;
    why
}

/// Ends sessions as errored. Their open questions are withdrawn with them.
async fn end(hub: &Hub, sessions: Vec<RunningSession>, words: &str) {
    for RunningSession { principal: id, agent, session_id } in sessions {
        let event = json!({
            "type": "aaep:agent.session.errored",
            "session_id": session_id,
            "producer": { "agent_id": agent },
            "error_category": "transient",
            "error_code": "AGENT_ENDED",
            "summary_normal": words,
        });
        let Some(event) = event.as_object().cloned() else { continue };
        if let Err(why) = publish::publish(hub, &principal(&id), event, true).await {
            tracing::error!(session = %session_id, "A session could not be ended: {why}");
        }
    }
}
