//! The desk of a person who listens in lines, speech and braille, and an agent who speaks to their hub.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::braille_server::BrailleServer;
use crate::patience::wait_until;
use crate::speech_server::SpeechServer;
use crate::support::{Hub, post};

/// The session of the agent.
const SESSION: &str = "sess_desk";

/// Everything on the desk. What is further up ends first.
pub(crate) struct Desk {
    listening: Listening,
    pub(crate) hub: Hub,
    pub(crate) braille: BrailleServer,
    _folder: TempDir,
}

/// `aaep listen`, and what it has written.
struct Listening {
    process: Child,
    lines: Arc<Mutex<String>>,
}

impl Desk {
    /// One where speech goes to this server.
    pub(crate) fn with_speech(speech: &SpeechServer) -> Self {
        Desk::new(&format!("unix_socket:{}", speech.socket().display()))
    }

    /// The same for someone with this profile.
    pub(crate) fn with_profile(speech: &SpeechServer, profile: &str) -> Self {
        let address = format!("unix_socket:{}", speech.socket().display());
        Desk::listening(&address, &["--profile", profile])
    }

    /// One where speech goes to this address, as speech-dispatcher writes it. Braille moves on by keys alone.
    pub(crate) fn new(speech_address: &str) -> Self {
        Desk::listening(speech_address, &[])
    }

    fn listening(speech_address: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("aaep");
        std::fs::create_dir_all(&place).expect("a folder");
        let settings = "[braille]\ncells_per_second = 0\n";
        std::fs::write(place.join("aaep.toml"), settings).expect("settings");
        let hub = Hub::serve(folder.path(), "127.0.0.1:0");
        let braille = BrailleServer::start();
        let mut command = hub.aaep(&["listen", "--speech", "--braille"]);
        command.args(options);
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, folder.path());
        }
        for name in ["WINDOWPATH", "WINDOWID", "CONTROLVT", "XDG_VTNR", "DISPLAY"] {
            command.env_remove(name);
        }
        command.env("SPEECHD_ADDRESS", speech_address).env("BRLAPI_HOST", braille.host());
        let listening = Listening::start(&mut command);
        let mut desk = Desk { listening, hub, braille, _folder: folder };
        desk.wait_for_line("notice: Listening.\n");
        desk.braille.wait_for("Listening.");
        desk.read_on();
        desk
    }

    /// Moves on in braille until nothing is on the display.
    pub(crate) fn read_on(&mut self) {
        wait_until("all is read", || {
            self.braille.press("fwinrt");
            (self.braille.shown() == "no screen").then_some(())
        });
    }

    /// Moves on in braille until these words are on the display; the pages that were there before them.
    pub(crate) fn read_until(&mut self, words: &str) -> Vec<String> {
        let mut pages = Vec::new();
        wait_until(&format!("{words:?} is shown"), || {
            let before = self.braille.shown();
            if before.contains(words) {
                return Some(());
            }
            // With nothing on the display there is nothing to move on from, and what comes next would be passed over.
            if before != "no screen" {
                pages.push(before.clone());
                self.braille.press("fwinrt");
                let until = Instant::now() + Duration::from_secs(2);
                while self.braille.shown() == before && Instant::now() < until {
                    thread::sleep(Duration::from_millis(10));
                }
            }
            None
        });
        pages
    }

    /// All that was written so far.
    pub(crate) fn lines(&self) -> String {
        self.listening.lines.lock().expect("a lock").clone()
    }

    /// Waits until this was written.
    pub(crate) fn wait_for_line(&self, words: &str) {
        let lines = Arc::clone(&self.listening.lines);
        wait_until(&format!("{words:?} is written"), || {
            lines.lock().expect("a lock").contains(words).then_some(())
        });
    }

    /// The person types this.
    pub(crate) fn types(&mut self, line: &str) {
        let input = self.listening.process.stdin.as_mut().expect("its input");
        writeln!(input, "{line}").expect("typed");
    }

    /// The agent publishes an event of its session: the type after `aaep:agent.`, and its fields.
    pub(crate) fn publish(&self, kind: &str, fields: &Value) {
        let (status, body) = post(&self.hub.origin, "/aaep/v1/publish", &event(kind, fields));
        assert_eq!(status, 200, "{body}");
    }

    /// Another agent publishes an event of a session of its own.
    pub(crate) fn publish_as(&self, agent: &str, kind: &str, fields: &Value) {
        let mut event = event(kind, fields);
        event["session_id"] = json!(format!("sess_{agent}"));
        event["producer"]["agent_id"] = json!(agent);
        let (status, body) = post(&self.hub.origin, "/aaep/v1/publish", &event);
        assert_eq!(status, 200, "{body}");
    }

    /// The agent begins its session.
    pub(crate) fn begin(&self) {
        self.publish("session.started", &json!({ "summary_normal": "Cleaning up." }));
    }

    /// The agent says this, in these pieces.
    pub(crate) fn say(&self, pieces: &[&str]) {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let output_id = format!("out_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let mut position = 0;
        for (at, chunk) in (1..).zip(pieces) {
            let fields = json!({
                "output_id": output_id, "chunk": chunk, "position": position,
                "complete": at == pieces.len(),
            });
            self.publish("output.streaming", &fields);
            position += chunk.chars().count();
        }
    }

    /// The agent asks whether it may do this, and waits. What it gets is the outcome.
    pub(crate) fn ask(&self, token: &str, action: &str) -> JoinHandle<String> {
        let question = event(
            "awaiting.confirmation",
            &json!({
                "event_id": token.replace("rpl_", "evt_"), "action": action, "consequence": "All of it is gone.", "reply_token": token,
                "timeout_seconds": 600, "default_decision": "reject", "risk_level": "high",
                "irreversible": true,
            }),
        );
        let origin = self.hub.origin.clone();
        thread::spawn(move || {
            // The same question again is not another one; it is waited for on.
            let ask = || post(&origin, "/aaep/v1/asks?wait_seconds=50", &question);
            let (status, body) =
                std::iter::repeat_with(ask).find(|(status, _)| *status != 202).expect("an end");
            assert_eq!(status, 200, "{body}");
            assert_eq!(body["decided_by"], "reply", "nothing but the person decided: {body}");
            body["outcome"].as_str().expect("an outcome").to_owned()
        })
    }

    /// Goes through the pages of the question to its answers, and presses the key over this one until it is taken:
    /// a key that is pressed too soon counts for nothing.
    pub(crate) fn answer_in_braille(&mut self, answer: &str) {
        wait_until("the answers are shown", || {
            if self.shows_answers() {
                return Some(());
            }
            let before = self.braille.shown();
            self.braille.press("fwinrt");
            // A page that stays was not known to be under the fingers yet.
            (self.braille.shown() != before && self.shows_answers()).then_some(())
        });
        wait_until("the answer is taken", || {
            if !self.shows_answers() {
                return Some(());
            }
            self.braille.press_over(answer);
            None
        });
    }

    fn shows_answers(&self) -> bool {
        let shown = self.braille.shown();
        shown.ends_with(" Yes") && shown.contains(" No ")
    }
}

fn event(kind: &str, fields: &Value) -> Value {
    let mut event = json!({
        "type": format!("aaep:agent.{kind}"), "session_id": SESSION,
        "producer": { "agent_id": "weaver" },
    });
    for (key, value) in fields.as_object().expect("an object") {
        event[key] = value.clone();
    }
    event
}

impl Listening {
    fn start(command: &mut Command) -> Self {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("aaep runs");
        let mut output = process.stdout.take().expect("its output");
        let lines = Arc::new(Mutex::new(String::new()));
        let written = Arc::clone(&lines);
        thread::spawn(move || {
            let (mut buffer, mut kept) = ([0; 4096], Vec::new());
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                kept.extend_from_slice(&buffer[..count]);
                // The end may be half a character.
                let whole = kept.utf8_chunks().next().map_or(0, |it| it.valid().len());
                let rest = kept.split_off(whole);
                let text = String::from_utf8(kept).expect("UTF-8");
                written.lock().expect("a lock").push_str(&text);
                kept = rest;
            }
        });
        Listening { process, lines }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
