//! Critical events can be understood: the start of their session and the text before an ask come
//! first, and a pace holds nothing but text (rulings 7 and 30).

use std::collections::{BTreeMap, BTreeSet};

use aaep::{CoreType, EventId, EventType, Payload, SessionId};
use aaep_engine::Output;

use super::critical::sent_to;
use super::text::CheckedOutputKey;
use super::{DeliveredEvent, HubStep, Invariant, WorldMoment};
use crate::truth::{SubscriberPresence, WorldTruth};

/// A critical event, as it was recorded.
struct RecordedCritical {
    at_us: u64,
    /// The outputs of its session: how far each had got, and when it began. Filled for asks only.
    texts: Vec<(CheckedOutputKey, usize, u64)>,
}

/// What one subscription received.
#[derive(Clone, Default)]
struct ReceivedContext {
    started: BTreeSet<SessionId>,
    texts: BTreeMap<CheckedOutputKey, usize>,
    /// The event count from which on nothing may be missing.
    since: u64,
}

/// The start of a session arrives before its critical events, and its text before an ask.
#[derive(Default)]
pub struct ContextFirst {
    count: u64,
    began: BTreeMap<SessionId, u64>,
    written: BTreeMap<CheckedOutputKey, (usize, u64)>,
    critical: BTreeMap<EventId, RecordedCritical>,
    got: BTreeMap<usize, ReceivedContext>,
    /// Asks that came without their text. That is right if the lagging subscriber is told of a gap later.
    doubts: BTreeMap<usize, String>,
}

impl Invariant for ContextFirst {
    fn name(&self) -> &'static str {
        "context before what is critical"
    }

    fn meaning(&self) -> &'static str {
        "The start of a session is told before anything critical of it, and its text before it asks something."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        match moment {
            WorldMoment::Handled(step) => {
                self.write(step);
                for (at, before) in step.newcomers(truth) {
                    let fresh =
                        || ReceivedContext { since: self.count, ..ReceivedContext::default() };
                    let got = before.and_then(|it| self.got.get(&it)).cloned();
                    self.got.insert(at, got.unwrap_or_else(fresh));
                }
                for at in step.gaps() {
                    self.doubts.remove(&at);
                }
                let loose = step.gaps().chain(step.accepted.iter().map(|(at, _)| *at));
                for at in loose.chain(step.changed.map(|(at, _)| at)) {
                    self.got.entry(at).or_default().since = self.count;
                }
                Ok(())
            }
            WorldMoment::Arrived(sent) => {
                self.receive(truth, sent);
                Ok(())
            }
            WorldMoment::Finished => {
                let is_here = |at: &usize| {
                    let it = &truth.subscriptions[*at];
                    it.presence == SubscriberPresence::Here && !it.is_excused
                };
                let doubt = self.doubts.iter().find(|(at, _)| is_here(at));
                doubt.map_or(Ok(()), |(_, doubt)| Err(doubt.clone()))
            }
            _ => Ok(()),
        }
    }
}

impl ContextFirst {
    fn write(&mut self, step: &HubStep<'_>) {
        for event in step.recorded() {
            self.count += 1;
            let session = &event.envelope.session_id;
            match &event.payload {
                Payload::SessionStarted(_) => {
                    self.began.insert(session.clone(), self.count);
                }
                Payload::OutputStreaming(chunk) => {
                    let output = chunk.output_id.as_ref().map_or("", |id| id.as_str()).to_owned();
                    let end = usize::try_from(chunk.position).unwrap_or(usize::MAX)
                        + chunk.chunk.chars().count();
                    let written =
                        self.written.entry((session.clone(), output)).or_insert((0, self.count));
                    written.0 = end;
                }
                _ => {}
            }
            if event.is_critical() {
                let is_ask = matches!(
                    event.payload,
                    Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_)
                );
                let texts = self.written.iter().filter(|(key, _)| is_ask && key.0 == *session);
                let texts = texts.map(|(key, (end, began))| (key.clone(), *end, *began)).collect();
                let recorded = RecordedCritical { at_us: step.now.monotonic_us, texts };
                self.critical.insert(event.envelope.event_id.clone(), recorded);
            }
        }
    }

    fn receive(&mut self, truth: &WorldTruth, sent: &DeliveredEvent) {
        let got = self.got.entry(sent.subscription).or_default();
        let session = &sent.event.envelope.session_id;
        match &sent.event.payload {
            Payload::SessionStarted(_) => drop(got.started.insert(session.clone())),
            Payload::OutputStreaming(chunk) => {
                let output = chunk.output_id.as_ref().map_or("", |id| id.as_str()).to_owned();
                let end = usize::try_from(chunk.position).unwrap_or(usize::MAX)
                    + chunk.chunk.chars().count();
                got.texts.insert((session.clone(), output), end);
            }
            _ => {}
        }
        let subscription = &truth.subscriptions[sent.subscription];
        let Some(recorded) = self.critical.get(&sent.frame.event_id) else { return };
        // A late ask, or one after a reconnect, comes with a summary instead. With little memory,
        // lagging subscribers are told of a gap.
        if subscription.is_excused || truth.is_cramped || recorded.at_us != sent.sent_us {
            return;
        }
        let wants_start = sent.terms.wants(&EventType::Core(CoreType::SessionStarted));
        let is_begun = self.began.get(session).is_some_and(|began| *began > got.since);
        if wants_start && is_begun && !got.started.contains(session) {
            let doubt = format!(
                "{} arrived at {} before the start of {session}.",
                sent.frame.event_id, subscription.id
            );
            self.doubts.entry(sent.subscription).or_insert(doubt);
        }
        let is_missing = |(key, end, began): &&(CheckedOutputKey, usize, u64)| {
            *began > got.since && got.texts.get(key).copied().unwrap_or(0) < *end
        };
        if sent.terms.wants_text()
            && let Some((key, end, _)) = recorded.texts.iter().find(is_missing)
        {
            let doubt = format!(
                "{} arrived at {} before all {end} characters of {:?}.",
                sent.frame.event_id, subscription.id, key.1
            );
            self.doubts.entry(sent.subscription).or_insert(doubt);
        }
    }
}

/// A pace holds text and nothing else.
#[derive(Default)]
pub struct OnlyText {
    /// Subscriptions that wait for something else: a summary, or their wire.
    waiting: BTreeSet<usize>,
    /// Subscriptions for which something was held back. That is right if they are told of a gap later.
    doubts: BTreeMap<usize, String>,
}

impl Invariant for OnlyText {
    fn name(&self) -> &'static str {
        "a pace holds only text"
    }

    fn meaning(&self) -> &'static str {
        "Tools, starts and ends come when they happen, however much text is still being spoken."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let step = match moment {
            WorldMoment::Handled(step) => step,
            WorldMoment::Finished => {
                let is_here =
                    |at: &usize| truth.subscriptions[*at].presence == SubscriberPresence::Here;
                let doubt = self.doubts.iter().find(|(at, _)| is_here(at));
                return doubt.map_or(Ok(()), |(_, doubt)| Err(doubt.clone()));
            }
            _ => return Ok(()),
        };
        // With small batches, events wait for the wire.
        if truth.at_a_time < 64 {
            return Ok(());
        }
        let changed = step.changed.map(|(at, _)| at);
        let new = step.accepted.iter().map(|(at, _)| *at);
        for at in changed.into_iter().chain(new).chain(step.gaps()) {
            self.doubts.remove(&at);
            self.waiting.insert(at);
        }
        for output in step.outputs {
            if let Output::More { subscriber } = output {
                self.waiting.extend(truth.of(*subscriber).map(|(at, _)| at));
            }
        }
        for &at in truth.by_key.values() {
            let subscription = &truth.subscriptions[at];
            let terms = &subscription.terms;
            // With little memory, lagging subscribers are told of a gap first.
            let is_paced = terms.pace.is_some() && terms.rate.is_none() && !truth.is_cramped;
            if !is_paced
                || subscription.presence != SubscriberPresence::Here
                || self.waiting.contains(&at)
            {
                continue;
            }
            let is_of_interest = |event: &&std::sync::Arc<aaep::Event>| {
                let is_kind = matches!(
                    event.payload,
                    Payload::ToolInvoked(_)
                        | Payload::ToolCompleted(_)
                        | Payload::SessionStarted(_)
                        | Payload::SessionCompleted(_)
                );
                is_kind && event.envelope.urgency.is_none() && terms.wants(&event.event_type())
            };
            for event in step.recorded().filter(is_of_interest) {
                let id = &event.envelope.event_id;
                let is_sent = step.to(at).any(|sent| sent.frame.event_id == *id);
                if !is_sent && sent_to(at, step) < truth.at_a_time {
                    let doubt = format!("{id} was held back from {}.", subscription.id);
                    self.doubts.entry(at).or_insert(doubt);
                }
            }
        }
        // Check subscriptions that waited for something else again once they were sent something.
        self.waiting.retain(|at| step.to(*at).next().is_none() || changed == Some(*at));
        Ok(())
    }
}
