//! The time to answer a question: one true time, and none after it is settled.

#[path = "common/support.rs"]
mod support;

use aaep::Event;
use aaep_announce::{AnnouncerInput, AnsweredBy, AskEnding, Asked, DeviceReport, UtteranceKind};
use serde_json::json;
use support::{Room, confirmation, event, seconds, text};

/// A question whose time counts from presentation: a minute of it, four minutes at most.
fn patient(token: &str) -> Event {
    event(
        "awaiting.confirmation",
        &json!({
            "action": "Delete 17 pictures.", "consequence": "They are gone.", "reply_token": token,
            "timeout_seconds": 60, "default_decision": "reject", "risk_level": "high",
            "extensions": { "agentvoice": { "max_timeout_seconds": 240 } },
        }),
    )
}

fn ask(room: &mut Room, number: u32, event: &Event) {
    let remaining = seconds(240);
    room.handle(AnnouncerInput::Asked(Asked { number, event, remaining, can_answer: true }));
}

fn changed(room: &mut Room, left: u64, wanted: Option<u64>) {
    let (remaining, wanted) = (seconds(left), wanted.map(seconds));
    room.handle(AnnouncerInput::TimeChanged { number: 1, remaining, is_paused: false, wanted });
}

/// The hub tells how much time is left, in words of its own.
fn countdown(words: &str) -> Event {
    event(
        "progress.updated",
        &json!({ "progress": { "description": words }, "summary_normal": words }),
    )
}

#[test]
fn the_time_that_is_told_is_the_one_that_counts_from_presentation() {
    let mut room = Room::quiet();
    ask(&mut room, 1, &patient("rpl_1"));
    let told = room.listen().concat();
    assert!(told.contains("You have 1 minute."), "{told}");
    // The hub says that the time runs since the question was presented, which is already known.
    room.now = seconds(12);
    changed(&mut room, 60, None);
    assert_eq!(room.listen(), [""; 0]);
    // The person is warned by that clock, and by no other.
    assert_eq!(room.announcer.deadline(), Some(seconds(42)));
    room.now = seconds(42);
    room.hear(&countdown("30 seconds left to answer."));
    let told = room.listen();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("Only 30 seconds left to answer."), "{told:?}");
}

#[test]
fn a_question_that_waits_as_long_as_the_person_likes_has_no_time_and_no_warning() {
    let mut room = Room::quiet();
    let (event, remaining) = (&patient("rpl_1"), std::time::Duration::MAX);
    let asked = Asked { number: 1, event, remaining, can_answer: true };
    room.handle(AnnouncerInput::Asked(asked));
    let told = room.listen().concat();
    assert!(told.contains("It waits until you answer."), "{told}");
    assert!(!told.contains("You have") && !told.contains("Without an answer"), "{told}");
    assert_eq!(room.announcer.deadline(), None);
}

#[test]
fn nothing_about_time_is_told_after_a_question_is_settled() {
    let mut room = Room::quiet();
    ask(&mut room, 1, &patient("rpl_1"));
    room.listen();
    changed(&mut room, 60, None);
    room.hear(&text("A long story."));
    changed(&mut room, 120, Some(60));
    room.hear(&countdown("45 seconds left to answer."));
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Accepted(AnsweredBy::You) });
    let heard = room.listen();
    assert_eq!(heard, ["A long story.", "Accepted."], "{heard:?}");
}

#[test]
fn more_time_is_told_as_it_is_when_it_is_told_and_not_as_something_settled() {
    let mut room = Room::quiet();
    ask(&mut room, 1, &patient("rpl_1"));
    room.listen();
    changed(&mut room, 60, None);
    room.hear(&text("A long story."));
    changed(&mut room, 120, Some(60));
    room.now += seconds(20);
    let story = room.id();
    room.report(DeviceReport::Ended(story));
    let told = room.speaking.clone().expect("the time");
    assert_eq!(told.kind, UtteranceKind::Notice);
    assert_eq!(told.words, "You have 1 minute 40 seconds to answer.");
}

#[test]
fn an_extension_that_was_shortened_says_so() {
    let mut room = Room::quiet();
    ask(&mut room, 1, &patient("rpl_1"));
    room.listen();
    changed(&mut room, 60, None);
    changed(&mut room, 240, Some(600));
    let told =
        "You have 4 minutes to answer. That is less than you asked for. The agent allows no more.";
    assert_eq!(room.listen(), [told]);
    changed(&mut room, 300, Some(60));
    assert_eq!(room.listen(), ["You have 5 minutes to answer."], "as much as was asked for");
}

#[test]
fn the_progress_of_an_agent_that_asks_nothing_is_told() {
    let mut room = Room::quiet();
    room.hear(&countdown("Copying the pictures."));
    assert_eq!(room.listen(), ["Weaver: Copying the pictures."]);
    room.ask(1, &confirmation("rpl_1"));
    room.listen();
    room.now += seconds(60);
    room.hear(&event("progress.updated", &json!({ "progress": { "percent": 50 } })));
    assert_eq!(room.listen(), ["50 percent."]);
}
