//! What an agent may say in our own extension, and where (`docs/extension.md`).
//!
//! An agent may state how long an ask may stay open and for which action it asks. Everything else
//! in the extension is reserved for the hub. In doubt the event is refused; nothing is repaired.

use aaep::extension::Delivery;
use aaep::{Event, Payload};

use crate::ask::question;
use crate::io::Refusal;

/// Whether an agent may say everything that the event has in our extension.
pub(super) fn check(event: &Event) -> Result<(), Refusal> {
    if event.extensions.is_none() {
        return Ok(());
    }
    if Delivery::is_for_the_rules_to_say(event) {
        return Err(Refusal::SpeaksForTheHub);
    }
    let Some(said) = Delivery::of(event) else { return Ok(()) };
    let misuse = |advice| Err(Refusal::MisusesExtension(advice));
    if !said.other.is_empty() {
        return misuse("Write the fields of agentvoice as its schema has them.");
    }
    let is_confirmation = matches!(event.payload, Payload::AwaitingConfirmation(_));
    let is_tool = matches!(event.payload, Payload::ToolInvoked(_));
    let timeout = question(&event.payload).map(|(_, timeout_seconds)| timeout_seconds);
    match (said.max_timeout_seconds, timeout) {
        (Some(_), None) => return misuse("State max_timeout_seconds on a question only."),
        (Some(most), Some(timeout)) if most < timeout => {
            return misuse("Make max_timeout_seconds no less than timeout_seconds.");
        }
        _ => {}
    }
    if said.stays_open.is_some() && timeout.is_none() {
        return misuse("State stays_open on a question only.");
    }
    if said.asked_elsewhere.is_some() && !is_confirmation {
        return misuse("State asked_elsewhere on agent.awaiting.confirmation only.");
    }
    if said.tool.is_some() && !is_confirmation {
        return misuse("State tool on agent.awaiting.confirmation only.");
    }
    match said.action_digest {
        Some(_) if is_confirmation && said.tool.is_none() => {
            misuse("State tool beside action_digest.")
        }
        Some(_) if !is_confirmation && !is_tool => misuse(
            "State action_digest on agent.awaiting.confirmation and agent.tool.invoked only.",
        ),
        _ => Ok(()),
    }
}
