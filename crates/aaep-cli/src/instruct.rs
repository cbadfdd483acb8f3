//! Instructs agents on behalf of the person: finds the agent, checks what it accepts, and sends the instruction.
//!
//! A hub takes instructions only from the person, who is identified by their key or by a token with the scope reply,
//! as in `aaep answer`. Nothing is sent if no agent would receive it. `choose` decides, and is pure.

mod choose;

use std::process::ExitCode;
use std::time::Duration;

use aaep::printable;
use serde_json::{Value, json};

use crate::agent::{not_answered, refused, strange};
use crate::console::CommandFailure;
use crate::english::instructing;
use crate::http::{HubAnswer, HubClient, HubRequest};
use crate::hubs::reach::client;
use crate::hubs::{HubFlags, HubTarget};
use crate::keys::tell;
pub(crate) use choose::WantedInstruction;
use choose::{InstructableAgent, InstructionMessage, UnsentInstruction, choose};

/// How long a hub may take for one request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Lists the agents that can be instructed.
pub(crate) fn list(flags: &HubFlags) -> Result<ExitCode, CommandFailure> {
    let hubs = flags.hubs(&flags.listen()?)?;
    let found = look(&hubs)?;
    if found.is_empty() {
        tell(instructing::NO_AGENT)?;
        return Ok(ExitCode::from(1));
    }
    tell(&instructing::agents(found.len() as u64))?;
    for (_, agent) in &found {
        tell(&agent.sentence())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Instructs an agent and reports the result.
pub(crate) fn run(
    flags: &HubFlags,
    name: &str,
    wanted: &WantedInstruction<'_>,
) -> Result<ExitCode, CommandFailure> {
    let hubs = flags.hubs(&flags.listen()?)?;
    let found = look(&hubs)?;
    let agents: Vec<&InstructableAgent> = found.iter().map(|(_, agent)| agent).collect();
    let (at, messages) = match choose(&agents, name, wanted) {
        Ok(chosen) => chosen,
        Err(UnsentInstruction { what, mut choices }) => {
            for choice in &mut choices {
                choice.about = found
                    .get(choice.agent)
                    .and_then(|(hub, _)| about(hub, choice.session.as_deref()?));
            }
            tell(&printable(&what))?;
            for choice in &choices {
                tell(&choice.line())?;
            }
            return Ok(ExitCode::from(1));
        }
    };
    let Some((hub, agent)) = found.get(at) else { return Ok(ExitCode::from(1)) };
    let (sent, refusal) = send(&client_of(hub)?, &messages)?;
    let Some(why) = refusal else {
        tell(&choose::done(agent, &messages))?;
        return Ok(ExitCode::SUCCESS);
    };
    let how_many = if sent == 0 { instructing::NOTHING_SENT } else { instructing::REST_NOT_SENT };
    tell(&format!("{} {how_many}", printable(&why)))?;
    Ok(ExitCode::from(1))
}

fn client_of(hub: &HubTarget) -> Result<HubClient, CommandFailure> {
    client(&hub.address, hub.token.as_deref())
}

/// The agents of all hubs, each with its hub.
fn look(hubs: &[HubTarget]) -> Result<Vec<(&HubTarget, InstructableAgent)>, CommandFailure> {
    let mut all = Vec::new();
    for hub in hubs {
        let client = client_of(hub)?;
        let body = get(&client, "/aaep/v1/agents")?;
        let rows = body["agents"].as_array().ok_or_else(|| strange(&client))?;
        all.extend(rows.iter().filter_map(InstructableAgent::read).map(|agent| (hub, agent)));
    }
    Ok(all)
}

/// What a session is about, in the words of its agent.
fn about(hub: &HubTarget, session: &str) -> Option<String> {
    let client = client_of(hub).ok()?;
    let path = format!("/aaep/v1/sessions/{session}/events?from_order=0&limit=1");
    let body = get(&client, &path).ok()?;
    let words = body["events"][0]["event"]["summary_normal"].as_str()?;
    Some(printable(words.lines().next()?).into_owned())
}

/// Sends the messages on a subscription that receives and answers nothing. Returns how many the hub took, and why not
/// all of them.
fn send(
    client: &HubClient,
    messages: &[InstructionMessage],
) -> Result<(usize, Option<String>), CommandFailure> {
    let request = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "aaep-tell",
        "subscriber_name": "aaep tell",
        "capabilities": { "supports_confirmation_reply": false, "supports_clarification_reply": false },
    });
    let accepted = post(client, "/aaep/v1/subscriptions", &request)?;
    if !accepted.is_success() {
        return Err(refused(client, &accepted));
    }
    let accepted = accepted.json().ok_or_else(|| strange(client))?;
    let id = accepted["subscription_id"].as_str().ok_or_else(|| strange(client))?;
    let (mut sent, mut refusal) = (0, None);
    for message in messages {
        let answer = post(client, "/aaep/v1/replies", &message.json(id))?;
        if !answer.is_success() {
            let body = answer.json().unwrap_or_default();
            let why = body["message"].as_str().unwrap_or(instructing::HUB_REFUSED);
            refusal = Some(why.to_owned());
            break;
        }
        sent += 1;
    }
    let close = json!({ "type": "subscription.close", "subscription_id": id });
    // The subscription would also expire by itself.
    let _ = post(client, "/aaep/v1/replies", &close);
    Ok((sent, refusal))
}

fn get(client: &HubClient, path: &str) -> Result<Value, CommandFailure> {
    let request = HubRequest { method: "GET", path, body: None, timeout: TIMEOUT };
    let answer = client.send(&request).map_err(|error| not_answered(client, &error))?;
    if !answer.is_success() {
        return Err(refused(client, &answer));
    }
    answer.json().ok_or_else(|| strange(client))
}

fn post(client: &HubClient, path: &str, body: &Value) -> Result<HubAnswer, CommandFailure> {
    let body = body.to_string();
    let body = Some(("application/json", body.as_bytes()));
    let request = HubRequest { method: "POST", path, body, timeout: TIMEOUT };
    client.send(&request).map_err(|error| not_answered(client, &error))
}
