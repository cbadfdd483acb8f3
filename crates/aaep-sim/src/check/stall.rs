//! No listener's stall is visible to another: told by a twin hub in which nobody ever stalls.

use std::collections::BTreeSet;

use aaep_engine::{Engine, Input, Output};

use super::{Invariant, Moment};
use crate::truth::{Presence, Subscription, Truth};

/// Runs the twin beside the hub and compares what everyone else gets, byte by byte.
pub struct Stall {
    twin: Engine,
    stalled: BTreeSet<usize>,
}

impl Stall {
    /// With an engine that has seen nothing yet.
    pub fn new(twin: Engine) -> Self {
        Stall { twin, stalled: BTreeSet::new() }
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
        let twin = self.twin.handle(step.now, input);
        let is_over = matches!(step.input, Input::Unblock { .. });
        let is_stalled = |it: &Subscription| it.presence == Presence::Blocked;
        if !is_over && !truth.subscriptions.iter().any(is_stalled) {
            return Ok(());
        }
        let mut expected = Vec::new();
        for output in &twin {
            let Output::Deliver { frame, to } = output else { continue };
            expected.extend(to.iter().map(|key| (*key, frame)));
        }
        let is_other = |key: &u32| truth.of(*key).is_none_or(|(at, _)| !self.stalled.contains(&at));
        expected.retain(|(key, _)| is_other(key));
        let mut found = Vec::new();
        for output in step.outputs {
            let Output::Deliver { frame, to } = output else { continue };
            found.extend(to.iter().filter(|key| is_other(key)).map(|key| (*key, frame)));
        }
        if found == expected {
            return Ok(());
        }
        let place = found.iter().zip(&expected).position(|(one, other)| one != other);
        let place = place.unwrap_or(found.len().min(expected.len()));
        let name = |list: &[(u32, &std::sync::Arc<aaep_engine::Frame>)]| {
            list.get(place).map_or("nothing".to_owned(), |(key, frame)| {
                format!("{} to listener {key}", frame.event_id)
            })
        };
        Err(format!("The hub sent {}; without stalls it is {}.", name(&found), name(&expected)))
    }
}
