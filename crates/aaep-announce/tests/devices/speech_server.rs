//! A private speech-dispatcher whose only voice is the capture module. The tests of `aaep listen` use it too.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use aaep_announce::device::DeviceAddress;
use aaep_announce::device::speech::Settings;
use serde_json::Value;

use crate::patience::{PATIENCE, wait_until};

/// The server, its folder, and what it was told to be.
pub(crate) struct SpeechServer {
    folder: tempfile::TempDir,
    child: Option<Child>,
}

impl SpeechServer {
    /// One that takes so many milliseconds per character and has voices of these languages.
    pub(crate) fn start(pace_milliseconds: f64, voices: &[&str]) -> Self {
        let mut server = Self::prepare(pace_milliseconds, voices);
        server.go();
        server
    }

    /// The same, not running yet.
    pub(crate) fn prepare(pace_milliseconds: f64, voices: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let server = SpeechServer { folder, child: None };
        let conf = server.path("conf");
        fs::create_dir_all(conf.join("modules")).expect("a folder");
        fs::create_dir_all(server.path("logs")).expect("a folder");
        let module = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../aaep-announce/tests/support/capture-module");
        let main = format!(
            "LogLevel 3\nLogDir \"{}\"\nAudioOutputMethod \"libao\"\nDefaultLanguage \"en\"\n\
             AddModule \"capture\" \"{}\" \"capture.conf\"\nDefaultModule capture\n",
            server.path("logs").display(),
            module.display(),
        );
        fs::write(conf.join("speechd.conf"), main).expect("a configuration");
        let mut capture =
            format!("log {}\npace {pace_milliseconds}\n", server.path("spoken").display());
        for voice in voices {
            writeln!(capture, "voice {voice}").expect("a line");
        }
        fs::write(conf.join("modules/capture.conf"), capture).expect("a configuration");
        server
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("ssip.sock")
    }

    /// The arguments with which this server is started.
    pub(crate) fn arguments(&self, is_daemon: bool) -> Vec<String> {
        let text = |name: &str| self.path(name).to_string_lossy().into_owned();
        let mode = if is_daemon { "-d" } else { "-s" };
        [
            mode,
            "-c",
            "unix_socket",
            "-S",
            &text("ssip.sock"),
            "-P",
            &text("pid"),
            "-C",
            &text("conf"),
            "-t",
            "0",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// Starts it, again if need be, and waits until it answers.
    pub(crate) fn go(&mut self) {
        let child = Command::new("speech-dispatcher")
            .args(self.arguments(false))
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("speech-dispatcher runs; ./test installs it");
        self.child = Some(child);
        let socket = self.socket();
        wait_until("the speech server answers", || UnixStream::connect(&socket).ok());
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
        }
    }

    /// Settings that lead to it and start nothing.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            spawn: None,
            patience: PATIENCE,
            ..Settings::new(DeviceAddress::Unix(self.socket()))
        }
    }

    /// Everything that the capture module wrote.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("spoken")).unwrap_or_default();
        // The last line may still be on its way.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The texts that were spoken, or begun, as plain text.
    pub(crate) fn spoken(&self) -> Vec<String> {
        self.log().iter().filter(|it| it["event"] == "speak").map(plain).collect()
    }

    /// The languages in which they were spoken.
    pub(crate) fn languages(&self) -> Vec<String> {
        let language = |it: &Value| it["language"].as_str().expect("a language").to_owned();
        self.log().iter().filter(|it| it["event"] == "speak").map(language).collect()
    }
}

/// The server gives modules XML, with marks of its own where sentences end. What was spoken is the text in it.
fn plain(entry: &Value) -> String {
    let text = entry["text"].as_str().expect("text");
    let text = text.strip_prefix("<speak>").and_then(|it| it.strip_suffix("</speak>"));
    let mut pieces = text.expect("one document").split("<mark name=\"__spd_");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        text.push_str(piece.split_once("\"/>").expect("a whole mark").1);
    }
    for (code, character) in
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")]
    {
        text = text.replace(code, character);
    }
    text
}

impl Drop for SpeechServer {
    fn drop(&mut self) {
        // One that went to the background has left its number.
        let number = fs::read_to_string(self.path("pid")).ok().filter(|_| self.child.is_none());
        self.kill();
        if let Some(number) = number {
            let _ = Command::new("kill").arg(number.trim()).status();
        }
    }
}
