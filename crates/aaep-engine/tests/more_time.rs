//! More time to answer (§6.4.2, `docs/extension.md`): the clock from "presented", extending, pausing.

#[path = "common/support.rs"]
mod support;

use aaep::SubscriptionId;
use aaep::extension::{AskOutcome, Deadline, DecidedBy};
use aaep_engine::{Audit, EngineInput, Output, PrincipalNumber, ReplyRefusal};
use serde_json::{Value as Json, json};
use support::*;

const BY_TIME: (&str, AskOutcome, DecidedBy) = ("rpl_1", AskOutcome::Reject, DecidedBy::Timeout);

/// Someone who wants the time to wait for presentation, and to ask for more of it.
fn patient() -> Json {
    let mut wishes = everything();
    merge(&mut wishes, json!({ "agentvoice": { "ask_clock": "presented", "extend": true } }));
    wishes
}

/// Asks, with the agent's maximum if there is one.
fn ask(world: &mut World, timeout_seconds: u64, most_seconds: Option<u64>) -> Vec<Output> {
    let mut fields = confirmation("rpl_1", json!({ "timeout_seconds": timeout_seconds }));
    if let Some(most_seconds) = most_seconds {
        merge(
            &mut fields,
            json!({
                "@context": [aaep::CORE_CONTEXT, aaep::extension::CONTEXT],
                "extensions": { "agentvoice": { "max_timeout_seconds": most_seconds } },
            }),
        );
    }
    world.say("awaiting.confirmation", fields)
}

fn presented(who: &Subscriber) -> EngineInput {
    EngineInput::Presented {
        principal: PrincipalNumber(who.principal),
        subscription_id: who.id.clone(),
        reply_token: token("rpl_1"),
    }
}

fn extend(who: &Subscriber, by_seconds: u64) -> EngineInput {
    let (principal, subscription_id) = (who.principal, who.id.clone());
    EngineInput::Extend {
        principal: PrincipalNumber(principal),
        subscription_id,
        reply_token: token("rpl_1"),
        by_seconds,
    }
}

fn pause(who: &Subscriber) -> EngineInput {
    let (principal, subscription_id) = (who.principal, who.id.clone());
    EngineInput::Pause {
        principal: PrincipalNumber(principal),
        subscription_id,
        reply_token: token("rpl_1"),
    }
}

fn resume(who: &Subscriber) -> EngineInput {
    let (principal, subscription_id) = (who.principal, who.id.clone());
    EngineInput::Resume {
        principal: PrincipalNumber(principal),
        subscription_id,
        reply_token: token("rpl_1"),
    }
}

/// What the audit log has of a wish: how much time is left, or why it did not count. The sender
/// learns the same yes or no, and for a no nobody hears anything.
fn wished(outputs: &[Output]) -> Result<u64, ReplyRefusal> {
    let answers: Vec<bool> = outputs
        .iter()
        .filter_map(|it| match it {
            Output::TimeReplied { is_accepted } => Some(*is_accepted),
            _ => None,
        })
        .collect();
    let audited = outputs.iter().find_map(|it| match it {
        Output::Audit(
            Audit::Presented { left_us, refused, .. }
            | Audit::Extended { left_us, refused, .. }
            | Audit::Paused { left_us, refused, .. }
            | Audit::Resumed { left_us, refused, .. },
        ) => Some(refused.map_or(Ok(left_us / SECOND), Err)),
        _ => None,
    });
    let audited = audited.expect("it is audited");
    assert_eq!(answers, [audited.is_ok()]);
    if audited.is_err() {
        assert_eq!(outputs.len(), 2, "{outputs:?}");
    }
    audited
}

/// The deadlines that someone heard of: seconds from when it was told, and whether it is a pause.
fn deadlines(world: &World, who: &Subscriber) -> Vec<(i64, bool)> {
    let told = world.heard(who).iter().filter_map(|it| {
        let Deadline { reply_token, at, paused, .. } = it.delivery()?.deadline?;
        assert_eq!((reply_token.as_str(), it.kind()), ("rpl_1", "progress.updated"));
        let left_us = at.unix_us() - it.event.envelope.timestamp.unix_us();
        assert_eq!(it.json["eta_ms"], json!(left_us / 1000));
        Some((left_us / 1_000_000, paused))
    });
    told.collect()
}

/// After how many seconds from now the question is settled, and how.
fn ends_after(world: &mut World) -> (u64, Vec<(String, AskOutcome, DecidedBy)>) {
    let began_us = world.now.monotonic_us;
    while let Some(at) = world.engine.deadline().filter(|_| world.engine.open_asks() > 0) {
        world.jump_us(at - world.now.monotonic_us);
        let outputs = world.handle(EngineInput::Tick);
        let settled: Vec<_> = resolved(&outputs)
            .into_iter()
            .map(|(token, how, by)| (token.to_owned(), how, by))
            .collect();
        if !settled.is_empty() {
            return ((at - began_us) / SECOND, settled);
        }
    }
    panic!("the question never ends")
}

fn by_time() -> Vec<(String, AskOutcome, DecidedBy)> {
    vec![(BY_TIME.0.to_owned(), BY_TIME.1, BY_TIME.2)]
}

#[test]
fn the_time_to_answer_starts_when_the_question_was_presented() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    ask(&mut world, 30, Some(100));
    assert!(resolved(&world.pass_s(40)).is_empty(), "the ordinary timeout has passed");
    assert_eq!(wished(&world.handle(presented(&one))), Ok(30));
    assert_eq!(deadlines(&world, &one), [(30, false)]);
    assert!(replied(&world.confirm(&one, "rpl_1", "reject")));
    let mut world = World::started();
    let one = world.listen(1, patient());
    ask(&mut world, 30, Some(100));
    world.pass_s(40);
    world.handle(presented(&one));
    assert_eq!(ends_after(&mut world), (30, by_time()));
}

#[test]
fn nothing_waits_beyond_the_agents_maximum() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    ask(&mut world, 30, Some(50));
    world.pass_s(40);
    assert_eq!(wished(&world.handle(presented(&one))), Ok(10), "cut to the maximum");
    assert_eq!(ends_after(&mut world), (10, by_time()));
    let mut world = World::started();
    world.listen(1, patient());
    ask(&mut world, 30, Some(50));
    assert_eq!(ends_after(&mut world), (50, by_time()), "never presented");
}

#[test]
fn without_a_maximum_from_the_agent_nothing_changes() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    ask(&mut world, 30, None);
    assert_eq!(wished(&world.handle(presented(&one))), Err(ReplyRefusal::NotNow));
    assert_eq!(wished(&world.handle(extend(&one, 60))), Err(ReplyRefusal::NoMaximum));
    assert_eq!(wished(&world.handle(pause(&one))), Err(ReplyRefusal::NoMaximum));
    assert_eq!(wished(&world.handle(resume(&one))), Err(ReplyRefusal::NotNow));
    assert_eq!(ends_after(&mut world), (30, by_time()));
    assert_eq!(deadlines(&world, &one), []);
}

#[test]
fn one_ordinary_subscriber_means_the_ordinary_clock() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    world.listen(2, everything());
    ask(&mut world, 30, Some(100));
    assert_eq!(wished(&world.handle(presented(&one))), Err(ReplyRefusal::NotNow));
    assert_eq!(ends_after(&mut world), (30, by_time()));
}

#[test]
fn an_ordinary_subscriber_that_comes_starts_the_clock_with_its_full_time() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    ask(&mut world, 30, Some(100));
    world.pass_s(45);
    let two = world.listen(2, everything());
    assert!(kinds(world.heard(&two)).contains(&"awaiting.confirmation"));
    assert_eq!(deadlines(&world, &one), [(30, false)]);
    assert_eq!(ends_after(&mut world), (30, by_time()), "and not at once");
}

#[test]
fn a_subscriber_unable_to_answer_does_not_start_the_clock() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    world.listen(2, json!({}));
    let outputs = world.request(3, false, everything(), None);
    granted(3, &outputs);
    ask(&mut world, 30, Some(100));
    world.pass_s(60);
    assert_eq!(wished(&world.handle(presented(&one))), Ok(30));
}

#[test]
fn an_ordinary_subscriber_that_is_away_counts_when_it_comes_back() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    let two = world.listen(2, everything());
    world.disconnect(&two);
    ask(&mut world, 30, Some(100));
    world.pass_s(35);
    assert_eq!(deadlines(&world, &one), []);
    world.reconnect(&two, None);
    assert_eq!(deadlines(&world, &one), [(30, false)]);
}

#[test]
fn a_subscriber_that_gives_up_the_clock_starts_it() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    ask(&mut world, 30, Some(100));
    world.pass_s(50);
    world.renegotiate(&one, json!({ "agentvoice": { "ask_clock": "asked" } }));
    assert_eq!(ends_after(&mut world), (30, by_time()));
}

#[test]
fn a_question_does_not_wait_for_a_subscriber_that_is_gone() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    ask(&mut world, 30, Some(100));
    world.pass_s(40);
    world.disconnect(&one);
    let (after, settled) = ends_after(&mut world);
    assert_eq!((after, &settled[0].2), (10, &DecidedBy::NoListener));
    let mut world = World::started();
    let one = world.listen(1, patient());
    ask(&mut world, 30, Some(100));
    let outputs = world.close(&one);
    assert_eq!(resolved(&outputs)[0].2, DecidedBy::NoListener);
}

#[test]
fn presenting_counts_once() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    let two = world.listen(2, patient());
    ask(&mut world, 30, Some(300));
    world.pass_s(5);
    assert_eq!(wished(&world.handle(presented(&one))), Ok(30));
    world.pass_s(20);
    for who in [&one, &two] {
        assert_eq!(wished(&world.handle(presented(who))), Err(ReplyRefusal::NotNow));
    }
    assert_eq!(ends_after(&mut world), (10, by_time()));
}

#[test]
fn everyone_hears_of_more_time_and_the_countdown_starts_again() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    let two = world.listen(2, everything());
    ask(&mut world, 30, Some(600));
    world.pass_s(10);
    assert_eq!(wished(&world.handle(extend(&one, 180))), Ok(200));
    for who in [&one, &two] {
        assert_eq!(deadlines(&world, who), [(200, false)]);
        world.take(who);
    }
    assert!(resolved(&world.pass_s(199)).is_empty());
    let left: Vec<u64> = world
        .heard(&two)
        .iter()
        .filter(|it| it.kind() == "progress.updated")
        .filter_map(|it| it.json["eta_ms"].as_u64())
        .collect();
    assert_eq!(left, [100_000, 20_000], "at a half and at a tenth");
    assert_eq!(resolved(&world.pass_s(1)), [BY_TIME]);
}

#[test]
fn more_time_ends_at_the_agents_maximum_and_says_so() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    world.listen(2, everything());
    ask(&mut world, 30, Some(100));
    world.pass_s(10);
    assert_eq!(wished(&world.handle(extend(&one, u64::MAX))), Ok(90), "cut, and no overflow");
    assert_eq!(deadlines(&world, &one), [(90, false)]);
    assert_eq!(wished(&world.handle(extend(&one, 1))), Err(ReplyRefusal::AtMaximum));
    assert_eq!(wished(&world.handle(pause(&one))), Err(ReplyRefusal::AtMaximum));
    assert_eq!(ends_after(&mut world), (90, by_time()));
}

#[test]
fn a_request_for_no_time_at_all_does_not_count() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    ask(&mut world, 30, Some(100));
    assert_eq!(wished(&world.handle(extend(&one, 0))), Err(ReplyRefusal::NotAllowed));
    assert_eq!(deadlines(&world, &one), []);
}

#[test]
fn a_pause_stops_the_time_and_ends_at_the_maximum() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    let two = world.listen(2, everything());
    ask(&mut world, 30, Some(300));
    world.pass_s(10);
    assert_eq!(wished(&world.handle(pause(&one))), Ok(290));
    assert_eq!(wished(&world.handle(pause(&one))), Err(ReplyRefusal::NotNow), "twice");
    assert!(resolved(&world.pass_s(100)).is_empty());
    assert_eq!(wished(&world.handle(resume(&one))), Ok(20));
    assert_eq!(wished(&world.handle(resume(&one))), Err(ReplyRefusal::NotNow), "twice");
    assert_eq!(deadlines(&world, &two), [(290, true), (20, false)]);
    assert_eq!(ends_after(&mut world), (20, by_time()));
    let mut world = World::started();
    let one = world.listen(1, patient());
    ask(&mut world, 30, Some(300));
    world.handle(pause(&one));
    assert_eq!(ends_after(&mut world), (300, by_time()), "nobody lets it go on");
}

#[test]
fn a_paused_question_can_be_answered_and_extended() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    ask(&mut world, 30, Some(100));
    world.handle(pause(&one));
    world.pass_s(20);
    assert_eq!(wished(&world.handle(extend(&one, 1000))), Ok(80));
    assert_eq!(wished(&world.handle(extend(&one, 1))), Err(ReplyRefusal::AtMaximum));
    world.pass_s(20);
    assert_eq!(wished(&world.handle(resume(&one))), Ok(60), "cut to the maximum again");
    assert_eq!(ends_after(&mut world), (60, by_time()));
    let mut world = World::started();
    let one = world.listen(1, patient());
    ask(&mut world, 30, Some(100));
    world.handle(pause(&one));
    world.pass_s(90);
    assert!(replied(&world.confirm(&one, "rpl_1", "reject")));
}

#[test]
fn asking_for_more_time_or_a_pause_counts_as_having_been_presented_the_question() {
    for (wish, after) in
        [(extend as fn(&Subscriber, u64) -> EngineInput, 50), (|who, _| pause(who), 200)]
    {
        let mut world = World::started();
        let one = world.listen(1, patient());
        ask(&mut world, 30, Some(240));
        world.pass_s(40);
        assert_eq!(wished(&world.handle(wish(&one, 20))), Ok(after));
        assert_eq!(wished(&world.handle(presented(&one))), Err(ReplyRefusal::NotNow));
        assert_eq!(ends_after(&mut world).0, after);
    }
}

#[test]
fn nobody_can_keep_everyone_listening_to_changes_of_time() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    ask(&mut world, 30, Some(86_400));
    let mut counted = 0;
    for _ in 0..200 {
        counted += u32::from(wished(&world.handle(extend(&one, 1))).is_ok());
        counted += u32::from(wished(&world.handle(pause(&one))).is_ok());
        // A pause that counted can always be ended.
        let resumed = wished(&world.handle(resume(&one)));
        assert!(resumed.is_ok() || resumed == Err(ReplyRefusal::NotNow));
    }
    assert_eq!(counted, 32);
    assert_eq!(wished(&world.handle(extend(&one, 1))), Err(ReplyRefusal::TooManyChanges));
}

#[test]
fn forged_unasked_and_ungranted_wishes_do_not_count() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    let plain = world.listen(2, everything());
    let mut deaf = patient();
    merge(&mut deaf, json!({ "supports_confirmation_reply": false }));
    let deaf = world.listen(3, deaf);
    let outputs = world.request(4, false, patient(), None);
    let guest = granted(4, &outputs);
    ask(&mut world, 30, Some(300));
    let thief = Subscriber { principal: 99, ..one.clone() };
    let ghost = Subscriber { id: SubscriptionId::parse("sub_ghost").expect("id"), ..one.clone() };
    for wish in [presented as fn(&Subscriber) -> EngineInput, |who| extend(who, 60), pause, resume]
    {
        for (who, why) in [
            (&thief, ReplyRefusal::NotYourSubscription),
            (&ghost, ReplyRefusal::NotYourSubscription),
            (&guest, ReplyRefusal::MayNotReply),
            (&deaf, ReplyRefusal::NotAsked),
            (&plain, ReplyRefusal::NotGranted),
        ] {
            assert_eq!(wished(&world.handle(wish(who))), Err(why));
        }
    }
    assert_eq!(deadlines(&world, &one), []);
    assert_eq!(ends_after(&mut world), (30, by_time()));
}

#[test]
fn a_wish_after_the_end_changes_nothing() {
    let mut world = World::started();
    let one = world.listen(1, patient());
    ask(&mut world, 30, Some(300));
    assert!(replied(&world.confirm(&one, "rpl_1", "accept")));
    for wish in [presented as fn(&Subscriber) -> EngineInput, |who| extend(who, 60), pause, resume]
    {
        assert_eq!(wished(&world.handle(wish(&one))), Err(ReplyRefusal::AlreadySettled));
    }
    let unknown = EngineInput::Pause {
        principal: PrincipalNumber(one.principal),
        subscription_id: one.id.clone(),
        reply_token: token("rpl_never"),
    };
    assert_eq!(wished(&world.handle(unknown)), Err(ReplyRefusal::UnknownToken));
    // At the very moment when time is over it is over.
    world.say("awaiting.confirmation", confirmation("rpl_2", json!({})));
    world.jump_us(30 * SECOND);
    let late = EngineInput::Extend {
        principal: PrincipalNumber(one.principal),
        subscription_id: one.id.clone(),
        reply_token: token("rpl_2"),
        by_seconds: 5,
    };
    let outputs = world.handle(late);
    assert_eq!(resolved(&outputs).len(), 1);
    assert!(outputs.contains(&Output::TimeReplied { is_accepted: false }));
}

#[test]
fn what_is_understood_is_granted_and_stated() {
    let mut world = World::started();
    let honored = |outputs: &[Output]| {
        let (_, message) = accepted(outputs).expect("terms");
        message.honored_capabilities.other.get("agentvoice").cloned()
    };
    let outputs = world.request(1, true, patient(), None);
    assert_eq!(honored(&outputs), Some(json!({ "ask_clock": "presented", "extend": true })));
    let mut newer = everything();
    merge(&mut newer, json!({ "agentvoice": { "extend": true, "ask_clock": "later", "x": 1 } }));
    let outputs = world.request(2, true, newer, None);
    assert_eq!(honored(&outputs), Some(json!({ "extend": true })));
    let mut silent = patient();
    merge(&mut silent, json!({ "supported_extensions": [] }));
    let outputs = world.request(3, true, silent, None);
    assert_eq!(honored(&outputs), None, "only where the extension is spoken");
    let other = world.request(4, true, everything(), None);
    assert_eq!(honored(&other), None, "off unless asked for");
}
