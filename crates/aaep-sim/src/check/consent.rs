//! Consent to exactly one action: no tool with other arguments than those that were accepted.

use std::collections::BTreeMap;

use aaep::extension::{Delivery, stated_digest};
use aaep::{Payload, ReplyToken, SessionId, ToolName};
use aaep_engine::{Output, Resolution};

use super::asks::token_in;
use super::{Invariant, Moment};
use crate::truth::Truth;

/// What a question asked for exactly.
type Action = (ToolName, [u8; 32]);

/// While consent for exactly one action of a tool is unused, the tool runs irreversibly with these
/// arguments only, and once.
#[derive(Default)]
pub struct ExactAction {
    asked: BTreeMap<ReplyToken, (SessionId, Action)>,
    accepted: BTreeMap<SessionId, Vec<Action>>,
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
                Output::Record { event } => {
                    let session = &event.envelope.session_id;
                    if let Some(token) = token_in(&event.payload)
                        && let Some(said) = Delivery::of(event)
                        && let (Some(tool), Some(digest)) = (said.tool, said.action_digest)
                    {
                        let action = (tool, digest.bytes());
                        self.asked.insert(token.clone(), (session.clone(), action));
                    }
                    let Payload::ToolInvoked(invoked) = &event.payload else { continue };
                    let accepted = self.accepted.entry(session.clone()).or_default();
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
                    let Some((session, action)) = self.asked.remove(reply_token) else { continue };
                    if *resolution == Resolution::Accept {
                        self.accepted.entry(session).or_default().push(action);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
