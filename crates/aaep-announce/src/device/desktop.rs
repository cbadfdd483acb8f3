//! The desktop: announcements for the running screen reader, and buttons for answers, through `AccessKit`.
//!
//! For the screen reader this is a program with an invisible window. It has two live regions, one polite and one
//! assertive, whose words are spoken when they change, and a group of buttons for each open question. A screen reader
//! does not report when it has spoken, so an utterance ends after the time that the person needs to hear it.

#[cfg(target_os = "linux")]
mod board;
#[cfg(target_os = "linux")]
mod ears;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod tree;

use std::io;
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::{Device, TimedReport};

#[cfg(not(target_os = "linux"))]
use elsewhere as run;

/// The name of the device in its reports.
pub const NAME: &str = "desktop";

/// Settings of the desktop device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How fast the screen reader speaks, in words per minute.
    pub words_per_minute: u64,
    /// How long the questions must have been unchanged before a button counts, so that a person who is about to press
    /// a button does not press another one that took its place.
    pub least_look: Duration,
    /// How long the desktop may take to answer.
    pub patience: Duration,
}

impl Settings {
    /// The default settings for a screen reader of this pace.
    pub fn new(words_per_minute: u64) -> Self {
        Settings {
            words_per_minute,
            least_look: Duration::from_millis(700),
            patience: Duration::from_secs(5),
        }
    }
}

/// The words of a question for a screen reader: the announcement, and the label above its buttons, for tests.
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub fn question_texts(question: &crate::Utterance) -> [String; 2] {
    let mut now = std::time::Instant::now();
    let mut board = board::AccessibleBoard::new(Settings::new(120));
    let mut reports = Vec::new();
    board.take_order(now, crate::Order::Say(question.clone()), &mut reports);
    let mut announced = String::new();
    while let Some(due) = board.due(now) {
        now = due;
        if board.has_to_announce(now) {
            board.announce(now, &mut reports);
            // Each announcement is spoken separately.
            announced.extend([" ", &board.regions().map(|it| it.words.as_str()).concat()]);
        }
        board.time_passed(now, &mut reports);
    }
    let shown = board.questions().first().map(|it| it.region.words.clone());
    [announced, shown.unwrap_or_default()]
}

/// Starts the device. It reports on `reports`, and ends when the [`Device`] is dropped.
pub fn start(settings: Settings, reports: Sender<TimedReport>) -> io::Result<Device> {
    run::start(settings, reports)
}
