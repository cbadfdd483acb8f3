//! Sessions, gaps and disorder, and what a subscriber must not report about a producer.

use super::*;
use crate::subscriber::SessionEnding;

fn numbered(document: Json, number: u64) -> Json {
    with(document, "sequence_number", number)
}

#[test]
fn a_session_is_followed_from_start_to_end() {
    let mut subscriber = subscribed(&able());
    let got = subscriber.get(1, &started());
    assert_eq!(got.changes, [SubscriberChange::SessionStarted { session_id: session("1") }]);
    let got = subscriber.get(2, &changed("idle", "thinking"));
    let state = "thinking".to_owned();
    assert_eq!(got.changes, [SubscriberChange::StateChanged { session_id: session("1"), state }]);
    let tool = json!({ "tool": "search", "summary_normal": "Searches.", "tool_call_id": "call_1" });
    subscriber.get(3, &event("tool.invoked", tool));
    let known = subscriber.session(&session("1")).expect("a session");
    assert_eq!((known.agent_name.as_deref(), known.state.as_str()), (Some("Ada"), "thinking"));
    assert_eq!((known.tools.len(), known.is_from_start), (1, true));
    let done = json!({ "tool": "search", "status": "success", "tool_call_id": "call_1" });
    subscriber.get(4, &event("tool.completed", done));
    assert!(subscriber.session(&session("1")).expect("a session").tools.is_empty());
    let got = subscriber.get(5, &completed());
    assert_eq!(
        got.changes,
        [SubscriberChange::SessionEnded {
            session_id: session("1"),
            ending: SessionEnding::Completed
        }]
    );
    assert_eq!(
        subscriber.sessions().next().and_then(|it| it.ending),
        Some(SessionEnding::Completed)
    );
}

#[test]
fn what_comes_after_the_end_is_a_fault_and_changes_nothing() {
    let mut subscriber = listening();
    subscriber.get(1, &completed());
    let got = subscriber.get(2, &confirmation("q", 60));
    assert_eq!((codes(&got), &got.changes[..]), (vec!["ended"], &[][..]));
    heard_event(&got);
    assert_eq!(subscriber.accept(3, "q"), Err(CannotReply::UnknownAsk));
    subscriber.interrupted();
    assert_eq!(codes(&subscriber.get(4, &progress(1))), ["ended"]);
}

#[test]
fn a_session_that_began_before_is_joined_without_complaint() {
    let mut subscriber = subscribed(&able());
    let got = subscriber.get(1, &changed("calling_tool", "calling_tool"));
    assert_eq!(got.violations, []);
    assert_eq!(got.changes[0], SubscriberChange::SessionJoined { session_id: session("1") });
    let done = json!({ "tool": "search", "status": "success" });
    assert_eq!(subscriber.get(2, &event("tool.completed", done)).violations, []);
}

#[test]
fn a_second_start_is_a_fault() {
    let mut subscriber = listening();
    let again = with(started(), "event_id", "evt_again");
    assert_eq!(codes(&subscriber.get(1, &again)), ["started_twice"]);
}

#[test]
fn a_missing_number_is_a_gap() {
    let mut subscriber = subscribed(&able());
    subscriber.get(1, &numbered(started(), 0));
    let got = subscriber.get(2, &numbered(progress(1), 3));
    let gap = SubscriberViolation::SequenceGap { session_id: session("1"), expected: 1, found: 3 };
    assert_eq!(got.violations, [gap]);
    let change = SubscriberChange::Gap { session_id: session("1"), after: None, missed: Some(2) };
    assert_eq!(got.changes, [change]);
}

#[test]
fn a_late_number_is_disorder_once_and_not_a_gap_after_it() {
    let mut subscriber = subscribed(&able());
    subscriber.get(1, &numbered(started(), 0));
    assert_eq!(codes(&subscriber.get(2, &numbered(progress(2), 2))), ["sequence_gap"]);
    assert_eq!(codes(&subscriber.get(3, &numbered(progress(1), 1))), ["out_of_order"]);
    assert_eq!(codes(&subscriber.get(4, &numbered(progress(3), 3))), [""; 0]);
}

#[test]
fn a_numbered_session_starts_with_zero_and_a_joined_one_anywhere() {
    let mut subscriber = subscribed(&able());
    assert_eq!(codes(&subscriber.get(1, &numbered(started(), 5))), ["sequence_gap"]);
    let joined = in_session(numbered(progress(1), 41), "2");
    assert_eq!(codes(&subscriber.get(2, &joined)), [""; 0]);
    let next = in_session(numbered(progress(2), 43), "2");
    assert_eq!(codes(&subscriber.get(3, &next)), ["sequence_gap"]);
}

#[test]
fn without_numbers_there_is_no_gap() {
    let mut subscriber = listening();
    for percent in [1, 50, 99] {
        assert_eq!(subscriber.get(1, &progress(percent)).violations, []);
    }
}

#[test]
fn a_gap_that_the_hub_tells_of_is_passed_on() {
    let mut subscriber = listening();
    let gap = json!({ "agentvoice": { "gap": { "after_event_id": "evt_7", "missed": 4 } } });
    let got = subscriber.get(1, &with(changed("thinking", "thinking"), "extensions", gap));
    let after = Some(EventId::parse("evt_7").expect("id"));
    let change = SubscriberChange::Gap { session_id: session("1"), after, missed: Some(4) };
    assert!(got.changes.contains(&change), "{got:?}");
    assert_eq!(got.violations, []);
}

#[test]
fn critical_events_that_overtake_are_not_a_fault() {
    let terms = Capabilities { max_events_per_second: Some(2), ..able() };
    let mut subscriber = subscribed(&terms);
    subscriber.get(1, &started());
    let ask = with(confirmation("q", 60), "timestamp", moment(500));
    assert_eq!(subscriber.get(2, &ask).violations, []);
    let late = with(changed("idle", "thinking"), "timestamp", moment(100));
    assert_eq!(subscriber.get(3, &late).violations, [], "it was held back");
    assert_eq!(subscriber.session(&session("1")).expect("a session").state, "awaiting_input");
    let back = with(changed("thinking", "deciding"), "timestamp", moment(50));
    assert_eq!(codes(&subscriber.get(1500, &back)), ["time_went_back"]);
}

#[test]
fn what_the_terms_took_away_is_not_held_against_the_producer() {
    use aaep::{EventFilters, TypePattern};
    let exclude = Some(vec![TypePattern::parse("aaep:agent.tool.invoked").expect("pattern")]);
    let filters = EventFilters { include: None, exclude, other: aaep::Object::new() };
    let mut subscriber = subscribed(&Capabilities { event_filters: Some(filters), ..able() });
    subscriber.get(1, &started());
    let done = event("tool.completed", json!({ "tool": "search", "status": "success" }));
    assert_eq!(subscriber.get(2, &done).violations, []);
    let mut subscriber = listening();
    assert_eq!(codes(&subscriber.get(2, &done)), ["tool_not_invoked"]);
}

fn irreversible() -> Json {
    let fields = json!({ "tool": "buy", "irreversible": true, "summary_normal": "Buys it." });
    event("tool.invoked", fields)
}

#[test]
fn an_irreversible_tool_that_nobody_accepted_is_a_fault() {
    let mut subscriber = listening();
    assert_eq!(codes(&subscriber.get(1, &irreversible())), ["irreversible_without_accept"]);
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    assert_eq!(codes(&subscriber.get(2, &irreversible())), ["irreversible_without_accept"]);
}

#[test]
fn a_tool_of_high_risk_that_nobody_accepted_is_a_fault() {
    let fields = json!({ "tool": "move", "risk_level": "high", "summary_normal": "Moves it." });
    let risky = event("tool.invoked", fields);
    assert_eq!(codes(&listening().get(1, &risky)), ["high_risk_without_accept"]);
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    subscriber.accept(2, "q").expect("a reply");
    assert_eq!(subscriber.get(3, &risky).violations, []);
}

#[test]
fn an_accepted_irreversible_tool_is_not_a_fault_wherever_the_accept_came_from() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    subscriber.accept(2, "q").expect("a reply");
    assert_eq!(subscriber.get(3, &irreversible()).violations, []);
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    subscriber.get(2, &notice("q", "accept", "reply"));
    assert_eq!(subscriber.get(3, &irreversible()).violations, [], "someone else accepted");
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    subscriber.get(2, &changed("awaiting_input", "calling_tool"));
    assert_eq!(subscriber.get(3, &irreversible()).violations, [], "someone else may have accepted");
}

#[test]
fn a_tool_that_is_worse_than_what_was_accepted_is_a_fault() {
    let mut mild = confirmation("q", 60);
    mild["irreversible"] = false.into();
    let mut subscriber = listening();
    subscriber.get(1, &mild);
    subscriber.accept(2, "q").expect("a reply");
    assert_eq!(codes(&subscriber.get(3, &irreversible())), ["accepted_as_reversible"]);
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    subscriber.get(2, &notice("q", "accept", "no_listener"));
    assert_eq!(codes(&subscriber.get(3, &irreversible())), ["accepted_by_default"]);
}

#[test]
fn after_a_broken_connection_nobody_is_accused_of_the_hole() {
    let mut subscriber = listening();
    subscriber.get(1, &chunk(0, "One.", false));
    subscriber.get(2, &confirmation("q", 60));
    subscriber.interrupted();
    let got = subscriber.get(3, &chunk(20, "Five.", true));
    assert_eq!(got.violations, []);
    assert_eq!(subscriber.open_tokens(), ["rpl_q"], "a question outlives its connection");
}

#[test]
fn under_new_terms_numbers_may_begin_anywhere() {
    let mut subscriber = subscribed(&able());
    subscriber.get(1, &numbered(started(), 0));
    subscriber.renegotiate(Capabilities::new()).expect("a message");
    subscriber.get(2, &accepted(&able()));
    assert_eq!(codes(&subscriber.get(3, &numbered(progress(1), 9))), [""; 0]);
    assert_eq!(codes(&subscriber.get(4, &numbered(progress(2), 11))), ["sequence_gap"]);
}

#[test]
fn a_session_of_which_something_was_held_back_ends_without_complaint() {
    let tool = event("tool.invoked", json!({ "tool": "look", "summary_normal": "Looks." }));
    let mut subscriber = listening();
    subscriber.get(1, &tool);
    assert_eq!(codes(&subscriber.get(2, &completed())), ["tool_still_open"]);
    let held = json!({ "agentvoice": { "held_back": 3 } });
    let mut subscriber = listening();
    subscriber.get(1, &tool);
    assert_eq!(subscriber.get(2, &with(completed(), "extensions", held)).violations, []);
    let mut subscriber = listening();
    subscriber.get(1, &chunk(0, "One.", false));
    let held = json!({ "agentvoice": { "held_back": 3 } });
    assert_eq!(subscriber.get(2, &with(completed(), "extensions", held)).violations, []);
    let mut subscriber = listening();
    subscriber.get(1, &chunk(0, "One.", false));
    assert_eq!(codes(&subscriber.get(2, &completed())), ["output_not_complete"]);
}

#[test]
fn a_subscriber_that_was_not_asked_does_not_accuse_the_producer_of_acting_unasked() {
    let mut subscriber = subscribed(&Capabilities::new());
    subscriber.get(1, &started());
    assert_eq!(subscriber.get(2, &irreversible()).violations, []);
}

#[test]
fn a_state_told_by_a_notice_does_not_make_older_changes_faults() {
    let terms = Capabilities { max_events_per_second: Some(5), ..able() };
    let mut subscriber = subscribed(&terms);
    subscriber.get(1, &started());
    subscriber.get(2, &changed("idle", "thinking"));
    subscriber.get(3, &with(notice("q", "accept", "reply"), "timestamp", moment(9)));
    let late = with(changed("deciding", "calling_tool"), "timestamp", moment(5));
    assert_eq!(subscriber.get(4, &late).violations, []);
}
