//! HTTP/1.1 requests to one host, each on a connection of its own, so that a request never meets a dead
//! connection, which would leave unknown whether it arrived.
//!
//! TLS is used except on this machine. One redirect is followed, within the host. Nothing is sent twice.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, HOST, HeaderMap, HeaderValue, LOCATION, USER_AGENT,
};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::dial::{DialError, DialOptions};
use super::place::NetworkPlace;

/// The largest response head, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The largest response body that is read to learn the reason of a refusal.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// How many addresses of a host are tried.
const MAX_ADDRESSES: usize = 8;

/// How many characters of a refusal are repeated.
const MAX_REASON_CHARS: usize = 500;

/// Sends requests to one host.
pub(super) struct HttpCaller {
    place: NetworkPlace,
    authorization: Option<HeaderValue>,
    tls: Option<TlsConnector>,
    options: DialOptions,
}

/// A request.
pub(super) struct HttpCall {
    pub(super) method: Method,
    /// Includes the query.
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

/// A connection on which nothing was requested yet.
pub(super) struct CallConnection {
    sender: http1::SendRequest<String>,
    carrier: ConnectionTask,
}

/// A response whose body may still be arriving.
pub(super) struct CallAnswer {
    pub(super) response: Response<Incoming>,
    carrier: ConnectionTask,
}

/// The body of a response, as it arrives.
pub(super) struct AnswerBody {
    body: Incoming,
    _carrier: ConnectionTask,
}

/// The task that moves the bytes of a connection. It is stopped when its owner is dropped.
pub(super) struct ConnectionTask(JoinHandle<()>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

impl HttpCaller {
    pub(super) fn new(place: &NetworkPlace, options: &DialOptions) -> Result<Self, DialError> {
        if !place.is_tls() && !place.is_loopback() && !options.insecure_allow_plain_http {
            return Err(DialError::PlainHttp(place.authority()));
        }
        let authorization = options.bearer.as_deref().map(authorization).transpose()?;
        let tls = place.is_tls().then(|| connector(options)).transpose()?;
        Ok(HttpCaller { place: place.clone(), authorization, tls, options: options.clone() })
    }

    /// A caller that negotiates HTTP/2 if it uses TLS; its user then speaks HTTP/2 on the stream.
    #[cfg(feature = "grpc")]
    pub(super) fn of_http2(place: &NetworkPlace, options: &DialOptions) -> Result<Self, DialError> {
        let mut caller = HttpCaller::new(place, options)?;
        if let Some(connector) = &caller.tls {
            let mut config = ClientConfig::clone(connector.config());
            config.alpn_protocols = vec![crate::grpc::ALPN.to_vec()];
            caller.tls = Some(TlsConnector::from(Arc::new(config)));
        }
        Ok(caller)
    }

    /// The header that identifies us.
    #[cfg(feature = "grpc")]
    pub(super) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    pub(super) fn place(&self) -> &NetworkPlace {
        &self.place
    }

    /// Connects to the host.
    pub(super) async fn connect(&self) -> Result<CallConnection, DialError> {
        let connected = timeout(self.options.connect_timeout, self.connect_slowly()).await;
        connected.unwrap_or(Err(DialError::TooSlow))
    }

    /// A stream of bytes to the host, encrypted unless the address is plain HTTP.
    pub(super) async fn stream(&self) -> Result<Box<dyn ByteStream>, DialError> {
        let stream = self.reach().await?;
        let _ = stream.set_nodelay(true);
        let Some(connector) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(self.place.host().to_owned())
            .map_err(|error| DialError::Tls(error.to_string()))?;
        let secured = connector.connect(name, stream).await;
        Ok(Box::new(secured.map_err(|error| DialError::Tls(error.to_string()))?))
    }

    async fn connect_slowly(&self) -> Result<CallConnection, DialError> {
        let stream = self.stream().await?;
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            .handshake::<_, String>(TokioIo::new(stream))
            .await
            .map_err(|error| cut(&error))?;
        let carrier = tokio::spawn(async move {
            // The receiver of the bytes learns how the connection ended.
            let _ = connection.with_upgrades().await;
        });
        Ok(CallConnection { sender, carrier: ConnectionTask(carrier) })
    }

    async fn reach(&self) -> Result<TcpStream, DialError> {
        let unreachable = |why: String| {
            let place = self.place.authority();
            DialError::Unreachable { place, why }
        };
        let found = tokio::net::lookup_host((self.place.host(), self.place.port())).await;
        // A host that is called localhost but resolves elsewhere gets nothing in clear text.
        let stays_here = !self.place.is_tls() && !self.options.insecure_allow_plain_http;
        let peers: Vec<SocketAddr> = found
            .map_err(|error| unreachable(error.to_string()))?
            .filter(|peer| !stays_here || peer.ip().is_loopback())
            .take(MAX_ADDRESSES)
            .collect();
        let mut last = unreachable("the host has no address that may be called".to_owned());
        for peer in peers {
            // An address that never answers must leave time for the next one.
            let patience = self.options.connect_timeout / 3;
            match timeout(patience, TcpStream::connect(peer)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = unreachable(error.to_string()),
                Err(_) => last = DialError::TooSlow,
            }
        }
        Err(last)
    }

    /// Sends a request, on this connection or on a new one, and follows one redirect.
    pub(super) async fn call(
        &self,
        on: Option<CallConnection>,
        call: &HttpCall,
    ) -> Result<CallAnswer, DialError> {
        let answer = self.call_once(on, call, &call.path).await?;
        if answer.response.status() != StatusCode::TEMPORARY_REDIRECT {
            return Ok(answer);
        }
        let location = answer.response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
        let to =
            location.and_then(|location| self.place.pointed_to(location)).ok_or_else(|| {
                let what = "It sends us to another host, which is not followed.";
                DialError::Violation(what.to_owned())
            })?;
        let answer = self.call_once(None, call, to.path_and_query()).await?;
        if answer.response.status() == StatusCode::TEMPORARY_REDIRECT {
            return Err(DialError::Violation("It redirects without end.".to_owned()));
        }
        Ok(answer)
    }

    async fn call_once(
        &self,
        on: Option<CallConnection>,
        call: &HttpCall,
        path: &str,
    ) -> Result<CallAnswer, DialError> {
        let request = self.request(call, path)?;
        let CallConnection { mut sender, carrier } = match on {
            Some(connected) => connected,
            None => self.connect().await?,
        };
        let answer = timeout(self.options.answer_timeout, sender.send_request(request)).await;
        let response = answer.map_err(|_| DialError::TooSlow)?.map_err(|error| cut(&error))?;
        Ok(CallAnswer { response, carrier })
    }

    fn request(&self, call: &HttpCall, path: &str) -> Result<Request<String>, DialError> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(path)
            .header(HOST, self.place.authority())
            .header(ACCEPT_ENCODING, "identity")
            .header(USER_AGENT, concat!("aaep/", env!("CARGO_PKG_VERSION")))
            .body(call.body.clone())
            .map_err(|_| DialError::Violation("Its address cannot be asked for.".to_owned()))?;
        let headers = request.headers_mut();
        headers.extend(call.headers.clone());
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }

    /// Reads the whole body of a response, within a limit.
    pub(super) async fn read(
        &self,
        answer: CallAnswer,
        max_bytes: usize,
    ) -> Result<String, DialError> {
        let whole = timeout(self.options.answer_timeout, answer.content().whole(max_bytes)).await;
        whole.unwrap_or(Err(DialError::TooSlow))
    }

    /// The error for a response that is not a success.
    pub(super) async fn refusal(&self, answer: CallAnswer) -> DialError {
        let status = answer.response.status();
        // A body that cannot be read counts as empty.
        let body = self.read(answer, MAX_REFUSAL_BYTES).await.unwrap_or_default();
        let said: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        refused(status, &said).unwrap_or_else(|| {
            let reason = reason(&said).unwrap_or_default();
            DialError::Status { status: status.as_u16(), reason }
        })
    }
}

/// The refusal that a status means: the caller is not let in.
pub(super) fn refused(status: StatusCode, said: &serde_json::Value) -> Option<DialError> {
    let is_refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
    is_refused.then(|| {
        let reason = reason(said);
        DialError::Refused {
            reason: reason.unwrap_or_else(|| format!("Status {}.", status.as_u16())),
        }
    })
}

/// The words of a refusal, in our form or in that of the specification.
pub(super) fn reason(said: &serde_json::Value) -> Option<String> {
    let words = ["message", "reason_message"].iter().find_map(|name| said.get(*name)?.as_str());
    words.map(|words| words.chars().take(MAX_REASON_CHARS).collect())
}

impl CallAnswer {
    /// The response, and the task that moves its bytes, which must live as long as they are needed.
    pub(super) fn into_parts(self) -> (Response<Incoming>, ConnectionTask) {
        (self.response, self.carrier)
    }

    pub(super) fn content(self) -> AnswerBody {
        AnswerBody { body: self.response.into_body(), _carrier: self.carrier }
    }
}

impl AnswerBody {
    /// The next bytes; `None` at the end. Cancel-safe: dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, DialError>> {
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await?;
            match frame.map(hyper::body::Frame::into_data) {
                Ok(Ok(bytes)) => return Some(Ok(bytes)),
                // Trailers carry nothing that we need.
                Ok(Err(_)) => {}
                Err(error) => return Some(Err(cut(&error))),
            }
        }
    }

    async fn whole(mut self, max_bytes: usize) -> Result<String, DialError> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next().await {
            let bytes = bytes?;
            if all.len() + bytes.len() > max_bytes {
                return Err(DialError::Violation("Its answer is too long.".to_owned()));
            }
            all.extend_from_slice(&bytes);
        }
        String::from_utf8(all)
            .map_err(|_| DialError::Violation("Its answer is not UTF-8.".to_owned()))
    }
}

fn cut(error: &hyper::Error) -> DialError {
    DialError::Cut(error.to_string())
}

fn authorization(token: &str) -> Result<HeaderValue, DialError> {
    let is_plain = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    let value = is_plain.then(|| HeaderValue::try_from(format!("Bearer {token}")).ok()).flatten();
    let mut value = value.ok_or(DialError::Bearer)?;
    value.set_sensitive(true);
    Ok(value)
}

fn connector(options: &DialOptions) -> Result<TlsConnector, DialError> {
    if let Some(config) = &options.tls {
        return Ok(TlsConnector::from(Arc::clone(config)));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(DialError::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| DialError::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
