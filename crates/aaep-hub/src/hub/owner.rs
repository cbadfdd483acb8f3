//! The owner: the one task that touches the engine.
//!
//! It takes requests and reports one after the other, and turns the engine's output into changes to store and
//! effects to carry out afterwards. It never waits for a peer and never touches the disk.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use aaep::{ReplyToken, SubscriptionId};
use aaep_engine::{
    Author, Engine, EngineInput, Frame, Now, Output, PrincipalNumber, Record, SubscriberKey,
    Subscription,
};
use aaep_transport::WirePacket;
use aaep_transport::wire::{Command, ConnectionKey, WireHandle, WireSubscriber};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::answers::KeyedAnswers;
use super::ask_times::STORE_TIMES_EVERY;
use super::clock::Clock;
use super::connections::HubConnection;
use super::ears::WireInput;
use super::holders::NameHolders;
use super::keeper::{CommitBatch, DeferredEffect, DeletionWork};
use super::names::{PrincipalNumbers, TooManyNames};
use super::open_asks::HubOpenAsk;
use super::permission_note;
use super::posts::AgentPosts;
use super::refusals::{self, RefusedReplies};
use super::running_bytes::RunningBytes;
use super::settlement::Settlement;
use super::status::HubStatus;
use super::stored;
use crate::access::{Guard, Principal, Roster, SubscriptionPermit};
use crate::bounds::MAX_CHANGES;
use crate::name_reading::{CachedReadings, NameReading};
use crate::store::{Reader, StoreChange};

/// How many requests may wait for the owner. Beyond that, the caller waits.
pub(super) const MAX_WAITING_REQUESTS: usize = 1024;

/// How many requests and reports one turn takes before its batch is handed over.
const MAX_PER_TURN: usize = 256;

/// How many changes one turn collects before its batch is handed over. One input adds at most as many changes
/// as there may be subscriptions, and a few times as many as there may be open asks, so that all changes of a
/// turn fit into one commit.
const MAX_CHANGES_PER_TURN: usize = MAX_CHANGES / 6;

/// How long to wait before a batch that the keeper had no room for is offered again.
const HAND_OVER_RETRY: Duration = Duration::from_millis(100);

/// How often sessions are checked for having been silent for too long.
const SILENCE_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Work that needs the owner's state.
pub(super) type OwnerRequest = Box<dyn FnOnce(&mut EngineOwner) + Send>;

/// A subscription, as the wires know it.
pub(super) struct HubSubscriber {
    pub(super) subscription_id: SubscriptionId,
    pub(super) connection: Option<ConnectionKey>,
    /// Whether it was ever attached to a connection, so that it can have received an ask (ruling 14).
    pub(super) was_connected: bool,
    pub(super) permit: Option<SubscriptionPermit>,
    /// The name that a local program without a credential gave itself.
    pub(super) program: Option<String>,
}

pub(super) struct EngineOwner {
    pub(super) engine: Engine,
    pub(super) clock: Clock,
    /// The names of agents by the numbers that they had in earlier versions.
    pub(super) former_agents: HashMap<u64, String>,
    /// Which principal speaks under which name.
    pub(super) holders: NameHolders,
    /// Which principal people hear under which name.
    pub(super) spoken: NameHolders,
    /// How the names that were used lately read.
    pub(super) readings: CachedReadings,
    /// How the names of the hub itself read.
    pub(super) own_readings: Vec<NameReading>,
    /// Which local programs may answer, and which names are bound to which principals.
    pub(super) roster: Arc<Roster>,
    pub(super) principals: PrincipalNumbers,
    pub(super) next_order: u64,
    /// When the last event was recorded.
    pub(super) event_unix_us: Option<i64>,
    pub(super) asks: HashMap<ReplyToken, HubOpenAsk>,
    pub(super) subscribers: HashMap<SubscriberKey, HubSubscriber>,
    pub(super) connections: HashMap<ConnectionKey, HubConnection>,
    /// The legacy streams, by principal.
    pub(super) legacy: HashMap<PrincipalNumber, super::legacy::LegacyStreams>,
    pub(super) posts: AgentPosts,
    pub(super) answers: KeyedAnswers,
    pub(super) refusals: RefusedReplies,
    /// How many bytes of running sessions are stored.
    pub(super) running_bytes: RunningBytes,
    pub(super) guard: Guard,
    pub(super) reader: Reader,
    pub(super) wire: WireHandle,
    pub(super) agent_wire: WireHandle,
    pub(super) status: Arc<HubStatus>,
    pub(super) is_stopping: bool,
    pub(super) batch: CommitBatch,
    /// The channel for work that makes room while nothing can be stored.
    pub(super) delete: SyncSender<DeletionWork>,
    /// The subscriptions to store with this turn, each in its latest state.
    pub(super) remembered: HashMap<SubscriptionId, Box<Subscription>>,
    /// Whether a critical event came in this turn. The wires are told only once to let such events pass.
    pub(super) must_withdraw: bool,
    /// Subscribers whose connection takes nothing at the moment.
    pub(super) blocked: HashSet<SubscriberKey>,
    /// The note about its permissions for the program that is subscribing right now.
    pub(super) permission_note: Option<String>,
}

impl EngineOwner {
    /// Works until the hub stops, or until nothing can be stored any more.
    pub(super) async fn run(
        mut self,
        mut requests: mpsc::Receiver<OwnerRequest>,
        mut heard: mpsc::UnboundedReceiver<WireInput>,
        batches: SyncSender<CommitBatch>,
    ) {
        let mut silence = tokio::time::interval(SILENCE_CHECK_INTERVAL);
        silence.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let in_a_while = tokio::time::Instant::now() + STORE_TIMES_EVERY;
        let mut ask_times = tokio::time::interval_at(in_a_while, STORE_TIMES_EVERY);
        ask_times.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.is_stopping {
            let due = self.engine.deadline().into_iter().chain(self.refusals.deadline_us()).min();
            let due = due.map(|at| self.clock.instant(at).into());
            // Retries a batch that could not be handed over.
            let again =
                (!self.batch.is_empty()).then(|| tokio::time::Instant::now() + HAND_OVER_RETRY);
            let due = [due, again].into_iter().flatten().min();
            let sleep = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(heard) = heard.recv() => self.handle_wire_input(heard),
                request = requests.recv() => match request {
                    Some(request) => request(&mut self),
                    // No caller is left.
                    None => break,
                },
                () = sleep => {
                    self.handle(EngineInput::Tick, None);
                    self.count_refusals(false);
                }
                _ = silence.tick() => self.end_silent_sessions(),
                _ = ask_times.tick() => self.store_ask_times_again(),
            }
            for _ in 0..MAX_PER_TURN {
                if self.batch.changes.len() + self.remembered.len() > MAX_CHANGES_PER_TURN {
                    break;
                }
                let (one, other) = (heard.try_recv(), requests.try_recv());
                if one.is_err() && other.is_err() {
                    break;
                }
                if let Ok(heard) = one {
                    self.handle_wire_input(heard);
                }
                if let Ok(request) = other {
                    request(&mut self);
                }
            }
            if !self.hand_over(&batches) {
                return;
            }
        }
        self.count_refusals(true);
        self.handle(EngineInput::Stop, None);
        self.announce_shutdown();
        self.store_ask_times();
        self.hand_over(&batches);
        // Waits for room this time: what is not stored now is never stored.
        if !self.batch.is_empty() {
            let _ = batches.send(std::mem::take(&mut self.batch));
        }
    }

    /// Writes audit entries for the refused replies that were counted instead of written one by one.
    fn count_refusals(&mut self, is_end: bool) {
        let now = self.clock.now();
        for (principal, left_out) in self.refusals.take_counts(now.monotonic_us, is_end) {
            let who = principal.and_then(|it| self.principals.name(it)).map(str::to_owned);
            let entry = refusals::entry(now.unix_us, who, left_out);
            self.batch.changes.push(StoreChange::Audit(entry));
        }
    }

    /// Hands this turn's batch to the keeper. Returns whether the keeper still runs.
    fn hand_over(&mut self, batches: &SyncSender<CommitBatch>) -> bool {
        let metrics = &self.status.metrics;
        metrics.subscriptions(self.engine.subscriptions() as u64);
        metrics.audiences(self.engine.audiences() as u64);
        metrics.asks_open(self.engine.open_asks() as u64);
        metrics.subscribers_blocked(self.blocked.len() as u64);
        if std::mem::take(&mut self.must_withdraw) {
            self.withdraw_for_critical();
        }
        for (subscription_id, subscription) in self.remembered.drain() {
            self.batch.changes.push(StoreChange::Subscribed {
                subscription_id,
                principal: subscription.principal,
                may_reply: subscription.may_reply,
                json: stored::terms_to_json(&subscription, self.next_order).into(),
            });
        }
        if self.batch.is_empty() {
            return true;
        }
        let batch = std::mem::take(&mut self.batch);
        match batches.try_send(batch) {
            Ok(()) => true,
            // The disk takes nothing at the moment. As long as the batch is small, lookups can still be
            // answered.
            Err(TrySendError::Full(batch)) if batch.changes.len() <= MAX_CHANGES_PER_TURN => {
                self.batch = batch;
                true
            }
            Err(TrySendError::Full(batch)) => batches.send(batch).is_ok(),
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    /// Answers a caller once everything up to now is stored.
    pub(super) fn answer<T: Send + 'static>(&mut self, to: oneshot::Sender<T>, value: T) {
        let answer = Box::new(move || {
            // A caller that no longer waits does not need the answer.
            let _ = to.send(value);
        });
        self.batch.effects.push(DeferredEffect::Answer(answer));
    }

    /// Sends a command to the subscriber wire.
    pub(super) fn tell_wire(&mut self, command: Command) {
        self.batch.effects.push(DeferredEffect::Wire(command));
    }

    /// Passes an input to the engine and carries out the output. Returns the part of the output that answers
    /// the input. `on` is the connection on which the input came, if any.
    pub(super) fn handle(&mut self, input: EngineInput, on: Option<ConnectionKey>) -> Vec<Output> {
        let now = self.clock.now();
        let outputs = self.engine.handle(now, input);
        self.carry_out(now, outputs, on)
    }

    /// Carries out the engine's output, and returns the part that answers the input.
    pub(super) fn carry_out(
        &mut self,
        now: Now,
        outputs: Vec<Output>,
        on: Option<ConnectionKey>,
    ) -> Vec<Output> {
        let mut answers = Vec::new();
        let mut last: Option<(Arc<Frame>, Arc<WirePacket>)> = None;
        for output in outputs {
            match output {
                Output::Record(record) => self.record_event(record),
                Output::Time(time) => self.record_ask_time(time),
                Output::Remember(subscription) => {
                    self.remembered.insert(subscription.subscription_id.clone(), subscription);
                }
                Output::Forget { subscription_id } => {
                    self.remembered.remove(&subscription_id);
                    self.batch.changes.push(StoreChange::Unsubscribed { subscription_id });
                }
                Output::Recovered { subscriber, subscription_id } => {
                    self.register_subscriber(subscriber, subscription_id.clone(), None);
                    // The hub does not know what the subscriber heard before the stop; it may have received an
                    // ask.
                    let whose = self.engine.subscription(&subscription_id).map(|it| it.1);
                    let program =
                        whose.and_then(|whose| self.program_name(whose)).map(str::to_owned);
                    if let Some(subscriber) = self.subscribers.get_mut(&subscriber) {
                        subscriber.was_connected = true;
                        subscriber.program = program;
                    }
                }
                Output::Deliver { frame, to } => {
                    let packet = match &last {
                        Some((same, packet)) if Arc::ptr_eq(same, &frame) => Arc::clone(packet),
                        _ => packet(&frame),
                    };
                    last = Some((Arc::clone(&frame), Arc::clone(&packet)));
                    self.deliver(&frame, packet, to);
                }
                Output::More { subscriber } => {
                    self.tell_wire(Command::TellWhenWritten {
                        subscriber: WireSubscriber(subscriber.0),
                    });
                }
                Output::Accepted { subscriber, mut message } => {
                    permission_note::add(self.permission_note.take(), &mut message);
                    self.register_subscriber(subscriber, message.subscription_id.clone(), on);
                    if let Some(connection) = on {
                        let json = serde_json::to_vec(&message).unwrap_or_default();
                        let packet = Arc::new(WirePacket::new("", json));
                        self.tell_wire(Command::Send { connection, packet });
                        self.tell_wire(Command::Attach {
                            connection,
                            subscriber: WireSubscriber(subscriber.0),
                        });
                    }
                    answers.push(Output::Accepted { subscriber, message });
                }
                Output::Closed { subscriber } => {
                    self.remove_subscriber(subscriber, on);
                    answers.push(Output::Closed { subscriber });
                }
                Output::Ended { subscriber, message } => {
                    let on = self.subscribers.get(&subscriber).and_then(|it| it.connection);
                    if let Some(connection) = on {
                        self.send(connection, &message);
                    }
                }
                Output::Rejected { subscriber: Some(subscriber), message } => {
                    self.remove_subscriber(subscriber, on);
                    answers.push(Output::Rejected { subscriber: Some(subscriber), message });
                }
                Output::Asked { principal, reply_token, event, told } => {
                    self.open_ask(now, principal, reply_token, &event, told);
                }
                Output::Settled {
                    reply_token, outcome, decided_by, response, answered_by, ..
                } => {
                    let settlement = Settlement { reply_token, outcome, decided_by, response };
                    self.settle(now, &settlement, answered_by);
                }
                Output::Audit(audit) => self.audit(now, audit),
                answer => answers.push(answer),
            }
        }
        answers
    }

    fn record_event(&mut self, record: Record) {
        let Record { principal, event, json, author, unix_us, .. } = record;
        let is_critical = event.is_critical();
        let session_id = event.envelope.session_id.clone();
        let order = self.next_order;
        self.next_order += 1;
        self.running_bytes.add(&session_id, principal, json.len() as u64);
        self.batch.changes.push(StoreChange::Event {
            order,
            session_id: session_id.clone(),
            event_id: event.envelope.event_id.clone(),
            agent: 0,
            principal,
            by_hub: author == Author::Hub,
            unix_us,
            json,
        });
        self.event_unix_us = Some(unix_us);
        if is_critical {
            self.batch.critical_since.get_or_insert_with(Instant::now);
            self.must_withdraw = true;
        }
        if self.engine.has_ended(&session_id) {
            self.running_bytes.end(&session_id);
            self.batch.changes.push(StoreChange::SessionEnded { session_id, unix_us });
        }
    }

    fn deliver(&mut self, frame: &Frame, packet: Arc<WirePacket>, to: Vec<SubscriberKey>) {
        self.batch.deliveries += to.len() as u64;
        if frame.is_critical {
            self.batch.critical_since.get_or_insert_with(Instant::now);
        }
        let to = to.into_iter().map(|SubscriberKey(number)| WireSubscriber(number)).collect();
        self.tell_wire(Command::Deliver { packet, to });
    }

    /// Registers a subscriber with its subscription.
    fn register_subscriber(
        &mut self,
        subscriber: SubscriberKey,
        subscription_id: SubscriptionId,
        on: Option<ConnectionKey>,
    ) {
        let known = self.subscribers.entry(subscriber).or_insert_with(|| HubSubscriber {
            subscription_id: subscription_id.clone(),
            connection: None,
            was_connected: false,
            permit: None,
            program: None,
        });
        known.subscription_id = subscription_id;
        let Some(key) = on else { return };
        known.was_connected = true;
        let before = known.connection.replace(key).filter(|before| *before != key);
        if let Some(connection) = self.connections.get_mut(&key) {
            connection.subscriber = Some(subscriber);
        }
        if let Some(before) = before {
            self.close_former_connection(subscriber, before);
        }
    }

    /// Removes a subscription that is over. Its connection closes too, unless the end was requested on it.
    fn remove_subscriber(&mut self, subscriber: SubscriberKey, on: Option<ConnectionKey>) {
        self.set_blocked(subscriber, false);
        let Some(gone) = self.subscribers.remove(&subscriber) else { return };
        let Some(connection) = gone.connection else { return };
        let belongs =
            self.connections.get(&connection).is_some_and(|it| it.subscriber == Some(subscriber));
        if !belongs {
            return;
        }
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.subscriber = None;
        }
        if on == Some(connection) {
            self.tell_wire(Command::Detach { subscriber: WireSubscriber(subscriber.0) });
        } else {
            self.close(connection, 4000, "The subscription is over.");
        }
    }

    /// The principal's number.
    pub(super) fn principal_number(
        &mut self,
        principal: &Principal,
    ) -> Result<PrincipalNumber, TooManyNames> {
        let store = |key, name| StoreChange::Principal { key, name };
        self.principals.key(&principal.id, &mut self.batch.changes, store)
    }

    /// The number of the principal that this one acts as. A local program that was allowed to answer is one
    /// principal when it listens and another when it publishes, so that it can answer agents that run as the
    /// same user (ruling 37).
    pub(super) fn acting_number(
        &mut self,
        principal: &Principal,
        subscription_id: Option<&SubscriptionId>,
    ) -> Result<PrincipalNumber, TooManyNames> {
        let number = self.principal_number(principal)?;
        let whose = subscription_id.and_then(|id| self.engine.subscription(id)).map(|it| it.1);
        let whose = whose.filter(|_| principal.is_local_program());
        Ok(whose.filter(|whose| self.is_allowed_program(*whose)).unwrap_or(number))
    }

    /// The name of the local program with this number, if it was allowed to answer when it subscribed.
    pub(super) fn program_name(&self, number: PrincipalNumber) -> Option<&str> {
        self.principals.name(number).and_then(Principal::program_of_id)
    }

    /// Whether this is the number of a local program that may answer now.
    pub(super) fn is_allowed_program(&self, number: PrincipalNumber) -> bool {
        self.program_name(number).is_some_and(|program| self.roster.may_answer(program))
    }

    /// The numbers of all principals that stand for the same person.
    pub(super) fn numbers_of_person(&self, principal: &Principal) -> HashSet<PrincipalNumber> {
        self.principals.numbers_where(|id| principal.is_same_person(id)).collect()
    }
}

/// Makes a packet for the wires from a frame, without copying it.
fn packet(frame: &Arc<Frame>) -> Arc<WirePacket> {
    struct FrameJson(Arc<Frame>);
    impl AsRef<[u8]> for FrameJson {
        fn as_ref(&self) -> &[u8] {
            &self.0.json
        }
    }
    let json = Bytes::from_owner(FrameJson(Arc::clone(frame)));
    Arc::new(WirePacket::new(frame.event_id.as_str(), json).critical(frame.is_critical))
}
