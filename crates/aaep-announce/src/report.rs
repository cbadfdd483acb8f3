//! A listening report: figures about how a recorded session would have been to listen to.

mod page;
mod tables;
mod timeline;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use aaep::{Event, OutputId, Payload, SessionId};
use serde::Serialize;

use crate::announcer::MAX_UTTERANCE;
use crate::announcer::parts::sentence_parts;
use crate::english::report;
use crate::profile::Preferences;
use crate::rehearsal::{Rehearsal, RehearsedUtterance, rehearse};
use crate::utterance::{UtteranceKind, Weight};

pub use page::{Listening, page};

/// Words of an utterance up to this many bytes count as one sentence.
const ONE_SENTENCE: usize = 150;

/// How a recorded session would have been to listen to. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListeningReport {
    /// The pace of listening, in words per minute.
    pub words_per_minute: u64,
    /// How many events there were.
    pub events: u64,
    /// The time from the first event to the last.
    pub session_ms: u64,
    /// The time from the first event to the last word.
    pub listening_ms: u64,
    /// The number of words for people in the events.
    pub words_emitted: u64,
    /// The number of words in utterances that were said whole.
    pub words_spoken: u64,
    /// How often something was said.
    pub announcements: u64,
    /// The same per minute of listening, to the nearest whole number.
    pub announcements_per_minute: u64,
    /// The longest time without an utterance.
    pub longest_silence_ms: u64,
    /// How often the same words were said twice in a row; should be 0.
    pub repeated_announcements: u64,
    /// Announcements that were interrupted and never said whole; should be 0.
    pub cut_announcements: u64,
    /// Announcements that a critical one interrupted, and that were said again whole.
    pub interrupted_announcements: u64,
    /// How many questions there were.
    pub asks: u64,
    /// Questions that were over before any word of them was said; should be 0.
    pub asks_missed: u64,
    /// The longest time from a question to its first word, among those that were said.
    pub slowest_ask_ms: Option<u64>,
    /// The same for each question in order; `None` for a missed one.
    pub ask_to_first_word_ms: Vec<Option<u64>>,
    /// The longest delay between something happening and its announcement.
    pub furthest_behind_ms: u64,
    /// The same for ends, errors and settlements.
    pub urgent_behind_ms: u64,
    /// Ends, failures and settlements before which more than one sentence was begun; should be 0.
    pub late_ends: u64,
    /// The most utterances about what agents say and do that began although an end, an error or a settlement was
    /// already waiting. Only the current utterance may be finished first; should be 0.
    pub said_before_an_end: u64,
    /// How long after the last event everything had been said.
    pub behind_at_the_end_ms: u64,
}

impl ListeningReport {
    /// Makes the report for events, each with its time, in order, for a person with these preferences who hears this
    /// many words per minute.
    pub fn of(
        events: &[(Duration, Event)],
        preferences: &Preferences,
        words_per_minute: u64,
    ) -> Self {
        Self::of_rehearsal(
            events,
            &rehearse(events, preferences, words_per_minute),
            words_per_minute,
        )
    }

    /// Makes the report from a rehearsal of these events.
    pub fn of_rehearsal(
        events: &[(Duration, Event)],
        rehearsal: &Rehearsal,
        words_per_minute: u64,
    ) -> Self {
        let start = events.first().map(|(at, _)| *at).unwrap_or_default();
        let end = events.last().map(|(at, _)| *at).unwrap_or_default();
        let said = &rehearsal.said;
        let last_word = said.iter().map(|it| it.ended).max().unwrap_or(start);
        let whole: BTreeSet<u64> =
            said.iter().filter(|it| it.is_whole).map(|it| it.serial).collect();
        let cut = said.iter().filter(|it| !it.is_whole && !is_outdated(it));
        let first_words = rehearsal
            .asks
            .iter()
            .map(|it| it.first_word.map(|word| milliseconds(word.saturating_sub(it.asked))));
        let first_words: Vec<Option<u64>> = first_words.collect();
        let behind = said.iter().filter(|it| it.utterance.weight < Weight::Critical);
        let critical = said.iter().filter(|it| is_end(it));
        // Utterances about questions that time out after the last event were not known before.
        let known = said.iter().filter(|it| it.arrived <= end);
        let caught_up = known.map(|it| it.ended).max().unwrap_or(end);
        let listening = last_word.max(end).saturating_sub(start);
        let announcements = said.len() as u64;
        ListeningReport {
            words_per_minute,
            events: events.len() as u64,
            session_ms: milliseconds(end.saturating_sub(start)),
            listening_ms: milliseconds(listening),
            words_emitted: emitted(events),
            words_spoken: said
                .iter()
                .filter(|it| it.is_whole)
                .map(|it| count(&it.utterance.words))
                .sum(),
            announcements,
            announcements_per_minute: per_minute(announcements, listening),
            longest_silence_ms: silences(said, start, end)
                .into_iter()
                .map(|(from, until)| milliseconds(until.saturating_sub(from)))
                .max()
                .unwrap_or_default(),
            repeated_announcements: repeated(said),
            cut_announcements: cut.clone().filter(|it| !whole.contains(&it.serial)).count() as u64,
            interrupted_announcements: cut.filter(|it| whole.contains(&it.serial)).count() as u64,
            asks: rehearsal.asks.len() as u64,
            asks_missed: first_words.iter().filter(|it| it.is_none()).count() as u64,
            slowest_ask_ms: first_words.iter().copied().flatten().max(),
            ask_to_first_word_ms: first_words,
            furthest_behind_ms: behind.map(behind_ms).max().unwrap_or_default(),
            urgent_behind_ms: critical.map(behind_ms).max().unwrap_or_default(),
            late_ends: late_ends(said, words_per_minute),
            said_before_an_end: said
                .iter()
                .map(|it| before_end(it, said))
                .max()
                .unwrap_or_default(),
            behind_at_the_end_ms: milliseconds(caught_up.saturating_sub(end)),
        }
    }

    /// The report as JSON, on one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether nothing was repeated, lost or missed, and no end came late.
    pub fn is_good(&self) -> bool {
        let faults = [
            self.repeated_announcements,
            self.cut_announcements,
            self.asks_missed,
            self.said_before_an_end,
            self.late_ends,
        ];
        faults == [0; 5]
    }

    /// Each figure with its name, in words for people.
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let number = |value: u64| value.to_string();
        let none = |value: u64| match value {
            0 => "0".to_owned(),
            _ => report::should_be_zero(value),
        };
        let per_minute = self.announcements_per_minute;
        let mut figures = vec![
            (report::PACE, report::words_per_minute(self.words_per_minute)),
            (report::EVENTS, report::events_in(self.events, &seconds(self.session_ms))),
            (report::WORDS_EMITTED, number(self.words_emitted)),
            (report::WORDS_SPOKEN, number(self.words_spoken)),
            (report::ANNOUNCEMENTS, report::per_minute(self.announcements, per_minute)),
            (report::LONGEST_SILENCE, seconds(self.longest_silence_ms)),
            (report::REPEATED, none(self.repeated_announcements)),
            (report::CUT_OFF, none(self.cut_announcements)),
            (report::INTERRUPTED, number(self.interrupted_announcements)),
            (report::QUESTIONS, number(self.asks)),
            (report::QUESTIONS_MISSED, none(self.asks_missed)),
        ];
        if let Some(slowest) = self.slowest_ask_ms {
            figures.push((report::TO_FIRST_WORD, seconds(slowest)));
        }
        figures.extend([
            (report::BEHIND, seconds(self.furthest_behind_ms)),
            (report::CRITICAL_BEHIND, seconds(self.urgent_behind_ms)),
            (report::LATE_ENDS, none(self.late_ends)),
            (report::SAID_BEFORE_END, none(self.said_before_an_end)),
            (report::BEHIND_AT_END, seconds(self.behind_at_the_end_ms)),
        ]);
        figures
    }
}

impl fmt::Display for ListeningReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.figures().into_iter().enumerate() {
            let before = if at == 0 { "" } else { "\n" };
            write!(f, "{before}{name}: {value}")?;
        }
        Ok(())
    }
}

/// Counts the words for people in the events. Chunks of text can end within a word.
fn emitted(events: &[(Duration, Event)]) -> u64 {
    let mut open: BTreeMap<(&SessionId, Option<&OutputId>), bool> = BTreeMap::new();
    let mut words = 0;
    for (_, event) in events {
        let text = event.summary();
        words += count(text);
        let Payload::OutputStreaming(piece) = &event.payload else { continue };
        let output = (&event.envelope.session_id, piece.output_id.as_ref());
        let is_within = open.remove(&output).unwrap_or_default();
        if is_within && text.starts_with(|c: char| !c.is_whitespace()) {
            words -= 1;
        }
        if !piece.complete {
            let ends_within = text.chars().next_back().map_or(is_within, |c| !c.is_whitespace());
            open.insert(output, ends_within);
        }
    }
    words
}

/// Whether it is an end, a failure, or how a question was settled.
fn is_end(it: &RehearsedUtterance) -> bool {
    match it.utterance.kind {
        UtteranceKind::Done | UtteranceKind::Settled => true,
        UtteranceKind::Error => it.utterance.weight == Weight::Critical,
        _ => false,
    }
}

/// How many utterances about what agents say and do began although this end was already waiting.
fn before_end(end: &RehearsedUtterance, said: &[RehearsedUtterance]) -> u64 {
    let is_less = |it: &&RehearsedUtterance| {
        let is_talk = matches!(
            it.utterance.kind,
            UtteranceKind::Reply | UtteranceKind::Doing | UtteranceKind::Progress
        );
        is_talk && it.utterance.weight < Weight::Critical
    };
    let meanwhile = end.arrived..end.began;
    let begun = said.iter().filter(|it| meanwhile.contains(&it.began));
    if is_end(end) { begun.filter(is_less).count() as u64 } else { 0 }
}

/// How many ends waited while more than one sentence of something else was begun.
fn late_ends(said: &[RehearsedUtterance], words_per_minute: u64) -> u64 {
    let mut first_told: BTreeSet<u64> = BTreeSet::new();
    let ends = said.iter().filter(|it| is_end(it) && first_told.insert(it.serial));
    let before = |end: &RehearsedUtterance| {
        let others = said.iter().filter(|it| !it.is_news);
        let starts = others.flat_map(|it| sentence_starts(it, words_per_minute));
        starts.filter(|at| end.arrived < *at && *at < end.began).count()
    };
    ends.map(before).filter(|count| *count > 1).count() as u64
}

/// When each sentence of an utterance was begun. Short sentences that are said together count as one.
fn sentence_starts(said: &RehearsedUtterance, words_per_minute: u64) -> Vec<Duration> {
    let (mut starts, mut words) = (Vec::new(), 0_u64);
    let said_words = said.utterance.words.as_str();
    let sentences = match said_words.len() {
        ..=ONE_SENTENCE => vec![said_words],
        _ => sentence_parts(said_words, MAX_UTTERANCE),
    };
    for sentence in sentences {
        let after = words.saturating_mul(60_000).checked_div(words_per_minute).unwrap_or_default();
        starts.push(said.began.saturating_add(Duration::from_millis(after)));
        words += count(sentence);
    }
    starts.retain(|at| *at == said.began || *at < said.ended);
    starts
}

fn behind_ms(said: &RehearsedUtterance) -> u64 {
    milliseconds(said.began.saturating_sub(said.arrived))
}

/// Whether an interrupted utterance need not be said again.
fn is_outdated(said: &RehearsedUtterance) -> bool {
    // The context of a question is over with the question.
    let is_context =
        said.utterance.kind == UtteranceKind::Reply && said.utterance.weight == Weight::Critical;
    is_context
        || said.is_offered
        || matches!(said.utterance.kind, UtteranceKind::Progress | UtteranceKind::Question)
        || said.utterance.kind == UtteranceKind::Doing
            && said.utterance.weight == Weight::Background
}

/// The silences from the first event to the last event or word.
fn silences(
    said: &[RehearsedUtterance],
    start: Duration,
    end: Duration,
) -> Vec<(Duration, Duration)> {
    let mut silences = Vec::new();
    let mut quiet_since = start;
    for said in said {
        silences.push((quiet_since, said.began));
        quiet_since = quiet_since.max(said.ended);
    }
    silences.push((quiet_since, end));
    silences.retain(|(from, until)| from < until);
    silences
}

fn repeated(said: &[RehearsedUtterance]) -> u64 {
    let whole: Vec<&RehearsedUtterance> = said.iter().filter(|it| it.is_whole).collect();
    let pairs = whole.iter().zip(whole.iter().skip(1));
    pairs.filter(|(one, next)| one.utterance.words == next.utterance.words).count() as u64
}

fn count(words: &str) -> u64 {
    words.split_whitespace().count() as u64
}

fn per_minute(count: u64, time: Duration) -> u64 {
    let milliseconds = milliseconds(time).max(1);
    (count.saturating_mul(60_000).saturating_add(milliseconds / 2)) / milliseconds
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn seconds(milliseconds: u64) -> String {
    report::seconds(milliseconds / 1000, milliseconds % 1000 / 100)
}
