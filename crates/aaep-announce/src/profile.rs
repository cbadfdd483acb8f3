//! Named profiles: what is agreed with a producer, and what a person wants to hear.

use aaep::event::action::CoalesceBoundary;
use aaep::extension::{AskCapabilities, AskClock, CONTEXT, PREFIX};
use aaep::{Capabilities, CognitiveLoad, EventFilters, LanguageTag, TypePattern, Uri, Verbosity};
use serde::{Deserialize, Serialize};

use crate::announcer::MAX_UTTERANCE;
use crate::words::Style;

/// The slowest and the fastest pace, in words per minute (§5.3.1.11).
pub const PACES: std::ops::RangeInclusive<u64> = 50..=1000;

/// How many events a producer may send in a second.
const EVENTS_PER_SECOND: u64 = 20;

/// A way of listening that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Speech, sentence by sentence.
    #[default]
    ScreenReader,
    /// A few cells that are read by hand.
    Braille,
    /// Text on a screen as it comes.
    Captions,
    /// Little, short, and only when it is whole.
    LowCognitiveLoad,
    /// Only what needs the person, and what ended.
    Quiet,
    /// Everything.
    Debug,
}

/// What a person wants to hear, and how. Questions and errors are told in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for people")]
pub struct Preferences {
    /// How fast the person listens or reads, in words per minute.
    pub words_per_minute: u64,
    /// How long summaries are.
    pub length: Length,
    /// When what an agent says is told.
    pub replies: Replies,
    /// How many parts are told of what an agent says, each about a sentence; the rest on request. All of them if 0.
    pub reply_parts: u64,
    /// How long a part may be, in bytes: a longer sentence is told in several.
    pub longest_part_bytes: u64,
    /// Whether nothing is told but what needs the person, which agents failed and which have finished. Tools that fail are
    /// not told then, and how a question was settled only if nobody decided it, or if someone else decided it whom the
    /// person did not expect. What is wrong with listening itself is told always: silence must mean that all is well.
    pub essentials: bool,
    /// Whether beginnings and states of agents are told.
    pub states: bool,
    /// Whether tools are told. Those that fail are told unless only essentials are.
    pub tools: bool,
    /// Whether progress is told.
    pub progress: bool,
    /// Progress is told at most once in so many seconds.
    pub progress_seconds: u64,
    /// A tool that runs for so many seconds is mentioned, and then after twice, four times and ten times as long, and so
    /// on; not if 0.
    pub long_tool_seconds: u64,
    /// Whether it is told that an agent has finished.
    pub done: bool,
    /// Whether events are named that say nothing for people.
    pub unknown_events: bool,
    /// Whether agents are named when another one speaks.
    pub names: bool,
    /// Whether emoji are kept.
    pub emoji: bool,
    /// Whether code is read out and not only counted.
    pub code: bool,
    /// Whether a sound comes before questions, ends and errors.
    pub sounds: bool,
    /// Whether nothing is told but questions, how they were settled, and errors.
    pub only_decisions: bool,
    /// What would take longer than so many seconds to tell is summed up.
    pub behind_seconds: u64,
    /// So many seconds before its time is over, a question is told again; not if 0.
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

/// When what an agent says is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replies {
    /// Not at all, unless it is asked for.
    Never,
    /// When it is complete.
    Whole,
    /// Sentence by sentence.
    Sentences,
    /// Word by word, as it comes.
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
            behind_seconds: 45,
            warning_seconds: 30,
        }
    }
}

impl Preferences {
    /// The pace within its bounds.
    pub fn pace(&self) -> u64 {
        self.words_per_minute.clamp(*PACES.start(), *PACES.end())
    }

    /// How long a part of a text may be, within its bounds.
    pub fn part_bytes(&self) -> usize {
        let most = u64::try_from(MAX_UTTERANCE).unwrap_or(u64::MAX);
        usize::try_from(self.longest_part_bytes.clamp(40, most)).unwrap_or(MAX_UTTERANCE)
    }

    /// How text becomes words.
    pub fn style(&self) -> Style {
        Style { keeps_emoji: self.emoji, reads_code: self.code, ..Style::PLAIN }
    }
}

impl Profile {
    /// All of them.
    pub const ALL: &[Profile] = &[
        Profile::ScreenReader,
        Profile::Braille,
        Profile::Captions,
        Profile::LowCognitiveLoad,
        Profile::Quiet,
        Profile::Debug,
    ];

    /// Its name.
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

    /// The profile of this name.
    pub fn named(name: &str) -> Option<Self> {
        Profile::ALL.iter().copied().find(|it| it.name() == name)
    }

    /// What the person wants to hear.
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

    /// What is asked of a producer, for someone who understands these languages, best first.
    pub fn capabilities(self, languages: &[LanguageTag]) -> Capabilities {
        use CoalesceBoundary as Boundary;
        let boundaries = match self {
            Profile::ScreenReader | Profile::Debug => {
                vec![Boundary::Sentence, Boundary::Completion]
            }
            Profile::Braille => {
                vec![Boundary::Sentence, Boundary::Paragraph, Boundary::Completion]
            }
            Profile::Captions => vec![Boundary::Word, Boundary::Sentence],
            Profile::LowCognitiveLoad | Profile::Quiet => vec![Boundary::Completion],
        };
        // What is said, and at which pace, is decided here and not by the producer, which would hold back an end behind
        // what nobody hears. The rate only keeps a flood from the line.
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

    /// Which events are not even sent. Tools always are: only who hears of them knows what really happened.
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
