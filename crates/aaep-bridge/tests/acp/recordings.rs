//! The recordings of real agents, played to the bridge.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use aaep_bridge::acp::{AcpClient, AcpForward, AcpOpening, AcpSide};
use aaep_bridge::{AskAnswer, AskPolicy};
use serde_json::Value;

use crate::stream_check::assert_sound;
use crate::wire::Wire;

/// Every recording: each event valid and in order, no question without an outcome, nothing said twice, each request
/// answered once.
#[test]
#[ignore = "needs the recordings of real agents beside the checkout, or AAEP_TRAFFIC"]
fn recordings_of_real_agents_are_told_soundly() {
    let mut played = 0;
    for_each_recording(|path, lines| {
        for (_, policy) in AskPolicy::NAMES {
            for is_answered_here in [false, true] {
                play(path, lines, policy, is_answered_here);
                played += 1;
            }
        }
    });
    assert!(played >= 80, "only {played} plays were found");
}

/// Reads every recording of this protocol.
fn for_each_recording(mut play: impl FnMut(&Path, &[Value])) {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/facts/traffic");
    let folder = std::env::var_os("AAEP_TRAFFIC").map_or_else(beside, PathBuf::from);
    for agent in std::fs::read_dir(folder).expect("a folder") {
        let agent = agent.expect("an entry").path();
        let Ok(files) = std::fs::read_dir(&agent) else { continue };
        for file in files {
            let path = file.expect("a file").path();
            let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default().to_owned();
            if !name.starts_with("acp-") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a file");
            let recording: Value = serde_json::from_str(&text).expect("JSON");
            play(&path, recording["lines"].as_array().expect("lines"));
        }
    }
}

/// Every recording in a chat: each permission request becomes a menu that shows its options, a choice answers it exactly
/// once, and the client takes everything that the agent says.
#[test]
#[ignore = "needs the recordings of real agents beside the checkout, or AAEP_TRAFFIC"]
fn recordings_of_real_agents_can_be_answered_in_a_chat() {
    let mut menus = 0;
    for_each_recording(|path, lines| {
        let mut wire = Wire::new(AskPolicy::AskWhenRisky);
        wire.bridge = wire.bridge.in_chat();
        let (mut client, _) = AcpClient::new("/home/user/project", AcpOpening::New);
        for line in lines {
            let message = &line["msg"];
            let is_client = line["dir"] == "client";
            let is_answer = is_client && message["result"].get("outcome").is_some();
            if is_answer {
                continue;
            }
            let from = if is_client { AcpSide::Editor } else { AcpSide::Agent };
            let plan = wire.hear(from, message);
            if !is_client && plan.forward == AcpForward::Unchanged {
                client.hear(message);
            }
            if message["method"] != "session/request_permission" {
                assert!(plan.menu.is_none(), "{}", path.display());
                continue;
            }
            let menu = plan.menu.unwrap_or_else(|| panic!("no menu: {}", path.display()));
            let offered = message["params"]["options"].as_array().expect("options");
            let choices = menu.event["choices"].as_array().expect("choices");
            assert_eq!(offered.len(), choices.len());
            for (option, choice) in offered.iter().zip(choices) {
                assert_eq!(option["optionId"], choice["value"]);
            }
            let refusal = menu.refusals.first().expect("an option that refuses").clone();
            let plan = wire.bridge.choose(menu.number, &refusal);
            wire.take(&plan);
            let answers = wire.answers_to(&message["id"]);
            assert_eq!(answers.last().expect("one")["optionId"], refusal, "{}", path.display());
            menus += 1;
        }
        assert_sound(&wire.told);
    });
    assert!(menus >= 10, "only {menus} menus");
}

/// Plays a recording. If the person answers here, they always say no, before the editor answers.
fn play(path: &Path, lines: &[Value], policy: AskPolicy, is_answered_here: bool) {
    let mut wire = Wire::new(policy);
    let mut requests = Vec::new();
    let mut answered = Vec::new();
    let (mut written, mut is_at_work) = (String::new(), false);
    for line in lines {
        let message = &line["msg"];
        is_at_work |= message["method"] == "session/prompt";
        is_at_work &= message["result"].get("stopReason").is_none();
        let update = &message["params"]["update"];
        if is_at_work && update["sessionUpdate"] == "agent_message_chunk" {
            written.push_str(update["content"]["text"].as_str().unwrap_or_default());
        }
        let from = if line["dir"] == "client" { AcpSide::Editor } else { AcpSide::Agent };
        let plan = wire.hear(from, message);
        if message["method"] == "session/request_permission" {
            requests.push(message["id"].clone());
            assert_eq!(plan.ask.is_some(), policy != AskPolicy::Tell, "{}", path.display());
        }
        if let Some(ask) = plan.ask.filter(|_| is_answered_here) {
            let answer = if ask.is_confirmation {
                AskAnswer::Rejected
            } else {
                let choices = ask.event["choices"].as_array().expect("choices");
                AskAnswer::Words(
                    choices.last().expect("one")["value"].as_str().expect("text").to_owned(),
                )
            };
            wire.person(ask.number, &answer);
            answered.push(ask.number);
        }
    }
    assert_sound(&wire.told);
    let place = format!("{} {policy:?}", path.display());
    for id in &requests {
        assert_eq!(wire.answers_to(id).len(), 1, "{place}: {id}");
    }
    let mut settled = [answered, wire.withdrawn.clone()].concat();
    settled.sort();
    let mut asked = wire.asked.clone();
    asked.sort();
    assert_eq!(settled, asked, "{place}");
    let words = wire.words();
    let mut calls = HashMap::new();
    for event in &wire.told {
        if let Some(call) = event["tool_call_id"].as_str() {
            *calls.entry((call.to_owned(), event["type"].clone())).or_insert(0) += 1;
        }
    }
    assert!(calls.values().all(|it| *it == 1), "{place}: {words:#?}");
    let count = |begin: &str| words.iter().filter(|it| it.starts_with(begin)).count();
    let turns = lines.iter().filter(|it| it["msg"]["method"] == "session/prompt").count();
    assert_eq!(count("session.started"), turns, "{place}: {words:#?}");
    let ends = count("session.completed") + count("session.cancelled") + count("session.errored");
    assert_eq!(ends, turns, "{place}: {words:#?}");
    let said: String = wire
        .told
        .iter()
        .filter(|it| it["type"] == "aaep:agent.output.streaming")
        .filter_map(|it| it["chunk"].as_str())
        .collect();
    assert_eq!(said, written, "{place}");
}
