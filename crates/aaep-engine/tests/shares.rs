//! Shares: nobody takes another's room (ruling 38), and what is held stays within its budget.

#[path = "common/support.rs"]
mod support;

use aaep_engine::{EngineConfig, EngineInput, PrincipalNumber, Refusal, ResumePoint, SessionEnd};
use serde_json::json;
use support::*;

fn small() -> EngineConfig {
    EngineConfig {
        sessions_per_principal: 3,
        asks_per_principal: 2,
        memory_bytes: 256 * 1024,
        memory_bytes_per_principal: 64 * 1024,
        ..EngineConfig::new(offer(), [7; 32])
    }
}

fn start_as(world: &mut World, principal: u64, session: &str) -> Vec<aaep_engine::Output> {
    let fields = json!({ "summary_normal": "Begins.", "producer": { "agent_id": format!("agent-{principal}") } });
    world.publish(principal, World::draft(session, "session.started", fields))
}

#[test]
fn one_principal_at_its_limit_of_sessions_is_refused_and_others_begin() {
    let mut world = World::with(small());
    for number in 0..3 {
        assert_eq!(refusal(&start_as(&mut world, 1, &format!("sess_{number}"))), None);
    }
    let refused = start_as(&mut world, 1, "sess_3");
    assert_eq!(refusal(&refused), Some(&Refusal::OverShare("running sessions")));
    assert_eq!(refusal(&start_as(&mut world, 2, "sess_other")), None);
    let end = json!({ "summary_normal": "Done.", "producer": { "agent_id": "agent-1" } });
    world.publish(1, World::draft("sess_0", "session.completed", end));
    assert_eq!(refusal(&start_as(&mut world, 1, "sess_3")), None, "an ended one does not count");
}

#[test]
fn one_principal_at_its_limit_of_questions_is_refused_and_others_ask() {
    let mut world = World::with(small());
    let person = world.listen(9, everything());
    let ask = |world: &mut World, principal: u64, token: &str| {
        let session = format!("sess_{principal}");
        start_as(world, principal, &session);
        let more = json!({
            "action": format!("Delete {token}."),
            "producer": { "agent_id": format!("agent-{principal}") },
        });
        let draft = World::draft(&session, "awaiting.confirmation", confirmation(token, more));
        world.publish(principal, draft)
    };
    assert_eq!(refusal(&ask(&mut world, 1, "rpl_1")), None);
    assert_eq!(refusal(&ask(&mut world, 1, "rpl_2")), None);
    let refused = ask(&mut world, 1, "rpl_3");
    assert_eq!(refusal(&refused), Some(&Refusal::OverShare("open questions")));
    assert_eq!(refusal(&ask(&mut world, 2, "rpl_4")), None);
    assert!(replied(&world.confirm(&person, "rpl_1", "reject")));
    assert_eq!(refusal(&ask(&mut world, 1, "rpl_3")), None, "an answered one does not count");
}

#[test]
fn memory_stays_within_its_budget_and_a_flood_takes_nobody_elses_history() {
    let mut world = World::with(small());
    let away = world.subscribe(
        5,
        aaep_engine::HearingScope::Tagged(aaep_engine::AgentTags::new(["quiet".to_owned()])),
        everything(),
        None,
    );
    let away = granted(5, &away);
    let quiet = |world: &mut World, kind: &str, fields| {
        let draft = World::draft("sess_quiet", kind, fields);
        world.publish_tagged(2, "quiet", draft)
    };
    quiet(&mut world, "session.started", json!({ "summary_normal": "Begins." }));
    let last = last_id(&world.take(&away));
    world.disconnect(&away);
    quiet(&mut world, "progress.updated", json!({ "progress": { "step": 1 } }));
    start_as(&mut world, 1, "sess_flood");
    for number in 0..600 {
        let fields = json!({
            "progress": { "step": number + 1, "description": "x".repeat(400) },
            "producer": { "agent_id": "agent-1" },
        });
        world.publish(1, World::draft("sess_flood", "progress.updated", fields));
        assert!(world.engine.memory_bytes() <= 256 * 1024);
    }
    world.reconnect(&away, last.as_ref());
    let heard = world.heard(&away);
    assert_eq!(kinds(heard), ["progress.updated"], "nothing is missing of what it may hear");
}

#[test]
fn an_audience_costs_nothing_while_nobody_in_it_listens() {
    let mut world = World::with(EngineConfig::new(offer(), [7; 32]));
    world.start(SESSION);
    world.say("progress.updated", json!({ "progress": { "step": 1 } }));
    let before = world.engine.memory_bytes();
    for number in 0..12 {
        let pattern = format!("aaep:agent.progress.updated{}", "x".repeat(number));
        let wishes = json!({ "event_filters": { "include": ["*"], "exclude": [pattern] } });
        let one = world.listen(number as u64, wishes);
        world.disconnect(&one);
    }
    assert_eq!(world.engine.memory_bytes(), before);
    let step = json!({ "progress": { "step": 2 } });
    world.say("progress.updated", step.clone());
    let one_event = world.engine.memory_bytes() - before;
    world.say("progress.updated", step);
    assert!(world.engine.memory_bytes() <= before + 2 * one_event + 64, "once, not for each");
}

#[test]
fn a_subscriber_that_reconnects_to_an_idle_audience_hears_what_it_missed_and_nothing_twice() {
    for wishes in [everything(), json!({}), limited(50, json!({}))] {
        let mut world = World::started();
        let one = world.listen(1, wishes.clone());
        world.chunk("One sentence. And half ", 0, false);
        world.pass_s(1);
        let last = last_id(&world.take(&one));
        world.disconnect(&one);
        world.chunk("of another. A third.", 23, true);
        world.handle(EngineInput::Tick);
        let resume = ResumePoint { subscription_id: Some(one.id.clone()), last_event_id: last };
        let outputs = world.take_over(1, wishes, resume);
        let again = granted(1, &outputs);
        world.pass_s(2);
        let text: String = world
            .heard(&again)
            .iter()
            .filter(|it| it.kind() == "output.streaming")
            .map(|it| it.text("chunk").to_owned())
            .collect();
        assert!("And half of another. A third.".ends_with(&text), "{text}");
        assert!(text.ends_with("of another. A third."), "{text}");
        assert!(!world.heard(&again).iter().any(Heard::has_gap));
    }
}

#[test]
fn a_session_without_a_word_ends_and_its_tools_and_text_with_it() {
    let mut world = World::started();
    let person = world.listen(1, everything());
    world.chunk("Half a ", 0, false);
    let after_us = 24 * 3600 * SECOND;
    world.jump_us(after_us - SECOND);
    assert!(world.engine.silent_sessions(world.now, after_us).is_empty());
    world.jump_us(SECOND);
    let silent = world.engine.silent_sessions(world.now, after_us);
    assert_eq!(silent.len(), 1);
    let session_id = silent[0].clone();
    world.take(&person);
    let why = SessionEnd::Silent { after_us };
    world.handle(EngineInput::EndSession { session_id: session_id.clone(), why });
    let heard = world.take(&person);
    assert_eq!(kinds(&heard), ["output.streaming", "session.errored"]);
    let words = "Ended without a word: nothing came from the agent for 24 hours.";
    assert_eq!(heard[1].text("summary_normal"), words);
    assert!(world.engine.has_ended(&session_id));
    world.restart(5);
    assert!(world.engine.has_ended(&session_id), "also after a restart");
}

#[test]
fn a_session_with_an_open_question_is_not_silent_and_ending_it_withdraws_the_question() {
    let mut world = World::started();
    world.listen(1, everything());
    let more = json!({ "timeout_seconds": 86_400 });
    world.say("awaiting.confirmation", confirmation("rpl_1", more));
    world.jump_us(3600 * SECOND);
    assert!(world.engine.silent_sessions(world.now, 3600 * SECOND).is_empty());
    let session_id = aaep::SessionId::parse(SESSION).expect("id");
    let outputs = world.handle(EngineInput::EndSession { session_id, why: SessionEnd::ByHand });
    let by: Vec<_> = resolved(&outputs).into_iter().map(|(_, outcome, _)| outcome).collect();
    assert_eq!(by, [aaep::extension::AskOutcome::Withdrawn]);
}

#[test]
fn the_subscription_that_has_been_away_longest_is_the_first_to_give_way() {
    let mut world = World::new();
    let all: Vec<Subscriber> = (0..3).map(|_| world.listen(1, everything())).collect();
    let other = world.listen(2, everything());
    assert_eq!(world.engine.oldest_away(Some(PrincipalNumber(1))), None);
    world.disconnect(&other);
    world.pass_s(1);
    world.disconnect(&all[1]);
    world.pass_s(1);
    world.disconnect(&all[0]);
    assert_eq!(world.engine.oldest_away(Some(PrincipalNumber(1))), Some(all[1].key));
    assert_eq!(world.engine.oldest_away(None), Some(other.key));
}

/// Agents that use long words about themselves, and a new id for every output, stay within the budget.
#[test]
fn what_a_session_takes_beside_its_history_is_counted() {
    let mut world = World::with(small());
    start_as(&mut world, 1, "sess_1");
    let speak = |world: &mut World, agent: usize| {
        let producer = json!({ "agent_id": format!("agent-{agent}"), "model": "x".repeat(15_000) });
        let fields = json!({ "progress": { "step": 1 }, "producer": producer });
        world.publish(1, World::draft("sess_1", "progress.updated", fields))
    };
    for agent in 0..30 {
        speak(&mut world, agent);
        assert!(world.engine.memory_bytes() <= 256 * 1024);
    }
    let output = |world: &mut World, number: usize| {
        let fields = json!({
            "chunk": "x", "position": 0, "complete": true, "output_id": format!("out_{number}"),
            "producer": { "agent_id": "agent-1" },
        });
        world.publish(1, World::draft("sess_1", "output.streaming", fields))
    };
    let refused = (0..5000).find_map(|number| refusal(&output(&mut world, number)).cloned());
    assert_eq!(refused, Some(Refusal::OverShare("tools and outputs in running sessions")));
    // Nobody else notices, and the session can be ended.
    assert_eq!(refusal(&start_as(&mut world, 2, "sess_2")), None);
    let end = json!({ "summary_normal": "Done.", "producer": { "agent_id": "agent-1" } });
    let ended = world.publish(1, World::draft("sess_1", "session.completed", end));
    assert_eq!(refusal(&ended), None);
    assert_eq!(refusal(&start_as(&mut world, 1, "sess_3")), None);
}

#[test]
fn a_principal_without_a_session_or_question_finds_room_for_one() {
    let config = EngineConfig {
        sessions_per_principal: aaep_engine::MAX_SESSIONS,
        asks_per_principal: aaep_engine::MAX_OPEN_ASKS,
        ..EngineConfig::new(offer(), [7; 32])
    };
    let mut world = World::with(config);
    world.listen(9, everything());
    let refused = (0..aaep_engine::MAX_SESSIONS)
        .map(|number| start_as(&mut world, 1, &format!("sess_{number}")))
        .find_map(|outputs| refusal(&outputs).cloned());
    assert_eq!(refused, Some(Refusal::TooMany("sessions")));
    assert_eq!(refusal(&start_as(&mut world, 2, "sess_other")), None);
    let again = start_as(&mut world, 2, "sess_another");
    assert_eq!(refusal(&again), Some(&Refusal::TooMany("sessions")), "it has one by now");

    let ask = |world: &mut World, principal: u64, session: &str, number: usize| {
        let more = json!({
            "action": format!("Delete {number}."),
            "producer": { "agent_id": format!("agent-{principal}") },
        });
        let question = confirmation(&format!("rpl_{principal}x{number}"), more);
        world.publish(principal, World::draft(session, "awaiting.confirmation", question))
    };
    let refused = (0..aaep_engine::MAX_OPEN_ASKS)
        .map(|number| ask(&mut world, 1, "sess_0", number))
        .find_map(|outputs| refusal(&outputs).cloned());
    assert!(refused.is_some(), "a part is kept free");
    assert_eq!(refusal(&ask(&mut world, 2, "sess_other", 0)), None);
}

/// Coming and going costs the same, however much others hold that this subscriber may not hear.
#[test]
fn coming_and_going_looks_at_nothing_that_may_not_be_heard() {
    let costs = [1, 40].map(|many| {
        let mut world = World::new();
        let person = world.listen(9, everything());
        let tagged = |tag: &str| {
            aaep_engine::HearingScope::Tagged(aaep_engine::AgentTags::new([tag.to_owned()]))
        };
        let start = |session: &str, agent: &str| {
            let fields = json!({ "summary_normal": "Begins.", "producer": { "agent_id": agent } });
            World::draft(session, "session.started", fields)
        };
        world.publish_tagged(2, "quiet", start("sess_quiet", "quiet"));
        for number in 0..many {
            let session = format!("sess_{number}");
            world.publish_tagged(1, "loud", start(&session, "loud"));
            let text = json!({
                "chunk": "Half a sentence ", "position": 0, "complete": false,
                "producer": { "agent_id": "loud" },
            });
            world.publish_tagged(1, "loud", World::draft(&session, "output.streaming", text));
            let question = confirmation(
                &format!("rpl_{number}"),
                json!({ "producer": { "agent_id": "loud" } }),
            );
            let asked = World::draft(&session, "awaiting.confirmation", question);
            world.publish_tagged(1, "loud", asked);
        }
        let before = world.engine.looked_at();
        // A filter that nobody had before.
        let wishes = json!({
            "supports_confirmation_reply": true,
            "event_filters": { "include": ["*"], "exclude": ["aaep:agent.tool.invoked"] },
        });
        let outputs = world.subscribe(5, tagged("quiet"), wishes, None);
        let one = granted(5, &outputs);
        world.close(&one);
        let after = world.engine.looked_at();
        world.close(&person);
        (after.0 - before.0, after.1 - before.1)
    });
    assert_eq!(costs[0], costs[1]);
    assert_eq!(costs[0].0, 0, "no question can be heard");
}
