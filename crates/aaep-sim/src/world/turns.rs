//! What happens next: agents act, subscribers act, the network and the machine misbehave.

use aaep::handshake::SubscriptionClose;
use aaep::{Object, SubscriptionId};
use aaep_engine::EngineInput;
use aaep_engine::terms::Door;

use super::{ScheduledTurn, World, WorldSpeaker};
use crate::agent::SimulatedAgent;
use crate::check::WorldMoment;
use crate::rng::SeededRng;
use crate::subscriber::{SubscriberTemper, WIRE};
use crate::truth::SubscriberPresence;

impl World {
    pub(super) fn turn(&mut self, todo: ScheduledTurn) {
        match todo {
            ScheduledTurn::AgentActs(at) => self.agent_acts(at),
            ScheduledTurn::SubscriberActs(at) => self.subscriber_acts(at),
            ScheduledTurn::Reaches(who, input) => self.feed(Some(who), &input),
            ScheduledTurn::Arrives(at, epoch) => self.arrives(at, epoch),
            ScheduledTurn::Takes(subscriber, epoch) => self.takes(subscriber, epoch),
            ScheduledTurn::Notices(subscription, epoch) => self.notices(subscription, epoch),
            ScheduledTurn::Answers(at, token, resolution) => {
                self.agents[at].learn_outcome(&token, &resolution);
            }
            ScheduledTurn::Trouble => self.trouble(),
            ScheduledTurn::Calm => self.calm(),
        }
    }

    /// Runs one more session after everything else has ended.
    pub(super) fn one_more_session(&mut self) {
        self.has_closed = true;
        let unix_us = self.now().unix_us;
        let input = SimulatedAgent::last(&mut self.rng).start(unix_us, &mut self.rng);
        self.feed(Some(WorldSpeaker::Agent), &input);
    }

    fn agent_acts(&mut self, at: usize) {
        let unix_us = self.now().unix_us;
        let inputs = self.agents[at].act(unix_us, &mut self.rng, &mut self.truth);
        for input in inputs {
            self.agent_says(at, input);
        }
        if let Some(pause) = self.agents[at].pause_us(&mut self.rng) {
            self.later(pause, ScheduledTurn::AgentActs(at));
        }
    }

    /// Schedules the arrival of an agent's message at the hub, in order; sometimes it arrives twice.
    fn agent_says(&mut self, at: usize, input: EngineInput) {
        let pause = self.rng.between(100, 30_000);
        let arrives_us = self.agent_free_us[at].max(self.now_us + pause);
        self.agent_free_us[at] = arrives_us;
        if self.rng.chance(2) && matches!(input, EngineInput::Publish { .. }) {
            self.at(
                arrives_us,
                ScheduledTurn::Reaches(WorldSpeaker::Agent, Box::new(input.clone())),
            );
        }
        self.at(arrives_us, ScheduledTurn::Reaches(WorldSpeaker::Agent, Box::new(input)));
    }

    /// Schedules the arrival of a subscriber's message at the hub, in order.
    fn subscriber_says(&mut self, at: usize, after_us: u64, input: EngineInput) {
        let pause = after_us + self.rng.between(100, 50_000);
        let subscriber = &mut self.subscribers[at];
        let arrives_us = subscriber.link_free_us.max(self.now_us + pause);
        if after_us == 0 {
            subscriber.link_free_us = arrives_us;
        }
        self.at(arrives_us, ScheduledTurn::Reaches(WorldSpeaker::Subscriber(at), Box::new(input)));
    }

    fn subscriber_acts(&mut self, at: usize) {
        let subscriber = &self.subscribers[at];
        if subscriber.is_gone {
            return;
        }
        if !subscriber.is_connected && !subscriber.is_pending {
            self.subscribe_or_reconnect(at);
        } else if subscriber.is_connected && !self.is_calm {
            self.misbehave(at);
        }
        let is_settled = self.is_calm && self.subscribers[at].is_connected;
        if !is_settled {
            let pause = self.rng.between(200_000, 3_000_000);
            self.later(pause, ScheduledTurn::SubscriberActs(at));
        }
    }

    /// Lets a subscriber without a connection subscribe or reconnect.
    fn subscribe_or_reconnect(&mut self, at: usize) {
        let door = if self.rng.chance(3) { Door::AuthorizationDenied } else { Door::Open };
        let subscriber = &mut self.subscribers[at];
        subscriber.is_pending = true;
        let input = match &subscriber.subscription {
            Some((subscription, id))
                if self.truth.subscriptions[*subscription].presence != SubscriberPresence::Gone
                    && !self.rng.chance(10) =>
            {
                EngineInput::Reconnect {
                    principal: subscriber.principal,
                    subscription_id: id.clone(),
                    last_event_id: subscriber.last.clone(),
                }
            }
            _ => subscriber.subscribe(door),
        };
        self.subscriber_says(at, 0, input);
    }

    /// Lets a connected subscriber act according to its temper.
    fn misbehave(&mut self, at: usize) {
        let subscriber = &mut self.subscribers[at];
        let Some((_, id)) = subscriber.subscription.clone() else { return };
        match subscriber.temper {
            SubscriberTemper::Stalled => {
                subscriber.is_reading = !subscriber.is_reading;
                if subscriber.is_reading {
                    self.read_on(at);
                }
            }
            SubscriberTemper::Vanishing if self.rng.chance(12) => {
                subscriber.is_gone = true;
                let name = format!("{} vanishes.", subscriber.name);
                self.tell(&name);
                self.break_connection(at);
            }
            SubscriberTemper::Renegotiating if self.rng.chance(60) => {
                let input = self.subscribers[at].renegotiate(&id, &mut self.rng);
                self.subscriber_says(at, 0, input);
            }
            SubscriberTemper::Forging if self.rng.chance(15) => {
                if let Some(other) = self.others(at).first().cloned() {
                    self.close(at, other);
                }
            }
            _ if self.rng.chance(3) => self.close(at, id),
            _ => {}
        }
    }

    /// Lets a subscriber close a subscription, its own or another's.
    fn close(&mut self, at: usize, subscription_id: SubscriptionId) {
        let message = SubscriptionClose {
            subscription_id,
            reason_code: None,
            reason_message: None,
            correlation_id: None,
            extensions: None,
            other: Object::new(),
        };
        let principal = self.subscribers[at].principal;
        self.subscriber_says(at, 0, EngineInput::Close { principal, message: Box::new(message) });
    }

    /// The subscriptions of all other subscribers.
    fn others(&self, at: usize) -> Vec<SubscriptionId> {
        let theirs = self.subscribers.iter().enumerate().filter(|(other, _)| *other != at);
        theirs.filter_map(|(_, it)| it.subscription.as_ref().map(|(_, id)| id.clone())).collect()
    }

    /// Lets a subscriber read again, so that the events on its wire arrive.
    fn read_on(&mut self, at: usize) {
        let subscriber = &mut self.subscribers[at];
        let (count, epoch) = (subscriber.wire.len() as u64, subscriber.epoch);
        for number in 0..count {
            let arrives_us = self.now_us + (number + 1) * 1_000;
            self.subscribers[at].wire_free_us = arrives_us;
            self.at(arrives_us, ScheduledTurn::Arrives(at, epoch));
        }
    }

    fn arrives(&mut self, at: usize, epoch: u64) {
        let subscriber = &mut self.subscribers[at];
        if subscriber.epoch != epoch || !subscriber.is_reading {
            return;
        }
        let Some(sent) = subscriber.wire.pop_front() else { return };
        subscriber.last = Some(sent.frame.event_id.clone());
        self.show(&WorldMoment::Arrived(&sent));
        let others = self.others(at);
        let replies = self.subscribers[at].answer(&sent.event, &others, &mut self.rng);
        for (after_us, reply) in replies {
            self.subscriber_says(at, after_us, reply);
        }
        let subscriber = &mut self.subscribers[at];
        if subscriber.is_blocked && subscriber.wire.len() <= WIRE / 2 {
            subscriber.is_blocked = false;
            if let Some((subscription, _)) = subscriber.subscription {
                let key = self.truth.subscriptions[subscription].key;
                self.feed(None, &EngineInput::Unblock { subscriber: key });
            }
        }
    }

    /// Tells the hub that a wire has taken everything that it was sent. A full wire reports only once it is free.
    fn takes(&mut self, at: usize, epoch: u64) {
        let subscriber = &self.subscribers[at];
        if subscriber.epoch != epoch || !subscriber.is_connected || subscriber.is_blocked {
            return;
        }
        if let Some((subscription, _)) = subscriber.subscription {
            let key = self.truth.subscriptions[subscription].key;
            self.feed(None, &EngineInput::Unblock { subscriber: key });
        }
    }

    /// Breaks a connection. The hub notices a little later.
    fn break_connection(&mut self, at: usize) {
        let subscriber = &mut self.subscribers[at];
        if !subscriber.is_connected {
            return;
        }
        subscriber.lose_connection();
        let Some((subscription, _)) = subscriber.subscription else { return };
        let epoch = subscriber.epoch;
        self.show(&WorldMoment::Lost(subscription));
        let pause = self.rng.between(0, 1_500_000);
        self.later(pause, ScheduledTurn::Notices(subscription, epoch));
        if !self.subscribers[at].is_gone && self.is_calm {
            self.later(10_000, ScheduledTurn::SubscriberActs(at));
        }
    }

    fn notices(&mut self, subscription: usize, epoch: u64) {
        let it = &self.truth.subscriptions[subscription];
        let subscriber = &self.subscribers[it.subscriber];
        let is_back = subscriber.epoch != epoch
            && subscriber.subscription.as_ref().is_some_and(|(at, _)| *at == subscription);
        if !is_back && matches!(it.presence, SubscriberPresence::Here | SubscriberPresence::Blocked)
        {
            let key = it.key;
            self.feed(None, &EngineInput::Disconnect { subscriber: key });
        }
    }

    /// Lets something go wrong.
    fn trouble(&mut self) {
        if self.is_calm {
            return;
        }
        self.hog_begins();
        let subscriber = self.rng.size(0, self.subscribers.len() - 1);
        match self.rng.below(10) {
            0..=4 => {
                let name =
                    format!("The connection of {} breaks.", self.subscribers[subscriber].name);
                self.tell(&name);
                self.break_connection(subscriber);
            }
            5 | 6 if self.stored.is_killed => self.kill(),
            5 | 6 => {
                let seconds = i64::try_from(self.rng.below(7_200)).unwrap_or(0) - 3_600;
                self.unix_us += seconds * 1_000_000 / 10;
                self.tell(&format!(
                    "The clock of the machine jumps by {seconds} tenths of a second."
                ));
            }
            7 => {
                let at = self.rng.size(0, self.agents.len() - 1);
                let pause = self.rng.between(100_000, 4_000_000);
                self.agent_free_us[at] = self.agent_free_us[at].max(self.now_us + pause);
                self.tell(&format!("The connection of {} breaks.", self.agents[at].name));
            }
            8 => {
                self.tell("Everything loses its connection.");
                for at in 0..self.subscribers.len() {
                    self.break_connection(at);
                }
                for free_us in &mut self.agent_free_us {
                    *free_us = (*free_us).max(self.now_us + 2_000_000);
                }
            }
            9 => {
                if let Some(session_id) = self.stored.ended(&mut self.rng) {
                    self.feed(None, &EngineInput::DeleteSession { session_id: session_id.clone() });
                    self.stored.delete(&session_id);
                }
            }
            _ => {}
        }
        let pause = self.rng.between(300_000, 4_000_000);
        self.later(pause, ScheduledTurn::Trouble);
    }

    /// Lets the hog begin another session now and then; it never ends one. It has its own random
    /// numbers, so that other choices of the seed stay the same.
    fn hog_begins(&mut self) {
        let mut rng = SeededRng::new(self.counter);
        if rng.chance(40) {
            let input = self.hog.start(self.now().unix_us, &mut rng);
            self.feed(Some(WorldSpeaker::Agent), &input);
        }
    }

    /// Ends all trouble: all subscribers read and come back, and agents finish.
    fn calm(&mut self) {
        self.tell("From now on nothing goes wrong.");
        self.is_calm = true;
        self.agents.iter_mut().for_each(crate::agent::SimulatedAgent::stop);
        for at in 0..self.subscribers.len() {
            self.subscribers[at].is_reading = true;
            self.read_on(at);
            if !self.subscribers[at].is_gone {
                self.later(1_000, ScheduledTurn::SubscriberActs(at));
            }
        }
    }
}
