//! Consent covers one action: nothing worse than what was presented, no other arguments, no other
//! agent, no other turn, not twice, and nothing grave by silence.

mod ledger;

use std::collections::BTreeMap;

use aaep::extension::{AskOutcome, Delivery, stated_digest};
use aaep::{Payload, ReplyToken, ToolName};
use aaep_engine::{Output, Record};
pub use ledger::PresentedRisk;
use ledger::{ConsentLedger, LedgerAgent, agent_of, ends_turn};

use super::asks::token_in;
use super::{Invariant, WorldMoment};
use crate::truth::WorldTruth;

/// The exact action that an ask names: a tool and the digest of its arguments.
type ToolDigest = (ToolName, [u8; 32]);

/// While consent to one exact action of a tool is unused, the tool runs irreversibly only with
/// these arguments, and only once.
#[derive(Default)]
pub struct ExactAction {
    asked: BTreeMap<ReplyToken, (LedgerAgent, ToolDigest)>,
    accepted: BTreeMap<LedgerAgent, Vec<ToolDigest>>,
}

impl Invariant for ExactAction {
    fn name(&self) -> &'static str {
        "only the accepted action"
    }

    fn meaning(&self) -> &'static str {
        "No irreversible tool runs with other arguments than those that were accepted for it."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        for output in step.outputs {
            match output {
                Output::Record(Record { event, .. }) => {
                    let agent = agent_of(event);
                    if ends_turn(event) {
                        self.accepted.remove(&agent);
                    }
                    if let Some(token) = token_in(&event.payload)
                        && let Some(said) = Delivery::of(event)
                        && let (Some(tool), Some(digest)) = (said.tool, said.action_digest)
                    {
                        let action = (tool, digest.bytes());
                        self.asked.insert(token.clone(), (agent.clone(), action));
                    }
                    let Payload::ToolInvoked(invoked) = &event.payload else { continue };
                    let accepted = self.accepted.entry(agent).or_default();
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
                Output::Settled { reply_token, outcome, .. } => {
                    let Some((agent, action)) = self.asked.remove(reply_token) else { continue };
                    if *outcome == AskOutcome::Accept {
                        self.accepted.entry(agent).or_default().push(action);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Silence is not consent to anything grave (ruling 35).
#[derive(Default)]
pub struct NoConsentBySilence {
    ledger: ConsentLedger,
    /// How many unused accepts from people each agent of a session has.
    replies: BTreeMap<LedgerAgent, u64>,
    /// How many unused accepts by default each agent of a session has.
    defaults: BTreeMap<LedgerAgent, u64>,
}

impl Invariant for NoConsentBySilence {
    fn name(&self) -> &'static str {
        "silence is not consent"
    }

    fn meaning(&self) -> &'static str {
        "What was accepted by default covers nothing that is irreversible or of more than low risk."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        for output in step.outputs {
            if let Some((agent, is_by_reply)) = self.ledger.follow(output) {
                let counts = if is_by_reply { &mut self.replies } else { &mut self.defaults };
                *counts.entry(agent).or_default() += 1;
            }
            let Output::Record(Record { event, .. }) = output else { continue };
            if !ledger::is_grave(event) {
                continue;
            }
            let agent = agent_of(event);
            let left = self.replies.entry(agent.clone()).or_default();
            match left.checked_sub(1) {
                Some(less) => *left = less,
                None if self.defaults.contains_key(&agent) => {
                    let id = &event.envelope.event_id;
                    return Err(format!("{id} runs a grave tool that silence accepted."));
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// An accept covers what was presented, for the agent that asked, in the turn of the ask, once.
#[derive(Default)]
pub struct CoveredByAccept {
    ledger: ConsentLedger,
}

impl Invariant for CoveredByAccept {
    fn name(&self) -> &'static str {
        "only what was presented"
    }

    fn meaning(&self) -> &'static str {
        "A tool that is irreversible or of high risk runs only on an unused accept, by a reply, of an \
         ask of the same agent, session and turn that presented at least that much."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
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
