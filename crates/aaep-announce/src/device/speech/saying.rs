//! One utterance on its way through the speech server.

use std::time::{Duration, Instant};

use aaep::LanguageTag;

use crate::utterance::{Utterance, UtteranceId, Weight};

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
    pub(super) words: String,
    pub(super) language: Option<LanguageTag>,
    pub(super) priority: Priority,
    /// Which number the server gave it.
    pub(super) message: Option<u64>,
    pub(super) has_begun: bool,
    /// When the next event must have come.
    pub(super) until: Option<Instant>,
}

impl Saying {
    pub(super) fn new(utterance: Utterance, words: String) -> Self {
        Saying {
            id: utterance.id,
            words,
            language: utterance.language,
            priority: Priority::of(utterance.weight),
            message: None,
            has_begun: false,
            until: None,
        }
    }

    /// The server has it, under this number.
    pub(super) fn taken(&mut self, now: Instant, message: u64) {
        self.message = Some(message);
        let patience = if self.priority.may_be_dropped() { BACKGROUND_BEGINS } else { BEGINS };
        self.until = Some(now + patience);
    }

    /// It is being spoken. Says whether that is news.
    pub(super) fn begin(&mut self, now: Instant) -> bool {
        let is_news = !std::mem::replace(&mut self.has_begun, true);
        if is_news {
            let characters = u32::try_from(self.words.chars().count()).unwrap_or(u32::MAX);
            self.until = Some(now + SPEAKS + SPEAKS_A_CHARACTER * characters.min(1_000_000));
        }
        is_news
    }

    /// Whether its time is over.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}
