//! Selects a question's words in the person's language, if its event has them.

use aaep::{Event, LanguageTag, Message, Mode, View};

/// The event in the first of these languages that it has, or in its own language if it has none.
pub(crate) fn in_language(event: Event, languages: &[LanguageTag]) -> Event {
    let hints = event.envelope.localization_hints.as_ref();
    let own = hints.and_then(|it| it.primary_language.as_ref());
    for wanted in languages {
        if own.is_some_and(|own| is_like(own, wanted)) {
            return event;
        }
        let variant = event.variants.iter().find(|it| is_like(&it.language, wanted));
        let Some(language) = variant.map(|it| it.language.clone()) else { continue };
        let mut view = View::new(&event);
        view.language = Some(&language);
        let text = serde_json::to_vec(&view).unwrap_or_default();
        return match aaep::read(&text, Mode::Tolerant).message {
            Some(Message::Event(told)) => *told,
            _ => event,
        };
    }
    event
}

/// Whether two tags have the same primary language; regions are ignored.
fn is_like(one: &LanguageTag, other: &LanguageTag) -> bool {
    let primary =
        |tag: &LanguageTag| tag.as_str().split('-').next().unwrap_or_default().to_ascii_lowercase();
    primary(one) == primary(other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::attention::asked::tests::confirmation;
    use crate::attention::asked::{PresentedAsk, what};

    fn told(languages: &[&str]) -> String {
        let event = confirmation(
            "rpl_1",
            &json!({
                "localization_hints": { "primary_language": "en-US" },
                "action_fr": "Effacer.", "consequence_fr": "Fini.", "action_de": "Löschen.",
            }),
        );
        let known = PresentedAsk::of(&event).expect("a question");
        let tags: Vec<LanguageTag> =
            languages.iter().map(|tag| LanguageTag::parse(tag).expect("a tag")).collect();
        let told = in_language(event, &tags);
        let asked = PresentedAsk::of(&told).expect("a question");
        assert_eq!(asked.identity, known.identity, "it is the same question");
        assert!(asked.words.iter().all(|words| known.words.contains(words)));
        what(&told).to_owned()
    }

    #[test]
    fn a_question_is_told_in_the_first_language_that_it_has() {
        assert_eq!(told(&[]), "Delete 240 photos.");
        assert_eq!(told(&["fr-CA", "en"]), "Effacer.");
        assert_eq!(told(&["en-GB", "fr"]), "Delete 240 photos.");
        assert_eq!(told(&["sw", "de"]), "Löschen.");
        assert_eq!(told(&["sw"]), "Delete 240 photos.");
    }
}
