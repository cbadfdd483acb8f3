//! `aaep ask` with people who accept, reject, answer, or are not there.

use std::process::{Child, Output, Stdio};

use serde_json::Value;

use crate::support::{Hub, aaep, err, out};

fn start(hub: &Hub, arguments: &[&str]) -> Child {
    let mut command = hub.aaep(&[&["ask"], arguments].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("aaep runs")
}

fn end(child: Child) -> Output {
    child.wait_with_output().expect("aaep ends")
}

#[test]
fn an_accept_is_exit_code_0_and_the_session_begins_and_ends() {
    let hub = Hub::start();
    let person = hub.person();
    let asked = start(&hub, &["Delete it?", "--irreversible", "--agent", "tidy"]);
    let started = person.hears("session.started");
    assert_eq!(started["producer"]["agent_id"], "tidy");
    let question = person.hears("awaiting.confirmation");
    assert_eq!(question["session_id"], started["session_id"]);
    assert_eq!(
        (&question["action"], &question["irreversible"]),
        (&"Delete it?".into(), &true.into())
    );
    assert_eq!(question["default_decision"], "reject");
    assert!(person.decides(&question, "accept"));
    let output = end(asked);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(out(&output), "accept\n");
    assert!(err(&output).contains("Asking: Delete it?"), "{}", err(&output));
    assert_eq!(person.hears("session.completed")["session_id"], started["session_id"]);
}

#[test]
fn a_reject_is_exit_code_1() {
    let hub = Hub::start();
    let person = hub.person();
    let asked = start(&hub, &["Delete it?", "--json"]);
    let question = person.hears("awaiting.confirmation");
    assert!(person.decides(&question, "reject"));
    let output = end(asked);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let outcome: Value = serde_json::from_str(&out(&output)).expect("JSON");
    assert_eq!((&outcome["outcome"], &outcome["decided_by"]), (&"reject".into(), &"reply".into()));
}

#[test]
fn an_accept_that_comes_after_a_reject_changes_nothing() {
    let hub = Hub::start();
    let person = hub.person();
    let asked = start(&hub, &["Delete it?"]);
    let question = person.hears("awaiting.confirmation");
    assert!(person.decides(&question, "reject"));
    assert!(!person.decides(&question, "accept"));
    assert_eq!(end(asked).status.code(), Some(1));
}

#[test]
fn silence_is_exit_code_1() {
    let hub = Hub::start();
    let person = hub.person();
    let asked = start(&hub, &["Delete it?", "--timeout", "1"]);
    person.hears("awaiting.confirmation");
    let output = end(asked);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("Nobody answered in time"), "{}", err(&output));
    assert_eq!(person.hears_how_it_was_settled(), ("reject".into(), "timeout".into()));
}

#[test]
fn nobody_there_is_exit_code_1_at_once() {
    let hub = Hub::start();
    let output = end(start(&hub, &["Delete it?", "--timeout", "3600"]));
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("Nobody was there"), "{}", err(&output));
}

#[test]
fn silence_that_accepts_is_exit_code_1_unless_low_risk_and_reversible_were_stated() {
    let hub = Hub::start();
    for risky in [&[][..], &["--risk", "low"], &["--risk", "medium", "--reversible"]] {
        let output = end(start(&hub, &[&["Sort it?", "--default", "accept"], risky].concat()));
        // A hub may refuse such an ask, but it must not count as consent.
        assert_ne!(output.status.code(), Some(0), "{risky:?}: {}", err(&output));
        assert!(!out(&output).contains("accept"), "{risky:?}: {}", out(&output));
        if output.status.code() == Some(1) {
            assert!(err(&output).contains("low risk"), "{}", err(&output));
        }
    }
    let harmless = ["Sort it?", "--default", "accept", "--risk", "low", "--reversible"];
    let output = end(start(&hub, &harmless));
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(out(&output), "accept\n");
}

#[test]
fn no_hub_is_exit_code_2_and_says_what_to_do() {
    let mut command = aaep(&["ask", "Delete it?", "--hub", "http://127.0.0.1:1"]);
    let output = command.output().expect("aaep runs");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(out(&output), "");
    assert!(err(&output).contains("aaep serve"), "{}", err(&output));
}

#[test]
fn a_question_that_the_hub_refuses_is_exit_code_2() {
    let hub = Hub::start();
    let person = hub.person();
    let output = end(start(&hub, &["Delete it?", "--choices", "one,one"]));
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("--choices"), "{}", err(&output));
    person.hears("session.cancelled");
}

#[test]
fn silence_that_may_not_accept_is_refused_with_the_flags_that_would_do() {
    let output = aaep(&["ask", "Delete it?", "--irreversible", "--default", "accept"]).output();
    let said = err(&output.expect("aaep runs"));
    assert!(said.contains("--default accept") && said.contains("--irreversible"), "{said}");
    assert!(said.contains("--risk low and --reversible"), "{said}");
    for word in ["risk_level", "default_decision", "reversibility"] {
        assert!(!said.contains(word), "{word} in {said}");
    }
}

#[test]
fn a_hub_that_dies_with_the_question_open_does_not_consent() {
    let hub = Hub::start();
    let person = hub.person();
    let mut asked = start(&hub, &["Delete it?", "--timeout", "3600"]);
    person.hears("awaiting.confirmation");
    drop(hub);
    // It keeps trying until it is stopped.
    stop(&asked);
    let status = asked.wait().expect("aaep ends");
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_question_outlives_a_hub_that_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    let person = hub.person();
    let asked = start(&hub, &["Delete it?", "--irreversible", "--timeout", "3600"]);
    let before = person.hears("awaiting.confirmation");
    let address = hub.origin.replace("http://", "");
    drop(hub);
    let hub = Hub::serve(folder.path(), &address);
    let person = hub.person();
    let question = person.hears("awaiting.confirmation");
    assert_eq!(question["event_id"], before["event_id"], "it is the same question");
    assert_eq!(question["reply_token"], before["reply_token"]);
    assert!(person.decides(&question, "accept"));
    let output = end(asked);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
}

#[test]
fn stopping_the_program_withdraws_the_question() {
    let hub = Hub::start();
    let person = hub.person();
    let asked = start(&hub, &["Delete it?"]);
    let question = person.hears("awaiting.confirmation");
    stop(&asked);
    let output = end(asked);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("That is not consent."), "{}", err(&output));
    assert_eq!(person.hears_how_it_was_settled(), ("withdrawn".into(), "withdrawn".into()));
    person.hears("session.cancelled");
    assert!(!person.decides(&question, "accept"));
}

/// As Control-C does.
fn stop(child: &Child) {
    let id = child.id().to_string();
    let status = std::process::Command::new("kill").args(["-INT", &id]).status().expect("kill");
    assert!(status.success());
}

#[test]
fn a_choice_is_printed() {
    let hub = Hub::start();
    let person = hub.person();
    let asked = start(&hub, &["Which?", "--choices", "red,blue"]);
    let question = person.hears("awaiting.clarification");
    assert!(person.answers(&question, "blue"));
    let output = end(asked);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(out(&output), "blue\n");
}

#[test]
fn no_choice_is_exit_code_1_and_prints_no_answer() {
    let hub = Hub::start();
    let output = end(start(&hub, &["Which?", "--choices", "red,blue"]));
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert_eq!(out(&output), "unanswered\n");
}

#[test]
fn a_question_in_a_session_that_there_is_leaves_it_open() {
    let hub = Hub::start();
    let person = hub.person();
    let session =
        out(&hub.run(&["emit", "start", "Tidying.", "--agent", "tidy"])).trim().to_owned();
    let asked = start(&hub, &["Go on?", "--agent", "tidy", "--session", &session]);
    let question = person.hears("awaiting.confirmation");
    assert_eq!(question["session_id"], session.as_str());
    assert!(person.decides(&question, "accept"));
    assert_eq!(end(asked).status.code(), Some(0));
    let said = hub.run(&["emit", "say", "Going on.", "--agent", "tidy", "--session", &session]);
    assert_eq!(said.status.code(), Some(0), "{}", err(&said));
}
