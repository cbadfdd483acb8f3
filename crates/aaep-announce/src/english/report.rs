//! The listening report: its figures, its tables and its timeline. These words are not escaped, so they must not have
//! characters with a meaning in HTML.

use crate::utterance::UtteranceKind;

/// The page.
pub(crate) const TITLE: &str = "Listening report";
pub(crate) const INTRODUCTION: &str = "How recorded sessions would have been to listen to. Times are counted from the first event of each recording, in
minutes and seconds.";

pub(crate) fn title_of_one(recording: &str) -> String {
    format!("Listening report: {recording}")
}

pub(crate) fn title_of_several(count: usize) -> String {
    format!("Listening report of {count} recordings")
}

pub(crate) fn profile(profile: &str, is_good: bool) -> String {
    let verdict = if is_good {
        "Nothing was cut off for good, nothing was said twice in a row, and no question was missed."
    } else {
        "Something is wrong: see the figures that should be 0."
    };
    format!("Profile: {profile}. {verdict}")
}

/// The headings of a recording.
pub(crate) const ABOUT_THE_RECORDING: &str = "About the recording";
pub(crate) const FIGURES: &str = "Figures";
pub(crate) const TIMELINE: &str = "Timeline";
pub(crate) const TIMELINE_IN_WORDS: &str = "The timeline in words";
pub(crate) const WHAT_WAS_SAID: &str = "What would have been said";

/// The names of figures.
pub(crate) const PACE: &str = "Pace";
pub(crate) const EVENTS: &str = "Events";
pub(crate) const WORDS_EMITTED: &str = "Words emitted";
pub(crate) const WORDS_SPOKEN: &str = "Words spoken";
pub(crate) const ANNOUNCEMENTS: &str = "Announcements";
pub(crate) const LONGEST_SILENCE: &str = "Longest silence";
pub(crate) const REPEATED: &str = "Announcements repeated";
pub(crate) const CUT_OFF: &str = "Announcements cut off for good";
pub(crate) const INTERRUPTED: &str = "Announcements interrupted and said again";
pub(crate) const QUESTIONS: &str = "Questions";
pub(crate) const QUESTIONS_MISSED: &str = "Questions missed";
pub(crate) const TO_FIRST_WORD: &str = "From a question to its first word, at most";
pub(crate) const BEHIND: &str = "Behind what happened, at most";
pub(crate) const CRITICAL_BEHIND: &str = "The same for ends, failures and settled questions";
pub(crate) const LATE_ENDS: &str = "Ends told after more than one sentence";
pub(crate) const SAID_BEFORE_END: &str = "Said before an end that was known";
pub(crate) const BEHIND_AT_END: &str = "Behind at the end";

/// The values of figures.
pub(crate) fn words_per_minute(words: u64) -> String {
    format!("{words} words per minute")
}

pub(crate) fn events_in(events: u64, time: &str) -> String {
    format!("{events} in {time}")
}

pub(crate) fn per_minute(count: u64, per_minute: u64) -> String {
    format!("{count}, {per_minute} per minute")
}

pub(crate) fn should_be_zero(value: u64) -> String {
    format!("{value}, and should be 0")
}

/// Seconds with their tenths.
pub(crate) fn seconds(seconds: u64, tenths: u64) -> String {
    format!("{seconds}.{tenths} seconds")
}

/// The tables: captions, columns and cells.
pub(crate) fn figures_of(recording: &str) -> String {
    format!("Figures of {recording}")
}

pub(crate) const FIGURE_COLUMNS: [&str; 2] = ["Figure", "Value"];

pub(crate) const AGENTS: &str = "What the agents did";
pub(crate) const AGENT_COLUMNS: [&str; 4] = ["Agent", "Events", "First at", "Last at"];

pub(crate) const QUESTION_COLUMNS: [&str; 6] =
    ["Question", "What is asked", "Asked at", "First word", "Over at", "How it ended"];
pub(crate) const NOTHING_ASKED: &str = "Nothing was asked.";
pub(crate) const NEVER_SAID: &str = "never: missed";
pub(crate) const STILL_OPEN: &str = "open at the end";
pub(crate) const NOT_RECORDED: &str = "Not recorded.";

pub(crate) fn after(time: &str) -> String {
    format!("after {time}")
}

pub(crate) const SILENCE_COLUMNS: [&str; 3] = ["From", "Until", "How long"];

pub(crate) fn silences(least_seconds: u64) -> String {
    format!("Silences of {least_seconds} seconds or more")
}

pub(crate) fn no_silence(least_seconds: u64) -> String {
    format!("No silence of {least_seconds} seconds or more.")
}

pub(crate) const SAID_IN_ORDER: &str = "Everything that would have been said, in order";
pub(crate) const SAID_COLUMNS: [&str; 5] =
    ["At", "After it happened", "What it is", "Words", "How it was said"];
pub(crate) const NOTHING_SAID: &str = "Nothing.";
pub(crate) const SAID_WHOLE: &str = "whole";
pub(crate) const SAID_IN_PART: &str = "interrupted";

/// The name of the section of the page that has this table.
pub(crate) fn said_in_recording(number: usize) -> String {
    format!("What would have been said, recording {number}")
}

pub(crate) fn kind(kind: UtteranceKind) -> &'static str {
    match kind {
        UtteranceKind::Question => "Question",
        UtteranceKind::Settled => "How a question ended",
        UtteranceKind::Reply => "What the agent says",
        UtteranceKind::Doing => "What the agent does",
        UtteranceKind::Progress => "Progress",
        UtteranceKind::Error => "Error",
        UtteranceKind::Done => "Done",
        UtteranceKind::Notice => "About listening",
    }
}

/// How many rows a table omits.
pub(crate) fn more_rows(count: usize) -> String {
    format!("And {count} more.")
}

/// The timeline: its lanes, its name, and its description.
pub(crate) const SAID_LANE: &str = "Said";
pub(crate) const SILENCE_LANE: &str = "Silence";
pub(crate) const OTHER_AGENTS_LANE: &str = "Other agents";

pub(crate) fn timeline_of_recording(number: usize) -> String {
    format!("Timeline of recording {number}")
}

pub(crate) fn timeline_of(recording: &str) -> String {
    format!("Timeline of {recording}")
}

pub(crate) fn timeline_described(
    length: &str,
    events: u64,
    announcements: u64,
    asks: u64,
) -> String {
    format!(
        "{length} from the first event to the last word: {events} events, {announcements} announcements, {asks} \
         questions. A lane for each agent has a mark for each event; below are what was said, each question from \
         when it was asked to when it was over with a diamond at its first word, and the silences. The tables that \
         follow say the same."
    )
}
