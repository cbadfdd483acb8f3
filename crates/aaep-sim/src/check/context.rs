//! What is critical is understood: the start of its session and the text before an ask come first, and nothing that is
//! not text waits for a pace (rulings 7 and 30).

use std::collections::{BTreeMap, BTreeSet};

use aaep::{CoreType, EventId, EventType, Payload, SessionId};
use aaep_engine::Output;

use super::critical::sent_to;
use super::{Delivered, Invariant, Moment, Step};
use crate::truth::{Presence, Truth};

/// An output, by its session and id.
type Key = (SessionId, String);

/// Something critical, as it was recorded.
struct Recorded {
    at_us: u64,
    /// Up to where the outputs of its session went, and when each began; only for an ask.
    texts: Vec<(Key, usize, u64)>,
}

/// What one subscription got.
#[derive(Clone, Default)]
struct Got {
    started: BTreeSet<SessionId>,
    texts: BTreeMap<Key, usize>,
    /// From this many events on nothing is left out.
    since: u64,
}

/// The start of a session comes before anything critical of it, and its text before an ask.
#[derive(Default)]
pub struct Context {
    count: u64,
    began: BTreeMap<SessionId, u64>,
    written: BTreeMap<Key, (usize, u64)>,
    critical: BTreeMap<EventId, Recorded>,
    got: BTreeMap<usize, Got>,
    /// What came without its text. Whoever is behind may be told of a gap afterwards.
    doubts: BTreeMap<usize, String>,
}

impl Invariant for Context {
    fn name(&self) -> &'static str {
        "context before what is critical"
    }

    fn meaning(&self) -> &'static str {
        "The start of a session is told before anything critical of it, and its text before it asks something."
    }

    fn see(&mut self, truth: &Truth, moment: &Moment<'_>) -> Result<(), String> {
        match moment {
            Moment::Handled(step) => {
                self.write(step);
                for (at, before) in step.newcomers(truth) {
                    let fresh = || Got { since: self.count, ..Got::default() };
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
            Moment::Arrived(sent) => {
                self.hear(truth, sent);
                Ok(())
            }
            Moment::Finished => {
                let is_here = |at: &usize| {
                    let it = &truth.subscriptions[*at];
                    it.presence == Presence::Here && !it.is_excused
                };
                let doubt = self.doubts.iter().find(|(at, _)| is_here(at));
                doubt.map_or(Ok(()), |(_, doubt)| Err(doubt.clone()))
            }
            _ => Ok(()),
        }
    }
}

impl Context {
    fn write(&mut self, step: &Step<'_>) {
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
                let recorded = Recorded { at_us: step.now.monotonic_us, texts };
                self.critical.insert(event.envelope.event_id.clone(), recorded);
            }
        }
    }

    fn hear(&mut self, truth: &Truth, sent: &Delivered) {
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
        // What is asked late, or told after a return, comes with a summary instead.
        // With little memory, whoever is behind is told of a gap.
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
        let is_missing = |(key, end, began): &&(Key, usize, u64)| {
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
    /// Who has something else to wait for: a summary, or its wire.
    waiting: BTreeSet<usize>,
    /// Subscriptions from which something was held back. That is right if they are told of a gap later.
    doubts: BTreeMap<usize, String>,
}

impl Invariant for OnlyText {
    fn name(&self) -> &'static str {
        "a pace holds only text"
    }

    fn meaning(&self) -> &'static str {
        "Tools, starts and ends come when they happen, however much text is still being spoken."
    }

    fn see(&mut self, truth: &Truth, moment: &Moment<'_>) -> Result<(), String> {
        let step = match moment {
            Moment::Handled(step) => step,
            Moment::Finished => {
                let is_here = |at: &usize| truth.subscriptions[*at].presence == Presence::Here;
                let doubt = self.doubts.iter().find(|(at, _)| is_here(at));
                return doubt.map_or(Ok(()), |(_, doubt)| Err(doubt.clone()));
            }
            _ => return Ok(()),
        };
        // Where little goes at a time, things wait for the wire.
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
            // With little memory, whoever is behind is told of a gap first.
            let is_paced = terms.pace.is_some() && terms.rate.is_none() && !truth.is_cramped;
            if !is_paced || subscription.presence != Presence::Here || self.waiting.contains(&at) {
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
        // Whoever had to wait for something else is looked at again when it was sent something.
        self.waiting.retain(|at| step.to(*at).next().is_none() || changed == Some(*at));
        Ok(())
    }
}
