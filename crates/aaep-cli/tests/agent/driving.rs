//! What a person tells agents while they listen.

use serde_json::{Value, json};

use crate::ear::Ear;
use crate::support::{out, request};

/// An agent that can be told these things.
struct Driven<'a> {
    ear: &'a Ear,
    name: &'static str,
}

impl<'a> Driven<'a> {
    fn new(ear: &'a Ear, name: &'static str, accepts: &[&str]) -> Self {
        let path = format!("/aaep/v1/agents/{name}");
        let (status, said) = request(&ear.hub.origin, "PUT", &path, &json!({ "accepts": accepts }));
        assert_eq!(status, 204, "{said}");
        Driven { ear, name }
    }

    /// The last instruction to it.
    fn takes(&self) -> Value {
        let path = format!("/aaep/v1/agents/{}/inbox?wait_seconds=30", self.name);
        let (status, said) = request(&self.ear.hub.origin, "GET", &path, &Value::Null);
        assert_eq!(status, 200, "{said}");
        said["instructions"].as_array().and_then(|it| it.last()).expect("an instruction").clone()
    }
}

#[test]
fn an_agent_is_told_something_and_told_to_stop_from_where_the_person_listens() {
    let mut ear = Ear::new(&[]);
    let begun = ear.hub.run(&["emit", "start", "Looking at photos.", "--agent", "photos"]);
    let session = out(&begun).trim().to_owned();
    ear.hears("Looking at photos.");
    Driven::new(&ear, "photos", &["steer", "cancel"]);
    ear.types("tell Photos keep the ones from Lagos");
    ear.hears("photos was told.");
    let told = Driven { ear: &ear, name: "photos" }.takes();
    assert_eq!(told["type"], "agentvoice:session.steer");
    assert_eq!(
        (&told["session_id"], &told["text"]),
        (&json!(session), &json!("keep the ones from Lagos"))
    );
    ear.types("cancel photos now");
    ear.hears("Nothing was cancelled. To cancel it, type only: cancel photos");
    ear.types("cancel photos");
    ear.hears("photos was told to stop.");
    let told = Driven { ear: &ear, name: "photos" }.takes();
    assert_eq!(
        (&told["type"], &told["session_id"]),
        (&json!("agentvoice:session.cancel"), &json!(session))
    );
    ear.quit();
}

#[test]
fn an_agent_that_takes_only_new_tasks_is_told_so() {
    let mut ear = Ear::new(&[]);
    ear.hub.run(&["emit", "start", "Sorting.", "--agent", "mail"]);
    ear.hears("Sorting.");
    Driven::new(&ear, "mail", &["prompt"]);
    ear.types("tell mail: sort the old ones too");
    ear.hears("mail was told to begin that.");
    let told = Driven { ear: &ear, name: "mail" }.takes();
    assert_eq!(told["type"], "agentvoice:agent.prompt");
    ear.types("cancel mail");
    ear.hears("mail was not told.");
    ear.types("tell nobody anything");
    ear.hears("No agent has that name. There are: mail. Nobody was told anything.");
    ear.types("stop");
    ear.hears("Quiet. The agents go on; to end one, type cancel and its name.");
    ear.quit();
}
