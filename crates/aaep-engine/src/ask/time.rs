//! The time of one question: until when it can be answered, and how people get more of it (§6.4,
//! `docs/extension.md`).
//!
//! Without a maximum from the agent there is nothing here but its timeout. With one, no question
//! stays open beyond it, whatever anybody asks for. Who may ask is decided elsewhere.

use aaep::ReplyToken;

use crate::clock::{Now, SECOND_US};
use crate::io::{AskTimeRecord, ReplyRefusal};

/// From which time on people are told how much of it is left (§6.4.3).
const COUNTDOWN_FROM_US: u64 = 60 * SECOND_US;

/// How often the time of a question can be extended or paused: everyone is told each time.
pub(crate) const MAX_TIME_CHANGES: u32 = 32;

/// What the clock of a question does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clock {
    /// It waits until the question is presented.
    Waiting,
    /// It runs until then.
    Running { until_us: u64 },
    /// It stands still with so much left.
    Paused { left_us: u64 },
}

/// The time of a question, on our own clock (ruling 13).
#[derive(Debug)]
pub(crate) struct AskTime {
    timeout_us: u64,
    /// When it ends at the latest.
    limit_us: u64,
    /// Whether the agent allows more than its timeout.
    is_extensible: bool,
    clock: Clock,
    /// When people are told how much time is left, the next moment last.
    countdown_us: Vec<u64>,
    changes: u32,
}

impl AskTime {
    /// The time of a question that is asked now. It waits for presentation if it may.
    pub(crate) fn new(
        now_us: u64,
        timeout_seconds: u64,
        max_timeout_seconds: Option<u64>,
        waits: bool,
    ) -> Self {
        let timeout_us = timeout_seconds.saturating_mul(SECOND_US);
        let most_us = max_timeout_seconds.unwrap_or(0).saturating_mul(SECOND_US).max(timeout_us);
        let is_extensible = most_us > timeout_us;
        let mut time = AskTime {
            timeout_us,
            limit_us: now_us.saturating_add(most_us),
            is_extensible,
            clock: Clock::Waiting,
            countdown_us: Vec::new(),
            changes: 0,
        };
        if !(waits && is_extensible) {
            time.start(now_us);
        }
        time
    }

    /// How it is stored, after an event that was recorded then.
    pub(crate) fn record(
        &self,
        now: Now,
        event_unix_us: Option<i64>,
        reply_token: ReplyToken,
    ) -> AskTimeRecord {
        let unix_us = |at_us: u64| {
            let left_us = i64::try_from(at_us.saturating_sub(now.monotonic_us));
            now.unix_us.saturating_add(left_us.unwrap_or(i64::MAX))
        };
        let (ends_unix_us, left_us) = match self.clock {
            Clock::Waiting => (None, None),
            Clock::Running { until_us } => (Some(unix_us(until_us)), None),
            Clock::Paused { left_us } => (None, Some(left_us)),
        };
        let (limit_unix_us, changes) = (unix_us(self.limit_us), self.changes);
        let stored_unix_us = Some(now.unix_us);
        AskTimeRecord {
            reply_token,
            ends_unix_us,
            left_us,
            limit_unix_us,
            changes,
            stored_unix_us,
            event_unix_us,
        }
    }

    /// After a stop: as it was stored. `seen_unix_us` is the last moment after that which was recorded before the
    /// stop, at the earliest when the question was asked.
    ///
    /// The clock of the machine may have been set back or ahead meanwhile. It can only take time away:
    /// never is more left than when the time was stored, or at that last moment.
    pub(crate) fn go_back_to(&mut self, now: Now, seen_unix_us: i64, record: &AskTimeRecord) {
        let stored_unix_us = record.stored_unix_us.unwrap_or(i64::MIN);
        let from_unix_us = now.unix_us.max(seen_unix_us).max(stored_unix_us);
        let left_us =
            |unix_us: i64| u64::try_from(unix_us.saturating_sub(from_unix_us)).unwrap_or(0);
        let now_us = now.monotonic_us;
        self.limit_us = now_us.saturating_add(left_us(record.limit_unix_us));
        self.changes = record.changes;
        match (record.ends_unix_us, record.left_us) {
            (Some(ends_unix_us), _) => self.run_for(now_us, left_us(ends_unix_us)),
            (None, Some(left_us)) => self.clock = Clock::Paused { left_us },
            (None, None) => self.clock = Clock::Waiting,
        }
        self.count_down(now_us);
    }

    /// When the default applies.
    pub(crate) fn deadline_us(&self) -> u64 {
        match self.clock {
            Clock::Running { until_us } => until_us,
            Clock::Waiting | Clock::Paused { .. } => self.limit_us,
        }
    }

    /// When something is next due.
    pub(crate) fn next_us(&self) -> u64 {
        self.deadline_us().min(self.countdown_us.last().copied().unwrap_or(u64::MAX))
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.clock == Clock::Waiting
    }

    pub(crate) fn is_paused(&self) -> bool {
        matches!(self.clock, Clock::Paused { .. })
    }

    /// How many microseconds are left, if it is time to tell.
    pub(crate) fn countdown(&mut self, now_us: u64) -> Option<u64> {
        let before = self.countdown_us.len();
        self.countdown_us.retain(|at| *at > now_us);
        (self.countdown_us.len() < before).then(|| self.deadline_us().saturating_sub(now_us))
    }

    /// The clock starts, if it waited; whether it did.
    pub(crate) fn start(&mut self, now_us: u64) -> bool {
        let is_start = self.is_waiting();
        if is_start {
            self.run_for(now_us, self.timeout_us);
        }
        is_start
    }

    /// Someone presented the question.
    pub(crate) fn present(&mut self, now_us: u64) -> Result<(), ReplyRefusal> {
        if self.start(now_us) { Ok(()) } else { Err(ReplyRefusal::NotNow) }
    }

    /// Someone needs more time. Past the limit it is cut.
    pub(crate) fn extend(&mut self, now_us: u64, by_seconds: u64) -> Result<(), ReplyRefusal> {
        self.check_change()?;
        if by_seconds == 0 {
            return Err(ReplyRefusal::NotAllowed);
        }
        let by_us = by_seconds.saturating_mul(SECOND_US);
        let room_us = self.limit_us.saturating_sub(now_us);
        match self.clock {
            // Who needs more time was told the question.
            Clock::Waiting => self.run_for(now_us, self.timeout_us.saturating_add(by_us)),
            Clock::Running { until_us } if until_us < self.limit_us => {
                let left_us = until_us.saturating_sub(now_us);
                self.run_for(now_us, left_us.saturating_add(by_us));
            }
            Clock::Paused { left_us } if left_us < room_us => {
                self.clock = Clock::Paused { left_us: left_us.saturating_add(by_us).min(room_us) };
            }
            _ => return Err(ReplyRefusal::AtMaximum),
        }
        self.changes += 1;
        Ok(())
    }

    /// Someone wants the time to stand still.
    pub(crate) fn pause(&mut self, now_us: u64) -> Result<(), ReplyRefusal> {
        self.check_change()?;
        let left_us = match self.clock {
            Clock::Waiting => self.timeout_us,
            Clock::Running { until_us } if until_us < self.limit_us => {
                until_us.saturating_sub(now_us)
            }
            Clock::Running { .. } => return Err(ReplyRefusal::AtMaximum),
            Clock::Paused { .. } => return Err(ReplyRefusal::NotNow),
        };
        self.changes += 1;
        self.clock = Clock::Paused { left_us };
        self.count_down(now_us);
        Ok(())
    }

    /// The time goes on after a pause.
    pub(crate) fn resume(&mut self, now_us: u64) -> Result<(), ReplyRefusal> {
        let Clock::Paused { left_us } = self.clock else { return Err(ReplyRefusal::NotNow) };
        self.run_for(now_us, left_us);
        Ok(())
    }

    /// Whether the time can be changed at all, and still.
    fn check_change(&self) -> Result<(), ReplyRefusal> {
        if !self.is_extensible {
            return Err(ReplyRefusal::NoMaximum);
        }
        if self.changes < MAX_TIME_CHANGES { Ok(()) } else { Err(ReplyRefusal::TooManyChanges) }
    }

    /// Runs for so long from now, but never past the limit.
    fn run_for(&mut self, now_us: u64, left_us: u64) {
        let until_us = now_us.saturating_add(left_us).min(self.limit_us);
        self.clock = Clock::Running { until_us };
        self.count_down(now_us);
    }

    /// People are told when half of the time is left, and when a tenth is (§6.4.3).
    fn count_down(&mut self, now_us: u64) {
        let deadline_us = self.deadline_us();
        let left_us = deadline_us.saturating_sub(now_us);
        self.countdown_us.clear();
        if left_us > COUNTDOWN_FROM_US {
            self.countdown_us.extend([deadline_us - left_us / 10, deadline_us - left_us / 2]);
        }
    }
}
