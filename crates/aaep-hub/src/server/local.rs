//! The local socket of the hub (B.3, B.4): programs on this machine, told apart by their user.
//!
//! The first byte shows what a peer sends: a length, a line of JSON, or HTTP. A peer that sends messages is
//! a subscriber, and its socket goes to the wires at once; HTTP is served as everywhere else.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use aaep_transport::Protocol;
use aaep_transport::framed::{Framing, MAX_CREDENTIAL_FRAME_BYTES, leading_credential};
use aaep_transport::local::{Accepted, LocalDoor};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Uri};

use super::ServerApp;
#[cfg(unix)]
use super::connection::requests;
#[cfg(unix)]
use super::door::ServedConnection;
use super::stop::StopSignal;
use crate::access::{
    AccessError, Claim, ConnectionPermit, ConnectionSource, Peer, Principal, Reserve, Scope,
};
use crate::hub::{ConnectionPurpose, HubError, NewConnection};

/// Accepts connections until the hub stops.
pub(super) async fn accept(app: Arc<ServerApp>, door: LocalDoor, mut stop: StopSignal) {
    loop {
        let accepted = tokio::select! {
            accepted = door.accept() => accepted,
            () = stop.finishing() => return,
        };
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if app.checks.may_log() {
                    tracing::warn!(%error, "A local connection could not be accepted.");
                }
                app.accept_again(&error).await;
                continue;
            }
        };
        let (app, stop) = (Arc::clone(&app), stop.clone());
        match app.guard.connection(ConnectionSource::program(accepted.process_id())) {
            Ok(permit) => {
                tokio::spawn(serve(app, accepted, permit, stop));
                // Connections that were asked to end get a chance to do so before the next one is accepted.
                tokio::task::yield_now().await;
            }
            Err(limit) => {
                app.metrics.refused("too_many_connections");
                if app.checks.may_log() {
                    tracing::warn!(%limit, "A local connection was turned away.");
                }
            }
        }
    }
}

/// Serves a connection until it ends, a wire takes it over, or the hub stops.
async fn serve(
    app: Arc<ServerApp>,
    mut accepted: Accepted,
    permit: ConnectionPermit,
    mut stop: StopSignal,
) {
    let patience = Duration::from_millis(app.guard.limits().handshake_ms);
    let gives_way = permit.gives_way();
    let first = tokio::select! {
        first = tokio::time::timeout(patience, accepted.first_byte()) => first,
        () = stop.finishing() => return,
        () = gives_way.notified() => return,
    };
    let Ok(Ok(Some(first))) = first else {
        tracing::debug!("A local connection on which nothing came was closed.");
        return;
    };
    let peer = accepted.other_user().map_or_else(Peer::same_user, Peer::other_user);
    match Framing::recognise(first) {
        Some(framing) => listen(&app, accepted, peer, framing, permit).await,
        #[cfg(unix)]
        None if first.is_ascii_uppercase() => {
            let stream = accepted.into_stream();
            let connection = ServedConnection::new(peer, permit).on_local_socket();
            requests(app, stream, connection, stop).await;
        }
        None => tracing::debug!("A local connection speaks neither messages nor HTTP."),
    }
}

/// Hands a subscriber over to the wires. A peer that may not listen is told so, as on a WebSocket.
async fn listen(
    app: &ServerApp,
    mut accepted: Accepted,
    peer: Peer,
    framing: Framing,
    mut permit: ConnectionPermit,
) {
    permit.work();
    let now = app.hub.clock().now();
    let authenticated = match credential(&mut accepted, framing).await {
        Ok(credential) => find_principal(app, &peer, credential.as_deref()).await,
        Err(error) => {
            tracing::debug!(%error, "A local connection could not be read.");
            return;
        }
    };
    let authenticated =
        authenticated.and_then(|principal| principal.allow(Scope::Listen).map(|()| principal));
    let program = accepted.process_id();
    let (socket, read_ahead) = match accepted.into_socket() {
        Ok(taken) => taken,
        Err(error) => {
            if app.checks.may_log() {
                tracing::warn!(%error, "A local connection could not be taken over.");
            }
            return;
        }
    };
    let connection = |principal, permit| NewConnection {
        principal: Arc::new(principal),
        socket,
        read_ahead,
        protocol: Protocol::Framed(framing),
        permit: Some(permit),
    };
    let outcome = match authenticated {
        Ok(principal) => match permit.belongs_to(claim(&principal, program), now.monotonic_us) {
            Ok(()) => {
                let new = connection(principal, permit);
                app.hub.attach(new, ConnectionPurpose::SubscriberSocket).await
            }
            Err(limit) => {
                let reason = limit.to_string();
                refuse(app, connection(Principal::nobody(), permit), 1013, reason).await
            }
        },
        Err(error) => {
            app.metrics.refused(super::answer::access_code(&error));
            if app.checks.may_log() {
                tracing::warn!(%error, "A local connection was refused.");
            }
            let (code, reason) = (super::takeover::close_code(&error), error.public_message());
            refuse(app, connection(Principal::nobody(), permit), code, reason).await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "A local connection could not be taken over.");
    }
}

/// Tells a peer that it may not listen. Only a few are told at once; the others are disconnected.
async fn refuse(
    app: &ServerApp,
    mut connection: NewConnection,
    code: u16,
    reason: String,
) -> Result<(), HubError> {
    let (nobody, now) = (Principal::nobody(), app.hub.clock().now());
    let claimed = connection
        .permit
        .as_mut()
        .map_or(Ok(()), |permit| permit.belongs_to(Claim::of(&nobody.id), now.monotonic_us));
    match claimed {
        Ok(()) => app.hub.attach(connection, ConnectionPurpose::Refused { code, reason }).await,
        Err(_) => Ok(()),
    }
}

/// The credential that a peer sends before anything else, if it does.
async fn credential(accepted: &mut Accepted, framing: Framing) -> io::Result<Option<String>> {
    let most = MAX_CREDENTIAL_FRAME_BYTES as usize;
    let Some((credential, bytes)) = leading_credential(framing, &accepted.first_bytes(most).await?)
    else {
        return Ok(None);
    };
    accepted.skip(bytes).await?;
    Ok(Some(credential))
}

/// A claim by this principal. The person's own programs use the reserve.
fn claim(principal: &Principal, program: Option<u32>) -> Claim<'_> {
    let reserve = if principal.is_person() { Reserve::Person } else { Reserve::None };
    let is_local_socket = program.is_some();
    Claim { principal: &principal.id, program, is_local_socket, reserve }
}

/// Finds the principal of a peer, from its user and its credential.
async fn find_principal(
    app: &ServerApp,
    peer: &Peer,
    credential: Option<&str>,
) -> Result<Principal, AccessError> {
    let mut headers = HeaderMap::new();
    if let Some(credential) = credential {
        let value = HeaderValue::try_from(format!("Bearer {credential}"));
        headers.insert(AUTHORIZATION, value.map_err(|_| AccessError::Malformed)?);
    }
    app.checks.authenticate(peer, &headers, &Uri::default(), app.hub.clock().now()).await
}
