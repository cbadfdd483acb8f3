//! The server: `/hello` is answered by hyper, `/events` and `/ws` are taken over by a wire.

use std::convert::Infallible;
use std::future::ready;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use aaep_transport::packet::{Protocol, WirePacket};
use aaep_transport::steal::{
    Framing, Loot, PendingBody, ServeEnd, Source, Stolen, Thief, serve_connection, upgraded,
};
use aaep_transport::websocket;
use aaep_transport::wire::{
    Command, ConnectionKey, Flow, Reports, Wire, WireHandle, WireReport, WireSettings,
};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, header};
use tokio::runtime::Runtime;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    pub(crate) runtime: Runtime,
    pub(crate) wire: Wire,
    pub(crate) reports: Receiver<WireReport>,
    /// How serving each connection ended.
    pub(crate) ends: Receiver<Result<ServeEnd, String>>,
    ended: Sender<Result<ServeEnd, String>>,
    /// Each connection that a wire has taken over.
    pub(crate) taken: Receiver<ConnectionKey>,
    took: Sender<ConnectionKey>,
}

struct Recorder(Sender<WireReport>);

impl Reports for Recorder {
    fn report(&mut self, report: WireReport) -> Flow {
        let _ = self.0.send(report);
        Flow::Continue
    }
}

/// A short body, or one that never ends.
enum Answer {
    Words(Option<Bytes>),
    Pending(PendingBody),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Words(words) => {
                std::task::Poll::Ready(words.take().map(|words| Ok(Frame::data(words))))
            }
            Self::Pending(body) => std::pin::Pin::new(body).poll_frame(context),
        }
    }
}

impl Server {
    pub(crate) fn new() -> Self {
        let (sender, reports) = mpsc::channel();
        let (ended, ends) = mpsc::channel();
        let (took, taken) = mpsc::channel();
        let wire = Wire::start(WireSettings::default(), Recorder(sender)).expect("a loop");
        let runtime = Runtime::new().expect("a runtime");
        Self { runtime, wire, reports, ends, ended, taken, took }
    }

    /// Listens on a port and serves every connection.
    pub(crate) fn listen(&self) -> SocketAddr {
        let listener = self.runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (handle, took, ended) = self.parts();
        self.runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, handle.clone(), took.clone(), ended.clone()));
            }
        });
        address
    }

    /// Serves one connection.
    pub(crate) fn serve(&self, source: impl Source) {
        let (handle, took, ended) = self.parts();
        self.runtime.spawn(serve(source, handle, took, ended));
    }

    fn parts(&self) -> (WireHandle, Sender<ConnectionKey>, Sender<Result<ServeEnd, String>>) {
        (self.wire.handle().clone(), self.took.clone(), self.ended.clone())
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let client = TcpStream::connect(self.listen()).expect("connects");
        client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        client
    }

    pub(crate) fn next_taken(&self) -> ConnectionKey {
        self.taken.recv_timeout(PATIENCE).expect("taken over")
    }

    pub(crate) fn next_end(&self) -> Result<ServeEnd, String> {
        self.ends.recv_timeout(PATIENCE).expect("an end")
    }

    pub(crate) fn send(&self, connection: ConnectionKey, json: &'static str) {
        let packet = Arc::new(WirePacket::new("evt", json));
        self.wire.handle().send(vec![Command::Send { connection, packet }]).expect("runs");
    }
}

async fn serve(
    source: impl Source,
    handle: WireHandle,
    took: Sender<ConnectionKey>,
    ended: Sender<Result<ServeEnd, String>>,
) {
    let service = service_fn(|request| ready(Ok::<_, Infallible>(answer(request, &handle, &took))));
    let end = serve_connection(source, service).await.map_err(|error| error.to_string());
    let _ = ended.send(end);
}

fn answer(
    request: Request<Incoming>,
    handle: &WireHandle,
    took: &Sender<ConnectionKey>,
) -> Response<Answer> {
    let (handle, took) = (handle.clone(), took.clone());
    let thief = request.extensions().get::<Thief>().expect("every request has one").clone();
    match request.uri().path() {
        "/events" => {
            let (body, stolen) = thief.steal();
            tokio::spawn(take_over(stolen, handle, took));
            Response::builder()
                .header(header::CONTENT_TYPE, "text/event-stream")
                .header(header::CACHE_CONTROL, "no-store")
                .body(Answer::Pending(body))
                .expect("a response")
        }
        "/ws" => {
            let key = request.headers()["sec-websocket-key"].to_str().expect("text").to_owned();
            tokio::spawn(async move {
                let upgrade = hyper::upgrade::on(request).await.expect("upgraded");
                let (socket, read_ahead) = upgraded(upgrade).expect("ours");
                let connection = handle.new_key();
                let protocol = Protocol::WebSocket;
                let add = Command::Add { connection, socket, protocol, read_ahead };
                handle.send(vec![add]).expect("runs");
                let _ = took.send(connection);
            });
            Response::builder()
                .status(StatusCode::SWITCHING_PROTOCOLS)
                .header(header::UPGRADE, "websocket")
                .header(header::CONNECTION, "upgrade")
                .header("sec-websocket-accept", websocket::accept_key(&key))
                .body(Answer::Words(None))
                .expect("a response")
        }
        _ => Response::new(Answer::Words(Some(Bytes::from_static(b"hello")))),
    }
}

async fn take_over(stolen: Stolen, handle: WireHandle, took: Sender<ConnectionKey>) {
    let Ok(Loot { socket, read_ahead, framing }) = stolen.await else { return };
    let protocol = match framing {
        Framing::Chunked => Protocol::SseChunked { named: true },
        Framing::Plain => Protocol::SsePlain { named: true },
    };
    let connection = handle.new_key();
    handle.send(vec![Command::Add { connection, socket, protocol, read_ahead }]).expect("runs");
    let _ = took.send(connection);
}

pub(crate) fn ask(client: &mut impl Write, request: &str) {
    client.write_all(request.as_bytes()).expect("takes bytes");
}

/// The head of a response, byte by byte, so that nothing behind it is read.
pub(crate) fn read_head(client: &mut impl Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut one = [0];
        client.read_exact(&mut one).expect("a head");
        head.push(one[0]);
    }
    String::from_utf8(head).expect("text")
}

pub(crate) fn expect_bytes(client: &mut impl Read, expected: &str) {
    let mut bytes = vec![0; expected.len()];
    client.read_exact(&mut bytes).expect("bytes come");
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
}

/// What an event of [`Server::send`] with `{}` looks like in chunks.
pub(crate) const CHUNKED_EVENT: &str = "24\r\nevent: aaep.event\nid: evt\ndata: {}\n\n\r\n";
