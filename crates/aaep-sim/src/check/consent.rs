//! Consent to one action: nothing worse than what was presented, no other arguments, no other agent, no
//! other turn, not twice, and nothing grave by silence.

mod ledger;

use std::collections::BTreeMap;

use aaep::extension::{Delivery, stated_digest};
use aaep::{Payload, ReplyToken, ToolName};
use aaep_engine::{Output, Record, Resolution};
pub use ledger::Presented;
use ledger::{Ledger, Who, ends_turn, who};

use super::asks::token_in;
use super::{Invariant, Moment};
use crate::truth::Truth;

/// What a question asked for exactly.
type Action = (ToolName, [u8; 32]);

/// While consent for exactly one action of a tool is unused, the tool runs irreversibly with these
/// arguments only, and once.
#[derive(Default)]
pub struct ExactAction {
    asked: BTreeMap<ReplyToken, (Who, Action)>,
    accepted: BTreeMap<Who, Vec<Action>>,
}

impl Invariant for ExactAction {
    fn name(&self) -> &'static str {
        "only the accepted action"
    }

    fn meaning(&self) -> &'static str {
        "No irreversible tool runs with other arguments than those that were accepted for it."
    }

    fn see(&mut self, _: &Truth, moment: &Moment<'_>) -> Result<(), String> {
        let Moment::Handled(step) = moment else { return Ok(()) };
        for output in step.outputs {
            match output {
                Output::Record(Record { event, .. }) => {
                    let who = who(event);
                    if ends_turn(event) {
                        self.accepted.remove(&who);
                    }
                    if let Some(token) = token_in(&event.payload)
                        && let Some(said) = Delivery::of(event)
                        && let (Some(tool), Some(digest)) = (said.tool, said.action_digest)
                    {
                        let action = (tool, digest.bytes());
                        self.asked.insert(token.clone(), (who.clone(), action));
                    }
                    let Payload::ToolInvoked(invoked) = &event.payload else { continue };
                    let accepted = self.accepted.entry(who).or_default();
                    let is_bound = accepted.iter().any(|(tool, _)| *tool == invoked.tool);
                    let stated = stated_digest(event).map(|it| (invoked.tool.clone(), it.bytes()));
                    let exact = accepted.iter().position(|it| stated.as_ref() == Some(it));
                    match exact {
                        Some(at) => drop(accepted.remove(at)),
                        None if is_bound && invoked.irreversible == Some(true) => {
                            let id = &event.envelope.event_id;
                            return Err(format!(
                                "{id} runs with other arguments than were accepted."
                            ));
                        }
                        None => {}
                    }
                }
                Output::Resolved { reply_token, resolution, .. } => {
                    let Some((who, action)) = self.asked.remove(reply_token) else { continue };
                    if *resolution == Resolution::Accept {
                        self.accepted.entry(who).or_default().push(action);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What nobody answered is no consent to anything grave (ruling 35).
#[derive(Default)]
pub struct Silence {
    ledger: Ledger,
    /// How many accepts each agent of a session has of people that it has not used.
    replies: BTreeMap<Who, u64>,
    /// The same of silence.
    defaults: BTreeMap<Who, u64>,
}

impl Invariant for Silence {
    fn name(&self) -> &'static str {
        "silence is no consent"
    }

    fn meaning(&self) -> &'static str {
        "What was accepted by default covers nothing that is irreversible or of more than low risk."
    }

    fn see(&mut self, _: &Truth, moment: &Moment<'_>) -> Result<(), String> {
        let Moment::Handled(step) = moment else { return Ok(()) };
        for output in step.outputs {
            if let Some((who, is_by_reply)) = self.ledger.follow(output) {
                let counts = if is_by_reply { &mut self.replies } else { &mut self.defaults };
                *counts.entry(who).or_default() += 1;
            }
            let Output::Record(Record { event, .. }) = output else { continue };
            if !ledger::is_grave(event) {
                continue;
            }
            let who = who(event);
            let left = self.replies.entry(who.clone()).or_default();
            match left.checked_sub(1) {
                Some(less) => *left = less,
                None if self.defaults.contains_key(&who) => {
                    let id = &event.envelope.event_id;
                    return Err(format!("{id} runs a grave tool that silence accepted."));
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// An accept covers what was presented, for who asked, in the turn in which it was asked, once.
#[derive(Default)]
pub struct Covered {
    ledger: Ledger,
}

impl Invariant for Covered {
    fn name(&self) -> &'static str {
        "only what was presented"
    }

    fn meaning(&self) -> &'static str {
        "A tool that is irreversible or of high risk runs only on an unused accept, by a reply, of an \
         ask of the same agent, session and turn that presented at least that much."
    }

    fn see(&mut self, _: &Truth, moment: &Moment<'_>) -> Result<(), String> {
        let Moment::Handled(step) = moment else { return Ok(()) };
        for output in step.outputs {
            self.ledger.follow(output);
            let Output::Record(Record { event, .. }) = output else { continue };
            let is_covered = self.ledger.spend(event);
            if ledger::is_grave(event) && !is_covered {
                let id = &event.envelope.event_id;
                return Err(format!("{id} runs a tool that is worse than what was accepted."));
            }
        }
        Ok(())
    }
}
