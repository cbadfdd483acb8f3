//! An encoded event for the wire: encoded once for an audience and shared by reference.

use std::sync::Arc;

use aaep::{Event, EventId, LanguageTag, LocalizationHints, View};

use crate::terms::Terms;

/// One encoded event.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// The id of the event, which a subscriber resumes from.
    pub event_id: EventId,
    /// Whether it must overtake everything else that waits for the wire.
    pub is_critical: bool,
    /// The event as JSON.
    pub json: Box<[u8]>,
}

/// Encodes an event in the words of an audience.
pub(crate) fn encode(
    event: &Event,
    is_critical: bool,
    sequence_number: Option<u64>,
    terms: &Terms,
    primary: &LanguageTag,
) -> Arc<Frame> {
    let mut view = View::new(event);
    view.verbosity = terms.verbosity.clone();
    view.sequence_number = sequence_number;
    view.version = Some(&terms.version);
    choose_language(event, &mut view, terms, primary);
    // Writing to memory cannot fail, and every event can be serialized.
    let json = serde_json::to_vec(&view).unwrap_or_default().into_boxed_slice();
    Arc::new(Frame { event_id: event.envelope.event_id.clone(), is_critical, json })
}

/// Chooses the one language of a subscription (§11.1.3, ruling 22) and names it in the hints.
fn choose_language<'a>(
    event: &'a Event,
    view: &mut View<'a>,
    terms: &Terms,
    primary: &LanguageTag,
) {
    let hints = event.envelope.localization_hints.as_ref();
    let own = hints.and_then(|hints| hints.primary_language.as_ref());
    if event.variants.is_empty() {
        if own.is_none() {
            view.hints = Some(hints_in(hints, own.unwrap_or(primary)));
        }
        return;
    }
    let own = own.unwrap_or(primary);
    let others = event.variant_languages().into_iter().filter(|it| *it != own);
    let mut available: Vec<LanguageTag> = std::iter::once(own).chain(others).cloned().collect();
    let chosen = terms.choose_language(&available).unwrap_or(&available[0]).clone();
    view.language = event.variants.iter().map(|it| &it.language).find(|it| **it == chosen);
    let mut chosen_hints = hints_in(hints, &chosen);
    available.truncate(32);
    chosen_hints.available_languages = Some(available);
    view.hints = Some(chosen_hints);
}

fn hints_in(hints: Option<&LocalizationHints>, language: &LanguageTag) -> LocalizationHints {
    let mut chosen_hints = hints.cloned().unwrap_or_else(LocalizationHints::new);
    let is_other = chosen_hints.primary_language.as_ref().is_none_or(|own| own != language);
    if is_other {
        chosen_hints.text_direction = direction(language);
        chosen_hints.script = None;
        chosen_hints.primary_language = Some(language.clone());
    }
    chosen_hints
}

/// Right to left where the script or the language requires it. `None` means left to right.
fn direction(language: &LanguageTag) -> Option<aaep::TextDirection> {
    const RTL_SCRIPTS: &[&str] = &["Arab", "Hebr", "Syrc", "Thaa", "Nkoo", "Adlm", "Rohg", "Mand"];
    const RTL_LANGUAGES: &[&str] =
        &["ar", "he", "fa", "ur", "yi", "ps", "sd", "ug", "dv", "ckb", "nqo", "syr", "arc", "ks"];
    let is_rtl = match language.script() {
        Some(script) => RTL_SCRIPTS.iter().any(|it| it.eq_ignore_ascii_case(script)),
        None => RTL_LANGUAGES.iter().any(|it| it.eq_ignore_ascii_case(language.primary())),
    };
    is_rtl.then_some(aaep::TextDirection::Rtl)
}
