//! Which terms shape events alike: the key under which the engine shares its work.
//!
//! Work grows with the number of different terms, not of subscribers (ARCHITECTURE.md). Whatever
//! could change the bytes of an event is in the key; what is personal, pace and rate, is not.

use std::sync::Arc;

use super::Terms;
use super::comparison::Reach;
use crate::io::Hears;

/// Equal for all terms under which every event looks the same. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AudienceKey(Arc<str>);

impl AudienceKey {
    /// The key of those among them who hear the same agents.
    pub(crate) fn of_those_who_hear(self, hears: &Hears) -> Self {
        match hears {
            Hears::All => self,
            Hears::Tagged(tags) => AudienceKey(format!("{} hears {tags:?}", self.0).into()),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Terms {
    /// The key of the audience that these terms belong to.
    ///
    /// Left out are the rate and the pace, which decide when and not what, and the demand for a
    /// signed manifest, which the handshake has met. Of the levels only the highest counts, as
    /// §5.3.1.8 has the producer work at that one. Whether the terms keep every event is in the key,
    /// because such events have sequence numbers (ruling 7): there, any rate at all makes a
    /// difference.
    pub fn audience_key(&self) -> AudienceKey {
        let languages: Vec<String> =
            self.languages.iter().map(|tag| tag.as_str().to_ascii_lowercase()).collect();
        let boundaries: Vec<&str> =
            self.boundaries.iter().map(aaep::event::action::CoalesceBoundary::as_str).collect();
        let mut extensions: Vec<&str> = self.extensions.iter().map(aaep::Uri::as_str).collect();
        extensions.sort_unstable();
        // How someone answers changes nothing about what is told.
        let other: Vec<_> =
            self.other.iter().filter(|(prefix, _)| *prefix != aaep::extension::PREFIX).collect();
        // JSON, because it quotes: no pattern or tag can be mistaken for two.
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

/// The patterns as a set: in whatever order and form they were written.
fn canonical(patterns: &[aaep::TypePattern]) -> Vec<String> {
    let mut texts: Vec<String> =
        patterns.iter().map(|pattern| Reach::of(pattern).to_string()).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}
