//! A WebSocket (B.2), the client's side.

use std::io;
use std::time::Duration;

use aaep_http::{
    ByteStream, CallAnswer, CallConnection, CallError, CallOptions, HttpAddress, HttpCall,
    HttpCaller,
};
use bytes::Bytes;
use hyper::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::Upgraded;
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tungstenite::handshake::client::generate_key;

use super::caller::LinkCaller;
use super::dial::{DialError, DialOptions};
use super::{Bearer, LAST_WORDS, Link, LinkEnd, LinkInlet, link};
use crate::websocket::{self as frame, Decoder, Incoming, Role, SUBPROTOCOL};

/// The path of the socket, unless the target has its own (B.2.1).
const PATH: &str = "/aaep/v1/ws";

/// How many pings and pongs may be queued. Further ones are dropped; only the newest counts (RFC 6455 §5.5.3).
const MAX_WAITING_SIGNS: usize = 4;

const READ_BYTES: usize = 16 << 10;

type UpgradedSocket = TokioIo<Upgraded>;

pub(super) async fn dial(address: &HttpAddress, options: &DialOptions) -> Result<Link, DialError> {
    let caller = LinkCaller::new(address, options)?;
    let key = generate_key();
    let is_root = address.path_and_query() == "/" && !options.without_handshake;
    let path = if is_root { PATH } else { address.path_and_query() }.to_owned();
    let mut headers = headers(&key)?;
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    let call = HttpCall { method: Method::GET, path, headers, body: Bytes::new() };
    let answer = caller.call(None, &call).await?;
    if answer.response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(caller.refusal(answer).await);
    }
    check(answer.response.headers(), &key, !options.without_handshake)
        .map_err(|what| DialError::Violation(what.to_owned()))?;
    let socket = upgrade(answer).await?;
    let (link, bearer) = link();
    let decoder = Decoder::new(Role::Client, options.max_message_bytes);
    tokio::spawn(run(socket, decoder, options.silence_timeout, bearer));
    Ok(link)
}

fn headers(key: &str) -> Result<HeaderMap, DialError> {
    let key = HeaderValue::from_str(key).map_err(|error| DialError::Cut(error.to_string()))?;
    let fixed = HeaderValue::from_static;
    Ok(HeaderMap::from_iter([
        (CONNECTION, fixed("Upgrade")),
        (UPGRADE, fixed("websocket")),
        (SEC_WEBSOCKET_VERSION, fixed("13")),
        (SEC_WEBSOCKET_KEY, key),
    ]))
}

/// A WebSocket on an open stream, to a server on this machine that speaks another protocol than AAEP. Must be called
/// within a tokio runtime.
pub async fn websocket_over(
    stream: impl ByteStream + 'static,
    max_message_bytes: u32,
    answer_timeout: Duration,
    silence_timeout: Duration,
) -> Result<Link, DialError> {
    let cut = |error: CallError| DialError::Cut(error.to_string());
    let address = HttpAddress::parse("http://localhost")
        .map_err(|error| DialError::Cut(error.to_string()))?;
    let options = CallOptions { answer_timeout, ..CallOptions::default() };
    let caller = HttpCaller::new(&address, options).map_err(cut)?;
    let key = generate_key();
    let (path, headers) = ("/".to_owned(), headers(&key)?);
    let call = HttpCall { method: Method::GET, path, headers, body: Bytes::new() };
    let connection = CallConnection::over(stream).await.map_err(cut)?;
    let answer = caller.call(Some(connection), &call).await.map_err(cut)?;
    let is_switching = answer.response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let checked = check(answer.response.headers(), &key, false);
    checked
        .and(if is_switching { Ok(()) } else { Err("It does not switch to a WebSocket.") })
        .map_err(|what| DialError::Violation(what.to_owned()))?;
    let socket = upgrade(answer).await?;
    let (link, bearer) = link();
    let decoder = Decoder::new(Role::Client, max_message_bytes);
    tokio::spawn(run(socket, decoder, silence_timeout, bearer));
    Ok(link)
}

/// Checks that the response is from a WebSocket that speaks AAEP (RFC 6455 §4.1, B.2.1).
fn check(headers: &HeaderMap, key: &str, must_agree: bool) -> Result<(), &'static str> {
    let one = |name: &HeaderName| headers.get(name).and_then(|it| it.to_str().ok());
    let is = |name: &HeaderName, word: &str| {
        let words = one(name).unwrap_or_default().split(',');
        words.map(str::trim).any(|it| it.eq_ignore_ascii_case(word))
    };
    if !is(&UPGRADE, "websocket") || !is(&CONNECTION, "upgrade") {
        return Err("It does not switch to a WebSocket.");
    }
    if one(&SEC_WEBSOCKET_ACCEPT) != Some(&frame::accept_key(key)) {
        return Err("It answers another WebSocket than ours.");
    }
    if headers.contains_key(SEC_WEBSOCKET_EXTENSIONS) {
        return Err("It uses an extension of WebSocket that was not offered.");
    }
    match headers.get(SEC_WEBSOCKET_PROTOCOL) {
        None if must_agree => Err("It does not agree to the subprotocol aaep.v1."),
        Some(other) if other != SUBPROTOCOL => Err("It speaks another subprotocol than aaep.v1."),
        _ => Ok(()),
    }
}

async fn upgrade(answer: CallAnswer) -> Result<UpgradedSocket, DialError> {
    let (response, _carrier) = answer.into_parts();
    let upgraded = hyper::upgrade::on(response).await;
    upgraded.map(TokioIo::new).map_err(|error| DialError::Cut(error.to_string()))
}

/// A sign of life to send.
enum LifeSign {
    Ping,
    Pong(Vec<u8>),
}

async fn run(
    socket: UpgradedSocket,
    decoder: Decoder,
    silence_timeout: Duration,
    mut bearer: Bearer,
) {
    let (reader, writer) = tokio::io::split(socket);
    let mut frame_writer = FrameWriter { writer, is_between_frames: true };
    let inlet = bearer.inlet();
    let (signs, to_send) = mpsc::channel(MAX_WAITING_SIGNS);
    let frame_reader = FrameReader { reader, decoder, signs, silence_timeout };
    // Sending and receiving run at the same time: neither waits for the other.
    let end = tokio::select! {
        heard = frame_reader.hear(&inlet) => {
            if let Some(code) = heard.answer {
                let _ = timeout(LAST_WORDS, frame_writer.close(code)).await;
            }
            Some(heard.end)
        }
        end = frame_writer.speak(&mut bearer, to_send) => end,
    };
    drop(frame_writer);
    if let Some(end) = end {
        bearer.end(end).await;
    }
}

/// How receiving ended.
struct ReceiveEnd {
    end: LinkEnd,
    /// The code of the close frame to answer with, if one is worth sending.
    answer: Option<u16>,
}

struct FrameReader {
    reader: ReadHalf<UpgradedSocket>,
    decoder: Decoder,
    signs: mpsc::Sender<LifeSign>,
    silence_timeout: Duration,
}

impl FrameReader {
    /// Passes messages on. Continues when the subscriber is gone, so that the producer can finish.
    async fn hear(mut self, inlet: &LinkInlet) -> ReceiveEnd {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = match self.read(&mut buffer).await {
                Ok(count) => count,
                Err(why) => return ReceiveEnd { end: LinkEnd::Cut(why), answer: None },
            };
            let mut bytes = buffer.get(..count).unwrap_or_default();
            loop {
                match self.decoder.next(&mut bytes) {
                    Ok(Some(Incoming::Text(text))) => {
                        let _ = inlet.incoming(text).await;
                    }
                    Ok(Some(Incoming::Ping(content))) => {
                        let _ = self.signs.try_send(LifeSign::Pong(content));
                    }
                    Ok(Some(Incoming::Pong(_))) => {}
                    Ok(Some(Incoming::Close { code, reason })) => {
                        let end = LinkEnd::closed(code, reason);
                        // 1005 stands for a missing code, so that the answering close is empty too.
                        return ReceiveEnd { end, answer: Some(code.unwrap_or(1005)) };
                    }
                    Ok(None) => break,
                    Err(violation) => {
                        let end = LinkEnd::Violation(violation.to_string());
                        return ReceiveEnd { end, answer: Some(violation.close_code()) };
                    }
                }
            }
        }
    }

    /// Reads the next bytes. A silent peer is pinged twice.
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        for _ in 0..3 {
            match timeout(self.silence_timeout / 3, self.reader.read(buffer)).await {
                Ok(Ok(0)) => return Err("it ended without a word".to_owned()),
                Ok(Ok(count)) => return Ok(count),
                Ok(Err(error)) => return Err(error.to_string()),
                Err(_) => drop(self.signs.try_send(LifeSign::Ping)),
            }
        }
        Err(super::SILENCE.to_owned())
    }
}

struct FrameWriter {
    writer: WriteHalf<UpgradedSocket>,
    /// Whether the last frame was sent completely. After a partial frame nothing may follow, because it would be
    /// read as its rest.
    is_between_frames: bool,
}

impl FrameWriter {
    /// Sends the subscriber's messages, then closes. Returns `None` if the subscriber is gone.
    async fn speak(
        &mut self,
        bearer: &mut Bearer,
        mut signs: mpsc::Receiver<LifeSign>,
    ) -> Option<LinkEnd> {
        loop {
            let said = tokio::select! {
                message = bearer.outgoing() => {
                    let Some(text) = message else {
                        self.leave().await;
                        return None;
                    };
                    self.send(|mask, into| frame::text(text.as_bytes(), mask, into)).await
                }
                Some(sign) = signs.recv() => match sign {
                    LifeSign::Ping => self.send(|mask, into| frame::ping(b"", mask, into)).await,
                    LifeSign::Pong(content) => {
                        self.send(|mask, into| frame::pong(&content, mask, into)).await
                    }
                },
            };
            if let Err(error) = said {
                // The producer may have said why; that is received first.
                sleep(LAST_WORDS).await;
                return Some(LinkEnd::Cut(error.to_string()));
            }
        }
    }

    /// Closes from our side. The producer reads the remaining messages, and then ends too.
    async fn leave(&mut self) {
        let _ = timeout(LAST_WORDS, self.close(1000)).await;
        sleep(LAST_WORDS).await;
    }

    async fn close(&mut self, code: u16) -> io::Result<()> {
        if self.is_between_frames {
            self.send(|mask, into| frame::close(code, "", mask, into)).await?;
            // Nothing may follow a close frame either.
            self.is_between_frames = false;
        }
        self.writer.shutdown().await
    }

    async fn send(&mut self, write: impl FnOnce(Option<[u8; 4]>, &mut Vec<u8>)) -> io::Result<()> {
        let mut mask = [0; 4];
        getrandom::fill(&mut mask).map_err(io::Error::other)?;
        let mut bytes = Vec::new();
        write(Some(mask), &mut bytes);
        self.is_between_frames = false;
        self.writer.write_all(&bytes).await?;
        self.writer.flush().await?;
        self.is_between_frames = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

    fn answer(change: impl FnOnce(&mut HeaderMap)) -> HeaderMap {
        let fixed = HeaderValue::from_static;
        let mut headers = HeaderMap::from_iter([
            (UPGRADE, fixed("WebSocket")),
            (CONNECTION, fixed("keep-alive, Upgrade")),
            (SEC_WEBSOCKET_ACCEPT, fixed("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")),
            (SEC_WEBSOCKET_PROTOCOL, fixed("aaep.v1")),
        ]);
        change(&mut headers);
        headers
    }

    #[test]
    fn only_the_answer_to_our_own_key_in_our_own_words_will_do() {
        assert_eq!(check(&answer(|_| {}), KEY, true), Ok(()));
        let none = |name: HeaderName| {
            answer(move |it| {
                it.remove(name);
            })
        };
        let other = |name: HeaderName, value| {
            answer(move |it| {
                it.insert(name, HeaderValue::from_static(value));
            })
        };
        for wrong in [
            none(UPGRADE),
            none(CONNECTION),
            none(SEC_WEBSOCKET_ACCEPT),
            none(SEC_WEBSOCKET_PROTOCOL),
            other(UPGRADE, "h2c"),
            other(CONNECTION, "close"),
            other(SEC_WEBSOCKET_ACCEPT, "s3pPLMBiTxaQ9kYGzzhZRbK+xOO="),
            other(SEC_WEBSOCKET_PROTOCOL, "aaep.v2"),
            other(SEC_WEBSOCKET_PROTOCOL, "AAEP.v1"),
            other(SEC_WEBSOCKET_EXTENSIONS, "permessage-deflate"),
        ] {
            assert!(check(&wrong, KEY, true).is_err(), "{wrong:?}");
        }
        assert_eq!(check(&none(SEC_WEBSOCKET_PROTOCOL), KEY, false), Ok(()));
        assert!(check(&other(SEC_WEBSOCKET_PROTOCOL, "aaep.v2"), KEY, false).is_err());
    }
}
