//! Requests to one server, each on a connection of its own, so that a request never meets a dead connection, which
//! would leave unknown whether it arrived.
//!
//! TLS is used except on this machine. Nothing is sent twice, and redirects are left to the caller.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderValue, USER_AGENT,
};
use hyper::{Method, Request};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::address::HttpAddress;
use crate::call::{CallAnswer, CallConnection, HttpCall, WholeBody};
use crate::error::CallError;
use crate::is_loopback;

/// How many addresses of a host are tried.
const MAX_ADDRESSES: usize = 8;

/// How long connecting to one address of a host may take at most.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(3);

/// How long connecting to this machine may take before it is tried again. It succeeds at once, unless many
/// connections wait to be accepted; then the system drops ours and tries again only after a second.
const LOOPBACK_TRY_TIMEOUT: Duration = Duration::from_millis(100);

/// How a server is called.
#[derive(Clone)]
pub struct CallOptions {
    /// The token that identifies us.
    pub bearer: Option<String>,
    /// The TLS configuration, instead of one with the operating system's roots of trust.
    pub tls: Option<Arc<ClientConfig>>,
    /// Whether clear text may leave this machine. Anyone on the network can then read and change it.
    pub insecure_allow_plain_http: bool,
    /// How long finding and reaching the server may take.
    pub connect_timeout: Duration,
    /// How long the server may take to answer with a head.
    pub answer_timeout: Duration,
}

impl Default for CallOptions {
    fn default() -> Self {
        CallOptions {
            bearer: None,
            tls: None,
            insecure_allow_plain_http: false,
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(30),
        }
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token is a secret, and the TLS configuration may contain one.
        f.debug_struct("CallOptions")
            .field("has_bearer", &self.bearer.is_some())
            .field("insecure_allow_plain_http", &self.insecure_allow_plain_http)
            .finish_non_exhaustive()
    }
}

/// Sends requests to one server.
pub struct HttpCaller {
    address: HttpAddress,
    authorization: Option<HeaderValue>,
    tls: Option<TlsConnector>,
    options: CallOptions,
}

impl fmt::Debug for HttpCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpCaller").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A stream of bytes to a server.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

impl HttpCaller {
    /// A caller of the server at this address. Refused if anything would leave this machine in clear text.
    pub fn new(address: &HttpAddress, options: CallOptions) -> Result<Self, CallError> {
        if !address.is_https() && !address.is_loopback() && !options.insecure_allow_plain_http {
            return Err(CallError::PlainHttp);
        }
        let authorization = options.bearer.as_deref().map(authorization).transpose()?;
        let tls = match (address.is_https(), &options.tls) {
            (false, _) => None,
            (true, Some(config)) => Some(TlsConnector::from(Arc::clone(config))),
            (true, None) => Some(TlsConnector::from(system_tls()?)),
        };
        Ok(HttpCaller { address: address.clone(), authorization, tls, options })
    }

    /// Offers these protocols in TLS. The caller then speaks the protocol itself, on [`HttpCaller::stream`].
    pub fn offering(mut self, protocols: &[&[u8]]) -> Self {
        if let Some(connector) = &self.tls {
            let mut config = ClientConfig::clone(connector.config());
            config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
            self.tls = Some(TlsConnector::from(Arc::new(config)));
        }
        self
    }

    /// The header that identifies us.
    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// The server.
    pub fn address(&self) -> &HttpAddress {
        &self.address
    }

    /// How the server is called.
    pub fn options(&self) -> &CallOptions {
        &self.options
    }

    /// Connects to the server. Must be called within a tokio runtime, which then moves the bytes.
    pub async fn connect(&self) -> Result<CallConnection, CallError> {
        let connecting = async { CallConnection::over(self.stream().await?).await };
        let connected = timeout(self.options.connect_timeout, connecting).await;
        connected.unwrap_or(Err(CallError::TooSlowToConnect))
    }

    /// A stream of bytes to the server, encrypted unless the address is plain HTTP. It has no time limit of its own
    /// for TLS.
    pub async fn stream(&self) -> Result<Box<dyn ByteStream>, CallError> {
        let stream = self.reach().await?;
        let _ = stream.set_nodelay(true);
        let Some(connector) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(self.address.host().to_owned())
            .map_err(|error| CallError::Tls(io::Error::other(error)))?;
        let secured = connector.connect(name, stream).await;
        Ok(Box::new(secured.map_err(CallError::Tls)?))
    }

    async fn reach(&self) -> Result<TcpStream, CallError> {
        let found = tokio::net::lookup_host((self.address.host(), self.address.port())).await;
        // A host that is called localhost but resolves elsewhere gets nothing in clear text.
        let stays_here = !self.address.is_https() && !self.options.insecure_allow_plain_http;
        let peers: Vec<SocketAddr> = found
            .map_err(CallError::Lookup)?
            .filter(|peer| !stays_here || is_loopback(peer.ip()))
            .take(MAX_ADDRESSES)
            .collect();
        let mut last = CallError::NoAddress;
        // An address that never answers must leave time for the next one.
        let parts = if peers.len() > 1 { 3 } else { 1 };
        let of_each = self.options.connect_timeout / parts;
        for peer in peers {
            let is_here = is_loopback(peer.ip());
            let patience = if is_here { of_each } else { ADDRESS_TIMEOUT.min(of_each) };
            let connected = timeout(patience, async {
                loop {
                    let connecting = TcpStream::connect(peer);
                    if !is_here {
                        return connecting.await;
                    }
                    if let Ok(connected) = timeout(LOOPBACK_TRY_TIMEOUT, connecting).await {
                        return connected;
                    }
                }
            });
            match connected.await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = CallError::Connect(error),
                Err(_) => last = CallError::TooSlowToConnect,
            }
        }
        Err(last)
    }

    /// Sends a request, on this connection or on a new one, and returns whatever the server answers.
    pub async fn call(
        &self,
        on: Option<CallConnection>,
        call: &HttpCall,
    ) -> Result<CallAnswer, CallError> {
        let request = self.request(call)?;
        let connection = match on {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection.send(request, self.options.answer_timeout).await
    }

    fn request(&self, call: &HttpCall) -> Result<Request<WholeBody>, CallError> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.path.as_str())
            .header(HOST, self.address.authority())
            .header(ACCEPT_ENCODING, "identity")
            .header(USER_AGENT, concat!("aaep/", env!("CARGO_PKG_VERSION")))
            .body(WholeBody::new(call.body.clone()))
            .map_err(|_| CallError::Request)?;
        let headers = request.headers_mut();
        if call.body.is_empty() && call.method != Method::GET {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        headers.extend(call.headers.clone());
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }
}

/// Whether a text can be sent as a token: visible ASCII, so that it cannot smuggle in a header.
pub fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn authorization(token: &str) -> Result<HeaderValue, CallError> {
    let value = is_token(token).then(|| HeaderValue::try_from(format!("Bearer {token}")).ok());
    let mut value = value.flatten().ok_or(CallError::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

/// A TLS configuration with the operating system's roots of trust, where an organisation can add its own and the
/// user can remove one.
pub fn system_tls() -> Result<Arc<ClientConfig>, CallError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(CallError::NoRoots) } else { tls_with_roots(roots) }
}

/// A TLS configuration that trusts these roots and no others.
pub fn tls_with_roots(
    roots: impl Into<Arc<RootCertStore>>,
) -> Result<Arc<ClientConfig>, CallError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| CallError::Tls(io::Error::other(error)))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests;
