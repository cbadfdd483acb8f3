//! The stream of a subscriber as it arrives: each event once, in order, with the right number, and nothing lost.

use std::collections::{BTreeMap, BTreeSet};

use aaep::event::action::ToolStatus;
use aaep::{Event, EventId, Payload, SessionId, Urgency};
use aaep_engine::EngineInput;

use super::asks::token_in;
use super::critical::is_critical_event;
use super::owed::OwedEvents;
use super::pace::is_summary;
use super::{DeliveredEvent, Invariant, WorldMoment};
use crate::truth::{SubscriberPresence, WorldTruth};

/// No event arrives twice.
#[derive(Default)]
pub struct EventOnce {
    /// The events that arrived; for asks, also when they were sent.
    arrived: BTreeMap<usize, BTreeMap<EventId, Option<u64>>>,
    /// When there was a gap or terms changed. Open asks are then asked again, and the first copy
    /// may have been on its way.
    asked_again: BTreeMap<usize, Vec<u64>>,
    /// Subscriptions that continue another one, or resumed after a kill: they may receive critical events again.
    resumed: BTreeSet<usize>,
    /// Subscriptions that stalled or were away.
    stalled: BTreeSet<usize>,
    /// Asks that were sent twice to subscriptions whose limits hold back the notice of a gap. These
    /// must be told of the gap in the end.
    asked_before_gap: BTreeMap<usize, String>,
    /// Events that were sent along with a critical one, and were exempt from limits like it.
    went_along: BTreeSet<EventId>,
}

impl Invariant for EventOnce {
    fn name(&self) -> &'static str {
        "no event twice"
    }

    fn meaning(&self) -> &'static str {
        "No event arrives twice, but for questions after a gap or under other terms, and for what is \
         critical when a subscriber goes on with another subscription or after a kill."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        match moment {
            WorldMoment::Handled(step) => {
                for (at, before) in step.newcomers(truth) {
                    let arrived = before.and_then(|it| self.arrived.get(&it)).cloned();
                    self.arrived.insert(at, arrived.unwrap_or_default());
                    self.resumed.extend(before.map(|_| at));
                }
                if let (EngineInput::Block { .. } | EngineInput::Reconnect { .. }, Some((at, _))) =
                    (step.input, step.changed)
                {
                    self.stalled.insert(at);
                }
                let accepted = step.accepted.iter().map(|(at, _)| *at);
                for at in step.gaps().chain(accepted) {
                    self.asked_before_gap.remove(&at);
                    self.asked_again.entry(at).or_default().push(step.now.monotonic_us);
                }
            }
            WorldMoment::Restarted { .. } => {
                // The hub does not store which events overtook which, so critical events may come again.
                self.resumed.extend(self.arrived.keys().copied());
            }
            WorldMoment::Arrived(sent) => {
                let arrived = self.arrived.entry(sent.subscription).or_default();
                let at = &sent.subscription;
                let asked_us = token_in(&sent.event.payload).map(|_| sent.sent_us);
                let before = arrived.insert(sent.frame.event_id.clone(), asked_us);
                let between = |before_us: u64| {
                    let mut again = self.asked_again.get(at).into_iter().flatten();
                    again.any(|us| (before_us..=sent.sent_us).contains(us))
                };
                let is_again = before.is_some_and(|before_us| !before_us.is_some_and(between));
                // One event id cannot say which of the events that overtook it arrived, so the hub
                // sends those again.
                let is_excused = truth.subscriptions[*at].is_excused;
                if sent.event.is_critical() {
                    self.went_along.insert(sent.frame.event_id.clone());
                }
                let is_critical = is_critical_event(&sent.event)
                    || self.went_along.contains(&sent.frame.event_id);
                let may_repeat = is_excused || is_critical && self.resumed.contains(at);
                if is_again && !may_repeat {
                    let subscription = &truth.subscriptions[sent.subscription];
                    let problem = format!(
                        "{} of type {} arrived twice at {}.",
                        sent.frame.event_id,
                        sent.event.event_type().as_str(),
                        subscription.id
                    );
                    let terms = &subscription.terms;
                    let is_limited = terms.rate.is_some() || terms.pace.is_some();
                    if asked_us.is_none() || !is_limited || !self.stalled.contains(at) {
                        return Err(problem);
                    }
                    self.asked_before_gap.entry(*at).or_insert(problem);
                }
            }
            WorldMoment::Finished => {
                let is_there =
                    |at: &usize| truth.subscriptions[*at].presence != SubscriberPresence::Gone;
                let mut asked = self.asked_before_gap.iter().filter(|(at, _)| is_there(at));
                return asked.next().map_or(Ok(()), |(_, problem)| Err(problem.clone()));
            }
            WorldMoment::Lost(_) => {}
        }
        Ok(())
    }
}

/// Non-critical events of a session arrive in the order in which they were recorded.
#[derive(Default)]
pub struct OrderKept {
    places: BTreeMap<EventId, u64>,
    last: BTreeMap<usize, BTreeMap<SessionId, u64>>,
}

impl Invariant for OrderKept {
    fn name(&self) -> &'static str {
        "order is kept"
    }

    fn meaning(&self) -> &'static str {
        "The events of a session that are not critical arrive in the order in which they happened."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        match moment {
            WorldMoment::Handled(step) => {
                for event in step.recorded().filter(|event| !is_critical_event(event)) {
                    let place = self.places.len() as u64;
                    self.places.insert(event.envelope.event_id.clone(), place);
                }
                for (at, before) in step.newcomers(truth) {
                    let last = before.and_then(|it| self.last.get(&it)).cloned();
                    self.last.insert(at, last.unwrap_or_default());
                }
            }
            WorldMoment::Arrived(sent) => {
                let Some(place) = self.places.get(&sent.frame.event_id) else { return Ok(()) };
                // Events sent along with a critical one, as its context, may overtake (ruling 7),
                // and text waits for its boundary.
                let is_text = matches!(sent.event.payload, Payload::OutputStreaming(_));
                if sent.event.is_critical() || is_text {
                    return Ok(());
                }
                let last = self.last.entry(sent.subscription).or_default();
                let session = &sent.event.envelope.session_id;
                if last.insert(session.clone(), *place).is_some_and(|last| last >= *place)
                    && !truth.subscriptions[sent.subscription].is_excused
                {
                    return Err(format!(
                        "{} arrived at {} after something that happened later.",
                        sent.frame.event_id, truth.subscriptions[sent.subscription].id
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Sequence numbers have no gaps under terms that drop and merge nothing, and are absent under all
/// others (ruling 7).
#[derive(Default)]
pub struct GaplessNumbers {
    last: BTreeMap<usize, BTreeMap<SessionId, u64>>,
    /// The position of each event among all events.
    places: BTreeMap<EventId, usize>,
    /// The event count when a stream began, with other terms, after a reconnect, or after a gap.
    began: BTreeMap<usize, usize>,
    /// Summaries without a number, and the event count when they arrived.
    unnumbered: BTreeMap<(usize, SessionId), usize>,
}

impl GaplessNumbers {
    /// Whether an event may be from before its stream began. It may then be out of order, and has no number.
    fn is_from_before(&self, sent: &DeliveredEvent) -> bool {
        let began = self.began.get(&sent.subscription).copied().unwrap_or(0);
        let place = self.places.get(&sent.frame.event_id);
        place.is_none_or(|place| *place < began)
    }

    /// Checks that a summary has the number before the next event in its place, or else that of the newest event.
    fn look_at_summaries(&mut self, sent: &DeliveredEvent) -> Result<(), String> {
        let at = (sent.subscription, sent.event.envelope.session_id.clone());
        if is_summary(&sent.event) {
            if sent.event.envelope.sequence_number.is_none() {
                self.unnumbered.insert(at, self.places.len());
            }
            return Ok(());
        }
        let place = self.places.get(&sent.frame.event_id);
        let summed_up = self.unnumbered.remove(&at);
        match (place, summed_up) {
            (Some(place), Some(summed_up)) if *place >= summed_up => Err(format!(
                "The summary before {} had no number, and nothing older came after it.",
                sent.frame.event_id
            )),
            _ => Ok(()),
        }
    }
}

impl Invariant for GaplessNumbers {
    fn name(&self) -> &'static str {
        "numbers without gaps"
    }

    fn meaning(&self) -> &'static str {
        "Sequence numbers are gapless where terms drop and merge nothing, and absent elsewhere; also \
         on what comes out of its place, after a return or under other terms."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        match moment {
            WorldMoment::Handled(step) => {
                for event in step.recorded() {
                    let place = self.places.len();
                    self.places.insert(event.envelope.event_id.clone(), place);
                }
                let back = step.changed.map(|(at, _)| at);
                for at in step.gaps().chain(back).chain(step.accepted.iter().map(|(at, _)| *at)) {
                    self.last.remove(&at);
                    self.unnumbered.retain(|(of, _), _| *of != at);
                    self.began.insert(at, self.places.len());
                }
            }
            WorldMoment::Arrived(sent) => {
                let subscription = &truth.subscriptions[sent.subscription];
                let (id, event_id) = (&subscription.id, &sent.frame.event_id);
                if sent.terms.keeps_all() {
                    self.look_at_summaries(sent)?;
                }
                let Some(number) = sent.event.envelope.sequence_number else {
                    let may_lack = is_summary(&sent.event) || self.is_from_before(sent);
                    return if sent.terms.keeps_all() && !may_lack {
                        Err(format!("{event_id} has no number for {id}."))
                    } else {
                        Ok(())
                    };
                };
                if !sent.terms.keeps_all() {
                    return Err(format!("{event_id} has a number for {id}, which may have gaps."));
                }
                let last = self.last.entry(sent.subscription).or_default();
                let session = sent.event.envelope.session_id.clone();
                // A summary has the number of the newest event.
                let is_again = last.get(&session).is_some_and(|last| number <= *last);
                if is_summary(&sent.event) {
                    // After a gap its number is far ahead, even of events that were on their way
                    // when the gap was told.
                    if !is_again {
                        last.insert(session, number);
                    }
                    return Ok(());
                }
                let last = last.insert(session, number);
                if last.is_some_and(|last| number != last + 1) && !subscription.is_excused {
                    let last = last.unwrap_or_default();
                    return Err(format!("{event_id} has number {number} for {id} after {last}."));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Resuming loses nothing: every event that is never merged arrives in the end.
#[derive(Default)]
pub struct NothingLost {
    owed: OwedEvents,
}

/// Whether an event is never merged with others (ruling 10).
fn stands_alone(event: &Event) -> bool {
    match &event.payload {
        Payload::SessionStarted(_)
        | Payload::SessionCompleted(_)
        | Payload::SessionCancelled(_) => true,
        Payload::ToolInvoked(it) => it.irreversible == Some(true),
        Payload::ToolCompleted(it) => it.status != ToolStatus::Success,
        _ => false,
    }
}

impl Invariant for NothingLost {
    fn name(&self) -> &'static str {
        "resume without loss"
    }

    fn meaning(&self) -> &'static str {
        "Every event that is never merged arrives at everyone who wants it, however often their \
         connection breaks."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        match moment {
            WorldMoment::Handled(step) => {
                self.owed.hand_on(truth, step);
                for event in step.recorded() {
                    if !stands_alone(event) {
                        continue;
                    }
                    let is_background = event.envelope.urgency == Some(Urgency::Background);
                    for at in truth.by_key.values() {
                        let terms = &truth.subscriptions[*at].terms;
                        let is_new = step.accepted.contains(&(*at, true));
                        if !is_new
                            && terms.wants(&event.event_type())
                            && !(terms.is_low && is_background)
                        {
                            self.owed.owe(*at, event);
                        }
                    }
                }
                for (at, _) in step.accepted {
                    let terms = &truth.subscriptions[*at].terms;
                    self.owed.retain(*at, |event| terms.wants(&event.event_type()));
                }
                self.owed.forgive(step);
            }
            WorldMoment::Arrived(sent) => {
                let id = &sent.frame.event_id;
                self.owed.retain(sent.subscription, |event| event.envelope.event_id != *id);
            }
            WorldMoment::Lost(_) | WorldMoment::Restarted { .. } => {}
            WorldMoment::Finished => return self.owed.check(truth, |_| true),
        }
        Ok(())
    }
}

/// Whether the hub made an event for one subscriber alone.
pub fn is_personal(event: &Event) -> bool {
    is_summary(event)
}
