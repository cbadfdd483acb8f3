//! Chooses the language to request from the speech server.

use std::collections::BTreeSet;

use aaep::LanguageTag;

use super::voices::{self, ServerVoices};
use crate::english::devices;

/// How many languages without a voice are remembered, so that each is announced once.
const MAX_TOLD_LANGUAGES: usize = 64;

/// The language to return to if no better one is known.
const LAST_RESORT: &str = "en";

/// The known languages, and the current language of the server.
#[derive(Debug, Default)]
pub(super) struct SpeechLanguages {
    /// The person's language for words without a language.
    preferred: Option<LanguageTag>,
    /// `None` until the server was asked; empty if it does not say.
    pub(super) voices: Option<ServerVoices>,
    /// The initial language of the server.
    own: Option<String>,
    /// The current language of the server.
    pub(super) current: Option<String>,
    missing_told: BTreeSet<String>,
}

impl SpeechLanguages {
    /// Nothing is known yet except the preference of the person.
    pub(super) fn new(preferred: Option<LanguageTag>) -> Self {
        SpeechLanguages { preferred, ..SpeechLanguages::default() }
    }

    /// A new connection reported its language. A value that is not a language, such as `c`, counts as none.
    pub(super) fn begin(&mut self, own: Option<&String>) {
        let own = own.filter(|it| LanguageTag::parse(it).is_ok());
        self.own = own.map(|it| it.to_ascii_lowercase());
        self.current.clone_from(&self.own);
    }

    /// The language to set the server to for these words, if any, and a message for the person, if there is one.
    pub(super) fn choose(&mut self, tag: Option<&LanguageTag>) -> (Option<String>, Option<String>) {
        let Some(tag) = tag else { return (self.usual(), None) };
        let best = self.best(tag);
        if best.is_some() {
            return (best, None);
        }
        let name = tag.primary().to_ascii_lowercase();
        let is_news =
            self.missing_told.len() < MAX_TOLD_LANGUAGES && self.missing_told.insert(name.clone());
        let notice = is_news.then(|| devices::speech::no_voice_for(&name));
        (self.usual(), notice)
    }

    /// Whether words in this language can be said with the current voice, without a message before them.
    pub(super) fn is_in(&self, tag: Option<&LanguageTag>, voice: Option<&String>) -> bool {
        let best = match tag {
            Some(tag) => self.best(tag),
            None => self.usual(),
        };
        // The person is told once that a language has no voice.
        let is_told =
            tag.is_some_and(|it| self.missing_told.contains(&it.primary().to_ascii_lowercase()));
        match best {
            None if is_told => self.usual().as_ref() == voice,
            None => tag.is_none() && voice.is_none(),
            best => best.as_ref() == voice,
        }
    }

    /// The language to request for words in this language. Without a region, the region that the person is used to is
    /// chosen.
    fn best(&self, tag: &LanguageTag) -> Option<String> {
        let is_same = |usual: &String| {
            let primary = usual.split('-').next().unwrap_or_default();
            tag.region().is_none() && primary.eq_ignore_ascii_case(tag.primary())
        };
        self.usual().filter(is_same).or_else(|| self.nearest(tag))
    }

    /// The language to request for words in this language. If the server does not list its voices, this is the
    /// language itself.
    fn nearest(&self, tag: &LanguageTag) -> Option<String> {
        match self.voices.as_ref().filter(|voices| !voices.is_empty()) {
            Some(voices) => voices.choose(tag),
            None => Some(voices::short(tag).unwrap_or_else(|| tag.primary().to_ascii_lowercase())),
        }
    }

    /// The language for words without a known language: the person's, the server's own, or the last resort once the
    /// server was set to another.
    fn usual(&self) -> Option<String> {
        let preferred = self.preferred.as_ref().and_then(|tag| self.nearest(tag));
        let last_resort = || self.current.is_some().then(|| LAST_RESORT.to_owned());
        preferred.or_else(|| self.own.clone()).or_else(last_resort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(text: &str) -> LanguageTag {
        LanguageTag::parse(text).expect("a tag")
    }

    #[test]
    fn a_server_that_lists_no_voices_is_asked_for_the_language_itself() {
        let mut languages =
            SpeechLanguages { voices: Some(ServerVoices::default()), ..SpeechLanguages::default() };
        assert_eq!(languages.choose(Some(&tag("yo-Latn-NG"))), (Some("yo-ng".to_owned()), None));
    }

    #[test]
    fn words_without_a_language_leave_the_server_as_it_is_until_it_was_changed() {
        let mut languages = SpeechLanguages::default();
        languages.begin(Some(&"c".to_owned()));
        assert_eq!(languages.choose(None), (None, None));
        languages.current = Some("fr".to_owned());
        assert_eq!(languages.choose(None), (Some("en".to_owned()), None));
        languages.begin(Some(&"de".to_owned()));
        languages.current = Some("fr".to_owned());
        assert_eq!(languages.choose(None), (Some("de".to_owned()), None));
        languages.preferred = Some(tag("pt-BR"));
        assert_eq!(languages.choose(None), (Some("pt-br".to_owned()), None));
    }
}
