//! Which terms shape events alike: the key under which the engine shares its work.
//!
//! Work grows with the number of different terms and not with the number of subscribers
//! (ARCHITECTURE.md). Everything that could change the bytes of an event is part of the key. Pace
//! and rate are personal and are not.

use std::sync::Arc;

use super::Terms;
use super::comparison::PatternReach;
use crate::io::HearingScope;

/// Equal for all terms under which every event looks the same. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AudienceKey(Arc<str>);

impl AudienceKey {
    /// Narrows the key to subscribers that may hear the same agents.
    pub(crate) fn restricted_to(self, hears: &HearingScope) -> Self {
        match hears {
            HearingScope::All => self,
            HearingScope::Tagged(tags) => AudienceKey(format!("{} hears {tags:?}", self.0).into()),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Terms {
    /// The key of the audience that these terms belong to.
    ///
    /// The key excludes the rate and the pace, which decide when an event is sent and not what it
    /// says, and the demand for a signed manifest, which the handshake has met. Only the highest
    /// level counts, because §5.3.1.8 has the producer work at that one. Whether the terms keep
    /// every event is part of the key, because such events have sequence numbers (ruling 7): in
    /// that respect, having any rate at all makes a difference.
    pub fn audience_key(&self) -> AudienceKey {
        let languages: Vec<String> =
            self.languages.iter().map(|tag| tag.as_str().to_ascii_lowercase()).collect();
        let boundaries: Vec<&str> =
            self.boundaries.iter().map(aaep::event::action::CoalesceBoundary::as_str).collect();
        let mut extensions: Vec<&str> = self.extensions.iter().map(aaep::Uri::as_str).collect();
        extensions.sort_unstable();
        // How a subscriber answers does not change what it is sent.
        let other: Vec<_> =
            self.other.iter().filter(|(prefix, _)| *prefix != aaep::extension::PREFIX).collect();
        // JSON quotes its strings, so one pattern or tag cannot be mistaken for two.
        let key = serde_json::json!([
            self.version.as_str(),
            self.verbosity.as_str(),
            languages,
            [self.confirmation_reply, self.clarification_reply, self.keeps_every_event()],
            boundaries,
            canonical(&self.include),
            canonical(&self.exclude),
            self.levels.iter().max(),
            extensions,
            self.cognitive_load.as_str(),
            other,
        ]);
        AudienceKey(key.to_string().into())
    }
}

/// The patterns as a set, independent of their order and notation.
fn canonical(patterns: &[aaep::TypePattern]) -> Vec<String> {
    let mut texts: Vec<String> =
        patterns.iter().map(|pattern| PatternReach::of(pattern).to_string()).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}
