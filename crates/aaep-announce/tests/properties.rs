//! What holds whatever comes in: no id twice, one utterance at a time, every question told, all within bounds.

#[path = "common/support.rs"]
mod support;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aaep::Event;
use aaep_announce::{
    Announcer, AnnouncerInput, AnnouncerOutcome, AnsweredBy, AskEnding, Asked, DeviceReport,
    ListeningRequest, MAX_CRITICAL, MAX_QUESTIONS, MAX_WAITING, Order, Pace, Profile, UtteranceId,
};
use proptest::prelude::*;
use serde_json::json;
use support::{confirmation, event_of};

/// Something that happens.
#[derive(Debug, Clone)]
enum Step {
    Event(u8, u8, String),
    Ask,
    Over(u8, AskEnding),
    Time(u8, u64, bool),
    Device(u8),
    Request(ListeningRequest),
    Line(bool),
    LeftOut(u64),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let wishes = vec![
        ListeningRequest::Hush,
        ListeningRequest::Repeat,
        ListeningRequest::LastReply,
        ListeningRequest::ExactText,
        ListeningRequest::Skip,
        ListeningRequest::Pace(Pace::Slower),
        ListeningRequest::Pace(Pace::Faster),
        ListeningRequest::Pace(Pace::Rate(i8::MIN)),
        ListeningRequest::OnlyDecisions(true),
        ListeningRequest::OnlyDecisions(false),
    ];
    let endings = vec![
        AskEnding::Accepted(AnsweredBy::You),
        AskEnding::Rejected(AnsweredBy::Elsewhere),
        AskEnding::Rejected(AnsweredBy::Timeout),
        AskEnding::Answered(AnsweredBy::Nobody),
        AskEnding::Unanswered,
        AskEnding::Withdrawn,
        AskEnding::Unknown,
    ];
    prop_oneof![
        6 => (0..10_u8, 0..3_u8, "[ -~\u{1b}\n`|é]{0,40}").prop_map(|(kind, who, text)| Step::Event(kind, who, text)),
        2 => Just(Step::Ask),
        1 => (any::<u8>(), prop::sample::select(endings)).prop_map(|(at, ending)| Step::Over(at, ending)),
        1 => (any::<u8>(), 0..600_u64, any::<bool>()).prop_map(|(at, left, paused)| Step::Time(at, left, paused)),
        8 => (0..12_u8).prop_map(Step::Device),
        1 => prop::sample::select(wishes).prop_map(Step::Request),
        1 => any::<bool>().prop_map(Step::Line),
        1 => any::<u64>().prop_map(Step::LeftOut),
        1 => (0..400_u64).prop_map(Step::Wait),
    ]
}

fn event(kind: u8, who: u8, text: &str) -> Event {
    let text = if text.is_empty() { "x" } else { text };
    let (name, fields) = match kind {
        0 => ("session.started", json!({ "summary_normal": text })),
        1 => ("session.completed", json!({ "summary_normal": text })),
        2 => ("session.errored", json!({ "summary_normal": text, "error_category": "unknown" })),
        3 => (
            "state.changed",
            json!({ "from_state": "idle", "to_state": "thinking", "summary_normal": text }),
        ),
        4 => ("progress.updated", json!({ "progress": { "percent": 50, "description": text } })),
        5 => ("tool.invoked", json!({ "tool": "read_file", "summary_normal": text })),
        6 => (
            "tool.completed",
            json!({ "tool": "read_file", "status": "error", "error_message": text }),
        ),
        7 => ("output.streaming", json!({ "chunk": text, "position": 0, "complete": false })),
        8 => ("output.streaming", json!({ "chunk": text, "position": 0, "complete": true })),
        _ => ("x:odd", json!({ "summary_normal": text })),
    };
    event_of(["Weaver", "Loom", "Weaver"][usize::from(who)], &who.to_string(), name, &fields)
}

/// A device, and everything that is checked about it.
struct World {
    announcer: Announcer,
    now: Duration,
    speaking: Option<UtteranceId>,
    stopped: Vec<UtteranceId>,
    is_in_trouble: bool,
    /// Whether it said so itself: giving words back then does not show that it works.
    is_gone: bool,
    ids: BTreeSet<UtteranceId>,
    /// Every question that was asked, and whether the person knows of it.
    asks: BTreeMap<u32, bool>,
    over: BTreeSet<u32>,
    asked_words: BTreeMap<u32, String>,
    answered: BTreeSet<u32>,
}

impl World {
    fn handle(&mut self, input: AnnouncerInput<'_>) {
        let decided = self.announcer.handle(self.now, input);
        for order in decided.orders {
            self.order(order);
        }
        for outcome in decided.outcomes {
            match outcome {
                AnnouncerOutcome::Presenting(number) => {
                    self.asks.insert(number, true);
                }
                AnnouncerOutcome::Chosen { number, .. } => {
                    assert!(!self.over.contains(&number), "chosen after it was over");
                    assert!(self.answered.insert(number), "answered twice");
                    assert!(self.asks[&number], "answered before it was told");
                }
                // One that was given up is told nothing until it reports.
                AnnouncerOutcome::Trouble(_) => (self.speaking, self.is_in_trouble) = (None, true),
                _ => {}
            }
        }
        assert!(self.announcer.waiting() <= MAX_WAITING + MAX_CRITICAL + 2 * MAX_QUESTIONS);
        if let Some(deadline) = self.announcer.deadline() {
            assert!(deadline > self.now, "{deadline:?} is not after {:?}", self.now);
        }
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Say(utterance) => {
                assert!(!self.is_in_trouble, "said to a device that does not work");
                assert_eq!(self.speaking, None, "said while something else is being said");
                assert!(self.ids.insert(utterance.id), "the same id twice");
                assert!(!utterance.words.trim().is_empty(), "no words");
                assert!(
                    matches!(aaep::printable(&utterance.words), Cow::Borrowed(_)),
                    "{utterance:?}"
                );
                assert!(!utterance.words.contains("```"), "{utterance:?}");
                for (number, words) in &self.asked_words {
                    if utterance.words.contains(words) {
                        self.asks.insert(*number, true);
                    }
                }
                self.speaking = Some(utterance.id);
            }
            Order::Stop => self.stopped.extend(self.speaking.take()),
            Order::Withdraw(id) => assert!(self.ids.contains(&id)),
            Order::Sound(_) | Order::Pace(_) => {}
        }
    }

    fn device(&mut self, what: u8) {
        let current = self.speaking;
        let report = match (what, current) {
            (0..3, Some(id)) => DeviceReport::Began(id),
            (3..7, Some(id)) => {
                self.speaking = None;
                DeviceReport::Ended(id)
            }
            (7, Some(id)) => {
                self.speaking = None;
                DeviceReport::Cut(id)
            }
            (8, _) => match self.stopped.pop() {
                Some(id) => DeviceReport::Cut(id),
                None => return,
            },
            (9, _) => DeviceReport::Chosen(self.ids.last().copied().unwrap_or(7), 1),
            (10, _) => {
                (self.speaking, self.is_in_trouble, self.is_gone) = (None, true, true);
                self.stopped.clear();
                DeviceReport::Trouble("Gone.".to_owned())
            }
            _ => DeviceReport::Works,
        };
        let shows_life = match report {
            DeviceReport::Trouble(_) => false,
            DeviceReport::Cut(_) => !self.is_gone,
            _ => true,
        };
        if shows_life {
            (self.is_in_trouble, self.is_gone) = (false, false);
        }
        self.handle(AnnouncerInput::Device(report));
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Event(kind, who, text) => {
                self.handle(AnnouncerInput::Event(&event(*kind, *who, text)));
            }
            Step::Ask => {
                let number = u32::try_from(self.asks.len()).expect("few") + 1;
                let mut event = confirmation(&format!("rpl_{number}"));
                let words = format!("Open door {number} now");
                if let aaep::Payload::AwaitingConfirmation(it) = &mut event.payload {
                    it.action.clone_from(&words);
                }
                self.asks.insert(number, false);
                self.asked_words.insert(number, words);
                let remaining = Duration::from_mins(5);
                self.handle(AnnouncerInput::Asked(Asked {
                    number,
                    event: &event,
                    remaining,
                    can_answer: true,
                }));
            }
            Step::Over(at, ending) => {
                let number =
                    u32::from(*at) % (u32::try_from(self.asks.len()).expect("few") + 1) + 1;
                if *ending != AskEnding::Unknown && self.asks.contains_key(&number) {
                    self.over.insert(number);
                }
                self.handle(AnnouncerInput::Over { number, ending: *ending });
            }
            Step::Time(at, left, is_paused) => {
                let (number, remaining) = (u32::from(*at) % 4, Duration::from_secs(*left));
                self.handle(AnnouncerInput::TimeChanged {
                    number,
                    remaining,
                    is_paused: *is_paused,
                    wanted: None,
                });
            }
            Step::Device(what) => self.device(*what),
            Step::Request(wish) => self.handle(AnnouncerInput::Request(*wish)),
            Step::Line(true) => self.handle(AnnouncerInput::LineBroken),
            Step::Line(false) => self.handle(AnnouncerInput::LineBack),
            Step::LeftOut(count) => self.handle(AnnouncerInput::LeftOut(*count)),
            Step::Wait(seconds) => {
                self.now += Duration::from_secs(*seconds);
                self.handle(AnnouncerInput::Tick);
            }
        }
    }

    /// The device works from now on, and says everything.
    fn listen_to_the_end(&mut self) {
        (self.is_in_trouble, self.is_gone) = (false, false);
        self.handle(AnnouncerInput::Device(DeviceReport::Works));
        while let Some(id) = self.stopped.pop() {
            self.handle(AnnouncerInput::Device(DeviceReport::Cut(id)));
        }
        let mut left = 100_000;
        while let Some(id) = self.speaking.take() {
            self.handle(AnnouncerInput::Device(DeviceReport::Began(id)));
            if self.speaking.is_none() {
                self.handle(AnnouncerInput::Device(DeviceReport::Ended(id)));
            }
            left -= 1;
            assert!(left > 0, "it never ends");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn an_announcer_keeps_its_promises(
        steps in prop::collection::vec(step(), 0..120),
        profile in prop::sample::select(Profile::ALL.to_vec()),
    ) {
        let mut world = World {
            announcer: Announcer::new(profile.preferences()),
            now: Duration::ZERO,
            speaking: None,
            stopped: Vec::new(),
            is_in_trouble: false,
            is_gone: false,
            ids: BTreeSet::new(),
            asks: BTreeMap::new(),
            over: BTreeSet::new(),
            asked_words: BTreeMap::new(),
            answered: BTreeSet::new(),
        };
        for step in &steps {
            world.step(step);
        }
        world.listen_to_the_end();
        for (number, is_told) in &world.asks {
            // In quiet nobody hears of what others settled before they could.
            let is_settled = profile == Profile::Quiet && world.over.contains(number);
            let is_known = *is_told || world.answered.contains(number) || is_settled;
            prop_assert!(is_known, "question {number} was never told");
        }
    }

    #[test]
    fn the_same_inputs_give_the_same_orders(steps in prop::collection::vec((0..10_u8, 0..3_u8, "[ -~]{0,40}"), 0..60)) {
        let play = || {
            let mut announcer = Announcer::new(Profile::ScreenReader.preferences());
            let mut orders = Vec::new();
            for (at, (kind, who, text)) in steps.iter().enumerate() {
                let now = Duration::from_secs(at as u64);
                orders.extend(announcer.handle(now, AnnouncerInput::Event(&event(*kind, *who, text))).orders);
                if let Some(Order::Say(utterance)) = orders.last() {
                    let report = DeviceReport::Ended(utterance.id);
                    orders.extend(announcer.handle(now, AnnouncerInput::Device(report)).orders);
                }
            }
            orders
        };
        prop_assert_eq!(play(), play());
    }
}
