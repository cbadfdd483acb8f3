//! The owner: the one task that touches the engine.
//!
//! It takes requests and reports one after the other, and turns what the engine says into changes to be
//! stored and effects to be carried out afterwards. It never waits for a peer and never touches the disk.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use aaep::extension::DecidedBy;
use aaep::{Event, ReplyToken, SubscriptionId};
use aaep_engine::{
    Audit, Author, Engine, Frame, Input, Now, Output, Record, ReplyRefusal, Resolution,
    SubscriberKey, Subscription,
};
use aaep_transport::Packet;
use aaep_transport::wire::{Command, ConnectionKey, WireHandle};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::answers::Answers;
use super::clock::Clock;
use super::connections::Connection;
use super::ears::Heard;
use super::entry::{self, About};
use super::holders::NameHolders;
use super::keeper::{Batch, Deletion, Effect};
use super::names::{Names, TooManyNames};
use super::permission_note;
use super::posts::Posts;
use super::refusals::{self, Refusals};
use super::running_bytes::RunningBytes;
use super::settlement::{Answered, Asked, Settlement};
use super::status::Status;
use super::stored;
use crate::access::{Guard, Principal, Roster, SubscriptionPermit};
use crate::bounds::MAX_CHANGES;
use crate::store::{Change, Reader, StoredTime};

/// How many requests may wait for the owner. Past it, whoever asks waits.
pub(super) const MAX_WAITING_REQUESTS: usize = 1024;

/// How many requests and reports are taken before what they brought is handed over.
const MAX_PER_TURN: usize = 256;

/// How many changes a turn brings before they are handed over. One input brings at most as many as there may be
/// subscriptions and a few times as many as there may be open questions, so that all of a turn fit into one commit.
const MAX_CHANGES_PER_TURN: usize = MAX_CHANGES / 4;

/// After how long what the keeper had no room for is offered to it again.
const HAND_OVER_AGAIN: Duration = Duration::from_millis(100);

/// How many may wait for the outcome of one question at once. The oldest is sent home first.
const MAX_WAITING_FOR_ASK: usize = 16;

/// How often it is looked whether sessions have been silent for too long.
const LOOK_FOR_SILENCE_EVERY: Duration = Duration::from_secs(30);

/// Something to be done with what the owner owns.
pub(super) type Request = Box<dyn FnOnce(&mut Owner) + Send>;

/// A question that waits for its answer.
pub(super) struct OpenAsk {
    pub(super) asked: Asked,
    pub(super) is_stored: bool,
    pub(super) ends_unix_us: Option<i64>,
    /// When it was asked, by our clock.
    pub(super) asked_unix_us: i64,
    /// How many questions of the same principal were open when it was asked.
    pub(super) round: u64,
    /// Who waits for the outcome.
    pub(super) waiting: Vec<oneshot::Sender<Settlement>>,
    /// The agent's socket on which it was asked.
    pub(super) connection: Option<ConnectionKey>,
}

/// A subscription, as the wires know it.
pub(super) struct Subscriber {
    pub(super) subscription_id: SubscriptionId,
    pub(super) connection: Option<ConnectionKey>,
    /// Whether it was ever on a connection, so that it can have been asked something (ruling 14).
    pub(super) has_heard: bool,
    pub(super) permit: Option<SubscriptionPermit>,
    /// What a local program without a credential calls itself.
    pub(super) program: Option<String>,
}

pub(super) struct Owner {
    pub(super) engine: Engine,
    pub(super) clock: Clock,
    /// The names of agents by the numbers that they had in earlier versions.
    pub(super) agents_before: HashMap<u64, String>,
    /// Which principal speaks under which name.
    pub(super) holders: NameHolders,
    /// Which local programs may answer, and which names are bound to whom.
    pub(super) roster: Arc<Roster>,
    pub(super) principals: Names,
    pub(super) next_order: u64,
    pub(super) asks: HashMap<ReplyToken, OpenAsk>,
    /// The reply that counted last, until the question is settled that it answers.
    pub(super) counted: Option<(ReplyToken, Answered)>,
    pub(super) subscribers: HashMap<SubscriberKey, Subscriber>,
    pub(super) connections: HashMap<ConnectionKey, Connection>,
    /// The newest subscription of the legacy paths, by principal.
    pub(super) legacy: HashMap<u64, super::legacy::Legacy>,
    pub(super) posts: Posts,
    pub(super) answers: Answers,
    pub(super) refusals: Refusals,
    /// How many bytes of running sessions are stored.
    pub(super) running_bytes: RunningBytes,
    pub(super) guard: Guard,
    pub(super) reader: Reader,
    pub(super) wire: WireHandle,
    pub(super) agent_wire: WireHandle,
    pub(super) status: Arc<Status>,
    pub(super) is_stopping: bool,
    pub(super) batch: Batch,
    /// For what makes room while nothing can be stored.
    pub(super) delete: SyncSender<Deletion>,
    /// The subscriptions that are to be stored with this turn, each as it is by now.
    pub(super) remembered: HashMap<SubscriptionId, Box<Subscription>>,
    /// Whether something urgent came in this turn. However much did, wires are told to make way for it once.
    pub(super) must_withdraw: bool,
    /// Those whose connection takes nothing for now.
    pub(super) blocked: HashSet<SubscriberKey>,
    /// What the program that subscribes now has to know of what it may do.
    pub(super) permission_note: Option<String>,
}

impl Owner {
    /// Works until it is stopped, or until nothing can be stored any more.
    pub(super) async fn run(
        mut self,
        mut requests: mpsc::Receiver<Request>,
        mut heard: mpsc::UnboundedReceiver<Heard>,
        batches: SyncSender<Batch>,
    ) {
        let mut silence = tokio::time::interval(LOOK_FOR_SILENCE_EVERY);
        silence.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.is_stopping {
            let due = self.engine.deadline().into_iter().chain(self.refusals.deadline_us()).min();
            let due = due.map(|at| self.clock.instant(at).into());
            // What could not be handed over is tried again.
            let again =
                (!self.batch.is_empty()).then(|| tokio::time::Instant::now() + HAND_OVER_AGAIN);
            let due = [due, again].into_iter().flatten().min();
            let sleep = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(heard) = heard.recv() => self.hear(heard),
                request = requests.recv() => match request {
                    Some(request) => request(&mut self),
                    // Nobody can ask for anything any more.
                    None => break,
                },
                () = sleep => {
                    self.handle(Input::Tick, None);
                    self.count_refusals(false);
                }
                _ = silence.tick() => self.end_silent_sessions(),
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
                    self.hear(heard);
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
        self.say_goodbye();
        self.hand_over(&batches);
        // Whatever is left is stored before it ends, or never.
        if !self.batch.is_empty() {
            let _ = batches.send(std::mem::take(&mut self.batch));
        }
    }

    /// Writes how many refused replies were not written one by one.
    fn count_refusals(&mut self, is_end: bool) {
        let now = self.clock.now();
        for (principal, left_out) in self.refusals.take_counts(now.monotonic_us, is_end) {
            let who = principal.and_then(|it| self.principals.name(it)).map(str::to_owned);
            let entry = refusals::entry(now.unix_us, who, left_out);
            self.batch.changes.push(Change::Audit(entry));
        }
    }

    /// Gives what this turn brought to the keeper. Says whether it is there.
    fn hand_over(&mut self, batches: &SyncSender<Batch>) -> bool {
        let metrics = &self.status.metrics;
        metrics.subscriptions(self.engine.subscriptions() as u64);
        metrics.audiences(self.engine.audiences() as u64);
        metrics.asks_open(self.engine.open_asks() as u64);
        metrics.subscribers_blocked(self.blocked.len() as u64);
        if std::mem::take(&mut self.must_withdraw) {
            self.withdraw_for_urgent();
        }
        for (subscription_id, subscription) in self.remembered.drain() {
            self.batch.changes.push(Change::Subscribed {
                subscription_id,
                principal: subscription.principal,
                may_reply: subscription.may_reply,
                json: stored::terms_to_json(&subscription).into(),
            });
        }
        if self.batch.is_empty() {
            return true;
        }
        let batch = std::mem::take(&mut self.batch);
        match batches.try_send(batch) {
            Ok(()) => true,
            // The disk takes nothing for now. As long as little waits, whoever only looks is still answered.
            Err(TrySendError::Full(batch)) if batch.changes.len() <= MAX_CHANGES_PER_TURN => {
                self.batch = batch;
                true
            }
            Err(TrySendError::Full(batch)) => batches.send(batch).is_ok(),
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    /// Answers someone who waits, once everything up to now is stored.
    pub(super) fn answer<T: Send + 'static>(&mut self, to: oneshot::Sender<T>, value: T) {
        let answer = Box::new(move || {
            // Whoever no longer waits does not need it.
            let _ = to.send(value);
        });
        self.batch.effects.push(Effect::Answer(answer));
    }

    /// Tells the wire of the subscribers something.
    pub(super) fn tell_wire(&mut self, command: Command) {
        self.batch.effects.push(Effect::Wire(command));
    }

    /// Lets the engine handle something. What the engine answers to it is given back; all the rest is
    /// done. `on` is the connection on which it came, if there is one.
    pub(super) fn handle(&mut self, input: Input, on: Option<ConnectionKey>) -> Vec<Output> {
        let now = self.clock.now();
        let outputs = self.engine.handle(now, input);
        self.carry_out(now, outputs, on)
    }

    /// Does what the engine says.
    pub(super) fn carry_out(
        &mut self,
        now: Now,
        outputs: Vec<Output>,
        on: Option<ConnectionKey>,
    ) -> Vec<Output> {
        let mut answers = Vec::new();
        let mut last: Option<(Arc<Frame>, Arc<Packet>)> = None;
        let mut asking: Option<Arc<Event>> = None;
        for output in &outputs {
            if let Output::Record(record) = output
                && entry::question(&record.event).is_some()
            {
                asking = Some(Arc::clone(&record.event));
            }
        }
        for output in outputs {
            match output {
                Output::Record(record) => self.record(record),
                Output::Time(time) => self.time(time),
                Output::Remember(subscription) => {
                    self.remembered.insert(subscription.subscription_id.clone(), subscription);
                }
                Output::Forget { subscription_id } => {
                    self.remembered.remove(&subscription_id);
                    self.batch.changes.push(Change::Unsubscribed { subscription_id });
                }
                Output::Recovered { subscriber, subscription_id } => {
                    self.listen(subscriber, subscription_id.clone(), None);
                    // What it heard before the stop is not known; it may have been asked.
                    let whose = self.engine.subscription(&subscription_id).map(|it| it.1);
                    let program = whose.and_then(|whose| self.program(whose)).map(str::to_owned);
                    if let Some(subscriber) = self.subscribers.get_mut(&subscriber) {
                        subscriber.has_heard = true;
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
                    self.tell_wire(Command::TellWhenWritten { subscriber });
                }
                Output::Accepted { subscriber, mut message } => {
                    permission_note::add(self.permission_note.take(), &mut message);
                    self.listen(subscriber, message.subscription_id.clone(), on);
                    if let Some(connection) = on {
                        let json = serde_json::to_vec(&message).unwrap_or_default();
                        let packet = Arc::new(Packet::new("", json));
                        self.tell_wire(Command::Send { connection, packet });
                        self.tell_wire(Command::Attach { connection, subscriber });
                    }
                    answers.push(Output::Accepted { subscriber, message });
                }
                Output::Closed { subscriber } => {
                    self.leave(subscriber, on);
                    answers.push(Output::Closed { subscriber });
                }
                Output::Ended { subscriber, message } => {
                    let on = self.subscribers.get(&subscriber).and_then(|it| it.connection);
                    if let Some(connection) = on {
                        self.send(connection, &message);
                    }
                }
                Output::Rejected { subscriber: Some(subscriber), message } => {
                    self.leave(subscriber, on);
                    answers.push(Output::Rejected { subscriber: Some(subscriber), message });
                }
                Output::Resolved { reply_token, resolution, decided_by, .. } => {
                    self.settle(now, &reply_token, &resolution, decided_by);
                }
                Output::Audit(audit) => self.audit(now, audit, asking.as_deref()),
                answer => answers.push(answer),
            }
        }
        answers
    }

    fn record(&mut self, record: Record) {
        let Record { principal, event, json, is_urgent, author, unix_us, .. } = record;
        let session_id = event.envelope.session_id.clone();
        let order = self.next_order;
        self.next_order += 1;
        self.running_bytes.add(&session_id, principal, json.len() as u64);
        self.batch.changes.push(Change::Event {
            order,
            session_id: session_id.clone(),
            event_id: event.envelope.event_id.clone(),
            agent: 0,
            principal,
            by_hub: author == Author::Hub,
            is_urgent,
            unix_us,
            json,
        });
        if is_urgent {
            self.batch.urgent_since.get_or_insert_with(Instant::now);
            self.must_withdraw = true;
        }
        if self.engine.has_ended(&session_id) {
            self.running_bytes.end(&session_id);
            self.batch.changes.push(Change::SessionEnded { session_id, unix_us });
        }
    }

    fn time(&mut self, record: aaep_engine::AskTimeRecord) {
        let reply_token = record.reply_token;
        let time = StoredTime {
            ends_unix_us: record.ends_unix_us,
            left_us: record.left_us,
            limit_unix_us: record.limit_unix_us,
            changes: record.changes,
            stored_unix_us: record.stored_unix_us,
            event_unix_us: record.event_unix_us,
        };
        let Some(ask) = self.asks.get_mut(&reply_token) else { return };
        ask.ends_unix_us = time.ends_unix_us;
        let change = if std::mem::replace(&mut ask.is_stored, true) {
            Change::AskMoved { reply_token, time }
        } else {
            let session_id = ask.asked.session_id.clone();
            Change::AskOpened { reply_token, session_id, time }
        };
        self.batch.changes.push(change);
    }

    fn deliver(&mut self, frame: &Frame, packet: Arc<Packet>, to: Vec<SubscriberKey>) {
        self.batch.deliveries += to.len() as u64;
        if frame.is_critical {
            self.batch.urgent_since.get_or_insert_with(Instant::now);
        }
        self.tell_wire(Command::Deliver { packet, to });
    }

    /// A subscriber has this subscription from now on.
    fn listen(
        &mut self,
        subscriber: SubscriberKey,
        subscription_id: SubscriptionId,
        on: Option<ConnectionKey>,
    ) {
        let known = self.subscribers.entry(subscriber).or_insert_with(|| Subscriber {
            subscription_id: subscription_id.clone(),
            connection: None,
            has_heard: false,
            permit: None,
            program: None,
        });
        known.subscription_id = subscription_id;
        let Some(key) = on else { return };
        known.has_heard = true;
        let before = known.connection.replace(key).filter(|before| *before != key);
        if let Some(connection) = self.connections.get_mut(&key) {
            connection.subscriber = Some(subscriber);
        }
        if let Some(before) = before {
            self.let_go(subscriber, before);
        }
    }

    /// A subscription is over. Its connection ends with it, unless it is the one on which that was said.
    fn leave(&mut self, subscriber: SubscriberKey, on: Option<ConnectionKey>) {
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
            self.tell_wire(Command::Detach { subscriber });
        } else {
            self.close(connection, 4000, "The subscription is over.");
        }
    }

    fn settle(
        &mut self,
        now: Now,
        reply_token: &ReplyToken,
        resolution: &Resolution,
        decided_by: DecidedBy,
    ) {
        let is_reply = decided_by == DecidedBy::Reply;
        let counted = self.counted.take().filter(|(token, _)| is_reply && token == reply_token);
        let answered = counted.map(|(_, answered)| answered);
        let settlement = Settlement::new(reply_token.clone(), resolution, decided_by);
        self.status.metrics.settled(settlement.word());
        let Some(ask) = self.asks.remove(reply_token) else { return };
        self.batch.changes.push(Change::AskSettled {
            reply_token: reply_token.clone(),
            unix_us: now.unix_us,
            resolution: settlement.to_stored(&ask.asked, answered).into(),
        });
        for waiting in ask.waiting {
            self.answer(waiting, settlement.clone());
        }
        if let Some(connection) = ask.connection {
            self.tell_agent(connection, &super::agents::resolved(&settlement));
        }
    }

    /// After a start: what was stored as open and is not open any more, because its session is gone, ends
    /// without consent.
    pub(super) fn settle_forgotten(&mut self, now: Now) {
        let engine = &self.engine;
        let forgotten = self.asks.keys().filter(|token| !engine.is_open(token));
        for token in forgotten.cloned().collect::<Vec<_>>() {
            self.settle(now, &token, &Resolution::Reject, DecidedBy::NoListener);
        }
    }

    fn audit(&mut self, now: Now, audit: Audit, asking: Option<&Event>) {
        let token = entry::token(&audit);
        let asking = asking.filter(|event| {
            matches!(audit, Audit::Asked { .. }) && entry::question(event) == Some(token)
        });
        if let (Audit::Asked { session_id, .. }, Some(event)) = (&audit, asking) {
            let asked = Asked {
                principal: self.engine.principal_of(session_id).unwrap_or(0),
                event_id: event.envelope.event_id.clone(),
                session_id: session_id.clone(),
            };
            let of_principal = |ask: &&OpenAsk| ask.asked.principal == asked.principal;
            let round = self.asks.values().filter(of_principal).count() as u64;
            self.asks.insert(
                token.clone(),
                OpenAsk {
                    round,
                    asked,
                    is_stored: false,
                    ends_unix_us: None,
                    asked_unix_us: now.unix_us,
                    waiting: Vec::new(),
                    connection: None,
                },
            );
        }
        if let Audit::Reply { principal, decided_by, refused: None, .. } = &audit {
            let is_automatic = decided_by.as_deref().is_some_and(aaep::reply::is_automatic);
            self.counted = Some((token.clone(), Answered { principal: *principal, is_automatic }));
        }
        if !self.refusals.may_write(&audit, now.monotonic_us) {
            return;
        }
        let asked = self.asks.get(token).map(|ask| &ask.asked);
        let session_id = asked.map(|asked| asked.session_id.clone());
        let who = match entry::principal(&audit) {
            Some(principal) => self.principals.name(principal).map(str::to_owned),
            None => asking.map(|event| event.envelope.producer.agent_id.clone()),
        };
        let words = asking.and_then(entry::words_of);
        let asked_by = asked.and_then(|asked| self.principals.name(asked.principal));
        let asked_by = asked_by.map(str::to_owned);
        let about = About { unix_us: now.unix_us, session_id, who, words, asked_by };
        let entry = entry::entry(audit, about);
        self.batch.changes.push(Change::Audit(entry));
    }

    /// A reply does not count because its subscription was never asked anything.
    pub(super) fn refuse_reply(&mut self, reply_token: ReplyToken, principal: u64) {
        let refused = Some(ReplyRefusal::NotAsked);
        let now = self.clock.now();
        let reply = Audit::Reply { reply_token, principal, decided_by: None, refused };
        self.audit(now, reply, None);
    }

    /// The number of a principal.
    pub(super) fn principal(&mut self, principal: &Principal) -> Result<u64, TooManyNames> {
        let store = |key, name| Change::Principal { key, name };
        self.principals.key(&principal.id, &mut self.batch.changes, store)
    }

    /// The number of the principal that somebody acts as. A local program that was allowed to answer is
    /// another principal where it listens than where it speaks, so that it can answer agents that run as
    /// the same user (ruling 37).
    pub(super) fn acting(
        &mut self,
        principal: &Principal,
        subscription_id: Option<&SubscriptionId>,
    ) -> Result<u64, TooManyNames> {
        let number = self.principal(principal)?;
        let whose = subscription_id.and_then(|id| self.engine.subscription(id)).map(|it| it.1);
        let whose = whose.filter(|_| principal.is_local_program());
        Ok(whose.filter(|whose| self.is_allowed_program(*whose)).unwrap_or(number))
    }

    /// The local program with this number that was allowed to answer when it subscribed.
    pub(super) fn program(&self, number: u64) -> Option<&str> {
        self.principals.name(number).and_then(Principal::program_of_id)
    }

    /// Whether this is the number of a local program that may answer now.
    pub(super) fn is_allowed_program(&self, number: u64) -> bool {
        self.program(number).is_some_and(|program| self.roster.may_answer(program))
    }

    /// The numbers of all principals behind which the same person stands.
    pub(super) fn numbers_of(&self, principal: &Principal) -> HashSet<u64> {
        self.principals.numbers_where(|id| principal.is_same_person(id)).collect()
    }

    /// Lets someone wait for the outcome of a question.
    pub(super) fn wait_for(
        &mut self,
        reply_token: &ReplyToken,
    ) -> Option<oneshot::Receiver<Settlement>> {
        let ask = self.asks.get_mut(reply_token)?;
        ask.waiting.retain(|waiting| !waiting.is_closed());
        if ask.waiting.len() >= MAX_WAITING_FOR_ASK {
            ask.waiting.remove(0);
        }
        let (sender, receiver) = oneshot::channel();
        ask.waiting.push(sender);
        Some(receiver)
    }
}

/// What goes onto the wires, made of a frame without copying it.
fn packet(frame: &Arc<Frame>) -> Arc<Packet> {
    struct Json(Arc<Frame>);
    impl AsRef<[u8]> for Json {
        fn as_ref(&self) -> &[u8] {
            &self.0.json
        }
    }
    let json = Bytes::from_owner(Json(Arc::clone(frame)));
    Arc::new(Packet::new(frame.event_id.as_str(), json).critical(frame.is_critical))
}
