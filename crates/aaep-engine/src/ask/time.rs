//! The time of one ask: how long it can be answered, and how a person gets more time (§6.4,
//! `docs/extension.md`).
//!
//! If the agent states no maximum, only its timeout counts. If it does, no ask stays open beyond
//! that maximum, whatever anyone requests. Which subscribers may request more time is decided
//! elsewhere.

use aaep::ReplyToken;

use crate::clock::{Now, SECOND_US};
use crate::io::{AskTimeRecord, ReplyRefusal};

/// People are told how much time is left only if it is more than this (§6.4.3).
const COUNTDOWN_FROM_US: u64 = 60 * SECOND_US;

/// How often the time of an ask can be extended or paused. Every change is announced to everyone.
pub(crate) const MAX_TIME_CHANGES: u32 = 32;

/// What the clock of an ask is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClockState {
    /// The clock has not started: the ask has not been presented yet.
    Waiting,
    /// The clock runs until this moment.
    Running { until_us: u64 },
    /// The clock is paused with this much time left.
    Paused { left_us: u64 },
}

/// The time of an ask, measured on our own clock (ruling 13).
#[derive(Debug)]
pub(crate) struct AskTime {
    timeout_us: u64,
    /// The latest moment at which the ask can end.
    limit_us: u64,
    /// Whether the agent allows more than its timeout.
    is_extensible: bool,
    clock: ClockState,
    /// The moments at which people are told how much time is left, latest first.
    countdown_us: Vec<u64>,
    changes: u32,
}

impl AskTime {
    /// The time of an ask that is asked now. The clock waits for presentation if `waits` is set and
    /// the agent stated a maximum.
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
            clock: ClockState::Waiting,
            countdown_us: Vec::new(),
            changes: 0,
        };
        if !(waits && is_extensible) {
            time.start(now_us);
        }
        time
    }

    /// The record to store. `event_unix_us` is when the last event before it was recorded.
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
            ClockState::Waiting => (None, None),
            ClockState::Running { until_us } => (Some(unix_us(until_us)), None),
            ClockState::Paused { left_us } => (None, Some(left_us)),
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

    /// Restores the time after a restart from what was stored. `seen_unix_us` is the latest moment
    /// that was recorded before the stop, and never earlier than when the ask was made.
    ///
    /// The clock of the machine may have been set back or ahead meanwhile. That can only take time
    /// away: there is never more time left than when the record was stored, or at that latest
    /// moment.
    pub(crate) fn restore(&mut self, now: Now, seen_unix_us: i64, record: &AskTimeRecord) {
        let stored_unix_us = record.stored_unix_us.unwrap_or(i64::MIN);
        let from_unix_us = now.unix_us.max(seen_unix_us).max(stored_unix_us);
        let left_us =
            |unix_us: i64| u64::try_from(unix_us.saturating_sub(from_unix_us)).unwrap_or(0);
        let now_us = now.monotonic_us;
        self.limit_us = now_us.saturating_add(left_us(record.limit_unix_us));
        self.changes = record.changes;
        match (record.ends_unix_us, record.left_us) {
            (Some(ends_unix_us), _) => self.run_for(now_us, left_us(ends_unix_us)),
            (None, Some(left_us)) => self.clock = ClockState::Paused { left_us },
            (None, None) => self.clock = ClockState::Waiting,
        }
        self.count_down(now_us);
    }

    /// When the default applies.
    pub(crate) fn deadline_us(&self) -> u64 {
        match self.clock {
            ClockState::Running { until_us } => until_us,
            ClockState::Waiting | ClockState::Paused { .. } => self.limit_us,
        }
    }

    /// When something is due next: the default, or an announcement of the time left.
    pub(crate) fn next_us(&self) -> u64 {
        self.deadline_us().min(self.countdown_us.last().copied().unwrap_or(u64::MAX))
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.clock == ClockState::Waiting
    }

    pub(crate) fn is_paused(&self) -> bool {
        matches!(self.clock, ClockState::Paused { .. })
    }

    /// How many microseconds are left, if that is to be announced now.
    pub(crate) fn countdown(&mut self, now_us: u64) -> Option<u64> {
        let before = self.countdown_us.len();
        self.countdown_us.retain(|at| *at > now_us);
        (self.countdown_us.len() < before).then(|| self.deadline_us().saturating_sub(now_us))
    }

    /// Starts the clock if it was waiting, and returns whether it was.
    pub(crate) fn start(&mut self, now_us: u64) -> bool {
        let is_start = self.is_waiting();
        if is_start {
            self.run_for(now_us, self.timeout_us);
        }
        is_start
    }

    /// Starts the clock because a subscriber presented the ask.
    pub(crate) fn present(&mut self, now_us: u64) -> Result<(), ReplyRefusal> {
        if self.start(now_us) { Ok(()) } else { Err(ReplyRefusal::NotNow) }
    }

    /// Gives the person more time, cut off at the limit.
    pub(crate) fn extend(&mut self, now_us: u64, by_seconds: u64) -> Result<(), ReplyRefusal> {
        self.check_change()?;
        if by_seconds == 0 {
            return Err(ReplyRefusal::NotAllowed);
        }
        let by_us = by_seconds.saturating_mul(SECOND_US);
        let room_us = self.limit_us.saturating_sub(now_us);
        match self.clock {
            // A person who wants more time has already heard the ask.
            ClockState::Waiting => self.run_for(now_us, self.timeout_us.saturating_add(by_us)),
            ClockState::Running { until_us } if until_us < self.limit_us => {
                let left_us = until_us.saturating_sub(now_us);
                self.run_for(now_us, left_us.saturating_add(by_us));
            }
            ClockState::Paused { left_us } if left_us < room_us => {
                self.clock =
                    ClockState::Paused { left_us: left_us.saturating_add(by_us).min(room_us) };
            }
            _ => return Err(ReplyRefusal::AtMaximum),
        }
        self.changes += 1;
        Ok(())
    }

    /// Pauses the clock.
    pub(crate) fn pause(&mut self, now_us: u64) -> Result<(), ReplyRefusal> {
        self.check_change()?;
        let left_us = match self.clock {
            ClockState::Waiting => self.timeout_us,
            ClockState::Running { until_us } if until_us < self.limit_us => {
                until_us.saturating_sub(now_us)
            }
            ClockState::Running { .. } => return Err(ReplyRefusal::AtMaximum),
            ClockState::Paused { .. } => return Err(ReplyRefusal::NotNow),
        };
        self.changes += 1;
        self.clock = ClockState::Paused { left_us };
        self.count_down(now_us);
        Ok(())
    }

    /// Lets the clock run again after a pause.
    pub(crate) fn resume(&mut self, now_us: u64) -> Result<(), ReplyRefusal> {
        let ClockState::Paused { left_us } = self.clock else { return Err(ReplyRefusal::NotNow) };
        self.run_for(now_us, left_us);
        Ok(())
    }

    /// Whether the time may be changed at all, and was not changed too often.
    fn check_change(&self) -> Result<(), ReplyRefusal> {
        if !self.is_extensible {
            return Err(ReplyRefusal::NoMaximum);
        }
        if self.changes < MAX_TIME_CHANGES { Ok(()) } else { Err(ReplyRefusal::TooManyChanges) }
    }

    /// Lets the clock run for `left_us` from now, but never past the limit.
    fn run_for(&mut self, now_us: u64, left_us: u64) {
        let until_us = now_us.saturating_add(left_us).min(self.limit_us);
        self.clock = ClockState::Running { until_us };
        self.count_down(now_us);
    }

    /// Schedules the announcements of the time left: at one half and at one tenth (§6.4.3).
    fn count_down(&mut self, now_us: u64) {
        let deadline_us = self.deadline_us();
        let left_us = deadline_us.saturating_sub(now_us);
        self.countdown_us.clear();
        if left_us > COUNTDOWN_FROM_US {
            self.countdown_us.extend([deadline_us - left_us / 10, deadline_us - left_us / 2]);
        }
    }
}
