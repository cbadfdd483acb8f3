//! The subscriber stays near the present: an end waits for one sentence at most, whatever else there is to tell, and what is
//! skipped is said to be skipped and can be heard.

#[path = "common/support.rs"]
mod support;

use std::time::Duration;

use aaep::Event;
use aaep_announce::{
    Announcer, AnnouncerInput, AnnouncerOutcome, DeviceReport, ListeningRequest, MAX_UTTERANCE,
    Order, Pace, Preferences, Profile, UtteranceId, UtteranceKind, Weight, rehearse,
};
use proptest::prelude::*;
use serde_json::json;
use support::{Room, completed, confirmation, event, event_of, seconds, text};

/// A text of this many sentences, each of ten words.
fn speech_of(sentences: usize) -> String {
    let sentence = |at| format!("Sentence {at} goes on about something that is not urgent. ");
    (0..sentences).map(sentence).collect()
}

fn loom_says(chunk: &str, complete: bool) -> Event {
    let fields = json!({ "chunk": chunk, "position": 0, "complete": complete });
    event_of("Loom", "b", "output.streaming", &fields)
}

/// How long the longest utterance takes at this pace.
fn one_sentence(words_per_minute: u64) -> Duration {
    Duration::from_secs(MAX_UTTERANCE as u64 * 60 / 5 / words_per_minute)
}

#[test]
fn an_end_one_second_after_the_long_text_of_another_agent_comes_within_a_sentence() {
    let failed = json!({ "error_category": "unknown", "summary_normal": "No room left." });
    let cancelled = json!({ "cancelled_by": "user", "summary_normal": "Not needed any more." });
    for profile in Profile::ALL {
        for end in [
            completed("All 41 tests pass."),
            event("session.errored", &failed),
            event("session.cancelled", &cancelled),
        ] {
            for pace in [profile.preferences().pace(), 400] {
                let events =
                    [(seconds(0), loom_says(&speech_of(50), true)), (seconds(1), end.clone())];
                let heard = rehearse(&events, &profile.preferences(), pace).said;
                let told = heard.iter().find(|it| {
                    let words = &it.utterance.words;
                    ["All 41", "No room", "Not needed"].iter().any(|it| words.contains(it))
                });
                let late = told.expect("the end").began.saturating_sub(seconds(1));
                assert!(late <= one_sentence(pace), "{}: {late:?} at {pace}", profile.name());
            }
        }
    }
}

/// The question of Loom, which takes longer than a few sentences.
fn loom_asks(token: &str) -> Event {
    let fields = json!({
        "action": "Publish the report of the year on the public page.",
        "consequence": "Everyone who reads the page sees it at once. It is sent to 400 subscribers as well. What was \
                        there before cannot be brought back.",
        "reply_token": token, "timeout_seconds": 300, "default_decision": "reject", "risk_level": "high",
        "irreversible": true, "extensions": { "agentvoice": { "tool": "publish" } },
    });
    event_of("Loom", "b", "awaiting.confirmation", &fields)
}

/// The ends of the usual agent: finished, failed, and stopped.
fn ends() -> [Event; 3] {
    let failed = json!({ "error_category": "unknown", "summary_normal": "No room left." });
    let cancelled = json!({ "cancelled_by": "user", "summary_normal": "Not needed any more." });
    [
        completed("All 41 tests pass."),
        event("session.errored", &failed),
        event("session.cancelled", &cancelled),
    ]
}

fn is_end(words: &str) -> bool {
    ["All 41", "No room", "Not needed"].iter().any(|it| words.contains(it))
}

#[test]
fn an_end_in_the_question_of_another_agent_comes_after_the_sentence_being_said() {
    for profile in Profile::ALL {
        for end in ends() {
            for (pace, after) in [(profile.preferences().pace(), 1), (400, 1), (200, 4), (90, 9)] {
                let events = [(seconds(0), loom_asks("rpl_1")), (seconds(after), end.clone())];
                let heard = rehearse(&events, &profile.preferences(), pace).said;
                let at = heard.iter().position(|it| is_end(&it.utterance.words)).expect("the end");
                let between = heard[..at].iter().filter(|it| it.began > seconds(after));
                let between: Vec<&str> = between.map(|it| it.utterance.words.as_str()).collect();
                assert!(between.is_empty(), "{} at {pace}: {between:?}", profile.name());
                // The question goes on where it was, and says whose it is.
                let rest: Vec<&str> =
                    heard[at + 1..].iter().map(|it| it.utterance.words.as_str()).collect();
                assert!(rest[0].starts_with("Loom goes on"), "{rest:?}");
                let last = rest.iter().position(|it| it.ends_with("Yes or no?")).expect("its end");
                assert!(!rest[..=last].concat().contains("Publish the report"), "{rest:?}");
            }
        }
    }
}

#[test]
fn a_question_with_an_end_in_its_midst_is_told_to_its_end_only_with_its_last_sentence() {
    let mut room = Room::quiet();
    room.ask(1, &loom_asks("rpl_1"));
    let mut told = Vec::new();
    room.hear(&completed("All 41 tests pass."));
    while let Some(utterance) = room.speaking.take() {
        let is_whole = room.outcomes.contains(&AnnouncerOutcome::PresentedWhole(1));
        assert!(!is_whole || utterance.number.is_none(), "{utterance:?} comes after its end");
        told.push(utterance.words);
        room.report(DeviceReport::Began(utterance.id));
        // A yes in the midst of it does not count.
        room.report(DeviceReport::Ended(utterance.id));
    }
    assert!(told[1].contains("All 41 tests pass."), "{told:?}");
    assert!(told.last().expect("words").ends_with("Yes or no?"), "{told:?}");
    assert!(room.outcomes.contains(&AnnouncerOutcome::PresentedWhole(1)));
}

#[test]
fn a_question_that_is_interrupted_within_a_sentence_begins_again_and_counts_only_then() {
    let mut room = Room::quiet();
    room.ask(1, &loom_asks("rpl_1"));
    let first = room.id();
    room.report(DeviceReport::Ended(first));
    let second = room.id();
    room.report(DeviceReport::Began(second));
    // A yes in the midst of it does not count, and is told so at once.
    room.report(DeviceReport::Chosen(second, 1));
    assert!(!room.outcomes.iter().any(|it| matches!(it, AnnouncerOutcome::Chosen { .. })));
    let heard = room.listen();
    assert!(heard[0].ends_with("Nothing was answered."), "{heard:?}");
    assert!(heard[1].starts_with("Loom asks: Publish the report"), "{heard:?}");
    assert!(heard[1].ends_with("Yes or no?"), "{heard:?}");
    assert!(room.outcomes.contains(&AnnouncerOutcome::PresentedWhole(1)));
}

#[test]
fn a_question_that_is_skipped_or_stopped_between_two_sentences_was_not_told_to_its_end() {
    for request in [ListeningRequest::Skip, ListeningRequest::Hush] {
        let mut room = Room::quiet();
        room.ask(1, &loom_asks("rpl_1"));
        let first = room.id();
        room.report(DeviceReport::Ended(first));
        let second = room.id();
        room.report(DeviceReport::Began(second));
        room.handle(AnnouncerInput::Request(request));
        assert_eq!(room.listen(), [""; 0], "the rest is not told");
        assert!(room.outcomes.contains(&AnnouncerOutcome::Presented(1)));
        assert!(!room.outcomes.contains(&AnnouncerOutcome::PresentedWhole(1)));
    }
}

#[test]
fn under_the_fingers_an_end_comes_at_once_and_the_question_comes_back_at_its_place() {
    for end in ends() {
        let mut room = Room::by_hand();
        room.ask(1, &loom_asks("rpl_1"));
        let question = room.id();
        room.report(DeviceReport::Began(question));
        room.hear(&end);
        let shown = room.speaking.clone().expect("the end");
        assert!(is_end(&shown.words), "{shown:?}");
        // Nothing else may take the place of a question that is being read.
        assert_eq!(shown.weight, Weight::Critical);
        room.report(DeviceReport::Cut(question));
        room.report(DeviceReport::Ended(shown.id));
        let again = room.speaking.clone().expect("the question");
        assert!(again.is_continued && again.number == Some(1), "{again:?}");
        assert!(!room.outcomes.contains(&AnnouncerOutcome::PresentedWhole(1)));
        room.report(DeviceReport::Ended(again.id));
        assert!(room.outcomes.contains(&AnnouncerOutcome::PresentedWhole(1)));
    }
}

#[test]
fn many_ends_do_not_silence_a_question() {
    let mut room = Room::quiet();
    room.ask(1, &loom_asks("rpl_1"));
    for at in 0..12 {
        let fields = json!({ "summary_normal": format!("Number {at} is done.") });
        room.hear(&event_of("Weaver", &format!("s{at}"), "session.completed", &fields));
    }
    let heard = room.listen();
    let asked = |it: &&String| it.starts_with("Loom");
    let longest = heard.split(|it| asked(&it)).map(<[String]>::len).take(3).max();
    assert_eq!(longest, Some(3), "{heard:?}");
    assert_eq!(heard.iter().filter(|it| it.contains("is done.")).count(), 12, "{heard:?}");
    assert!(room.outcomes.contains(&AnnouncerOutcome::PresentedWhole(1)));
}

#[test]
fn that_a_session_began_is_not_told_after_its_end() {
    let began = json!({ "summary_normal": "Cleaning up." });
    let events = [
        (seconds(0), loom_says(&speech_of(3), true)),
        (seconds(1), event("session.started", &began)),
        (seconds(2), completed("All clean.")),
    ];
    let said = rehearse(&events, &Preferences::default(), 180).said;
    let words: Vec<&str> = said.iter().map(|it| it.utterance.words.as_str()).collect();
    assert!(words[1].contains("Finished. All clean."), "{words:?}");
    assert!(!words.iter().any(|it| it.contains("Cleaning up.")), "{words:?}");
}

#[test]
fn what_an_agent_says_in_very_many_outputs_is_bounded_as_a_flood_is_and_one_answer_is_not() {
    let line = |at: u64| {
        let chunk = format!("Note {at} of what is going on here, told at some length.");
        let fields = json!({
            "output_id": format!("out_{at}"), "chunk": chunk, "position": 0, "complete": true,
        });
        event("output.streaming", &fields)
    };
    let log: Vec<(Duration, Event)> = (0..60).map(|at| (seconds(at), line(at))).collect();
    let answer = [(seconds(0), loom_says(&speech_of(30), true))];
    let furthest = |events: &[(Duration, Event)]| {
        let said = rehearse(events, &Preferences::default(), 180).said;
        said.iter().map(|it| it.began.saturating_sub(it.arrived)).max().expect("words")
    };
    let bound = seconds(Preferences::default().behind_seconds) + one_sentence(180);
    assert!(furthest(&log) <= bound, "{:?}", furthest(&log));
    assert!(furthest(&answer) > bound, "one answer is read to its end");
}

#[test]
fn lines_tell_everything_in_the_order_in_which_it_came() {
    let mut room = Room::quiet();
    room.announcer = Announcer::new(Preferences::default()).without_pace();
    // The device has not reported on the first of it when the rest comes.
    for at in 0..5 {
        room.hear(&loom_says(&format!("Sentence {at}."), true));
    }
    room.ask(1, &confirmation("rpl_1"));
    room.hear(&completed("All sorted."));
    let heard = room.listen();
    assert_eq!(heard.len(), 7, "{heard:?}");
    assert!(heard[4].ends_with("Sentence 4."), "{heard:?}");
    assert!(heard[5].contains("Delete 17 pictures"), "{heard:?}");
    assert!(heard[6].ends_with("Finished. All sorted."), "{heard:?}");
}

#[test]
fn a_person_who_stops_a_long_answer_hears_the_next_event_at_once() {
    let mut room = Room::quiet();
    room.hear(&loom_says(&speech_of(10), false));
    room.report(DeviceReport::Began(room.id()));
    room.handle(AnnouncerInput::Request(ListeningRequest::Hush));
    assert_eq!(room.listen(), [""; 0]);
    room.hear(&loom_says("This is the rest of it, which nobody wants to hear. ", false));
    assert_eq!(room.listen(), [""; 0], "the rest of what was stopped");
    room.hear(&completed("All 41 tests pass."));
    assert_eq!(room.listen(), ["Weaver: Finished. All 41 tests pass."]);
    room.handle(AnnouncerInput::Request(ListeningRequest::More));
    let heard = room.listen();
    assert!(heard[0].starts_with("Loom: Sentence 2 goes on"), "{heard:?}");
    assert!(heard.last().expect("words").starts_with("This is the rest of it"), "{heard:?}");
    room.handle(AnnouncerInput::Request(ListeningRequest::More));
    assert_eq!(room.listen(), ["Nothing was skipped."]);
    // What the agent says after it did something else is told again.
    room.hear(&event_of(
        "Loom",
        "b",
        "tool.invoked",
        &json!({ "tool": "grep", "summary_normal": "Searching." }),
    ));
    room.hear(&loom_says("I found it.", true));
    assert_eq!(room.listen(), ["Searching.", "I found it."]);
}

#[test]
fn a_person_who_stops_speech_is_told_of_an_end_that_waited() {
    let mut room = Room::quiet();
    room.hear(&loom_says(&speech_of(10), true));
    room.hear(&completed("All 41 tests pass."));
    room.handle(AnnouncerInput::Request(ListeningRequest::Hush));
    assert_eq!(room.listen(), ["Weaver: Finished. All 41 tests pass."]);
}

#[test]
fn in_a_flood_of_several_agents_the_subscriber_stays_near_the_present_and_offers_what_it_skips() {
    let events: Vec<(Duration, Event)> = (0..120)
        .flat_map(|at| {
            let chunk = format!("Note {at} of what is going on here, told at some length.");
            let loom = event_of(
                "Loom",
                "b",
                "output.streaming",
                &json!({ "chunk": chunk, "position": 0, "complete": true }),
            );
            [(seconds(at), loom), (seconds(at), text(&format!("{chunk} It is by another.")))]
        })
        .collect();
    let preferences = Preferences { sounds: false, ..Preferences::default() };
    let rehearsal = rehearse(&events, &preferences, 180);
    let furthest = rehearsal.said.iter().map(|it| it.began.saturating_sub(it.arrived)).max();
    assert!(furthest.expect("words") <= seconds(60), "{furthest:?}");
    let skipped = rehearsal.said.iter().find(|it| it.utterance.words.contains("Left out: "));
    let skipped = &skipped.expect("it is told").utterance.words;
    assert!(skipped.ends_with("To hear what was left out: more."), "{skipped}");
}

#[test]
fn one_goes_back_one_thing_at_a_time() {
    let mut room = Room::quiet();
    for words in ["One.", "Two.", "Three."] {
        room.hear(&text(words));
        room.listen();
    }
    let mut back = || {
        room.handle(AnnouncerInput::Request(ListeningRequest::Back));
        room.listen().concat()
    };
    assert_eq!([back(), back(), back()], ["Two.", "One.", "Nothing was said before that."]);
    // What is being said is said again after what came before it.
    room.hear(&text("Four."));
    let four = room.id();
    room.handle(AnnouncerInput::Request(ListeningRequest::Back));
    room.report(DeviceReport::Cut(four));
    assert_eq!(room.listen(), ["Three.", "Four."]);
}

#[test]
fn what_the_person_asked_for_does_not_wait_for_long_texts() {
    let mut room = Room::quiet();
    room.hear(&loom_says(&speech_of(10), true));
    room.handle(AnnouncerInput::Requested("Nothing waits for you."));
    room.handle(AnnouncerInput::Requested("That is all."));
    let heard = room.listen();
    assert_eq!(heard[1..3], ["Nothing waits for you.", "That is all."]);
}

/// Something that happens.
#[derive(Debug, Clone)]
enum Step {
    Text(u8, usize, bool),
    Tool(u8),
    ToolFailed(u8),
    State(u8),
    End(u8),
    Ask,
    Device(u8),
    Request(ListeningRequest),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let wishes = vec![
        ListeningRequest::Hush,
        ListeningRequest::Skip,
        ListeningRequest::Repeat,
        ListeningRequest::Back,
        ListeningRequest::More,
        ListeningRequest::LastReply,
        ListeningRequest::Pace(Pace::Faster),
    ];
    prop_oneof![
        6 => (0..3_u8, 1..20_usize, any::<bool>()).prop_map(|(who, long, whole)| Step::Text(who, long, whole)),
        2 => (0..3_u8).prop_map(Step::Tool),
        2 => (0..3_u8).prop_map(Step::ToolFailed),
        1 => (0..3_u8).prop_map(Step::State),
        2 => (0..3_u8).prop_map(Step::End),
        1 => Just(Step::Ask),
        8 => (0..8_u8).prop_map(Step::Device),
        2 => prop::sample::select(wishes).prop_map(Step::Request),
        1 => (0..100_u64).prop_map(Step::Wait),
    ]
}

/// An end that was not told, and what was told since: other news, and the rest.
#[derive(Debug)]
struct UntoldEnd {
    end: String,
    news: usize,
    since: Vec<String>,
}

impl UntoldEnd {
    fn new(end: String) -> Self {
        UntoldEnd { end, news: 0, since: Vec::new() }
    }
}

/// A device, the ends that it has not told, and what was said since each became known.
struct World {
    announcer: Announcer,
    now: Duration,
    speaking: Option<UtteranceId>,
    stopped: Vec<UtteranceId>,
    untold: Vec<UntoldEnd>,
    count: usize,
}

impl World {
    fn handle(&mut self, input: AnnouncerInput<'_>) {
        let decided = self.announcer.handle(self.now, input);
        for order in decided.orders {
            match order {
                Order::Say(utterance) => {
                    self.speaking = Some(utterance.id);
                    self.untold.retain(|it| !utterance.words.contains(&it.end));
                    // Other ends come first, and so does how questions were settled.
                    let is_news =
                        matches!(utterance.kind, UtteranceKind::Settled | UtteranceKind::Done)
                            || utterance.words.contains("In fact ");
                    for waiting in &mut self.untold {
                        if is_news {
                            waiting.news += 1;
                        } else {
                            waiting.since.push(utterance.words.clone());
                        }
                    }
                }
                Order::Stop => {
                    // What was cut off did not hold up anything.
                    let cut = self.speaking.take();
                    for waiting in self.untold.iter_mut().filter(|_| cut.is_some()) {
                        waiting.since.pop();
                    }
                    self.stopped.extend(cut);
                }
                _ => {}
            }
        }
        // The first sentence of a question that is new, and of another one after each end.
        for it in &self.untold {
            assert!(it.since.len() <= 1 + it.news, "{it:?}");
        }
    }

    fn step(&mut self, step: &Step) {
        self.count += 1;
        let (now, at) = (self.count, |who: u8| format!("s{who}"));
        let agent = |who: u8| ["Weaver", "Loom", "Spool"][usize::from(who)];
        let tool = format!("tool{now}");
        match step {
            Step::Text(who, long, complete) => {
                let fields =
                    json!({ "chunk": speech_of(*long), "position": 0, "complete": complete });
                let event = event_of(agent(*who), &at(*who), "output.streaming", &fields);
                self.handle(AnnouncerInput::Event(&event));
            }
            Step::Tool(who) => {
                let fields = json!({ "tool": tool, "summary_normal": format!("Step {now}."), "risk_level": "high" });
                let event = event_of(agent(*who), &at(*who), "tool.invoked", &fields);
                self.handle(AnnouncerInput::Event(&event));
            }
            Step::ToolFailed(who) => {
                let fields = json!({ "tool": tool, "status": "error", "error_message": "No." });
                let event = event_of(agent(*who), &at(*who), "tool.completed", &fields);
                self.handle(AnnouncerInput::Event(&event));
            }
            Step::State(who) => {
                let fields = json!({ "from_state": "idle", "to_state": "thinking", "summary_normal": format!("Thought {now}.") });
                let event = event_of(agent(*who), &at(*who), "state.changed", &fields);
                self.handle(AnnouncerInput::Event(&event));
            }
            Step::End(who) => {
                let end = format!("Ended as number {now}.");
                let fields = json!({ "summary_normal": end });
                let event = event_of(agent(*who), &at(*who), "session.completed", &fields);
                // The last words of its own agent may come first, if nothing else is being said.
                let is_idle = self.speaking.is_none();
                if is_idle {
                    let decided = self.announcer.handle(self.now, AnnouncerInput::Event(&event));
                    let mut is_told = false;
                    for order in decided.orders {
                        if let Order::Say(utterance) = order {
                            self.speaking = Some(utterance.id);
                            is_told = utterance.words.contains(&end);
                        }
                    }
                    if !is_told {
                        self.untold.push(UntoldEnd::new(end));
                    }
                } else {
                    self.untold.push(UntoldEnd::new(end));
                    self.handle(AnnouncerInput::Event(&event));
                }
            }
            Step::Ask => {
                let asked = confirmation(&format!("rpl_{now}"));
                let (number, remaining) = (u32::try_from(now).expect("few"), seconds(300));
                self.handle(AnnouncerInput::Asked(aaep_announce::Asked {
                    number,
                    event: &asked,
                    remaining,
                    can_answer: true,
                }));
            }
            Step::Device(what) => self.device(*what),
            Step::Request(wish) => {
                // A person who skips what is being said may skip an end.
                self.handle(AnnouncerInput::Request(*wish));
            }
            Step::Wait(count) => {
                self.now += seconds(*count);
                self.handle(AnnouncerInput::Tick);
            }
        }
    }

    fn device(&mut self, what: u8) {
        let report = match (what, self.speaking) {
            (0..2, Some(id)) => DeviceReport::Began(id),
            (2..6, Some(id)) => {
                self.speaking = None;
                DeviceReport::Ended(id)
            }
            _ => match self.stopped.pop() {
                Some(id) => DeviceReport::Cut(id),
                None => return,
            },
        };
        self.handle(AnnouncerInput::Device(report));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn an_end_waits_behind_the_sentence_being_said_and_one_more_of_a_new_question_alone(
        steps in prop::collection::vec(step(), 0..150),
        profile in prop::sample::select(Profile::ALL.to_vec()),
    ) {
        let mut world = World {
            announcer: Announcer::new(Preferences { sounds: false, ..profile.preferences() }),
            now: Duration::ZERO,
            speaking: None,
            stopped: Vec::new(),
            untold: Vec::new(),
            count: 0,
        };
        for step in &steps {
            world.step(step);
        }
        // The device says everything; every end is told in the end.
        for _ in 0..10_000 {
            world.device(if world.speaking.is_some() { 2 } else { 7 });
            if world.speaking.is_none() && world.stopped.is_empty() {
                break;
            }
        }
        prop_assert!(world.untold.is_empty(), "{:?}", world.untold);
    }
}
