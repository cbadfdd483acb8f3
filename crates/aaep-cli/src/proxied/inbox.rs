//! What the person tells the agent: here, only to stop.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::hub::HubSide;
use crate::http::{HubClient, HubRequest};

/// How long the hub holds a request while there is nothing to tell.
const WAIT_SECONDS: u64 = 25;
const SLACK: Duration = Duration::from_secs(10);

/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(3);

/// How long an instruction for another run of the same agent is left to it, and how often that is looked at.
const OTHERS_PAUSE: Duration = Duration::from_millis(500);
const OTHERS_TRIES: u32 = 10;

/// Starts the thread that waits for instructions.
pub(crate) fn start(proxy: &Arc<dyn HubSide>, client: HubClient) {
    let proxy = Arc::clone(proxy);
    thread::spawn(move || AgentInbox { proxy, client, taken: 0, others: 0 }.run());
}

struct AgentInbox {
    proxy: Arc<dyn HubSide>,
    client: HubClient,
    /// The number of the last instruction that was taken.
    taken: u64,
    /// How often only instructions for others were found.
    others: u32,
}

impl AgentInbox {
    fn run(&mut self) {
        loop {
            if self.look().is_none() {
                thread::sleep(PAUSE);
            }
        }
    }

    /// Waits for instructions once. `None` if the hub does not answer.
    fn look(&mut self) -> Option<()> {
        let agent = self.proxy.agent_id();
        let accepts = json!({ "accepts": ["cancel"] }).to_string();
        let hello = HubRequest {
            method: "PUT",
            path: &format!("/aaep/v1/agents/{agent}"),
            body: Some(("application/json", accepts.as_bytes())),
            timeout: SLACK,
        };
        self.client.send(&hello).ok().filter(crate::http::HubAnswer::is_success)?;
        let path = format!(
            "/aaep/v1/agents/{agent}/inbox?after={}&wait_seconds={WAIT_SECONDS}",
            self.taken
        );
        let timeout = Duration::from_secs(WAIT_SECONDS) + SLACK;
        let request = HubRequest { method: "GET", path: &path, body: None, timeout };
        let answer = self.client.send(&request).ok().filter(crate::http::HubAnswer::is_success)?;
        let answer = answer.json()?;
        for instruction in answer["instructions"].as_array()? {
            let session = instruction["original_session_id"].as_str();
            let session = session.or(instruction["session_id"].as_str()).unwrap_or_default();
            let is_cancel = instruction["type"] == "agentvoice:session.cancel";
            let is_ours = is_cancel && self.proxy.cancel(session);
            if !is_ours && self.others < OTHERS_TRIES {
                // Another run of this agent has the same name.
                self.others += 1;
                thread::sleep(OTHERS_PAUSE);
                return Some(());
            }
            self.others = 0;
            self.taken = instruction["number"].as_u64().unwrap_or(self.taken).max(self.taken);
        }
        Some(())
    }
}
