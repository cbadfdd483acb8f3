//! How much a subscriber receives: within its rate, through its filter, and nothing while events cannot reach it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aaep::extension::Delivery;
use aaep::{Event, EventId, Payload};
use aaep_engine::Output;

use super::{Invariant, WorldMoment};
use crate::known;
use crate::truth::{SubscriberPresence, WorldTruth};

const SECOND_US: u64 = 1_000_000;

/// Whether an event announces the outcome of an ask.
pub fn is_notice(event: &Event) -> bool {
    Delivery::of(event).is_some_and(|delivery| delivery.resolution.is_some())
}

/// Whether an event is the summary of a session for a late subscriber (ruling 19).
pub fn is_summary(event: &Event) -> bool {
    match &event.payload {
        aaep::Payload::StateChanged(it) => {
            let sums_up = |words: &String| {
                words.contains(" is at work: ") || words.contains(" has a session open.")
            };
            it.from_state == it.to_state && it.summary_normal.as_ref().is_some_and(sums_up)
        }
        _ => false,
    }
}

/// No second has more events than the rate allows (ruling 6).
#[derive(Default)]
pub struct RateLimitKept {
    sent: BTreeMap<usize, VecDeque<u64>>,
}

impl Invariant for RateLimitKept {
    fn name(&self) -> &'static str {
        "no window over the rate"
    }

    fn meaning(&self) -> &'static str {
        "In no second does a subscriber get more non-critical events than its rate."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        for output in step.outputs {
            // A subscription that had no rate starts to count when it is granted one.
            let Output::Accepted { subscriber, .. } = output else { continue };
            if let Some((at, _)) = truth.of(*subscriber) {
                self.sent.entry(at).or_default();
            }
        }
        for it in step.delivered {
            let Some(rate) = it.terms.rate else { continue };
            if it.event.is_critical() {
                continue;
            }
            let sent = self.sent.entry(it.subscription).or_default();
            sent.push_back(it.sent_us);
            while sent.front().is_some_and(|first| first + SECOND_US <= it.sent_us) {
                sent.pop_front();
            }
            if sent.len() as u64 > rate {
                return Err(format!(
                    "{} events in a second to {}, whose rate is {rate}; the last one is {}.",
                    sent.len(),
                    truth.subscriptions[it.subscription].id,
                    it.frame.event_id
                ));
            }
        }
        Ok(())
    }
}

/// While the hub holds events for a subscriber, they leave one by one (ruling 6).
#[derive(Default)]
pub struct SpacedEvents {
    last: BTreeMap<usize, u64>,
    recorded: BTreeMap<EventId, u64>,
    /// When a stream began or resumed: missed events may come as a burst.
    began: BTreeMap<usize, u64>,
    /// Subscriptions that wait for the next batch of missed events.
    unfinished: BTreeSet<usize>,
}

impl Invariant for SpacedEvents {
    fn name(&self) -> &'static str {
        "held events leave one by one"
    }

    fn meaning(&self) -> &'static str {
        "An event that was held comes no sooner after the one before it than the rate says."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        let now_us = step.now.monotonic_us;
        for event in step.recorded() {
            self.recorded.insert(event.envelope.event_id.clone(), now_us);
        }
        let began = step.accepted.iter().map(|(at, _)| *at).chain(step.gaps());
        for at in began.chain(step.changed.map(|(at, _)| at)) {
            self.began.insert(at, now_us);
        }
        for it in step.delivered {
            let Some(rate) = it.terms.rate else { continue };
            if it.event.is_critical() {
                continue;
            }
            let merged = Delivery::of(&it.event).and_then(|delivery| delivery.merged);
            let last = merged.map_or_else(|| it.frame.event_id.clone(), |it| it.last_event_id);
            let recorded_us = self.recorded.get(&last).copied().unwrap_or(it.sent_us);
            let began_us = self.began.get(&it.subscription).copied().unwrap_or(0);
            // Text may have waited for its boundary instead.
            let is_text = matches!(it.event.payload, Payload::OutputStreaming(_));
            let is_held = !is_text
                && recorded_us > began_us
                && recorded_us < it.sent_us
                && !self.unfinished.contains(&it.subscription);
            let before = self.last.insert(it.subscription, it.sent_us);
            let apart_us = SECOND_US / rate;
            if is_held && before.is_some_and(|before| it.sent_us < before + apart_us) {
                return Err(format!(
                    "{} was held and went to {} less than {apart_us} microseconds after another event.",
                    it.frame.event_id, truth.subscriptions[it.subscription].id
                ));
            }
        }
        for it in step.delivered.iter().filter(|it| !it.event.is_critical()) {
            self.unfinished.remove(&it.subscription);
        }
        self.unfinished.extend(step.unfinished(truth));
        Ok(())
    }
}

/// No event that a filter excludes is sent (ruling 5).
pub struct FilterKept;

impl Invariant for FilterKept {
    fn name(&self) -> &'static str {
        "nothing that a filter excludes"
    }

    fn meaning(&self) -> &'static str {
        "Only critical events pass a filter that excludes them, and what sums up a session."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        for it in step.delivered {
            let passes = it.event.is_critical()
                || it.terms.wants(&it.event.event_type())
                || known::passes_every_filter(&it.event);
            if !passes {
                return Err(format!(
                    "{} of type {} went to {}, whose filter excludes it.",
                    it.frame.event_id,
                    it.event.event_type().as_str(),
                    truth.subscriptions[it.subscription].id
                ));
            }
        }
        Ok(())
    }
}

/// No event is sent to a full or broken wire: pending events stay in the hub, where they are bounded.
pub struct QuietFullWire;

impl Invariant for QuietFullWire {
    fn name(&self) -> &'static str {
        "nothing onto a full wire"
    }

    fn meaning(&self) -> &'static str {
        "A subscriber that cannot take anything is sent nothing, so no queue grows for it."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        for it in step.delivered {
            let was_here = step
                .changed
                .is_some_and(|(at, was)| at == it.subscription && was == SubscriberPresence::Here);
            let presence = truth.subscriptions[it.subscription].presence;
            if presence != SubscriberPresence::Here
                && presence != SubscriberPresence::Gone
                && !was_here
            {
                return Err(format!(
                    "{} went to {}, which is {presence:?}.",
                    it.frame.event_id, truth.subscriptions[it.subscription].id
                ));
            }
        }
        Ok(())
    }
}
