//! Everything that a session makes us remember is bounded, and each bound has its own refusal.

use aaep::{OutputId, ToolCallId};

use super::super::OrderViolation::*;
use super::super::{
    MAX_GRANTS, MAX_OPEN_OUTPUTS, MAX_OPEN_TOOLS, MAX_OUTPUTS, MAX_PRODUCER_NAME_BYTES,
    MAX_PRODUCERS, MAX_SESSION_BYTES, MAX_TOOLS,
};
use super::*;

fn call(mut event: Event, number: usize) -> Event {
    let id = Some(ToolCallId::parse(&format!("call_{number}")).expect("an id"));
    match &mut event.payload {
        Payload::ToolInvoked(invoked) => invoked.tool_call_id = id,
        Payload::ToolCompleted(completed) => completed.tool_call_id = id,
        _ => {}
    }
    event
}

fn output(mut event: Event, number: usize) -> Event {
    if let Payload::OutputStreaming(chunk) = &mut event.payload {
        chunk.output_id = Some(OutputId::parse(&format!("out_{number}")).expect("an id"));
    }
    event
}

#[test]
fn the_number_of_running_tools_is_bounded() {
    let mut order = after(&[started()]);
    let (begin, end) = (invoked("search", None), done("search", None));
    for _ in 0..MAX_OPEN_TOOLS {
        order.admit(&begin).expect("room");
    }
    assert_eq!(refusal(&mut order, &begin), TooManyOpenTools);
    order.admit(&end).expect("a running tool");
    order.admit(&begin).expect("room again");
}

#[test]
fn the_number_of_unfinished_outputs_is_bounded() {
    let mut order = after(&[started()]);
    let begin = chunk(None, 0, "a", false);
    for number in 0..MAX_OPEN_OUTPUTS {
        order.admit(&output(begin.clone(), number)).expect("room");
    }
    assert_eq!(refusal(&mut order, &begin), TooManyOpenOutputs);
    // An output that is complete at once takes no room, and neither does continuing one.
    order.admit(&chunk(None, 0, "whole", true)).expect("a whole output");
    order.admit(&output(chunk(None, 1, "b", true), 7)).expect("a known output");
    order.admit(&output(begin, MAX_OPEN_OUTPUTS)).expect("room again");
}

#[test]
fn a_session_has_a_bounded_number_of_tool_calls_and_outputs_and_stays_small() {
    let mut order = after(&[started()]);
    let (begin, end) = (invoked("search", None), done("search", None));
    let whole = chunk(None, 0, "a", true);
    for number in 0..MAX_TOOLS {
        order.admit(&call(begin.clone(), number)).expect("room");
        order.admit(&call(end.clone(), number)).expect("a running tool");
    }
    for number in 0..MAX_OUTPUTS {
        order.admit(&output(whole.clone(), number)).expect("room");
    }
    assert_eq!(refusal(&mut order, &call(begin.clone(), MAX_TOOLS)), TooManyTools);
    assert_eq!(refusal(&mut order, &output(whole, MAX_OUTPUTS)), TooManyOutputs);
    for _ in 0..MAX_OPEN_TOOLS {
        order.admit(&begin).expect("calls without an id are not remembered");
    }
    for number in 1..MAX_PRODUCERS {
        let name = "n".repeat(MAX_PRODUCER_NAME_BYTES / MAX_PRODUCERS - 8) + &number.to_string();
        order.admit(&changed("idle", "thinking").by(&name)).expect("room");
    }
    for _ in 0..MAX_GRANTS {
        order.accept(for_any_tool());
    }
    let bytes = order.memory_bytes();
    assert!(bytes < MAX_SESSION_BYTES, "{bytes}");
    order.admit(&errored()).expect("an end");
    assert!(order.memory_bytes() < 1024, "an ended session keeps next to nothing");
}

#[test]
fn the_number_of_producers_in_a_session_is_bounded() {
    let mut order = after(&[started()]);
    for number in 0..MAX_PRODUCERS {
        order.admit(&changed("idle", "thinking").by(&format!("agent-{number}"))).expect("room");
    }
    for late in [changed("idle", "thinking"), invoked("search", None), clarification()] {
        assert_eq!(refusal(&mut order, &late.by("one-more")), TooManyProducers);
    }
    // Events that need no memory are admitted from any producer.
    order.admit(&progress().by("one-more")).expect("progress");
    order.admit(&errored().by("one-more")).expect("an end");
}

#[test]
fn the_names_of_producers_are_bounded_in_all() {
    let long = "n".repeat(MAX_PRODUCER_NAME_BYTES);
    let mut order = after(&[started()]);
    order.admit(&changed("idle", "thinking").by(&long)).expect("room");
    assert_eq!(refusal(&mut order, &changed("idle", "thinking")), TooManyProducers);
}

#[test]
fn past_the_bound_the_oldest_accept_is_given_back() {
    let mut order = after(&[started()]);
    for number in 0..MAX_GRANTS {
        assert_eq!(order.accept(for_tool(&format!("tool_{number}"))), None);
    }
    let displaced = order.accept(for_tool("newest"));
    assert_eq!(displaced, Some(for_tool("tool_0")));
    refusal(&mut order, &irreversible("tool_0"));
    order.admit(&irreversible("newest")).expect("granted");
}
