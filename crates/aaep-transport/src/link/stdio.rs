//! A producer that is a child process: JSON-RPC on its standard input and output (B.6).
//!
//! No shell is involved. The child has its own process group, so that Control-C in a terminal ends us, and we end
//! the child in order: its standard input closes, it has some time to end, then it is killed. Its standard error
//! is for people (B.6.5) and goes to ours, line by line, with control characters made harmless.

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
use super::{Bearer, Link, LinkEnd, LinkInlet, link};
use crate::framed::{Framing, Messages, NoMessage};
use crate::jsonrpc::{MAX_LINE_BYTES, ProducerLine, SubscriberEnd};
use crate::wire::MAX_MESSAGE_BYTES;

/// How long a child has to end by itself after its standard input is closed.
const GRACE: Duration = Duration::from_secs(5);

/// How long to wait for the exit status of a child that has closed its standard output.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// How many answers may wait for the child to read them. Further answers are dropped.
const MAX_WAITING_ANSWERS: usize = 16;

/// The longest part of a line of standard error that is shown at once.
const MAX_SHOWN_BYTES: usize = 2048;

/// Starts a program and receives its messages.
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
    let inlet = bearer.inlet();
    // Sending and receiving run at the same time: neither waits for the other.
    let outcome = tokio::select! {
        outcome = hear(&name, &mut lines, &end, &inlet, &answers) => outcome,
        () = speak(input, &end, &mut bearer, to_send) => ConversationEnd::Over,
    };
    drop(lines);
    let end = match outcome {
        ConversationEnd::Over => {
            let_end(&mut child).await;
            return;
        }
        ConversationEnd::End(end) => end,
        ConversationEnd::Silent => match timeout(LAST_MOMENT, child.wait()).await {
            Ok(Ok(status)) => LinkEnd::Cut(how(&name, status)),
            _ => LinkEnd::Cut(format!("{name} closed its standard output")),
        },
    };
    // The child does not wait for a subscriber that is slow to receive the end.
    tokio::join!(bearer.end(end), let_end(&mut child));
}

/// How a conversation ended.
enum ConversationEnd {
    /// The subscriber is gone, or the child accepts no more input.
    Over,
    /// The link ended for this reason.
    End(LinkEnd),
    /// The child closed its standard output.
    Silent,
}

async fn hear(
    name: &str,
    lines: &mut Messages<ChildStdout>,
    end: &Mutex<SubscriberEnd>,
    inlet: &LinkInlet,
    answers: &mpsc::Sender<String>,
) -> ConversationEnd {
    loop {
        let line = match lines.next().await {
            Ok(line) => line,
            Err(NoMessage::Ended | NoMessage::CutOff) => return ConversationEnd::Silent,
            Err(NoMessage::Violation(violation)) => {
                return ConversationEnd::End(LinkEnd::Violation(violation.to_string()));
            }
            Err(NoMessage::Failed(error)) => {
                return ConversationEnd::End(LinkEnd::Cut(error.to_string()));
            }
        };
        let heard = end.lock().unwrap_or_else(PoisonError::into_inner).hear(&line);
        match heard {
            ProducerLine::Message(message) => {
                if !inlet.incoming(message).await {
                    return ConversationEnd::Over;
                }
            }
            ProducerLine::Say(line) => {
                // A child that sends requests but does not read gets no more answers.
                let _ = answers.try_send(line);
            }
            ProducerLine::Nothing => {}
            ProducerLine::Wrong(what) => tell(&format!("{}: {what}\n", printable(name))).await,
            ProducerLine::End(end) => return ConversationEnd::End(end),
        }
    }
}

/// Sends the subscriber's messages until it is gone or the child accepts no more. If the child can still be
/// received from, its remaining messages are received first.
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

/// Waits some time for a child to end, and then kills it together with the processes that it started.
async fn let_end(child: &mut Child) {
    // Its standard input and output are closed by now.
    if timeout(GRACE, child.wait()).await.is_ok() {
        return;
    }
    #[cfg(unix)]
    if let Some(group) = child.id().and_then(|id| i32::try_from(id).ok()) {
        use rustix::process::{Pid, Signal, kill_process_group};
        // The child was not waited for yet, so the process id still belongs to it.
        let _ = Pid::from_raw(group).map(|group| kill_process_group(group, Signal::KILL));
    }
    // If it has just ended, nothing is left to do.
    let _ = child.kill().await;
}

fn how(name: &str, status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("{name} ended with exit code {code}"),
        None => format!("{name} was ended by the system ({status})"),
    }
}

/// Shows what a child writes to standard error, with its name before each line.
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
    // If nobody reads our standard error, nobody needs to be told.
    let _ = tokio::io::stderr().write_all(text.as_bytes()).await;
}
