//! Sessions: listed, shown, deleted, and refused.

use serde_json::Value;

use crate::support::{aaep, err, open, out, session, write};

#[test]
fn sessions_are_listed_with_those_that_run_first() {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path());
    let listed = aaep(home.path(), &["sessions", "list"]);
    assert_eq!(listed.status.code(), Some(0), "{}", err(&listed));
    let text = out(&listed);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("2 sessions in "), "{text}");
    assert!(lines[1].starts_with("Session sess_runs, by mean\\u{1b}[2J"), "{text}");
    assert!(lines[1].contains(": began 2023-11-14T22:13:30.000Z, running, last event "), "{text}");
    let done = "Session sess_done, by builder: began 2023-11-14T22:13:20.000Z, \
                ended 2023-11-14T22:13:40.000Z, 3 events, ";
    assert!(lines[2].starts_with(done) && lines[2].ends_with(" bytes."), "{text}");
    let list: Value =
        serde_json::from_str(&out(&aaep(home.path(), &["sessions", "list", "--json"])))
            .expect("JSON");
    assert_eq!((&list[0]["session_id"], &list[0]["ended_at"]), (&"sess_runs".into(), &Value::Null));
    assert_eq!((&list[1]["agent"], &list[1]["events"]), (&"builder".into(), &3.into()));
}

#[test]
fn a_session_is_told_event_by_event() {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path());
    let text = out(&aaep(home.path(), &["sessions", "show", "sess_done"]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[0].starts_with("Session sess_done, by builder: "), "{text}");
    assert_eq!(lines[1], "2023-11-14T22:13:20.000Z, session started: The build begins.");
    assert_eq!(
        lines[2],
        "2023-11-14T22:13:21.000Z, state changed, by the hub: from idle to thinking."
    );
    assert_eq!(
        lines[3],
        "2023-11-14T22:13:22.000Z, awaiting confirmation, critical: Delete it. Gone."
    );
    let nasty = out(&aaep(home.path(), &["sessions", "show", "sess_runs"]));
    assert!(nasty.lines().nth(1).expect("an event").contains(": \\u{1b}[2J"), "{nasty}");
    assert!(nasty.ends_with(": an event that is not JSON.\n"), "{nasty}");

    let lines = out(&aaep(home.path(), &["sessions", "show", "--json", "sess_done"]));
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(events.len(), 3);
    assert_eq!(events[2]["event"]["action"], "Delete it");
    assert_eq!(events[2]["order"], 2);
    assert_eq!(events[2].get("is_urgent"), None, "the event itself says whether it is critical");
}

#[test]
fn a_session_is_deleted_only_when_it_was_said_twice() {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path());
    let unsure = aaep(home.path(), &["sessions", "delete", "sess_done"]);
    assert_eq!(unsure.status.code(), Some(2));
    assert!(err(&unsure).contains("nothing was deleted yet"), "{}", err(&unsure));
    assert!(err(&unsure).ends_with("with: --yes\n"), "{}", err(&unsure));
    assert!(open(home.path()).reader().session(&session("sess_done")).expect("read").is_some());

    let deleted = aaep(home.path(), &["sessions", "delete", "sess_done", "--yes"]);
    assert_eq!(deleted.status.code(), Some(0), "{}", err(&deleted));
    assert!(out(&deleted).starts_with("Session sess_done is deleted: 3 events, "));
    assert!(open(home.path()).reader().session(&session("sess_done")).expect("read").is_none());
    let log = out(&aaep(home.path(), &["audit", "show", "--session", "sess_done"]));
    assert!(!log.contains("Delete the database?"), "{log}");
    assert_eq!(log.matches("The words were deleted.").count(), 3, "{log}");
    let last = log.lines().last().expect("an entry");
    assert!(last.contains(": session deleted, by person, session sess_done."), "{log}");
    assert_eq!(aaep(home.path(), &["audit", "verify"]).status.code(), Some(0));

    let again = aaep(home.path(), &["sessions", "delete", "sess_done", "--yes"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(err(&again).contains("aaep sessions list"), "{}", err(&again));
}

#[test]
fn a_running_session_is_ended_where_no_hub_runs_and_can_be_deleted_then() {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path());
    let ended = aaep(home.path(), &["sessions", "end", "sess_runs"]);
    assert_eq!(ended.status.code(), Some(0), "{}", err(&ended));
    assert_eq!(out(&ended), "Session sess_runs has ended. Its open questions were withdrawn.\n");
    let again = aaep(home.path(), &["sessions", "end", "sess_runs"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(err(&again).contains("ended already"), "{}", err(&again));
    let log = out(&aaep(home.path(), &["audit", "show", "--last", "1"]));
    assert!(log.contains(": session ended, by person, session sess_runs."), "{log}");
    let deleted = aaep(home.path(), &["sessions", "delete", "sess_runs", "--yes"]);
    assert_eq!(deleted.status.code(), Some(0), "{}", err(&deleted));
    let none = aaep(home.path(), &["sessions", "end", "sess_none"]);
    assert!(err(&none).contains("there is no session sess_none here"), "{}", err(&none));
}

#[test]
fn a_running_session_stays() {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path());
    let refused = aaep(home.path(), &["sessions", "delete", "sess_runs", "--yes"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("still running"), "{}", err(&refused));
    assert!(open(home.path()).reader().session(&session("sess_runs")).expect("read").is_some());
}

#[test]
fn what_cannot_be_done_ends_with_2_and_a_next_step() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("store");
    for command in [&["sessions", "list"][..], &["audit", "show"], &["audit", "verify"]] {
        let missing = aaep(&folder, command);
        assert_eq!(missing.status.code(), Some(2));
        assert!(err(&missing).contains("Say with --store"), "{}", err(&missing));
        assert!(!folder.exists(), "looking makes nothing");
    }
    write(&folder);
    let unknown = aaep(&folder, &["sessions", "show", "sess_other"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(err(&unknown).contains("aaep sessions list"), "{}", err(&unknown));
    assert_eq!(aaep(&folder, &["sessions", "show", "../x"]).status.code(), Some(2));
    std::fs::write(folder.join("store.redb"), "garbage").expect("written");
    let damaged = aaep(&folder, &["sessions", "list"]);
    assert_eq!(damaged.status.code(), Some(2));
    assert!(err(&damaged).contains("restore it from a backup"), "{}", err(&damaged));
}

#[test]
fn a_store_that_a_hub_uses_is_left_alone() {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path());
    let hub = open(home.path());
    let commands: &[&[&str]] = &[
        &["sessions", "list"],
        &["sessions", "show", "sess_done"],
        &["sessions", "delete", "sess_done", "--yes"],
        &["audit", "show"],
        &["audit", "verify"],
        &["audit", "export"],
    ];
    for command in commands {
        let refused = aaep(home.path(), command);
        assert_eq!(refused.status.code(), Some(2), "{command:?}");
        if *command == ["audit", "show"] {
            // The hub that uses it is asked, and this one does not answer.
            assert!(err(&refused).contains("so the hub at"), "{}", err(&refused));
            assert!(err(&refused).contains("no hub answers"), "{}", err(&refused));
            continue;
        }
        assert!(err(&refused).contains("is in use, most likely by a hub"), "{}", err(&refused));
        assert!(err(&refused).contains("Stop that hub"), "{}", err(&refused));
    }
    drop(hub);
    assert_eq!(aaep(home.path(), &["sessions", "list"]).status.code(), Some(0));
}

#[test]
fn the_help_documents_the_exit_codes() {
    let commands =
        [["sessions", "list"], ["sessions", "delete"], ["audit", "show"], ["audit", "verify"]];
    for [command, sub] in commands {
        let help = aaep(std::path::Path::new("x"), &[command, sub, "--help"]);
        assert!(out(&help).contains("Exit codes:\n  0  "), "{}", out(&help));
    }
}
