//! Timestamps on a subscription: within a session they do not go back, except for events of the
//! agent that ruling 7 names, and nothing that the hub made is dated ahead of its time.

use std::collections::{BTreeMap, BTreeSet};

use aaep::{EventId, Payload, SessionId};
use aaep_engine::{Author, Now, Output, Record};

use super::asks::token_in;
use super::{DeliveredEvent, HubStep, Invariant, WorldMoment};
use crate::truth::WorldTruth;

/// An event as it was recorded.
struct RecordedTime {
    /// Its place among all outputs of the hub.
    place: u64,
    /// When it was recorded.
    at_us: u64,
    is_by_hub: bool,
    is_ask: bool,
}

/// What was recorded of a session.
#[derive(Default)]
struct SessionTimes {
    latest_us: Option<i64>,
    /// How far the clock of its agent is ahead of the hub's.
    ahead_us: i64,
    /// The events that the hub made in it: their places and times.
    by_hub: Vec<(u64, i64)>,
}

/// An event that arrived, or that was sent.
#[derive(Clone)]
struct DatedEvent {
    id: EventId,
    /// Its place among all outputs of the hub: where it was recorded, or else where it was sent.
    place: u64,
    us: i64,
    is_critical: bool,
    /// Whether it has the time at which it was recorded. Any other time is not stored.
    is_recorded: bool,
}

/// What one subscription was sent, by session.
#[derive(Clone, Default)]
struct SubscriptionTimes {
    arrived: BTreeMap<SessionId, Vec<DatedEvent>>,
    ids: BTreeSet<EventId>,
    /// What the hub made and sent, whether it arrived or not.
    made: BTreeMap<SessionId, Vec<(u64, i64)>>,
    latest_us: BTreeMap<SessionId, i64>,
    /// Asks that were recorded before this place may be sent late: the subscription began, went on, had
    /// a gap or got other terms since then.
    loose: u64,
    /// The place at which the subscription last got terms.
    agreed: u64,
}

/// Within a session, timestamps do not go back on a subscription (§3.2.5, rulings 7 and 24).
#[derive(Default)]
pub struct TimesInOrder {
    recorded: BTreeMap<EventId, (RecordedTime, i64)>,
    sessions: BTreeMap<SessionId, SessionTimes>,
    subscriptions: BTreeMap<usize, SubscriptionTimes>,
    /// The place at which the hub was last started again.
    started_at: u64,
    is_starting: bool,
}

impl Invariant for TimesInOrder {
    fn name(&self) -> &'static str {
        "timestamps never go back"
    }

    fn meaning(&self) -> &'static str {
        "Within a session, a subscription gets no event that is dated before an earlier one, except an event \
         of the agent that was overtaken, that reached the hub after the hub had made something of its own, \
         that asks again, or whose text waited until terms number it; and nothing that the hub makes is dated after now."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        match moment {
            WorldMoment::Handled(step) => {
                self.follow(truth, step);
                self.handle(truth, step)
            }
            WorldMoment::Arrived(sent) => self.arrive(truth, sent),
            WorldMoment::Restarted { .. } => {
                self.is_starting = true;
                Ok(())
            }
            WorldMoment::Lost(_) | WorldMoment::Finished => Ok(()),
        }
    }
}

impl TimesInOrder {
    /// Follows subscriptions that go on with an earlier one, have a gap, or get other terms.
    fn follow(&mut self, truth: &WorldTruth, step: &HubStep<'_>) {
        if std::mem::take(&mut self.is_starting) {
            self.started_at = step.first_place;
        }
        for (at, is_new) in step.accepted {
            let it = &truth.subscriptions[*at];
            if *is_new && it.took_over {
                // Before a restart, others may have had its key.
                let is_same = |before: &usize| {
                    let before = &truth.subscriptions[*before];
                    before.subscriber == it.subscriber && before.key == it.key
                };
                let before = (0..*at).rev().find(is_same);
                let times = before.and_then(|before| self.subscriptions.get(&before)).cloned();
                self.subscriptions.insert(*at, times.unwrap_or_default());
            }
        }
        for (at, _) in step.accepted {
            self.subscriptions.entry(*at).or_default().agreed = step.first_place;
        }
        let accepted = step.accepted.iter().map(|(at, _)| *at);
        for at in step.gaps().chain(accepted).chain(step.changed.map(|(at, _)| at)) {
            self.subscriptions.entry(at).or_default().loose = step.first_place;
        }
    }

    /// Takes the records and the sent events of a step in their order, and checks that nothing that the hub
    /// made is dated after now.
    fn handle(&mut self, truth: &WorldTruth, step: &HubStep<'_>) -> Result<(), String> {
        let mut delivered = step.delivered.iter().peekable();
        for (place, output) in (step.first_place..).zip(step.outputs) {
            if let Output::Record(record) = output {
                self.record(place, record, step.now);
            }
            while let Some(sent) = delivered.next_if(|sent| sent.place <= place) {
                self.send(truth, step, sent)?;
            }
        }
        Ok(())
    }

    fn record(&mut self, place: u64, record: &Record, now: Now) {
        let envelope = &record.event.envelope;
        let us = envelope.timestamp.unix_us();
        let is_by_hub = record.author == Author::Hub;
        let session = self.sessions.entry(envelope.session_id.clone()).or_default();
        session.latest_us = session.latest_us.max(Some(us));
        if is_by_hub {
            session.by_hub.push((place, us));
        } else {
            session.ahead_us = us - now.unix_us;
        }
        let is_ask = token_in(&record.event.payload).is_some();
        let recorded = RecordedTime { place, at_us: now.monotonic_us, is_by_hub, is_ask };
        self.recorded.insert(envelope.event_id.clone(), (recorded, us));
    }

    fn is_agents(&self, id: &EventId) -> bool {
        self.recorded.get(id).is_some_and(|(it, _)| !it.is_by_hub)
    }

    fn send(
        &mut self,
        truth: &WorldTruth,
        step: &HubStep<'_>,
        sent: &DeliveredEvent,
    ) -> Result<(), String> {
        let envelope = &sent.event.envelope;
        let (us, session_id) = (envelope.timestamp.unix_us(), &envelope.session_id);
        let times = self.subscriptions.entry(sent.subscription).or_default();
        let before_us = times.latest_us.get(session_id).copied();
        times.latest_us.insert(session_id.clone(), before_us.map_or(us, |it| it.max(us)));
        if self.is_agents(&envelope.event_id) {
            return Ok(());
        }
        let times = self.subscriptions.entry(sent.subscription).or_default();
        times.made.entry(session_id.clone()).or_default().push((sent.place, us));
        let session = self.sessions.get(session_id);
        let ahead_us = session.map_or(0, |session| session.ahead_us).max(0);
        let most_us =
            [Some(step.now.unix_us + ahead_us), before_us, session.and_then(|it| it.latest_us)];
        let most_us = most_us.into_iter().flatten().max().unwrap_or(us);
        if us > most_us {
            return Err(format!(
                "{} went to {} dated {} µs after now.",
                envelope.event_id,
                truth.subscriptions[sent.subscription].id,
                us - most_us
            ));
        }
        Ok(())
    }

    fn arrive(&mut self, truth: &WorldTruth, sent: &DeliveredEvent) -> Result<(), String> {
        let envelope = &sent.event.envelope;
        let (us, session_id) = (envelope.timestamp.unix_us(), &envelope.session_id);
        let recorded = self.recorded.get(&envelope.event_id);
        let dated = DatedEvent {
            id: envelope.event_id.clone(),
            place: recorded.map_or(sent.place, |(it, _)| it.place),
            us,
            is_critical: sent.frame.is_critical,
            is_recorded: recorded.is_some_and(|(_, recorded_us)| *recorded_us == us),
        };
        let nothing = SubscriptionTimes::default();
        let times = self.subscriptions.get(&sent.subscription).unwrap_or(&nothing);
        let is_again = recorded.is_some() && times.ids.contains(&envelope.event_id);
        let is_late_ask = recorded
            .is_some_and(|(it, _)| it.is_ask && it.place < times.loose && it.at_us < sent.sent_us);
        // Text that waited for its boundary cannot be merged under terms that number every event.
        let is_numbered_text = matches!(sent.event.payload, Payload::OutputStreaming(_))
            && sent.terms.keeps_all()
            && recorded.is_some_and(|(it, _)| it.place < times.agreed);
        let subscription = &truth.subscriptions[sent.subscription];
        if !is_again && !is_late_ask && !is_numbered_text && !subscription.is_excused {
            let before = if self.is_agents(&envelope.event_id) {
                self.latest_before_agents(times, session_id, &dated)
            } else {
                self.latest_before_hubs(times, session_id)
            };
            if let Some(before) = before.filter(|before| us < before.us) {
                return Err(format!(
                    "{} of type {} arrived at {} dated {} µs before {}, which arrived earlier in {session_id}.",
                    envelope.event_id,
                    sent.event.event_type().as_str(),
                    subscription.id,
                    before.us - us,
                    before.id
                ));
            }
        }
        let times = self.subscriptions.entry(sent.subscription).or_default();
        times.ids.insert(envelope.event_id.clone());
        times.arrived.entry(session_id.clone()).or_default().push(dated);
        Ok(())
    }

    /// The event after which an event of the agent has to be dated, if any. It may be earlier than a critical event that
    /// overtook it, and than something that the hub had made before the event reached it.
    fn latest_before_agents<'a>(
        &self,
        times: &'a SubscriptionTimes,
        session_id: &SessionId,
        event: &DatedEvent,
    ) -> Option<&'a DatedEvent> {
        let arrived = times.arrived.get(session_id)?;
        let overtaking = arrived.iter().filter(|it| it.is_critical && it.place > event.place);
        let overtaking = overtaking.map(|it| it.us);
        let made = times.made.get(session_id).into_iter().flatten();
        let by_hub = self.sessions.get(session_id).into_iter().flat_map(|it| &it.by_hub);
        let made = made.chain(by_hub).filter(|(place, _)| *place < event.place).map(|(_, us)| *us);
        let excused_us = overtaking.chain(made).max();
        let latest = arrived.iter().max_by_key(|it| it.us);
        latest.filter(|latest| excused_us.is_none_or(|excused_us| excused_us < latest.us))
    }

    /// The event after which an event of the hub has to be dated, if any. When the hub is killed, it forgets times that
    /// are not stored, and which critical events it had sent ahead of their turn.
    fn latest_before_hubs<'a>(
        &self,
        times: &'a SubscriptionTimes,
        session_id: &SessionId,
    ) -> Option<&'a DatedEvent> {
        let is_known =
            |it: &&DatedEvent| it.place >= self.started_at || (it.is_recorded && !it.is_critical);
        let arrived = times.arrived.get(session_id)?;
        arrived.iter().filter(is_known).max_by_key(|it| it.us)
    }
}
