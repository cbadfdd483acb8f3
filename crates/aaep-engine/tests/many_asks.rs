//! Many questions at a time: each is due at its own moment, whatever becomes of the others (§6.4).

#[path = "common/support.rs"]
mod support;

use std::collections::BTreeMap;

use aaep::extension::{AskOutcome, DecidedBy};
use aaep_engine::{EngineInput, Output, Refusal};
use serde_json::json;
use support::*;

/// A question of a session, about an action of its own.
fn ask(world: &mut World, session: &str, token: &str, timeout_seconds: u64) -> Vec<Output> {
    let more = json!({ "action": format!("Delete {token}."), "timeout_seconds": timeout_seconds });
    world.offer_event(session, "awaiting.confirmation", confirmation(token, more))
}

#[test]
fn each_question_is_due_at_its_own_moment_whatever_becomes_of_the_others() {
    let mut world = World::new();
    let person = world.listen(1, everything());
    let mut due: BTreeMap<String, u64> = BTreeMap::new();
    for number in 0..120_u64 {
        let session = format!("sess_{}", number % 7);
        if number < 7 {
            world.start(&session);
        }
        let timeout_seconds = 5 + number * 37 % 50;
        let token = format!("rpl_{number}");
        assert_eq!(refusal(&ask(&mut world, &session, &token, timeout_seconds)), None);
        due.insert(token, world.now.monotonic_us + timeout_seconds * SECOND);
        assert_eq!(world.engine.deadline(), due.values().min().copied());
        if number % 3 == 0 {
            world.jump_us(SECOND / 7);
            let token = format!("rpl_{}", number / 2);
            let counted = replied(&world.confirm(&person, &token, "reject"));
            assert_eq!(counted, due.remove(&token).is_some(), "{token}");
            assert_eq!(world.engine.open_asks(), due.len());
            assert_eq!(world.engine.deadline(), due.values().min().copied());
        }
    }
    // One whole session ends: only its questions are withdrawn.
    let outputs = world.fail("sess_3");
    let withdrawn: Vec<&str> = resolved(&outputs).iter().map(|(token, ..)| *token).collect();
    assert!(withdrawn.len() > 5, "{withdrawn:?}");
    for token in withdrawn {
        assert!(due.remove(token).is_some(), "{token} was not open");
    }
    assert_eq!(world.engine.deadline(), due.values().min().copied());
    while let Some(at) = world.engine.deadline() {
        assert_eq!(Some(at), due.values().min().copied());
        world.jump_us(at - world.now.monotonic_us);
        let outputs = world.handle(EngineInput::Tick);
        let over: Vec<_> = resolved(&outputs);
        assert!(!over.is_empty());
        for (token, resolution, by) in over {
            assert_eq!(due.remove(token), Some(at), "{token}");
            assert_eq!((resolution, by), (AskOutcome::Reject, DecidedBy::Timeout));
        }
    }
    assert!(due.is_empty(), "{due:?}");
}

#[test]
fn a_long_countdown_and_short_questions_do_not_hide_each_other() {
    let mut world = World::started();
    let person = world.listen(1, everything());
    ask(&mut world, SESSION, "rpl_long", 100);
    ask(&mut world, SESSION, "rpl_short", 20);
    let asked_us = world.now.monotonic_us;
    let mut moments = Vec::new();
    while let Some(at) = world.engine.deadline() {
        moments.push((at - asked_us) / SECOND);
        world.jump_us(at - world.now.monotonic_us);
        world.handle(EngineInput::Tick);
    }
    assert_eq!(moments, [20, 50, 90, 100]);
    let told = world.heard(&person).iter().filter(|it| it.kind() == "progress.updated").count();
    assert_eq!(told, 2);
}

#[test]
fn the_same_action_waits_once_in_a_session_and_may_wait_in_another() {
    let mut world = World::started();
    world.start("sess_2");
    world.listen(1, everything());
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    let again =
        world.offer_event(SESSION, "awaiting.confirmation", confirmation("rpl_2", json!({})));
    assert_eq!(refusal(&again), Some(&Refusal::AlreadyAsked));
    world.say_in("sess_2", "awaiting.confirmation", confirmation("rpl_2", json!({})));
}

/// The tokens of the questions that a subscriber has got.
fn asked(world: &World, person: &Subscriber) -> Vec<String> {
    let heard = world.heard(person);
    let asked = heard.iter().filter(|it| it.kind() == "awaiting.confirmation");
    asked.map(|it| it.text("reply_token").to_owned()).collect()
}

#[test]
fn a_late_subscriber_gets_pending_asks_in_batches_the_oldest_first() {
    let mut world = World::started();
    let first = world.listen(1, everything());
    let tokens: Vec<String> = (0..150).map(|number| format!("rpl_{number}")).collect();
    for token in &tokens {
        assert_eq!(refusal(&ask(&mut world, SESSION, token, 300)), None);
    }
    let late = world.listen(2, everything());
    assert_eq!(asked(&world, &late), tokens[..64], "as much as goes at a time");
    // What was not sent yet cannot have been answered (ruling 14), and nothing is given up meanwhile.
    assert!(!replied(&world.confirm(&late, "rpl_149", "accept")));
    assert!(replied(&world.confirm(&late, "rpl_63", "reject")));
    world.close(&first);
    assert_eq!(world.engine.open_asks(), 149);
    world.pass_us(1);
    assert_eq!(asked(&world, &late), tokens);
    assert!(replied(&world.confirm(&late, "rpl_149", "reject")));
}

#[test]
fn a_question_stays_open_while_one_asked_subscriber_is_connected() {
    let mut world = World::started();
    let (one, other) = (world.listen(1, everything()), world.listen(2, everything()));
    ask(&mut world, SESSION, "rpl_1", 300);
    let third = world.listen(3, everything());
    ask(&mut world, SESSION, "rpl_2", 300);
    world.close(&one);
    world.handle(EngineInput::Disconnect { subscriber: third.key });
    assert_eq!(world.engine.open_asks(), 2);
    assert!(resolved(&world.close(&other)).is_empty(), "one is just away");
    let over = world.pass_s(11);
    let by: Vec<_> = resolved(&over).into_iter().map(|(token, _, by)| (token, by)).collect();
    let (no_listener, again) = (DecidedBy::NoListener, DecidedBy::NoListener);
    assert_eq!(by, [("rpl_1", no_listener), ("rpl_2", again)]);
}

/// How many asks are looked at when a subscriber that may hear all of them joins and leaves again, while others
/// listen too.
fn looked_at(asks: u64, others: u64) -> u64 {
    let mut world = World::new();
    for key in 0..others {
        world.listen(1 + key, everything());
    }
    for number in 0..asks {
        let (principal, session) = (1000 + number % 16, format!("sess_{}", number % 16));
        if number < 16 {
            let fields = json!({ "summary_normal": "Begins." });
            let start = World::draft(&session, "session.started", fields);
            world.publish_tagged(principal, "loud", start);
        }
        let more = json!({ "action": format!("Delete {number}."), "timeout_seconds": 300 });
        let ask = confirmation(&format!("rpl_{number}"), more);
        let ask = World::draft(&session, "awaiting.confirmation", ask);
        world.publish_tagged(principal, "loud", ask);
    }
    assert_eq!(world.engine.open_asks() as u64, asks);
    let before = world.engine.looked_at().0;
    let late = world.listen(900, everything());
    world.close(&late);
    assert_eq!(world.engine.open_asks() as u64, asks);
    world.engine.looked_at().0 - before
}

#[test]
fn joining_and_leaving_costs_a_few_looks_at_each_ask_that_may_be_heard_and_no_more_for_others() {
    let few = looked_at(64, 1);
    assert!((64..=4 * 64).contains(&few), "{few}");
    assert_eq!(looked_at(64, 3), few, "others cost nothing");
    assert_eq!(looked_at(640, 1), 10 * few, "and it does not grow faster than the asks");
}
