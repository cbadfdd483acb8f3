//! Clocks that are far off, an agent's or our own, and what becomes of sessions then (§3.2.5).

#[path = "common/support.rs"]
mod support;

use aaep::Timestamp;
use aaep_engine::{MAX_CLOCK_DIFFERENCE_US, Refusal};
use serde_json::{Value as Json, json};
use support::*;

/// A moment relative to the hub's clock, as timestamps are written.
fn at(world: &World, ahead_us: i64) -> Json {
    let stamp = Timestamp::from_unix_us(world.now.unix_us + ahead_us).expect("a moment");
    json!(stamp.as_str())
}

fn start_at(world: &World, ahead_us: i64) -> Json {
    json!({ "summary_normal": "Tidies up.", "timestamp": at(world, ahead_us) })
}

#[test]
fn a_session_starts_within_a_day_of_our_clock_and_not_beyond() {
    for sign in [1, -1] {
        let mut world = World::new();
        let one = world.listen(1, everything());
        let beyond_us = sign * (MAX_CLOCK_DIFFERENCE_US + 1000);
        let draft = start_at(&world, beyond_us);
        let outputs = world.offer_event(SESSION, "session.started", draft);
        assert_eq!(refusal(&outputs), Some(&Refusal::ClockDiffers { ahead_us: beyond_us }));
        assert!(world.heard(&one).is_empty(), "nothing of a refused event is told");
        // Nothing of it remains: the same session starts with a right clock.
        let draft = start_at(&world, sign * MAX_CLOCK_DIFFERENCE_US);
        world.say("session.started", draft);
    }
}

#[test]
fn no_event_takes_its_session_into_the_far_future() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    for timestamp in ["9999-12-31T23:59:59.999Z", "2026-06-30T00:00:00.000Z"] {
        let fields = json!({ "progress": { "percent": 1 }, "timestamp": timestamp });
        let outputs = world.offer_event(SESSION, "progress.updated", fields);
        assert!(matches!(refusal(&outputs), Some(Refusal::ClockDiffers { .. })), "{timestamp}");
    }
    world.change("idle", "thinking");
    let last = world.heard(&one).last().expect("it goes on");
    assert!(last.event.envelope.timestamp.unix_us() <= world.now.unix_us);
}

#[test]
fn a_clock_that_runs_ahead_a_little_each_time_gets_no_further_than_the_bound() {
    let mut world = World::started();
    let step_us = MAX_CLOCK_DIFFERENCE_US / 2;
    let mut refused = 0;
    for number in 1..=5 {
        let timestamp = at(&world, step_us * number);
        let fields = json!({ "progress": { "percent": 1 }, "timestamp": timestamp });
        refused +=
            usize::from(refusal(&world.offer_event(SESSION, "progress.updated", fields)).is_some());
    }
    assert_eq!(refused, 3);
}

#[test]
fn a_session_outlives_a_jump_of_our_own_clock() {
    for days in [-3, 3] {
        let mut world = World::started();
        let agents_clock = at(&world, 1_000_000);
        world.now.unix_us += days * MAX_CLOCK_DIFFERENCE_US;
        // An agent that leaves stamping to the hub notices nothing.
        world.change("idle", "thinking");
        if days > 0 {
            continue;
        }
        let fields = json!({ "progress": { "percent": 1 }, "timestamp": agents_clock });
        let outputs = world.offer_event(SESSION, "progress.updated", fields);
        assert!(matches!(refusal(&outputs), Some(Refusal::ClockDiffers { .. })));
        world.complete(SESSION);
    }
    // Forward: an agent whose own clock is right goes on.
    let mut world = World::started();
    let agents_clock = at(&world, 1_000_000);
    world.now.unix_us += 3 * MAX_CLOCK_DIFFERENCE_US;
    world.say(
        "progress.updated",
        json!({ "progress": { "percent": 1 }, "timestamp": agents_clock }),
    );
}
