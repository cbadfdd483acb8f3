//! Which language the speech server is asked for.

use std::collections::BTreeSet;

use aaep::LanguageTag;

use super::voices::{self, Voices};
use crate::english::devices;

/// How many languages without a voice are remembered, so that each is told once.
const MAX_TOLD_LANGUAGES: usize = 64;

/// The language that is gone back to when nobody knows a better one.
const LAST_RESORT: &str = "en";

/// What is known about languages, and what the server is set to.
#[derive(Debug, Default)]
pub(super) struct Languages {
    /// The language of words that do not say theirs, as the person wants it.
    wished: Option<LanguageTag>,
    /// `None` until it was asked; empty when the server cannot tell.
    pub(super) voices: Option<Voices>,
    /// The language that the server had at first.
    own: Option<String>,
    /// The language that the server is set to now.
    pub(super) current: Option<String>,
    told: BTreeSet<String>,
}

impl Languages {
    /// Nothing is known yet but what the person wants.
    pub(super) fn new(wished: Option<LanguageTag>) -> Self {
        Languages { wished, ..Languages::default() }
    }

    /// A new connection has said which language it has. What is no language, such as `c`, is as good as none.
    pub(super) fn begin(&mut self, own: Option<&String>) {
        let own = own.filter(|it| LanguageTag::parse(it).is_ok());
        self.own = own.map(|it| it.to_ascii_lowercase());
        self.current.clone_from(&self.own);
    }

    /// The language that the server should be set to for such words, if any, and what the person should know.
    pub(super) fn choose(&mut self, tag: Option<&LanguageTag>) -> (Option<String>, Option<String>) {
        let Some(tag) = tag else { return (self.usual(), None) };
        let best = self.best(tag);
        if best.is_some() {
            return (best, None);
        }
        let name = tag.primary().to_ascii_lowercase();
        let is_news = self.told.len() < MAX_TOLD_LANGUAGES && self.told.insert(name.clone());
        let notice = is_news.then(|| devices::speech::no_voice_for(&name));
        (self.usual(), notice)
    }

    /// Whether words of this language are said with the server set to this one, and nothing has to be told before.
    pub(super) fn is_in(&self, tag: Option<&LanguageTag>, voice: Option<&String>) -> bool {
        let best = match tag {
            Some(tag) => self.best(tag),
            None => self.usual(),
        };
        // Tell the person once when a language has no voice.
        let is_told = tag.is_some_and(|it| self.told.contains(&it.primary().to_ascii_lowercase()));
        match best {
            None if is_told => self.usual().as_ref() == voice,
            None => tag.is_none() && voice.is_none(),
            best => best.as_ref() == voice,
        }
    }

    /// What to ask the server for, for words of this language. A language without a region is said as the person is
    /// used to hearing it.
    fn best(&self, tag: &LanguageTag) -> Option<String> {
        let is_same = |usual: &String| {
            let primary = usual.split('-').next().unwrap_or_default();
            tag.region().is_none() && primary.eq_ignore_ascii_case(tag.primary())
        };
        self.usual().filter(is_same).or_else(|| self.nearest(tag))
    }

    /// What to ask the server for, for words of this language. Where it does not tell what it has, it is asked
    /// for the language itself.
    fn nearest(&self, tag: &LanguageTag) -> Option<String> {
        match self.voices.as_ref().filter(|voices| !voices.is_empty()) {
            Some(voices) => voices.choose(tag),
            None => Some(voices::short(tag).unwrap_or_else(|| tag.primary().to_ascii_lowercase())),
        }
    }

    /// The language for words of which no language is known: the person's, the server's own, or the last resort
    /// once the server was set to another.
    fn usual(&self) -> Option<String> {
        let wished = self.wished.as_ref().and_then(|tag| self.nearest(tag));
        let last_resort = || self.current.is_some().then(|| LAST_RESORT.to_owned());
        wished.or_else(|| self.own.clone()).or_else(last_resort)
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
        let mut languages = Languages { voices: Some(Voices::default()), ..Languages::default() };
        assert_eq!(languages.choose(Some(&tag("yo-Latn-NG"))), (Some("yo-ng".to_owned()), None));
    }

    #[test]
    fn words_without_a_language_leave_the_server_as_it_is_until_it_was_changed() {
        let mut languages = Languages::default();
        languages.begin(Some(&"c".to_owned()));
        assert_eq!(languages.choose(None), (None, None));
        languages.current = Some("fr".to_owned());
        assert_eq!(languages.choose(None), (Some("en".to_owned()), None));
        languages.begin(Some(&"de".to_owned()));
        languages.current = Some("fr".to_owned());
        assert_eq!(languages.choose(None), (Some("de".to_owned()), None));
        languages.wished = Some(tag("pt-BR"));
        assert_eq!(languages.choose(None), (Some("pt-br".to_owned()), None));
    }
}
