//! Instructions to agents while listening: to continue differently, to begin something, or to stop.
//!
//! No agent is forced: it responds with events. An instruction never answers a question.

use std::collections::VecDeque;

use aaep::printable;
use aaep_announce::{AnnouncerInput, HubNumber, KnownAgent};
use aaep_subscriber::{Instruction, SayError};

use super::room::{ListeningRoom, RoomUpdate};
use crate::english::telling;

/// How many instructions may be pending at the same time.
const MAX_PENDING: usize = 16;

/// The longest instruction, in bytes.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// How many agents are named when it is unclear which one is meant.
const MAX_NAMED: usize = 8;

/// An instruction whose result is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingInstruction {
    hub: HubNumber,
    label: String,
    agent_id: String,
    instruction: Instruction,
}

/// The agent that the person means.
#[derive(Debug, PartialEq, Eq)]
enum AddressedAgent<'a, 't> {
    /// This one, and the words after its name.
    One(&'a KnownAgent, &'t str),
    /// Any of these.
    Several(Vec<&'a str>),
    Nobody,
}

/// The agent whose name comes first. The longest name wins, and of several sessions the live one.
fn meant<'a, 't>(agents: &'a [KnownAgent], typed: &'t str) -> AddressedAgent<'a, 't> {
    let typed = typed.trim();
    let named = |agent: &'a KnownAgent| {
        let names = [&agent.label, &agent.name, &agent.agent_id];
        let length = names.into_iter().filter_map(|name| named_first(typed, name)).max()?;
        Some((length, agent))
    };
    let found: Vec<(usize, &KnownAgent)> = agents.iter().filter_map(named).collect();
    let Some(longest) = found.iter().map(|(length, _)| *length).max() else {
        return AddressedAgent::Nobody;
    };
    let of_it = found.into_iter().filter(|(length, _)| *length == longest).map(|(_, it)| it);
    let (live, over): (Vec<_>, Vec<_>) = of_it.partition(|it| it.is_live);
    let rest = typed.get(longest..).unwrap_or_default();
    let rest = rest.trim_start_matches([':', ',']).trim();
    let Some(first) = live.first().or(over.first()) else { return AddressedAgent::Nobody };
    let is_same = |it: &&KnownAgent| (it.hub, &it.agent_id) == (first.hub, &first.agent_id);
    // Another agent with the same name must not get what is meant for an idle one.
    if live.len() < 2 && live.iter().chain(&over).all(is_same) {
        return AddressedAgent::One(first, rest);
    }
    // The first of several has the name alone.
    let is_labelled = |it: &&&KnownAgent| named_first(typed, &it.label) == Some(longest);
    let mut labelled = live.iter().filter(is_labelled);
    if let (Some(only), None, 2..) = (labelled.next(), labelled.next(), live.len()) {
        return AddressedAgent::One(only, rest);
    }
    let several = if live.len() < 2 { live.iter().chain(&over) } else { live.iter().chain(&[]) };
    AddressedAgent::Several(several.map(|it| it.label.as_str()).collect())
}

/// The length of this name in bytes, if the words begin with it as a whole word.
fn named_first(typed: &str, name: &str) -> Option<usize> {
    let name = name.trim();
    let head = typed.get(..name.len()).filter(|_| !name.is_empty())?;
    let rest = typed.get(name.len()..)?;
    let is_whole = rest.chars().next().is_none_or(|c| c.is_whitespace() || matches!(c, ':' | ','));
    (is_whole && head.to_lowercase() == name.to_lowercase()).then_some(name.len())
}

impl ListeningRoom {
    /// Tells an agent something: in its live session if there is one, otherwise to begin something.
    pub(super) fn tell_agent(&mut self, typed: &str) {
        let agents = self.agents();
        let (agent, words) = match meant(&agents, typed) {
            AddressedAgent::One(agent, words) => (agent, words),
            other => return self.reply(&not_meant("tell", typed, &other, &agents)),
        };
        if words.is_empty() {
            let what = telling::tell_what(&agent.label);
            return self.reply(&printable(&what));
        }
        if words.len() > MAX_TEXT_BYTES {
            return self.reply(telling::TOO_LONG);
        }
        let text = words.to_owned();
        let instruction = if agent.is_live {
            Instruction::Steer { session_id: agent.session_id.clone(), text }
        } else {
            Instruction::Prompt { agent_id: Some(agent.agent_id.clone()), text }
        };
        self.instruct(agent, instruction);
    }

    /// Asks an agent to stop.
    pub(super) fn cancel_agent(&mut self, typed: &str) {
        let agents = self.agents();
        match meant(&agents, typed) {
            AddressedAgent::One(agent, "") if agent.is_live => {
                let session_id = agent.session_id.clone();
                self.instruct(agent, Instruction::Cancel { session_id });
            }
            AddressedAgent::One(agent, "") => {
                let what = telling::nothing_to_cancel(&agent.label);
                self.reply(&printable(&what));
            }
            AddressedAgent::One(agent, _) => {
                let what = telling::not_cancelled(&agent.label);
                self.reply(&printable(&what));
            }
            other => self.reply(&not_meant("cancel", typed, &other, &agents)),
        }
    }

    fn instruct(&mut self, agent: &KnownAgent, instruction: Instruction) {
        if self.pending_instructions.len() >= MAX_PENDING {
            return self.reply(telling::TOO_MUCH);
        }
        self.send_instruction(PendingInstruction {
            hub: agent.hub,
            label: agent.label.clone(),
            agent_id: agent.agent_id.clone(),
            instruction,
        });
    }

    fn send_instruction(&mut self, told: PendingInstruction) {
        let Some(voice) = self.hubs.voice(told.hub) else {
            return self.reply(telling::NO_LINE);
        };
        let (hub, instruction) = (told.hub, told.instruction.clone());
        self.pending_instructions.push_back(told);
        let updates = self.updates.0.clone();
        tokio::spawn(async move {
            if let Err(error) = voice.instruct(instruction).await {
                // If the listening has ended, this does not matter.
                let _ = updates.send(RoomUpdate::NotInstructed(hub, error)).await;
            }
        });
    }

    /// Handles an agent's acceptance of its last instruction.
    pub(super) fn instructed(&mut self, hub: HubNumber) {
        let Some(told) = take_first(&mut self.pending_instructions, hub) else { return };
        let what = match told.instruction {
            Instruction::Prompt { .. } => telling::told_to_begin(&told.label),
            Instruction::Steer { .. } => telling::told(&told.label),
            Instruction::Cancel { .. } => telling::told_to_stop(&told.label),
        };
        self.tell_all(&AnnouncerInput::Requested(&printable(&what)));
    }

    /// Handles an agent's refusal of its last instruction. If it cannot be steered, it is prompted instead.
    pub(super) fn not_accepted(&mut self, hub: HubNumber) -> bool {
        let Some(told) = take_first(&mut self.pending_instructions, hub) else { return false };
        if let Instruction::Steer { text, .. } = told.instruction {
            let agent_id = Some(told.agent_id.clone());
            let instruction = Instruction::Prompt { agent_id, text };
            self.send_instruction(PendingInstruction { instruction, ..told });
            return true;
        }
        let what = telling::not_taken(&told.label);
        self.tell_all(&AnnouncerInput::Requested(&printable(&what)));
        true
    }

    /// Handles an instruction that could not be sent.
    pub(super) fn not_instructed(&mut self, hub: HubNumber, error: &SayError) {
        if let Some(told) = take_first(&mut self.pending_instructions, hub) {
            let what = telling::not_told(&told.label, &error.to_string());
            self.tell_all(&AnnouncerInput::Requested(&printable(&what)));
        }
    }

    /// Forgets the pending instructions of a hub whose link broke: their results are unknown.
    pub(super) fn forget_instructions(&mut self, hub: HubNumber) {
        self.pending_instructions.retain(|it| it.hub != hub);
    }
}

fn take_first(
    pending_instructions: &mut VecDeque<PendingInstruction>,
    hub: HubNumber,
) -> Option<PendingInstruction> {
    let at = pending_instructions.iter().position(|it| it.hub == hub)?;
    pending_instructions.remove(at)
}

/// What to say when it is unclear which agent is meant.
fn not_meant(
    verb: &str,
    typed: &str,
    meant: &AddressedAgent<'_, '_>,
    agents: &[KnownAgent],
) -> String {
    let live = agents.iter().filter(|it| it.is_live).map(|it| it.label.as_str());
    let (what, names): (String, Vec<&str>) = match meant {
        AddressedAgent::Several(names) => (telling::SEVERAL_CALLED_SO.to_owned(), names.clone()),
        _ if typed.trim().is_empty() => (telling::name_an_agent(verb), live.collect()),
        _ => (telling::NONE_CALLED_SO.to_owned(), live.collect()),
    };
    let names: Vec<&str> = names.into_iter().take(MAX_NAMED).collect();
    printable(&telling::nobody_told(&what, &names)).into_owned()
}

#[cfg(test)]
mod tests {
    use aaep::SessionId;

    use super::*;

    fn agent(session: &str, name: &str, label: &str, is_live: bool) -> KnownAgent {
        KnownAgent {
            hub: 0,
            session_id: SessionId::parse(&format!("sess_{session}")).expect("an id"),
            agent_id: "claude-code".to_owned(),
            name: name.to_owned(),
            label: label.to_owned(),
            is_live,
        }
    }

    #[test]
    fn the_longest_name_that_stands_first_is_meant() {
        let agents = [
            agent("a", "Coder", "Coder", true),
            agent("b", "Coder", "Coder 2", true),
            agent("c", "Coder in work/shop", "Coder in work/shop", true),
        ];
        let found = |typed| match meant(&agents, typed) {
            AddressedAgent::One(agent, rest) => Some((agent.session_id.as_str(), rest.to_owned())),
            _ => None,
        };
        assert_eq!(found("coder 2 run the tests"), Some(("sess_b", "run the tests".to_owned())));
        assert_eq!(found("Coder in work/shop: Stop."), Some(("sess_c", "Stop.".to_owned())));
        assert_eq!(found(" Coder"), Some(("sess_a", String::new())));
        assert_eq!(found("coder run"), Some(("sess_a", "run".to_owned())));
        assert_eq!(
            meant(&agents, "claude-code run"),
            AddressedAgent::Several(vec!["Coder", "Coder 2", "Coder in work/shop"])
        );
        assert_eq!(meant(&agents, "Coders run"), AddressedAgent::Nobody);
        assert_eq!(meant(&agents, ""), AddressedAgent::Nobody);
    }

    #[test]
    fn of_several_sessions_the_one_that_goes_on_is_meant() {
        let agents = [agent("a", "Mail", "Mail", false), agent("b", "Mail", "Mail", true)];
        assert_eq!(meant(&agents, "mail sort"), AddressedAgent::One(&agents[1], "sort"));
        let over = [agent("b", "Mail", "Mail", false), agent("a", "Mail", "Mail", false)];
        assert_eq!(meant(&over, "mail sort"), AddressedAgent::One(&over[0], "sort"));
    }

    #[test]
    fn another_agent_of_the_same_name_does_not_get_what_is_meant_for_one_that_rests() {
        let rogue = KnownAgent { agent_id: "zz".to_owned(), ..agent("b", "Mail", "Mail 2", true) };
        let agents = [agent("a", "Mail", "Mail", false), rogue];
        assert_eq!(meant(&agents, "mail 1234"), AddressedAgent::Several(vec!["Mail 2", "Mail"]));
        assert_eq!(meant(&agents, "mail 2 1234"), AddressedAgent::One(&agents[1], "1234"));
    }

    #[test]
    fn whoever_is_not_clear_is_told_nothing() {
        let agents = [agent("a", "Coder", "Coder\u{1b}[2J", true)];
        for typed in ["", "Loom do it"] {
            let said = not_meant("cancel", typed, &AddressedAgent::Nobody, &agents);
            assert!(said.ends_with("Nobody was told anything."), "{said}");
            assert!(!said.contains('\u{1b}'), "{said}");
        }
    }
}
