//! Orders for a device, and its reports.

use aaep::LanguageTag;

use crate::announcer::AskNumber;
use crate::words::WordsPart;

/// Identifies an utterance, unique within a run.
pub type UtteranceId = u64;

/// Something for a device to say, show or print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance {
    /// Identifies it.
    pub id: UtteranceId,
    /// What it is about.
    pub kind: UtteranceKind,
    /// How important it is.
    pub weight: Weight,
    /// The words, for speech and braille: one line, no control characters. Marks only where [`UtteranceKind::is_exact`].
    pub words: String,
    /// The language of the agent's words in it, if known.
    pub language: Option<LanguageTag>,
    /// The same words in parts, each in one language: our own words in ours, the agent's in the agent's. If there are
    /// no parts, all words are in `language`.
    pub parts: Vec<WordsPart>,
    /// Whether the words run from right to left.
    pub is_right_to_left: bool,
    /// If it is a question: the answers that the person can choose, in the order in which they are offered.
    pub choices: Vec<Choice>,
    /// The number of the question, if it is an open one. When the question is said again, it has another id and the
    /// same number.
    pub number: Option<AskNumber>,
    /// Whether it goes on with what was given under this number, instead of telling the question from its beginning:
    /// a voice gets its next part; a display shows it again at the place at which something else replaced it.
    pub is_continued: bool,
}

impl Utterance {
    /// The words in parts, each in one language. If nothing else is known, there is one part.
    pub fn language_parts(&self) -> impl Iterator<Item = WordsPart> {
        let whole = self
            .parts
            .is_empty()
            .then(|| WordsPart { words: self.words.clone(), language: self.language.clone() });
        self.parts.clone().into_iter().chain(whole)
    }

    /// The same in as few parts as possible: a part without a language, or with another region of the same language,
    /// is joined with the part before it.
    pub(crate) fn language_runs(&self) -> Vec<WordsPart> {
        let mut runs: Vec<WordsPart> = Vec::new();
        for part in self.language_parts() {
            match runs.last_mut() {
                Some(run) if is_same_language(run.language.as_ref(), part.language.as_ref()) => {
                    run.words.extend([" ", &part.words]);
                    run.language = run.language.take().or(part.language);
                }
                _ => runs.push(part),
            }
        }
        match runs.as_mut_slice() {
            // Keep the original words with their blanks.
            [run] => {
                let is_sure = self.language_parts().all(|it| it.language.is_some());
                let language = if is_sure { run.language.take() } else { self.language.clone() };
                vec![WordsPart { words: self.words.clone(), language }]
            }
            _ => runs,
        }
    }
}

fn is_same_language(one: Option<&LanguageTag>, other: Option<&LanguageTag>) -> bool {
    one.zip(other).is_none_or(|(one, other)| one.primary().eq_ignore_ascii_case(other.primary()))
}

/// An answer that a person can choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The answer in one or a few words. It is spoken, printed, and shown in braille cells.
    pub words: String,
    /// Whether it lets something happen that would not happen otherwise. A device separates it from the other
    /// answers, so that it is not chosen by accident.
    pub is_consent: bool,
}

/// What an utterance is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UtteranceKind {
    /// An agent needs an answer.
    Question,
    /// How a question was settled.
    Settled,
    /// The text of an agent.
    Reply,
    /// The activity of an agent: its state, its tools.
    Doing,
    /// How far an agent has come.
    Progress,
    /// Something went wrong.
    Error,
    /// An agent has finished.
    Done,
    /// About listening itself: the connection, a gap, a device.
    Notice,
}

impl UtteranceKind {
    /// Whether the words include unprocessed text, such as an agent's question. A voice must name the marks in it; a
    /// device that shows text shows it unchanged.
    pub const fn is_exact(self) -> bool {
        matches!(self, UtteranceKind::Question | UtteranceKind::Settled | UtteranceKind::Notice)
    }

    /// Whether it has the words of an agent, rather than a question or ours.
    pub(crate) const fn is_of_agent(self) -> bool {
        !self.is_exact()
    }

    /// Its name in JSON, for programs.
    pub const fn word(self) -> &'static str {
        match self {
            UtteranceKind::Question => "question",
            UtteranceKind::Settled => "settled",
            UtteranceKind::Reply => "agent",
            UtteranceKind::Doing => "doing",
            UtteranceKind::Progress => "progress",
            UtteranceKind::Error => "error",
            UtteranceKind::Done => "done",
            UtteranceKind::Notice => "notice",
        }
    }
}

/// How important an utterance is, the least important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// Only the newest counts.
    Progress,
    /// May be dropped while something else is said.
    Background,
    /// Waits its turn.
    Normal,
    /// Said at once, and interrupts anything else.
    Critical,
}

/// A sound that is played before the words. It is never the only sign of anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Earcon {
    /// An agent needs an answer.
    NeedsYou,
    /// An agent has finished.
    Done,
    /// Something went wrong.
    Error,
}

/// An order for a device. A device carries out its orders in sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Say, show or print an utterance. The device reports [`DeviceReport::Began`], and then [`DeviceReport::Ended`],
    /// [`DeviceReport::Shown`] or [`DeviceReport::Cut`].
    Say(Utterance),
    /// Stop the current utterance.
    Stop,
    /// Withdraw a question: it can no longer be answered.
    Withdraw(UtteranceId),
    /// Play a sound.
    Sound(Earcon),
    /// Change the pace. Devices that have a pace report [`DeviceReport::Paced`].
    Pace(Pace),
}

/// A change of pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pace {
    /// A step slower.
    Slower,
    /// A step faster.
    Faster,
    /// To this speech rate, from -100 to 100.
    Rate(i8),
}

/// A report of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceReport {
    /// The device has begun the utterance.
    Began(UtteranceId),
    /// The utterance was presented whole. For a question this may also come after [`DeviceReport::Shown`] or
    /// [`DeviceReport::Cut`], when the person has read on to its end.
    Ended(UtteranceId),
    /// The utterance was shown for long enough to be read, but the person has not read on to its end.
    Shown(UtteranceId),
    /// The utterance was stopped before its end, or could not be said.
    Cut(UtteranceId),
    /// The person chose an answer; the number is its index in [`Utterance::choices`].
    Chosen(UtteranceId, usize),
    /// The person pressed a key at this question that does not choose an answer.
    NoChoice(UtteranceId),
    /// The person wants more time to answer this question.
    MoreTime(UtteranceId),
    /// The device continues at another pace.
    Paced {
        /// The requested change.
        wanted: Pace,
        /// The new pace in percent of the previous one: 100 if it cannot change.
        percent: u32,
    },
    /// The person wants silence now.
    Hush,
    /// The person wants to hear the last thing again.
    Repeat,
    /// The person wants to hear what was said before the last thing.
    Back,
    /// The device does not work for now; the reason is in words for people. Reported once until it works again.
    Trouble(String),
    /// The device works: at the start, and again after trouble.
    Works,
    /// The device works, but the person should know something about it, in words for people. Reported once.
    Notice(String),
}
