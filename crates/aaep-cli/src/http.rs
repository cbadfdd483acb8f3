//! A small HTTP/1.1 client for talking to a hub: one request and one answer per connection.
//!
//! It blocks and starts no runtime, because hooks of agents run it and every millisecond counts. Answers are bounded
//! in size and time. Plain HTTP never leaves this machine (ruling 28).

mod answer;

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aaep_trust::fetch::HttpAddress;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

pub(crate) use answer::{BodyPieces, HubAnswer};

/// How long connecting to one of several addresses of a host may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How many addresses of a host are tried.
const MAX_ADDRESSES: usize = 8;

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
#[derive(Debug, Clone)]
pub(crate) struct HubClient {
    server: ServerAddress,
    /// The secret for `Authorization: Bearer`. Visible ASCII only.
    token: Option<String>,
}

#[derive(Debug, Clone)]
enum ServerAddress {
    Net(HttpAddress),
    /// A socket on this machine.
    #[cfg(unix)]
    Local(PathBuf),
}

impl HubClient {
    /// A client for the server at this address. A token that is not visible ASCII is ignored.
    pub(crate) fn new(address: HttpAddress, token: Option<String>) -> Self {
        HubClient { server: ServerAddress::Net(address), token: token.filter(|it| is_token(it)) }
    }

    /// A client for the server on a local socket.
    #[cfg(unix)]
    pub(crate) fn local(path: PathBuf, token: Option<String>) -> Self {
        HubClient { server: ServerAddress::Local(path), token: token.filter(|it| is_token(it)) }
    }

    /// The server's address, for people.
    pub(crate) fn origin(&self) -> String {
        match &self.server {
            ServerAddress::Net(address) => address.origin(),
            #[cfg(unix)]
            ServerAddress::Local(path) => format!("unix:{}", path.display()),
        }
    }

    /// Sends a request and reads the whole answer.
    pub(crate) fn send(&self, request: &HubRequest<'_>) -> Result<HubAnswer, NoAnswer> {
        let mut stream = self.open(request.timeout)?;
        let sent = stream.write_all(&self.text_of(request)).and_then(|()| stream.flush());
        match answer::read(&mut stream) {
            // A server that refuses the body early still answers.
            Err(NoAnswer::CutOff(error)) => Err(NoAnswer::CutOff(sent.err().unwrap_or(error))),
            other => other,
        }
    }

    /// Sends a request whose answer is read piece by piece.
    pub(crate) fn stream(&self, request: &HubRequest<'_>) -> Result<BodyPieces, NoAnswer> {
        let mut stream = self.open(request.timeout)?;
        let sent = stream.write_all(&self.text_of(request)).and_then(|()| stream.flush());
        sent.map_err(NoAnswer::CutOff)?;
        BodyPieces::read(stream)
    }

    fn open(&self, timeout: Duration) -> Result<Box<dyn HubStream>, NoAnswer> {
        let until = Instant::now() + timeout;
        let address = match &self.server {
            ServerAddress::Net(address) => address,
            #[cfg(unix)]
            ServerAddress::Local(path) => {
                let stream = UnixStream::connect(path).map_err(NoAnswer::NotReached)?;
                return Ok(Box::new(TimedStream { stream, until }));
            }
        };
        let stream = TimedStream { stream: connect(address, until)?, until };
        if !address.is_https() {
            return Ok(Box::new(stream));
        }
        let name = ServerName::try_from(address.host().to_owned())
            .map_err(|_| NoAnswer::Tls("the host has no name to check".to_owned()))?;
        let connection = ClientConnection::new(tls()?, name)
            .map_err(|error| NoAnswer::Tls(error.to_string()))?;
        Ok(Box::new(StreamOwned::new(connection, stream)))
    }

    /// The encoded request, in one piece so that it fits into one packet if possible.
    fn text_of(&self, request: &HubRequest<'_>) -> Vec<u8> {
        let (prefix, host) = match &self.server {
            ServerAddress::Net(address) => (address.path(), address.authority()),
            #[cfg(unix)]
            ServerAddress::Local(_) => ("", "localhost".to_owned()),
        };
        let prefix = prefix.split('?').next().unwrap_or_default();
        let mut head = format!(
            "{} {}{} HTTP/1.1\r\nhost: {}\r\nuser-agent: aaep/{}\r\naccept: application/json\r\n\
             accept-encoding: identity\r\nconnection: close\r\n",
            request.method,
            prefix.trim_end_matches('/'),
            request.path,
            host,
            env!("CARGO_PKG_VERSION"),
        );
        if let Some(token) = &self.token {
            head.extend(["authorization: Bearer ", token, "\r\n"]);
        }
        if let Some((content_type, body)) = request.body {
            let length = body.len().to_string();
            head.extend(["content-type: ", content_type, "\r\ncontent-length: ", &length, "\r\n"]);
        } else if request.method != "GET" {
            head.push_str("content-length: 0\r\n");
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(request.body.map_or(&[], |(_, body)| body));
        bytes
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn connect(address: &HttpAddress, until: Instant) -> Result<TcpStream, NoAnswer> {
    if !address.is_https() && !address.is_loopback() {
        return Err(NoAnswer::PlainHttp);
    }
    let found = (address.host(), address.port()).to_socket_addrs();
    let peers = found.map_err(NoAnswer::NotReached)?;
    // A host called localhost that resolves elsewhere gets nothing in plain text.
    let may_call = |peer: &SocketAddr| address.is_https() || peer.ip().is_loopback();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no such host");
    for peer in peers.filter(may_call).take(MAX_ADDRESSES) {
        let left = until.saturating_duration_since(Instant::now()).min(CONNECT_TIMEOUT);
        match TcpStream::connect_timeout(&peer, left.max(Duration::from_millis(1))) {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(NoAnswer::NotReached)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(NoAnswer::NotReached(last))
}

/// A connection, encrypted or not.
trait HubStream: Read + Write + Send {}

impl<T: Read + Write + Send> HubStream for T {}

/// Trusts the certificate authorities of the operating system, as elsewhere in the hub.
fn tls() -> Result<Arc<ClientConfig>, NoAnswer> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(NoAnswer::Tls("this machine trusts no certificate authority".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| NoAnswer::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// A connection that ends at a fixed moment, however slowly its bytes arrive.
#[derive(Debug)]
struct TimedStream<S> {
    stream: S,
    until: Instant,
}

/// A stream whose reads and writes can be given a time limit.
trait TimeLimited: Read + Write {
    fn limit_reading(&self, to: Option<Duration>) -> io::Result<()>;
    fn limit_writing(&self, to: Option<Duration>) -> io::Result<()>;
}

impl TimeLimited for TcpStream {
    fn limit_reading(&self, to: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(to)
    }

    fn limit_writing(&self, to: Option<Duration>) -> io::Result<()> {
        self.set_write_timeout(to)
    }
}

#[cfg(unix)]
impl TimeLimited for UnixStream {
    fn limit_reading(&self, to: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(to)
    }

    fn limit_writing(&self, to: Option<Duration>) -> io::Result<()> {
        self.set_write_timeout(to)
    }
}

impl<S> TimedStream<S> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl<S: TimeLimited> Read for TimedStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.limit_reading(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl<S: TimeLimited> Write for TimedStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.limit_writing(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests;
