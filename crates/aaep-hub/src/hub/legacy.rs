//! The legacy paths (ruling 27): `/events` and `/messages`, as the public tools and suite speak them.
//!
//! There a stream has the default terms until a request comes, what is posted belongs to the newest stream
//! of whoever posts it, replies name subscriptions that were never given, and a session is started with
//! `{"kind": "user_input"}`. Who may answer is decided as everywhere: by who it is, and by what was sent to
//! them. The frame `input.accepted` is in no chapter; the public suite takes the first frame for it.

use aaep::handshake::{SubscriptionRejected, SubscriptionRequest};
use aaep::{Capabilities, EventId, Message, SubscriptionId, Version, Violation};
use aaep_engine::terms::Door;
use aaep_engine::{Input, Resume};
use aaep_transport::wire::ConnectionKey;
use serde_json::{Value, json};

use super::listeners::{Told, close_of};
use super::owner::Owner;
use super::posts::{NotInstructed, Wish};
use super::reading::{MalformedRequest, SubscriberMessage, read_subscriber};
use crate::access::{Principal, Scope, UNNAMED_PROGRAM};

/// How many prompts may wait for a stream.
const MAX_HELD_PROMPTS: usize = 16;

/// How many bytes the prompts of one principal may have, and those of all.
const MAX_HELD_BYTES_EACH: usize = 256 * 1024;
const MAX_HELD_BYTES: usize = 16 * MAX_HELD_BYTES_EACH;

/// The newest stream of a principal.
#[derive(Debug, Default)]
pub(super) struct Legacy {
    subscription_id: Option<SubscriptionId>,
    /// Whether it was asked for and not heard yet.
    is_fresh: bool,
    /// Prompts that came before a stream.
    held: Vec<String>,
}

/// What the legacy path answers to a message.
#[derive(Debug, Clone, PartialEq)]
pub enum LegacyAnswer {
    /// It was taken; whatever came of it is on the stream.
    Taken,
    /// It is no message that anyone knows.
    NotValid(Vec<Violation>),
    /// A request for a subscription was rejected, and no stream says so.
    Rejected(Box<SubscriptionRejected>),
    /// No agent was told.
    NotInstructed(NotInstructed),
}

impl Owner {
    /// A stream on the legacy path. It goes on where an earlier one broke off, if it says where.
    pub(super) fn legacy_stream(
        &mut self,
        connection: ConnectionKey,
        principal: &Principal,
        last_event_id: Option<EventId>,
    ) {
        let Some(number) = self.connections.get(&connection).map(|it| it.number) else { return };
        let legacy = self.legacy.entry(number).or_default();
        let is_fresh = std::mem::take(&mut legacy.is_fresh);
        let before = legacy.subscription_id.clone().filter(|id| {
            let listener =
                self.engine.subscription(id).and_then(|(key, _)| self.listeners.get(&key));
            listener.is_some_and(|listener| listener.connection.is_none())
        });
        match before {
            // Its terms were asked for before the stream, or it says where it broke off.
            Some(id) if is_fresh || last_event_id.is_some() => {
                self.stream(connection, id, last_event_id);
            }
            before => {
                let resume = last_event_id
                    .map(|id| Resume { subscription_id: None, last_event_id: Some(id) });
                self.legacy_begin(connection, principal, resume);
                if let Some(before) = before {
                    self.legacy_end(principal, before);
                }
            }
        }
        let held = self.legacy.get_mut(&number).map(|it| std::mem::take(&mut it.held));
        for text in held.into_iter().flatten() {
            // What came of it is on the stream.
            let _ = self.legacy_prompt(connection, principal, text);
        }
    }

    /// A subscription with the default terms (ruling 3), about which nothing is said on the stream.
    pub(super) fn legacy_begin(
        &mut self,
        connection: ConnectionKey,
        principal: &Principal,
        resume: Option<Resume>,
    ) {
        let request = default_request(principal.scopes.has(Scope::Reply));
        let begun = self.subscribe_with(principal, Door::Open, request, resume, None);
        match begun {
            Ok(accepted) => {
                self.note_legacy(connection, &accepted.subscription_id);
                self.stream(connection, accepted.subscription_id, None);
            }
            Err(rejected) => {
                self.send(connection, &rejected);
                self.close(connection, 4001, "The subscription was rejected.");
            }
        }
    }

    /// A stream that broke off is not needed any more.
    fn legacy_end(&mut self, principal: &Principal, subscription_id: SubscriptionId) {
        let Ok(principal) = self.acting(principal, Some(&subscription_id)) else { return };
        let message = Box::new(close_of(subscription_id));
        self.handle(Input::Close { principal, message }, None);
    }

    fn note_legacy(&mut self, connection: ConnectionKey, subscription_id: &SubscriptionId) {
        if let Some(number) = self.connections.get(&connection).map(|it| it.number) {
            self.forget_old_legacy();
            let legacy = self.legacy.entry(number).or_default();
            legacy.subscription_id = Some(subscription_id.clone());
        }
    }

    /// Something was posted on the legacy path.
    pub(super) fn legacy_message(&mut self, principal: &Principal, text: &str) -> LegacyAnswer {
        let Ok(number) = self.principal(principal) else {
            return LegacyAnswer::NotInstructed(NotInstructed::Full);
        };
        let subscription_id = self.legacy.get(&number).and_then(|it| it.subscription_id.clone());
        let subscription_id = subscription_id.filter(|id| self.may_mean(principal, id, text));
        let listener = subscription_id.as_ref().and_then(|id| self.engine.subscription(id));
        let listener = listener.and_then(|(key, _)| self.listeners.get(&key));
        let connection = listener.and_then(|listener| listener.connection);
        if let Some(text) = prompt_of(text) {
            return self.legacy_input(connection, principal, number, text);
        }
        let message = match read(text, subscription_id.as_ref()) {
            SubscriberMessage::Valid(message) => message,
            SubscriberMessage::MalformedRequest(request) => {
                return LegacyAnswer::Rejected(Box::new(self.legacy_reject(connection, request)));
            }
            SubscriberMessage::Malformed(violations) => return LegacyAnswer::NotValid(violations),
        };
        match (message, connection) {
            (Message::SubscriptionRequest(request), Some(connection)) => {
                self.legacy_request(connection, principal, *request);
            }
            (Message::SubscriptionRequest(request), None) => {
                match self.subscribe(principal, Door::Open, *request, None) {
                    Ok(accepted) => {
                        let legacy = self.legacy.entry(number).or_default();
                        legacy.subscription_id = Some(accepted.subscription_id.clone());
                        legacy.is_fresh = true;
                    }
                    Err(rejected) => return LegacyAnswer::Rejected(rejected),
                }
            }
            (message, connection) => self.legacy_tell(connection, principal, message),
        }
        LegacyAnswer::Taken
    }

    /// Whether a message that was posted may mean the stream of its sender. All local programs are one principal, and
    /// what an allowed one says counts: for its stream, a message has to name the subscription, or, to ask for other
    /// terms, the program (ruling 37).
    fn may_mean(&self, principal: &Principal, real: &SubscriptionId, text: &str) -> bool {
        if !principal.is_local_program() || self.roster.trusts_local_programs() {
            return true;
        }
        let whose = self.engine.subscription(real).and_then(|(_, whose)| self.program(whose));
        let Some(program) = whose.filter(|program| *program != UNNAMED_PROGRAM) else {
            return true;
        };
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        message["subscription_id"] == real.as_str() || message["subscriber_id"] == program
    }

    /// Something came on a legacy socket. Says whether that was all.
    pub(super) fn hear_legacy(
        &mut self,
        connection: ConnectionKey,
        principal: &Principal,
        text: &str,
    ) -> bool {
        if let Some(text) = prompt_of(text) {
            // What came of it is on the socket.
            let _ = self.legacy_prompt(connection, principal, text);
            return true;
        }
        let listener = self.connections.get(&connection).and_then(|it| it.listener);
        let listener = listener.and_then(|listener| self.listeners.get(&listener));
        let subscription_id = listener.map(|it| it.subscription_id.clone());
        match read(text, subscription_id.as_ref()) {
            SubscriberMessage::Malformed(_) => false,
            SubscriberMessage::MalformedRequest(request) => {
                self.legacy_reject(Some(connection), request);
                true
            }
            SubscriberMessage::Valid(Message::SubscriptionRequest(request)) => {
                self.legacy_request(connection, principal, *request);
                true
            }
            SubscriberMessage::Valid(message) => {
                self.legacy_tell(Some(connection), principal, message);
                true
            }
        }
    }

    /// A request that cannot be read. The stream, if there is one, goes on with the terms that it has.
    fn legacy_reject(
        &mut self,
        connection: Option<ConnectionKey>,
        request: MalformedRequest,
    ) -> SubscriptionRejected {
        let rejected = self.reject_malformed(request);
        if let Some(connection) = connection {
            self.send(connection, &rejected);
        }
        rejected
    }

    /// Other terms on a legacy stream; the answer is the next frame on it.
    fn legacy_request(
        &mut self,
        connection: ConnectionKey,
        principal: &Principal,
        request: SubscriptionRequest,
    ) {
        if let Ok(accepted) = self.subscribe_on(connection, principal, request) {
            self.note_legacy(connection, &accepted.subscription_id);
        }
    }

    /// A reply or a wish. What a reply came to is in the events that follow it.
    fn legacy_tell(
        &mut self,
        connection: Option<ConnectionKey>,
        principal: &Principal,
        message: Message,
    ) {
        if let Told::Rejected(message) = self.tell(principal, message, connection)
            && let Some(connection) = connection
        {
            self.send(connection, &message);
        }
    }

    /// What a person typed: for a stream that is there, or for the next one.
    fn legacy_input(
        &mut self,
        connection: Option<ConnectionKey>,
        principal: &Principal,
        number: u64,
        text: String,
    ) -> LegacyAnswer {
        if let Some(connection) = connection {
            return match self.legacy_prompt(connection, principal, text) {
                Ok(()) => LegacyAnswer::Taken,
                Err(why) => LegacyAnswer::NotInstructed(why),
            };
        }
        // What is held goes to an agent with the next stream, whoever opens it.
        if principal.is_local_program() && !self.roster.may_answer(UNNAMED_PROGRAM) {
            return LegacyAnswer::NotInstructed(NotInstructed::NotAllowed);
        }
        self.forget_old_legacy();
        let bytes = |legacy: &Legacy| legacy.held.iter().map(String::len).sum::<usize>();
        let in_all = text.len() + self.legacy.values().map(bytes).sum::<usize>();
        let legacy = self.legacy.entry(number).or_default();
        let own = text.len() + bytes(legacy);
        if legacy.held.len() >= MAX_HELD_PROMPTS
            || own > MAX_HELD_BYTES_EACH
            || in_all > MAX_HELD_BYTES
        {
            return LegacyAnswer::NotInstructed(NotInstructed::Full);
        }
        legacy.held.push(text);
        LegacyAnswer::Taken
    }

    /// Forgets whose subscription is over, unless a prompt of theirs waits for a stream.
    pub(super) fn forget_old_legacy(&mut self) {
        let engine = &self.engine;
        self.legacy.retain(|_, legacy| {
            let id = legacy.subscription_id.as_ref();
            !legacy.held.is_empty() || id.is_some_and(|id| engine.subscription(id).is_some())
        });
    }

    fn legacy_prompt(
        &mut self,
        connection: ConnectionKey,
        principal: &Principal,
        text: String,
    ) -> Result<(), NotInstructed> {
        let listener = self.connections.get(&connection).and_then(|it| it.listener);
        let id =
            listener.and_then(|it| self.listeners.get(&it)).map(|it| it.subscription_id.clone());
        let is_allowed = !principal.is_local_program()
            || self.acting(principal, id.as_ref()).is_ok_and(|it| self.is_allowed_program(it));
        let told = if is_allowed {
            self.instruct_agent(principal, None, Wish::Prompt { text })
        } else {
            Err(NotInstructed::NotAllowed)
        };
        let frame = match &told {
            Ok(session_id) => json!({ "type": "input.accepted", "session_id": session_id }),
            Err(why) => {
                json!({ "type": "agentvoice:error", "error": "not_accepted", "message": why.to_string() })
            }
        };
        self.send(connection, &frame);
        told.map(|_| ())
    }
}

/// Reads a message as if it named the subscription that its stream really has.
fn read(text: &str, real: Option<&SubscriptionId>) -> SubscriberMessage {
    let named = serde_json::from_str(text).ok().and_then(|mut message: Value| {
        *message.get_mut("subscription_id")? = real?.as_str().into();
        Some(message.to_string())
    });
    read_subscriber(named.as_deref().unwrap_or(text).as_bytes())
}

/// The text of `{"kind": "user_input", "text": …}`.
fn prompt_of(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    if value.get("kind")?.as_str()? != "user_input" {
        return None;
    }
    value.get("text")?.as_str().map(str::to_owned)
}

/// The terms of a listener that never asked for any (ruling 3).
fn default_request(can_reply: bool) -> SubscriptionRequest {
    let mut capabilities = Capabilities::new();
    capabilities.supports_confirmation_reply = Some(can_reply);
    capabilities.supports_clarification_reply = Some(can_reply);
    SubscriptionRequest {
        aaep_version: Version::parse("1.0.0").expect("a constant of the right form"),
        subscriber_id: UNNAMED_PROGRAM.to_owned(),
        subscriber_name: None,
        subscriber_version: None,
        subscriber_manifest_uri: None,
        correlation_id: None,
        capabilities,
        extensions: None,
        other: aaep::Object::new(),
    }
}
