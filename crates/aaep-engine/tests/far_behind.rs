//! Whoever is far behind is sent a part at a time, so that a wire that gets full can say so: little waits in it
//! then, and something critical goes before the rest (rulings 7, 8 and 20).

#[path = "common/support.rs"]
mod support;

use aaep_engine::{EngineConfig, MAX_UNITS};
use serde_json::{Value as Json, json};
use support::*;

/// How many events go at a time.
const AT_A_TIME: usize = 64;

/// How far behind the subscribers are here.
const MANY: usize = 3 * AT_A_TIME;

fn tool(number: usize) -> Json {
    let id = format!("call_{number}");
    json!({ "tool": "list", "summary_normal": "Lists.", "tool_call_id": id })
}

fn handoff() -> Json {
    json!({ "reason": "Help.", "target_kind": "human" })
}

/// A subscriber whose wire was full while much happened.
fn blocked(wishes: Json) -> (World, Subscriber) {
    let mut world = World::new();
    let one = world.listen(1, wishes);
    world.start(SESSION);
    world.take(&one);
    world.block(&one);
    (0..MANY).for_each(|number| drop(world.say("tool.invoked", tool(number))));
    (world, one)
}

fn calls(heard: &[Heard]) -> Vec<String> {
    let tools = heard.iter().filter(|it| it.kind() == "tool.invoked");
    tools.map(|it| it.text("tool_call_id").to_owned()).collect()
}

fn all_calls() -> Vec<String> {
    (0..MANY).map(|number| format!("call_{number}")).collect()
}

#[test]
fn a_part_at_a_time_comes_to_everything_in_its_order() {
    for wishes in [json!({}), everything()] {
        let (mut world, one) = blocked(wishes);
        world.unblock(&one);
        assert_eq!(world.heard(&one).len(), AT_A_TIME);
        world.say("tool.invoked", tool(MANY));
        assert_eq!(world.heard(&one).len(), AT_A_TIME, "what is new waits for its turn");
        world.pass_s(1);
        let mut expected = all_calls();
        expected.push(format!("call_{MANY}"));
        assert_eq!(calls(world.heard(&one)), expected);
        world.say("tool.invoked", tool(MANY + 1));
        assert_eq!(world.heard(&one).len(), MANY + 2, "and from then on at once");
    }
}

#[test]
fn a_wire_that_gets_full_again_is_sent_nothing_until_it_has_room() {
    let (mut world, one) = blocked(json!({}));
    world.unblock(&one);
    world.block(&one);
    world.pass_s(5);
    assert_eq!(world.heard(&one).len(), AT_A_TIME);
    world.unblock(&one);
    assert_eq!(world.heard(&one).len(), 2 * AT_A_TIME);
    world.pass_s(1);
    assert_eq!(calls(world.heard(&one)), all_calls());
}

#[test]
fn a_critical_event_goes_before_unsent_events_except_where_events_are_numbered() {
    for wishes in [json!({}), everything()] {
        let counts = wishes == everything();
        let (mut world, one) = blocked(wishes);
        world.unblock(&one);
        world.take(&one);
        world.say("handoff.requested", handoff());
        let is_told = world.heard(&one).first().is_some_and(|it| it.kind() == "handoff.requested");
        assert_ne!(is_told, counts, "who counts gets everything in its order");
        world.pass_s(1);
        let heard = world.heard(&one);
        assert_eq!(calls(heard), all_calls()[AT_A_TIME..]);
        assert_eq!(heard.len(), MANY - AT_A_TIME + 1);
    }
}

#[test]
fn a_session_that_ends_critically_is_told_whole_however_far_behind_someone_is() {
    for wishes in [json!({}), everything(), limited(1000, json!({}))] {
        let (mut world, one) = blocked(wishes);
        world.fail(SESSION);
        world.unblock(&one);
        world.pass_s(2);
        let heard = world.heard(&one);
        let end = heard.last().expect("told");
        assert_eq!(end.kind(), "session.errored");
        let told: u64 = heard[..heard.len() - 1].iter().map(stands_for).sum();
        // The hub ends each tool that the agent left open.
        assert_eq!(told, 2 * MANY as u64);
    }
}

#[test]
fn what_is_critical_after_such_an_end_is_told_too() {
    // The hub ends each tool that the agent left open: with some of these, the end is the last that may go.
    for tools in [31, 32, 33, 64] {
        let mut world = World::new();
        let one = world.listen(1, json!({}));
        world.start(SESSION);
        world.start("sess_other");
        world.take(&one);
        world.block(&one);
        (0..tools).for_each(|number| drop(world.say("tool.invoked", tool(number))));
        world.fail(SESSION);
        world.say_in("sess_other", "handoff.requested", handoff());
        world.unblock(&one);
        world.pass_s(1);
        let count = world.heard(&one).iter().filter(|it| it.kind() == "handoff.requested").count();
        assert_eq!(count, 1, "after {tools} tools");
    }
}

/// How many events of the agent something tells of.
fn stands_for(heard: &Heard) -> u64 {
    heard.delivery().and_then(|it| it.merged).map_or(1, |merged| merged.count)
}

#[test]
fn a_subscriber_cut_off_in_the_middle_goes_on_there() {
    for wishes in [json!({}), everything()] {
        let (mut world, one) = blocked(wishes);
        world.unblock(&one);
        let first = world.take(&one);
        world.disconnect(&one);
        world.pass_s(1);
        world.reconnect(&one, Some(first[40].id()));
        world.pass_s(1);
        assert_eq!(calls(world.heard(&one)), all_calls()[41..]);
    }
}

#[test]
fn of_very_many_sessions_a_newcomer_hears_a_part_at_a_time_and_what_happens_after_them() {
    let sessions_per_principal = 3 * AT_A_TIME;
    let config = EngineConfig { sessions_per_principal, ..EngineConfig::new(offer(), [7; 32]) };
    let mut world = World::with(config);
    let sessions = 3 * AT_A_TIME;
    (0..sessions).for_each(|number| drop(world.start(&format!("sess_{number:03}"))));
    let one = world.listen(1, json!({}));
    assert_eq!(world.heard(&one).len(), AT_A_TIME);
    world.say_in("sess_000", "tool.invoked", tool(1));
    world.say_in("sess_000", "handoff.requested", handoff());
    world.pass_s(1);
    let heard = world.heard(&one);
    let of = |kind: &str| heard.iter().position(|it| it.kind() == kind);
    assert_eq!(heard.iter().filter(|it| it.kind() == "state.changed").count(), sessions);
    assert_eq!(of("handoff.requested"), Some(AT_A_TIME), "it is critical");
    assert_eq!(of("tool.invoked").map(|at| at > sessions), Some(true), "{:?}", kinds(heard));
}

#[test]
fn a_question_that_waited_when_the_log_ran_over_is_asked_after_the_gap() {
    let (mut world, one) = blocked(everything());
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    world.unblock(&one);
    assert_eq!(world.heard(&one).len(), AT_A_TIME, "the question has not had its turn");
    world.start("sess_other");
    for number in 0..MAX_UNITS {
        let step = json!({ "progress": { "step": number + 1 } });
        world.say_in("sess_other", "progress.updated", step);
    }
    world.pass_s(1);
    let asked = world.heard(&one).iter().filter(|it| it.kind() == "awaiting.confirmation").count();
    assert!(world.heard(&one).iter().any(Heard::has_gap));
    assert_eq!(asked, 1);
}
