//! A person's own commands next to programs that open connections as fast as they can (ruling 38).

#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long one command may take before it counts as one that hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended is as wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a program, and gives it with the first line that it says.
    fn start(command: &mut Command) -> (Self, String) {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        // It may say more, and nobody may be in its way.
        thread::spawn(move || output.lines().count());
        (Running(child), line.trim().to_owned())
    }
}

/// A machine with a hub that takes few connections.
struct Machine {
    home: TempDir,
    _hub: Running,
    origin: String,
}

impl Machine {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join("hub.toml"), "[limits]\nconnections = 96\n")
            .expect("written");
        let mut command = at_home(&home, &["serve", "--bind", "127.0.0.1:0", "--log", "error"]);
        for (flag, name) in
            [("--config", "hub.toml"), ("--socket", "hub.sock"), ("--store", "store")]
        {
            command.arg(flag).arg(home.path().join(name));
        }
        let (hub, line) = Running::start(&mut command);
        let origin = line.strip_prefix("Listening on ").expect(&line).to_owned();
        Machine { home, _hub: hub, origin }
    }

    fn socket(&self) -> PathBuf {
        self.home.path().join("hub.sock")
    }

    /// A command of the person, and its exit code.
    fn run(&self, hub: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = at_home(&self.home, arguments);
        let child =
            command.env("AAEP_HUB", hub).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("aaep runs");
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || sender.send(child.wait_with_output()));
        let output = ended.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{arguments:?} hangs"));
        let output = output.expect("it ends");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    fn publish(&self, kind: &str, fields: &Value) {
        let mut event = json!({
            "type": format!("aaep:agent.{kind}"), "session_id": "sess_1", "producer": { "agent_id": "photos" },
            "summary_normal": "Tidying.",
        });
        let event = event.as_object_mut().expect("an object");
        event.extend(fields.as_object().cloned().expect("an object"));
        let text = Value::Object(event.clone()).to_string();
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--fail", "--output", "/dev/null", "--json", &text]);
        let done = curl.arg(format!("{}/aaep/v1/publish", self.origin)).status();
        assert!(done.expect("curl runs").success(), "{text}");
    }

    /// Asks this many questions, and looks for and answers each while a crowd is at this address.
    fn answer_next_to_a_crowd(&self, questions: usize, first: usize, hub: &str, crowd_at: &str) {
        for number in first..first + questions {
            self.publish(
                "awaiting.confirmation",
                &json!({
                    "reply_token": format!("rpl_{number}"), "action": format!("Delete photo {number}"),
                    "consequence": "It is gone.", "risk_level": "high", "irreversible": true,
                    "default_decision": "reject", "timeout_seconds": 3000,
                }),
            );
        }
        let (code, said) = self.run(hub, &["attention"]);
        assert_eq!(code, Some(1), "{said}");
        let crowd = crowd(crowd_at);
        for _ in 0..questions {
            let (code, said) = self.run(hub, &["attention"]);
            assert!(code == Some(1) && said.contains(&format!("{questions} questions")), "{said}");
        }
        for number in first..first + questions {
            let said = self.run(hub, &["answer", &number.to_string(), "yes"]);
            assert_eq!(said, (Some(0), "You allowed it.\n".to_owned()), "{number}");
        }
        drop(crowd);
        assert_eq!(self.run(hub, &["attention"]).0, Some(0), "each was answered");
    }
}

/// Five programs that open connections as fast as they can.
fn crowd(address: &str) -> Vec<Running> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/crowd/flood.py");
    let start = |kind: &str| {
        let (program, line) =
            Running::start(Command::new("python3").args([script, address, "80", kind]));
        assert_eq!(line, "ready");
        program
    };
    ["idle", "idle", "head", "get", "churn"].map(start).into()
}

/// A command of the person whose folder this is.
fn at_home(home: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.args(arguments).env_clear().env("PATH", path).stdin(Stdio::null());
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
        command.env(name, home.path());
    }
    command
}

#[test]
fn the_person_looks_and_answers_next_to_five_programs_that_take_every_connection() {
    let machine = Machine::new();
    let unix = format!("unix:{}", machine.socket().display());
    // Without a listener, nobody could answer and the questions would end at once.
    let mut listen = at_home(&machine.home, &["listen"]);
    let (_listening, line) =
        Running::start(listen.env("AAEP_HUB", &unix).stdin(Stdio::piped()).stderr(Stdio::null()));
    assert!(line.contains("Listening"), "{line}");
    machine.publish("session.started", &json!({}));
    let socket = machine.socket();
    machine.answer_next_to_a_crowd(24, 1, &unix, &socket.display().to_string());
    let address = machine.origin.trim_start_matches("http://").to_owned();
    machine.answer_next_to_a_crowd(6, 25, &machine.origin, &address);
}
