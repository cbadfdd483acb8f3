//! Context before consent: what an agent said before it asks comes before its question, and never after the answer.

#[path = "common/support.rs"]
mod support;

use aaep_announce::{
    Announcer, AnnouncerInput, AnnouncerOutcome, AnsweredBy, AskEnding, DeviceReport,
    ListeningRequest, Preferences, Profile,
};
use serde_json::json;
use support::{Room, confirmation, event, event_of, text};

const REASON: &str =
    "I would keep the subfolder photos, because the pictures in it are not blurred.";

#[test]
fn the_last_sentence_of_the_asking_agent_comes_before_its_question_and_the_rest_on_request() {
    let mut room = Room::quiet();
    room.hear(&text("I looked at all of the pictures that you have in the folder for July. Most are blurred, as you said, and I sorted them into two lists."));
    room.hear(&text(REASON));
    room.report(DeviceReport::Began(room.id()));
    room.ask(1, &confirmation("rpl_1"));
    let heard = room.listen();
    let begun = "I looked at all of the pictures that you have in the folder for July.";
    assert_eq!(
        heard[0],
        format!("Weaver says before it asks, for the rest: more: {begun} {REASON}")
    );
    assert!(heard[1].contains("Delete 17 pictures"), "{heard:?}");
    assert_eq!(heard.len(), 2);
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Accepted(AnsweredBy::You) });
    assert_eq!(room.listen(), ["Accepted."], "nothing of it after the answer");
    room.handle(AnnouncerInput::Request(ListeningRequest::More));
    let heard = room.listen();
    assert!(heard.len() == 1 && heard[0].starts_with("Most are blurred"), "{heard:?}");
}

#[test]
fn a_sentence_that_has_not_ended_comes_before_the_question_too() {
    for is_instant in [false, true] {
        let mut room = Room::quiet();
        if is_instant {
            room.announcer = Announcer::new(Preferences::default()).without_pace();
        }
        let piece =
            json!({ "chunk": "I would keep the subfolder", "position": 0, "complete": false });
        room.hear(&event("output.streaming", &piece));
        room.ask(1, &confirmation("rpl_1"));
        let heard = room.listen();
        assert!(heard[0].ends_with("I would keep the subfolder"), "{heard:?}");
        assert!(heard[1].contains("Delete 17 pictures"), "{heard:?}");
        let piece = json!({ "chunk": " photos.", "position": 26, "complete": true });
        room.hear(&event("output.streaming", &piece));
        assert_eq!(room.listen(), ["photos."]);
    }
}

#[test]
fn what_an_agent_said_in_another_session_comes_before_a_question_that_has_a_session_of_its_own() {
    let mut room = Room::quiet();
    room.hear(&text(REASON));
    room.hear(&support::completed("Said."));
    room.report(DeviceReport::Began(room.id()));
    let asked = |agent| {
        let fields =
            json!({ "question": "Which one?", "reply_token": "rpl_1", "timeout_seconds": 90 });
        event_of(agent, "b", "awaiting.clarification", &fields)
    };
    room.ask(1, &asked("Weaver"));
    let heard = room.listen();
    assert!(heard[0].ends_with(&format!("says before it asks: {REASON}")), "{heard:?}");
    assert_eq!(heard[1], "Finished. Said.");
    assert!(heard[2].contains("Which one?"), "{heard:?}");
    // Another agent does not wait for it.
    let mut room = Room::quiet();
    room.hear(&text(REASON));
    room.hear(&support::completed("Said."));
    room.report(DeviceReport::Began(room.id()));
    room.ask(1, &asked("Loom"));
    assert!(room.words().contains("Which one?"), "{}", room.words());
}

#[test]
fn on_lines_all_of_it_comes_first() {
    let mut room = Room::quiet();
    room.announcer = Announcer::new(Preferences::default()).without_pace();
    for words in ["One.", "Two.", "Three."] {
        room.hear(&text(words));
    }
    room.ask(1, &confirmation("rpl_1"));
    let heard = room.listen();
    assert_eq!(heard[..3], ["Weaver: One.", "Two.", "Three."]);
    assert!(heard[3].contains("Delete 17 pictures"), "{heard:?}");
}

#[test]
fn in_braille_nothing_stands_before_a_question_and_nothing_of_it_follows_the_answer() {
    let mut room = Room::quiet();
    room.announcer = Announcer::new(Preferences::default()).with_context_on_request();
    room.hear(&text(REASON));
    room.ask(1, &confirmation("rpl_1"));
    let heard = room.listen();
    assert!(heard.len() == 1 && heard[0].contains("Delete 17 pictures"), "{heard:?}");
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Accepted(AnsweredBy::You) });
    assert_eq!(room.listen(), ["Accepted."]);
    room.handle(AnnouncerInput::Request(ListeningRequest::More));
    assert_eq!(room.listen(), [REASON]);
}

#[test]
fn what_others_said_is_not_told_before_a_question() {
    let mut room = Room::quiet();
    let other = json!({ "chunk": "A story of another agent.", "position": 0, "complete": true });
    room.hear(&event_of("Loom", "b", "output.streaming", &other));
    room.ask(1, &confirmation("rpl_1"));
    let heard = room.listen();
    assert!(heard[0].contains("Delete 17 pictures"), "{heard:?}");
    assert_eq!(heard[1], "Loom: A story of another agent.");
}

#[test]
fn a_question_is_being_told_from_its_context_on_and_settled_with_it() {
    let mut room = Room::quiet();
    room.hear(&text(REASON));
    room.ask(1, &confirmation("rpl_1"));
    let context = room.id();
    room.report(DeviceReport::Began(context));
    assert_eq!(room.outcomes, [AnnouncerOutcome::Presenting(1)]);
    room.handle(AnnouncerInput::Over {
        number: 1,
        ending: AskEnding::Rejected(AnsweredBy::Elsewhere),
    });
    room.report(DeviceReport::Cut(context));
    assert_eq!(room.listen(), ["Refused elsewhere."]);
    assert!(!room.outcomes.contains(&AnnouncerOutcome::PresentedWhole(1)));
}

#[test]
fn a_person_who_hears_no_texts_hears_only_the_question() {
    let mut room = Room::new(Preferences { sounds: false, ..Profile::Quiet.preferences() });
    room.hear(&text(REASON));
    room.ask(1, &confirmation("rpl_1"));
    let heard = room.listen();
    assert!(heard.len() == 1 && heard[0].contains("Delete 17 pictures"), "{heard:?}");
}
