//! How far a voice may be behind: less than a minute of words waits at any time. What does not fit is counted and
//! offered, and nothing of it is lost.
//!
//! Of several texts the newest is kept. A single long text is kept from its beginning: after that comes how much
//! follows, and the person decides.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::{MAX_WAITING, QueuedUtterance, UtteranceQueue, UtteranceTopic};
use crate::announcer::sessions::HubSessionKey;
use crate::english::listening;
use crate::utterance::{UtteranceKind, Weight};

/// An utterance that waited this many times longer than the words that may wait makes room for another agent.
const STALE_FACTOR: u64 = 2;
/// How many skipped utterances are kept for a person who wants to hear them.
const MAX_SKIPPED: usize = 256;

/// Counts what was left out because too much was waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LeftOutCounts {
    pub(super) steps: u64,
    pub(super) replies: u64,
    pub(super) errors: u64,
    pub(super) others: u64,
}

/// A text of an agent of which only the beginning is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PagedText {
    session_id: Option<HubSessionKey>,
    text: u64,
}

impl PagedText {
    fn of(item: &QueuedUtterance) -> Self {
        PagedText { session_id: item.session_id.clone(), text: item.text }
    }

    fn has(&self, item: &QueuedUtterance) -> bool {
        item.kind == UtteranceKind::Reply
            && item.session_id == self.session_id
            && item.text == self.text
    }
}

impl UtteranceQueue {
    /// Leaves out utterances that waited for long when another agent has something newer. The agent that is being read
    /// is read on.
    pub(super) fn make_room_for(&mut self, item: &QueuedUtterance, behind_seconds: u64) {
        if item.session_id.is_none() || item.weight < Weight::Normal {
            return;
        }
        let patience = Duration::from_secs(behind_seconds.saturating_mul(STALE_FACTOR));
        let is_stale = |it: &QueuedUtterance| {
            item.arrived.saturating_sub(it.arrived) > patience
                && it.session_id != item.session_id
                && it.session_id != self.reading
                // A claim must not be announced without the fact that contradicts it.
                && !(it.was_cut || it.is_news())
        };
        let waiting = std::mem::take(&mut self.rest);
        let (stale, rest) = waiting.into_iter().partition::<VecDeque<QueuedUtterance>, _>(is_stale);
        self.rest = rest;
        for it in stale {
            self.leave_out(it);
        }
    }

    /// Leaves out the least important utterances, the oldest first, until not too much waits.
    pub(super) fn keep_up(&mut self, pace: u64, behind_seconds: u64) {
        // What the person asked for does not count.
        let is_counted = |it: &&QueuedUtterance| !(it.was_cut || it.is_requested());
        let counted = self.rest.iter().filter(is_counted);
        let mut seconds: u64 = counted.map(|it| it.seconds(pace)).sum();
        while self.rest.len() > MAX_WAITING || seconds > behind_seconds.max(1) {
            // The newest one is always kept: a person who listens slowly hears at least that.
            let waiting = self.rest.iter().take(self.rest.len().saturating_sub(1));
            let importance = |item: &QueuedUtterance| match item.kind {
                _ if item.was_cut => 5,
                UtteranceKind::Progress => 0,
                UtteranceKind::Doing if item.weight == Weight::Background => 1,
                UtteranceKind::Doing => 2,
                UtteranceKind::Reply => 3,
                _ if matches!(item.about, UtteranceTopic::RestOfText(_)) => 3,
                // A tool that fails again and again.
                UtteranceKind::Error if !item.is_news() => 4,
                UtteranceKind::Notice => 5,
                UtteranceKind::Done
                | UtteranceKind::Settled
                | UtteranceKind::Error
                | UtteranceKind::Question => 6,
            };
            let least = waiting.enumerate().min_by_key(|(at, item)| (importance(item), *at));
            let Some((at, importance)) = least.map(|(at, item)| (at, importance(item))) else {
                return;
            };
            // Ends and failures of agents are kept as long as there is room.
            let is_kept = self.takes_no_time || importance > 4;
            if is_kept && self.rest.len() <= MAX_WAITING {
                return;
            }
            let end = self.end_of_only_text().filter(|_| importance == 3 && !self.takes_no_time);
            if let Some(item) = end.and_then(|end| self.rest.remove(end)) {
                seconds = seconds.saturating_sub(item.seconds(pace));
                self.paged = Some(PagedText::of(&item));
                self.leave_for_later(item);
                continue;
            }
            let Some(item) = self.rest.remove(at) else { return };
            seconds = seconds.saturating_sub(item.seconds(pace));
            self.leave_out(item);
        }
    }

    /// The position of the last part of the text that waits, if no other text waits and at least two parts of it do.
    fn end_of_only_text(&self) -> Option<usize> {
        let is_reply = |it: &&QueuedUtterance| it.kind == UtteranceKind::Reply && !it.was_cut;
        let text = PagedText::of(self.rest.iter().find(is_reply)?);
        let mut replies = self.rest.iter().filter(is_reply);
        let end = self.rest.iter().rposition(|it| text.has(it) && !it.was_cut)?;
        (replies.all(|it| text.has(it)) && self.rest.iter().filter(is_reply).nth(1).is_some())
            .then_some(end)
    }

    /// Whether it goes on with a text of which the rest is only offered. Once the voice has caught up, the text is
    /// said again from there.
    pub(super) fn is_beyond_page(&mut self, item: &QueuedUtterance) -> bool {
        let Some(paged) = self.paged.as_ref().filter(|it| it.has(item)) else { return false };
        let is_behind = self.rest.iter().any(|it| paged.has(it));
        if !is_behind {
            self.paged = None;
        }
        is_behind
    }

    /// Keeps a part of a text for a person who asks for it, and counts its words where it would have followed.
    pub(super) fn leave_for_later(&mut self, item: QueuedUtterance) {
        let count = item.words.split_whitespace().count() as u64;
        let is_notice = |it: &QueuedUtterance| {
            matches!(it.about, UtteranceTopic::RestOfText(_)) && it.session_id == item.session_id
        };
        let known = self.rest.iter().position(is_notice);
        let before = match known.and_then(|at| self.rest.remove(at)).map(|it| it.about) {
            Some(UtteranceTopic::RestOfText(count)) => count,
            _ => 0,
        };
        let count = count.saturating_add(before);
        let words = listening::rest_of_text(count);
        let mut notice =
            QueuedUtterance::new(UtteranceKind::Notice, Weight::Normal, words, item.arrived);
        (notice.session_id, notice.text) = (item.session_id.clone(), item.text);
        notice.about = UtteranceTopic::RestOfText(count);
        self.number(&mut notice);
        let is_text = |it: &QueuedUtterance| {
            it.kind == UtteranceKind::Reply && it.session_id == item.session_id
        };
        let at = self.rest.iter().rposition(is_text).map_or(self.rest.len(), |at| at + 1);
        self.rest.insert(at, notice);
        self.skip(item);
    }

    /// Takes the end of a text of which only the beginning was to be said, and whether more of it is left.
    pub(in crate::announcer) fn take_end_of_text(
        &mut self,
        session_id: &HubSessionKey,
    ) -> (Option<QueuedUtterance>, bool) {
        let paged = self.paged.take_if(|it| it.session_id.as_ref() == Some(session_id));
        let Some(paged) = paged else { return (None, false) };
        self.rest.retain(|it| {
            !(matches!(it.about, UtteranceTopic::RestOfText(_)) && it.is_of(session_id))
        });
        let end = self.skipped.iter().rposition(|it| paged.has(it));
        let end = end.and_then(|at| self.skipped.remove(at));
        (end, self.skipped.iter().any(|it| paged.has(it)))
    }

    /// Keeps a skipped utterance; the oldest ones are dropped.
    pub(in crate::announcer) fn skip(&mut self, mut item: QueuedUtterance) {
        self.number(&mut item);
        let before = self.skipped.iter().rposition(|it| it.serial < item.serial);
        self.skipped.insert(before.map_or(0, |at| at + 1), item);
        if self.skipped.len() > MAX_SKIPPED {
            self.skipped.pop_front();
        }
    }

    /// Queues all skipped utterances again, before newer words of agents. Returns whether there were any.
    pub(in crate::announcer) fn tell_skipped(&mut self) -> bool {
        if self.skipped.is_empty() {
            return false;
        }
        (self.left_out, self.paged) = (LeftOutCounts::default(), None);
        self.rest.retain(|it| !matches!(it.about, UtteranceTopic::RestOfText(_)));
        let skipped = std::mem::take(&mut self.skipped);
        let sessions: BTreeSet<HubSessionKey> =
            skipped.iter().filter_map(|it| it.session_id.clone()).collect();
        // The beginning of the same texts comes before it.
        let is_before = |it: &QueuedUtterance| {
            it.kind == UtteranceKind::Reply
                && it.session_id.as_ref().is_some_and(|it| sessions.contains(it))
        };
        let mut told: Vec<QueuedUtterance> =
            self.take(is_before).into_iter().chain(skipped).collect();
        told.sort_by_key(|it| it.serial);
        for item in told.into_iter().rev() {
            self.put_back(item);
        }
        true
    }

    pub(super) fn leave_out(&mut self, item: QueuedUtterance) {
        match (&item.about, item.kind) {
            // Only the newest of these counts.
            (
                UtteranceTopic::LeftOut
                | UtteranceTopic::State
                | UtteranceTopic::StillRunning
                | UtteranceTopic::Line(_)
                | UtteranceTopic::Feedback
                | UtteranceTopic::Time(_),
                _,
            )
            | (_, UtteranceKind::Progress) => return,
            (UtteranceTopic::Tools(tools), _) => self.left_out.steps += tools.count(),
            (_, UtteranceKind::Doing) => self.left_out.steps += 1,
            // What it counts can be heard already.
            (UtteranceTopic::RestOfText(_), _) => {
                self.left_out.replies += 1;
                return;
            }
            (_, UtteranceKind::Reply) => self.left_out.replies += 1,
            (_, UtteranceKind::Error) => self.left_out.errors += 1,
            _ => self.left_out.others += 1,
        }
        self.skip(item);
    }

    /// Announces what was left out since the last such announcement.
    pub(super) fn tell_left_out(&mut self, now: Duration) -> Option<QueuedUtterance> {
        let words = std::mem::take(&mut self.left_out).said()?;
        self.left_out_told = Some(now);
        let mut item = QueuedUtterance::new(UtteranceKind::Notice, Weight::Normal, words, now);
        item.about = UtteranceTopic::LeftOut;
        Some(item)
    }
}

impl LeftOutCounts {
    fn said(self) -> Option<String> {
        let listed = listening::kinds_left_out(self.errors, self.replies, self.steps, self.others)?;
        Some(listening::too_much(&listed))
    }
}
