//! Serves one accepted connection: TLS where required, then requests until the end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aaep_transport::steal::{ServeLimits, Source, serve_connection_until};
use hyper::service::service_fn;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::ServerApp;
use super::certificates::ServerCertificates;
use super::door::ServedConnection;
use super::stop::StopSignal;
use crate::access::{CertificateError, ClientCertificate, ConnectionPermit, LimitError, Peer};

/// How long a rejected client may take to read the reason.
const TURNED_AWAY: Duration = Duration::from_secs(2);

/// Serves a connection until it ends, a wire takes it over, or the hub stops.
pub(super) async fn serve(
    app: Arc<ServerApp>,
    stream: TcpStream,
    address: SocketAddr,
    certificates: Option<Arc<ServerCertificates>>,
    permit: ConnectionPermit,
    mut stop: StopSignal,
) {
    // Small messages must not wait for each other. If the system cannot do that, the connection is only
    // slower.
    let _ = stream.set_nodelay(true);
    let hub = stream.local_addr().ok();
    let Some(certificates) = certificates else {
        let connection =
            ServedConnection::new(Peer::plain(address.ip()), permit).between(address, hub);
        return plain(app, stream, connection, stop).await;
    };
    let handshake_time = Duration::from_millis(app.guard.limits().handshake_ms);
    let gives_way = permit.gives_way();
    let handshake = TlsAcceptor::from(certificates.config()).accept(stream);
    let accepted = tokio::select! {
        accepted = tokio::time::timeout(handshake_time, handshake) => accepted,
        () = stop.finishing() => return,
        () = gives_way.notified() => return,
    };
    let stream = match accepted {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%address, %error, "TLS was not agreed on.");
            return;
        }
        Err(_) => {
            tracing::debug!(%address, "TLS took too long.");
            return;
        }
    };
    let certificate = match certificate_of(&stream) {
        Ok(certificate) => certificate,
        Err(error) => {
            if app.checks.may_log() {
                tracing::warn!(%address, %error, "A client certificate cannot be used.");
            }
            return;
        }
    };
    let connection = ServedConnection::new(Peer::tls(address.ip(), certificate), permit);
    let connection = connection.between(address, hub);
    #[cfg(feature = "grpc")]
    if stream.get_ref().1.alpn_protocol() == Some(crate::tls::HTTP2) {
        return super::http2::serve(app, stream, connection, stop).await;
    }
    requests(app, stream, connection, stop).await;
}

/// Serves a connection without TLS. Its first bytes show which version of HTTP it uses.
async fn plain(
    app: Arc<ServerApp>,
    stream: TcpStream,
    connection: ServedConnection,
    stop: StopSignal,
) {
    #[cfg(feature = "grpc")]
    {
        let first_time = Duration::from_millis(app.guard.limits().handshake_ms);
        let mut finishing = stop.not_waited_for();
        let is_http2 = tokio::select! {
            looked = tokio::time::timeout(first_time, super::http2::is_http2(&stream)) => looked,
            () = finishing.finishing() => return,
            () = connection.gives_way() => return,
        };
        match is_http2 {
            Ok(Ok(true)) => return super::http2::serve(app, stream, connection, stop).await,
            Ok(Ok(false)) => {}
            Ok(Err(_)) | Err(_) => {
                return tracing::debug!("A connection on which nothing came was closed.");
            }
        }
    }
    requests(app, stream, connection, stop).await;
}

/// The client's certificate, if it has one.
fn certificate_of(
    stream: &TlsStream<TcpStream>,
) -> Result<Option<ClientCertificate>, CertificateError> {
    let der = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    der.map(|der| ClientCertificate::read(der)).transpose()
}

/// Answers requests. The first one must arrive within the handshake time.
pub(super) async fn requests(
    app: Arc<ServerApp>,
    source: impl Source,
    connection: ServedConnection,
    stop: StopSignal,
) {
    let limits = app.guard.limits();
    let first_time = Duration::from_millis(limits.handshake_ms);
    let serve_limits = ServeLimits {
        header_bytes: limits.header_bytes,
        idle: Duration::from_millis(limits.idle_ms),
    };
    let connection = Arc::new(connection);
    let quiet = Arc::clone(&connection);
    let has_asked = AtomicBool::new(false);
    let service = service_fn(|request| {
        has_asked.store(true, Ordering::Relaxed);
        let (app, connection) = (Arc::clone(&app), Arc::clone(&connection));
        async move { Ok::<_, Infallible>(app.answer(connection, request).await) }
    });
    let nothing_came = async {
        tokio::time::sleep(first_time).await;
        if has_asked.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    let (mut finishing, mut ending) = (stop.clone(), stop);
    let finishing = async move { finishing.finishing().await };
    let serving = serve_connection_until(source, service, serve_limits, finishing);
    tokio::select! {
        served = serving => {
            if let Err(error) = served {
                tracing::debug!(%error, "A connection ended early.");
            }
        }
        () = ending.ending() => tracing::debug!("A connection was cut because the hub ends."),
        () = quiet.gives_way() => tracing::debug!("A quiet connection gave way to a new one."),
        () = nothing_came => tracing::debug!("A connection on which nothing came was closed."),
    }
}

/// Says that the hub is full, then reads until the client closes, so that a reset does not lose the
/// response.
pub(super) async fn turn_away(mut stream: TcpStream) {
    let saying = async {
        stream.write_all(full().as_bytes()).await?;
        stream.shutdown().await?;
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        Ok::<_, std::io::Error>(())
    };
    // A client that does not read is disconnected all the same.
    let _ = tokio::time::timeout(TURNED_AWAY, saying).await;
}

/// The whole response when there are too many connections. It does not depend on the request.
fn full() -> String {
    let message = LimitError::Connections.to_string();
    let body = json!({ "error": "too_many_connections", "message": message }).to_string();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: {}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        LimitError::Connections.retry_after_seconds(),
        body.len()
    )
}
