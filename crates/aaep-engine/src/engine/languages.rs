//! The languages in which subscribers can be served: those offered from the start, and those in
//! which agents have published since (ruling 22).

use aaep::{Event, LanguageTag, Payload};

use super::Engine;
use crate::io::PrincipalNumber;

/// How many languages are offered at most, and how many of them one principal may introduce.
const MAX_LANGUAGES: usize = 32;
const MAX_LANGUAGES_EACH: usize = 8;

impl Engine {
    /// Offers the languages of an event to later subscriptions.
    pub(super) fn note_languages(&mut self, principal: PrincipalNumber, event: &Event) {
        let hints = event.envelope.localization_hints.as_ref();
        let own = hints.and_then(|hints| hints.primary_language.as_ref());
        let chunk = match &event.payload {
            Payload::OutputStreaming(chunk) => chunk.language.as_ref(),
            _ => None,
        };
        let variants = event.variants.iter().map(|variant| &variant.language);
        for language in own.into_iter().chain(chunk).chain(variants) {
            self.note_language(principal, language);
        }
    }

    fn note_language(&mut self, principal: PrincipalNumber, language: &LanguageTag) {
        let offered = &mut self.config.offer.languages;
        if offered.contains(language) || offered.len() >= MAX_LANGUAGES {
            return;
        }
        let brought = self.languages_brought.entry(principal).or_default();
        if *brought < MAX_LANGUAGES_EACH {
            *brought += 1;
            offered.push(language.clone());
        }
    }
}
