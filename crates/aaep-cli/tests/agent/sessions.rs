//! `aaep sessions` at a hub that runs.

use crate::support::{Hub, aaep, err, out};

#[test]
fn sessions_of_a_hub_that_runs_are_listed_shown_and_deleted() {
    let hub = Hub::start();
    let session = out(&hub.run(&["emit", "start", "Tidying up.", "--agent", "tidy"]));
    let session = session.trim();
    let listed = hub.run(&["sessions", "list"]);
    let text = out(&listed);
    assert!(text.starts_with(&format!("1 session at {}.", hub.origin)), "{text}{}", err(&listed));
    assert!(text.contains(&format!("Session {session}, by tidy: began ")), "{text}");
    let shown = out(&hub.run(&["sessions", "show", session]));
    assert!(shown.contains("session started: Tidying up."), "{shown}");

    let running = hub.run(&["sessions", "delete", session, "--yes"]);
    assert_eq!(running.status.code(), Some(2));
    assert!(err(&running).contains("still running"), "{}", err(&running));
    let ended = hub.run(&["emit", "end", "Done.", "--agent", "tidy", "--session", session]);
    assert_eq!(ended.status.code(), Some(0), "{}", err(&ended));
    let unsure = hub.run(&["sessions", "delete", session]);
    assert!(err(&unsure).contains("--yes"), "{}", err(&unsure));
    let deleted = hub.run(&["sessions", "delete", session, "--yes"]);
    assert_eq!(deleted.status.code(), Some(0), "{}", err(&deleted));
    assert!(out(&hub.run(&["sessions", "list"])).starts_with("There is no session at "));
}

#[test]
fn a_session_of_a_hub_that_runs_is_ended_by_hand() {
    let hub = Hub::start();
    let person = hub.person();
    let session = out(&hub.run(&["emit", "start", "Tidying up.", "--agent", "tidy"]));
    let session = session.trim();
    let ended = hub.run(&["sessions", "end", session]);
    assert_eq!(ended.status.code(), Some(0), "{}", err(&ended));
    assert!(out(&ended).starts_with(&format!("Session {session} has ended.")), "{}", out(&ended));
    let heard = person.hears("session.errored");
    assert!(heard["summary_normal"].as_str().is_some_and(|it| it.starts_with("Ended by hand")));
    let again = hub.run(&["sessions", "end", session]);
    assert_eq!(again.status.code(), Some(2));
    assert!(err(&again).contains("ended already"), "{}", err(&again));
    let deleted = hub.run(&["sessions", "delete", session, "--yes"]);
    assert_eq!(deleted.status.code(), Some(0), "{}", err(&deleted));
}

#[test]
fn with_neither_hub_nor_store_the_next_step_is_said() {
    let home = tempfile::tempdir().expect("a folder");
    let mut command = aaep(&["sessions", "list", "--hub", "http://127.0.0.1:1"]);
    let output = command.env("XDG_STATE_HOME", home.path()).output().expect("aaep runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("Start one with: aaep serve"), "{}", err(&output));
}
