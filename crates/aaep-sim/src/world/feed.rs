//! Gives inputs to the hub, and carries its outputs to agents, subscribers and invariants.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use aaep::{Event, Message, Mode};
use aaep_engine::{EngineInput, Frame, Output, SubscriberKey};

use super::{ScheduledTurn, World, WorldSpeaker, words};
use crate::check::{DeliveredEvent, HubStep, WorldMoment};
use crate::subscriber::WIRE;
use crate::truth::{SubscriberPresence, UnderstoodTerms, WorldSubscription};

/// A frame as subscribers read it.
struct FrameReading {
    event: Rc<Event>,
    fault: Option<Rc<str>>,
}

impl World {
    /// Lets the hub handle an input.
    pub(super) fn feed(&mut self, speaker: Option<WorldSpeaker>, input: &EngineInput) {
        if self.failure.is_some() {
            return;
        }
        self.steps += 1;
        let now = self.now();
        let said = words::input(input, &self.truth, &self.subscribers);
        self.tell(&said);
        let outputs = self.hub.handle(now, input.clone());
        self.take(speaker, input, &outputs);
    }

    /// Shows the outputs of the hub to the invariants, and passes them on to agents and subscribers.
    pub(super) fn take(
        &mut self,
        speaker: Option<WorldSpeaker>,
        input: &EngineInput,
        outputs: &[Output],
    ) {
        let now = self.now();
        self.stored.store(outputs);
        let changed = self.change_presence(input, outputs);
        let mut delivered = Vec::new();
        let mut accepted = Vec::new();
        let mut ended = Vec::new();
        let mut lost = Vec::new();
        let mut readings = BTreeMap::new();
        let first_place = self.outputs;
        self.outputs += outputs.len() as u64;
        for (place, output) in (first_place..).zip(outputs) {
            match output {
                Output::Deliver { frame, to } => {
                    let read = readings.entry(Arc::as_ptr(frame)).or_insert_with(|| read(frame));
                    let Some(read) = read else { continue };
                    for key in to {
                        delivered.extend(self.delivered((*key, place), frame, read));
                    }
                }
                Output::Accepted { subscriber, .. } => {
                    accepted.extend(self.accept(speaker, input, *subscriber, output));
                }
                Output::Resumed { subscriber, is_complete } => {
                    let at = self.resumed(input, *subscriber, *is_complete);
                    lost.extend(at.filter(|_| !*is_complete));
                }
                Output::Rejected { subscriber: Some(subscriber), .. }
                | Output::Closed { subscriber } => {
                    ended.push(*subscriber);
                }
                _ => {}
            }
            if let Some(line) = words::output(output, &self.truth, &self.subscribers) {
                self.tell(&line);
            }
        }
        for subscriber in ended {
            self.end(subscriber);
        }
        for (at, _) in &accepted {
            let before = self.truth.subscriptions[*at].resumes;
            let was_excused = before.is_some_and(|it| self.truth.subscriptions[it].is_excused);
            self.truth.subscriptions[*at].is_excused |= was_excused;
        }
        let deadline = self.hub.deadline();
        let step = HubStep {
            now,
            input,
            outputs,
            first_place,
            delivered: &delivered,
            changed,
            deadline,
            memory_bytes: self.hub.memory_bytes(),
            accepted: &accepted,
            lost: &lost,
        };
        self.show(&WorldMoment::Handled(&step));
        self.route(speaker, input, outputs, delivered);
    }

    /// Notes how the input changes the presence of a subscription. Returns the subscription and its
    /// presence before.
    fn change_presence(
        &mut self,
        input: &EngineInput,
        outputs: &[Output],
    ) -> Option<(usize, SubscriberPresence)> {
        let is_unknown = outputs.contains(&Output::NoSuchSubscription);
        let (at, presence) = match input {
            EngineInput::Block { subscriber } | EngineInput::TakeBack { subscriber, .. } => {
                (self.truth.of(*subscriber)?.0, SubscriberPresence::Blocked)
            }
            EngineInput::Unblock { subscriber } => {
                (self.truth.of(*subscriber)?.0, SubscriberPresence::Here)
            }
            EngineInput::Disconnect { subscriber } => {
                (self.truth.of(*subscriber)?.0, SubscriberPresence::Away(self.now_us))
            }
            EngineInput::Reconnect { subscription_id, .. } if !is_unknown => {
                (self.truth.named(subscription_id)?.0, SubscriberPresence::Here)
            }
            _ => return None,
        };
        self.truth.subscriptions[at].has_stalled |= presence == SubscriberPresence::Blocked;
        let was = std::mem::replace(&mut self.truth.subscriptions[at].presence, presence);
        Some((at, was))
    }

    fn delivered(
        &self,
        (key, place): (SubscriberKey, u64),
        frame: &Arc<Frame>,
        read: &FrameReading,
    ) -> Option<DeliveredEvent> {
        let (subscription, it) = self.truth.of(key)?;
        Some(DeliveredEvent {
            subscription,
            frame: Arc::clone(frame),
            event: Rc::clone(&read.event),
            terms: Rc::clone(&it.terms),
            fault: read.fault.clone(),
            sent_us: self.now_us,
            place,
        })
    }

    /// Notes granted terms: those of a new subscription, or new terms of an existing one. Returns
    /// the subscription, and whether it is new.
    fn accept(
        &mut self,
        speaker: Option<WorldSpeaker>,
        input: &EngineInput,
        key: SubscriberKey,
        output: &Output,
    ) -> Option<(usize, bool)> {
        let Output::Accepted { message, .. } = output else { return None };
        let terms = Rc::new(UnderstoodTerms::of(&message.honored_capabilities));
        if let EngineInput::Renegotiate { change, .. } = input {
            let (at, _) = self.truth.of(key)?;
            let subscription = &mut self.truth.subscriptions[at];
            subscription.asked = subscription.asked.overlaid_with(&change.capabilities);
            subscription.changed_terms |= subscription.terms != terms;
            subscription.terms = terms;
            return Some((at, false));
        }
        let (
            Some(WorldSpeaker::Subscriber(subscriber)),
            EngineInput::Subscribe { request, resume, .. },
        ) = (speaker, input)
        else {
            return None;
        };
        let at = self.truth.subscriptions.len();
        let it = &mut self.subscribers[subscriber];
        let before = it.before.replace(at);
        it.subscription = Some((at, message.subscription_id.clone()));
        it.earlier = Some(message.subscription_id.clone());
        it.lose_connection();
        it.is_connected = true;
        let earlier = self.truth.by_key.insert(key, at);
        if let Some(earlier) = earlier {
            self.truth.subscriptions[earlier].presence = SubscriberPresence::Gone;
        }
        self.truth.subscriptions.push(WorldSubscription {
            subscriber,
            key,
            id: message.subscription_id.clone(),
            principal: it.principal,
            may_reply: it.may_reply,
            asked: request.capabilities.clone(),
            terms,
            presence: SubscriberPresence::Here,
            resumes: before.filter(|_| resume.is_some()),
            took_over: earlier.is_some(),
            changed_terms: false,
            has_stalled: false,
            is_excused: false,
        });
        Some((at, true))
    }

    /// Notes that a subscriber resumed, completely or not. Returns its subscription.
    fn resumed(
        &mut self,
        input: &EngineInput,
        key: SubscriberKey,
        is_complete: bool,
    ) -> Option<usize> {
        let (at, it) = self.truth.of(key)?;
        let EngineInput::Subscribe { .. } = input else { return Some(at) };
        let before = it.resumes.map(|before| &self.truth.subscriptions[before]);
        // Without the earlier subscription, the hub cannot know that there were other terms.
        let is_taken_over = it.took_over;
        let had_other_terms = before.is_some_and(|before| before.had_other_terms(it));
        let subscription = &mut self.truth.subscriptions[at];
        subscription.is_excused |= !is_taken_over && had_other_terms;
        subscription.changed_terms |= had_other_terms;
        if !is_complete {
            subscription.resumes = None;
        }
        Some(at)
    }

    /// Notes that a subscription ended.
    fn end(&mut self, key: SubscriberKey) {
        let Some(at) = self.truth.by_key.remove(&key) else { return };
        self.truth.subscriptions[at].presence = SubscriberPresence::Gone;
        let subscriber = &mut self.subscribers[self.truth.subscriptions[at].subscriber];
        if subscriber.subscription.as_ref().is_some_and(|(mine, _)| *mine == at) {
            subscriber.lose_connection();
        }
    }

    /// Carries the outputs of the hub to agents and onto wires.
    fn route(
        &mut self,
        speaker: Option<WorldSpeaker>,
        input: &EngineInput,
        outputs: &[Output],
        delivered: Vec<DeliveredEvent>,
    ) {
        if let Some(WorldSpeaker::Subscriber(at)) = speaker {
            let is_unknown = outputs.contains(&Output::NoSuchSubscription);
            let subscriber = &mut self.subscribers[at];
            match input {
                EngineInput::Reconnect { .. } if is_unknown => {
                    subscriber.is_pending = false;
                    subscriber.subscription = None;
                }
                EngineInput::Reconnect { .. } => {
                    subscriber.is_pending = false;
                    subscriber.lose_connection();
                    subscriber.is_connected = true;
                }
                EngineInput::Subscribe { .. } => subscriber.is_pending = false,
                _ => {}
            }
        }
        for it in delivered {
            let subscriber = self.truth.subscriptions[it.subscription].subscriber;
            let pause = self.rng.between(100, 40_000);
            let wire = &mut self.subscribers[subscriber];
            let is_current =
                wire.subscription.as_ref().is_some_and(|(at, _)| *at == it.subscription);
            if is_current && wire.is_connected {
                wire.wire.push_back(it);
                wire.wire_free_us = wire.wire_free_us.max(self.now_us + pause);
                let (at, epoch) = (wire.wire_free_us, wire.epoch);
                self.at(at, ScheduledTurn::Arrives(subscriber, epoch));
            }
        }
        for output in outputs {
            if let Output::More { subscriber } = output
                && let Some((_, it)) = self.truth.of(*subscriber)
            {
                let (at, epoch) = (it.subscriber, self.subscribers[it.subscriber].epoch);
                let pause = self.rng.between(50, 30_000);
                self.later(pause, ScheduledTurn::Takes(at, epoch));
            }
            if let Output::Settled { principal, reply_token, outcome, .. } = output {
                let is_it = |it: &crate::agent::SimulatedAgent| it.key == *principal;
                let Some(at) = self.agents.iter().position(is_it) else { continue };
                let pause = self.rng.between(500, 80_000);
                let answer = ScheduledTurn::Answers(at, reply_token.clone(), outcome.clone());
                self.later(pause, answer);
            }
        }
        self.block_full_wires();
    }

    /// Lets a full wire give back what it has not begun to send.
    fn give_back(&mut self, at: usize, subscriber: SubscriberKey) {
        let wire = &mut self.subscribers[at].wire;
        let kept = self.rng.size(1, wire.len().max(1));
        wire.truncate(kept);
        let Some(last) = wire.back() else { return };
        let last_event_id = last.frame.event_id.clone();
        self.feed(None, &EngineInput::TakeBack { subscriber, last_event_id });
    }

    fn block_full_wires(&mut self) {
        for at in 0..self.subscribers.len() {
            let subscriber = &mut self.subscribers[at];
            let Some((subscription, _)) = subscriber.subscription else { continue };
            if subscriber.is_connected && !subscriber.is_blocked && subscriber.wire.len() > WIRE {
                subscriber.is_blocked = true;
                let key = self.truth.subscriptions[subscription].key;
                self.feed(None, &EngineInput::Block { subscriber: key });
                if self.rng.chance(50) {
                    self.give_back(at, key);
                }
            }
        }
    }
}

/// Reads a frame strictly, or as far as a tolerant subscriber gets.
fn read(frame: &Arc<Frame>) -> Option<FrameReading> {
    let strict = aaep::read(&frame.json, Mode::Strict);
    if let Some(Message::Event(event)) = strict.message {
        return Some(FrameReading { event: Rc::from(event), fault: None });
    }
    let fault = strict.violations.first().map(ToString::to_string).unwrap_or_default();
    match aaep::read(&frame.json, Mode::Tolerant).message {
        Some(Message::Event(event)) => {
            Some(FrameReading { event: Rc::from(event), fault: Some(fault.into()) })
        }
        _ => None,
    }
}
