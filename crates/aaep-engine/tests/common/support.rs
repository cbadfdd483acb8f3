//! What the tests of the engine share: a hub in virtual time with agents and subscribers around it.
//!
//! After every call it checks what must always hold: the next deadline lies ahead, and every frame
//! is a message that a strict reader takes. It decides nothing and knows no rule by itself.

#![allow(dead_code, reason = "each test file uses its part of this one")]

#[path = "support/telling.rs"]
mod telling;

use std::collections::{BTreeMap, BTreeSet};

use aaep::event::human::Decision;
use aaep::extension::Delivery;
use aaep::{
    Event, EventId, LanguageTag, Message, Mode, Object, Prefix, Producer, ReplyToken, Severity,
    SubscriptionId, Uri, Version,
};
use aaep_engine::terms::{Door, Offer};
use aaep_engine::{
    AgentTags, Engine, EngineConfig, EngineInput, HearingScope, Now, Output, PrincipalNumber,
    RecoveredState, ResumePoint, SubscriberKey, Subscription,
};
use serde_json::{Value as Json, json};

pub(crate) use telling::*;

pub(crate) const SECOND: u64 = 1_000_000;
/// When every world begins, as people tell time.
pub(crate) const START_UNIX_US: i64 = 1_780_000_000_000_000;
/// The agent that speaks unless a test says otherwise, and its session.
pub(crate) const AGENT: u64 = 1001;
pub(crate) const SESSION: &str = "sess_1";

/// A hub, its clock, and what everyone has heard.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) now: Now,
    heard: BTreeMap<SubscriberKey, Vec<Heard>>,
    /// What the engine said is to be stored.
    pub(crate) stored: RecoveredState,
    /// For whom there is more, as soon as their wire has taken what it was sent.
    awaited: BTreeSet<SubscriberKey>,
}

/// A subscription that was granted.
#[derive(Debug, Clone)]
pub(crate) struct Subscriber {
    pub(crate) key: SubscriberKey,
    pub(crate) id: SubscriptionId,
    pub(crate) principal: u64,
}

/// The subscriber that an acceptance made.
pub(crate) fn granted(principal: u64, outputs: &[Output]) -> Subscriber {
    let Some((key, message)) = accepted(outputs) else { panic!("{outputs:?}") };
    Subscriber { key, id: message.subscription_id.clone(), principal }
}

/// An event as a subscriber got it.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) at_us: u64,
    pub(crate) is_critical: bool,
    pub(crate) event: Event,
    pub(crate) json: Json,
}

impl Heard {
    /// The type without what all core types have in common.
    pub(crate) fn kind(&self) -> &str {
        self.text("type").trim_start_matches("aaep:agent.")
    }

    pub(crate) fn text(&self, field: &str) -> &str {
        self.json[field].as_str().unwrap_or_default()
    }

    pub(crate) fn id(&self) -> &EventId {
        &self.event.envelope.event_id
    }

    pub(crate) fn delivery(&self) -> Option<Delivery> {
        Delivery::of(&self.event)
    }

    pub(crate) fn has_resolution(&self) -> bool {
        self.delivery().is_some_and(|delivery| delivery.resolution.is_some())
    }

    pub(crate) fn has_gap(&self) -> bool {
        self.delivery().is_some_and(|delivery| delivery.gap.is_some())
    }
}

/// A producer that can do all there is, in English, Spanish and Yoruba, without limits.
pub(crate) fn offer() -> Offer {
    let tags = ["en-US", "es", "yo"];
    Offer {
        producer: Producer::new("hub"),
        versions: vec![Version::parse("1.0.0").expect("version")],
        languages: tags.map(|tag| LanguageTag::parse(tag).expect("tag")).to_vec(),
        max_events_per_second: None,
        extensions: vec![(
            Uri::parse(aaep::extension::CONTEXT).expect("uri"),
            Prefix::parse(aaep::extension::PREFIX).expect("prefix"),
        )],
        conformance_levels: vec![1, 2, 3],
        max_concurrent_subscriptions: 16,
        manifest_uri: None,
        signed_manifest: None,
        only_offered_languages: false,
    }
}

/// Someone who wants all that there is, as it comes, and can answer.
pub(crate) fn everything() -> Json {
    json!({
        "supports_confirmation_reply": true,
        "supports_clarification_reply": true,
        "coalesce_boundaries": ["none"],
        "event_filters": { "include": ["*"] },
        "supported_extensions": [aaep::extension::CONTEXT],
    })
}

/// Someone with a rate who can answer, with further wishes.
pub(crate) fn limited(rate: u64, more: Json) -> Json {
    let mut wishes = json!({
        "max_events_per_second": rate,
        "supports_confirmation_reply": true,
        "supports_clarification_reply": true,
        "supported_extensions": [aaep::extension::CONTEXT],
    });
    merge(&mut wishes, more);
    wishes
}

pub(crate) fn merge(into: &mut Json, fields: Json) {
    if let Json::Object(fields) = fields {
        fields.into_iter().for_each(|(key, value)| into[key] = value);
    }
}

/// Reads a message that a strict reader must take.
pub(crate) fn message(document: &Json) -> Message {
    let reading = aaep::read(document.to_string().as_bytes(), Mode::Strict);
    reading.message.unwrap_or_else(|| panic!("{:?} in {document}", reading.violations))
}

pub(crate) fn token(text: &str) -> ReplyToken {
    ReplyToken::parse(text).expect("token")
}

pub(crate) fn event_id(text: &str) -> EventId {
    EventId::parse(text).expect("id")
}

/// A question for consent, with safe fields that a test can change.
pub(crate) fn confirmation(token: &str, more: Json) -> Json {
    let mut fields = json!({
        "action": "Delete the folder photos.",
        "consequence": "Nobody can bring it back.",
        "reply_token": token,
        "timeout_seconds": 30,
        "default_decision": "reject",
        "irreversible": true,
        "risk_level": "high",
    });
    merge(&mut fields, more);
    fields
}

/// A question for words.
pub(crate) fn clarification(token: &str, more: Json) -> Json {
    let mut fields = json!({
        "question": "Which folder do you mean?",
        "reply_token": token,
        "timeout_seconds": 30,
    });
    merge(&mut fields, more);
    fields
}

/// The tool that needs consent.
pub(crate) fn irreversible_tool() -> Json {
    json!({ "tool": "delete", "summary_normal": "Deletes the folder.", "irreversible": true })
}

impl World {
    pub(crate) fn new() -> Self {
        World::with(EngineConfig::new(offer(), [7; 32]))
    }

    pub(crate) fn with(config: EngineConfig) -> Self {
        let now = Now { monotonic_us: SECOND, unix_us: START_UNIX_US };
        let (heard, stored) = (BTreeMap::new(), RecoveredState::default());
        World { engine: Engine::new(config), now, heard, stored, awaited: BTreeSet::new() }
    }

    /// The engine is killed, and another one goes on so many seconds later.
    pub(crate) fn restart(&mut self, seconds: u64) -> Vec<Output> {
        self.jump_us(seconds * SECOND);
        // Another machine time: what counts is the clock on the wall.
        self.now.monotonic_us = SECOND;
        let config = EngineConfig::new(offer(), [8; 32]);
        let (engine, outputs) = Engine::recover(config, self.now, self.stored.clone());
        self.engine = engine;
        self.heard.clear();
        self.awaited.clear();
        self.take_in(&outputs);
        outputs
    }

    /// The engine stops in an orderly way, and another one goes on so many seconds later.
    pub(crate) fn stop_and_start(&mut self, seconds: u64) -> Vec<Output> {
        self.handle(EngineInput::Stop);
        self.restart(seconds)
    }

    /// A world in which the session runs already.
    pub(crate) fn started() -> Self {
        let mut world = World::new();
        world.start(SESSION);
        world
    }

    pub(crate) fn handle(&mut self, input: EngineInput) -> Vec<Output> {
        let outputs = self.engine.handle(self.now, input);
        self.take_in(&outputs);
        if let Some(deadline_us) = self.engine.deadline() {
            assert!(deadline_us > self.now.monotonic_us, "the deadline is not ahead");
        }
        outputs
    }

    fn take_in(&mut self, outputs: &[Output]) {
        for output in outputs {
            match output {
                Output::Deliver { frame, to } => {
                    let heard = self.read(&frame.json, frame.is_critical);
                    assert_eq!(heard.id(), &frame.event_id);
                    for subscriber in to {
                        self.heard.entry(*subscriber).or_default().push(heard.clone());
                    }
                }
                Output::More { subscriber } => drop(self.awaited.insert(*subscriber)),
                Output::Record(record) => {
                    self.stored.records.push(record.clone());
                    self.stored.subscriptions.iter_mut().for_each(|it| it.caught_up = None);
                }
                Output::Time(time) => self.stored.times.push(time.clone()),
                Output::Remember(it) => {
                    let is_other = |old: &Subscription| old.subscription_id != it.subscription_id;
                    self.stored.subscriptions.retain(is_other);
                    self.stored.subscriptions.push((**it).clone());
                }
                Output::Forget { subscription_id } => {
                    self.stored.subscriptions.retain(|it| it.subscription_id != *subscription_id);
                }
                Output::Settled { reply_token, .. } => {
                    self.stored.used_tokens.push(reply_token.clone());
                }
                _ => {}
            }
        }
    }

    fn read(&self, json: &[u8], is_critical: bool) -> Heard {
        let text = String::from_utf8_lossy(json);
        let strict = aaep::read(json, Mode::Strict);
        let errors: Vec<_> =
            strict.violations.iter().filter(|it| it.severity == Severity::Error).collect();
        assert!(errors.is_empty(), "{errors:?} in {} bytes: {text:.300}", json.len());
        let reading = aaep::read(json, Mode::Tolerant);
        let Some(Message::Event(event)) = reading.message else { panic!("no event: {text}") };
        let json = serde_json::from_slice(json).expect("json");
        Heard { at_us: self.now.monotonic_us, is_critical, event: *event, json }
    }

    // Time.

    /// Lets time pass, calling whenever something is due. Wires that are not full take everything at once.
    pub(crate) fn pass_us(&mut self, us: u64) -> Vec<Output> {
        let end_us = self.now.monotonic_us + us;
        let mut outputs = Vec::new();
        outputs.extend(self.take_all());
        while let Some(at) = self.engine.deadline().filter(|at| *at <= end_us) {
            self.jump_us(at - self.now.monotonic_us);
            outputs.extend(self.handle(EngineInput::Tick));
            outputs.extend(self.take_all());
        }
        self.jump_us(end_us - self.now.monotonic_us);
        outputs.extend(self.handle(EngineInput::Tick));
        outputs
    }

    /// The wires that are not full take everything.
    fn take_all(&mut self) -> Vec<Output> {
        let mut outputs = Vec::new();
        while let Some(subscriber) = self.awaited.pop_first() {
            outputs.extend(self.handle(EngineInput::Unblock { subscriber }));
        }
        outputs
    }

    pub(crate) fn pass_s(&mut self, seconds: u64) -> Vec<Output> {
        self.pass_us(seconds * SECOND)
    }

    /// Sets both clocks forward without a call.
    pub(crate) fn jump_us(&mut self, us: u64) {
        self.now.monotonic_us += us;
        self.now.unix_us += i64::try_from(us).expect("a short time");
    }

    // Agents.

    /// An event as JSON, complete but for what the engine fills in.
    pub(crate) fn draft(session: &str, kind: &str, fields: Json) -> Object {
        let mut document = json!({
            "type": if kind.contains(':') { kind.to_owned() } else { format!("aaep:agent.{kind}") },
            "session_id": session,
            "producer": { "agent_id": "helper" },
            "localization_hints": { "primary_language": "en-US" },
        });
        merge(&mut document, fields);
        let Json::Object(document) = document else { panic!("an object") };
        document
    }

    pub(crate) fn publish(&mut self, principal: u64, draft: Object) -> Vec<Output> {
        self.publish_as((principal, AgentTags::default()), draft)
    }

    /// The same of an agent that is heard by those who want this tag.
    pub(crate) fn publish_tagged(
        &mut self,
        principal: u64,
        tag: &str,
        draft: Object,
    ) -> Vec<Output> {
        self.publish_as((principal, AgentTags::new([tag.to_owned()])), draft)
    }

    fn publish_as(
        &mut self,
        (principal, tags): (u64, AgentTags),
        mut draft: Object,
    ) -> Vec<Output> {
        self.engine.fill(self.now, &mut draft);
        let Message::Event(event) = message(&Json::Object(draft)) else { panic!("no event") };
        self.handle(EngineInput::Publish { principal: PrincipalNumber(principal), tags, event })
    }

    /// An event that may be refused.
    pub(crate) fn offer_event(&mut self, session: &str, kind: &str, fields: Json) -> Vec<Output> {
        self.publish(AGENT, World::draft(session, kind, fields))
    }

    /// An event that must stand.
    pub(crate) fn say_in(&mut self, session: &str, kind: &str, fields: Json) -> Vec<Output> {
        let outputs = self.offer_event(session, kind, fields);
        assert_eq!(refusal(&outputs), None, "{kind}");
        outputs
    }

    pub(crate) fn say(&mut self, kind: &str, fields: Json) -> Vec<Output> {
        self.say_in(SESSION, kind, fields)
    }

    pub(crate) fn start(&mut self, session: &str) -> Vec<Output> {
        self.say_in(session, "session.started", json!({ "summary_normal": "Tidies up." }))
    }

    pub(crate) fn complete(&mut self, session: &str) -> Vec<Output> {
        self.say_in(session, "session.completed", json!({ "summary_normal": "All is tidy." }))
    }

    pub(crate) fn fail(&mut self, session: &str) -> Vec<Output> {
        let fields =
            json!({ "error_category": "transient", "summary_normal": "The disk is gone." });
        self.say_in(session, "session.errored", fields)
    }

    pub(crate) fn change(&mut self, from: &str, to: &str) -> Vec<Output> {
        self.say("state.changed", json!({ "from_state": from, "to_state": to }))
    }

    /// A chunk of the session's output.
    pub(crate) fn chunk(&mut self, text: &str, position: usize, complete: bool) -> Vec<Output> {
        let fields = json!({ "chunk": text, "position": position, "complete": complete });
        self.say("output.streaming", fields)
    }

    /// A chunk of another output.
    pub(crate) fn chunk_of(
        &mut self,
        output_id: &str,
        text: &str,
        position: usize,
        complete: bool,
    ) -> Vec<Output> {
        self.say(
            "output.streaming",
            json!({
                "chunk": text, "position": position, "complete": complete, "output_id": output_id,
            }),
        )
    }

    // Subscribers.

    pub(crate) fn request(
        &mut self,
        principal: u64,
        may_reply: bool,
        wishes: Json,
        resume_from: Option<EventId>,
    ) -> Vec<Output> {
        let resume = resume_from
            .map(|last| ResumePoint { subscription_id: None, last_event_id: Some(last) });
        self.subscribe_with((principal, may_reply, HearingScope::All), wishes, resume)
    }

    /// A new subscription in the place of an earlier one.
    pub(crate) fn take_over(
        &mut self,
        principal: u64,
        wishes: Json,
        resume: ResumePoint,
    ) -> Vec<Output> {
        self.subscribe_with((principal, true, HearingScope::All), wishes, Some(resume))
    }

    /// A subscription of someone who may hear only some.
    pub(crate) fn subscribe(
        &mut self,
        principal: u64,
        hears: HearingScope,
        wishes: Json,
        resume: Option<ResumePoint>,
    ) -> Vec<Output> {
        self.subscribe_with((principal, true, hears), wishes, resume)
    }

    fn subscribe_with(
        &mut self,
        (principal, may_reply, hears): (u64, bool, HearingScope),
        wishes: Json,
        resume: Option<ResumePoint>,
    ) -> Vec<Output> {
        let mut document = json!({
            "type": "subscription.request",
            "aaep_version": "1.0.0",
            "subscriber_id": "reader",
        });
        document["capabilities"] = wishes;
        let Message::SubscriptionRequest(request) = message(&document) else { panic!("request") };
        let door = Door::Open;
        self.handle(EngineInput::Subscribe {
            principal: PrincipalNumber(principal),
            door,
            may_reply,
            hears,
            request,
            resume,
        })
    }

    pub(crate) fn listen(&mut self, principal: u64, wishes: Json) -> Subscriber {
        let outputs = self.request(principal, true, wishes, None);
        granted(principal, &outputs)
    }

    pub(crate) fn renegotiate(&mut self, subscriber: &Subscriber, wishes: Json) -> Vec<Output> {
        let mut document = json!({
            "type": "subscription.renegotiate",
            "subscription_id": subscriber.id.as_str(),
        });
        document["capabilities"] = wishes;
        let Message::SubscriptionRenegotiate(change) = message(&document) else { panic!("change") };
        self.handle(EngineInput::Renegotiate {
            principal: PrincipalNumber(subscriber.principal),
            change,
        })
    }

    /// Another request on the connection that there is.
    pub(crate) fn replace(&mut self, subscriber: &Subscriber, wishes: Json) -> Vec<Output> {
        let mut document = json!({
            "type": "subscription.request",
            "aaep_version": "1.0.0",
            "subscriber_id": "reader",
        });
        document["capabilities"] = wishes;
        let Message::SubscriptionRequest(request) = message(&document) else { panic!("request") };
        self.handle(EngineInput::Replace { subscriber: subscriber.key, door: Door::Open, request })
    }

    pub(crate) fn close(&mut self, subscriber: &Subscriber) -> Vec<Output> {
        let document =
            json!({ "type": "subscription.close", "subscription_id": subscriber.id.as_str() });
        let Message::SubscriptionClose(close) = message(&document) else { panic!("close") };
        self.handle(EngineInput::Close {
            principal: PrincipalNumber(subscriber.principal),
            message: close,
        })
    }

    pub(crate) fn disconnect(&mut self, subscriber: &Subscriber) -> Vec<Output> {
        self.awaited.remove(&subscriber.key);
        self.handle(EngineInput::Disconnect { subscriber: subscriber.key })
    }

    pub(crate) fn reconnect(
        &mut self,
        subscriber: &Subscriber,
        last: Option<&EventId>,
    ) -> Vec<Output> {
        self.handle(EngineInput::Reconnect {
            principal: PrincipalNumber(subscriber.principal),
            subscription_id: subscriber.id.clone(),
            last_event_id: last.cloned(),
        })
    }

    pub(crate) fn block(&mut self, subscriber: &Subscriber) -> Vec<Output> {
        self.awaited.remove(&subscriber.key);
        self.handle(EngineInput::Block { subscriber: subscriber.key })
    }

    pub(crate) fn take_back(&mut self, subscriber: &Subscriber, last: &EventId) -> Vec<Output> {
        let last_event_id = last.clone();
        self.handle(EngineInput::TakeBack { subscriber: subscriber.key, last_event_id })
    }

    pub(crate) fn unblock(&mut self, subscriber: &Subscriber) -> Vec<Output> {
        self.handle(EngineInput::Unblock { subscriber: subscriber.key })
    }

    pub(crate) fn confirm(&mut self, who: &Subscriber, token: &str, decision: &str) -> Vec<Output> {
        self.confirm_with(who, token, decision, json!({}))
    }

    pub(crate) fn confirm_with(
        &mut self,
        who: &Subscriber,
        token: &str,
        decision: &str,
        more: Json,
    ) -> Vec<Output> {
        let mut document = json!({
            "type": "confirmation.reply",
            "reply_token": token,
            "decision": decision,
            "subscription_id": who.id.as_str(),
            "timestamp": "2026-05-24T14:22:24.812Z",
        });
        merge(&mut document, more);
        let Message::ConfirmationReply(reply) = message(&document) else { panic!("reply") };
        assert!(matches!(reply.decision, Decision::Accept | Decision::Reject));
        self.handle(EngineInput::Confirm { principal: PrincipalNumber(who.principal), reply })
    }

    pub(crate) fn clarify(&mut self, who: &Subscriber, token: &str, response: Json) -> Vec<Output> {
        let mut document = json!({
            "type": "clarification.reply",
            "reply_token": token,
            "subscription_id": who.id.as_str(),
            "timestamp": "2026-05-24T14:22:24.812Z",
        });
        document["response"] = response;
        let Message::ClarificationReply(reply) = message(&document) else { panic!("reply") };
        self.handle(EngineInput::Clarify { principal: PrincipalNumber(who.principal), reply })
    }

    pub(crate) fn heard(&self, subscriber: &Subscriber) -> &[Heard] {
        self.heard.get(&subscriber.key).map_or(&[], Vec::as_slice)
    }

    /// What was heard so far, which then no longer counts.
    pub(crate) fn take(&mut self, subscriber: &Subscriber) -> Vec<Heard> {
        self.heard.remove(&subscriber.key).unwrap_or_default()
    }
}

/// A text as it is sent: in Normalization Form C (ruling 34).
pub(crate) fn as_sent(text: &str) -> String {
    icu_normalizer::ComposingNormalizerBorrowed::new_nfc().normalize(text).into_owned()
}
