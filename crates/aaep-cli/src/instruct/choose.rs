//! Decides which agent and session are meant, and whether the agent accepts the instruction. Pure.

use aaep::printable;
use aaep_announce::told_name;
use serde_json::{Value, json};

use crate::english::instructing;

#[derive(Debug)]
pub(crate) enum WantedInstruction<'a> {
    /// Tell the agent this, in its current session if there is one.
    Tell { text: String, session: Option<&'a str> },
    /// Begin something new.
    Begin { text: String },
    /// Stop.
    Cancel { session: Option<&'a str>, all: bool },
}

/// An agent that can be instructed.
#[derive(Debug, Clone, Default)]
pub(super) struct InstructableAgent {
    id: String,
    name: Option<String>,
    accepts: Vec<String>,
    sessions: Vec<String>,
}

/// A message to send to the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InstructionMessage {
    Prompt { agent_id: String, text: String },
    Steer { session: String, text: String },
    Cancel { session: String },
}

/// Why nothing is sent, and what could be typed instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnsentInstruction {
    pub(super) what: String,
    pub(super) choices: Vec<InstructionChoice>,
}

/// A command that could be typed instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InstructionChoice {
    /// The index of the agent.
    pub(super) agent: usize,
    pub(super) session: Option<String>,
    /// What that session is about.
    pub(super) about: Option<String>,
    typed: String,
}

impl InstructionChoice {
    pub(super) fn line(&self) -> String {
        instructing::choice(self.about.as_deref(), &printable(&self.typed))
    }
}

impl InstructableAgent {
    pub(super) fn read(row: &Value) -> Option<Self> {
        let texts = |name: &str| -> Vec<String> {
            let all = row[name].as_array().into_iter().flatten();
            all.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Some(InstructableAgent {
            id: row["agent_id"].as_str()?.to_owned(),
            name: row["agent_name"].as_str().map(str::to_owned),
            accepts: texts("accepts"),
            sessions: texts("sessions"),
        })
    }

    /// Its name as people hear it.
    fn spoken_name(&self) -> String {
        told_name(self.name.as_deref().unwrap_or(&self.id))
    }

    /// Whether its id or its name is this, in lower case.
    fn is_called(&self, wished: &str) -> bool {
        self.id.to_lowercase() == wished || self.spoken_name().to_lowercase() == wished
    }

    fn accepts(&self, what: &str) -> bool {
        self.accepts.iter().any(|it| it == what)
    }

    /// What it accepts, as a sentence.
    pub(super) fn sentence(&self) -> String {
        let ways = [
            ("prompt", instructing::TO_BEGIN),
            ("steer", instructing::TO_CHANGE),
            ("cancel", instructing::TO_STOP),
        ];
        let can: Vec<&str> =
            ways.iter().filter(|(word, _)| self.accepts(word)).map(|(_, what)| *what).collect();
        let (name, id) = (self.spoken_name(), printable(&self.id));
        let other_id = Some(&*id).filter(|id| **id != name);
        instructing::agent(&name, other_id, &can, self.sessions.len())
    }
}

/// Chooses the agent and the messages for it.
pub(super) fn choose(
    agents: &[&InstructableAgent],
    name: &str,
    wanted: &WantedInstruction<'_>,
) -> Result<(usize, Vec<InstructionMessage>), UnsentInstruction> {
    let at = find(agents, name, wanted)?;
    let agent = agents.get(at).ok_or_else(|| nobody(agents, name))?;
    let told = agent.spoken_name();
    let accepts = |what| agent.accepts(what);
    let prompt = |text: &str| InstructionMessage::Prompt {
        agent_id: agent.id.clone(),
        text: text.to_owned(),
    };
    let messages = match wanted {
        WantedInstruction::Begin { text } if accepts("prompt") => vec![prompt(text)],
        WantedInstruction::Begin { .. } => {
            return refuse(&instructing::begins_nothing(&told));
        }
        WantedInstruction::Tell { text, session } => {
            let is_working = session.is_some() || !agent.sessions.is_empty();
            match (is_working, accepts("steer"), accepts("prompt")) {
                (true, true, _) => {
                    let session = one_session((agent, at), *session, wanted)?;
                    vec![InstructionMessage::Steer { session, text: text.clone() }]
                }
                (_, _, true) if session.is_none() => vec![prompt(text)],
                (true, false, _) => return refuse(&instructing::not_while_working(&told)),
                _ => return refuse(&instructing::idle_and_begins_nothing(&told)),
            }
        }
        WantedInstruction::Cancel { .. } if !accepts("cancel") => {
            return refuse(&instructing::does_not_stop(&told));
        }
        WantedInstruction::Cancel { all: true, .. } if !agent.sessions.is_empty() => {
            let all = agent.sessions.iter();
            all.map(|session| InstructionMessage::Cancel { session: session.clone() }).collect()
        }
        WantedInstruction::Cancel { session, .. } => {
            if agent.sessions.is_empty() && session.is_none() {
                return refuse(&instructing::nothing_to_stop(&told));
            }
            vec![InstructionMessage::Cancel {
                session: one_session((agent, at), *session, wanted)?,
            }]
        }
    };
    Ok((at, messages))
}

fn refuse<T>(why: &str) -> Result<T, UnsentInstruction> {
    Err(UnsentInstruction { what: instructing::not_sent(why), choices: Vec::new() })
}

/// The index of the agent that is meant: by its id, by the name that people hear, or by a part of either that only
/// one agent has. An id identifies its agent only if no other agent is known to people by that name.
fn find(
    agents: &[&InstructableAgent],
    name: &str,
    wanted: &WantedInstruction<'_>,
) -> Result<usize, UnsentInstruction> {
    let wished = name.trim().to_lowercase();
    let matches = |fits: &dyn Fn(&InstructableAgent) -> bool| -> Vec<usize> {
        agents.iter().enumerate().filter(|(_, agent)| fits(agent)).map(|(at, _)| at).collect()
    };
    let told = matches(&|agent| agent.is_called(&wished));
    let part = matches(&|agent| {
        !wished.is_empty()
            && (agent.id.to_lowercase().contains(&wished)
                || agent.spoken_name().to_lowercase().contains(&wished))
    });
    let found = [told, part].into_iter().find(|it| !it.is_empty()).unwrap_or_default();
    match found.as_slice() {
        [] => Err(nobody(agents, name)),
        [one] => Ok(*one),
        several => {
            let choices = several.iter().filter_map(|at| {
                let agent = agents.get(*at)?;
                // By its id, unless people know another agent by that name.
                let is_meant = |it: &&&InstructableAgent| it.is_called(&agent.id.to_lowercase());
                let is_alone = agents.iter().filter(is_meant).count() == 1;
                let told = agent.spoken_name();
                let typed = wanted.typed(if is_alone { &agent.id } else { &told }, None);
                Some(InstructionChoice {
                    agent: *at,
                    session: agent.sessions.first().cloned(),
                    about: None,
                    typed,
                })
            });
            let what = instructing::several_agents(name);
            Err(UnsentInstruction { what, choices: choices.collect() })
        }
    }
}

fn nobody(agents: &[&InstructableAgent], name: &str) -> UnsentInstruction {
    let names: Vec<String> = agents.iter().map(|agent| agent.spoken_name()).collect();
    UnsentInstruction { what: instructing::no_such_agent(name, &names), choices: Vec::new() }
}

/// The only session that can be meant.
fn one_session(
    (agent, at): (&InstructableAgent, usize),
    session: Option<&str>,
    wanted: &WantedInstruction<'_>,
) -> Result<String, UnsentInstruction> {
    match (session, agent.sessions.as_slice()) {
        (Some(named), all) if all.iter().any(|it| it == named) => Ok(named.to_owned()),
        (None, [one]) => Ok(one.clone()),
        (named, all) => {
            let told = agent.spoken_name();
            let what = match named {
                Some(named) => instructing::no_such_session(&told, named),
                None => instructing::several_sessions(&told, all.len()),
            };
            let choices = all.iter().map(|it| InstructionChoice {
                agent: at,
                session: Some(it.clone()),
                about: None,
                typed: wanted.typed(&agent.id, Some(it)),
            });
            Err(UnsentInstruction { what, choices: choices.collect() })
        }
    }
}

impl WantedInstruction<'_> {
    /// The command that names exactly this agent and session.
    fn typed(&self, agent_id: &str, session: Option<&str>) -> String {
        let quoted = |text: &str| {
            let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
            if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
        };
        let session = session.map(|it| format!(" --session {it}")).unwrap_or_default();
        let agent = quoted(agent_id);
        match self {
            WantedInstruction::Tell { text, .. } => {
                format!("aaep tell{session} {agent} {}", quoted(text))
            }
            WantedInstruction::Begin { text } => {
                format!("aaep tell --new {agent} {}", quoted(text))
            }
            WantedInstruction::Cancel { .. } => format!("aaep cancel{session} {agent}"),
        }
    }
}

impl InstructionMessage {
    pub(super) fn json(&self, subscription_id: &str) -> Value {
        match self {
            InstructionMessage::Prompt { agent_id, text } => json!({
                "type": "agentvoice:agent.prompt", "subscription_id": subscription_id,
                "agent_id": agent_id, "text": text,
            }),
            InstructionMessage::Steer { session, text } => json!({
                "type": "agentvoice:session.steer", "subscription_id": subscription_id,
                "session_id": session, "text": text,
            }),
            InstructionMessage::Cancel { session } => json!({
                "type": "agentvoice:session.cancel", "subscription_id": subscription_id,
                "session_id": session, "reason": "user_request",
            }),
        }
    }
}

/// The confirmation after sending.
pub(super) fn done(agent: &InstructableAgent, messages: &[InstructionMessage]) -> String {
    let told = agent.spoken_name();
    match messages {
        [InstructionMessage::Prompt { .. }, ..] => instructing::begun(&told),
        [InstructionMessage::Steer { .. }, ..] => instructing::told(&told),
        cancelled => instructing::asked_to_stop(&told, cancelled.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(
        id: &str,
        name: Option<&str>,
        accepts: &[&str],
        sessions: &[&str],
    ) -> InstructableAgent {
        let owned = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect();
        InstructableAgent {
            id: id.to_owned(),
            name: name.map(str::to_owned),
            accepts: owned(accepts),
            sessions: owned(sessions),
        }
    }

    fn tell(session: Option<&str>) -> WantedInstruction<'_> {
        WantedInstruction::Tell { text: "go on".to_owned(), session }
    }

    fn chosen(
        agents: &[InstructableAgent],
        name: &str,
        wanted: &WantedInstruction<'_>,
    ) -> Result<Vec<InstructionMessage>, UnsentInstruction> {
        let agents: Vec<&InstructableAgent> = agents.iter().collect();
        choose(&agents, name, wanted).map(|(_, messages)| messages)
    }

    const ALL: &[&str] = &["prompt", "steer", "cancel"];

    #[test]
    fn an_agent_that_works_is_steered_and_another_begins() {
        let works = [agent("photos", None, ALL, &["sess_1"])];
        let steer = InstructionMessage::Steer { session: "sess_1".into(), text: "go on".into() };
        assert_eq!(chosen(&works, "photos", &tell(None)), Ok(vec![steer]));
        let rests = [agent("photos", None, ALL, &[])];
        let prompt = InstructionMessage::Prompt { agent_id: "photos".into(), text: "go on".into() };
        assert_eq!(chosen(&rests, "photos", &tell(None)), Ok(vec![prompt.clone()]));
        let no_steering = [agent("photos", None, &["prompt"], &["sess_1"])];
        assert_eq!(chosen(&no_steering, "photos", &tell(None)), Ok(vec![prompt.clone()]));
        let begin = WantedInstruction::Begin { text: "go on".into() };
        assert_eq!(chosen(&works, "photos", &begin), Ok(vec![prompt]));
    }

    #[test]
    fn what_an_agent_does_not_accept_is_not_sent() {
        let deaf = [agent("photos", None, &["prompt"], &["sess_1"])];
        let cancel = WantedInstruction::Cancel { session: None, all: false };
        let refused = chosen(&deaf, "photos", &cancel).expect_err("not accepted");
        assert!(refused.what.contains("Nothing was sent."), "{}", refused.what);
        assert!(refused.what.contains("aaep sessions end"), "{}", refused.what);
        let idle = [agent("photos", None, ALL, &[])];
        assert!(
            chosen(&idle, "photos", &cancel).expect_err("idle").what.contains("nothing to stop")
        );
        let steered = [agent("photos", None, &["steer"], &[])];
        assert!(chosen(&steered, "photos", &tell(None)).is_err());
        let nobody = chosen(&[], "photos", &tell(None)).expect_err("nobody");
        assert_eq!(nobody.what, "No agent takes instructions at the moment. Nothing was sent.");
    }

    #[test]
    fn agents_are_found_by_the_name_that_people_hear() {
        let both = [
            agent("claude-code-1", Some("Claude Code in work/shop"), ALL, &["sess_1"]),
            agent("claude-code-2", Some("Claude Code in work/site"), ALL, &["sess_2"]),
        ];
        for name in
            ["claude-code-2", "Claude Code in work/site", "claude code in WORK/SITE", "site"]
        {
            let sent = chosen(&both, name, &tell(None)).unwrap_or_else(|it| panic!("{}", it.what));
            assert!(
                matches!(&sent[0], InstructionMessage::Steer { session, .. } if session == "sess_2"),
                "{name}"
            );
        }
        let several = chosen(&both, "claude", &tell(None)).expect_err("two");
        assert_eq!(several.choices.len(), 2);
        assert_eq!(several.choices[0].line(), "Type: aaep tell claude-code-1 'go on'");
        let unknown = chosen(&both, "mail", &tell(None)).expect_err("nobody");
        assert!(unknown.what.contains("Claude Code in work/shop"), "{}", unknown.what);
    }

    #[test]
    fn an_id_that_is_the_name_of_another_agent_gets_nothing() {
        let both = [
            agent("ph-1", Some("Fotos"), ALL, &["sess_1"]),
            agent("Fotos", Some("Helper9"), ALL, &["sess_2"]),
        ];
        let several = chosen(&both, "Fotos", &tell(None)).expect_err("two");
        let lines: Vec<String> = several.choices.iter().map(InstructionChoice::line).collect();
        assert_eq!(lines, ["Type: aaep tell ph-1 'go on'", "Type: aaep tell Helper9 'go on'"]);
    }

    #[test]
    fn of_several_sessions_the_person_says_which() {
        let two = [agent("photos", None, ALL, &["sess_1", "sess_2"])];
        let several = chosen(&two, "photos", &tell(None)).expect_err("two");
        assert_eq!(several.choices[1].line(), "Type: aaep tell --session sess_2 photos 'go on'");
        let one = WantedInstruction::Cancel { session: Some("sess_2"), all: false };
        assert_eq!(
            chosen(&two, "photos", &one),
            Ok(vec![InstructionMessage::Cancel { session: "sess_2".into() }])
        );
        let all = WantedInstruction::Cancel { session: None, all: true };
        assert_eq!(chosen(&two, "photos", &all).map(|it| it.len()), Ok(2));
        let wrong = WantedInstruction::Cancel { session: Some("sess_9"), all: false };
        assert!(chosen(&two, "photos", &wrong).is_err());
    }
}
