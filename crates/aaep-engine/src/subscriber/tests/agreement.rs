//! The two sides of this crate agree: nothing that the hub sends is a violation for the subscriber,
//! and the hub accepts the subscriber's replies.

use crate::PrincipalNumber;
use std::collections::BTreeSet;

use aaep::{LanguageTag, Message, Mode, Prefix, Producer, Uri};
use proptest::prelude::*;

use super::*;
use crate::terms::{Door, Offer};
use crate::{Engine, EngineConfig, EngineInput, Output, SubscriberKey};

/// A hub with one subscriber, in virtual time.
struct AgreementWorld {
    engine: Engine,
    subscriber: SubscriberRules,
    key: Option<SubscriberKey>,
    ms: u64,
    violations: Vec<SubscriberViolation>,
    changes: Vec<SubscriberChange>,
    /// Whether each reply was accepted.
    replied: Vec<bool>,
    /// The asks that are open in the hub.
    open: BTreeSet<String>,
    is_connected: bool,
}

impl AgreementWorld {
    fn new(capabilities: Capabilities) -> Self {
        let own = (
            Uri::parse(aaep::extension::CONTEXT).expect("uri"),
            Prefix::parse(aaep::extension::PREFIX).expect("prefix"),
        );
        let offer = Offer {
            producer: Producer::new("hub"),
            versions: vec![Version::parse("1.0.0").expect("version")],
            languages: vec![LanguageTag::parse("en-US").expect("tag")],
            max_events_per_second: None,
            extensions: vec![own],
            conformance_levels: vec![1, 2, 3],
            max_concurrent_subscriptions: 4,
            manifest_uri: None,
            signed_manifest: None,
            only_offered_languages: false,
        };
        let mut world = AgreementWorld {
            engine: Engine::new(EngineConfig::new(offer, [7; 32])),
            subscriber: SubscriberRules::new(config()),
            key: None,
            ms: 1000,
            violations: Vec::new(),
            changes: Vec::new(),
            replied: Vec::new(),
            open: BTreeSet::new(),
            is_connected: true,
        };
        let request = Box::new(world.subscriber.request(capabilities).expect("a request"));
        let (door, hears) = (Door::Open, crate::HearingScope::All);
        let input = EngineInput::Subscribe {
            principal: PrincipalNumber(1),
            door,
            may_reply: true,
            hears,
            request,
            resume: None,
        };
        world.handle(input);
        world
    }

    fn handle(&mut self, input: EngineInput) {
        for output in self.engine.handle(at(self.ms), input) {
            let bytes = match output {
                Output::Deliver { frame, to } if self.key.is_some_and(|key| to.contains(&key)) => {
                    frame.json.to_vec()
                }
                Output::Accepted { subscriber, message } => {
                    self.key = Some(subscriber);
                    serde_json::to_vec(&message).expect("json")
                }
                Output::Asked { reply_token, .. } => {
                    self.open.insert(reply_token.to_string());
                    continue;
                }
                Output::Settled { reply_token, .. } => {
                    self.open.remove(reply_token.as_str());
                    continue;
                }
                Output::Replied { is_accepted } => {
                    self.replied.push(is_accepted);
                    continue;
                }
                _ => continue,
            };
            let got = self.subscriber.receive(at(self.ms), &bytes);
            self.violations.extend(got.violations);
            self.changes.extend(got.changes);
        }
    }

    /// The agent publishes an event, which may be refused.
    fn say(&mut self, kind: &str, fields: Json) {
        let mut document = event(kind, fields);
        let draft = document.as_object_mut().expect("an object");
        draft.remove("event_id");
        draft.remove("timestamp");
        self.engine.fill(at(self.ms), draft);
        let reading = aaep::read(document.to_string().as_bytes(), Mode::Strict);
        let Some(Message::Event(event)) = reading.message else { panic!("{reading:?}") };
        self.handle(EngineInput::Publish {
            principal: PrincipalNumber(1000),
            tags: crate::AgentTags::default(),
            event,
        });
    }

    fn wait(&mut self, ms: u64) {
        let end = self.ms + ms;
        while let Some(due) =
            self.engine.deadline().map(|us| us.div_ceil(1000)).filter(|it| *it <= end)
        {
            self.ms = due;
            self.handle(EngineInput::Tick);
        }
        self.ms = end;
        self.handle(EngineInput::Tick);
        let changes = self.subscriber.tick(at(self.ms));
        self.changes.extend(changes);
    }

    /// Performs one of the things that can happen.
    fn step(&mut self, kind: u8, number: usize) {
        let key = self.key.expect("a subscriber");
        match kind {
            0 | 1 => self.say("awaiting.confirmation", ask(&number.to_string())),
            2 | 3 if self.is_connected => self.accept_first(),
            4 => self.say(
                "state.changed",
                json!({ "from_state": "awaiting_input", "to_state": "thinking" }),
            ),
            5 => self
                .say("state.changed", json!({ "from_state": "thinking", "to_state": "deciding" })),
            6 => self.say("state.changed", json!({ "from_state": "idle", "to_state": "thinking" })),
            7 => {
                let first = self.open.first().cloned();
                if let Some(reply_token) = first.and_then(|it| ReplyToken::parse(&it).ok()) {
                    self.handle(EngineInput::Withdraw {
                        principal: PrincipalNumber(1000),
                        reply_token,
                    });
                }
            }
            8 => self.say("tool.invoked", json!({ "tool": "look", "summary_normal": "Looks." })),
            9 => self.say("tool.completed", json!({ "tool": "look", "status": "success" })),
            10 if self.is_connected => {
                self.is_connected = false;
                self.subscriber.interrupted();
                self.handle(EngineInput::Disconnect { subscriber: key });
            }
            11 if !self.is_connected => {
                self.is_connected = true;
                let subscription_id = self.subscriber.subscription_id().expect("an id").clone();
                let last_event_id = self.subscriber.last_event_id().cloned();
                self.handle(EngineInput::Reconnect {
                    principal: PrincipalNumber(1),
                    subscription_id,
                    last_event_id,
                });
            }
            _ => self.say("progress.updated", json!({ "progress": { "percent": number } })),
        }
    }

    /// The person accepts the first open ask.
    fn accept_first(&mut self) {
        let Some(name) = self.subscriber.open_tokens().first().map(|it| it[4..].to_owned()) else {
            return;
        };
        if let Ok(reply) = self.subscriber.accept(self.ms, &name) {
            self.handle(EngineInput::Confirm {
                principal: PrincipalNumber(1),
                reply: Box::new(reply),
            });
        }
    }
}

fn ask(name: &str) -> Json {
    json!({
        "action": "Buy the ticket.", "consequence": "It is paid.", "timeout_seconds": 5,
        "reply_token": format!("rpl_{name}"), "default_decision": "reject", "irreversible": true,
    })
}

/// A whole session with two asks, one answered and one not.
fn play(world: &mut AgreementWorld, pause_ms: u64) {
    let tool =
        |call: &str| json!({ "tool": "buy", "summary_normal": "Buys.", "tool_call_id": call });
    world.say("session.started", json!({ "summary_normal": "Books a train." }));
    world.say("state.changed", json!({ "from_state": "idle", "to_state": "thinking" }));
    for percent in 0..10 {
        world.say("progress.updated", json!({ "progress": { "percent": percent } }));
        world.wait(pause_ms);
    }
    world.say("awaiting.confirmation", ask("q"));
    world.wait(pause_ms);
    world.accept_first();
    world.say("tool.invoked", with(tool("call_1"), "irreversible", true));
    world.say(
        "tool.completed",
        json!({ "tool": "buy", "status": "success", "tool_call_id": "call_1" }),
    );
    world.say("awaiting.confirmation", ask("r"));
    world.wait(6000);
    world.say("output.streaming", json!({ "chunk": "Done. ", "position": 0, "complete": false }));
    world.say("output.streaming", json!({ "chunk": "Bye.", "position": 6, "complete": true }));
    world.wait(pause_ms);
    world.say("session.completed", json!({ "summary_normal": "Booked." }));
    world.wait(10_000);
}

#[test]
fn a_subscriber_finds_no_fault_with_the_hub_under_any_of_these_terms() {
    let uri = Uri::parse(aaep::extension::CONTEXT).expect("uri");
    let with_ours = Capabilities { supported_extensions: Some(vec![uri]), ..able() };
    for rate in [None, Some(1), Some(3), Some(100)] {
        for capabilities in [able(), with_ours.clone(), Capabilities::new()] {
            for pause_ms in [0, 20, 700] {
                let terms = Capabilities { max_events_per_second: rate, ..capabilities.clone() };
                let mut world = AgreementWorld::new(terms.clone());
                play(&mut world, pause_ms);
                assert_eq!(world.violations, [], "{terms:?}, {pause_ms} ms");
                assert!(world.replied.iter().all(|is_accepted| *is_accepted));
                let is_able = terms.supports_confirmation_reply.is_some();
                assert_eq!(world.replied.len(), usize::from(is_able));
                assert_eq!(world.subscriber.open_asks().count(), 0);
                let session = world.subscriber.session(&session("1")).expect("a session");
                assert!(session.ending.is_some());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_sides_agree_on_what_is_open_and_every_reply_counts(
        rate in prop::option::of(1..6_u64),
        steps in prop::collection::vec((0..14_u8, 0..1500_u64), 1..40),
    ) {
        let uri = Uri::parse(aaep::extension::CONTEXT).expect("uri");
        let extensions = Some(vec![uri]);
        let mut world = AgreementWorld::new(Capabilities {
            max_events_per_second: rate,
            supported_extensions: extensions,
            ..able()
        });
        world.say("session.started", json!({ "summary_normal": "Books a train." }));
        for (number, (kind, ms)) in steps.into_iter().enumerate() {
            // Reconnecting with a rate is tested below.
            if kind != 10 || rate.is_none() {
                world.step(kind, number);
            }
            world.wait(ms);
            if world.is_connected {
                let open: BTreeSet<String> =
                    world.subscriber.open_tokens().into_iter().map(str::to_owned).collect();
                prop_assert_eq!(&open, &world.open, "after step {} of kind {}", number, kind);
            }
        }
        prop_assert!(world.replied.iter().all(|is_accepted| *is_accepted), "{:?}", world.replied);
        prop_assert_eq!(world.violations, vec![]);
    }
}

#[test]
fn a_question_asked_while_a_subscriber_with_a_rate_was_away_comes_first_when_it_is_back() {
    let mut world = AgreementWorld::new(Capabilities { max_events_per_second: Some(1), ..able() });
    world.say("session.started", json!({ "summary_normal": "Books a train." }));
    world.step(10, 0);
    world.step(0, 1);
    world.step(11, 2);
    assert_eq!(world.subscriber.open_tokens(), ["rpl_1"]);
}
