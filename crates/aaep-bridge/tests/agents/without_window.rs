//! Claude Code without a window (`claude -p`): the hook itself asks, and the person can answer after it ended.

use aaep_bridge::{AskAnswer, AskPolicy, BridgedAgent, HookPlan};
use serde_json::{Value, json};

use crate::harness::Session;

const HOUR_MS: i64 = 3600 * 1000;

/// A Claude Code without a window, that lets people answer for eight hours.
fn session() -> Session {
    let mut session = Session::new(BridgedAgent::ClaudeCode, AskPolicy::AskWhenRisky);
    (session.has_window, session.later_hours) = (false, Some(8));
    call(&mut session, "s-1", "UserPromptSubmit", &json!({ "prompt": "Tidy up." }));
    session
}

fn call(session: &mut Session, id: &str, event: &str, fields: &Value) -> HookPlan {
    let mut payload = json!({
        "session_id": id, "prompt_id": "p-1", "cwd": "/home/ada/work/shop", "permission_mode": "default",
        "hook_event_name": event,
    });
    for (name, value) in fields.as_object().expect("fields") {
        payload[name] = value.clone();
    }
    session.call("", &payload)
}

fn wants(session: &mut Session, id: &str, command: &str) -> HookPlan {
    let fields = json!({ "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": { "command": command } });
    call(session, id, "PreToolUse", &fields)
}

fn decision(answer: &aaep_bridge::HookAnswer) -> Option<String> {
    let printed = answer.print.as_ref()?;
    printed["hookSpecificOutput"]["permissionDecision"].as_str().map(str::to_owned)
}

/// The question as it is put, with its ids.
fn put(plan: &HookPlan, token: &str) -> Value {
    let mut event = plan.ask.as_ref().expect("a question").questions[0].event.clone();
    event["event_id"] = format!("evt_{token}").into();
    event["reply_token"] = token.into();
    event
}

/// Puts a question, and lets the agent end at it.
fn ends_at_question(session: &mut Session) -> Value {
    let plan = wants(session, "s-1", "rm -rf build");
    let ask = plan.ask.as_ref().expect("a question");
    let event = put(&plan, "rpl_1");
    session.memory.note_asked(&ask.about, "rpl_1");
    assert!(session.memory.note_left_open(ask, &event));
    let left = ask.left_open();
    assert_eq!(decision(&left.answer).as_deref(), Some("defer"));
    let closing = call(session, "s-1", "SessionEnd", &json!({ "reason": "other" }));
    assert_eq!((closing.events.len(), closing.withdrawn.len()), (0, 0), "the question stays");
    assert!(session.memory.has_left_open(session.now_ms));
    event
}

fn earlier(plan: &HookPlan) -> Option<&Value> {
    plan.ask.as_ref().and_then(|ask| ask.later.as_ref()).and_then(|it| it.earlier.as_ref())
}

#[test]
fn the_hook_asks_where_there_is_no_window_to_ask_in() {
    for (answer, told) in [(AskAnswer::Accepted, "allow"), (AskAnswer::Rejected, "deny")] {
        let mut session = session();
        session.later_hours = None;
        let plan = wants(&mut session, "s-1", "rm -rf build");
        assert_eq!(decision(&plan.answer).as_deref(), Some("deny"), "unless somebody says yes");
        assert_eq!(decision(&session.answer(&plan, &[answer])).as_deref(), Some(told));
    }
    let mut session = session();
    session.has_window = true;
    let plan = wants(&mut session, "s-1", "rm -rf build");
    assert_eq!((plan.ask, decision(&plan.answer).as_deref()), (None, Some("ask")));
}

#[test]
fn the_agent_goes_on_with_the_answer_to_exactly_its_question_once() {
    let mut session = session();
    let event = ends_at_question(&mut session);
    let ours = &event["extensions"]["agentvoice"];
    assert_eq!((&ours["stays_open"], &event["timeout_seconds"]), (&true.into(), &28_800.into()));
    let consequence = event["consequence"].as_str().expect("words");
    assert!(consequence.ends_with("claude -p --resume s-1"), "{consequence}");
    session.now_ms += 5 * HOUR_MS;
    let plan = wants(&mut session, "s-1", "rm -rf build");
    assert_eq!(earlier(&plan), Some(&event), "it is not asked again");
    let ask = plan.ask.as_ref().expect("the question");
    session.memory.note_asked(&ask.about, "rpl_1");
    assert!(session.memory.note_answered(ask, "rpl_1", &[AskAnswer::Accepted]));
    assert_eq!(decision(&ask.answered(&[AskAnswer::Accepted]).answer).as_deref(), Some("allow"));
    assert!(!session.memory.note_answered(ask, "rpl_1", &[AskAnswer::Accepted]), "only once");
    let again = wants(&mut session, "s-1", "rm -rf build");
    assert_eq!(earlier(&again), None, "the same call is asked again");
}

#[test]
fn an_answer_is_for_no_other_arguments_and_no_other_session_and_not_for_ever() {
    let mut other = session();
    ends_at_question(&mut other);
    let plan = wants(&mut other, "s-1", "rm -rf /");
    assert_eq!((earlier(&plan), plan.withdrawn.as_slice()), (None, &["rpl_1".to_owned()][..]));
    let mut other = session();
    ends_at_question(&mut other);
    // Its memory is a file of its own, so this is what somebody would see who copied it.
    let plan = wants(&mut other, "s-2", "rm -rf build");
    assert_eq!((earlier(&plan), plan.withdrawn.as_slice()), (None, &["rpl_1".to_owned()][..]));
    let mut late = session();
    ends_at_question(&mut late);
    late.now_ms += 9 * HOUR_MS;
    assert!(!late.memory.has_left_open(late.now_ms));
    let plan = wants(&mut late, "s-1", "rm -rf build");
    assert_eq!((earlier(&plan), plan.withdrawn.as_slice()), (None, &["rpl_1".to_owned()][..]));
    let mut off = session();
    ends_at_question(&mut off);
    off.later_hours = None;
    let plan = wants(&mut off, "s-1", "rm -rf build");
    assert_eq!((earlier(&plan), plan.withdrawn.as_slice()), (None, &["rpl_1".to_owned()][..]));
}

#[test]
fn a_question_that_was_answered_before_is_not_left_open() {
    let mut session = session();
    let plan = wants(&mut session, "s-1", "rm -rf build");
    let ask = plan.ask.as_ref().expect("a question");
    assert!(!session.memory.note_left_open(ask, &put(&plan, "rpl_1")), "it was never put");
    session.memory.note_asked(&ask.about, "rpl_2");
    assert!(!session.memory.note_left_open(ask, &put(&plan, "rpl_1")), "another one was put");
}

#[test]
fn the_machine_is_in_the_name_where_several_share_a_hub() {
    let mut session = session();
    session.machine = Some("attic".to_owned());
    let plan = wants(&mut session, "s-1", "ls");
    let producer = &plan.events.last().expect("an event")["producer"];
    assert_eq!(producer["agent_id"], "claude-code@attic");
    assert_eq!(producer["agent_name"], "Claude Code");
}

#[test]
fn a_question_that_the_window_decides_says_so() {
    let mut session = session();
    session.has_window = true;
    wants(&mut session, "s-1", "rm -rf build");
    let fields = json!({ "tool_name": "Bash", "tool_input": { "command": "rm -rf build" } });
    let plan = call(&mut session, "s-1", "PermissionRequest", &fields);
    let event = &plan.ask.as_ref().expect("a question").questions[0].event;
    assert_eq!(event["extensions"]["agentvoice"]["asked_elsewhere"], true);
    let answer = session.answer(&plan, &[AskAnswer::Nothing]);
    assert!(answer.is_nothing());
    let last = session.words().pop().expect("words");
    assert_eq!(
        last,
        "state.changed: Nobody answered here, so Claude Code waits for you in its own window."
    );
}
