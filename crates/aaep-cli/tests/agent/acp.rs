//! `aaep acp` between a scripted editor and a scripted agent, with a real hub.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Hub, Person, aaep};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// An agent that writes down every byte it reads, and does what the prompt says.
const AGENT: &str = r#"
import json, sys
log = open(sys.argv[1], "ab", buffering=0)
out = sys.stdout.buffer

def say(message):
    out.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
    out.flush()

def update(**fields):
    say({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s-1", "update": fields}})

prompt = None
for line in sys.stdin.buffer:
    log.write(line)
    try:
        message = json.loads(line)
    except ValueError:
        out.write(line)
        out.flush()
        continue
    method = message.get("method")
    if method == "initialize":
        say({"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": 1,
            "agentInfo": {"name": "scripted", "title": "Scripted"}}})
    elif method == "session/new":
        say({"jsonrpc": "2.0", "id": message["id"], "result": {"sessionId": "s-1"}})
    elif method == "session/prompt":
        prompt = message["id"]
        say({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": {
            "sessionId": "s-1",
            "toolCall": {"toolCallId": "t-1", "kind": "execute", "title": "Looks around",
                         "rawInput": {"command": "rm -rf build"}},
            "options": [{"optionId": "forever", "name": "Always", "kind": "allow_always"},
                        {"optionId": "once", "name": "Allow", "kind": "allow_once"},
                        {"optionId": "no", "name": "Reject", "kind": "reject_once"}]}})
    elif method == "test/die":
        sys.exit(3)
    elif method == "session/cancel":
        pass
    elif "method" not in message and message.get("id") == 0:
        outcome = message["result"]["outcome"]
        if outcome.get("optionId") == "once":
            update(sessionUpdate="tool_call_update", toolCallId="t-1", status="completed")
        update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "The folder is gone."})
        reason = "cancelled" if outcome["outcome"] == "cancelled" else "end_turn"
        say({"jsonrpc": "2.0", "id": prompt, "result": {"stopReason": reason}})
"#;

/// An editor that runs the scripted agent through `aaep acp`.
struct Editor {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    folder: TempDir,
}

impl Editor {
    fn start(hub: Option<&Hub>, arguments: &[&str]) -> Self {
        // Nothing listens there.
        let nowhere = "http://127.0.0.1:9";
        Editor::start_at(hub.map_or(nowhere, |it| it.origin.as_str()), arguments)
    }

    fn start_at(hub: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("agent.py");
        fs::write(&script, AGENT).expect("written");
        let mut command = aaep(&["acp"]);
        command.env("AAEP_HUB", hub);
        for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, folder.path());
        }
        command.args(arguments).args(["--", "python3"]).arg(&script).arg(folder.path().join("log"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("aaep runs");
        let mut output = BufReader::new(process.stdout.take().expect("its output"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                let length = output.read_until(b'\n', &mut line).unwrap_or(0);
                if length == 0 || sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = process.stdin.take();
        Editor { process, input, lines, folder }
    }

    /// One whose agent was prompted.
    fn prompted(hub: Option<&Hub>, arguments: &[&str]) -> Self {
        Editor::start(hub, arguments).prompts()
    }

    fn prompts(self) -> Self {
        let mut editor = self;
        editor.writes(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} }));
        editor.reads();
        editor.writes(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new",
            "params": { "cwd": "/home/ada/work/shop", "mcpServers": [] } }));
        editor.reads();
        editor.writes(&json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt",
            "params": { "sessionId": "s-1", "prompt": [{ "type": "text", "text": "Tidy up." }] } }));
        let asked = editor.reads();
        assert_eq!(asked["method"], "session/request_permission");
        editor
    }

    fn writes(&mut self, message: &Value) {
        self.writes_bytes(format!("{message}\n").as_bytes());
    }

    fn writes_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("an open input");
        input.write_all(bytes).and_then(|()| input.flush()).expect("it reads");
    }

    fn answers(&mut self, option: &str) {
        self.writes(&json!({ "jsonrpc": "2.0", "id": 0,
            "result": { "outcome": { "outcome": "selected", "optionId": option } } }));
    }

    fn reads_bytes(&self) -> Vec<u8> {
        self.lines.recv_timeout(PATIENCE).expect("a line")
    }

    fn reads(&self) -> Value {
        serde_json::from_slice(&self.reads_bytes()).expect("JSON")
    }

    /// Reads until the prompt is answered.
    fn reads_end(&self) -> Value {
        loop {
            let message = self.reads();
            if message["id"] == 2 {
                return message["result"]["stopReason"].clone();
            }
        }
    }

    /// Closes the input, and returns the exit code, what was said on standard error, and what the agent has read.
    fn ends(mut self) -> (Option<i32>, String, Vec<u8>) {
        self.input = None;
        let mut said = String::new();
        let mut errors = self.process.stderr.take().expect("its errors");
        errors.read_to_string(&mut said).expect("text");
        let code = self.process.wait().expect("it ends").code();
        (code, said, fs::read(self.folder.path().join("log")).expect("a log"))
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The outcomes that the agent was told for its question.
fn outcomes(log: &[u8]) -> Vec<Value> {
    let lines = log.split(|it| *it == b'\n').filter_map(|it| serde_json::from_slice(it).ok());
    let answers = lines.filter(|it: &Value| it.get("method").is_none() && it["id"] == 0);
    answers.map(|it| it["result"]["outcome"].clone()).collect()
}

fn asked(person: &Person) -> Value {
    let question = person.hears("awaiting.confirmation");
    assert_eq!(question["action"], "Run the command: rm -rf build");
    assert_eq!(
        (&question["risk_level"], &question["irreversible"]),
        (&json!("high"), &json!(true))
    );
    question
}

#[test]
fn a_no_of_the_listener_reaches_the_agent_as_its_own_option() {
    let hub = Hub::start();
    let person = hub.person();
    let mut editor = Editor::prompted(Some(&hub), &[]);
    let started = person.hears("session.started");
    assert_eq!(started["summary_normal"], "Scripted begins: Tidy up.");
    assert_eq!(started["extensions"]["agentvoice"]["project"], "work/shop");
    let question = asked(&person);
    assert!(person.decides(&question, "reject"));
    // The agent is told first, so what it does next may reach the editor before the request to close the question.
    let (mut is_closed, mut has_ended) = (false, false);
    while !(is_closed && has_ended) {
        let message = editor.reads();
        is_closed |= message["method"] == "$/cancel_request" && message["params"]["requestId"] == 0;
        has_ended |= message["result"]["stopReason"] == "end_turn";
    }
    // What the editor answers late does not reach the agent.
    editor.answers("forever");
    assert_eq!(person.hears("output.streaming")["chunk"], "The folder is gone.");
    let end = person.hears("session.completed");
    assert!(end["summary_normal"].as_str().expect("words").ends_with(": 1 not run."), "{end}");
    let (code, said, log) = editor.ends();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(outcomes(&log), [json!({ "outcome": "selected", "optionId": "no" })]);
}

#[test]
fn a_yes_of_the_listener_allows_exactly_once() {
    let hub = Hub::start();
    let person = hub.person();
    let editor = Editor::prompted(Some(&hub), &["--agent", "tidy", "--policy", "changes"]);
    assert_eq!(person.hears("session.started")["producer"]["agent_id"], "tidy");
    let question = asked(&person);
    assert!(person.decides(&question, "accept"));
    let invoked = person.hears("tool.invoked");
    assert_eq!(invoked["summary_normal"], "Runs: rm -rf build");
    assert_eq!(
        invoked["extensions"]["agentvoice"]["action_digest"],
        question["extensions"]["agentvoice"]["action_digest"]
    );
    assert_eq!(person.hears("tool.completed")["status"], "success");
    assert_eq!(editor.reads_end(), "end_turn");
    let (code, _, log) = editor.ends();
    assert_eq!(code, Some(0));
    assert_eq!(outcomes(&log), [json!({ "outcome": "selected", "optionId": "once" })]);
}

#[test]
fn an_answer_in_the_editor_withdraws_the_question() {
    let hub = Hub::start();
    let person = hub.person();
    let mut editor = Editor::prompted(Some(&hub), &[]);
    let question = asked(&person);
    editor.answers("once");
    assert_eq!(editor.reads_end(), "end_turn");
    assert_eq!(person.hears_how_it_was_settled(), ("withdrawn".into(), "withdrawn".into()));
    assert!(!person.decides(&question, "reject"));
    let invoked = person.hears("tool.invoked");
    assert_eq!(
        invoked["summary_normal"],
        "In the editor it was answered: “Allow”. Runs: rm -rf build"
    );
    let (code, _, log) = editor.ends();
    assert_eq!(code, Some(0));
    assert_eq!(outcomes(&log), [json!({ "outcome": "selected", "optionId": "once" })]);
}

#[test]
fn an_agent_that_dies_in_the_middle_of_a_question_withdraws_it_and_keeps_its_exit_code() {
    let hub = Hub::start();
    let person = hub.person();
    let mut editor = Editor::prompted(Some(&hub), &[]);
    let question = asked(&person);
    editor.writes(&json!({ "jsonrpc": "2.0", "method": "test/die" }));
    assert_eq!(person.hears_how_it_was_settled(), ("withdrawn".into(), "withdrawn".into()));
    assert_eq!(
        person.hears("session.errored")["summary_normal"],
        "The agent ended in the middle of its work, with exit code 3."
    );
    assert!(!person.decides(&question, "accept"));
    let (code, _, log) = editor.ends();
    assert_eq!(code, Some(3));
    assert!(outcomes(&log).is_empty());
}

#[test]
fn a_cancel_of_the_person_reaches_the_agent_and_allows_nothing() {
    let hub = Hub::start();
    let person = hub.person();
    let editor = Editor::prompted(Some(&hub), &[]);
    asked(&person);
    // The agent takes instructions as soon as the hub has heard of it.
    let is_cancelled = || hub.run(&["cancel", "scripted"]).status.code() == Some(0);
    assert!((0..600).any(|_| is_cancelled() || {
        thread::sleep(Duration::from_millis(100));
        false
    }));
    assert_eq!(editor.reads_end(), "cancelled");
    person.hears("session.cancelled");
    let (_, _, log) = editor.ends();
    assert_eq!(outcomes(&log), [json!({ "outcome": "cancelled" })]);
    assert!(String::from_utf8_lossy(&log).contains("\"session/cancel\""));
}

#[test]
fn with_the_policy_tell_only_the_editor_answers() {
    let hub = Hub::start();
    let person = hub.person();
    let mut editor = Editor::prompted(Some(&hub), &["--policy", "tell"]);
    let told = person.hears_where("state.changed", |it| it["to_state"] == "awaiting_input");
    let words = told["summary_normal"].as_str().expect("words");
    assert!(
        words.starts_with("Scripted asks in the editor: Run the command: rm -rf build"),
        "{words}"
    );
    editor.answers("no");
    assert_eq!(editor.reads_end(), "end_turn");
    assert_eq!(editor.ends().0, Some(0));
}

#[test]
fn without_a_hub_the_editor_decides_and_nothing_else_is_different() {
    let mut editor = Editor::prompted(None, &[]);
    editor.answers("no");
    assert_eq!(editor.reads_end(), "end_turn");
    let (code, said, log) = editor.ends();
    assert_eq!(code, Some(0));
    assert!(said.contains("The AAEP hub does not answer"), "{said}");
    assert!(said.contains("The hub was not told the last"), "{said}");
    assert_eq!(outcomes(&log), [json!({ "outcome": "selected", "optionId": "no" })]);
}

#[test]
fn a_hub_that_starts_later_is_told_what_happened_and_puts_the_open_question() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    let origin = hub.origin.clone();
    hub.stop();
    let editor = Editor::start_at(&origin, &[]).prompts();
    let hub = Hub::serve(folder.path(), origin.trim_start_matches("http://"));
    let person = hub.person();
    let question = asked(&person);
    assert!(person.decides(&question, "accept"));
    assert_eq!(editor.reads_end(), "end_turn");
    person.hears("session.completed");
    let (code, said, log) = editor.ends();
    assert_eq!(code, Some(0));
    assert!(said.contains("The AAEP hub answers again."), "{said}");
    assert_eq!(outcomes(&log), [json!({ "outcome": "selected", "optionId": "once" })]);
}

#[test]
fn bytes_that_nobody_understands_pass_unchanged_in_both_directions() {
    let hub = Hub::start();
    let mut editor = Editor::start(Some(&hub), &[]);
    let endless = [b"{".to_vec(), vec![b'x'; 9 * 1024 * 1024], b"\n".to_vec()].concat();
    let strange: [&[u8]; 5] =
        [b"not JSON at all\n", b"\n", b"{ \"half\": \r\n", b"\xff\xfe\x00\n", &endless];
    for line in strange {
        editor.writes_bytes(line);
        assert!(editor.reads_bytes() == line, "{} bytes", line.len());
    }
    let odd = b"  {\"id\" :0.0,  \"result\":{}, \"id\": 99}\n".as_slice();
    editor.writes_bytes(odd);
    editor.writes_bytes(b"{\"jsonrpc\":\"2.0\",\"method\":\"cut in h");
    let (code, said, log) = editor.ends();
    assert_eq!(code, Some(0));
    assert_eq!(
        said.trim(),
        "A message is too long to be told. It is passed on as it is.\n\
        A message is too long to be told. It is passed on as it is."
    );
    let end = [odd, b"{\"jsonrpc\":\"2.0\",\"method\":\"cut in h"].concat();
    assert!(log == [strange.concat(), end].concat());
}

#[test]
fn an_agent_that_does_not_exist_is_named() {
    let output = aaep(&["acp", "--", "/nowhere/agent"]).output().expect("aaep runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cannot start the agent /nowhere/agent"), "{said}");
    assert!(output.stdout.is_empty());
}
