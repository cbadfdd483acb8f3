//! The time of a question as it is announced: always one correct time, and none after the question is settled.
//!
//! A producer may count the time from the presentation of the question (`docs/extension.md`). Until it says that the
//! time runs, the person has all of it.

use std::time::Duration;

use aaep::event::reasoning::ProgressUpdated;
use aaep::extension::Delivery;
use aaep::{Event, Payload};

use super::Announcer;
use super::io::AskNumber;
use super::question::AnnouncedAsk;
use super::queue::{QueuedUtterance, UtteranceTopic};
use crate::english::asks;
use crate::utterance::{UtteranceKind, Weight};

/// Changes smaller than this are not announced.
const SMALL_CHANGE: Duration = Duration::from_secs(5);

/// The clock of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskClock {
    /// It starts with this much time when the question has been presented.
    Waiting(Duration),
    /// It runs until then.
    Running(Option<Duration>),
    Paused,
    /// The agent waits as long as the person likes.
    Endless,
}

/// How much time a person has after the presentation of a question, if the producer counts from there.
pub fn time_after_presentation(event: &Event) -> Option<Duration> {
    let timeout_seconds = match &event.payload {
        Payload::AwaitingConfirmation(it) => it.timeout_seconds,
        Payload::AwaitingClarification(it) => it.timeout_seconds,
        _ => return None,
    };
    let most_seconds = Delivery::of(event)?.max_timeout_seconds?;
    (most_seconds > timeout_seconds).then(|| Duration::from_secs(timeout_seconds))
}

impl AskClock {
    /// The clock of a question that has this much time left.
    pub(super) fn of(event: &Event, now: Duration, remaining: Duration) -> Self {
        if remaining == Duration::MAX {
            return AskClock::Endless;
        }
        match time_after_presentation(event) {
            // Until the producer says when it ends, `remaining` is the longest possible time.
            Some(timeout) if remaining > timeout => AskClock::Waiting(timeout),
            _ => AskClock::Running(now.checked_add(remaining)),
        }
    }

    /// How much time is left; `None` while the clock is paused.
    pub(super) fn remaining(self, now: Duration) -> Option<Duration> {
        match self {
            AskClock::Waiting(all) => Some(all),
            AskClock::Running(until) => until.map(|it| it.saturating_sub(now)),
            AskClock::Paused | AskClock::Endless => None,
        }
    }

    /// When it ends, if it runs.
    pub(super) fn ends_at(self) -> Option<Duration> {
        match self {
            AskClock::Running(until) => until,
            AskClock::Waiting(_) | AskClock::Paused | AskClock::Endless => None,
        }
    }
}

impl Announcer {
    /// Processes a change of the remaining time. `wanted` is how much more the person asked for.
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
            AskClock::Paused
        } else {
            AskClock::Running(now.checked_add(remaining))
        };
        question.is_warned = false;
        let left_before = before.remaining(now);
        let is_shortened = wanted.zip(left_before).is_some_and(|(wanted, before)| {
            remaining.saturating_add(SMALL_CHANGE) < before.saturating_add(wanted)
        });
        // If the remaining time is as announced, it is not announced again.
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
        self.queue.remove(|it| it.about == UtteranceTopic::Time(number));
        let mut item =
            QueuedUtterance::new(UtteranceKind::Notice, Weight::Normal, words.to_owned(), now);
        (item.session_id, item.about) = (Some(session_id), UtteranceTopic::Time(number));
        self.queue.push(item, self.preferences.pace(), self.preferences.behind_seconds);
    }

    /// Whether a progress event only reports the time that is left for a question, which is announced with the
    /// question.
    pub(super) fn is_only_ask_time(&self, event: &Event, update: &ProgressUpdated) -> bool {
        let deadline = Delivery::of(event).and_then(|it| it.deadline);
        if deadline.is_some_and(|it| self.closed.contains(&it.reply_token)) {
            return true;
        }
        let session_id = self.key(&event.envelope.session_id);
        let progress = &update.progress;
        let is_amount = progress.percent.is_some() || progress.step.is_some();
        !is_amount && self.questions.values().any(|it| it.session_id == session_id)
    }
}

impl AnnouncedAsk {
    /// The remaining time as a sentence, followed by something that was already known.
    pub(super) fn time_now(&self, now: Duration, known: &str) -> String {
        match self.clock.remaining(now) {
            Some(left) => format!("{} {known}", asks::you_have_to_answer(left)),
            None if self.clock == AskClock::Endless => format!("{} {known}", asks::WAITS_FOR_YOU),
            None => format!("{} {known}", asks::TIME_STANDS_STILL),
        }
        .trim_end()
        .to_owned()
    }
}
