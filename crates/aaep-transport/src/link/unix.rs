//! A Unix socket or, on Windows, a named pipe (B.3, B.4): whole messages, framed by length or by line.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::time::{sleep, timeout};

use super::dial::{DialError, DialOptions};
use super::{Bearer, LAST_WORDS, Link, LinkEnd, LinkInlet, link};
use crate::framed::{Framing, Messages, NoMessage, credential_frame};
use crate::local;
use crate::wire::CLOSED;

/// The longest message that is checked for being the last one.
const MAX_CLOSED_BYTES: usize = 4096;

#[cfg(unix)]
type LocalStream = tokio::net::UnixStream;
#[cfg(windows)]
type LocalStream = tokio::net::windows::named_pipe::NamedPipeClient;

pub(super) async fn dial(path: Option<&Path>, options: &DialOptions) -> Result<Link, DialError> {
    let connected = timeout(options.connect_timeout, async {
        match path {
            Some(path) => connect(path).await.map_err(|error| unreachable(path, &error)),
            None => connect_own(local::connect_paths(local::HUB_NAME)).await,
        }
    });
    let mut socket = connected.await.unwrap_or(Err(DialError::TooSlow))?;
    if let Some(bearer) = &options.bearer {
        let bytes = credential_frame(options.framing, bearer);
        let said = timeout(options.connect_timeout, socket.write_all(&bytes)).await;
        let said = said.map_err(|_| DialError::TooSlow)?;
        said.map_err(|error| unreachable(path.unwrap_or(Path::new("unix:")), &error))?;
    }
    let (link, bearer) = link();
    tokio::spawn(run(socket, options.framing, options.max_message_bytes, bearer));
    Ok(link)
}

fn unreachable(path: &Path, error: &io::Error) -> DialError {
    DialError::Unreachable { place: path.to_string_lossy().into_owned(), why: error.to_string() }
}

/// The socket of this person's own hub, the first that exists.
async fn connect_own(paths: Vec<PathBuf>) -> Result<LocalStream, DialError> {
    let mut last = None;
    for path in paths {
        match connect(&path).await.and_then(only_own) {
            Ok(socket) => return Ok(socket),
            // The first path is the likeliest, so its error is reported.
            Err(error) => last = last.or(Some(unreachable(&path, &error))),
        }
    }
    let nowhere = || DialError::Unreachable {
        place: "unix:".to_owned(),
        why: "this machine has no folder for local sockets".to_owned(),
    };
    Err(last.unwrap_or_else(nowhere))
}

#[cfg(unix)]
use crate::local::connect;

/// A shared folder may hold a socket that another user created under the name of our hub.
#[cfg(unix)]
fn only_own(socket: LocalStream) -> io::Result<LocalStream> {
    let user_id = socket.peer_cred()?.uid();
    if user_id == local::own_user_id() || user_id == 0 {
        return Ok(socket);
    }
    Err(io::Error::other("it belongs to another user of this machine"))
}

/// Opens the pipe. The system gives each client its own instance, and has none for a moment when all are in use.
#[cfg(windows)]
async fn connect(path: &Path) -> io::Result<LocalStream> {
    const ALL_ARE_BUSY: i32 = 231;
    loop {
        match tokio::net::windows::named_pipe::ClientOptions::new().open(path) {
            Err(error) if error.raw_os_error() == Some(ALL_ARE_BUSY) => {
                sleep(std::time::Duration::from_millis(50)).await;
            }
            opened => return opened,
        }
    }
}

/// Pipe names belong to the machine; the system decides who may create one.
#[cfg(windows)]
fn only_own(socket: LocalStream) -> io::Result<LocalStream> {
    Ok(socket)
}

async fn run(socket: LocalStream, framing: Framing, max_message_bytes: u32, mut bearer: Bearer) {
    let (reader, mut writer) = tokio::io::split(socket);
    let messages = Messages::new(reader, framing, max_message_bytes);
    let inlet = bearer.inlet();
    // Sending and receiving run at the same time: neither waits for the other.
    let end = tokio::select! {
        end = hear(messages, &inlet) => Some(end),
        end = speak(&mut writer, framing, &mut bearer) => end,
    };
    drop(writer);
    if let Some(end) = end {
        bearer.end(end).await;
    }
}

/// Passes messages on. Continues when the subscriber is gone, so that the producer can finish.
async fn hear(mut messages: Messages<ReadHalf<LocalStream>>, inlet: &LinkInlet) -> LinkEnd {
    loop {
        let message = match messages.next().await {
            Ok(message) => message,
            Err(NoMessage::Violation(violation)) => {
                return LinkEnd::Violation(violation.to_string());
            }
            Err(NoMessage::Ended) => return LinkEnd::Cut("it ended without a word".to_owned()),
            Err(NoMessage::CutOff) => {
                return LinkEnd::Cut("it ended in the middle of a message".to_owned());
            }
            Err(NoMessage::Failed(error)) => return LinkEnd::Cut(error.to_string()),
        };
        match last_word(&message) {
            Some(end) => return end,
            None => drop(inlet.incoming(message).await),
        }
    }
}

/// Sends the subscriber's messages, then ends the sending side. Returns `None` if the subscriber is gone.
async fn speak(
    writer: &mut WriteHalf<LocalStream>,
    framing: Framing,
    bearer: &mut Bearer,
) -> Option<LinkEnd> {
    while let Some(message) = bearer.outgoing().await {
        let mut bytes = Vec::new();
        framing.message(message.as_bytes(), &mut bytes);
        if let Err(error) = writer.write_all(&bytes).await {
            // The producer may have said why; that is received first.
            sleep(LAST_WORDS).await;
            return Some(LinkEnd::Cut(error.to_string()));
        }
    }
    let _ = timeout(LAST_WORDS, writer.shutdown()).await;
    // The producer reads the remaining messages, and then ends.
    sleep(LAST_WORDS).await;
    None
}

/// The message that ends a connection, for wires without a close frame.
#[derive(Deserialize)]
struct ClosedMessage {
    r#type: String,
    code: Option<u16>,
    #[serde(default)]
    reason: String,
    /// Present in everything that an agent sends, which never ends a connection.
    event_id: Option<IgnoredAny>,
}

fn last_word(message: &str) -> Option<LinkEnd> {
    if message.len() > MAX_CLOSED_BYTES || !message.contains(CLOSED) {
        return None;
    }
    let closed: ClosedMessage = serde_json::from_str(message).ok()?;
    let is_last = closed.r#type == CLOSED && closed.event_id.is_none();
    is_last.then(|| LinkEnd::closed(closed.code, closed.reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_says_is_never_the_last_word() {
        let closed = r#"{"type":"agentvoice:closed","code":4005,"reason":"So."}"#;
        assert_eq!(last_word(closed), Some(LinkEnd::closed(Some(4005), "So.".to_owned())));
        let event = r#"{"type":"agentvoice:closed","code":4005,"event_id":"evt_1"}"#;
        assert_eq!(last_word(event), None);
        assert_eq!(last_word(r#"{"type":"a","b":"agentvoice:closed"}"#), None);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn the_hub_of_this_person_is_found_at_the_first_place_where_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, two] = ["one.sock", "two.sock"].map(|name| folder.path().join(name));
        let error = connect_own(vec![one.clone(), two.clone()]).await.err();
        let is_first = |error: DialError| error.to_string().contains("one.sock");
        assert!(error.is_some_and(is_first));
        let _listener = tokio::net::UnixListener::bind(&two).expect("a socket");
        assert!(connect_own(vec![one, two]).await.is_ok());
        assert!(connect_own(Vec::new()).await.is_err());
    }

    #[test]
    fn the_last_word_is_known_by_its_type_alone() {
        let closed = r#"{"type":"agentvoice:closed","code":4000,"reason":"Elsewhere."}"#;
        let end = LinkEnd::Closed { code: Some(4000), reason: "Elsewhere.".to_owned() };
        assert_eq!(last_word(closed), Some(end));
        let end = LinkEnd::Refused { reason: String::new() };
        assert_eq!(last_word(r#"{"type":"agentvoice:closed","code":4003}"#), Some(end));
        for other in [
            r#"{"type":"aaep:agent.progress.updated","summary_normal":"agentvoice:closed"}"#,
            r#"{"a":{"type":"agentvoice:closed"}}"#,
            r#"["agentvoice:closed"]"#,
            "agentvoice:closed",
        ] {
            assert_eq!(last_word(other), None, "{other}");
        }
    }
}
