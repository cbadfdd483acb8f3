//! The legacy paths `/events` and `/messages` (ruling 27). The hub implements their meaning.

use std::sync::Arc;

use aaep::EventId;
use aaep_transport::websocket::SUBPROTOCOL;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use serde_json::json;

use super::ServerApp;
use super::answer::{self, HttpResponse};
use super::door::ServedConnection;
use super::subscribers::{failed, rejection};
use super::takeover::last_event_header;
use super::upgrade::{self, SubprotocolRule};
use crate::access::Principal;
use crate::hub::{ConnectionPurpose, LegacyAnswer, MAY_NOT_ANSWER};

impl ServerApp {
    /// A stream, or a WebSocket for clients that request one.
    pub(super) fn legacy_events(
        &self,
        principal: Arc<Principal>,
        connection: &ServedConnection,
        request: Request<Incoming>,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        if upgrade::is_websocket(request.headers()) {
            let subprotocol = SubprotocolRule::Optional(SUBPROTOCOL);
            let purpose = ConnectionPurpose::LegacySocket;
            return self.upgrade(request, subprotocol, principal, connection, purpose);
        }
        // A value that is not an event id cannot be resumed from; the stream then begins now.
        let last_event_id =
            last_event_header(request.headers()).and_then(|it| EventId::parse(it).ok());
        let purpose = ConnectionPurpose::LegacyStream { last_event_id };
        self.stream(&request, false, principal, connection, purpose)
    }

    /// Any message of a subscriber. Every well-formed message is accepted; its effects appear on the stream.
    pub(super) async fn legacy_message(
        &self,
        principal: &Principal,
        request: Request<Incoming>,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let bytes = self.body(request).await?;
        let Ok(text) = String::from_utf8(bytes) else {
            return Ok(answer::refusal(
                StatusCode::BAD_REQUEST,
                "not_utf8",
                "The body is not UTF-8. Encode the message as UTF-8.",
            ));
        };
        let taken = self.hub.legacy_message(principal, text).await;
        Ok(match taken.map_err(|error| failed(&error))? {
            LegacyAnswer::Taken => {
                answer::json(StatusCode::ACCEPTED, &json!({ "status": "taken" }))
            }
            LegacyAnswer::NotInstructed(why) => answer::json(
                StatusCode::ACCEPTED,
                &json!({ "status": "not_accepted", "message": why.to_string() }),
            ),
            LegacyAnswer::MayNotAnswer => {
                answer::refusal(StatusCode::FORBIDDEN, "may_not_answer", MAY_NOT_ANSWER)
            }
            LegacyAnswer::Rejected(rejected) => rejection(&rejected),
            LegacyAnswer::NotValid(wrong) => answer::not_valid(StatusCode::BAD_REQUEST, &wrong),
        })
    }
}
