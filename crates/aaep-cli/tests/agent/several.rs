//! Several hubs in one `aaep listen`: all are heard, each answer goes to its own hub, and one that is gone takes
//! nothing else with it.

use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::ear::{DANGEROUS, Ear, outcome};
use crate::support::{Hub, aaep, err, out, post};

/// A person who listens to two hubs, and the second hub.
struct Two {
    ear: Ear,
    other: Option<Hub>,
    folder: TempDir,
}

impl Two {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let other = Hub::serve(folder.path(), "127.0.0.1:0");
        let home = tempfile::tempdir().expect("a folder");
        let first = Hub::serve(home.path(), "127.0.0.1:0");
        let urls = [first.origin.clone(), other.origin.clone()];
        // The person hears which hub is not there; nothing of the kind is said.
        let ear = Ear::start(home, first, &["--hub", &urls[0], "--hub", &urls[1]]);
        Two { ear, other: Some(other), folder }
    }

    /// The names of the hubs.
    fn first(&self) -> String {
        name(&self.ear.hub)
    }

    fn second(&self) -> String {
        name(self.other.as_ref().expect("it is there"))
    }

    /// An agent of the second hub asks.
    fn ask_second(&self, arguments: &[&str]) -> Child {
        let other = self.other.as_ref().expect("it is there");
        let mut command = other.aaep(&[&["ask"], arguments].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("aaep runs")
    }

    fn say_second(&self, words: &str) {
        let other = self.other.as_ref().expect("it is there");
        assert!(other.run(&["emit", "say", words]).status.success());
    }
}

fn name(hub: &Hub) -> String {
    format!("port {}", hub.origin.rsplit(':').next().expect("a port"))
}

fn authority(hub: &Hub) -> String {
    hub.origin.strip_prefix("http://").expect("plain http").to_owned()
}

/// How many questions wait at a hub.
fn waiting_at(two: &Two, hub: &Hub) -> u64 {
    let mut command = two.ear.aaep(&["attention", "--json"]);
    let looked = command.env("AAEP_HUB", &hub.origin).output().expect("aaep runs");
    let looked: Value = serde_json::from_str(&out(&looked)).expect("JSON");
    looked["waiting"].as_u64().expect("a count")
}

/// A port on which nothing listens.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

#[test]
fn both_are_heard_as_one_stream_and_the_hub_is_said_when_it_changes() {
    let mut two = Two::new();
    let (first, second) = (two.first(), two.second());
    assert!(two.ear.hub.run(&["emit", "say", "One.", "--agent", "mail"]).status.success());
    two.ear.hears(&format!("At {first}, mail: Started."));
    two.ear.hears("agent: One.\n");
    two.say_second("Two.");
    let told = two.ear.hears("agent: Two.\n");
    assert!(told.contains(&format!("At {second}, command-line: Started.")), "{told}");
    two.ear.quit();
}

#[test]
fn a_question_of_each_is_answered_by_its_number() {
    let mut two = Two::new();
    let (first, second) = (two.first(), two.second());
    let one = two.ear.ask(&[DANGEROUS, &["--agent", "photos"]].concat());
    let told = two.ear.hears("Answer yes or no: ");
    assert!(told.contains(&format!("At {first}, photos: Started.")), "{told}");
    assert!(told.contains("photos asks: Delete 240 photos?"), "{told}");
    let other = two.ask_second(&["Sort the mail?", "--risk", "low", "--agent", "mail"]);
    let told = two.ear.hears("Answer yes or no: ");
    assert!(told.contains(&format!("At {second}, mail: Started.")), "{told}");
    assert!(told.contains("mail asks, question 2: Sort the mail?"), "{told}");
    two.ear.types("yes");
    two.ear.hears("Several questions wait.");
    two.ear.types("list");
    two.ear.hears(&format!("{first}: Question 1, from photos: Delete 240 photos?"));
    two.ear.hears(&format!("{second}: Question 2, from mail: Sort the mail?"));
    two.ear.types("2 yes");
    assert_eq!(outcome(other), (Some(0), "accept\n".to_owned()));
    two.ear.types("1 no");
    assert_eq!(outcome(one), (Some(1), "reject\n".to_owned()));
    two.ear.quit();
}

#[test]
fn a_hub_that_is_killed_takes_nothing_with_it_and_is_heard_again_when_it_is_back() {
    let mut two = Two::new();
    let (first, second) = (two.first(), two.second());
    let address = authority(two.other.as_ref().expect("it is there"));
    let asking = two.ear.ask(DANGEROUS);
    two.ear.hears("Answer yes or no: ");
    two.other = None;
    two.ear.hears(&format!("The line to {second} broke. Trying again.\n"));
    two.ear.types("1 yes");
    assert_eq!(outcome(asking), (Some(0), "accept\n".to_owned()), "{first} goes on");
    two.other = Some(Hub::serve(two.folder.path(), &address));
    two.ear.hears(&format!("The line to {second} is back.\n"));
    let asking = two.ask_second(&["Sort the mail?", "--risk", "low"]);
    two.ear.hears("Sort the mail?");
    two.ear.hears("Answer yes or no: ");
    two.ear.types("no");
    assert_eq!(outcome(asking), (Some(1), "reject\n".to_owned()));
    two.ear.quit();
}

#[test]
fn a_hub_that_ends_in_order_ends_no_other_and_is_heard_again_when_it_is_back() {
    let mut two = Two::new();
    let second = two.second();
    let other = two.other.take().expect("it is there");
    let address = authority(&other);
    other.stop();
    let told = two.ear.hears("again.\n");
    assert!(told.contains(&second), "{told}");
    assert!(two.ear.hub.run(&["emit", "say", "Still here."]).status.success());
    two.ear.hears("Still here.");
    two.other = Some(Hub::serve(two.folder.path(), &address));
    two.ear.hears(&format!("The line to {second} is back.\n"));
    let asking = two.ask_second(DANGEROUS);
    two.ear.hears("Answer yes or no: ");
    two.ear.types("no");
    assert_eq!(outcome(asking), (Some(1), "reject\n".to_owned()));
    two.ear.quit();
}

#[test]
fn a_hub_that_is_not_there_is_said_once_and_heard_as_soon_as_it_is() {
    let home = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(home.path(), "127.0.0.1:0");
    let port = free_port();
    let urls = [hub.origin.clone(), format!("http://127.0.0.1:{port}")];
    let mut ear = Ear::start(home, hub, &["--hub", &urls[0], "--hub", &urls[1]]);
    ear.hears(&format!("notice: port {port}: "));
    ear.hears("It is tried again.\n");
    let asking = ear.ask(DANGEROUS);
    ear.hears("Answer yes or no: ");
    ear.types("1 no");
    assert_eq!(outcome(asking), (Some(1), "reject\n".to_owned()));
    let folder = tempfile::tempdir().expect("a folder");
    let late = Hub::serve(folder.path(), &format!("127.0.0.1:{port}"));
    let told = ear.hears(&format!("port {port}: The hub is there now.\n"));
    assert!(!told.contains("tried again"), "it was said once: {told}");
    assert!(late.run(&["emit", "say", "Hello from here."]).status.success());
    ear.hears("Hello from here.");
    ear.quit();
}

#[test]
fn where_no_hub_is_there_each_is_said_and_nobody_listens() {
    let home = tempfile::tempdir().expect("a folder");
    let ports = [free_port(), free_port()];
    let urls = ports.map(|port| format!("http://127.0.0.1:{port}"));
    let mut command = aaep(&["listen"]);
    command.args(["--hub", &urls.join(",")]).stdin(Stdio::null());
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
        command.env(name, home.path());
    }
    let output = command.output().expect("aaep runs");
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(2), ""));
    let said = err(&output);
    assert!(ports.iter().all(|port| said.contains(&port.to_string())), "{said}");
}

#[test]
fn attention_answer_and_doctor_follow_the_same_list() {
    let mut two = Two::new();
    let origins =
        [&two.ear.hub, two.other.as_ref().expect("it is there")].map(|it| it.origin.clone());
    let run = |two: &Two, arguments: &[&str]| {
        let mut command = two.ear.aaep(arguments);
        command.env("AAEP_HUB", origins.join(", ")).output().expect("aaep runs")
    };
    let one = two.ear.ask(DANGEROUS);
    two.ear.hears("Answer yes or no: ");
    let other = two.ask_second(&["Sort the mail?", "--risk", "low"]);
    two.ear.hears("Answer yes or no: ");
    let waiting: Value =
        serde_json::from_str(&out(&run(&two, &["attention", "--json"]))).expect("JSON");
    let of = |at: usize| {
        (waiting["questions"][at]["number"].clone(), waiting["questions"][at]["address"].clone())
    };
    assert_eq!(of(0), (json!(1), json!(origins[0])), "{waiting}");
    assert_eq!(of(1), (json!(2), json!(origins[1])), "{waiting}");
    assert_eq!(out(&run(&two, &["answer", "2", "yes"])), "You allowed it.\n");
    assert_eq!(outcome(other), (Some(0), "accept\n".to_owned()));
    assert_eq!(out(&run(&two, &["answer", "1", "no"])), "You refused it.\n");
    assert_eq!(outcome(one), (Some(1), "reject\n".to_owned()));
    let found = out(&run(&two, &["doctor"]));
    let both =
        format!("hubs: work. You can listen at {}. You can listen at {}.", origins[0], origins[1]);
    assert!(found.contains(&both), "{found}");
    // One token would be told to both.
    let refused = run(&two, &["attention", "--token", "secret"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("2 hubs and 1 token"), "{}", err(&refused));
    two.ear.quit();
}

#[test]
fn a_hub_that_copies_a_question_of_another_neither_takes_its_answer_nor_ends_it() {
    let mut two = Two::new();
    let now = format!("{:.3}", jiff::Timestamp::now());
    let question = json!({
        "type": "aaep:agent.awaiting.confirmation", "event_id": "evt_copied", "timestamp": now, "session_id": "sess_copied",
        "producer": { "agent_id": "photos" }, "action": "Delete 240 photos?",
        "consequence": "They are gone.", "reply_token": "rpl_copied", "timeout_seconds": 600,
        "default_decision": "reject", "risk_level": "high", "irreversible": true,
    });
    let ask = |hub: &Hub| {
        let begin = json!({
            "type": "aaep:agent.session.started", "session_id": "sess_copied",
            "timestamp": now, "producer": { "agent_id": "photos" },
            "summary_normal": "Copying.",
        });
        let (status, body) = post(&hub.origin, "/aaep/v1/publish", &begin);
        assert_eq!(status, 200, "{body}");
        let origin = hub.origin.clone();
        let question = question.clone();
        thread::spawn(move || {
            let ask = || post(&origin, "/aaep/v1/asks?wait_seconds=20", &question);
            let (status, body) =
                std::iter::repeat_with(ask).find(|(status, _)| *status != 202).expect("an end");
            assert_eq!(status, 200, "{body}");
            (body["outcome"].clone(), body["decided_by"].clone())
        })
    };
    let asked = ask(&two.ear.hub);
    two.ear.hears("Answer yes or no: ");
    let other = two.other.as_ref().expect("it is there");
    let copied = ask(other);
    two.ear.hears("Copying.");
    while waiting_at(&two, other) == 0 {}
    let end = ["emit", "end", "Ended.", "--session", "sess_copied", "--agent", "photos"];
    assert!(other.run(&end).status.success());
    assert_eq!(copied.join().expect("an end").0, json!("withdrawn"));
    two.say_second("Over.");
    let told = two.ear.hears("Over.");
    assert!(!told.contains("settled:"), "{told}");
    two.ear.types("list");
    two.ear.hears("Question 1, from photos");
    two.ear.types("1 yes");
    assert_eq!(asked.join().expect("an end"), (json!("accept"), json!("reply")));
    two.ear.quit();
}
