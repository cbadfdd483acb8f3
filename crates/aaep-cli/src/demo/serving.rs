//! `aaep demo --serve`: the demonstration's hub for other programs, such as the public subscribers.
//!
//! It trusts every program on this computer, and says so. Its agent asks something as soon as a program subscribes,
//! and again from time to time, because most of those programs cannot prompt an agent.

use std::time::Duration;

use aaep::extension::AgentPrompt;
use aaep::handshake::SubscriptionRequest;
use aaep::{Capabilities, Message, Object, Version};
use aaep_engine::terms::Door;
use aaep_hub::access::Principal;
use aaep_hub::hub::{Hub, HubError};
use aaep_hub::server::DaemonOptions;
use clap::Args;

use crate::console::CommandFailure;
use crate::keys::tell;

/// The origins of web pages under development, as the public React example uses them.
const USUAL_PAGES: [&str; 2] = ["http://localhost:5173", "http://127.0.0.1:5173"];

/// The prompt for the agent. It leads to a confirmation, which all of those programs can answer.
const PROMPT: &str = "Delete the record 12345.";

/// How often to check whether a program listens.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long a new program may take to declare its capabilities.
const SETTLING: Duration = Duration::from_secs(2);

/// How the hub is served.
#[derive(Debug, Args)]
pub(crate) struct ServingFlags {
    /// How many seconds pass before the agent asks again, while somebody listens. With 0, it asks only when it is
    /// prompted.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "serve")]
    ask_every: u64,
    /// The origin of web pages that may use the hub, besides port 5173 of this computer. Can be given several times.
    #[arg(long, value_name = "ORIGIN", requires = "serve")]
    origin: Vec<String>,
}

impl ServingFlags {
    /// Admits every local program, and these web pages.
    pub(super) fn apply(&self, options: &mut DaemonOptions) {
        options.config.access.trust_local_programs = true;
        let pages = USUAL_PAGES.iter().map(|it| (*it).to_owned()).chain(self.origin.clone());
        options.config.access.allowed_origins = pages.collect();
    }

    /// Prints where the hub is, whom it trusts, and how to connect.
    pub(super) fn introduce(&self, origin: &str) -> Result<(), CommandFailure> {
        tell(&format!("Listening on {origin}"))?;
        tell(
            "This hub trusts every program on this computer: each may hear, answer and speak. It is for trying things \
             out. Its agent only pretends: nothing is read, sent or deleted.",
        )?;
        if self.ask_every > 0 {
            tell(&format!(
                "It asks something when a program listens, and again after {} seconds.",
                self.ask_every
            ))?;
        }
        tell(&format!("To connect a program, give it the address {origin}, for example:"))?;
        tell(&format!("  aaep-listen --endpoint {origin}"))?;
        tell(&format!("To hear it: curl -N {origin}/events"))?;
        tell(&format!(
            "To prompt it: curl {origin}/messages -H 'content-type: application/json' \
             -d '{{\"kind\":\"user_input\",\"text\":\"Find old photos.\"}}'"
        ))?;
        tell("Control-C ends it.")
    }

    /// Prompts the agent while a program listens, until the hub stops.
    pub(super) async fn ask_again(hub: Hub, every: Option<Duration>) {
        let Some(every) = every else { return };
        loop {
            while !is_heard(&hub).await {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            tokio::time::sleep(SETTLING).await;
            // Stop if the hub is stopping or too busy.
            if prompt(&hub).await.is_err() {
                return;
            }
            let mut waited = Duration::ZERO;
            while waited < every && is_heard(&hub).await {
                tokio::time::sleep(LOOK_EVERY).await;
                waited += LOOK_EVERY;
            }
        }
    }

    /// How long to wait before asking again, if at all.
    pub(super) fn pause(&self) -> Option<Duration> {
        (self.ask_every > 0).then(|| Duration::from_secs(self.ask_every))
    }
}

/// Whether a program listens.
async fn is_heard(hub: &Hub) -> bool {
    hub.everyone().await.is_ok_and(|everyone| !everyone.is_empty())
}

/// Prompts the agent, unless it already waits for an answer.
async fn prompt(hub: &Hub) -> Result<(), HubError> {
    let local = Principal::local();
    if !hub.waiting_asks(&local).await?.is_empty() {
        return Ok(());
    }
    let request = SubscriptionRequest {
        aaep_version: Version::parse("1.0.0").expect("a constant of the right form"),
        subscriber_id: "aaep-demo".to_owned(),
        subscriber_name: None,
        subscriber_version: None,
        subscriber_manifest_uri: None,
        correlation_id: None,
        capabilities: Capabilities::new(),
        extensions: None,
        other: Object::new(),
    };
    let Ok(accepted) = hub.subscribe(&local, Door::Open, request).await? else { return Ok(()) };
    let subscription_id = accepted.subscription_id;
    let prompt = AgentPrompt {
        subscription_id: subscription_id.clone(),
        agent_id: None,
        text: PROMPT.to_owned(),
        other: Object::new(),
    };
    hub.tell(&local, Message::AgentPrompt(Box::new(prompt))).await?;
    let close = aaep::handshake::SubscriptionClose {
        subscription_id,
        reason_code: None,
        reason_message: None,
        correlation_id: None,
        extensions: None,
        other: Object::new(),
    };
    hub.tell(&local, Message::SubscriptionClose(Box::new(close))).await?;
    Ok(())
}
