//! Whose turn it is when several agents have something to tell: news do not wait for long speeches, and nothing that was
//! begun stays half said.

#[path = "common/support.rs"]
mod support;

use aaep::Event;
use aaep_announce::{AnnouncerInput, DeviceReport, Preferences};
use serde_json::json;
use support::{
    Room, completed, confirmation, event, event_of, resolution, seconds, state, text, tool,
};

/// Another agent that says this, in a piece of its own.
fn loom_says(words: &str) -> Event {
    let fields = json!({ "chunk": words, "position": 0, "complete": true });
    event_of("Loom", "b", "output.streaming", &fields)
}

/// Another agent has said more than can be told at once, and is telling the first of it.
fn speech() -> Room {
    let mut room = Room::quiet();
    for at in 1..=4 {
        room.hear(&loom_says(&format!("Sentence {at}.")));
    }
    assert_eq!(room.words(), "Loom: Sentence 1.");
    room
}

fn failed(tool: &str) -> Event {
    let why = format!("No room left for {tool}.");
    event("tool.completed", &json!({ "tool": tool, "status": "error", "error_message": why }))
}

#[test]
fn errors_and_ends_do_not_wait_for_the_speech_of_another_agent() {
    let mut room = speech();
    room.hear(&completed("All sorted."));
    assert_eq!(
        room.listen(),
        [
            "Loom: Sentence 1.",
            "Weaver: Finished. All sorted.",
            "Loom: Sentence 2.",
            "Sentence 3.",
            "Sentence 4.",
        ]
    );
}

#[test]
fn an_end_does_not_wait_for_the_text_of_its_own_agent_and_says_that_it_follows() {
    let mut room = speech();
    room.hear(&text("I sorted them by date."));
    room.hear(&loom_says("Sentence 5."));
    room.hear(&completed("All sorted."));
    let heard = room.listen();
    assert_eq!(heard[1], "Weaver: Finished. All sorted. What came before that follows.");
    assert!(heard.contains(&"Weaver: I sorted them by date.".to_owned()), "{heard:?}");
}

#[test]
fn a_tool_that_fails_again_and_again_silences_nobody() {
    let mut room = speech();
    let mut heard = Vec::new();
    for at in 0..8 {
        room.hear(&failed(&format!("tool{at}")));
        heard.push(room.words().to_owned());
        let id = room.id();
        room.report(DeviceReport::Began(id));
        room.report(DeviceReport::Ended(id));
    }
    for at in 1..=4 {
        let sentence = format!("Sentence {at}.");
        assert!(heard.iter().any(|it| it.ends_with(&sentence)), "{sentence} {heard:?}");
    }
    heard.extend(room.listen());
    for at in 0..8 {
        let error = format!("No room left for tool{at}.");
        assert_eq!(heard.iter().filter(|it| it.ends_with(&error)).count(), 1, "{heard:?}");
    }
}

#[test]
fn small_steps_are_not_told_after_what_came_of_them() {
    let mut room = speech();
    room.hear(&tool("http_get", "Asking server 2."));
    room.hear(&failed("http_get"));
    let heard = room.listen();
    assert!(heard.iter().any(|it| it.contains("http_get failed.")), "{heard:?}");
    assert!(!heard.iter().any(|it| it.contains("Asking server 2.")), "{heard:?}");
}

#[test]
fn a_step_with_consequences_is_told_and_its_failure_after_it() {
    let mut room = speech();
    let risky = json!({ "tool": "deploy", "summary_normal": "Deploying.", "risk_level": "high" });
    room.hear(&event("tool.invoked", &risky));
    room.hear(&failed("deploy"));
    let heard = room.listen();
    let place = |words: &str| heard.iter().position(|it| it.contains(words)).expect(words);
    assert!(place("Deploying.") < place("deploy failed."), "{heard:?}");
}

#[test]
fn nothing_comes_between_a_claim_and_the_fact_against_it() {
    let mut room = speech();
    room.ask(1, &confirmation("rpl_1"));
    room.hear(&resolution("rpl_1", "reject", "reply"));
    let ending = aaep_announce::AskEnding::Rejected(aaep_announce::AnsweredBy::You);
    room.handle(AnnouncerInput::Over { number: 1, ending });
    let loom_ends = json!({ "summary_normal": "The lamp is lit." });
    room.hear(&text("All pictures were deleted successfully."));
    room.hear(&event_of("Loom", "b", "session.completed", &loom_ends));
    room.hear(&completed("Done: 17 pictures deleted."));
    let heard = room.listen();
    let fact = "In fact “Delete 17 pictures from /home/ada/work/july” was not allowed.";
    for claim in ["All pictures were deleted successfully.", "Done: 17 pictures deleted."] {
        let at = heard.iter().position(|it| it.contains(claim)).expect(claim);
        assert!(heard[at + 1].ends_with(fact), "{claim} {heard:?}");
    }
}

#[test]
fn what_questions_interrupt_again_and_again_is_said_whole_in_the_end() {
    let mut room = Room::quiet();
    room.hear(&event("session.started", &json!({ "summary_normal": "Sorting pictures." })));
    for number in 1..=5 {
        assert_eq!(room.words().trim_start_matches("Weaver: "), "Started. Sorting pictures.");
        room.report(DeviceReport::Began(room.id()));
        room.ask(number, &confirmation(&format!("rpl_{number}")));
        let stopped = room.stopped.remove(0);
        room.report(DeviceReport::Cut(stopped));
        let ending = aaep_announce::AskEnding::Withdrawn;
        room.handle(AnnouncerInput::Over { number, ending });
        let stopped = room.stopped.remove(0);
        room.report(DeviceReport::Cut(stopped));
        let settled = room.id();
        room.report(DeviceReport::Began(settled));
        room.report(DeviceReport::Ended(settled));
    }
    assert_eq!(room.listen().last().expect("words"), "Started. Sorting pictures.");
}

#[test]
fn what_was_begun_is_not_left_out_when_there_is_too_much() {
    let preferences = Preferences { sounds: false, behind_seconds: 5, ..Preferences::default() };
    let mut room = Room::new(preferences);
    room.hear(&event("session.started", &json!({ "summary_normal": "Sorting pictures." })));
    room.report(DeviceReport::Began(room.id()));
    room.ask(1, &confirmation("rpl_1"));
    let stopped = room.stopped.remove(0);
    room.report(DeviceReport::Cut(stopped));
    for at in 0..20 {
        let fields = json!({ "summary_normal": format!("Weaving cloth number {at}."),
            "tool": format!("weave{at}"), "risk_level": "medium" });
        room.hear(&event_of("Loom", "b", "tool.invoked", &fields));
    }
    let heard = room.listen();
    assert!(heard.iter().any(|it| it.contains("Left out: ")), "{heard:?}");
    assert!(heard.iter().any(|it| it.ends_with("Started. Sorting pictures.")), "{heard:?}");
}

#[test]
fn how_a_question_was_settled_comes_before_what_was_left_out() {
    let preferences = Preferences { sounds: false, behind_seconds: 5, ..Preferences::default() };
    let mut room = Room::new(preferences);
    room.ask(1, &confirmation("rpl_1"));
    for at in 0..20 {
        room.now += seconds(1);
        room.hear(&state("thinking", &format!("Thought number {at} of many.")));
        room.hear(&tool(&format!("weave{at}"), &format!("Weaving cloth number {at}.")));
    }
    room.handle(AnnouncerInput::Over {
        number: 1,
        ending: aaep_announce::AskEnding::Accepted(aaep_announce::AnsweredBy::Elsewhere),
    });
    let heard = room.listen();
    let place = |words: &str| heard.iter().position(|it| it.contains(words)).expect(words);
    assert!(place("Accepted elsewhere.") < place("Left out: "), "{heard:?}");
}

#[test]
fn what_was_left_out_is_told_now_and_then_and_not_after_every_sentence() {
    let preferences = Preferences { sounds: false, behind_seconds: 5, ..Preferences::default() };
    let mut room = Room::new(preferences);
    let mut heard = Vec::new();
    for at in 0..120 {
        room.now += seconds(1);
        let fields = json!({ "summary_normal": format!("Weaving cloth number {at}."),
            "tool": format!("weave{at}"), "risk_level": "medium" });
        room.hear(&event_of("Loom", "b", "tool.invoked", &fields));
        room.hear(&event_of("Loom", "b", "tool.invoked", &fields));
        if at % 4 == 0 {
            heard.push(room.words().to_owned());
            let id = room.id();
            room.report(DeviceReport::Began(id));
            room.report(DeviceReport::Ended(id));
        }
    }
    let told = heard.iter().filter(|it| it.contains("Left out: ")).count();
    assert!((2..=5).contains(&told), "{heard:?}");
    assert!(heard.iter().filter(|it| it.contains("Weaving")).count() > 20, "{heard:?}");
}

#[test]
fn nobody_is_told_at_length_what_is_long_past_while_others_go_on() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    room.hear(&loom_says("That was long ago."));
    // The person thinks about the question for a quarter of an hour.
    room.now += seconds(15 * 60);
    room.hear(&text("This is new."));
    let heard = room.listen();
    assert!(!heard.iter().any(|it| it.contains("long ago")), "{heard:?}");
    assert!(heard.iter().any(|it| it.contains("Left out: 1 part of a reply.")), "{heard:?}");
    assert!(heard.iter().any(|it| it.ends_with("This is new.")), "{heard:?}");
}

#[test]
fn a_text_that_is_being_read_is_heard_to_the_end_however_long_it_takes() {
    let mut room = speech();
    let id = room.id();
    room.report(DeviceReport::Began(id));
    room.now += seconds(15 * 60);
    room.hear(&text("This is new."));
    let heard = room.listen();
    for at in 1..=4 {
        assert!(heard.iter().any(|it| it.ends_with(&format!("Sentence {at}."))), "{heard:?}");
    }
}

#[test]
fn a_fact_is_told_however_long_it_has_waited() {
    let mut room = speech();
    room.ask(1, &confirmation("rpl_1"));
    let ending = aaep_announce::AskEnding::Rejected(aaep_announce::AnsweredBy::You);
    room.handle(AnnouncerInput::Over { number: 1, ending });
    room.hear(&completed("Done: 17 pictures deleted."));
    room.now += seconds(15 * 60);
    room.hear(&loom_says("This is new."));
    let heard = room.listen();
    let fact = "In fact “Delete 17 pictures from /home/ada/work/july” was not allowed.";
    assert!(heard.iter().any(|it| it.ends_with(fact)), "{heard:?}");
}
