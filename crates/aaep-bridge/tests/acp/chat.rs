//! A chat of our own in the place of the editor: menus, and the editor's side of the protocol.

use aaep_bridge::acp::{
    AcpBridge, AcpClient, AcpClientNews, AcpClientStep, AcpFormAnswer, AcpForward, AcpMenu,
    AcpMenuEnding, AcpOpening, AcpPlan,
};
use aaep_bridge::{AskAnswer, AskPolicy};
use serde_json::{Value, json};

use crate::stream_check::assert_sound;
use crate::wire::{Wire, permission, plain_options, removal};

/// A chat with a turn that has begun.
fn chat(policy: AskPolicy) -> Wire {
    Wire::begun_with(policy, AcpBridge::in_chat)
}

fn menu_of(plan: &AcpPlan) -> AcpMenu {
    assert_eq!(plan.forward, AcpForward::Nothing, "the bridge answers");
    plan.menu.clone().expect("a menu")
}

fn labels(menu: &AcpMenu) -> Vec<String> {
    let choices = menu.event["choices"].as_array().expect("choices");
    choices.iter().map(|it| it["label"].as_str().expect("a label").to_owned()).collect()
}

fn choose(wire: &mut Wire, menu: &AcpMenu, option: &str) -> AcpPlan {
    let plan = wire.bridge.choose(menu.number, option);
    wire.take(&plan);
    plan
}

#[test]
fn a_permission_is_chosen_from_a_menu_of_the_agents_own_options_and_only_once() {
    for policy in [AskPolicy::Tell, AskPolicy::AskWhenRisky] {
        let mut wire = chat(policy);
        let plan = wire.asks(json!("u-1"));
        let menu = menu_of(&plan);
        assert_eq!(labels(&menu), ["Allow for this session", "Allow", "Reject"]);
        assert_eq!(menu.refusals, ["no"]);
        assert_eq!(
            menu.event["question"],
            "High risk. It deletes whole folders. It cannot be undone. May it do this? Run the command: rm -rf build"
        );
        assert_eq!(plan.ask.is_some(), policy != AskPolicy::Tell);
        assert_eq!(choose(&mut wire, &menu, "unheard of"), AcpPlan::default());
        let plan = choose(&mut wire, &menu, "once");
        assert_eq!(plan.closed_menus, [(menu.number, AcpMenuEnding::Here { is_refused: false })]);
        assert_eq!(wire.withdrawn, wire.asked);
        for option in ["once", "always", "no"] {
            assert_eq!(choose(&mut wire, &menu, option), AcpPlan::default());
        }
        assert_eq!(
            wire.answers_to(&json!("u-1")),
            [json!({ "outcome": "selected", "optionId": "once" })]
        );
        assert_eq!(
            wire.words().last().expect("words"),
            "tool.invoked: In aaep chat it was answered: “Allow”. Runs: rm -rf build"
        );
        assert!(wire.editor.is_empty() || wire.editor.iter().all(|it| it["method"].is_null()));
        assert_sound(&wire.told);
    }
}

#[test]
fn a_turn_does_not_end_before_a_tool_of_which_no_end_was_reported() {
    for reason in ["end_turn", "cancelled", "refusal"] {
        let mut wire = chat(AskPolicy::AskWhenRisky);
        let menu = menu_of(&wire.asks(json!(0)));
        choose(&mut wire, &menu, "once");
        wire.ends(reason);
        let words = wire.words();
        let [.., completed, _end] = words.as_slice() else { panic!("{words:?}") };
        assert_eq!(completed, "tool.completed: It was not reported how it ended.");
        assert_sound(&wire.told);
    }
}

#[test]
fn an_answer_elsewhere_closes_the_menu_and_counts_alone() {
    for (answer, option, is_refused) in
        [(AskAnswer::Accepted, "once", false), (AskAnswer::Rejected, "no", true)]
    {
        let mut wire = chat(AskPolicy::AskWhenRisky);
        let plan = wire.asks(json!(0));
        let (menu, ask) = (menu_of(&plan), plan.ask.expect("a question"));
        let plan = wire.person(ask.number, &answer);
        assert_eq!(plan.closed_menus, [(menu.number, AcpMenuEnding::Elsewhere { is_refused })]);
        assert_eq!(choose(&mut wire, &menu, "always"), AcpPlan::default());
        assert_eq!(
            wire.answers_to(&json!(0)),
            [json!({ "outcome": "selected", "optionId": option })]
        );
        // The agent may use the id again: nobody answers late.
        assert!(wire.asks(json!(0)).menu.is_some());
        assert_sound(&wire.told);
    }
}

#[test]
fn silence_elsewhere_leaves_the_menu_open() {
    let mut wire = chat(AskPolicy::AskWhenRisky);
    let plan = wire.asks(json!(0));
    let (menu, ask) = (menu_of(&plan), plan.ask.expect("a question"));
    let plan = wire.person(ask.number, &AskAnswer::Nothing);
    assert_eq!((plan.only_here, plan.closed_menus.len()), (Some(menu.number), 0));
    assert!(wire.answers_to(&json!(0)).is_empty());
    choose(&mut wire, &menu, "no");
    assert_eq!(wire.answers_to(&json!(0)).len(), 1);
}

#[test]
fn options_that_last_say_so_and_equal_names_are_told_apart() {
    let mut wire = chat(AskPolicy::Tell);
    let options = json!([
        { "optionId": "p1", "name": "Yes", "kind": "allow_always" },
        { "optionId": "p2", "name": "Yes", "kind": "allow_once" },
        { "optionId": "p3", "name": "Always yes", "kind": "allow_always" },
        { "optionId": "p4", "name": "No", "kind": "reject_always" },
    ]);
    let menu = menu_of(&wire.agent(permission(&json!(0), &removal(), &options)));
    assert_eq!(labels(&menu), ["Yes (p1) (always)", "Yes (p2)", "Always yes", "No (always)"]);
}

#[test]
fn a_request_that_changes_gets_another_menu_and_the_old_one_answers_nothing() {
    let mut wire = chat(AskPolicy::AskWhenRisky);
    let old = menu_of(&wire.asks(json!(0)));
    let plan = wire.update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t-1",
        "rawInput": { "command": "rm -rf /" } }));
    assert_eq!(plan.closed_menus, [(old.number, AcpMenuEnding::Changed)]);
    let new = plan.menu.expect("another menu");
    let question = new.event["question"].as_str().expect("a question");
    assert!(question.ends_with("Run the command: rm -rf /"), "{question}");
    assert_eq!(choose(&mut wire, &old, "once"), AcpPlan::default());
    assert!(wire.answers_to(&json!(0)).is_empty());
    choose(&mut wire, &new, "no");
    assert_eq!(wire.answers_to(&json!(0)).len(), 1);
    assert_sound(&wire.told);
}

#[test]
fn what_cannot_be_shown_whole_is_refused() {
    let long = json!({ "toolCallId": "t-9", "kind": "execute",
        "rawInput": { "command": format!("echo {}", "x".repeat(20_000)) } });
    let twice = json!([{ "optionId": "a", "name": "A", "kind": "allow_once" },
        { "optionId": "a", "name": "B", "kind": "reject_once" }]);
    let cancelled = json!({ "outcome": "cancelled" });
    let refused = json!({ "outcome": "selected", "optionId": "no" });
    for (call, options, outcome) in [
        (&long, plain_options(), &refused),
        (&removal(), twice, &cancelled),
        (&removal(), json!([]), &cancelled),
        (&removal(), json!("none"), &cancelled),
        (&removal(), json!([{ "optionId": "a", "name": "A", "kind": "allow_once" }]), &cancelled),
        (&json!({}), plain_options(), &cancelled),
    ] {
        let mut wire = chat(AskPolicy::AskWhenRisky);
        let plan = wire.agent(permission(&json!(5), call, &options));
        assert_eq!((plan.menu, plan.ask), (None, None), "{options}");
        assert_eq!(wire.answers_to(&json!(5)), std::slice::from_ref(outcome), "{options}");
    }
}

#[test]
fn an_id_that_is_asked_twice_means_neither() {
    let mut wire = chat(AskPolicy::AskWhenRisky);
    let menu = menu_of(&wire.asks(json!(0)));
    let plan = wire.asks(json!(0.0));
    assert_eq!(plan.menu, None);
    assert_eq!(plan.closed_menus, [(menu.number, AcpMenuEnding::Withdrawn)]);
    assert_eq!(choose(&mut wire, &menu, "once"), AcpPlan::default());
    let answers: Vec<&Value> = wire.agent.iter().filter(|it| it.get("result").is_some()).collect();
    assert!(answers.iter().all(|it| it["result"]["outcome"]["outcome"] == "cancelled"));
}

#[test]
fn a_cancel_and_the_end_of_a_turn_close_every_menu_and_allow_nothing() {
    for is_cancelled in [true, false] {
        let mut wire = chat(AskPolicy::AskWhenRisky);
        let menu = menu_of(&wire.asks(json!(0)));
        let plan = if is_cancelled {
            wire.editor(json!({ "jsonrpc": "2.0", "method": "session/cancel",
                "params": { "sessionId": "s-1" } }))
        } else {
            wire.ends("end_turn")
        };
        assert_eq!(plan.closed_menus, [(menu.number, AcpMenuEnding::Withdrawn)]);
        assert_eq!(wire.answers_to(&json!(0)), [json!({ "outcome": "cancelled" })]);
        assert_eq!(choose(&mut wire, &menu, "once"), AcpPlan::default());
        assert_eq!(wire.withdrawn, wire.asked);
    }
    let mut wire = chat(AskPolicy::AskWhenRisky);
    let menu = menu_of(&wire.asks(json!(0)));
    let plan = wire.bridge.end("Gone.");
    assert_eq!(plan.closed_menus, [(menu.number, AcpMenuEnding::Withdrawn)]);
    assert_eq!(plan.withdrawn, wire.asked);
}

#[test]
fn a_request_after_the_turn_ended_is_still_put() {
    let mut wire = chat(AskPolicy::AskWhenRisky);
    wire.ends("end_turn");
    let menu = menu_of(&wire.asks(json!(0)));
    choose(&mut wire, &menu, "no");
    assert_eq!(wire.answers_to(&json!(0)).len(), 1);
    assert_sound(&wire.told);
}

/// A client that asked for a session, and what the agent said about itself.
fn met(opening: AcpOpening, capabilities: &Value) -> (AcpClient, AcpClientStep) {
    let (mut client, step) = AcpClient::new("/work", opening);
    let hello = step.to_agent.first().expect("a request");
    assert_eq!(hello["method"], "initialize");
    assert_eq!(
        hello["params"]["clientCapabilities"],
        json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false,
            "elicitation": { "form": {} } })
    );
    let step = client.hear(&json!({ "jsonrpc": "2.0", "id": hello["id"], "result": {
        "protocolVersion": 1, "agentInfo": { "name": "x", "title": "X" },
        "agentCapabilities": capabilities, "authMethods": [{ "id": "key", "name": "A key" }] } }));
    (client, step)
}

fn answered(client: &mut AcpClient, request: &AcpClientStep, result: &Value) -> AcpClientStep {
    let id = &request.to_agent.last().expect("a request")["id"];
    client.hear(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn opened() -> AcpClient {
    let (mut client, step) = met(AcpOpening::New, &json!({}));
    let step = answered(
        &mut client,
        &step,
        &json!({ "sessionId": "s-1", "modes": { "currentModeId": "ask", "availableModes": [
            { "id": "ask", "name": "Ask" }, { "id": "go", "name": "Go" }, { "id": "x", "name": "go" }] } }),
    );
    assert_eq!(step.news, [AcpClientNews::Opened { agent: "X".to_owned(), last: None }]);
    client
}

#[test]
fn a_prompt_is_sent_only_when_the_agent_is_ready() {
    let (mut client, step) = met(AcpOpening::New, &json!({}));
    assert_eq!(step.to_agent[0]["params"], json!({ "cwd": "/work", "mcpServers": [] }));
    assert_eq!(client.prompt("too early"), AcpClientStep::default());
    let mut client = opened();
    let step = client.prompt("Tidy up.");
    assert_eq!(step.to_agent[0]["params"]["prompt"][0]["text"], "Tidy up.");
    assert!(client.is_at_work());
    assert_eq!(client.prompt("again"), AcpClientStep::default());
    assert_eq!(client.cancel().to_agent[0]["method"], "session/cancel");
    // What answers nothing of ours changes nothing.
    for id in [json!(99), json!("1"), json!(null), json!({}), json!(-1), json!(1.5)] {
        let stray = json!({ "jsonrpc": "2.0", "id": id, "result": {} });
        assert_eq!(client.hear(&stray), AcpClientStep::default());
    }
    assert!(client.is_at_work());
    let step = answered(&mut client, &step, &json!({ "stopReason": "cancelled" }));
    assert_eq!(step.news, [AcpClientNews::TurnOver]);
    assert!(client.is_ready());
}

#[test]
fn a_mode_is_named_exactly() {
    let mut client = opened();
    assert!(client.set_mode("GO").is_none(), "two are called so");
    assert!(client.set_mode("gone").is_none());
    let step = client.set_mode("x").expect("a mode");
    assert_eq!(step.to_agent[0]["params"], json!({ "sessionId": "s-1", "modeId": "x" }));
    let step = answered(&mut client, &step, &json!({}));
    assert!(matches!(&step.news[..], [AcpClientNews::Mode(mode)] if mode.id == "x"));
    assert_eq!(client.modes().1, "x");
    // An agent that has its modes among its settings alone.
    let (mut client, step) = met(AcpOpening::New, &json!({}));
    let option = json!({ "id": "m", "category": "mode", "currentValue": "build",
        "options": [{ "value": "build", "name": "Build" }, { "value": "plan", "name": "Plan" }] });
    answered(&mut client, &step, &json!({ "sessionId": "s", "configOptions": [option] }));
    let step = client.set_mode("plan").expect("a mode");
    assert_eq!(step.to_agent[0]["method"], "session/set_config_option");
    assert_eq!(
        step.to_agent[0]["params"],
        json!({ "sessionId": "s", "configId": "m", "value": "plan" })
    );
}

#[test]
fn the_last_session_of_this_folder_is_continued_and_its_end_told_again() {
    let can = json!({ "loadSession": true, "sessionCapabilities": { "list": {} } });
    let (mut client, step) = met(AcpOpening::Latest, &can);
    let listed = json!({ "sessions": [
        { "sessionId": "old", "cwd": "/work", "updatedAt": "2026-11-01T10:00:00Z" },
        { "sessionId": "elsewhere", "cwd": "/other", "updatedAt": "2026-11-18T10:00:00Z" },
        { "sessionId": "new", "cwd": "/work", "title": "T", "updatedAt": "2026-11-17T10:00:00Z" }] });
    let step = answered(&mut client, &step, &listed);
    assert_eq!(step.to_agent[0]["method"], "session/load");
    assert_eq!(step.to_agent[0]["params"]["sessionId"], "new");
    for (kind, text) in [
        ("user_message_chunk", "Old."),
        ("agent_message_chunk", "Done."),
        ("user_message_chunk", "Now "),
        ("user_message_chunk", "this."),
        ("agent_message_chunk", "All done."),
    ] {
        let update = json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } });
        let step = client.hear(&json!({ "jsonrpc": "2.0", "method": "session/update",
            "params": { "sessionId": "new", "update": update } }));
        assert_eq!(step, AcpClientStep::default());
    }
    let step = answered(&mut client, &step, &json!({}));
    let last = Some(("Now this.".to_owned(), "All done.".to_owned()));
    assert_eq!(step.news, [AcpClientNews::Opened { agent: "X".to_owned(), last }]);
    assert_eq!(client.session_id(), Some("new"));
    // An agent that cannot continue begins a new session, and says so.
    let (_, step) = met(AcpOpening::Latest, &json!({}));
    assert_eq!(step.news, [AcpClientNews::NothingToContinue]);
    assert_eq!(step.to_agent[0]["method"], "session/new");
    let (_, step) = met(
        AcpOpening::Session("s".to_owned()),
        &json!({ "sessionCapabilities": { "resume": {} } }),
    );
    assert_eq!(step.to_agent[0]["method"], "session/resume");
}

#[test]
fn a_person_who_has_to_sign_in_is_told_how_and_goes_on_after_it() {
    let (mut client, step) = met(AcpOpening::New, &json!({}));
    let id = &step.to_agent[0]["id"];
    let refused = json!({ "jsonrpc": "2.0", "id": id,
        "error": { "code": -32000, "message": "Authentication required" } });
    let step = client.hear(&refused);
    assert!(matches!(&step.news[..], [AcpClientNews::SignInNeeded(ways)] if ways[0].id == "key"));
    let step = client.sign_in("key");
    assert_eq!(step.to_agent[0]["params"], json!({ "methodId": "key" }));
    let step = answered(&mut client, &step, &json!({}));
    assert_eq!(step.to_agent[0]["method"], "session/new");
    let (mut client, step) = AcpClient::new("/work", AcpOpening::New);
    let step = answered(&mut client, &step, &json!({ "protocolVersion": 2 }));
    assert_eq!(step.news, [AcpClientNews::OtherVersion]);
    assert!(step.to_agent.is_empty());
}

#[test]
fn a_form_is_answered_once_and_what_is_not_declared_is_refused() {
    let mut client = opened();
    client.prompt("Ask me.");
    let form = |id: &Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {
            "sessionId": "s-1", "mode": "form", "message": "Say.", "requestedSchema": {
            "type": "object", "properties": { "a": { "type": "boolean" } }, "required": ["a"] } } })
    };
    let step = client.hear(&form(&json!("f")));
    let [AcpClientNews::Form(number, form_now)] = &step.news[..] else { panic!("{step:?}") };
    let (number, mut filled) = (*number, form_now.clone());
    // The same id again means neither of the two for sure, so the second one is declined.
    let twice = client.hear(&form(&json!("f")));
    assert_eq!(twice.to_agent[0]["result"], json!({ "action": "decline" }));
    assert!(filled.answer(&AcpFormAnswer::YesNo(true)));
    let step = client.answer_form(number, Some(&filled));
    assert_eq!(
        step.to_agent,
        [json!({ "jsonrpc": "2.0", "id": "f",
            "result": { "action": "accept", "content": { "a": true } } })]
    );
    assert_eq!(client.answer_form(number, Some(&filled)), AcpClientStep::default());
    let step = client.hear(&form(&json!(7)));
    let [AcpClientNews::Form(number, _)] = step.news[..] else { panic!("{step:?}") };
    let step = client.hear(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request",
        "params": { "requestId": 7.0 } }));
    assert_eq!(step.news, [AcpClientNews::FormWithdrawn(number)]);
    for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "craft/x"] {
        for id in [json!(1), json!("x"), json!(2.5)] {
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} });
            let step = client.hear(&request);
            assert_eq!(step.to_agent[0]["error"]["code"], -32601);
            assert_eq!(step.to_agent[0]["id"], id);
        }
        let notice = json!({ "jsonrpc": "2.0", "method": method });
        assert_eq!(client.hear(&notice), AcpClientStep::default());
    }
    for garbage in [json!(null), json!(7), json!([]), json!([[1]]), json!({ "method": 7, "id": 1 })]
    {
        client.hear(&garbage);
    }
}
