//! The recordings of real agents: each event valid and in order, nothing asked without an end, nothing told twice.

#![expect(clippy::disallowed_methods, reason = "recordings are files")]

use std::path::{Path, PathBuf};

use aaep_bridge::{AskAnswer, AskPolicy, BridgedAgent};
use serde_json::Value;

use crate::harness::{Session, assert_sound, words_of};

#[test]
#[ignore = "needs the recordings of real agents beside the checkout, or AAEP_TRAFFIC"]
fn recordings_of_the_real_agents_are_told_soundly() {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/facts/traffic");
    let folder = std::env::var_os("AAEP_TRAFFIC").map_or_else(beside, PathBuf::from);
    for agent in BridgedAgent::ALL {
        let mut played = 0;
        for entry in std::fs::read_dir(folder.join(agent.id())).expect("a folder") {
            let path = entry.expect("a file").path();
            let text = std::fs::read_to_string(&path).expect("a file");
            let recording: Value = serde_json::from_str(&text).expect("JSON");
            let Some(calls) = recording["calls"].as_array() else { continue };
            for policy in AskPolicy::NAMES.map(|(_, policy)| policy) {
                for answer in [AskAnswer::Nothing, AskAnswer::Accepted, AskAnswer::Rejected] {
                    let told = play(*agent, policy, calls, &answer);
                    assert_told_well(&told, &path);
                }
            }
            played += 1;
        }
        assert!(played > 0, "no recording of {} was found", agent.id());
    }
}

/// Plays a recording up to the answer, after which the agent would have gone on in another way.
fn play(agent: BridgedAgent, policy: AskPolicy, calls: &[Value], answer: &AskAnswer) -> Vec<Value> {
    let mut session = Session::new(agent, policy);
    session.project = None;
    for call in calls {
        let event = call["event"].as_str().expect("an event");
        let plan = session.call(event, &call["stdin"]);
        assert!(plan.ask.is_none() || plan.ask.as_ref().is_some_and(|it| !it.questions.is_empty()));
        if plan.ask.is_some() {
            session.answer(&plan, std::slice::from_ref(answer));
        }
    }
    session.told
}

fn assert_told_well(told: &[Value], path: &Path) {
    assert_sound(told);
    let count =
        |name: &str| told.iter().filter(|it| it["type"] == format!("aaep:agent.{name}")).count();
    assert!(count("tool.completed") <= count("tool.invoked"), "{}", path.display());
    let ends = ["completed", "cancelled", "errored"].map(|it| count(&format!("session.{it}")));
    assert!(ends.iter().sum::<usize>() <= count("session.started"), "{}", path.display());
    // Each of these is about a thing that happened once.
    let mut heard: Vec<String> = told.iter().map(words_of).collect();
    let before = heard.len();
    heard.dedup();
    assert_eq!(heard.len(), before, "{}: {heard:?}", path.display());
}
