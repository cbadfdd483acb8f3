//! The legacy paths (ruling 27): `/events` and `/messages`, as the public tools and suite speak them.
//!
//! There a stream has the default terms until a request comes, what is posted belongs to a stream of whoever posts
//! it, replies name no subscription or one that was never given, and a session is started with
//! `{"kind": "user_input"}`. Who may answer is decided as everywhere: by who it is, and by what was sent to
//! them (ruling 3). The frame `input.accepted` is in no chapter; the public suite takes the first frame for it.

use std::collections::VecDeque;

use aaep::handshake::{SubscriptionRejected, SubscriptionRequest};
use aaep::{Capabilities, EventId, Message, ReplyToken, SubscriptionId, Version, Violation};
use aaep_engine::terms::Door;
use aaep_engine::{Input, Resume};
use aaep_transport::wire::ConnectionKey;
use aaep_trust::strict_json;
use serde_json::{Value, json};

use super::owner::Owner;
use super::posts::{NotInstructed, Wish};
use super::reading::{MalformedRequest, SubscriberMessage, read_subscriber};
use super::subscribers::{Told, close_of};
use crate::access::{Principal, Scope, UNNAMED_PROGRAM};

/// How many prompts may wait for a stream.
const MAX_HELD_PROMPTS: usize = 16;

/// How many bytes the prompts of one principal may have, and those of all.
const MAX_HELD_BYTES_EACH: usize = 256 * 1024;
const MAX_HELD_BYTES: usize = 16 * MAX_HELD_BYTES_EACH;

/// How many streams of a principal are remembered beside its newest.
const MAX_OLDER_STREAMS: usize = 16;

/// The streams of a principal.
#[derive(Debug, Default)]
pub(super) struct Legacy {
    /// The newest.
    subscription_id: Option<SubscriptionId>,
    /// Those before it that may still be heard, the newest last.
    older: VecDeque<SubscriptionId>,
    /// Whether it was asked for and not heard yet.
    is_fresh: bool,
    /// Prompts that came before a stream.
    held: Vec<HeldPrompt>,
}

/// A prompt that waits for a stream.
#[derive(Debug)]
struct HeldPrompt {
    /// With which proof it came. With another one, it goes nowhere: the first may have been revoked.
    proof: Option<String>,
    text: String,
}

/// What the legacy path answers to a message.
#[derive(Debug, Clone, PartialEq)]
pub enum LegacyAnswer {
    /// It was taken; whatever came of it is on the stream.
    Taken,
    /// It is no message that anyone knows.
    NotValid(Vec<Violation>),
    /// Nothing that this program answers counts, whatever it answers.
    MayNotAnswer,
    /// A request for a subscription was rejected, and no stream says so.
    Rejected(Box<SubscriptionRejected>),
    /// No agent was told.
    NotInstructed(NotInstructed),
}

/// What a program without a name that may not answer has to know first, and what can be done about it.
pub(crate) const MAY_NOT_ANSWER: &str = "This program may listen, but not answer. To let it answer, run: \
    aaep allow NAME --address, with a name for this program, and give it the address that is shown.";

impl Legacy {
    /// From now on this is the newest stream.
    fn begin(&mut self, subscription_id: &SubscriptionId) {
        let before = self.subscription_id.replace(subscription_id.clone());
        self.older.extend(before.filter(|before| before != subscription_id));
        if self.older.len() > MAX_OLDER_STREAMS {
            self.older.pop_front();
        }
    }

    /// All of them, the newest first.
    fn streams(&self) -> impl Iterator<Item = &SubscriptionId> {
        self.subscription_id.iter().chain(self.older.iter().rev())
    }
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
            let subscriber =
                self.engine.subscription(id).and_then(|(key, _)| self.subscribers.get(&key));
            subscriber.is_some_and(|subscriber| subscriber.connection.is_none())
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
        for prompt in held.into_iter().flatten().filter(|it| it.proof == principal.proof) {
            // What came of it is on the stream.
            let _ = self.legacy_prompt(connection, principal, prompt.text);
        }
    }

    /// A subscription with the default terms (ruling 3), about which nothing is said on the stream.
    pub(super) fn legacy_begin(
        &mut self,
        connection: ConnectionKey,
        principal: &Principal,
        resume: Option<Resume>,
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

    /// A stream that broke off is not needed any more.
    fn legacy_end(&mut self, principal: &Principal, subscription_id: SubscriptionId) {
        let Ok(principal) = self.acting(principal, Some(&subscription_id)) else { return };
        let message = Box::new(close_of(subscription_id));
        self.handle(Input::Close { principal, message }, None);
    }

    fn note_legacy(&mut self, connection: ConnectionKey, subscription_id: &SubscriptionId) {
        if let Some(number) = self.connections.get(&connection).map(|it| it.number) {
            self.forget_old_legacy();
            self.legacy.entry(number).or_default().begin(subscription_id);
        }
    }

    /// Something was posted on the legacy path.
    pub(super) fn legacy_message(&mut self, principal: &Principal, text: &str) -> LegacyAnswer {
        let Ok(number) = self.principal(principal) else {
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

    /// The stream of its sender that a message is about. A reply is about one that was sent the ask; two programs at
    /// one address are one program to the person. Everything else is about the newest.
    fn meant_stream(
        &self,
        principal: &Principal,
        number: u64,
        posted: &Value,
    ) -> Option<SubscriptionId> {
        let streams = || {
            let streams = self.legacy.get(&number).into_iter().flat_map(Legacy::streams);
            streams.filter(|id| self.may_mean(principal, id, posted))
        };
        let token = posted["reply_token"].as_str().and_then(|it| ReplyToken::parse(it).ok());
        let asked =
            token.and_then(|token| streams().find(|id| self.engine.was_sent_ask(id, &token)));
        asked.or_else(|| streams().next()).cloned()
    }

    /// Whether a message that was posted may mean this stream of its sender. All local programs are one principal, and
    /// what an allowed one says counts: for its stream, a message has to name the subscription, or, to ask for other
    /// terms, the program (ruling 37).
    fn may_mean(&self, principal: &Principal, stream: &SubscriptionId, posted: &Value) -> bool {
        if !principal.is_local_program() || self.roster.trusts_local_programs() {
            return true;
        }
        let whose = self.engine.subscription(stream).and_then(|(_, whose)| self.program(whose));
        whose.is_none_or(|program| {
            posted["subscription_id"] == stream.as_str() || posted["subscriber_id"] == program
        })
    }

    /// Whether an answer of somebody can count at all, given the stream that it is for.
    fn may_answer_on(&self, principal: &Principal, stream: Option<&SubscriptionId>) -> bool {
        if !principal.is_local_program() || self.roster.trusts_local_programs() {
            return principal.scopes.has(Scope::Reply);
        }
        let whose = stream.and_then(|id| self.engine.subscription(id));
        whose.is_some_and(|(_, whose)| self.is_allowed_program(whose))
    }

    /// Something came on a legacy socket. Says whether that was all.
    pub(super) fn hear_legacy(
        &mut self,
        connection: ConnectionKey,
        principal: &Principal,
        text: &str,
    ) -> bool {
        if let Some(text) = serde_json::from_str(text).ok().and_then(|it| prompt_of(&it)) {
            // What came of it is on the socket.
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
        if principal.is_local_program() && !self.roster.trusts_local_programs() {
            return LegacyAnswer::NotInstructed(NotInstructed::NotAllowed);
        }
        self.forget_old_legacy();
        let bytes = |legacy: &Legacy| legacy.held.iter().map(|it| it.text.len()).sum::<usize>();
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

    /// Forgets whose subscription is over, unless a prompt of theirs waits for a stream.
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
    let named = strict_json::parse(text.as_bytes()).ok().and_then(|mut message| {
        let object =
            message.as_object_mut().filter(|it| it.get("type") != Some(&REQUEST.into()))?;
        object.insert("subscription_id".to_owned(), real?.as_str().into());
        Some(message.to_string())
    });
    read_subscriber(named.as_deref().unwrap_or(text).as_bytes())
}

/// The message that asks for a subscription, and so names none.
const REQUEST: &str = "subscription.request";

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

/// The first frame for a program that may not answer. It has the fields that the public programs show and speak for
/// a type that they do not know; a change of state they keep to themselves.
fn may_not_answer() -> Value {
    json!({
        "type": "agentvoice:error", "error": "may_not_answer", "message": MAY_NOT_ANSWER,
        "summary_normal": MAY_NOT_ANSWER, "urgency": "critical",
    })
}

/// The terms of a subscriber that never asked for any (ruling 3).
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
