//! `aaep doctor` says what works here, and what to do about the rest.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use crate::braille_server::BrailleServer;
use crate::patience::wait_until;
use crate::speech_server::SpeechServer;
use crate::support::{Hub, aaep, out};

/// A person's machine: a hub, settings, and servers or none.
struct Machine {
    hub: Hub,
    folder: TempDir,
    speech: String,
    braille: String,
}

impl Machine {
    /// One without servers.
    fn new(settings: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("aaep");
        std::fs::create_dir_all(&place).expect("a folder");
        std::fs::write(place.join("aaep.toml"), settings).expect("settings");
        let hub = Hub::serve(folder.path(), "127.0.0.1:0");
        // Ports that nobody has: the first is not for everyone, and no machine has so many braille servers.
        let (speech, braille) = ("inet_socket:127.0.0.1:1", "127.0.0.1:60000");
        let (speech, braille) = (speech.to_owned(), braille.to_owned());
        Machine { hub, folder, speech, braille }
    }

    fn doctor(&self, arguments: &[&str]) -> Command {
        let mut command = aaep(&[&["doctor"], arguments].concat());
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, self.folder.path());
        }
        for name in ["WINDOWPATH", "WINDOWID", "CONTROLVT", "XDG_VTNR", "DISPLAY"] {
            command.env_remove(name);
        }
        // Nor is the desktop of whoever runs the tests told anything.
        command.env_remove("DBUS_SESSION_BUS_ADDRESS").env_remove("AT_SPI_BUS_ADDRESS");
        command.env("SPEECHD_ADDRESS", &self.speech).env("BRLAPI_HOST", &self.braille);
        command.stdout(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.doctor(arguments).output().expect("aaep runs")
    }
}

#[test]
fn what_works_is_heard_and_felt_and_said() {
    let (speech, braille) = (SpeechServer::start(1.0, &["en"]), BrailleServer::start());
    let mut machine = Machine::new("[speech]\non = true\n");
    machine.speech = format!("unix_socket:{}", speech.socket().display());
    machine.braille = braille.host();
    let origin = machine.hub.origin.clone();
    let mut command = machine.doctor(&["--braille", "--hub", &origin]);
    let running = thread::spawn(move || command.output().expect("aaep runs"));
    wait_until("it is felt", || (braille.shown() == "This is a test of aaep.").then_some(()));
    let output = running.join().expect("it ends");
    let said = out(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(speech.spoken(), ["This is a test of aaep."]);
    for line in [
        "settings: work. They can be used.",
        &format!("hub: works. You can listen at {origin}."),
        "lines: work. You are reading one.",
        "speech: works. You heard: This is a test of aaep.",
        "braille: works. On the display: This is a test of aaep.",
        "All that you want works.",
    ] {
        assert!(said.lines().any(|it| it == line), "{line:?} in {said}");
    }
}

#[test]
fn what_is_wanted_and_missing_is_exit_code_1_with_what_to_do() {
    let machine = Machine::new("");
    let output = machine.run(&["--speech", "--braille", "--desktop", "--hub", &machine.hub.origin]);
    let said = out(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let line = |name: &str| said.lines().find(|it| it.starts_with(name)).expect(name).to_owned();
    assert!(line("speech: does not work.").contains("speech-dispatcher --spawn"), "{said}");
    assert!(line("braille: does not work.").contains("apt-get install brltty"), "{said}");
    let desktop = line("desktop: does not work.");
    assert!(
        desktop.contains("in a terminal of the desktop") || desktop.contains("--features desktop"),
        "{said}"
    );
    let end = "Some of what you want does not work: speech, braille and desktop.\n";
    assert!(said.ends_with(end), "{said}");
}

#[test]
fn what_nobody_wants_may_be_missing() {
    let machine = Machine::new("");
    let output = machine.run(&["--json", "--hub", &machine.hub.origin]);
    let said = out(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let found: Value = serde_json::from_str(&said).expect("one object");
    assert_eq!(found["all_wanted_work"], true);
    let checks = found["checks"].as_array().expect("a list");
    let names: Vec<_> = checks.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["settings", "hub", "lines", "speech", "braille", "desktop", "sounds"]);
    let speech = &checks[3];
    assert_eq!((&speech["is_wanted"], &speech["works"]), (&false.into(), &false.into()));
}

#[test]
fn settings_that_cannot_be_used_and_a_hub_that_is_gone_are_found_and_the_rest_is_looked_at() {
    let machine = Machine::new("[speech]\nonn = true\n");
    let output = machine.run(&["--hub", "http://127.0.0.1:9"]);
    let said = out(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let line = |name: &str| said.lines().find(|it| it.starts_with(name)).expect(name).to_owned();
    assert!(line("settings: do not work.").contains("onn"), "{said}");
    assert!(line("hub: does not work.").contains("aaep serve"), "{said}");
    line("braille: does not work, and is not turned on.");
    assert!(said.ends_with("Some of what you want does not work: settings and hub.\n"), "{said}");
}

#[test]
fn each_line_is_said_when_it_is_known() {
    let machine = Machine::new("");
    // A hub that takes the connection and says nothing for now.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", silent.local_addr().expect("an address"));
    let mut child = machine.doctor(&["--hub", &address]).spawn().expect("aaep runs");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut next = || lines.next().expect("a line").expect("text");
    assert_eq!(next(), "settings: work. They can be used.");
    let (connection, _) = silent.accept().expect("the hub is tried after that was said");
    drop((connection, silent));
    assert!(next().starts_with("hub: does not work."));
    assert_eq!(next(), "lines: work. You are reading one.");
    child.wait().expect("it ends");
}
