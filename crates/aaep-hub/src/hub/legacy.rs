//! The legacy paths (ruling 27): `/events` and `/messages`, as the public tools and the public suite use them.
//!
//! On these paths a stream has the default terms until a request comes; a posted message belongs to a stream of
//! its sender; replies name no subscription, or one that the hub never gave; and `{"kind": "user_input"}`
//! starts a session. The right to answer is decided as everywhere else: by the principal, and by what was sent
//! to it (ruling 3). No chapter of the specification has the frame `input.accepted`; the public suite accepts
//! the first frame as such.

use std::collections::VecDeque;

use aaep::handshake::{SubscriptionRejected, SubscriptionRequest};
use aaep::{Capabilities, EventId, Message, Mode, ReplyToken, SubscriptionId, Version, Violation};
use aaep_engine::terms::Door;
use aaep_engine::{EngineInput, PrincipalNumber, ResumePoint};
use aaep_transport::wire::ConnectionKey;
use aaep_trust::strict_json;
use serde_json::{Value, json};

use super::owner::EngineOwner;
use super::posts::{NewInstruction, NotInstructed};
use super::reading::{MalformedRequest, SubscriberMessage, read_subscriber};
use super::subscribers::{MessageOutcome, close_of};
use crate::access::{Principal, Scope, UNNAMED_PROGRAM};

/// How many prompts of one principal may wait for a stream.
const MAX_HELD_PROMPTS: usize = 16;

/// The most bytes for the waiting prompts of one principal, and for those of all principals.
const MAX_HELD_BYTES_EACH: usize = 256 * 1024;
const MAX_HELD_BYTES: usize = 16 * MAX_HELD_BYTES_EACH;

/// How many streams of a principal are remembered in addition to the newest.
const MAX_OLDER_STREAMS: usize = 16;

/// The legacy streams of one principal.
#[derive(Debug, Default)]
pub(super) struct LegacyStreams {
    /// The newest.
    subscription_id: Option<SubscriptionId>,
    /// Earlier streams that may still be connected, the newest last.
    older: VecDeque<SubscriptionId>,
    /// Whether the newest stream was requested and has not been connected yet.
    is_fresh: bool,
    /// Prompts that came before a stream.
    held: Vec<HeldPrompt>,
}

/// A prompt that waits for a stream.
#[derive(Debug)]
struct HeldPrompt {
    /// The proof that came with the prompt. A stream with another proof does not get the prompt, because the
    /// first proof may have been revoked.
    proof: Option<String>,
    text: String,
}

/// The answer of the legacy path to a message.
#[derive(Debug, Clone, PartialEq)]
pub enum LegacyAnswer {
    /// The message was taken; the result appears on the stream.
    Taken,
    /// The message is not a known one.
    NotValid(Vec<Violation>),
    /// The program may not answer, so nothing that it answers counts.
    MayNotAnswer,
    /// A request for a subscription was rejected, and there is no stream to say so.
    Rejected(Box<SubscriptionRejected>),
    /// No agent was instructed.
    NotInstructed(NotInstructed),
}

/// Tells a program without a name that it may not answer, and what the person can do about it.
pub(crate) const MAY_NOT_ANSWER: &str = "This program may listen, but not answer. To let it answer, run: \
    aaep allow NAME --address, with a name for this program, and give it the address that is shown.";

impl LegacyStreams {
    /// Makes this the newest stream.
    fn begin(&mut self, subscription_id: &SubscriptionId) {
        let before = self.subscription_id.replace(subscription_id.clone());
        self.older.extend(before.filter(|before| before != subscription_id));
        if self.older.len() > MAX_OLDER_STREAMS {
            self.older.pop_front();
        }
    }

    /// All streams, the newest first.
    fn streams(&self) -> impl Iterator<Item = &SubscriptionId> {
        self.subscription_id.iter().chain(self.older.iter().rev())
    }
}

impl EngineOwner {
    /// Starts a stream on the legacy path. It continues an earlier one if the request says where that one broke
    /// off.
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
            let subscriber =
                self.engine.subscription(id).and_then(|(key, _)| self.subscribers.get(&key));
            subscriber.is_some_and(|subscriber| subscriber.connection.is_none())
        });
        match before {
            // Either its terms were requested before the stream, or the request says where the stream broke
            // off.
            Some(id) if is_fresh || last_event_id.is_some() => {
                self.stream(connection, id, last_event_id);
            }
            before => {
                let resume = last_event_id
                    .map(|id| ResumePoint { subscription_id: None, last_event_id: Some(id) });
                self.legacy_begin(connection, principal, resume);
                if let Some(before) = before {
                    self.legacy_end(principal, before);
                }
            }
        }
        let held = self.legacy.get_mut(&number).map(|it| std::mem::take(&mut it.held));
        for prompt in held.into_iter().flatten().filter(|it| it.proof == principal.proof) {
            // The result is on the stream.
            let _ = self.legacy_prompt(connection, principal, prompt.text);
        }
    }

    /// Starts a subscription with the default terms (ruling 3). Nothing about it is sent on the stream.
    pub(super) fn legacy_begin(
        &mut self,
        connection: ConnectionKey,
        principal: &Principal,
        resume: Option<ResumePoint>,
    ) {
        if principal.is_local_program() && !self.roster.trusts_local_programs() {
            self.send(connection, &may_not_answer());
        }
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

    /// Ends a stream that broke off and is no longer needed.
    fn legacy_end(&mut self, principal: &Principal, subscription_id: SubscriptionId) {
        let Ok(principal) = self.acting_number(principal, Some(&subscription_id)) else { return };
        let message = Box::new(close_of(subscription_id));
        self.handle(EngineInput::Close { principal, message }, None);
    }

    fn note_legacy(&mut self, connection: ConnectionKey, subscription_id: &SubscriptionId) {
        if let Some(number) = self.connections.get(&connection).map(|it| it.number) {
            self.forget_old_legacy();
            self.legacy.entry(number).or_default().begin(subscription_id);
        }
    }

    /// Handles a message that was posted on the legacy path.
    pub(super) fn legacy_message(&mut self, principal: &Principal, text: &str) -> LegacyAnswer {
        let Ok(number) = self.principal_number(principal) else {
            return LegacyAnswer::NotInstructed(NotInstructed::Full);
        };
        let posted = serde_json::from_str(text).unwrap_or_default();
        let subscription_id = self.meant_stream(principal, number, &posted);
        let subscriber = subscription_id.as_ref().and_then(|id| self.engine.subscription(id));
        let subscriber = subscriber.and_then(|(key, _)| self.subscribers.get(&key));
        let connection = subscriber.and_then(|subscriber| subscriber.connection);
        if let Some(text) = prompt_of(&posted) {
            return self.legacy_input(connection, principal, number, text);
        }
        if is_reply(&posted) && !self.may_answer_on(principal, subscription_id.as_ref()) {
            return LegacyAnswer::MayNotAnswer;
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
                        legacy.begin(&accepted.subscription_id);
                        legacy.is_fresh = true;
                    }
                    Err(rejected) => return LegacyAnswer::Rejected(rejected),
                }
            }
            (message, connection) => self.legacy_tell(connection, principal, message),
        }
        LegacyAnswer::Taken
    }

    /// Finds the sender's stream that a message is about. A reply is about a stream that was sent the ask; two
    /// programs at one address are one program to the person. Everything else is about the newest stream.
    fn meant_stream(
        &self,
        principal: &Principal,
        number: PrincipalNumber,
        posted: &Value,
    ) -> Option<SubscriptionId> {
        let streams = || {
            let streams = self.legacy.get(&number).into_iter().flat_map(LegacyStreams::streams);
            streams.filter(|id| self.may_mean(principal, id, posted))
        };
        let token = posted["reply_token"].as_str().and_then(|it| ReplyToken::parse(it).ok());
        let asked =
            token.and_then(|token| streams().find(|id| self.engine.was_sent_ask(id, &token)));
        asked.or_else(|| streams().next()).cloned()
    }

    /// Whether a posted message may mean this stream of its sender. All local programs are one principal, and
    /// the messages of an allowed program count. For the stream of an allowed program, a message therefore has
    /// to name the subscription or, to request other terms, the program (ruling 37).
    fn may_mean(&self, principal: &Principal, stream: &SubscriptionId, posted: &Value) -> bool {
        if !principal.is_local_program() || self.roster.trusts_local_programs() {
            return true;
        }
        let whose =
            self.engine.subscription(stream).and_then(|(_, whose)| self.program_name(whose));
        whose.is_none_or(|program| {
            posted["subscription_id"] == stream.as_str() || posted["subscriber_id"] == program
        })
    }

    /// Whether the principal's answer on this stream can count at all.
    fn may_answer_on(&self, principal: &Principal, stream: Option<&SubscriptionId>) -> bool {
        if !principal.is_local_program() || self.roster.trusts_local_programs() {
            return principal.scopes.has(Scope::Reply);
        }
        let whose = stream.and_then(|id| self.engine.subscription(id));
        whose.is_some_and(|(_, whose)| self.is_allowed_program(whose))
    }

    /// Handles a message on a legacy socket. Returns whether the message is done with.
    pub(super) fn handle_legacy_frame(
        &mut self,
        connection: ConnectionKey,
        principal: &Principal,
        text: &str,
    ) -> bool {
        if let Some(text) = serde_json::from_str(text).ok().and_then(|it| prompt_of(&it)) {
            // The result is on the socket.
            let _ = self.legacy_prompt(connection, principal, text);
            return true;
        }
        let subscriber = self.connections.get(&connection).and_then(|it| it.subscriber);
        let subscriber = subscriber.and_then(|subscriber| self.subscribers.get(&subscriber));
        let subscription_id = subscriber.map(|it| it.subscription_id.clone());
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

    /// Rejects an unreadable request. The stream, if there is one, keeps its terms.
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

    /// Requests other terms for a legacy stream; the answer is the next frame on it.
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

    /// Handles a reply or another message. The result of a reply appears in the events that follow.
    fn legacy_tell(
        &mut self,
        connection: Option<ConnectionKey>,
        principal: &Principal,
        message: Message,
    ) {
        if let MessageOutcome::Rejected(message) = self.tell(principal, message, connection)
            && let Some(connection) = connection
        {
            self.send(connection, &message);
        }
    }

    /// Handles a prompt: for the connected stream, or for the next one.
    fn legacy_input(
        &mut self,
        connection: Option<ConnectionKey>,
        principal: &Principal,
        number: PrincipalNumber,
        text: String,
    ) -> LegacyAnswer {
        if let Some(connection) = connection {
            return match self.legacy_prompt(connection, principal, text) {
                Ok(()) => LegacyAnswer::Taken,
                Err(why) => LegacyAnswer::NotInstructed(why),
            };
        }
        // A held prompt goes to an agent with the next stream, no matter which program opens it.
        if principal.is_local_program() && !self.roster.trusts_local_programs() {
            return LegacyAnswer::NotInstructed(NotInstructed::NotAllowed);
        }
        self.forget_old_legacy();
        let bytes =
            |legacy: &LegacyStreams| legacy.held.iter().map(|it| it.text.len()).sum::<usize>();
        let in_all = text.len() + self.legacy.values().map(bytes).sum::<usize>();
        let legacy = self.legacy.entry(number).or_default();
        let own = text.len() + bytes(legacy);
        if legacy.held.len() >= MAX_HELD_PROMPTS
            || own > MAX_HELD_BYTES_EACH
            || in_all > MAX_HELD_BYTES
        {
            return LegacyAnswer::NotInstructed(NotInstructed::Full);
        }
        legacy.held.push(HeldPrompt { proof: principal.proof.clone(), text });
        LegacyAnswer::Taken
    }

    /// Forgets principals whose subscriptions are over, unless one of their prompts waits for a stream.
    pub(super) fn forget_old_legacy(&mut self) {
        let engine = &self.engine;
        self.legacy.retain(|_, legacy| {
            legacy.older.retain(|id| engine.subscription(id).is_some());
            let newest = legacy.subscription_id.take();
            let newest = newest.filter(|id| engine.subscription(id).is_some());
            legacy.subscription_id = newest.or_else(|| legacy.older.pop_back());
            !legacy.held.is_empty() || legacy.subscription_id.is_some()
        });
    }

    fn legacy_prompt(
        &mut self,
        connection: ConnectionKey,
        principal: &Principal,
        text: String,
    ) -> Result<(), NotInstructed> {
        let subscriber = self.connections.get(&connection).and_then(|it| it.subscriber);
        let id = subscriber
            .and_then(|it| self.subscribers.get(&it))
            .map(|it| it.subscription_id.clone());
        let is_allowed = !principal.is_local_program()
            || self
                .acting_number(principal, id.as_ref())
                .is_ok_and(|it| self.is_allowed_program(it));
        let told = if is_allowed {
            self.instruct_agent(principal, None, NewInstruction::Prompt { text })
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

/// Reads a message. Unless it is a request, it counts for the subscription that its stream really has.
fn read(text: &str, real: Option<&SubscriptionId>) -> SubscriberMessage {
    let (Some(real), Ok(Value::Object(mut message))) = (real, strict_json::parse(text.as_bytes()))
    else {
        return read_subscriber(text.as_bytes());
    };
    if message.get("type") == Some(&REQUEST.into()) {
        return read_subscriber(text.as_bytes());
    }
    message.insert("subscription_id".to_owned(), real.as_str().into());
    match aaep::read_object(&message, Mode::Strict).into_result() {
        Ok(message) => SubscriberMessage::Valid(message),
        // A close counts, whatever else is wrong with it (ruling 25).
        Err(_) if message.get("type") == Some(&CLOSE.into()) => {
            SubscriberMessage::Valid(Message::SubscriptionClose(Box::new(close_of(real.clone()))))
        }
        Err(violations) => SubscriberMessage::Malformed(violations),
    }
}

/// The message that requests a subscription, and therefore names none.
const REQUEST: &str = "subscription.request";

const CLOSE: &str = "subscription.close";

/// Whether this is an answer to an ask.
fn is_reply(posted: &Value) -> bool {
    ["confirmation.reply", "clarification.reply"].iter().any(|it| posted["type"] == *it)
}

/// The text of `{"kind": "user_input", "text": …}`.
fn prompt_of(posted: &Value) -> Option<String> {
    if posted.get("kind")?.as_str()? != "user_input" {
        return None;
    }
    posted.get("text")?.as_str().map(str::to_owned)
}

/// The first frame for a program that may not answer. It has the fields that the public programs show and speak
/// for an unknown type; they ignore changes of state.
fn may_not_answer() -> Value {
    json!({
        "type": "agentvoice:error", "error": "may_not_answer", "message": MAY_NOT_ANSWER,
        "summary_normal": MAY_NOT_ANSWER, "urgency": "critical",
    })
}

/// The request of a subscriber that never sent one: the default terms (ruling 3).
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
