//! The time of a question as the person is told of it: one true time, and none after the question is settled.
//!
//! A producer may count the time from when the question was presented (`docs/extension.md`). Until it says that the time
//! runs, the person has all of it.

use std::time::Duration;

use aaep::event::reasoning::ProgressUpdated;
use aaep::extension::Delivery;
use aaep::{Event, Payload};

use super::Announcer;
use super::io::AskNumber;
use super::question::Question;
use super::queue::{About, Item};
use crate::english::asks;
use crate::utterance::{Kind, Weight};

/// A change of less than this is not worth a word.
const SMALL_CHANGE: Duration = Duration::from_secs(5);

/// What the clock of a question does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionClock {
    /// It starts when the question has been presented, with this much time.
    Waiting(Duration),
    /// It runs until then.
    Running(Option<Duration>),
    /// It stands still.
    Paused,
}

/// How much time a person has after a question has been presented to them, if the producer may count it so.
pub fn time_after_presentation(event: &Event) -> Option<Duration> {
    let timeout_seconds = match &event.payload {
        Payload::AwaitingConfirmation(it) => it.timeout_seconds,
        Payload::AwaitingClarification(it) => it.timeout_seconds,
        _ => return None,
    };
    let most_seconds = Delivery::of(event)?.max_timeout_seconds?;
    (most_seconds > timeout_seconds).then(|| Duration::from_secs(timeout_seconds))
}

impl QuestionClock {
    /// That of a question that was asked with so much time left.
    pub(super) fn of(event: &Event, now: Duration, remaining: Duration) -> Self {
        match time_after_presentation(event) {
            // Until the producer says when it ends, what is left is the most that it could become.
            Some(timeout) if remaining > timeout => QuestionClock::Waiting(timeout),
            _ => QuestionClock::Running(now.checked_add(remaining)),
        }
    }

    /// How much time is left; nothing while it stands still.
    pub(super) fn remaining(self, now: Duration) -> Option<Duration> {
        match self {
            QuestionClock::Waiting(all) => Some(all),
            QuestionClock::Running(until) => until.map(|it| it.saturating_sub(now)),
            QuestionClock::Paused => None,
        }
    }

    /// When it ends, if it runs.
    pub(super) fn ends_at(self) -> Option<Duration> {
        match self {
            QuestionClock::Running(until) => until,
            QuestionClock::Waiting(_) | QuestionClock::Paused => None,
        }
    }
}

impl Announcer {
    /// There is more or less time than before; `wanted` is how much more the person asked for.
    pub(super) fn time_changed(
        &mut self,
        number: AskNumber,
        remaining: Duration,
        is_paused: bool,
        wanted: Option<Duration>,
    ) {
        let now = self.now;
        let Some(question) = self.questions.get_mut(&number) else { return };
        let before = question.clock;
        question.clock = if is_paused {
            QuestionClock::Paused
        } else {
            QuestionClock::Running(now.checked_add(remaining))
        };
        question.is_warned = false;
        let left_before = before.remaining(now);
        let is_shortened = wanted.zip(left_before).is_some_and(|(wanted, before)| {
            remaining.saturating_add(SMALL_CHANGE) < before.saturating_add(wanted)
        });
        // A time that runs as it was told is not worth telling again.
        let is_as_told = match (is_paused, left_before) {
            (true, None) => true,
            (false, Some(before)) => remaining.abs_diff(before) < SMALL_CHANGE,
            _ => false,
        };
        if !question.has_begun() || question.is_answered || is_as_told && wanted.is_none() {
            return;
        }
        let words = if is_shortened { asks::SHORTENED } else { "" };
        let session_id = question.session_id.clone();
        self.queue.remove(|it| it.about == About::Time(number));
        let mut item = Item::new(Kind::Notice, Weight::Normal, words.to_owned(), now);
        (item.session_id, item.about) = (Some(session_id), About::Time(number));
        self.queue.push(item, self.preferences.pace(), self.preferences.behind_seconds);
    }

    /// Whether progress only tells how much time is left for a question: that is told by the question itself.
    pub(super) fn is_clock(&self, event: &Event, told: &ProgressUpdated) -> bool {
        let deadline = Delivery::of(event).and_then(|it| it.deadline);
        if deadline.is_some_and(|it| self.closed.contains(&it.reply_token)) {
            return true;
        }
        let session_id = self.key(&event.envelope.session_id);
        let progress = &told.progress;
        let is_amount = progress.percent.is_some() || progress.step.is_some();
        !is_amount && self.questions.values().any(|it| it.session_id == session_id)
    }
}

impl Question {
    /// How much time is left now, in a sentence, after something about it that was known before.
    pub(super) fn time_now(&self, now: Duration, known: &str) -> String {
        match self.clock.remaining(now) {
            Some(left) => format!("{} {known}", asks::you_have_to_answer(left)),
            None => format!("{} {known}", asks::TIME_STANDS_STILL),
        }
        .trim_end()
        .to_owned()
    }
}
