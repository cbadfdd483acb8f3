//! Finding a producer by its manifest, and trusting only what its key has signed (§5.10, §10.4, B.7).

use std::path::PathBuf;
use std::time::SystemTime;

use aaep::handshake::SubscriptionAccepted;
use aaep::{Manifest, Message, Mode};
use aaep_transport::link::{HttpAddress, Target};
use aaep_trust::fetch::Client;
use aaep_trust::keys::{Jwks, Thumbprint};
use aaep_trust::manifest::{Expected, PinStore, Unverified, VerifyError, WELL_KNOWN_PATH};

use crate::error::ConnectError;
use crate::wishes::Wishes;

/// How many wires of a manifest are considered.
const MAX_ENDPOINTS: usize = 16;

/// The manifest as JSON, which includes its signature if there is one.
const WANTED: &str = "application/json";

/// The keys by which a producer is known.
#[derive(Debug, Clone)]
pub(crate) struct ProducerTrust {
    keys: Option<Jwks>,
    pinned: Vec<Thumbprint>,
    origin: String,
    is_needed: bool,
}

impl ProducerTrust {
    /// Checks that the producer that grants a subscription is the one whose manifest was verified.
    pub(crate) fn judge(&self, accepted: &SubscriptionAccepted) -> Result<(), String> {
        let (Some(jws), Some(keys)) = (&accepted.signed_manifest, &self.keys) else {
            let problem = "the producer did not sign its manifest".to_owned();
            return if self.is_needed { Err(problem) } else { Ok(()) };
        };
        let expected = Expected {
            pins: &self.pinned,
            origin: Some(&self.origin),
            agent_id: Some(&accepted.producer.agent_id),
        };
        let unverified = Unverified::parse(jws.as_str().as_bytes());
        let verified = unverified.and_then(|it| it.verify(keys, &expected, now_unix_ms()));
        verified.map(|_| ()).map_err(|error| error.to_string())
    }
}

/// What was discovered about a producer.
pub(crate) struct FoundProducer {
    /// Its wires on the same host, in the order of its manifest.
    pub(crate) targets: Vec<Target>,
    pub(crate) trust: Option<ProducerTrust>,
}

/// Looks for the manifest on a host. A missing manifest is an error only if one is required.
pub(crate) async fn discover(
    place: &HttpAddress,
    wishes: &Wishes,
) -> Result<FoundProducer, ConnectError> {
    let is_needed = wishes.capabilities.accept_signed_manifests_only == Some(true);
    let address = place.at(WELL_KNOWN_PATH);
    let address = address.ok_or_else(|| ConnectError::Address(place.origin()))?;
    let origin = address.origin();
    let pins = PinFile::open(wishes.pins.clone()).await?;
    let pinned: Vec<Thumbprint> = pins.of(&origin);
    let must = is_needed || !pinned.is_empty();
    let client = Client::new().insecure_allow_plain_http(wishes.insecure_allow_plain_http);
    let bytes = match client.get(&address, WANTED).await {
        Ok(bytes) => bytes,
        // Whether the host answers at all shows when the link is opened.
        Err(_) if !must => return Ok(FoundProducer { targets: Vec::new(), trust: None }),
        Err(error) => {
            let why = format!("The manifest cannot be fetched. {error}.");
            return Err(ConnectError::Manifest(why));
        }
    };
    match Unverified::parse(&bytes) {
        Ok(unverified) => {
            let keys = fetch_keys(&client, &origin, &unverified).await?;
            let expected = Expected { pins: &pinned, origin: Some(&origin), agent_id: None };
            let verified = unverified
                .verify(&keys, &expected, now_unix_ms())
                .map_err(|error| ConnectError::NotTrusted(error.to_string()))?;
            pins.remember(&origin, verified.thumbprint.clone()).await?;
            let pinned = vec![verified.thumbprint];
            // A program that keeps no pins accepts a producer that changes its key.
            let is_kept = is_needed || wishes.pins.is_some();
            let trust =
                is_kept.then_some(ProducerTrust { keys: Some(keys), pinned, origin, is_needed });
            Ok(FoundProducer { targets: targets(&verified.manifest, place), trust })
        }
        Err(VerifyError::Unsigned) if !must => {
            let targets = match aaep::read(&bytes, Mode::Tolerant).message {
                Some(Message::Manifest(manifest)) => targets(&manifest, place),
                _ => Vec::new(),
            };
            Ok(FoundProducer { targets, trust: None })
        }
        // A document that is not a manifest says nothing about the producer; a broken manifest is not trusted.
        Err(VerifyError::NotAManifest(_)) if !must => {
            Ok(FoundProducer { targets: Vec::new(), trust: None })
        }
        Err(error) => Err(ConnectError::NotTrusted(error.to_string())),
    }
}

/// The keys of a producer, from its own host only.
async fn fetch_keys(
    client: &Client,
    origin: &str,
    unverified: &Unverified,
) -> Result<Jwks, ConnectError> {
    let not_there = |why: &str| ConnectError::NotTrusted(format!("Its keys cannot be had: {why}."));
    let named = unverified.jwks_uri().ok_or_else(|| not_there("it does not say where they are"))?;
    let address = HttpAddress::parse(named).map_err(|error| not_there(&error.to_string()))?;
    if address.origin() != origin {
        return Err(not_there("it has them at another place than itself"));
    }
    let bytes = client.get(&address, "application/json").await;
    let bytes = bytes.map_err(|error| not_there(&error.to_string()))?;
    Jwks::parse(&bytes).map_err(|error| not_there(error.to_string().trim_end_matches('.')))
}

/// The wires of a manifest that lead to the same host and are as secure. A manifest can never name a program to
/// run.
fn targets(manifest: &Manifest, place: &HttpAddress) -> Vec<Target> {
    let data = manifest.extensions.iter().flat_map(|it| &it.0);
    let ours = data.filter(|(prefix, _)| prefix.as_str() == aaep::extension::PREFIX);
    let listed = ours.filter_map(|(_, data)| data.get("endpoints")?.as_array()).flatten();
    let read = listed.take(MAX_ENDPOINTS).filter_map(|endpoint| {
        let uri = endpoint.get("uri")?.as_str()?;
        let uri = match endpoint.get("transport")?.as_str()? {
            // Many manifests write an HTTP address here; it still means gRPC.
            "grpc" if uri.starts_with("http") => uri.replacen("http", "grpc", 1),
            _ => uri.to_owned(),
        };
        Target::parse(&uri).ok().filter(|target| is_fine(target, place))
    });
    read.collect()
}

fn is_fine(target: &Target, place: &HttpAddress) -> bool {
    match target {
        Target::Sse(to) | Target::WebSocket(to) | Target::Grpc(to) => {
            let is_here = to.host() == place.host() || (to.is_loopback() && place.is_loopback());
            is_here && (to.is_https() || !place.is_https())
        }
        Target::Unix(_) => place.is_loopback(),
        Target::Stdio(_) => false,
    }
}

/// The file of pinned producer keys, if the program keeps one.
struct PinFile(Option<PinStore>);

impl PinFile {
    async fn open(path: Option<PathBuf>) -> Result<Self, ConnectError> {
        let Some(path) = path else { return Ok(PinFile(None)) };
        let opened = tokio::task::spawn_blocking(move || PinStore::open(&path)).await;
        let opened = opened.map_err(|error| ConnectError::Manifest(error.to_string()))?;
        opened.map(|pins| PinFile(Some(pins))).map_err(|error| not_kept(&error.to_string()))
    }

    fn of(&self, origin: &str) -> Vec<Thumbprint> {
        let pin = self.0.as_ref().and_then(|pins| pins.get(origin));
        pin.map(|pin| pin.thumbprint.clone()).into_iter().collect()
    }

    /// Pins the key of a producer that was not known before.
    async fn remember(self, origin: &str, key: Thumbprint) -> Result<(), ConnectError> {
        let Some(mut pins) = self.0.filter(|pins| pins.get(origin).is_none()) else {
            return Ok(());
        };
        let origin = origin.to_owned();
        let written =
            tokio::task::spawn_blocking(move || pins.pin(&origin, key, now_unix_ms())).await;
        let written = written.map_err(|error| ConnectError::Manifest(error.to_string()))?;
        written.map_err(|error| not_kept(&error.to_string()))
    }
}

fn not_kept(why: &str) -> ConnectError {
    ConnectError::Manifest(format!("The keys of producers cannot be kept: {why}."))
}

fn now_unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place(url: &str) -> HttpAddress {
        match Target::parse(url) {
            Ok(Target::Sse(place)) => place,
            other => panic!("{other:?}"),
        }
    }

    fn found(url: &str, endpoints: &[(&str, &str)]) -> Vec<String> {
        let endpoints: Vec<_> = endpoints
            .iter()
            .map(|(transport, uri)| json!({ "transport": transport, "uri": uri }))
            .collect();
        let manifest = json!({
            "@context": ["https://aaep-protocol.org/context/v1", aaep::extension::CONTEXT],
            "type": "aaep:producer.manifest", "agent_id": "weaver",
            "aaep_versions_supported": ["1.0.0"],
            "extensions": { "agentvoice": { "endpoints": endpoints } },
        });
        match aaep::read(manifest.to_string().as_bytes(), Mode::Tolerant).message {
            Some(Message::Manifest(manifest)) => {
                targets(&manifest, &place(url)).iter().map(ToString::to_string).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn wires_are_tried_in_the_order_of_the_manifest() {
        let endpoints = [
            ("grpc", "https://loom.example:7118"),
            ("websocket", "wss://loom.example/aaep/v1/ws"),
            ("sse", "https://loom.example/aaep/v1/events"),
        ];
        let found = found("https://loom.example/", &endpoints);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("grpcs://loom.example:7118"), "{found:?}");
        assert!(found[1].starts_with("wss://") && found[2].starts_with("https://"), "{found:?}");
    }

    #[test]
    fn a_manifest_cannot_send_us_elsewhere_nor_run_anything() {
        let endpoints = [
            ("sse", "https://thief.example/aaep/v1/events"),
            ("sse", "http://loom.example/aaep/v1/events"),
            ("websocket", "ws://loom.example/aaep/v1/ws"),
            ("unix-socket", "unix:/tmp/thief.sock"),
            ("stdio-jsonrpc", "stdio:rm -rf /"),
            ("stdio-jsonrpc", "stdio:true"),
            ("sse", "https://user:secret@loom.example/"),
        ];
        assert_eq!(found("https://loom.example/", &endpoints), [""; 0]);
        assert_eq!(found("http://127.0.0.1:7117/", &endpoints), ["unix:/tmp/thief.sock"]);
        let here = [("sse", "http://127.0.0.1:7117/aaep/v1/events")];
        assert_eq!(found("http://localhost:7117/", &here).len(), 1);
    }

    #[test]
    fn a_manifest_with_countless_wires_is_looked_at_only_so_far() {
        let many = vec![("sse", "http://127.0.0.1:7117/aaep/v1/events"); 1000];
        assert_eq!(found("http://127.0.0.1:7117/", &many).len(), MAX_ENDPOINTS);
    }
}
