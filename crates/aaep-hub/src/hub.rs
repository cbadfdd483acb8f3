//! The hub: agents publish to it, subscribers listen to it, and nothing that it acknowledged is lost.
//!
//! It consists of four threads, each with one job. Only the **owner** touches the engine. The **keeper** stores
//! the engine's output and only then releases it. The **wires** carry it to many subscribers. The **reader**
//! parses what peers send. All other code talks to these threads through a [`Hub`].
//!
//! ```
//! use aaep_hub::access::Principal;
//! use aaep_hub::hub::Hub;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let hub = Hub::builder().start()?;
//! let started = serde_json::json!({
//!     "type": "aaep:agent.session.started",
//!     "producer": { "agent_id": "builder" },
//!     "summary_normal": "I am tidying the build folder.",
//! });
//! let event = started.as_object().cloned().unwrap();
//! let outcome = hub.publish(&Principal::local(), vec![event], None).await?;
//! println!("The session is {}.", outcome[0].as_ref().unwrap().session_id);
//! hub.stop().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod agents;
mod answers;
mod ask_times;
mod backup;
mod builder;
mod clock;
mod connections;
mod ears;
mod entry;
mod error;
mod heard_outcome;
mod holders;
mod keeper;
mod legacy;
mod names;
mod open_asks;
pub(crate) mod own_ids;
mod owner;
mod permission_note;
mod posts;
mod publish;
mod reading;
mod refusals;
mod refused;
mod running_bytes;
mod session_agent;
mod sessions;
mod settlement;
mod speaking;
mod status;
mod stored;
mod subscribers;
#[cfg(test)]
mod tests;
mod violations;
mod waiting;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use aaep::extension::Accepts;
use aaep::handshake::{SubscriptionAccepted, SubscriptionRejected, SubscriptionRequest};
use aaep::{EventId, Message, Object, ReplyToken, SessionId, SubscriptionId};
use aaep_engine::PrincipalNumber;
use aaep_engine::terms::Door;
use aaep_transport::wire::{Wire, WireHandle};
use tokio::sync::{mpsc, oneshot};

pub use builder::{HubBuilder, StartError, default_offer};
pub use clock::Clock;
pub use connections::{ConnectionPurpose, NewConnection};
pub use error::HubError;
pub use legacy::LegacyAnswer;
pub(crate) use legacy::MAY_NOT_ANSWER;
pub use posts::{Agent, AgentInstruction, NotInstructed};
use publish::EventDraft;
pub use publish::Published;
pub(crate) use reading::{MalformedRequest, SubscriberMessage, read_subscriber};
pub use refused::Refused;
pub(crate) use sessions::{GivenAnswer, RunningSession};
pub use sessions::{SessionInfo, SessionPage};
pub use settlement::Settlement;
pub use subscribers::MessageOutcome;
pub(crate) use subscribers::rejected_by_limit;
pub use violations::to_json as violations_to_json;
pub use waiting::{AskCursor, ListedAsk};

use crate::access::{Guard, Principal};
use crate::bounds::MAX_AGENT_ID_BYTES;
use crate::metrics::Metrics;
use crate::redact::Redactor;
use crate::store::Reader;
use answers::KeyedRequest;
use owner::{EngineOwner, OwnerRequest};
use status::HubStatus;

/// How long a caller waits for the hub before it learns that nothing could be stored in time.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// How long connections get to take their pending messages when the hub stops.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// A running hub. All clones are the same hub. It stops when you tell it to, or when the last clone is dropped.
#[derive(Clone)]
pub struct Hub {
    shared: Arc<HubShared>,
    running: Arc<Mutex<Option<RunningParts>>>,
}

pub(super) struct HubShared {
    requests: mpsc::Sender<OwnerRequest>,
    clock: Clock,
    guard: Guard,
    redactor: Arc<Redactor>,
    reader: Reader,
    status: Arc<HubStatus>,
}

struct RunningParts {
    threads: Vec<JoinHandle<()>>,
    wires: Vec<Wire>,
}

/// The state of an agent's ask.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedAskState {
    /// The event that asked.
    pub event_id: EventId,
    /// Its session.
    pub session_id: SessionId,
    /// When the ask times out, in microseconds since 1970; `None` while its clock is stopped.
    pub ends_unix_us: Option<i64>,
    /// How the ask was settled; `None` while it is open.
    pub settlement: Option<Settlement>,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

impl Hub {
    /// Starts from the defaults: everything in memory, English, the usual limits.
    pub fn builder() -> HubBuilder {
        HubBuilder::new()
    }

    pub(super) fn new(shared: HubShared, threads: Vec<JoinHandle<()>>, wires: Vec<Wire>) -> Self {
        let running = Arc::new(Mutex::new(Some(RunningParts { threads, wires })));
        Hub { shared: Arc::new(shared), running }
    }

    /// Publishes events of an agent, each one separately, and returns once they are stored. The hub fills in
    /// the fields that an event omits. With an idempotency key, the same request gets the same answer again,
    /// and a different request under that key is refused.
    pub async fn publish(
        &self,
        principal: &Principal,
        events: Vec<Object>,
        idempotency_key: Option<String>,
    ) -> Result<Vec<Result<Published, Refused>>, HubError> {
        let many = u32::try_from(events.len()).unwrap_or(u32::MAX);
        let now_us = self.shared.clock.now().monotonic_us;
        if let Err(limit) = self.shared.guard.publish(&principal.id, many, now_us) {
            self.metrics().refused("rate_limit");
            return Ok(events.iter().map(|_| Err(Refused::Limit(limit))).collect());
        }
        let mut events = events;
        for event in &mut events {
            self.shared.redactor.redact_event(event);
        }
        let keyed = idempotency_key.map(|key| KeyedRequest::new(key, &events));
        let events: Vec<EventDraft> =
            events.into_iter().map(|event| EventDraft::new(principal, event)).collect();
        let principal = principal.clone();
        self.call(move |owner| owner.publish_all(&principal, events, keyed)).await
    }

    /// Looks up an agent's ask. Returns when it is settled, or after `wait` if it is still open.
    pub async fn ask_state(
        &self,
        principal: &Principal,
        reply_token: &ReplyToken,
        wait: Duration,
    ) -> Result<PublishedAskState, HubError> {
        let (who, token) = (principal.clone(), reply_token.clone());
        let find = move |owner: &mut EngineOwner| {
            let number = owner.principal_number(&who).ok()?;
            let open = owner.open_ask_of(number, &token);
            let open = open.map(|ask| (ask.asked.clone(), ask.ends_unix_us));
            Some((number, open.map(|open| (open, owner.wait_for(&token)))))
        };
        let trouble = self.shared.status.what_is_wrong();
        let looked = match &trouble {
            None => self.call(find).await?,
            Some(_) => self.look_up(find).await?,
        };
        let (number, open) = looked.ok_or(HubError::TooManyNames)?;
        let Some(((asked, ends_unix_us), waiting)) = open else {
            let settled = match self.settled(number, reply_token).await {
                Err(HubError::NoSuchAsk) => self.heard_outcome(principal, reply_token).await,
                settled => settled,
            };
            // The ask may be settled, with that waiting for the disk.
            let is_waiting = trouble.is_some() && settled == Err(HubError::NoSuchAsk);
            return if is_waiting { Err(HubError::NotStored { why: trouble }) } else { settled };
        };
        let settlement = match waiting {
            Some(waiting) => tokio::time::timeout(wait, waiting).await.ok().and_then(Result::ok),
            None => None,
        };
        let (event_id, session_id) = (asked.event_id, asked.session_id);
        Ok(PublishedAskState { event_id, session_id, ends_unix_us, settlement })
    }

    async fn settled(
        &self,
        principal: PrincipalNumber,
        token: &ReplyToken,
    ) -> Result<PublishedAskState, HubError> {
        let (reader, token) = (self.shared.reader.clone(), token.clone());
        let found =
            tokio::task::spawn_blocking(move || publish::settled(&reader, principal, &token));
        let found = found.await.map_err(|_| HubError::Stopped)?;
        let found = found.map_err(|error| HubError::NotStored { why: Some(error.to_string()) })?;
        let (asked, settlement) = found.ok_or(HubError::NoSuchAsk)?;
        Ok(PublishedAskState {
            event_id: asked.event_id,
            session_id: asked.session_id,
            ends_unix_us: None,
            settlement: Some(settlement),
        })
    }

    /// Withdraws an ask because the agent no longer needs an answer (§6.8).
    pub async fn withdraw(
        &self,
        principal: &Principal,
        reply_token: &ReplyToken,
    ) -> Result<(), HubError> {
        let (who, token) = (principal.clone(), reply_token.clone());
        let withdrawn = self
            .call(move |owner| {
                owner.principal_number(&who).is_ok_and(|who| owner.withdraw(who, &token))
            })
            .await?;
        if withdrawn { Ok(()) } else { Err(HubError::NoSuchAsk) }
    }

    /// Declares which instructions an agent accepts. This holds as long as the agent polls for instructions.
    pub async fn declare(
        &self,
        principal: &Principal,
        agent_id: &str,
        accepts: Vec<Accepts>,
    ) -> Result<(), HubError> {
        if agent_id.len() > MAX_AGENT_ID_BYTES {
            return Err(HubError::NameTooLong);
        }
        let (who, agent_id) = (principal.clone(), agent_id.to_owned());
        let declared = self
            .call(move |owner| {
                let number = owner.principal_number(&who).ok()?;
                Some(owner.declare(&who, number, &agent_id, accepts, None))
            })
            .await?;
        match declared {
            Some(true) => Ok(()),
            Some(false) => Err(HubError::NoSuchAgent),
            None => Err(HubError::TooManyNames),
        }
    }

    /// Returns the instructions for an agent that come after the number `after`, or none after waiting for
    /// `wait`.
    pub async fn instructions(
        &self,
        principal: &Principal,
        agent_id: &str,
        after: u64,
        wait: Duration,
    ) -> Result<Vec<AgentInstruction>, HubError> {
        let ends = tokio::time::Instant::now() + wait;
        loop {
            let (who, name) = (principal.clone(), agent_id.to_owned());
            let found = self
                .call(move |owner| {
                    let number = owner.principal_number(&who).ok()?;
                    owner.inbox(number, &name, after)
                })
                .await?;
            let (instructions, waiting) = found.ok_or(HubError::NoSuchAgent)?;
            let Some(waiting) = waiting else { return Ok(instructions) };
            if tokio::time::timeout_at(ends, waiting).await.is_err() {
                return Ok(Vec::new());
            }
        }
    }

    /// Lists the agents that this principal may hear and instruct.
    pub async fn agents(&self, principal: &Principal) -> Result<Vec<Agent>, HubError> {
        let who = principal.clone();
        self.look_up(move |owner| owner.instructable_agents(&who)).await
    }

    /// Requests a subscription. What is granted waits for a connection.
    pub async fn subscribe(
        &self,
        principal: &Principal,
        door: Door,
        request: SubscriptionRequest,
    ) -> Result<Result<Box<SubscriptionAccepted>, Box<SubscriptionRejected>>, HubError> {
        let who = principal.clone();
        self.call(move |owner| owner.subscribe(&who, door, request, None)).await
    }

    /// Rejects a request that could not be read. This needs no disk, so it works even when nothing can be
    /// stored.
    pub(crate) async fn reject_malformed(
        &self,
        request: MalformedRequest,
    ) -> Result<SubscriptionRejected, HubError> {
        self.look_up(move |owner| owner.reject_malformed(request)).await
    }

    /// Rejects a request that came on a path where no subscription can be served.
    pub(crate) async fn reject_transport(&self) -> Result<SubscriptionRejected, HubError> {
        self.look_up(|owner| owner.reject_at(Door::TransportUnavailable)).await
    }

    /// Handles a message from a subscriber.
    pub async fn tell(
        &self,
        principal: &Principal,
        message: Message,
    ) -> Result<MessageOutcome, HubError> {
        let who = principal.clone();
        let is_reply =
            matches!(message, Message::ConfirmationReply(_) | Message::ClarificationReply(_));
        if !is_reply {
            return self.call(move |owner| owner.tell(&who, message, None)).await;
        }
        // A person who decided something must learn whether it counts, however long that takes.
        match self.call_until_known(move |owner| owner.tell(&who, message, None)).await {
            Err(HubError::Stopped) if !self.is_dead_in_doubt() => Err(HubError::ReplyLost),
            told => told,
        }
    }

    /// Whether the hub ended without knowing what is stored.
    fn is_dead_in_doubt(&self) -> bool {
        self.shared.status.is_dead()
    }

    /// Whether the subscription belongs to the principal.
    pub async fn has_subscription(
        &self,
        principal: &Principal,
        subscription_id: &SubscriptionId,
    ) -> Result<bool, HubError> {
        let (who, id) = (principal.clone(), subscription_id.clone());
        self.call(move |owner| {
            let number = owner.acting_number(&who, Some(&id)).ok();
            owner.engine.subscription(&id).is_some_and(|(_, whose)| Some(whose) == number)
        })
        .await
    }

    /// The local program that owns this subscription, if the person allowed that program to answer.
    pub(crate) async fn allowed_program(
        &self,
        subscription_id: &SubscriptionId,
    ) -> Result<Option<Principal>, HubError> {
        let id = subscription_id.clone();
        self.look_up(move |owner| {
            let (_, whose) = owner.engine.subscription(&id)?;
            owner.program_name(whose).map(Principal::allowed_program)
        })
        .await
    }

    /// Takes over a connection.
    pub async fn attach(
        &self,
        connection: NewConnection,
        purpose: ConnectionPurpose,
    ) -> Result<(), HubError> {
        self.call(move |owner| owner.attach(connection, purpose)).await
    }

    /// Handles a message that was posted on the legacy path.
    pub async fn legacy_message(
        &self,
        principal: &Principal,
        text: String,
    ) -> Result<LegacyAnswer, HubError> {
        let who = principal.clone();
        self.call(move |owner| owner.legacy_message(&who, &text)).await
    }

    /// All connected principals, each once.
    pub async fn everyone(&self) -> Result<Vec<Arc<Principal>>, HubError> {
        let mut all = self.look_up(|owner| owner.everyone()).await?;
        // Sorted here and not by the owner: there are many, and nobody should wait for that.
        all.sort_by(|one, other| one.id.cmp(&other.id));
        all.dedup();
        Ok(all)
    }

    /// Revokes the access of the principal with this id: its subscriptions end, and its connections close.
    pub async fn end_access(&self, principal_id: &str) -> Result<(), HubError> {
        let id = principal_id.to_owned();
        self.call(move |owner| owner.end_access(&id)).await
    }

    /// Ends the subscriptions of local programs whose permission to answer has changed, so that they subscribe
    /// again.
    pub async fn review_programs(&self) -> Result<(), HubError> {
        self.call(EngineOwner::review_programs).await
    }

    /// Offers a new manifest to subscribers.
    pub async fn offer_manifest(
        &self,
        manifest_uri: Option<aaep::Uri>,
        signed: Option<aaep::CompactJws>,
    ) -> Result<(), HubError> {
        self.call(move |owner| owner.engine.offer_manifest(manifest_uri, signed)).await
    }

    /// The languages that subscribers can be served in so far; the first one is the primary language.
    pub async fn languages(&self) -> Result<Vec<aaep::LanguageTag>, HubError> {
        self.look_up(|owner| owner.engine.offer().languages.clone()).await
    }

    /// The hub's metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.status.metrics
    }

    /// Updates the metrics that are only counted on request.
    pub async fn count(&self) -> Result<(), HubError> {
        let held = self.look_up(|owner| owner.engine.held_subscribers()).await?;
        self.metrics().subscribers_held(held as u64);
        Ok(())
    }

    /// The reader of the store.
    pub fn reader(&self) -> &Reader {
        &self.shared.reader
    }

    /// The clocks of the hub.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// The guard that enforces limits for each principal.
    pub fn guard(&self) -> &Guard {
        &self.shared.guard
    }

    /// What is wrong, if the hub cannot work at the moment.
    pub fn trouble(&self) -> Option<String> {
        let status = &self.shared.status;
        let is_stopped = self.shared.requests.is_closed();
        status.what_is_wrong().or_else(|| is_stopped.then(|| HubError::Stopped.to_string()))
    }

    /// What the hub found wrong when it started and what it did about it, each as one sentence. The audit log
    /// contains the same.
    pub fn notes(&self) -> Vec<String> {
        self.shared.status.notes()
    }

    /// Whether the hub cannot continue and has to be restarted.
    pub fn is_dead(&self) -> bool {
        self.shared.status.is_dead() || self.shared.requests.is_closed()
    }

    /// Stops the hub. Everything that it acknowledged is stored, connections end, and subscribers can resume
    /// after the next start.
    pub async fn stop(&self) {
        let hub = self.clone();
        // If that task fails, nothing is left to stop.
        let _ = tokio::task::spawn_blocking(move || hub.stop_now()).await;
    }

    fn stop_now(&self) {
        self.shared.status.stop();
        let stop: OwnerRequest = Box::new(|owner| owner.is_stopping = true);
        // A full queue is worked off; if it is closed, the owner is gone already.
        let _ = self.shared.requests.blocking_send(stop);
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(RunningParts { threads, wires }) = running else { return };
        let mut threads = threads.into_iter();
        // The keeper first: it ends once the owner has ended and all effects are carried out.
        if let Some(keeper) = threads.next() {
            let _ = keeper.join();
        }
        let handles: Vec<WireHandle> = wires.iter().map(|wire| wire.handle().clone()).collect();
        builder::stop_wires(&handles, STOP_GRACE);
        drop(handles);
        for wire in wires {
            wire.join();
        }
        for thread in threads {
            let _ = thread.join();
        }
    }

    /// Runs `work` in the owner, and returns its result once everything before it is stored. Refuses while
    /// nothing can be stored.
    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut EngineOwner) -> T + Send + 'static,
    ) -> Result<T, HubError> {
        match tokio::time::timeout(CALL_TIMEOUT, self.call_until_known(work)).await {
            Ok(answered) => answered,
            Err(_) => Err(HubError::NotStored { why: self.shared.status.what_is_wrong() }),
        }
    }

    /// The same as `call`, without a time limit.
    async fn call_until_known<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut EngineOwner) -> T + Send + 'static,
    ) -> Result<T, HubError> {
        if let Some(why) = self.shared.status.what_is_wrong() {
            return Err(HubError::NotTaken { why });
        }
        let (sender, receiver) = oneshot::channel();
        let request: OwnerRequest = Box::new(move |owner| {
            let value = work(owner);
            owner.answer(sender, value);
        });
        self.shared.requests.send(request).await.map_err(|_| HubError::Stopped)?;
        receiver.await.map_err(|_| HubError::Stopped)
    }

    /// Lets the owner look something up. This changes nothing and does not wait for the disk.
    async fn look_up<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut EngineOwner) -> T + Send + 'static,
    ) -> Result<T, HubError> {
        let (sender, receiver) = oneshot::channel();
        let request: OwnerRequest = Box::new(move |owner| {
            // A caller that no longer waits does not need the result.
            let _ = sender.send(work(owner));
        });
        let looked = async {
            self.shared.requests.send(request).await.map_err(|_| HubError::Stopped)?;
            receiver.await.map_err(|_| HubError::Stopped)
        };
        let late = |_| Err(HubError::NotStored { why: self.shared.status.what_is_wrong() });
        tokio::time::timeout(CALL_TIMEOUT, looked).await.unwrap_or_else(late)
    }
}
