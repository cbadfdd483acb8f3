//! Terms are never wider than requested, and there are never more subscribers than allowed.

use aaep::{Capabilities, CoreType, EventType};
use aaep_engine::{MAX_OPEN_ASKS, Output};

use super::{Invariant, WorldMoment};
use crate::hub::MAX_SUBSCRIPTIONS;
use crate::truth::{SubscriberPresence, UnderstoodTerms, WorldTruth};

/// Granted terms stay within the requested ones (§5.4.4).
pub struct WithinRequest;

impl Invariant for WithinRequest {
    fn name(&self) -> &'static str {
        "honored within requested"
    }

    fn meaning(&self) -> &'static str {
        "No honored term is wider than what the subscriber asked for."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        for output in step.outputs {
            let Output::Accepted { subscriber, message } = output else { continue };
            let Some((_, subscription)) = truth.of(*subscriber) else { continue };
            let honored = &message.honored_capabilities;
            if let Some(field) = wider(honored, &subscription.asked) {
                return Err(format!("{field} is wider than asked for, for {}.", subscription.id));
            }
        }
        Ok(())
    }
}

/// The first granted term that is wider than requested.
fn wider(honored: &Capabilities, asked: &Capabilities) -> Option<&'static str> {
    let (has, wants) = (UnderstoodTerms::of(honored), UnderstoodTerms::of(asked));
    if asked.max_events_per_second.is_some_and(|most| has.rate.is_none_or(|rate| rate > most)) {
        return Some("max_events_per_second");
    }
    if asked.pace_wpm.is_some_and(|most| has.pace.is_none_or(|pace| pace > most)) {
        return Some("pace_wpm");
    }
    let languages = asked.languages.as_deref().unwrap_or_default();
    let is_new = |tag| asked.languages.is_some() && !languages.contains(tag);
    if honored.languages.iter().flatten().any(is_new) {
        return Some("languages");
    }
    if has.boundaries.iter().any(|it| !wants.boundaries.contains(it)) {
        return Some("coalesce_boundaries");
    }
    let passes = |core: &CoreType| {
        let event_type = EventType::Core(*core);
        has.wants(&event_type) && !wants.wants(&event_type)
    };
    if CoreType::ALL.iter().any(passes) {
        return Some("event_filters");
    }
    if (has.confirms && !wants.confirms) || (has.clarifies && !wants.clarifies) {
        return Some("the ability to answer");
    }
    if (has.presented && !wants.presented) || (has.extends && !wants.extends) {
        return Some("agentvoice");
    }
    if has.extension && !wants.extension {
        return Some("supported_extensions");
    }
    None
}

/// Subscriptions, asks and everything else that is counted stay within their bounds.
pub struct WithinBounds;

impl Invariant for WithinBounds {
    fn name(&self) -> &'static str {
        "within bounds"
    }

    fn meaning(&self) -> &'static str {
        "No more subscriptions than places, no more open questions than allowed, and no step that \
         floods one subscriber."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        let served =
            truth.subscriptions.iter().filter(|it| it.presence != SubscriberPresence::Gone).count();
        if served > MAX_SUBSCRIPTIONS {
            return Err(format!("{served} subscriptions have {MAX_SUBSCRIPTIONS} places."));
        }
        let settled = step.outputs.iter().filter(|it| matches!(it, Output::Settled { .. })).count();
        if settled > MAX_OPEN_ASKS {
            return Err(format!("{settled} questions were settled at once."));
        }
        if step.outputs.len() > MAX_OUTPUTS {
            return Err(format!("One step did {} things.", step.outputs.len()));
        }
        Ok(())
    }
}

/// The most outputs that one input can lead to in worlds as small as these.
const MAX_OUTPUTS: usize = 2_000;
