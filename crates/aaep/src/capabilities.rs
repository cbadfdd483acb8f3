//! What a listener can take, and what it is promised (§5.3).

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
    /// Which types of events a listener wants (§5.3.1.7). Critical events pass in any case.
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
        /// The most events per second that the listener can take; critical ones do not count. No limit if absent.
        optional max_events_per_second: u64 = between(1, 100_000), in "5.3.1.1";
        /// How detailed the words should be; normal if absent.
        optional preferred_verbosity: Verbosity, in "5.3.1.2";
        /// The languages that the listener can announce, best first; en-US if absent.
        optional languages: Vec<LanguageTag> = ANY.items(1, 32).unique(), in "5.3.1.3";
        /// Whether the listener can answer confirmations; no if absent.
        optional supports_confirmation_reply: bool, in "5.3.1.4";
        /// Whether the listener can answer clarifications; no if absent.
        optional supports_clarification_reply: bool, in "5.3.1.5";
        /// The boundaries at which streamed text should be cut; sentence and completion if absent.
        optional coalesce_boundaries: Vec<CoalesceBoundary> = ANY.items(1, 5).unique(), in "5.3.1.6";
        /// Which types of events the listener wants.
        optional event_filters: EventFilters, in "5.3.1.7";
        /// The conformance levels that the listener implements; level 1 if absent.
        optional supported_conformance_levels: Vec<u64> = between(1, 3).items(1, 3).unique(), in "5.3.1.8";
        /// The context URIs of the extensions that the listener understands.
        optional supported_extensions: Vec<Uri> = ANY.items(0, 64).unique(), in "5.3.1.9";
        /// How much the person wants to hear; medium if absent.
        optional cognitive_load: CognitiveLoad, in "5.3.1.10";
        /// How many words per minute the listener announces.
        optional pace_wpm: u64 = between(50, 1000), in "5.3.1.11";
        /// Whether the listener insists on a signed manifest; no if absent.
        optional accept_signed_manifests_only: bool, in "5.3.1.12";
    }
}

impl Capabilities {
    /// No wishes: everything as §5.3.1 has it by default.
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
}

impl Default for Capabilities {
    fn default() -> Self {
        Capabilities::new()
    }
}
