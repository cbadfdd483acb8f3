//! A tool must be completed before the state that follows it (§4.3.2), as far as that can be seen.

use super::super::OrderViolation::ToolLeftRunning;
use super::super::StreamOrder;
use super::*;

/// A session in which the agent "a" has announced `calling_tool`.
fn calling() -> Vec<Event> {
    vec![started(), changed("idle", "calling_tool"), invoked("search", None)]
}

#[test]
fn nobody_leaves_calling_tool_while_its_tool_runs() {
    let why = refuses(&calling(), &changed("calling_tool", "writing_output"));
    assert_eq!(why, ToolLeftRunning { tool: tool("search"), tool_call_id: None });
    let mut done_first = calling();
    done_first.push(done("search", None));
    admits(&done_first, &changed("calling_tool", "writing_output"));
}

#[test]
fn all_of_several_tools_are_done_first() {
    let mut two = calling();
    two.extend([invoked("fetch", Some("call_2")), done("search", None)]);
    let why = refuses(&two, &changed("calling_tool", "thinking"));
    assert!(matches!(why, ToolLeftRunning { tool_call_id: Some(_), .. }), "{why}");
    two.push(done("fetch", Some("call_2")));
    admits(&two, &changed("calling_tool", "thinking"));
}

#[test]
fn a_state_that_events_imply_is_left_in_the_same_way() {
    let implied = [started(), changed("idle", "thinking"), invoked("search", None)];
    assert!(matches!(
        refuses(&implied, &changed("calling_tool", "deciding")),
        ToolLeftRunning { .. }
    ));
}

#[test]
fn waiting_for_a_person_in_between_does_not_count_as_leaving() {
    let mut waiting = calling();
    waiting.push(changed("calling_tool", "awaiting_input"));
    waiting.push(changed("awaiting_input", "calling_tool"));
    admits(&waiting, &changed("calling_tool", "calling_tool"));
}

#[test]
fn other_agents_and_what_else_an_agent_does_meanwhile_are_not_accused() {
    let mut other = calling();
    other.push(changed("idle", "calling_tool").by("b"));
    admits(&other, &changed("calling_tool", "thinking").by("b"));
    // A producer that never announced `calling_tool` may think while its tool runs.
    let beside = [started(), changed("idle", "thinking"), invoked("search", None)];
    admits(&beside, &changed("thinking", "deciding"));
}

#[test]
fn a_state_that_the_hub_told_may_be_left_beside_an_older_tool() {
    let mut order = after(&[started(), changed("idle", "thinking"), invoked("search", None)]);
    order.tell("a", "calling_tool");
    order.admit(&changed("calling_tool", "deciding")).expect("not the producer's own state");
}

#[test]
fn a_recorded_stream_is_held_to_it_once() {
    let mut stream = StreamOrder::new();
    for event in calling() {
        assert!(stream.observe_event(&event).is_empty());
    }
    let left = stream.observe_event(&changed("calling_tool", "thinking"));
    assert_eq!(left.iter().map(OrderViolation::code).collect::<Vec<_>>(), ["tool_left_running"]);
    assert!(stream.observe_event(&changed("thinking", "deciding")).is_empty());
}
