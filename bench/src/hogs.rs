//! `hogs`: how long a person's answer takes on a quiet hub, and next to programs that take all they can.
//!
//! An agent asks, and a person with the person's key receives the ask and answers at once. The
//! first run has nothing else on the hub. The second has hogs: one token that publishes, asks,
//! subscribes and guesses as fast as it can and holds sockets of agents, and a local program that
//! holds connections of both versions of HTTP. The hub has its default limits. Every outcome must
//! match its answer.

mod hog;

use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::serve::{HttpConnection, ServedHub, program};
use crate::table::{BenchReport, BenchTarget, ReportBlock, TargetBound};
use crate::timing::{ValueSpread, timestamp};
use hog::HogBehavior;

/// The number of asks in a session of the asking agent.
const ASKS_A_SESSION: u64 = 500;

#[derive(Args)]
pub(crate) struct HogsBenchOptions {
    /// How long the person answers alone, and how long beside the hogs.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Where files are written; it should be on a real disk.
    #[arg(long, value_name = "DIR", default_value = "target")]
    folder: PathBuf,
    /// Only look whether every question is settled as it was answered, not how fast.
    #[arg(long)]
    smoke: bool,
}

pub(crate) fn run(options: &HogsBenchOptions) -> ExitCode {
    match compare(options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => fail(&why),
    }
}

#[expect(clippy::print_stderr, reason = "it is a program that says why it failed")]
fn fail(why: &str) -> ExitCode {
    eprintln!("The hogs could not be measured: {why}");
    ExitCode::from(2)
}

/// Raises the limit of open files as far as the system allows, because the hogs hold thousands of connections.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    // With a lower limit, the hogs hold fewer connections.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn compare(options: &HogsBenchOptions) -> Result<bool, String> {
    raise_open_files();
    let folder = TempDir::new_in(&options.folder).map_err(|error| error.to_string())?;
    let agent = token(folder.path(), "agent", &["publish"])?;
    let hog = token(folder.path(), "hog", &["publish", "listen", "reply"])?;
    let served = ServedHub::start_with_default_limits(folder.path())?;
    let key = std::fs::read_to_string(folder.path().join("person.key"));
    let key = bearer(key.map_err(|error| error.to_string())?.trim());
    let person = MeasuredPerson::start(&served, &key)?;
    let mut asking = MeasuredAgent::start(&served, agent)?;
    let time = Duration::from_secs(options.seconds);
    let quiet = asking.ask_for(time)?;
    let stop = Arc::new(AtomicBool::new(false));
    let hogs: Vec<_> = HogBehavior::EVERY.iter().map(|it| it.start(&served, &hog, &stop)).collect();
    // The hogs need a moment to take what they can.
    thread::sleep(time / 10);
    let beside = asking.ask_for(time)?;
    let memory = served.usage()?.resident_bytes / (1024.0 * 1024.0);
    stop.store(true, Ordering::SeqCst);
    let mut report = BenchReport::default();
    let mut block = ReportBlock::new("From asking to the outcome");
    block.line("alone", quiet.amounts());
    block.line("beside the hogs", beside.amounts());
    report.add(&block);
    for (kind, hog) in HogBehavior::EVERY.iter().zip(hogs) {
        let count = hog.join().map_err(|_| "a hog gave up")?;
        report.say(format!("{}: {count} times.", kind.name()));
    }
    report.say(format!("The hub has {memory:.0} MiB of memory."));
    drop(person);
    served.stop()?;
    let most = if options.smoke { f64::INFINITY } else { 2.0 };
    let slower = beside.p99 / quiet.p99;
    report.judge(&[BenchTarget {
        what: "99 of 100 answers beside the hogs, by those alone",
        wanted: TargetBound::AtMost(most),
        unit: "times",
        found: Some(slower),
    }]);
    Ok(slower <= most)
}

/// A header that shows a credential.
fn bearer(credential: &str) -> String {
    format!("authorization: Bearer {credential}\r\n")
}

/// Creates a token for the person that runs the hub, and returns the header with it.
fn token(folder: &Path, name: &str, scopes: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program()?);
    command.args(["tokens", "new", "--json", "--for", "me", "--name", name]);
    command.arg("--file").arg(folder.join("tokens.toml"));
    for scope in scopes {
        command.args(["--scope", scope]);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    let made: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    made["secret"].as_str().map(bearer).ok_or_else(|| "no token was made".to_owned())
}

/// The agent whose asks are timed.
struct MeasuredAgent {
    connection: HttpConnection,
    asked: u64,
    session: u64,
}

impl MeasuredAgent {
    fn start(served: &ServedHub, headers: String) -> Result<Self, String> {
        let connection = HttpConnection::open(served.address())?.with_headers(headers);
        let mut asking = MeasuredAgent { connection, asked: 0, session: 0 };
        asking.begin_session()?;
        Ok(asking)
    }

    fn begin_session(&mut self) -> Result<(), String> {
        for kind in ["completed", "started"] {
            if self.session > 0 || kind == "started" {
                self.session += u64::from(kind == "started");
                let event = json!({
                    "type": format!("aaep:agent.session.{kind}"),
                    "session_id": format!("sess_asking{}", self.session),
                    "producer": { "agent_id": "asking" }, "summary_normal": "A session.",
                });
                let text = event.to_string();
                self.connection.post("/aaep/v1/publish", "application/json", &text)?;
            }
        }
        Ok(())
    }

    /// Asks repeatedly for this long. Returns how long each ask took, in nanoseconds.
    fn ask_for(&mut self, time: Duration) -> Result<ValueSpread, String> {
        let (began, mut took) = (Instant::now(), Vec::new());
        while began.elapsed() < time {
            let asked = Instant::now();
            self.ask()?;
            took.push(asked.elapsed().as_secs_f64() * 1e9);
            // Pause between asks: agents do not ask all the time, and people do not answer all the time.
            thread::sleep(Duration::from_millis(5));
        }
        Ok(ValueSpread::of(took))
    }

    fn ask(&mut self) -> Result<(), String> {
        self.asked += 1;
        if self.asked.is_multiple_of(ASKS_A_SESSION) {
            self.begin_session()?;
        }
        let ask = json!({
            "type": "aaep:agent.awaiting.confirmation",
            "session_id": format!("sess_asking{}", self.session),
            "producer": { "agent_id": "asking" }, "action": "Delete the database.",
            "consequence": "All that is in it is gone.", "risk_level": "high",
            "irreversible": true, "default_decision": "reject", "timeout_seconds": 300,
            "summary_normal": "May I delete the database?",
        });
        let path = "/aaep/v1/asks?wait_seconds=60";
        let answer = self.connection.post(path, "application/json", &ask.to_string())?;
        let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        let is_right = answer["outcome"] == "accept" && answer["decided_by"] == "reply";
        if is_right { Ok(()) } else { Err(format!("it was settled otherwise: {answer}")) }
    }
}

/// The person, who receives asks and accepts each at once.
struct MeasuredPerson {
    stream: std::net::TcpStream,
}

impl Drop for MeasuredPerson {
    fn drop(&mut self) {
        // If the connection is already closed, nothing is left to do.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

impl MeasuredPerson {
    fn start(served: &ServedHub, key: &str) -> Result<Self, String> {
        let mut replies = HttpConnection::open(served.address())?.with_headers(key.to_owned());
        let request = json!({
            "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "person",
            "capabilities": {
                "supports_confirmation_reply": true, "event_filters": { "include": ["*"] },
            },
        });
        let path = "/aaep/v1/subscriptions";
        let accepted = replies.post(path, "application/json", &request.to_string())?;
        let accepted: Value = serde_json::from_str(&accepted).map_err(|it| it.to_string())?;
        let id = accepted["subscription_id"].as_str().ok_or("no subscription")?.to_owned();
        let mut events = HttpConnection::open(served.address())?;
        let path = format!("/aaep/v1/events?subscription_id={id}");
        events.send(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{key}\r\n"))?;
        let stream = events.stream.get_ref().try_clone().map_err(|error| error.to_string())?;
        thread::spawn(move || {
            for line in events.stream.lines().map_while(Result::ok) {
                let Some(data) = line.strip_prefix("data: ") else { continue };
                let Ok(event) = serde_json::from_str::<Value>(data) else { continue };
                // Asks of the hogs are left unanswered.
                let is_meant = event["producer"]["agent_id"] == "asking";
                if let Some(token) = event["reply_token"].as_str().filter(|_| is_meant) {
                    let reply = json!({
                        "type": "confirmation.reply", "reply_token": token, "decision": "accept",
                        "subscription_id": id, "timestamp": timestamp(),
                    });
                    let reply = reply.to_string();
                    if replies.post("/aaep/v1/replies", "application/json", &reply).is_err() {
                        return;
                    }
                }
            }
        });
        Ok(MeasuredPerson { stream })
    }
}
