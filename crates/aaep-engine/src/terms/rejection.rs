//! Why a subscription is not granted: one variant per cause, one sentence and a next step for each
//! (§5.5).
//!
//! The words go to a stranger. They say what the other side can do, and nothing of what goes on
//! inside: no counts, no names of subscribers, no errors of ours. Foreign text in them is cut short
//! and escaped.

use aaep::handshake::{ReasonCode, SubscriptionRejected};
use aaep::{LanguageTag, Object, Severity, Uri, Version, Violation, printable};

use super::Offer;

/// After how many seconds a subscriber may try again when the cause is a passing one.
pub const RETRY_AFTER_SECONDS: u64 = 30;

/// How many things of a kind are named in a sentence, and how many characters of each.
const NAMED: usize = 5;
const NAME_CHARACTERS: usize = 60;

/// How many violations are repeated, and how many characters of each report.
const REPORTS: usize = 5;
const REPORT_CHARACTERS: usize = 600;

/// Why there will be no subscription.
#[derive(Debug)]
pub(super) enum Refusal<'a> {
    /// Nobody is served without saying who they are.
    AuthenticationRequired,
    /// Whoever it is may not subscribe.
    AuthorizationDenied,
    /// Not over this connection.
    TransportUnavailable,
    /// The producer is in trouble of its own.
    Failing,
    /// A version that we do not speak (ruling 21).
    Version(&'a str),
    /// A message that a strict reader refuses, which no code of §5.5.3 is for (ruling 12).
    Malformed(Vec<Violation>),
    /// A signed manifest is demanded and there is none (§5.3.1.12).
    Unsigned,
    /// A capability under a prefix that no extension may have (§7.3.2).
    ReservedPrefix(&'a str),
    /// Two extensions under one prefix (§7.3.1).
    SharedPrefix(&'a str, &'a Uri, &'a Uri),
    /// No language in common, and others are not served.
    NoLanguage,
    /// Terms so long that no acceptance could repeat them (§3.7).
    TooLong,
    /// All places are taken.
    Full,
}

impl Refusal<'_> {
    /// The message for the subscriber.
    pub(super) fn into_message(self, offer: &Offer) -> SubscriptionRejected {
        let (reason_code, reason_message) = (self.code(), self.words(offer));
        let passes = matches!(self, Refusal::Failing | Refusal::Full);
        // The manifest says what would be possible; that helps no one who may not come in.
        let manifest_helps = matches!(
            reason_code,
            ReasonCode::VersionUnsupported
                | ReasonCode::ManifestSignatureRequired
                | ReasonCode::CapabilitiesIncompatible
                | ReasonCode::TransportUnavailable
        );
        SubscriptionRejected {
            reason_code,
            reason_message,
            retry_after_seconds: passes.then_some(RETRY_AFTER_SECONDS),
            alternative_manifest_uri: offer.manifest_uri.clone().filter(|_| manifest_helps),
            other: Object::new(),
        }
    }

    fn code(&self) -> ReasonCode {
        match self {
            Refusal::AuthenticationRequired => ReasonCode::AuthenticationRequired,
            Refusal::AuthorizationDenied => ReasonCode::AuthorizationDenied,
            Refusal::TransportUnavailable => ReasonCode::TransportUnavailable,
            Refusal::Failing | Refusal::Malformed(_) => ReasonCode::Unknown,
            Refusal::Version(_) => ReasonCode::VersionUnsupported,
            Refusal::Unsigned => ReasonCode::ManifestSignatureRequired,
            Refusal::ReservedPrefix(_)
            | Refusal::SharedPrefix(..)
            | Refusal::NoLanguage
            | Refusal::TooLong => ReasonCode::CapabilitiesIncompatible,
            Refusal::Full => ReasonCode::RateLimit,
        }
    }

    fn words(&self, offer: &Offer) -> String {
        match self {
            Refusal::AuthenticationRequired => {
                "Subscribers must say who they are here. Send credentials and ask again.".to_owned()
            }
            Refusal::AuthorizationDenied => "These credentials do not allow this subscription. \
                Use others, or ask whoever runs the producer for access."
                .to_owned(),
            Refusal::TransportUnavailable => "This subscription cannot be served over this \
                connection. Use another transport that the manifest names."
                .to_owned(),
            Refusal::Failing => format!(
                "No subscription can be served at the moment. Try again in {RETRY_AFTER_SECONDS} \
                 seconds."
            ),
            Refusal::Version(asked) => format!(
                "AAEP {} is not spoken here. Ask for one of: {}.",
                brief(asked),
                listed(offer.versions.iter().map(Version::as_str))
            ),
            Refusal::Malformed(violations) => malformed(violations),
            Refusal::Unsigned => "A signed manifest is required and this producer has none. \
                Ask again with accept_signed_manifests_only set to false, or use another producer."
                .to_owned(),
            Refusal::ReservedPrefix(prefix) => format!(
                "The prefix {} is reserved, so no extension can have capabilities under it. \
                 Rename it or leave it out.",
                brief(prefix)
            ),
            Refusal::SharedPrefix(prefix, one, other) => format!(
                "The extensions {} and {} share the prefix {}, so their data could not be told \
                 apart. Ask for one of them.",
                brief(one.as_str()),
                brief(other.as_str()),
                brief(prefix)
            ),
            Refusal::NoLanguage => format!(
                "None of the languages asked for is spoken here. Ask for one of: {}.",
                listed(offer.languages.iter().map(LanguageTag::as_str))
            ),
            Refusal::TooLong => "These terms are too long to be confirmed in one message. \
                Ask with fewer patterns, or with less data for extensions."
                .to_owned(),
            Refusal::Full => format!(
                "No further subscription can be served at the moment. Close one that is not \
                 needed, or try again in {RETRY_AFTER_SECONDS} seconds."
            ),
        }
    }
}

/// What is wrong with a message: the first few violations, and how many more there are.
fn malformed(violations: &[Violation]) -> String {
    let errors = || violations.iter().filter(|it| it.severity == Severity::Error);
    let mut sentences = vec!["The request is not one that the protocol allows.".to_owned()];
    sentences.extend(errors().take(REPORTS).map(|violation| {
        let report = violation.to_string();
        printable(&report).chars().take(REPORT_CHARACTERS).collect()
    }));
    match errors().count().saturating_sub(REPORTS) {
        0 => {}
        more => sentences.push(format!("And {more} more.")),
    }
    sentences.join(" ")
}

/// Names in a sentence: the first few, and how many more there are.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let first: Vec<String> = names.iter().take(NAMED).map(|name| brief(name)).collect();
    match names.len() {
        0 => "none".to_owned(),
        1..=NAMED => first.join(", "),
        many => format!("{} and {} more", first.join(", "), many - NAMED),
    }
}

/// Foreign text fit for a sentence, however long or strange it is.
pub(super) fn brief(text: &str) -> String {
    let head: String = text.chars().take(NAME_CHARACTERS).collect();
    let mut brief: String = printable(&head).chars().take(NAME_CHARACTERS).collect();
    if head.len() < text.len() {
        brief.push('…');
    }
    brief
}
