//! What really happened is held against what an agent claims: per call, only where both differ, and with the command.

#[path = "common/support.rs"]
mod support;

use aaep::Event;
use aaep_announce::{AnnouncerInput, AnsweredBy, AskEnding, UtteranceKind};
use serde_json::json;
use support::{Room, completed, confirmation, event, text};

/// A command that is run through one tool for all commands.
fn runs(call: &str, command: &str) -> Event {
    let fields = json!({ "tool": "sh", "summary_normal": "Running a command.", "args_summary": command,
        "tool_call_id": call });
    event("tool.invoked", &fields)
}

fn returned(call: &str, status: &str) -> Event {
    event("tool.completed", &json!({ "tool": "sh", "status": status, "tool_call_id": call }))
}

#[test]
fn that_one_command_succeeded_says_nothing_about_another_one_of_the_same_tool() {
    let mut room = Room::quiet();
    room.hear(&runs("call_1", "npm test"));
    room.hear(&returned("call_1", "error"));
    room.hear(&runs("call_2", "git add ."));
    room.hear(&returned("call_2", "success"));
    room.listen();
    room.hear(&completed("All 41 tests pass."));
    assert_eq!(room.listen(), ["Finished. All 41 tests pass.", "In fact “npm test” failed."]);
}

#[test]
fn a_command_that_succeeded_when_it_was_run_again_is_not_held_against_anyone() {
    let mut room = Room::quiet();
    for (call, command, status) in
        [("call_1", "npm test", "error"), ("call_2", "npm test -- --retry", "success")]
    {
        room.hear(&runs(call, command));
        room.hear(&returned(call, status));
    }
    room.listen();
    room.hear(&completed("All 41 tests pass."));
    assert_eq!(room.listen(), ["Finished. All 41 tests pass."]);
}

#[test]
fn an_honest_agent_is_not_contradicted() {
    for words in
        ["I stopped: nothing was deleted.", "The pictures stay where they are.", "Sorted the mail."]
    {
        let mut room = Room::quiet();
        room.ask(1, &confirmation("rpl_1"));
        room.listen();
        room.handle(AnnouncerInput::Over {
            number: 1,
            ending: AskEnding::Rejected(AnsweredBy::You),
        });
        room.listen();
        room.hear(&text(words));
        room.hear(&completed(words));
        let heard = room.listen();
        assert!(!heard.iter().any(|it| it.contains("In fact")), "{heard:?}");
    }
}

#[test]
fn a_refusal_is_not_an_error() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    room.listen();
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Rejected(AnsweredBy::You) });
    room.listen();
    room.hear(&text("I deleted the 17 pictures."));
    room.listen();
    let fact = room.orders.iter().rev().find_map(|order| match order {
        aaep_announce::Order::Say(it) if it.words.contains("In fact") => Some(it.kind),
        _ => None,
    });
    assert_eq!(fact, Some(UtteranceKind::Notice));
}
