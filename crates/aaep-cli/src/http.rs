//! Requests to a hub, for commands that wait for one answer: they block, and their whole exchange has one time limit.
//!
//! Each request has a small runtime of its own on this thread. Hooks of agents run these commands, and every
//! millisecond counts (`docs/decisions/one-http-client.md`). Plain HTTP never leaves this machine (ruling 28).

use std::fmt;
use std::io;
#[cfg(unix)]
use std::path::PathBuf;
use std::time::Duration;

use aaep_http::{
    AnswerBody, CallAnswer, CallConnection, CallError, CallOptions, HttpAddress, HttpCall,
    HttpCaller, is_token,
};
use hyper::Method;
use hyper::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, timeout_at};

/// The largest body of an answer that is read as a whole, in bytes.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// How often a request that changes nothing is sent at most, if its connection is closed without an answer.
const MAX_TRIES: u32 = 4;

/// The pause before it is sent again.
const TRY_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy)]
pub(crate) struct HubRequest<'r> {
    pub(crate) method: &'static str,
    /// The path with its query, from the first slash on.
    pub(crate) path: &'r str,
    /// Content type and body.
    pub(crate) body: Option<(&'static str, &'r [u8])>,
    /// How long the whole exchange may take.
    pub(crate) timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HubAnswer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl HubAnswer {
    /// The body, if it is valid JSON.
    pub(crate) fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Whether the request succeeded.
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// No server accepts the connection.
    NotReached(io::Error),
    /// Plain HTTP would leave this machine.
    PlainHttp,
    /// TLS could not be set up.
    Tls(String),
    /// The connection ended or took too long before the answer was complete.
    CutOff(io::Error),
    /// The answer is not HTTP, or exceeds a limit.
    NotHttp(&'static str),
}

impl NoAnswer {
    /// Whether the same request may succeed later.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self, NoAnswer::NotReached(_) | NoAnswer::CutOff(_))
    }

    fn too_slow() -> Self {
        NoAnswer::CutOff(io::ErrorKind::TimedOut.into())
    }
}

impl From<CallError> for NoAnswer {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Lookup(error) | CallError::Connect(error) => NoAnswer::NotReached(error),
            CallError::NoAddress => {
                NoAnswer::NotReached(io::Error::new(io::ErrorKind::NotFound, "no such host"))
            }
            CallError::TooSlowToConnect => NoAnswer::NotReached(io::ErrorKind::TimedOut.into()),
            CallError::TooSlowToAnswer => NoAnswer::too_slow(),
            CallError::PlainHttp => NoAnswer::PlainHttp,
            CallError::Tls(_) | CallError::NoRoots => NoAnswer::Tls(error.to_string()),
            CallError::CutOff(error) => NoAnswer::CutOff(io_error(&error)),
            CallError::NotHttp(_) => NoAnswer::NotHttp("what answers there does not speak HTTP"),
            CallError::Strange(why) => NoAnswer::NotHttp(why),
            CallError::TooLarge => NoAnswer::NotHttp("the answer is larger than is taken"),
            CallError::Token | CallError::Request => {
                NoAnswer::NotHttp("the request cannot be written in HTTP")
            }
        }
    }
}

/// Why a connection broke, as the operating system says it.
fn io_error(error: &hyper::Error) -> io::Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(it) = cause {
        if let Some(broken) = it.downcast_ref::<io::Error>() {
            return broken.kind().into();
        }
        cause = it.source();
    }
    io::ErrorKind::UnexpectedEof.into()
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAnswer::NotReached(error) | NoAnswer::CutOff(error) => {
                f.write_str(&crate::console::reason(error))
            }
            NoAnswer::PlainHttp => f.write_str("plain HTTP does not leave this machine"),
            NoAnswer::Tls(reason) => f.write_str(&aaep::printable(reason)),
            NoAnswer::NotHttp(reason) => f.write_str(reason),
        }
    }
}

/// A client for one server.
#[derive(Clone)]
pub(crate) struct HubClient {
    address: HttpAddress,
    /// The server's socket on this machine, if it is reached by that.
    #[cfg(unix)]
    socket: Option<PathBuf>,
    /// The secret for `Authorization: Bearer`. Visible ASCII only.
    token: Option<String>,
}

impl fmt::Debug for HubClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token is a secret.
        f.debug_struct("HubClient").field("origin", &self.origin()).finish_non_exhaustive()
    }
}

impl HubClient {
    /// A client for the server at this address. A token that is not visible ASCII is ignored.
    pub(crate) fn new(address: HttpAddress, token: Option<String>) -> Self {
        HubClient {
            address,
            #[cfg(unix)]
            socket: None,
            token: token.filter(|it| is_token(it)),
        }
    }

    /// A client for the server on a local socket.
    #[cfg(unix)]
    pub(crate) fn local(path: PathBuf, token: Option<String>) -> Self {
        let address = HttpAddress::parse("http://localhost").expect("a constant of the right form");
        HubClient { socket: Some(path), ..HubClient::new(address, token) }
    }

    /// The server's address, for people.
    pub(crate) fn origin(&self) -> String {
        #[cfg(unix)]
        if let Some(path) = &self.socket {
            return format!("unix:{}", path.display());
        }
        self.address.origin()
    }

    /// Sends a request and reads the whole answer.
    pub(crate) fn send(&self, request: &HubRequest<'_>) -> Result<HubAnswer, NoAnswer> {
        let until = Instant::now() + request.timeout;
        let runtime = runtime()?;
        let answer = runtime.block_on(async {
            let exchange = async {
                let answer = self.call(request).await?;
                let status = answer.response.status().as_u16();
                Ok(HubAnswer { status, body: answer.body().whole(MAX_BODY_BYTES).await? })
            };
            timeout_at(until, exchange).await.unwrap_or_else(|_| Err(NoAnswer::too_slow()))
        });
        // A name lookup that never ends must not block the program.
        runtime.shutdown_background();
        answer
    }

    /// Sends a request whose answer is read piece by piece.
    pub(crate) fn stream(&self, request: &HubRequest<'_>) -> Result<BodyPieces, NoAnswer> {
        let until = Instant::now() + request.timeout;
        let runtime = runtime()?;
        let answer = runtime.block_on(async {
            let answer = timeout_at(until, self.call(request)).await;
            answer.unwrap_or_else(|_| Err(NoAnswer::too_slow()))
        })?;
        let status = answer.response.status().as_u16();
        Ok(BodyPieces { status, body: answer.body(), until, runtime })
    }

    /// Sends a request, and again if its connection was closed before any answer and it changes nothing.
    async fn call(&self, request: &HubRequest<'_>) -> Result<CallAnswer, NoAnswer> {
        let mut first = match self.call_once(request).await {
            Err(NoAnswer::CutOff(error)) if request.method == "GET" => NoAnswer::CutOff(error),
            called => return called,
        };
        for _ in 1..MAX_TRIES {
            tokio::time::sleep(TRY_PAUSE).await;
            match self.call_once(request).await {
                Err(NoAnswer::CutOff(error)) => first = NoAnswer::CutOff(error),
                Err(_) => break,
                answered => return answered,
            }
        }
        Err(first)
    }

    async fn call_once(&self, request: &HubRequest<'_>) -> Result<CallAnswer, NoAnswer> {
        let options = CallOptions {
            bearer: self.token.clone(),
            connect_timeout: request.timeout,
            answer_timeout: request.timeout,
            ..CallOptions::default()
        };
        let caller = HttpCaller::new(&self.address, options)?;
        #[cfg(unix)]
        let on = match &self.socket {
            Some(path) => {
                let stream = aaep_transport::local::connect(path).await;
                Some(CallConnection::over(stream.map_err(NoAnswer::NotReached)?).await?)
            }
            None => None,
        };
        #[cfg(not(unix))]
        let on: Option<CallConnection> = None;
        let json = HeaderValue::from_static("application/json");
        let close = HeaderValue::from_static("close");
        let mut headers = HeaderMap::from_iter([(ACCEPT, json), (CONNECTION, close)]);
        if let Some((content_type, _)) = request.body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        let prefix = self.address.path().trim_end_matches('/');
        let call = HttpCall {
            method: Method::from_bytes(request.method.as_bytes())
                .map_err(|_| CallError::Request)?,
            path: format!("{prefix}{}", request.path),
            headers,
            body: request.body.map_or(&[][..], |(_, body)| body).to_vec().into(),
        };
        Ok(caller.call(on, &call).await?)
    }
}

fn runtime() -> Result<Runtime, NoAnswer> {
    Builder::new_current_thread().enable_all().build().map_err(NoAnswer::NotReached)
}

/// An answer whose body has no length limit.
pub(crate) struct BodyPieces {
    status: u16,
    body: AnswerBody,
    until: Instant,
    /// Moves the bytes while a piece is awaited. Dropped last.
    runtime: Runtime,
}

impl BodyPieces {
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// The next bytes of the body if they arrive in this time; `None` at its end.
    pub(crate) fn next_within(&mut self, time: Duration) -> Result<Option<Vec<u8>>, NoAnswer> {
        self.until = Instant::now() + time;
        self.next()
    }

    /// The next bytes of the body as they arrive; `None` at its end.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, NoAnswer> {
        let BodyPieces { body, until, runtime, .. } = self;
        let next = runtime.block_on(async { timeout_at(*until, body.next()).await });
        match next {
            Ok(Some(Ok(bytes))) => Ok(Some(bytes.into())),
            Ok(Some(Err(error))) => Err(error.into()),
            Ok(None) => Ok(None),
            Err(_) => Err(NoAnswer::too_slow()),
        }
    }
}

#[cfg(test)]
mod tests;
