//! `aaep listen --desktop`: a question is announced to the screen reader and answered with its button.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::desktop_session::{ScreenReader, in_session};
use crate::patience::wait_until;
use crate::support::{Hub, out, post};

/// In this time a question can be heard to its end, at the pace that is set below.
const TO_HEAR_IT: Duration = Duration::from_secs(4);

/// `aaep listen` in this session, and its hub. What is further up ends first.
struct Listening {
    process: Child,
    hub: Hub,
    folder: TempDir,
}

impl Listening {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let hub = Hub::serve(folder.path(), "127.0.0.1:0");
        let mut command = hub.aaep(&[&["listen", "--desktop"], arguments].concat());
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
            command.env(name, folder.path());
        }
        command.env("AAEP_WORDS_PER_MINUTE", "1000");
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Listening { process: process.expect("aaep runs"), hub, folder }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The agent begins its session.
fn begin(origin: &str) {
    let started = json!({
        "type": "aaep:agent.session.started", "session_id": "sess_desktop",
        "producer": { "agent_id": "weaver" }, "summary_normal": "Cleaning up.",
    });
    let (status, body) = post(origin, "/aaep/v1/publish", &started);
    assert_eq!(status, 200, "{body}");
}

/// The agent asks whether it may do something, and waits. What it gets is the resolution.
fn ask(origin: String, token: &'static str) -> thread::JoinHandle<Value> {
    let question = json!({
        "type": "aaep:agent.awaiting.confirmation", "session_id": "sess_desktop",
        "producer": { "agent_id": "weaver" }, "event_id": token.replace("rpl_", "evt_"),
        "action": "Delete the database?", "consequence": "All of it is gone.", "reply_token": token,
        "timeout_seconds": 600, "default_decision": "reject", "risk_level": "high",
        "irreversible": true,
    });
    thread::spawn(move || {
        let ask = || post(&origin, "/aaep/v1/asks?wait_seconds=50", &question);
        let (status, body) =
            std::iter::repeat_with(ask).find(|(status, _)| *status != 202).expect("an end");
        assert_eq!(status, 200, "{body}");
        body
    })
}

#[test]
fn a_question_is_announced_and_approved_from_the_desktop() {
    in_session("desktop::a_question_is_announced_and_approved_from_the_desktop", || {
        let reader = ScreenReader::start();
        // The screen reader is the only one who tells anything.
        let listening = Listening::start(&["--no-lines"]);
        assert_eq!(reader.next().words, "Listening.");
        begin(&listening.hub.origin);
        for (token, button, outcome) in [("rpl_1", "Yes", "accept"), ("rpl_2", "No", "reject")] {
            let asking = ask(listening.hub.origin.clone(), token);
            let asked = std::iter::repeat_with(|| reader.next())
                .find(|it| it.words.contains("Delete the database?"))
                .expect("it is announced");
            assert!(asked.is_assertive && asked.words.starts_with("weaver asks: "), "{asked:?}");
            assert!(asked.words.contains("It cannot be undone."), "{asked:?}");
            // A button that is pressed too soon does not count, and the question is announced again whole.
            wait_until("the answer counts", || {
                thread::sleep(TO_HEAR_IT);
                reader.press(&reader.button(button, "Delete the database?"));
                thread::sleep(Duration::from_millis(300));
                asking.is_finished().then_some(())
            });
            let body = asking.join().expect("an outcome");
            assert_eq!((&body["outcome"], &body["decided_by"]), (&outcome.into(), &"reply".into()));
            wait_until("the buttons are gone", || reader.buttons().is_empty().then_some(()));
        }
    });
}

#[test]
fn in_a_terminal_nothing_is_spoken_twice() {
    in_session("desktop::in_a_terminal_nothing_is_spoken_twice", || {
        let reader = ScreenReader::start();
        let folder = tempfile::tempdir().expect("a folder");
        let hub = Hub::serve(folder.path(), "127.0.0.1:0");
        // The program script gives it a terminal, and shows what stands there.
        let line = format!("'{}' listen --desktop", env!("CARGO_BIN_EXE_aaep"));
        let mut command = std::process::Command::new("script");
        command.args(["-q", "-e", "-c", &line, "/dev/null"]).env("AAEP_HUB", &hub.origin);
        command.env("XDG_CONFIG_HOME", folder.path()).env("XDG_STATE_HOME", folder.path());
        command.env("AAEP_WORDS_PER_MINUTE", "1000");
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script runs");
        assert_eq!(reader.next().words, "Listening.");
        begin(&hub.origin);
        let told =
            std::iter::repeat_with(|| reader.next()).find(|it| it.words.contains("Cleaning up."));
        assert!(told.is_some());
        let mut typing = process.stdin.take().expect("its input");
        std::io::Write::write_all(&mut typing, b"quit\n").expect("typed");
        let output = process.wait_with_output().expect("it ends");
        let screen = out(&output);
        assert!(!screen.contains("Cleaning up.") && !screen.contains("Listening."), "{screen}");
    });
}

#[test]
fn without_a_screen_reader_the_lines_say_what_to_do() {
    in_session("desktop::without_a_screen_reader_the_lines_say_what_to_do", || {
        let mut listening = Listening::start(&[]);
        let lines = BufReader::new(listening.process.stdout.take().expect("its output")).lines();
        let said = lines.map(|it| it.expect("a line")).find(|it| it.contains("desktop"));
        let said = said.expect("it is told");
        assert!(said.contains("About desktop: No screen reader is turned on here."), "{said}");
        assert!(said.contains("orca"), "{said}");
    });
}

#[test]
fn the_doctor_says_whether_the_screen_reader_is_told() {
    in_session("desktop::the_doctor_says_whether_the_screen_reader_is_told", || {
        let doctor = |listening: &Listening| {
            let mut command = listening.hub.aaep(&["doctor", "--desktop"]);
            for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
                command.env(name, listening.folder.path());
            }
            let nobody = ("inet_socket:127.0.0.1:1", "127.0.0.1:60000");
            command.env("SPEECHD_ADDRESS", nobody.0).env("BRLAPI_HOST", nobody.1);
            command.output().expect("aaep runs")
        };
        let listening = Listening::start(&[]);
        let output = doctor(&listening);
        let said = out(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("\ndesktop: does not work. No screen reader is turned on here."),
            "{said}"
        );
        let reader = ScreenReader::start();
        let output = doctor(&listening);
        let said = out(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        let line = "\ndesktop: works. The screen reader was told: This is a test of aaep.\n";
        assert!(said.contains(line), "{said}");
        let told =
            std::iter::repeat_with(|| reader.next()).find(|it| it.words.contains("a test of"));
        assert_eq!(told.map(|it| it.is_assertive), Some(false));
    });
}
