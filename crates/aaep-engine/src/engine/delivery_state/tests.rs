//! Whatever happens, states, lists and due times agree, and only the transitions of the table are made.

use std::cell::RefCell;

use aaep::{LanguageTag, Message, Mode, Producer, Version};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value as Json, json};

use super::*;
use crate::clock::Now;
use crate::io::{AgentTags, EngineInput, HearingScope, Output, PrincipalNumber};
use crate::terms::{Door, Offer};
use crate::{EngineConfig, ResumePoint};

thread_local! {
    static TRANSITIONS: RefCell<BTreeSet<(String, String)>> = const { RefCell::new(BTreeSet::new()) };
}

/// Notes a transition that was made.
pub(super) fn note_transition(from: DeliveryState, to: DeliveryState) {
    TRANSITIONS.with_borrow_mut(|made| made.insert((name(from), name(to))));
}

fn name(state: DeliveryState) -> String {
    let text = format!("{state:?}");
    text.split(|it: char| !it.is_alphabetic()).next().unwrap_or_default().to_owned()
}

const LISTED: [&str; 5] = ["Together", "Ready", "HoldsText", "Holds", "AwaitsWire"];

/// The transitions of the table at the head of the file.
fn table() -> BTreeSet<(String, String)> {
    let rows = include_str!("../delivery_state.rs").lines().filter(|it| it.starts_with("//! | "));
    let cells = rows.map(|row| row.split('|').map(|it| it.trim().replace('`', "")).collect());
    let cells: Vec<Vec<String>> = cells.skip(1).collect();
    let all = cells.iter().flat_map(|cells| {
        let from = if cells[1] == "any list" { LISTED.to_vec() } else { vec![cells[1].as_str()] };
        from.into_iter().map(|from| (from.to_owned(), cells[2].clone()))
    });
    all.collect()
}

/// What can happen in this world. The numbers choose a subscriber.
#[derive(Debug, Clone, Copy)]
enum WorldStep {
    Begin,
    Say(u8),
    Block(usize),
    Unblock(usize),
    Disconnect(usize),
    Reconnect(usize),
    Renegotiate(usize, u64),
    Pass(u64),
    SetClockBack,
}

fn step() -> impl Strategy<Value = WorldStep> {
    prop_oneof![
        1 => Just(WorldStep::Begin),
        8 => (0..4_u8).prop_map(WorldStep::Say),
        2 => (0..6_usize).prop_map(WorldStep::Block),
        3 => (0..6_usize).prop_map(WorldStep::Unblock),
        2 => (0..6_usize).prop_map(WorldStep::Disconnect),
        3 => (0..6_usize).prop_map(WorldStep::Reconnect),
        1 => (0..6_usize, 1..4_u64).prop_map(|(at, rate)| WorldStep::Renegotiate(at, rate)),
        3 => (1..2_000_000_u64).prop_map(WorldStep::Pass),
        1 => Just(WorldStep::SetClockBack),
    ]
}

struct DeliveryWorld {
    engine: Engine,
    now: Now,
    keys: Vec<SubscriberKey>,
    position: u64,
}

impl DeliveryWorld {
    fn new() -> Self {
        let offer = Offer {
            producer: Producer::new("hub"),
            versions: vec![Version::parse("1.0.0").expect("version")],
            languages: vec![LanguageTag::parse("en-US").expect("tag")],
            max_events_per_second: None,
            extensions: Vec::new(),
            conformance_levels: vec![1, 2],
            max_concurrent_subscriptions: 8,
            manifest_uri: None,
            signed_manifest: None,
            only_offered_languages: false,
        };
        let config = EngineConfig { at_a_time: 2, ..EngineConfig::new(offer, [7; 32]) };
        let now = Now { monotonic_us: 1_000_000, unix_us: 1_780_000_000_000_000 };
        let mut world =
            DeliveryWorld { engine: Engine::new(config), now, keys: Vec::new(), position: 0 };
        world.say("session.started", json!({ "summary_normal": "Tidies up." }));
        let terms = [
            json!({}),
            json!({ "coalesce_boundaries": ["none"], "event_filters": { "include": ["*"] } }),
            json!({ "max_events_per_second": 2 }),
            json!({ "pace_wpm": 120 }),
        ];
        for number in 0..6 {
            let request = json!({ "type": "subscription.request", "aaep_version": "1.0.0",
                "subscriber_id": "reader", "capabilities": terms[number % terms.len()] });
            let Message::SubscriptionRequest(request) = read(&request) else { panic!("request") };
            let outputs = world.handle(EngineInput::Subscribe {
                principal: PrincipalNumber(1 + number as u64),
                door: Door::Open,
                may_reply: true,
                hears: HearingScope::All,
                request,
                resume: None::<ResumePoint>,
            });
            world.keys.extend(outputs.iter().find_map(|output| match output {
                Output::Accepted { subscriber, .. } => Some(*subscriber),
                _ => None,
            }));
        }
        world
    }

    fn handle(&mut self, input: EngineInput) -> Vec<Output> {
        let outputs = self.engine.handle(self.now, input);
        check(&self.engine);
        outputs
    }

    fn say(&mut self, kind: &str, fields: Json) {
        let mut document = json!({ "type": format!("aaep:agent.{kind}"), "session_id": "sess_1",
            "producer": { "agent_id": "helper" },
            "localization_hints": { "primary_language": "en-US" } });
        let draft = document.as_object_mut().expect("an object");
        let Json::Object(fields) = fields else { panic!("no object") };
        draft.extend(fields);
        self.engine.fill(self.now, draft);
        let Message::Event(event) = read(&document) else { panic!("event") };
        let principal = PrincipalNumber(1000);
        self.handle(EngineInput::Publish { principal, tags: AgentTags::default(), event });
    }

    fn play(&mut self, step: WorldStep) {
        match step {
            WorldStep::Begin => self.say("session.started", json!({ "summary_normal": "Again." })),
            WorldStep::Say(0) => {
                self.say("handoff.requested", json!({ "reason": "Help.", "target_kind": "human" }));
            }
            WorldStep::Say(1) => {
                let chunk = "One sentence. Another one. ";
                let position = self.position;
                self.position += chunk.chars().count() as u64;
                self.say(
                    "output.streaming",
                    json!({ "chunk": chunk, "position": position, "complete": false }),
                );
            }
            WorldStep::Say(_) => {
                self.say("tool.invoked", json!({ "tool": "look", "summary_normal": "Looks." }));
            }
            WorldStep::Block(at) => {
                drop(self.handle(EngineInput::Block { subscriber: self.keys[at] }));
            }
            WorldStep::Unblock(at) => {
                drop(self.handle(EngineInput::Unblock { subscriber: self.keys[at] }));
            }
            WorldStep::Disconnect(at) => {
                self.handle(EngineInput::Disconnect { subscriber: self.keys[at] });
            }
            WorldStep::Reconnect(at) => {
                let Some(member) = self.engine.members.get(self.keys[at]) else { return };
                let (principal, subscription_id) = (member.principal, member.id.clone());
                self.handle(EngineInput::Reconnect {
                    principal,
                    subscription_id,
                    last_event_id: None,
                });
            }
            WorldStep::Renegotiate(at, rate) => {
                let Some(member) = self.engine.members.get(self.keys[at]) else { return };
                let change = json!({ "type": "subscription.renegotiate", "subscription_id": member.id,
                    "capabilities": { "max_events_per_second": rate } });
                let principal = member.principal;
                let Message::SubscriptionRenegotiate(change) = read(&change) else {
                    panic!("change")
                };
                self.handle(EngineInput::Renegotiate { principal, change });
            }
            WorldStep::Pass(us) => {
                self.now.monotonic_us += us;
                self.now.unix_us += i64::try_from(us).expect("small");
                self.handle(EngineInput::Tick);
            }
            WorldStep::SetClockBack => self.now.unix_us -= 60_000_000,
        }
    }
}

fn read(document: &Json) -> Message {
    let reading = aaep::read(document.to_string().as_bytes(), Mode::Strict);
    reading.message.unwrap_or_else(|| panic!("{:?} in {document}", reading.violations))
}

/// The lists and the due times are what the states say.
fn check(engine: &Engine) {
    let mut due = BTreeSet::new();
    for audience in engine.audiences.values() {
        let lists = &audience.lists;
        for key in &audience.members {
            let delivery = &engine.members.get(*key).expect("a member").delivery;
            let index = lists.together.iter().position(|it| it == key);
            let index = index.map(|it| u32::try_from(it).expect("small"));
            let listed = (index, lists.alone.contains(key), lists.ready.contains(key));
            let expected = match delivery.state {
                DeliveryState::Together(index) => (Some(index), false, false),
                DeliveryState::Ready | DeliveryState::HoldsText => (None, true, true),
                DeliveryState::Holds | DeliveryState::AwaitsWire => (None, true, false),
                DeliveryState::Blocked | DeliveryState::Away { .. } => (None, false, false),
                DeliveryState::Unlisted { .. } => panic!("{key:?} was left unlisted"),
            };
            assert_eq!(listed, expected, "{key:?} is {:?}", delivery.state);
            assert!(delivery.is_together() || delivery.told_later.is_empty());
            for session in &delivery.told_later {
                let session = engine.sessions.get(*session);
                assert!(session.is_none_or(|it| it.told_later.0.contains(key)));
            }
            if delivery.due_us != NEVER {
                due.insert((delivery.due_us, *key));
            }
        }
        let listed = lists.together.len() + lists.alone.len();
        assert!(listed <= audience.members.len(), "nobody who left is listed");
    }
    assert_eq!(engine.due.0, due);
}

#[test]
fn states_lists_and_due_times_agree_and_the_table_is_complete() {
    let config = Config { failure_persistence: None, cases: 400, ..Config::default() };
    TRANSITIONS.with_borrow_mut(BTreeSet::clear);
    let steps = prop::collection::vec(step(), 1..60);
    let run = TestRunner::new(config).run(&steps, |steps| {
        let mut world = DeliveryWorld::new();
        for step in steps {
            world.play(step);
        }
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
    let made = TRANSITIONS.with_borrow(BTreeSet::clone);
    // Neither another index in the list nor another batch is a transition.
    let made: BTreeSet<_> = made.into_iter().filter(|(from, to)| from != to).collect();
    assert_eq!(made, table());
}
