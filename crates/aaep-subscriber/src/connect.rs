//! Subscribing to a producer by its address.

use aaep_transport::link::Target;

use crate::dial::AddressDialler;
use crate::error::ConnectError;
use crate::subscriber::{Subscriber, connect_with};
use crate::trust::{FoundProducer, discover};
use crate::wishes::Wishes;

/// Subscribes to the producer at an address. Must be called within a tokio runtime.
///
/// `http://…` and `https://…` select server-sent events, `ws://…` and `wss://…` a WebSocket, `unix:/path` a
/// socket on this machine (`unix:` alone is the socket of the person's own hub), `grpc://…` and `grpcs://…` gRPC,
/// and `stdio:PROGRAM ARGUMENT…` a child process. An HTTP address without a path names a producer: the kit looks
/// for its manifest, verifies it if it is signed, and tries its wires in their order. If the producer has neither
/// a manifest nor a handshake, the kit listens at `/events` and answers at `/messages`, and reports this with
/// [`News::WithoutHandshake`].
///
/// [`News::WithoutHandshake`]: crate::News::WithoutHandshake
pub async fn connect(url: &str, mut wishes: Wishes) -> Result<Subscriber, ConnectError> {
    let target = Target::parse(url).map_err(|error| {
        ConnectError::Address(format!("{}.", error.to_string().trim_end_matches('.')))
    })?;
    let must_be_signed = wishes.capabilities.accept_signed_manifests_only == Some(true);
    let mut bare = None;
    let (targets, trust) = match &target {
        Target::Sse(place) if is_bare(place.path_and_query()) && !wishes.without_handshake => {
            let FoundProducer { targets, trust } = discover(place, &wishes).await?;
            if targets.is_empty() {
                if wishes.is_bearer_for_hubs {
                    wishes.bearer = None;
                }
                bare = Target::parse(&format!("{}/events", url.trim_end_matches('/'))).ok();
            }
            (if targets.is_empty() { vec![target] } else { targets }, trust)
        }
        Target::Sse(place) | Target::WebSocket(place) | Target::Grpc(place) if must_be_signed => {
            let trust = discover(place, &wishes).await?.trust;
            (vec![target], trust)
        }
        Target::Unix(_) | Target::Stdio(_) if must_be_signed => {
            let why = "over this wire nobody can tell whose keys are meant. Use an https address";
            return Err(ConnectError::NotTrusted(why.to_owned()));
        }
        _ => (vec![target], None),
    };
    let connected =
        connect_with(AddressDialler::new(targets, &wishes, trust), wishes.clone()).await;
    match (connected, bare) {
        (Err(ConnectError::NoHandshake), Some(events)) if !must_be_signed => {
            let wishes = wishes.answering_without_handshake();
            connect_with(AddressDialler::new(vec![events], &wishes, None), wishes).await
        }
        (connected, _) => connected,
    }
}

fn is_bare(path: &str) -> bool {
    path.is_empty() || path == "/"
}
