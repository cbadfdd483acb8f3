//! Coming back after a cut, and a wire that was full for a while (rulings 4, 19 and 20): nothing is
//! lost, nothing is told twice, and where that cannot be, the subscriber is told so.

#[path = "common/support.rs"]
mod support;

use std::collections::BTreeSet;

use aaep_engine::{AgentTags, HearingScope, MAX_UNITS, Output, ResumePoint};
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
fn a_subscriber_that_reconnects_gets_what_happened_meanwhile_and_nothing_twice() {
    for wishes in [everything(), json!({}), limited(2, json!({}))] {
        let mut world = World::new();
        let one = world.listen(1, wishes);
        world.start(SESSION);
        world.change("idle", "thinking");
        let last = last_id(&world.take(&one));
        world.disconnect(&one);
        world.pass_s(2);
        world.say("tool.invoked", tool(1));
        assert!(world.heard(&one).is_empty(), "nobody is there");
        world.reconnect(&one, last.as_ref());
        world.change("thinking", "deciding");
        world.pass_s(5);
        assert_eq!(kinds(world.heard(&one)), ["tool.invoked", "state.changed"]);
    }
}

#[test]
fn a_subscriber_gets_events_again_that_were_lost_on_the_wire() {
    for wishes in [everything(), json!({}), limited(9, json!({}))] {
        let mut world = World::new();
        let one = world.listen(1, wishes);
        world.start(SESSION);
        world.change("idle", "thinking");
        world.say("tool.invoked", tool(1));
        world.chunk("One. Two", 0, false);
        let heard = world.take(&one);
        world.disconnect(&one);
        world.reconnect(&one, Some(heard[0].id()));
        world.pass_s(2);
        let again: Vec<&str> = world.heard(&one).iter().map(|it| it.id().as_str()).collect();
        let before: Vec<&str> = heard[1..].iter().map(|it| it.id().as_str()).collect();
        assert_eq!(again, before);
    }
}

#[test]
fn a_subscriber_that_reconnects_with_a_rate_gets_the_critical_events_that_it_missed() {
    let mut world = World::new();
    let one = world.listen(1, limited(2, json!({})));
    world.start(SESSION);
    let last = last_id(&world.take(&one));
    world.disconnect(&one);
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    world.reconnect(&one, last.as_ref());
    world.pass_s(3);
    assert!(kinds(world.heard(&one)).contains(&"awaiting.confirmation"));
}

#[test]
fn a_subscriber_that_reconnects_without_limits_gets_the_critical_events_that_it_missed_in_order() {
    let mut world = World::new();
    let one = world.listen(1, everything());
    world.start(SESSION);
    let last = last_id(&world.take(&one));
    world.disconnect(&one);
    world.say("tool.invoked", tool(1));
    world.say("handoff.requested", handoff("Help."));
    world.fail(SESSION);
    world.reconnect(&one, last.as_ref());
    let expected = ["tool.invoked", "handoff.requested", "tool.completed", "session.errored"];
    assert_eq!(kinds(world.heard(&one)), expected);
}

#[test]
fn a_question_lost_after_the_summary_is_sent_again() {
    for wishes in [everything(), limited(3, json!({}))] {
        let mut world = World::started();
        world.listen(1, everything());
        world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
        let late = world.listen(2, wishes);
        let heard = world.take(&late);
        assert_eq!(kinds(&heard), ["state.changed", "awaiting.confirmation"]);
        world.disconnect(&late);
        world.reconnect(&late, Some(heard[0].id()));
        assert_eq!(kinds(world.heard(&late)), ["awaiting.confirmation"]);
    }
}

#[test]
fn a_new_subscription_goes_on_after_an_original_event() {
    for wishes in [json!({}), everything()] {
        let mut world = World::new();
        world.start(SESSION);
        let chunk = |text: &str, id: &str, complete: bool| json!({ "chunk": text, "position": 0, "complete": complete, "output_id": id });
        world.say("output.streaming", chunk("One. Two.", "out_1", true));
        let here = json!({ "event_id": "evt_here", "progress": { "step": 1 } });
        world.say("progress.updated", here);
        world.say("output.streaming", chunk("Three. Four.", "out_2", true));
        let outputs = world.request(2, true, wishes, Some(event_id("evt_here")));
        let one = granted(2, &outputs);
        world.complete(SESSION);
        world.pass_s(5);
        let heard = world.heard(&one);
        assert_eq!(text_of(heard, Some("out_1")), "");
        assert_eq!(text_of(heard, Some("out_2")), "Three. Four.");
        let last = kinds(heard).into_iter().filter(|it| *it != "output.streaming");
        assert_eq!(last.collect::<Vec<_>>(), ["session.completed"]);
        assert!(!heard.iter().any(Heard::has_gap));
    }
}

#[test]
fn a_new_subscription_goes_on_in_the_middle_of_a_text() {
    for boundary in ["none", "sentence", "completion"] {
        let mut world = World::new();
        let all = world.listen(1, everything());
        world.start(SESSION);
        world.say("progress.updated", json!({ "progress": { "step": 1 } }));
        world.chunk("One. Two ", 0, false);
        let last = "evt_here";
        let chunk =
            json!({ "chunk": "three. ", "position": 9, "complete": false, "event_id": last });
        world.say("output.streaming", chunk);
        world.say("progress.updated", json!({ "progress": { "step": 2 } }));
        world.chunk("Four.", 16, true);
        let wishes = json!({ "coalesce_boundaries": [boundary] });
        let outputs = world.request(2, true, wishes, Some(event_id(last)));
        let one = granted(2, &outputs);
        world.complete(SESSION);
        let heard = world.heard(&one);
        let text: String = heard.iter().map(|it| it.text("chunk")).collect();
        assert_eq!(text, "Four.", "{boundary}");
        let others: Vec<&str> =
            kinds(heard).into_iter().filter(|it| *it != "output.streaming").collect();
        assert_eq!(others, ["progress.updated", "session.completed"], "{boundary}");
        assert!(!heard.iter().any(Heard::has_gap));
        assert_eq!(text_of(world.heard(&all), None), "One. Two three. Four.");
    }
}

#[test]
fn a_new_subscription_that_resumes_after_a_critical_event_loses_nothing_that_was_held() {
    let mut world = World::new();
    let one = world.listen(1, limited(1, json!({})));
    world.start(SESSION);
    world.chunk("One. Two. ", 0, false);
    world.say("tool.invoked", tool(1));
    world.say("handoff.requested", handoff("Help."));
    let last = last_id(&world.take(&one));
    world.disconnect(&one);
    let resume = ResumePoint { subscription_id: Some(one.id.clone()), last_event_id: last };
    let outputs = world.take_over(1, limited(1, json!({})), resume);
    let again = granted(1, &outputs);
    assert_ne!(again.id, one.id);
    world.pass_s(10);
    assert_eq!(kinds(world.heard(&again)), ["output.streaming", "tool.invoked"]);
}

#[test]
fn a_new_subscription_takes_the_place_of_the_earlier_one_under_other_terms() {
    let mut world = World::new();
    let one = world.listen(1, json!({ "coalesce_boundaries": ["sentence"] }));
    world.start(SESSION);
    world.chunk("One. Two ", 0, false);
    let last = last_id(&world.take(&one));
    world.disconnect(&one);
    world.chunk("three. Four ", 9, false);
    let resume = ResumePoint { subscription_id: Some(one.id.clone()), last_event_id: last };
    let outputs = world.take_over(1, json!({ "coalesce_boundaries": ["word"] }), resume);
    assert!(outputs.iter().any(|it| matches!(it, Output::Resumed { is_complete: true, .. })));
    let again = granted(1, &outputs);
    world.chunk("five.", 21, true);
    let text: String = world.heard(&again).iter().map(|it| it.text("chunk")).collect();
    assert_eq!(text, "Two three. Four five.");
    assert!(world.reconnect(&one, None).contains(&Output::NoSuchSubscription));
}

#[test]
fn a_subscriber_hears_only_the_agents_that_it_may() {
    let mut world = World::new();
    let hears = HearingScope::Tagged(AgentTags::new(["agent:other".to_owned()]));
    let outputs = world.subscribe(1, hears, json!({}), None);
    let one = granted(1, &outputs);
    let all = world.listen(2, json!({}));
    world.start(SESSION);
    world.say("handoff.requested", handoff("Help."));
    assert!(world.heard(&one).is_empty());
    assert!(!world.heard(&all).is_empty());
    world.close(&all);
    let outputs = world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    let settled = outputs.iter().any(|it| matches!(it, Output::Settled { .. }));
    assert!(settled, "nobody who may hear it is there");
}

#[test]
fn nothing_of_a_session_comes_after_its_critical_end_however_someone_resumes() {
    let mut world = World::new();
    world.start(SESSION);
    let started = json!({ "event_id": "evt_here", "from_state": "idle", "to_state": "thinking" });
    world.say("state.changed", started);
    world.chunk("One. Two. ", 0, false);
    world.say("tool.invoked", tool(1));
    world.fail(SESSION);
    let outputs = world.request(1, true, json!({}), Some(event_id("evt_here")));
    let one = granted(1, &outputs);
    world.pass_s(20);
    assert_eq!(world.heard(&one).last().map(Heard::kind), Some("session.errored"));
}

#[test]
fn a_subscriber_without_a_place_is_told_everything_that_the_history_still_has() {
    let mut world = World::new();
    let one = world.listen(1, everything());
    world.start(SESSION);
    let last = last_id(&world.take(&one));
    world.close(&one);
    for number in 0..MAX_UNITS + 10 {
        world.say("progress.updated", json!({ "progress": { "step": number + 1 } }));
    }
    let outputs = world.request(1, true, everything(), last);
    let again = granted(1, &outputs);
    world.pass_s(1);
    let heard = world.heard(&again);
    assert!(!heard.iter().any(Heard::has_gap));
    assert_eq!(heard.len(), MAX_UNITS + 10);
}

#[test]
fn a_new_subscription_that_goes_on_gets_an_open_question_once() {
    for wishes in [everything(), limited(3, json!({}))] {
        let mut world = World::new();
        let one = world.listen(1, wishes.clone());
        world.start(SESSION);
        let last = last_id(&world.take(&one));
        world.disconnect(&one);
        world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
        let outputs = world.request(1, true, wishes, last);
        let again = granted(1, &outputs);
        world.pass_s(3);
        let asked = world.heard(&again).iter().filter(|it| it.kind() == "awaiting.confirmation");
        assert_eq!(asked.count(), 1);
        assert!(replied(&world.confirm(&again, "rpl_1", "accept")));
    }
}

#[test]
fn states_form_one_chain_even_if_a_folded_one_was_lost_on_the_wire() {
    let mut world = World::new();
    let one = world.listen(1, limited(1, json!({})));
    world.start(SESSION);
    let last = last_id(&world.take(&one));
    world.change("idle", "thinking");
    world.change("thinking", "deciding");
    world.pass_s(2);
    world.take(&one);
    world.disconnect(&one);
    world.reconnect(&one, last.as_ref());
    world.pass_s(3);
    let heard = world.heard(&one);
    assert_eq!((heard[0].text("from_state"), heard[0].text("to_state")), ("idle", "deciding"));
}

#[test]
fn many_lost_events_come_again_even_past_what_is_remembered_one_by_one() {
    let mut world = World::new();
    let one = world.listen(1, limited(500, json!({})));
    world.start(SESSION);
    for number in 0..100 {
        world.say("tool.invoked", tool(number));
    }
    let heard = world.take(&one);
    world.disconnect(&one);
    world.pass_s(2);
    world.reconnect(&one, Some(heard[0].id()));
    let merged = world.heard(&one)[0].delivery().and_then(|it| it.merged);
    assert_eq!(merged.map(|it| it.count), Some(100), "summed up, because so many wait");
}

#[test]
fn an_event_that_was_sent_twice_says_where_the_subscriber_was_the_second_time() {
    let mut world = World::new();
    let one = world.listen(1, limited(1, json!({})));
    world.start(SESSION);
    let first = last_id(&world.take(&one));
    world.chunk("One. ", 0, false);
    world.chunk("Two. ", 5, true);
    world.say("tool.invoked", tool(1));
    world.pass_us(1_100_000);
    world.say("handoff.requested", handoff("Help."));
    assert_eq!(kinds(&world.take(&one)), ["output.streaming", "handoff.requested"]);
    world.disconnect(&one);
    world.reconnect(&one, first.as_ref());
    let again = world.take(&one);
    assert_eq!(kinds(&again), ["handoff.requested"], "the text is held for now");
    world.renegotiate(&one, json!({ "preferred_verbosity": "terse" }));
    world.disconnect(&one);
    world.reconnect(&one, last_id(&again).as_ref());
    world.pass_s(5);
    assert_eq!(text_of(world.heard(&one), None), "One. Two. ");
}

#[test]
fn a_second_connection_takes_over_and_strangers_cannot() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let last = last_id(world.heard(&one));
    let thief = Subscriber { principal: 7, ..one.clone() };
    assert_eq!(world.reconnect(&thief, last.as_ref()), [Output::NoSuchSubscription]);
    world.take(&one);
    world.reconnect(&one, last.as_ref());
    world.say("tool.invoked", tool(1));
    assert_eq!(world.heard(&one).len(), 1, "once, not once for each connection");
}

/// What happens between cuts.
#[derive(Debug, Clone)]
enum Step {
    Text(&'static str),
    Tool,
    Urgent,
    Wait(u64),
    /// The connection breaks, the last few events are lost on it, and it comes back after so many
    /// further steps.
    Cut(usize, usize),
}

fn steps(urgent: u32) -> impl Strategy<Value = Vec<Step>> {
    let text = prop::sample::select(vec!["One. ", "two ", "Three! Four ", "e\u{301}👩‍🚀", "\n\n"]);
    let step = prop_oneof![
        6 => text.prop_map(Step::Text),
        1 => Just(Step::Tool),
        urgent => Just(Step::Urgent),
        2 => (0u64..1_200_000).prop_map(Step::Wait),
        2 => (0usize..4, 0usize..4).prop_map(|(lost, away)| Step::Cut(lost, away)),
    ];
    proptest::collection::vec(step, 1..40)
}

/// Plays the steps; what the subscriber has in the end, and the text that was said.
fn play(wishes: Json, steps: Vec<Step>) -> (Vec<Heard>, String, usize) {
    let mut world = World::new();
    let one = world.listen(1, wishes);
    world.start(SESSION);
    let (mut got, mut said, mut told) = (Vec::<Heard>::new(), String::new(), 1);
    let mut counted = 0;
    let mut away: Option<usize> = None;
    for (number, step) in steps.into_iter().enumerate() {
        got.extend(world.take(&one));
        match step {
            Step::Text(text) => {
                world.chunk(text, counted, false);
                said.push_str(&as_sent(text));
                counted += text.chars().count();
            }
            Step::Tool => {
                world.say("tool.invoked", tool(number));
                told += 1;
            }
            Step::Urgent => {
                world.say("handoff.requested", handoff(&format!("Help {number}.")));
                told += 1;
            }
            Step::Wait(us) => drop(world.pass_us(us)),
            Step::Cut(lost, steps) if away.is_none() => {
                got.truncate(got.len().saturating_sub(lost).max(1));
                world.disconnect(&one);
                away = Some(steps);
            }
            Step::Cut(..) => {}
        }
        away = match away {
            Some(0) => {
                world.reconnect(&one, last_id(&got).as_ref());
                None
            }
            other => other.map(|steps| steps - 1),
        };
    }
    if away.is_some() {
        world.reconnect(&one, last_id(&got).as_ref());
    }
    world.chunk("", counted, true);
    world.pass_s(120);
    got.extend(world.take(&one));
    (got, said, told)
}

fn assert_whole(got: &[Heard], said: &str, told: usize) {
    assert_eq!(text_of(got, None), said);
    let ids: BTreeSet<&str> = got.iter().map(|it| it.id().as_str()).collect();
    assert_eq!(ids.len(), got.len(), "something came twice");
    let others = got.iter().filter(|it| it.kind() != "output.streaming").count();
    assert_eq!(others, told);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn no_cut_loses_or_repeats_anything_without_limits(
        steps in steps(1),
        boundary in prop::sample::select(vec!["none", "word", "sentence", "completion"]),
    ) {
        let (got, said, told) = play(json!({ "coalesce_boundaries": [boundary] }), steps);
        assert_whole(&got, &said, told);
    }

    #[test]
    fn no_cut_loses_or_repeats_anything_with_a_rate(
        steps in steps(0),
        boundary in prop::sample::select(vec!["none", "word", "sentence", "completion"]),
        rate in 1u64..9,
    ) {
        let (got, said, told) = play(limited(rate, json!({ "coalesce_boundaries": [boundary] })), steps);
        assert_whole(&got, &said, told);
    }

    #[test]
    fn no_cut_loses_or_repeats_anything_critical_with_a_rate(
        steps in steps(2),
        rate in 1u64..9,
    ) {
        let (got, said, told) = play(limited(rate, json!({})), steps);
        assert_whole(&got, &said, told);
    }
}
