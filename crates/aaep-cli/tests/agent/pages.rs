//! Every example of docs/agents.md runs unchanged, with a person who accepts and with one who does
//! not. What it says it does, people hear.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{Hub, Person, err};

/// The examples in this language, in their order.
fn examples(language: &str) -> Vec<String> {
    let page = include_str!("../../../../docs/agents.md");
    let opening = format!("```{language}\n");
    let blocks = page.split(opening.as_str()).skip(1);
    blocks.map(|block| block.split("\n```").next().expect("its end").to_owned()).collect()
}

/// Runs an example against this hub in place of the one at the default address.
fn start(hub: &Hub, program: &str, flag: &str, example: &str) -> std::process::Child {
    assert!(example.lines().count() < 50, "it does not fit on a screen");
    let example = example.replace("http://127.0.0.1:7117", &hub.origin);
    let folder = Path::new(env!("CARGO_BIN_EXE_aaep")).parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    Command::new(program)
        .args([flag, &example])
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("AAEP_HUB", &hub.origin)
        .env_remove("AAEP_TOKEN")
        .env_remove("AAEP_SESSION")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"))
}

fn end(child: std::process::Child) -> Output {
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    output
}

/// This example asks a person, who decides; then the session ends.
fn decided(program: &str, flag: &str, example: &str, decision: &str) -> (Hub, Person, Value) {
    let hub = Hub::start();
    let person = hub.person();
    let child = start(&hub, program, flag, example);
    let question = person.hears("awaiting.confirmation");
    assert_eq!(question["irreversible"], true);
    assert_eq!(question["default_decision"], "reject");
    assert!(person.decides(&question, decision));
    end(child);
    (hub, person, question)
}

#[test]
fn the_page_has_the_examples_that_are_run_here() {
    assert_eq!((examples("sh").len(), examples("python").len()), (2, 3));
}

#[test]
fn the_shell_script_does_what_the_person_decides() {
    let example = &examples("sh")[0];
    let after = |decision| {
        let (_hub, person, _) = decided("sh", "-euc", example, decision);
        let said = person
            .hears_where("output.streaming", |it| it["chunk"] != "I found 240 blurred photos.");
        assert_eq!(person.hears("session.completed")["summary_normal"], "Done with the photos.");
        said["chunk"].as_str().expect("words").to_owned()
    };
    assert_eq!(after("accept"), "I delete them now.");
    assert_eq!(after("reject"), "I leave them alone.");
}

#[test]
fn curl_does_what_the_person_decides() {
    let example = &examples("sh")[1];
    let after = |decision| {
        let (_hub, person, question) = decided("sh", "-euc", example, decision);
        let end = person.hears("session.completed");
        assert_eq!(end["session_id"], question["session_id"]);
        end["summary_normal"].as_str().expect("words").to_owned()
    };
    assert_eq!(after("accept"), "The photos may be deleted.");
    assert_eq!(after("reject"), "The photos stay.");
}

#[test]
fn python_does_what_the_person_decides() {
    let example = &examples("python")[0];
    let (_hub, person, question) = decided("python3", "-c", example, "accept");
    assert_eq!(person.hears("tool.completed")["session_id"], question["session_id"]);
    person.hears("session.completed");
    let (_hub, person, _) = decided("python3", "-c", example, "reject");
    let next = person.hears_any(&["tool.invoked", "session.completed"]);
    assert_eq!(next["type"], "aaep:agent.session.completed", "nothing is done without consent");
}

#[test]
fn python_hears_what_people_say_to_it() {
    let hub = Hub::start();
    let person = hub.person();
    let child = start(&hub, "python3", "-c", &examples("python")[1]);
    let prompt =
        json!({ "type": "agentvoice:agent.prompt", "agent_id": "parrot", "text": "Hello!" });
    // It takes a moment until it has declared what it accepts.
    let mut told = person.says(prompt.clone());
    while told.0 == 409 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        told = person.says(prompt.clone());
    }
    assert_eq!(told.0, 202, "{told:?}");
    let said = person.hears("output.streaming");
    assert_eq!(
        (&said["chunk"], &said["session_id"]),
        (&"You said: Hello!".into(), &told.1["session_id"])
    );
    person.hears("session.completed");
    end(child);
}

#[test]
fn python_as_a_child_of_the_hub_does_what_the_person_decides() {
    let after = |decision: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let (program, go) = (folder.path().join("tidy.py"), folder.path().join("go"));
        // It begins when the person is there.
        let wait = format!("import os\nwhile not os.path.exists({go:?}):\n    pass\n");
        std::fs::write(&program, wait + &examples("python")[2]).expect("written");
        let hub = Hub::serve_child(folder.path(), &["python3", program.to_str().expect("a path")]);
        let person = hub.person();
        std::fs::write(&go, "").expect("written");
        let question = person.hears("awaiting.confirmation");
        assert!(person.decides(&question, decision));
        person.hears("session.completed")["summary_normal"].as_str().expect("words").to_owned()
    };
    assert_eq!(after("accept"), "The person said accept.");
    assert_eq!(after("reject"), "The person said reject.");
}
