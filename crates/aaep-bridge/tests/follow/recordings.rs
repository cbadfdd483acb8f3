//! The recordings of real agents, played to the bridge.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use aaep_bridge::follow::FollowedAgent;
use aaep_bridge::{AskAnswer, AskPolicy};
use serde_json::{Value, json};

use crate::server::FollowedServer;
use crate::stream_check::assert_sound;

/// Every recording: each event valid and in order, no question without an outcome, nothing said twice.
#[test]
#[ignore = "needs the recordings of real agents beside the checkout, or AAEP_TRAFFIC"]
fn recordings_of_followed_agents_are_told_soundly() {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/facts/traffic");
    let folder = std::env::var_os("AAEP_TRAFFIC").map_or_else(beside, PathBuf::from);
    let mut played = 0;
    for (agent, prefix) in [(FollowedAgent::Codex, "daemon-"), (FollowedAgent::OpenCode, "server-")]
    {
        for file in std::fs::read_dir(folder.join(agent.id())).expect("a folder") {
            let path = file.expect("a file").path();
            let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default().to_owned();
            if !name.starts_with(prefix) {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a file");
            let recording: Value = serde_json::from_str(&text).expect("JSON");
            for (_, policy) in AskPolicy::NAMES {
                for is_answered_here in [false, true] {
                    play(agent, &path, &recording, policy, is_answered_here);
                    played += 1;
                }
            }
        }
    }
    assert!(played >= 30, "only {played} plays were found");
}

/// Plays a recording. If the person answers here, they always say no.
fn play(
    agent: FollowedAgent,
    path: &Path,
    recording: &Value,
    policy: AskPolicy,
    is_answered_here: bool,
) {
    let place = format!("{} {policy:?} {is_answered_here}", path.display());
    let mut server = FollowedServer::new(agent, policy);
    let mut answered = Vec::new();
    let mut written = String::new();
    let frames = recording["frames"].as_array().or(recording["lines"].as_array());
    for frame in frames.expect("frames").iter().filter(|it| it["dir"] == "server") {
        let mut message = frame["msg"].clone();
        if agent == FollowedAgent::Codex {
            answer_ours(&mut message, &server);
        }
        let piece = message["params"]["delta"].as_str().or(message["properties"]["delta"].as_str());
        written.push_str(piece.unwrap_or_default());
        let before = server.asked.len();
        server.says(message);
        if server.asked.len() > before && is_answered_here {
            server.person(&AskAnswer::Rejected);
            answered.extend(server.asked.last().copied());
        }
        server.ticks();
    }
    assert_sound(&server.told);
    assert_eq!(server.asked.len(), usize::from(policy != AskPolicy::Tell), "{place}");
    let mut settled = [answered, server.withdrawn.clone()].concat();
    settled.sort();
    assert_eq!(settled, server.asked, "{place}");
    let words = server.words();
    let mut calls = HashMap::new();
    for event in &server.told {
        if let Some(call) = event["tool_call_id"].as_str() {
            *calls.entry((call.to_owned(), event["type"].clone())).or_insert(0) += 1;
        }
    }
    assert!(calls.values().all(|it| *it == 1), "{place}: {words:#?}");
    let count = |begin: &str| words.iter().filter(|it| it.starts_with(begin)).count();
    assert_eq!(count("session.started"), 1, "{place}: {words:#?}");
    assert_eq!(count("session.completed"), 1, "{place}: {words:#?}");
    let texts = server.told.iter().filter(|it| it["type"] == "aaep:agent.output.streaming");
    let said: String = texts.filter_map(|it| it["chunk"].as_str()).collect();
    assert_eq!(said, written, "{place}");
    let last = words.last().expect("words");
    assert!(!last.contains("not known"), "{place}: {words:#?}");
    let runs = usize::from(place.contains("approved") || place.contains("server-allow"));
    for (begin, times) in [("tool.invoked", runs), ("tool.completed", runs)] {
        // If the person said no here, what the recording goes on with is told as against their word.
        assert_eq!(count(begin), times, "{place}: {words:#?}");
    }
    let against = words.iter().any(|it| it.contains("Ran, although it was not allowed"));
    assert_eq!(
        against,
        is_answered_here && runs > 0 && policy != AskPolicy::Tell,
        "{place}: {words:#?}"
    );
    if place.contains("declin") || place.contains("reject") {
        assert!(last.contains("1 not run"), "{place}: {words:#?}");
    }
}

/// In a recording, the answers are to requests of another client: they answer ours of the same kind.
fn answer_ours(message: &mut Value, server: &FollowedServer) {
    let kind = match &*message {
        it if it.get("method").is_some() => return,
        it if it["result"].get("codexHome").is_some() => "initialize",
        it if it["result"].get("data").is_some() => "thread/loaded/list",
        it if it["result"].get("thread").is_some() || it.get("error").is_some() => "thread/resume",
        _ => return,
    };
    let ours = server.requests(kind).last().map_or(Value::Null, |it| it["id"].clone());
    message["id"] = if ours.is_null() { json!(999_999) } else { ours };
}
