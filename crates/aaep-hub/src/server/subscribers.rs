//! Requests of subscribers: a subscription, its stream, and messages (B.1).

use std::sync::Arc;

use aaep::handshake::{ReasonCode, SubscriptionRejected};
use aaep::{EventId, Message, Object, SubscriptionId, Violation};
use aaep_engine::terms::Door;
use http::header::LOCATION;
use http::{Request, StatusCode, Uri};
use hyper::body::Incoming;
use serde_json::json;

use super::ServerApp;
use super::answer::{self, HttpResponse};
use super::door::ServedConnection;
use super::query;
use super::takeover::last_event_header;
use crate::access::{AccessError, Principal, SecretPath, path_for_secret};
use crate::hub::{ConnectionPurpose, HubError, MessageOutcome, SubscriberMessage, read_subscriber};

/// When to try again if the hub has a problem.
const RETRY_AFTER_SECONDS: u64 = 5;

impl ServerApp {
    /// Handles a request for a subscription (B.1.2).
    pub(super) async fn subscribe(
        &self,
        principal: &Principal,
        request: Request<Incoming>,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let secret = SecretPath::find(request.uri().path());
        let before = secret.map(|it| path_for_secret(it.secret)).unwrap_or_default();
        let request = match read_subscriber(&self.json_body(request).await?) {
            SubscriberMessage::Valid(Message::SubscriptionRequest(request)) => *request,
            SubscriberMessage::Valid(_) => {
                return Err(wrong(
                    "This is another message than subscription.request. Send that one here.",
                ));
            }
            SubscriberMessage::MalformedRequest(request) => {
                let rejected = self.hub.reject_malformed(request).await;
                return Ok(rejection(&rejected.unwrap_or_else(|error| unable(&error))));
            }
            SubscriberMessage::Malformed(wrong) => return Err(not_valid(&wrong)),
        };
        let outcome = self.hub.subscribe(principal, Door::Open, request).await;
        match outcome.unwrap_or_else(|error| Err(Box::new(unable(&error)))) {
            Ok(accepted) => {
                let answer = answer::json(StatusCode::CREATED, &accepted);
                let id = accepted.subscription_id.as_str();
                let place = format!("{before}/aaep/v1/events?subscription_id={id}");
                Ok(answer::with_header(answer, LOCATION, &place))
            }
            Err(rejected) => Ok(rejection(&rejected)),
        }
    }

    /// The stream of a subscription (B.1.3, B.1.5).
    pub(super) async fn events(
        &self,
        principal: Arc<Principal>,
        connection: &ServedConnection,
        request: &Request<Incoming>,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let subscription_id = query::parameter(request.uri(), "subscription_id")?
            .ok_or_else(|| {
                wrong("The parameter subscription_id is missing. Subscribe first with POST /aaep/v1/subscriptions.")
            })?;
        let last_event_id = last_event(request)?;
        let Ok(subscription_id) = SubscriptionId::parse(&subscription_id) else {
            return Ok(no_such_subscription());
        };
        let known = self.hub.has_subscription(&principal, &subscription_id).await;
        if !known.map_err(|error| failed(&error))? {
            return Ok(no_such_subscription());
        }
        let purpose = ConnectionPurpose::Stream { subscription_id, last_event_id };
        self.stream(request, true, principal, connection, purpose)
    }

    /// Handles a message from a subscriber (B.1.4).
    pub(super) async fn reply(
        &self,
        principal: &Principal,
        request: Request<Incoming>,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let message = match read_subscriber(&self.json_body(request).await?) {
            SubscriberMessage::Valid(Message::SubscriptionRequest(_))
            | SubscriberMessage::MalformedRequest(_) => {
                let rejected = self.hub.reject_transport().await.unwrap_or_else(|it| unable(&it));
                return Ok(rejection(&rejected));
            }
            SubscriberMessage::Valid(message) => message,
            SubscriberMessage::Malformed(wrong) => return Err(not_valid(&wrong)),
        };
        let told = self.hub.tell(principal, message).await.map_err(|error| failed(&error))?;
        Ok(refusal(&told).unwrap_or_else(|| match told {
            MessageOutcome::Accepted(message) => answer::json(StatusCode::OK, &message),
            MessageOutcome::Rejected(message) => answer::json(StatusCode::OK, &message),
            MessageOutcome::Instructed(session_id) => {
                answer::json(StatusCode::ACCEPTED, &json!({ "session_id": session_id }))
            }
            _ => answer::done(),
        }))
    }

    /// The agents that accept instructions.
    pub(super) async fn agents(
        &self,
        principal: &Principal,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let agents = self.hub.agents(principal).await.map_err(|error| failed(&error))?;
        Ok(answer::json(StatusCode::OK, &json!({ "agents": agents })))
    }
}

/// The response when the hub could not do its part.
pub(super) fn failed(error: &HubError) -> Box<HttpResponse> {
    let (status, code) = match error {
        HubError::NoSuchAsk => (StatusCode::NOT_FOUND, "no_such_ask"),
        HubError::NoSuchAgent => (StatusCode::NOT_FOUND, "no_such_agent"),
        HubError::Stopped => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        HubError::NotStored { .. } => (StatusCode::SERVICE_UNAVAILABLE, "not_stored"),
        HubError::NotTaken { .. } => (StatusCode::SERVICE_UNAVAILABLE, "not_taken"),
        HubError::ReplyLost => (StatusCode::SERVICE_UNAVAILABLE, "not_counted"),
        HubError::NameTooLong => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
        HubError::TooManyNames => (StatusCode::SERVICE_UNAVAILABLE, "too_many"),
    };
    let mut message = error.to_string();
    if *error == HubError::NoSuchAsk {
        message.push_str(" It may have ended long ago. Ask again with POST /aaep/v1/asks.");
    }
    let answer = answer::refusal(status, code, &message);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        return Box::new(answer::retry_after(answer, RETRY_AFTER_SECONDS));
    }
    Box::new(answer)
}

/// Rejects a subscription for lack of access, before its request is read.
pub(super) fn rejected_at_the_door(error: &AccessError) -> HttpResponse {
    let message = SubscriptionRejected {
        reason_code: error.reason_code(),
        reason_message: error.public_message(),
        retry_after_seconds: error.retry_after_seconds(),
        alternative_manifest_uri: None,
        other: Object::new(),
    };
    let mut answer = answer::json(answer::status(error.status()), &message);
    answer::challenge(&mut answer, error);
    match message.retry_after_seconds {
        Some(seconds) => answer::retry_after(answer, seconds),
        None => answer,
    }
}

/// Rejects a subscription because the hub cannot serve any at the moment.
fn unable(error: &HubError) -> SubscriptionRejected {
    SubscriptionRejected {
        reason_code: ReasonCode::Unknown,
        reason_message: error.to_string(),
        retry_after_seconds: Some(RETRY_AFTER_SECONDS),
        alternative_manifest_uri: None,
        other: Object::new(),
    }
}

/// A `subscription.rejected` with the HTTP status of its reason.
pub(super) fn rejection(message: &SubscriptionRejected) -> HttpResponse {
    let status = match message.reason_code {
        ReasonCode::AuthenticationRequired => StatusCode::UNAUTHORIZED,
        ReasonCode::AuthorizationDenied => StatusCode::FORBIDDEN,
        ReasonCode::VersionUnsupported
        | ReasonCode::CapabilitiesIncompatible
        | ReasonCode::ManifestSignatureRequired
        | ReasonCode::TransportUnavailable => StatusCode::CONFLICT,
        ReasonCode::RateLimit => StatusCode::TOO_MANY_REQUESTS,
        // Trying again helps if the hub has a problem, but not if the request is malformed.
        _ if message.retry_after_seconds.is_some() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    };
    let answer = answer::json(status, message);
    match message.retry_after_seconds {
        Some(seconds) => answer::retry_after(answer, seconds),
        None => answer,
    }
}

fn not_valid(wrong: &[Violation]) -> Box<HttpResponse> {
    Box::new(answer::not_valid(StatusCode::BAD_REQUEST, wrong))
}

/// The last event that the subscriber received, from the header or, for clients that cannot send it, from
/// the query.
fn last_event(request: &Request<Incoming>) -> Result<Option<EventId>, Box<HttpResponse>> {
    let text = match last_event_header(request.headers()) {
        Some(text) => Some(text.to_owned()),
        None => from_query(request.uri())?,
    };
    let parse = |text: String| {
        EventId::parse(&text).map_err(|_| {
            wrong("The last event id is not one. Send the id of the last event that came, or none.")
        })
    };
    text.map(parse).transpose()
}

fn from_query(uri: &Uri) -> Result<Option<String>, Box<HttpResponse>> {
    Ok(query::parameter(uri, "last_event_id")?.filter(|text| !text.is_empty()))
}

fn wrong(message: &str) -> Box<HttpResponse> {
    Box::new(answer::refusal(StatusCode::BAD_REQUEST, "wrong_request", message))
}

fn no_such_subscription() -> HttpResponse {
    refusal(&MessageOutcome::NoSuchSubscription).unwrap_or_else(answer::not_found)
}

/// The response for a message that was refused, in the same words as on a socket.
fn refusal(told: &MessageOutcome) -> Option<HttpResponse> {
    let (code, why) = told.refusal()?;
    let status = match told {
        MessageOutcome::NoSuchSubscription => StatusCode::NOT_FOUND,
        MessageOutcome::NotInstructed(_) => StatusCode::CONFLICT,
        _ => StatusCode::BAD_REQUEST,
    };
    Some(answer::refusal(status, code, &why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::NotInstructed;
    use crate::server::answer::ResponseBody;

    #[test]
    fn http_refuses_a_message_in_the_same_words_as_a_socket() {
        for (told, status) in [
            (MessageOutcome::NotCounted, 400),
            (MessageOutcome::NotForHere, 400),
            (MessageOutcome::NoSuchSubscription, 404),
            (MessageOutcome::NotInstructed(NotInstructed::NotAllowed), 409),
        ] {
            let (code, why) = told.refusal().expect("a refusal");
            let response = refusal(&told).expect("a refusal");
            assert_eq!(response.status(), status, "{told:?}");
            let ResponseBody::Whole(Some(body)) = response.into_body() else { panic!("a body") };
            let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(body, json!({ "error": code, "message": why }));
        }
        for told in [MessageOutcome::Counted, MessageOutcome::Closed] {
            assert!(refusal(&told).is_none(), "{told:?}");
        }
    }
}
