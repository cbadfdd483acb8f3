//! Agents that are child processes of the hub: heard by everyone, asked about, and never trusted.

use std::process::Command;
use std::time::Instant;

use aaep_hub::relay::{ChildTable, Relay};
use serde_json::{Value, json};

use crate::support::*;

const STARTED: &str = "aaep:agent.session.started";
const QUESTION: &str = "aaep:agent.awaiting.confirmation";
const COMPLETED: &str = "aaep:agent.session.completed";
const ERRORED: &str = "aaep:agent.session.errored";

fn child(does: &str) -> ChildTable {
    let producer = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/producer.py");
    let command = ["python3", producer, does].map(str::to_owned).to_vec();
    ChildTable { command, agent_id: Some("photos".to_owned()), restart: false }
}

/// A hub with a subscriber, and then a child.
struct Scene {
    hub: TestHub,
    id: String,
    stream: Client,
    relay: Option<Relay>,
}

impl Scene {
    fn new(does: &str) -> Self {
        Scene::of(child(does))
    }

    fn of(child: ChildTable) -> Self {
        let hub = TestHub::new();
        let id = hub.subscribe("");
        let stream = hub.stream("", &id);
        let relay = {
            let _within = hub.runtime.enter();
            Relay::start(hub.daemon().hub().clone(), child)
        };
        Scene { hub, id, stream, relay: Some(relay) }
    }

    /// The token of the question that the child asks.
    fn asked(&mut self) -> String {
        let asked = self.stream.event_of(QUESTION);
        assert_eq!(asked["producer"]["agent_id"], "photos", "by the name that it was given");
        asked["reply_token"].as_str().expect("a token").to_owned()
    }

    fn reply(&self, token: &str, decision: &str) {
        let counted = self.hub.post("/aaep/v1/replies", &reply(token, &self.id, decision));
        assert_eq!(counted.status, 204, "{}", counted.body);
    }

    /// The instruction that the child reports.
    fn told(&mut self) -> Value {
        let completed = self.stream.event_of(COMPLETED);
        let words = completed["summary_normal"].as_str().expect("words");
        serde_json::from_str(words.strip_prefix("I was told: ").expect(words)).expect("JSON")
    }

    /// How the question on this stream was settled.
    fn settled(&mut self) -> Value {
        loop {
            let event = self.stream.event_of("aaep:agent.state.changed");
            let resolution = &event["extensions"]["agentvoice"]["resolution"];
            if resolution.is_object() {
                return json!([resolution["outcome"], resolution["decided_by"]]);
            }
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(relay) = self.relay.take() {
            self.hub.runtime.block_on(relay.stop());
        }
    }
}

#[test]
fn a_child_may_have_ids_of_its_own_and_leave_out_what_the_hub_fills_in() {
    let mut scene = Scene::new("own_ids");
    let invoked = scene.stream.event_of("aaep:agent.tool.invoked");
    let completed = scene.stream.event_of("aaep:agent.tool.completed");
    assert_eq!(invoked["tool_call_id"], completed["tool_call_id"]);
    let original = &completed["extensions"]["agentvoice"]["original"];
    assert_eq!(
        (&original["tool_call_id"], &original["event_id"]),
        (&json!("toolu_0-1"), &json!("2"))
    );
    assert_eq!(scene.stream.event_of("aaep:agent.output.streaming")["position"], 0);
    let token = scene.asked();
    scene.reply(&token, "accept");
    assert_eq!(scene.told(), json!(["accept"]));
}

#[test]
fn a_person_accepts_and_the_child_is_told_once_and_goes_on() {
    let mut scene = Scene::new("confirm");
    assert_eq!(scene.stream.event_of(STARTED)["summary_normal"], "I tidy up.");
    let token = scene.asked();
    scene.reply(&token, "accept");
    assert_eq!(scene.settled(), json!(["accept", "reply"]));
    let invoked = scene.stream.event_of("aaep:agent.tool.invoked");
    assert_eq!(invoked["irreversible"], true, "what was accepted may happen");
    scene.stream.event_of("aaep:agent.tool.completed");
    assert_eq!(scene.told(), json!(["accept"]));
}

#[test]
fn a_person_rejects_and_the_child_is_told() {
    let mut scene = Scene::new("confirm");
    let token = scene.asked();
    scene.reply(&token, "reject");
    assert_eq!(scene.told(), json!(["reject"]));
}

#[test]
fn a_session_that_began_before_is_heard_from_there_on() {
    let mut scene = Scene::new("joined");
    let began = scene.stream.event_of(STARTED);
    assert_eq!(began["summary_normal"], "A session is under way that began earlier.");
    let state = scene.stream.event_of("aaep:agent.state.changed");
    assert_eq!(
        (&state["session_id"], &state["to_state"]),
        (&began["session_id"], &json!("executing"))
    );
    let token = scene.asked();
    scene.reply(&token, "reject");
    assert_eq!(scene.told(), json!(["reject"]));
}

#[test]
fn the_token_of_the_child_is_not_that_of_the_hub() {
    let mut scene = Scene::new("clarify");
    let asked = scene.stream.event_of("aaep:agent.awaiting.clarification");
    let answer = json!({
        "type": "clarification.reply", "reply_token": asked["reply_token"], "subscription_id": scene.id,
        "response": "The old one", "timestamp": "2020-01-01T00:00:00.000Z",
    });
    assert_eq!(scene.hub.post("/aaep/v1/replies", &answer).status, 204);
    // The child checks that the token is its own.
    assert_eq!(scene.told(), json!(["The old one"]));
}

#[test]
fn nobody_answers_and_nothing_is_accepted() {
    let mut scene = Scene::new("silence");
    scene.asked();
    assert_eq!(scene.settled(), json!(["reject", "timeout"]));
    let told = scene.told();
    assert!(told == json!([]) || told == json!(["reject"]), "{told}");
}

#[test]
fn a_default_of_the_child_that_accepts_is_never_sent_as_a_persons_word() {
    let mut scene = Scene::new("silence_means_yes");
    scene.asked();
    assert_eq!(scene.settled(), json!(["accept", "timeout"]));
    assert_eq!(scene.told(), json!([]));
}

/// All stored events of the session of a child that no subscriber hears.
fn heard_by_nobody(does: &str) -> String {
    let hub = TestHub::new();
    let relay = {
        let _within = hub.runtime.enter();
        Relay::start(hub.daemon().hub().clone(), child(does))
    };
    let began = Instant::now();
    let heard = loop {
        assert!(began.elapsed() < PATIENCE, "it does not end");
        let sessions = hub.get("/aaep/v1/sessions").json();
        let ended = |it: &&Value| it["ended_unix_us"].is_number();
        let found = sessions["sessions"].as_array().and_then(|all| all.iter().find(ended)).cloned();
        if let Some(session) = found {
            let id = session["session_id"].as_str().expect("an id");
            break hub.get(&format!("/aaep/v1/sessions/{id}/events")).body;
        }
        std::thread::yield_now();
    };
    hub.runtime.block_on(relay.stop());
    heard
}

#[test]
fn with_nobody_there_the_child_is_told_no_and_never_yes() {
    let heard = heard_by_nobody("confirm");
    assert!(heard.contains(r#"I was told: [\"reject\"]"#), "{heard}");
    // The hub applies the default of the question; no person decided that.
    let heard = heard_by_nobody("silence_means_yes");
    assert!(heard.contains("I was told: []"), "{heard}");
}

#[test]
fn a_question_that_the_child_withdraws_is_withdrawn() {
    let mut scene = Scene::new("withdraw");
    scene.asked();
    assert_eq!(scene.settled(), json!(["withdrawn", "withdrawn"]));
    assert_eq!(scene.told(), json!([]));
}

#[test]
fn when_the_child_is_killed_its_session_ends_and_its_question_cannot_be_answered() {
    let mut scene = Scene::new("hang");
    let asked = scene.stream.event_of(QUESTION);
    let words = asked["summary_normal"].as_str().expect("words");
    let process = words.split(' ').nth(1).expect("its number");
    assert!(Command::new("kill").args(["-9", process]).status().expect("kill runs").success());
    assert_eq!(scene.settled(), json!(["withdrawn", "withdrawn"]));
    let errored = scene.stream.event_of(ERRORED);
    assert_eq!(errored["session_id"], asked["session_id"]);
    let late = reply(asked["reply_token"].as_str().expect("a token"), &scene.id, "accept");
    scene.hub.post("/aaep/v1/replies", &late).refuses(400, "invalid_token");
}

#[test]
fn what_a_child_does_wrong_is_not_heard_and_its_questions_get_a_no() {
    let mut scene = Scene::new("wrong");
    let mut kinds = Vec::new();
    let completed = loop {
        let event = scene.stream.event();
        let kind = event["type"].as_str().expect("a type").to_owned();
        if kind == COMPLETED {
            break event;
        }
        kinds.push(kind);
    };
    assert_eq!(kinds, [STARTED, "aaep:agent.progress.updated"]);
    let words = completed["summary_normal"].as_str().expect("words");
    assert_eq!(words, r#"I was told: [["reject"], ["reject"]]"#);
}

#[test]
fn a_request_that_nobody_knows_is_answered_as_json_rpc_has_it() {
    assert_eq!(Scene::new("unanswered_request").told(), json!([-32601]));
}

#[test]
fn a_line_of_ten_megabytes_ends_the_child_and_its_session() {
    let mut scene = Scene::new("long_line");
    scene.stream.event_of(STARTED);
    scene.stream.event_of(ERRORED);
}

#[test]
fn an_accept_counts_for_one_question_and_never_for_the_same_again() {
    let mut scene = Scene::new("same_question");
    let token = scene.asked();
    scene.reply(&token, "accept");
    assert_eq!(scene.told(), json!(["accept", "reject"]));
    let mut scene = Scene::new("reused_event");
    let token = scene.asked();
    scene.reply(&token, "accept");
    assert_eq!(scene.told(), json!(["accept", "reject"]));
}

#[test]
fn a_child_that_refuses_ends_and_the_hub_goes_on() {
    let scene = Scene::new("refuse");
    scene.hub.begin("sess_other");
    assert_eq!(scene.hub.get("/readyz").status, 200);
}

#[test]
fn a_child_that_ends_is_started_again_if_that_is_wished() {
    let mut scene = Scene::of(ChildTable { restart: true, ..child("end") });
    let first = scene.stream.event_of(STARTED)["session_id"].clone();
    scene.stream.event_of(ERRORED);
    let second = scene.stream.event_of(STARTED)["session_id"].clone();
    assert_ne!(first, second);
    let missing = ChildTable { command: vec!["/nonexistent/agent".to_owned()], ..child("end") };
    let scene = Scene::of(missing);
    assert_eq!(scene.hub.get("/readyz").status, 200);
}

#[test]
fn children_of_the_configuration_start_and_stop_with_the_hub_and_leave_nothing_running() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, go) = (folder.path().join("store"), folder.path().join("go"));
    let mut hanging = child("hang");
    hanging.agent_id = None;
    let mut asking = child("wait_for_file");
    asking.command.push(go.to_str().expect("a path").to_owned());
    let config = |options: &mut aaep_hub::server::DaemonOptions, children: Vec<ChildTable>| {
        options.store = Some(store.clone());
        options.config.child = children;
    };
    let hub = TestHub::in_folder(folder, |options| config(options, vec![hanging, asking]));
    let id = hub.subscribe("");
    let mut stream = hub.stream("", &id);
    std::fs::write(&go, "").expect("written");
    let asked = loop {
        let asked = stream.event_of(QUESTION);
        if asked["producer"]["agent_id"] == "photos" {
            break asked;
        }
    };
    let session = asked["session_id"].clone();
    let folder = hub.stop();
    let hub = TestHub::in_folder(folder, |options| config(options, Vec::new()));
    let sessions = hub.get("/aaep/v1/sessions").json()["sessions"].clone();
    let sessions = sessions.as_array().expect("sessions");
    assert!(sessions.iter().any(|it| it["session_id"] == session), "{sessions:?}");
    assert!(sessions.iter().all(|it| it["ended_unix_us"].is_number()), "{sessions:?}");
}
