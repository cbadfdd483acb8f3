//! A wire that takes nothing for a while: nobody is sent anything on it, and then nothing is lost or
//! told twice (rulings 7, 8 and 20).

#[path = "common/support.rs"]
mod support;

use aaep_engine::MAX_UNITS;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use support::*;

fn tool(number: usize) -> Json {
    let id = format!("call_{number}");
    json!({ "tool": "list", "summary_normal": "Lists.", "tool_call_id": id })
}

fn handoff(reason: &str) -> Json {
    json!({ "reason": reason, "target_kind": "human" })
}

#[test]
fn a_full_wire_gets_nothing_and_then_what_is_urgent_first() {
    for wishes in [json!({}), limited(9, json!({}))] {
        let mut world = World::new();
        let one = world.listen(1, wishes);
        world.start(SESSION);
        world.take(&one);
        world.block(&one);
        world.say("tool.invoked", tool(1));
        world.say("handoff.requested", handoff("Help."));
        world.pass_s(5);
        assert!(world.heard(&one).is_empty());
        world.unblock(&one);
        assert_eq!(kinds(world.heard(&one)), ["handoff.requested", "tool.invoked"]);
        world.say("tool.invoked", tool(2));
        world.pass_s(2);
        assert_eq!(world.heard(&one).len(), 3, "and it goes on");
    }
}

#[test]
fn what_a_full_wire_gives_back_is_overtaken_by_what_is_urgent_and_told_once() {
    for wishes in [json!({}), everything(), limited(9, json!({}))] {
        let counts = wishes == everything();
        let mut world = World::new();
        let one = world.listen(1, wishes);
        world.start(SESSION);
        for number in 1..=4 {
            world.say("tool.invoked", tool(number));
        }
        world.pass_s(5);
        let heard = world.take(&one);
        assert_eq!(heard.len(), 5);
        world.block(&one);
        world.take_back(&one, heard[1].id());
        world.say("handoff.requested", handoff("Help."));
        assert!(world.heard(&one).is_empty());
        world.unblock(&one);
        world.pass_s(5);
        let again = world.take(&one);
        let ids: Vec<_> = again
            .iter()
            .map(Heard::id)
            .filter(|id| heard.iter().any(|it| it.id() == *id))
            .collect();
        assert_eq!(
            ids,
            heard[2..].iter().map(Heard::id).collect::<Vec<_>>(),
            "each once, in order"
        );
        let urgent = again.iter().position(|it| it.kind() == "handoff.requested");
        // Who counts gets everything in its order (ruling 7).
        assert_eq!(urgent, Some(if counts { 3 } else { 0 }));
        assert_eq!(again.len(), 4);
    }
}

#[test]
fn a_question_that_a_full_wire_gave_back_is_asked_when_it_is_free() {
    let mut world = World::new();
    let one = world.listen(1, limited(100, json!({})));
    world.start(SESSION);
    world.say("tool.invoked", tool(1));
    let last = world.take(&one).pop().expect("told");
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    let asked = world.take(&one);
    assert_eq!(kinds(&asked), ["state.changed", "awaiting.confirmation"]);
    world.block(&one);
    world.take_back(&one, last.id());
    assert!(world.heard(&one).is_empty(), "the wire is still full");
    world.unblock(&one);
    let told = world.take(&one);
    let mut again = kinds(&told);
    again.sort_unstable();
    assert_eq!(again, ["awaiting.confirmation", "state.changed"], "each once");
    world.confirm(&one, "rpl_1", "accept");
    assert_eq!(world.engine.open_asks(), 0, "it can be answered");
}

#[test]
fn a_subscriber_that_is_away_is_not_brought_back_by_its_old_wire() {
    let mut world = World::new();
    let one = world.listen(1, json!({}));
    world.start(SESSION);
    world.say("tool.invoked", tool(1));
    let heard = world.take(&one);
    world.disconnect(&one);
    world.take_back(&one, heard[0].id());
    world.unblock(&one);
    world.say("tool.invoked", tool(2));
    assert!(world.heard(&one).is_empty());
    world.reconnect(&one, Some(heard[1].id()));
    assert_eq!(kinds(world.heard(&one)), ["tool.invoked"]);
}

#[test]
fn a_wire_that_was_full_gets_nothing_urgent_twice() {
    let mut world = World::new();
    let one = world.listen(1, limited(1, json!({})));
    world.start(SESSION);
    world.say("tool.invoked", tool(1));
    world.say("handoff.requested", handoff("Help."));
    world.block(&one);
    world.unblock(&one);
    world.pass_s(5);
    let urgent = world.heard(&one).iter().filter(|it| it.kind() == "handoff.requested").count();
    assert_eq!(urgent, 1);
}

#[test]
fn after_a_gap_nothing_critical_comes_twice_when_the_wire_gives_back_even_more() {
    let mut world = World::new();
    let one = world.listen(1, json!({}));
    world.start(SESSION);
    world.take(&one);
    world.block(&one);
    for number in 1..=200 {
        world.say("tool.invoked", tool(number));
    }
    world.say("handoff.requested", handoff("Help."));
    world.unblock(&one);
    world.pass_s(1);
    let heard = world.take(&one);
    assert_eq!(heard[0].kind(), "handoff.requested");
    world.block(&one);
    // Where it was then is no longer known: a gap.
    world.take_back(&one, heard[5].id());
    world.take_back(&one, heard[3].id());
    world.unblock(&one);
    let heard = world.heard(&one);
    assert!(!kinds(heard).contains(&"handoff.requested"), "{:?}", kinds(heard));
    assert!(heard.first().is_some_and(Heard::has_gap));
}

#[test]
fn a_critical_end_while_the_wire_was_full_loses_nothing_without_saying_so() {
    for wishes in [everything(), limited(1, json!({}))] {
        let mut world = World::new();
        let one = world.listen(1, wishes);
        world.start(SESSION);
        world.take(&one);
        world.block(&one);
        world.chunk("One. Two.", 0, true);
        world.fail(SESSION);
        world.unblock(&one);
        world.pass_s(9);
        let heard = world.heard(&one);
        let end = heard.iter().find(|it| it.kind() == "session.errored").expect("told");
        let says_so = end.delivery().is_some_and(|it| it.held_back.is_some());
        assert!(says_so || text_of(heard, None) == "One. Two.", "{:?}", kinds(heard));
        assert_eq!(heard.last().map(Heard::kind), Some("session.errored"));
    }
}

#[test]
fn a_full_wire_gets_nothing_even_when_its_subscriber_renegotiates() {
    let mut world = World::new();
    let one = world.listen(1, limited(5, json!({})));
    world.start(SESSION);
    world.take(&one);
    world.block(&one);
    world.say("tool.invoked", tool(1));
    world.renegotiate(&one, json!({ "preferred_verbosity": "terse" }));
    world.say("tool.invoked", tool(2));
    assert!(world.heard(&one).is_empty());
    world.unblock(&one);
    world.pass_s(3);
    assert_eq!(kinds(world.heard(&one)), ["tool.invoked"; 2]);
}

#[test]
fn a_wire_that_was_full_for_too_long_is_told_of_the_gap_and_delivery_goes_on() {
    let mut world = World::new();
    let one = world.listen(1, limited(5, json!({})));
    world.start(SESSION);
    world.take(&one);
    world.block(&one);
    for number in 0..MAX_UNITS + 10 {
        world.say("progress.updated", json!({ "progress": { "step": number + 1 } }));
    }
    world.pass_s(2);
    world.unblock(&one);
    world.say("tool.invoked", tool(1));
    world.pass_s(5);
    let heard = world.heard(&one);
    assert!(heard[0].has_gap(), "{}", heard[0].json);
    assert_eq!(heard.last().map(Heard::kind), Some("tool.invoked"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn a_wire_that_is_full_now_and_then_loses_and_repeats_nothing(
        steps in proptest::collection::vec((0usize..6, 0u64..900_000), 1..50),
        boundary in prop::sample::select(vec!["none", "word", "sentence", "completion"]),
        rate in prop::option::of(1u64..6),
    ) {
        let mut wishes = json!({ "coalesce_boundaries": [boundary] });
        if let Some(rate) = rate {
            wishes["max_events_per_second"] = json!(rate);
        }
        let mut world = World::new();
        let one = world.listen(1, wishes);
        world.start(SESSION);
        let (mut said, mut tools) = (String::new(), 0);
        for (what, wait_us) in steps {
            match what {
                0 => drop(world.block(&one)),
                1 => drop(world.unblock(&one)),
                2 if tools < 12 => {
                    world.say("tool.invoked", tool(tools));
                    tools += 1;
                }
                _ => {
                    let text = ["One. ", "two, ", "Three! Four ", "👩‍🚀"][what % 4];
                    world.chunk(text, said.chars().count(), false);
                    said.push_str(text);
                }
            }
            world.pass_us(wait_us);
        }
        world.unblock(&one);
        world.chunk("", said.chars().count(), true);
        world.pass_s(120);
        prop_assert_eq!(text_of(world.heard(&one), None), said);
        let calls: Vec<&str> = world
            .heard(&one)
            .iter()
            .filter(|it| it.kind() == "tool.invoked")
            .map(|it| it.text("tool_call_id"))
            .collect();
        let expected: Vec<String> = (0..tools).map(|number| format!("call_{number}")).collect();
        prop_assert_eq!(calls, expected);
    }
}
