//! What one would write by hand: axum, a broadcast channel, and a stream or a WebSocket for each subscriber.

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

use super::part::Helper;
use super::server::Server;
use super::wire::{Address, Kind};
use super::{BURST, Sample};
use crate::process::Usage;
use crate::serve::Connection;

/// The server as a child of this process.
pub(super) struct ByHand {
    helper: Helper,
    address: SocketAddr,
    publisher: Connection,
    event: String,
}

impl ByHand {
    pub(super) fn start(sample: &Sample) -> Result<Self, String> {
        let mut helper = Helper::start(&["by-hand"])?;
        let address = helper.line()?.parse().map_err(|_| "no address".to_owned())?;
        let publisher = Connection::open(address)?;
        Ok(ByHand { helper, address, publisher, event: sample.json.clone() })
    }
}

impl Server for ByHand {
    fn kind(&self) -> Kind {
        Kind::Axum
    }

    fn address(&self) -> Address {
        Address::Tcp(self.address)
    }

    /// Another connection, because one on which nothing was said for a while may be over.
    fn begin(&mut self) -> Result<(), String> {
        self.publisher = Connection::open(self.address)?;
        Ok(())
    }

    fn tell(&mut self, events: usize) -> Result<(), String> {
        let body = vec![self.event.as_str(); events].join("\n");
        self.publisher.post("/publish", "application/x-ndjson", &body).map(drop)
    }

    fn usage(&self) -> Result<Usage, String> {
        self.helper.usage()
    }
}

/// The server itself, which says where it is.
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
        // Nobody may be there to hear it.
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

/// Tells a subscriber everything until it is gone.
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
