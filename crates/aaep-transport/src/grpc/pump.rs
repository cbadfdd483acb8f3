//! Copies messages between a call and its end of a pair, until one of the two ends.
//!
//! It reads from the pair only when HTTP/2 accepts more, so that the loop at the other end notices a slow client.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tonic::codegen::tokio_stream::{Stream, StreamExt as _};
use tonic::{Code, Status};

use super::AaepMessage;
use super::closing::{ClosingHead, closed_status};
use crate::framed::{Framing, Messages, NoMessage};
use crate::websocket::WebSocketViolation;
use crate::wire::PairEnd;

/// The channel to a client.
pub(super) type CallSender = mpsc::Sender<Result<AaepMessage, Status>>;

/// Runs until the call is over.
pub(super) async fn pump(
    end: PairEnd,
    requests: impl Stream<Item = Result<AaepMessage, Status>> + Unpin,
    sender: CallSender,
    max_message_bytes: usize,
    time: Option<Duration>,
) {
    let (source, sink) = end.into_split();
    let has_said_all = AtomicBool::new(false);
    let last = tokio::select! {
        last = down(source, &sender, &has_said_all) => last,
        last = up(requests, sink, max_message_bytes, &has_said_all) => last,
        last = deadline(time) => last,
        // The client is gone or has cancelled the call. Dropping our end tells the loop.
        () = sender.closed() => return,
    };
    // Our end of the pair is dropped by now, so only this task waits for a client that does not read.
    let _ = sender.send(Err(last)).await;
}

/// From the loop to the client. Returns the final status.
async fn down(
    source: impl AsyncRead + Unpin,
    sender: &CallSender,
    has_said_all: &AtomicBool,
) -> Status {
    // The loop is trusted, and the decoder grows with the bytes that arrive, not with an announced length.
    let mut messages = Messages::new(source, Framing::Length, u32::MAX);
    loop {
        let json = match messages.next().await {
            Ok(json) => json,
            Err(NoMessage::Ended) if has_said_all.load(Ordering::Relaxed) => {
                return closed_status(1000, "");
            }
            Err(_) => {
                return Status::unavailable(
                    "The hub let this call go, perhaps because it was read too slowly. Call again and resume.",
                );
            }
        };
        let head = ClosingHead::read(&json);
        if let Some(last) = head.closing() {
            return last;
        }
        let message = AaepMessage { json: json.into_bytes(), message_type: head.kind };
        if sender.send(Ok(message)).await.is_err() {
            return Status::cancelled("The client is gone.");
        }
    }
}

/// From the client to the loop. Returns the status of a failure. After a client has sent everything, it waits for
/// the loop to end the call.
async fn up(
    mut requests: impl Stream<Item = Result<AaepMessage, Status>> + Unpin,
    mut sink: impl AsyncWrite + Unpin,
    max_message_bytes: usize,
    has_said_all: &AtomicBool,
) -> Status {
    let mut bytes = Vec::new();
    while let Some(request) = requests.next().await {
        match request {
            // If it were passed on, it would be cut off in the middle, perhaps before the loop could say why.
            Ok(message) if message.json.len() > max_message_bytes => return too_big(),
            Ok(message) => Framing::Length.message(&message.json, &mut bytes),
            Err(status) => return refusal(&status),
        }
        if sink.write_all(&bytes).await.is_err() {
            // The loop has ended the call; its last message is on its way to the client.
            return pending().await;
        }
        // Frees the buffer between two messages.
        bytes = Vec::new();
    }
    has_said_all.store(true, Ordering::Relaxed);
    drop(sink);
    pending().await
}

/// The status for a client whose bytes cannot be accepted.
fn refusal(status: &Status) -> Status {
    match status.code() {
        Code::OutOfRange | Code::ResourceExhausted => too_big(),
        Code::Unimplemented => status.clone(),
        _ => Status::invalid_argument(
            "A message cannot be read as an AaepMessage. Use the description of the service.",
        ),
    }
}

fn too_big() -> Status {
    closed_status(1009, &WebSocketViolation::TooBig.to_string())
}

async fn deadline(time: Option<Duration>) -> Status {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => pending().await,
    }
    Status::deadline_exceeded("The time that the client set is over. Call again and resume.")
}

#[cfg(all(test, unix))]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tonic::codegen::tokio_stream::{self, pending as silent};

    use super::super::close_code;
    use super::*;

    type RequestList = Vec<Result<AaepMessage, Status>>;

    fn message(json: &str) -> AaepMessage {
        AaepMessage { json: json.into(), message_type: "a lie".to_owned() }
    }

    fn framed(json: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        Framing::Length.message(json.as_bytes(), &mut bytes);
        bytes
    }

    fn start(
        requests: impl Stream<Item = Result<AaepMessage, Status>> + Send + Unpin + 'static,
        time: Option<Duration>,
    ) -> (tokio::net::UnixStream, mpsc::Receiver<Result<AaepMessage, Status>>) {
        let (here, there) = tokio::net::UnixStream::pair().expect("a pair");
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(pump(there, requests, sender, 100, time));
        (here, receiver)
    }

    async fn last(receiver: &mut mpsc::Receiver<Result<AaepMessage, Status>>) -> Status {
        let last = receiver.recv().await.expect("a last word").expect_err("a status");
        assert!(receiver.recv().await.is_none(), "nothing comes after the last word");
        last
    }

    #[tokio::test]
    async fn messages_go_both_ways_and_their_type_is_ours() {
        let requests: RequestList = vec![Ok(message("{\"type\":\"one\"}")), Ok(message("no JSON"))];
        let (mut here, mut receiver) = start(tokio_stream::iter(requests), None);
        let mut said = Vec::new();
        here.read_to_end(&mut said).await.expect("read");
        assert_eq!(said, [framed("{\"type\":\"one\"}"), framed("no JSON")].concat());
        here.write_all(&framed("{\"type\":\"two\",\"event_id\":\"e\"}")).await.expect("written");
        let heard = receiver.recv().await.expect("a message").expect("no status");
        assert_eq!(heard.message_type, "two");
        drop(here);
        assert_eq!(last(&mut receiver).await.code(), Code::Ok, "it had said all");
    }

    #[tokio::test]
    async fn the_last_word_of_the_loop_is_the_status() {
        let (mut here, mut receiver) = start(silent(), None);
        let bytes = framed("{\"type\":\"agentvoice:closed\",\"code\":4003,\"reason\":\"Go.\"}");
        here.write_all(&bytes).await.expect("written");
        let last = last(&mut receiver).await;
        assert_eq!((last.code(), last.message()), (Code::PermissionDenied, "Go."));
        assert_eq!(close_code(last.metadata()), Some(4003));
    }

    #[tokio::test]
    async fn a_peer_that_was_disconnected_without_a_reason_can_call_again() {
        let (here, mut receiver) = start(silent(), None);
        drop(here);
        assert_eq!(last(&mut receiver).await.code(), Code::Unavailable);
    }

    #[tokio::test]
    async fn a_client_that_goes_away_or_breaks_off_is_gone_for_the_loop() {
        let (mut here, receiver) = start(silent(), None);
        drop(receiver);
        assert_eq!(here.read(&mut [0; 8]).await.expect("the end"), 0);
        for request in [Err(Status::out_of_range("too large")), Ok(message(&"x".repeat(101)))] {
            let (mut here, mut receiver) = start(tokio_stream::iter([request]), None);
            assert_eq!(last(&mut receiver).await.code(), Code::ResourceExhausted);
            assert_eq!(here.read(&mut [0; 8]).await.expect("the end"), 0);
        }
    }

    #[tokio::test]
    async fn a_time_that_is_over_ends_the_call_even_if_nobody_reads() {
        let (mut here, mut receiver) = start(silent(), Some(Duration::ZERO));
        assert_eq!(here.read(&mut [0; 8]).await.expect("the end"), 0);
        assert_eq!(last(&mut receiver).await.code(), Code::DeadlineExceeded);
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_fills_the_socket_and_nothing_else() {
        let (here, receiver) = start(silent(), None);
        let bytes = framed(&"x".repeat(1 << 20));
        let mut written = 0;
        // The pump holds one message and queues another; the rest stays in the socket.
        let mut offered = 0;
        while offered < 16 * bytes.len() {
            let at = written % bytes.len();
            match here.try_write(&bytes[at..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    tokio::task::yield_now().await;
                }
                Err(error) => panic!("{error}"),
            }
            offered += bytes.len() / 64;
        }
        assert!((bytes.len()..4 * bytes.len()).contains(&written), "{written}");
        drop(receiver);
    }
}
