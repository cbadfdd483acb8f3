//! The manifest: what a producer states about itself before anyone subscribes (§5.10).

use crate::context::Context;
use crate::envelope::{Extensions, Verbosity};
use crate::event_type::TypePattern;
use crate::form::Uri;
use crate::language::LanguageTag;
use crate::object::object;
use crate::read::{ANY, between};
use crate::version::Version;

object! {
    /// What a producer offers. An advertisement, not a subscription.
    Manifest in "5.10.1", type "aaep:producer.manifest", others Refused {
        /// The vocabularies of the manifest: the AAEP core context, alone or first of an array.
        required context as "@context": Context;
        /// The stable name of the agent, the same in all its versions.
        required agent_id: String = between(1, u64::MAX);
        /// The version of the agent.
        optional agent_version: String = between(1, u64::MAX);
        /// The agent's name as it is told to people.
        optional agent_name: String = between(1, u64::MAX);
        /// The versions of AAEP that the producer speaks.
        required aaep_versions_supported: Vec<Version> = ANY.items(1, usize::MAX).unique(), in "12.5.3";
        /// The conformance levels that the producer offers.
        optional conformance_levels_supported: Vec<u64> = between(1, 3).items(1, 3).unique();
        /// The transports over which the producer can be reached, such as sse or websocket.
        optional transports_supported: Vec<String> = between(1, 64).unique();
        /// The languages that the producer can speak.
        optional languages_supported: Vec<LanguageTag> = ANY.unique();
        /// Patterns of the types of events that the producer emits.
        optional event_types_emitted: Vec<TypePattern> = between(1, 256).unique();
        /// The context URIs of the extensions that the producer uses.
        optional extensions_supported: Vec<Uri> = ANY.unique();
        /// How detailed the producer's words are unless asked otherwise.
        optional default_verbosity: Verbosity;
        /// How many subscriptions the producer serves at a time.
        optional max_concurrent_subscriptions: u64 = between(1, u64::MAX);
        /// How to reach the people behind the producer.
        optional contact: String = between(1, 256);
        /// Data of extensions, each under its prefix.
        optional extensions: Extensions, in "3.4.3";
    }
}
