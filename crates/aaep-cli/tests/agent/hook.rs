//! `aaep hook` and `aaep agents`, as agents and a person use them, with a real hub.

#[cfg(unix)]
#[path = "hook/doctor.rs"]
mod doctor;
#[cfg(unix)]
#[path = "hook/others.rs"]
mod others;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Hub, Person, aaep, err, out};

/// A Claude Code that runs its hooks in a home folder of its own.
struct ClaudeCode<'h> {
    hub: Option<&'h Hub>,
    home: TempDir,
    /// Whether it was started with `-p`.
    is_without_window: bool,
}

impl<'h> ClaudeCode<'h> {
    fn new(hub: Option<&'h Hub>) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        ClaudeCode { hub, home, is_without_window: false }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.hub.map_or_else(|| aaep(arguments), |hub| hub.aaep(arguments));
        for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, self.home.path());
        }
        command.env_remove("CLAUDE_CODE_ENTRYPOINT");
        command.env_remove("CLAUDE_CONFIG_DIR").env("CLAUDE_PROJECT_DIR", "/home/ada/work/shop");
        command
    }

    /// Starts a hook with what Claude Code writes to its standard input.
    fn start(&self, event: &str, fields: &Value) -> Child {
        let mut command = self.command(&["hook", "claude-code"]);
        if self.is_without_window {
            command.env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");
        }
        if self.hub.is_none() {
            // Nothing listens there.
            command.env("AAEP_HUB", "http://127.0.0.1:9");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("aaep runs");
        let mut payload = json!({
            "session_id": "5b3c", "prompt_id": "p-1", "cwd": "/home/ada/work/shop", "hook_event_name": event,
            "permission_mode": "auto",
        });
        for (key, value) in fields.as_object().expect("fields") {
            payload[key] = value.clone();
        }
        let mut input = child.stdin.take().expect("its input");
        input.write_all(payload.to_string().as_bytes()).expect("it reads");
        child
    }

    /// Runs a hook to its end, and gives what it printed.
    fn hook(&self, event: &str, fields: &Value) -> Value {
        printed(self.start(event, fields))
    }

    /// Begins a turn and asks to remove the build. Gives the waiting hook and the question.
    fn asks(&self, person: &Person) -> (Child, Value) {
        self.hook("UserPromptSubmit", &json!({ "prompt": "Tidy up." }));
        self.hook("PreToolUse", &remove_build());
        let asked = self.start("PermissionRequest", &remove_build());
        (asked, person.hears("awaiting.confirmation"))
    }
}

fn printed(child: Child) -> Value {
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("JSON") }
}

fn remove_build() -> Value {
    json!({ "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": { "command": "rm -rf build" } })
}

fn decision(printed: &Value) -> &Value {
    &printed["hookSpecificOutput"]["permissionDecision"]
}

#[test]
fn a_risky_tool_is_asked_and_runs_only_when_the_person_accepts() {
    let hub = Hub::start();
    let person = hub.person();
    let claude = ClaudeCode::new(Some(&hub));
    claude.hook("UserPromptSubmit", &json!({ "prompt": "Tidy up." }));
    let started = person.hears("session.started");
    assert_eq!(started["summary_normal"], "Claude Code begins: Tidy up.");
    assert_eq!(started["extensions"]["agentvoice"]["project"], "work/shop");
    assert_eq!(decision(&claude.hook("PreToolUse", &remove_build())), "ask");
    let asked = claude.start("PermissionRequest", &remove_build());
    let question = person.hears("awaiting.confirmation");
    assert_eq!(question["action"], "Run the command: rm -rf build");
    assert_eq!(
        (&question["risk_level"], &question["irreversible"]),
        (&"high".into(), &true.into())
    );
    assert!(person.decides(&question, "accept"));
    let answer = printed(asked);
    assert_eq!(answer["hookSpecificOutput"]["decision"]["behavior"], "allow");
    assert_eq!(person.hears("tool.invoked")["summary_normal"], "Runs: rm -rf build");
    let mut done = remove_build();
    done["tool_response"] = json!({ "stdout": "" });
    claude.hook("PostToolUse", &done);
    assert_eq!(person.hears("tool.completed")["status"], "success");
    claude.hook("Stop", &json!({ "last_assistant_message": "It is gone." }));
    assert_eq!(person.hears("output.streaming")["chunk"], "It is gone.");
    let end = person.hears("session.completed");
    assert!(end["summary_normal"].as_str().expect("words").ends_with("1 tool used."), "{end}");
}

#[test]
fn without_a_window_the_hook_before_the_tool_asks() {
    for (word, told) in [("accept", "allow"), ("reject", "deny")] {
        let hub = Hub::start();
        let person = hub.person();
        let mut claude = ClaudeCode::new(Some(&hub));
        claude.is_without_window = true;
        claude.hook("UserPromptSubmit", &json!({ "prompt": "Tidy up." }));
        let asked = claude.start("PreToolUse", &remove_build());
        let question = person.hears("awaiting.confirmation");
        assert!(person.decides(&question, word));
        assert_eq!(decision(&printed(asked)), told);
    }
    let mut alone = ClaudeCode::new(None);
    alone.is_without_window = true;
    alone.hook("UserPromptSubmit", &json!({ "prompt": "Tidy up." }));
    assert_eq!(decision(&alone.hook("PreToolUse", &remove_build())), "deny", "there is no hub");
}

#[test]
fn a_no_reaches_the_agent_as_a_no() {
    let hub = Hub::start();
    let person = hub.person();
    let claude = ClaudeCode::new(Some(&hub));
    let (asked, question) = claude.asks(&person);
    assert!(person.decides(&question, "reject"));
    assert_eq!(printed(asked)["hookSpecificOutput"]["decision"]["behavior"], "deny");
}

#[test]
fn an_answer_in_the_agents_own_window_withdraws_the_question() {
    let hub = Hub::start();
    let person = hub.person();
    let claude = ClaudeCode::new(Some(&hub));
    let (asked, question) = claude.asks(&person);
    claude.hook("PostToolUse", &remove_build());
    assert_eq!(person.hears_how_it_was_settled(), ("withdrawn".into(), "withdrawn".into()));
    assert_eq!(printed(asked), Value::Null);
    assert!(!person.decides(&question, "accept"));
    let invoked = person.hears("tool.invoked");
    assert_eq!(invoked["summary_normal"], "Allowed in its own window. Runs: rm -rf build");
}

#[test]
fn nobody_there_decides_nothing() {
    let hub = Hub::start();
    let claude = ClaudeCode::new(Some(&hub));
    claude.hook("UserPromptSubmit", &json!({ "prompt": "Tidy up." }));
    assert_eq!(decision(&claude.hook("PreToolUse", &remove_build())), "ask");
    assert_eq!(claude.hook("PermissionRequest", &remove_build()), Value::Null);
}

#[test]
fn without_a_hub_nothing_risky_runs_and_the_rest_goes_on() {
    let claude = ClaudeCode::new(None);
    assert_eq!(claude.hook("UserPromptSubmit", &json!({ "prompt": "Tidy up." })), Value::Null);
    let denied = claude.hook("PreToolUse", &remove_build());
    assert_eq!(decision(&denied), "deny", "{denied}");
    let list =
        json!({ "tool_name": "Bash", "tool_use_id": "toolu_2", "tool_input": { "command": "ls" } });
    assert_eq!(claude.hook("PreToolUse", &list), Value::Null);
    // The hook does not decide, so the agent shows its own dialog.
    assert_eq!(claude.hook("PermissionRequest", &remove_build()), Value::Null);
}

#[test]
fn what_is_not_a_hook_call_fails_and_prints_nothing_for_the_agent() {
    let claude = ClaudeCode::new(None);
    let mut command = claude.command(&["hook", "claude-code"]);
    let output = command.stdin(Stdio::null()).output().expect("aaep runs");
    assert_eq!(output.status.code(), Some(2), "exit code 2 keeps a tool from running");
    assert!(output.stdout.is_empty());
    // A risk table that cannot be read never lets anything pass.
    let folder = claude.home.path().join("aaep");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("risk.toml"), "command = 1").expect("written");
    let denied = claude
        .hook("PreToolUse", &json!({ "tool_name": "Bash", "tool_input": { "command": "ls" } }));
    assert_eq!(decision(&denied), "deny", "{denied}");
}

fn run(claude: &ClaudeCode, arguments: &[&str]) -> Output {
    claude.command(arguments).output().expect("aaep runs")
}

#[test]
fn an_agent_is_set_up_and_taken_away_and_its_settings_are_as_before() {
    let hub = Hub::start();
    let claude = ClaudeCode::new(Some(&hub));
    let folder = claude.home.path().join(".claude");
    let path = folder.join("settings.json");
    let read = |path: &Path| fs::read_to_string(path).expect("settings");
    assert!(out(&run(&claude, &["agents"])).contains("Not found here: Claude Code"));
    fs::create_dir(&folder).expect("a folder");
    let before = "{\n    \"model\":  \"opus\"\n}\n";
    fs::write(&path, before).expect("written");
    assert!(out(&run(&claude, &["agents"])).contains("aaep agents add claude-code"));
    let trial = run(&claude, &["agents", "add", "claude-code", "--print"]);
    assert!(out(&trial).contains("PreToolUse") && read(&path) == before);
    for policy in ["risky", "changes"] {
        let added = run(&claude, &["agents", "add", "claude-code", "--policy", policy]);
        assert_eq!(added.status.code(), Some(0), "{}", err(&added));
        let settings: Value = serde_json::from_str(&read(&path)).expect("JSON");
        let hooks = settings["hooks"]["PreToolUse"].as_array().expect("hooks");
        assert_eq!(hooks.len(), 1);
        let command = hooks[0]["hooks"][0]["command"].as_str().expect("a command");
        assert!(command.ends_with(&format!("hook claude-code --policy {policy}")), "{command}");
        assert_eq!(hooks[0]["hooks"][0]["onFailure"], "block");
    }
    assert!(out(&run(&claude, &["agents"])).contains("asks you before everything"));
    let removed = run(&claude, &["agents", "remove", "claude-code"]);
    assert_eq!(removed.status.code(), Some(0), "{}", err(&removed));
    assert_eq!(read(&path), before);
    fs::write(&path, "{ // mine\n}").expect("written");
    let refused = run(&claude, &["agents", "add", "claude-code"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("was left as it is"), "{}", err(&refused));
    assert_eq!(read(&path), "{ // mine\n}");
}
