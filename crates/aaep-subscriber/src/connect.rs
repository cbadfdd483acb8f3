//! From an address to a subscription.

use aaep_transport::link::Target;

use crate::dial::ByAddress;
use crate::error::ConnectError;
use crate::subscriber::{Subscriber, connect_with};
use crate::trust::{Found, discover};
use crate::wishes::Wishes;

/// Subscribes to the producer at an address. Must be called within a tokio runtime.
///
/// `http://…` and `https://…` are server-sent events, `ws://…` and `wss://…` a WebSocket, `unix:/path` a
/// socket on this machine (`unix:` alone is the one of the person's own hub), `grpc://…` and `grpcs://…`
/// gRPC, `stdio:PROGRAM ARGUMENT…` a child process. An address of HTTP without a path is that of a producer:
/// its manifest is looked for, verified if it is signed, and its wires are tried in their order. One that has neither
/// a manifest nor a handshake is heard at `/events` and answered at `/messages`; [`News::WithoutHandshake`] says so.
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
            let Found { targets, trust } = discover(place, &wishes).await?;
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
    let connected = connect_with(ByAddress::new(targets, &wishes, trust), wishes.clone()).await;
    match (connected, bare) {
        (Err(ConnectError::NoHandshake), Some(events)) if !must_be_signed => {
            let wishes = wishes.answering_without_handshake();
            connect_with(ByAddress::new(vec![events], &wishes, None), wishes).await
        }
        (connected, _) => connected,
    }
}

fn is_bare(path: &str) -> bool {
    path.is_empty() || path == "/"
}
