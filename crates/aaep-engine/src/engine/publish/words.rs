//! Adds what the specification requires on every event and agents may leave out (ruling 34): the
//! version, a summary on asks, and text in Normalization Form C.

use aaep::extension::Delivery;
use aaep::{Event, MAX_MESSAGE_BYTES, Payload, Severity, Variant, Version};

use crate::nfc;

/// How many characters of a long action or question become its summary, if the whole would not fit into a
/// message.
const SHORT_SUMMARY: usize = 400;

/// How many bytes of a message are reserved for everything besides the agent's own words.
const ROOM_FOR_THE_REST: usize = 1024;

/// Completes an event of an agent. Completing it again changes nothing. The chunk of an output is left
/// unchanged, because its characters are counted: see `send_normal`.
pub fn complete(event: &mut Event) {
    normalize(event);
    event.envelope.aaep_version.get_or_insert_with(Version::v1_0_0);
    fill_summary(event);
}

/// Converts the words of an event to Normalization Form C. A few texts grow; if the event would then be too
/// long for the protocol, it stays unchanged.
fn normalize(event: &mut Event) {
    let mut is_normal = true;
    event.each_words(&mut |text| is_normal &= nfc::is_normal_text(text));
    if is_normal {
        return;
    }
    let before = event.clone();
    let mut has_grown = false;
    event.each_words(&mut |text| {
        let normal = nfc::normal(text).into_owned();
        has_grown |= normal.len() > text.len();
        *text = normal;
    });
    let is_wrong = || aaep::check(event).iter().any(|it| it.severity == Severity::Error);
    if has_grown && is_wrong() {
        *event = before;
    }
}

/// Gives an ask without `summary_normal` its action or question as the summary, in each of its languages.
fn fill_summary(event: &mut Event) {
    let (field, text, is_given) = match &event.payload {
        Payload::AwaitingConfirmation(it) => ("action", &it.action, it.summary_normal.is_some()),
        Payload::AwaitingClarification(it) => {
            ("question", &it.question, it.summary_normal.is_some())
        }
        _ => return,
    };
    if is_given {
        return;
    }
    let own = text.clone();
    let has_summary = |language| {
        let mut variants = event.variants.iter();
        variants.any(|it| it.field == "summary_normal" && it.language == language)
    };
    let others: Vec<Variant> = event
        .variants
        .iter()
        .filter(|it| it.field == field && !has_summary(it.language.clone()))
        .map(|it| Variant::new("summary_normal", it.language.clone(), it.text.as_str()))
        .collect();
    let before = event.clone();
    for most in [usize::MAX, SHORT_SUMMARY] {
        let cut = |text: &str| match text.char_indices().nth(most) {
            Some((at, _)) => format!("{}\u{2026}", &text[..at]),
            None => text.to_owned(),
        };
        let summary = Some(cut(&own));
        match &mut event.payload {
            Payload::AwaitingConfirmation(it) => it.summary_normal = summary,
            Payload::AwaitingClarification(it) => it.summary_normal = summary,
            _ => return,
        }
        let cut_to = |it: &Variant| Variant::new(it.field, it.language.clone(), cut(&it.text));
        event.variants.extend(others.iter().map(cut_to));
        if fits(event, &before) {
            return;
        }
        event.clone_from(&before);
    }
}

/// Whether an event that grew still fits into a message and is no less valid than before.
fn fits(event: &Event, before: &Event) -> bool {
    let errors = |event: &Event| {
        aaep::check(event).iter().filter(|it| it.severity == Severity::Error).count()
    };
    let length = serde_json::to_vec(event).map_or(usize::MAX, |it| it.len());
    length <= MAX_MESSAGE_BYTES - ROOM_FOR_THE_REST && errors(event) <= errors(before)
}

/// Converts a chunk to the form that is sent: text in Normalization Form C, and the position counted in that
/// text. If the agent's count differs, the event states it, so that the agent can continue after a restart.
pub(super) fn send_normal(event: &mut Event, begins_at: u64) {
    let Payload::OutputStreaming(chunk) = &mut event.payload else { return };
    let count = |text: &str| text.chars().count() as u64;
    let counted_to = chunk.position.saturating_add(count(&chunk.chunk));
    if !nfc::is_normal_text(&chunk.chunk) {
        chunk.chunk = nfc::chunk(&chunk.chunk).into_owned();
    }
    chunk.position = begins_at;
    if begins_at.saturating_add(count(&chunk.chunk)) != counted_to {
        let said = Delivery::of(event).unwrap_or_default();
        Delivery { counted_to: Some(counted_to), ..said }.put_on(event);
    }
}

/// Whether two chunks are the same, the first as it was recorded and the second as its agent sent it.
pub fn is_same_chunk(recorded: &Event, again: &Event) -> bool {
    let (Payload::OutputStreaming(one), Payload::OutputStreaming(other)) =
        (&recorded.payload, &again.payload)
    else {
        return false;
    };
    let end = |position: u64, text: &str| position.saturating_add(text.chars().count() as u64);
    let counted_to = recorded.extensions.as_ref().and_then(|_| Delivery::of(recorded)?.counted_to);
    let counted_to = counted_to.unwrap_or_else(|| end(one.position, &one.chunk));
    counted_to == end(other.position, &other.chunk)
        && nfc::chunk(&one.chunk) == nfc::chunk(&other.chunk)
}
