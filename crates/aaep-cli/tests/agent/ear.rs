//! A person who listens with `aaep listen`, and what they hear.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{Hub, out};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// A question that must not be accepted by accident.
pub(crate) const DANGEROUS: &[&str] = &["Delete 240 photos?", "--irreversible", "--risk", "high"];

/// A person who listens in a plain terminal.
pub(crate) struct Ear {
    pub(crate) hub: Hub,
    process: Child,
    typing: ChildStdin,
    bytes: Receiver<u8>,
    heard: String,
    pub(crate) folder: TempDir,
}

impl Ear {
    pub(crate) fn new(arguments: &[&str]) -> Self {
        Ear::with_settings("", arguments)
    }

    pub(crate) fn with_settings(settings: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("aaep");
        std::fs::create_dir_all(&place).expect("a folder");
        std::fs::write(place.join("aaep.toml"), settings).expect("settings");
        let hub = Hub::serve(folder.path(), "127.0.0.1:0");
        Ear::start(folder, hub, arguments)
    }

    /// A person who listens to this hub, unless the arguments say otherwise.
    pub(crate) fn start(folder: TempDir, hub: Hub, arguments: &[&str]) -> Self {
        Ear::start_with(folder, hub, arguments, &[])
    }

    /// The same with these variables.
    pub(crate) fn start_with(
        folder: TempDir,
        hub: Hub,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let mut command = hub.aaep(&[&["listen"], arguments].concat());
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, folder.path());
        }
        command.envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("aaep runs");
        let typing = process.stdin.take().expect("its input");
        let mut output = BufReader::new(process.stdout.take().expect("its output"));
        let (sender, bytes) = mpsc::channel();
        thread::spawn(move || {
            // Byte by byte, because a prompt does not end its line.
            while let Ok(&[first, ..]) = output.fill_buf() {
                output.consume(1);
                if sender.send(first).is_err() {
                    return;
                }
            }
        });
        let mut ear = Ear { hub, process, typing, bytes, heard: String::new(), folder };
        ear.hears("Listening.");
        ear
    }

    /// Waits for this text after the text of the wait before. Returns everything up to its end.
    pub(crate) fn hears(&mut self, words: &str) -> String {
        self.hears_any(&[words])
    }

    /// The same for the first of these.
    pub(crate) fn hears_any(&mut self, any: &[&str]) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let ends = any.iter().filter_map(|it| Some(self.heard.find(it)? + it.len()));
            if let Some(end) = ends.min() {
                let rest = self.heard.split_off(end);
                return std::mem::replace(&mut self.heard, rest);
            }
            let left = until.saturating_duration_since(Instant::now());
            let Ok(byte) = self.bytes.recv_timeout(left) else {
                panic!("{any:?} was not heard, but {:?}", self.heard)
            };
            self.heard.push(char::from(byte));
        }
    }

    pub(crate) fn types(&mut self, line: &str) {
        self.begins_to_type(&format!("{line}\n"));
    }

    /// Types this much of a line.
    pub(crate) fn begins_to_type(&mut self, keys: &str) {
        self.typing.write_all(keys.as_bytes()).expect("typed");
        self.typing.flush().expect("typed");
    }

    pub(crate) fn ask(&self, arguments: &[&str]) -> Child {
        let mut command = self.hub.aaep(&[&["ask"], arguments].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("aaep runs")
    }

    /// A command of the same person.
    pub(crate) fn aaep(&self, arguments: &[&str]) -> Command {
        let mut command = self.hub.aaep(arguments);
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, self.folder.path());
        }
        command
    }

    /// Stops listening in order.
    pub(crate) fn quit(mut self) {
        self.types("quit");
        assert_eq!(self.process.wait().expect("it ends").code(), Some(0));
    }
}

/// The outcome of a question.
pub(crate) fn outcome(asking: Child) -> (Option<i32>, String) {
    let output = asking.wait_with_output().expect("aaep ends");
    (output.status.code(), out(&output))
}

impl Drop for Ear {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
