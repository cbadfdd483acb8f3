//! No listener's stall is visible to another: told by a twin hub in which nobody ever stalls.

use std::collections::BTreeSet;

use aaep::extension::Delivery;
use aaep::{Message, Mode};
use aaep_engine::{Engine, Frame, Input, Output};

use super::{Invariant, Moment, Step};
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

    /// Who goes on with a subscription that stalled has stalled. Who was told that something is
    /// missing is not compared: how far back the log of an audience reaches depends on when it was
    /// made, and so on who else is there.
    fn follow(&mut self, truth: &Truth, step: &Step<'_>) {
        for (at, is_new) in step.accepted {
            let key = truth.subscriptions[*at].key;
            let had_key = |it: &&usize| truth.subscriptions[**it].key == key;
            if *is_new
                && truth.subscriptions[*at].took_over
                && self.stalled.iter().any(|it| had_key(&it))
            {
                self.stalled.insert(*at);
            }
        }
        self.stalled.extend(step.gaps());
    }
}

/// Whether an event says that something is missing.
fn has_gap(frame: &Frame) -> bool {
    if !frame.json.windows(6).any(|it| it == b"\"gap\":") {
        return false;
    }
    let Some(Message::Event(event)) = aaep::read(&frame.json, Mode::Tolerant).message else {
        return false;
    };
    Delivery::of(&event).is_some_and(|delivery| delivery.gap.is_some())
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
        self.follow(truth, step);
        let lost = twin.iter().filter_map(|output| match output {
            Output::Deliver { frame, to } if has_gap(frame) => Some(to),
            _ => None,
        });
        self.stalled.extend(lost.flatten().filter_map(|key| truth.of(*key)).map(|(at, _)| at));
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
