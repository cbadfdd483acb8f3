//! Critical events and the outcomes of asks: delivered at once to all subscribers, and never lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep::event::reasoning::state;
use aaep::{CoreType, Event, Payload, SessionId};
use aaep_engine::{EngineInput, Output};

use super::owed::OwedEvents;
use super::pace::is_notice;
use super::{DeliveredEvent, HubStep, Invariant, WorldMoment};
use crate::truth::{SubscriberPresence, WorldTruth};

/// Whether all subscribers must receive an event at once (§5.5.4, rulings 1 and 18).
pub fn is_critical_event(event: &Event) -> bool {
    event.is_critical() || is_notice(event)
}

/// Whether the sent event is this event or, for an ask, announces it.
pub fn announces(event: &Event, sent: &DeliveredEvent) -> bool {
    if sent.event.envelope.event_id == event.envelope.event_id {
        return true;
    }
    let about = match &event.payload {
        Payload::AwaitingConfirmation(it) => &it.action,
        Payload::AwaitingClarification(it) => &it.question,
        _ => return false,
    };
    let Payload::StateChanged(change) = &sent.event.payload else { return false };
    sent.event.envelope.session_id == event.envelope.session_id
        && sent.event.is_critical()
        && change.to_state == state::AWAITING_INPUT
        && change.summary_normal.as_ref().is_some_and(|words| words.contains(about.as_str()))
}

fn is_ask(event: &Event) -> bool {
    matches!(event.payload, Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_))
}

/// The subscriptions that existed before the step and still do, and whether events could reach them throughout.
fn standing<'a>(
    truth: &'a WorldTruth,
    step: &'a HubStep<'_>,
) -> impl Iterator<Item = (usize, bool)> + 'a {
    truth.by_key.values().filter_map(move |&at| {
        let is_new = step.accepted.contains(&(at, true));
        let is_steady = step.changed.is_none_or(|(changed, _)| changed != at);
        let is_here = truth.subscriptions[at].presence == SubscriberPresence::Here;
        (!is_new).then_some((at, is_here && is_steady))
    })
}

/// How many events a subscription was sent in a step. An event longer than 4 KiB counts as several.
pub(super) fn sent_to(at: usize, step: &HubStep<'_>) -> usize {
    step.to(at).map(|sent| 1 + sent.frame.json.len() / 4096).sum()
}

/// No critical event is held, dropped or filtered.
#[derive(Default)]
pub struct CriticalAtOnce {
    /// Events that wait for subscribers whose wire is full, or that were already sent a whole batch.
    waiting: BTreeMap<usize, Vec<Arc<Event>>>,
    /// Subscriptions with more pending events, which follow once their wire has taken the batch.
    resting: BTreeSet<usize>,
    /// The running sessions. A gap is told in one of them.
    running: BTreeSet<SessionId>,
}

impl Invariant for CriticalAtOnce {
    fn name(&self) -> &'static str {
        "critical at once"
    }

    fn meaning(&self) -> &'static str {
        "A critical event is sent at once to everyone who can be reached, and to a stalled subscriber \
         as soon as its wire takes something; except that whoever is behind is sent a part at a time."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        if let Some((at, _)) = step.changed {
            self.resting.remove(&at);
        }
        for event in step.recorded() {
            let session_id = &event.envelope.session_id;
            if event.event_type().core().is_some_and(CoreType::is_terminal) {
                self.running.remove(session_id);
            } else {
                self.running.insert(session_id.clone());
            }
        }
        // A subscriber that is told of a gap receives a summary instead.
        let gaps: BTreeSet<usize> = step.gaps().collect();
        for event in step.recorded().filter(|event| is_critical_event(event)) {
            for (at, is_reachable) in standing(truth, step) {
                if gaps.contains(&at) || step.to(at).any(|sent| announces(event, sent)) {
                    continue;
                }
                let subscription = &truth.subscriptions[at];
                // Subscribers with numbered events receive everything in order.
                let has_enough = sent_to(at, step) >= truth.at_a_time
                    || (self.resting.contains(&at) && subscription.terms.keeps_all());
                if is_reachable && !has_enough {
                    return Err(format!(
                        "{} of type {} was not sent at once to {}.",
                        event.envelope.event_id,
                        event.event_type().as_str(),
                        subscription.id
                    ));
                }
                if is_reachable || subscription.presence == SubscriberPresence::Blocked {
                    self.waiting.entry(at).or_default().push(Arc::clone(event));
                }
            }
        }
        if let Some(session_id) = step.deleted() {
            for waiting in self.waiting.values_mut() {
                waiting.retain(|event| event.envelope.session_id != *session_id);
            }
        }
        // A subscription whose connection broke or came back is treated as one that was away.
        if let Some((at, _)) = step.changed
            && !matches!(
                step.input,
                EngineInput::Block { .. }
                    | EngineInput::TakeBack { .. }
                    | EngineInput::Unblock { .. }
            )
        {
            self.waiting.remove(&at);
        }
        for at in step.gaps() {
            self.waiting.remove(&at);
        }
        for output in step.outputs {
            if let Output::More { subscriber } = output {
                self.resting.extend(truth.of(*subscriber).map(|(at, _)| at));
            }
        }
        for (at, waiting) in &mut self.waiting {
            let sent = sent_to(*at, step);
            let is_free = matches!(step.input, EngineInput::Unblock { .. })
                && step.changed.is_some_and(|(changed, _)| changed == *at);
            let is_sent = |event: &Event| step.to(*at).any(|sent| announces(event, sent));
            // With a rate or a pace, the notice of a gap may take a while, and if no session runs, the
            // gap is told in the next one; both are checked in the end. Events that are still
            // available come at once, and open asks are asked again.
            let terms = &truth.subscriptions[*at].terms;
            let is_told_later =
                terms.rate.is_some() || terms.pace.is_some() || self.running.is_empty();
            if is_free && is_told_later {
                let is_there = |event: &Arc<Event>| !is_ask(event) && is_sent(event);
                let first = waiting.iter().position(is_there).unwrap_or(waiting.len());
                waiting.drain(..first);
            }
            waiting.retain(|event| !is_sent(event));
            // If no session runs, the gap is told in the next one.
            if sent == 0 && self.running.is_empty() {
                continue;
            }
            if (is_free || sent > 0)
                && sent < truth.at_a_time
                && let Some(event) = waiting.first()
            {
                return Err(format!(
                    "{} was not sent to {} when its wire was free again, or before other things.",
                    event.envelope.event_id, truth.subscriptions[*at].id
                ));
            }
        }
        Ok(())
    }
}

/// Every critical event arrives in the end, whatever the network did.
#[derive(Default)]
pub struct CriticalArrival {
    owed: OwedEvents,
}

impl Invariant for CriticalArrival {
    fn name(&self) -> &'static str {
        "critical events arrive"
    }

    fn meaning(&self) -> &'static str {
        "Whoever comes back after a broken connection gets the critical events that it missed."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        match moment {
            WorldMoment::Handled(step) => {
                self.owed.hand_on(truth, step);
                for event in step.recorded().filter(|event| is_critical_event(event)) {
                    for (at, _) in standing(truth, step) {
                        self.owed.owe(at, event);
                    }
                }
                self.owed.forgive(step);
            }
            WorldMoment::Arrived(sent) => {
                self.owed.retain(sent.subscription, |event| !announces(event, sent));
            }
            WorldMoment::Lost(_) | WorldMoment::Restarted { .. } => {}
            WorldMoment::Finished => return self.owed.check(truth, |_| true),
        }
        Ok(())
    }
}
