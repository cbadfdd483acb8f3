//! The examples in Rust, run as they are: a person types, and the program does it or leaves it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// How many lines an example may have.
const MAX_LINES: usize = 40;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Builds an example as `tools/build` does, which costs nothing where that has run, and says where it is.
fn example(name: &str) -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--workspace", "--all-targets"])
        .current_dir(root())
        .status();
    assert!(built.expect("cargo").success());
    let program = Path::new(env!("CARGO_BIN_EXE_aaep"));
    let folder = program.parent().and_then(Path::parent).expect("the folder of all that is built");
    folder.join("debug/examples").join(name)
}

/// A program that someone types into.
struct Program {
    process: Child,
    keyboard: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(command: &mut Command) -> Self {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = started.expect("it runs");
        let keyboard = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("its output"));
        Program { process, keyboard, output }
    }

    /// Waits for a line that contains this.
    fn says(&mut self, wanted: &str) -> String {
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("a line");
            assert!(!line.is_empty(), "it ended without saying {wanted}");
            if line.contains(wanted) {
                return line.trim().to_owned();
            }
        }
    }

    fn types(&mut self, text: &str) {
        writeln!(self.keyboard.as_mut().expect("a keyboard"), "{text}").expect("typed");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_examples_are_short() {
    for name in ["producer", "subscriber"] {
        let text = fs::read_to_string(root().join(format!("examples/rust/{name}.rs")));
        let lines = text.expect("an example").lines().count();
        assert!(lines < MAX_LINES, "{name} has {lines} lines");
    }
}

#[test]
fn the_producer_does_only_what_the_person_at_the_subscriber_accepts() {
    let (producer, subscriber) = (example("producer"), example("subscriber"));
    for (typed, done) in [("accept", "Deleted."), ("reject", "Nothing was deleted.")] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut producer = Program::start(Command::new(&producer).env("TMPDIR", folder.path()));
        let said = producer.says("Listening on ");
        let url = said.split_whitespace().nth(2).expect("an address").trim_end_matches('.');
        let mut person = Program::start(Command::new(&subscriber).arg(url));
        person.says("Listening.");
        producer.types("");
        let told = person.says("Type accept or reject:");
        for wanted in
            ["Delete 240 photos.", "They are gone for good.", "risk", "It cannot be undone."]
        {
            assert!(told.contains(wanted), "nothing about {wanted:?} before a yes: {told}");
        }
        person.types(typed);
        assert_eq!(producer.says("eleted."), done);
        person.says("The question is Resolved");
    }
}

#[test]
fn a_keyboard_that_is_gone_and_words_that_are_not_clear_are_no_consent() {
    let (producer, subscriber) = (example("producer"), example("subscriber"));
    let folder = tempfile::tempdir().expect("a folder");
    let mut producer = Program::start(Command::new(&producer).env("TMPDIR", folder.path()));
    let said = producer.says("Listening on ");
    let url = said.split_whitespace().nth(2).expect("an address").trim_end_matches('.');
    let mut unclear = Program::start(Command::new(&subscriber).arg(url));
    let mut person = Program::start(Command::new(&subscriber).arg(url));
    unclear.says("Listening.");
    person.says("Listening.");
    producer.types("");
    unclear.says("Type accept or reject:");
    unclear.types("accept it");
    person.says("Type accept or reject:");
    drop(person.keyboard.take());
    drop(unclear);
    assert_eq!(producer.says("eleted."), "Nothing was deleted.");
}
