//! Frames are well formed, and time never goes back.

use std::collections::BTreeMap;

use aaep::{Message, Payload, SessionId, Severity};
use aaep_engine::Output;

use super::{Invariant, WorldMoment};
use crate::known;
use crate::truth::WorldTruth;

/// Every frame is an event that a strict reader accepts.
pub struct ValidFrames;

impl Invariant for ValidFrames {
    fn name(&self) -> &'static str {
        "valid frames"
    }

    fn meaning(&self) -> &'static str {
        "Everything that is sent is an event or message that a strict reader takes."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        for sent in step.delivered {
            if let Some(fault) = &sent.fault {
                return Err(format!("{} is not valid: {fault}", sent.frame.event_id));
            }
            if sent.event.envelope.event_id != sent.frame.event_id {
                return Err(format!("The frame {} carries another id.", sent.frame.event_id));
            }
            if sent.event.is_critical() && !sent.frame.is_critical {
                return Err(format!(
                    "The frame {} hides that it is critical.",
                    sent.frame.event_id
                ));
            }
        }
        for output in step.outputs {
            let faults = match output {
                Output::Accepted { message, .. } => {
                    aaep::check(&Message::SubscriptionAccepted(message.clone()))
                }
                Output::Rejected { message, .. } => {
                    aaep::check(&Message::SubscriptionRejected(message.clone()))
                }
                _ => continue,
            };
            if let Some(fault) = faults.iter().find(|it| it.severity == Severity::Error) {
                return Err(format!("An answer to a subscriber is not valid: {fault}"));
            }
        }
        Ok(())
    }
}

/// Every event has the fields that the specification requires, and no subscription is granted a
/// level that it cannot keep.
pub struct WantedWords;

impl Invariant for WantedWords {
    fn name(&self) -> &'static str {
        "the words that are wanted"
    }

    fn meaning(&self) -> &'static str {
        "Every event says its version and its language, every ask has a summary, and levels that need replies are \
         granted only to those who can reply."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        for sent in step.delivered {
            let envelope = &sent.event.envelope;
            if envelope.aaep_version.is_none() {
                return Err(format!("{} does not say its version.", envelope.event_id));
            }
            let hints = envelope.localization_hints.as_ref();
            if hints.and_then(|hints| hints.primary_language.as_ref()).is_none() {
                return Err(format!("{} does not say its language.", envelope.event_id));
            }
            let summary = match &sent.event.payload {
                Payload::AwaitingConfirmation(it) => it.summary_normal.as_ref(),
                Payload::AwaitingClarification(it) => it.summary_normal.as_ref(),
                _ => continue,
            };
            if summary.is_none() {
                return Err(format!("The ask {} has no summary.", envelope.event_id));
            }
        }
        for output in step.outputs {
            let Output::Accepted { message, .. } = output else { continue };
            let honored = &message.honored_capabilities;
            let mut levels = honored.supported_conformance_levels.iter().flatten();
            if levels.any(|level| *level >= 2) && honored.supports_confirmation_reply != Some(true)
            {
                return Err(format!("{} has level 2 and cannot reply.", message.subscription_id));
            }
        }
        Ok(())
    }
}

/// Deadlines lie ahead, and within a session time moves forward, whatever the machine's clock does.
#[derive(Default)]
pub struct TimeGoesOn {
    last_us: BTreeMap<SessionId, i64>,
}

impl Invariant for TimeGoesOn {
    fn name(&self) -> &'static str {
        "time goes on"
    }

    fn meaning(&self) -> &'static str {
        "A deadline lies ahead, and the timestamps of a session never go back."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        if let Some(deadline) = step.deadline.filter(|at| *at <= step.now.monotonic_us) {
            return Err(format!("The deadline {deadline} is not later than now."));
        }
        for event in step.recorded() {
            let envelope = &event.envelope;
            let now_us = envelope.timestamp.unix_us();
            let last_us = self.last_us.entry(envelope.session_id.clone()).or_insert(now_us);
            if now_us < *last_us && !known::may_carry_earlier_time(event) {
                let back_us = *last_us - now_us;
                let kind = match &event.payload {
                    Payload::StateChanged(_) => "a change of state",
                    _ => "an event",
                };
                return Err(format!(
                    "{}, {kind}, is {back_us} µs older than what came before it in its session.",
                    envelope.event_id
                ));
            }
            *last_us = now_us.max(*last_us);
        }
        Ok(())
    }
}
