//! Accepts connections on one address, and finds out where they come from when there are many.
//!
//! Connections that nobody holds yet share their room by source: a program that opens as many as it can
//! takes none of those of another program. So this file must know the source before it admits a connection.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::ServerApp;
use super::certificates::ServerCertificates;
use super::connection;
use super::listen::ListeningSocket;
use super::programs::ConnectionEnds;
use super::stop::StopSignal;
use crate::access::{ConnectionSource, is_loopback};

/// The most rejected connections that are told the reason at the same time.
const TURNED_AWAY_AT_ONCE: usize = 64;

/// The most connections whose sources are looked up together. Between two look-ups there is a pause, and a look-up for
/// many takes hardly longer than one for a few.
const MAX_LOOKED_UP: usize = 256;

/// The most connections that are accepted before the first of them is served.
const MAX_GATHERED: usize = 1024;

type NewStream = (TcpStream, SocketAddr);

/// Accepts connections until the hub stops.
pub(super) async fn accept(
    app: Arc<ServerApp>,
    listening: ListeningSocket,
    certificates: Option<Arc<ServerCertificates>>,
    mut stop: StopSignal,
) {
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_AT_ONCE));
    loop {
        let accepted = tokio::select! {
            accepted = listening.socket.accept() => accepted,
            () = stop.finishing() => return,
        };
        let first = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if app.checks.may_log() {
                    tracing::warn!(%error, "A connection could not be accepted.");
                }
                app.accept_again(&error).await;
                continue;
            }
        };
        let is_scarce = app.guard.needs_source();
        let new = if is_scarce { gather(first, &listening.socket).await } else { vec![first] };
        let sources = sources(&app, &new, is_scarce).await;
        for ((stream, address), source) in new.into_iter().zip(sources) {
            admit(&app, (stream, address), source, certificates.clone(), &stop, &turned_away);
            // Connections that were asked to end get a chance to do so before the next one is admitted.
            tokio::task::yield_now().await;
        }
    }
}

/// Adds the connections that wait to be accepted, without those that their peers have closed already.
async fn gather(first: NewStream, listener: &TcpListener) -> Vec<NewStream> {
    let mut new = vec![first];
    for _ in 0..MAX_GATHERED {
        let next = poll_fn(|context| Poll::Ready(listener.poll_accept(context))).await;
        // If the system has an error to report, it reports it again.
        let Poll::Ready(Ok(next)) = next else { break };
        if !is_over(&next.0) {
            new.push(next);
        }
        if new.len() >= MAX_LOOKED_UP {
            break;
        }
    }
    new
}

/// Whether the peer has closed the connection without having sent anything.
#[cfg(unix)]
fn is_over(stream: &TcpStream) -> bool {
    use rustix::net::{RecvFlags, recv};
    let looked = recv(stream, &mut [0_u8; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    match looked {
        Ok((count, _)) => count == 0,
        Err(error) => error != rustix::io::Errno::AGAIN,
    }
}

#[cfg(not(unix))]
fn is_over(_stream: &TcpStream) -> bool {
    false
}

/// Where these connections come from.
async fn sources(app: &ServerApp, new: &[NewStream], is_scarce: bool) -> Vec<ConnectionSource> {
    let ends = |(stream, peer): &NewStream| {
        let hub = stream.local_addr().ok().filter(|_| is_scarce && is_loopback(peer.ip()))?;
        Some(ConnectionEnds { peer: *peer, hub })
    };
    let ends: Vec<Option<ConnectionEnds>> = new.iter().map(ends).collect();
    let local: Vec<ConnectionEnds> = ends.iter().copied().flatten().collect();
    let found =
        if local.is_empty() { Vec::new() } else { app.checks.programs().find_all(local).await };
    let mut found = found.into_iter();
    let source = |((_, peer), ends): (&NewStream, Option<ConnectionEnds>)| match ends {
        Some(_) => ConnectionSource::program(found.next().flatten()),
        None if is_loopback(peer.ip()) => ConnectionSource::Unknown,
        None => ConnectionSource::machine(peer.ip()),
    };
    new.iter().zip(ends).map(source).collect()
}

/// Serves a connection if there is room for it, and tells it if there is none.
fn admit(
    app: &Arc<ServerApp>,
    (stream, address): NewStream,
    source: ConnectionSource,
    certificates: Option<Arc<ServerCertificates>>,
    stop: &StopSignal,
    turned_away: &Arc<Semaphore>,
) {
    match app.guard.connection(source) {
        Ok(permit) => {
            let (app, stop) = (Arc::clone(app), stop.clone());
            tokio::spawn(connection::serve(app, stream, address, certificates, permit, stop));
        }
        Err(limit) => {
            app.metrics.refused("too_many_connections");
            if app.checks.may_log() {
                tracing::warn!(%address, %limit, "A connection was turned away.");
            }
            // Beyond that number, and where TLS is expected, connections are closed without a response.
            if certificates.is_none()
                && let Ok(permit) = Arc::clone(turned_away).try_acquire_owned()
            {
                tokio::spawn(async move {
                    connection::turn_away(stream).await;
                    drop(permit);
                });
            }
        }
    }
}
