//! Numbers of events: without holes where terms drop and merge nothing, and absent elsewhere
//! (§3.4.1, ruling 7).

#[path = "common/support.rs"]
mod support;

use aaep_engine::ResumePoint;
use serde_json::{Value as Json, json};
use support::*;

fn progress(percent: u64) -> Json {
    json!({ "progress": { "percent": percent }, "summary_normal": format!("{percent} percent.") })
}

fn tool(number: usize) -> Json {
    let id = format!("call_{number}");
    json!({ "tool": "list", "summary_normal": "Lists.", "tool_call_id": id })
}

fn filters(include: &Json, exclude: &Json) -> Json {
    json!({ "event_filters": { "include": include, "exclude": exclude } })
}

fn numbers(heard: &[Heard]) -> Vec<Option<u64>> {
    heard.iter().map(|it| it.json["sequence_number"].as_u64()).collect()
}

fn busy_session(world: &mut World, subscriber: &Subscriber) {
    world.start(SESSION);
    world.change("idle", "thinking");
    world.say("progress.updated", progress(1));
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    world.confirm(subscriber, "rpl_1", "accept");
    world.say("tool.invoked", irreversible_tool());
    world.fail(SESSION);
}

#[test]
fn numbers_are_gapless_where_nothing_is_dropped_or_merged() {
    let mut world = World::new();
    let one = world.listen(1, everything());
    busy_session(&mut world, &one);
    let numbers = numbers(world.heard(&one));
    let expected: Vec<Option<u64>> = (0..numbers.len() as u64).map(Some).collect();
    assert_eq!(numbers, expected);
}

#[test]
fn there_are_no_numbers_where_something_may_be_dropped_or_merged() {
    let with = |more: Json| {
        let mut wishes = everything();
        merge(&mut wishes, more);
        wishes
    };
    for wishes in [
        json!({ "supports_confirmation_reply": true }),
        with(json!({ "max_events_per_second": 100 })),
        with(json!({ "coalesce_boundaries": ["sentence"] })),
        with(filters(&json!(["*"]), &json!(["aaep:agent.progress.*"]))),
        with(json!({ "cognitive_load": "low" })),
    ] {
        let mut world = World::new();
        let one = world.listen(1, wishes.clone());
        busy_session(&mut world, &one);
        world.pass_s(9);
        assert!(numbers(world.heard(&one)).iter().all(Option::is_none), "{wishes}");
    }
}

#[test]
fn numbers_are_gapless_through_streamed_text() {
    let mut world = World::new();
    let one = world.listen(1, everything());
    world.start(SESSION);
    for (position, c) in "Cat".chars().enumerate() {
        world.chunk(&c.to_string(), position, false);
    }
    world.chunk(" sat.", 3, true);
    world.complete(SESSION);
    let numbers = numbers(world.heard(&one));
    let expected: Vec<Option<u64>> = (0..numbers.len() as u64).map(Some).collect();
    assert_eq!(numbers, expected);
    assert_eq!(text_of(world.heard(&one), None), "Cat sat.");
}

#[test]
fn there_are_no_numbers_where_a_pace_may_merge() {
    let mut wishes = everything();
    merge(&mut wishes, json!({ "pace_wpm": 50 }));
    let mut world = World::new();
    let one = world.listen(1, wishes);
    busy_session(&mut world, &one);
    world.pass_s(60);
    assert!(numbers(world.heard(&one)).iter().all(Option::is_none));
}

#[test]
fn numbers_stay_gapless_when_the_wire_was_full_for_a_while() {
    let mut world = World::new();
    let one = world.listen(1, everything());
    world.start(SESSION);
    world.block(&one);
    for percent in 1..5 {
        world.say("progress.updated", progress(percent));
    }
    world.unblock(&one);
    world.complete(SESSION);
    let mut numbers: Vec<u64> = numbers(world.heard(&one)).into_iter().flatten().collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_late_subscriber_gets_a_number_on_each_event_of_a_session_or_on_none() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.change("idle", "thinking");
    world.complete(SESSION);
    let numbered = numbers(world.heard(&one)).iter().filter(|it| it.is_some()).count();
    assert!(numbered == 0 || numbered == world.heard(&one).len());
}

#[test]
fn what_was_overtaken_under_other_terms_has_no_number_and_what_follows_is_numbered() {
    let mut world = World::new();
    let mut wishes = everything();
    merge(&mut wishes, json!({ "max_events_per_second": 1 }));
    let one = world.listen(1, wishes);
    world.start(SESSION);
    world.say("tool.invoked", tool(1));
    world.say("handoff.requested", json!({ "reason": "Help.", "target_kind": "human" }));
    world.say("tool.invoked", tool(2));
    let last = last_id(&world.take(&one));
    world.disconnect(&one);
    let resume = ResumePoint { subscription_id: Some(one.id.clone()), last_event_id: last };
    let again = granted(1, &world.take_over(1, everything(), resume));
    world.say("tool.invoked", tool(3));
    let heard = world.heard(&again);
    assert_eq!(kinds(heard), ["tool.invoked"; 3]);
    assert_eq!(numbers(heard), [None, Some(3), Some(4)], "number 2 came before number 1");
}

#[test]
fn a_text_that_was_begun_under_other_terms_goes_on_without_a_number() {
    let mut world = World::new();
    let one = world.listen(1, json!({ "coalesce_boundaries": ["word"] }));
    world.start(SESSION);
    world.chunk("One tw", 0, false);
    world.take(&one);
    world.renegotiate(&one, everything());
    world.chunk("o three.", 6, true);
    world.complete(SESSION);
    let heard = world.heard(&one);
    let text: String = heard.iter().map(|it| it.text("chunk")).collect();
    assert_eq!(text, "two three.");
    assert_eq!(numbers(heard), [None, Some(2), Some(3)]);
}

#[test]
fn a_question_that_is_asked_again_out_of_its_place_has_no_number() {
    let mut world = World::new();
    world.listen(9, everything());
    let one = world.listen(1, everything());
    world.start(SESSION);
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    world.say("progress.updated", progress(1));
    let last = last_id(&world.take(&one));
    world.close(&one);
    let again = granted(1, &world.request(1, true, everything(), last));
    world.say("progress.updated", progress(2));
    let heard = world.heard(&again);
    assert_eq!(kinds(heard), ["awaiting.confirmation", "progress.updated"]);
    assert_eq!(numbers(heard), [None, Some(4)]);
}

#[test]
fn a_summary_has_the_number_before_what_is_still_to_come() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.disconnect(&one);
    world.change("idle", "thinking");
    world.take(&one);
    world.reconnect(&one, None);
    world.say("progress.updated", progress(1));
    let heard = world.heard(&one);
    assert_eq!(kinds(heard), ["state.changed", "state.changed", "progress.updated"]);
    assert_eq!(numbers(heard), [Some(0), Some(1), Some(2)]);
}
