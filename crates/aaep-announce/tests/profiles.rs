//! Profiles do what they say.

#[path = "common/support.rs"]
mod support;

use std::time::Duration;

use aaep::{Event, Message, Mode, read};
use aaep_announce::{
    AnnouncerInput, AnsweredBy, AskEnding, ListeningRequest, Preferences, Profile, UtteranceKind,
    Weight, rehearse,
};
use serde_json::json;
use support::{
    Room, completed, confirmation, event, event_of, resolution, seconds, state, text, tool,
};

/// A session with some of everything.
fn session() -> Vec<(Duration, Event)> {
    let long = "I looked at all of the pictures in the folder, one after the other, and compared each of them \
        with the ones before it, which took a while. Most of them are sharp. Some are not. I made a list of those. \
        You can look at the list before anything is deleted, and take out of it what you want to keep. ";
    let risky =
        json!({ "tool": "sync", "summary_normal": "Sending the list.", "risk_level": "medium" });
    let failed = json!({ "error_category": "unknown", "summary_normal": "The disk is full." });
    let events = [
        event("session.started", &json!({ "summary_normal": "Looking through your pictures." })),
        state("thinking", "Planning the search."),
        tool("scan", "Looking for blurred pictures."),
        event("progress.updated", &json!({ "progress": { "percent": 50 } })),
        event(
            "tool.completed",
            &json!({ "tool": "scan", "status": "success", "summary_normal": "Found 17." }),
        ),
        text(&long.repeat(2)),
        event("tool.invoked", &risky),
        event("lumen:lamp.lit", &json!({ "summary_normal": "The lamp is lit." })),
        confirmation("rpl_1"),
        resolution("rpl_1", "accept", "reply"),
        completed("All searched."),
        support::event_of("Loom", "b", "session.errored", &failed),
    ];
    (0..).map(|at| seconds(at * 60)).zip(events).collect()
}

fn said(profile: Profile) -> Vec<(UtteranceKind, String)> {
    let preferences = Preferences { sounds: false, ..profile.preferences() };
    let heard = rehearse(&session(), &preferences, preferences.pace()).said;
    heard.into_iter().map(|it| (it.utterance.kind, it.utterance.words)).collect()
}

#[test]
fn quiet_tells_what_needs_the_person_what_failed_and_what_has_finished_and_nothing_else() {
    let heard = said(Profile::Quiet);
    let is_essential = |kind: UtteranceKind| {
        matches!(kind, UtteranceKind::Question | UtteranceKind::Error | UtteranceKind::Done)
    };
    assert!(heard.iter().all(|(kind, _)| is_essential(*kind)), "{heard:?}");
    for words in ["Delete 17 pictures", "Finished. All searched.", "Failed. The disk is full."] {
        assert!(heard.iter().any(|(_, it)| it.contains(words)), "{words} {heard:?}");
    }
}

fn quiet_room() -> Room {
    Room::new(Preferences { sounds: false, ..Profile::Quiet.preferences() })
}

#[test]
fn quiet_tells_no_tool_that_fails_and_nothing_against_what_it_did_not_tell() {
    let mut room = quiet_room();
    room.hear(&tool("bash", "npm test"));
    let failed = json!({ "tool": "bash", "status": "error", "error_message": "3 tests fail." });
    room.hear(&event("tool.completed", &failed));
    room.hear(&text("All 41 tests pass."));
    assert_eq!(room.listen(), Vec::<String>::new());
    room.hear(&completed("All 41 tests pass."));
    let heard = room.listen();
    assert_eq!(heard[0], "Weaver: Finished. All 41 tests pass.");
    assert!(heard[1].contains("In fact"), "an end is not told falsely: {heard:?}");
}

#[test]
fn quiet_tells_how_a_question_was_settled_only_if_the_person_has_to_know() {
    let settle = |is_heard: bool, ending| {
        let mut room = quiet_room();
        if !is_heard {
            room.handle(AnnouncerInput::Device(aaep_announce::DeviceReport::Trouble(
                "off".to_owned(),
            )));
        }
        room.ask(1, &confirmation("rpl_1"));
        room.listen();
        room.handle(AnnouncerInput::Over { number: 1, ending });
        room.handle(AnnouncerInput::Device(aaep_announce::DeviceReport::Works));
        room.listen()
    };
    let nothing = Vec::<String>::new();
    for own in [
        AskEnding::Accepted(AnsweredBy::You),
        AskEnding::Rejected(AnsweredBy::You),
        AskEnding::Answered(AnsweredBy::You),
    ] {
        assert_eq!(settle(true, own), nothing, "they know it: {own:?}");
    }
    for (other, told) in [
        (AskEnding::Accepted(AnsweredBy::Elsewhere), "Accepted elsewhere."),
        (AskEnding::Rejected(AnsweredBy::Timeout), "Nobody answered in time, so it was refused."),
        (AskEnding::Accepted(AnsweredBy::Timeout), "Nobody answered in time, so it goes ahead."),
        (AskEnding::Withdrawn, "It is no longer asked."),
        (AskEnding::Unknown, "It is not known what became of the question."),
    ] {
        let heard = settle(true, other);
        assert!(heard.len() == 1 && heard[0].ends_with(told), "{other:?}: {heard:?}");
    }
    for settled in [AskEnding::Accepted(AnsweredBy::Elsewhere), AskEnding::Withdrawn] {
        assert_eq!(settle(false, settled), nothing, "never heard: {settled:?}");
    }
    assert_eq!(
        settle(false, AskEnding::Accepted(AnsweredBy::Timeout)).len(),
        1,
        "nobody was asked"
    );
}

#[test]
fn quiet_tells_of_questions_asked_elsewhere_only_that_nobody_decided_them() {
    for (decided_by, count) in [("reply", 0), ("withdrawn", 0), ("timeout", 1), ("no_listener", 1)]
    {
        let mut room = quiet_room();
        room.hear(&resolution("rpl_9", "reject", decided_by));
        assert_eq!(room.listen().len(), count, "{decided_by}");
    }
}

#[test]
fn low_cognitive_load_says_less_than_the_default_and_in_shorter_sentences() {
    let words = |heard: &[(UtteranceKind, String)]| -> usize {
        heard.iter().map(|(_, it)| it.split_whitespace().count()).sum()
    };
    let (usual, low) = (said(Profile::ScreenReader), said(Profile::LowCognitiveLoad));
    assert!(words(&low) * 2 < words(&usual), "{} and {}: {low:?}", words(&low), words(&usual));
    let longest = |heard: &[(UtteranceKind, String)]| {
        let others = heard.iter().filter(|(kind, _)| *kind != UtteranceKind::Question);
        others.map(|(_, it)| it.split_whitespace().count()).max()
    };
    assert!(longest(&low) < longest(&usual), "{low:?}");
    assert!(longest(&low) <= Some(30), "{low:?}");
    for words in ["Delete 17 pictures", "Finished. All searched.", "Failed. The disk is full."] {
        assert!(low.iter().any(|(_, it)| it.contains(words)), "{words} {low:?}");
    }
}

#[test]
fn what_low_cognitive_load_leaves_out_of_a_reply_can_be_heard() {
    let mut room =
        Room::new(Preferences { sounds: false, ..Profile::LowCognitiveLoad.preferences() });
    let sentence = |at: u32| format!("This is number {at} of the sentences that I have to say.");
    room.hear(&text(&(1..=5).map(sentence).collect::<Vec<_>>().join(" ")));
    let heard = room.listen();
    assert_eq!(heard.len(), 3, "{heard:?}");
    assert_eq!(heard[2], format!("{} For the rest: more.", sentence(3)));
    room.handle(AnnouncerInput::Request(ListeningRequest::More));
    assert_eq!(room.listen(), [sentence(4), sentence(5)]);
}

/// The events of a recorded session, each with its time since the first one.
fn capture(name: &str) -> Vec<(Duration, Event)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/captures");
    let text = std::fs::read_to_string(format!("{folder}/{name}.jsonl")).expect("a capture");
    let events = text.lines().filter_map(|it| match read(it.as_bytes(), Mode::Tolerant).message {
        Some(Message::Event(event)) => Some(*event),
        _ => None,
    });
    let mut first = None;
    events
        .map(|event| {
            let at = event.envelope.timestamp.unix_us();
            let since = at.saturating_sub(*first.get_or_insert(at));
            (Duration::from_micros(u64::try_from(since).unwrap_or_default()), event)
        })
        .collect()
}

const CAPTURES: [&str; 7] =
    ["coding", "answer", "permissions", "three", "flood", "crossing", "claim"];

fn heard(name: &str, profile: Profile) -> aaep_announce::Rehearsal {
    let preferences = profile.preferences();
    rehearse(&capture(name), &preferences, preferences.words_per_minute)
}

#[test]
fn low_cognitive_load_says_less_than_the_default_in_shorter_sentences_and_quiet_less_still() {
    for name in CAPTURES {
        let [usual, low, quiet] =
            [Profile::ScreenReader, Profile::LowCognitiveLoad, Profile::Quiet].map(|profile| {
                let said = heard(name, profile).said;
                let words = |it: &str| it.split_whitespace().count();
                let all: usize = said.iter().map(|it| words(&it.utterance.words)).sum();
                (all, said.iter().map(|it| words(&it.utterance.words)).max().unwrap_or_default())
            });
        assert!(low.0 < usual.0, "{name}: {low:?}, {usual:?}");
        assert!(quiet.0 < usual.0, "{name}: {quiet:?}, {usual:?}");
        assert!(low.1 <= usual.1.max(32), "{name}: the longest of {low:?}, {usual:?}");
    }
}

#[test]
fn with_low_cognitive_load_nothing_but_news_is_told_while_a_question_has_no_answer() {
    for name in CAPTURES {
        let rehearsal = heard(name, Profile::LowCognitiveLoad);
        for ask in &rehearsal.asks {
            let over = ask.over.map_or(Duration::MAX, |(over, _)| over);
            let since = ask.first_word.unwrap_or(Duration::MAX);
            for said in rehearsal.said.iter().filter(|it| it.began > since && it.began < over) {
                let said = &said.utterance;
                let is_question_or_news = match said.kind {
                    UtteranceKind::Question | UtteranceKind::Settled | UtteranceKind::Done => true,
                    _ => said.weight == Weight::Critical || said.words.contains("In fact "),
                };
                assert!(is_question_or_news, "{name}: {}", said.words);
            }
        }
    }
}

#[test]
fn with_low_cognitive_load_texts_wait_for_the_answer_and_are_told_then() {
    let mut room =
        Room::new(Preferences { sounds: false, ..Profile::LowCognitiveLoad.preferences() });
    room.ask(1, &confirmation("rpl_1"));
    let said = json!({ "chunk": "The tests are slow.", "position": 0, "complete": true });
    room.hear(&event_of("Loom", "b", "output.streaming", &said));
    let heard = room.listen();
    assert!(!heard.concat().contains("slow"), "{heard:?}");
    assert!(room.announcer.deadline().is_some_and(|at| at < Duration::from_hours(1)));
    let done = json!({ "summary_normal": "All is built." });
    room.hear(&event_of("Spool", "c", "session.completed", &done));
    assert_eq!(room.listen(), ["Spool: Finished. All is built."], "an end does not wait");
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Rejected(AnsweredBy::You) });
    let heard = room.listen();
    assert!(heard[0].ends_with("Refused."), "{heard:?}");
    assert_eq!(heard[1], "Loom: The tests are slow.");
}

#[test]
fn with_low_cognitive_load_the_texts_of_two_agents_are_told_one_after_the_other() {
    let mut room =
        Room::new(Preferences { sounds: false, ..Profile::LowCognitiveLoad.preferences() });
    for agent in ["Loom", "Spool"] {
        let sentence = |at| format!("{agent} says sentence {at}, which is not a very short one. ");
        let chunk: String = (0..9).map(sentence).collect();
        let said = json!({ "chunk": chunk, "position": 0, "complete": true });
        room.hear(&event_of(agent, agent, "output.streaming", &said));
    }
    let heard = room.listen();
    let told: Vec<bool> = heard.iter().map(|it| it.contains("Loom says")).collect();
    assert!(told.is_sorted_by(|one, next| one >= next), "{heard:?}");
    assert!(heard.iter().any(|it| it.ends_with("For the rest: more.")), "{heard:?}");
}

#[test]
fn quiet_tells_what_needs_the_person_what_failed_and_what_finished_of_every_capture() {
    for name in CAPTURES {
        for said in heard(name, Profile::Quiet).said.into_iter().map(|it| it.utterance) {
            let is_wanted = match said.kind {
                UtteranceKind::Question | UtteranceKind::Done | UtteranceKind::Settled => true,
                UtteranceKind::Error | UtteranceKind::Notice => {
                    said.weight == Weight::Critical || said.words.contains("In fact ")
                }
                _ => false,
            };
            assert!(is_wanted, "{name}: {}", said.words);
        }
    }
}
