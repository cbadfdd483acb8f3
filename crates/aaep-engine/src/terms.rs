//! The terms of a subscription: what a subscriber requested, what it gets, and why it gets no more.
//!
//! The handshake of chapter 5 as pure functions: [`negotiate`] answers a request, [`renegotiate`] a
//! change of terms (§5.7), and [`wider_than`] is the rule of §5.4.4 as a check that anyone can
//! make. The rest of the engine works with [`Terms`], in which every default of §5.3.1 is filled
//! in.
//!
//! Decided elsewhere: whether a subscriber may connect (given as a [`Door`]), which principals may
//! answer (ruling 14), and delivery itself. Critical events pass every filter and rate (§5.5.4).
//! The caller ensures that; nothing here knows which events are critical.

mod audience;
mod comparison;
mod language;
mod negotiation;
mod rejection;
#[cfg(test)]
mod tests;

use aaep::event::action::CoalesceBoundary;
use aaep::extension::{AskCapabilities, AskClock, PREFIX};
use aaep::{
    Capabilities, CognitiveLoad, CompactJws, EventFilters, EventType, LanguageTag, Object, Prefix,
    Producer, TypePattern, Uri, Verbosity, Version,
};

pub use audience::AudienceKey;
pub use comparison::wider_than;
pub(crate) use negotiation::restore;
pub use negotiation::{negotiate, reject_at, reject_malformed, renegotiate};
pub use rejection::RETRY_AFTER_SECONDS;

/// What the producer can offer; part of the engine's configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The producer that answers.
    pub producer: Producer,
    /// The published versions of AAEP that we speak, including 1.0.0.
    pub versions: Vec<Version>,
    /// The languages in which the agents can speak; the first is the primary one.
    pub languages: Vec<LanguageTag>,
    /// The most events per second for any subscriber, critical ones not counted. No ceiling if
    /// absent.
    pub max_events_per_second: Option<u64>,
    /// The extension vocabularies that we know, each with its prefix, including our own.
    pub extensions: Vec<(Uri, Prefix)>,
    /// The conformance levels that we offer.
    pub conformance_levels: Vec<u64>,
    /// How many subscriptions we serve at a time.
    pub max_concurrent_subscriptions: usize,
    /// Where our manifest can be fetched.
    pub manifest_uri: Option<Uri>,
    /// Our signed manifest. It is sent with every acceptance, so §3.7 limits it to 16384
    /// characters.
    pub signed_manifest: Option<CompactJws>,
    /// Whether a subscriber is rejected if it shares no language with us. Otherwise it is served in
    /// the primary language (§11.1.3, step 6).
    pub only_offered_languages: bool,
}

/// The result of transport and access control, before any terms are considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Terms may be negotiated.
    Open,
    /// Anonymous subscribers are not served here.
    AuthenticationRequired,
    /// This principal may not subscribe.
    AuthorizationDenied,
    /// Subscriptions are not served over this connection.
    TransportUnavailable,
    /// The producer has an internal problem, which it does not disclose.
    Failing,
}

/// The terms of a subscription, with all the defaults of §5.3.1 filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The version of AAEP for this subscription (ruling 21). A renegotiation never changes it.
    pub version: Version,
    /// The most non-critical events in a second (§5.3.1.1, ruling 6); no limit if absent.
    pub max_events_per_second: Option<u64>,
    /// How detailed the words should be (§5.3.1.2).
    pub verbosity: Verbosity,
    /// The requested languages that can be served, best first (ruling 22). If there are none,
    /// everything is sent in the primary language.
    pub languages: Vec<LanguageTag>,
    /// Whether confirmations may be sent (§5.3.1.4, ruling 1).
    pub confirmation_reply: bool,
    /// Whether clarifications may be sent (§5.3.1.5, ruling 1).
    pub clarification_reply: bool,
    /// Where streamed text is cut, from the finest boundary to the coarsest (§5.3.1.6).
    pub boundaries: Vec<CoalesceBoundary>,
    /// The types to deliver (§5.3.1.7).
    pub include: Vec<TypePattern>,
    /// The types to leave out. They take precedence over `include`.
    pub exclude: Vec<TypePattern>,
    /// The conformance levels that both sides have, ascending (§5.3.1.8).
    pub levels: Vec<u64>,
    /// The extensions that both sides know, in the requested order (§5.3.1.9).
    pub extensions: Vec<Uri>,
    /// How much the person wants to hear (§5.3.1.10).
    pub cognitive_load: CognitiveLoad,
    /// How many words per minute the subscriber speaks, if stated (§5.3.1.11).
    pub pace_wpm: Option<u64>,
    /// Whether the subscriber insists on a signed manifest (§5.3.1.12).
    pub signed_only: bool,
    /// The capabilities of extensions that we know, each under its prefix (§5.3.2). Those of
    /// unknown extensions have no effect and are not kept.
    pub other: Object,
}

impl Terms {
    /// The defaults of §5.3.1, also for subscribers that never sent a handshake (ruling 3). Whether
    /// such a subscriber can answer is decided by the caller, which knows its reply path.
    ///
    /// # Panics
    /// Never: the texts are constants of the right form.
    pub fn defaults() -> Self {
        const RIGHT: &str = "a constant of the right form";
        Terms {
            version: Version::parse("1.0.0").expect(RIGHT),
            max_events_per_second: None,
            verbosity: Verbosity::Normal,
            languages: vec![LanguageTag::parse("en-US").expect(RIGHT)],
            confirmation_reply: false,
            clarification_reply: false,
            boundaries: vec![CoalesceBoundary::Sentence, CoalesceBoundary::Completion],
            include: vec![TypePattern::parse("aaep:agent.*").expect(RIGHT)],
            exclude: Vec::new(),
            levels: vec![1],
            extensions: Vec::new(),
            cognitive_load: CognitiveLoad::Medium,
            pace_wpm: None,
            signed_only: false,
            other: Object::new(),
        }
    }

    /// Whether the filters let a type pass (ruling 5): at least one include matches and no exclude
    /// does. Critical events pass in any case; the caller ensures that.
    pub fn wants(&self, event_type: &EventType) -> bool {
        self.include.iter().any(|pattern| pattern.matches(event_type))
            && !self.exclude.iter().any(|pattern| pattern.matches(event_type))
    }

    /// Whether our own extension may be used on this subscription.
    pub fn understands_our_extension(&self) -> bool {
        self.extensions.iter().any(|uri| uri.as_str() == aaep::extension::CONTEXT)
    }

    /// Whether the time to answer may wait for presentation on this subscription.
    pub fn counts_from_presented(&self) -> bool {
        self.asking().ask_clock == Some(AskClock::Presented)
    }

    /// Whether a person may request more time on this subscription.
    pub fn may_extend(&self) -> bool {
        self.asking().extend == Some(true)
    }

    /// The requested capabilities of our own extension; empty if the subscriber does not understand
    /// it.
    fn asking(&self) -> AskCapabilities {
        let data = self.other.get(PREFIX).filter(|_| self.understands_our_extension());
        data.map_or_else(AskCapabilities::new, AskCapabilities::understand)
    }

    /// Which of an event's languages to use for this subscription (§11.1.3, steps 1 to 4). `None`
    /// means that the event's own fallback chain and then its primary language apply.
    pub fn choose_language<'a>(&self, available: &'a [LanguageTag]) -> Option<&'a LanguageTag> {
        self.languages.iter().find_map(|asked| language::best(asked, available))
    }

    /// Whether these terms neither drop nor merge events, so that sequence numbers have no gaps
    /// (ruling 7). The default filter counts as dropping: it drops the events of extensions.
    pub fn keeps_every_event(&self) -> bool {
        // Every field is named, so that a new one does not compile until it is decided here.
        let Terms {
            max_events_per_second,
            boundaries,
            include,
            exclude,
            cognitive_load,
            pace_wpm,
            version: _,
            verbosity: _,
            languages: _,
            confirmation_reply: _,
            clarification_reply: _,
            levels: _,
            extensions: _,
            signed_only: _,
            other: _,
        } = self;
        max_events_per_second.is_none()
            && pace_wpm.is_none()
            && boundaries.contains(&CoalesceBoundary::None)
            && include.iter().any(|pattern| pattern.as_str() == "*")
            && exclude.is_empty()
            && *cognitive_load != CognitiveLoad::Low
    }

    /// The contents of `honored_capabilities` (§5.4.1): every field that the subscriber named, and
    /// those whose default we could not grant. The ability to answer is never claimed for a
    /// subscriber that did not claim it, even where ruling 3 lets it answer.
    pub fn to_capabilities(&self, asked: &Capabilities) -> Capabilities {
        let default = Terms::defaults();
        let able = |asked: Option<bool>, has: bool| asked.map(|able| able && has);
        Capabilities {
            max_events_per_second: self.max_events_per_second,
            preferred_verbosity: stated(
                asked.preferred_verbosity.is_some(),
                &self.verbosity,
                &default.verbosity,
            ),
            languages: stated(asked.languages.is_some(), &self.languages, &default.languages)
                .filter(|languages| !languages.is_empty()),
            supports_confirmation_reply: able(
                asked.supports_confirmation_reply,
                self.confirmation_reply,
            ),
            supports_clarification_reply: able(
                asked.supports_clarification_reply,
                self.clarification_reply,
            ),
            coalesce_boundaries: stated(
                asked.coalesce_boundaries.is_some(),
                &self.boundaries,
                &default.boundaries,
            ),
            event_filters: stated(
                asked.event_filters.is_some(),
                &self.filters(),
                &default.filters(),
            ),
            supported_conformance_levels: stated(
                asked.supported_conformance_levels.is_some(),
                &self.levels,
                &default.levels,
            )
            .filter(|levels| !levels.is_empty()),
            supported_extensions: stated(
                asked.supported_extensions.is_some(),
                &self.extensions,
                &default.extensions,
            ),
            cognitive_load: stated(
                asked.cognitive_load.is_some(),
                &self.cognitive_load,
                &default.cognitive_load,
            ),
            pace_wpm: self.pace_wpm,
            accept_signed_manifests_only: stated(
                asked.accept_signed_manifests_only.is_some(),
                &self.signed_only,
                &default.signed_only,
            ),
            other: self.other.clone(),
        }
    }

    /// Both filters, written out.
    fn filters(&self) -> EventFilters {
        EventFilters {
            include: Some(self.include.clone()),
            exclude: Some(self.exclude.clone()),
            other: Object::new(),
        }
    }
}

/// A term as it is stated to the subscriber: only if the subscriber named it or if it is not the
/// default.
fn stated<T: Clone + PartialEq>(named: bool, term: &T, default: &T) -> Option<T> {
    (named || term != default).then(|| term.clone())
}
