//! Messages from subscribers: the handshake, replies, and requests for other terms.

use std::sync::Arc;

use aaep::handshake::{
    ReasonCode, SubscriptionAccepted, SubscriptionClose, SubscriptionRejected, SubscriptionRequest,
};
use aaep::{Message, ReasonName, ReplyToken, SessionId, SubscriptionId};
use aaep_engine::terms::{Door, reject_at};
use aaep_engine::{EndReason, EngineInput, Output, PrincipalNumber, ResumePoint, SubscriberKey};
use aaep_transport::wire::ConnectionKey;
use serde_json::json;

use super::connections::ConnectionKind;
use super::owner::{EngineOwner, HubSubscriber};
use super::permission_note;
use super::posts::NotInstructed;
use super::reading::{MalformedRequest, SubscriberMessage, reply_token_of};
use crate::access::{LimitError, Principal, Scope, SubscriptionPermit};

/// How many subscriptions are reserved for the person's own programs, and for those that they allowed to
/// answer.
const RESERVED_SUBSCRIPTIONS: usize = 16;

/// The hub's answer to a message from a subscriber.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageOutcome {
    /// It counts.
    Counted,
    /// It does not count. Only the audit log says why (ruling 12).
    NotCounted,
    /// Terms were granted.
    Accepted(Box<SubscriptionAccepted>),
    /// Terms were not granted, and the subscription is over.
    Rejected(Box<SubscriptionRejected>),
    /// The subscription is over, as requested.
    Closed,
    /// There is no such subscription, or it belongs to another principal.
    NoSuchSubscription,
    /// An agent was instructed, in this session.
    Instructed(SessionId),
    /// No agent was instructed.
    NotInstructed(NotInstructed),
    /// Subscribers do not send this message to a hub.
    NotForHere,
}

impl MessageOutcome {
    /// Why the message was refused, as a code and a sentence that fit every wire; `None` if it was taken.
    pub fn refusal(&self) -> Option<(&'static str, String)> {
        let (error, why) = match self {
            MessageOutcome::NotInstructed(why) => return Some(("not_accepted", why.to_string())),
            MessageOutcome::NotCounted => (
                "invalid_token",
                "The reply does not count. Listen for how the question was settled. If it is still open, the clock of \
                 this machine may be wrong.",
            ),
            MessageOutcome::NoSuchSubscription => (
                "no_such_subscription",
                "You have no such subscription. Subscribe again with a subscription.request.",
            ),
            MessageOutcome::NotForHere => (
                "not_for_here",
                "This message is not one that is sent here. Over HTTP, events of agents go to /aaep/v1/publish, and \
                 subscription.request goes to /aaep/v1/subscriptions.",
            ),
            MessageOutcome::Counted
            | MessageOutcome::Accepted(_)
            | MessageOutcome::Rejected(_)
            | MessageOutcome::Closed
            | MessageOutcome::Instructed(_) => return None,
        };
        Some((error, why.to_owned()))
    }
}

impl EngineOwner {
    /// Handles a subscription request. Returns the answer, and also sends it on the connection if the request
    /// came on one.
    pub(super) fn subscribe(
        &mut self,
        principal: &Principal,
        door: Door,
        request: SubscriptionRequest,
        on: Option<ConnectionKey>,
    ) -> Result<Box<SubscriptionAccepted>, Box<SubscriptionRejected>> {
        let wish = aaep::extension::Resume::of(&request).map(|wish| ResumePoint {
            subscription_id: Some(wish.subscription_id),
            last_event_id: wish.last_event_id,
        });
        self.subscribe_with(principal, door, request, wish, on)
    }

    pub(super) fn subscribe_with(
        &mut self,
        principal: &Principal,
        door: Door,
        request: SubscriptionRequest,
        resume: Option<ResumePoint>,
        on: Option<ConnectionKey>,
    ) -> Result<Box<SubscriptionAccepted>, Box<SubscriptionRejected>> {
        let outcome = self.try_subscribe(principal, door, request, resume, on);
        if let Err(rejected) = &outcome {
            self.status.metrics.refused(reason(&rejected.reason_code));
            if let Some(connection) = on {
                self.send(connection, rejected);
            }
        }
        outcome
    }

    fn try_subscribe(
        &mut self,
        principal: &Principal,
        door: Door,
        request: SubscriptionRequest,
        resume: Option<ResumePoint>,
        on: Option<ConnectionKey>,
    ) -> Result<Box<SubscriptionAccepted>, Box<SubscriptionRejected>> {
        let now_us = self.clock.now().monotonic_us;
        let program = principal.is_local_program().then(|| request.subscriber_id.clone());
        let (principal, may_reply) = self.program_principal(principal, &request);
        let principal = &principal;
        let number = self
            .principal_number(principal)
            .map_err(|_| rejected_by_limit(LimitError::Principals))?;
        // A subscription that replaces another one also takes over its permit.
        let before = resume.as_ref().and_then(|it| it.subscription_id.as_ref());
        let before = before.and_then(|id| self.engine.subscription(id));
        let before = before.filter(|(_, whose)| *whose == number).map(|(subscriber, _)| subscriber);
        let permit = match before.and_then(|it| self.subscribers.get_mut(&it)?.permit.take()) {
            Some(permit) => permit,
            None => {
                self.subscription_permit(principal, number, now_us).map_err(rejected_by_limit)?
            }
        };
        self.permission_note = permission_note::for_program(principal, may_reply, &request);
        let input = EngineInput::Subscribe {
            principal: number,
            door,
            may_reply,
            hears: principal.hearing(),
            request: Box::new(request),
            resume,
        };
        let mut outcome = None;
        let answers = self.handle(input, on);
        self.permission_note = None;
        for answer in answers {
            match answer {
                Output::Accepted { subscriber, message } => {
                    outcome = Some(Ok((subscriber, message)));
                }
                Output::Rejected { message, .. } => outcome = Some(Err(message)),
                _ => {}
            }
        }
        match outcome {
            Some(Ok((subscriber, message))) => {
                if let Some(subscriber) = self.subscribers.get_mut(&subscriber) {
                    subscriber.permit = Some(permit);
                    subscriber.program = program;
                }
                if on.is_none() {
                    // The subscriber will connect separately.
                    let known = self.subscribers.get_mut(&subscriber);
                    if let Some(before) = known.and_then(|known| known.connection.take()) {
                        self.close_former_connection(subscriber, before);
                    }
                    self.handle(EngineInput::Disconnect { subscriber }, None);
                }
                Ok(message)
            }
            outcome => {
                if let Some(before) = before.and_then(|it| self.subscribers.get_mut(&it)) {
                    before.permit = Some(permit);
                }
                Err(outcome
                    .and_then(Result::err)
                    .unwrap_or_else(|| rejected_by_limit(LimitError::Principals).into()))
            }
        }
    }

    /// The principal that a subscriber acts as, and whether it may answer. A local program without a credential
    /// may answer only if the person allowed it, and then it answers as itself (ruling 37).
    fn program_principal(
        &self,
        principal: &Principal,
        request: &SubscriptionRequest,
    ) -> (Principal, bool) {
        let may_reply = principal.scopes.has(Scope::Reply);
        if !principal.is_local_program() {
            return (principal.clone(), may_reply);
        }
        if !self.roster.may_answer(&request.subscriber_id) {
            return (principal.clone(), false);
        }
        let program = if self.roster.trusts_local_programs() {
            // All local programs are trusted alike, so their names need no numbers of their own.
            "trusted"
        } else {
            &request.subscriber_id
        };
        (Principal::allowed_program(program), may_reply)
    }

    /// Ends the subscriptions of local programs whose permission to answer has changed since they subscribed,
    /// so that they subscribe again with what they may do now.
    pub(super) fn review_programs(&mut self) {
        let has_changed = |(subscriber, known): (&SubscriberKey, &HubSubscriber)| {
            let program = known.program.as_deref()?;
            let (_, whose) = self.engine.subscription(&known.subscription_id)?;
            let may_answer = self.roster.may_answer(program);
            (may_answer != self.program_name(whose).is_some()).then_some(*subscriber)
        };
        let changed: Vec<_> = self.subscribers.iter().filter_map(has_changed).collect();
        for subscriber in changed {
            let on = self.subscribers.get(&subscriber).and_then(|it| it.connection);
            self.handle(EngineInput::End { subscriber, reason: EndReason::PermissionChanged }, on);
            if let Some(connection) = on {
                self.close(
                    connection,
                    4003,
                    "What this program may do has changed. Subscribe again.",
                );
            }
        }
    }

    /// Takes a subscription from the principal's share. If the share is full, the subscription that has been
    /// disconnected longest gives way.
    fn subscription_permit(
        &mut self,
        principal: &Principal,
        number: PrincipalNumber,
        now_us: u64,
    ) -> Result<SubscriptionPermit, LimitError> {
        let is_persons = principal.is_person() || principal.is_allowed_program();
        // The last free subscriptions are reserved for the person's own programs, and for those that they
        // allowed to answer.
        let most = self.engine.max_subscriptions();
        let kept = if is_persons { 0 } else { RESERVED_SUBSCRIPTIONS.min(most / 4) };
        if self.engine.free_places() <= kept {
            let away = self.engine.oldest_away(None).ok_or(LimitError::Subscriptions)?;
            self.handle(EngineInput::End { subscriber: away, reason: EndReason::GaveWay }, None);
        }
        let full = match self.guard.subscription(&principal.id, now_us) {
            Err(full @ LimitError::SubscriptionsOfPrincipal) => full,
            other => return other,
        };
        let Some(subscriber) = self.engine.oldest_away(Some(number)) else { return Err(full) };
        self.handle(EngineInput::End { subscriber, reason: EndReason::GaveWay }, None);
        self.guard.subscription(&principal.id, now_us)
    }

    /// Handles a message from a subscriber, except a subscription request.
    pub(super) fn tell(
        &mut self,
        principal: &Principal,
        message: Message,
        on: Option<ConnectionKey>,
    ) -> MessageOutcome {
        let Ok(number) = self.acting_number(principal, named_by(&message)) else {
            return MessageOutcome::NotCounted;
        };
        if let Some(reply_token) = self.unasked_reply(&message) {
            self.refuse_reply(reply_token, number);
            return MessageOutcome::NotCounted;
        }
        let input = match message {
            Message::ConfirmationReply(reply) => EngineInput::Confirm { principal: number, reply },
            Message::ClarificationReply(reply) => EngineInput::Clarify { principal: number, reply },
            Message::SubscriptionRenegotiate(change) => {
                EngineInput::Renegotiate { principal: number, change }
            }
            Message::SubscriptionClose(message) => {
                EngineInput::Close { principal: number, message }
            }
            Message::AskPresented(it) => EngineInput::Presented {
                principal: number,
                subscription_id: it.subscription_id,
                reply_token: it.reply_token,
            },
            Message::AskExtend(it) => EngineInput::Extend {
                principal: number,
                subscription_id: it.subscription_id,
                reply_token: it.reply_token,
                by_seconds: it.by_seconds,
            },
            Message::AskPause(it) => EngineInput::Pause {
                principal: number,
                subscription_id: it.subscription_id,
                reply_token: it.reply_token,
            },
            Message::AskResume(it) => EngineInput::Resume {
                principal: number,
                subscription_id: it.subscription_id,
                reply_token: it.reply_token,
            },
            other => return self.instruct(principal, number, other),
        };
        // Changed terms are sent on the subscription's connection only if the request came on it.
        let mut told = MessageOutcome::NotForHere;
        for answer in self.handle(input, on) {
            told = match answer {
                Output::Replied { is_accepted } | Output::TimeReplied { is_accepted } => {
                    if is_accepted {
                        MessageOutcome::Counted
                    } else {
                        MessageOutcome::NotCounted
                    }
                }
                Output::Accepted { message, .. } => MessageOutcome::Accepted(message),
                Output::Rejected { message, .. } => MessageOutcome::Rejected(message),
                Output::NoSuchSubscription => MessageOutcome::NoSuchSubscription,
                Output::Closed { .. } if told == MessageOutcome::NotForHere => {
                    MessageOutcome::Closed
                }
                _ => told,
            };
        }
        told
    }

    /// The ask to which a reply came on a subscription that was never connected: the sender learned of the ask
    /// elsewhere (ruling 14).
    fn unasked_reply(&self, message: &Message) -> Option<ReplyToken> {
        let (subscription_id, reply_token) = match message {
            Message::ConfirmationReply(it) => (&it.subscription_id, &it.reply_token),
            Message::ClarificationReply(it) => (&it.subscription_id, &it.reply_token),
            _ => return None,
        };
        let (subscriber, _) = self.engine.subscription(subscription_id)?;
        let was_connected = self.subscribers.get(&subscriber)?.was_connected;
        (!was_connected).then(|| reply_token.clone())
    }

    /// Handles a message from a subscriber's own connection.
    pub(super) fn handle_subscriber_message(
        &mut self,
        connection: ConnectionKey,
        text: &str,
        reading: SubscriberMessage,
    ) {
        let Some(known) = self.connections.get(&connection) else { return };
        let (principal, kind) = (Arc::clone(&known.principal), known.kind);
        if kind == ConnectionKind::LegacySocket
            && self.handle_legacy_frame(connection, &principal, text)
        {
            return;
        }
        let message = match reading {
            SubscriberMessage::Valid(message) => message,
            SubscriberMessage::MalformedRequest(request) => {
                let rejected = self.reject_malformed(request);
                self.send(connection, &rejected);
                self.close(connection, 4001, "The subscription was rejected.");
                return;
            }
            SubscriberMessage::Malformed(wrong) => {
                let error = ("not_valid", "The message is not valid.");
                self.report_mistake(connection, error, &wrong);
                return;
            }
        };
        if let Message::SubscriptionRequest(request) = message {
            if self.subscribe_on(connection, &principal, *request).is_err() {
                self.close(connection, 4001, "The subscription was rejected.");
            }
            return;
        }
        let is_close = matches!(message, Message::SubscriptionClose(_));
        let reply_token = reply_token_of(&message).cloned();
        match self.tell(&principal, message, Some(connection)) {
            MessageOutcome::Closed if is_close => {
                self.close(connection, 4005, "You ended the subscription.");
            }
            MessageOutcome::Counted | MessageOutcome::Accepted(_) | MessageOutcome::Closed => {}
            MessageOutcome::Rejected(message) => {
                self.send(connection, &message);
                self.close(connection, 4001, "The terms were rejected.");
            }
            MessageOutcome::Instructed(session_id) => {
                let accepted = json!({ "type": "agentvoice:instructed", "session_id": session_id });
                self.send(connection, &accepted);
            }
            refused => {
                if let Some((error, why)) = refused.refusal() {
                    self.report_refusal(connection, (error, &why), &[], reply_token.as_ref());
                }
            }
        }
    }

    /// Rejects a request that could not be read (ruling 12).
    pub(super) fn reject_malformed(&mut self, request: MalformedRequest) -> SubscriptionRejected {
        let rejected = request.reject(self.engine.offer());
        self.status.metrics.refused(reason(&rejected.reason_code));
        rejected
    }

    /// Rejects a request at a door that is shut.
    pub(super) fn reject_at(&mut self, door: Door) -> SubscriptionRejected {
        let rejected = reject_at(self.engine.offer(), door);
        let rejected = rejected.unwrap_or_else(|| rejected_by_limit(LimitError::Subscriptions));
        self.status.metrics.refused(reason(&rejected.reason_code));
        rejected
    }

    /// Tells all connected subscribers that the hub stops (§5.8). Their subscriptions stay, so that they can
    /// resume after the next start, and so do the asks that wait for them.
    pub(super) fn announce_shutdown(&mut self) {
        let reason = EndReason::ProducerShutdown;
        let here = self.subscribers.values().filter_map(|subscriber| {
            let close = SubscriptionClose {
                reason_code: ReasonName::parse(reason.code()).ok(),
                reason_message: Some(reason.words().to_owned()),
                ..close_of(subscriber.subscription_id.clone())
            };
            Some((subscriber.connection?, close))
        });
        for (connection, close) in here.collect::<Vec<_>>() {
            self.send(connection, &close);
        }
    }

    /// Whether a local program now gives itself another name, and that changes whether it may answer.
    fn is_another_program(&self, subscriber: SubscriberKey, request: &SubscriptionRequest) -> bool {
        let before = self.subscribers.get(&subscriber).and_then(|known| known.program.as_deref());
        before.is_some_and(|before| {
            self.roster.may_answer(before) != self.roster.may_answer(&request.subscriber_id)
        })
    }

    /// Ends a subscription whose connection stays open for another one.
    fn close_for_replacement(&mut self, subscriber: SubscriberKey, connection: ConnectionKey) {
        let known = self.subscribers.get(&subscriber).map(|known| known.subscription_id.clone());
        let Some(subscription_id) = known else { return };
        let Some((_, principal)) = self.engine.subscription(&subscription_id) else { return };
        let message = Box::new(close_of(subscription_id));
        self.handle(EngineInput::Close { principal, message }, Some(connection));
    }

    /// Handles a request for terms on a connection. If the connection already has terms, the new ones replace
    /// them.
    pub(super) fn subscribe_on(
        &mut self,
        connection: ConnectionKey,
        principal: &Principal,
        request: SubscriptionRequest,
    ) -> Result<Box<SubscriptionAccepted>, Box<SubscriptionRejected>> {
        let before = self.connections.get(&connection).and_then(|it| it.subscriber);
        let Some(subscriber) =
            before.filter(|subscriber| self.subscribers.contains_key(subscriber))
        else {
            return self.subscribe(principal, Door::Open, request, Some(connection));
        };
        if self.is_another_program(subscriber, &request) {
            self.close_for_replacement(subscriber, connection);
            return self.subscribe(principal, Door::Open, request, Some(connection));
        }
        let (program, may_reply) = self.program_principal(principal, &request);
        self.permission_note = permission_note::for_program(&program, may_reply, &request);
        let input =
            EngineInput::Replace { subscriber, door: Door::Open, request: Box::new(request) };
        let answers = self.handle(input, Some(connection));
        self.permission_note = None;
        for answer in answers {
            match answer {
                Output::Accepted { message, .. } => return Ok(message),
                Output::Rejected { message, .. } => {
                    self.status.metrics.refused(reason(&message.reason_code));
                    self.send(connection, &message);
                    return Err(message);
                }
                _ => {}
            }
        }
        Err(rejected_by_limit(LimitError::Principals).into())
    }
}

/// A message that ends a subscription.
pub(super) fn close_of(subscription_id: SubscriptionId) -> SubscriptionClose {
    SubscriptionClose {
        subscription_id,
        reason_code: None,
        reason_message: None,
        correlation_id: None,
        extensions: None,
        other: aaep::Object::new(),
    }
}

/// The subscription that a message is about.
fn named_by(message: &Message) -> Option<&SubscriptionId> {
    Some(match message {
        Message::ConfirmationReply(it) => &it.subscription_id,
        Message::ClarificationReply(it) => &it.subscription_id,
        Message::SubscriptionRenegotiate(it) => &it.subscription_id,
        Message::SubscriptionClose(it) => &it.subscription_id,
        Message::AskPresented(it) => &it.subscription_id,
        Message::AskExtend(it) => &it.subscription_id,
        Message::AskPause(it) => &it.subscription_id,
        Message::AskResume(it) => &it.subscription_id,
        Message::AgentPrompt(it) => &it.subscription_id,
        Message::SessionCancel(it) => &it.subscription_id,
        Message::SessionSteer(it) => &it.subscription_id,
        _ => return None,
    })
}

/// A rejection because of a limit.
pub(crate) fn rejected_by_limit(limit: LimitError) -> SubscriptionRejected {
    SubscriptionRejected {
        reason_code: limit.reason_code(),
        reason_message: limit.to_string(),
        retry_after_seconds: Some(limit.retry_after_seconds()),
        alternative_manifest_uri: None,
        other: aaep::Object::new(),
    }
}

fn reason(code: &ReasonCode) -> &'static str {
    match code {
        ReasonCode::VersionUnsupported => "version_unsupported",
        ReasonCode::ManifestSignatureRequired => "manifest_signature_required",
        ReasonCode::CapabilitiesIncompatible => "capabilities_incompatible",
        ReasonCode::RateLimit => "rate_limit",
        ReasonCode::AuthenticationRequired => "authentication_required",
        ReasonCode::AuthorizationDenied => "authorization_denied",
        ReasonCode::TransportUnavailable => "transport_unavailable",
        _ => "unknown",
    }
}
