//! Near the present, with devices that take their time: a voice of 200 and of 400 words per minute, and a display on which
//! someone reads. What is asserted is the order of what is told, and never how long it takes.

use std::collections::BTreeSet;
use std::thread;

use aaep_announce::Profile;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::patience::wait_until;
use crate::speech_server::SpeechServer;

/// How long a voice takes for a character, in milliseconds: a word has six of them.
const VOICE_OF_200: f64 = 50.0;
const VOICE_OF_400: f64 = 25.0;

/// One text of 500 words, in sentences of ten.
fn story() -> String {
    let sentence = |at| format!("Sentence {at} goes on about something that is not urgent. ");
    (10..60).map(sentence).collect()
}

/// What was given to the voice, and where in that these words are.
fn spoken_with(speech: &SpeechServer, words: &str) -> Option<usize> {
    speech.spoken().iter().position(|it| it.contains(words))
}

/// Loom tells its story, and it is being told, if that is told at all in this profile.
fn tell_story(desk: &Desk, speech: &SpeechServer, is_told: bool) {
    desk.publish_as("loom", "session.started", &json!({ "summary_normal": "Telling a story." }));
    let text =
        json!({ "output_id": "out_story", "chunk": story(), "position": 0, "complete": true });
    desk.publish_as("loom", "output.streaming", &text);
    if is_told {
        wait_until("the story is being told", || spoken_with(speech, "Sentence "));
    }
}

/// How many things were begun after so many others and before the one with these words.
fn begun_before(speech: &SpeechServer, known: usize, words: &str) -> usize {
    let at = wait_until(&format!("{words:?} is spoken"), || spoken_with(speech, words));
    at.saturating_sub(known)
}

fn an_end_comes_soon(profile: Profile, pace: f64) {
    let name = profile.name();
    let speech = SpeechServer::start(pace, &["en"]);
    let mut desk = Desk::with_profile(&speech, name);
    desk.begin();
    tell_story(&desk, &speech, tells_texts(profile));
    let known = speech.spoken().len();
    desk.publish("session.completed", &json!({ "summary_normal": "All 41 tests pass." }));
    // What is being said is said to its end; one more may have been on its way to the voice.
    let before = begun_before(&speech, known, "All 41 tests pass.");
    assert!(before <= 1, "{name}: {before} things came before the end: {:?}", speech.spoken());
    desk.wait_for_line("All 41 tests pass.");
    // The same under the fingers: what is being read is followed by the end, and not by more of the story.
    let pages = desk.read_until("All 41");
    let sentences: BTreeSet<&str> = pages.iter().filter_map(|it| sentence_of(it)).collect();
    assert!(sentences.len() <= 1, "{name}: {pages:?}");
}

/// The sentence of the story that a page begins, if it does.
fn sentence_of(page: &str) -> Option<&str> {
    let number = page.split_once("Sentence ")?.1;
    number.split(' ').next()
}

#[test]
fn an_end_after_the_long_text_of_another_agent_comes_after_one_sentence_on_every_profile() {
    thread::scope(|scope| {
        for profile in Profile::ALL {
            scope.spawn(move || an_end_comes_soon(*profile, VOICE_OF_400));
        }
    });
    an_end_comes_soon(Profile::ScreenReader, VOICE_OF_200);
}

#[test]
fn who_says_stop_in_a_long_answer_hears_the_next_end_next() {
    thread::scope(|scope| {
        for profile in Profile::ALL.iter().filter(|it| tells_texts(**it)) {
            scope.spawn(move || stop_in_a_long_answer(*profile));
        }
    });
}

/// Whether texts of agents are told as they come.
fn tells_texts(profile: Profile) -> bool {
    !matches!(profile, Profile::Quiet | Profile::LowCognitiveLoad)
}

fn stop_in_a_long_answer(profile: Profile) {
    let speech = SpeechServer::start(VOICE_OF_200, &["en"]);
    let mut desk = Desk::with_profile(&speech, profile.name());
    desk.begin();
    tell_story(&desk, &speech, true);
    desk.types("stop");
    let stops = |it: &Value| it["event"] == "stop";
    wait_until("it is quiet", || speech.log().iter().any(stops).then_some(()));
    wait_until("it says so", || spoken_with(&speech, "Quiet."));
    let known = speech.spoken().len();
    desk.publish("session.completed", &json!({ "summary_normal": "All 41 tests pass." }));
    let before = begun_before(&speech, known, "All 41 tests pass.");
    assert_eq!(before, 0, "{:?}", speech.spoken());
    assert!(spoken_with(&speech, "Sentence 59").is_none(), "{:?}", speech.spoken());
}

/// While a question of another agent is told, an end comes after the sentence being said, and the question goes on.
fn an_end_comes_within_a_question(profile: Profile, pace: f64) {
    let name = profile.name();
    let speech = SpeechServer::start(pace, &["en"]);
    let desk = Desk::with_profile(&speech, name);
    desk.begin();
    desk.publish_as("dyer", "session.started", &json!({ "summary_normal": "At work." }));
    let ask = json!({
        "reply_token": "rpl_dyer", "action": "Publish the report of the year on the public page.",
        "consequence": "Everyone who reads the page sees it at once. It is sent to 400 subscribers as well. What was \
                        there before cannot be brought back.",
        "timeout_seconds": 600, "default_decision": "reject", "risk_level": "high",
        "urgency": "critical", "irreversible": true,
    });
    desk.publish_as("dyer", "awaiting.confirmation", &ask);
    wait_until("the question is being told", || spoken_with(&speech, "Publish the report"));
    wait_until("it is shown", || desk.braille.shown().contains("Publish").then_some(()));
    let known = speech.spoken().len();
    desk.publish("session.completed", &json!({ "summary_normal": "All 41 tests pass." }));
    // Under the fingers it comes without a key, because a question may stay there for long.
    wait_until("the end is shown", || desk.braille.shown().contains("Finished").then_some(()));
    let before = begun_before(&speech, known, "All 41 tests pass.");
    assert!(before <= 1, "{name}: {before} things came before the end: {:?}", speech.spoken());
    let end = wait_until("the question is told to its end", || spoken_with(&speech, "Yes or no?"));
    let spoken = speech.spoken();
    let asked = spoken.iter().filter(|it| it.contains("Publish the report")).count();
    assert!(asked == 1 && end > known, "{name}: it goes on where it was: {spoken:?}");
}

#[test]
fn an_end_in_the_question_of_another_agent_comes_after_one_sentence_on_every_profile() {
    thread::scope(|scope| {
        for profile in Profile::ALL {
            scope.spawn(move || an_end_comes_within_a_question(*profile, VOICE_OF_200));
        }
    });
}

#[test]
fn of_two_questions_in_one_moment_both_are_named_before_either_is_told_at_length() {
    thread::scope(|scope| {
        for profile in Profile::ALL {
            scope.spawn(move || two_questions_are_named_first(*profile));
        }
    });
}

fn two_questions_are_named_first(profile: Profile) {
    let name = profile.name();
    let speech = SpeechServer::start(VOICE_OF_400, &["en"]);
    let desk = Desk::with_profile(&speech, name);
    desk.begin();
    tell_story(&desk, &speech, tells_texts(profile));
    let known = speech.spoken().len();
    let consequence =
        "What is there now is replaced by what was prepared, for everyone who works with it.";
    for (agent, action) in [("spinner", "Publish the report."), ("dyer", "Send 31 letters.")] {
        desk.publish_as(agent, "session.started", &json!({ "summary_normal": "At work." }));
        let ask = json!({
            "reply_token": format!("rpl_{agent}"), "action": action, "consequence": consequence,
            "timeout_seconds": 600, "default_decision": "reject", "risk_level": "high",
            "urgency": "critical", "irreversible": true,
        });
        desk.publish_as(agent, "awaiting.confirmation", &ask);
    }
    wait_until("both are told whole", || {
        let whole = speech.spoken().iter().filter(|it| it.contains("works with it")).count();
        (whole >= 2).then_some(())
    });
    let spoken = speech.spoken();
    let first = |words: &str| {
        let found = spoken.iter().skip(known).position(|it| it.contains(words));
        found.unwrap_or_else(|| panic!("{words:?} in {spoken:?}"))
    };
    let second_whole = {
        let whole = spoken.iter().enumerate().filter(|(_, it)| it.contains("works with it"));
        whole.map(|(at, _)| at - known).nth(1).expect("two")
    };
    for words in ["Publish the report.", "Send 31 letters."] {
        assert!(first(words) < second_whole, "{name}: {words:?} in {spoken:?}");
        // Lines have both in the order in which they came.
        desk.wait_for_line(words);
    }
    // Nothing of the story comes between them.
    let between = &spoken[(known + 1).min(known + second_whole)..=known + second_whole];
    assert!(!between.iter().any(|it| it.contains("not urgent")), "{name}: {spoken:?}");
}

/// The seconds that a sentence says are left, if it does.
fn told_seconds(words: &str) -> Option<f64> {
    let mut words = words.split(['.', ' ']).filter(|it| !it.is_empty()).peekable();
    while let Some(word) = words.next() {
        let Ok(number) = word.parse::<f64>() else { continue };
        match words.peek() {
            Some(unit) if unit.starts_with("second") => return Some(number),
            Some(unit) if unit.starts_with("minute") => return Some(number * 60.0),
            _ => {}
        }
    }
    None
}

#[test]
fn the_time_that_is_told_is_never_more_than_is_left() {
    thread::scope(|scope| {
        for profile in Profile::ALL {
            scope.spawn(move || the_time_is_right(*profile));
        }
    });
}

fn the_time_is_right(profile: Profile) {
    let speech = SpeechServer::start(VOICE_OF_400, &["en"]);
    let desk = Desk::with_profile(&speech, profile.name());
    desk.begin();
    let ask = json!({
        "reply_token": "rpl_time", "action": "Send 31 letters.", "consequence": "They cannot be called back.",
        "timeout_seconds": 30, "default_decision": "reject", "risk_level": "high", "urgency": "critical",
        "irreversible": true,
    });
    desk.publish("awaiting.confirmation", &ask);
    let settled = |it: &Value| text_of(it).is_some_and(|it| it.contains("Nobody answered"));
    wait_until("its time is over", || speech.log().iter().find(|it| settled(it)).cloned());
    let log = speech.log();
    let over = log.iter().find(|it| settled(it)).and_then(|it| it["at"].as_f64()).expect("a time");
    let told: Vec<(f64, f64)> = log
        .iter()
        .filter_map(|it| Some((told_seconds(text_of(it)?)?, over - it["at"].as_f64()?)))
        .filter(|(_, left)| *left > 0.0)
        .collect();
    assert!(!told.is_empty(), "{:?}", speech.spoken());
    for (told, left) in told {
        // It is told before the sentence is said, and what came of it a moment after.
        assert!(told <= left + 2.0, "{told} were told, {left} were left: {:?}", speech.spoken());
    }
}

fn text_of(entry: &Value) -> Option<&str> {
    entry["text"].as_str().filter(|_| entry["event"] == "speak")
}
