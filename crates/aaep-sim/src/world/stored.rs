//! What a hub stores while it runs, and its recovery after a kill or an orderly stop.
//!
//! In worlds in which the hub is killed, some of its ends are orderly stops. In these worlds the machine's clock jumps while the hub is down, and at no other time.

use std::collections::BTreeMap;

use aaep::{CoreType, Event, ReplyToken, SessionId, SubscriptionId};
use aaep_engine::{
    AskTimeRecord, Engine, EngineInput, Output, Record, RecoveredState, Subscription,
};

use super::World;
use crate::check::WorldMoment;
use crate::hub;
use crate::rng::SeededRng;
use crate::truth::SubscriberPresence;

/// Everything that the hub asked to be stored.
pub(super) struct WorldStorage {
    seed: u64,
    max_events_per_second: Option<u64>,
    /// Whether the hub of this world is killed now and then.
    pub(super) is_killed: bool,
    starts: u8,
    records: Vec<Record>,
    times: Vec<AskTimeRecord>,
    used_tokens: Vec<ReplyToken>,
    subscriptions: BTreeMap<SubscriptionId, Subscription>,
}

impl WorldStorage {
    pub(super) fn new(seed: u64, max_events_per_second: Option<u64>, is_killed: bool) -> Self {
        WorldStorage {
            seed,
            max_events_per_second,
            is_killed,
            starts: 0,
            records: Vec::new(),
            times: Vec::new(),
            used_tokens: Vec::new(),
            subscriptions: BTreeMap::new(),
        }
    }

    /// Whether the next end of the hub is an orderly stop. This takes no random number, so that other choices of the
    /// seed stay the same.
    fn stops_in_order(&self) -> bool {
        (self.seed + u64::from(self.starts)) % 3 == 2
    }

    /// Carries out the outputs that ask for storage.
    pub(super) fn store(&mut self, outputs: &[Output]) {
        for output in outputs {
            match output {
                Output::Record(record) => {
                    self.records.push(record.clone());
                    self.subscriptions.values_mut().for_each(|it| it.caught_up = None);
                }
                Output::Time(time) => self.times.push(time.clone()),
                Output::Remember(it) => {
                    self.subscriptions.insert(it.subscription_id.clone(), (**it).clone());
                }
                Output::Forget { subscription_id } => {
                    self.subscriptions.remove(subscription_id);
                }
                Output::Settled { reply_token, .. } => {
                    self.used_tokens.push(reply_token.clone());
                }
                _ => {}
            }
        }
    }

    /// Deletes an ended session.
    pub(super) fn delete(&mut self, session_id: &SessionId) {
        self.records.retain(|record| record.event.envelope.session_id != *session_id);
    }

    /// A random ended session, if there is one.
    pub(super) fn ended(&self, rng: &mut SeededRng) -> Option<SessionId> {
        let is_end = |event: &Event| event.event_type().core().is_some_and(CoreType::is_terminal);
        let ended: Vec<&Event> =
            self.records.iter().map(|it| &*it.event).filter(|it| is_end(it)).collect();
        let at = rng.size(0, ended.len().checked_sub(1)?);
        Some(ended[at].envelope.session_id.clone())
    }
}

impl World {
    /// Kills the hub, or stops it in an orderly way, and starts it again a while later.
    pub(super) fn kill(&mut self) {
        if self.stored.stops_in_order() {
            self.tell("The hub stops.");
            self.feed(None, &EngineInput::Stop);
        } else {
            self.tell("The hub is killed.");
        }
        for subscriber in &mut self.subscribers {
            subscriber.lose_connection();
            subscriber.is_pending = false;
        }
        // The pause is so long that no second has events from both before and after it.
        self.now_us += self.rng.between(1_100_000, 6_000_000);
        let clock_jumped = self.rng.chance(40);
        if clock_jumped {
            let seconds = i64::try_from(self.rng.below(7_200)).unwrap_or(0) - 3_600;
            self.unix_us += seconds * 1_000_000;
            self.tell(&format!("The clock of the machine jumps by {seconds} seconds meanwhile."));
        }
        let stored = &mut self.stored;
        stored.starts += 1;
        let config = hub::config(stored.seed, stored.starts, stored.max_events_per_second);
        let recovered = RecoveredState {
            records: stored.records.clone(),
            times: stored.times.clone(),
            used_tokens: stored.used_tokens.clone(),
            subscriptions: stored.subscriptions.values().cloned().collect(),
            is_incomplete: false,
        };
        let (engine, outputs) = Engine::recover(config, self.now(), recovered);
        let outputs = self.hub.restart(self.now(), engine, outputs);
        self.show(&WorldMoment::Restarted { clock_jumped });
        self.find_again(&outputs);
        self.tell("The hub is there again.");
        self.agents.iter_mut().for_each(crate::agent::SimulatedAgent::try_again);
        self.take(None, &EngineInput::Tick, &outputs);
    }

    /// Finds the subscriptions that survived, and their new keys.
    fn find_again(&mut self, outputs: &[Output]) {
        let before: Vec<usize> = std::mem::take(&mut self.truth.by_key).into_values().collect();
        for at in before {
            let now_us = self.now_us;
            let it = &mut self.truth.subscriptions[at];
            it.presence = SubscriberPresence::Gone;
            // The hub does not store under which terms an event was delivered.
            it.is_excused |= it.changed_terms;
            let key = outputs.iter().find_map(|output| match output {
                Output::Recovered { subscriber, subscription_id } if *subscription_id == it.id => {
                    Some(*subscriber)
                }
                _ => None,
            });
            if let Some(key) = key {
                it.key = key;
                it.presence = SubscriberPresence::Away(now_us);
                self.truth.by_key.insert(key, at);
            }
        }
    }
}
