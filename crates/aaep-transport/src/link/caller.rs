//! Requests of HTTP/1.1 to one host, each on a connection of its own, so that none can meet a connection that
//! is dead without anyone knowing whether it arrived.
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
use super::place::Place;

/// The largest head of an answer, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The largest body of an answer that is read only for what it says about a refusal.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// How many addresses of a host are tried.
const MAX_ADDRESSES: usize = 8;

/// The most characters of a refusal that are repeated.
const MAX_REASON_CHARS: usize = 500;

/// Calls one host.
pub(super) struct Caller {
    place: Place,
    authorization: Option<HeaderValue>,
    tls: Option<TlsConnector>,
    options: DialOptions,
}

/// What is asked.
pub(super) struct Call {
    pub(super) method: Method,
    /// With its query.
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

/// A connection on which nothing has been asked.
pub(super) struct Connected {
    sender: http1::SendRequest<String>,
    carrier: Carrier,
}

/// An answer whose body may still be coming.
pub(super) struct Answer {
    pub(super) response: Response<Incoming>,
    carrier: Carrier,
}

/// The body of an answer, as it comes.
pub(super) struct Content {
    body: Incoming,
    _carrier: Carrier,
}

/// The task that moves the bytes of a connection; it ends with whoever waits for them.
pub(super) struct Carrier(JoinHandle<()>);

impl Drop for Carrier {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Caller {
    pub(super) fn new(place: &Place, options: &DialOptions) -> Result<Self, DialError> {
        if !place.is_tls() && !place.is_loopback() && !options.insecure_allow_plain_http {
            return Err(DialError::PlainHttp(place.authority()));
        }
        let authorization = options.bearer.as_deref().map(authorization).transpose()?;
        let tls = place.is_tls().then(|| connector(options)).transpose()?;
        Ok(Caller { place: place.clone(), authorization, tls, options: options.clone() })
    }

    /// One that agrees on HTTP/2 where it speaks TLS, and then speaks it itself.
    #[cfg(feature = "grpc")]
    pub(super) fn of_http2(place: &Place, options: &DialOptions) -> Result<Self, DialError> {
        let mut caller = Caller::new(place, options)?;
        if let Some(connector) = &caller.tls {
            let mut config = ClientConfig::clone(connector.config());
            config.alpn_protocols = vec![crate::grpc::ALPN.to_vec()];
            caller.tls = Some(TlsConnector::from(Arc::new(config)));
        }
        Ok(caller)
    }

    /// The header that says who we are.
    #[cfg(feature = "grpc")]
    pub(super) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// A connection to the host.
    pub(super) async fn connect(&self) -> Result<Connected, DialError> {
        let connected = timeout(self.options.connect_timeout, self.connect_slowly()).await;
        connected.unwrap_or(Err(DialError::TooSlow))
    }

    /// A stream of bytes to the host, encrypted unless it is plain.
    pub(super) async fn stream(&self) -> Result<Box<dyn Stream>, DialError> {
        let stream = self.reach().await?;
        let _ = stream.set_nodelay(true);
        let Some(connector) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(self.place.host().to_owned())
            .map_err(|error| DialError::Tls(error.to_string()))?;
        let secured = connector.connect(name, stream).await;
        Ok(Box::new(secured.map_err(|error| DialError::Tls(error.to_string()))?))
    }

    async fn connect_slowly(&self) -> Result<Connected, DialError> {
        let stream = self.stream().await?;
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            .handshake::<_, String>(TokioIo::new(stream))
            .await
            .map_err(|error| cut(&error))?;
        let carrier = tokio::spawn(async move {
            // Whoever waits for its bytes learns how it ended.
            let _ = connection.with_upgrades().await;
        });
        Ok(Connected { sender, carrier: Carrier(carrier) })
    }

    async fn reach(&self) -> Result<TcpStream, DialError> {
        let unreachable = |why: String| {
            let place = self.place.authority();
            DialError::Unreachable { place, why }
        };
        let found = tokio::net::lookup_host((self.place.host(), self.place.port())).await;
        // What is called localhost and answers elsewhere gets nothing in the clear.
        let stays_here = !self.place.is_tls() && !self.options.insecure_allow_plain_http;
        let peers: Vec<SocketAddr> = found
            .map_err(|error| unreachable(error.to_string()))?
            .filter(|peer| !stays_here || peer.ip().is_loopback())
            .take(MAX_ADDRESSES)
            .collect();
        let mut last = unreachable("the host has no address that may be called".to_owned());
        for peer in peers {
            // One address that swallows everything leaves time for the next.
            let patience = self.options.connect_timeout / 3;
            match timeout(patience, TcpStream::connect(peer)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = unreachable(error.to_string()),
                Err(_) => last = DialError::TooSlow,
            }
        }
        Err(last)
    }

    /// Asks, on a connection that is there already or on a new one, and follows one redirect.
    pub(super) async fn call(
        &self,
        on: Option<Connected>,
        call: &Call,
    ) -> Result<Answer, DialError> {
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
        on: Option<Connected>,
        call: &Call,
        path: &str,
    ) -> Result<Answer, DialError> {
        let request = self.request(call, path)?;
        let Connected { mut sender, carrier } = match on {
            Some(connected) => connected,
            None => self.connect().await?,
        };
        let answer = timeout(self.options.answer_timeout, sender.send_request(request)).await;
        let response = answer.map_err(|_| DialError::TooSlow)?.map_err(|error| cut(&error))?;
        Ok(Answer { response, carrier })
    }

    fn request(&self, call: &Call, path: &str) -> Result<Request<String>, DialError> {
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

    /// Reads all of an answer, which must be whole and within bounds.
    pub(super) async fn read(&self, answer: Answer, max_bytes: usize) -> Result<String, DialError> {
        let whole = timeout(self.options.answer_timeout, answer.content().whole(max_bytes)).await;
        whole.unwrap_or(Err(DialError::TooSlow))
    }

    /// What an answer says that is no success.
    pub(super) async fn refusal(&self, answer: Answer) -> DialError {
        let status = answer.response.status();
        // What cannot be read says nothing.
        let body = self.read(answer, MAX_REFUSAL_BYTES).await.unwrap_or_default();
        let said: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        refused(status, &said).unwrap_or_else(|| {
            let reason = reason(&said).unwrap_or_default();
            DialError::Status { status: status.as_u16(), reason }
        })
    }
}

/// The refusal that a status means: who asks is not let in.
pub(super) fn refused(status: StatusCode, said: &serde_json::Value) -> Option<DialError> {
    let is_refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
    is_refused.then(|| {
        let reason = reason(said);
        DialError::Refused {
            reason: reason.unwrap_or_else(|| format!("Status {}.", status.as_u16())),
        }
    })
}

/// The words of a refusal, in a form of ours or of the specification.
pub(super) fn reason(said: &serde_json::Value) -> Option<String> {
    let words = ["message", "reason_message"].iter().find_map(|name| said.get(*name)?.as_str());
    words.map(|words| words.chars().take(MAX_REASON_CHARS).collect())
}

impl Answer {
    /// The answer, and what carries its bytes and must live as long as they are wanted.
    pub(super) fn into_parts(self) -> (Response<Incoming>, Carrier) {
        (self.response, self.carrier)
    }

    pub(super) fn content(self) -> Content {
        Content { body: self.response.into_body(), _carrier: self.carrier }
    }
}

impl Content {
    /// The next bytes; none at the end. May be dropped while it waits; nothing is lost.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, DialError>> {
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await?;
            match frame.map(hyper::body::Frame::into_data) {
                Ok(Ok(bytes)) => return Some(Ok(bytes)),
                // Trailers say nothing that we need.
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
