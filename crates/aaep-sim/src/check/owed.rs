//! Events that subscribers have yet to receive. Each stays owed to a subscription until it arrives,
//! passes to a subscription that continues this one, or the subscriber is told of a gap.

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep::Event;

use super::HubStep;
use crate::truth::{SubscriberPresence, WorldTruth};

/// The events that are owed to each subscription.
#[derive(Debug, Default)]
pub struct OwedEvents(BTreeMap<usize, Vec<Arc<Event>>>);

impl OwedEvents {
    /// Passes the debt of a subscription to the one that continues it.
    pub fn hand_on(&mut self, truth: &WorldTruth, step: &HubStep<'_>) {
        for (at, before) in step.newcomers(truth) {
            let owed = before.and_then(|it| self.0.get(&it)).cloned();
            self.0.insert(at, owed.unwrap_or_default());
        }
    }

    /// Adds an event that a subscription must receive.
    pub fn owe(&mut self, at: usize, event: &Arc<Event>) {
        self.0.entry(at).or_default().push(Arc::clone(event));
    }

    /// Cancels the debt to subscriptions that were told of a gap, and that of deleted sessions.
    pub fn forgive(&mut self, step: &HubStep<'_>) {
        for at in step.gaps() {
            self.0.remove(&at);
        }
        if let Some(session_id) = step.deleted() {
            for owed in self.0.values_mut() {
                owed.retain(|event| event.envelope.session_id != *session_id);
            }
        }
    }

    /// Keeps only the events for which `is_owed` holds.
    pub fn retain(&mut self, at: usize, mut is_owed: impl FnMut(&Event) -> bool) {
        if let Some(owed) = self.0.get_mut(&at) {
            owed.retain(|event| is_owed(event));
        }
    }

    /// Checks at the end that no event for which `counts` holds is still owed to a subscription that is present.
    pub fn check(&self, truth: &WorldTruth, counts: impl Fn(&Event) -> bool) -> Result<(), String> {
        for (at, owed) in &self.0 {
            let subscription = &truth.subscriptions[*at];
            if subscription.presence == SubscriberPresence::Here
                && !subscription.is_excused
                && let Some(event) = owed.iter().find(|event| counts(event))
            {
                return Err(format!(
                    "{} of type {} never arrived at {}.",
                    event.envelope.event_id,
                    event.event_type().as_str(),
                    subscription.id
                ));
            }
        }
        Ok(())
    }
}
