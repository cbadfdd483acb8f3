//! The hub as a process of its own: started, killed, stopped.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than a start or a stop takes, so that a hub that hangs is noticed.
const PATIENCE: Duration = Duration::from_mins(1);

/// The files of a hub.
#[derive(Debug)]
pub(crate) struct Place {
    folder: PathBuf,
}

/// A hub that runs. It is killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    lines: Receiver<String>,
}

impl Place {
    pub(crate) fn new(folder: &Path) -> Self {
        let config = "[limits]\nconnections_per_principal = 512\nsubscriptions_per_principal = 512\n\
                      publishes_per_second = 1000000\npublish_burst = 1000000\n";
        fs::write(folder.join("hub.toml"), config).expect("written");
        Place { folder: folder.to_owned() }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    pub(crate) fn log_text(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    pub(crate) fn start(&self) -> Daemon {
        let log: File =
            OpenOptions::new().create(true).append(true).open(self.log()).expect("a log");
        let mut child = Command::new(env!("CARGO_BIN_EXE_aaep"))
            .args(["serve", "--trust-local-programs", "--bind", "127.0.0.1:0", "--socket", "none"])
            .arg("--store")
            .arg(self.store())
            .arg("--config")
            .arg(self.folder.join("hub.toml"))
            .arg("--tokens")
            .arg(self.folder.join("tokens.toml"))
            .arg("--keys")
            .arg(self.folder.join("keys"))
            .env_remove("AAEP_STORE")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("aaep runs");
        let out = child.stdout.take().expect("piped");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Daemon { child, lines }
    }
}

impl Daemon {
    /// Its address, once it listens.
    pub(crate) fn address(&self, place: &Place) -> SocketAddr {
        let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            panic!("the hub did not start; its log:\n{}", place.log_text());
        });
        let address = line.strip_prefix("Listening on http://");
        address.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("no address: {line}"))
    }

    /// Kills it without warning.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    /// Lets it stop by itself.
    pub(crate) fn stop(mut self) {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status().expect("kill runs");
        assert!(told.success(), "the hub is not there to be stopped");
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                assert!(status.success(), "the hub ended badly: {status}");
                return;
            }
            assert!(began.elapsed() < PATIENCE, "the hub does not stop");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn end(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
    }
}
