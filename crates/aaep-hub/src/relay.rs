//! Child processes as agents: the hub starts a program that uses AAEP over JSON-RPC on its standard input
//! and output (B.6), and people hear it on every wire of the hub.
//!
//! To the child the hub is a subscriber that wants every event unchanged; to people the child is an agent
//! like any other, under the same rules. An ask of the child becomes an ask of the hub. Only a person's
//! decision is sent back as an accept, once, and never after the child's own deadline; in doubt the hub
//! sends a reject, or nothing, so that the child's own default applies.

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

/// The most children of a hub.
pub const MAX_CHILDREN: usize = 32;

/// The first pause before a child is started again. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// How long a child has to run for the pause to start over.
const LONG_RUN: Duration = Duration::from_mins(1);

/// How long a child may take to end when the hub stops. Its link normally ends it sooner.
const ENDS_WITHIN: Duration = Duration::from_secs(8);

/// The start of the id of a child's principal.
const CHILD_PREFIX: &str = "child ";

/// A child in the configuration: the table `[[child]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildTable {
    /// The program and its arguments. No shell is involved.
    pub command: Vec<String>,
    /// The name under which people hear it, instead of its own.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// Whether it is started again after it ends, after a pause.
    #[serde(default)]
    pub restart: bool,
}

impl ChildTable {
    /// The name of the child: as configured, or that of its program.
    pub fn name(&self) -> String {
        let program = || {
            let program = self.command.first().map(String::as_str).unwrap_or_default();
            let name = Path::new(program).file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        self.agent_id.clone().unwrap_or_else(program)
    }

    /// What is wrong with the table, if anything.
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
        principal(&format!("{CHILD_PREFIX}{}", self.name()))
    }
}

fn principal(id: &str) -> Principal {
    let name = id.strip_prefix(CHILD_PREFIX).unwrap_or(id);
    // The children belong to the person who runs the hub.
    Principal::new(id, name, Scopes::NONE.with(Scope::Publish)).owned_by([HUB_OWNER.to_owned()])
}

/// Runs one child process and publishes its events.
#[derive(Debug)]
pub struct Relay {
    stopping: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Starts a child and publishes its events. Must be called within a tokio runtime.
    pub fn start(hub: Hub, child: ChildTable) -> Self {
        let (stopping, stopped) = watch::channel(false);
        let task = tokio::spawn(supervise(hub, child, stopped));
        Relay { stopping, task }
    }

    /// Ends the child. Its sessions end in the hub.
    pub async fn stop(self) {
        // An error means that the task has already ended.
        let _ = self.stopping.send(true);
        let _ = self.task.await;
    }
}

/// Ends sessions that children of an earlier run of the hub left behind, so that none runs forever.
pub async fn end_left_over(hub: &Hub) -> Result<(), HubError> {
    let left = hub.running(|principal_id| principal_id.starts_with(CHILD_PREFIX)).await?;
    end(hub, left, "The hub stopped before the agent's work was done.").await;
    Ok(())
}

async fn supervise(hub: Hub, child: ChildTable, mut stopped: watch::Receiver<bool>) {
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
        pause = if began.elapsed() >= LONG_RUN { FIRST_PAUSE } else { pause };
        tracing::info!(child = %name, seconds = pause.as_secs(), "It is started again after a pause.");
        tokio::select! {
            () = sleep(pause) => {}
            _ = stopped.wait_for(|is_stopping| *is_stopping) => return,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Runs a child once. Returns why it ended, or `None` if it was ended because the hub stops.
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
    // With its sender gone, the child ends, and the link with it.
    let ends = async { while receiver.next().await.is_ok() {} };
    let _ = timeout(ENDS_WITHIN, ends).await;
    why
}

/// Ends sessions with an error. Their open asks are withdrawn with them.
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
