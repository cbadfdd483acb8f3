//! Why a subscription is not granted: one variant per cause, with one sentence and a next step for
//! each (§5.5).
//!
//! The text goes to a stranger. It says what the other side can do, and nothing about our
//! internals: no counts, no names of subscribers, no errors of ours. Untrusted text in it is
//! truncated and escaped.

use aaep::handshake::{ReasonCode, SubscriptionRejected};
use aaep::{LanguageTag, Object, Severity, Uri, Version, Violation, printable};

use super::Offer;

/// After how many seconds a subscriber may try again if the cause is temporary.
pub const RETRY_AFTER_SECONDS: u64 = 30;

/// How many names are listed in a sentence, and how many characters of each.
const NAMED: usize = 5;
const NAME_CHARACTERS: usize = 60;

/// How many violations are repeated, and how many characters of each report.
const REPORTS: usize = 5;
const REPORT_CHARACTERS: usize = 600;

/// Why a subscription is refused.
#[derive(Debug)]
pub(super) enum SubscriptionRefusal<'a> {
    /// Anonymous subscribers are not served.
    AuthenticationRequired,
    /// This principal may not subscribe.
    AuthorizationDenied,
    /// Subscriptions are not served over this connection.
    TransportUnavailable,
    /// The producer has an internal problem.
    Failing,
    /// A version that we do not speak (ruling 21).
    Version(&'a str),
    /// A strict reader refuses the message, and no code of §5.5.3 fits (ruling 12).
    Malformed(Vec<Violation>),
    /// The subscriber demands a signed manifest and there is none (§5.3.1.12).
    Unsigned,
    /// A capability under a prefix that no extension may have (§7.3.2).
    ReservedPrefix(&'a str),
    /// Two extensions under one prefix (§7.3.1).
    SharedPrefix(&'a str, &'a Uri, &'a Uri),
    /// There is no language in common, and the offer excludes other languages.
    NoLanguage,
    /// The terms are too long to be repeated in an acceptance (§3.7).
    TooLong,
    /// The maximum number of subscriptions is reached.
    Full,
}

impl SubscriptionRefusal<'_> {
    /// The message for the subscriber.
    pub(super) fn into_message(self, offer: &Offer) -> SubscriptionRejected {
        let (reason_code, reason_message) = (self.code(), self.words(offer));
        let passes = matches!(self, SubscriptionRefusal::Failing | SubscriptionRefusal::Full);
        // The manifest says what would be possible. That does not help a subscriber that is not let
        // in.
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
            SubscriptionRefusal::AuthenticationRequired => ReasonCode::AuthenticationRequired,
            SubscriptionRefusal::AuthorizationDenied => ReasonCode::AuthorizationDenied,
            SubscriptionRefusal::TransportUnavailable => ReasonCode::TransportUnavailable,
            SubscriptionRefusal::Failing | SubscriptionRefusal::Malformed(_) => ReasonCode::Unknown,
            SubscriptionRefusal::Version(_) => ReasonCode::VersionUnsupported,
            SubscriptionRefusal::Unsigned => ReasonCode::ManifestSignatureRequired,
            SubscriptionRefusal::ReservedPrefix(_)
            | SubscriptionRefusal::SharedPrefix(..)
            | SubscriptionRefusal::NoLanguage
            | SubscriptionRefusal::TooLong => ReasonCode::CapabilitiesIncompatible,
            SubscriptionRefusal::Full => ReasonCode::RateLimit,
        }
    }

    fn words(&self, offer: &Offer) -> String {
        match self {
            SubscriptionRefusal::AuthenticationRequired => {
                "Subscribers must say who they are here. Send credentials and ask again.".to_owned()
            }
            SubscriptionRefusal::AuthorizationDenied => {
                "These credentials do not allow this subscription. \
                Use others, or ask the people who run the producer for access."
                    .to_owned()
            }
            SubscriptionRefusal::TransportUnavailable => {
                "This subscription cannot be served over this \
                connection. Use another transport that the manifest names."
                    .to_owned()
            }
            SubscriptionRefusal::Failing => format!(
                "No subscription can be served at the moment. Try again in {RETRY_AFTER_SECONDS} \
                 seconds."
            ),
            SubscriptionRefusal::Version(asked) => format!(
                "AAEP {} is not spoken here. Ask for one of: {}.",
                brief(asked),
                listed(offer.versions.iter().map(Version::as_str))
            ),
            SubscriptionRefusal::Malformed(violations) => malformed(violations),
            SubscriptionRefusal::Unsigned => {
                "A signed manifest is required and this producer has none. \
                Ask again with accept_signed_manifests_only set to false, or use another producer."
                    .to_owned()
            }
            SubscriptionRefusal::ReservedPrefix(prefix) => format!(
                "The prefix {} is reserved, so no extension can have capabilities under it. \
                 Rename it or leave it out.",
                brief(prefix)
            ),
            SubscriptionRefusal::SharedPrefix(prefix, one, other) => format!(
                "The extensions {} and {} share the prefix {}, so their data could not be told \
                 apart. Ask for one of them.",
                brief(one.as_str()),
                brief(other.as_str()),
                brief(prefix)
            ),
            SubscriptionRefusal::NoLanguage => format!(
                "None of the languages asked for is spoken here. Ask for one of: {}.",
                listed(offer.languages.iter().map(LanguageTag::as_str))
            ),
            SubscriptionRefusal::TooLong => {
                "These terms are too long to be confirmed in one message. \
                Ask with fewer patterns, or with less data for extensions."
                    .to_owned()
            }
            SubscriptionRefusal::Full => format!(
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

/// Names for a sentence: the first few, and how many more there are.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let first: Vec<String> = names.iter().take(NAMED).map(|name| brief(name)).collect();
    match names.len() {
        0 => "none".to_owned(),
        1..=NAMED => first.join(", "),
        many => format!("{} and {} more", first.join(", "), many - NAMED),
    }
}

/// Untrusted text made fit for a sentence, truncated and escaped.
pub(super) fn brief(text: &str) -> String {
    let head: String = text.chars().take(NAME_CHARACTERS).collect();
    let mut brief: String = printable(&head).chars().take(NAME_CHARACTERS).collect();
    if head.len() < text.len() {
        brief.push('…');
    }
    brief
}
