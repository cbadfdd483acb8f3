//! gRPC (B.5), the client's side: one call on one connection.

use aaep_http::HttpAddress;
use hyper::Uri;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Status};

use super::caller::LinkCaller;
use super::dial::{DialError, DialOptions};
use super::{Bearer, LAST_WORDS, Link, LinkEnd, LinkInlet, link};
use crate::framed::FrameViolation;
use crate::grpc::proto::aaep_service_client::AaepServiceClient;
use crate::grpc::{AaepMessage, Channel, ENVELOPE_BYTES, SubscriberMessages, close_code};

/// How many characters of a producer's closing reason are repeated.
const MAX_REASON_CHARS: usize = 500;

type GrpcClient = AaepServiceClient<Channel>;

/// Calls the producer. Whether it lets us in shows only on the link: some producers answer nothing before the
/// first message arrives.
pub(super) async fn dial(address: &HttpAddress, options: &DialOptions) -> Result<Link, DialError> {
    let caller = LinkCaller::of_http2(address, options)?;
    let stream = timeout(options.connect_timeout, caller.stream()).await;
    let stream = stream.unwrap_or(Err(DialError::TooSlow))?;
    let channel = timeout(options.connect_timeout, Channel::open(stream, options.silence_timeout));
    let channel = channel.await.map_err(|_| DialError::TooSlow)?;
    let channel = channel.map_err(|error| DialError::Cut(error.to_string()))?;
    let origin: Uri = address
        .origin()
        .parse()
        .map_err(|_| DialError::Violation("Its address cannot be called.".to_owned()))?;
    let client = AaepServiceClient::with_origin(channel, origin)
        .max_decoding_message_size(options.max_message_bytes as usize + ENVELOPE_BYTES);
    let mut metadata = MetadataMap::new();
    if let Some(authorization) = caller.authorization() {
        let mut headers = metadata.into_headers();
        headers.insert(hyper::header::AUTHORIZATION, authorization.clone());
        metadata = MetadataMap::from_headers(headers);
    }
    let (link, bearer) = link();
    tokio::spawn(run(client, metadata, bearer));
    Ok(link)
}

async fn run(client: GrpcClient, metadata: MetadataMap, mut bearer: Bearer) {
    let (sender, outgoing) = mpsc::channel(1);
    let request =
        Request::from_parts(metadata, tonic::Extensions::new(), SubscriberMessages(outgoing));
    let inlet = bearer.inlet();
    // Sending and receiving run at the same time: neither waits for the other.
    let end = tokio::select! {
        end = hear(client, request, &inlet) => Some(end),
        () = speak(sender, &mut bearer) => None,
    };
    if let Some(end) = end {
        bearer.end(end).await;
    }
}

/// Passes messages on. Continues when the subscriber is gone, so that the producer can finish.
async fn hear(
    mut client: GrpcClient,
    request: Request<SubscriberMessages>,
    inlet: &LinkInlet,
) -> LinkEnd {
    let mut heard = match client.subscribe(request).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => return end_of(&status),
    };
    loop {
        match heard.message().await {
            // An empty message is a sign of life.
            Ok(Some(message)) if message.json.is_empty() => {}
            Ok(Some(message)) => match String::from_utf8(message.json) {
                Ok(text) => drop(inlet.incoming(text).await),
                Err(_) => return LinkEnd::Violation(FrameViolation::InvalidText.to_string()),
            },
            Ok(None) => {
                let trailers = heard.trailers().await.ok().flatten().unwrap_or_default();
                let status = Status::from_header_map(trailers.as_ref());
                let reason = status.as_ref().map_or("", |status| status.message());
                return LinkEnd::closed(close_code(&trailers), shortened(reason));
            }
            Err(status) => return end_of(&status),
        }
    }
}

/// Sends the subscriber's messages, then ends the sending side.
async fn speak(sender: mpsc::Sender<AaepMessage>, bearer: &mut Bearer) {
    while let Some(message) = bearer.outgoing().await {
        let message = AaepMessage { json: message.into_bytes(), message_type: String::new() };
        if sender.send(message).await.is_err() {
            // The producer has ended the call; receiving reports why.
            std::future::pending::<()>().await;
        }
    }
    drop(sender);
    // The producer reads the remaining messages, and then ends.
    sleep(LAST_WORDS).await;
}

/// Why a call ended.
fn end_of(status: &Status) -> LinkEnd {
    let reason = shortened(status.message());
    match (close_code(status.metadata()), status.code()) {
        (Some(code), _) => LinkEnd::closed(Some(code), reason),
        (None, Code::Unauthenticated | Code::PermissionDenied) => LinkEnd::Refused { reason },
        (None, Code::OutOfRange) => LinkEnd::Violation(FrameViolation::TooBig.to_string()),
        (None, Code::Unimplemented) => {
            LinkEnd::Violation("The server does not offer the AAEP service.".to_owned())
        }
        (None, Code::Ok) => LinkEnd::Closed { code: None, reason },
        (None, _) => LinkEnd::Cut(reason),
    }
}

fn shortened(reason: &str) -> String {
    reason.chars().take(MAX_REASON_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::closed_status;

    #[test]
    fn a_last_word_keeps_its_code_and_a_refusal_is_one() {
        let end = |status: &Status| end_of(status);
        let closed = LinkEnd::Closed { code: Some(1001), reason: "Later.".to_owned() };
        assert_eq!(end(&closed_status(1001, "Later.")), closed);
        for refused in [
            closed_status(4002, "Who?"),
            closed_status(4003, "Who?"),
            Status::unauthenticated("Who?"),
            Status::permission_denied("Who?"),
        ] {
            assert_eq!(end(&refused), LinkEnd::Refused { reason: "Who?".to_owned() });
        }
        assert!(matches!(end(&Status::unimplemented("")), LinkEnd::Violation(_)));
        assert!(matches!(end(&Status::out_of_range("")), LinkEnd::Violation(_)));
        assert_eq!(end(&Status::unknown("x".repeat(9000))), LinkEnd::Cut("x".repeat(500)));
    }
}
