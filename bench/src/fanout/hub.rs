//! The hub: `aaep serve` as a process of its own, with its store on the disk and its limits raised.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::process::Usage;
use super::readers::{Readers, lines};
use super::{EVENT_BYTES, Server};

/// How long a start, a stop, or the first events may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long nothing must come before what came counts as all.
const QUIET: Duration = Duration::from_millis(500);

/// A hub that runs.
pub(super) struct Hub {
    child: Child,
    /// Where agents publish.
    publisher: Connection,
    /// How much is added to an event so that it has the right length.
    padding: usize,
    sessions: u64,
    _folder: TempDir,
}

impl Hub {
    /// Starts it with so many listeners. The third is how much memory the listeners take.
    pub(super) fn start(listeners: usize) -> Result<(Self, Readers, f64), String> {
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        let (child, address) = serve(&folder, listeners)?;
        let publisher = Connection::open(address)?;
        let mut hub = Hub { child, publisher, padding: 1, sessions: 0, _folder: folder };
        let before = hub.usage()?.bytes;
        let sockets = (0..listeners).map(|_| listen(address)).collect::<Result<Vec<_>, _>>()?;
        thread::sleep(QUIET);
        let memory = hub.usage()?.bytes - before;
        let readers = Readers::start(sockets)?;
        hub.begin_session()?;
        Ok((hub, readers, memory))
    }

    /// An event exactly as a listener gets it, with the right length of JSON.
    pub(super) fn frame(&mut self, readers: &Readers) -> Result<Vec<u8>, String> {
        let short = self.one(readers)?;
        let length = data_of(&short).ok_or("the hub sent no event")?.len();
        self.padding += EVENT_BYTES.checked_sub(length).ok_or("an event is too long already")?;
        let frame = self.one(readers)?;
        let length = data_of(&frame).ok_or("the hub sent no event")?.len();
        if length.abs_diff(EVENT_BYTES) > 2 {
            return Err(format!("an event has {length} bytes"));
        }
        readers.end_sample();
        readers.count_by(lines(&frame));
        Ok(frame)
    }

    /// Publishes one event and gives what the first listener got of it.
    fn one(&mut self, readers: &Readers) -> Result<Vec<u8>, String> {
        Hub::quiet(readers)?;
        self.tell(1)?;
        Hub::quiet(readers)
    }

    /// Waits until nothing comes any more, and gives what came to the first listener meanwhile.
    fn quiet(readers: &Readers) -> Result<Vec<u8>, String> {
        let began = Instant::now();
        let mut came = Vec::new();
        loop {
            thread::sleep(QUIET);
            let now = readers.sample();
            if now.is_empty() {
                return Ok(came);
            }
            came.extend(now);
            if began.elapsed() > PATIENCE {
                return Err("the hub does not become quiet".to_owned());
            }
        }
    }

    /// The events from now on are of another session, which has room for them.
    pub(super) fn begin_session(&mut self) -> Result<(), String> {
        self.sessions += 1;
        let started = json!({
            "type": "aaep:agent.session.started", "session_id": self.session(),
            "producer": { "agent_id": "bench" }, "summary_normal": "A round begins.",
        });
        let before =
            self.publisher.post("/aaep/v1/publish", "application/json", &started.to_string());
        before?;
        // It is heard before anything is counted.
        thread::sleep(QUIET);
        Ok(())
    }

    fn session(&self) -> String {
        format!("sess_bench{}", self.sessions)
    }

    fn event(&self) -> Value {
        json!({
            "type": "aaep:agent.progress.updated", "session_id": self.session(),
            "producer": { "agent_id": "bench" }, "progress": { "percent": 50 },
            "summary_normal": "x".repeat(self.padding),
        })
    }

    /// Lets it stop by itself.
    pub(super) fn stop(mut self) -> Result<(), String> {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        if !told.is_ok_and(|status| status.success()) {
            return Err("the hub could not be stopped".to_owned());
        }
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Ok(Some(status)) = self.child.try_wait() {
                return if status.success() {
                    Ok(())
                } else {
                    Err(format!("the hub ended badly: {status}"))
                };
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err("the hub does not stop".to_owned())
    }
}

impl Server for Hub {
    fn tell(&mut self, events: usize) -> Result<(), String> {
        let event = self.event().to_string();
        let mut body = String::new();
        for _ in 0..events {
            writeln!(body, "{event}").map_err(|error| error.to_string())?;
        }
        self.publisher.post("/aaep/v1/publish", "application/x-ndjson", &body).map(drop)
    }

    fn usage(&self) -> Result<Usage, String> {
        Usage::of(self.child.id())
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // One that has stopped is as wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The JSON in an event as it came.
fn data_of(frame: &[u8]) -> Option<&[u8]> {
    let lines = frame.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line.strip_prefix(b"data: ")).next_back()
}

/// The program next to this one.
fn program() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let path = own.with_file_name("aaep");
    if path.is_file() {
        return Ok(path);
    }
    Err(format!(
        "{} is not there. Build it first with: cargo build --release -p aaep-cli",
        path.display()
    ))
}

fn serve(folder: &TempDir, listeners: usize) -> Result<(Child, SocketAddr), String> {
    let path = |name: &str| folder.path().join(name);
    let room = listeners + 100;
    let config = format!(
        "[hub]\nmax_subscriptions = {room}\n[limits]\nconnections = {room}\n\
         connections_per_principal = {room}\nsubscriptions_per_principal = {room}\n\
         publishes_per_second = 1000000\npublish_burst = 1000000\n"
    );
    fs::write(path("hub.toml"), config).map_err(|error| error.to_string())?;
    let mut child = Command::new(program()?)
        .args(["serve", "--bind", "127.0.0.1:0", "--config"])
        .arg(path("hub.toml"))
        .arg("--store")
        .arg(path("store"))
        .arg("--tokens")
        .arg(path("tokens.toml"))
        .arg("--keys")
        .arg(path("keys"))
        .env_remove("AAEP_STORE")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("aaep serve: {error}"))?;
    let mut line = String::new();
    let out = child.stdout.take().ok_or("no pipe")?;
    let mut out = BufReader::new(out);
    out.read_line(&mut line).map_err(|error| error.to_string())?;
    // What else it says is nobody's business, and must not keep it waiting.
    thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    let address = line.trim().strip_prefix("Listening on http://").and_then(|it| it.parse().ok());
    if let Some(address) = address {
        return Ok((child, address));
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(format!("aaep serve did not say where it listens: {line}"))
}

/// A listener that hears everything as it comes.
fn listen(address: SocketAddr) -> Result<TcpStream, String> {
    let request = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "bench",
        "capabilities": {
            "coalesce_boundaries": ["none"], "event_filters": { "include": ["*"] },
        },
    });
    let mut connection = Connection::open(address)?;
    let accepted =
        connection.post("/aaep/v1/subscriptions", "application/json", &request.to_string())?;
    let accepted: Value = serde_json::from_str(&accepted).map_err(|error| error.to_string())?;
    let id = accepted["subscription_id"].as_str().ok_or("no subscription")?;
    connection.send(&format!(
        "GET /aaep/v1/events?subscription_id={id} HTTP/1.1\r\nhost: {address}\r\n\
         accept: text/event-stream\r\n\r\n"
    ))?;
    match connection.head()? {
        (200, _) => Ok(connection.stream.into_inner()),
        (status, _) => Err(format!("a stream was refused with {status}")),
    }
}

/// A connection of HTTP.
struct Connection {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
}

impl Connection {
    fn open(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address).map_err(|error| {
            format!("{error}. If there are too many open files: ulimit -n 20000")
        })?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(Connection { address, stream: BufReader::new(stream) })
    }

    fn send(&mut self, text: &str) -> Result<(), String> {
        self.stream.get_mut().write_all(text.as_bytes()).map_err(|error| error.to_string())
    }

    fn post(&mut self, path: &str, kind: &str, body: &str) -> Result<String, String> {
        let address = self.address;
        let length = body.len();
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: {kind}\r\n\
             content-length: {length}\r\n\r\n{body}"
        ))?;
        let (status, length) = self.head()?;
        let mut text = vec![0; length];
        self.stream.read_exact(&mut text).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&text).into_owned();
        if matches!(status, 200 | 201) { Ok(text) } else { Err(format!("{path}: {status} {text}")) }
    }

    /// The status of an answer, and how long its body is.
    fn head(&mut self) -> Result<(u16, usize), String> {
        let (mut status, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            match self.stream.read_line(&mut line) {
                Ok(1..) => {}
                _ => return Err("the hub ended the connection".to_owned()),
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                return status.map(|status| (status, length)).ok_or("no status".to_owned());
            }
            if status.is_none() {
                status = line.split(' ').nth(1).and_then(|it| it.parse().ok());
            } else if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(|_| "no length".to_owned())?;
            }
        }
    }
}
