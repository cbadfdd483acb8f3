//! `aaep tell` and `aaep cancel`: what people tell agents, and what is never sent.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{Hub, err, out};

/// A person's machine with a hub that trusts no local program.
struct Desk {
    hub: Hub,
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Desk { hub: Hub::serve_without_trust(folder.path()), folder }
    }

    fn run_with_config(&self, config: &Path, arguments: &[&str]) -> Output {
        let mut command = self.hub.aaep(arguments);
        for name in ["HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, self.folder.path());
        }
        command.env("XDG_CONFIG_HOME", config).output().expect("aaep runs")
    }

    /// Runs a command as the person, with their key.
    fn run(&self, arguments: &[&str]) -> Output {
        self.run_with_config(self.folder.path(), arguments)
    }

    fn accepts(&self, agent: &str, accepts: &[&str]) {
        let path = format!("/aaep/v1/agents/{agent}");
        let answer = self.hub.call("PUT", &path, Some(&json!({ "accepts": accepts })));
        assert_eq!(answer, Value::Null, "{answer}");
    }

    fn inbox(&self, agent: &str) -> Vec<Value> {
        let path = format!("/aaep/v1/agents/{agent}/inbox?after=0&wait_seconds=0");
        let answer = self.hub.call("GET", &path, None);
        answer["instructions"].as_array().cloned().unwrap_or_default()
    }

    fn begin(&self, agent: &str) -> String {
        out(&self.run(&["emit", "start", "Looking for photos.", "--agent", agent]))
            .trim()
            .to_owned()
    }
}

#[test]
fn an_agent_is_prompted_steered_and_cancelled_and_the_audit_log_has_it() {
    let desk = Desk::new();
    desk.accepts("photos", &["prompt", "steer", "cancel"]);
    let begun = desk.run(&["tell", "Photos", "find", "old", "photos"]);
    assert_eq!(begun.status.code(), Some(0), "{}", err(&begun));
    assert_eq!(out(&begun), "photos was told, and begins something new.\n");
    let session = desk.begin("photos");
    let steered = desk.run(&["tell", "photos", "look at 2019 first"]);
    assert_eq!(out(&steered), "photos was told, in its open session.\n", "{}", err(&steered));
    let cancelled = desk.run(&["cancel", "photos"]);
    assert_eq!(out(&cancelled), "photos was asked to stop. You hear when it has stopped.\n");
    let inbox = desk.inbox("photos");
    let told: Vec<_> = inbox.iter().map(|it| it["type"].as_str().unwrap_or_default()).collect();
    assert_eq!(
        told,
        ["agentvoice:agent.prompt", "agentvoice:session.steer", "agentvoice:session.cancel"]
    );
    assert_eq!(inbox[0]["text"], "find old photos");
    assert_eq!(
        (&inbox[1]["session_id"], &inbox[1]["text"]),
        (&json!(session), &json!("look at 2019 first"))
    );
    let audit = out(&desk.run(&["audit", "show"]));
    for entry in ["prompt for photos", "steer for photos", "cancel for photos"] {
        assert!(audit.contains(entry), "{audit}");
    }
    assert!(audit.contains("instructed, by person"), "{audit}");
}

#[test]
fn nothing_is_sent_where_nobody_would_get_it() {
    let desk = Desk::new();
    let nobody = desk.run(&["tell", "photos", "go on"]);
    assert_eq!(nobody.status.code(), Some(1), "{}", err(&nobody));
    assert_eq!(out(&nobody), "No agent takes instructions at the moment. Nothing was sent.\n");
    desk.accepts("photos", &["prompt"]);
    desk.begin("photos");
    let cancel = desk.run(&["cancel", "photos"]);
    assert_eq!(cancel.status.code(), Some(1));
    assert!(out(&cancel).contains("does not stop when it is told to"), "{}", out(&cancel));
    assert_eq!(desk.inbox("photos"), [] as [Value; 0]);
    let list = desk.run(&["tell"]);
    assert!(
        out(&list).contains("photos. You can tell it to begin something new."),
        "{}",
        out(&list)
    );
}

#[test]
fn of_several_sessions_it_is_said_what_each_is_about_and_what_to_type() {
    let desk = Desk::new();
    desk.accepts("photos", &["cancel"]);
    let (one, two) = (desk.begin("photos"), desk.begin("photos"));
    let several = desk.run(&["cancel", "photos"]);
    assert_eq!(several.status.code(), Some(1));
    let said = out(&several);
    for session in [&one, &two] {
        assert!(
            said.contains(&format!("Looking for photos: aaep cancel --session {session} photos")),
            "{said}"
        );
    }
    assert_eq!(desk.run(&["cancel", "photos", "--session", &two]).status.code(), Some(0));
    assert_eq!(desk.inbox("photos")[0]["session_id"], two.as_str());
}

#[test]
fn a_program_without_the_persons_key_tells_agents_nothing() {
    let desk = Desk::new();
    desk.accepts("photos", &["prompt"]);
    let elsewhere = tempfile::tempdir().expect("a folder");
    let refused = desk.run_with_config(elsewhere.path(), &["tell", "photos", "delete everything"]);
    assert_eq!(refused.status.code(), Some(1), "{}", err(&refused));
    assert!(out(&refused).contains("Nothing was sent."), "{}", out(&refused));
    assert_eq!(desk.inbox("photos"), [] as [Value; 0]);
}
