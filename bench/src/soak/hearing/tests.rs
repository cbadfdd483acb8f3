//! Tests of the faults that a subscriber notices.

use serde_json::{Value, json};

use super::*;
use crate::soak::plan::PlannedStep;

/// All events of a session, as a subscriber without limits receives them.
fn session(number: u64) -> Vec<Value> {
    let plan = SessionPlan::of(number);
    let mut events = Vec::new();
    for (index, step) in plan.steps.iter().enumerate() {
        let mut event = plan.event(index).expect("a step");
        event["sequence_number"] = events.len().into();
        events.push(event);
        if matches!(step, PlannedStep::Asks) {
            events.push(json!({
                "type": "aaep:agent.state.changed", "event_id": format!("evt_hub{index}"),
                "session_id": format!("sess_soak{number}"), "sequence_number": events.len(),
                "extensions": { "agentvoice": { "resolution": { "outcome": "accept" } } },
            }));
        }
    }
    events
}

/// The number of a session that contains an ask.
fn number_with_ask() -> u64 {
    (0..100).find(|number| SessionPlan::of(*number).asks > 0).expect("one of a hundred asks")
}

fn check_events(wants: ExpectedDelivery, events: &[Value]) -> (DeliveryCheck, Vec<String>) {
    let mut hearing = DeliveryCheck::new(wants, false);
    let mut faults = Vec::new();
    for event in events {
        let text = event.to_string();
        faults.extend(hearing.take(&serde_json::from_str(&text).expect("an event")));
    }
    (hearing, faults)
}

#[test]
fn a_subscriber_that_received_every_event_finds_no_fault() {
    for wants in [ExpectedDelivery::Numbered, ExpectedDelivery::Everything, ExpectedDelivery::Text]
    {
        let events: Vec<Value> = (0..20).flat_map(session).collect();
        let (hearing, faults) = check_events(wants, &events);
        assert_eq!(faults, Vec::<String>::new());
        assert_eq!((hearing.ended, hearing.unended()), (20, 0));
    }
}

#[test]
fn an_event_that_is_missing_is_noticed_whichever_it_is() {
    let all = session(number_with_ask());
    for at in 0..all.len() {
        let mut events = all.clone();
        events.remove(at);
        for wants in [ExpectedDelivery::Numbered, ExpectedDelivery::Everything] {
            let (hearing, faults) = check_events(wants, &events);
            assert!(!faults.is_empty() || hearing.unended() > 0, "event {at}");
        }
    }
}

#[test]
fn an_event_that_comes_twice_is_noticed_whichever_it_is() {
    let all = session(number_with_ask());
    for at in 0..all.len() {
        let mut events = all.clone();
        events.insert(at, all[at].clone());
        for wants in [ExpectedDelivery::Numbered, ExpectedDelivery::Everything] {
            let (hearing, faults) = check_events(wants, &events);
            assert!(!faults.is_empty() || hearing.unended() > 0, "event {at}");
        }
    }
}

#[test]
fn events_in_another_order_are_noticed() {
    let all = session(3);
    for at in 1..all.len() {
        let mut events = all.clone();
        events.swap(at - 1, at);
        let (hearing, faults) = check_events(ExpectedDelivery::Numbered, &events);
        assert!(!faults.is_empty() || hearing.unended() > 0, "event {at}");
    }
}

#[test]
fn text_that_is_missing_or_repeated_is_noticed() {
    let all = session(3);
    let texts = (0..all.len()).filter(|at| all[*at].get("chunk").is_some());
    for at in texts {
        let (mut without, mut twice) = (all.clone(), all.clone());
        without.remove(at);
        twice.insert(at, all[at].clone());
        for events in [without, twice] {
            assert!(!check_events(ExpectedDelivery::Text, &events).1.is_empty(), "event {at}");
        }
    }
}

#[test]
fn a_subscriber_that_joins_while_a_session_runs_hears_the_rest() {
    let all = session(5);
    let summary = json!({
        "type": "aaep:agent.state.changed", "event_id": "evt_hub1",
        "session_id": "sess_soak5",
    });
    let mut events = vec![summary];
    events.extend_from_slice(&all[3..]);
    for wants in [ExpectedDelivery::Numbered, ExpectedDelivery::Everything, ExpectedDelivery::Text]
    {
        assert_eq!(check_events(wants, &events).1, Vec::<String>::new());
    }
    events.remove(3);
    assert!(!check_events(ExpectedDelivery::Numbered, &events).1.is_empty());
}

#[test]
fn only_a_session_that_may_have_begun_before_can_be_joined_without_a_word() {
    let events = &session(5)[1..];
    for (began_before, is_right) in [(6, true), (5, false)] {
        let mut hearing = DeliveryCheck::new(ExpectedDelivery::Everything, false);
        hearing.joins_before(began_before);
        let take = |event: &Value| {
            hearing.take(&serde_json::from_str(&event.to_string()).expect("an event"))
        };
        let faults: Vec<String> = events.iter().flat_map(take).collect();
        assert_eq!(faults.is_empty(), is_right, "{faults:?}");
    }
}

#[test]
fn a_gap_is_counted_and_only_some_may_have_one() {
    let mut event = session(5).remove(0);
    event["extensions"] = json!({ "agentvoice": { "gap": { "after_event_id": "evt_1" } } });
    let text = event.to_string();
    let event: CheckedEvent<'_> = serde_json::from_str(&text).expect("an event");
    for may_have_gaps in [false, true] {
        let mut hearing = DeliveryCheck::new(ExpectedDelivery::Everything, may_have_gaps);
        assert_eq!(hearing.take(&event).is_empty(), may_have_gaps);
        assert_eq!(hearing.gaps, 1);
    }
}

#[test]
fn after_a_gap_the_rest_of_what_runs_is_right_and_a_session_that_begins_later_is_heard_whole() {
    let mut hearing = DeliveryCheck::new(ExpectedDelivery::Everything, true);
    let take = |hearing: &mut DeliveryCheck, event: &Value| {
        hearing.take(&serde_json::from_str(&event.to_string()).expect("an event"))
    };
    // Summaries of all running sessions, each of which tells of the gap.
    for number in [1, 2] {
        let summary = json!({
            "type": "aaep:agent.state.changed", "event_id": format!("evt_hub{number}"),
            "session_id": format!("sess_soak{number}"),
            "extensions": { "agentvoice": { "gap": {} } },
        });
        assert!(take(&mut hearing, &summary).is_empty());
        hearing.joins_before(3);
    }
    for number in [1, 2] {
        assert!(take(&mut hearing, &session(number)[5]).is_empty(), "session {number}");
        assert!(!take(&mut hearing, &session(number)[7]).is_empty(), "6 of {number} is missing");
    }
    assert!(!take(&mut hearing, &session(3)[5]).is_empty(), "session 3 began later");
}
