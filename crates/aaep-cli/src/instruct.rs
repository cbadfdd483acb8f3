//! Telling agents something, as the person: which agent is meant, what it accepts, and the way there.
//!
//! A hub takes it from the person alone, by their key or a token with the scope reply, so it shows that as
//! `aaep answer` does. Nothing is sent where nobody would get it. `choose` decides, and is pure.

mod choose;

use std::process::ExitCode;
use std::time::Duration;

use aaep::printable;
use serde_json::{Value, json};

use crate::agent::{not_answered, refused, strange};
use crate::console::{Failure, count};
use crate::http::{Answer, Client, Request};
use crate::hubs::reach::client;
use crate::hubs::{Hub, HubFlags};
use crate::keys::tell;
pub(crate) use choose::Wanted;
use choose::{KnownAgent, Message, NotSent, choose};

/// How long a hub may take for one step.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Lists the agents that can be told something.
pub(crate) fn list(flags: &HubFlags) -> Result<ExitCode, Failure> {
    let hubs = flags.hubs(&flags.listen()?)?;
    let found = look(&hubs)?;
    if found.is_empty() {
        tell("No agent is there that can be told something.")?;
        return Ok(ExitCode::from(1));
    }
    tell(&format!("{} can be told something.", count(found.len() as u64, "agent")))?;
    for (_, agent) in &found {
        tell(&agent.sentence())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells an agent what is wanted, and says what came of it.
pub(crate) fn run(flags: &HubFlags, name: &str, wanted: &Wanted<'_>) -> Result<ExitCode, Failure> {
    let hubs = flags.hubs(&flags.listen()?)?;
    let found = look(&hubs)?;
    let agents: Vec<&KnownAgent> = found.iter().map(|(_, agent)| agent).collect();
    let (at, messages) = match choose(&agents, name, wanted) {
        Ok(chosen) => chosen,
        Err(NotSent { what, mut choices }) => {
            for choice in &mut choices {
                choice.about = found
                    .get(choice.agent)
                    .and_then(|(hub, _)| about(&hubs, *hub, choice.session.as_deref()?));
            }
            tell(&printable(&what))?;
            for choice in &choices {
                tell(&choice.line())?;
            }
            return Ok(ExitCode::from(1));
        }
    };
    let Some((hub, agent)) = found.get(at) else { return Ok(ExitCode::from(1)) };
    let client = client_of(&hubs, *hub)?;
    let (sent, refusal) = send(&client, &messages)?;
    let Some(why) = refusal else {
        tell(&choose::done(agent, &messages))?;
        return Ok(ExitCode::SUCCESS);
    };
    let how_many = if sent == 0 { "Nothing was sent." } else { "The rest was not sent." };
    tell(&format!("{} {how_many}", printable(&why)))?;
    Ok(ExitCode::from(1))
}

fn client_of(hubs: &[Hub], at: usize) -> Result<Client, Failure> {
    let hub = hubs.get(at).ok_or_else(|| Failure::new("there is no such hub", "Try again."))?;
    client(&hub.address, hub.token.as_deref())
}

/// The agents of all hubs, each with the number of its hub.
fn look(hubs: &[Hub]) -> Result<Vec<(usize, KnownAgent)>, Failure> {
    let mut all = Vec::new();
    for at in 0..hubs.len() {
        let client = client_of(hubs, at)?;
        let body = get(&client, "/aaep/v1/agents")?;
        let rows = body["agents"].as_array().ok_or_else(|| strange(&client))?;
        all.extend(rows.iter().filter_map(KnownAgent::read).map(|agent| (at, agent)));
    }
    Ok(all)
}

/// What a session is about, in the words of its agent.
fn about(hubs: &[Hub], at: usize, session: &str) -> Option<String> {
    let client = client_of(hubs, at).ok()?;
    let path = format!("/aaep/v1/sessions/{session}/events?from_order=0&limit=1");
    let body = get(&client, &path).ok()?;
    let words = body["events"][0]["event"]["summary_normal"].as_str()?;
    Some(printable(words.lines().next()?).into_owned())
}

/// Sends it on a subscription that hears nothing and can answer nothing. Says how many the hub took, and why not all.
fn send(client: &Client, messages: &[Message]) -> Result<(usize, Option<String>), Failure> {
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
            let why = body["message"].as_str().unwrap_or("The hub did not take it.");
            refusal = Some(why.to_owned());
            break;
        }
        sent += 1;
    }
    let close = json!({ "type": "subscription.close", "subscription_id": id });
    // It ends by itself too.
    let _ = post(client, "/aaep/v1/replies", &close);
    Ok((sent, refusal))
}

fn get(client: &Client, path: &str) -> Result<Value, Failure> {
    let request = Request { method: "GET", path, body: None, timeout: TIMEOUT };
    let answer = client.send(&request).map_err(|error| not_answered(client, &error))?;
    if !answer.is_success() {
        return Err(refused(client, &answer));
    }
    answer.json().ok_or_else(|| strange(client))
}

fn post(client: &Client, path: &str, body: &Value) -> Result<Answer, Failure> {
    let body = body.to_string();
    let body = Some(("application/json", body.as_bytes()));
    let request = Request { method: "POST", path, body, timeout: TIMEOUT };
    client.send(&request).map_err(|error| not_answered(client, &error))
}
