//! Named profiles: the capabilities to request from a producer, and the preferences of a person.

use aaep::event::action::CoalesceBoundary;
use aaep::extension::{AskCapabilities, AskClock, CONTEXT, PREFIX};
use aaep::{Capabilities, CognitiveLoad, EventFilters, LanguageTag, TypePattern, Uri, Verbosity};
use serde::{Deserialize, Serialize};

use crate::announcer::MAX_UTTERANCE;
use crate::words::Style;

/// The slowest and the fastest pace, in words per minute (§5.3.1.11).
pub const PACES: std::ops::RangeInclusive<u64> = 50..=1000;

/// The most events that a producer may send in a second.
const EVENTS_PER_SECOND: u64 = 20;

/// A named way of listening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Speech, sentence by sentence.
    #[default]
    ScreenReader,
    /// A few braille cells, read by hand.
    Braille,
    /// Text on a screen as it arrives.
    Captions,
    /// Little and short, and only when it is complete.
    LowCognitiveLoad,
    /// Only what needs the person, and ends.
    Quiet,
    /// Everything.
    Debug,
}

/// What a person wants to hear, and how. Questions and errors are always announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for people")]
pub struct Preferences {
    /// How fast the person listens or reads, in words per minute.
    pub words_per_minute: u64,
    /// How long summaries are.
    pub length: Length,
    /// When the text of an agent is announced.
    pub replies: Replies,
    /// How many parts of a text are announced, each about a sentence; the rest is available on request. 0 means all.
    pub reply_parts: u64,
    /// The longest part, in bytes. Longer sentences are split.
    pub longest_part_bytes: u64,
    /// Whether only essentials are announced: what needs the person, and which agents failed or finished. Failed
    /// tools are then not announced, and a settlement only if nobody decided the question, or if the person heard it
    /// and someone else decided it. Problems with listening itself are always announced: silence must mean that all
    /// is well.
    pub essentials: bool,
    /// Whether session starts and agent states are announced.
    pub states: bool,
    /// Whether tools are announced. Failed tools always are, except with `essentials`.
    pub tools: bool,
    /// Whether progress is announced.
    pub progress: bool,
    /// Progress is announced at most once in this many seconds.
    pub progress_seconds: u64,
    /// A tool that runs for this many seconds is mentioned, and again after two, four and ten times as long, and so
    /// on. 0 turns this off.
    pub long_tool_seconds: u64,
    /// Whether ends of sessions are announced.
    pub done: bool,
    /// Whether events without words for people are named.
    pub unknown_events: bool,
    /// Whether agents are named when another one begins to speak.
    pub names: bool,
    /// Whether emoji are kept.
    pub emoji: bool,
    /// Whether code is read out instead of only counted.
    pub code: bool,
    /// Whether a sound precedes questions, ends and errors.
    pub sounds: bool,
    /// Whether only questions, their settlements, and errors are announced.
    pub only_decisions: bool,
    /// Whether everything except news and other questions waits while a question has no answer.
    pub one_thing_at_a_time: bool,
    /// If more than this many seconds of words wait, they are summarized.
    pub behind_seconds: u64,
    /// A question is repeated this many seconds before its time is over. 0 turns this off.
    pub warning_seconds: u64,
}

/// How long summaries are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// A few words.
    Terse,
    /// A sentence or two.
    Normal,
    /// Everything, with reasons.
    Detailed,
}

/// When the text of an agent is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replies {
    /// Only on request.
    Never,
    /// When it is complete.
    Whole,
    /// Sentence by sentence.
    Sentences,
    /// Word by word, as it arrives.
    Words,
}

impl Default for Preferences {
    fn default() -> Self {
        Preferences {
            words_per_minute: 180,
            length: Length::Normal,
            replies: Replies::Sentences,
            reply_parts: 0,
            longest_part_bytes: 300,
            essentials: false,
            states: true,
            tools: true,
            progress: true,
            progress_seconds: 10,
            long_tool_seconds: 30,
            done: true,
            unknown_events: false,
            names: true,
            emoji: false,
            code: false,
            sounds: true,
            only_decisions: false,
            one_thing_at_a_time: false,
            behind_seconds: 45,
            warning_seconds: 30,
        }
    }
}

impl Preferences {
    /// The pace, clamped to [`PACES`].
    pub fn pace(&self) -> u64 {
        self.words_per_minute.clamp(*PACES.start(), *PACES.end())
    }

    /// The longest part of a text, within its limits.
    pub fn part_bytes(&self) -> usize {
        let most = u64::try_from(MAX_UTTERANCE).unwrap_or(u64::MAX);
        usize::try_from(self.longest_part_bytes.clamp(40, most)).unwrap_or(MAX_UTTERANCE)
    }

    /// The style in which text becomes words.
    pub fn style(&self) -> Style {
        Style { keeps_emoji: self.emoji, reads_code: self.code, ..Style::PLAIN }
    }
}

impl Profile {
    /// All profiles.
    pub const ALL: &[Profile] = &[
        Profile::ScreenReader,
        Profile::Braille,
        Profile::Captions,
        Profile::LowCognitiveLoad,
        Profile::Quiet,
        Profile::Debug,
    ];

    /// The name of the profile.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::ScreenReader => "screen-reader",
            Profile::Braille => "braille",
            Profile::Captions => "captions",
            Profile::LowCognitiveLoad => "low-cognitive-load",
            Profile::Quiet => "quiet",
            Profile::Debug => "debug",
        }
    }

    /// The profile with this name.
    pub fn named(name: &str) -> Option<Self> {
        Profile::ALL.iter().copied().find(|it| it.name() == name)
    }

    /// The preferences of this profile.
    pub fn preferences(self) -> Preferences {
        let usual = Preferences::default();
        match self {
            Profile::ScreenReader => usual,
            Profile::Braille => Preferences {
                words_per_minute: 90,
                length: Length::Terse,
                states: false,
                progress_seconds: 30,
                sounds: false,
                ..usual
            },
            Profile::Captions => Preferences {
                words_per_minute: 250,
                replies: Replies::Words,
                progress_seconds: 5,
                sounds: false,
                emoji: true,
                ..usual
            },
            Profile::LowCognitiveLoad => Preferences {
                words_per_minute: 140,
                length: Length::Terse,
                replies: Replies::Whole,
                reply_parts: 3,
                longest_part_bytes: 120,
                states: false,
                tools: false,
                progress: false,
                long_tool_seconds: 120,
                one_thing_at_a_time: true,
                behind_seconds: 30,
                warning_seconds: 60,
                ..usual
            },
            Profile::Quiet => Preferences {
                length: Length::Terse,
                replies: Replies::Never,
                essentials: true,
                states: false,
                tools: false,
                progress: false,
                long_tool_seconds: 0,
                ..usual
            },
            Profile::Debug => Preferences {
                words_per_minute: 1000,
                length: Length::Detailed,
                progress_seconds: 0,
                unknown_events: true,
                emoji: true,
                code: true,
                sounds: false,
                behind_seconds: 600,
                ..usual
            },
        }
    }

    /// The capabilities to request from a producer, for a person who understands these languages, best first.
    pub fn capabilities(self, languages: &[LanguageTag]) -> Capabilities {
        let boundaries = match self {
            Profile::ScreenReader | Profile::Debug => {
                vec![CoalesceBoundary::Sentence, CoalesceBoundary::Completion]
            }
            Profile::Braille => {
                vec![
                    CoalesceBoundary::Sentence,
                    CoalesceBoundary::Paragraph,
                    CoalesceBoundary::Completion,
                ]
            }
            Profile::Captions => vec![CoalesceBoundary::Word, CoalesceBoundary::Sentence],
            Profile::LowCognitiveLoad | Profile::Quiet => vec![CoalesceBoundary::Completion],
        };
        // The announcer decides what is said and at which pace, not the producer, which would delay an end behind
        // events that nobody hears. The rate only protects the connection from a flood.
        let rate = (self != Profile::Debug).then_some(EVENTS_PER_SECOND);
        let preferences = self.preferences();
        let mut asked = Capabilities::new();
        asked.max_events_per_second = rate;
        asked.coalesce_boundaries = Some(boundaries);
        asked.preferred_verbosity = Some(match preferences.length {
            Length::Terse => Verbosity::Terse,
            Length::Normal => Verbosity::Normal,
            Length::Detailed => Verbosity::Detailed,
        });
        asked.languages = (!languages.is_empty()).then(|| languages.to_vec());
        asked.supports_confirmation_reply = Some(true);
        asked.supports_clarification_reply = Some(true);
        asked.supported_conformance_levels = Some(vec![1, 2, 3]);
        asked.supported_extensions = Uri::parse(CONTEXT).ok().map(|it| vec![it]);
        asked.cognitive_load = Some(self.load());
        asked.event_filters = self.filters();
        let mut asking = AskCapabilities::new();
        (asking.ask_clock, asking.extend) = (Some(AskClock::Presented), Some(true));
        if let Ok(asking) = serde_json::to_value(asking) {
            asked.other.insert(PREFIX.to_owned(), asking);
        }
        asked
    }

    fn load(self) -> CognitiveLoad {
        match self {
            Profile::ScreenReader | Profile::Captions => CognitiveLoad::Medium,
            Profile::Braille | Profile::LowCognitiveLoad | Profile::Quiet => CognitiveLoad::Low,
            Profile::Debug => CognitiveLoad::High,
        }
    }

    /// Events that the producer need not send. Tools are always sent: without them the announcer would not know what
    /// really happened.
    fn filters(self) -> Option<EventFilters> {
        let unwanted: &[&str] = match self {
            Profile::LowCognitiveLoad | Profile::Quiet => {
                &["aaep:agent.state.changed", "aaep:agent.progress.updated"]
            }
            _ => return None,
        };
        let patterns = unwanted.iter().filter_map(|it| TypePattern::parse(it).ok()).collect();
        Some(EventFilters { include: None, exclude: Some(patterns), other: aaep::Object::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_found_by_its_name_and_asks_for_something_valid() {
        let languages = [LanguageTag::parse("yo-NG").expect("a tag")];
        for profile in Profile::ALL {
            assert_eq!(Profile::named(profile.name()), Some(*profile));
            let request = serde_json::json!({
                "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "reader",
                "capabilities": profile.capabilities(&languages),
            });
            let reading = aaep::read(request.to_string().as_bytes(), aaep::Mode::Strict);
            assert!(reading.violations.is_empty(), "{}: {:?}", profile.name(), reading.violations);
            assert!(request["capabilities"]["languages"][0] == "yo-NG");
        }
        assert_eq!(Profile::named("loud"), None);
    }

    #[test]
    fn no_profile_lets_a_producer_hold_back_what_happens() {
        for profile in Profile::ALL {
            let asked = profile.capabilities(&[]);
            assert_eq!(asked.pace_wpm, None, "{}", profile.name());
            assert!(asked.max_events_per_second.is_none_or(|it| it >= 10), "{}", profile.name());
        }
    }

    #[test]
    fn every_profile_can_answer_and_hears_of_tools() {
        for profile in Profile::ALL {
            let asked = profile.capabilities(&[]);
            assert_eq!(asked.supports_confirmation_reply, Some(true));
            assert_eq!(asked.languages, None);
            let tool = aaep::EventType::Core(aaep::CoreType::ToolCompleted);
            let excluded = asked.event_filters.and_then(|it| it.exclude).unwrap_or_default();
            assert!(!excluded.iter().any(|it| it.matches(&tool)), "{}", profile.name());
        }
    }

    #[test]
    fn preferences_come_from_a_file_and_nothing_unknown_passes() {
        let read = |text: &str| toml::from_str::<Preferences>(text);
        let some = read("words_per_minute = 320\nreplies = \"whole\"\nemoji = true").expect("TOML");
        assert_eq!((some.words_per_minute, some.replies, some.emoji), (320, Replies::Whole, true));
        assert_eq!(some.length, Length::Normal);
        assert!(read("loudness = 11").is_err());
        assert!(read("replies = \"shouted\"").is_err());
    }

    #[test]
    fn an_absurd_pace_is_brought_into_its_bounds() {
        let at = |words_per_minute| Preferences { words_per_minute, ..Preferences::default() };
        assert_eq!((at(0).pace(), at(u64::MAX).pace()), (50, 1000));
    }
}
