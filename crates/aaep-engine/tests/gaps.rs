//! Where something cannot be told any more, the subscriber is told so, once, and what is going on
//! (ruling 20).

#[path = "common/support.rs"]
mod support;

use aaep_engine::{EngineConfig, MAX_UNITS, Output};
use serde_json::json;
use support::*;

#[test]
fn an_unknown_last_event_means_a_gap_notice_and_a_summary_of_each_session() {
    for wishes in [everything(), limited(5, json!({}))] {
        let mut world = World::started();
        world.start("sess_2");
        world.start("sess_3");
        world.complete("sess_3");
        let one = world.listen(1, wishes);
        world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
        world.take(&one);
        world.disconnect(&one);
        world.change("awaiting_input", "awaiting_input");
        world.reconnect(&one, Some(&event_id("evt_fromAnotherLife")));
        let heard = world.heard(&one);
        assert_eq!(kinds(heard), ["state.changed", "state.changed", "awaiting.confirmation"]);
        for summary in &heard[..2] {
            let gap = summary.delivery().and_then(|it| it.gap).expect("it says that it is a gap");
            let after = gap.after_event_id.map(|it| it.as_str().to_owned());
            assert_eq!(after.as_deref(), Some("evt_fromAnotherLife"));
        }
        assert!(replied(&world.confirm(&one, "rpl_1", "reject")));
    }
}

#[test]
fn after_a_gap_no_text_is_repeated_that_was_told_under_other_terms() {
    let mut world = World::started();
    let one = world.listen(1, json!({ "coalesce_boundaries": ["word"] }));
    world.chunk("The folder is empty now. ", 0, false);
    let told = world.take(&one);
    let told: String = told.iter().map(|heard| heard.text("chunk")).collect();
    assert!(told.starts_with("The folder is"), "{told}");
    world.renegotiate(&one, json!({ "coalesce_boundaries": ["paragraph"] }));
    world.disconnect(&one);
    world.reconnect(&one, Some(&event_id("evt_fromAnotherLife")));
    world.chunk("It can go.", 25, true);
    let heard = world.heard(&one);
    let texts: Vec<_> = heard.iter().filter(|heard| heard.kind() == "output.streaming").collect();
    assert_eq!(texts.len(), 1, "{heard:?}");
    assert_eq!(texts[0].text("chunk"), &"The folder is empty now. It can go."[told.len()..]);
}

#[test]
fn a_text_that_changes_its_language_is_told_whole_before_an_end_while_a_gap_is_owed() {
    let chunk = |text: &str, position: usize, language: &str, complete: bool| {
        json!({
            "chunk": text, "position": position, "language": language, "complete": complete,
            "output_id": "out_1",
        })
    };
    let mut world = World::started();
    world.start("sess_2");
    let one = world.listen(1, limited(1, json!({})));
    world.take(&one);
    world.disconnect(&one);
    world.pass_s(2);
    world.reconnect(&one, Some(&event_id("evt_fromAnotherLife")));
    let summed_up = world.take(&one);
    assert_eq!(kinds(&summed_up), ["state.changed"], "the other summary waits for the rate");
    let other = if summed_up[0].text("session_id") == SESSION { "sess_2" } else { SESSION };
    world.say_in(other, "output.streaming", chunk("It is done. ", 0, "en-US", false));
    world.say_in(other, "output.streaming", chunk("Todo bien. ", 12, "es", true));
    world.fail(other);
    let heard = world.heard(&one);
    let texts: Vec<_> = heard.iter().map(|heard| heard.text("chunk")).collect();
    assert_eq!(texts.concat(), "It is done. Todo bien. ", "{heard:?}");
}

#[test]
fn a_session_that_ended_before_it_was_summed_up_has_no_other_summed_up_twice() {
    let mut world = World::started();
    world.start("sess_2");
    world.start("sess_3");
    let one = world.listen(1, limited(1, json!({})));
    world.disconnect(&one);
    world.pass_s(2);
    world.reconnect(&one, Some(&event_id("evt_fromAnotherLife")));
    world.take(&one);
    world.fail("sess_3");
    world.pass_s(5);
    assert_eq!(kinds(world.heard(&one)), ["session.errored", "state.changed"]);
    assert!(world.heard(&one).last().is_some_and(Heard::has_gap));
}

#[test]
fn a_gap_notice_is_told_elsewhere_if_the_sessions_it_was_meant_for_have_ended() {
    let mut world = World::started();
    let one = world.listen(1, limited(1, json!({})));
    world.reconnect(&one, Some(&event_id("evt_fromAnotherLife")));
    world.take(&one);
    world.fail(SESSION);
    world.pass_s(5);
    assert!(!world.heard(&one).iter().any(Heard::has_gap), "there is no session to say it in");
    world.start("sess_2");
    world.start("sess_3");
    world.pass_s(5);
    let gaps = world.heard(&one).iter().filter(|it| it.has_gap());
    assert_eq!(gaps.count(), 1);
}

#[test]
fn a_lost_gap_notice_is_told_again() {
    for (wishes, got) in [(everything(), 0), (everything(), 1), (limited(9, json!({})), 1)] {
        let mut world = World::new();
        let one = world.listen(1, wishes);
        world.reconnect(&one, Some(&event_id("evt_fromAnotherLife")));
        world.start(SESSION);
        let heard = world.take(&one);
        assert_eq!(kinds(&heard), ["session.started", "state.changed"]);
        world.disconnect(&one);
        world.reconnect(&one, last_id(&heard[..got]).as_ref());
        let gaps = world.take(&one).iter().filter(|it| it.has_gap()).count();
        assert_eq!(gaps, 1, "after {got} events");
        world.start("sess_2");
        assert!(!world.heard(&one).iter().any(Heard::has_gap), "it was told");
    }
}

#[test]
fn a_subscriber_away_for_longer_than_the_history_reaches_back_is_told_of_the_gap() {
    let many = |world: &mut World, count: usize| {
        for number in 0..count {
            world.say("progress.updated", json!({ "progress": { "step": number + 1 } }));
        }
    };
    let config = EngineConfig { memory_bytes: 4 << 20, ..EngineConfig::new(offer(), [7; 32]) };
    let mut world = World::with(config);
    let one = world.listen(1, everything());
    world.start(SESSION);
    let last = last_id(&world.take(&one));
    world.disconnect(&one);
    many(&mut world, 100);
    world.reconnect(&one, last.as_ref());
    world.pass_s(1);
    let told = world.take(&one);
    assert_eq!(told.len(), 100, "so much is in the history");
    let last = last_id(&told);
    world.disconnect(&one);
    many(&mut world, 1000);
    world.reconnect(&one, last.as_ref());
    let heard = world.heard(&one);
    assert!(heard.first().is_some_and(Heard::has_gap), "{}", heard.len());
    assert_eq!(heard.len(), 1, "what is past is not told after the summary");
}

#[test]
fn a_subscriber_that_resumes_by_event_alone_hears_of_a_gap_where_a_rate_may_have_changed_the_order()
{
    let mut world = World::new();
    let one = world.listen(1, limited(1, json!({})));
    world.start(SESSION);
    let last = last_id(&world.take(&one));
    world.close(&one);
    world.say("progress.updated", json!({ "progress": { "step": 1 } }));
    let outputs = world.request(1, true, limited(1, json!({})), last);
    assert!(outputs.iter().any(|it| matches!(it, Output::Resumed { is_complete: false, .. })));
    let again = granted(1, &outputs);
    assert!(world.heard(&again).first().is_some_and(Heard::has_gap));
}

#[test]
fn a_critical_event_from_before_the_gap_comes_before_its_notice() {
    for wishes in [everything(), json!({})] {
        let mut world = World::started();
        world.start("sess_2");
        let one = world.listen(1, wishes.clone());
        world.say("progress.updated", json!({ "progress": { "step": 1 } }));
        let last = last_id(&world.take(&one));
        world.close(&one);
        world.say("progress.updated", json!({ "progress": { "step": 2 } }));
        world.say("handoff.requested", json!({ "reason": "Help.", "target_kind": "human" }));
        world.complete(SESSION);
        let outputs = world.request(1, true, wishes, last);
        let again = granted(1, &outputs);
        let heard = world.heard(&again);
        assert_eq!(kinds(heard), ["handoff.requested", "state.changed"]);
        assert!(heard[1].has_gap(), "the notice sums up the session that runs");
        assert_eq!(heard[1].text("session_id"), "sess_2");
    }
}

#[test]
fn after_a_full_wire_too_a_critical_event_comes_before_the_notice_of_the_gap() {
    for wishes in [everything(), json!({})] {
        let mut world = World::started();
        world.start("sess_2");
        let one = world.listen(1, wishes);
        world.take(&one);
        world.block(&one);
        for number in 0..MAX_UNITS + 10 {
            world.say("progress.updated", json!({ "progress": { "step": number + 1 } }));
        }
        world.say("handoff.requested", json!({ "reason": "Help.", "target_kind": "human" }));
        world.complete(SESSION);
        world.unblock(&one);
        let heard = world.heard(&one);
        assert_eq!(kinds(heard), ["handoff.requested", "state.changed"]);
        assert!(heard[1].has_gap(), "the notice sums up the session that runs");
    }
}

#[test]
fn a_subscription_that_stays_away_ends_in_time_whatever_happens_meanwhile() {
    for has_session in [true, false] {
        let mut world = World::new();
        let one = world.listen(1, everything());
        world.reconnect(&one, Some(&event_id("evt_fromAnotherLife")));
        world.disconnect(&one);
        if has_session {
            world.start(SESSION);
            for number in 0..MAX_UNITS + 10 {
                world.say("progress.updated", json!({ "progress": { "step": number + 1 } }));
            }
        }
        world.renegotiate(&one, json!({}));
        assert_eq!(world.engine.subscriptions(), 1);
        world.pass_s(3601);
        assert_eq!(world.engine.subscriptions(), 0);
    }
}

#[test]
fn a_slow_subscriber_can_still_answer_after_it_fell_behind() {
    let mut world = World::started();
    let one = world.listen(1, limited(1, json!({})));
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    for number in 0..MAX_UNITS + 10 {
        world.say("progress.updated", json!({ "progress": { "step": number + 1 } }));
    }
    world.pass_s(2);
    let heard = world.heard(&one);
    assert!(heard.iter().any(Heard::has_gap), "{:?}", kinds(heard));
    assert_eq!(heard.iter().filter(|it| it.kind() == "awaiting.confirmation").count(), 1);
    assert!(replied(&world.confirm(&one, "rpl_1", "accept")));
}
