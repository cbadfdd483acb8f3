//! A private BRLTTY with a virtual display of forty cells, whose keys the tests press. The tests of `aaep listen`
//! use it too.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use aaep_announce::device::braille::{Settings, address};

use crate::patience::{PATIENCE, wait_until};

/// The first port of `BrlAPI`; servers are numbered from it.
const FIRST_PORT: u16 = 4101;

/// A port that no other server of these tests has, below those that systems give to clients.
fn next_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let process = u16::try_from(std::process::id() % 400).expect("small");
    FIRST_PORT + 100 + process * 50 + NEXT.fetch_add(1, Ordering::Relaxed) % 50
}

/// The server, its folder, and the display.
pub(crate) struct BrailleServer {
    folder: tempfile::TempDir,
    port: u16,
    authorization: String,
    child: Option<Child>,
    display: Option<UnixStream>,
    /// What is on the display, as text.
    text: Arc<Mutex<String>>,
}

impl BrailleServer {
    pub(crate) fn start() -> Self {
        Self::start_with("none")
    }

    /// One with that way of letting clients in.
    pub(crate) fn start_with(authorization: &str) -> Self {
        let port = wait_until("a port is free", || {
            let port = next_port();
            TcpListener::bind(("127.0.0.1", port)).is_ok().then_some(port)
        });
        let mut server = BrailleServer {
            folder: tempfile::tempdir().expect("a folder"),
            port,
            authorization: authorization.to_owned(),
            child: None,
            display: None,
            text: Arc::default(),
        };
        server.go();
        server
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts it, again if need be, with its display, and waits until it answers.
    pub(crate) fn go(&mut self) {
        // What an earlier one left behind must not be taken for the new one.
        let _ = fs::remove_file(self.path("display"));
        let text = |name: &str| self.path(name).to_string_lossy().into_owned();
        let device = format!("server:{}", text("display"));
        let api = format!("host=127.0.0.1:{},auth={}", self.port - FIRST_PORT, self.authorization);
        let child = Command::new("brltty")
            .args([
                "-n", "-e", "-q", "-Z", "-b", "vr", "-d", &device, "-x", "no", "-s", "no", "-A",
                &api,
            ])
            .args(["-t", "en_US", "-U", &text(""), "-P", &text("pid")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("brltty runs; ./test installs it");
        self.child = Some(child);
        let path = self.path("display");
        let display = wait_until("the display is there", || UnixStream::connect(&path).ok());
        self.watch(display);
        wait_until("BRLTTY answers", || TcpStream::connect(("127.0.0.1", self.port)).ok());
    }

    fn watch(&mut self, mut display: UnixStream) {
        display.write_all(b"cells 40\r\n").expect("the display has forty cells");
        let lines = BufReader::new(display.try_clone().expect("a clone")).lines();
        let text = Arc::clone(&self.text);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let shown = line.strip_prefix("Visual \"").and_then(|it| it.strip_suffix('"'));
                if let Some(shown) = shown {
                    unescape(shown).trim_end().clone_into(&mut text.lock().expect("a lock"));
                }
            }
        });
        self.display = Some(display);
    }

    /// What is on the display now.
    pub(crate) fn shown(&self) -> String {
        self.text.lock().expect("a lock").clone()
    }

    /// Waits until this is on the display.
    pub(crate) fn wait_for(&self, text: &str) {
        wait_until(&format!("{text:?} is shown, not {:?}", self.shown()), || {
            (self.shown() == text).then_some(())
        });
    }

    /// Waits until BRLTTY has the display for itself again. Without a screen to watch, it notices at the next key.
    pub(crate) fn wait_for_its_own(&mut self) {
        wait_until("BRLTTY has the display for itself", || {
            self.press("home");
            (self.shown() == "no screen").then_some(())
        });
    }

    /// Presses a key: `fwinrt`, `fwinlt`, or `route` with the number of a cell, counted from 0.
    pub(crate) fn press(&mut self, key: &str) {
        let display = self.display.as_mut().expect("a display");
        // The virtual display takes one line at a time, and the next when more comes: empty lines push it on. It says
        // nothing about what it has taken, so each line gets a moment.
        for line in [key, "", ""] {
            display.write_all(format!("{line}\r\n").as_bytes()).expect("a key can be pressed");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses a key until this is on the display: a key that comes before the device knows that the person can
    /// feel the window counts for nothing.
    pub(crate) fn press_until(&mut self, key: &str, text: &str) {
        let before = self.shown();
        wait_until(&format!("{key} brings {text:?}"), || {
            if self.shown() == before {
                self.press(key);
            }
            let until = Instant::now() + Duration::from_secs(1);
            while self.shown() == before && Instant::now() < until {
                thread::sleep(Duration::from_millis(10));
            }
            (self.shown() == text).then_some(())
        });
    }

    /// Presses the routing key over the first cell of these words on the display.
    pub(crate) fn press_over(&mut self, words: &str) {
        let cell = self.cell_of(words);
        self.press(&format!("route {cell}"));
    }

    /// The cell where these words begin.
    pub(crate) fn cell_of(&self, words: &str) -> usize {
        let shown = self.shown();
        let at = shown.find(words).unwrap_or_else(|| panic!("{words:?} is not in {shown:?}"));
        shown[..at].chars().count()
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
        }
        self.display = None;
    }

    /// The value of `BRLAPI_HOST` that leads to it.
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port - FIRST_PORT)
    }

    /// Settings that lead to it. Words stay until a key is pressed.
    pub(crate) fn settings(&self) -> Settings {
        let address = address(|name| (name == "BRLAPI_HOST").then(|| self.host()));
        let settings = Settings::new(address.expect("an address"));
        Settings { cells_per_second: None, patience: PATIENCE, ..settings }
    }
}

/// The display writes quotation marks and backslashes with a backslash before them.
fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        plain.extend(if c == '\\' { characters.next() } else { Some(c) });
    }
    plain
}

impl Drop for BrailleServer {
    fn drop(&mut self) {
        self.kill();
    }
}
