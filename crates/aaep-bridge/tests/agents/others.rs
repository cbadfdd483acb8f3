//! The same turn with every agent: asked, accepted, refused, unanswered, and in its own window.

use aaep_bridge::{AskAnswer, AskPolicy, BridgedAgent, HookAnswer, HookCall, HookPlan};
use serde_json::{Value, json};

use crate::harness::{Session, assert_sound, assert_valid};
use crate::payloads::{TurnMoment, payload};

const REMOVE: &str = "rm -rf build";

impl Session {
    /// Reports a moment of the turn, in the agent's own shape.
    fn report(&mut self, moment: TurnMoment) -> HookPlan {
        self.report_command(moment, REMOVE)
    }

    fn report_command(&mut self, moment: TurnMoment, command: &str) -> HookPlan {
        match payload(self.agent, moment, command) {
            Some((event, payload)) => self.call(event, &payload),
            None => HookPlan::default(),
        }
    }
}

/// The agents that we ask for before their tools, instead of their own dialog.
fn gated() -> impl Iterator<Item = BridgedAgent> {
    BridgedAgent::ALL.iter().copied().filter(|it| *it != BridgedAgent::ClaudeCode)
}

fn begun(agent: BridgedAgent, policy: AskPolicy) -> Session {
    let mut session = Session::new(agent, policy);
    session.report(TurnMoment::Prompt);
    session
}

/// Whether the answer keeps the tool from running, in the agent's own form.
fn refuses(agent: BridgedAgent, answer: &HookAnswer) -> bool {
    let print = answer.print.as_ref();
    match agent {
        BridgedAgent::ClaudeCode | BridgedAgent::Codex => {
            print.is_some_and(|it| it["hookSpecificOutput"]["permissionDecision"] == "deny")
        }
        BridgedAgent::GeminiCli => print.is_some_and(|it| it["decision"] == "deny"),
        BridgedAgent::CopilotCli => print.is_some_and(|it| it["permissionDecision"] == "deny"),
        BridgedAgent::Cline => print.is_some_and(|it| it["cancel"] == true),
        BridgedAgent::QwenCode | BridgedAgent::KimiCode => {
            answer.refusal.is_some() && print.is_none()
        }
    }
}

#[test]
fn a_tool_that_the_person_accepts_runs_and_is_told_once() {
    for agent in gated() {
        let mut session = begun(agent, AskPolicy::AskWhenRisky);
        let asked = session.report(TurnMoment::BeforeTool);
        let event = &asked.ask.as_ref().expect("a question").questions[0].event;
        assert!(event["action"].as_str().expect("words").ends_with(REMOVE), "{event}");
        assert_eq!(event["default_decision"], "reject");
        let without_hub = asked.answer_without_hub.as_ref().expect("an answer");
        assert!(refuses(agent, without_hub), "{agent:?}");
        let answer = session.answer(&asked, &[AskAnswer::Accepted]);
        assert!(!refuses(agent, &answer) && answer.refusal.is_none(), "{agent:?}: {answer:?}");
        session.report(TurnMoment::ToolEnded);
        session.report(TurnMoment::End);
        let words = session.words();
        let runs = words.iter().filter(|it| **it == format!("tool.invoked: Runs: {REMOVE}"));
        assert_eq!(runs.count(), 1, "{agent:?}: {words:?}");
        let end = words.last().expect("an end");
        assert!(end.ends_with(": 1 tool used."), "{agent:?}: {words:?}");
        assert_sound(&session.told);
    }
}

#[test]
fn whatever_is_not_a_yes_keeps_the_tool_from_running() {
    for agent in gated() {
        for answer in [AskAnswer::Rejected, AskAnswer::Nothing, AskAnswer::NobodyThere] {
            let mut session = begun(agent, AskPolicy::AskWhenRisky);
            let asked = session.report(TurnMoment::BeforeTool);
            let given = session.answer(&asked, std::slice::from_ref(&answer));
            assert!(refuses(agent, &given), "{agent:?} {answer:?}: {given:?}");
            // The model claims that it did it.
            session.report(TurnMoment::End);
            let words = session.words();
            assert!(!words.iter().any(|it| it.starts_with("tool.")), "{agent:?}: {words:?}");
            let end = words.last().expect("an end");
            assert!(end.ends_with(": 1 not run."), "{agent:?}: {words:?}");
            assert_sound(&session.told);
        }
        let ask = begun(agent, AskPolicy::AskWhenRisky).report(TurnMoment::BeforeTool).ask;
        let ask = ask.expect("a question");
        for answers in [
            &[][..],
            &[AskAnswer::Words("yes".into())],
            &[AskAnswer::Accepted, AskAnswer::Accepted],
        ] {
            assert!(refuses(agent, &ask.answered(answers).answer), "{agent:?} {answers:?}");
        }
    }
}

#[test]
fn a_yes_that_comes_after_the_question_was_closed_counts_for_nothing() {
    for agent in gated() {
        let mut session = begun(agent, AskPolicy::AskWhenRisky);
        let asked = session.report(TurnMoment::BeforeTool);
        let ask = asked.ask.as_ref().expect("a question");
        session.memory.note_asked(&ask.about, "rpl_5");
        let next = session.report(TurnMoment::Prompt);
        assert_eq!(next.withdrawn, ["rpl_5"], "{agent:?}");
        assert!(!session.memory.note_answered(ask, "rpl_5", &[AskAnswer::Accepted]));
        assert!(refuses(agent, &ask.not_counted()), "{agent:?}");
        // The same is asked again, under another name.
        let again = session.report(TurnMoment::BeforeTool);
        let ask = again.ask.as_ref().expect("a question");
        session.memory.note_asked(&ask.about, "rpl_6");
        assert!(!session.memory.note_answered(ask, "rpl_5", &[AskAnswer::Accepted]));
        assert!(session.memory.note_answered(ask, "rpl_6", &[AskAnswer::Accepted]));
    }
}

#[test]
fn a_yes_counts_for_the_agents_own_question_once_and_for_nothing_else() {
    for agent in [BridgedAgent::Codex, BridgedAgent::CopilotCli] {
        let mut session = begun(agent, AskPolicy::AskWhenRisky);
        let asked = session.report(TurnMoment::BeforeTool);
        session.answer(&asked, &[AskAnswer::Accepted]);
        let other = session.report_command(TurnMoment::AsksPermission, "rm -rf src");
        assert!(other.ask.is_some(), "{agent:?}: another command is asked");
        let permitted = session.report(TurnMoment::AsksPermission);
        assert!(permitted.ask.is_none());
        let print = permitted.answer.print.expect("an answer").to_string();
        assert!(print.contains("\"behavior\":\"allow\""), "{print}");
        assert!(session.report(TurnMoment::AsksPermission).ask.is_some(), "{agent:?}: once");
        // A yes that was never used is not for the next time.
        let asked = session.report(TurnMoment::BeforeTool);
        session.answer(&asked, &[AskAnswer::Accepted]);
        assert!(session.report(TurnMoment::BeforeTool).ask.is_some(), "{agent:?}");
    }
}

#[test]
fn the_agents_own_question_is_answered_here_and_silence_is_a_no() {
    for agent in [BridgedAgent::Codex, BridgedAgent::CopilotCli] {
        for (answer, behavior) in [
            (AskAnswer::Accepted, Some("allow")),
            (AskAnswer::Rejected, Some("deny")),
            (AskAnswer::Nothing, Some("deny")),
            (AskAnswer::NobodyThere, None),
        ] {
            let mut session = begun(agent, AskPolicy::Tell);
            assert!(session.report_command(TurnMoment::BeforeTool, "touch a").ask.is_none());
            let asked = session.report_command(TurnMoment::AsksPermission, "touch a");
            let without_hub = asked.answer_without_hub.clone().expect("its own dialog");
            assert!(without_hub.is_nothing());
            let given = session.answer(&asked, std::slice::from_ref(&answer));
            let print = given.print.map(|it| it.to_string()).unwrap_or_default();
            let wanted = behavior.map(|it| format!("\"behavior\":\"{it}\""));
            assert!(print.contains(wanted.as_deref().unwrap_or_default()), "{agent:?}: {print}");
            assert_eq!(print.is_empty(), behavior.is_none(), "{agent:?}: {print}");
            session.report(TurnMoment::End);
            assert_sound(&session.told);
        }
    }
}

#[test]
fn qwen_asks_first_and_its_tool_runs_only_after_a_yes_of_a_person() {
    let agent = BridgedAgent::QwenCode;
    let ask = |session: &mut Session, answer: AskAnswer| {
        let asked = session.report(TurnMoment::AsksPermission);
        session.answer(&asked, &[answer])
    };
    let mut session = begun(agent, AskPolicy::AskWhenRisky);
    ask(&mut session, AskAnswer::Accepted);
    let before = session.report(TurnMoment::BeforeTool);
    assert!(before.ask.is_none() && before.answer.is_nothing());
    session.report(TurnMoment::ToolEnded);
    assert!(session.report(TurnMoment::BeforeTool).ask.is_some(), "the yes was for once");

    let mut session = begun(agent, AskPolicy::AskWhenRisky);
    ask(&mut session, AskAnswer::Rejected);
    assert!(refuses(agent, &session.report(TurnMoment::BeforeTool).answer));

    // Nobody answered here, and it goes on: a person answered in its window, where only a person can.
    let mut session = begun(agent, AskPolicy::AskWhenRisky);
    ask(&mut session, AskAnswer::Nothing);
    assert!(session.report(TurnMoment::BeforeTool).ask.is_none());
    let words = session.words();
    assert!(words.contains(&format!("tool.invoked: Allowed in its own window. Runs: {REMOVE}")));

    // In a mode where a model can answer, a person is asked all the same.
    let mut session = begun(agent, AskPolicy::AskWhenRisky);
    let (event, mut auto) = payload(agent, TurnMoment::AsksPermission, REMOVE).expect("one");
    auto["permission_mode"] = "auto".into();
    let asked = session.call(event, &auto);
    session.answer(&asked, &[AskAnswer::Nothing]);
    assert!(session.report(TurnMoment::BeforeTool).ask.is_some());
    assert_sound(&session.told);
}

#[test]
fn a_dialog_that_only_the_agents_window_answers_is_told_with_what_it_is_about() {
    for agent in [BridgedAgent::GeminiCli, BridgedAgent::KimiCode] {
        let mut session = begun(agent, AskPolicy::AskWhenRisky);
        let asked = session.report(TurnMoment::BeforeTool);
        session.answer(&asked, &[AskAnswer::Accepted]);
        assert!(!session.words().iter().any(|it| it.starts_with("tool.")), "it may ask again");
        assert!(session.report(TurnMoment::AsksPermission).ask.is_none());
        let waits = session.told.last().expect("an event");
        assert_eq!(
            (&waits["to_state"], &waits["urgency"]),
            (&"awaiting_input".into(), &"critical".into())
        );
        let words = waits["summary_normal"].as_str().expect("words");
        assert!(words.contains(REMOVE) && words.contains("deletes whole folders"), "{words}");
        // It was denied there: nothing comes any more.
        session.report(TurnMoment::End);
        let words = session.words();
        assert!(
            words.contains(&format!(
                "progress.updated: You allowed this, and it was not reported whether it ran. Runs: {REMOVE}"
            )),
            "{agent:?}: {words:?}"
        );
        assert_sound(&session.told);
    }
}

#[test]
fn kimi_says_how_its_own_dialog_was_answered() {
    for (decision, wanted) in [
        ("approved", format!("tool.invoked: Allowed in its own window. Runs: {REMOVE}")),
        ("rejected", format!("progress.updated: Denied in its own window. Runs: {REMOVE}")),
    ] {
        let mut session = begun(BridgedAgent::KimiCode, AskPolicy::Tell);
        session.report(TurnMoment::BeforeTool);
        let (event, mut result) =
            payload(BridgedAgent::KimiCode, TurnMoment::AsksPermission, REMOVE).expect("one");
        session.call(event, &result);
        result["hook_event_name"] = "PermissionResult".into();
        result["decision"] = decision.into();
        session.call("PermissionResult", &result);
        session.report(TurnMoment::End);
        assert!(session.words().contains(&wanted), "{:?}", session.words());
        assert_sound(&session.told);
    }
}

#[test]
fn a_tool_that_kimi_reports_as_failed_after_a_no_is_not_told_to_have_run() {
    let mut session = begun(BridgedAgent::KimiCode, AskPolicy::AskWhenRisky);
    let asked = session.report(TurnMoment::BeforeTool);
    session.answer(&asked, &[AskAnswer::Rejected]);
    let (_, mut failed) =
        payload(BridgedAgent::KimiCode, TurnMoment::ToolEnded, REMOVE).expect("one");
    failed["hook_event_name"] = "PostToolUseFailure".into();
    failed["error"] = "blocked".into();
    assert!(session.call("", &failed).events.is_empty());
}

#[test]
fn a_tool_that_ran_although_it_was_refused_is_told() {
    for agent in gated() {
        let mut session = begun(agent, AskPolicy::AskWhenRisky);
        let asked = session.report(TurnMoment::BeforeTool);
        session.answer(&asked, &[AskAnswer::Rejected]);
        session.report(TurnMoment::ToolEnded);
        let words = session.words();
        let wanted = format!("tool.invoked: It ran although it was refused. Runs: {REMOVE}");
        assert!(words.contains(&wanted), "{agent:?}: {words:?}");
    }
}

#[test]
fn a_patch_of_codex_is_a_change_of_files_and_a_failing_command_no_success() {
    let mut session = begun(BridgedAgent::Codex, AskPolicy::AskBeforeChanges);
    let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.txt\n@@\n-x\n+y\n*** End Patch\nEOF";
    let asked = session.report_command(TurnMoment::BeforeTool, patch);
    let event = &asked.ask.as_ref().expect("a question").questions[0].event;
    assert_eq!(event["action"], "Change a.txt: 1 line added, 1 line removed.");
    assert_eq!(event["risk_level"], "low");
    let outside = patch.replace("a.txt", "/etc/hosts");
    let asked = session.report_command(TurnMoment::BeforeTool, &outside);
    let event = &asked.ask.as_ref().expect("a question").questions[0].event;
    assert_ne!(event["risk_level"], "low", "{event}");

    let mut session = begun(BridgedAgent::CopilotCli, AskPolicy::Tell);
    session.report_command(TurnMoment::BeforeTool, "make");
    let (event, mut ended) =
        payload(BridgedAgent::CopilotCli, TurnMoment::ToolEnded, "make").expect("one");
    ended["toolResult"]["textResultForLlm"] =
        "no rule\n<shellId: 0 completed with exit code 2>".into();
    session.call(event, &ended);
    let words = session.words();
    assert_eq!(words.last().expect("one"), "tool.completed: It ended with exit code 2. no rule");
}

#[test]
fn the_project_is_where_the_prompt_was_given_and_not_where_a_command_runs() {
    for agent in gated().filter(|it| *it != BridgedAgent::Cline) {
        let mut session = Session::new(agent, AskPolicy::AskWhenRisky);
        session.project = None;
        session.report(TurnMoment::Prompt);
        let (event, mut call) = payload(agent, TurnMoment::BeforeTool, "touch a.txt").expect("one");
        assert!(session.call(event, &call).ask.is_none(), "{agent:?}");
        // Codex says in its payload where the command runs.
        call["cwd"] = "/home/ada/letters".into();
        let asked = session.call(event, &call).ask.expect("a question");
        let told = &asked.questions[0].event;
        assert_ne!(told["risk_level"], "low", "{agent:?}: {told}");
        assert_eq!(told["extensions"]["agentvoice"]["project"], "work/shop", "{agent:?}");
    }
}

#[test]
fn several_commands_of_cline_are_judged_one_by_one_and_asked_whole() {
    let mut session = begun(BridgedAgent::Cline, AskPolicy::AskWhenRisky);
    let (event, mut call) =
        payload(BridgedAgent::Cline, TurnMoment::BeforeTool, "cat <<EOF").expect("one");
    // The first command must not swallow the second.
    call["tool_call"]["input"]["commands"] = json!(["cat <<EOF", REMOVE]);
    let asked = session.call(event, &call);
    let event = &asked.ask.expect("a question").questions[0].event;
    let action = event["action"].as_str().expect("words");
    assert!(action.contains("cat <<EOF") && action.contains(REMOVE), "{action}");
    assert_eq!(event["risk_level"], "high");
}

#[test]
fn what_is_too_long_to_be_asked_does_not_run() {
    for agent in gated() {
        let mut session = begun(agent, AskPolicy::AskWhenRisky);
        let long = format!("rm -rf {}", "a".repeat(20_000));
        let plan = session.report_command(TurnMoment::BeforeTool, &long);
        assert!(plan.ask.is_none() && refuses(agent, &plan.answer), "{agent:?}");
        assert_sound(&session.told);
    }
}

#[test]
fn messages_that_are_not_known_pass_and_are_counted() {
    for agent in gated() {
        let mut session = begun(agent, AskPolicy::AskWhenRisky);
        let (_, mut strange) = payload(agent, TurnMoment::Prompt, REMOVE).expect("one");
        for field in ["hook_event_name", "hookName"] {
            if strange[field].is_string() {
                strange[field] = "FullMoon".into();
            }
        }
        let plan = session.call("fullMoon", &strange);
        assert!(plan.events.is_empty() && plan.answer.is_nothing(), "{agent:?}");
        session.report(TurnMoment::End);
        let words = session.words();
        assert!(words.last().expect("an end").contains("1 message of a form"), "{words:?}");
    }
}

#[test]
fn garbage_never_ends_the_bridge_and_never_lets_a_tool_pass() {
    for agent in gated() {
        for text in ["", "[]", "null", "{", "{\"hook_event_name\":1}", "{\"hookName\":{}}", "\u{0}"]
        {
            assert!(HookCall::read(agent, "preToolUse", text.as_bytes()).is_none(), "{text}");
        }
        let moments = [
            TurnMoment::Prompt,
            TurnMoment::BeforeTool,
            TurnMoment::AsksPermission,
            TurnMoment::ToolEnded,
            TurnMoment::End,
        ];
        let mut session = Session::new(agent, AskPolicy::AskBeforeChanges);
        for moment in moments {
            let Some((event, whole)) = payload(agent, moment, REMOVE) else { continue };
            for junk in [json!(null), json!(1), json!([[]]), json!({}), json!("x".repeat(100_000))]
            {
                for field in whole.as_object().expect("fields").keys() {
                    let mut broken = whole.clone();
                    broken[field] = junk.clone();
                    let text = broken.to_string();
                    let Some(call) = HookCall::read(agent, event, text.as_bytes()) else {
                        continue;
                    };
                    let is_gate = call.is_gate();
                    let plan = session.call(event, &broken);
                    let passes = plan.ask.is_none() && !refuses(agent, &plan.answer);
                    assert!(!(is_gate && passes), "{agent:?} {moment:?} {field}: {plan:?}");
                }
            }
        }
        assert_valid(&session.told);
        let kept: Vec<u8> = serde_json::to_vec(&session.memory).expect("JSON");
        assert!(kept.len() < 1024 * 1024, "{agent:?}: {}", kept.len());
    }
}

#[test]
fn each_agent_has_a_name_of_its_own() {
    for agent in BridgedAgent::ALL {
        assert_eq!(BridgedAgent::parse(agent.id()), Some(*agent));
        let same = BridgedAgent::ALL.iter().filter(|it| it.id() == agent.id());
        assert_eq!(same.count(), 1);
        let mut session = begun(*agent, AskPolicy::Tell);
        session.report(TurnMoment::Closed);
        let producer: &Value = &session.told[0]["producer"];
        assert_eq!(producer["agent_name"], agent.name());
    }
}
