//! Connections: how they come, what is sent on them, and how they go.

use std::collections::VecDeque;
use std::sync::Arc;

use aaep::{EventId, SessionId, SubscriptionId};
use aaep_engine::terms::Door;
use aaep_engine::{EndReason, Input, SubscriberKey};
use aaep_transport::wire::{Command, ConnectionKey, Report, Socket};
use aaep_transport::{Packet, Protocol};
use serde_json::json;

use super::HubError;
use super::ears::Heard;
use super::keeper::Effect;
use super::owner::Owner;
use super::violations;
use crate::access::{ConnectionPermit, Principal};

/// How many messages that cannot be read a peer may send before its connection ends (B.2.6, 4004).
const MAX_MISTAKES: u32 = 16;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Server-sent events; what the subscriber says comes by POST.
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
    pub(super) subscriber: Option<SubscriberKey>,
    mistakes: u32,
    /// The sessions that were spoken in on it, the newest last, if it is an agent's.
    spoken_in: VecDeque<SessionId>,
    /// Given back when the connection is gone.
    _permit: Option<ConnectionPermit>,
}

/// How many sessions of one agent's socket are remembered. An agent has few at a time.
const MAX_SPOKEN_IN: usize = 64;

impl Connection {
    /// Whether the agent of this session is there.
    pub(super) fn is_agent_of(&self, session_id: &SessionId) -> bool {
        self.spoken_in.contains(session_id)
    }

    /// Something was said in this session.
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

impl Owner {
    /// Something came from a wire.
    pub(super) fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Subscriber { connection, text, reading, is_paused } => {
                match self.status.what_is_wrong() {
                    Some(_) if reading.is_request() => self.reject_now(connection),
                    Some(why) => self.refuse_now(connection, why),
                    None => self.hear_subscriber(connection, &text, *reading),
                }
                if is_paused {
                    self.tell_wire(Command::Resume { connection });
                }
            }
            Heard::Agent { connection, message, is_paused } => {
                match self.status.what_is_wrong() {
                    Some(why) => self.refuse_now(connection, why),
                    None => self.hear_agent(connection, message),
                }
                if is_paused {
                    self.tell_agent_wire(Command::Resume { connection });
                }
            }
            Heard::Report(Report::Blocked { connection, subscriber }) => {
                if self.is_on(subscriber, connection) {
                    self.set_blocked(subscriber, true);
                    self.handle(Input::Block { subscriber }, None);
                }
            }
            Heard::Report(Report::Withdrawn { connection, subscriber, last_event_id }) => {
                self.take_back(connection, subscriber, &last_event_id);
            }
            Heard::Report(Report::Unblocked { connection, subscriber }) => {
                if self.is_on(subscriber, connection) {
                    self.set_blocked(subscriber, false);
                    self.handle(Input::Unblock { subscriber }, None);
                }
            }
            Heard::Report(Report::Gone { connection, why, .. }) => {
                tracing::debug!(connection, %why, "A connection is gone.");
                self.gone(connection);
            }
            Heard::Report(Report::Message { .. }) => {}
        }
    }

    /// Nothing can be stored: what came on a socket is not taken, which its sender is told at once and past all that
    /// waits for the disk.
    fn refuse_now(&mut self, connection: ConnectionKey, why: String) {
        let message = HubError::NotTaken { why }.to_string();
        let frame = json!({ "type": "agentvoice:error", "error": "not_taken", "message": message });
        let packet = Arc::new(Packet::new("", frame.to_string().into_bytes()));
        let is_agent = self.connections.get(&connection).is_some_and(|it| it.kind == Kind::Agent);
        let wire = if is_agent { &self.agent_wire } else { &self.wire };
        // A wire that has stopped has nobody to tell.
        let _ = wire.send(vec![Command::Send { connection, packet }]);
    }

    /// The same for a request, which is answered as one.
    fn reject_now(&mut self, connection: ConnectionKey) {
        let rejected = self.reject_at(Door::Failing);
        let json = serde_json::to_vec(&rejected).unwrap_or_default();
        let packet = Arc::new(Packet::new("", json));
        let reason = "The subscription was rejected.".to_owned();
        let close = Command::Close { connection, code: 4001, reason, after_flush: true };
        // A wire that has stopped has nobody to tell.
        let _ = self.wire.send(vec![Command::Send { connection, packet }, close]);
    }

    /// Whether a subscriber is heard on this connection. Reports may be about one that it had before.
    fn is_on(&self, subscriber: SubscriberKey, connection: ConnectionKey) -> bool {
        self.subscribers.get(&subscriber).is_some_and(|it| it.connection == Some(connection))
    }

    /// Notes whether the wire of a subscriber is full.
    pub(super) fn set_blocked(&mut self, subscriber: SubscriberKey, is_blocked: bool) {
        if is_blocked {
            self.blocked.insert(subscriber);
        } else {
            self.blocked.remove(&subscriber);
        }
    }

    /// Something urgent is to overtake what waits for the sockets that are full.
    pub(super) fn withdraw_for_urgent(&mut self) {
        let on = |subscriber: &SubscriberKey| self.subscribers.get(subscriber)?.connection;
        let full = self.blocked.iter().filter_map(on);
        let commands = full.map(|connection| Effect::Wire(Command::Withdraw { connection }));
        self.batch.effects.extend(commands);
    }

    /// A wire gave back what came after this event.
    fn take_back(&mut self, connection: ConnectionKey, subscriber: SubscriberKey, last: &str) {
        if self.is_on(subscriber, connection) {
            match EventId::parse(last) {
                Ok(last_event_id) => {
                    self.handle(Input::TakeBack { subscriber, last_event_id }, None);
                }
                // It cannot be said where it is: it comes back and says so itself.
                Err(_) => self.close(connection, 4000, "Connect again."),
            }
        }
        self.tell_wire(Command::GoOn { connection });
    }

    fn gone(&mut self, connection: ConnectionKey) {
        let Some(gone) = self.connections.remove(&connection) else { return };
        if gone.kind == Kind::Agent {
            self.agent_gone(connection);
        }
        let Some(subscriber) = gone.subscriber else { return };
        if self.is_on(subscriber, connection) {
            self.set_blocked(subscriber, false);
            if let Some(subscriber) = self.subscribers.get_mut(&subscriber) {
                subscriber.connection = None;
            }
            self.handle(Input::Disconnect { subscriber }, None);
        }
    }

    /// Whoever this is may not be here any more: what they hear ends, and so do their connections.
    pub(super) fn end_access(&mut self, principal_id: &str) {
        let theirs = self.connections.iter().filter(|(_, it)| it.principal.id == principal_id);
        let theirs: Vec<_> = theirs.map(|(key, it)| (*key, it.subscriber)).collect();
        for (connection, subscriber) in theirs {
            if let Some(subscriber) = subscriber {
                let reason = EndReason::AccessEnded;
                self.handle(Input::End { subscriber, reason }, Some(connection));
            }
            self.close(connection, 4003, "You may not be here any more. Ask for a new token.");
        }
    }

    /// Whose every connection is.
    pub(super) fn everyone(&self) -> Vec<Arc<Principal>> {
        self.connections.values().map(|it| Arc::clone(&it.principal)).collect()
    }

    /// Takes a connection over. Nothing is attached to it yet.
    pub(super) fn connect(&mut self, new: NewConnection, kind: Kind) -> Option<ConnectionKey> {
        let NewConnection { principal, socket, read_ahead, protocol, permit } = new;
        let number = self.principal(&principal).ok()?;
        let wire = if kind == Kind::Agent { &self.agent_wire } else { &self.wire };
        let connection = wire.new_key();
        self.connections.insert(
            connection,
            Connection {
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
        if kind == Kind::Agent {
            self.tell_agent_wire(add);
        } else {
            self.tell_wire(add);
        }
        Some(connection)
    }

    /// A subscriber hears its subscription on a new connection, from where it left off.
    pub(super) fn stream(
        &mut self,
        connection: ConnectionKey,
        subscription_id: SubscriptionId,
        last_event_id: Option<EventId>,
    ) {
        let Some(known) = self.connections.get(&connection) else { return };
        let principal = Arc::clone(&known.principal);
        let Ok(number) = self.acting(&principal, Some(&subscription_id)) else { return };
        // What they may hear can have changed while the hub was stopped; then they subscribe again.
        let hears = self.engine.hears_of(&subscription_id);
        let is_as_before = hears.is_some_and(|hears| *hears == principal.hearing());
        let mine = self.engine.subscription(&subscription_id);
        let mine = mine.filter(|(_, whose)| *whose == number && is_as_before);
        let Some((subscriber, principal)) = mine else {
            self.close(connection, 4001, "There is no such subscription.");
            return;
        };
        self.take_over(subscriber, connection);
        let input = Input::Reconnect { principal, subscription_id, last_event_id };
        self.handle(input, Some(connection));
    }

    /// A subscriber leaves the connection that it has for this one.
    fn take_over(&mut self, subscriber: SubscriberKey, connection: ConnectionKey) {
        self.set_blocked(subscriber, false);
        let Some(known) = self.subscribers.get_mut(&subscriber) else { return };
        known.has_heard = true;
        let before = known.connection.replace(connection);
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.subscriber = Some(subscriber);
        }
        self.tell_wire(Command::Attach { connection, subscriber });
        if let Some(before) = before.filter(|before| *before != connection) {
            self.let_go(subscriber, before);
            self.handle(Input::Disconnect { subscriber }, None);
        }
    }

    /// A connection that a subscriber had before ends; the subscriber is elsewhere.
    pub(super) fn let_go(&mut self, subscriber: SubscriberKey, before: ConnectionKey) {
        self.set_blocked(subscriber, false);
        if let Some(before) = self.connections.get_mut(&before) {
            before.subscriber = None;
        }
        self.close(before, 4000, "The subscription is heard on another connection now.");
    }

    /// Ends a connection after what waits for it.
    pub(super) fn close(&mut self, connection: ConnectionKey, code: u16, reason: &str) {
        let reason = reason.to_owned();
        let command = Command::Close { connection, code, reason, after_flush: true };
        let is_agent = self.connections.get(&connection).is_some_and(|it| it.kind == Kind::Agent);
        if is_agent { self.tell_agent_wire(command) } else { self.tell_wire(command) }
    }

    /// Sends a message that is no event on a connection of a subscriber.
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
