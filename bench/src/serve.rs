//! Runs `aaep serve` in its own process, with just enough HTTP to talk to it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::process::ProcessUsage;

/// The longest that a start or a stop may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// The name of the store in the hub's folder, and of the journal in the store.
const STORE: &str = "store";
const JOURNAL: &str = "store.journal";

/// The name of the local socket in the hub's folder.
const SOCKET: &str = "hub.sock";

/// A running hub.
pub(crate) struct ServedHub {
    child: Child,
    address: SocketAddr,
    socket: PathBuf,
    /// Deleted when this value is dropped.
    folder: Option<TempDir>,
}

impl ServedHub {
    /// Starts a hub with room for this many subscribers, and with its files in a new folder.
    pub(crate) fn start(subscribers: usize) -> Result<Self, String> {
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        let mut served = ServedHub::start_in(folder.path(), subscribers, "")?;
        served.folder = Some(folder);
        Ok(served)
    }

    /// Starts a hub with its files in this folder, which may already have a store, and with these
    /// additional limits, or tables, of configuration.
    pub(crate) fn start_in(
        folder: &Path,
        subscribers: usize,
        tables: &str,
    ) -> Result<Self, String> {
        let (child, address) = serve(folder, &roomy(subscribers, tables))?;
        Ok(ServedHub { child, address, socket: folder.join(SOCKET), folder: None })
    }

    /// Starts the hub of another build of `aaep` with its files in this folder. A build that does not know the limits
    /// of today gets those that hubs have always had.
    pub(crate) fn start_other(program: &Path, folder: &Path, room: usize) -> Result<Self, String> {
        let started = serve_by(program, folder, &roomy(room, ""));
        let (child, address) = started.or_else(|_| serve_by(program, folder, &basic(room)))?;
        Ok(ServedHub { child, address, socket: folder.join(SOCKET), folder: None })
    }

    /// Starts a hub in this new folder that cannot have a journal: in its place is a link that leads nowhere. Such a
    /// hub commits each group durably to its database, which is slower, and does everything else as usual.
    pub(crate) fn start_without_journal(
        folder: &Path,
        subscribers: usize,
        tables: &str,
    ) -> Result<Self, String> {
        let store = folder.join(STORE);
        let made = fs::DirBuilder::new().mode(0o700).create(&store);
        made.and_then(|()| symlink(folder.join("nowhere/journal"), store.join(JOURNAL)))
            .map_err(|error| format!("{}: {error}", store.display()))?;
        ServedHub::start_in(folder, subscribers, tables)
    }

    /// Whether the store of a hub in this folder has a journal.
    pub(crate) fn has_journal(folder: &Path) -> bool {
        folder.join(STORE).join(JOURNAL).is_file()
    }

    /// Starts a hub with its default limits, and without trust in local programs.
    pub(crate) fn start_with_default_limits(folder: &Path) -> Result<Self, String> {
        let (child, address) = serve(folder, "")?;
        Ok(ServedHub { child, address, socket: folder.join(SOCKET), folder: None })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The path of the local socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    /// The process id.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn usage(&self) -> Result<ProcessUsage, String> {
        ProcessUsage::of(self.child.id())
    }

    /// How often the hub's store has waited for the disk so far, according to the hub.
    pub(crate) fn commits(&self) -> Result<f64, String> {
        let mut connection = HttpConnection::open(self.address)?;
        let (status, metrics) = connection.get("/metrics")?;
        let name = "aaep_store_commit_seconds_count ";
        let count = metrics.lines().find_map(|line| line.strip_prefix(name));
        count
            .and_then(|count| count.trim().parse().ok())
            .ok_or_else(|| format!("the hub does not say how often it stored: {status}"))
    }

    /// Stops the hub in an orderly way.
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

impl Drop for ServedHub {
    fn drop(&mut self) {
        // If the hub has already stopped, nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The path of the `aaep` program next to this one.
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

/// A configuration with room for this many subscribers.
fn roomy(subscribers: usize, tables: &str) -> String {
    // To the hub, all of them are one program, and it reserves part of the room for others.
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

/// The limits that every build of `aaep` knows.
fn basic(room: usize) -> String {
    format!(
        "[hub]\nmax_subscriptions = {room}\n[limits]\nconnections = {room}\n\
         connections_per_principal = {room}\nsubscriptions_per_principal = {room}\n\
         publishes_per_second = 1000000\npublish_burst = 1000000\n"
    )
}

fn serve(folder: &Path, config: &str) -> Result<(Child, SocketAddr), String> {
    serve_by(&program()?, folder, config)
}

fn serve_by(program: &Path, folder: &Path, config: &str) -> Result<(Child, SocketAddr), String> {
    let path = |name: &str| folder.join(name);
    fs::write(path("hub.toml"), config).map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .args(["serve", "--bind", "127.0.0.1:0", "--config"])
        .arg(path("hub.toml"))
        .arg("--socket")
        .arg(path(SOCKET))
        .arg("--store")
        .arg(path(STORE))
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
    // Discard the rest of its output, so that it never blocks on a full pipe.
    thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    let address = line.trim().strip_prefix("Listening on http://").and_then(|it| it.parse().ok());
    if let Some(address) = address {
        return Ok((child, address));
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(format!("aaep serve did not say where it listens: {line}"))
}

/// An HTTP connection.
pub(crate) struct HttpConnection {
    address: SocketAddr,
    pub(crate) stream: BufReader<TcpStream>,
    /// Additional headers for every request, each with its line end.
    headers: String,
}

impl HttpConnection {
    pub(crate) fn open(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address).map_err(|error| {
            format!("{error}. If there are too many open files: ulimit -n 20000")
        })?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(HttpConnection { address, stream: BufReader::new(stream), headers: String::new() })
    }

    /// Adds headers to every request, each with its line end.
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

    /// Sends a GET request. Returns the status and the body of the answer.
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

    /// Sends a request with a body. Returns the status and the body of the answer.
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

    /// Reads the status of an answer and the length of its body.
    pub(crate) fn head(&mut self) -> Result<(u16, usize), String> {
        read_head(&mut self.stream)
    }
}

/// Reads the status of an answer and the length of its body.
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
