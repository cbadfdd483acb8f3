//! What goes to a device, and what comes back.

use aaep::LanguageTag;

use crate::announcer::AskNumber;
use crate::words::WordsPart;

/// One utterance, unique within a run.
pub type UtteranceId = u64;

/// Something to be said, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance {
    /// Which one it is.
    pub id: UtteranceId,
    /// What it is about.
    pub kind: Kind,
    /// How important it is.
    pub weight: Weight,
    /// The words, for ears and fingers: one line, no control characters. Marks only where [`Kind::is_exact`].
    pub words: String,
    /// The language of what the agent says in it, where it is known.
    pub language: Option<LanguageTag>,
    /// The same words in parts, each in one language: ours in our own, the agent's in the agent's. Where there are
    /// none, all of the words are in `language`.
    pub parts: Vec<WordsPart>,
    /// Whether the words run from right to left.
    pub is_right_to_left: bool,
    /// What the person can answer, if it is a question: one of these, in the order in which they are offered.
    pub choices: Vec<Choice>,
    /// The number of the question, if it is one that waits. Told again, it has another id and the same number.
    pub number: Option<AskNumber>,
}

impl Utterance {
    /// The words in parts, each in one language: all of them are one part where nothing else is known.
    pub fn language_parts(&self) -> impl Iterator<Item = WordsPart> {
        let whole = self
            .parts
            .is_empty()
            .then(|| WordsPart { words: self.words.clone(), language: self.language.clone() });
        self.parts.clone().into_iter().chain(whole)
    }

    /// The same in as few parts as there are languages to switch between: what does not say its language, or says
    /// another region of the same one, goes with what stands before it.
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
            // The words as they are, with the blanks that they have.
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
    /// The answer in a word or a few: it is spoken, printed, and shown in cells.
    pub words: String,
    /// Whether it lets something happen that would not happen otherwise. A device keeps it apart from the others,
    /// so that no slip of a finger chooses it.
    pub is_consent: bool,
}

/// What an utterance is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An agent needs an answer.
    Question,
    /// How a question was settled, or that it is over.
    Settled,
    /// What an agent says.
    Reply,
    /// What an agent does: its state, its tools.
    Doing,
    /// How far it is.
    Progress,
    /// Something went wrong.
    Error,
    /// An agent has finished.
    Done,
    /// About listening itself: the line, a gap, a device.
    Notice,
}

impl Kind {
    /// Whether the words have text in them that nothing was done to, such as what an agent asks. A voice must name the
    /// marks in it; a device that shows text shows it as it is.
    pub const fn is_exact(self) -> bool {
        matches!(self, Kind::Question | Kind::Settled | Kind::Notice)
    }

    /// The name for it in JSON, for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Question => "question",
            Kind::Settled => "settled",
            Kind::Reply => "agent",
            Kind::Doing => "doing",
            Kind::Progress => "progress",
            Kind::Error => "error",
            Kind::Done => "done",
            Kind::Notice => "notice",
        }
    }
}

/// How important an utterance is, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// Only the newest counts.
    Progress,
    /// May be passed over while something else is said.
    Background,
    /// Waits its turn.
    Normal,
    /// Said at once, whatever else is being said.
    Critical,
}

/// A sound that is heard before words are. Never the only sign of anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Earcon {
    /// An agent needs an answer.
    NeedsYou,
    /// An agent has finished.
    Done,
    /// Something went wrong.
    Error,
}

/// What a device is told. Orders are carried out in the order in which they are given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Say it, show it, print it. Reported with [`Report::Began`], and then [`Report::Ended`], [`Report::Shown`] or
    /// [`Report::Cut`].
    Say(Utterance),
    /// Stop what is being said now.
    Stop,
    /// Take a question away: it can no longer be answered.
    Withdraw(UtteranceId),
    /// Sound it.
    Sound(Earcon),
    /// Go on at another pace. Reported with [`Report::Paced`] by devices that have one.
    Pace(Pace),
}

/// How fast to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pace {
    /// A step slower.
    Slower,
    /// A step faster.
    Faster,
    /// At this rate of a voice, from -100 to 100.
    Rate(i8),
}

/// What a device tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// It is being said from now on.
    Began(UtteranceId),
    /// It was said whole. For a question this may also come after [`Report::Shown`] or [`Report::Cut`], when the
    /// person has read on to its end.
    Ended(UtteranceId),
    /// It was there for long enough to be read, but the person has not read on to its end.
    Shown(UtteranceId),
    /// It was stopped before its end, or could not be said.
    Cut(UtteranceId),
    /// The person chose an answer: the place in [`Utterance::choices`].
    Chosen(UtteranceId, usize),
    /// The person pressed something at this question that is no answer.
    NoChoice(UtteranceId),
    /// The person wants more time to answer this question.
    MoreTime(UtteranceId),
    /// It goes on at another pace from now on.
    Paced {
        /// What was wanted.
        wanted: Pace,
        /// The new pace in percent of the one before: 100 where it cannot change.
        percent: u32,
    },
    /// The person wants it to be quiet now.
    Hush,
    /// The person wants to hear the last thing again.
    Repeat,
    /// The person wants to hear what was told before the last thing.
    Back,
    /// The device does not work for now, and why, in words for people. Told once until it works again.
    Trouble(String),
    /// The device works, at the start and after trouble.
    Works,
    /// The device works, but the person should know something about it, in words for people. Told once.
    Notice(String),
}
