//! A session that was deleted is told to nobody any more, and whoever was still to hear some of it is told that
//! something is missing.

#[path = "common/support.rs"]
mod support;

use aaep_engine::{EngineInput, MAX_SESSIONS};
use serde_json::json;
use support::*;

fn delete(world: &mut World, session_id: &str) {
    let session_id = aaep::SessionId::parse(session_id).expect("an id");
    world.handle(EngineInput::DeleteSession { session_id });
}

fn expect_only_sess_2_and_one_gap(heard: &[Heard]) {
    assert!(heard.iter().all(|it| it.text("session_id") == "sess_2"), "{:?}", kinds(heard));
    assert_eq!(heard.iter().filter(|it| it.has_gap()).count(), 1, "{:?}", kinds(heard));
}

#[test]
fn a_new_subscriber_hears_nothing_of_a_session_that_was_deleted() {
    for wishes in [everything(), json!({}), limited(2, json!({}))] {
        let mut world = World::started();
        world.listen(1, wishes.clone());
        world.chunk("Your password is swordfish. ", 0, false);
        world.chunk("Do not tell anyone.", 28, true);
        world.complete(SESSION);
        world.pass_s(5);
        delete(&mut world, SESSION);
        // On streams, a subscriber subscribes first and then comes for its events.
        let late = world.listen(2, wishes);
        world.reconnect(&late, None);
        world.pass_s(5);
        assert!(kinds(world.heard(&late)).is_empty(), "{:?}", kinds(world.heard(&late)));
    }
}

#[test]
fn a_subscriber_that_reconnects_hears_of_a_gap_and_nothing_of_the_deleted_session() {
    for wishes in [everything(), json!({}), limited(2, json!({}))] {
        let mut world = World::started();
        let one = world.listen(1, wishes);
        world.chunk("Wait. ", 0, false);
        world.pass_s(5);
        let last = last_id(&world.take(&one));
        world.disconnect(&one);
        world.chunk("Your password is swordfish.", 6, true);
        world.complete(SESSION);
        world.start("sess_2");
        delete(&mut world, SESSION);
        world.reconnect(&one, last.as_ref());
        world.pass_s(5);
        let heard = world.take(&one);
        expect_only_sess_2_and_one_gap(&heard);
        world.complete("sess_2");
        assert_eq!(kinds(world.heard(&one)), ["session.completed"]);
    }
}

#[test]
fn a_subscriber_that_reconnects_hears_everything_but_the_deleted_session() {
    for wishes in [everything(), json!({}), limited(20, json!({}))] {
        let mut world = World::started();
        world.start("sess_2");
        let one = world.listen(1, wishes.clone());
        world.pass_s(5);
        let last = last_id(&world.take(&one));
        world.disconnect(&one);
        world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
        world.say_in("sess_2", "progress.updated", json!({ "progress": { "step": 1 } }));
        world.fail(SESSION);
        let handoff = json!({ "reason": "Help.", "target_kind": "human" });
        world.say_in("sess_2", "handoff.requested", handoff);
        delete(&mut world, SESSION);
        world.reconnect(&one, last.as_ref());
        world.pass_s(5);
        let heard = world.take(&one);
        expect_only_sess_2_and_one_gap(&heard);
        for kind in ["progress.updated", "handoff.requested"] {
            assert!(kinds(&heard).contains(&kind), "{:?}", kinds(&heard));
        }
    }
}

#[test]
fn a_slow_subscriber_hears_no_more_of_a_session_once_it_is_deleted() {
    let mut world = World::started();
    world.start("sess_2");
    let one = world.listen(1, limited(1, json!({})));
    world.take(&one);
    for number in 0..6 {
        let summary = format!("The tool number {number} runs.");
        let tool = json!({ "tool": "t", "summary_normal": summary });
        world.say("tool.invoked", tool);
        let done = json!({ "tool": "t", "status": "success", "summary_normal": "It ran." });
        world.say("tool.completed", done);
    }
    world.complete(SESSION);
    world.pass_s(3);
    assert!(!world.take(&one).is_empty(), "it hears one after the other");
    delete(&mut world, SESSION);
    world.pass_s(60);
    let heard = world.take(&one);
    expect_only_sess_2_and_one_gap(&heard);
}

#[test]
fn a_subscriber_that_heard_a_whole_session_misses_nothing_when_it_is_deleted() {
    for wishes in [everything(), json!({})] {
        for is_away in [false, true] {
            let mut world = World::started();
            let one = world.listen(1, wishes.clone());
            world.chunk("That was all.", 0, true);
            world.complete(SESSION);
            let last = last_id(&world.take(&one));
            if is_away {
                world.disconnect(&one);
            }
            delete(&mut world, SESSION);
            world.start("sess_2");
            if is_away {
                world.reconnect(&one, last.as_ref());
            }
            assert_eq!(kinds(world.heard(&one)), ["session.started"], "away: {is_away}");
        }
    }
}

#[test]
fn a_session_that_the_engine_has_let_go_of_is_deleted_from_what_is_still_to_be_told() {
    let mut world = World::started();
    let one = world.listen(1, json!({ "event_filters": { "include": ["aaep:agent.tool.*"] } }));
    world.take(&one);
    world.disconnect(&one);
    world.say("tool.invoked", json!({ "tool": "t", "summary_normal": "Swordfish." }));
    let done = json!({ "tool": "t", "status": "success", "summary_normal": "It ran." });
    world.say("tool.completed", done);
    world.complete(SESSION);
    for number in 0..MAX_SESSIONS {
        let session_id = format!("sess_later{number}");
        world.start(&session_id);
        world.complete(&session_id);
    }
    delete(&mut world, SESSION);
    world.reconnect(&one, None);
    let of_it = |it: &Heard| it.text("session_id") == SESSION;
    assert!(!world.heard(&one).iter().any(of_it), "{:?}", kinds(world.heard(&one)));
}

#[test]
fn a_session_that_runs_is_not_deleted() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.take(&one);
    world.disconnect(&one);
    world.chunk("It goes on.", 0, true);
    delete(&mut world, SESSION);
    delete(&mut world, "sess_unknown");
    world.reconnect(&one, None);
    assert!(kinds(world.heard(&one)).contains(&"output.streaming"));
    world.complete(SESSION);
}

#[test]
fn a_subscriber_far_behind_hears_once_that_something_was_deleted() {
    for wishes in [everything(), json!({})] {
        let mut world = World::started();
        let one = world.listen(1, wishes);
        world.start("sess_2");
        let last = last_id(&world.take(&one));
        world.disconnect(&one);
        for number in 0..100 {
            let id = format!("call_{number}");
            let tool = json!({ "tool": "list", "summary_normal": "Lists.", "tool_call_id": id });
            world.say_in(SESSION, "tool.invoked", tool.clone());
            world.say_in("sess_2", "tool.invoked", tool);
        }
        world.fail(SESSION);
        delete(&mut world, SESSION);
        world.reconnect(&one, last.as_ref());
        world.pass_s(5);
        let heard = world.heard(&one);
        assert_eq!(heard.iter().filter(|it| it.kind() == "tool.invoked").count(), 100);
        assert_eq!(heard.iter().filter(|it| it.has_gap()).count(), 1, "{:?}", kinds(heard));
    }
}
