//! The right to answer on one machine: the person's own commands, and programs that the person allowed (ruling 37).

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Hub, aaep, err, out, post};

/// A machine with a hub as a person starts it.
struct Machine {
    hub: Hub,
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let hub = Hub::serve_without_trust(folder.path());
        Machine { hub, folder }
    }

    /// A command of the person, or of an agent that runs as the same user.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.hub.aaep(arguments);
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, self.folder.path());
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(arguments).output().expect("aaep runs");
        (output.status.code(), out(&output) + &err(&output))
    }

    /// Whether a program with this name is allowed to answer.
    fn may_answer(&self, program: &str) -> bool {
        let request = json!({
            "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": program,
            "capabilities": { "supports_confirmation_reply": true },
        });
        let (status, accepted) = post(&self.hub.origin, "/aaep/v1/subscriptions", &request);
        assert_eq!(status, 201, "{accepted}");
        accepted["honored_capabilities"]["supports_confirmation_reply"] == json!(true)
    }

    /// Waits until that is so.
    fn until_may_answer(&self, program: &str, expected: bool) {
        let began = std::time::Instant::now();
        while self.may_answer(program) != expected {
            assert!(began.elapsed().as_secs() < 20, "{program} {expected}");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

#[test]
fn the_person_answers_without_any_set_up_and_an_agent_does_not() {
    let machine = Machine::new();
    let mut listen = machine.command(&["listen", "--json", "--hub", &machine.hub.origin]);
    listen.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut listening = listen.spawn().expect("aaep runs");
    let heard = std::io::BufReader::new(listening.stdout.take().expect("its output"));
    let mut heard = std::io::BufRead::lines(heard).map_while(Result::ok);
    let is_ready = |line: &String| !line.is_empty();
    assert!(heard.by_ref().any(|line| is_ready(&line)), "it says that it listens");
    // An agent that subscribes is not someone who could answer, and it is not asked.
    assert!(!machine.may_answer("agent"));
    let mut ask = machine.command(&["ask", "--agent", "mail", "Sort the mail?", "--risk", "low"]);
    let asking = ask.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("aaep runs");
    assert!(heard.by_ref().any(|line| line.contains("Sort the mail?")), "the person is asked");
    let (code, said) = machine.run(&["answer", "1", "no"]);
    assert_eq!(code, Some(0), "{said}");
    let asked = asking.wait_with_output().expect("aaep ends");
    assert_eq!(asked.status.code(), Some(1), "the person said no");
    listening.kill().expect("it ends");
    listening.wait().expect("it ends");
}

#[test]
fn a_program_is_allowed_listed_and_forbidden() {
    let machine = Machine::new();
    let (code, said) = machine.run(&["allow"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("No program except your own"), "{said}");
    assert!(!machine.may_answer("nvda-addon"));
    let (code, said) = machine.run(&["allow", "nvda-addon"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("nvda-addon may answer your agents"), "{said}");
    machine.until_may_answer("nvda-addon", true);
    assert!(!machine.may_answer("another"));
    let (_, listed) = machine.run(&["allow", "--json"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed[0]["name"], "nvda-addon");
    let (code, _) = machine.run(&["allow", "nvda-addon", "--revoke"]);
    assert_eq!(code, Some(0));
    machine.until_may_answer("nvda-addon", false);
    let (code, said) = machine.run(&["allow", "nvda-addon", "--revoke"]);
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn a_key_that_other_users_could_read_keeps_the_hub_from_starting_and_says_why() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("aaep/person.key");
    std::fs::create_dir_all(key.parent().expect("a folder")).expect("made");
    std::fs::write(&key, "aaep-person_x").expect("written");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).expect("set");
    let mut serve = aaep(&["serve", "--bind", "127.0.0.1:0", "--socket", "none"]);
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
        serve.env(name, folder.path());
    }
    let output = serve.output().expect("aaep runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        err(&output).contains("other users can read or change it; delete it"),
        "{}",
        err(&output)
    );
}

#[test]
fn a_program_without_a_name_is_given_an_address_that_is_shown_once_and_taken_back() {
    let machine = Machine::new();
    let hub = machine.hub.origin.as_str();
    let make = || machine.run(&["allow", "narrator", "--address", "--hub", hub]);
    let address = |said: &str| said.lines().last().unwrap_or_default().to_owned();
    let reply = json!({
        "type": "confirmation.reply", "decision": "accept", "timestamp": "2020-01-01T00:00:00Z",
        "reply_token": "rpl_00000000000000000000000000000000",
    });
    let answer = |address: &str| {
        let path = address.strip_prefix(hub).expect("an address of the hub").to_owned();
        post(hub, &format!("{path}/messages"), &reply).0
    };
    let (code, said) = make();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("aaep allow narrator --revoke"), "{said}");
    let first = address(&said);
    // The hub knows it, and has sent it no question that it could answer.
    assert_eq!(answer(&first), 400);
    let (_, said) = make();
    assert!(said.starts_with("The earlier address of narrator"), "{said}");
    let second = address(&said);
    let began = std::time::Instant::now();
    while answer(&first) != 401 {
        assert!(began.elapsed().as_secs() < 20, "the first is not good any more");
    }
    assert_eq!(answer(&second), 400);
    for listing in [&["allow"][..], &["allow", "--json"]] {
        let (_, listed) = machine.run(listing);
        assert!(listed.contains("narrator") && listed.contains(&second[second.len() - 4..]));
        assert!(!listed.contains(&second[second.len() - 20..]), "the secret is not shown again");
    }
    assert!(!machine.may_answer("narrator"), "its name alone is nothing");
    assert_eq!(machine.run(&["allow", "narrator", "--revoke"]).0, Some(0));
    let began = std::time::Instant::now();
    while answer(&second) != 401 {
        assert!(began.elapsed().as_secs() < 20, "it was taken back");
    }
    let (code, said) = machine.run(&["allow", "unnamed"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--address"), "{said}");
    let elsewhere = machine.run(&["allow", "x", "--address", "--hub", "https://hub.example.org"]);
    assert_eq!(elsewhere.0, Some(2), "{}", elsewhere.1);
}
