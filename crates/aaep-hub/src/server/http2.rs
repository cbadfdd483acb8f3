//! HTTP/2, which serves only gRPC, on the same port as everything else.
//!
//! A client announces it with its first bytes, or, over TLS, during the handshake. Every number that a
//! client could make large has a limit.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use aaep_transport::grpc::{
    CALL_WINDOW_BYTES, CONNECTION_WINDOW_BYTES, MAX_CALLS, MAX_SEND_BUFFER_BYTES,
};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::ServerApp;
use super::door::ServedConnection;
use super::grpc::GrpcCalls;
use super::stop::StopSignal;

/// The first bytes of every HTTP/2 connection (RFC 9113 §3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The pause before checking for the rest of the preface.
const PREFACE_PAUSE: Duration = Duration::from_millis(5);

/// How often a client is pinged.
const PING_EVERY: Duration = Duration::from_secs(10);

/// How long a client may take to answer a ping.
const PING_ANSWER: Duration = Duration::from_secs(20);

/// How long a client without calls may take to leave after it was told to.
const LEAVING: Duration = Duration::from_secs(5);

/// Whether a client begins with HTTP/2. Its bytes stay in the socket.
pub(super) async fn is_http2(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0; PREFACE.len()];
    loop {
        let count = stream.peek(&mut first).await?;
        let so_far = first.get(..count).unwrap_or_default();
        if count == 0 || !PREFACE.starts_with(so_far) {
            return Ok(false);
        }
        if count == PREFACE.len() {
            return Ok(true);
        }
        tokio::time::sleep(PREFACE_PAUSE).await;
    }
}

/// Serves a connection until it ends, stays without calls, or the hub stops; remaining calls then end with
/// the hub. A connection without a call of a known principal gives way to new ones.
pub(super) async fn serve(
    app: Arc<ServerApp>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    connection: ServedConnection,
    mut stop: StopSignal,
) {
    let connection = Arc::new(connection);
    let idle = Duration::from_millis(app.guard.limits().idle_ms);
    let builder = builder(app.guard.limits().header_bytes);
    let mut cut = app.calls.clone();
    let calls = Arc::new(GrpcCalls::new(app, Arc::clone(&connection)));
    let answering = Arc::clone(&calls);
    let service = service_fn(move |request| {
        let calls = Arc::clone(&answering);
        async move { Ok::<_, Infallible>(calls.answer(request).await) }
    });
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let is_idle = tokio::select! {
        served = &mut serving => return log(served),
        () = calls.wait_until_quiet(idle) => true,
        () = stop.finishing() => false,
        () = connection.gives_way() => return gave_way(),
    };
    // The hub waits for requests before it stops, and afterwards for calls, which end with it.
    drop(stop);
    serving.as_mut().graceful_shutdown();
    let too_late = async {
        if is_idle {
            tokio::time::sleep(LEAVING).await;
        } else {
            cut.ending().await;
        }
    };
    tokio::select! {
        served = serving => log(served),
        () = too_late => tracing::debug!("A connection was cut because it did not end."),
        () = connection.gives_way() => gave_way(),
    }
}

fn builder(header_bytes: usize) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_ANSWER)
        .max_concurrent_streams(MAX_CALLS)
        .max_header_list_size(u32::try_from(header_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(CALL_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(MAX_SEND_BUFFER_BYTES);
    builder
}

fn gave_way() {
    tracing::debug!("A connection without calls gave way to a new one.");
}

fn log(served: Result<(), hyper::Error>) {
    if let Err(error) = served {
        tracing::debug!(%error, "A connection ended early.");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    async fn is_http2_after(parts: &'static [&'static [u8]]) -> bool {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = std::thread::spawn(move || {
            let mut client = std::net::TcpStream::connect(address).expect("connects");
            client.set_nodelay(true).expect("no delay");
            for part in parts {
                client.write_all(part).expect("written");
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let (stream, _) = listener.accept().await.expect("a connection");
        let is_http2 = is_http2(&stream).await.expect("looks");
        client.join().expect("no panic");
        is_http2
    }

    #[tokio::test]
    async fn the_first_bytes_say_what_is_spoken() {
        assert!(is_http2_after(&[PREFACE]).await);
        assert!(is_http2_after(&[b"P", b"RI * HTT", b"P/2.0\r\n\r\nSM\r\n\r\n", b"more"]).await);
        assert!(!is_http2_after(&[b"P", b"OST / HTTP/1.1\r\n\r\n"]).await);
        assert!(!is_http2_after(&[b"GET / HTTP/1.1\r\n\r\n"]).await);
        assert!(!is_http2_after(&[b"PRI * HTTP/1.1\r\n\r\n\r\n\r\n\r\n"]).await);
        assert!(!is_http2_after(&[]).await, "nothing came at all");
    }
}
