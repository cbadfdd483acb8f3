//! The server that one would write by hand: axum, a broadcast channel, and a stream or a WebSocket
//! for each subscriber.

use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use tokio::sync::broadcast::{self, Sender};
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::{Stream, StreamExt};

use super::part::HelperProcess;
use super::server::FanoutServer;
use super::wire::{MeasuredAddress, ServerKind};
use super::{BURST, FanoutSample};
use crate::process::ProcessUsage;
use crate::serve::HttpConnection;

/// The server as a child of this process.
pub(super) struct AxumServer {
    helper: HelperProcess,
    address: SocketAddr,
    publisher: HttpConnection,
    event: String,
}

impl AxumServer {
    pub(super) fn start(sample: &FanoutSample) -> Result<Self, String> {
        let mut helper = HelperProcess::start(&["by-hand"])?;
        let address =
            helper.line()?.parse().map_err(|_| "the helper did not say its address".to_owned())?;
        let publisher = HttpConnection::open(address)?;
        Ok(AxumServer { helper, address, publisher, event: sample.json.clone() })
    }
}

impl FanoutServer for AxumServer {
    fn kind(&self) -> ServerKind {
        ServerKind::Axum
    }

    fn address(&self) -> MeasuredAddress {
        MeasuredAddress::Tcp(self.address)
    }

    /// Opens a new connection, because one that was idle for a while may be closed.
    fn begin(&mut self) -> Result<(), String> {
        self.publisher = HttpConnection::open(self.address)?;
        Ok(())
    }

    fn tell(&mut self, events: usize) -> Result<(), String> {
        let body = vec![self.event.as_str(); events].join("\n");
        self.publisher.post("/publish", "application/x-ndjson", &body).map(drop)
    }

    fn usage(&self) -> Result<ProcessUsage, String> {
        self.helper.usage()
    }
}

/// Runs the server, which prints its address.
pub(super) fn serve() -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let runtime = tokio::runtime::Runtime::new().map_err(failed)?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let mut out = std::io::stdout();
        let address = listener.local_addr().map_err(failed)?;
        out.write_all(format!("{address}\n").as_bytes())
            .and_then(|()| out.flush())
            .map_err(failed)?;
        let (sender, _) = broadcast::channel::<String>(BURST * 16);
        let routes = Router::new()
            .route("/publish", post(publish))
            .route("/events", get(events))
            .route("/ws", get(web_socket))
            .with_state(sender);
        axum::serve(listener, routes).await.map_err(failed)
    })
}

async fn publish(State(sender): State<Sender<String>>, body: String) {
    for line in body.lines() {
        // Sending fails if no subscriber is connected, which is fine.
        let _ = sender.send(line.to_owned());
    }
}

async fn events(
    State(sender): State<Sender<String>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let heard = BroadcastStream::new(sender.subscribe()).filter_map(Result::ok);
    Sse::new(heard.map(|text| Ok(Event::default().data(text))))
}

async fn web_socket(State(sender): State<Sender<String>>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(|socket| tell(socket, sender))
}

/// Sends everything to a subscriber until it disconnects.
async fn tell(mut socket: WebSocket, sender: Sender<String>) {
    let mut heard = sender.subscribe();
    loop {
        tokio::select! {
            text = heard.recv() => {
                let Ok(text) = text else { return };
                if socket.send(Message::Text(text.into())).await.is_err() {
                    return;
                }
            }
            said = socket.recv() => {
                if !matches!(said, Some(Ok(_))) {
                    return;
                }
            }
        }
    }
}
