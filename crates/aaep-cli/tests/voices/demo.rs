//! `aaep demo` aloud, through the real speech server.

use std::process::Stdio;

use crate::speech_server::SpeechServer;
use crate::support::{aaep, out};

/// What the demonstration says aloud, in this order.
const SAID: [&str; 4] = ["Listening.", "Delete", "cannot be undone", "In fact"];

#[test]
fn where_a_voice_is_there_the_demonstration_is_heard_to_its_end() {
    let speech = SpeechServer::start(0.5, &["en"]);
    let home = tempfile::tempdir().expect("a folder");
    let mut command = aaep(&["demo", "--answer", "reject"]);
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
        command.env(name, home.path());
    }
    command.env("SPEECHD_ADDRESS", format!("unix_socket:{}", speech.socket().display()));
    let output = command.stdin(Stdio::null()).output().expect("aaep runs");
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));
    let spoken = speech.spoken().join("\n");
    let mut rest = spoken.as_str();
    for words in SAID {
        let at = rest.find(words);
        rest = at.and_then(|at| rest.get(at..)).unwrap_or_else(|| panic!("{words:?} in {spoken}"));
    }
    assert!(!out(&output).contains("About speech:"), "{}", out(&output));
}
