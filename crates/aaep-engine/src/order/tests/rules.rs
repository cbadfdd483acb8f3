//! Every rule of the order of a session: an event that passes and one that fails.

use aaep::{OutputId, ToolCallId};
use serde_json::json;

use super::super::OrderViolation::*;
use super::*;

// Start and end (§4.5.1).

#[test]
fn a_session_begins_with_its_start_and_only_one() {
    assert_eq!(refuses(&[], &progress()), NotStarted);
    assert_eq!(refuses(&[], &completed()), NotStarted);
    assert_eq!(refuses(&[started()], &started()), StartedTwice);
    assert!(after(&[started()]).is_started());
    assert!(!after(&[]).is_started());
}

#[test]
fn each_of_the_three_ends_is_the_last_event() {
    for end in [completed(), errored(), cancelled()] {
        let order = after(&[started(), end.clone()]);
        assert!(order.is_ended() && order.is_started());
        let late = [completed(), errored(), cancelled(), started(), progress(), invoked("x", None)];
        for event in late {
            assert_eq!(refusal(&mut order.clone(), &event), Ended);
        }
        assert!(admits(&[started()], &end).terminal);
    }
    assert!(!admits(&[started()], &progress()).terminal);
}

#[test]
fn events_of_extensions_need_only_a_running_session() {
    let mut custom = event("progress.updated", json!({ "progress": { "step": 1 } }));
    custom.payload = Payload::Extension(aaep::ExtensionPayload {
        type_name: aaep::TypeName::parse("agentvoice:weather").expect("a type"),
        fields: aaep::Object::new(),
    });
    assert_eq!(refuses(&[], &custom), NotStarted);
    admits(&[started()], &custom);
    assert_eq!(refuses(&[started(), completed()], &custom), Ended);
}

// Time and numbers (§3.2.5, §3.4.1).

#[test]
fn time_stands_still_or_goes_on_but_never_back_for_any_producer() {
    let events = [started(), progress().at_ms(500).by("b")];
    admits(&events, &progress().at_ms(500));
    admits(&events, &progress().at_ms(501));
    let last_us = (START_MS + 500) * 1000;
    assert_eq!(refuses(&events, &progress().at_ms(499)), TimeWentBack { last_us });
    assert_eq!(after(&events).last_timestamp_us(), Some(last_us));
}

#[test]
fn numbers_start_at_zero_and_have_no_gap() {
    assert_eq!(refuses(&[], &started().numbered(1)), SequenceBroken { expected: 0 });
    let events = [started().numbered(0), progress().numbered(1)];
    let admitted = admits(&events, &progress().numbered(2));
    assert_eq!(admitted.sequence_number, 2);
    assert_eq!(refuses(&events, &progress().numbered(1)), SequenceBroken { expected: 2 });
    assert_eq!(refuses(&events, &progress().numbered(3)), SequenceBroken { expected: 2 });
}

#[test]
fn all_events_of_a_session_are_numbered_or_none_is() {
    assert_eq!(refuses(&[started().numbered(0)], &progress()), SequenceMissing { expected: 1 });
    assert_eq!(refuses(&[started()], &progress().numbered(1)), SequenceUnexpected);
    assert_eq!(after(&[started(), progress()]).next_sequence_number(), 2);
}

// States (§4.2.1).

#[test]
fn the_first_state_of_each_producer_is_idle() {
    assert_eq!(refuses(&[started()], &changed("thinking", "deciding")), FirstStateNotIdle);
    let events = [started(), changed("idle", "thinking")];
    assert_eq!(refuses(&events, &changed("thinking", "deciding").by("b")), FirstStateNotIdle);
    admits(&events, &changed("idle", "deciding").by("b"));
    // An implied state does not replace the first announced state.
    let asked = [started(), clarification()];
    assert_eq!(refuses(&asked, &changed("awaiting_input", "thinking")), FirstStateNotIdle);
}

#[test]
fn a_state_that_is_left_was_entered_before() {
    let events = [started(), changed("idle", "thinking"), changed("thinking", "brooding")];
    admits(&events, &changed("brooding", "thinking"));
    let expected = vec!["brooding".to_owned()];
    assert_eq!(
        refuses(&events, &changed("thinking", "deciding")),
        StateDoesNotFollow { expected: expected.clone() }
    );
    assert_eq!(refuses(&events, &changed("idle", "idle")), StateDoesNotFollow { expected });
}

#[test]
fn a_state_that_other_events_imply_can_be_left_too() {
    let thinking = [started(), changed("idle", "thinking")];
    for (implying, implied) in [
        (invoked("search", None), "calling_tool"),
        (clarification(), "awaiting_input"),
        (confirmation("rpl_1", "reject"), "awaiting_input"),
        (chunk(None, 0, "Hello", false), "writing_output"),
        (handoff(), "handing_off"),
    ] {
        let mut events = [&thinking[..], &[implying]].concat();
        assert_eq!(after(&events).state_of("a"), implied);
        if implied == "calling_tool" {
            events.push(done("search", None));
        }
        admits(&events, &changed(implied, "deciding"));
        admits(&events, &changed("thinking", "deciding"));
        let expected = vec!["thinking".to_owned(), implied.to_owned()];
        let why = refuses(&events, &changed("deciding", "thinking"));
        assert_eq!(why, StateDoesNotFollow { expected });
        // Only the producer's own events imply something about it.
        assert_eq!(after(&events).state_of("b"), "idle");
    }
}

#[test]
fn an_announced_state_replaces_what_was_implied() {
    let events = [
        started(),
        changed("idle", "thinking"),
        invoked("search", None),
        done("search", None),
        changed("calling_tool", "deciding"),
    ];
    assert_eq!(after(&events).state_of("a"), "deciding");
    let expected = vec!["deciding".to_owned()];
    assert_eq!(
        refuses(&events, &changed("calling_tool", "thinking")),
        StateDoesNotFollow { expected }
    );
}

#[test]
fn after_the_hub_told_a_state_the_producer_may_leave_that_or_its_own() {
    let mut order = after(&[started(), changed("idle", "thinking"), clarification()]);
    order.tell("a", "deciding");
    assert_eq!(order.state_of("a"), "deciding");
    for left in ["deciding", "awaiting_input", "thinking"] {
        order.clone().admit(&changed(left, "writing_output")).expect(left);
    }
    refusal(&mut order, &changed("calling_tool", "writing_output"));
    // What the producer does next is newer than what the hub told.
    order.admit(&invoked("search", None)).expect("a tool");
    assert_eq!(order.state_of("a"), "calling_tool");
    refusal(&mut order, &changed("deciding", "writing_output"));
}

// Tools (§4.5.2).

#[test]
fn a_tool_completes_once_and_only_after_it_was_invoked() {
    let not_running = |id: Option<&str>| ToolNotInvoked {
        tool: tool("search"),
        tool_call_id: id.map(|id| ToolCallId::parse(id).expect("an id")),
    };
    for id in [None, Some("call_1")] {
        assert_eq!(refuses(&[started()], &done("search", id)), not_running(id));
        let running = [started(), invoked("search", id)];
        admits(&running, &done("search", id));
        let over = [started(), invoked("search", id), done("search", id)];
        assert_eq!(refuses(&over, &done("search", id)), not_running(id));
    }
}

#[test]
fn calls_with_an_id_and_calls_without_do_not_pair() {
    let named = [started(), invoked("search", Some("call_1"))];
    assert!(matches!(refuses(&named, &done("search", None)), ToolNotInvoked { .. }));
    let unnamed = [started(), invoked("search", None)];
    assert!(matches!(refuses(&unnamed, &done("search", Some("call_1"))), ToolNotInvoked { .. }));
    assert!(matches!(refuses(&unnamed, &done("fetch", None)), ToolNotInvoked { .. }));
}

#[test]
fn the_same_tool_may_run_twice_at_a_time_and_completes_as_often() {
    let twice = [started(), invoked("search", None), invoked("search", None)];
    let once_done = [&twice[..], &[done("search", None)]].concat();
    assert_eq!(after(&once_done).open_tools().count(), 1);
    assert!(matches!(refuses(&once_done, &completed()), ToolStillOpen { .. }));
    admits(&[&once_done[..], &[done("search", None)]].concat(), &completed());
}

#[test]
fn another_producer_of_the_session_may_complete_a_tool() {
    let running = [started(), invoked("search", Some("call_1"))];
    admits(&running, &done("search", Some("call_1")).by("b"));
    let order = after(&running);
    let open = order.open_tools().next().expect("a running tool");
    assert_eq!((open.tool.as_str(), &*open.agent_id), ("search", "a"));
}

#[test]
fn an_id_names_one_call_even_when_that_call_is_over() {
    let id = Some("call_1");
    let reused = ToolCallIdReused { tool_call_id: ToolCallId::parse("call_1").expect("an id") };
    let running = [started(), invoked("search", id)];
    assert_eq!(refuses(&running, &invoked("fetch", id)), reused);
    let over = [started(), invoked("search", id), done("search", id)];
    assert_eq!(refuses(&over, &invoked("search", id)), reused);
    admits(&over, &invoked("search", Some("call_2")));
}

#[test]
fn a_call_completes_under_the_name_it_was_invoked_with() {
    let running = [started(), invoked("search", Some("call_1"))];
    let why = refuses(&running, &done("fetch", Some("call_1")));
    assert_eq!(why, ToolNameDiffers { invoked: tool("search") });
}

// Output (§4.3.3, §4.5.4).

#[test]
fn positions_count_code_points() {
    // One letter to the eye may be several code points, and several bytes.
    let text = "Ẹ kú àárọ̀ 👋🏾";
    let length = text.chars().count() as u64;
    let begun = [started(), chunk(Some("out_1"), 0, text, false)];
    admits(&begun, &chunk(Some("out_1"), length, ".", true));
    for wrong in [0, length - 1, length + 1, text.len() as u64] {
        let why = refuses(&begun, &chunk(Some("out_1"), wrong, ".", true));
        assert_eq!(why, PositionDoesNotFollow { expected: length });
    }
}

#[test]
fn each_output_counts_for_itself_and_starts_at_zero() {
    let begun = [started(), chunk(Some("out_1"), 0, "abc", false), chunk(None, 0, "de", false)];
    admits(&begun, &chunk(Some("out_2"), 0, "f", false));
    admits(&begun, &chunk(None, 2, "f", false));
    let why = refuses(&begun, &chunk(Some("out_2"), 3, "f", false));
    assert_eq!(why, PositionDoesNotFollow { expected: 0 });
    let order = after(&begun);
    let open: Vec<_> = order
        .open_outputs()
        .map(|it| (it.output_id.as_ref().map(OutputId::as_str), it.next_position))
        .collect();
    assert_eq!(open, [(Some("out_1"), 3), (None, 2)]);
}

#[test]
fn nothing_follows_the_last_chunk_of_an_output() {
    for id in [None, Some("out_1")] {
        let output_id = id.map(|id| OutputId::parse(id).expect("an id"));
        let whole = [started(), chunk(id, 0, "abc", true)];
        for complete in [true, false] {
            let why = refuses(&whole, &chunk(id, 3, "", complete));
            assert_eq!(why, OutputAlreadyComplete { output_id: output_id.clone() });
        }
        admits(&whole, &chunk(Some("out_2"), 0, "d", true));
    }
}

// The end and what is open (§4.5.2, §4.5.4).

#[test]
fn a_session_completes_when_its_tools_and_outputs_have() {
    let tool_open = [started(), invoked("search", Some("call_1"))];
    let tool_call_id = Some(ToolCallId::parse("call_1").expect("an id"));
    let why = refuses(&tool_open, &completed());
    assert_eq!(why, ToolStillOpen { tool: tool("search"), tool_call_id });
    let output_open = [started(), chunk(None, 0, "abc", false)];
    assert_eq!(refuses(&output_open, &completed()), OutputNotComplete { output_id: None });
    let finished = [started(), chunk(None, 0, "abc", false), chunk(None, 3, "", true)];
    assert_eq!(admits(&finished, &completed()).left_open, super::super::LeftOpen::default());
}

#[test]
fn a_session_that_broke_off_says_what_it_left_open() {
    for end in [errored(), cancelled()] {
        let mut order = after(&[
            started(),
            invoked("search", Some("call_1")),
            invoked("fetch", None).by("b"),
            chunk(Some("out_1"), 0, "abc", false),
        ]);
        let left = order.admit(&end).expect("an end").left_open;
        let tools: Vec<_> = left.tools.iter().map(|it| (it.tool.as_str(), &*it.agent_id)).collect();
        assert_eq!(tools, [("search", "a"), ("fetch", "b")]);
        assert_eq!((left.outputs.len(), left.outputs[0].next_position), (1, 3));
        assert_eq!(order.open_tools().count() + order.open_outputs().count(), 0);
    }
}

// Irreversible tools (§4.3.1, ruling 17).

#[test]
fn an_irreversible_tool_needs_an_accept_each_time() {
    let mut order = after(&[started(), confirmation("rpl_1", "reject")]);
    let unasked = IrreversibleWithoutAccept { tool: tool("pay") };
    assert_eq!(refusal(&mut order, &irreversible("pay")), unasked);
    let grant = for_tool("pay");
    assert_eq!(order.accept(grant.clone()), None);
    assert_eq!(order.admit(&irreversible("pay")).expect("granted").grant, Some(grant));
    assert_eq!(refusal(&mut order, &irreversible("pay")), unasked);
}

#[test]
fn a_tool_of_high_risk_needs_an_accept_each_time() {
    let mut order = after(&[started(), confirmation("rpl_1", "reject")]);
    for risk in ["low", "medium"] {
        order.admit(&risky("look", risk)).expect("no accept is needed");
    }
    let unasked = HighRiskWithoutAccept { tool: tool("pay") };
    assert_eq!(refusal(&mut order, &risky("pay", "high")), unasked);
    order.accept(for_any_tool());
    order.admit(&risky("look", "medium")).expect("it uses no accept");
    order.admit(&risky("pay", "high")).expect("granted");
    assert_eq!(refusal(&mut order, &risky("pay", "high")), unasked);
}

#[test]
fn an_accept_for_one_tool_is_none_for_another() {
    let mut order = after(&[started()]);
    order.accept(for_tool("send"));
    refusal(&mut order, &irreversible("pay"));
    order.accept(for_any_tool());
    order.admit(&irreversible("pay")).expect("granted for any tool");
    refusal(&mut order, &irreversible("pay"));
    order.admit(&irreversible("send")).expect("granted for this tool");
}

#[test]
fn the_accepted_tool_uses_its_accept_even_if_it_calls_itself_reversible() {
    let mut order = after(&[started()]);
    order.accept(for_tool("pay"));
    order.admit(&invoked("pay", None)).expect("a harmless tool");
    refusal(&mut order, &irreversible("pay"));
    // A grant that names no tool waits for an invocation that needs it.
    order.accept(for_any_tool());
    assert_eq!(order.admit(&invoked("search", None)).expect("a harmless tool").grant, None);
    order.admit(&irreversible("pay")).expect("granted");
}

#[test]
fn an_accept_counts_only_while_the_session_runs() {
    let grant = for_any_tool();
    let mut order = SessionOrder::new();
    assert_eq!(order.accept(grant.clone()), Some(grant.clone()));
    order.admit(&started()).expect("a start");
    refusal(&mut order, &irreversible("pay"));
    order.accept(grant.clone());
    order.admit(&cancelled()).expect("an end");
    assert_eq!(order.accept(grant.clone()), Some(grant));
    assert_eq!(refusal(&mut order, &irreversible("pay")), Ended);
}

// The sequences that the specification itself lists as wrong (A.8) and as right (§4.6).

#[test]
fn the_wrong_orders_of_the_appendix_are_refused() {
    // A.8.1 to A.8.4, A.8.6, A.8.7. A.8.5 needs a reply and is also covered by the stream tests.
    assert_eq!(refuses(&[started()], &done("pay", None)).code(), "tool_not_invoked");
    assert_eq!(refuses(&[started(), completed()], &errored()).code(), "ended");
    assert_eq!(refuses(&[started(), completed()], &invoked("pay", None)).code(), "ended");
    let thinking = [started(), changed("idle", "thinking")];
    assert_eq!(refuses(&thinking, &irreversible("pay")).code(), "irreversible_without_accept");
    let rejected = [started(), confirmation("rpl_1", "reject")];
    assert_eq!(refuses(&rejected, &irreversible("pay")).code(), "irreversible_without_accept");
    let out = Some("out_1");
    let whole = [started(), chunk(out, 0, "abc", true)];
    assert_eq!(refuses(&whole, &chunk(out, 3, "d", false)).code(), "output_already_complete");
    let begun = [started(), chunk(out, 0, &"x".repeat(50), false)];
    assert_eq!(refuses(&begun, &chunk(out, 30, "d", false)).code(), "position_does_not_follow");
}

#[test]
fn a_whole_session_with_a_question_passes() {
    let mut order = after(&[
        started(),
        changed("idle", "thinking"),
        invoked("look_up", Some("call_1")),
        done("look_up", Some("call_1")),
        changed("thinking", "deciding"),
        changed("deciding", "thinking"),
        confirmation("rpl_1", "reject"),
    ]);
    order.accept(for_any_tool());
    for event in [
        irreversible("pay"),
        done("pay", None),
        changed("calling_tool", "writing_output"),
        chunk(None, 0, "Paid.", false),
        chunk(None, 5, " Goodbye.", true),
        completed(),
    ] {
        order.admit(&event).expect("an event of a right session");
    }
}

#[test]
fn every_refusal_is_a_sentence_with_its_section_and_advice() {
    let id = ToolCallId::parse("call_1").expect("an id");
    let all = [
        NotStarted,
        StartedTwice,
        Ended,
        TimeWentBack { last_us: START_MS * 1000 + 5 },
        SequenceMissing { expected: 4 },
        SequenceUnexpected,
        SequenceBroken { expected: 4 },
        FirstStateNotIdle,
        StateDoesNotFollow { expected: vec!["a\u{202e}".to_owned(), "b".to_owned()] },
        ToolNotInvoked { tool: tool("x"), tool_call_id: None },
        ToolCallIdReused { tool_call_id: id.clone() },
        ToolNameDiffers { invoked: tool("x") },
        ToolStillOpen { tool: tool("x"), tool_call_id: Some(id) },
        ToolLeftRunning { tool: tool("x"), tool_call_id: None },
        PositionDoesNotFollow { expected: 4 },
        OutputAlreadyComplete { output_id: None },
        OutputNotComplete { output_id: None },
        IrreversibleWithoutAccept { tool: tool("x") },
        HighRiskWithoutAccept { tool: tool("x") },
        OtherToolAccepted { tool: tool("x"), accepted: tool("y") },
        ActionDiffers { tool: tool("x") },
        ActionDigestMissing { tool: tool("x") },
        AcceptedByDefault { tool: tool("x") },
        AcceptedAsReversible { tool: tool("x") },
        AcceptedAtLowerRisk { tool: tool("x") },
        RiskNotStated { tool: tool("x") },
        AcceptedForAnotherAgent { tool: tool("x") },
        TooManyOpenTools,
        TooManyTools,
        TooManyOpenOutputs,
        TooManyOutputs,
        TooManyProducers,
    ];
    let mut codes: Vec<_> = all.iter().map(OrderViolation::code).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), all.len());
    for violation in &all {
        let sentence = violation.to_string();
        assert!(sentence.ends_with('.') && sentence.len() > 10, "{sentence}");
        assert!(!sentence.contains('\u{202e}'), "{sentence}");
        assert!(violation.advice().ends_with('.'));
        assert!(violation.section().contains('.'));
    }
    assert!(all[3].to_string().contains(".000005Z"), "{}", all[3]);
}
