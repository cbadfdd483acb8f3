//! Listeners on their connections: how they come, what they say, and how they go.

use std::sync::Arc;

use aaep::extension::Resume as Wish;
use aaep::handshake::{
    ReasonCode, SubscriptionAccepted, SubscriptionRejected, SubscriptionRequest,
};
use aaep::{EventId, Message, Reading, SessionId, SubscriptionId};
use aaep_engine::terms::Door;
use aaep_engine::{Hears, Input, ListenerKey, Output, Resume};
use aaep_transport::wire::{Command, ConnectionKey, Report, Socket};
use aaep_transport::{Packet, Protocol};
use serde_json::json;

use super::agents::NotInstructed;
use super::ears::Heard;
use super::owner::Owner;
use super::violations;
use crate::access::{self, ConnectionPermit, LimitError, Principal, Scope};

/// How many messages that cannot be read a peer may send before its connection ends (B.2.6, 4004).
const MAX_MISTAKES: u32 = 16;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Server-sent events; what the listener says comes by POST.
    Stream,
    /// A WebSocket as B.2 has it.
    Socket,
    /// A WebSocket on the legacy path (ruling 27).
    LegacySocket,
    /// A WebSocket of an agent.
    Agent,
}

pub(super) struct Connection {
    pub(super) principal: Arc<Principal>,
    /// The number of the principal.
    pub(super) number: u64,
    pub(super) kind: Kind,
    pub(super) listener: Option<ListenerKey>,
    mistakes: u32,
    /// Given back when the connection is gone.
    _permit: Option<ConnectionPermit>,
}

/// A socket whose HTTP head has been answered, with what belongs to it.
#[derive(Debug)]
pub struct NewConnection {
    /// Who is there.
    pub principal: Arc<Principal>,
    /// The socket.
    pub socket: Socket,
    /// What was already read from it, past the head.
    pub read_ahead: Vec<u8>,
    /// How bytes are framed on it.
    pub protocol: Protocol,
    /// What was taken of the limits for it.
    pub permit: Option<ConnectionPermit>,
}

/// What the hub answers to a message of a listener.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// It counts.
    Counted,
    /// It does not count. Why, only the audit log says (ruling 12).
    NotCounted,
    /// Terms were granted.
    Accepted(Box<SubscriptionAccepted>),
    /// Terms were not granted, and the subscription is over.
    Rejected(Box<SubscriptionRejected>),
    /// The subscription is over, as was wished.
    Closed,
    /// There is no such subscription, or it is somebody else's.
    NoSuchSubscription,
    /// An agent was told, in this session.
    Instructed(SessionId),
    /// No agent was told.
    NotInstructed(NotInstructed),
    /// A message that nobody sends to a hub in this way.
    NotForHere,
}

impl Owner {
    /// Something came from a wire.
    pub(super) fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Listener { connection, text, reading, is_paused } => {
                self.hear_listener(connection, &text, *reading);
                if is_paused {
                    self.tell_wire(Command::Resume { connection });
                }
            }
            Heard::Agent { connection, message, is_paused } => {
                self.hear_agent(connection, message);
                if is_paused {
                    self.tell_agent_wire(Command::Resume { connection });
                }
            }
            Heard::Report(Report::Blocked { connection, listener }) => {
                if self.is_on(listener, connection) {
                    self.set_blocked(listener, true);
                    self.handle(Input::Block { listener }, None);
                }
            }
            Heard::Report(Report::Unblocked { connection, listener }) => {
                if self.is_on(listener, connection) {
                    self.set_blocked(listener, false);
                    self.handle(Input::Unblock { listener }, None);
                }
            }
            Heard::Report(Report::Gone { connection, why, .. }) => {
                tracing::debug!(connection, %why, "A connection is gone.");
                self.gone(connection);
            }
            Heard::Report(Report::Message { .. }) => {}
        }
    }

    /// Whether a listener is heard on this connection. Reports may be about one that it had before.
    fn is_on(&self, listener: ListenerKey, connection: ConnectionKey) -> bool {
        self.listeners.get(&listener).is_some_and(|it| it.connection == Some(connection))
    }

    /// Notes whether the wire of a listener is full, for the metrics.
    pub(super) fn set_blocked(&mut self, listener: ListenerKey, is_blocked: bool) {
        let Some(listener) = self.listeners.get_mut(&listener) else { return };
        match (std::mem::replace(&mut listener.is_blocked, is_blocked), is_blocked) {
            (false, true) => self.blocked += 1,
            (true, false) => self.blocked = self.blocked.saturating_sub(1),
            _ => {}
        }
    }

    fn gone(&mut self, connection: ConnectionKey) {
        let Some(gone) = self.connections.remove(&connection) else { return };
        if gone.kind == Kind::Agent {
            self.agent_gone(connection);
        }
        let Some(listener) = gone.listener else { return };
        if self.is_on(listener, connection) {
            self.set_blocked(listener, false);
            if let Some(listener) = self.listeners.get_mut(&listener) {
                listener.connection = None;
            }
            self.handle(Input::Disconnect { listener }, None);
        }
    }

    /// Takes a connection over. Nothing is attached to it yet.
    pub(super) fn connect(&mut self, new: NewConnection, kind: Kind) -> Option<ConnectionKey> {
        let NewConnection { principal, socket, read_ahead, protocol, permit } = new;
        let number = self.principal(&principal).ok()?;
        let wire = if kind == Kind::Agent { &self.agent_wire } else { &self.wire };
        let connection = wire.new_key();
        self.connections.insert(
            connection,
            Connection { principal, number, kind, listener: None, mistakes: 0, _permit: permit },
        );
        let add = Command::Add { connection, socket, protocol, read_ahead };
        if kind == Kind::Agent {
            self.tell_agent_wire(add)
        } else {
            self.tell_wire(add)
        }
        Some(connection)
    }

    /// A listener hears its subscription on a new connection, from where it left off.
    pub(super) fn stream(
        &mut self,
        connection: ConnectionKey,
        subscription_id: SubscriptionId,
        last_event_id: Option<EventId>,
    ) {
        let Some(number) = self.connections.get(&connection).map(|it| it.number) else { return };
        let mine = self.engine.subscription(&subscription_id).filter(|(_, whose)| *whose == number);
        let Some((listener, principal)) = mine else {
            self.close(connection, 4001, "There is no such subscription.");
            return;
        };
        self.take_over(listener, connection);
        let input = Input::Reconnect { principal, subscription_id, last_event_id };
        self.handle(input, Some(connection));
    }

    /// A listener leaves the connection that it has for this one.
    fn take_over(&mut self, listener: ListenerKey, connection: ConnectionKey) {
        self.set_blocked(listener, false);
        let Some(known) = self.listeners.get_mut(&listener) else { return };
        let before = known.connection.replace(connection);
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.listener = Some(listener);
        }
        self.tell_wire(Command::Attach { connection, listener });
        if let Some(before) = before.filter(|before| *before != connection) {
            if let Some(before) = self.connections.get_mut(&before) {
                before.listener = None;
            }
            self.close(before, 4000, "The subscription is heard on another connection now.");
            self.handle(Input::Disconnect { listener }, None);
        }
    }

    /// Ends a connection after what waits for it.
    pub(super) fn close(&mut self, connection: ConnectionKey, code: u16, reason: &str) {
        let reason = reason.to_owned();
        let command = Command::Close { connection, code, reason, after_flush: true };
        let is_agent = self.connections.get(&connection).is_some_and(|it| it.kind == Kind::Agent);
        if is_agent { self.tell_agent_wire(command) } else { self.tell_wire(command) }
    }

    /// Someone wants to listen. What comes of it is answered, and sent on the connection if it came on one.
    pub(super) fn subscribe(
        &mut self,
        principal: &Principal,
        door: Door,
        request: SubscriptionRequest,
        on: Option<ConnectionKey>,
    ) -> Result<Box<SubscriptionAccepted>, Box<SubscriptionRejected>> {
        let wish = Wish::of(&request).map(|wish| Resume {
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
        resume: Option<Resume>,
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
        resume: Option<Resume>,
        on: Option<ConnectionKey>,
    ) -> Result<Box<SubscriptionAccepted>, Box<SubscriptionRejected>> {
        let now_us = self.clock.now().monotonic_us;
        let number = self.principal(principal).map_err(|_| rejected(LimitError::Principals))?;
        // A subscription that takes the place of another one takes its permit too.
        let before = resume.as_ref().and_then(|it| it.subscription_id.as_ref());
        let before = before.and_then(|id| self.engine.subscription(id));
        let before = before.filter(|(_, whose)| *whose == number).map(|(listener, _)| listener);
        let permit = match before.and_then(|it| self.listeners.get_mut(&it)?.permit.take()) {
            Some(permit) => permit,
            None => self.guard.subscription(&principal.id, now_us).map_err(rejected)?,
        };
        let hears = self.hears(&principal.hears).map_err(|_| rejected(LimitError::Principals))?;
        let input = Input::Subscribe {
            principal: number,
            door,
            may_reply: principal.scopes.has(Scope::Reply),
            hears,
            request: Box::new(request),
            resume,
        };
        let mut outcome = None;
        for answer in self.handle(input, on) {
            match answer {
                Output::Accepted { listener, message } => outcome = Some(Ok((listener, message))),
                Output::Rejected { message, .. } => outcome = Some(Err(message)),
                _ => {}
            }
        }
        match outcome {
            Some(Ok((listener, message))) => {
                if let Some(listener) = self.listeners.get_mut(&listener) {
                    listener.permit = Some(permit);
                }
                if on.is_none() {
                    // It comes back on a connection of its own.
                    self.handle(Input::Disconnect { listener }, None);
                }
                Ok(message)
            }
            outcome => {
                if let Some(before) = before.and_then(|it| self.listeners.get_mut(&it)) {
                    before.permit = Some(permit);
                }
                Err(outcome
                    .and_then(Result::err)
                    .unwrap_or_else(|| rejected(LimitError::Principals)))
            }
        }
    }

    /// Whom a principal hears, in numbers. Agents that nobody has seen yet get theirs now.
    fn hears(&mut self, hears: &access::Hears) -> Result<Hears, super::names::TooManyNames> {
        match hears {
            access::Hears::All => Ok(Hears::All),
            access::Hears::Only(names) => {
                let numbers =
                    names.iter().map(|name| self.agent(name)).collect::<Result<_, _>>()?;
                Ok(Hears::Agents(Arc::new(numbers)))
            }
        }
    }

    /// A listener says something.
    pub(super) fn tell(
        &mut self,
        principal: &Principal,
        message: Message,
        on: Option<ConnectionKey>,
    ) -> Told {
        let Ok(number) = self.principal(principal) else { return Told::NotCounted };
        let input = match message {
            Message::ConfirmationReply(reply) => Input::Confirm { principal: number, reply },
            Message::ClarificationReply(reply) => Input::Clarify { principal: number, reply },
            Message::SubscriptionRenegotiate(change) => {
                Input::Renegotiate { principal: number, change }
            }
            Message::SubscriptionClose(message) => Input::Close { principal: number, message },
            Message::AskPresented(it) => Input::Presented {
                principal: number,
                subscription_id: it.subscription_id,
                reply_token: it.reply_token,
            },
            Message::AskExtend(it) => Input::Extend {
                principal: number,
                subscription_id: it.subscription_id,
                reply_token: it.reply_token,
                by_seconds: it.by_seconds,
            },
            Message::AskPause(it) => Input::Pause {
                principal: number,
                subscription_id: it.subscription_id,
                reply_token: it.reply_token,
            },
            Message::AskResume(it) => Input::Resume {
                principal: number,
                subscription_id: it.subscription_id,
                reply_token: it.reply_token,
            },
            other => return self.instruct(principal, number, other),
        };
        // Terms that change are told on the connection of the subscription only if the wish came on it.
        let mut told = Told::NotForHere;
        for answer in self.handle(input, on) {
            told = match answer {
                Output::Replied { is_accepted } | Output::TimeReplied { is_accepted } => {
                    if is_accepted {
                        Told::Counted
                    } else {
                        Told::NotCounted
                    }
                }
                Output::Accepted { message, .. } => Told::Accepted(message),
                Output::Rejected { message, .. } => Told::Rejected(message),
                Output::NoSuchSubscription => Told::NoSuchSubscription,
                Output::Closed { .. } if told == Told::NotForHere => Told::Closed,
                _ => told,
            };
        }
        told
    }

    /// A listener said something on its own connection.
    fn hear_listener(&mut self, connection: ConnectionKey, text: &str, reading: Reading) {
        let Some(known) = self.connections.get(&connection) else { return };
        let (principal, kind) = (Arc::clone(&known.principal), known.kind);
        if kind == Kind::LegacySocket && self.hear_legacy(connection, &principal, text, &reading) {
            return;
        }
        let message = match reading.into_result() {
            Ok(message) => message,
            Err(wrong) => {
                self.complain(connection, "not_valid", "The message is not valid.", &wrong);
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
        match self.tell(&principal, message, Some(connection)) {
            Told::Counted | Told::Accepted(_) => {}
            Told::Closed if is_close => self.close(connection, 4005, "You ended the subscription."),
            Told::Closed => {}
            Told::Rejected(message) => {
                self.send(connection, &message);
                self.close(connection, 4001, "The terms were rejected.");
            }
            Told::Instructed(session_id) => {
                let accepted = json!({ "type": "agentvoice:instructed", "session_id": session_id });
                self.send(connection, &accepted);
            }
            Told::NotInstructed(why) => {
                self.complain(connection, "not_accepted", &why.to_string(), &[]);
            }
            Told::NotCounted => {
                let why = "The reply does not count: no open question of yours has this token.";
                self.complain(connection, "invalid_token", why, &[]);
            }
            Told::NoSuchSubscription => {
                let why = "There is no such subscription. Send a subscription.request.";
                self.complain(connection, "no_such_subscription", why, &[]);
            }
            Told::NotForHere => {
                let why = "Listeners send subscription requests, replies and closes here.";
                self.complain(connection, "not_for_here", why, &[]);
            }
        }
    }

    /// Terms are asked for on a connection. If it had some, the new ones take their place.
    pub(super) fn subscribe_on(
        &mut self,
        connection: ConnectionKey,
        principal: &Principal,
        request: SubscriptionRequest,
    ) -> Result<Box<SubscriptionAccepted>, Box<SubscriptionRejected>> {
        let before = self.connections.get(&connection).and_then(|it| it.listener);
        let before = before.and_then(|listener| self.listeners.get(&listener));
        let resume = before.map(|listener| Resume {
            subscription_id: Some(listener.subscription_id.clone()),
            last_event_id: None,
        });
        match resume {
            None => self.subscribe(principal, Door::Open, request, Some(connection)),
            resume => self.subscribe_with(principal, Door::Open, request, resume, Some(connection)),
        }
    }

    /// Sends a message that is no event on a connection of a listener.
    pub(super) fn send(&mut self, connection: ConnectionKey, message: &impl serde::Serialize) {
        let json = serde_json::to_vec(message).unwrap_or_default();
        let packet = Arc::new(Packet::new("", json));
        self.tell_wire(Command::Send { connection, packet });
    }

    /// Says on a WebSocket what is wrong with a message. Who goes on like that is sent away.
    pub(super) fn complain(
        &mut self,
        connection: ConnectionKey,
        error: &str,
        message: &str,
        wrong: &[aaep::Violation],
    ) {
        let mut body = json!({ "type": "agentvoice:error", "error": error, "message": message });
        if !wrong.is_empty() {
            body["violations"] = violations::to_json(wrong);
        }
        self.send(connection, &body);
        let Some(known) = self.connections.get_mut(&connection) else { return };
        known.mistakes += 1;
        if known.mistakes >= MAX_MISTAKES {
            self.close(connection, 4004, "Too many messages could not be taken.");
        }
    }
}

/// A rejection because of a limit.
fn rejected(limit: LimitError) -> Box<SubscriptionRejected> {
    Box::new(SubscriptionRejected {
        reason_code: limit.reason_code(),
        reason_message: limit.to_string(),
        retry_after_seconds: Some(limit.retry_after_seconds()),
        alternative_manifest_uri: None,
        other: aaep::Object::new(),
    })
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
