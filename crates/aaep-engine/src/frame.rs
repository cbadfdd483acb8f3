//! What goes onto the wire: an event, encoded once for an audience and shared by reference.

use std::sync::Arc;

use aaep::{Event, EventId, LanguageTag, LocalizationHints, View};

use crate::terms::Terms;

/// One encoded event.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// The id of the event, for resuming.
    pub event_id: EventId,
    /// Whether it must overtake whatever else waits for the wire.
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
    // Writing to memory cannot fail, and every event can be written.
    let json = serde_json::to_vec(&view).unwrap_or_default().into_boxed_slice();
    Arc::new(Frame { event_id: event.envelope.event_id.clone(), is_critical, json })
}

/// Chooses the one language of a subscription (§11.1.3, ruling 22) and says which it is.
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
    let mut available: Vec<LanguageTag> = vec![own.unwrap_or(primary).clone()];
    available.extend(event.variant_languages().into_iter().cloned());
    let chosen = terms.choose_language(&available).unwrap_or(&available[0]).clone();
    view.language = event.variants.iter().map(|it| &it.language).find(|it| **it == chosen);
    let mut told = hints_in(hints, &chosen);
    available.dedup();
    available.truncate(32);
    told.available_languages = Some(available);
    view.hints = Some(told);
}

fn hints_in(hints: Option<&LocalizationHints>, language: &LanguageTag) -> LocalizationHints {
    let mut told = hints.cloned().unwrap_or_else(LocalizationHints::new);
    let is_other = told.primary_language.as_ref().is_none_or(|own| own != language);
    if is_other {
        told.text_direction = direction(language);
        told.script = None;
        told.primary_language = Some(language.clone());
    }
    told
}

/// Right to left where script or language says so; silent otherwise, which means left to right.
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
