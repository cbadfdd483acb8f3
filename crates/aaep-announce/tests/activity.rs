//! No dead air: tools that run for long are mentioned, and a person hears on request what every agent is doing.

#[path = "common/support.rs"]
mod support;

use std::time::Duration;

use aaep_announce::{AnnouncerInput, ListeningRequest, Preferences, Profile};
use serde_json::json;
use support::{Room, completed, event, event_of, seconds, state, text, tool};

/// What is said in this time, and when, in seconds.
fn listen_until(room: &mut Room, end: Duration) -> Vec<(u64, String)> {
    let mut heard = Vec::new();
    while let Some(next) = room.announcer.deadline().filter(|it| *it <= end) {
        room.now = next;
        room.handle(AnnouncerInput::Tick);
        heard.extend(room.listen().into_iter().map(|it| (room.now.as_secs(), it)));
    }
    room.now = end;
    heard
}

#[test]
fn a_tool_that_runs_for_long_is_mentioned_at_growing_intervals() {
    let mut room = Room::quiet();
    room.hear(&tool("npm", "Running the tests."));
    room.listen();
    let heard = listen_until(&mut room, seconds(15 * 60));
    let times: Vec<u64> = heard.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [30, 60, 120, 300, 600], "{heard:?}");
    assert_eq!(heard[0].1, "Running the tests. Still at it after 30 seconds.");
    assert_eq!(heard[3].1, "Running the tests. Still at it after 5 minutes.");
}

#[test]
fn a_tool_that_returned_or_whose_agent_does_something_else_is_not_mentioned() {
    for over in [
        event("tool.completed", &json!({ "tool": "npm", "status": "success" })),
        completed("All tests pass."),
        state("thinking", "Thinking about it."),
        text("I give up."),
    ] {
        let mut room = Room::quiet();
        room.hear(&tool("npm", "Running the tests."));
        room.hear(&over);
        room.listen();
        let heard = listen_until(&mut room, seconds(600));
        assert!(heard.is_empty(), "{heard:?}");
    }
}

#[test]
fn of_two_calls_of_one_tool_the_one_that_runs_is_mentioned() {
    let mut room = Room::quiet();
    for (call, summary) in [("call_1", "Running the tests."), ("call_2", "Building it.")] {
        let fields = json!({ "tool": "sh", "summary_normal": summary, "tool_call_id": call });
        room.hear(&event("tool.invoked", &fields));
    }
    let over = json!({ "tool": "sh", "status": "success", "tool_call_id": "call_1" });
    room.hear(&event("tool.completed", &over));
    room.listen();
    let heard = listen_until(&mut room, seconds(45));
    assert_eq!(heard, [(30, "Building it. Still at it after 30 seconds.".to_owned())]);
}

#[test]
fn it_can_be_set_and_is_off_in_quiet() {
    let play = |preferences: Preferences| {
        let mut room = Room::new(Preferences { sounds: false, ..preferences });
        room.hear(&tool("npm", "Running the tests."));
        room.listen();
        listen_until(&mut room, seconds(100)).into_iter().map(|(at, _)| at).collect::<Vec<_>>()
    };
    let every = |long_tool_seconds| Preferences { long_tool_seconds, ..Preferences::default() };
    assert_eq!(play(Profile::Quiet.preferences()), [0; 0]);
    assert_eq!(play(every(0)), [0; 0]);
    assert_eq!(play(every(10)), [10, 20, 40, 100]);
}

#[test]
fn status_says_what_every_agent_is_doing() {
    let mut room = Room::quiet();
    room.handle(AnnouncerInput::Request(ListeningRequest::Status));
    assert_eq!(room.listen(), ["No agent is at work."]);
    room.hear(&tool("npm", "Running the tests."));
    let named =
        |agent: &str, kind: &str, fields: &serde_json::Value| event_of(agent, agent, kind, fields);
    let thinking = json!({ "from_state": "idle", "to_state": "thinking" });
    room.hear(&named("Loom", "state.changed", &thinking));
    room.hear(&named("Spool", "session.completed", &json!({ "summary_normal": "Done." })));
    room.hear(&named("Bobbin", "session.started", &json!({ "summary_normal": "Hello." })));
    let asked = json!({ "action": "Sew.", "consequence": "It is sewn.", "reply_token": "rpl_1",
        "timeout_seconds": 300, "default_decision": "reject" });
    let asked = named("Needle", "awaiting.confirmation", &asked);
    room.ask(1, &asked);
    room.listen();
    room.now = seconds(20);
    room.handle(AnnouncerInput::Request(ListeningRequest::Status));
    let mut heard = room.listen();
    heard.sort();
    assert_eq!(
        heard,
        [
            "Bobbin: Nothing was heard for 20 seconds.",
            "Loom: Thinking. For 20 seconds.",
            "Needle: It waits for your answer to question 1.",
            "Weaver: Running the tests. For 20 seconds.",
        ]
    );
}

#[test]
fn sessions_in_which_nothing_happens_are_told_in_one_sentence() {
    let mut room = Room::quiet();
    for session in ["a", "b", "c"] {
        let idle = json!({
            "from_state": "idle", "to_state": "idle",
            "summary_normal": "Coder has a session open. Nothing is happening right now.",
        });
        room.hear(&event_of("Coder", session, "state.changed", &idle));
    }
    assert_eq!(room.listen(), Vec::<String>::new());
    assert_eq!(room.announcer.deadline(), Some(seconds(1)));
    room.now = seconds(1);
    room.handle(AnnouncerInput::Tick);
    let told = "3 sessions are open, and nothing happens in them. For their agents: status.";
    assert_eq!(room.listen(), [told]);
    // Whoever does something is heard, and status names all of them.
    room.hear(&event_of(
        "Coder",
        "b",
        "session.completed",
        &json!({ "summary_normal": "Sorted." }),
    ));
    assert_eq!(room.listen(), ["Coder 2: Finished. Sorted."]);
    room.handle(AnnouncerInput::Request(ListeningRequest::Status));
    assert_eq!(room.listen().len(), 2);
}
