//! `aaep serve` as a person or a service manager uses it: what it says, how it stops, exit codes.

#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.arg("serve").env_clear().env("HOME", home).env("XDG_RUNTIME_DIR", home);
    command
}

/// Runs it until it ends by itself.
fn fails(home: &Path, arguments: &[&str]) -> String {
    let output: Output = command(home).args(arguments).output().expect("aaep runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

struct Running {
    child: Child,
    /// The lines that it printed when it started.
    said: Vec<String>,
    home: TempDir,
}

impl Running {
    fn start(home: TempDir, arguments: &[&str]) -> Self {
        let mut command = command(home.path());
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("aaep runs");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        let mut said = Vec::new();
        for line in out.lines() {
            said.push(line.expect("a line"));
            if said.last().is_some_and(|line| line.starts_with("To stop")) {
                break;
            }
        }
        Running { child, said, home }
    }

    fn address(&self) -> String {
        let line = self.said.first().expect("it says where it listens");
        line.strip_prefix("Listening on http://").expect("an address").to_owned()
    }

    fn get(&self, path: &str) -> String {
        let mut socket = TcpStream::connect(self.address()).expect("connects");
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// Sends a signal. Returns the exit code and the log.
    fn stop(mut self, signal: &str) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        let killed = Command::new("kill").args(["-s", signal, &pid]).status().expect("kill runs");
        assert!(killed.success());
        let mut log = String::new();
        self.child.stderr.take().expect("its log").read_to_string(&mut log).expect("UTF-8");
        (self.child.wait().expect("it ends").code(), log)
    }
}

fn home() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn it_says_where_it_listens_and_how_to_try_it_and_stops_when_told() {
    for signal in ["TERM", "INT"] {
        let home = home();
        let socket = home.path().join("aaep/aaep-hub.sock");
        let store = home.path().join(".local/state/aaep/store.redb");
        let running = Running::start(home, &["--bind", "127.0.0.1:0"]);
        let address = running.address();
        assert_eq!(
            running.said,
            [
                format!("Listening on http://{address}"),
                format!("Listening on unix:{}", socket.display()),
                format!("To hear what agents do: aaep listen --hub http://{address}"),
                "To stop: press Control and C.".to_owned(),
            ]
        );
        assert!(running.get("/readyz").starts_with("HTTP/1.1 200 "));
        assert!(store.exists(), "what it keeps is in the folder for that");
        let (code, log) = running.stop(signal);
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains("The hub runs.") && log.contains("The hub stops."), "{log}");
    }
}

#[test]
fn it_listens_on_several_addresses() {
    let running = Running::start(home(), &["--bind", "127.0.0.1:0", "--bind", "127.0.0.1:0"]);
    let listening = running.said.iter().filter(|line| line.starts_with("Listening on ")).count();
    assert_eq!(listening, 3, "{:?}", running.said);
    running.stop("TERM");
}

#[test]
fn a_second_hub_goes_without_the_usual_socket_and_says_so() {
    let first = Running::start(home(), &["--bind", "127.0.0.1:0"]);
    let folder = first.home.path().to_owned();
    let second = home();
    let mut command = command(second.path());
    command.env("XDG_RUNTIME_DIR", &folder).args(["--bind", "127.0.0.1:0"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("aaep runs");
    let mut line = String::new();
    let mut said = BufReader::new(child.stderr.take().expect("its log"));
    said.read_line(&mut line).expect("a line");
    said.read_line(&mut line).expect("the next step");
    child.kill().expect("killed");
    child.wait().expect("it ends");
    assert!(line.contains("Another hub has the socket") && line.contains("--socket"), "{line}");
    first.stop("TERM");
    assert!(!folder.join("aaep/aaep-hub.sock").exists());
}

#[test]
fn no_local_socket_is_made_when_none_is_wanted_and_a_wrong_path_is_reported() {
    let running = Running::start(home(), &["--bind", "127.0.0.1:0", "--socket", "none"]);
    assert!(!running.said.iter().any(|line| line.contains("unix:")), "{:?}", running.said);
    running.stop("TERM");
    let said = fails(home().path(), &["--bind", "127.0.0.1:0", "--socket", "/nowhere/at/all.sock"]);
    assert!(said.contains("/nowhere/at/all.sock") && said.contains("--socket none"), "{said}");
}

#[test]
fn sockets_that_the_system_opened_are_used() {
    let folder = home();
    let path = folder.path().join("given.sock");
    let (tcp, unix) = (
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port"),
        std::os::unix::net::UnixListener::bind(&path).expect("a socket"),
    );
    // The shell puts them where a service manager does, and says whose they are.
    let script = "exec 3<&$ONE 4<&$TWO; LISTEN_FDS=2 LISTEN_PID=$$ exec \"$AAEP\" serve";
    let home = home();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script]).env_clear().env("HOME", home.path());
    shell.env("AAEP", env!("CARGO_BIN_EXE_aaep"));
    for (name, fd) in
        [("ONE", tcp.as_fd().try_clone_to_owned()), ("TWO", unix.as_fd().try_clone_to_owned())]
    {
        let fd = fd.expect("a copy");
        rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::empty()).expect("kept");
        shell.env(name, std::os::fd::IntoRawFd::into_raw_fd(fd).to_string());
    }
    let mut child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh runs");
    let out = BufReader::new(child.stdout.take().expect("its output"));
    let said: Vec<String> = out.lines().map_while(Result::ok).take(2).collect();
    let address = tcp.local_addr().expect("an address");
    assert_eq!(
        said,
        [format!("Listening on http://{address}"), format!("Listening on unix:{}", path.display())]
    );
    child.kill().expect("killed");
    child.wait().expect("it ends");
}

#[test]
fn the_log_can_be_for_machines_and_has_no_foreign_control_characters() {
    let arguments = ["--bind", "127.0.0.1:0", "--log", "debug", "--log-format", "json"];
    let running = Running::start(home(), &arguments);
    let mut socket = TcpStream::connect(running.address()).expect("connects");
    let evil = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\norigin: http://a\x9b2Jb\r\n\r\n";
    socket.write_all(evil).expect("sent");
    socket.read_exact(&mut [0; 12]).expect("an answer");
    running.get("/%1b%5b2J");
    let (_, log) = running.stop("TERM");
    assert!(log.lines().count() > 2, "{log}");
    for line in log.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).expect(line);
        assert!(entry["message"].is_string() && entry["level"].is_string(), "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}

#[test]
fn an_address_in_use_is_said_with_the_next_step() {
    let running = Running::start(home(), &["--bind", "127.0.0.1:0"]);
    let said = fails(home().path(), &["--bind", &running.address()]);
    assert!(said.contains("Another program listens on"), "{said}");
    assert!(said.contains("--bind 127.0.0.1:0"), "{said}");
    running.stop("TERM");
}

#[test]
fn a_store_in_use_is_said_with_the_next_step() {
    let folder = home();
    let store = folder.path().join("store");
    let store = store.to_str().expect("a path");
    let running = Running::start(home(), &["--bind", "127.0.0.1:0", "--store", store]);
    let said = fails(home().path(), &["--bind", "127.0.0.1:0", "--store", store]);
    assert!(said.contains("in use") && said.contains("Stop that hub"), "{said}");
    running.stop("TERM");
}

#[test]
fn others_are_not_let_in_unprotected() {
    let said = fails(home().path(), &["--bind", "0.0.0.0:0"]);
    assert!(said.contains("neither TLS nor authentication"), "{said}");
    assert!(said.contains("--insecure-allow-plain-http"), "{said}");
}

#[test]
fn the_configuration_is_read_and_flags_beat_it() {
    let home = home();
    let folder = home.path().join(".config/aaep");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = "[hub]\nagent_id = \"at-home\"\nbind = [\"0.0.0.0:0\"]\n";
    std::fs::write(folder.join("hub.toml"), text).expect("written");
    let running = Running::start(home, &["--bind", "127.0.0.1:0"]);
    assert!(running.get("/.well-known/aaep-manifest.json").contains("\"agent_id\":\"at-home\""));
    running.stop("TERM");
}

#[test]
fn a_wrong_configuration_is_said_with_key_and_line() {
    let home = home();
    let file = home.path().join("hub.toml");
    std::fs::write(&file, "[hub]\nagent_nmae = \"x\"\n").expect("written");
    let said = fails(home.path(), &["--config", file.to_str().expect("a path")]);
    assert!(said.contains("agent_nmae") && said.contains("line 2"), "{said}");
    let said = fails(home.path(), &["--config", "/nowhere/hub.toml"]);
    assert!(said.contains("cannot be read"), "{said}");
    assert!(!home.path().join(".local").exists(), "nothing was made");
}
