//! A server over HTTP (the transport "streamable HTTP"): each line of the client is one request, and what the server
//! answers becomes lines. Both forms of it are spoken, with sessions and without.
//!
//! Requests begin in the order of their lines. A stream that breaks before its answer is taken up again where the server
//! allows that; otherwise the request is answered with an error, so that nobody waits for ever.

mod exchange;

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use aaep::printable;
use aaep_bridge::mcp::http::HttpHeads;
use aaep_http::{CallOptions, HttpAddress, HttpCall, HttpCaller};
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::END_TIMEOUT;
use super::proxy::McpProxy;
use crate::console::{self, CommandFailure};

/// How many lines wait for the connection.
const MAX_LINES: usize = 256;

/// How long a server may work on one request. The client usually gives up before.
const ANSWER_TIMEOUT: Duration = Duration::from_hours(24);

/// How long a server may take to say that it has a notification or an answer of the client.
const TAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// Which server, and what identifies us there.
pub(super) struct RemoteServer {
    caller: HttpCaller,
}

impl RemoteServer {
    pub(super) fn new(url: &str, token_from: Option<&str>) -> Result<Self, CommandFailure> {
        let shown = printable(url).into_owned();
        let address = HttpAddress::parse(url).map_err(|error| {
            let what = format!("{shown} is not the address of a server: {error}");
            CommandFailure::new(what, "Give one such as https://mcp.example.org/mcp.")
        })?;
        let bearer = token_from.map(|name| {
            std::env::var(name).ok().filter(|it| !it.is_empty()).ok_or_else(|| {
                let what = format!("the environment variable {} is not set", printable(name));
                CommandFailure::new(what, "Set it to the token, or leave out --token-from.")
            })
        });
        let options = CallOptions {
            bearer: bearer.transpose()?,
            answer_timeout: ANSWER_TIMEOUT,
            ..CallOptions::default()
        };
        let caller = HttpCaller::new(&address, options).map_err(|error| {
            let what = format!("cannot use {shown}: {error}");
            CommandFailure::new(what, "Servers on other machines need an address with https.")
        })?;
        Ok(RemoteServer { caller })
    }

    pub(super) fn host(&self) -> String {
        self.caller.address().host().to_owned()
    }
}

/// A connection at work.
pub(super) struct RemoteConnection {
    /// Takes the lines of the client. The connection ends when all senders are gone.
    pub(super) sender: Sender<Vec<u8>>,
    /// Told when the connection has ended.
    pub(super) ended: Receiver<()>,
}

/// Starts the thread that speaks with the server.
pub(super) fn start(
    server: RemoteServer,
    proxy: &Arc<McpProxy>,
) -> Result<RemoteConnection, CommandFailure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
            let what = format!("cannot begin to speak HTTP: {}", console::reason(&error));
            CommandFailure::new(what, "Start it again.")
        })?;
    let (sender, mut lines) = tokio::sync::mpsc::channel::<Vec<u8>>(MAX_LINES);
    let (done, ended) = mpsc::channel();
    let speaker = Arc::new(RemoteSpeaker {
        caller: server.caller,
        proxy: Arc::clone(proxy),
        heads: Mutex::new(HttpHeads::default()),
        open: Mutex::new(BTreeMap::new()),
    });
    thread::spawn(move || {
        runtime.block_on(async move {
            let mut exchanges = JoinSet::new();
            let mut listening = None;
            while let Some(line) = lines.recv().await {
                while exchanges.try_join_next().is_some() {}
                if speaker.take(line, &mut exchanges).await && listening.is_none() {
                    let speaker = Arc::clone(&speaker);
                    listening = Some(tokio::spawn(async move { speaker.listen().await }));
                }
            }
            let rest = async { while exchanges.join_next().await.is_some() {} };
            let _ = timeout(END_TIMEOUT, rest).await;
            if let Some(listening) = listening {
                listening.abort();
            }
            let _ = timeout(END_TIMEOUT, speaker.end_session()).await;
        });
        let _ = done.send(());
    });
    Ok(RemoteConnection { sender, ended })
}

/// What speaks with the server.
struct RemoteSpeaker {
    caller: HttpCaller,
    proxy: Arc<McpProxy>,
    heads: Mutex<HttpHeads>,
    /// Requests that were not answered yet and can be stopped by closing their stream.
    open: Mutex<BTreeMap<String, AbortHandle>>,
}

impl RemoteSpeaker {
    fn heads(&self) -> MutexGuard<'_, HttpHeads> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, AbortHandle>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a line. Returns whether the server may have something to say by itself from now on.
    async fn take(self: &Arc<Self>, line: Vec<u8>, exchanges: &mut JoinSet<()>) -> bool {
        let message: Value = serde_json::from_slice(line.trim_ascii()).unwrap_or(Value::Null);
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        if method == "notifications/cancelled" {
            let stopped = self.open().remove(&message["params"]["requestId"].to_string());
            if let Some(exchange) = stopped {
                // Without a session, closing the stream is what stops a request.
                exchange.abort();
                return false;
            }
        }
        let call = self.call(Method::POST, &message, Bytes::from(line));
        let is_request = !method.is_empty() && !message["id"].is_null();
        if !is_request && !message.is_array() {
            self.tell(&call, &method).await;
            return method == "notifications/initialized";
        }
        let id = message["id"].clone();
        if method == "initialize" {
            self.exchange(&call, &id, false).await;
            return false;
        }
        let speaker = Arc::clone(self);
        let is_stateless = message
            .pointer("/params/_meta")
            .is_some_and(|it| it.get("io.modelcontextprotocol/protocolVersion").is_some());
        let key = id.to_string();
        let own_key = key.clone();
        let exchange = exchanges.spawn(async move {
            speaker.exchange(&call, &id, is_stateless).await;
            speaker.open().remove(&own_key);
        });
        if is_stateless && !exchange.is_finished() {
            self.open().insert(key, exchange);
        }
        false
    }

    fn call(&self, method: Method, message: &Value, body: Bytes) -> HttpCall {
        let mut headers = HeaderMap::new();
        let accepts = if method == Method::POST {
            "application/json, text/event-stream"
        } else {
            "text/event-stream"
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accepts));
        if method == Method::POST {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in self.heads().of(message) {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                headers.insert(name, value);
            }
        }
        let path = self.caller.address().path_and_query().to_owned();
        HttpCall { method, path, headers, body }
    }

    /// Sends what has no answer, so that what comes next finds that the server has it.
    async fn tell(&self, call: &HttpCall, method: &str) {
        let sent = timeout(TAKE_TIMEOUT, self.caller.call(None, call)).await;
        let why = match sent {
            Ok(Ok(answer)) if answer.response.status().is_success() => return,
            Ok(Ok(answer)) => {
                format!("it answered with status {}", answer.response.status().as_u16())
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it took too long".to_owned(),
        };
        let what = if method.is_empty() { "an answer" } else { method };
        console::say(&format!("The server did not take {}: {why}.", printable(what)));
    }

    /// Says that the session is no longer needed.
    async fn end_session(&self) {
        if self.heads().session().is_some() {
            let call = self.call(Method::DELETE, &Value::Null, Bytes::new());
            // The server may keep it, and says so with an error.
            let _ = self.caller.call(None, &call).await;
        }
    }
}
