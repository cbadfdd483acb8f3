//! The languages for which the speech server has a voice.

use std::collections::BTreeSet;

use aaep::LanguageTag;

/// The most languages that are kept. No synthesizer has this many.
const MAX_LANGUAGES: usize = 2048;

/// The most voices that a server may list. Real lists have thirteen thousand.
pub(super) const MAX_VOICES: usize = 200_000;

/// Languages with two codes. A voice may be listed under either.
const ALSO_CALLED: &[(&str, &str)] = &[("zh", "cmn"), ("nb", "no"), ("fil", "tl"), ("he", "iw")];

/// The languages of the server's voices.
#[derive(Debug, Default)]
pub(super) struct ServerVoices {
    languages: BTreeSet<String>,
    count: usize,
    has_wanted: bool,
}

impl ServerVoices {
    /// Adds a line of the list: name, language and variant, separated by tabs. Returns whether the list may continue.
    pub(super) fn add(&mut self, line: &str, wanted: Option<&str>) -> bool {
        self.count += 1;
        let mut fields = line.split('\t');
        let (name, language) =
            (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        self.has_wanted |= wanted.is_some_and(|wanted| wanted == name);
        if self.languages.len() < MAX_LANGUAGES && LanguageTag::parse(language).is_ok() {
            self.languages.insert(language.to_ascii_lowercase());
        }
        self.count <= MAX_VOICES
    }

    /// Whether the requested voice was in the list.
    pub(super) fn has_wanted(&self) -> bool {
        self.has_wanted
    }

    /// The language to request from the server, so that it uses a voice of this language.
    pub(super) fn choose(&self, tag: &LanguageTag) -> Option<String> {
        let primary = tag.primary().to_ascii_lowercase();
        let exact = [Some(tag.as_str().to_ascii_lowercase()), short(tag)];
        let names = std::iter::once(primary.as_str()).chain(ALSO_CALLED.iter().filter_map(
            |(one, other)| match primary.as_str() {
                it if it == *one => Some(*other),
                it if it == *other => Some(*one),
                _ => None,
            },
        ));
        let names: Vec<&str> = names.collect();
        let listed = |name: &String| self.languages.contains(name);
        exact
            .into_iter()
            .flatten()
            .chain(names.iter().map(|name| (*name).to_owned()))
            .find(listed)
            .or_else(|| names.iter().find_map(|name| self.any_of(name)))
    }

    /// The first language with this primary tag and a region or more after it.
    fn any_of(&self, primary: &str) -> Option<String> {
        let prefix = format!("{primary}-");
        self.languages.range(prefix.clone()..).next().filter(|it| it.starts_with(&prefix)).cloned()
    }

    /// Whether no voice is known, so that nothing can be said about languages.
    pub(super) fn is_empty(&self) -> bool {
        self.languages.is_empty()
    }
}

/// Only language and region, if the tag has a region.
pub(super) fn short(tag: &LanguageTag) -> Option<String> {
    let region = tag.region()?;
    Some(format!("{}-{}", tag.primary(), region).to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voices(languages: &[&str]) -> ServerVoices {
        let mut voices = ServerVoices::default();
        for language in languages {
            assert!(voices.add(&format!("voice\t{language}\tnone"), None));
        }
        voices
    }

    fn choose(languages: &[&str], tag: &str) -> Option<String> {
        voices(languages).choose(&LanguageTag::parse(tag).expect("a tag"))
    }

    #[test]
    fn the_nearest_language_with_a_voice_is_chosen() {
        let all = ["en", "en-gb", "en-us", "pt-br", "cmn", "fr-fr", "no"];
        for (tag, expected) in [
            ("en-GB", Some("en-gb")),
            ("en-AU", Some("en")),
            ("pt", Some("pt-br")),
            ("pt-PT", Some("pt-br")),
            ("zh-Hant-TW", Some("cmn")),
            ("nb-NO", Some("no")),
            ("fr-Latn-FR", Some("fr-fr")),
            ("yo", None),
            ("eng", None),
        ] {
            assert_eq!(choose(&all, tag).as_deref(), expected, "{tag}");
        }
    }

    #[test]
    fn invalid_language_tags_are_not_kept() {
        let mut all = voices(&["", "none\r", "a b", "*"]);
        assert!(all.is_empty());
        assert!(all.add("", None) && all.add("name only", None) && all.is_empty());
    }

    #[test]
    fn the_wanted_voice_is_found_by_its_whole_name() {
        let mut all = ServerVoices::default();
        all.add("Anna\tde\tnone", Some("Ann"));
        assert!(!all.has_wanted());
        all.add("Ann\ten\tnone", Some("Ann"));
        assert!(all.has_wanted());
    }

    #[test]
    fn a_list_without_end_is_not_taken_to_its_end() {
        let mut all = ServerVoices::default();
        let taken = (0..MAX_VOICES + 10)
            .take_while(|n| all.add(&format!("v\tx{n:05}\tnone"), None))
            .count();
        assert_eq!(taken, MAX_VOICES);
        assert!(all.languages.len() <= MAX_LANGUAGES);
    }
}
