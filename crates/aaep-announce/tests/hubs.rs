//! Several hubs at once: which one speaks is told when that changes, and none speaks for another.

#[path = "common/support.rs"]
mod support;

use aaep::Event;
use aaep_announce::{
    AnnouncerInput, AnsweredBy, AskEnding, Asked, Decided, MAX_QUESTIONS, MAX_SESSIONS,
};
use serde_json::json;
use support::{Room, confirmation, event, event_of, seconds, text};

/// An announcer for someone who listens to two hubs.
fn two_hubs() -> Room {
    let mut room = Room::quiet();
    room.announcer.name_hubs(&["home".to_owned(), "work".to_owned()]);
    room
}

fn hear(room: &mut Room, hub: usize, event: &Event) -> Vec<String> {
    room.handle_from(hub, AnnouncerInput::Event(event));
    room.listen()
}

fn ask(room: &mut Room, hub: usize, number: u32, event: &Event) -> Decided {
    let remaining = seconds(300);
    room.handle_from(
        hub,
        AnnouncerInput::Asked(Asked { number, event, remaining, can_answer: true }),
    )
}

#[test]
fn the_hub_is_named_only_when_another_one_speaks() {
    let mut room = two_hubs();
    assert_eq!(hear(&mut room, 0, &text("One.")), ["At home, Weaver: One."]);
    assert_eq!(hear(&mut room, 0, &text("Two.")), ["Two."]);
    let other = event_of("gardener", "b", "output.streaming", &said("Three."));
    assert_eq!(hear(&mut room, 0, &other), ["gardener: Three."]);
    let mail = event_of("mail", "m", "output.streaming", &said("Four."));
    assert_eq!(hear(&mut room, 1, &mail), ["At work, mail: Four."]);
    assert_eq!(hear(&mut room, 0, &text("Five.")), ["At home, Weaver: Five."]);
}

#[test]
fn with_one_hub_none_is_ever_named() {
    let mut room = Room::quiet();
    room.announcer.name_hubs(&["home".to_owned()]);
    assert_eq!(hear(&mut room, 0, &text("One.")), ["Weaver: One."]);
    room.handle_from(0, AnnouncerInput::LineBroken);
    assert_eq!(room.listen(), ["The line to the agents broke. Trying again."]);
}

#[test]
fn a_question_says_at_which_hub_it_is_asked() {
    let mut room = two_hubs();
    hear(&mut room, 0, &text("One."));
    ask(&mut room, 1, 1, &confirmation("rpl_1"));
    let asked = room.listen();
    assert!(asked[0].starts_with("At work, Weaver 2 asks, question 1: Delete 17"), "{asked:?}");
}

#[test]
fn a_session_of_one_hub_says_nothing_about_the_same_id_at_another() {
    let mut room = two_hubs();
    hear(&mut room, 0, &text("I delete it now."));
    ask(&mut room, 0, 1, &confirmation("rpl_1"));
    room.listen();
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Rejected(AnsweredBy::You) });
    room.listen();
    // The other hub says the same session is over; the fact is still held against the claim at the first.
    let over = event("session.completed", &json!({ "summary_normal": "Deleted everything." }));
    let heard = hear(&mut room, 1, &over);
    assert_eq!(
        heard,
        ["At work, Weaver 2: Finished. Deleted everything."],
        "no fact is known there"
    );
    let heard = hear(&mut room, 0, &over);
    assert!(heard.iter().any(|it| it.contains("was not allowed")), "{heard:?}");
}

#[test]
fn nobody_passes_for_a_hub_by_words_or_by_a_name() {
    let mut room = two_hubs();
    hear(&mut room, 0, &text("One."));
    let heard = hear(&mut room, 0, &text("At work, mail: All is well."));
    assert_eq!(heard, ["At home, Weaver: At work, mail: All is well."]);
    let name = event_of("at Work, mail", "n", "output.streaming", &said("Hello."));
    for _ in 0..2 {
        let heard = hear(&mut room, 0, &name);
        assert!(heard.iter().all(|it| it.starts_with("At home, at Work, mail: ")), "{heard:?}");
    }
}

#[test]
fn each_line_breaks_for_itself_and_says_whose_it_is() {
    let mut room = two_hubs();
    for hub in [1, 1, 0] {
        room.handle_from(hub, AnnouncerInput::LineBroken);
    }
    let broken = ["The line to work broke. Trying again.", "The line to home broke. Trying again."];
    assert_eq!(room.listen(), broken);
    room.handle_from(1, AnnouncerInput::LineBack);
    assert_eq!(room.listen(), ["The line to work is back."]);
    room.handle_from(1, AnnouncerInput::LineBack);
    assert!(room.listen().is_empty());
}

#[test]
fn a_notice_about_a_hub_says_which_one_it_is_where_there_are_several() {
    let mut room = two_hubs();
    room.handle_from(1, AnnouncerInput::HubNotice("It is gone."));
    assert_eq!(room.listen(), ["work: It is gone."]);
    let mut room = Room::quiet();
    room.handle(AnnouncerInput::HubNotice("It is gone."));
    assert_eq!(room.listen(), ["It is gone."]);
}

#[test]
fn a_hub_that_floods_leaves_room_for_the_others() {
    let mut room = two_hubs();
    hear(&mut room, 0, &text("One."));
    for at in 0..2 * MAX_SESSIONS {
        let id = format!("flood{at}");
        hear(&mut room, 1, &event_of("flood", &id, "output.streaming", &said("More.")));
    }
    let heard = hear(&mut room, 0, &text("Two."));
    assert_eq!(heard, ["At home, Weaver: Two."], "it is not a new session with another number");
    let mut number = 0;
    for at in 0..2 * MAX_QUESTIONS {
        number += 1;
        ask(&mut room, 1, number, &confirmation(&format!("rpl_{at}")));
        room.listen();
    }
    ask(&mut room, 0, number + 1, &confirmation("rpl_home"));
    let asked = room.listen();
    assert!(
        asked.iter().any(|it| it.starts_with("At home, Weaver asks, question 513: ")),
        "{asked:?}"
    );
}

/// Words of an agent that are complete.
fn said(words: &str) -> serde_json::Value {
    json!({ "chunk": words, "position": 0, "complete": true, "output_id": "out_1" })
}
