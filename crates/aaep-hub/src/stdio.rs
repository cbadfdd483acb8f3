//! A hub whose parent process listens: JSON-RPC on standard input and output (B.6).
//!
//! Whoever started the hub is the person at this machine. What is about the subscription goes through a
//! connection like any other, so that what waits, slow readers and the end are as on every wire; everything
//! else is told the hub by itself. Whoever does not read holds up this alone, and a line that is too long or no
//! text is complained about and passed over.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use aaep::Mode;
use aaep_transport::Protocol;
use aaep_transport::framed::{Framing, Messages, NoMessage};
use aaep_transport::jsonrpc::{MAX_LINE_BYTES, ProducerEnd, Wish};
use aaep_transport::wire::{MAX_MESSAGE_BYTES, PairEnd, pair};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::access::Principal;
use crate::hub::{Hub, HubError, NewConnection, Told, violations_to_json};

/// How many lines may wait to be taken.
const MAX_WAITING_LINES: usize = 16;

/// How long a parent that has said its last may take to read what it was still to be told.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Why nobody listens any more.
#[derive(Debug)]
pub enum StdioEnd {
    /// The parent closed our standard input, or does not read our standard output any more.
    Ended,
    /// The system failed.
    Failed(io::Error),
    /// The hub has stopped.
    Stopped,
}

/// Serves a parent process until it ends, or the hub does.
pub async fn serve<R, W>(hub: Hub, input: R, output: W) -> StdioEnd
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin,
{
    let (lines, to_take) = mpsc::channel(MAX_WAITING_LINES);
    let (ending, mut ended) = watch::channel(false);
    let reading = tokio::spawn(read(input, lines, ending));
    let mut parent = Parent {
        principal: Arc::new(Principal::person()),
        hub,
        end: ProducerEnd::new(),
        output,
        connection: None,
        bytes: Vec::new(),
    };
    let end = tokio::select! {
        end = parent.serve(to_take) => end,
        // A parent that ended and does not read does not keep us.
        () = async {
            // If the reader is gone, it has ended.
            let _ = ended.wait_for(|has_ended| *has_ended).await;
            sleep(LAST_WORDS).await;
        } => StdioEnd::Ended,
    };
    reading.abort();
    end
}

/// Reads lines until the end, of which it tells even while nobody takes them.
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

/// The process that started us.
struct Parent<W> {
    hub: Hub,
    principal: Arc<Principal>,
    end: ProducerEnd,
    output: W,
    /// What it listens on, once it has asked for a subscription.
    connection: Option<Connection>,
    bytes: Vec<u8>,
}

struct Connection {
    messages: Messages<tokio::io::ReadHalf<PairEnd>>,
    writer: tokio::io::WriteHalf<PairEnd>,
}

impl<W: AsyncWrite + Unpin> Parent<W> {
    async fn serve(&mut self, mut lines: mpsc::Receiver<Result<String, NoMessage>>) -> StdioEnd {
        loop {
            let outcome = tokio::select! {
                line = lines.recv() => match line {
                    Some(Ok(line)) => self.take(&line).await,
                    Some(Err(NoMessage::Violation(violation))) => {
                        let line = self.end.unread(violation);
                        self.write(&line).await
                    }
                    Some(Err(NoMessage::Failed(error))) => return StdioEnd::Failed(error),
                    Some(Err(NoMessage::Ended | NoMessage::CutOff)) | None => {
                        return StdioEnd::Ended;
                    }
                },
                message = heard(&mut self.connection) => self.hand_on(message).await,
            };
            if let Err(end) = outcome {
                return end;
            }
        }
    }

    /// Does what a line of the parent says.
    async fn take(&mut self, line: &str) -> Result<(), StdioEnd> {
        match self.end.hear(line) {
            Wish::Nothing => Ok(()),
            Wish::Say(line) => self.write(&line).await,
            Wish::Subscription(message) => self.say(&message).await,
            Wish::Tell { id, message } => {
                let answer = self.tell(&message).await?.to_string();
                match self.end.answer(id.as_ref(), &answer) {
                    Some(line) => self.write(&line).await,
                    None => Ok(()),
                }
            }
        }
    }

    /// Tells the hub something; what came of it, as a message.
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
            Told::Instructed(session_id) => {
                json!({ "type": "agentvoice:instructed", "session_id": session_id })
            }
            _ => json!({}),
        })
    }

    /// Says something on the connection, which is made if there is none.
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
                self.hub.subscriber_socket(new).await.map_err(|_| StdioEnd::Stopped)?;
                let (reader, writer) = tokio::io::split(end);
                let messages = Messages::new(reader, Framing::Length, MAX_MESSAGE_BYTES);
                none.insert(Connection { messages, writer })
            }
        };
        self.bytes.clear();
        Framing::Length.message(message.as_bytes(), &mut self.bytes);
        // If the hub has just closed it, that is heard on it.
        let _ = connection.writer.write_all(&self.bytes).await;
        Ok(())
    }

    /// Something came from the hub for the parent.
    async fn hand_on(&mut self, message: Result<String, NoMessage>) -> Result<(), StdioEnd> {
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

/// The next message of the hub, or why there is none; waits for ever while there is no connection.
async fn heard(connection: &mut Option<Connection>) -> Result<String, NoMessage> {
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
