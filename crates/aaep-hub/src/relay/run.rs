//! One run of a child, from its start to its end.

use std::collections::BTreeMap;
use std::time::Duration;

use aaep::event::action::CoalesceBoundary;
use aaep::event::human::Decision;
use aaep::reply::ConfirmationReply;
use aaep::{
    Capabilities, CoreType, Event, Message, Object, Payload, ReplyToken, Timestamp, Version,
    printable,
};
use aaep_engine::is_filled;
use aaep_engine::subscriber::{
    ClarificationDetails, ConfirmationDetails, HeardMessage, SubscriberChange, SubscriberConfig,
    SubscriberRules,
};
use aaep_transport::link::{LinkReceiver, LinkSender};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

use super::ChildTable;
use super::back::{ChildReply, reply_for};
use super::publish::publish;
use super::translate::{beginning, translate};
use crate::access::Principal;
use crate::hub::{Hub, HubError, PublishedAskState, Settlement, own_ids};

/// How long the hub waits for its own settlement of an ask that has expired for the child, before it
/// withdraws the ask.
const AFTER_TIME: Duration = Duration::from_secs(1);

/// How long a child may take to read a message.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// How long one wait for an outcome lasts.
const WAIT_AT_MOST: Duration = Duration::from_mins(1);

/// How often in a row reading an outcome may fail before the hub gives up on it.
const MAX_FAILURES: u32 = 30;

/// The most mistakes of a child that are logged.
const MAX_LOGGED: u32 = 200;

/// The id of the hub as a subscriber of the child.
const SUBSCRIBER: &str = "aaep-hub";

/// Receives from a child until it ends, and returns why it did.
pub(super) async fn run(
    hub: &Hub,
    child: &ChildTable,
    principal: &Principal,
    sender: LinkSender,
    receiver: &mut LinkReceiver,
) -> String {
    let mut run = ChildRun {
        hub,
        child,
        principal,
        name: printable(&child.name()).into_owned(),
        subscriber: SubscriberRules::new(subscriber()),
        sender,
        asks: BTreeMap::new(),
        settling: JoinSet::new(),
        logged: 0,
    };
    if let Err(why) = run.subscribe().await {
        return why;
    }
    loop {
        let due = run.subscriber.deadline().map(|us| hub.clock().instant(us).into());
        let done = tokio::select! {
            message = receiver.next() => match message {
                Ok(message) => run.take(&message).await,
                Err(end) => Err(end.to_string()),
            },
            Some(settled) = run.settling.join_next() => match settled {
                Ok(settled) => run.settle(&settled).await,
                Err(_) => Ok(()),
            },
            () = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            } => {
                let changes = run.subscriber.tick(hub.clock().now());
                run.follow(&changes).await
            }
        };
        if let Err(why) = done {
            return why;
        }
    }
}

struct ChildRun<'a> {
    hub: &'a Hub,
    child: &'a ChildTable,
    principal: &'a Principal,
    name: String,
    subscriber: SubscriberRules,
    sender: LinkSender,
    /// The child's asks that are open in the hub, by the child's token.
    asks: BTreeMap<ReplyToken, ChildAsk>,
    settling: JoinSet<SettledChildAsk>,
    logged: u32,
}

struct ChildAsk {
    /// The token of the ask in the hub.
    token: ReplyToken,
    is_confirmation: bool,
}

/// An ask of the child that was settled in the hub.
struct SettledChildAsk {
    /// The child's token.
    token: ReplyToken,
    /// The token of the ask in the hub.
    ours: ReplyToken,
    /// The settlement. `None` if it is not known.
    settlement: Option<Settlement>,
}

impl ChildRun<'_> {
    /// Subscribes to every event unchanged, with the right to reply.
    async fn subscribe(&mut self) -> Result<(), String> {
        let mut wanted = Capabilities::new();
        wanted.coalesce_boundaries = Some(vec![CoalesceBoundary::None]);
        wanted.supports_confirmation_reply = Some(true);
        wanted.supports_clarification_reply = Some(true);
        wanted.supported_conformance_levels = Some(vec![1, 2, 3]);
        let request = self.subscriber.request(wanted);
        let request =
            request.map_err(|error| format!("no subscription can be asked for: {error:?}"))?;
        self.send(&request).await
    }

    /// Handles a message of the child.
    async fn take(&mut self, text: &str) -> Result<(), String> {
        let object = serde_json::from_str::<Object>(text).ok();
        let formed = object.as_ref().and_then(|it| with_formed_ids(self.principal, it));
        let heard_text = formed.as_deref().unwrap_or(text);
        let received = self.subscriber.receive(self.hub.clock().now(), heard_text.as_bytes());
        for violation in &received.violations {
            self.log(&violation.to_string());
        }
        self.follow(&received.changes).await?;
        match (received.heard, object) {
            (Some(HeardMessage::Event(event)), Some(object)) => {
                let is_joined = received
                    .changes
                    .iter()
                    .any(|it| matches!(it, SubscriberChange::SessionJoined { .. }));
                self.publish(&event, object, is_joined).await
            }
            (Some(_), _) => Ok(()),
            (None, Some(object)) if needs_filling(&object) => {
                self.publish_incomplete(object).await;
                Ok(())
            }
            (None, _) => match unread_ask(text) {
                Some(token) => self.reject(&token).await,
                None => Ok(()),
            },
        }
    }

    /// Publishes an event that leaves fields out for the hub to fill in.
    async fn publish_incomplete(&mut self, mut object: Object) {
        translate(&mut object, self.child.agent_id.as_deref());
        let (kind, may_repeat) = (object.get("type").cloned(), object.contains_key("event_id"));
        if let Err(why) = publish(self.hub, self.principal, object, may_repeat).await {
            let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
            self.log(&format!("{kind} is not heard: {why}"));
        }
    }

    /// Handles changes that the subscriber rules report.
    async fn follow(&mut self, changes: &[SubscriberChange]) -> Result<(), String> {
        for change in changes {
            match change {
                // An ask that was settled without us is withdrawn too.
                SubscriberChange::AskWithdrawn { reply_token, .. }
                | SubscriberChange::AskResolved { reply_token, .. }
                | SubscriberChange::AskForgotten { reply_token } => {
                    if let Some(ask) = self.asks.remove(reply_token) {
                        withdraw(self.hub, self.principal, &ask.token).await;
                    }
                }
                SubscriberChange::AskExpired { reply_token } => self.expire(reply_token),
                SubscriberChange::SubscriptionEnded { how } => {
                    return Err(
                        printable(&format!("it ended the subscription: {how:?}")).into_owned()
                    );
                }
                SubscriberChange::ProducerStops { .. } => {
                    return Err("it says that it stops".to_owned());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Handles an ask whose deadline has passed for the child. The hub's own deadline passes at about the
    /// same time; if it does not, the ask is withdrawn, so that nobody believes that an answer still counts.
    fn expire(&self, token: &ReplyToken) {
        let Some(ask) = self.asks.get(token) else { return };
        let (hub, principal, token) = (self.hub.clone(), self.principal.clone(), ask.token.clone());
        tokio::spawn(async move {
            sleep(AFTER_TIME).await;
            withdraw(&hub, &principal, &token).await;
        });
    }

    /// Publishes an event of the child. If its session began before the hub received anything, the session
    /// begins here with the state change that summarizes it (§8.7).
    async fn publish(
        &mut self,
        event: &Event,
        mut object: Object,
        is_joined: bool,
    ) -> Result<(), String> {
        translate(&mut object, self.child.agent_id.as_deref());
        if is_joined && matches!(event.payload, Payload::StateChanged(_)) {
            let begun = publish(self.hub, self.principal, beginning(&object), true).await;
            if let Err(why) = begun {
                self.refused(event, &why);
            }
            object.remove("from_state");
        }
        let Some((token, is_confirmation)) = ask_of(event) else {
            if let Err(why) = publish(self.hub, self.principal, object, true).await {
                self.refused(event, &why);
            }
            return Ok(());
        };
        let mut open = self.subscriber.open_asks();
        let is_open = open.any(|ask| ask.reply_token == *token && ask.can_reply);
        drop(open);
        if !is_open || self.subscriber.subscription_id().is_none() {
            self.refused(event, "It is a question that cannot be answered.");
            return self.reject_if(is_confirmation, token).await;
        }
        let published = publish(self.hub, self.principal, object, false).await;
        let ours = published.and_then(|published| match published.reply_token {
            // An answer to an earlier ask is not an answer to this one.
            Some(ours) if !published.is_repeated => Ok(ours),
            _ => Err("A question with this event_id came before.".to_owned()),
        });
        match ours {
            Ok(ours) => {
                let settled = wait_until_settled(
                    self.hub.clone(),
                    self.principal.clone(),
                    token.clone(),
                    ours.clone(),
                );
                self.settling.spawn(settled);
                self.asks.insert(token.clone(), ChildAsk { token: ours, is_confirmation });
                Ok(())
            }
            Err(why) => {
                self.refused(event, &why);
                self.reject_if(is_confirmation, token).await
            }
        }
    }

    /// Handles an ask that was settled in the hub: sends the child its reply, once.
    async fn settle(&mut self, settled: &SettledChildAsk) -> Result<(), String> {
        let SettledChildAsk { token, ours, settlement } = settled;
        // An ask that the child withdrew is gone and gets no reply. By now its token may belong to another
        // ask, which this settlement does not answer.
        if self.asks.get(token).is_none_or(|ask| ask.token != *ours) {
            return Ok(());
        }
        let Some(ask) = self.asks.remove(token) else { return Ok(()) };
        let now = self.hub.clock().now();
        let reply = match reply_for(settlement.as_ref(), ask.is_confirmation) {
            ChildReply::Confirm(decision) => {
                let details = ConfirmationDetails::default();
                let reply = self.subscriber.confirm(now, token, decision, details);
                reply.map(|reply| Message::ConfirmationReply(Box::new(reply)))
            }
            ChildReply::Clarify(response) => {
                let details = ClarificationDetails::default();
                let reply = self.subscriber.clarify(now, token, response, details);
                reply.map(|reply| Message::ClarificationReply(Box::new(reply)))
            }
            ChildReply::Nothing => return Ok(()),
        };
        match reply {
            Ok(reply) => self.send(&reply).await,
            Err(why) => {
                let why = format!("{why:?}");
                let why = printable(&why);
                tracing::info!(child = %self.name, "The child is not told an outcome: {why}");
                Ok(())
            }
        }
    }

    async fn reject_if(&mut self, is_confirmation: bool, token: &ReplyToken) -> Result<(), String> {
        if is_confirmation { self.reject(token).await } else { Ok(()) }
    }

    /// Rejects an ask that could not be put to anyone.
    async fn reject(&mut self, token: &ReplyToken) -> Result<(), String> {
        let now = self.hub.clock().now();
        let (decision, details) = (Decision::Reject, ConfirmationDetails::default());
        if let Ok(reply) = self.subscriber.confirm(now, token, decision, details) {
            return self.send(&reply).await;
        }
        // The subscriber rules do not know it as an ask that can be answered; a reject is safe all the same.
        let subscription_id = self.subscriber.subscription_id().cloned();
        let timestamp = Timestamp::from_unix_ms(now.unix_us.div_euclid(1000));
        let (Some(subscription_id), Some(timestamp)) = (subscription_id, timestamp) else {
            return Ok(());
        };
        let reply = ConfirmationReply {
            reply_token: token.clone(),
            decision,
            subscription_id,
            timestamp: timestamp.into(),
            decided_by: None,
            decision_rationale: None,
            modified_action: None,
            correlation_id: None,
            other: Object::new(),
        };
        self.send(&reply).await
    }

    async fn send(&self, message: &impl serde::Serialize) -> Result<(), String> {
        let json = serde_json::to_string(message).map_err(|error| error.to_string())?;
        match timeout(READ_WITHIN, self.sender.send(json)).await {
            // If the link has ended, the next read reports it, with the reason.
            Ok(_) => Ok(()),
            Err(_) => Err("it does not read what it is told".to_owned()),
        }
    }

    fn refused(&mut self, event: &Event, why: &str) {
        let (id, kind) = (&event.envelope.event_id, event.event_type());
        let text = format!("{id}, {}, is not heard: {why}", kind.as_str());
        self.log(&text);
    }

    /// Logs a mistake of the child, unless there are too many.
    fn log(&mut self, text: &str) {
        self.logged = self.logged.saturating_add(1);
        if self.logged <= MAX_LOGGED {
            tracing::warn!(child = %self.name, "{}", printable(text));
        }
        if self.logged == MAX_LOGGED {
            tracing::warn!(child = %self.name, "Further mistakes of the child are not logged.");
        }
    }
}

fn subscriber() -> SubscriberConfig {
    SubscriberConfig {
        subscriber_id: SUBSCRIBER.to_owned(),
        subscriber_name: None,
        subscriber_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        version: Version::parse("1.0.0").expect("a constant of the right form"),
    }
}

/// The token of an ask, and whether it is a confirmation.
fn ask_of(event: &Event) -> Option<(&ReplyToken, bool)> {
    match &event.payload {
        Payload::AwaitingConfirmation(asked) => Some((&asked.reply_token, true)),
        Payload::AwaitingClarification(asked) => Some((&asked.reply_token, false)),
        _ => None,
    }
}

/// The event in a form that the subscriber rules can read, if the child's ids have a form of their own. The
/// token stays, because the child must recognize it in the reply.
fn with_formed_ids(principal: &Principal, object: &Object) -> Option<String> {
    if !own_ids::has_own_ids(object) {
        return None;
    }
    let mut formed = object.clone();
    own_ids::give_form(&principal.id, &mut formed)?;
    if let Some(token) = object.get("reply_token") {
        formed.insert("reply_token".to_owned(), token.clone());
    }
    serde_json::to_string(&formed).ok()
}

/// Whether the hub would fill in the missing fields. An ask must be complete, because it needs a token that
/// its child knows.
fn needs_filling(object: &Object) -> bool {
    let core = object.get("type").and_then(Value::as_str).and_then(CoreType::known);
    let is_question =
        |core| matches!(core, CoreType::AwaitingConfirmation | CoreType::AwaitingClarification);
    core.is_some_and(|core| !is_question(core)) && !is_filled(object)
}

/// The token of a confirmation that is not valid as a whole.
fn unread_ask(text: &str) -> Option<ReplyToken> {
    let event: Value = serde_json::from_str(text).ok()?;
    let is_one = event.get("type")?.as_str()? == "aaep:agent.awaiting.confirmation";
    let token = event.get("reply_token")?.as_str().filter(|_| is_one)?;
    ReplyToken::parse(token).ok()
}

/// Waits until an ask is settled.
async fn wait_until_settled(
    hub: Hub,
    principal: Principal,
    token: ReplyToken,
    ours: ReplyToken,
) -> SettledChildAsk {
    let mut failures = 0;
    let settlement = loop {
        match hub.ask_state(&principal, &ours, WAIT_AT_MOST).await {
            Ok(PublishedAskState { settlement: Some(settlement), .. }) => break Some(settlement),
            Ok(_) => failures = 0,
            Err(HubError::NotStored { .. } | HubError::NotTaken { .. })
                if failures < MAX_FAILURES =>
            {
                failures += 1;
                sleep(AFTER_TIME).await;
            }
            Err(_) => break None,
        }
    };
    SettledChildAsk { token, ours, settlement }
}

async fn withdraw(hub: &Hub, principal: &Principal, token: &ReplyToken) {
    match hub.withdraw(principal, token).await {
        // An ask that is already settled needs nothing.
        Ok(()) | Err(HubError::NoSuchAsk) => {}
        Err(error) => tracing::warn!(%token, "A question could not be withdrawn: {error}"),
    }
}
