//! Streamed text: nothing is lost or repeated, and nothing is cut off a boundary.

use std::collections::{BTreeMap, BTreeSet};

use aaep::event::action::{CoalesceBoundary, OutputStreaming};
use aaep::{CoreType, Event, LanguageTag, Payload, SessionId};

use super::{DeliveredEvent, HubStep, Invariant, WorldMoment};
use crate::truth::{SubscriberPresence, WorldTruth};

/// An output, by its session and id.
pub(super) type CheckedOutputKey = (SessionId, String);

fn key(session: &SessionId, chunk: &OutputStreaming) -> CheckedOutputKey {
    (session.clone(), chunk.output_id.as_ref().map_or("", |id| id.as_str()).to_owned())
}

fn end_of(chunk: &OutputStreaming) -> usize {
    usize::try_from(chunk.position).unwrap_or(usize::MAX) + chunk.chunk.chars().count()
}

/// What was recorded of an output.
#[derive(Default)]
struct WrittenOutput {
    /// The event count when it began.
    began: u64,
    chars: usize,
    is_complete: bool,
}

/// What a subscriber received of an output.
#[derive(Clone, Copy, Default)]
struct ReceivedPieces {
    chars: usize,
    is_complete: bool,
    /// Whether a part may be missing next, after a gap or a change of terms.
    may_skip: bool,
    /// Whether the last piece was sent along with a critical event. One event id cannot say whether
    /// the piece arrived, so the hub sends it again.
    went_along: bool,
}

/// The texts that one subscriber received.
#[derive(Clone, Default)]
struct ReceivedTexts {
    received: BTreeMap<CheckedOutputKey, ReceivedPieces>,
    /// The event count from which on nothing may be missing.
    strict_since: u64,
    /// When something was last allowed to be missing. This applies to pieces that were sent later.
    loose_us: u64,
    /// Whether the subscriber continues another subscription, or resumed after a kill.
    is_resumed: bool,
}

/// No text is lost or repeated.
#[derive(Default)]
pub struct WholeText {
    count: u64,
    written: BTreeMap<CheckedOutputKey, WrittenOutput>,
    /// The deleted sessions, whose text need not be whole.
    let_off: BTreeSet<SessionId>,
    texts: BTreeMap<usize, ReceivedTexts>,
    wants: BTreeMap<usize, bool>,
}

impl Invariant for WholeText {
    fn name(&self) -> &'static str {
        "no text lost or repeated"
    }

    fn meaning(&self) -> &'static str {
        "The pieces of an output joined are the output, whoever they come to and however they were \
         merged, cut and resent."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        match moment {
            WorldMoment::Handled(step) => {
                self.write(step);
                self.follow(truth, step);
                Ok(())
            }
            WorldMoment::Arrived(sent) => self.receive(truth, sent),
            WorldMoment::Restarted { .. } => {
                self.texts.values_mut().for_each(|texts| texts.is_resumed = true);
                Ok(())
            }
            WorldMoment::Lost(_) => Ok(()),
            WorldMoment::Finished => self.finish(truth),
        }
    }
}

impl WholeText {
    fn write(&mut self, step: &HubStep<'_>) {
        self.let_off.extend(step.deleted().cloned());
        for event in step.recorded() {
            self.count += 1;
            let session = &event.envelope.session_id;
            let Payload::OutputStreaming(chunk) = &event.payload else { continue };
            let began = self.count;
            let written = self
                .written
                .entry(key(session, chunk))
                .or_insert_with(|| WrittenOutput { began, ..WrittenOutput::default() });
            written.chars = end_of(chunk);
            written.is_complete |= chunk.complete;
        }
    }

    /// Follows new subscriptions, gaps, and changes of terms by which text starts or stops passing the filter.
    fn follow(&mut self, truth: &WorldTruth, step: &HubStep<'_>) {
        for (at, before) in step.newcomers(truth) {
            let since = self.count;
            let fresh = || ReceivedTexts { strict_since: since, ..ReceivedTexts::default() };
            let mut texts =
                before.and_then(|it| self.texts.get(&it)).cloned().unwrap_or_else(fresh);
            texts.is_resumed |= before.is_some();
            self.texts.insert(at, texts);
            if let Some(wanted) = before.and_then(|it| self.wants.get(&it)).copied() {
                self.wants.insert(at, wanted);
            }
        }
        let mut loose: Vec<usize> = step.gaps().collect();
        for (at, _) in step.accepted {
            let wants = truth.subscriptions[*at].terms.wants_text();
            if self.wants.insert(*at, wants).is_some_and(|wanted| wanted != wants) {
                loose.push(*at);
            }
        }
        for at in loose {
            if let Some(texts) = self.texts.get_mut(&at) {
                texts.strict_since = self.count;
                texts.loose_us = step.now.monotonic_us;
                texts.received.values_mut().for_each(|received| received.may_skip = true);
            }
        }
    }

    fn receive(&mut self, truth: &WorldTruth, sent: &DeliveredEvent) -> Result<(), String> {
        let Payload::OutputStreaming(chunk) = &sent.event.payload else { return Ok(()) };
        let session = &sent.event.envelope.session_id;
        let texts = self.texts.entry(sent.subscription).or_default();
        let key = key(session, chunk);
        let id = &truth.subscriptions[sent.subscription].id;
        let what = format!("{} for {id}", sent.frame.event_id);
        let position = usize::try_from(chunk.position).unwrap_or(usize::MAX);
        let began = self.written.get(&key).map_or(0, |written| written.began);
        let known = texts.received.get(&key).copied();
        let next = match known {
            Some(received) => Some(received.chars),
            None => (began > texts.strict_since).then_some(0),
        };
        let may_skip = known.is_some_and(|received| received.may_skip);
        let may_repeat = texts.is_resumed && known.is_some_and(|received| received.went_along);
        if may_repeat && next.is_some_and(|next| position < next) {
            return Ok(());
        }
        match next {
            Some(_) if truth.subscriptions[sent.subscription].is_excused => {}
            Some(next) if position < next => {
                return Err(format!("{what} repeats text: {position} instead of {next}."));
            }
            Some(next) if position > next && !may_skip => {
                return Err(format!("{what} skips text: {position} instead of {next}."));
            }
            _ => {}
        }
        let is_excused = truth.subscriptions[sent.subscription].is_excused;
        if known.is_some_and(|received| received.is_complete) && !is_excused {
            return Err(format!("{what} comes after the output was complete."));
        }
        let end = end_of(chunk);
        let is_right = truth.text(session, chunk).is_some_and(|text| {
            text.chars
                .get(position..end)
                .is_some_and(|part| part.iter().copied().eq(chunk.chunk.chars()))
        });
        if !is_right {
            return Err(format!("{what} is not what the agent wrote."));
        }
        let may_skip = sent.sent_us < texts.loose_us;
        let went_along = sent.event.is_critical();
        let received =
            ReceivedPieces { chars: end, is_complete: chunk.complete, may_skip, went_along };
        texts.received.insert(key.clone(), received);
        let written = self.written.get(&key);
        if chunk.complete && written.is_none_or(|written| written.chars != end) {
            return Err(format!("{what} says that the output is complete too early."));
        }
        Ok(())
    }

    fn finish(&self, truth: &WorldTruth) -> Result<(), String> {
        for (at, texts) in &self.texts {
            let subscription = &truth.subscriptions[*at];
            let is_done =
                subscription.presence != SubscriberPresence::Here || subscription.is_excused;
            if is_done || !subscription.terms.wants_text() {
                continue;
            }
            for (key, written) in &self.written {
                let is_due = written.began > texts.strict_since && !self.let_off.contains(&key.0);
                let received = texts.received.get(key).copied().unwrap_or_default();
                let is_whole =
                    received.chars == written.chars && received.is_complete == written.is_complete;
                if is_due && !is_whole {
                    return Err(format!(
                        "{} has {} of {} characters of {:?} in {}.",
                        subscription.id, received.chars, written.chars, key.1, key.0
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Every piece ends at a boundary that its subscriber asked for.
#[derive(Default)]
pub struct BoundaryKept {
    ended: BTreeSet<SessionId>,
    /// How far each output has got, and its language.
    written: BTreeMap<CheckedOutputKey, (usize, Option<LanguageTag>)>,
    /// Where the agent's chunks end, and where text was cut before an ask or another language.
    chunk_ends: BTreeSet<(CheckedOutputKey, usize)>,
    cuts: BTreeSet<(CheckedOutputKey, usize)>,
}

impl Invariant for BoundaryKept {
    fn name(&self) -> &'static str {
        "no text cut off a boundary"
    }

    fn meaning(&self) -> &'static str {
        "Every piece of text ends at a boundary that its subscriber asked for, where the text ends, or before an ask or \
         another language. With none, it ends where a chunk does."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let sent = match moment {
            WorldMoment::Handled(step) => {
                for event in step.recorded() {
                    self.write(event);
                }
                return step.delivered.iter().try_for_each(|sent| self.check(truth, sent));
            }
            WorldMoment::Arrived(sent) => sent,
            _ => return Ok(()),
        };
        self.check(truth, sent)
    }
}

impl BoundaryKept {
    fn write(&mut self, event: &Event) {
        let session = &event.envelope.session_id;
        if event.event_type().core().is_some_and(CoreType::is_terminal) {
            self.ended.insert(session.clone());
        }
        match &event.payload {
            Payload::OutputStreaming(chunk) => {
                let key = key(session, chunk);
                let now = (end_of(chunk), chunk.language.clone());
                self.chunk_ends.insert((key.clone(), now.0));
                let before = self.written.insert(key.clone(), now);
                if let Some((end, language)) = before
                    && language != chunk.language
                {
                    self.cuts.insert((key, end));
                }
            }
            _ if event.is_critical() || matches!(event.payload, Payload::StateChanged(_)) => {
                let of_session = self.written.iter().filter(|(key, _)| key.0 == *session);
                self.cuts.extend(of_session.map(|(key, (end, _))| (key.clone(), *end)));
            }
            _ => {}
        }
    }

    fn check(&self, truth: &WorldTruth, sent: &DeliveredEvent) -> Result<(), String> {
        let Payload::OutputStreaming(chunk) = &sent.event.payload else { return Ok(()) };
        let session = &sent.event.envelope.session_id;
        // After a gap, text may begin in the middle, where the meaning of a full stop is less certain.
        if chunk.complete || self.ended.contains(session) || truth.is_cramped {
            return Ok(());
        }
        let Some(text) = truth.text(session, chunk) else { return Ok(()) };
        let end = end_of(chunk);
        if sent.terms.keeps_all() {
            // Numbered events are sent as they are, wherever the agent cut them.
            return Ok(());
        }
        let at = (key(session, chunk), end);
        let ends_at = |boundary: &CoalesceBoundary| match boundary {
            CoalesceBoundary::None => self.chunk_ends.contains(&at),
            _ => text.ends_at(end, boundary),
        };
        if self.cuts.contains(&at) || sent.terms.boundaries.iter().any(ends_at) {
            return Ok(());
        }
        let before: String = text.chars[end.saturating_sub(12)..end].iter().collect();
        let after: String = text.chars[end..].iter().take(12).collect();
        let asked: Vec<&str> = sent.terms.boundaries.iter().map(CoalesceBoundary::as_str).collect();
        Err(format!(
            "{} for {} ends at {end}, between {before:?} and {after:?}, where no {} ends.",
            sent.frame.event_id,
            truth.subscriptions[sent.subscription].id,
            asked.join(" or ")
        ))
    }
}

/// No piece of text mixes two languages (ruling 32).
#[derive(Default)]
pub struct OneLanguage {
    /// Where text of a language begins and ends.
    written: BTreeMap<CheckedOutputKey, Vec<(usize, usize, Option<LanguageTag>)>>,
}

impl Invariant for OneLanguage {
    fn name(&self) -> &'static str {
        "one language to a piece"
    }

    fn meaning(&self) -> &'static str {
        "Every piece of text is in the one language that the agent said it is in."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        for event in step.recorded() {
            let Payload::OutputStreaming(chunk) = &event.payload else { continue };
            let position = usize::try_from(chunk.position).unwrap_or(usize::MAX);
            let part = (position, end_of(chunk), chunk.language.clone());
            self.written.entry(key(&event.envelope.session_id, chunk)).or_default().push(part);
        }
        for sent in step.delivered {
            let Payload::OutputStreaming(chunk) = &sent.event.payload else { continue };
            let position = usize::try_from(chunk.position).unwrap_or(usize::MAX);
            let end = end_of(chunk);
            let parts = self.written.get(&key(&sent.event.envelope.session_id, chunk));
            let mut parts = parts.into_iter().flatten().filter(|it| it.0 < end && position < it.1);
            if let Some(other) = parts.find(|it| it.2 != chunk.language) {
                return Err(format!(
                    "{} for {} says {:?} of text in {:?}.",
                    sent.frame.event_id,
                    truth.subscriptions[sent.subscription].id,
                    chunk.language,
                    other.2
                ));
            }
        }
        Ok(())
    }
}
