//! One utterance on its way through the speech server, part by part, each in its own voice.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::language::SpeechLanguages;
use crate::device::plain::one_line;
use crate::utterance::{Utterance, UtteranceId, Weight};
use crate::words::{WordsPart, own_language, parts, spoken_marked};

/// How long a server may take to begin speaking. After that, an utterance that may be dropped counts as dropped;
/// otherwise the server counts as not working.
const BACKGROUND_BEGINS: Duration = Duration::from_secs(3);
const BEGINS: Duration = Duration::from_secs(30);

/// The longest time for speaking, for any words and for each of their characters.
const SPEAKS: Duration = Duration::from_secs(30);
const SPEAKS_A_CHARACTER: Duration = Duration::from_secs(1);

/// The SSIP priorities that we use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpeechPriority {
    /// Interrupts everything else.
    Important,
    /// Waits its turn, and interrupts a screen reader.
    Message,
    /// Dropped while anything is spoken.
    Notification,
    /// Only the first and the last message are spoken.
    Progress,
}

impl SpeechPriority {
    pub(super) fn of(weight: Weight) -> Self {
        match weight {
            Weight::Critical => SpeechPriority::Important,
            Weight::Normal => SpeechPriority::Message,
            Weight::Background => SpeechPriority::Notification,
            Weight::Progress => SpeechPriority::Progress,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            SpeechPriority::Important => "important",
            SpeechPriority::Message => "message",
            SpeechPriority::Notification => "notification",
            SpeechPriority::Progress => "progress",
        }
    }

    /// Whether the server may drop it without a report.
    pub(super) fn may_be_dropped(self) -> bool {
        matches!(self, SpeechPriority::Notification | SpeechPriority::Progress)
    }
}

/// What a server event reports about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageEvent {
    Begin,
    End,
    Cancel,
}

/// An utterance that waits, is in the server, or is being spoken.
#[derive(Debug)]
pub(super) struct SpeechUtterance {
    pub(super) id: UtteranceId,
    /// The words that are being said, and the language to request for them.
    pub(super) words: String,
    pub(super) voice: Option<String>,
    /// The parts after them.
    rest: VecDeque<WordsPart>,
    pub(super) priority: SpeechPriority,
    /// The message number that the server gave the words.
    pub(super) message: Option<u64>,
    has_begun: bool,
    /// Whether these words are being spoken.
    pub(super) is_speaking: bool,
    /// When the next event must have arrived.
    pub(super) until: Option<Instant>,
}

impl SpeechUtterance {
    /// Creates one that waits, unless there is nothing to say.
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
        (!rest.is_empty()).then(|| SpeechUtterance {
            id: utterance.id,
            words: String::new(),
            voice: None,
            rest,
            priority: SpeechPriority::of(utterance.weight),
            message: None,
            has_begun: false,
            is_speaking: false,
            until: None,
        })
    }

    /// Takes the next parts that have the same voice. If their language has no voice, a message about that comes
    /// first.
    pub(super) fn prepare(&mut self, languages: &mut SpeechLanguages) {
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

    /// These words were said. Returns whether they were the last.
    pub(super) fn end(&mut self) -> bool {
        self.words.clear();
        (self.message, self.until, self.is_speaking) = (None, None, false);
        self.rest.is_empty()
    }

    /// The server has accepted the words under this number.
    pub(super) fn taken(&mut self, now: Instant, message: u64) {
        self.message = Some(message);
        let patience = if self.priority.may_be_dropped() { BACKGROUND_BEGINS } else { BEGINS };
        self.until = Some(now + patience);
    }

    /// The server has begun to speak. Returns whether this is the beginning of the utterance.
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
