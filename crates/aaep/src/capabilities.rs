//! Capabilities: what a subscriber requests, and what it is promised (§5.3).

use crate::envelope::Verbosity;
use crate::event::action::CoalesceBoundary;
use crate::event_type::TypePattern;
use crate::form::Uri;
use crate::language::LanguageTag;
use crate::object::{object, values};
use crate::read::{ANY, Object, between};

values! {
    /// How much a person wants to hear (§5.3.1.10).
    open CognitiveLoad {
        /// As little as possible, in short sentences.
        Low = "low",
        /// The usual amount.
        Medium = "medium",
        /// Everything, with its context.
        High = "high",
    }
}

object! {
    /// Which types of events a subscriber wants (§5.3.1.7). Critical events pass in any case.
    EventFilters in "5.3.1.7", others Refused {
        /// Patterns of types to deliver; all core events if absent.
        optional include: Vec<TypePattern> = between(1, 256).unique();
        /// Patterns of types to leave out; they count more than those to deliver.
        optional exclude: Vec<TypePattern> = between(1, 256).unique();
    }
}

object! {
    /// The terms of a subscription. Absent fields have the defaults of §5.3.1. Further fields are
    /// capabilities of extensions, each an object under its prefix, kept in `other`.
    Capabilities in "5.3.1", others Extensions {
        /// The most events per second that the subscriber can take; critical ones do not count. No limit if absent.
        optional max_events_per_second: u64 = between(1, 100_000), in "5.3.1.1";
        /// How detailed the words should be; normal if absent.
        optional preferred_verbosity: Verbosity, in "5.3.1.2";
        /// The languages that the subscriber can announce, best first; en-US if absent.
        optional languages: Vec<LanguageTag> = ANY.items(1, 32).unique(), in "5.3.1.3";
        /// Whether the subscriber can answer confirmations; no if absent.
        optional supports_confirmation_reply: bool, in "5.3.1.4";
        /// Whether the subscriber can answer clarifications; no if absent.
        optional supports_clarification_reply: bool, in "5.3.1.5";
        /// The boundaries at which streamed text should be cut; sentence and completion if absent.
        optional coalesce_boundaries: Vec<CoalesceBoundary> = ANY.items(1, 5).unique(), in "5.3.1.6";
        /// Which types of events the subscriber wants.
        optional event_filters: EventFilters, in "5.3.1.7";
        /// The conformance levels that the subscriber implements; level 1 if absent.
        optional supported_conformance_levels: Vec<u64> = between(1, 3).items(1, 3).unique(), in "5.3.1.8";
        /// The context URIs of the extensions that the subscriber understands.
        optional supported_extensions: Vec<Uri> = ANY.items(0, 64).unique(), in "5.3.1.9";
        /// How much the person wants to hear; medium if absent.
        optional cognitive_load: CognitiveLoad, in "5.3.1.10";
        /// How many words per minute the subscriber announces.
        optional pace_wpm: u64 = between(50, 1000), in "5.3.1.11";
        /// Whether the subscriber insists on a signed manifest; no if absent.
        optional accept_signed_manifests_only: bool, in "5.3.1.12";
    }
}

impl Capabilities {
    /// No requests: every field has its default of §5.3.1.
    pub fn new() -> Self {
        Capabilities {
            max_events_per_second: None,
            preferred_verbosity: None,
            languages: None,
            supports_confirmation_reply: None,
            supports_clarification_reply: None,
            coalesce_boundaries: None,
            event_filters: None,
            supported_conformance_levels: None,
            supported_extensions: None,
            cognitive_load: None,
            pace_wpm: None,
            accept_signed_manifests_only: None,
            other: Object::new(),
        }
    }

    /// These capabilities with the fields that a change names in place of the old ones, each as a
    /// whole (§5.7.1). What a change states for an extension replaces everything stated for it
    /// before.
    pub fn overlaid_with(&self, change: &Capabilities) -> Capabilities {
        let (before, change) = (self.clone(), change.clone());
        let mut other = before.other;
        other.extend(change.other);
        Capabilities {
            max_events_per_second: change.max_events_per_second.or(before.max_events_per_second),
            preferred_verbosity: change.preferred_verbosity.or(before.preferred_verbosity),
            languages: change.languages.or(before.languages),
            supports_confirmation_reply: change
                .supports_confirmation_reply
                .or(before.supports_confirmation_reply),
            supports_clarification_reply: change
                .supports_clarification_reply
                .or(before.supports_clarification_reply),
            coalesce_boundaries: change.coalesce_boundaries.or(before.coalesce_boundaries),
            event_filters: change.event_filters.or(before.event_filters),
            supported_conformance_levels: change
                .supported_conformance_levels
                .or(before.supported_conformance_levels),
            supported_extensions: change.supported_extensions.or(before.supported_extensions),
            cognitive_load: change.cognitive_load.or(before.cognitive_load),
            pace_wpm: change.pace_wpm.or(before.pace_wpm),
            accept_signed_manifests_only: change
                .accept_signed_manifests_only
                .or(before.accept_signed_manifests_only),
            other,
        }
    }
}

impl Default for Capabilities {
    fn default() -> Self {
        Capabilities::new()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Message, Mode, read, read_capabilities};

    fn wishes(capabilities: &serde_json::Value) -> Capabilities {
        let text = json!({
            "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "reader",
            "capabilities": capabilities,
        });
        match read(text.to_string().as_bytes(), Mode::Strict).message {
            Some(Message::SubscriptionRequest(request)) => request.capabilities,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn capabilities_that_stand_alone_are_read_as_strictly_as_in_a_request() {
        let alone = |stored: &serde_json::Value| read_capabilities(stored.as_object()?);
        for stored in [
            json!({}),
            json!({ "max_events_per_second": 5, "languages": ["yo"], "medai": { "kind": [1] } }),
        ] {
            assert_eq!(alone(&stored), Some(wishes(&stored)), "{stored}");
        }
        for wrong in [
            json!({ "max_events_per_second": "5" }),
            json!({ "preferred_verbosity": "somehow" }),
            json!({ "languages": ["not a tag"] }),
            json!([]),
        ] {
            assert_eq!(alone(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_change_replaces_what_it_names_and_nothing_else() {
        let all = json!({
            "max_events_per_second": 5, "preferred_verbosity": "terse", "languages": ["yo"],
            "supports_confirmation_reply": true, "supports_clarification_reply": true,
            "coalesce_boundaries": ["word"], "event_filters": { "exclude": ["aaep:agent.tool.*"] },
            "supported_conformance_levels": [1, 2], "supported_extensions": ["urn:x:y"],
            "cognitive_load": "low", "pace_wpm": 200, "accept_signed_manifests_only": true,
            "medai": { "kind": 1 },
        });
        let before = wishes(&all);
        assert_eq!(before.overlaid_with(&Capabilities::new()), before);
        assert_eq!(Capabilities::new().overlaid_with(&before), before);
        for key in all.as_object().expect("an object").keys() {
            let mut other = all.clone();
            other[key] = match key.as_str() {
                "max_events_per_second" | "pace_wpm" => json!(99),
                "preferred_verbosity" => json!("normal"),
                "languages" => json!(["es"]),
                "coalesce_boundaries" => json!(["none"]),
                "event_filters" => json!({ "include": ["*"] }),
                "supported_conformance_levels" => json!([1]),
                "supported_extensions" => json!([]),
                "cognitive_load" => json!("high"),
                "medai" => json!({ "other": 2 }),
                _ => json!(false),
            };
            let change = wishes(&json!({ key.as_str(): other[key] }));
            assert_eq!(before.overlaid_with(&change), wishes(&other), "{key}");
        }
    }
}
