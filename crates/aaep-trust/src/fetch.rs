//! Fetching one small document over HTTP/1.1, for manifests and key sets (§5.10.2, §8.2.8, ruling 28).
//!
//! A fetch takes at most ten seconds and 256 KiB, follows redirects within one origin only, and uses TLS except
//! on this machine. Certificates are checked against the operating system's roots, where an organisation can add
//! its own and the user can remove one.

mod address;
mod error;

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, HOST, LOCATION, USER_AGENT};
use http::{Method, Request, Response};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

pub use address::{AddressError, HttpAddress, MAX_ADDRESS_BYTES};
pub use error::FetchError;

/// The largest document that is fetched, in bytes.
pub const MAX_BYTES: usize = 256 * 1024;

/// How long a fetch may take, including redirects and name lookups.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// How long connecting to one of several addresses of a host may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How many redirects are followed, all within one origin.
pub const MAX_REDIRECTS: usize = 3;

/// How many addresses of a host are tried.
const MAX_ADDRESSES: usize = 8;

/// The largest response head, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Fetches documents.
#[derive(Debug, Clone, Default)]
pub struct Client {
    /// Roots to trust instead of the operating system's.
    roots: Option<Arc<RootCertStore>>,
    /// Whether plain HTTP may leave this machine.
    insecure_allow_plain_http: bool,
}

impl Client {
    /// A client that trusts the operating system's roots.
    pub fn new() -> Self {
        Client::default()
    }

    /// Trusts these roots and no others.
    pub fn with_roots(mut self, roots: RootCertStore) -> Self {
        self.roots = Some(Arc::new(roots));
        self
    }

    /// Lets plain HTTP leave this machine. Anyone on the network can then read and change it.
    pub fn insecure_allow_plain_http(mut self, allow: bool) -> Self {
        self.insecure_allow_plain_http = allow;
        self
    }

    /// Fetches the document at an address. `accept` is the value of the `Accept` header.
    pub async fn get(&self, address: &HttpAddress, accept: &str) -> Result<Bytes, FetchError> {
        let fetched = timeout(TIMEOUT, self.follow(address.clone(), accept)).await;
        fetched.unwrap_or_else(|_| Err(FetchError::TooSlow))
    }

    /// Like [`Client::get`], for a program without an async runtime.
    ///
    /// # Panics
    /// When called within an async runtime; use [`Client::get`] there.
    pub fn get_blocking(&self, address: &HttpAddress, accept: &str) -> Result<Bytes, FetchError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(FetchError::Connect)?;
        let result = runtime.block_on(self.get(address, accept));
        // A name lookup that never ends must not block the program.
        runtime.shutdown_background();
        result
    }

    async fn follow(&self, mut address: HttpAddress, accept: &str) -> Result<Bytes, FetchError> {
        for _ in 0..=MAX_REDIRECTS {
            match self.get_once(&address, accept).await? {
                FetchAnswer::Document(bytes) => return Ok(bytes),
                FetchAnswer::Redirect(to) => address = address.redirect(&to)?,
            }
        }
        Err(FetchError::TooManyRedirects)
    }

    async fn get_once(
        &self,
        address: &HttpAddress,
        accept: &str,
    ) -> Result<FetchAnswer, FetchError> {
        if !address.is_https() && !address.is_loopback() && !self.insecure_allow_plain_http {
            return Err(FetchError::PlainHttp(address.origin()));
        }
        let stream = self.connect(address).await?;
        let request = request(address, accept)?;
        if !address.is_https() {
            return exchange(stream, request).await;
        }
        let name = ServerName::try_from(address.host().to_owned())
            .map_err(|_| FetchError::Address(AddressError::Host))?;
        let stream =
            TlsConnector::from(self.tls()?).connect(name, stream).await.map_err(FetchError::Tls)?;
        exchange(stream, request).await
    }

    async fn connect(&self, address: &HttpAddress) -> Result<TcpStream, FetchError> {
        let mut last = None;
        for peer in self.resolve(address).await? {
            match timeout(CONNECT_TIMEOUT, TcpStream::connect(peer)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = Some(FetchError::Connect(error)),
                Err(_) => last = Some(FetchError::TooSlow),
            }
        }
        Err(last.unwrap_or(FetchError::NoAddress(address.host().to_owned())))
    }

    async fn resolve(&self, address: &HttpAddress) -> Result<Vec<SocketAddr>, FetchError> {
        let none = || FetchError::NoAddress(address.host().to_owned());
        let found = tokio::net::lookup_host((address.host(), address.port())).await;
        // A host that is called localhost but resolves elsewhere gets nothing in clear text.
        let stays_here = !address.is_https() && !self.insecure_allow_plain_http;
        let peers: Vec<SocketAddr> = found
            .map_err(|_| none())?
            .filter(|peer| !stays_here || peer.ip().is_loopback())
            .take(MAX_ADDRESSES)
            .collect();
        if peers.is_empty() { Err(none()) } else { Ok(peers) }
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, FetchError> {
        let roots = match &self.roots {
            Some(roots) => Arc::clone(roots),
            None => Arc::new(system_roots()?),
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| FetchError::Tls(std::io::Error::other(error)))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::new(config))
    }
}

fn system_roots() -> Result<RootCertStore, FetchError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(FetchError::NoRoots) } else { Ok(roots) }
}

/// The answer of a server.
#[derive(Debug)]
enum FetchAnswer {
    Document(Bytes),
    Redirect(String),
}

fn request(address: &HttpAddress, accept: &str) -> Result<Request<String>, FetchError> {
    Request::builder()
        .method(Method::GET)
        .uri(address.path())
        .header(HOST, address.authority())
        .header(ACCEPT, accept)
        .header(ACCEPT_ENCODING, "identity")
        .header(USER_AGENT, concat!("aaep/", env!("CARGO_PKG_VERSION")))
        .body(String::new())
        .map_err(|_| FetchError::Address(AddressError::Form))
}

/// Sends the request over this stream and reads the answer.
async fn exchange<S>(stream: S, request: Request<String>) -> Result<FetchAnswer, FetchError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD_BYTES)
        .handshake::<_, String>(TokioIo::new(stream))
        .await
        .map_err(FetchError::Http)?;
    // The connection may end before its last bytes are read, so its end alone decides nothing.
    let carry = async {
        let _ = connection.await;
        std::future::pending::<Result<FetchAnswer, FetchError>>().await
    };
    let ask = async {
        let response = sender.send_request(request).await.map_err(FetchError::Http)?;
        read_answer(response).await
    };
    either(ask, carry).await
}

/// Waits for the first of two futures.
async fn either<T>(first: impl Future<Output = T>, second: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        it = first => it,
        it = second => it,
    }
}

async fn read_answer(response: Response<Incoming>) -> Result<FetchAnswer, FetchError> {
    let status = response.status();
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    if status.is_redirection() {
        return match header(LOCATION) {
            Some(to) => Ok(FetchAnswer::Redirect(to.to_owned())),
            None => Err(FetchError::Status(status.as_u16())),
        };
    }
    if status != 200 {
        return Err(FetchError::Status(status.as_u16()));
    }
    let announced = header(CONTENT_LENGTH).and_then(|text| text.parse::<u64>().ok());
    if announced.is_some_and(|length| length > MAX_BYTES as u64) {
        return Err(FetchError::TooLarge);
    }
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame.map_err(FetchError::Http)?.into_data() else { continue };
        if bytes.len() + data.len() > MAX_BYTES {
            return Err(FetchError::TooLarge);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(FetchAnswer::Document(bytes.into()))
}

#[cfg(test)]
mod tests;
