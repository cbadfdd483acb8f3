//! What subscribers are still to get: kept for each subscription until it arrives, goes on to another
//! one, or the subscriber is told that something is missing.

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep::Event;

use super::Step;
use crate::truth::{Presence, Truth};

/// The events that are owed to each subscription.
#[derive(Debug, Default)]
pub struct Owed(BTreeMap<usize, Vec<Arc<Event>>>);

impl Owed {
    /// New subscriptions are owed what those were that they go on with.
    pub fn hand_on(&mut self, truth: &Truth, step: &Step<'_>) {
        for (at, before) in step.newcomers(truth) {
            let owed = before.and_then(|it| self.0.get(&it)).cloned();
            self.0.insert(at, owed.unwrap_or_default());
        }
    }

    /// A subscription is to get an event.
    pub fn owe(&mut self, at: usize, event: &Arc<Event>) {
        self.0.entry(at).or_default().push(Arc::clone(event));
    }

    /// Whoever was told that something is missing is owed nothing any more, and nobody what was deleted.
    pub fn forgive(&mut self, step: &Step<'_>) {
        for at in step.gaps() {
            self.0.remove(&at);
        }
        if let Some(session_id) = step.deleted() {
            for owed in self.0.values_mut() {
                owed.retain(|event| event.envelope.session_id != *session_id);
            }
        }
    }

    /// A subscription is owed only those events that `is_owed` still finds to be.
    pub fn retain(&mut self, at: usize, mut is_owed: impl FnMut(&Event) -> bool) {
        if let Some(owed) = self.0.get_mut(&at) {
            owed.retain(|event| is_owed(event));
        }
    }

    /// In the end, nothing that `counts` is owed to anyone who is here.
    pub fn check(&self, truth: &Truth, counts: impl Fn(&Event) -> bool) -> Result<(), String> {
        for (at, owed) in &self.0 {
            let subscription = &truth.subscriptions[*at];
            if subscription.presence == Presence::Here
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
