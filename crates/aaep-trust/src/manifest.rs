//! The manifest that a producer publishes (§5.10, §12.5.3, B.7): how it is built, signed, verified and pinned.
//!
//! The specification has no fields for the addresses of transports, for the key set, or for times. They are in
//! `extensions.agentvoice`, which a reader that does not know them ignores. A manifest is built from plain
//! values; nothing here knows the engine or a socket.

mod jws;
mod pins;
mod sign;
mod verify;

use std::fmt;

use aaep::extension::{CONTEXT, PREFIX};
use aaep::{
    Capabilities, Context, Extensions, LanguageTag, Manifest, Message, Object, Prefix, Severity,
    TypePattern, Uri, Verbosity, Version, Violation,
};
use serde_json::{Value, json};

use crate::keys::Thumbprint;

pub use pins::{MAX_PINS, Pin, PinError, PinStore};
pub use sign::{MAX_JWS_CHARACTERS, SignError, SignedManifest, sign};
pub use verify::{Expected, MAX_MANIFEST_BYTES, Unverified, VerifiedManifest, VerifyError, verify};

/// Where a producer publishes its manifest (§5.10.2).
pub const WELL_KNOWN_PATH: &str = "/.well-known/aaep-manifest.json";

/// Where our producers publish their key set, unless configured otherwise.
pub const JWKS_PATH: &str = "/.well-known/aaep-jwks.json";

/// The media type of a manifest as a compact JWS.
pub const JOSE_MEDIA_TYPE: &str = "application/jose";

/// The members of `extensions.agentvoice` in a manifest.
mod member {
    pub(super) const CAPABILITIES: &str = "capabilities";
    pub(super) const ENDPOINTS: &str = "endpoints";
    pub(super) const EXPIRES_AT: &str = "expires_at";
    pub(super) const ISSUED_AT: &str = "issued_at";
    pub(super) const JWKS_URI: &str = "jwks_uri";
    pub(super) const MANIFEST_URI: &str = "manifest_uri";
    pub(super) const SIGNED_MANIFEST: &str = "signed_manifest";
    pub(super) const SIGNING_KEYS: &str = "signing_keys";
}

/// One transport over which a producer can be reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// Its name, such as `sse`, `websocket`, `unix-socket`, `grpc` or `stdio-jsonrpc`.
    pub transport: String,
    /// Its address, if it has one.
    pub uri: Option<Uri>,
    /// How messages are framed, if the transport leaves a choice (B.4.4).
    pub framing: Option<String>,
}

/// What a verifier needs to find the keys.
#[derive(Debug, Clone, PartialEq)]
pub struct SigningReference {
    /// The manifest's own address. It is signed with the rest, so that a copy elsewhere is noticed.
    pub manifest_uri: Uri,
    /// The address of the key set.
    pub jwks_uri: Uri,
    /// The keys that are published now.
    pub kids: Vec<Thumbprint>,
}

/// The content of a manifest, as plain values.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestDescription {
    /// The stable id of the agent, the same in all its versions.
    pub agent_id: String,
    /// The version of the agent.
    pub agent_version: Option<String>,
    /// The agent's name, as people see it.
    pub agent_name: Option<String>,
    /// The supported versions of AAEP.
    pub aaep_versions: Vec<Version>,
    /// The supported conformance levels.
    pub conformance_levels: Vec<u64>,
    /// How the producer can be reached.
    pub endpoints: Vec<Endpoint>,
    /// The supported languages.
    pub languages: Vec<LanguageTag>,
    /// The types of events that are emitted.
    pub event_types: Vec<TypePattern>,
    /// Context URIs of extensions besides our own, which is always included.
    pub extensions: Vec<Uri>,
    /// How detailed the words are unless requested otherwise.
    pub default_verbosity: Option<Verbosity>,
    /// How many subscriptions are served at the same time.
    pub max_concurrent_subscriptions: Option<u64>,
    /// How to reach the people behind the producer.
    pub contact: Option<String>,
    /// The widest terms that a subscription can get.
    pub capabilities: Option<Capabilities>,
    /// Where the manifest and the keys are, for a manifest that will be signed.
    pub signing: Option<SigningReference>,
}

impl ManifestDescription {
    /// A producer with this id that speaks our version and emits all core events.
    ///
    /// # Panics
    /// Never: the constants are valid.
    pub fn new(agent_id: &str) -> Self {
        ManifestDescription {
            agent_id: agent_id.to_owned(),
            agent_version: None,
            agent_name: None,
            aaep_versions: vec![Version::parse("1.0.0").expect("a constant of the right form")],
            conformance_levels: vec![1, 2, 3],
            endpoints: Vec::new(),
            languages: Vec::new(),
            event_types: vec![
                TypePattern::parse("aaep:agent.*").expect("a constant of the right form"),
            ],
            extensions: Vec::new(),
            default_verbosity: Some(Verbosity::Normal),
            max_concurrent_subscriptions: None,
            contact: None,
            capabilities: None,
            signing: None,
        }
    }
}

/// The description breaks rules of the specification.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildError {
    /// Everything that is wrong.
    pub violations: Vec<Violation>,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The manifest would not be valid.")?;
        self.violations.iter().try_for_each(|violation| write!(f, " {violation}"))
    }
}

impl std::error::Error for BuildError {}

/// Builds the manifest; refuses to build one that is not valid.
///
/// # Panics
/// Never: the constants are valid.
pub fn build(description: &ManifestDescription) -> Result<Manifest, BuildError> {
    let ours = Uri::parse(CONTEXT).expect("a constant of the right form");
    let mut extensions = vec![ours.clone()];
    extensions.extend(description.extensions.iter().filter(|uri| **uri != ours).cloned());
    let mut transports: Vec<String> = Vec::new();
    for endpoint in &description.endpoints {
        if !transports.contains(&endpoint.transport) {
            transports.push(endpoint.transport.clone());
        }
    }
    let data = our_data(description);
    let mut context = Context::default();
    if !data.is_empty() {
        context.declare(ours);
    }
    let prefix = Prefix::parse(PREFIX).expect("a constant of the right form");
    let manifest = Manifest {
        context,
        agent_id: description.agent_id.clone(),
        agent_version: description.agent_version.clone(),
        agent_name: description.agent_name.clone(),
        aaep_versions_supported: description.aaep_versions.clone(),
        conformance_levels_supported: some(&description.conformance_levels),
        transports_supported: some(&transports),
        languages_supported: some(&description.languages),
        event_types_emitted: some(&description.event_types),
        extensions_supported: Some(extensions),
        default_verbosity: description.default_verbosity.clone(),
        max_concurrent_subscriptions: description.max_concurrent_subscriptions,
        contact: description.contact.clone(),
        extensions: (!data.is_empty()).then(|| Extensions([(prefix, data)].into())),
        other: Object::new(),
    };
    let mut violations = aaep::check(&Message::Manifest(Box::new(manifest.clone())));
    violations.retain(|violation| violation.severity == Severity::Error);
    if violations.is_empty() { Ok(manifest) } else { Err(BuildError { violations }) }
}

fn some<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (!list.is_empty()).then(|| list.to_vec())
}

/// Our own data: everything that has no field in the specification.
fn our_data(description: &ManifestDescription) -> Object {
    let mut data = Object::new();
    let endpoints: Vec<Value> = description
        .endpoints
        .iter()
        .filter(|endpoint| endpoint.uri.is_some() || endpoint.framing.is_some())
        .map(|endpoint| {
            let mut entry = json!({ "transport": endpoint.transport });
            if let Some(uri) = &endpoint.uri {
                entry["uri"] = uri.as_str().into();
            }
            if let Some(framing) = &endpoint.framing {
                entry["framing"] = framing.as_str().into();
            }
            entry
        })
        .collect();
    if !endpoints.is_empty() {
        data.insert(member::ENDPOINTS.to_owned(), endpoints.into());
    }
    if let Some(Ok(terms)) = description.capabilities.as_ref().map(serde_json::to_value) {
        data.insert(member::CAPABILITIES.to_owned(), terms);
    }
    if let Some(signing) = &description.signing {
        let kids: Vec<&str> = signing.kids.iter().map(Thumbprint::as_str).collect();
        data.insert(member::MANIFEST_URI.to_owned(), signing.manifest_uri.as_str().into());
        data.insert(member::JWKS_URI.to_owned(), signing.jwks_uri.as_str().into());
        data.insert(member::SIGNING_KEYS.to_owned(), kids.into());
    }
    data
}

/// Our own data in a manifest, if there is any.
fn data_of(manifest: &Manifest) -> Option<&Object> {
    manifest.extensions.as_ref()?.0.iter().find(|it| it.0.as_str() == PREFIX).map(|it| it.1)
}
