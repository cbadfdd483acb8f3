//! The handshake from the subscriber's side: what was requested, what was granted, how it ends
//! (chapter 5).
//!
//! What was granted never counts for more than what was requested (§5.4.4).

use aaep::handshake::{SubscriptionAccepted, SubscriptionRejected};
use aaep::{Capabilities, Object, SubscriptionId, Version};

use super::SubscriberViolation;
use crate::terms::{Terms, wider_than};

/// How long events may still arrive under the earlier terms (§5.7.2), in microseconds.
pub const IN_FLIGHT_US: u64 = 2_000_000;

/// How a subscription ended.
#[derive(Debug, Clone, PartialEq)]
pub enum HowEnded {
    /// The producer rejected it, or rejected a change of its terms (§5.5, §5.7).
    Rejected(Box<SubscriptionRejected>),
    /// The producer closed it (§5.8), with its reason for people if it gave one.
    ClosedByProducer(Option<String>),
    /// We closed it.
    ClosedByUs,
}

/// The state of a subscription.
#[derive(Debug, Default)]
pub(super) enum SubscriptionState {
    /// Nothing was requested yet.
    #[default]
    New,
    /// A request waits for its answer.
    Asked(Box<SentRequest>),
    /// The subscription is active.
    Holds(Box<HeldSubscription>),
    /// The subscription has ended.
    Over,
}

/// The contents of a request.
#[derive(Debug, Clone)]
pub(super) struct SentRequest {
    pub(super) version: Version,
    pub(super) capabilities: Capabilities,
}

/// An active subscription.
#[derive(Debug)]
pub(super) struct HeldSubscription {
    /// `None` for a stream without a handshake that stated no id.
    pub(super) id: Option<SubscriptionId>,
    /// `None` for a stream without a handshake: nothing was promised.
    pub(super) granted: Option<GrantedTerms>,
    /// All capabilities including a requested change, while the change waits for its answer.
    pub(super) changing: Option<Capabilities>,
    /// The earlier terms, and until when they still count.
    pub(super) before: Option<(Terms, u64)>,
}

#[derive(Debug)]
pub(super) struct GrantedTerms {
    pub(super) wanted: SentRequest,
    pub(super) terms: Terms,
}

impl HeldSubscription {
    pub(super) fn terms(&self) -> Option<&Terms> {
        self.granted.as_ref().map(|granted| &granted.terms)
    }

    /// The terms that count now, newest first.
    pub(super) fn counting(&self, now_us: u64) -> impl Iterator<Item = &Terms> {
        let before = self.before.as_ref().filter(|(_, until_us)| now_us < *until_us);
        self.terms().into_iter().chain(before.map(|(terms, _)| terms))
    }
}

/// The terms that follow from a request and its acceptance, and what is wrong with the acceptance.
pub(super) fn grant(
    wanted: SentRequest,
    accepted: &SubscriptionAccepted,
) -> (GrantedTerms, Vec<SubscriberViolation>) {
    let mut violations = Vec::new();
    let (asked, honored) = (&wanted.capabilities, &accepted.honored_capabilities);
    let spoken = &accepted.aaep_version;
    if spoken.major() != wanted.version.major() || spoken.cmp_release(&wanted.version).is_gt() {
        let (asked, spoken) = (wanted.version.clone(), spoken.clone());
        violations.push(SubscriberViolation::WrongVersion { asked, spoken });
    }
    if asked.accept_signed_manifests_only == Some(true) && accepted.signed_manifest.is_none() {
        violations.push(SubscriberViolation::NotSigned);
    }
    let too_wide = wider_than(honored, asked);
    let terms = terms(spoken.clone(), asked, honored, &too_wide);
    if !too_wide.is_empty() {
        violations.push(SubscriberViolation::HonoredTooWide(too_wide));
    }
    (GrantedTerms { wanted, terms }, violations)
}

/// Each granted value where it was stated and is not too wide, otherwise the requested one.
fn terms(
    version: Version,
    asked: &Capabilities,
    honored: &Capabilities,
    too_wide: &[&'static str],
) -> Terms {
    let default = Terms::defaults();
    let is_fine = |field: &str| !too_wide.contains(&field);
    let filters = honored.event_filters.as_ref().filter(|_| is_fine("event_filters"));
    let filters = filters.or(asked.event_filters.as_ref());
    let rate = honored.max_events_per_second.filter(|_| is_fine("max_events_per_second"));
    let able =
        |honored: Option<bool>, asked: Option<bool>| asked == Some(true) && honored.unwrap_or(true);
    Terms {
        version,
        max_events_per_second: rate.or(asked.max_events_per_second),
        verbosity: pick(
            is_fine("preferred_verbosity"),
            honored.preferred_verbosity.as_ref(),
            asked.preferred_verbosity.as_ref(),
        )
        .unwrap_or(default.verbosity),
        languages: pick(is_fine("languages"), honored.languages.as_ref(), asked.languages.as_ref())
            .unwrap_or(default.languages),
        confirmation_reply: able(
            honored.supports_confirmation_reply,
            asked.supports_confirmation_reply,
        ),
        clarification_reply: able(
            honored.supports_clarification_reply,
            asked.supports_clarification_reply,
        ),
        boundaries: pick(
            is_fine("coalesce_boundaries"),
            honored.coalesce_boundaries.as_ref(),
            asked.coalesce_boundaries.as_ref(),
        )
        .unwrap_or(default.boundaries),
        include: filters.and_then(|it| it.include.clone()).unwrap_or(default.include),
        exclude: filters.and_then(|it| it.exclude.clone()).unwrap_or(default.exclude),
        levels: pick(
            is_fine("supported_conformance_levels"),
            honored.supported_conformance_levels.as_ref(),
            asked.supported_conformance_levels.as_ref(),
        )
        .unwrap_or(default.levels),
        extensions: pick(
            is_fine("supported_extensions"),
            honored.supported_extensions.as_ref(),
            asked.supported_extensions.as_ref(),
        )
        .unwrap_or(default.extensions),
        cognitive_load: pick(
            is_fine("cognitive_load"),
            honored.cognitive_load.as_ref(),
            asked.cognitive_load.as_ref(),
        )
        .unwrap_or(default.cognitive_load),
        pace_wpm: pick(is_fine("pace_wpm"), honored.pace_wpm.as_ref(), asked.pace_wpm.as_ref()),
        signed_only: asked.accept_signed_manifests_only.unwrap_or(false),
        other: if is_fine("extension capabilities") {
            honored.other.clone()
        } else {
            Object::new()
        },
    }
}

fn pick<T: Clone>(is_fine: bool, honored: Option<&T>, asked: Option<&T>) -> Option<T> {
    honored.filter(|_| is_fine).or(asked).cloned()
}
