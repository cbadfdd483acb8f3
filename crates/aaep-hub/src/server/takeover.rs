//! Hands a connection over to the hub's wires: the response is sent, and then the socket is theirs.

use std::sync::Arc;

use aaep_transport::packet::Protocol;
use aaep_transport::steal::upgraded;
use aaep_transport::websocket::SUBPROTOCOL;
use http::{HeaderMap, Method, Request};
use hyper::body::Incoming;

use super::ServerApp;
use super::answer::{self, HttpResponse, ResponseBody};
use super::door::ServedConnection;
use super::route::RequestRoute;
use super::upgrade::{self, SubprotocolRule};
use crate::access::{AccessError, Principal};
use crate::hub::{ConnectionPurpose, HubError, NewConnection};

pub(super) const AGENT_SUBPROTOCOL: &str = "aaep.agent.v1";

/// Close code: authentication failed (B.2.6).
const NOT_AUTHENTICATED: u16 = 4002;

/// The close code of a `WebSocket` for a server that cannot take a connection at the moment.
const TRY_AGAIN_LATER: u16 = 1013;
/// Close code: authorization denied (B.2.6).
const NOT_AUTHORIZED: u16 = 4003;

impl ServerApp {
    /// A subscriber's WebSocket.
    pub(super) fn subscriber_socket(
        &self,
        principal: Arc<Principal>,
        connection: &ServedConnection,
        request: Request<Incoming>,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let subprotocol = SubprotocolRule::Required(SUBPROTOCOL);
        let purpose = ConnectionPurpose::SubscriberSocket;
        self.upgrade(request, subprotocol, principal, connection, purpose)
    }

    /// An agent's WebSocket.
    pub(super) fn agent_socket(
        &self,
        principal: Arc<Principal>,
        connection: &ServedConnection,
        request: Request<Incoming>,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let subprotocol = SubprotocolRule::Required(AGENT_SUBPROTOCOL);
        self.upgrade(request, subprotocol, principal, connection, ConnectionPurpose::AgentSocket)
    }

    /// Refuses a WebSocket with a close code, which is all that a page in a browser can see. Other requests
    /// get the status.
    pub(super) fn refuse_socket(
        &self,
        route: &RequestRoute,
        error: &AccessError,
        connection: &ServedConnection,
        request: Request<Incoming>,
    ) -> HttpResponse {
        let subprotocol = match route {
            RequestRoute::SubscriberSocket => SubprotocolRule::Required(SUBPROTOCOL),
            RequestRoute::AgentSocket => SubprotocolRule::Required(AGENT_SUBPROTOCOL),
            _ => SubprotocolRule::Optional(SUBPROTOCOL),
        };
        if !upgrade::is_websocket(request.headers()) {
            return answer::no_access(error);
        }
        if connection.belongs_to_nobody(self.hub.clock().now()).is_err() {
            return answer::no_access(error);
        }
        let (code, reason) = (close_code(error), error.public_message());
        let purpose = ConnectionPurpose::Refused { code, reason };
        let nobody = Arc::new(Principal::nobody());
        self.upgrade(request, subprotocol, nobody, connection, purpose)
            .unwrap_or_else(|_| answer::no_access(error))
    }

    /// Answers a request for a WebSocket and hands the socket over.
    pub(super) fn upgrade(
        &self,
        request: Request<Incoming>,
        subprotocol: SubprotocolRule,
        principal: Arc<Principal>,
        connection: &ServedConnection,
        purpose: ConnectionPurpose,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let answer = upgrade::websocket(&request, subprotocol)?;
        let (hub, permit) = (self.hub.clone(), connection.take_permit());
        tokio::spawn(async move {
            let Ok(upgrade) = hyper::upgrade::on(request).await else {
                tracing::debug!("A WebSocket ended before it began.");
                return;
            };
            let (socket, read_ahead) = match upgraded(upgrade) {
                Ok(taken) => taken,
                Err(error) => {
                    tracing::warn!(%error, "A WebSocket could not be taken over.");
                    return;
                }
            };
            let protocol = Protocol::WebSocket;
            let new = NewConnection { principal, socket, read_ahead, protocol, permit };
            log_failure(hub.attach(new, purpose).await);
        });
        Ok(answer)
    }

    /// Answers a request for a stream and hands the socket over. HEAD gets only the head.
    pub(super) fn stream(
        &self,
        request: &Request<Incoming>,
        is_named: bool,
        principal: Arc<Principal>,
        connection: &ServedConnection,
        purpose: ConnectionPurpose,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        if request.method() == Method::HEAD {
            return Ok(upgrade::stream(ResponseBody::Whole(None)));
        }
        let (body, stolen) = upgrade::thief(request)?.steal();
        let (hub, permit) = (self.hub.clone(), connection.take_permit());
        tokio::spawn(async move {
            let Ok(loot) = stolen.await else {
                tracing::debug!("A stream ended before it began.");
                return;
            };
            let protocol = upgrade::protocol(&loot, is_named);
            let (socket, read_ahead) = (loot.socket, loot.read_ahead);
            let new = NewConnection { principal, socket, read_ahead, protocol, permit };
            log_failure(hub.attach(new, purpose).await);
        });
        Ok(upgrade::stream(ResponseBody::Stream(body)))
    }
}

/// The close code for a refused connection (B.2.6).
pub(super) fn close_code(error: &AccessError) -> u16 {
    match error.status() {
        403 => NOT_AUTHORIZED,
        // The credential was not checked, so it may be good: the peer comes back later.
        429 | 503 => TRY_AGAIN_LATER,
        _ => NOT_AUTHENTICATED,
    }
}

/// The value of the header that names the last received event, if there is one.
pub(super) fn last_event_header(headers: &HeaderMap) -> Option<&str> {
    headers.get("last-event-id").and_then(|it| it.to_str().ok()).filter(|it| !it.is_empty())
}

/// Only logs: a hub that stops closes the connection, so there is no peer to tell.
fn log_failure(outcome: Result<(), HubError>) {
    if let Err(error) = outcome {
        tracing::debug!(%error, "A connection could not be taken over.");
    }
}
