//! Recorded streams: what counts as an accept, what is learned, and that each violation is reported
//! once.

use super::super::StreamOrder;
use super::*;

fn reply(token: &str, decision: &str) -> Message {
    message(&json!({
        "type": "confirmation.reply",
        "reply_token": token,
        "decision": decision,
        "subscription_id": "sub_1",
        "timestamp": "2026-05-24T14:22:24.812Z",
    }))
}

fn said(event: Event) -> Message {
    Message::Event(Box::new(event))
}

/// An event in which a hub states something about its delivery.
fn delivered(kind: &str, mut fields: Json, delivery: &Json) -> Event {
    fields["extensions"] = json!({ "agentvoice": delivery });
    event(kind, fields)
}

fn notice(token: &str, outcome: &str) -> Event {
    let resolution = json!({ "reply_token": token, "outcome": outcome, "decided_by": "reply" });
    let states = json!({ "from_state": "awaiting_input", "to_state": "thinking" });
    delivered("state.changed", states, &json!({ "resolution": resolution }))
}

fn in_session(mut event: Event, id: &str) -> Event {
    event.envelope.session_id = aaep::SessionId::parse(id).expect("an id");
    event
}

/// The codes of all violations in a stream, each with the index of its message.
fn faults(messages: impl IntoIterator<Item = Message>) -> Vec<(usize, &'static str)> {
    let mut order = StreamOrder::new();
    let places = messages.into_iter().enumerate();
    places
        .flat_map(|(at, it)| order.observe(&it).into_iter().map(move |why| (at, why.code())))
        .collect()
}

fn events(events: impl IntoIterator<Item = Event>) -> Vec<Message> {
    events.into_iter().map(said).collect()
}

const UNASKED: &str = "irreversible_without_accept";

#[test]
fn an_accepting_reply_covers_one_irreversible_tool() {
    let mut stream = events([started(), confirmation("rpl_1", "reject")]);
    stream.push(reply("rpl_1", "accept"));
    stream.push(reply("rpl_1", "accept"));
    stream.extend(events([irreversible("pay"), done("pay", None), irreversible("pay")]));
    assert_eq!(faults(stream), [(6, UNASKED)]);
}

#[test]
fn a_rejecting_reply_or_one_to_another_question_covers_nothing() {
    for answer in [reply("rpl_1", "reject"), reply("rpl_2", "accept")] {
        let stream = [
            said(started()),
            said(confirmation("rpl_1", "reject")),
            answer,
            reply("rpl_3", "accept"),
            said(irreversible("pay")),
        ];
        assert_eq!(faults(stream), [(4, UNASKED)]);
    }
    let stream = [
        said(started()),
        said(confirmation("rpl_1", "reject")),
        reply("rpl_1", "reject"),
        reply("rpl_1", "accept"),
        said(irreversible("pay")),
    ];
    assert_eq!(faults(stream), [(4, UNASKED)], "the first reply decides");
}

#[test]
fn a_reply_that_was_not_allowed_covers_nothing() {
    let mut asked = confirmation("rpl_1", "reject");
    if let Payload::AwaitingConfirmation(asked) = &mut asked.payload {
        asked.allowed_replies = Some(vec!["reject".to_owned()]);
    }
    let stream =
        [said(started()), said(asked), reply("rpl_1", "accept"), said(irreversible("pay"))];
    assert_eq!(faults(stream), [(3, UNASKED)]);
}

#[test]
fn a_timeout_accepts_only_if_its_default_does_and_its_time_is_over() {
    for (default, ms, expected) in [
        // Silence never covers an irreversible action (ruling 35), and only that is reported.
        ("accept", 60_000, vec![(2, "accepted_by_default")]),
        ("accept", 59_999, vec![(2, UNASKED)]),
        ("reject", 60_000, vec![(2, UNASKED)]),
    ] {
        let asked = confirmation("rpl_1", default);
        let stream = events([started(), asked, irreversible("pay").at_ms(ms)]);
        assert_eq!(faults(stream), expected, "{default} after {ms} ms");
    }
}

#[test]
fn a_reply_after_the_time_is_over_is_late() {
    let mut stream = events([started(), confirmation("rpl_1", "reject")]);
    stream.push(said(progress().at_ms(60_000)));
    stream.push(reply("rpl_1", "accept"));
    stream.push(said(irreversible("pay").at_ms(60_000)));
    assert_eq!(faults(stream), [(4, UNASKED)]);
}

#[test]
fn a_notice_of_acceptance_counts_even_to_those_who_were_not_asked() {
    let stream = events([started(), notice("rpl_1", "accept"), irreversible("pay")]);
    assert_eq!(faults(stream), []);
    let stream = events([started(), notice("rpl_1", "reject"), irreversible("pay")]);
    assert_eq!(faults(stream), [(2, UNASKED)]);
}

#[test]
fn a_notice_says_who_accepted() {
    for (decided_by, expected) in [
        ("reply", vec![]),
        ("timeout", vec![(3, "accepted_by_default")]),
        ("no_listener", vec![(3, "accepted_by_default")]),
        ("an_oracle", vec![(3, "accepted_by_default")]),
    ] {
        let mut notice = notice("rpl_1", "accept");
        let data = notice.extensions.iter_mut().flat_map(|it| it.0.values_mut());
        data.for_each(|it| it["resolution"]["decided_by"] = decided_by.into());
        let asked = confirmation("rpl_1", "reject");
        let stream = events([started(), asked, notice, irreversible("pay")]);
        assert_eq!(faults(stream), expected, "{decided_by}");
    }
}

#[test]
fn a_stream_is_held_to_what_was_presented() {
    let mild = |mut asked: Event| {
        if let Payload::AwaitingConfirmation(it) = &mut asked.payload {
            it.irreversible = Some(false);
        }
        asked
    };
    let mut stream = events([started(), mild(confirmation("rpl_1", "reject"))]);
    stream.push(reply("rpl_1", "accept"));
    stream.extend(events([irreversible("pay"), irreversible("pay").by("b")]));
    let expected = [(3, "accepted_as_reversible"), (4, UNASKED)];
    assert_eq!(faults(stream), expected);
}

#[test]
fn an_idle_that_was_held_back_takes_no_accept_away_in_a_stream() {
    // The accept is critical and may overtake an earlier state change.
    let mut stream = events([started(), confirmation("rpl_1", "reject")]);
    stream.push(reply("rpl_1", "accept"));
    stream.extend(events([changed("idle", "idle"), irreversible("pay")]));
    assert_eq!(faults(stream), []);
}

#[test]
fn a_reply_and_its_notice_are_one_accept() {
    let mut stream = events([started(), confirmation("rpl_1", "reject")]);
    stream.push(reply("rpl_1", "accept"));
    stream.extend(events([
        notice("rpl_1", "accept"),
        notice("rpl_1", "accept"),
        irreversible("pay"),
        irreversible("pay"),
    ]));
    assert_eq!(faults(stream), [(6, UNASKED)]);
}

#[test]
fn a_session_joined_in_the_middle_is_told_once_and_then_learned() {
    let stream = events([
        changed("thinking", "deciding").numbered(17),
        changed("deciding", "thinking").numbered(18),
        done("search", Some("call_1")).numbered(19),
        done("fetch", None).numbered(20),
        chunk(Some("out_1"), 40, "abc", false).numbered(21),
        chunk(Some("out_1"), 43, "d", true).numbered(22),
        irreversible("pay").numbered(23),
        done("pay", None).numbered(24),
        completed().numbered(25),
    ]);
    assert_eq!(faults(stream), [(0, "not_started")]);
}

#[test]
fn what_was_learned_in_the_middle_then_holds() {
    let stream = events([
        chunk(None, 40, "abc", false),
        chunk(None, 44, "d", false),
        changed("thinking", "deciding"),
        changed("thinking", "idle"),
        done("search", Some("call_1")),
        done("search", Some("call_1")),
        invoked("search", Some("call_2")),
        completed(),
        progress(),
    ]);
    let expected = [
        (0, "not_started"),
        (1, "position_does_not_follow"),
        (3, "state_does_not_follow"),
        (5, "tool_not_invoked"),
        (7, "tool_still_open"),
        (8, "ended"),
    ];
    assert_eq!(faults(stream), expected);
}

#[test]
fn after_a_fault_the_stream_goes_on_from_what_it_said() {
    let stream = events([
        started().numbered(0),
        changed("idle", "thinking").numbered(1),
        changed("deciding", "writing_output").numbered(3),
        chunk(None, 5, "abc", false).numbered(4).at_ms(-1),
        chunk(None, 8, "d", true).numbered(5),
        changed("writing_output", "idle").numbered(6),
        completed().numbered(7),
    ]);
    let expected = [
        (2, "sequence_broken"),
        (2, "state_does_not_follow"),
        (3, "time_went_back"),
        (3, "position_does_not_follow"),
    ];
    assert_eq!(faults(stream), expected);
}

#[test]
fn one_old_event_does_not_excuse_the_next() {
    let stream = events([started().at_ms(10), progress().at_ms(5), progress().at_ms(7)]);
    assert_eq!(faults(stream), [(1, "time_went_back"), (2, "time_went_back")]);
}

#[test]
fn numbers_may_be_absent_in_a_stream_but_not_wrong() {
    let stream = events([started().numbered(0), progress(), progress().numbered(1)]);
    assert_eq!(faults(stream), []);
    let stream = events([started().numbered(0), progress().numbered(2), progress().numbered(3)]);
    assert_eq!(faults(stream), [(1, "sequence_broken")]);
    assert_eq!(faults(events([started().numbered(1)])), [(0, "sequence_broken")]);
}

#[test]
fn where_the_stream_says_that_it_has_a_gap_nobody_is_accused() {
    let gap = || {
        let states = json!({ "from_state": "idle", "to_state": "thinking" });
        delivered("state.changed", states, &json!({ "gap": { "missed": 3 } }))
    };
    assert_eq!(faults(events([gap(), chunk(None, 9, "abc", false)])), []);
    let around = [started(), chunk(None, 0, "abc", false), gap(), chunk(None, 9, "abc", true)];
    assert_eq!(faults(events(around)), []);
}

#[test]
fn a_merged_event_may_hide_tools_but_never_an_accept() {
    let states = json!({ "from_state": "thinking", "to_state": "deciding" });
    let merged = json!({ "merged": { "count": 5, "last_event_id": "evt_9" } });
    let stream = events([
        started(),
        invoked("search", Some("call_1")),
        delivered("state.changed", states, &merged),
        done("fetch", Some("call_2")),
        irreversible("pay"),
        done("pay", None),
        completed(),
    ]);
    assert_eq!(faults(stream), [(4, UNASKED)]);
}

#[test]
fn sessions_of_a_stream_are_apart() {
    let stream = events([
        started(),
        in_session(started(), "sess_2"),
        changed("idle", "thinking"),
        in_session(changed("idle", "deciding"), "sess_2"),
        completed(),
        in_session(changed("deciding", "thinking"), "sess_2"),
        progress(),
    ]);
    assert_eq!(faults(stream), [(6, "ended")]);
}

#[test]
fn the_session_that_began_first_is_forgotten_first_and_not_accused_for_it() {
    let mut order = StreamOrder::new();
    let start = started();
    for number in 0..=StreamOrder::MAX_SESSIONS {
        let begins = in_session(start.clone(), &format!("sess_{number}"));
        assert_eq!(order.observe_event(&begins), []);
    }
    assert_eq!(order.observe_event(&in_session(progress(), "sess_0")), []);
    let known = in_session(started(), &format!("sess_{}", StreamOrder::MAX_SESSIONS));
    assert_eq!(order.observe_event(&known), [OrderViolation::StartedTwice]);
}
