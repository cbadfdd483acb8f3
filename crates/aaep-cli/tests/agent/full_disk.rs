//! A hub whose disk is full: the person is told that an answer does not count, and can give it again.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::ear::{DANGEROUS, Ear, outcome};
use crate::support::{Hub, err, out, request, try_post};

const PATIENCE: Duration = Duration::from_mins(1);

fn stores(hub: &Hub) -> bool {
    request(&hub.origin, "GET", "/readyz", &json!(null)).0 == 200
}

/// Fills the disk, until the hub says that it can store nothing.
fn fill_disk(hub: &Hub) {
    hub.fill_disk(true);
    let origin = hub.origin.clone();
    let words = "More than there is room for. ".repeat(30);
    thread::spawn(move || {
        // The last one waits for room, and the hub may be gone by then.
        for number in 0..5000 {
            let kind = if number == 0 { "session.started" } else { "progress.updated" };
            let mut event = json!({
                "@context": "https://aaep-protocol.org/context/v1", "type": format!("aaep:agent.{kind}"),
                "session_id": "sess_writing", "producer": { "agent_id": "writer" },
                "event_id": format!("evt_w{number}"),
                "summary_normal": words,
            });
            if number > 0 {
                event["progress"] = json!({ "percent": number % 100 });
            }
            let Some((status, body)) = try_post(&origin, "/aaep/v1/publish", &event) else {
                return;
            };
            assert!(number > 9 || status == 200, "{body}");
        }
    });
    let until = Instant::now() + PATIENCE;
    while stores(hub) {
        assert!(Instant::now() < until, "the disk gets full");
        thread::yield_now();
    }
}

fn make_room(hub: &Hub) {
    hub.fill_disk(false);
    let until = Instant::now() + PATIENCE;
    while !stores(hub) {
        assert!(Instant::now() < until, "the hub goes on");
        thread::yield_now();
    }
}

/// A person who hears a question on this wire, from a hub that can store nothing more.
fn listening(address: impl FnOnce(&Hub, &std::path::Path) -> String) -> (Ear, std::process::Child) {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve_on_small_disk(folder.path());
    let address = address(&hub, folder.path());
    let mut ear = Ear::start_with(folder, hub, &[], &[("AAEP_HUB", &address)]);
    let asking = ear.ask(DANGEROUS);
    ear.hears("Answer yes or no: ");
    fill_disk(&ear.hub);
    (ear, asking)
}

fn answer_twice((mut ear, asking): (Ear, std::process::Child)) {
    ear.types("1 yes");
    let told = ear.hears("Answer yes or no: ");
    assert!(told.contains("Your answer does not count. "), "{told}");
    assert!(!told.contains("Accepted") && !told.contains("settled"), "{told}");
    make_room(&ear.hub);
    ear.types("1 yes");
    ear.hears("Accepted.");
    assert_eq!(outcome(asking), (Some(0), "accept\n".to_owned()));
    ear.quit();
}

#[test]
fn an_answer_over_http_that_does_not_count_is_told_and_can_be_given_again() {
    answer_twice(listening(|hub, _| hub.origin.clone()));
}

#[test]
fn an_answer_over_a_socket_that_does_not_count_is_told_and_can_be_given_again() {
    answer_twice(listening(|_, folder| {
        format!("unix:{}", folder.join("aaep/aaep-hub.sock").display())
    }));
}

#[test]
fn an_answer_from_another_terminal_that_cannot_count_is_told_as_such() {
    let (ear, asking) = listening(|hub, _| hub.origin.clone());
    let answered = ear.aaep(&["answer", "1", "yes"]).output().expect("aaep runs");
    assert_eq!(answered.status.code(), Some(2), "{}", out(&answered));
    let told = out(&answered) + &err(&answered);
    assert!(told.contains("Nothing was answered."), "{told}");
    assert!(!told.contains("You allowed it"), "{told}");
    make_room(&ear.hub);
    let answered = ear.aaep(&["answer", "1", "no"]).output().expect("aaep runs");
    assert_eq!((answered.status.code(), out(&answered)), (Some(0), "You refused it.\n".to_owned()));
    assert_eq!(outcome(asking), (Some(1), "reject\n".to_owned()));
    ear.quit();
}
