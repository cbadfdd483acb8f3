//! What the person tells agents while listening: to go on in another way, to begin something, or to stop.
//!
//! No agent is forced: it answers with events. Nothing of this answers a question.

use std::collections::VecDeque;

use aaep::printable;
use aaep_announce::{HubNumber, Input, KnownAgent};
use aaep_subscriber::{Instruction, SayError};

use super::room::{Came, Room};
use crate::english::telling;

/// How many things may be on their way to agents at once.
const MAX_ON_THEIR_WAY: usize = 16;

/// How much can be told an agent at once, in bytes.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// How many agents are named where it is not clear which one is meant.
const MAX_NAMED: usize = 8;

/// Something that an agent is told, until it is known whether it takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OnItsWay {
    hub: HubNumber,
    label: String,
    agent_id: String,
    instruction: Instruction,
}

/// Which agent is meant.
#[derive(Debug, PartialEq, Eq)]
enum Meant<'a, 't> {
    /// This one, and what follows its name.
    One(&'a KnownAgent, &'t str),
    /// One of these.
    Several(Vec<&'a str>),
    Nobody,
}

/// The agent whose name stands first. The longest name counts, and of several sessions the one that goes on.
fn meant<'a, 't>(agents: &'a [KnownAgent], typed: &'t str) -> Meant<'a, 't> {
    let typed = typed.trim();
    let named = |agent: &'a KnownAgent| {
        let names = [&agent.label, &agent.name, &agent.agent_id];
        let length = names.into_iter().filter_map(|name| named_first(typed, name)).max()?;
        Some((length, agent))
    };
    let found: Vec<(usize, &KnownAgent)> = agents.iter().filter_map(named).collect();
    let Some(longest) = found.iter().map(|(length, _)| *length).max() else {
        return Meant::Nobody;
    };
    let of_it = found.into_iter().filter(|(length, _)| *length == longest).map(|(_, it)| it);
    let (live, over): (Vec<_>, Vec<_>) = of_it.partition(|it| it.is_live);
    let rest = typed.get(longest..).unwrap_or_default();
    let rest = rest.trim_start_matches([':', ',']).trim();
    let Some(first) = live.first().or(over.first()) else { return Meant::Nobody };
    let is_same = |it: &&KnownAgent| (it.hub, &it.agent_id) == (first.hub, &first.agent_id);
    // Another agent of the same name must not get what is meant for one that rests.
    if live.len() < 2 && live.iter().chain(&over).all(is_same) {
        return Meant::One(first, rest);
    }
    let several = if live.len() < 2 { live.iter().chain(&over) } else { live.iter().chain(&[]) };
    Meant::Several(several.map(|it| it.label.as_str()).collect())
}

/// How many bytes of the words are this name, if they begin with it as a word.
fn named_first(typed: &str, name: &str) -> Option<usize> {
    let name = name.trim();
    let head = typed.get(..name.len()).filter(|_| !name.is_empty())?;
    let rest = typed.get(name.len()..)?;
    let is_whole = rest.chars().next().is_none_or(|c| c.is_whitespace() || matches!(c, ':' | ','));
    (is_whole && head.to_lowercase() == name.to_lowercase()).then_some(name.len())
}

impl Room {
    /// The person tells an agent something: in its session if one goes on, or else to begin something.
    pub(super) fn tell_agent(&mut self, typed: &str) {
        let agents = self.agents();
        let (agent, words) = match meant(&agents, typed) {
            Meant::One(agent, words) => (agent, words),
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

    /// The person wants an agent to stop what it does.
    pub(super) fn cancel_agent(&mut self, typed: &str) {
        let agents = self.agents();
        match meant(&agents, typed) {
            Meant::One(agent, "") if agent.is_live => {
                let session_id = agent.session_id.clone();
                self.instruct(agent, Instruction::Cancel { session_id });
            }
            Meant::One(agent, "") => {
                let what = telling::nothing_to_cancel(&agent.label);
                self.reply(&printable(&what));
            }
            Meant::One(agent, _) => {
                let what = telling::not_cancelled(&agent.label);
                self.reply(&printable(&what));
            }
            other => self.reply(&not_meant("cancel", typed, &other, &agents)),
        }
    }

    fn instruct(&mut self, agent: &KnownAgent, instruction: Instruction) {
        if self.on_their_way.len() >= MAX_ON_THEIR_WAY {
            return self.reply(telling::TOO_MUCH);
        }
        self.send_instruction(OnItsWay {
            hub: agent.hub,
            label: agent.label.clone(),
            agent_id: agent.agent_id.clone(),
            instruction,
        });
    }

    fn send_instruction(&mut self, told: OnItsWay) {
        let Some(voice) = self.hubs.voice(told.hub) else {
            return self.reply(telling::NO_LINE);
        };
        let (hub, instruction) = (told.hub, told.instruction.clone());
        self.on_their_way.push_back(told);
        let came = self.came.0.clone();
        tokio::spawn(async move {
            if let Err(error) = voice.instruct(instruction).await {
                // If nobody listens any more, nobody needs to know.
                let _ = came.send(Came::NotInstructed(hub, error)).await;
            }
        });
    }

    /// An agent has got what it was told last.
    pub(super) fn instructed(&mut self, hub: HubNumber) {
        let Some(told) = take_first(&mut self.on_their_way, hub) else { return };
        let what = match told.instruction {
            Instruction::Prompt { .. } => telling::told_to_begin(&told.label),
            Instruction::Steer { .. } => telling::told(&told.label),
            Instruction::Cancel { .. } => telling::told_to_stop(&told.label),
        };
        self.tell_all(&Input::Requested(&printable(&what)));
    }

    /// An agent does not take what it was told last. What it cannot be told in its session, it is told as something new.
    pub(super) fn not_accepted(&mut self, hub: HubNumber) -> bool {
        let Some(told) = take_first(&mut self.on_their_way, hub) else { return false };
        if let Instruction::Steer { text, .. } = told.instruction {
            let agent_id = Some(told.agent_id.clone());
            let instruction = Instruction::Prompt { agent_id, text };
            self.send_instruction(OnItsWay { instruction, ..told });
            return true;
        }
        let what = telling::not_taken(&told.label);
        self.tell_all(&Input::Requested(&printable(&what)));
        true
    }

    /// Something did not go out to an agent.
    pub(super) fn not_instructed(&mut self, hub: HubNumber, error: &SayError) {
        if let Some(told) = take_first(&mut self.on_their_way, hub) {
            let what = telling::not_told(&told.label, &error.to_string());
            self.tell_all(&Input::Requested(&printable(&what)));
        }
    }

    /// The line to a hub broke: nobody knows what became of what was on its way.
    pub(super) fn forget_instructions(&mut self, hub: HubNumber) {
        self.on_their_way.retain(|it| it.hub != hub);
    }
}

fn take_first(on_their_way: &mut VecDeque<OnItsWay>, hub: HubNumber) -> Option<OnItsWay> {
    let at = on_their_way.iter().position(|it| it.hub == hub)?;
    on_their_way.remove(at)
}

/// What is said where it is not clear which agent is meant.
fn not_meant(verb: &str, typed: &str, meant: &Meant<'_, '_>, agents: &[KnownAgent]) -> String {
    let live = agents.iter().filter(|it| it.is_live).map(|it| it.label.as_str());
    let (what, names): (String, Vec<&str>) = match meant {
        Meant::Several(names) => (telling::SEVERAL_CALLED_SO.to_owned(), names.clone()),
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
            agent("a", "Coder", "Coder 1", true),
            agent("b", "Coder", "Coder 2", true),
            agent("c", "Coder in work/shop", "Coder in work/shop", true),
        ];
        let found = |typed| match meant(&agents, typed) {
            Meant::One(agent, rest) => Some((agent.session_id.as_str(), rest.to_owned())),
            _ => None,
        };
        assert_eq!(found("coder 2 run the tests"), Some(("sess_b", "run the tests".to_owned())));
        assert_eq!(found("Coder in work/shop: Stop."), Some(("sess_c", "Stop.".to_owned())));
        assert_eq!(found(" Coder 1"), Some(("sess_a", String::new())));
        assert_eq!(meant(&agents, "coder run"), Meant::Several(vec!["Coder 1", "Coder 2"]));
        assert_eq!(meant(&agents, "Coders run"), Meant::Nobody);
        assert_eq!(meant(&agents, ""), Meant::Nobody);
    }

    #[test]
    fn of_several_sessions_the_one_that_goes_on_is_meant() {
        let agents = [agent("a", "Mail", "Mail", false), agent("b", "Mail", "Mail", true)];
        assert_eq!(meant(&agents, "mail sort"), Meant::One(&agents[1], "sort"));
        let over = [agent("b", "Mail", "Mail", false), agent("a", "Mail", "Mail", false)];
        assert_eq!(meant(&over, "mail sort"), Meant::One(&over[0], "sort"));
    }

    #[test]
    fn another_agent_of_the_same_name_does_not_get_what_is_meant_for_one_that_rests() {
        let rogue = KnownAgent { agent_id: "zz".to_owned(), ..agent("b", "Mail", "Mail 2", true) };
        let agents = [agent("a", "Mail", "Mail", false), rogue];
        assert_eq!(meant(&agents, "mail 1234"), Meant::Several(vec!["Mail 2", "Mail"]));
        assert_eq!(meant(&agents, "mail 2 1234"), Meant::One(&agents[1], "1234"));
    }

    #[test]
    fn whoever_is_not_clear_is_told_nothing() {
        let agents = [agent("a", "Coder", "Coder\u{1b}[2J", true)];
        for typed in ["", "Loom do it"] {
            let said = not_meant("cancel", typed, &Meant::Nobody, &agents);
            assert!(said.ends_with("Nobody was told anything."), "{said}");
            assert!(!said.contains('\u{1b}'), "{said}");
        }
    }
}
