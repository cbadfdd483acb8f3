//! The other agents: what `aaep agents add` wrote is run as the agent runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Hub, aaep, err, out};

/// An agent that was set up in a home folder of its own.
struct HookedAgent {
    id: &'static str,
    origin: String,
    home: TempDir,
}

/// What a hook left behind.
struct HookResult {
    code: i32,
    printed: Value,
    complaint: String,
}

impl HookedAgent {
    fn new(id: &'static str, hub: Option<&Hub>) -> Self {
        // Nothing listens at the address without a hub.
        let origin = hub.map_or_else(|| "http://127.0.0.1:9".to_owned(), |it| it.origin.clone());
        let agent = HookedAgent { id, origin, home: tempfile::tempdir().expect("a folder") };
        let added = agent.aaep(&["agents", "add", id]);
        assert_eq!(added.status.code(), Some(0), "{}", err(&added));
        agent
    }

    fn prepared(&self, mut command: Command) -> Command {
        for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, self.home.path());
        }
        for name in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "KIMI_CODE_HOME"] {
            command.env_remove(name);
        }
        command.env("AAEP_HUB", &self.origin);
        command
    }

    fn aaep(&self, arguments: &[&str]) -> Output {
        self.prepared(aaep(arguments)).output().expect("aaep runs")
    }

    fn settings(&self) -> PathBuf {
        let home = self.home.path();
        match self.id {
            "codex" => home.join(".codex/hooks.json"),
            "copilot-cli" => home.join(".copilot/settings.json"),
            "gemini-cli" => home.join(".gemini/settings.json"),
            "qwen-code" => home.join(".qwen/settings.json"),
            "kimi-code" => home.join(".kimi-code/config.toml"),
            "cline" => home.join(".cline/hooks"),
            other => panic!("{other}"),
        }
    }

    /// The command of our hook for an event, from the agent's own settings.
    fn written(&self, event: &str) -> String {
        let text = || fs::read_to_string(self.settings()).expect("settings");
        let json = || serde_json::from_str::<Value>(&text()).expect("JSON");
        let command = match self.id {
            "copilot-cli" => json()["hooks"][event][0]["bash"].clone(),
            "kimi-code" => {
                let settings: toml::Table = text().parse().expect("TOML");
                let hooks = settings["hooks"].as_array().expect("hooks");
                let hook = hooks.iter().find(|it| it["event"].as_str() == Some(event));
                hook.expect("the event")["command"].as_str().expect("a command").into()
            }
            "cline" => self.settings().join(event).to_str().expect("text").into(),
            _ => json()["hooks"][event][0]["hooks"][0]["command"].clone(),
        };
        command.as_str().expect("a command").to_owned()
    }

    /// Starts a hook, as the agent does.
    fn start(&self, event: &str, payload: &Value) -> Child {
        self.start_command(&self.written(event), payload)
    }

    fn start_command(&self, command: &str, payload: &Value) -> Child {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]);
        let mut shell = self.prepared(shell);
        let file = self.home.path().join("payload.json");
        fs::write(&file, payload.to_string()).expect("written");
        shell.stdin(fs::File::open(&file).expect("the payload"));
        shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell")
    }

    fn run(&self, event: &str, payload: &Value) -> HookResult {
        result_of(self.start(event, payload))
    }
}

fn result_of(child: Child) -> HookResult {
    let output = child.wait_with_output().expect("it ends");
    let text = out(&output);
    let printed = if text.trim().is_empty() {
        Value::Null
    } else {
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("it prints only JSON: {text}"))
    };
    HookResult { code: output.status.code().expect("a code"), printed, complaint: err(&output) }
}

/// The prompt, and the tool before it runs, in the agent's own shape.
fn turn(id: &str) -> [(&'static str, Value); 2] {
    const FOLDER: &str = "/home/ada/work/shop";
    let command = json!({ "command": "rm -rf build" });
    match id {
        "codex" | "qwen-code" | "kimi-code" => {
            let tool = if id == "qwen-code" { "run_shell_command" } else { "Bash" };
            let base = json!({ "session_id": "s", "turn_id": "t", "prompt_id": "t", "cwd": FOLDER,
                "tool_use_id": "c", "tool_call_id": "c", "tool_name": tool, "tool_input": command,
                "prompt": "Tidy up." });
            ["UserPromptSubmit", "PreToolUse"].map(|event| {
                let mut payload = base.clone();
                payload["hook_event_name"] = event.into();
                (event, payload)
            })
        }
        "gemini-cli" => {
            let base = json!({ "session_id": "s", "cwd": FOLDER, "prompt": "Tidy up.",
                "tool_name": "run_shell_command", "tool_input": command });
            ["BeforeAgent", "BeforeTool"].map(|event| {
                let mut payload = base.clone();
                payload["hook_event_name"] = event.into();
                (event, payload)
            })
        }
        "copilot-cli" => {
            let base = json!({ "sessionId": "s", "cwd": FOLDER, "prompt": "Tidy up.",
                "toolName": "bash", "toolArgs": command });
            ["userPromptSubmitted", "preToolUse"].map(|event| (event, base.clone()))
        }
        "cline" => {
            let call = json!({ "id": "c", "name": "run_commands", "input": { "commands": ["rm -rf build"] } });
            let base = json!({ "taskId": "s", "workspaceRoots": [FOLDER], "tool_call": call });
            [("TaskStart", "agent_start"), ("PreToolUse", "tool_call")].map(|(event, name)| {
                let mut payload = base.clone();
                payload["hookName"] = name.into();
                (event, payload)
            })
        }
        other => panic!("{other}"),
    }
}

/// Whether the agent does not run the tool.
fn is_refused(id: &str, result: &HookResult) -> bool {
    let print = &result.printed;
    match id {
        "codex" => print["hookSpecificOutput"]["permissionDecision"] == "deny",
        "gemini-cli" => print["decision"] == "deny",
        "copilot-cli" => print["permissionDecision"] == "deny",
        "cline" => print["cancel"] == true,
        _ => result.code == 2 && print.is_null(),
    }
}

const AGENTS: [&str; 6] = ["codex", "gemini-cli", "qwen-code", "copilot-cli", "kimi-code", "cline"];

#[test]
fn a_person_says_no_and_then_yes_to_each_agent() {
    let hub = Hub::start();
    let person = hub.person();
    for id in AGENTS {
        let agent = HookedAgent::new(id, Some(&hub));
        let [prompt, before] = turn(id);
        assert_eq!(agent.run(prompt.0, &prompt.1).code, 0);
        let started = person.hears("session.started");
        assert_eq!(started["extensions"]["agentvoice"]["project"], "work/shop", "{id}");
        for decision in ["reject", "accept"] {
            let asked = agent.start(before.0, &before.1);
            let question = person.hears("awaiting.confirmation");
            assert_eq!(question["action"], "Run the command: rm -rf build", "{id}");
            assert!(person.decides(&question, decision));
            let result = result_of(asked);
            assert_eq!(is_refused(id, &result), decision == "reject", "{id}: {}", result.complaint);
        }
    }
}

#[test]
fn a_yes_for_codex_answers_its_own_question_too() {
    let hub = Hub::start();
    let person = hub.person();
    let agent = HookedAgent::new("codex", Some(&hub));
    let [prompt, before] = turn("codex");
    agent.run(prompt.0, &prompt.1);
    let asked = agent.start(before.0, &before.1);
    assert!(person.decides(&person.hears("awaiting.confirmation"), "accept"));
    assert_eq!(result_of(asked).printed, Value::Null);
    let mut permission = before.1.clone();
    permission["hook_event_name"] = "PermissionRequest".into();
    permission["tool_input"]["description"] = "May I?".into();
    let answer = agent.run("PermissionRequest", &permission).printed;
    assert_eq!(answer["hookSpecificOutput"]["decision"]["behavior"], "allow", "{answer}");
    // Rules of its own could still refuse it, so that it ran is told when it did.
    let mut ended = before.1;
    ended["hook_event_name"] = "PostToolUse".into();
    ended["tool_response"] = "".into();
    agent.run("PostToolUse", &ended);
    let invoked = person.hears("tool.invoked");
    assert_eq!(invoked["summary_normal"], "Runs: rm -rf build");
    assert_eq!(invoked["irreversible"], true);
    assert_eq!(person.hears("tool.completed")["summary_normal"], "Ended. It printed nothing.");
}

#[test]
fn without_a_hub_or_a_listener_or_the_program_nothing_risky_runs() {
    let hub = Hub::start();
    for id in AGENTS {
        let [_, before] = turn(id);
        let alone = HookedAgent::new(id, Some(&hub));
        assert!(is_refused(id, &alone.run(before.0, &before.1)), "{id}: nobody listens");
        let agent = HookedAgent::new(id, None);
        assert!(is_refused(id, &agent.run(before.0, &before.1)), "{id}: no hub");
        // What is not a payload, as one of them: the exit code or the words of the program say no.
        let cut = agent.run(before.0, &json!("cut"));
        assert!(cut.code == 2 || is_refused(id, &cut), "{id}: {}", cut.complaint);
        let missing = agent.written(before.0);
        let missing = match id {
            "cline" => fs::read_to_string(missing).expect("a program"),
            _ => missing,
        };
        let missing = missing.replace(env!("CARGO_BIN_EXE_aaep"), "/nowhere/aaep");
        let missing = result_of(agent.start_command(&missing, &before.1));
        assert!(missing.code == 2 || is_refused(id, &missing), "{id}: {}", missing.complaint);
        // Only the tool is kept back: the turn begins.
        let [prompt, _] = turn(id);
        assert_eq!(agent.run(prompt.0, &prompt.1).code, 0, "{id}");
    }
}

fn list(agent: &HookedAgent) -> String {
    out(&agent.aaep(&["agents"]))
}

#[test]
fn each_agent_is_set_up_and_taken_away_and_its_settings_are_as_before() {
    for id in AGENTS.into_iter().filter(|it| *it != "cline") {
        let agent = HookedAgent::new(id, None);
        let path = agent.settings();
        assert!(list(&agent).contains("is set up"), "{id}");
        assert_eq!(agent.aaep(&["agents", "remove", id]).status.code(), Some(0));
        assert!(!path.exists(), "{id}: there was none before");
        let before = match id {
            "kimi-code" => "# mine\n[[hooks]]\nevent = \"Stop\"   # my bell\ncommand = \"bell\"\n",
            "codex" => "{ \"hooks\":  { \"Stop\": [ { \"hooks\": [] } ] } }",
            _ => "{ // mine\n  \"hooks\":  { \"Stop\": [ ] } }",
        };
        fs::write(&path, before).expect("written");
        for policy in ["changes", "tell"] {
            let added = agent.aaep(&["agents", "add", id, "--policy", policy]);
            assert_eq!(added.status.code(), Some(0), "{}", err(&added));
        }
        assert!(list(&agent).contains("asks only where"), "{id}: {}", list(&agent));
        let text = fs::read_to_string(&path).expect("settings");
        assert_eq!(text.contains("mine"), before.contains("mine"), "{text}");
        assert_eq!(agent.aaep(&["agents", "remove", id]).status.code(), Some(0));
        assert_eq!(fs::read_to_string(&path).expect("settings"), before, "{id}");
        fs::write(&path, "{ [").expect("written");
        let refused = agent.aaep(&["agents", "add", id]);
        assert!(err(&refused).contains("was left as it is"), "{id}: {}", err(&refused));
        assert_eq!(fs::read_to_string(&path).expect("settings"), "{ [");
        assert!(list(&agent).contains("Not found here"), "broken settings end no list");
    }
}

#[test]
fn the_programs_of_cline_come_and_go_and_those_of_others_stay() {
    let agent = HookedAgent::new("cline", None);
    assert!(list(&agent).contains("Cline is set up. It asks you before everything risky."));
    let folder = agent.settings();
    let theirs = folder.join("Notes");
    fs::write(&theirs, "mine").expect("written");
    assert_eq!(agent.aaep(&["agents", "remove", "cline"]).status.code(), Some(0));
    let names: Vec<_> = fs::read_dir(&folder).expect("a folder").flatten().collect();
    assert_eq!(names.len(), 1);
    let theirs = folder.join("PreToolUse");
    fs::write(&theirs, "#!/bin/sh\nbell\n").expect("written");
    let refused = agent.aaep(&["agents", "add", "cline"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("was left as it is"), "{}", err(&refused));
    assert!(!Path::new(&folder.join("TaskStart")).exists(), "all or none");
    assert_eq!(fs::read_to_string(&theirs).expect("theirs"), "#!/bin/sh\nbell\n");
}
