//! `aaep serve` where the system allows few open files. Alone in its program, because it holds many itself.

#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A hub that was started after these commands of a shell.
struct Running {
    child: Child,
    address: String,
    _home: TempDir,
}

impl Running {
    fn start(before: &str) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let mut child = Command::new("/bin/sh")
            .args(["-c", &format!("{before} && exec \"$0\" serve --bind 127.0.0.1:0")])
            .arg(env!("CARGO_BIN_EXE_aaep"))
            .env_clear()
            .env("HOME", home.path())
            .env("XDG_RUNTIME_DIR", home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh runs");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("Listening on http://").expect("an address");
        Running { address: address.to_owned(), child, _home: home }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn idle_connections_beyond_the_open_files_that_the_system_allows_lock_nobody_out() {
    let running = Running::start("ulimit -n 64");
    let connect = || TcpStream::connect(&running.address).expect("connects");
    let _idle: Vec<_> = (0..150).map(|_| connect()).collect();
    let mut socket = connect();
    let request = "GET /aaep/v1/agents HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    socket.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn the_hub_takes_as_many_open_files_as_it_may_have() {
    let running = Running::start("ulimit -S -n 64");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", running.child.id()));
    let limits = limits.expect("its limits");
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let mut numbers = line.expect("a line").split_whitespace();
    assert_eq!(numbers.next(), numbers.next(), "{limits}");
}
