//! A hub whose subscriber is its parent process, over JSON-RPC on standard input and output (B.6).
//!
//! The program that started the hub acts for the person at this machine. Messages of the subscription go
//! through a connection like any other, so that pending events, slow readers and the end behave as on every
//! wire; all other messages go to the hub directly. A parent that does not read delays only itself, and a
//! line that is too long or not text is answered with an error and skipped.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use aaep::Mode;
use aaep_transport::Protocol;
use aaep_transport::framed::{Framing, Messages, NoMessage};
use aaep_transport::jsonrpc::{MAX_LINE_BYTES, ProducerEnd, SubscriberLine};
use aaep_transport::wire::{MAX_MESSAGE_BYTES, PairEnd, pair};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::access::Principal;
use crate::hub::{
    ConnectionPurpose, Hub, HubError, MessageOutcome, NewConnection, violations_to_json,
};

/// The most lines that wait to be handled.
const MAX_WAITING_LINES: usize = 16;

/// How long a parent that closed its end may take to read the remaining messages.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Why serving the parent ended.
#[derive(Debug)]
pub enum StdioEnd {
    /// The parent closed our standard input, or no longer reads our standard output.
    Ended,
    /// The system failed.
    Failed(io::Error),
    /// The hub has stopped.
    Stopped,
}

/// Serves a parent process until it or the hub ends.
pub async fn serve<R, W>(hub: Hub, input: R, output: W) -> StdioEnd
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin,
{
    let (lines, to_take) = mpsc::channel(MAX_WAITING_LINES);
    let (ending, mut ended) = watch::channel(false);
    let reading = tokio::spawn(read(input, lines, ending));
    let mut parent = ParentProcess {
        principal: Arc::new(Principal::person()),
        hub,
        end: ProducerEnd::new(),
        output,
        connection: None,
        bytes: Vec::new(),
    };
    let end = tokio::select! {
        end = parent.serve(to_take) => end,
        // A parent that closed its end and does not read must not keep us running.
        () = async {
            // An error means that the reader has ended.
            let _ = ended.wait_for(|has_ended| *has_ended).await;
            sleep(LAST_WORDS).await;
        } => StdioEnd::Ended,
    };
    reading.abort();
    end
}

/// Reads lines until the end. It signals the end even while nobody takes the lines.
async fn read<R: AsyncRead + Unpin>(
    input: R,
    lines: mpsc::Sender<Result<String, NoMessage>>,
    ending: watch::Sender<bool>,
) {
    let mut messages = Messages::new(input, Framing::Lines, MAX_LINE_BYTES);
    loop {
        let line = messages.next().await;
        let is_last = match &line {
            Err(NoMessage::Violation(violation)) => {
                messages.pass_over(*violation);
                false
            }
            line => line.is_err(),
        };
        if is_last {
            let _ = ending.send(true);
        }
        if lines.send(line).await.is_err() || is_last {
            return;
        }
    }
}

/// The process that started the hub.
struct ParentProcess<W> {
    hub: Hub,
    principal: Arc<Principal>,
    end: ProducerEnd,
    output: W,
    /// The connection of its subscription, once it has requested one.
    connection: Option<ParentConnection>,
    bytes: Vec<u8>,
}

struct ParentConnection {
    messages: Messages<tokio::io::ReadHalf<PairEnd>>,
    writer: tokio::io::WriteHalf<PairEnd>,
}

impl<W: AsyncWrite + Unpin> ParentProcess<W> {
    async fn serve(&mut self, mut lines: mpsc::Receiver<Result<String, NoMessage>>) -> StdioEnd {
        loop {
            let outcome = tokio::select! {
                line = lines.recv() => match line {
                    Some(Ok(line)) => self.handle_line(&line).await,
                    Some(Err(NoMessage::Violation(violation))) => {
                        let line = self.end.unread(violation);
                        self.write(&line).await
                    }
                    Some(Err(NoMessage::Failed(error))) => return StdioEnd::Failed(error),
                    Some(Err(NoMessage::Ended | NoMessage::CutOff)) | None => {
                        return StdioEnd::Ended;
                    }
                },
                message = next_message(&mut self.connection) => self.forward(message).await,
            };
            if let Err(end) = outcome {
                return end;
            }
        }
    }

    /// Handles a line from the parent.
    async fn handle_line(&mut self, line: &str) -> Result<(), StdioEnd> {
        match self.end.hear(line) {
            SubscriberLine::Nothing => Ok(()),
            SubscriberLine::Say(line) => self.write(&line).await,
            SubscriberLine::Subscription(message) => self.say(&message).await,
            SubscriberLine::Tell { id, message } => {
                let answer = self.tell(&message).await?.to_string();
                match self.end.answer(id.as_ref(), &answer) {
                    Some(line) => self.write(&line).await,
                    None => Ok(()),
                }
            }
        }
    }

    /// Passes a message to the hub. Returns the result as a message.
    async fn tell(&self, message: &str) -> Result<Value, StdioEnd> {
        let message = match aaep::read(message.as_bytes(), Mode::Strict).into_result() {
            Ok(message) => message,
            Err(wrong) => {
                let mut body = complaint("not_valid", "The message is not valid.");
                body["violations"] = violations_to_json(&wrong);
                return Ok(body);
            }
        };
        let told = match self.hub.tell(&self.principal, message).await {
            Ok(told) => told,
            Err(HubError::Stopped) => return Err(StdioEnd::Stopped),
            Err(error) => return Ok(complaint("not_stored", &error.to_string())),
        };
        if let Some((error, why)) = told.refusal() {
            return Ok(complaint(error, &why));
        }
        Ok(match told {
            MessageOutcome::Instructed(session_id) => {
                json!({ "type": "agentvoice:instructed", "session_id": session_id })
            }
            _ => json!({}),
        })
    }

    /// Sends a message on the connection, which is opened first if there is none.
    async fn say(&mut self, message: &str) -> Result<(), StdioEnd> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let (socket, end) = pair().map_err(StdioEnd::Failed)?;
                let new = NewConnection {
                    principal: Arc::clone(&self.principal),
                    socket,
                    read_ahead: Vec::new(),
                    protocol: Protocol::Framed(Framing::Length),
                    permit: None,
                };
                let purpose = ConnectionPurpose::SubscriberSocket;
                self.hub.attach(new, purpose).await.map_err(|_| StdioEnd::Stopped)?;
                let (reader, writer) = tokio::io::split(end);
                let messages = Messages::new(reader, Framing::Length, MAX_MESSAGE_BYTES);
                none.insert(ParentConnection { messages, writer })
            }
        };
        self.bytes.clear();
        Framing::Length.message(message.as_bytes(), &mut self.bytes);
        // If the hub has just closed it, reading from it reports that.
        let _ = connection.writer.write_all(&self.bytes).await;
        Ok(())
    }

    /// Passes a message of the hub on to the parent.
    async fn forward(&mut self, message: Result<String, NoMessage>) -> Result<(), StdioEnd> {
        let last = match message {
            Ok(message) => {
                let (line, is_last) = self.end.say(&message);
                self.write(&line).await?;
                if !is_last {
                    return Ok(());
                }
                self.end.gone()
            }
            Err(_) => self.end.cut(),
        };
        self.connection = None;
        for line in last {
            self.write(&line).await?;
        }
        if self.hub.is_dead() { Err(StdioEnd::Stopped) } else { Ok(()) }
    }

    async fn write(&mut self, line: &str) -> Result<(), StdioEnd> {
        self.bytes.clear();
        Framing::Lines.message(line.as_bytes(), &mut self.bytes);
        let written = async {
            self.output.write_all(&self.bytes).await?;
            self.output.flush().await
        };
        written.await.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => StdioEnd::Ended,
            _ => StdioEnd::Failed(error),
        })
    }
}

/// The next message of the hub, or why there is none. Never resolves while there is no connection.
async fn next_message(connection: &mut Option<ParentConnection>) -> Result<String, NoMessage> {
    match connection {
        Some(connection) => connection.messages.next().await,
        None => std::future::pending().await,
    }
}

fn complaint(error: &str, message: &str) -> Value {
    json!({ "type": "agentvoice:error", "error": error, "message": message })
}

impl std::fmt::Display for StdioEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StdioEnd::Ended => f.write_str("The program that started the hub listens no more."),
            StdioEnd::Failed(error) => write!(f, "Standard input or output failed: {error}."),
            StdioEnd::Stopped => f.write_str("The hub has stopped."),
        }
    }
}
