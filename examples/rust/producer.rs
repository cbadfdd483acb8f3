//! A producer in Rust: a program with a hub of its own, which asks before it deletes.
#![expect(clippy::print_stdout, reason = "it speaks to people")]

use aaep::extension::AskOutcome;
use aaep_hub::access::Principal;
use aaep_hub::hub::{Hub, Published};
use aaep_hub::server::{Daemon, DaemonOptions};
use serde_json::{Value, json};
use std::{env, error::Error, io, time::Duration};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut options = DaemonOptions::new(env::temp_dir().join("no-tokens.toml"));
    options.bind = vec!["127.0.0.1:0".parse()?];
    options.config.access.trust_local_programs = true; // To try it out; people run `aaep allow`.
    let daemon = Daemon::start(options).await?;
    println!("Listening on {}. Press Enter to begin.", daemon.origins().join(" "));
    io::stdin().read_line(&mut String::new())?;
    let begun = json!({ "type": "aaep:agent.session.started", "summary_normal": "Looking." });
    let session = publish(daemon.hub(), begun).await?.session_id;
    let question = json!({
        "type": "aaep:agent.awaiting.confirmation", "session_id": session,
        "action": "Delete 240 photos.", "consequence": "They are gone for good.",
        "irreversible": true, "timeout_seconds": 60, "default_decision": "reject",
    });
    let token = publish(daemon.hub(), question).await?.reply_token.ok_or("no question")?;
    let state = daemon.hub().ask_state(&Principal::local(), &token, Duration::MAX).await?;
    let is_accepted = state.settlement.is_some_and(|it| it.outcome == AskOutcome::Accept);
    println!("{}", if is_accepted { "Deleted." } else { "Nothing was deleted." });
    daemon.stop().await;
    Ok(())
}

async fn publish(hub: &Hub, mut event: Value) -> Result<Published, Box<dyn Error>> {
    event["producer"] = json!({ "agent_id": "photo-keeper" });
    let event = event.as_object().cloned().unwrap_or_default();
    let mut stored = hub.publish(&Principal::local(), vec![event], None).await?;
    Ok(stored.pop().ok_or("nothing was stored")??)
}
