//! `bridges`: what it costs an agent that it is heard: a hook that reports, next to a program that does nothing, and a
//! turn through `aaep acp`, next to the same turn without it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::serve::{self, ServedHub};
use crate::table::{BenchReport, BenchTarget, NamedAmount, ReportBlock, TargetBound};
use crate::timing::ValueSpread;

#[derive(Args)]
pub(crate) struct BridgesBenchOptions {
    /// How often each hook is run.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    runs: u64,
    /// How many turns go through the proxy, and as many without it.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    turns: u64,
    /// Where files are written; it should be on a real disk.
    #[arg(long, value_name = "DIR", default_value = "target")]
    folder: PathBuf,
    /// Write the numbers to this file as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(options: &BridgesBenchOptions) -> ExitCode {
    match measure(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => fail(&why),
    }
}

#[expect(clippy::print_stderr, reason = "it is a program that says why it failed")]
fn fail(why: &str) -> ExitCode {
    eprintln!("The bridges could not be measured: {why}");
    ExitCode::from(2)
}

fn measure(options: &BridgesBenchOptions) -> Result<(), String> {
    let folder = TempDir::new_in(&options.folder)
        .map_err(|error| format!("{}: {error}", options.folder.display()))?;
    let served = ServedHub::start_in(folder.path(), 10, "")?;
    let hub = format!("http://{}", served.address());
    let mut report = BenchReport::default();
    report.say(format!(
        "Each hook is run {} times, and there are {} turns of each kind.",
        options.runs, options.turns
    ));
    let hooks = HookTimes::run(options.runs, &hub, folder.path())?;
    report.add(&hooks.block());
    let proxy = ProxyTimes::run(options.turns, &hub, folder.path())?;
    report.add(&proxy.block());
    report.judge(&[
        BenchTarget {
            what: "aaep hook, a report, from start to end, median",
            wanted: TargetBound::Below(15.0),
            unit: "milliseconds",
            found: Some(hooks.report.median),
        },
        BenchTarget {
            what: "what aaep acp adds to a turn, at p99",
            wanted: TargetBound::Below(2.0),
            unit: "milliseconds",
            found: Some(proxy.with.p99 - proxy.without.p99),
        },
    ]);
    served.stop()?;
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", report.to_json());
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn amounts(spread: ValueSpread) -> Vec<NamedAmount> {
    vec![
        NamedAmount::new("median", spread.median, "milliseconds"),
        NamedAmount::new("p99", spread.p99, "milliseconds"),
    ]
}

fn since(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1000.0
}

/// How long a hook takes, in milliseconds.
struct HookTimes {
    nothing: ValueSpread,
    report: ValueSpread,
    gate: ValueSpread,
}

impl HookTimes {
    fn run(runs: u64, hub: &str, folder: &Path) -> Result<Self, String> {
        let program = serve::program()?;
        let words = ["hook", "claude-code", "--hub", hub];
        let payload = |event: &str, fields: Value| {
            let mut payload = json!({
                "session_id": "bench", "prompt_id": "p-1", "cwd": "/work/shop", "permission_mode": "auto",
                "hook_event_name": event,
            });
            for (name, value) in fields.as_object().into_iter().flatten() {
                payload[name] = value.clone();
            }
            payload.to_string()
        };
        let list = |number: u64| {
            json!({
                "tool_name": "Bash", "tool_use_id": format!("toolu_{number}"), "tool_input": { "command": "ls" },
                "tool_response": { "stdout": "a\nb" },
            })
        };
        let begin = payload("UserPromptSubmit", json!({ "prompt": "List the files." }));
        time(&program, &words, &begin, folder)?;
        let mut times: [Vec<f64>; 3] = Default::default();
        for number in 0..runs {
            times[0].push(time(Path::new("/bin/true"), &[], "", folder)?);
            let before = payload("PreToolUse", list(number));
            times[1].push(time(&program, &words, &before, folder)?);
            let after = payload("PostToolUse", list(number));
            times[2].push(time(&program, &words, &after, folder)?);
        }
        let [nothing, gate, report] = times.map(ValueSpread::of);
        Ok(HookTimes { nothing, report, gate })
    }

    fn block(&self) -> ReportBlock {
        let mut block = ReportBlock::new("A hook from start to end, with a hub that runs");
        block.line("/bin/true", amounts(self.nothing));
        block.line("aaep hook, after a tool", amounts(self.report));
        block.line("aaep hook, before a tool that needs no question", amounts(self.gate));
        block.line(
            "more than /bin/true, median",
            vec![
                NamedAmount::new("after", self.report.median - self.nothing.median, "milliseconds"),
                NamedAmount::new("before", self.gate.median - self.nothing.median, "milliseconds"),
            ],
        );
        block
    }
}

/// Runs a program with this on its standard input. Returns how many milliseconds it took.
fn time(program: &Path, words: &[&str], input: &str, folder: &Path) -> Result<f64, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    let began = Instant::now();
    let mut child = Command::new(program)
        .args(words)
        .env_remove("AAEP_TOKEN")
        .env("XDG_STATE_HOME", folder)
        .env("XDG_CONFIG_HOME", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read has ended already.
        let _ = stdin.write_all(input.as_bytes());
    }
    let status = child.wait().map_err(failed)?;
    let took = since(began);
    if status.success() {
        Ok(took)
    } else {
        Err(format!("{} ended with {status}", program.display()))
    }
}

/// How long a turn takes without and with the proxy, in milliseconds.
struct ProxyTimes {
    without: ValueSpread,
    with: ValueSpread,
}

impl ProxyTimes {
    fn run(turns: u64, hub: &str, folder: &Path) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let own = own.to_string_lossy().into_owned();
        let mut without = AgentAtWork::start(&[&own, "agent"], folder)?;
        let program = serve::program()?.to_string_lossy().into_owned();
        let words = [&program, "acp", "--hub", hub, "--", &own, "agent"];
        let mut with = AgentAtWork::start(&words, folder)?;
        let mut times: [Vec<f64>; 2] = Default::default();
        for number in 0..turns + 10 {
            for (agent, times) in [&mut without, &mut with].into_iter().zip(&mut times) {
                let took = agent.turn(number)?;
                // The first turns warm up.
                if number >= 10 {
                    times.push(took);
                }
            }
        }
        let [without, with] = times.map(ValueSpread::of);
        Ok(ProxyTimes { without, with })
    }

    fn block(&self) -> ReportBlock {
        let mut block = ReportBlock::new("A turn of an agent: a prompt, two messages, an answer");
        block.line("the agent alone", amounts(self.without));
        block.line("through aaep acp", amounts(self.with));
        block.line(
            "what aaep acp adds",
            vec![
                NamedAmount::new("median", self.with.median - self.without.median, "milliseconds"),
                NamedAmount::new("p99", self.with.p99 - self.without.p99, "milliseconds"),
            ],
        );
        block
    }
}

/// An agent, and an editor that waits for it.
struct AgentAtWork {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl AgentAtWork {
    fn start(words: &[&str], folder: &Path) -> Result<Self, String> {
        let (program, arguments) = words.split_first().ok_or("no program")?;
        let mut child = Command::new(program)
            .args(arguments)
            .env_remove("AAEP_TOKEN")
            .env("XDG_STATE_HOME", folder)
            .env("XDG_CONFIG_HOME", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut agent = AgentAtWork { child, input, output };
        agent.request("a", "initialize", &json!({ "protocolVersion": 1 }))?;
        agent.request("b", "session/new", &json!({ "cwd": "/work/shop", "mcpServers": [] }))?;
        Ok(agent)
    }

    fn turn(&mut self, number: u64) -> Result<f64, String> {
        let prompt = json!([{ "type": "text", "text": "List the files." }]);
        let began = Instant::now();
        let parameters = json!({ "sessionId": "bench", "prompt": prompt });
        self.request(&number.to_string(), "session/prompt", &parameters)?;
        Ok(since(began))
    }

    /// Sends a request, and reads until its answer.
    fn request(&mut self, id: &str, method: &str, parameters: &Value) -> Result<(), String> {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters });
        self.input
            .write_all(format!("{message}\n").as_bytes())
            .map_err(|error| error.to_string())?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line).map_err(|error| error.to_string())? == 0 {
                return Err(format!("the agent ended at {method}"));
            }
            let answer: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
            if answer["id"] == id {
                return Ok(());
            }
        }
    }
}

impl Drop for AgentAtWork {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An agent that answers every request at once.
pub(crate) fn agent() -> ExitCode {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let result = match message["method"].as_str() {
            Some("initialize") => json!({ "protocolVersion": 1, "agentCapabilities": {} }),
            Some("session/new") => json!({ "sessionId": "bench" }),
            Some("session/prompt") => {
                for text in ["There are two files. ", "They are a and b."] {
                    let content = json!({ "type": "text", "text": text });
                    let update =
                        json!({ "sessionUpdate": "agent_message_chunk", "content": content });
                    let parameters = json!({ "sessionId": "bench", "update": update });
                    let told = json!({
                        "jsonrpc": "2.0", "method": "session/update", "params": parameters,
                    });
                    if writeln!(output, "{told}").is_err() {
                        return ExitCode::SUCCESS;
                    }
                }
                json!({ "stopReason": "end_turn" })
            }
            _ => continue,
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        if writeln!(output, "{answer}").and_then(|()| output.flush()).is_err() {
            return ExitCode::SUCCESS;
        }
    }
    ExitCode::SUCCESS
}
