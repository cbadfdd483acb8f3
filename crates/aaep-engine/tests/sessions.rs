//! Sessions through the engine: their order, what a refusal leaves behind, what an end closes, and
//! what is filled in for agents (§3.2, §3.4.1, chapter 4, appendix A).

#[path = "common/support.rs"]
mod support;

use std::collections::BTreeSet;

use aaep::{CoreType, Mode, Severity};
use aaep_engine::order::OrderViolation;
use aaep_engine::{EngineConfig, MAX_SESSIONS, Output, Refusal, is_filled};
use serde_json::{Value as Json, json};
use support::*;

/// Offers an event that must be refused, and checks that nobody can tell that it was offered.
fn refused(world: &mut World, subscriber: &Subscriber, kind: &str, fields: Json) -> Refusal {
    let before = world.heard(subscriber).len();
    let outputs = world.offer_event(SESSION, kind, fields);
    assert_eq!(outputs.len(), 1, "{kind}: {outputs:?}");
    let Some(why) = refusal(&outputs) else { panic!("{kind} was taken: {outputs:?}") };
    assert_eq!(world.heard(subscriber).len(), before, "{kind} was told");
    why.clone()
}

fn order(refusal: &Refusal) -> &'static str {
    let Refusal::Order(violation) = refusal else { panic!("{refusal:?}") };
    violation.code()
}

fn tool(id: &str) -> Json {
    json!({ "tool": "list", "summary_normal": "Lists.", "tool_call_id": id })
}

fn done(tool: &str, id: &str) -> Json {
    json!({ "tool": tool, "status": "success", "tool_call_id": id })
}

#[test]
fn a_session_starts_once_and_before_everything_else() {
    let mut world = World::new();
    let one = world.listen(1, everything());
    for (kind, fields) in [
        ("state.changed", json!({ "from_state": "idle", "to_state": "thinking" })),
        ("tool.invoked", tool("call_1")),
        ("session.completed", json!({ "summary_normal": "Done." })),
        ("awaiting.confirmation", confirmation("rpl_1", json!({}))),
    ] {
        let why = refused(&mut world, &one, kind, fields);
        assert_eq!(why, Refusal::Order(OrderViolation::NotStarted));
    }
    world.start(SESSION);
    let twice = json!({ "summary_normal": "Again." });
    let why = refused(&mut world, &one, "session.started", twice);
    assert_eq!(why, Refusal::Order(OrderViolation::StartedTwice));
    assert_eq!(kinds(world.heard(&one)), ["session.started"]);
    assert_eq!(world.engine.open_asks(), 0);
}

#[test]
fn nothing_follows_the_end_and_the_id_is_never_used_again() {
    for end in ["session.completed", "session.errored", "session.cancelled"] {
        let mut world = World::started();
        let one = world.listen(1, everything());
        let mut fields = json!({ "summary_normal": "It is over." });
        match end {
            "session.errored" => fields["error_category"] = json!("unknown"),
            "session.cancelled" => fields["cancelled_by"] = json!("user"),
            _ => {}
        }
        world.say(end, fields);
        for (kind, fields) in [
            ("session.completed", json!({ "summary_normal": "Done." })),
            ("session.errored", json!({ "summary_normal": "No.", "error_category": "unknown" })),
            ("session.started", json!({ "summary_normal": "Again." })),
            ("tool.invoked", tool("call_1")),
            ("awaiting.clarification", clarification("rpl_1", json!({}))),
        ] {
            let why = refused(&mut world, &one, kind, fields);
            assert_eq!(why, Refusal::Order(OrderViolation::Ended), "{kind} after {end}");
        }
        assert_eq!(world.heard(&one).last().map(Heard::kind), Some(end));
    }
}

#[test]
fn only_the_agent_that_started_a_session_speaks_in_it() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.take(&one);
    let fields = json!({ "from_state": "idle", "to_state": "thinking" });
    let outputs = world.publish(9, World::draft(SESSION, "state.changed", fields));
    assert_eq!(refusal(&outputs), Some(&Refusal::NotYourSession));
    let end = json!({ "summary_normal": "Done." });
    let outputs = world.publish(9, World::draft(SESSION, "session.completed", end));
    assert_eq!(refusal(&outputs), Some(&Refusal::NotYourSession));
    assert!(world.heard(&one).is_empty());
}

#[test]
fn an_event_id_counts_once() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.take(&one);
    let fields = json!({ "event_id": "evt_mine", "progress": { "percent": 1 } });
    world.say("progress.updated", fields.clone());
    let why = refused(&mut world, &one, "progress.updated", fields);
    assert_eq!(why, Refusal::Repeated);
    assert_eq!(world.heard(&one).len(), 1);
}

#[test]
fn the_first_state_is_idle_and_each_change_starts_where_the_last_ended() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let jump = |from: &str, to: &str| json!({ "from_state": from, "to_state": to });
    let why = refused(&mut world, &one, "state.changed", jump("thinking", "deciding"));
    assert_eq!(order(&why), OrderViolation::FirstStateNotIdle.code());
    world.change("idle", "thinking");
    let why = refused(&mut world, &one, "state.changed", jump("idle", "deciding"));
    assert!(matches!(why, Refusal::Order(OrderViolation::StateDoesNotFollow { .. })));
    world.change("thinking", "deciding");
    world.say("tool.invoked", tool("call_1"));
    world.say("tool.completed", done("list", "call_1"));
    world.change("calling_tool", "thinking");
}

#[test]
fn a_tool_completes_after_it_was_invoked_once_and_under_its_own_name() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    refused(&mut world, &one, "tool.completed", done("list", "call_1"));
    refused(&mut world, &one, "tool.completed", json!({ "tool": "list", "status": "success" }));
    world.say("tool.invoked", tool("call_1"));
    refused(&mut world, &one, "tool.invoked", tool("call_1"));
    refused(&mut world, &one, "tool.completed", done("copy", "call_1"));
    refused(&mut world, &one, "tool.completed", done("list", "call_2"));
    world.say("tool.completed", done("list", "call_1"));
    refused(&mut world, &one, "tool.completed", done("list", "call_1"));
    refused(&mut world, &one, "tool.invoked", tool("call_1"));
}

#[test]
fn chunks_follow_on_each_other_and_end_once() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let chunk = |text: &str, position: u64, complete: bool| json!({ "chunk": text, "position": position, "complete": complete, "output_id": "out_1" });
    refused(&mut world, &one, "output.streaming", chunk("a", 1, false));
    world.say("output.streaming", chunk("née 👩‍🚀", 0, false));
    for wrong in [0, 6, 8, 15] {
        refused(&mut world, &one, "output.streaming", chunk("a", wrong, false));
    }
    world.say("output.streaming", chunk(".", 7, true));
    refused(&mut world, &one, "output.streaming", chunk("more", 8, false));
    refused(&mut world, &one, "output.streaming", chunk("", 8, true));
    assert_eq!(text_of(world.heard(&one), Some("out_1")), "née 👩‍🚀.");
    let ends = world.heard(&one).iter().filter(|it| it.json["complete"] == json!(true));
    assert_eq!(ends.count(), 1);
}

#[test]
fn a_tool_is_done_before_the_state_that_follows_it() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.change("idle", "calling_tool");
    world.say("tool.invoked", tool("call_1"));
    let left = json!({ "from_state": "calling_tool", "to_state": "writing_output" });
    let why = refused(&mut world, &one, "state.changed", left.clone());
    assert!(matches!(why, Refusal::Order(OrderViolation::ToolLeftRunning { .. })), "{why:?}");
    world.say("tool.completed", done("list", "call_1"));
    world.say("state.changed", left);
}

#[test]
fn after_an_accept_the_tool_is_done_before_the_state_that_follows_it() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.change("idle", "thinking");
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    world.confirm(&one, "rpl_1", "accept");
    world.say("tool.invoked", irreversible_tool());
    // The agent does not say that it calls a tool, but the hub did in its name.
    let left = json!({ "from_state": "thinking", "to_state": "deciding" });
    let why = refused(&mut world, &one, "state.changed", left.clone());
    assert!(matches!(why, Refusal::Order(OrderViolation::ToolLeftRunning { .. })), "{why:?}");
    world.say("tool.completed", json!({ "tool": "delete", "status": "success" }));
    world.say("state.changed", left);
}

#[test]
fn a_session_does_not_complete_with_something_left_open() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let end = || json!({ "summary_normal": "Done." });
    world.say("tool.invoked", tool("call_1"));
    refused(&mut world, &one, "session.completed", end());
    world.say("tool.completed", done("list", "call_1"));
    world.chunk("Half a sen", 0, false);
    refused(&mut world, &one, "session.completed", end());
    world.chunk("tence.", 10, true);
    world.say("session.completed", end());
}

#[test]
fn what_an_errored_session_left_open_is_closed_before_its_end_is_told() {
    for boundary in ["none", "sentence", "completion"] {
        let mut world = World::started();
        let one = world.listen(1, json!({ "coalesce_boundaries": [boundary] }));
        world.take(&one);
        world.say("tool.invoked", tool("call_1"));
        world.chunk("Half a sen", 0, false);
        let outputs = world.fail(SESSION);
        let heard = world.heard(&one);
        assert_eq!(text_of(heard, None), "Half a sen", "{boundary}");
        let ends = heard.iter().filter(|it| it.json["complete"] == json!(true)).count();
        assert_eq!(ends, 1, "{boundary}");
        let closed = heard.iter().find(|it| it.kind() == "tool.completed").expect("closed");
        assert_eq!(closed.text("status"), "timeout");
        assert_eq!(closed.text("tool_call_id"), "call_1");
        assert_eq!(heard.last().map(Heard::kind), Some("session.errored"));
        let recorded = outputs.iter().filter(|it| matches!(it, Output::Record(_))).count();
        assert_eq!(recorded, 3, "the history has them too");
    }
}

#[test]
fn an_agent_may_leave_out_what_the_engine_knows() {
    let mut world = World::new();
    let one = world.listen(1, everything());
    let mut bare = json!({
        "type": "aaep:agent.session.started",
        "producer": { "agent_id": "helper" },
        "summary_normal": "Tidies up.",
    });
    let Some(object) = bare.as_object_mut() else { panic!("object") };
    world.engine.fill(world.now, object);
    let filled = object.clone();
    let reading = aaep::read(Json::Object(filled.clone()).to_string().as_bytes(), Mode::Strict);
    assert!(reading.violations.iter().all(|it| it.severity != Severity::Error));
    assert!(refusal(&world.publish(AGENT, filled.clone())).is_none());
    let session = filled["session_id"].as_str().unwrap_or_default().to_owned();
    world.jump_us(SECOND);
    for (from, to) in [("idle", "thinking"), ("thinking", "deciding")] {
        let mut draft = World::draft(&session, "state.changed", json!({ "to_state": to }));
        world.engine.fill(world.now, &mut draft);
        assert_eq!(draft["from_state"], json!(from));
        assert!(refusal(&world.publish(AGENT, draft)).is_none());
    }
    let question = json!({ "question": "Which?", "timeout_seconds": 9 });
    let mut draft = World::draft(&session, "awaiting.clarification", question);
    world.engine.fill(world.now, &mut draft);
    assert_eq!(draft["urgency"], json!("critical"));
    assert!(draft["reply_token"].as_str().is_some_and(|it| it.starts_with("rpl_")));
    assert!(refusal(&world.publish(AGENT, draft)).is_none());
    assert_eq!(world.heard(&one)[0].text("timestamp"), "2026-05-28T20:26:40.000Z");
    let sessions: BTreeSet<&str> =
        world.heard(&one).iter().map(|it| it.text("session_id")).collect();
    assert_eq!(sessions.len(), 1);
}

#[test]
fn what_an_agent_did_say_is_not_filled_over() {
    let mut world = World::new();
    let said = json!({
        "@context": [aaep::CORE_CONTEXT, aaep::extension::CONTEXT],
        "event_id": "evt_own", "timestamp": "2026-01-01T00:00:00.000Z",
        "urgency": "critical", "summary_normal": "Starts.",
    });
    let mut draft = World::draft(SESSION, "session.started", said);
    let before = draft.clone();
    world.engine.fill(world.now, &mut draft);
    assert_eq!(draft, before);
}

#[test]
fn what_has_to_be_filled_is_known_beforehand() {
    let mut world = World::new();
    for core in CoreType::ALL {
        let mut bare = json!({ "type": core.as_str(), "producer": { "agent_id": "helper" } });
        let Some(bare) = bare.as_object_mut() else { panic!("object") };
        assert!(!is_filled(bare), "{core:?}");
        let mut filled = bare.clone();
        world.engine.fill(world.now, &mut filled);
        // Where no call runs, nobody knows which one has completed.
        if *core == CoreType::ToolCompleted {
            assert!(!filled.contains_key("tool_call_id"));
            filled.insert("tool_call_id".to_owned(), json!("call_1"));
        }
        assert!(is_filled(&filled), "{core:?}: {filled:?}");
        let given: Vec<String> =
            filled.keys().filter(|it| !bare.contains_key(*it)).cloned().collect();
        for name in given {
            let mut without = filled.clone();
            without.remove(&name);
            assert!(!is_filled(&without), "{core:?} without {name}");
        }
    }
    let mut other = World::draft(SESSION, "com.example.extra", json!({}));
    world.engine.fill(world.now, &mut other);
    assert!(is_filled(&other));
}

/// Publishes an event as an agent writes it, and gives it as it was filled.
fn say(world: &mut World, name: &str, fields: Json) -> aaep::Object {
    let mut draft = World::draft(SESSION, name, fields);
    world.engine.fill(world.now, &mut draft);
    assert!(refusal(&world.publish(AGENT, draft.clone())).is_none(), "{draft:?}");
    draft
}

#[test]
fn pieces_of_text_need_neither_an_output_nor_a_position() {
    let mut world = World::started();
    let piece = |chunk: &str, complete: bool| json!({ "chunk": chunk, "complete": complete });
    let first = say(&mut world, "output.streaming", piece("Ọlá 🚀", false));
    let other = json!({ "chunk": "aside", "complete": false, "output_id": "out_own" });
    let named = say(&mut world, "output.streaming", other);
    let second = say(&mut world, "output.streaming", piece("!", true));
    assert_eq!((&first["position"], &named["position"]), (&json!(0), &json!(0)));
    assert_eq!(second["output_id"], first["output_id"]);
    assert_eq!(second["position"], json!("Ọlá 🚀".chars().count()), "code points are counted");
    let next = say(&mut world, "output.streaming", piece("A new one.", true));
    assert_ne!(next["output_id"], first["output_id"]);
    assert_eq!(next["position"], json!(0));
    for text in ["Counted by its agent.", "And again."] {
        let counted = json!({ "chunk": text, "complete": true, "position": 0 });
        say(&mut world, "output.streaming", counted);
    }
    let end = json!({ "chunk": "", "complete": true, "output_id": "out_own" });
    assert_eq!(say(&mut world, "output.streaming", end)["position"], json!(5));
}

#[test]
fn tools_need_no_call_id() {
    let mut world = World::started();
    let invoked = json!({ "tool": "shell", "summary_normal": "Runs it." });
    let completed = json!({ "tool": "shell", "status": "success" });
    let one = say(&mut world, "tool.invoked", invoked.clone());
    let two = say(&mut world, "tool.invoked", invoked.clone());
    assert_ne!(one["tool_call_id"], two["tool_call_id"]);
    for call in [&one, &two] {
        let done = say(&mut world, "tool.completed", completed.clone());
        assert_eq!(done["tool_call_id"], call["tool_call_id"], "the oldest first");
    }
    let mut own = invoked;
    own["tool_call_id"] = json!("call_own");
    say(&mut world, "tool.invoked", own);
    let done = say(&mut world, "tool.completed", completed);
    assert_eq!(done["tool_call_id"], json!("call_own"), "only this one can be meant");
}

#[test]
fn filled_timestamps_never_go_back_even_if_the_wall_clock_does() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.jump_us(5 * SECOND);
    world.change("idle", "thinking");
    world.now.unix_us -= 3_600_000_000;
    world.change("thinking", "deciding");
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    world.pass_s(30);
    let stamps: Vec<i64> =
        world.heard(&one).iter().map(|it| it.event.envelope.timestamp.unix_us()).collect();
    assert!(stamps.is_sorted(), "{stamps:?}");
}

#[test]
fn an_event_older_than_the_one_before_is_refused() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let old = json!({ "timestamp": "2020-01-01T00:00:00.000Z", "progress": { "percent": 1 } });
    let why = refused(&mut world, &one, "progress.updated", old);
    assert!(matches!(why, Refusal::Order(OrderViolation::TimeWentBack { .. })));
}

#[test]
fn time_never_goes_back_for_subscribers_when_an_agents_clock_is_a_little_behind() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.take(&one);
    world.jump_us(SECOND);
    // Stamped 5 ms before it arrives, as every event over a wire is.
    let stamped = json!({ "timestamp": "2026-05-28T20:26:40.995Z" });
    world.say("awaiting.confirmation", confirmation("rpl_1", stamped));
    let stamps: Vec<i64> =
        world.heard(&one).iter().map(|it| it.event.envelope.timestamp.unix_us()).collect();
    assert!(stamps.is_sorted(), "{stamps:?}");
}

#[test]
fn no_two_events_of_the_engine_have_one_id() {
    let mut world = World::new();
    let one = world.listen(1, everything());
    for number in 0..40 {
        let session = format!("sess_{number}");
        world.start(&session);
        let ask = confirmation(&format!("rpl_{number}"), json!({}));
        world.say_in(&session, "awaiting.confirmation", ask);
        world.confirm(&one, &format!("rpl_{number}"), "reject");
        world.fail(&session);
    }
    let heard = world.heard(&one);
    let ids: BTreeSet<&str> = heard.iter().map(|it| it.id().as_str()).collect();
    assert_eq!(ids.len(), heard.len());
}

#[test]
fn a_refused_question_asks_nobody_and_leaves_its_token_free() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.complete(SESSION);
    refused(&mut world, &one, "awaiting.confirmation", confirmation("rpl_1", json!({})));
    assert_eq!((world.engine.open_asks(), world.engine.deadline()), (0, None));
    world.start("sess_2");
    world.say_in("sess_2", "awaiting.confirmation", confirmation("rpl_1", json!({})));
    assert_eq!(world.engine.open_asks(), 1);
}

#[test]
fn the_same_inputs_give_the_same_outputs() {
    let run = || {
        let mut world = World::started();
        let one = world.listen(1, limited(2, json!({})));
        let mut all = Vec::new();
        all.extend(world.say("awaiting.confirmation", confirmation("rpl_1", json!({}))));
        all.extend(world.confirm(&one, "rpl_1", "accept"));
        all.extend(world.say("tool.invoked", irreversible_tool()));
        all.extend(world.chunk("One. Two. ", 0, false));
        all.extend(world.fail(SESSION));
        all.extend(world.pass_s(9));
        all
    };
    assert_eq!(run(), run());
}

#[test]
fn sessions_do_not_mix() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.start("sess_2");
    world.chunk("One ", 0, false);
    let chunk = json!({ "chunk": "uno ", "position": 0, "complete": false });
    world.say_in("sess_2", "output.streaming", chunk);
    world.chunk("two.", 4, true);
    world.complete(SESSION);
    let chunk = json!({ "chunk": "dos.", "position": 4, "complete": true });
    world.say_in("sess_2", "output.streaming", chunk);
    for (session, text) in [(SESSION, "One two."), ("sess_2", "uno dos.")] {
        let of: Vec<Heard> = world
            .heard(&one)
            .iter()
            .filter(|it| it.text("session_id") == session)
            .cloned()
            .collect();
        assert_eq!(text_of(&of, None), text);
    }
}

#[test]
fn an_agent_that_numbers_its_events_numbers_them_all_without_gaps() {
    let mut world = World::new();
    let one = world.listen(1, everything());
    let numbered = |number: u64| json!({ "sequence_number": number, "progress": { "step": 1 }, "summary_normal": "Goes on." });
    let mut start = numbered(0);
    start.as_object_mut().and_then(|it| it.remove("progress"));
    let mut wrong = start.clone();
    wrong["sequence_number"] = json!(1);
    refused(&mut world, &one, "session.started", wrong);
    world.say("session.started", start);
    world.say("progress.updated", numbered(1));
    for wrong in [0, 1, 3] {
        refused(&mut world, &one, "progress.updated", numbered(wrong));
    }
    refused(&mut world, &one, "progress.updated", json!({ "progress": { "step": 2 } }));
    world.say("progress.updated", numbered(2));
    let numbers: Vec<_> =
        world.heard(&one).iter().map(|it| it.json["sequence_number"].as_u64()).collect();
    assert_eq!(numbers, [Some(0), Some(1), Some(2)]);
}

#[test]
fn running_sessions_are_never_forgotten_and_ended_ones_make_room() {
    let sessions_per_principal = MAX_SESSIONS + 1;
    let config = EngineConfig { sessions_per_principal, ..EngineConfig::new(offer(), [7; 32]) };
    let mut world = World::with(config);
    // A part is kept for principals that have none.
    for number in 0..MAX_SESSIONS - MAX_SESSIONS / 8 {
        world.start(&format!("sess_{number}"));
    }
    let fields = json!({ "summary_normal": "One more." });
    let outputs = world.offer_event("sess_more", "session.started", fields);
    assert!(matches!(refusal(&outputs), Some(Refusal::TooMany(_))));
    world.complete("sess_7");
    world.start("sess_more");
    world.complete("sess_0");
}

#[test]
fn what_was_left_open_is_closed_in_the_name_of_the_agent_that_opened_it() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let mut call = tool("call_1");
    call["producer"] = json!({ "agent_id": "searcher" });
    world.say("tool.invoked", call);
    world.fail(SESSION);
    let closed = world.heard(&one).iter().find(|it| it.kind() == "tool.completed").expect("closed");
    assert_eq!(closed.json["producer"]["agent_id"], json!("searcher"));
}
