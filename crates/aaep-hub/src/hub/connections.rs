//! Connections: how they start, what is sent on them, and how they end.

use std::collections::VecDeque;
use std::sync::Arc;

use aaep::{EventId, ReplyToken, SessionId, SubscriptionId};
use aaep_engine::terms::Door;
use aaep_engine::{EndReason, EngineInput, PrincipalNumber, SubscriberKey};
use aaep_transport::wire::{Command, ConnectionKey, Socket, WireReport, WireSubscriber};
use aaep_transport::{Protocol, WirePacket};
use serde_json::json;

use super::HubError;
use super::ears::WireInput;
use super::keeper::DeferredEffect;
use super::owner::EngineOwner;
use super::violations;
use crate::access::{ConnectionPermit, Principal};

/// How many unreadable messages a peer may send before its connection ends (B.2.6, code 4004).
const MAX_MISTAKES: u32 = 16;

/// What a new connection is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionPurpose {
    /// The server-sent events of a subscription, from where the subscriber left off.
    Stream {
        /// The subscription.
        subscription_id: SubscriptionId,
        /// The last event that the subscriber received.
        last_event_id: Option<EventId>,
    },
    /// A subscriber's WebSocket (B.2), or a wire like it. The subscriber sends its request on it.
    SubscriberSocket,
    /// An agent's WebSocket.
    AgentSocket,
    /// Server-sent events on the legacy path (ruling 27).
    LegacyStream {
        /// The last event that the subscriber received.
        last_event_id: Option<EventId>,
    },
    /// A WebSocket on the legacy path.
    LegacySocket,
    /// A WebSocket that its peer may not have. It ends with a close code that the peer can see (B.2.6).
    Refused {
        /// The close code.
        code: u16,
        /// The reason, for the peer.
        reason: String,
    },
}

impl ConnectionPurpose {
    fn kind(&self) -> ConnectionKind {
        match self {
            ConnectionPurpose::Stream { .. } | ConnectionPurpose::LegacyStream { .. } => {
                ConnectionKind::Stream
            }
            ConnectionPurpose::SubscriberSocket | ConnectionPurpose::Refused { .. } => {
                ConnectionKind::Socket
            }
            ConnectionPurpose::AgentSocket => ConnectionKind::Agent,
            ConnectionPurpose::LegacySocket => ConnectionKind::LegacySocket,
        }
    }
}

/// Who speaks on a connection, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionKind {
    /// Server-sent events; the subscriber sends its messages by POST.
    Stream,
    /// A subscriber's WebSocket (B.2).
    Socket,
    /// A WebSocket on the legacy path (ruling 27).
    LegacySocket,
    /// An agent's WebSocket.
    Agent,
}

pub(super) struct HubConnection {
    pub(super) principal: Arc<Principal>,
    /// The principal's number.
    pub(super) number: PrincipalNumber,
    pub(super) kind: ConnectionKind,
    pub(super) subscriber: Option<SubscriberKey>,
    mistakes: u32,
    /// The sessions in which an agent published on this connection, the newest last.
    spoken_in: VecDeque<SessionId>,
    /// Released when the connection is gone.
    _permit: Option<ConnectionPermit>,
}

/// How many sessions are remembered for one agent socket. An agent has few at a time.
const MAX_SPOKEN_IN: usize = 64;

impl HubConnection {
    /// Whether the agent of this session is on this connection.
    pub(super) fn is_agent_of(&self, session_id: &SessionId) -> bool {
        self.spoken_in.contains(session_id)
    }

    /// Notes that the agent published in this session.
    pub(super) fn speak_in(&mut self, session_id: &SessionId) {
        if self.spoken_in.back() == Some(session_id) {
            return;
        }
        self.spoken_in.retain(|it| it != session_id);
        self.spoken_in.push_back(session_id.clone());
        if self.spoken_in.len() > MAX_SPOKEN_IN {
            self.spoken_in.pop_front();
        }
    }
}

/// A socket whose HTTP head has been answered, with everything that belongs to it.
#[derive(Debug)]
pub struct NewConnection {
    /// The principal on the other end.
    pub principal: Arc<Principal>,
    /// The socket.
    pub socket: Socket,
    /// Bytes that were already read past the head.
    pub read_ahead: Vec<u8>,
    /// How messages are framed.
    pub protocol: Protocol,
    /// The permit that counts this connection against the limits.
    pub permit: Option<ConnectionPermit>,
}

impl EngineOwner {
    /// Handles a report or a message from a wire.
    pub(super) fn handle_wire_input(&mut self, heard: WireInput) {
        match heard {
            WireInput::Subscriber { connection, text, reading, is_paused } => {
                match self.status.what_is_wrong() {
                    Some(_) if reading.is_request() => self.reject_now(connection),
                    Some(why) => self.refuse_now(connection, why, reading.reply_token()),
                    None => self.handle_subscriber_message(connection, &text, *reading),
                }
                if is_paused {
                    self.tell_connection(connection, Command::Resume { connection });
                }
            }
            WireInput::Agent { connection, message, is_paused } => {
                match self.status.what_is_wrong() {
                    Some(why) => self.refuse_now(connection, why, None),
                    None => self.handle_agent_message(connection, message),
                }
                if is_paused {
                    self.tell_connection(connection, Command::Resume { connection });
                }
            }
            WireInput::Report(WireReport::Blocked { connection, subscriber }) => {
                let subscriber = SubscriberKey(subscriber.0);
                if self.is_on(subscriber, connection) {
                    self.set_blocked(subscriber, true);
                    self.handle(EngineInput::Block { subscriber }, None);
                }
            }
            WireInput::Report(WireReport::Withdrawn { connection, subscriber, last_event_id }) => {
                self.take_back(connection, SubscriberKey(subscriber.0), &last_event_id);
            }
            WireInput::Report(WireReport::Unblocked { connection, subscriber }) => {
                let subscriber = SubscriberKey(subscriber.0);
                if self.is_on(subscriber, connection) {
                    self.set_blocked(subscriber, false);
                    self.handle(EngineInput::Unblock { subscriber }, None);
                }
            }
            WireInput::Report(WireReport::Gone { connection, why, .. }) => {
                tracing::debug!(?connection, %why, "A connection is gone.");
                self.connection_gone(connection);
            }
            WireInput::Report(WireReport::Message { .. }) => {}
        }
    }

    /// While nothing can be stored, refuses a message that came on a socket. The sender learns this at once,
    /// ahead of everything that waits for the disk. If it was a reply to an ask, the error names it.
    fn refuse_now(
        &mut self,
        connection: ConnectionKey,
        why: String,
        reply_token: Option<&ReplyToken>,
    ) {
        let message = HubError::NotTaken { why }.to_string();
        let mut frame =
            json!({ "type": "agentvoice:error", "error": "not_taken", "message": message });
        if let Some(token) = reply_token {
            frame["reply_token"] = token.as_str().into();
        }
        let packet = Arc::new(WirePacket::new("", frame.to_string().into_bytes()));
        let wire = if self.is_agent(connection) { &self.agent_wire } else { &self.wire };
        // If the wire has stopped, there is nobody to tell.
        let _ = wire.send(vec![Command::Send { connection, packet }]);
    }

    /// The same for a subscription request, which is answered with a rejection.
    fn reject_now(&mut self, connection: ConnectionKey) {
        let rejected = self.reject_at(Door::Failing);
        let json = serde_json::to_vec(&rejected).unwrap_or_default();
        let packet = Arc::new(WirePacket::new("", json));
        let reason = "The subscription was rejected.".to_owned();
        let close = Command::Close { connection, code: 4001, reason, after_flush: true };
        // If the wire has stopped, there is nobody to tell.
        let _ = self.wire.send(vec![Command::Send { connection, packet }, close]);
    }

    /// Whether the subscriber is attached to this connection. A report may be about an earlier connection.
    fn is_on(&self, subscriber: SubscriberKey, connection: ConnectionKey) -> bool {
        self.subscribers.get(&subscriber).is_some_and(|it| it.connection == Some(connection))
    }

    /// Notes whether the subscriber's wire is full.
    pub(super) fn set_blocked(&mut self, subscriber: SubscriberKey, is_blocked: bool) {
        if is_blocked {
            self.blocked.insert(subscriber);
        } else {
            self.blocked.remove(&subscriber);
        }
    }

    /// Lets a critical event overtake everything that waits for full sockets.
    pub(super) fn withdraw_for_critical(&mut self) {
        let on = |subscriber: &SubscriberKey| self.subscribers.get(subscriber)?.connection;
        let full = self.blocked.iter().filter_map(on);
        let commands =
            full.map(|connection| DeferredEffect::Wire(Command::Withdraw { connection }));
        self.batch.effects.extend(commands);
    }

    /// Handles the events after `last` that a wire gave back.
    fn take_back(&mut self, connection: ConnectionKey, subscriber: SubscriberKey, last: &str) {
        if self.is_on(subscriber, connection) {
            match EventId::parse(last) {
                Ok(last_event_id) => {
                    self.handle(EngineInput::TakeBack { subscriber, last_event_id }, None);
                }
                // The position is unknown, so the subscriber has to reconnect and say where it is.
                Err(_) => self.close(connection, 4000, "Connect again."),
            }
        }
        self.tell_wire(Command::GoOn { connection });
    }

    fn connection_gone(&mut self, connection: ConnectionKey) {
        let Some(gone) = self.connections.remove(&connection) else { return };
        if gone.kind == ConnectionKind::Agent {
            self.agent_gone(connection);
        }
        let Some(subscriber) = gone.subscriber else { return };
        if self.is_on(subscriber, connection) {
            self.set_blocked(subscriber, false);
            if let Some(subscriber) = self.subscribers.get_mut(&subscriber) {
                subscriber.connection = None;
            }
            self.handle(EngineInput::Disconnect { subscriber }, None);
        }
    }

    /// Revokes the access of a principal: its subscriptions end, and its connections close.
    pub(super) fn end_access(&mut self, principal_id: &str) {
        let theirs = self.connections.iter().filter(|(_, it)| it.principal.id == principal_id);
        let theirs: Vec<_> = theirs.map(|(key, it)| (*key, it.subscriber)).collect();
        for (connection, subscriber) in theirs {
            if let Some(subscriber) = subscriber {
                let reason = EndReason::AccessEnded;
                self.handle(EngineInput::End { subscriber, reason }, Some(connection));
            }
            self.close(connection, 4003, "You may not be here any more. Ask for a new token.");
        }
    }

    /// The principal of every connection.
    pub(super) fn everyone(&self) -> Vec<Arc<Principal>> {
        self.connections.values().map(|it| Arc::clone(&it.principal)).collect()
    }

    /// Takes over a connection.
    pub(super) fn attach(&mut self, new: NewConnection, purpose: ConnectionPurpose) {
        let principal = Arc::clone(&new.principal);
        let Some(connection) = self.connect(new, purpose.kind()) else { return };
        match purpose {
            ConnectionPurpose::Stream { subscription_id, last_event_id } => {
                self.stream(connection, subscription_id, last_event_id);
            }
            ConnectionPurpose::LegacyStream { last_event_id } => {
                self.legacy_stream(connection, &principal, last_event_id);
            }
            ConnectionPurpose::LegacySocket => self.legacy_begin(connection, &principal, None),
            ConnectionPurpose::Refused { code, reason } => self.close(connection, code, &reason),
            ConnectionPurpose::SubscriberSocket | ConnectionPurpose::AgentSocket => {}
        }
    }

    /// Whether an agent speaks on this connection, which therefore is on the agent wire.
    fn is_agent(&self, connection: ConnectionKey) -> bool {
        self.connections.get(&connection).is_some_and(|it| it.kind == ConnectionKind::Agent)
    }

    /// Sends a command to the wire that this connection is on.
    fn tell_connection(&mut self, connection: ConnectionKey, command: Command) {
        if self.is_agent(connection) {
            self.tell_agent_wire(command);
        } else {
            self.tell_wire(command);
        }
    }

    /// Registers a connection. No subscription is attached to it yet.
    fn connect(&mut self, new: NewConnection, kind: ConnectionKind) -> Option<ConnectionKey> {
        let NewConnection { principal, socket, read_ahead, protocol, permit } = new;
        let number = self.principal_number(&principal).ok()?;
        let wire = if kind == ConnectionKind::Agent { &self.agent_wire } else { &self.wire };
        let connection = wire.new_key();
        self.connections.insert(
            connection,
            HubConnection {
                principal,
                number,
                kind,
                subscriber: None,
                mistakes: 0,
                spoken_in: VecDeque::new(),
                _permit: permit,
            },
        );
        let add = Command::Add { connection, socket, protocol, read_ahead };
        self.tell_connection(connection, add);
        Some(connection)
    }

    /// Delivers a subscription on a new connection, from where the subscriber left off.
    pub(super) fn stream(
        &mut self,
        connection: ConnectionKey,
        subscription_id: SubscriptionId,
        last_event_id: Option<EventId>,
    ) {
        let Some(known) = self.connections.get(&connection) else { return };
        let principal = Arc::clone(&known.principal);
        let Ok(number) = self.acting_number(&principal, Some(&subscription_id)) else { return };
        // The principal's hearing may have changed while the hub was stopped. Then the subscriber has to
        // subscribe again.
        let hears = self.engine.hears_of(&subscription_id);
        let is_as_before = hears.is_some_and(|hears| *hears == principal.hearing());
        let mine = self.engine.subscription(&subscription_id);
        let mine = mine.filter(|(_, whose)| *whose == number && is_as_before);
        let Some((subscriber, principal)) = mine else {
            self.close(connection, 4001, "There is no such subscription.");
            return;
        };
        self.take_over(subscriber, connection);
        let input = EngineInput::Reconnect { principal, subscription_id, last_event_id };
        self.handle(input, Some(connection));
    }

    /// Moves a subscriber from its old connection to this one.
    fn take_over(&mut self, subscriber: SubscriberKey, connection: ConnectionKey) {
        self.set_blocked(subscriber, false);
        let Some(known) = self.subscribers.get_mut(&subscriber) else { return };
        known.was_connected = true;
        let before = known.connection.replace(connection);
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.subscriber = Some(subscriber);
        }
        self.tell_wire(Command::Attach { connection, subscriber: WireSubscriber(subscriber.0) });
        if let Some(before) = before.filter(|before| *before != connection) {
            self.close_former_connection(subscriber, before);
            self.handle(EngineInput::Disconnect { subscriber }, None);
        }
    }

    /// Closes the old connection of a subscriber that has moved to another one.
    pub(super) fn close_former_connection(
        &mut self,
        subscriber: SubscriberKey,
        before: ConnectionKey,
    ) {
        self.set_blocked(subscriber, false);
        if let Some(before) = self.connections.get_mut(&before) {
            before.subscriber = None;
        }
        self.close(before, 4000, "The subscription is heard on another connection now.");
    }

    /// Closes a connection after its pending messages.
    pub(super) fn close(&mut self, connection: ConnectionKey, code: u16, reason: &str) {
        let reason = reason.to_owned();
        let command = Command::Close { connection, code, reason, after_flush: true };
        self.tell_connection(connection, command);
    }

    /// Sends a message that is not an event on a subscriber's connection.
    pub(super) fn send(&mut self, connection: ConnectionKey, message: &impl serde::Serialize) {
        let json = serde_json::to_vec(message).unwrap_or_default();
        let packet = Arc::new(WirePacket::new("", json));
        self.tell_wire(Command::Send { connection, packet });
    }

    /// Reports on a WebSocket why a message could not be read. Closes the connection if its peer keeps making
    /// mistakes.
    pub(super) fn report_mistake(
        &mut self,
        connection: ConnectionKey,
        error: (&str, &str),
        wrong: &[aaep::Violation],
    ) {
        self.report_refusal(connection, error, wrong, None);
        let Some(known) = self.connections.get_mut(&connection) else { return };
        known.mistakes += 1;
        if known.mistakes >= MAX_MISTAKES {
            self.close(connection, 4004, "Too many messages could not be taken.");
        }
    }

    /// Reports on a WebSocket why a message was refused, and which reply it was. However many are refused, the
    /// connection stays: an agent that ends its asks while they are presented must not end the person's listener.
    pub(super) fn report_refusal(
        &mut self,
        connection: ConnectionKey,
        (error, message): (&str, &str),
        wrong: &[aaep::Violation],
        reply_token: Option<&ReplyToken>,
    ) {
        let mut body = json!({ "type": "agentvoice:error", "error": error, "message": message });
        if let Some(token) = reply_token {
            body["reply_token"] = token.as_str().into();
        }
        if !wrong.is_empty() {
            body["violations"] = violations::to_json(wrong);
        }
        self.send(connection, &body);
    }
}
