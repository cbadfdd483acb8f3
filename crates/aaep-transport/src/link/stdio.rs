//! A producer that is a child process: JSON-RPC on its standard input and output (B.6).
//!
//! No shell is involved. The child has a process group of its own, so that Control and C in a terminal ends
//! us, and we end the child in order: its standard input closes, it has a while to end, then it is killed.
//! What it writes to standard error is for people (B.6.5) and goes to ours, line by line, harmless.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aaep::printable;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::dial::{DialError, DialOptions};
use super::{Bearer, Ear, Link, LinkEnd, link};
use crate::framed::{Framing, Messages, NoMessage};
use crate::jsonrpc::{Heard, MAX_LINE_BYTES, SubscriberEnd};
use crate::wire::MAX_MESSAGE_BYTES;

/// How long a child has to end by itself once its standard input is closed.
const GRACE: Duration = Duration::from_secs(5);

/// How long it is waited for the exit status of a child that has closed its standard output.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// How many answers to a child may wait for it to read. More are passed over.
const MAX_WAITING_ANSWERS: usize = 16;

/// The longest part of a line of standard error that is shown at once.
const MAX_SHOWN_BYTES: usize = 2048;

/// Starts a program and listens to it.
pub(super) fn dial(command: &[String], options: &DialOptions) -> Result<Link, DialError> {
    let (program, arguments) = command
        .split_first()
        .map_or(("", [].as_slice()), |(program, rest)| (program.as_str(), rest));
    start(program, arguments, options.max_message_bytes).map_err(|error| DialError::Unreachable {
        place: program.to_owned(),
        why: error.to_string(),
    })
}

fn start(program: &str, arguments: &[String], max_message_bytes: u32) -> io::Result<Link> {
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn()?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(input), Some(output), Some(errors)) = pipes else {
        return Err(io::Error::other("the system gave no pipes"));
    };
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    tokio::spawn(show(name.clone(), errors));
    let (link, bearer) = link();
    let max_line_bytes = max_message_bytes.saturating_add(MAX_LINE_BYTES - MAX_MESSAGE_BYTES);
    tokio::spawn(run(
        name,
        child,
        input,
        Messages::new(output, Framing::Lines, max_line_bytes),
        bearer,
    ));
    Ok(link)
}

async fn run(
    name: String,
    mut child: Child,
    input: ChildStdin,
    mut lines: Messages<ChildStdout>,
    mut bearer: Bearer,
) {
    let end = Mutex::new(SubscriberEnd::new());
    let (answers, to_send) = mpsc::channel(MAX_WAITING_ANSWERS);
    let ear = bearer.ear();
    // A child that does not read can still be heard: neither waits for the other.
    let outcome = tokio::select! {
        outcome = hear(&name, &mut lines, &end, &ear, &answers) => outcome,
        () = speak(input, &end, &mut bearer, to_send) => Outcome::Over,
    };
    drop(lines);
    let end = match outcome {
        Outcome::Over => {
            let_end(&mut child).await;
            return;
        }
        Outcome::End(end) => end,
        Outcome::Silent => match timeout(LAST_MOMENT, child.wait()).await {
            Ok(Ok(status)) => LinkEnd::Cut(how(&name, status)),
            _ => LinkEnd::Cut(format!("{name} closed its standard output")),
        },
    };
    // The child does not wait for a subscriber that is slow to hear of the end.
    tokio::join!(bearer.end(end), let_end(&mut child));
}

/// How a conversation came to its end.
enum Outcome {
    /// The subscriber is gone, or nothing can be said to the child.
    Over,
    /// For a reason.
    End(LinkEnd),
    /// The child says nothing more.
    Silent,
}

async fn hear(
    name: &str,
    lines: &mut Messages<ChildStdout>,
    end: &Mutex<SubscriberEnd>,
    ear: &Ear,
    answers: &mpsc::Sender<String>,
) -> Outcome {
    loop {
        let line = match lines.next().await {
            Ok(line) => line,
            Err(NoMessage::Ended | NoMessage::CutOff) => return Outcome::Silent,
            Err(NoMessage::Violation(violation)) => {
                return Outcome::End(LinkEnd::Violation(violation.to_string()));
            }
            Err(NoMessage::Failed(error)) => return Outcome::End(LinkEnd::Cut(error.to_string())),
        };
        let heard = end.lock().unwrap_or_else(PoisonError::into_inner).hear(&line);
        match heard {
            Heard::Message(message) => {
                if !ear.incoming(message).await {
                    return Outcome::Over;
                }
            }
            Heard::Say(line) => {
                // A child that asks and does not read gets no more answers.
                let _ = answers.try_send(line);
            }
            Heard::Nothing => {}
            Heard::Wrong(what) => tell(&format!("{}: {what}\n", printable(name))).await,
            Heard::End(end) => return Outcome::End(end),
        }
    }
}

/// Says what the subscriber says, until it is gone or the child takes no more. A child that takes no more and
/// can still be heard is heard out.
async fn speak(
    mut input: ChildStdin,
    end: &Mutex<SubscriberEnd>,
    bearer: &mut Bearer,
    mut answers: mpsc::Receiver<String>,
) {
    let mut bytes = Vec::new();
    loop {
        let line = tokio::select! {
            message = bearer.outgoing() => match message {
                Some(message) => end.lock().unwrap_or_else(PoisonError::into_inner).say(&message),
                None => return,
            },
            Some(line) = answers.recv() => line,
        };
        bytes.clear();
        Framing::Lines.message(line.as_bytes(), &mut bytes);
        if input.write_all(&bytes).await.is_err() {
            while bearer.outgoing().await.is_some() {}
            return;
        }
    }
}

/// Waits a while for a child to end, and then ends it, and what it has started itself.
async fn let_end(child: &mut Child) {
    // Its standard input and output are closed by now.
    if timeout(GRACE, child.wait()).await.is_ok() {
        return;
    }
    #[cfg(unix)]
    if let Some(group) = child.id().and_then(|id| i32::try_from(id).ok()) {
        use rustix::process::{Pid, Signal, kill_process_group};
        // It was not waited for yet, so the number is still its own.
        let _ = Pid::from_raw(group).map(|group| kill_process_group(group, Signal::KILL));
    }
    // One that has just ended is as wanted.
    let _ = child.kill().await;
}

fn how(name: &str, status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("{name} ended with exit code {code}"),
        None => format!("{name} was ended by the system ({status})"),
    }
}

/// Shows what a child writes to its standard error, each line with its name in front.
async fn show(name: String, mut errors: impl AsyncRead + Unpin) {
    let mut buffer = [0; MAX_SHOWN_BYTES];
    let mut line = Vec::new();
    while let Ok(count) = errors.read(&mut buffer).await {
        let bytes = buffer.get(..count).unwrap_or_default();
        for byte in bytes {
            if *byte != b'\n' {
                line.push(*byte);
            }
            if *byte == b'\n' || line.len() >= MAX_SHOWN_BYTES {
                tell(&shown(&name, &line)).await;
                line.clear();
            }
        }
        if count == 0 {
            break;
        }
    }
    if !line.is_empty() {
        tell(&shown(&name, &line)).await;
    }
}

fn shown(name: &str, line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    format!("{}: {}\n", printable(name), printable(text.trim_end_matches('\r')))
}

async fn tell(text: &str) {
    // If nobody takes our standard error, nobody needs to know.
    let _ = tokio::io::stderr().write_all(text.as_bytes()).await;
}
