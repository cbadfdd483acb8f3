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
        // Every field is named, so that a new one does not compile until it is decided here whether it
        // separates audiences.
        let Terms {
            version,
            max_events_per_second: _,
            verbosity,
            languages,
            confirmation_reply,
            clarification_reply,
            boundaries,
            include,
            exclude,
            levels,
            extensions,
            cognitive_load,
            pace_wpm: _,
            signed_only: _,
            other,
        } = self;
        let languages: Vec<String> =
            languages.iter().map(|tag| tag.as_str().to_ascii_lowercase()).collect();
        let boundaries: Vec<&str> =
            boundaries.iter().map(aaep::event::action::CoalesceBoundary::as_str).collect();
        let mut extensions: Vec<&str> = extensions.iter().map(aaep::Uri::as_str).collect();
        extensions.sort_unstable();
        // How a subscriber answers does not change what it is sent.
        let other: Vec<_> =
            other.iter().filter(|(prefix, _)| *prefix != aaep::extension::PREFIX).collect();
        // JSON quotes its strings, so one pattern or tag cannot be mistaken for two.
        let key = serde_json::json!([
            version.as_str(),
            verbosity.as_str(),
            languages,
            [*confirmation_reply, *clarification_reply, self.keeps_every_event()],
            boundaries,
            canonical(include),
            canonical(exclude),
            levels.iter().max(),
            extensions,
            cognitive_load.as_str(),
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
