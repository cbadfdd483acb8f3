//! No subscriber's stall is visible to another: told by a twin hub in which nobody ever stalls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep::extension::Delivery;
use aaep::{Message, Mode};
use aaep_engine::{Engine, Frame, Input, Now, Output, SubscriberKey};

use super::{Invariant, Moment, Step};
use crate::truth::{Presence, Subscription, Truth};

/// Runs the twin beside the hub and compares what everyone else gets, byte by byte.
pub struct Stall {
    twin: Engine,
    /// The subscriptions as the twin numbers them.
    twins: BTreeMap<SubscriberKey, usize>,
    stalled: BTreeSet<usize>,
    is_over: bool,
}

impl Stall {
    /// With an engine that has seen nothing yet.
    pub fn new(twin: Engine) -> Self {
        Stall { twin, twins: BTreeMap::new(), stalled: BTreeSet::new(), is_over: false }
    }

    /// The number that the twin gave a subscriber.
    fn twin_of(&self, subscriber: SubscriberKey, truth: &Truth) -> SubscriberKey {
        let at = truth.of(subscriber).map(|(at, _)| at);
        let is_it = |it: &(&SubscriberKey, &usize)| Some(*it.1) == at;
        self.twins.iter().find(is_it).map_or(subscriber, |(key, _)| *key)
    }

    /// In the twin, the wires of those who stalled take everything at once.
    fn take_at_once(&mut self, now: Now, outputs: &[Output]) {
        let mut more: Vec<SubscriberKey> = outputs.iter().filter_map(more_for).collect();
        while let Some(subscriber) = more.pop() {
            let at = self.twins.get(&subscriber);
            if at.is_some_and(|at| self.stalled.contains(at)) {
                let outputs = self.twin.handle(now, Input::Unblock { subscriber });
                more.extend(outputs.iter().filter_map(more_for));
            }
        }
    }

    fn has_stalled(&self, subscriber: SubscriberKey, truth: &Truth) -> bool {
        truth.of(subscriber).is_none_or(|(at, _)| self.stalled.contains(&at))
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

/// The subscriber for whom there is more.
fn more_for(output: &Output) -> Option<SubscriberKey> {
    match output {
        Output::More { subscriber } => Some(*subscriber),
        _ => None,
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
        // The twin was not killed: from then on there is nothing to compare.
        self.is_over |= matches!(moment, Moment::Restarted { .. });
        let Moment::Handled(step) = moment else { return Ok(()) };
        if self.is_over {
            return Ok(());
        }
        let input = match step.input {
            Input::Block { subscriber } => {
                self.stalled.extend(truth.of(*subscriber).map(|(at, _)| at));
                Input::Tick
            }
            Input::TakeBack { .. } => Input::Tick,
            Input::Unblock { subscriber } if self.has_stalled(*subscriber, truth) => Input::Tick,
            other => other.clone(),
        };
        let input = match input {
            // A subscriber is known by the number that the twin gave it.
            Input::Disconnect { subscriber } => {
                Input::Disconnect { subscriber: self.twin_of(subscriber, truth) }
            }
            Input::Unblock { subscriber } => {
                Input::Unblock { subscriber: self.twin_of(subscriber, truth) }
            }
            other => other,
        };
        let twin = self.twin.handle(step.now, input);
        let granted = twin.iter().filter_map(|it| match it {
            Output::Accepted { subscriber, .. } => Some(*subscriber),
            _ => None,
        });
        for (key, (at, _)) in granted.zip(step.accepted) {
            self.twins.insert(key, *at);
        }
        self.follow(truth, step);
        self.take_at_once(step.now, &twin);
        let lost = twin.iter().filter_map(|output| match output {
            Output::Deliver { frame, to } if has_gap(frame) => Some(to),
            _ => None,
        });
        let lost: Vec<usize> =
            lost.flatten().filter_map(|key| self.twins.get(key)).copied().collect();
        self.stalled.extend(lost);
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

/// What was sent to each subscription, in order. The two hubs may number their subscribers differently,
/// because one that resumes may take the place of another.
fn sent(
    outputs: &[Output],
    subscription: impl Fn(SubscriberKey) -> Option<usize>,
) -> Vec<(usize, &Arc<Frame>)> {
    let mut sent = Vec::new();
    for output in outputs {
        let Output::Deliver { frame, to } = output else { continue };
        sent.extend(to.iter().filter_map(|key| Some((subscription(*key)?, frame))));
    }
    sent.sort_by_key(|(at, _)| *at);
    sent
}
