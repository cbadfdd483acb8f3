//! `aaep serve` as a process of its own, and just enough of HTTP to talk to it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::process::Usage;

/// How long a start or a stop may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// The name of its local socket in its folder.
const SOCKET: &str = "hub.sock";

/// A hub that runs.
pub(crate) struct Served {
    child: Child,
    address: SocketAddr,
    socket: PathBuf,
    /// Goes when this goes.
    folder: Option<TempDir>,
}

impl Served {
    /// Starts it with room for so many subscribers, and with its files in a folder of its own.
    pub(crate) fn start(subscribers: usize) -> Result<Self, String> {
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        let mut served = Served::start_in(folder.path(), subscribers, "")?;
        served.folder = Some(folder);
        Ok(served)
    }

    /// Starts it with its files in this folder, which may have a store from before, and with these further
    /// tables of configuration.
    pub(crate) fn start_in(
        folder: &Path,
        subscribers: usize,
        tables: &str,
    ) -> Result<Self, String> {
        let (child, address) = serve(folder, &roomy(subscribers, tables))?;
        Ok(Served { child, address, socket: folder.join(SOCKET), folder: None })
    }

    /// Starts it with its own limits, and without trust in local programs.
    pub(crate) fn start_as_people_do(folder: &Path) -> Result<Self, String> {
        let (child, address) = serve(folder, "")?;
        Ok(Served { child, address, socket: folder.join(SOCKET), folder: None })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The path of its local socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    /// The number of the process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn usage(&self) -> Result<Usage, String> {
        Usage::of(self.child.id())
    }

    /// How often its store has waited for the disk so far, as it says itself.
    pub(crate) fn commits(&self) -> Result<f64, String> {
        let mut connection = Connection::open(self.address)?;
        let (status, metrics) = connection.get("/metrics")?;
        let name = "aaep_store_commit_seconds_count ";
        let count = metrics.lines().find_map(|line| line.strip_prefix(name));
        count
            .and_then(|count| count.trim().parse().ok())
            .ok_or_else(|| format!("the hub does not say how often it stored: {status}"))
    }

    /// Lets it stop by itself.
    pub(crate) fn stop(mut self) -> Result<(), String> {
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

impl Drop for Served {
    fn drop(&mut self) {
        // One that has stopped is as wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program next to this one.
pub(crate) fn program() -> Result<PathBuf, String> {
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

/// The configuration with room for so many subscribers.
fn roomy(subscribers: usize, tables: &str) -> String {
    // All of them are one program to the hub, which keeps a part of the room for others.
    let room = subscribers + subscribers / 4 + 100;
    format!(
        "[access]\ntrust_local_programs = true\n[hub]\nmax_subscriptions = {room}\n[limits]\n\
         connections = {room}\nconnections_per_principal = {room}\n\
         requests_per_principal = {room}\nsessions_per_principal = 900\n\
         running_bytes_per_principal = 10000000000\n\
         subscriptions_per_principal = {room}\npublishes_per_second = 1000000\n\
         publish_burst = 1000000\n{tables}"
    )
}

fn serve(folder: &Path, config: &str) -> Result<(Child, SocketAddr), String> {
    let path = |name: &str| folder.join(name);
    fs::write(path("hub.toml"), config).map_err(|error| error.to_string())?;
    let mut child = Command::new(program()?)
        .args(["serve", "--bind", "127.0.0.1:0", "--config"])
        .arg(path("hub.toml"))
        .arg("--socket")
        .arg(path(SOCKET))
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

/// A connection of HTTP.
pub(crate) struct Connection {
    address: SocketAddr,
    pub(crate) stream: BufReader<TcpStream>,
    /// More headers of every request, each with its line end.
    headers: String,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address).map_err(|error| {
            format!("{error}. If there are too many open files: ulimit -n 20000")
        })?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(Connection { address, stream: BufReader::new(stream), headers: String::new() })
    }

    /// The same with more headers, each with its line end.
    pub(crate) fn with_headers(mut self, headers: String) -> Self {
        self.headers = headers;
        self
    }

    pub(crate) fn send(&mut self, text: &str) -> Result<(), String> {
        self.stream.get_mut().write_all(text.as_bytes()).map_err(|error| error.to_string())
    }

    pub(crate) fn post(&mut self, path: &str, kind: &str, body: &str) -> Result<String, String> {
        let (status, text) = self.request(path, kind, body)?;
        if matches!(status, 200 | 201 | 204) {
            Ok(text)
        } else {
            Err(format!("{path}: {status} {text}"))
        }
    }

    /// Asks for a page and gives the status and the text of the answer.
    pub(crate) fn get(&mut self, path: &str) -> Result<(u16, String), String> {
        let address = self.address;
        let headers = self.headers.clone();
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n{headers}\r\n"))?;
        self.answer()
    }

    pub(crate) fn answer(&mut self) -> Result<(u16, String), String> {
        let (status, length) = self.head()?;
        let mut text = vec![0; length];
        self.stream.read_exact(&mut text).map_err(|error| error.to_string())?;
        Ok((status, String::from_utf8_lossy(&text).into_owned()))
    }

    /// Sends a body and gives the status and the text of the answer.
    pub(crate) fn request(
        &mut self,
        path: &str,
        kind: &str,
        body: &str,
    ) -> Result<(u16, String), String> {
        let address = self.address;
        let (length, headers) = (body.len(), self.headers.clone());
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\n{headers}content-type: {kind}\r\n\
             content-length: {length}\r\n\r\n{body}"
        ))?;
        self.answer()
    }

    /// The status of an answer, and how long its body is.
    pub(crate) fn head(&mut self) -> Result<(u16, usize), String> {
        read_head(&mut self.stream)
    }
}

/// The status of an answer, and how long its body is.
pub(crate) fn read_head(stream: &mut impl BufRead) -> Result<(u16, usize), String> {
    let (mut status, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        match stream.read_line(&mut line) {
            Ok(1..) => {}
            _ => return Err("the server ended the connection".to_owned()),
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
