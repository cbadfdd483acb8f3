//! `aaep follow` between a server that plays an agent and a real hub.

#[path = "follow/codex_daemon.rs"]
mod codex_daemon;
#[path = "follow/opencode_server.rs"]
mod opencode_server;

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Hub, Person, aaep};
use codex_daemon::{PlayedDaemon, WaitingDaemon};
use opencode_server::PlayedServer;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// `aaep follow`, in a home folder of its own.
struct FollowerProcess {
    process: Child,
}

fn in_home(mut command: Command, hub: &Hub, home: &Path) -> Command {
    for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
        command.env(name, home);
    }
    command.env_remove("CODEX_HOME").env("AAEP_HUB", &hub.origin);
    command
}

impl FollowerProcess {
    fn start(hub: &Hub, home: &Path, arguments: &[&str]) -> Self {
        let mut command = in_home(aaep(&["follow"]), hub, home);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        FollowerProcess { process: command.spawn().expect("aaep runs") }
    }

    /// Asks it to stop, and returns what it said.
    fn stops(mut self) -> String {
        let number = self.process.id().to_string();
        let told = Command::new("kill").args(["-TERM", &number]).status().expect("kill runs");
        assert!(told.success());
        let mut said = String::new();
        let mut errors = self.process.stderr.take().expect("its errors");
        errors.read_to_string(&mut said).expect("text");
        assert_eq!(self.process.wait().expect("it ends").code(), Some(0), "{said}");
        said
    }
}

impl Drop for FollowerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn asked(person: &Person) -> Value {
    let question = person.hears("awaiting.confirmation");
    assert_eq!(question["action"], "Run the command: rm -rf build");
    assert_eq!(question["risk_level"], "high");
    question
}

/// A hook of Codex, run to its end.
fn hook(hub: &Hub, home: &Path, payload: &Value) -> Output {
    let mut command = in_home(aaep(&["hook", "codex"]), hub, home);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("aaep runs");
    let mut input = child.stdin.take().expect("its input");
    input.write_all(payload.to_string().as_bytes()).expect("it reads");
    drop(input);
    child.wait_with_output().expect("it ends")
}

fn prompt_of(thread: &str) -> Value {
    json!({ "session_id": thread, "turn_id": "u-hook", "cwd": "/home/ada/work/shop",
        "hook_event_name": "UserPromptSubmit", "prompt": "Tidy up by hook." })
}

/// Codex in a turn that is heard.
struct CodexAtWork {
    hub: Hub,
    person: Person,
    home: TempDir,
    daemon: WaitingDaemon,
    follower: FollowerProcess,
    started: Value,
}

impl CodexAtWork {
    fn new() -> Self {
        let hub = Hub::start();
        let person = hub.person();
        let home = tempfile::tempdir().expect("a folder");
        let daemon = PlayedDaemon::start(home.path());
        let follower = FollowerProcess::start(&hub, home.path(), &["codex"]);
        daemon.resumes("t1");
        daemon.begins("t1");
        let started = person.hears("session.started");
        CodexAtWork { hub, person, home, daemon, follower, started }
    }
}

#[test]
fn a_no_of_the_listener_declines_and_a_yes_accepts_once() {
    for (decision, answer, status) in
        [("reject", "decline", "declined"), ("accept", "accept", "completed")]
    {
        let CodexAtWork { hub: _hub, person, home: _home, daemon, follower, started } =
            CodexAtWork::new();
        assert_eq!(started["summary_normal"], "Codex begins: Tidy up.");
        assert_eq!(started["extensions"]["agentvoice"]["project"], "work/shop");
        daemon.asks("t1");
        let question = asked(&person);
        assert!(person.decides(&question, decision));
        assert_eq!(daemon.answer(), json!({ "id": 0, "result": { "decision": answer } }));
        daemon.settles("t1", status);
        if decision == "accept" {
            person.hears("tool.invoked");
            person.hears("tool.completed");
        } else {
            let told = person.hears("progress.updated");
            assert_eq!(told["summary_normal"], "Was not run. Runs: rm -rf build");
        }
        person.hears("session.completed");
        assert!(daemon.has_no_more_answers(), "it is answered once");
        follower.stops();
    }
}

#[test]
fn an_answer_at_the_keyboard_withdraws_the_question() {
    let CodexAtWork { hub: _hub, person, home: _home, daemon, follower, .. } = CodexAtWork::new();
    daemon.asks("t1");
    let question = asked(&person);
    daemon.settles("t1", "completed");
    assert_eq!(person.hears_how_it_was_settled().0, "withdrawn");
    assert!(!person.decides(&question, "accept"), "it is no longer asked");
    let told = person.hears("tool.invoked");
    assert_eq!(
        told["summary_normal"],
        "In its own window it was answered: “yes, once”. Runs: rm -rf build"
    );
    person.hears("session.completed");
    assert!(daemon.has_no_more_answers());
    follower.stops();
}

#[test]
fn a_daemon_that_dies_while_it_asks_is_waited_for_and_followed_again() {
    let CodexAtWork { hub: _hub, person, home, daemon, follower, .. } = CodexAtWork::new();
    daemon.asks("t1");
    let question = asked(&person);
    daemon.dies();
    assert_eq!(person.hears_how_it_was_settled().0, "withdrawn");
    assert!(!person.decides(&question, "accept"));
    person.hears("session.errored");
    let daemon = PlayedDaemon::start(home.path());
    // What cannot be read does not end it.
    daemon.says_text("nonsense");
    daemon.says(&json!({ "method": "future/thing", "params": "x".repeat(2 << 20) }));
    daemon.resumes("t1");
    daemon.begins("t1");
    daemon.asks("t1");
    let question = asked(&person);
    assert!(person.decides(&question, "reject"));
    assert_eq!(daemon.answer()["result"]["decision"], "decline");
    let said = follower.stops();
    assert_eq!(said.matches("is heard now").count(), 2, "{said}");
    assert_eq!(said.matches("was lost").count(), 1, "{said}");
    assert_eq!(said.matches("is not reached").count(), 0, "it is told once: {said}");
}

#[test]
fn hooks_and_the_follower_never_tell_the_same_turn() {
    let CodexAtWork { hub, person, home, daemon: _daemon, follower, .. } = CodexAtWork::new();
    // The hook of the same thread says nothing, decides nothing, and asks nobody.
    let gate = json!({ "session_id": "t1", "turn_id": "u1", "cwd": "/home/ada/work/shop",
        "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "c1",
        "tool_input": { "command": "rm -rf build" } });
    for payload in [prompt_of("t1"), gate] {
        let done = hook(&hub, home.path(), &payload);
        assert_eq!(done.status.code(), Some(0));
        assert!(done.stdout.is_empty() && done.stderr.is_empty(), "{done:?}");
    }
    // A thread of codex exec is told by its hooks.
    hook(&hub, home.path(), &prompt_of("t-exec"));
    let told = person.hears("session.started");
    assert_eq!(told["summary_normal"], "Codex begins: Tidy up by hook.");
    // A second follower would tell everything twice.
    let mut second = in_home(aaep(&["follow", "codex"]), &hub, home.path());
    let second = second.output().expect("aaep runs");
    assert_eq!(second.status.code(), Some(2));
    // When nobody follows, the hooks tell the thread again, however the follower ended.
    drop(follower);
    hook(&hub, home.path(), &prompt_of("t1"));
    let told = person.hears_where("session.started", |it| it["session_id"] != told["session_id"]);
    assert_eq!(told["summary_normal"], "Codex begins: Tidy up by hook.");
}

#[test]
fn opencode_is_answered_once_or_not_at_all() {
    let hub = Hub::start();
    let person = hub.person();
    let home: TempDir = tempfile::tempdir().expect("a folder");
    // The first connection is never answered, as while OpenCode starts.
    let server = PlayedServer::start(1);
    let port = server.port.to_string();
    let follower = FollowerProcess::start(&hub, home.path(), &["opencode", "--port", &port]);
    server.is_heard();
    server.begins();
    assert_eq!(person.hears("session.started")["summary_normal"], "OpenCode begins: Tidy up.");
    for (number, decision, reply) in [(1, "reject", "reject"), (2, "accept", "once")] {
        server.asks(number);
        let question = asked(&person);
        assert!(person.decides(&question, decision));
        let (path, body) = server.post();
        assert_eq!(path, format!("/permission/per_{number}/reply"));
        assert_eq!(body, json!({ "reply": reply }));
        server.replied(number, reply);
    }
    server.asks(3);
    asked(&person);
    server.replied(3, "reject");
    let is_withdrawn =
        |event: &Value| event["extensions"]["agentvoice"]["resolution"]["outcome"] == "withdrawn";
    person.hears_where("state.changed", is_withdrawn);
    server.asks(4);
    asked(&person);
    server.dies();
    person.hears_where("state.changed", is_withdrawn);
    assert!(server.has_no_more_posts());
    let said = follower.stops();
    assert_eq!(said.matches("is not reached").count(), 1, "it is told once: {said}");
    assert!(said.contains("is heard now") && said.contains("was lost"), "{said}");
}
