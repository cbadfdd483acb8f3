//! How questions end without a reply, who is told, and who may still answer (§5.8.2, §6.4, §6.7,
//! §6.8, rulings 1, 2, 4, 13, 18 and 19).

#[path = "common/support.rs"]
mod support;

use aaep::extension::{AskOutcome, DecidedBy};
use aaep::reply::Response;
use aaep_engine::{EngineInput, Output, PrincipalNumber};
use serde_json::json;
use support::*;

const REJECTED_BY_TIME: (&str, AskOutcome, DecidedBy) =
    ("rpl_1", AskOutcome::Reject, DecidedBy::Timeout);
const REJECTED_BY_ABSENCE: (&str, AskOutcome, DecidedBy) =
    ("rpl_1", AskOutcome::Reject, DecidedBy::NoListener);
const WITHDRAWN: (&str, AskOutcome, DecidedBy) =
    ("rpl_1", AskOutcome::Withdrawn, DecidedBy::Withdrawn);

fn ask(world: &mut World, more: serde_json::Value) -> Vec<Output> {
    world.say("awaiting.confirmation", confirmation("rpl_1", more))
}

#[test]
fn silence_means_the_default_and_not_before_the_time_is_over() {
    let mut world = World::started();
    world.listen(1, everything());
    ask(&mut world, json!({}));
    assert!(resolved(&world.pass_us(30 * SECOND - 1)).is_empty());
    assert_eq!(resolved(&world.pass_us(1)), [REJECTED_BY_TIME]);
    assert!(resolved(&world.pass_s(100)).is_empty(), "only once");
}

#[test]
fn whatever_passes_a_rate_or_a_filter_says_that_it_is_critical() {
    let mut world = World::started();
    let slow = world.listen(1, limited(1, json!({})));
    let filtered =
        world.listen(2, json!({ "event_filters": { "include": ["aaep:agent.output.*"] } }));
    ask(&mut world, json!({}));
    world.confirm(&slow, "rpl_1", "reject");
    for subscriber in [&slow, &filtered] {
        let notice =
            world.heard(subscriber).iter().find(|it| it.has_resolution()).expect("a notice");
        assert_eq!(notice.text("urgency"), "critical");
        assert!(notice.is_critical);
    }
    // Whoever counts by urgency, as §5.3.1.1 has it, finds no more than the rate.
    let normal = world.heard(&slow).iter().filter(|it| it.text("urgency") != "critical").count();
    assert!(normal <= 1, "{:?}", kinds(world.heard(&slow)));
}

#[test]
fn withdrawing_what_is_not_open_or_not_ones_own_is_answered_and_changes_nothing() {
    let mut world = World::started();
    world.listen(1, everything());
    ask(&mut world, json!({}));
    let no_such = |principal: u64, text: &str| {
        vec![Output::NoSuchAsk { principal: PrincipalNumber(principal), reply_token: token(text) }]
    };
    for (agent, text) in [(9, "rpl_1"), (AGENT, "rpl_never"), (9, "rpl_never")] {
        let outputs = world.handle(EngineInput::Withdraw {
            principal: PrincipalNumber(agent),
            reply_token: token(text),
        });
        assert_eq!(outputs, no_such(agent, text), "the same answer whatever the reason");
    }
    assert_eq!(world.engine.open_asks(), 1);
    let outputs = world.handle(EngineInput::Withdraw {
        principal: PrincipalNumber(AGENT),
        reply_token: token("rpl_1"),
    });
    assert_eq!(resolved(&outputs), [WITHDRAWN]);
    let again = world.handle(EngineInput::Withdraw {
        principal: PrincipalNumber(AGENT),
        reply_token: token("rpl_1"),
    });
    assert_eq!(again, no_such(AGENT, "rpl_1"));
}

#[test]
fn a_wall_clock_that_jumps_neither_shortens_nor_prolongs_a_question() {
    for jump_us in [-86_400_000_000, 86_400_000_000] {
        let mut world = World::started();
        let one = world.listen(1, everything());
        ask(&mut world, json!({}));
        world.pass_s(10);
        world.now.unix_us += jump_us;
        assert!(resolved(&world.pass_us(20 * SECOND - 1)).is_empty());
        assert_eq!(resolved(&world.pass_us(1)), [REJECTED_BY_TIME]);
        let stamps: Vec<i64> =
            world.heard(&one).iter().map(|it| it.event.envelope.timestamp.unix_us()).collect();
        assert!(stamps.is_sorted(), "time goes back for subscribers: {stamps:?}");
    }
}

#[test]
fn a_question_without_a_default_answer_ends_unanswered() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.say("awaiting.clarification", clarification("rpl_1", json!({})));
    let outputs = world.pass_s(30);
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Unanswered, DecidedBy::Timeout)]);
    let told = notices(world.heard(&one));
    assert_eq!(told, [("rpl_1".into(), "unanswered".into(), "timeout".into())]);
}

#[test]
fn a_long_wait_is_counted_down_at_half_and_at_a_tenth() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let asked_us = world.now.monotonic_us;
    ask(&mut world, json!({ "timeout_seconds": 100 }));
    world.pass_s(200);
    let told: Vec<(u64, u64)> = world
        .heard(&one)
        .iter()
        .filter(|it| it.kind() == "progress.updated")
        .map(|it| ((it.at_us - asked_us) / SECOND, it.json["eta_ms"].as_u64().unwrap_or(0) / 1000))
        .collect();
    assert_eq!(told, [(50, 50), (90, 10)]);
}

#[test]
fn a_wait_of_a_minute_or_less_is_not_counted_down() {
    for seconds in [30, 60] {
        let mut world = World::started();
        let one = world.listen(1, everything());
        ask(&mut world, json!({ "timeout_seconds": seconds }));
        world.pass_s(90);
        assert!(!kinds(world.heard(&one)).contains(&"progress.updated"), "{seconds}");
    }
}

#[test]
fn a_countdown_ends_with_its_question() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    ask(&mut world, json!({ "timeout_seconds": 100 }));
    world.pass_s(60);
    world.confirm(&one, "rpl_1", "accept");
    world.take(&one);
    world.pass_s(100);
    assert!(world.heard(&one).is_empty());
}

#[test]
fn a_late_tick_tells_how_much_time_is_really_left_once() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    ask(&mut world, json!({ "timeout_seconds": 100 }));
    world.take(&one);
    world.jump_us(95 * SECOND);
    world.handle(EngineInput::Tick);
    let left: Vec<_> = world.heard(&one).iter().map(|it| it.json["eta_ms"].as_u64()).collect();
    assert!(left == [Some(5000)] || left.is_empty(), "{left:?}");
}

#[test]
fn with_nobody_able_to_answer_the_default_applies_at_once_and_the_audit_log_says_so() {
    let mut world = World::started();
    let deaf = world.listen(1, json!({}));
    let outputs = ask(&mut world, json!({}));
    assert_eq!(resolved(&outputs), [REJECTED_BY_ABSENCE]);
    let asked = |it: &Output| matches!(it, Output::Asked { told: 0, .. });
    assert!(outputs.iter().any(asked), "{outputs:?}");
    let settled =
        |it: &Output| matches!(it, Output::Settled { decided_by: DecidedBy::NoListener, .. });
    assert!(outputs.iter().any(settled), "{outputs:?}");
    let told = notices(world.heard(&deaf));
    assert_eq!(told, [("rpl_1".into(), "reject".into(), "no_listener".into())]);
}

#[test]
fn with_nobody_able_to_answer_a_clarification_its_default_response_applies_at_once() {
    let mut world = World::started();
    world.listen(1, json!({ "supports_confirmation_reply": true }));
    let fields = clarification("rpl_1", json!({ "default_response": "none" }));
    let outputs = world.say("awaiting.clarification", fields);
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Answered, DecidedBy::NoListener)]);
    let is_default = |it: &Output| matches!(it, Output::Settled { response: Some(Response::Text(text)), .. } if text == "none");
    assert!(outputs.iter().any(is_default), "{outputs:?}");
}

#[test]
fn when_the_last_subscriber_able_to_answer_closes_the_default_applies_at_once() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let two = world.listen(2, everything());
    world.listen(3, json!({}));
    ask(&mut world, json!({}));
    assert!(resolved(&world.close(&one)).is_empty(), "one is left");
    assert_eq!(resolved(&world.close(&two)), [REJECTED_BY_ABSENCE]);
}

#[test]
fn when_the_last_subscriber_able_to_answer_gives_up_replying_the_default_applies_at_once() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    ask(&mut world, json!({}));
    let outputs = world.renegotiate(&one, json!({ "supports_confirmation_reply": false }));
    assert_eq!(resolved(&outputs), [REJECTED_BY_ABSENCE]);
}

#[test]
fn when_the_last_subscriber_able_to_answer_is_cut_off_the_default_waits_for_the_grace() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    ask(&mut world, json!({}));
    assert!(resolved(&world.disconnect(&one)).is_empty());
    assert!(resolved(&world.pass_us(10 * SECOND - 1)).is_empty());
    assert_eq!(resolved(&world.pass_us(1)), [REJECTED_BY_ABSENCE]);
}

#[test]
fn the_grace_never_goes_beyond_the_question() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    ask(&mut world, json!({ "timeout_seconds": 12 }));
    world.pass_s(5);
    world.disconnect(&one);
    assert!(resolved(&world.pass_us(7 * SECOND - 1)).is_empty());
    assert_eq!(resolved(&world.pass_us(1)), [REJECTED_BY_TIME]);
}

#[test]
fn a_subscriber_that_reconnects_within_the_grace_still_answers() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    ask(&mut world, json!({}));
    let last = world.heard(&one).last().map(|it| it.id().clone());
    world.disconnect(&one);
    world.pass_s(9);
    assert!(resolved(&world.reconnect(&one, last.as_ref())).is_empty());
    assert!(resolved(&world.pass_s(15)).is_empty(), "the grace is over, the question is not");
    assert!(replied(&world.confirm(&one, "rpl_1", "accept")));
}

#[test]
fn the_grace_begins_again_with_each_cut() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    ask(&mut world, json!({}));
    let last = world.heard(&one).last().map(|it| it.id().clone());
    world.disconnect(&one);
    world.pass_s(6);
    world.reconnect(&one, last.as_ref());
    world.disconnect(&one);
    assert!(resolved(&world.pass_us(10 * SECOND - 1)).is_empty());
    assert_eq!(resolved(&world.pass_us(1)), [REJECTED_BY_ABSENCE]);
}

#[test]
fn a_question_is_withdrawn_by_its_agent_and_by_nobody_else() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    ask(&mut world, json!({}));
    let stranger = world.handle(EngineInput::Withdraw {
        principal: PrincipalNumber(9),
        reply_token: token("rpl_1"),
    });
    assert!(resolved(&stranger).is_empty());
    let outputs = world.handle(EngineInput::Withdraw {
        principal: PrincipalNumber(AGENT),
        reply_token: token("rpl_1"),
    });
    assert_eq!(resolved(&outputs), [WITHDRAWN]);
    assert!(!replied(&world.confirm(&one, "rpl_1", "accept")), "a withdrawn question takes none");
    let told = notices(world.heard(&one));
    assert_eq!(told, [("rpl_1".into(), "withdrawn".into(), "withdrawn".into())]);
    let tool = world.offer_event(SESSION, "tool.invoked", irreversible_tool());
    assert!(refusal(&tool).is_some());
}

#[test]
fn leaving_the_waiting_state_withdraws_the_question() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.change("idle", "thinking");
    ask(&mut world, json!({}));
    let outputs = world.change("awaiting_input", "deciding");
    assert_eq!(resolved(&outputs), [WITHDRAWN]);
    assert!(!replied(&world.confirm(&one, "rpl_1", "accept")));
    let chain: Vec<(&str, &str)> = world
        .heard(&one)
        .iter()
        .filter(|it| it.kind() == "state.changed")
        .map(|it| (it.text("from_state"), it.text("to_state")))
        .skip(1)
        .collect();
    assert!(chain.windows(2).all(|pair| pair[0].1 == pair[1].0), "{chain:?}");
    assert_eq!(chain.last().map(|it| it.1), Some("deciding"));
}

#[test]
fn an_agent_that_did_not_know_it_waits_also_withdraws_by_going_on() {
    let mut world = World::started();
    world.listen(1, everything());
    world.change("idle", "thinking");
    ask(&mut world, json!({}));
    assert_eq!(resolved(&world.change("thinking", "deciding")), [WITHDRAWN]);
}

#[test]
fn the_end_of_a_session_withdraws_its_questions_and_no_others() {
    for end in ["session.cancelled", "session.errored", "session.completed"] {
        let mut world = World::started();
        let one = world.listen(1, everything());
        world.start("sess_2");
        ask(&mut world, json!({}));
        world.say_in("sess_2", "awaiting.confirmation", confirmation("rpl_2", json!({})));
        let mut fields = json!({ "summary_normal": "It is over." });
        match end {
            "session.cancelled" => fields["cancelled_by"] = json!("user"),
            "session.errored" => fields["error_category"] = json!("unknown"),
            _ => {}
        }
        let outputs = world.say(end, fields);
        assert_eq!(resolved(&outputs), [WITHDRAWN], "{end}");
        let of_session: Vec<_> =
            world.heard(&one).iter().filter(|it| it.text("session_id") == SESSION).collect();
        assert_eq!(of_session.last().map(|it| it.kind()), Some(end), "the end comes last");
        assert!(replied(&world.confirm(&one, "rpl_2", "accept")));
    }
}

#[test]
fn every_subscriber_told_of_an_ask_hears_how_it_ended_past_filter_and_rate() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let filtered = json!({ "event_filters": { "include": ["aaep:agent.tool.*"] } });
    let silent = world.listen(2, filtered.clone());
    let slow = world.listen(3, limited(1, json!({})));
    let mut both = limited(1, filtered);
    both["supports_confirmation_reply"] = json!(false);
    let neither = world.listen(4, both);
    world.change("idle", "thinking");
    for percent in 1..=5 {
        world.say("progress.updated", json!({ "progress": { "percent": percent } }));
    }
    ask(&mut world, json!({}));
    let asked_us = world.now.monotonic_us;
    world.confirm(&one, "rpl_1", "reject");
    for subscriber in [&one, &silent, &slow, &neither] {
        let heard = world.heard(subscriber);
        let told = notices(heard);
        assert_eq!(told, [("rpl_1".into(), "reject".into(), "reply".into())]);
        let notice = heard.iter().find(|it| it.has_resolution()).expect("a notice");
        assert_eq!(notice.at_us, asked_us, "at once");
        assert_eq!(notice.text("from_state"), "awaiting_input");
        assert_ne!(notice.text("to_state"), "awaiting_input");
        assert!(notice.text("summary_normal").contains("Delete the folder photos."));
    }
}

#[test]
fn each_outcome_is_told_by_its_name() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    ask(&mut world, json!({}));
    world.confirm(&one, "rpl_1", "accept");
    let fields = clarification("rpl_2", json!({ "default_response": "all" }));
    world.say("awaiting.clarification", fields);
    world.pass_s(30);
    world.say("awaiting.clarification", clarification("rpl_3", json!({})));
    world.clarify(&one, "rpl_3", json!("that one"));
    let told = notices(world.heard(&one));
    let told: Vec<_> = told.iter().map(|(_, outcome, by)| (&**outcome, &**by)).collect();
    assert_eq!(told, [("accept", "reply"), ("answered", "timeout"), ("answered", "reply")]);
}

#[test]
fn the_agent_may_go_on_from_the_state_that_it_believes_in_and_subscribers_get_one_chain() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.take(&one);
    world.change("idle", "thinking");
    ask(&mut world, json!({}));
    world.confirm(&one, "rpl_1", "reject");
    world.change("thinking", "writing_output");
    let chain: Vec<(String, String)> = world
        .heard(&one)
        .iter()
        .filter(|it| it.kind() == "state.changed")
        .map(|it| (it.text("from_state").to_owned(), it.text("to_state").to_owned()))
        .collect();
    assert!(chain.windows(2).all(|pair| pair[0].1 == pair[1].0), "{chain:?}");
}

#[test]
fn the_waiting_state_is_announced_at_or_before_the_question_and_left_after_it() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.take(&one);
    world.change("idle", "thinking");
    ask(&mut world, json!({}));
    world.confirm(&one, "rpl_1", "accept");
    let heard = world.heard(&one);
    assert_eq!(
        kinds(heard),
        ["state.changed", "state.changed", "awaiting.confirmation", "state.changed"]
    );
    assert_eq!(heard[1].text("to_state"), "awaiting_input");
    assert_eq!(heard[3].text("from_state"), "awaiting_input");
}

#[test]
fn nobody_hears_that_the_agent_waits_after_hearing_that_it_no_longer_does() {
    let mut world = World::started();
    let slow = world.listen(1, limited(1, json!({})));
    world.change("idle", "thinking");
    ask(&mut world, json!({}));
    world.confirm(&slow, "rpl_1", "accept");
    world.pass_s(10);
    let states: Vec<&str> = world
        .heard(&slow)
        .iter()
        .filter(|it| it.kind() == "state.changed")
        .map(|it| it.text("to_state"))
        .collect();
    assert_eq!(states.last(), Some(&"calling_tool"), "{states:?}");
}

#[test]
fn two_questions_of_one_agent_are_settled_each_for_itself() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    ask(&mut world, json!({}));
    world.say("awaiting.clarification", clarification("rpl_2", json!({})));
    world.confirm(&one, "rpl_1", "reject");
    assert_eq!(world.engine.open_asks(), 1);
    let notice = world.heard(&one).last().expect("a notice");
    assert_eq!(notice.text("to_state"), "awaiting_input", "it still waits for the other");
    assert!(replied(&world.clarify(&one, "rpl_2", json!("this"))));
    let notice = world.heard(&one).last().expect("a notice");
    assert_ne!(notice.text("to_state"), "awaiting_input");
}
