//! Critical events, and how questions were settled: at once to everyone, and never lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep::event::reasoning::state;
use aaep::{CoreType, Event, Payload, SessionId};
use aaep_engine::{Input, Output};

use super::owed::Owed;
use super::pace::is_notice;
use super::{Delivered, Invariant, Moment, Step};
use crate::truth::{Presence, Truth};

/// Whether everyone must hear of an event at once (§5.5.4, rulings 1 and 18).
pub fn is_urgent(event: &Event) -> bool {
    event.is_critical() || is_notice(event)
}

/// Whether what was sent tells of this event: itself, or, of a question, that there is one.
pub fn tells(event: &Event, sent: &Delivered) -> bool {
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

fn is_question(event: &Event) -> bool {
    matches!(event.payload, Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_))
}

/// The subscriptions that were there before the step and still are, with whether they could be
/// reached all the time.
fn standing<'a>(truth: &'a Truth, step: &'a Step<'_>) -> impl Iterator<Item = (usize, bool)> + 'a {
    truth.by_key.values().filter_map(move |&at| {
        let is_new = step.accepted.contains(&(at, true));
        let is_steady = step.changed.is_none_or(|(changed, _)| changed != at);
        let is_here = truth.subscriptions[at].presence == Presence::Here;
        (!is_new).then_some((at, is_here && is_steady))
    })
}

/// How many events a subscription was sent in a step; one that is longer than 4 KiB counts as several.
pub(super) fn sent_to(at: usize, step: &Step<'_>) -> usize {
    step.to(at).map(|sent| 1 + sent.frame.json.len() / 4096).sum()
}

/// No critical event is held, dropped or filtered.
#[derive(Default)]
pub struct AtOnce {
    /// What waits for subscribers whose wire is full, or who were sent as much as goes at a time.
    waiting: BTreeMap<usize, Vec<Arc<Event>>>,
    /// For whom there is more, when their wire has taken what it was sent.
    resting: BTreeSet<usize>,
    /// The sessions that run: in one of them it is said that something is missing.
    running: BTreeSet<SessionId>,
}

impl Invariant for AtOnce {
    fn name(&self) -> &'static str {
        "critical at once"
    }

    fn meaning(&self) -> &'static str {
        "A critical event is sent at once to everyone who can be reached, and to a stalled subscriber \
         as soon as its wire takes something; except that whoever is behind is sent a part at a time."
    }

    fn see(&mut self, truth: &Truth, moment: &Moment<'_>) -> Result<(), String> {
        let Moment::Handled(step) = moment else { return Ok(()) };
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
        // Whoever is told that something is missing is told how things stand instead.
        let gaps: BTreeSet<usize> = step.gaps().collect();
        for event in step.recorded().filter(|event| is_urgent(event)) {
            for (at, is_reachable) in standing(truth, step) {
                if gaps.contains(&at) || step.to(at).any(|sent| tells(event, sent)) {
                    continue;
                }
                let subscription = &truth.subscriptions[at];
                // Who counts gets everything in its order.
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
                if is_reachable || subscription.presence == Presence::Blocked {
                    self.waiting.entry(at).or_default().push(Arc::clone(event));
                }
            }
        }
        if let Some(session_id) = step.deleted() {
            for waiting in self.waiting.values_mut() {
                waiting.retain(|event| event.envelope.session_id != *session_id);
            }
        }
        // Whose connection broke, or who came back, is told as whoever was away.
        if let Some((at, _)) = step.changed
            && !matches!(
                step.input,
                Input::Block { .. } | Input::TakeBack { .. } | Input::Unblock { .. }
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
            let is_free = matches!(step.input, Input::Unblock { .. })
                && step.changed.is_some_and(|(changed, _)| changed == *at);
            let is_sent = |event: &Event| step.to(*at).any(|sent| tells(event, sent));
            // With a rate or a pace, it may take a while to say that something is missing: it is seen in the end. What is
            // still there comes at once, and what is still asked is asked again.
            let terms = &truth.subscriptions[*at].terms;
            if is_free && (terms.rate.is_some() || terms.pace.is_some()) {
                let is_there = |event: &Arc<Event>| !is_question(event) && is_sent(event);
                let first = waiting.iter().position(is_there).unwrap_or(waiting.len());
                waiting.drain(..first);
            }
            waiting.retain(|event| !is_sent(event));
            // Where no session runs, it is said in the next one that something is missing.
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

/// In the end every critical event has arrived, whatever the network did.
#[derive(Default)]
pub struct Arrival {
    owed: Owed,
}

impl Invariant for Arrival {
    fn name(&self) -> &'static str {
        "critical events arrive"
    }

    fn meaning(&self) -> &'static str {
        "Whoever comes back after a broken connection gets the critical events that it missed."
    }

    fn see(&mut self, truth: &Truth, moment: &Moment<'_>) -> Result<(), String> {
        match moment {
            Moment::Handled(step) => {
                self.owed.hand_on(truth, step);
                for event in step.recorded().filter(|event| is_urgent(event)) {
                    for (at, _) in standing(truth, step) {
                        self.owed.owe(at, event);
                    }
                }
                self.owed.forgive(step);
            }
            Moment::Arrived(sent) => {
                self.owed.retain(sent.subscription, |event| !tells(event, sent));
            }
            Moment::Lost(_) | Moment::Restarted { .. } => {}
            Moment::Finished => return self.owed.check(truth, |_| true),
        }
        Ok(())
    }
}
