//! The stall of one subscriber is not visible to others. This is checked against a twin hub in
//! which no subscriber ever stalls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep::extension::Delivery;
use aaep::{Message, Mode};
use aaep_engine::{Engine, EngineInput, Frame, Now, Output, SubscriberKey};

use super::{HubStep, Invariant, WorldMoment};
use crate::truth::{SubscriberPresence, WorldSubscription, WorldTruth};

/// Runs the twin next to the hub, and compares what all other subscribers receive, byte by byte.
pub struct InvisibleStall {
    twin: Engine,
    /// The subscriptions by the keys that the twin gave them.
    twins: BTreeMap<SubscriberKey, usize>,
    stalled: BTreeSet<usize>,
    /// Differences that are right if the subscription is told of a gap later, in one of the two hubs.
    doubts: BTreeMap<usize, String>,
    is_over: bool,
}

impl InvisibleStall {
    /// Creates the invariant with an engine that has not handled any input yet.
    pub fn new(twin: Engine) -> Self {
        InvisibleStall {
            twin,
            twins: BTreeMap::new(),
            stalled: BTreeSet::new(),
            doubts: BTreeMap::new(),
            is_over: false,
        }
    }

    /// The key that the twin gave a subscriber.
    fn twin_of(&self, subscriber: SubscriberKey, truth: &WorldTruth) -> SubscriberKey {
        let at = truth.of(subscriber).map(|(at, _)| at);
        let is_it = |it: &(&SubscriberKey, &usize)| Some(*it.1) == at;
        self.twins.iter().find(is_it).map_or(subscriber, |(key, _)| *key)
    }

    /// In the twin, the wires of stalled subscribers take everything at once.
    fn take_at_once(&mut self, now: Now, outputs: &[Output]) {
        let mut more: Vec<SubscriberKey> = outputs.iter().filter_map(more_for).collect();
        while let Some(subscriber) = more.pop() {
            let at = self.twins.get(&subscriber);
            if at.is_some_and(|at| self.stalled.contains(at)) {
                let outputs = self.twin.handle(now, EngineInput::Unblock { subscriber });
                more.extend(outputs.iter().filter_map(more_for));
            }
        }
    }

    /// A log that is too short for a subscriber is noticed before the gap can be told.
    fn finish(&self, truth: &WorldTruth) -> Result<(), String> {
        let is_there = |at: usize| truth.subscriptions[at].presence == SubscriberPresence::Here;
        let is_meant = |at: usize| is_there(at) && !self.stalled.contains(&at);
        let doubt = self.doubts.iter().find(|(at, _)| is_meant(**at));
        doubt.map_or(Ok(()), |(_, doubt)| Err(doubt.clone()))
    }

    fn has_stalled(&self, subscriber: SubscriberKey, truth: &WorldTruth) -> bool {
        truth.of(subscriber).is_none_or(|(at, _)| self.stalled.contains(&at))
    }

    /// Excludes subscriptions that continue a stalled one, and those that were told of a gap: how
    /// far back the log of an audience reaches depends on when the audience was made, and so on
    /// which other subscribers exist.
    fn follow(&mut self, truth: &WorldTruth, step: &HubStep<'_>) {
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

/// The subscriber with more pending events than one batch, if the output names one.
fn more_for(output: &Output) -> Option<SubscriberKey> {
    match output {
        Output::More { subscriber } => Some(*subscriber),
        _ => None,
    }
}

/// Whether an event tells of a gap.
fn has_gap(frame: &Frame) -> bool {
    if !frame.json.windows(6).any(|it| it == b"\"gap\":") {
        return false;
    }
    let Some(Message::Event(event)) = aaep::read(&frame.json, Mode::Tolerant).message else {
        return false;
    };
    Delivery::of(&event).is_some_and(|delivery| delivery.gap.is_some())
}

impl Invariant for InvisibleStall {
    fn name(&self) -> &'static str {
        "no stall is visible to others"
    }

    fn meaning(&self) -> &'static str {
        "Whoever never stalled gets the same, at the same moment, as if nobody ever had."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        // The twin was not killed, so after a restart there is nothing to compare.
        self.is_over |= matches!(moment, WorldMoment::Restarted { .. });
        if self.is_over {
            return Ok(());
        }
        let step = match moment {
            WorldMoment::Handled(step) => step,
            WorldMoment::Finished => return self.finish(truth),
            _ => return Ok(()),
        };
        let input = match step.input {
            EngineInput::Block { subscriber } => {
                self.stalled.extend(truth.of(*subscriber).map(|(at, _)| at));
                EngineInput::Tick
            }
            EngineInput::TakeBack { .. } => EngineInput::Tick,
            EngineInput::Unblock { subscriber } if self.has_stalled(*subscriber, truth) => {
                EngineInput::Tick
            }
            other => other.clone(),
        };
        let input = match input {
            // The twin knows a subscriber by its own key.
            EngineInput::Disconnect { subscriber } => {
                EngineInput::Disconnect { subscriber: self.twin_of(subscriber, truth) }
            }
            EngineInput::Unblock { subscriber } => {
                EngineInput::Unblock { subscriber: self.twin_of(subscriber, truth) }
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
        let is_over = matches!(step.input, EngineInput::Unblock { .. });
        let is_stalled = |it: &WorldSubscription| it.presence == SubscriberPresence::Blocked;
        if !is_over && !truth.subscriptions.iter().any(is_stalled) {
            return Ok(());
        }
        let is_other = |at: &usize| !self.stalled.contains(at);
        let expected = sent(&twin, |key| self.twins.get(&key).copied().filter(is_other));
        let found = sent(step.outputs, |key| truth.of(key).map(|(at, _)| at).filter(is_other));
        let all = found.iter().chain(&expected).map(|(at, _)| *at);
        for at in all.collect::<BTreeSet<usize>>() {
            let of = |list: &[(usize, &Arc<Frame>)]| -> Vec<Arc<Frame>> {
                list.iter().filter(|it| it.0 == at).map(|it| Arc::clone(it.1)).collect()
            };
            let (found, expected) = (of(&found), of(&expected));
            if found != expected {
                let doubt = difference(&found, &expected, truth.subscriptions[at].id.as_str());
                self.doubts.entry(at).or_insert(doubt);
            }
        }
        Ok(())
    }
}

/// The first difference between the frames that a subscription was sent and those without stalls.
fn difference(found: &[Arc<Frame>], expected: &[Arc<Frame>], id: &str) -> String {
    let place = found.iter().zip(expected).position(|(one, other)| one != other);
    let place = place.unwrap_or(found.len().min(expected.len()));
    let name = |list: &[Arc<Frame>]| {
        list.get(place).map_or("nothing".to_owned(), |frame| frame.event_id.to_string())
    };
    format!("The hub sent {} to {id}; without stalls it is {}.", name(found), name(expected))
}

/// The frames sent to each subscription, in order. The two hubs may give their subscribers
/// different keys, because one that resumes may replace another.
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
