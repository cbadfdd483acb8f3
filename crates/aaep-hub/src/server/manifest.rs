//! The manifest that this hub publishes and keeps signed while it runs (§5.10, §10.4).
//!
//! The active key of the key ring signs it, if there is one. It is signed again when half of its validity is
//! over and when the keys change. If that fails, the previous one stays published and the log says why.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use aaep::{CompactJws, LanguageTag, Uri};
use bytes::Bytes;
use http::header::{ACCEPT, VARY};
use http::{HeaderMap, StatusCode};

use super::answer::{self, HttpResponse, JSON};
use aaep_trust::keys::{KeyRing, KeyRingError, KeyState, Thumbprint};
use aaep_trust::manifest::{
    BuildError, JOSE_MEDIA_TYPE, JWKS_PATH, ManifestDescription, SignError, SigningReference,
    WELL_KNOWN_PATH, build, sign,
};

/// How long a signature is valid.
const VALID_FOR: Duration = Duration::from_hours(7 * 24);

/// How often the service checks whether to sign again.
pub(crate) const CHECK_EVERY: Duration = Duration::from_mins(1);

/// The manifest of a running hub. Clones share it.
#[derive(Debug, Clone)]
pub struct ManifestService {
    shared: Arc<ManifestShared>,
}

#[derive(Debug)]
struct ManifestShared {
    description: ManifestDescription,
    manifest_uri: Uri,
    jwks_uri: Uri,
    keys: Option<PathBuf>,
    published: RwLock<Arc<PublishedManifest>>,
    /// The languages that agents use now.
    languages: RwLock<Vec<LanguageTag>>,
}

/// The manifest and keys as published now.
#[derive(Debug)]
struct PublishedManifest {
    json: Bytes,
    jws: Option<CompactJws>,
    jwks: Bytes,
    /// The keys that were published when it was made, the active one first.
    kids: Vec<Thumbprint>,
    languages: Vec<LanguageTag>,
    renew_at_unix_ms: i64,
}

/// Why the manifest cannot be made.
#[derive(Debug)]
pub enum ManifestError {
    /// The origin is not valid.
    Origin(String),
    /// The keys cannot be used.
    Keys(KeyRingError),
    /// The description does not make a valid manifest.
    Build(BuildError),
    /// It cannot be signed.
    Sign(SignError),
}

impl ManifestService {
    /// Makes the manifest for a hub at this origin, such as `https://hub.example.org`, and signs it if the
    /// folder has keys.
    pub fn new(
        description: ManifestDescription,
        origin: &str,
        keys: Option<PathBuf>,
        now_unix_ms: i64,
    ) -> Result<Self, ManifestError> {
        let uri = |path: &str| {
            Uri::parse(&format!("{}{path}", origin.trim_end_matches('/')))
                .map_err(|_| ManifestError::Origin(origin.to_owned()))
        };
        let (manifest_uri, jwks_uri) = (uri(WELL_KNOWN_PATH)?, uri(JWKS_PATH)?);
        let nothing = PublishedManifest {
            json: Bytes::new(),
            jws: None,
            jwks: Bytes::new(),
            kids: Vec::new(),
            languages: Vec::new(),
            renew_at_unix_ms: i64::MIN,
        };
        let published = RwLock::new(Arc::new(nothing));
        let languages = RwLock::new(description.languages.clone());
        let shared =
            ManifestShared { description, manifest_uri, jwks_uri, keys, published, languages };
        let service = ManifestService { shared: Arc::new(shared) };
        service.renew_if_due(now_unix_ms)?;
        Ok(service)
    }

    /// The address of the manifest.
    pub fn uri(&self) -> &Uri {
        &self.shared.manifest_uri
    }

    /// The signed manifest, if it is signed.
    pub fn signed(&self) -> Option<CompactJws> {
        self.published().jws.clone()
    }

    /// Sets the languages that the manifest lists from the next check on.
    pub fn set_languages(&self, languages: Vec<LanguageTag>) {
        let mut slot =
            self.shared.languages.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        *slot = languages;
    }

    fn languages(&self) -> Vec<LanguageTag> {
        let slot = self.shared.languages.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        slot.clone()
    }

    /// Signs again if it is time, or if the keys or the languages changed. Returns whether there is a new
    /// manifest. Reads files.
    pub fn renew_if_due(&self, now_unix_ms: i64) -> Result<bool, ManifestError> {
        let ring = self.shared.keys.as_deref().map(KeyRing::open).transpose();
        let ring = ring.map_err(ManifestError::Keys)?;
        let kids = ring.as_ref().map(|ring| kids(ring, now_unix_ms)).unwrap_or_default();
        let before = self.published();
        let is_same = kids == before.kids && self.languages() == before.languages;
        if is_same && now_unix_ms < before.renew_at_unix_ms {
            return Ok(false);
        }
        let published = self.make(ring.as_ref(), kids, now_unix_ms)?;
        let mut slot =
            self.shared.published.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        *slot = Arc::new(published);
        Ok(true)
    }

    fn make(
        &self,
        ring: Option<&KeyRing>,
        kids: Vec<Thumbprint>,
        now_unix_ms: i64,
    ) -> Result<PublishedManifest, ManifestError> {
        let mut description = self.shared.description.clone();
        let languages = self.languages();
        description.languages.clone_from(&languages);
        let ring = ring.filter(|_| !kids.is_empty());
        let Some(ring) = ring else {
            let manifest = build(&description).map_err(ManifestError::Build)?;
            let jwks = Bytes::from_static(b"{\"keys\":[]}");
            let json = text(&manifest);
            let renew_at_unix_ms = i64::MAX;
            return Ok(PublishedManifest {
                json,
                jws: None,
                jwks,
                kids,
                languages,
                renew_at_unix_ms,
            });
        };
        description.signing = Some(SigningReference {
            manifest_uri: self.shared.manifest_uri.clone(),
            jwks_uri: self.shared.jwks_uri.clone(),
            kids: kids.clone(),
        });
        let manifest = build(&description).map_err(ManifestError::Build)?;
        let key = ring.active().map_err(ManifestError::Keys)?;
        let signed = sign(&manifest, &key, now_unix_ms, VALID_FOR).map_err(ManifestError::Sign)?;
        let half = i64::try_from(VALID_FOR.as_millis() / 2).unwrap_or(i64::MAX);
        Ok(PublishedManifest {
            json: text(&signed.document),
            jws: Some(signed.jws),
            jwks: text(&ring.jwks(now_unix_ms)),
            kids,
            languages,
            renew_at_unix_ms: now_unix_ms.saturating_add(half),
        })
    }

    /// The manifest in JSON.
    #[cfg(feature = "grpc")]
    pub(crate) fn json(&self) -> Bytes {
        self.published().json.clone()
    }

    /// The response to a request for the manifest.
    pub(crate) fn answer(&self, headers: &HeaderMap) -> HttpResponse {
        let published = self.published();
        let answer = if !wants_jose(headers) {
            answer::whole(StatusCode::OK, JSON, published.json.clone())
        } else if let Some(jws) = &published.jws {
            answer::whole(StatusCode::OK, JOSE_MEDIA_TYPE, jws.as_str().to_owned())
        } else {
            answer::refusal(
                StatusCode::NOT_ACCEPTABLE,
                "not_signed",
                "The manifest is not signed. Ask for application/json, or let the person who runs \
                 this hub make a key with: aaep keys new",
            )
        };
        answer::with_header(answer, VARY, "Accept")
    }

    /// The response to a request for the keys.
    pub(crate) fn answer_keys(&self) -> HttpResponse {
        answer::whole(StatusCode::OK, JSON, self.published().jwks.clone())
    }

    fn published(&self) -> Arc<PublishedManifest> {
        let slot = self.shared.published.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        Arc::clone(&slot)
    }
}

/// The keys to publish, the active one first. Empty if nothing can be signed.
fn kids(ring: &KeyRing, now_unix_ms: i64) -> Vec<Thumbprint> {
    let mut kids = Vec::new();
    let mut has_active = false;
    for record in ring.published(now_unix_ms) {
        if record.state(now_unix_ms) == KeyState::Active {
            has_active = true;
            kids.insert(0, record.kid().clone());
        } else {
            kids.push(record.kid().clone());
        }
    }
    if has_active { kids } else { Vec::new() }
}

/// Whether the request asks for a compact JWS.
fn wants_jose(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_jose = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(JOSE_MEDIA_TYPE));
        let is_refused = |part: &str| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.and_then(|it| it.parse::<f32>().ok()).is_some_and(|it| it <= 0.0)
        };
        is_jose && !parts.any(is_refused)
    })
}

fn text(value: &impl serde::Serialize) -> Bytes {
    // A manifest and a key set can always be serialized.
    serde_json::to_vec(value).unwrap_or_default().into()
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManifestError::Origin(origin) => write!(
                f,
                "{} is not the beginning of an address. Write such as https://hub.example.org.",
                aaep_trust::quoted(origin)
            ),
            ManifestError::Keys(error) => write!(f, "The manifest cannot be signed: {error}."),
            ManifestError::Build(error) => {
                write!(f, "{error} Change the settings in the table hub.")
            }
            ManifestError::Sign(error) => write!(f, "The manifest cannot be signed: {error}."),
        }
    }
}

impl std::error::Error for ManifestError {}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use aaep_trust::keys::{DEFAULT_OVERLAP, SigningAlgorithm};

    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    const NOW: i64 = 1_760_000_000_000;

    fn service(keys: Option<PathBuf>) -> ManifestService {
        let description = ManifestDescription::new("hub");
        ManifestService::new(description, "http://127.0.0.1:7117", keys, NOW).expect("a manifest")
    }

    fn accept(text: &'static str) -> HeaderMap {
        [(ACCEPT, HeaderValue::from_static(text))].into_iter().collect()
    }

    #[test]
    fn without_keys_it_is_unsigned_and_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        for service in [service(None), service(Some(folder.path().join("none")))] {
            assert_eq!(service.signed(), None);
            assert_eq!(service.answer(&HeaderMap::new()).status(), 200);
            assert_eq!(service.answer(&accept("application/jose")).status(), 406);
            assert!(!service.renew_if_due(NOW + 365 * DAY_MS).expect("nothing to do"));
        }
    }

    #[test]
    fn it_is_signed_again_in_time_and_when_keys_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = folder.path().join("keys");
        let new_key = |now| {
            let mut ring = KeyRing::open(&keys).expect("a ring");
            ring.new_key(SigningAlgorithm::Es256, DEFAULT_OVERLAP, now).expect("a key");
        };
        new_key(NOW);
        let service = service(Some(keys.clone()));
        let first = service.signed().expect("signed");
        assert!(!service.renew_if_due(NOW + DAY_MS).expect("fine"));
        assert!(service.renew_if_due(NOW + 4 * DAY_MS).expect("fine"), "half of its time is over");
        let second = service.signed().expect("signed");
        assert_ne!(first, second);
        new_key(NOW + 4 * DAY_MS);
        assert!(service.renew_if_due(NOW + 4 * DAY_MS).expect("fine"), "another key signs");
        assert_ne!(service.signed(), Some(second));
        let jwks = service.answer_keys();
        let answer::ResponseBody::Whole(Some(bytes)) = jwks.into_body() else { panic!("no body") };
        let jwks: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
        assert_eq!(jwks["keys"].as_array().expect("a list").len(), 2, "the old one stays a while");
    }

    #[test]
    fn languages_that_agents_begin_to_speak_are_listed() {
        let service = service(None);
        assert!(!service.renew_if_due(NOW).expect("a look"), "nothing changed");
        let tags = ["en-US", "yo"].map(|it| LanguageTag::parse(it).expect("a tag"));
        service.set_languages(tags.to_vec());
        assert!(service.renew_if_due(NOW).expect("a look"));
        let answer::ResponseBody::Whole(Some(bytes)) =
            service.answer(&HeaderMap::new()).into_body()
        else {
            panic!("no body")
        };
        let manifest: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
        assert_eq!(manifest["languages_supported"], serde_json::json!(["en-US", "yo"]));
    }

    #[test]
    fn keys_that_break_leave_the_manifest_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = folder.path().join("keys");
        let mut ring = KeyRing::open(&keys).expect("a ring");
        ring.new_key(SigningAlgorithm::EdDsa, DEFAULT_OVERLAP, NOW).expect("a key");
        let service = service(Some(keys.clone()));
        let signed = service.signed();
        std::fs::write(keys.join("keys.toml"), "nonsense = [").expect("writes");
        assert!(service.renew_if_due(NOW + 5 * DAY_MS).is_err());
        assert_eq!(service.signed(), signed);
    }

    #[test]
    fn jose_is_given_only_to_those_who_ask_for_it() {
        for (text, expected) in [
            ("application/jose", true),
            ("application/json;q=0.5, Application/JOSE;q=0.9", true),
            ("application/jose;q=0", false),
            ("*/*", false),
            ("application/*", false),
            ("application/json", false),
        ] {
            assert_eq!(wants_jose(&accept(text)), expected, "{text}");
        }
    }
}
