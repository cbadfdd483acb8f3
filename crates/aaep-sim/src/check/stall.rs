//! No listener's stall is visible to another: told by a twin hub in which nobody ever stalls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep_engine::{Engine, Frame, Input, ListenerKey, Output};

use super::{Invariant, Moment};
use crate::truth::{Presence, Subscription, Truth};

/// Runs the twin beside the hub and compares what everyone else gets, byte by byte.
pub struct Stall {
    twin: Engine,
    /// The subscriptions as the twin numbers them.
    twins: BTreeMap<ListenerKey, usize>,
    stalled: BTreeSet<usize>,
}

impl Stall {
    /// With an engine that has seen nothing yet.
    pub fn new(twin: Engine) -> Self {
        Stall { twin, twins: BTreeMap::new(), stalled: BTreeSet::new() }
    }
}

impl Invariant for Stall {
    fn name(&self) -> &'static str {
        "no stall is visible to others"
    }

    fn meaning(&self) -> &'static str {
        "Whoever never stalled gets the same, at the same moment, as if nobody ever had."
    }

    fn see(&mut self, truth: &Truth, moment: &Moment<'_>) -> Result<(), String> {
        let Moment::Handled(step) = moment else { return Ok(()) };
        let input = match step.input {
            Input::Block { listener } => {
                self.stalled.extend(truth.of(*listener).map(|(at, _)| at));
                Input::Tick
            }
            Input::Unblock { .. } => Input::Tick,
            other => other.clone(),
        };
        let input = match input {
            // A listener is known by the number that the twin gave it.
            Input::Disconnect { listener } => {
                let at = truth.of(listener).map(|(at, _)| at);
                let is_it = |it: &(&ListenerKey, &usize)| Some(*it.1) == at;
                let listener = self.twins.iter().find(is_it).map_or(listener, |(key, _)| *key);
                Input::Disconnect { listener }
            }
            other => other,
        };
        let twin = self.twin.handle(step.now, input);
        let granted = twin.iter().filter_map(|it| match it {
            Output::Accepted { listener, .. } => Some(*listener),
            _ => None,
        });
        for (key, (at, _)) in granted.zip(step.accepted) {
            self.twins.insert(key, *at);
        }
        let is_over = matches!(step.input, Input::Unblock { .. });
        let is_stalled = |it: &Subscription| it.presence == Presence::Blocked;
        if !is_over && !truth.subscriptions.iter().any(is_stalled) {
            return Ok(());
        }
        let is_other = |at: &usize| !self.stalled.contains(at);
        let expected = sent(&twin, |key| self.twins.get(&key).copied().filter(is_other));
        let found = sent(step.outputs, |key| truth.of(key).map(|(at, _)| at).filter(is_other));
        if found == expected {
            return Ok(());
        }
        let place = found.iter().zip(&expected).position(|(one, other)| one != other);
        let place = place.unwrap_or(found.len().min(expected.len()));
        let name = |list: &[(usize, &Arc<Frame>)]| {
            list.get(place).map_or("nothing".to_owned(), |(at, frame)| {
                format!("{} to {}", frame.event_id, truth.subscriptions[*at].id)
            })
        };
        Err(format!("The hub sent {}; without stalls it is {}.", name(&found), name(&expected)))
    }
}

/// What was sent to each subscription, in order. The two hubs may number their listeners differently,
/// because one that resumes may take the place of another.
fn sent(
    outputs: &[Output],
    subscription: impl Fn(ListenerKey) -> Option<usize>,
) -> Vec<(usize, &Arc<Frame>)> {
    let mut sent = Vec::new();
    for output in outputs {
        let Output::Deliver { frame, to } = output else { continue };
        sent.extend(to.iter().filter_map(|key| Some((subscription(*key)?, frame))));
    }
    sent.sort_by_key(|(at, _)| *at);
    sent
}
