//! One utterance on its way through the speech server, part by part, each in its own voice.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::language::Languages;
use crate::device::plain::one_line;
use crate::utterance::{Utterance, UtteranceId, Weight};
use crate::words::{WordsPart, own_language, parts, spoken_marked};

/// How long a server may take until it begins to speak. Then it is passed over if it may be, or does not work.
const BACKGROUND_BEGINS: Duration = Duration::from_secs(3);
const BEGINS: Duration = Duration::from_secs(30);

/// How long speaking may take at the very most, for any words and for each character of them.
const SPEAKS: Duration = Duration::from_secs(30);
const SPEAKS_A_CHARACTER: Duration = Duration::from_secs(1);

/// The priorities of SSIP that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Priority {
    /// Interrupts everything else.
    Important,
    /// Waits its turn, and interrupts what a screen reader reads.
    Message,
    /// Passed over while anything is spoken.
    Notification,
    /// Only the first and the last are spoken.
    Progress,
}

impl Priority {
    pub(super) fn of(weight: Weight) -> Self {
        match weight {
            Weight::Critical => Priority::Important,
            Weight::Normal => Priority::Message,
            Weight::Background => Priority::Notification,
            Weight::Progress => Priority::Progress,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Priority::Important => "important",
            Priority::Message => "message",
            Priority::Notification => "notification",
            Priority::Progress => "progress",
        }
    }

    /// Whether the server may drop it without a word.
    pub(super) fn may_be_dropped(self) -> bool {
        matches!(self, Priority::Notification | Priority::Progress)
    }
}

/// What an event says about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Begin,
    End,
    Cancel,
}

/// What is to be said, is being said, or waits in the server.
#[derive(Debug)]
pub(super) struct Saying {
    pub(super) id: UtteranceId,
    /// The words that are being said, and the language that the server is asked for.
    pub(super) words: String,
    pub(super) voice: Option<String>,
    /// The parts that come after them.
    rest: VecDeque<WordsPart>,
    pub(super) priority: Priority,
    /// Which number the server gave the words.
    pub(super) message: Option<u64>,
    has_begun: bool,
    /// Whether these words are being spoken.
    pub(super) is_speaking: bool,
    /// When the next event must have come.
    pub(super) until: Option<Instant>,
}

impl Saying {
    /// One that waits, unless there is nothing to say.
    pub(super) fn new(utterance: Utterance) -> Option<Self> {
        let is_exact = utterance.kind.is_exact();
        let whole = WordsPart { words: utterance.words, language: utterance.language };
        let given = if utterance.parts.is_empty() { vec![whole] } else { utterance.parts };
        let rest = given.iter().flat_map(|part| {
            let words = one_line(&part.words);
            let words = if is_exact { spoken_marked(&words) } else { words };
            parts(&words, part.language.as_ref())
        });
        let rest: VecDeque<WordsPart> = rest.filter(|it| !it.words.is_empty()).collect();
        (!rest.is_empty()).then(|| Saying {
            id: utterance.id,
            words: String::new(),
            voice: None,
            rest,
            priority: Priority::of(utterance.weight),
            message: None,
            has_begun: false,
            is_speaking: false,
            until: None,
        })
    }

    /// Takes the parts that are said next in one voice. Where there is none for their language, the person is told
    /// so first.
    pub(super) fn prepare(&mut self, languages: &mut Languages) {
        let Some(part) = self.rest.front().filter(|_| self.words.is_empty()) else { return };
        let (voice, warning) = languages.choose(part.language.as_ref());
        if let Some(warning) = warning {
            (self.voice, _) = languages.choose(own_language().as_ref());
            self.words = warning;
            return;
        }
        self.voice = voice;
        while let Some(part) = self.rest.front()
            && (self.words.is_empty()
                || languages.is_in(part.language.as_ref(), self.voice.as_ref()))
            && let Some(part) = self.rest.pop_front()
        {
            if !self.words.is_empty() {
                self.words.push(' ');
            }
            self.words.push_str(&part.words);
        }
    }

    /// These words were said. Says whether that was all.
    pub(super) fn end(&mut self) -> bool {
        self.words.clear();
        (self.message, self.until, self.is_speaking) = (None, None, false);
        self.rest.is_empty()
    }

    /// The server has it, under this number.
    pub(super) fn taken(&mut self, now: Instant, message: u64) {
        self.message = Some(message);
        let patience = if self.priority.may_be_dropped() { BACKGROUND_BEGINS } else { BEGINS };
        self.until = Some(now + patience);
    }

    /// It is being spoken. Says whether that is news.
    pub(super) fn begin(&mut self, now: Instant) -> bool {
        if !std::mem::replace(&mut self.is_speaking, true) {
            let characters = u32::try_from(self.words.chars().count()).unwrap_or(u32::MAX);
            self.until = Some(now + SPEAKS + SPEAKS_A_CHARACTER * characters.min(1_000_000));
        }
        !std::mem::replace(&mut self.has_begun, true)
    }

    /// Whether its time is over.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}
