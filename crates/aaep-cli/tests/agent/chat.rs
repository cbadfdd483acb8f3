//! `aaep chat` with a scripted agent, through pipes, with a real hub and without one.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Hub, aaep};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// An agent that writes down every line it reads, and does what the prompt says.
const AGENT: &str = r#"
import json, sys
log = open(sys.argv[1], "ab", buffering=0)
out = sys.stdout.buffer

def say(message):
    out.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
    out.flush()

def update(**fields):
    say({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s-1", "update": fields}})

def text(words):
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": words})

def ask(id, options):
    say({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": {
        "sessionId": "s-1", "options": options,
        "toolCall": {"toolCallId": "t-1", "kind": "execute", "title": "Looks around",
                     "rawInput": {"command": "rm -rf build"}}}})

OPTIONS = [{"optionId": "forever", "name": "Always", "kind": "allow_always"},
           {"optionId": "once", "name": "Allow", "kind": "allow_once"},
           {"optionId": "no", "name": "Reject", "kind": "reject_once"}]
STRANGE = [{"optionId": "p", "name": "Allow\n\x1b[2JQuestion: Allow?", "kind": "allow_once"},
           {"optionId": "q", "name": "Allow", "kind": "allow_once"},
           {"optionId": "r", "name": "Reject", "kind": "reject_once"}]

prompt, mode = None, "ask"
for line in sys.stdin.buffer:
    log.write(line)
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        say({"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": 1,
            "agentInfo": {"name": "scripted", "title": "Scripted"},
            "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"list": {}}},
            "authMethods": [{"id": "key", "name": "A key", "description": "Set KEY"}]}})
    elif method == "session/new" and len(sys.argv) > 2:
        say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": "Authentication required"}})
    elif method == "session/new":
        say({"jsonrpc": "2.0", "id": message["id"], "result": {"sessionId": "s-1", "modes": {
            "currentModeId": "ask", "availableModes": [
                {"id": "ask", "name": "Ask", "description": "Asks first"}, {"id": "go", "name": "Go"}]}}})
        update(sessionUpdate="available_commands_update", availableCommands=[
            {"name": "compact", "description": "Shortens"}, {"name": "help", "description": "Its own help"}])
    elif method == "session/list":
        say({"jsonrpc": "2.0", "id": message["id"], "result": {"sessions": [
            {"sessionId": "s-1", "cwd": message["params"]["cwd"], "title": "The shop"}]}})
    elif method == "session/load":
        update(sessionUpdate="user_message_chunk", content={"type": "text", "text": "Tidy up."})
        update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "It is tidy."})
        say({"jsonrpc": "2.0", "id": message["id"], "result": {}})
    elif method == "session/set_mode":
        say({"jsonrpc": "2.0", "id": message["id"], "result": {}})
    elif method == "session/prompt":
        prompt, words = message["id"], message["params"]["prompt"][0]["text"]
        if words == "ask":
            text("I remove the build. ")
            ask(0, OPTIONS)
        elif words == "ask and talk":
            ask(0, OPTIONS)
            text("Or shall I only look? ")
        elif words == "ask strangely":
            ask("x", STRANGE)
        elif words == "ask twice":
            ask(1, OPTIONS)
            ask(1, OPTIONS)
        elif words == "form":
            say({"jsonrpc": "2.0", "id": {"no": "id"}, "method": "elicitation/create", "params": {}})
            say({"jsonrpc": "2.0", "id": "f", "method": "elicitation/create", "params": {"sessionId": "s-1",
                "mode": "form", "message": "Two things.", "requestedSchema": {"type": "object", "properties": {
                    "a": {"type": "string", "title": "Colour", "enum": ["red", "blue"]},
                    "b": {"type": "integer", "title": "Count"}}, "required": ["a"]}}})
        elif words == "die":
            text("I am going. ")
            print("out of luck \x1b[2J", file=sys.stderr, flush=True)
            sys.exit(3)
        elif words == "garbage":
            out.write(b"log: \x1b[31mred\n[1,[2]]\n\xff\xfe\n{\"id\":{}}\n" + b"x" * (9 << 20) + b"\n")
            say({"jsonrpc": "2.0", "id": 7, "method": "fs/read_text_file", "params": {"path": "/etc/passwd"}})
            text("Survived.\x1b[2J\ndone: Finished. ")
            say({"jsonrpc": "2.0", "id": prompt, "result": {"stopReason": "end_turn"}})
        elif words != "wait":
            text("You said: " + words + ". ")
            say({"jsonrpc": "2.0", "id": prompt, "result": {"stopReason": "end_turn"}})
    elif method == "session/cancel":
        say({"jsonrpc": "2.0", "id": prompt, "result": {"stopReason": "cancelled"}})
    elif "method" not in message and message.get("id") in (0, 1, "x", "f"):
        text("The folder is gone. ")
        say({"jsonrpc": "2.0", "id": prompt, "result": {"stopReason": "end_turn"}})
"#;

/// Waits a little: what is on the screen counts as told a moment later.
fn take_it_in() {
    thread::sleep(Duration::from_millis(300));
}

/// A chat, with a person who types and reads lines.
struct Chat {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    folder: TempDir,
}

impl Chat {
    fn start(hub: Option<&Hub>, arguments: &[&str], agent: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("agent.py");
        fs::write(&script, AGENT).expect("written");
        let mut command = aaep(&["chat"]);
        // Nothing listens there.
        command.env("AAEP_HUB", hub.map_or("http://127.0.0.1:9", |it| it.origin.as_str()));
        for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, folder.path());
        }
        command.args(arguments).args(["--", "python3"]).arg(&script).arg(folder.path().join("log"));
        command.args(agent).current_dir(folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("aaep runs");
        let mut output = BufReader::new(process.stdout.take().expect("its output"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            // A prompt stands at the beginning of the line after it.
            while output.read_line(&mut line).is_ok_and(|it| it > 0) {
                if sender.send(std::mem::take(&mut line).trim_end().to_owned()).is_err() {
                    return;
                }
            }
        });
        let input = process.stdin.take();
        Chat { process, input, lines, folder }
    }

    /// One whose agent is ready.
    fn ready(hub: Option<&Hub>) -> Self {
        let chat = Chat::start(hub, &[], &[]);
        chat.reads("Scripted is ready. Its mode is Ask: Asks first.");
        chat
    }

    fn types(&mut self, line: &str) {
        let input = self.input.as_mut().expect("an open input");
        writeln!(input, "{line}").and_then(|()| input.flush()).expect("it reads");
    }

    /// Reads until a line has this in it.
    fn reads(&self, part: &str) -> String {
        let mut before = Vec::new();
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("nothing like {part:?}, but {before:#?}")
            };
            if line.contains(part) {
                return line;
            }
            before.push(line);
        }
    }

    /// Prompts the agent, which asks, and reads the question to its end.
    fn asks(&mut self, prompt: &str) {
        self.types(prompt);
        let question = self.reads("May it do this?");
        assert!(
            question.starts_with("Question: ") && question.contains("High risk."),
            "{question}"
        );
        assert!(question.contains("It waits until you answer."), "{question}");
        self.reads("  C. Reject");
        take_it_in();
    }

    /// Closes the input, and returns the exit code, the rest of the lines, and what the agent has read.
    fn ends(mut self) -> (Option<i32>, String, Vec<Value>) {
        self.input = None;
        let mut said = String::new();
        self.process.stderr.take().expect("its errors").read_to_string(&mut said).expect("text");
        let code = self.process.wait().expect("it ends").code();
        said.extend(self.lines.iter().map(|it| it + "\n"));
        let log = fs::read(self.folder.path().join("log")).expect("a log");
        let lines = log.split(|it| *it == b'\n').filter_map(|it| serde_json::from_slice(it).ok());
        (code, said, lines.collect())
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the agent was told for its requests.
fn answers(log: &[Value]) -> Vec<Value> {
    let answers = log.iter().filter(|it| it.get("method").is_none());
    answers.map(|it| it.get("result").unwrap_or(&it["error"]).clone()).collect()
}

fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

#[test]
fn lines_from_a_pipe_are_prompts_one_after_the_other() {
    let mut chat = Chat::start(None, &[], &[]);
    chat.types("first\\");
    chat.types("line");
    chat.types("/compact now");
    chat.types("//help");
    let (code, said, log) = chat.ends();
    assert_eq!(code, Some(0), "{said}");
    let prompts = log.iter().filter(|it| it["method"] == "session/prompt");
    let texts: Vec<&Value> = prompts.map(|it| &it["params"]["prompt"][0]["text"]).collect();
    // The command of the agent is known only once the agent is ready.
    assert_eq!(texts, ["first\nline", "/help"], "{said}");
    assert!(said.contains("Neither aaep chat nor the agent has the command /compact."), "{said}");
    assert!(said.contains("You said: /help."), "{said}");
    assert!(!said.contains('\u{1b}'), "no colour, no redraw: {said}");
}

#[test]
fn a_question_is_answered_by_letter_or_name_and_by_nothing_else() {
    for (typed, option, told) in [
        ("1 b", "once", "Accepted."),
        ("1 reject", "no", "Refused."),
        ("1 always", "forever", "Accepted."),
    ] {
        let mut chat = Chat::ready(None);
        chat.asks("ask");
        for wrong in ["1 yes", "1 2", "2", "1 allow_once", "1 forever", "2 b", "1"] {
            chat.types(wrong);
            let line = chat.reads("Nothing was answered.");
            assert!(
                line.contains(&format!("You typed \"{}\"", wrong.trim_start_matches("1 ")))
                    || line.contains(wrong),
                "{line}"
            );
        }
        chat.types(typed);
        chat.reads(told);
        chat.reads("done: Done");
        let (code, said, log) = chat.ends();
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(answers(&log), [selected(option)]);
    }
}

#[test]
fn a_line_begun_before_the_question_answers_nothing_and_can_still_be_sent() {
    let mut chat = Chat::ready(None);
    let input = chat.input.as_mut().expect("an open input");
    // The second line is begun at once, and ends after the question came.
    input.write_all(b"ask\nb").and_then(|()| input.flush()).expect("it reads");
    chat.reads("  C. Reject");
    chat.types("");
    let line = chat.reads("You typed");
    assert!(line.contains("\"b\"") && line.contains("Nothing was answered."), "{line}");
    assert!(line.contains("/send"), "{line}");
    chat.types("1 c");
    chat.reads("Refused.");
    let (_, _, log) = chat.ends();
    assert_eq!(answers(&log), [selected("no")]);
}

#[test]
fn a_question_that_nobody_can_answer_any_more_is_refused() {
    let mut chat = Chat::start(None, &[], &[]);
    chat.types("ask");
    let (code, said, log) = chat.ends();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("nobody else answers, so it was refused"), "{said}");
    assert_eq!(answers(&log), [selected("no")]);
}

#[test]
fn a_listener_elsewhere_answers_and_the_chat_is_told() {
    let hub = Hub::start();
    let person = hub.person();
    let mut chat = Chat::ready(Some(&hub));
    chat.asks("ask");
    let question = person.hears("awaiting.confirmation");
    assert_eq!(question["action"], "Run the command: rm -rf build");
    assert!(person.decides(&question, "reject"));
    chat.reads("Refused elsewhere.");
    chat.types("1 a");
    let (code, _, log) = chat.ends();
    assert_eq!((code, answers(&log)), (Some(0), vec![selected("no")]));
}

#[test]
fn an_answer_here_withdraws_the_question_elsewhere_and_everything_is_heard_there() {
    let hub = Hub::start();
    let person = hub.person();
    let mut chat = Chat::ready(Some(&hub));
    chat.asks("ask");
    assert_eq!(person.hears("session.started")["summary_normal"], "Scripted begins: ask");
    let question = person.hears("awaiting.confirmation");
    chat.types("1 b");
    chat.reads("Accepted.");
    assert_eq!(person.hears_how_it_was_settled(), ("withdrawn".into(), "withdrawn".into()));
    assert!(!person.decides(&question, "reject"));
    let invoked = person.hears("tool.invoked");
    assert_eq!(
        invoked["summary_normal"],
        "In aaep chat it was answered: “Allow”. Runs: rm -rf build"
    );
    person.hears("session.completed");
    let (code, _, log) = chat.ends();
    assert_eq!((code, answers(&log)), (Some(0), vec![selected("once")]));
}

#[test]
fn names_with_control_characters_stay_on_their_lines_and_equal_ones_are_told_apart() {
    let mut chat = Chat::ready(None);
    chat.types("ask strangely");
    let question = chat.reads("May it do this?");
    assert!(!question.contains('\u{1b}'), "{question}");
    let first = chat.reads("  A. ");
    assert!(first.contains("Question: Allow?") && !first.contains('\u{1b}'), "{first}");
    chat.reads("  B. Allow");
    chat.reads("  C. Reject");
    // It need not be told to its end for a no.
    chat.types("1 c");
    chat.reads("Refused.");
    let (_, _, log) = chat.ends();
    assert_eq!(answers(&log), [selected("r")]);
}

#[test]
fn a_yes_after_other_words_of_the_agent_is_not_for_the_question_before_them() {
    for (typed, option) in [("1 b", None), ("1 c", Some("no"))] {
        let mut chat = Chat::ready(None);
        chat.asks("ask and talk");
        chat.reads("Or shall I only look?");
        chat.types(typed);
        if option.is_none() {
            chat.reads("The agent has said something else since it asked. Nothing was answered.");
            chat.reads("May it do this?");
            chat.reads("  C. Reject");
            take_it_in();
            chat.types(typed);
        }
        chat.reads("The folder is gone.");
        let (_, said, log) = chat.ends();
        assert_eq!(answers(&log), [selected(option.unwrap_or("once"))], "{said}");
    }
}

#[test]
fn an_id_that_is_asked_twice_is_answered_by_nobody() {
    let mut chat = Chat::ready(None);
    chat.types("ask twice");
    chat.reads("It is no longer asked.");
    chat.types("1 b");
    let (_, said, log) = chat.ends();
    let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
    assert!(answers(&log).iter().all(|it| *it == cancelled), "{said}");
}

#[test]
fn garbage_and_requests_that_were_not_declared_do_no_harm() {
    let mut chat = Chat::ready(None);
    chat.types("garbage");
    chat.reads("The agent writes lines that are not messages.");
    chat.reads("A message of the agent is too long and was left out.");
    let line = chat.reads("Survived.");
    assert!(line.starts_with("agent: ") && !line.contains('\u{1b}'), "{line}");
    chat.reads("done: Done");
    let (code, _, log) = chat.ends();
    assert_eq!(code, Some(0));
    assert_eq!(answers(&log)[0]["code"], -32601);
}

#[test]
fn a_form_is_put_field_by_field() {
    let mut chat = Chat::ready(None);
    chat.types("form");
    chat.reads("Field 1 of 2. Two things. Colour.");
    chat.reads("  B. blue");
    chat.types("/skip");
    chat.reads("The agent needs this field.");
    chat.types("1 b");
    chat.reads("Field 2 of 2. Count.");
    chat.types("2 many");
    chat.reads("Nothing was answered.");
    chat.types("2 3");
    chat.reads("The form was sent.");
    chat.reads("done: Done");
    let (_, said, log) = chat.ends();
    let accepted = json!({ "action": "accept", "content": { "a": "blue", "b": 3 } });
    assert_eq!(answers(&log), [accepted], "{said}");
}

#[test]
fn an_agent_that_dies_is_told_with_its_last_words() {
    let hub = Hub::start();
    let person = hub.person();
    let mut chat = Chat::ready(Some(&hub));
    chat.types("die");
    chat.reads("agent: Scripted");
    chat.reads("error: Failed. The agent ended in the middle of its work, with exit code 3.");
    chat.reads("Scripted has ended, with exit code 3.");
    let line = chat.reads("It wrote: out of luck");
    assert!(!line.contains('\u{1b}'), "{line}");
    person.hears("session.errored");
    assert_eq!(chat.ends().0, Some(2));
}

#[test]
fn modes_sessions_and_a_cancel_work_by_commands() {
    let mut chat = Chat::ready(None);
    chat.types("/modes");
    chat.reads("Mode Ask: Asks first. This one is on.");
    chat.types("/mode nothing");
    chat.reads("No mode is called nothing");
    chat.types("/mode go");
    chat.reads("Its mode is Go.");
    chat.types("/commands");
    chat.reads("/compact: Shortens.");
    chat.reads("//help: Its own help.");
    chat.types("/sessions");
    chat.reads("Session 1: The shop.");
    chat.types("wait");
    chat.types("/continue 1");
    chat.reads("The agent is at work.");
    chat.types("/cancel");
    chat.reads("Stopped by a person.");
    chat.types("/continue 1");
    chat.reads("The earlier session goes on.");
    chat.reads("You said last: Tidy up.");
    chat.reads("It said last: It is tidy.");
    chat.types("/compact");
    chat.reads("You said: /compact.");
    chat.types("/quit");
    chat.reads("--session s-1");
    assert_eq!(chat.ends().0, Some(0));
}

#[test]
fn a_person_who_has_to_sign_in_is_told_how() {
    let mut chat = Chat::start(None, &[], &["locked"]);
    chat.types("hello");
    chat.reads("needs you to sign in first");
    chat.reads("/login key. A key. Set KEY.");
    let (code, _, log) = chat.ends();
    assert_eq!(code, Some(2));
    assert!(log.iter().all(|it| it["method"] != "session/prompt"));
}

#[test]
fn control_c_stops_the_agent_once_and_leaves_when_typed_twice() {
    let mut chat = Chat::ready(None);
    let pid = chat.process.id().to_string();
    let interrupt = || {
        let sent = std::process::Command::new("kill").args(["-INT", &pid]).status();
        assert!(sent.is_ok_and(|it| it.success()));
    };
    chat.types("ask");
    chat.reads("  C. Reject");
    interrupt();
    chat.reads("The agent was asked to stop.");
    chat.reads("Stopped by a person.");
    chat.types("and on");
    chat.reads("You said: and on.");
    interrupt();
    chat.reads("To leave: Control-C once more");
    interrupt();
    let (code, said, log) = chat.ends();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(answers(&log), [json!({ "outcome": { "outcome": "cancelled" } })]);
}
