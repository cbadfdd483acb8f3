//! A producer that does exactly what a test says, byte by byte, and a link to it.

use std::future::Future;
use std::time::Duration;

use aaep_transport::link::{DialError, DialOptions, Link, LinkEnd, Target, dial};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long anything may take before a test fails. Nothing is asserted about less.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A message of the greatest length.
pub(crate) fn long_message() -> String {
    message_of(1 << 20)
}

pub(crate) fn message_of(bytes: usize) -> String {
    let around = r#"{"type":"a:b","text":""}"#.len();
    format!(r#"{{"type":"a:b","text":"{}"}}"#, "x".repeat(bytes - around))
}

/// A port of this machine on which a test listens.
pub(crate) struct Producer {
    listener: TcpListener,
}

impl Producer {
    pub(crate) async fn new() -> Self {
        Producer { listener: TcpListener::bind("127.0.0.1:0").await.expect("a port") }
    }

    pub(crate) fn port(&self) -> u16 {
        self.listener.local_addr().expect("an address").port()
    }

    pub(crate) fn target(&self, scheme: &str, path: &str) -> Target {
        Target::parse(&format!("{scheme}://127.0.0.1:{}{path}", self.port())).expect("a target")
    }

    pub(crate) async fn accept(&self) -> Peer<TcpStream> {
        let accepted = timeout(PATIENCE, self.listener.accept()).await.expect("someone comes");
        Peer { stream: accepted.expect("a connection").0, read: Vec::new() }
    }

    /// Whether no connection waits to be accepted.
    pub(crate) async fn is_alone(&self) -> bool {
        timeout(Duration::from_millis(50), self.listener.accept()).await.is_err()
    }
}

/// The far end of a connection.
pub(crate) struct Peer<S> {
    pub(crate) stream: S,
    read: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    #[cfg(unix)]
    pub(crate) fn new(stream: S) -> Self {
        Peer { stream, read: Vec::new() }
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let written = timeout(PATIENCE, self.stream.write_all(bytes.as_ref())).await;
        written.expect("it is read").expect("writes");
    }

    /// Reads up to and with these bytes.
    pub(crate) async fn until(&mut self, end: &str) -> String {
        loop {
            let found = self.read.windows(end.len()).position(|it| it == end.as_bytes());
            if let Some(at) = found {
                let rest = self.read.split_off(at + end.len());
                let text = std::mem::replace(&mut self.read, rest);
                return String::from_utf8(text).expect("text");
            }
            assert!(self.more().await > 0, "it ended before {end:?}");
        }
    }

    /// Reads this many bytes.
    pub(crate) async fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.read.len() < count {
            assert!(self.more().await > 0, "it ended early");
        }
        let rest = self.read.split_off(count);
        std::mem::replace(&mut self.read, rest)
    }

    /// Reads to the end, which may be a reset.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.more().await > 0 {}
        std::mem::take(&mut self.read)
    }

    async fn more(&mut self) -> usize {
        let mut bytes = [0; 4096];
        let read = timeout(PATIENCE, self.stream.read(&mut bytes)).await.expect("bytes come");
        let count = read.unwrap_or(0);
        self.read.extend_from_slice(&bytes[..count]);
        count
    }

    /// The head and the body of a request.
    pub(crate) async fn request(&mut self) -> (String, String) {
        let head = self.until("\r\n\r\n").await;
        let length = header(&head, "content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
        let body = self.exactly(length).await;
        (head, String::from_utf8(body).expect("text"))
    }

    pub(crate) async fn answer(&mut self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n");
        self.write(head + body).await;
    }
}

/// The value of a header.
pub(crate) fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Dials while the test plays the producer.
pub(crate) fn dialling(
    target: &Target,
    options: DialOptions,
) -> JoinHandle<Result<Link, DialError>> {
    let target = target.clone();
    tokio::spawn(async move { dial(&target, &options).await })
}

pub(crate) async fn dialled(
    dialling: JoinHandle<Result<Link, DialError>>,
) -> Result<Link, DialError> {
    patiently(dialling).await.expect("no panic")
}

pub(crate) async fn patiently<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it comes to an end")
}

pub(crate) async fn heard(link: &mut Link) -> Result<String, LinkEnd> {
    patiently(link.receiver.next()).await
}

/// Why a link ends. Skips all messages before.
pub(crate) async fn end(link: &mut Link) -> LinkEnd {
    loop {
        if let Err(end) = heard(link).await {
            return end;
        }
    }
}

/// Options with little patience, for producers that fall silent.
pub(crate) fn impatient() -> DialOptions {
    let soon = Duration::from_millis(300);
    DialOptions { answer_timeout: soon, silence_timeout: soon, ..DialOptions::default() }
}
