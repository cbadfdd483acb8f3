//! The words for an event.

use aaep::event::action::{RiskLevel, ToolCompleted, ToolInvoked, ToolStatus};
use aaep::event::human::HandoffRequested;
use aaep::event::lifecycle::{SessionCancelled, SessionCompleted, SessionErrored};
use aaep::event::reasoning::{ProgressUpdated, StateChanged, state};
use aaep::{Event, ExtensionPayload, LanguageTag, Payload, TextDirection, Urgency};

use crate::english::{asks, events};
use crate::profile::{Length, Preferences};
use crate::utterance::{UtteranceKind, Weight};
use crate::words::{Style, guarded, last_said, own, without_own_marks, words_marked};

/// The language and the direction of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TextLanguage {
    pub(super) language: Option<LanguageTag>,
    pub(super) is_right_to_left: bool,
}

/// A phrase to announce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AnnouncedPhrase {
    pub(super) kind: UtteranceKind,
    pub(super) weight: Weight,
    pub(super) words: String,
    pub(super) text_language: TextLanguage,
}

impl TextLanguage {
    /// The language and direction of an event's text.
    pub(super) fn of(event: &Event, text: &str) -> Self {
        let hints = event.envelope.localization_hints.as_ref();
        let language = match &event.payload {
            Payload::OutputStreaming(it) => it.language.clone(),
            _ => None,
        };
        let language = language.or_else(|| hints.and_then(|it| it.primary_language.clone()));
        let is_right_to_left = match hints.and_then(|it| it.text_direction.as_ref()) {
            Some(TextDirection::Rtl) => true,
            Some(TextDirection::Ltr) => false,
            _ => runs_right_to_left(text),
        };
        TextLanguage { language, is_right_to_left }
    }

    /// Whether the words are English, as far as is known.
    pub(super) fn is_english(&self) -> bool {
        self.language.as_ref().is_none_or(|it| it.primary().eq_ignore_ascii_case("en"))
    }
}

/// Whether the first letter runs from right to left.
fn runs_right_to_left(text: &str) -> bool {
    let is_right = |c: char| {
        matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
            | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
    };
    text.chars().find(|c| c.is_alphabetic()).is_some_and(is_right)
}

/// Turns fields into words, in the length and style that the person wants.
pub(super) struct FieldWording<'a> {
    pub(super) preferences: &'a Preferences,
    pub(super) style: Style,
}

impl<'a> FieldWording<'a> {
    pub(super) fn of(preferences: &'a Preferences, text_language: &TextLanguage) -> Self {
        FieldWording {
            preferences,
            style: preferences.style().in_language(text_language.language.as_ref()),
        }
    }

    pub(super) fn text(&self, text: &str) -> String {
        words_marked(text, self.style)
    }

    /// The summary of the preferred length, or the next best.
    pub(super) fn summary(
        &self,
        terse: Option<&String>,
        normal: Option<&String>,
        detailed: Option<&String>,
    ) -> String {
        let order = match self.preferences.length {
            Length::Terse => [terse, normal, detailed],
            Length::Normal => [normal, terse, detailed],
            Length::Detailed => [detailed, normal, terse],
        };
        order.into_iter().flatten().next().map_or_else(String::new, |it| self.text(it))
    }
}

/// The words for an event that is neither a question nor text, or `None` if there is nothing to say.
pub(super) fn phrase(event: &Event, preferences: &Preferences) -> Option<AnnouncedPhrase> {
    let text_language = TextLanguage::of(event, event.summary());
    let wording = FieldWording::of(preferences, &text_language);
    let (kind, weight, words) = match &event.payload {
        Payload::SessionStarted(it) => {
            let summary = wording.summary(
                it.summary_terse.as_ref(),
                Some(&it.summary_normal),
                it.summary_detailed.as_ref(),
            );
            (
                UtteranceKind::Doing,
                Weight::Normal,
                after(events::STARTED, &summary, events::SAME_AS_STARTED),
            )
        }
        Payload::SessionCompleted(it) => {
            (UtteranceKind::Done, Weight::Normal, completed(it, &wording))
        }
        Payload::SessionErrored(it) => {
            (UtteranceKind::Error, Weight::Critical, errored(it, &wording))
        }
        Payload::SessionCancelled(it) => {
            (UtteranceKind::Done, Weight::Normal, cancelled(it, &wording))
        }
        Payload::StateChanged(it) => {
            (UtteranceKind::Doing, Weight::Background, changed(it, &wording))
        }
        Payload::ProgressUpdated(it) => {
            (UtteranceKind::Progress, Weight::Progress, got_further(it, &wording))
        }
        Payload::ToolInvoked(it) => invoked(it, &wording),
        Payload::ToolCompleted(it) => returned(it, &wording),
        Payload::HandoffRequested(it) => {
            (UtteranceKind::Question, Weight::Critical, handoff(it, &wording))
        }
        Payload::Extension(it) => {
            (UtteranceKind::Notice, Weight::Normal, unknown(it, event, &wording))
        }
        Payload::OutputStreaming(_)
        | Payload::AwaitingConfirmation(_)
        | Payload::AwaitingClarification(_) => return None,
    };
    let (kind, weight) = with_urgency(event, kind, weight);
    let words = guarded(&words);
    (!words.is_empty()).then_some(AnnouncedPhrase { kind, weight, words, text_language })
}

/// Applies the urgency of the producer: it can always raise the weight, and lower it only if the kind does not demand
/// more.
fn with_urgency(event: &Event, kind: UtteranceKind, weight: Weight) -> (UtteranceKind, Weight) {
    let is_waiting =
        matches!(&event.payload, Payload::StateChanged(it) if it.to_state == state::AWAITING_INPUT);
    match event.envelope.urgency {
        // A person who cannot answer learns from this event that something is asked (ruling 1).
        Some(Urgency::Critical) if is_waiting => (UtteranceKind::Question, Weight::Critical),
        Some(Urgency::Critical) => (kind, Weight::Critical),
        Some(Urgency::Background) if weight == Weight::Normal && kind == UtteranceKind::Doing => {
            (kind, Weight::Background)
        }
        _ => (kind, weight),
    }
}

/// Our own words and then the summary, or only the summary if it begins with the same statement.
fn after(ours: &str, summary: &str, same: &[&str]) -> String {
    let beginning: String =
        without_own_marks(summary).chars().take(16).collect::<String>().to_lowercase();
    if same.iter().any(|it| beginning.starts_with(it)) {
        summary.to_owned()
    } else {
        format!("{} {summary}", own(ours))
    }
}

fn completed(it: &SessionCompleted, wording: &FieldWording<'_>) -> String {
    let summary = wording.summary(
        it.summary_terse.as_ref(),
        Some(&it.summary_normal),
        it.summary_detailed.as_ref(),
    );
    after(events::FINISHED, &summary, events::SAME_AS_FINISHED)
}

fn errored(it: &SessionErrored, wording: &FieldWording<'_>) -> String {
    let summary = wording.summary(
        it.summary_terse.as_ref(),
        Some(&it.summary_normal),
        it.summary_detailed.as_ref(),
    );
    let hint = it.remediation_hint.as_deref().map(|it| wording.text(it)).unwrap_or_default();
    sentences(&[&after(events::HAS_FAILED, &summary, events::SAME_AS_FAILED), &hint])
}

fn cancelled(it: &SessionCancelled, wording: &FieldWording<'_>) -> String {
    let by = events::stopped(&it.cancelled_by);
    let summary = wording.summary(
        it.summary_terse.as_ref(),
        Some(&it.summary_normal),
        it.summary_detailed.as_ref(),
    );
    let partly = it.partial_result.as_deref().map(|it| wording.text(it)).unwrap_or_default();
    let is_terse = wording.preferences.length == Length::Terse;
    sentences(&[&own(by), &summary, if is_terse { "" } else { &partly }])
}

fn changed(it: &StateChanged, wording: &FieldWording<'_>) -> String {
    let summary = wording.summary(
        it.summary_terse.as_ref(),
        it.summary_normal.as_ref(),
        it.summary_detailed.as_ref(),
    );
    if !summary.is_empty() {
        return summary;
    }
    // The other states are announced by the next event: a tool, a text, a question.
    match it.to_state.as_str() {
        state::THINKING => own(events::THINKING),
        state::DECIDING => own(events::DECIDING),
        state::HANDING_OFF => own(events::HANDING_OVER),
        state::IDLE | state::CALLING_TOOL | state::WRITING_OUTPUT | state::AWAITING_INPUT => {
            String::new()
        }
        _ => own(events::SOMETHING_ELSE),
    }
}

fn got_further(it: &ProgressUpdated, wording: &FieldWording<'_>) -> String {
    let progress = &it.progress;
    let amount = match (&progress.percent, progress.step, progress.total_steps) {
        (Some(percent), _, _) => {
            let percent = percent.as_f64().unwrap_or_default().clamp(0.0, 100.0).round();
            events::percent(percent)
        }
        (None, Some(step), Some(total)) => events::step_of(step, total),
        (None, Some(step), None) => events::step(step),
        (None, None, _) => String::new(),
    };
    let summary = wording.summary(
        it.summary_terse.as_ref(),
        it.summary_normal.as_ref(),
        it.summary_detailed.as_ref(),
    );
    let description =
        progress.description.as_deref().map(|it| wording.text(it)).unwrap_or_default();
    sentences(&[&own(&amount), if summary.is_empty() { &description } else { &summary }])
}

fn invoked(it: &ToolInvoked, wording: &FieldWording<'_>) -> (UtteranceKind, Weight, String) {
    let summary = wording.summary(
        it.summary_terse.as_ref(),
        Some(&it.summary_normal),
        it.summary_detailed.as_ref(),
    );
    let is_final = it.irreversible == Some(true);
    let risk = match &it.risk_level {
        Some(RiskLevel::High) => events::HIGH_RISK,
        Some(RiskLevel::Medium) => events::SOME_RISK,
        Some(RiskLevel::Other(_)) => asks::risk(it.risk_level.as_ref()),
        Some(RiskLevel::Low) | None => "",
    };
    let undo = if is_final { asks::CANNOT_BE_UNDONE } else { "" };
    let weight = if is_final || it.states_risk() { Weight::Normal } else { Weight::Background };
    (UtteranceKind::Doing, weight, sentences(&[&summary, &own(risk), &own(undo)]))
}

fn returned(it: &ToolCompleted, wording: &FieldWording<'_>) -> (UtteranceKind, Weight, String) {
    let summary = wording.summary(
        it.summary_terse.as_ref(),
        it.summary_normal.as_ref(),
        it.summary_detailed.as_ref(),
    );
    let tool = it.tool.as_str();
    let what = match &it.status {
        ToolStatus::Success => return (UtteranceKind::Doing, Weight::Background, summary),
        ToolStatus::Error => events::tool_failed(tool),
        ToolStatus::Timeout => events::tool_not_in_time(tool),
        ToolStatus::Other(_) => events::tool_ended(tool),
    };
    let why = it.error_message.as_deref().map(|it| wording.text(it)).unwrap_or_default();
    (
        UtteranceKind::Error,
        Weight::Normal,
        sentences(&[&own(&what), if why.is_empty() { &summary } else { &why }]),
    )
}

fn handoff(it: &HandoffRequested, wording: &FieldWording<'_>) -> String {
    let to = events::take_over(&it.target_kind);
    let summary = wording.summary(
        it.summary_terse.as_ref(),
        it.summary_normal.as_ref(),
        it.summary_detailed.as_ref(),
    );
    let reason = wording.text(&it.reason);
    sentences(&[&own(to), if summary.is_empty() { &reason } else { &summary }])
}

fn unknown(it: &ExtensionPayload, event: &Event, wording: &FieldWording<'_>) -> String {
    let field = |name: &str| it.fields.get(name).and_then(|it| it.as_str()).map(str::to_owned);
    let summary = wording.summary(
        field("summary_terse").as_ref(),
        field("summary_normal").as_ref(),
        field("summary_detailed").as_ref(),
    );
    if !summary.is_empty() {
        return summary;
    }
    if event.is_critical() || wording.preferences.unknown_events {
        let name = it.type_name.as_str();
        return own(&events::of_unknown_kind(name));
    }
    String::new()
}

/// Joins the nonempty parts, each as a sentence of its own.
pub(super) fn sentences(parts: &[&str]) -> String {
    let mut out = String::new();
    for part in parts.iter().map(|it| it.trim()).filter(|it| !it.is_empty()) {
        if !out.is_empty() {
            if is_open(&out) {
                out.push('.');
            }
            out.push(' ');
        }
        out.push_str(part);
    }
    if is_open(&out) {
        out.push('.');
    }
    out
}

/// Whether the last sentence has no final punctuation mark.
fn is_open(text: &str) -> bool {
    last_said(text).is_some_and(|c| c.is_alphanumeric() || c == ')' || c == '%')
}
