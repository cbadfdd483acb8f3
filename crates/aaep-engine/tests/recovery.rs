//! Going on after a kill: nothing that was recorded is lost, and no answer is given twice.

#[path = "common/support.rs"]
mod support;

use std::collections::BTreeSet;

use aaep::extension::AskOutcome;
use aaep_engine::order::OrderViolation;
use aaep_engine::{Output, Refusal, ReplyRefusal, ResumePoint};
use serde_json::{Value as Json, json};
use support::*;

/// The subscriber of before, as the new engine knows it.
fn again(subscriber: &Subscriber, outputs: &[Output]) -> Subscriber {
    let key = outputs.iter().find_map(|output| match output {
        Output::Recovered { subscriber: key, subscription_id }
            if *subscription_id == subscriber.id =>
        {
            Some(*key)
        }
        _ => None,
    });
    Subscriber { key: key.unwrap_or_else(|| panic!("{outputs:?}")), ..subscriber.clone() }
}

fn resolution(outputs: &[Output]) -> Option<AskOutcome> {
    outputs.iter().find_map(|output| match output {
        Output::Settled { outcome, .. } => Some(outcome.clone()),
        _ => None,
    })
}

fn refusal(outputs: &[Output]) -> Option<Refusal> {
    outputs.iter().find_map(|output| match output {
        Output::Refused { refusal, .. } => Some(refusal.clone()),
        _ => None,
    })
}

/// Asks as the other tests do, with more time.
fn asked(more: Json) -> (World, Subscriber) {
    let mut world = World::started();
    let one = world.listen(1, json!({ "supports_confirmation_reply": true }));
    world.say("awaiting.confirmation", confirmation("rpl_1", more));
    (world, one)
}

#[test]
fn a_question_goes_on_with_its_old_deadline() {
    let (mut world, one) = asked(json!({ "timeout_seconds": 30 }));
    world.pass_s(10);
    let outputs = world.restart(5);
    assert_eq!(resolution(&outputs), None);
    let one = again(&one, &outputs);
    world.reconnect(&one, None);
    assert_eq!(resolution(&world.pass_s(14)), None, "29 seconds have passed");
    assert_eq!(resolution(&world.pass_s(2)), Some(AskOutcome::Reject));
}

#[test]
fn a_question_whose_time_is_over_by_then_gets_its_default_at_once() {
    let (mut world, _) = asked(json!({ "timeout_seconds": 30 }));
    let outputs = world.restart(31);
    assert_eq!(resolution(&outputs), Some(AskOutcome::Reject));
}

#[test]
fn the_answer_to_a_question_of_before_counts_once() {
    let (mut world, one) = asked(json!({}));
    let outputs = world.restart(1);
    let one = again(&one, &outputs);
    world.reconnect(&one, None);
    assert!(replied(&world.confirm(&one, "rpl_1", "accept")));
    assert_eq!(refusal(&world.say("tool.invoked", irreversible_tool())), None);
    assert!(!replied(&world.confirm(&one, "rpl_1", "accept")));
}

#[test]
fn a_token_that_was_used_stays_used() {
    let (mut world, one) = asked(json!({}));
    assert!(replied(&world.confirm(&one, "rpl_1", "reject")));
    let outputs = world.restart(1);
    let one = again(&one, &outputs);
    world.reconnect(&one, None);
    let outputs = world.confirm(&one, "rpl_1", "accept");
    assert!(!replied(&outputs));
    assert_eq!(audited(&outputs), Some(ReplyRefusal::AlreadySettled));
    let again =
        world.offer_event(SESSION, "awaiting.confirmation", confirmation("rpl_1", json!({})));
    assert_eq!(refusal(&again), Some(Refusal::TokenUsed));
}

#[test]
fn consent_that_was_given_before_lets_its_tool_run_once_after() {
    let (mut world, one) = asked(json!({}));
    assert!(replied(&world.confirm(&one, "rpl_1", "accept")));
    world.restart(1);
    assert_eq!(refusal(&world.say("tool.invoked", irreversible_tool())), None);
    let twice = world.offer_event(SESSION, "tool.invoked", irreversible_tool());
    assert!(matches!(
        refusal(&twice),
        Some(Refusal::Order(OrderViolation::IrreversibleWithoutAccept { .. }))
    ));
}

#[test]
fn a_question_waits_for_subscribers_that_reconnect_and_no_longer() {
    let (mut world, _) = asked(json!({ "timeout_seconds": 300 }));
    assert_eq!(resolution(&world.restart(1)), None);
    assert_eq!(resolution(&world.pass_s(9)), None);
    assert_eq!(resolution(&world.pass_s(2)), Some(AskOutcome::Reject));
}

#[test]
fn a_subscriber_goes_on_after_what_it_got_last() {
    let mut world = World::started();
    let one = world.listen(1, json!({ "coalesce_boundaries": ["sentence"] }));
    world.chunk("One. Two. Thr", 0, false);
    let last = last_id(&world.take(&one));
    world.disconnect(&one);
    world.chunk("ee. Four. ", 13, false);
    let outputs = world.restart(2);
    let one = again(&one, &outputs);
    let outputs = world.reconnect(&one, last.as_ref());
    assert!(outputs.iter().any(|it| matches!(it, Output::Resumed { is_complete: true, .. })));
    world.chunk("Five.", 23, true);
    let text: String = world.heard(&one).iter().map(|it| it.text("chunk")).collect();
    let before = last.is_some();
    assert!(before && text.ends_with("Four. Five."), "{text}");
}

#[test]
fn a_subscriber_with_a_rate_hears_that_something_may_be_missing() {
    let mut world = World::started();
    let one = world.listen(1, limited(1, json!({})));
    world.change("idle", "thinking");
    let last = last_id(&world.take(&one));
    let outputs = world.restart(2);
    let one = again(&one, &outputs);
    world.reconnect(&one, last.as_ref());
    assert!(world.heard(&one).first().is_some_and(Heard::has_gap));
}

fn tool(number: usize) -> Json {
    let id = format!("call_{number}");
    json!({ "tool": "list", "summary_normal": "Lists.", "tool_call_id": id })
}

fn handoff() -> Json {
    json!({ "reason": "Help.", "target_kind": "human" })
}

#[test]
fn a_subscriber_whose_last_event_was_critical_goes_on_after_it() {
    for wishes in [json!({}), everything()] {
        let mut world = World::started();
        let one = world.listen(1, wishes);
        world.say("tool.invoked", tool(1));
        world.say("handoff.requested", handoff());
        let last = last_id(&world.take(&one));
        world.disconnect(&one);
        world.say("tool.invoked", tool(2));
        // Again and again: where it is stays known.
        for _ in 0..2 {
            let outputs = world.restart(2);
            let one = again(&one, &outputs);
            world.take(&one);
            let outputs = world.reconnect(&one, last.as_ref());
            assert!(
                outputs.iter().any(|it| matches!(it, Output::Resumed { is_complete: true, .. }))
            );
            assert_eq!(kinds(world.heard(&one)), ["tool.invoked"]);
        }
    }
}

#[test]
fn a_subscriber_that_never_got_its_new_id_reconnects_with_the_earlier_one() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.say("tool.invoked", tool(1));
    world.say("handoff.requested", handoff());
    let last = last_id(&world.take(&one));
    world.disconnect(&one);
    world.say("tool.invoked", tool(2));
    let resume = ResumePoint { subscription_id: Some(one.id.clone()), last_event_id: last };
    let is_complete = |outputs: &[Output]| {
        outputs.iter().any(|it| matches!(it, Output::Resumed { is_complete: true, .. }))
    };
    for is_killed in [true, false, true] {
        let outputs = world.take_over(1, everything(), resume.clone());
        assert!(is_complete(&outputs), "{outputs:?}");
        assert_eq!(kinds(&world.take(&granted(1, &outputs))), ["tool.invoked"]);
        if is_killed {
            world.restart(2);
        }
    }
    let outputs = world.take_over(2, everything(), resume.clone());
    assert!(!is_complete(&outputs), "it is not theirs");
    let subscriber = granted(1, &world.take_over(1, everything(), resume.clone()));
    world.close(&subscriber);
    let outputs = world.take_over(1, everything(), resume);
    assert!(!is_complete(&outputs), "it is over");
}

#[test]
fn a_subscriber_whose_last_event_overtook_others_hears_that_something_may_be_missing() {
    let mut world = World::started();
    let one = world.listen(1, json!({}));
    world.block(&one);
    world.say("tool.invoked", tool(1));
    world.say("handoff.requested", handoff());
    world.take(&one);
    world.unblock(&one);
    assert_eq!(kinds(world.heard(&one)), ["handoff.requested", "tool.invoked"]);
    let overtook = world.take(&one).first().map(|it| it.id().clone());
    world.say("handoff.requested", handoff());
    let in_order = last_id(&world.take(&one));
    for (last, has_gap) in [(in_order, false), (overtook, true)] {
        let outputs = world.restart(2);
        let one = again(&one, &outputs);
        world.take(&one);
        world.reconnect(&one, last.as_ref());
        assert_eq!(world.heard(&one).iter().any(Heard::has_gap), has_gap);
        world.disconnect(&one);
    }
}

#[test]
fn what_overtook_under_other_terms_says_nothing_after_a_stop_either() {
    let mut world = World::started();
    let one = world.listen(1, limited(1, json!({})));
    world.take(&one);
    world.say("tool.invoked", tool(1));
    world.say("tool.invoked", tool(2));
    world.say("handoff.requested", handoff());
    let last = last_id(&world.take(&one));
    world.disconnect(&one);
    world.renegotiate(&one, everything());
    let outputs = world.restart(2);
    let one = again(&one, &outputs);
    world.take(&one);
    world.reconnect(&one, last.as_ref());
    assert!(world.heard(&one).iter().any(Heard::has_gap));
}

#[test]
fn a_session_goes_on_and_keeps_its_order() {
    let mut world = World::started();
    world.change("idle", "thinking");
    world.restart(3);
    let wrong = json!({ "from_state": "planning", "to_state": "deciding" });
    assert!(refusal(&world.offer_event(SESSION, "state.changed", wrong)).is_some());
    assert_eq!(refusal(&world.change("thinking", "planning")), None);
    assert_eq!(refusal(&world.complete(SESSION)), None);
    let after =
        world.offer_event(SESSION, "session.completed", json!({ "summary_normal": "Done." }));
    assert_eq!(refusal(&after), Some(Refusal::Order(OrderViolation::Ended)));
}

#[test]
fn a_session_whose_beginning_is_not_there_takes_no_more_events() {
    let mut world = World::started();
    world.change("idle", "thinking");
    world.stored.records.remove(0);
    world.restart(1);
    let next = json!({ "from_state": "thinking", "to_state": "planning" });
    let outputs = world.offer_event(SESSION, "state.changed", next);
    assert_eq!(refusal(&outputs), Some(Refusal::Order(OrderViolation::Ended)));
}

#[test]
fn a_question_whose_time_is_not_stored_is_over() {
    let (mut world, _) = asked(json!({}));
    world.stored.times.clear();
    assert_eq!(resolution(&world.restart(1)), Some(AskOutcome::Reject));
}

#[test]
fn ids_do_not_repeat_after_a_stop_even_with_the_same_seed() {
    let mut world = World::new();
    let mut ids = BTreeSet::new();
    for number in 0..4 {
        world.restart(1);
        let one = world.listen(1, everything());
        assert!(ids.insert(one.id.as_str().to_owned()), "a subscription id came again");
        let session = format!("sess_{number}");
        world.start(&session);
        for heard in world.take(&one) {
            assert!(ids.insert(heard.id().as_str().to_owned()), "an event id came again");
        }
    }
}

/// A kill during which the clock of the machine is set to another time.
fn restart_with_jump(world: &mut World, jump_s: i64) -> Vec<Output> {
    world.now.unix_us += jump_s * 1_000_000;
    world.restart(1)
}

#[test]
fn a_clock_that_was_set_back_gives_a_question_no_more_time() {
    let (mut world, one) = asked(json!({ "timeout_seconds": 5 }));
    let outputs = restart_with_jump(&mut world, -3600);
    let one = again(&one, &outputs);
    world.reconnect(&one, None);
    assert_eq!(resolution(&world.pass_s(6)), Some(AskOutcome::Reject), "five seconds were left");
    assert!(!replied(&world.confirm(&one, "rpl_1", "accept")));
}

#[test]
fn no_time_is_won_by_one_stop_after_another() {
    let (mut world, one) = asked(json!({ "timeout_seconds": 40 }));
    let mut outputs = Vec::new();
    for _ in 0..4 {
        outputs = restart_with_jump(&mut world, -3600);
        assert_eq!(resolution(&outputs), None, "{outputs:?}");
        let one = again(&one, &outputs);
        world.reconnect(&one, None);
        world.pass_s(8);
        // Something is recorded, so that it is known how late it was.
        world.say("progress.updated", json!({ "progress": { "percent": 1 } }));
    }
    let left = outputs.iter().find_map(|output| match output {
        Output::Time(record) => Some(record.ends_unix_us? - record.stored_unix_us?),
        _ => None,
    });
    assert!(left.is_some_and(|left| left <= 40_000_000 - 3 * 8_000_000), "{left:?}");
}

#[test]
fn a_second_stop_takes_no_time_for_a_clock_that_was_set_back_before_the_first() {
    let (mut world, one) = asked(json!({ "timeout_seconds": 40 }));
    restart_with_jump(&mut world, -3600);
    let outputs = world.restart(1);
    assert_eq!(resolution(&outputs), None, "nothing says that its time is over: {outputs:?}");
    let one = again(&one, &outputs);
    world.reconnect(&one, None);
    assert_eq!(resolution(&world.pass_s(30)), None);
    assert_eq!(resolution(&world.pass_s(11)), Some(AskOutcome::Reject));
}

#[test]
fn a_clock_that_was_set_ahead_ends_a_question_and_accepts_nothing() {
    let (mut world, _) = asked(json!({ "timeout_seconds": 60 }));
    let outputs = restart_with_jump(&mut world, 40 * 24 * 3600);
    assert_eq!(resolution(&outputs), Some(AskOutcome::Reject));
}

#[test]
fn what_is_lost_is_never_taken_for_a_yes() {
    let (mut world, _) = asked(json!({
        "timeout_seconds": 5, "irreversible": false, "reversibility": "reversible",
        "risk_level": "low", "default_decision": "accept",
    }));
    world.stored.is_incomplete = true;
    let outputs = world.restart(60);
    assert_eq!(resolution(&outputs), Some(AskOutcome::Reject), "its default is accept");
}

/// Whoever restarts the hub every night has it end the sessions of agents that are gone all the same.
#[test]
fn one_restart_after_another_does_not_keep_a_session_whose_agent_is_gone() {
    const HOUR_S: u64 = 3600;
    let after_us = 24 * HOUR_S * 1_000_000;
    let mut world = World::started();
    let silent = |world: &World| world.engine.silent_sessions(world.now, after_us).len();
    for _ in 0..2 {
        world.restart(13 * HOUR_S);
        assert_eq!(silent(&world), 0, "its agent has time to return");
    }
    world.pass_s(599);
    assert_eq!(silent(&world), 0);
    world.pass_s(1);
    assert_eq!(silent(&world), 1);
    world.say("state.changed", json!({ "from_state": "idle", "to_state": "thinking" }));
    assert_eq!(silent(&world), 0);
}

fn is_complete(outputs: &[Output]) -> bool {
    outputs.iter().any(|it| matches!(it, Output::Resumed { is_complete: true, .. }))
}

/// Someone who listens as people do, with a pace.
fn paced() -> Json {
    limited(5, json!({ "pace_wpm": 180, "coalesce_boundaries": ["sentence"] }))
}

/// Someone with a rate that has just been sent everything, and the event that came last.
fn caught_up(world: &mut World) -> (Subscriber, Option<aaep::EventId>) {
    let one = world.listen(1, limited(2, json!({})));
    world.say("tool.invoked", tool(1));
    world.pass_s(9);
    let last = last_id(&world.take(&one));
    assert!(last.is_some());
    (one, last)
}

#[test]
fn after_an_orderly_stop_a_subscriber_that_was_sent_everything_misses_nothing() {
    for wishes in [json!({}), everything(), paced(), limited(1, json!({}))] {
        let mut world = World::started();
        let early = world.listen(1, wishes.clone());
        // With a rate or a pace, the critical event overtakes some of those before it.
        (1..5).for_each(|it| drop(world.say("tool.invoked", tool(it))));
        world.say("handoff.requested", handoff());
        world.say("progress.updated", json!({ "progress": { "percent": 7 } }));
        world.pass_s(9);
        // This one is sent a summary and nothing else.
        let late = world.listen(2, wishes.clone());
        world.pass_s(9);
        let last = [&early, &late].map(|it| last_id(&world.take(it)));
        assert!(last.iter().all(Option::is_some));
        // Where they are stays known, however often the hub stops.
        for number in 5..7 {
            let outputs = world.stop_and_start(2);
            let both = [&early, &late].map(|it| again(it, &outputs));
            for (subscriber, last) in both.iter().zip(&last) {
                assert!(is_complete(&world.reconnect(subscriber, last.as_ref())), "{wishes}");
                world.pass_s(9);
                assert_eq!(kinds(world.heard(subscriber)), Vec::<&str>::new(), "{wishes}");
            }
            if number == 6 {
                world.say("tool.invoked", tool(number));
                world.pass_s(9);
                for it in &both {
                    assert_eq!(kinds(world.heard(it)), ["tool.invoked"]);
                }
            }
        }
    }
}

#[test]
fn after_an_orderly_stop_a_sentence_that_was_begun_is_told_whole() {
    let mut world = World::started();
    let one = world.listen(1, paced());
    world.chunk("One. Tw", 0, false);
    world.pass_s(9);
    let heard = world.take(&one);
    assert_eq!(text_of(&heard, None).trim(), "One.");
    let outputs = world.stop_and_start(2);
    let one = again(&one, &outputs);
    assert!(is_complete(&world.reconnect(&one, last_id(&heard).as_ref())));
    world.chunk("o.", 7, true);
    world.pass_s(9);
    let text: String = world.heard(&one).iter().map(|it| it.text("chunk")).collect();
    assert_eq!(text.trim(), "Two.");
}

#[test]
fn after_an_orderly_stop_a_subscriber_that_was_sent_nothing_misses_nothing() {
    let mut world = World::new();
    let one = world.listen(1, paced());
    let outputs = world.stop_and_start(2);
    let one = again(&one, &outputs);
    assert!(is_complete(&world.reconnect(&one, None)));
    world.start(SESSION);
    assert_eq!(kinds(world.heard(&one)), ["session.started"]);
}

#[test]
fn after_an_orderly_stop_what_came_while_nobody_was_connected_is_told() {
    let mut world = World::started();
    let (one, last) = caught_up(&mut world);
    let outputs = world.stop_and_start(2);
    let one = again(&one, &outputs);
    world.say("tool.invoked", tool(2));
    assert!(is_complete(&world.reconnect(&one, last.as_ref())));
    assert_eq!(kinds(world.heard(&one)), ["tool.invoked"]);
}

#[test]
fn after_an_orderly_stop_a_subscriber_that_lost_its_last_event_hears_that_something_may_be_missing()
{
    let mut world = World::started();
    let (one, earlier) = caught_up(&mut world);
    world.say("tool.invoked", tool(2));
    world.pass_s(9);
    let outputs = world.stop_and_start(2);
    let one = again(&one, &outputs);
    assert!(!is_complete(&world.reconnect(&one, earlier.as_ref())));
    assert!(world.heard(&one).first().is_some_and(Heard::has_gap));
}

#[test]
fn after_an_orderly_stop_a_subscriber_for_which_something_was_held_hears_that_it_may_be_missing() {
    let mut world = World::started();
    let (one, _) = caught_up(&mut world);
    (2..9).for_each(|it| drop(world.say("tool.invoked", tool(it))));
    let last = last_id(&world.take(&one));
    let outputs = world.stop_and_start(2);
    let one = again(&one, &outputs);
    assert!(!is_complete(&world.reconnect(&one, last.as_ref())));
    assert!(world.heard(&one).first().is_some_and(Heard::has_gap));
}

#[test]
fn a_kill_after_an_orderly_stop_leaves_nothing_to_rely_on() {
    let mut world = World::started();
    let (one, last) = caught_up(&mut world);
    let outputs = world.stop_and_start(2);
    world.reconnect(&again(&one, &outputs), last.as_ref());
    world.say("tool.invoked", tool(2));
    world.say(
        "tool.completed",
        json!({ "tool": "list", "tool_call_id": "call_2",
        "status": "success", "summary_normal": "Listed." }),
    );
    let outputs = world.restart(2);
    let one = again(&one, &outputs);
    assert!(!is_complete(&world.reconnect(&one, last.as_ref())));
    assert!(world.heard(&one).first().is_some_and(Heard::has_gap));
}

#[test]
fn what_an_orderly_stop_said_counts_for_nothing_if_something_is_lost() {
    let mut world = World::started();
    let (one, last) = caught_up(&mut world);
    world.handle(aaep_engine::EngineInput::Stop);
    world.stored.is_incomplete = true;
    let outputs = world.restart(2);
    let one = again(&one, &outputs);
    assert!(!is_complete(&world.reconnect(&one, last.as_ref())));
}
