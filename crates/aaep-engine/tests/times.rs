//! Timestamps on a subscription: what the engine makes is dated when it is sent, not before what was
//! sent and not so late that the next event would go back (§3.2.5, ruling 7).

#[path = "common/support.rs"]
mod support;

use aaep::Timestamp;
use aaep_engine::{EngineInput, Output};
use serde_json::{Value as Json, json};
use support::*;

const HOUR_US: i64 = 3_600_000_000;

fn progress(percent: u64) -> Json {
    json!({ "progress": { "percent": percent } })
}

/// Fields with a timestamp this long before now.
fn dated(world: &World, ago_ms: i64, mut fields: Json) -> Json {
    let at = Timestamp::from_unix_ms(world.now.unix_us / 1000 - ago_ms).expect("a moment");
    merge(&mut fields, json!({ "timestamp": at.as_str() }));
    fields
}

/// Lets the hub say something in the session.
fn announce(world: &mut World) {
    world.handle(EngineInput::Announce {
        session_id: aaep::SessionId::parse(SESSION).expect("an id"),
        words: "Something of the hub.".to_owned(),
    });
}

fn assert_never_back(world: &World, subscriber: &Subscriber) {
    let heard = world.heard(subscriber);
    let stamps: Vec<(&str, &str)> =
        heard.iter().map(|it| (it.text("timestamp"), it.kind())).collect();
    let times = heard.iter().map(|it| it.event.envelope.timestamp.unix_us());
    assert!(times.is_sorted(), "{stamps:?}");
}

#[test]
fn text_that_an_ask_cuts_off_is_not_dated_before_what_was_sent_since() {
    let mut world = World::started();
    let one = world.listen(1, json!({ "coalesce_boundaries": ["sentence"] }));
    world.pass_s(1);
    world.chunk("This has no end", 0, false);
    world.pass_s(1);
    world.say("progress.updated", progress(1));
    world.pass_s(1);
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    assert!(world.heard(&one).iter().any(|it| it.kind() == "output.streaming"));
    assert_never_back(&world, &one);
}

#[test]
fn text_that_goes_before_an_ask_is_not_dated_after_it() {
    let mut world = World::started();
    let one = world.listen(1, limited(1, json!({})));
    world.pass_s(1);
    for (text, position) in [("One. ", 0), ("Two. ", 5), ("Three. ", 10)] {
        world.chunk(text, position, false);
    }
    world.pass_us(100_000);
    // Stamped 5 ms before it arrives, as every event over a wire is.
    let ask = dated(&world, 5, confirmation("rpl_1", json!({})));
    world.say("awaiting.confirmation", ask);
    assert_never_back(&world, &one);
}

#[test]
fn what_is_merged_is_dated_by_the_clock_of_its_agent() {
    let mut world = World::new();
    let one = world.listen(1, limited(1, json!({})));
    let ago_ms = 20_000;
    let start = dated(&world, ago_ms, json!({ "summary_normal": "Starts." }));
    world.say("session.started", start);
    let states = ["idle", "thinking", "deciding", "planning"];
    for pair in states.windows(2) {
        let change = json!({ "from_state": pair[0], "to_state": pair[1] });
        let change = dated(&world, ago_ms, change);
        world.say("state.changed", change);
    }
    world.pass_s(5);
    let last = dated(&world, ago_ms, progress(5));
    world.say("progress.updated", last);
    world.pass_s(5);
    let heard = world.heard(&one);
    assert!(heard.iter().any(|it| it.delivery().is_some_and(|it| it.merged.is_some())));
    assert_never_back(&world, &one);
}

#[test]
fn nothing_that_the_engine_makes_goes_back_with_the_clock_of_the_machine() {
    let mut world = World::started();
    let one = world.listen(1, limited(1, json!({})));
    world.pass_s(1);
    for pair in ["idle", "thinking", "deciding", "planning"].windows(2) {
        world.change(pair[0], pair[1]);
    }
    world.pass_s(5);
    let heard = world.heard(&one);
    assert!(heard.iter().any(|it| it.delivery().is_some_and(|it| it.merged.is_some())));
    world.now.unix_us -= HOUR_US;
    world.take(&one);
    let merged_us = world.now.unix_us + HOUR_US - 5_000_000;
    announce(&mut world);
    let heard = world.heard(&one);
    assert!(heard[0].event.envelope.timestamp.unix_us() > merged_us, "{heard:?}");
}

#[test]
fn text_under_other_boundaries_is_not_dated_before_what_overtook_it() {
    let mut world = World::started();
    let one = world.listen(1, json!({ "coalesce_boundaries": ["completion"] }));
    world.pass_s(1);
    world.chunk("One. Two", 0, false);
    world.pass_s(1);
    world.say("progress.updated", progress(1));
    world.pass_s(1);
    world.renegotiate(&one, json!({ "coalesce_boundaries": ["sentence"] }));
    world.chunk(". Three", 8, true);
    assert_eq!(as_sent("One. Two. Three"), text_of(world.heard(&one)));
    assert_never_back(&world, &one);
}

fn text_of(heard: &[Heard]) -> String {
    let text = heard.iter().filter(|it| it.kind() == "output.streaming");
    text.map(|it| it.text("chunk")).collect()
}

#[test]
fn a_summary_before_older_events_is_not_dated_after_them() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.pass_s(1);
    world.say("progress.updated", progress(1));
    world.pass_s(5);
    world.take(&one);
    world.disconnect(&one);
    world.reconnect(&one, None);
    let kinds: Vec<&str> = world.heard(&one).iter().map(Heard::kind).collect();
    assert_eq!(kinds, ["state.changed", "progress.updated"]);
    assert_never_back(&world, &one);
}

/// The groups of subscribers that were sent the same bytes, each in one output.
fn deliveries(outputs: &[Output]) -> Vec<usize> {
    let sent_to = |output: &Output| match output {
        Output::Deliver { to, .. } => Some(to.len()),
        _ => None,
    };
    outputs.iter().filter_map(sent_to).collect()
}

#[test]
fn a_quiet_session_lets_events_of_other_sessions_go_to_everyone_at_once() {
    let mut world = World::started();
    world.pass_s(1);
    // Each subscriber is sent a summary of the session, dated after its last event.
    let everyone: Vec<Subscriber> = (1..=3).map(|it| world.listen(it, json!({}))).collect();
    world.pass_s(1);
    world.start("sess_other");
    for percent in 1..3 {
        let outputs = world.say_in("sess_other", "progress.updated", progress(percent));
        assert_eq!(deliveries(&outputs), [3], "one output for all subscribers");
    }
    // The clock of the machine is set back, and the hub says something in the quiet session.
    for it in &everyone {
        world.take(it);
    }
    let told_us = world.now.unix_us - 1_000_000;
    world.now.unix_us -= HOUR_US;
    announce(&mut world);
    for one in &everyone {
        let heard = world.heard(one);
        assert!(heard[0].event.envelope.timestamp.unix_us() >= told_us, "{heard:?}");
    }
    world.now.unix_us += HOUR_US;
    world.pass_s(20);
    world.say("progress.updated", progress(1));
    let outputs = world.say("progress.updated", progress(2));
    assert_eq!(deliveries(&outputs), [3], "one output again once its events are later");
}
