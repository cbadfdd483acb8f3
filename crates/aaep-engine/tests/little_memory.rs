//! Where events left memory, nobody has a hole that it was not told of, and nothing counts twice (ruling 20).

#[path = "common/support.rs"]
mod support;

use aaep_engine::{EngineConfig, Output, Refusal};
use serde_json::json;
use support::*;

fn little() -> EngineConfig {
    EngineConfig {
        memory_bytes: 256 * 1024,
        memory_bytes_per_principal: 64 * 1024,
        ..EngineConfig::new(offer(), [7; 32])
    }
}

/// So much happens that nothing from before is in memory.
fn much_happens(world: &mut World) {
    for number in 0..300 {
        world.say("progress.updated", json!({ "progress": { "step": number + 1 } }));
    }
}

fn is_complete(outputs: &[Output]) -> Option<bool> {
    outputs.iter().find_map(|output| match output {
        Output::Resumed { is_complete, .. } => Some(*is_complete),
        _ => None,
    })
}

#[test]
fn a_subscriber_that_reconnects_is_told_that_held_text_which_left_memory_is_missing() {
    let mut world = World::with(little());
    let one = world.listen(1, json!({}));
    world.start(SESSION);
    world.chunk("Half a sentence ", 0, false);
    much_happens(&mut world);
    let before = world.take(&one);
    assert_eq!(text_of(&before, None), "", "it waits for its end");
    world.disconnect(&one);
    let outputs = world.reconnect(&one, last_id(&before).as_ref());
    assert_eq!(is_complete(&outputs), Some(false));
    world.chunk("and the rest.", 16, true);
    let heard = world.heard(&one);
    assert!(heard.first().is_some_and(Heard::has_gap), "{:?}", kinds(heard));
}

#[test]
fn held_text_that_left_memory_is_said_to_be_missing_to_a_new_subscription_that_goes_on() {
    let mut world = World::with(little());
    let one = world.listen(1, json!({}));
    world.start(SESSION);
    world.chunk("Half a sentence ", 0, false);
    much_happens(&mut world);
    let last = last_id(&world.take(&one));
    world.close(&one);
    let outputs = world.request(1, true, json!({}), last);
    assert_eq!(is_complete(&outputs), Some(false));
    let again = granted(1, &outputs);
    world.chunk("and the rest.", 16, true);
    let heard = world.heard(&again);
    assert!(heard.first().is_some_and(Heard::has_gap), "{:?}", kinds(heard));
}

#[test]
fn text_that_was_told_before_it_left_memory_is_missed_by_nobody() {
    let mut world = World::with(little());
    let one = world.listen(1, json!({}));
    world.start(SESSION);
    world.chunk("A whole sentence.", 0, true);
    much_happens(&mut world);
    let before = world.take(&one);
    world.disconnect(&one);
    let outputs = world.reconnect(&one, last_id(&before).as_ref());
    assert_eq!(is_complete(&outputs), Some(true));
    assert!(!world.heard(&one).iter().any(Heard::has_gap));
}

#[test]
fn a_subscriber_that_resumes_without_its_subscription_is_told_that_a_session_is_gone() {
    let mut world = World::with(EngineConfig { keep_ended_us: 1_000_000, ..little() });
    let one = world.listen(1, everything());
    world.start(SESSION);
    let last = last_id(&world.take(&one));
    world.close(&one);
    world.start("sess_2");
    world.complete("sess_2");
    world.pass_s(2);
    world.say("progress.updated", json!({ "progress": { "step": 1 } }));
    let outputs = world.request(1, true, everything(), last);
    assert_eq!(is_complete(&outputs), Some(false));
    assert!(world.heard(&granted(1, &outputs)).iter().any(Heard::has_gap));
}

#[test]
fn an_event_id_counts_once_also_when_its_event_left_memory() {
    let mut world = World::with(little());
    world.start(SESSION);
    let fields = json!({ "event_id": "evt_mine", "progress": { "percent": 1 } });
    world.say("progress.updated", fields.clone());
    for number in 0..100 {
        let words = json!({ "progress": { "step": number + 1, "description": "x".repeat(900) } });
        world.say("progress.updated", words);
    }
    assert!(world.engine.published(&event_id("evt_mine")).is_none(), "it is not in memory");
    let outputs = world.offer_event(SESSION, "progress.updated", fields);
    assert_eq!(refusal(&outputs), Some(&Refusal::Repeated));
}

#[test]
fn a_lagging_subscriber_hears_at_once_that_a_session_failed_when_its_wire_is_free() {
    for wishes in [everything(), json!({})] {
        let mut world = World::with(little());
        let one = world.listen(1, wishes);
        world.start(SESSION);
        world.block(&one);
        world.take(&one);
        much_happens(&mut world);
        world.fail(SESSION);
        world.unblock(&one);
        assert_eq!(kinds(world.heard(&one)), ["session.errored"], "all else is missing");
        world.start("sess_2");
        world.pass_s(1);
        let gaps = world.heard(&one).iter().filter(|it| it.has_gap());
        assert_eq!(gaps.count(), 1, "as it is told in the next session");
    }
}
