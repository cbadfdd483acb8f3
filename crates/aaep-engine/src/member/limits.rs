//! The rate and the pace of one subscriber (§5.3.1.1, §5.3.1.11, rulings 6 and 30).

use aaep::Payload;

use crate::boundary::count_words;
use crate::budget::RateBudget;
use crate::clock::SECOND_US;

/// How far announcing may lag before more text is held and merged (§5.3.1.11). Only text waits for it;
/// everything else is delivered when it happens (ruling 30).
pub const MAX_ANNOUNCING_US: u64 = 2 * SECOND_US;

/// The rate and the pace that were negotiated for one subscriber.
#[derive(Debug)]
pub(crate) struct DeliveryLimits {
    budget: Option<RateBudget>,
    pace_wpm: Option<u64>,
    /// An estimate of when the subscriber has announced everything it received.
    announcing_until_us: u64,
}

impl DeliveryLimits {
    /// None for a subscriber without rate and pace.
    pub(crate) fn of(
        max_events_per_second: Option<u64>,
        pace_wpm: Option<u64>,
    ) -> Option<Box<Self>> {
        if max_events_per_second.is_none() && pace_wpm.is_none() {
            return None;
        }
        let budget = max_events_per_second.map(RateBudget::new);
        Some(Box::new(DeliveryLimits { budget, pace_wpm, announcing_until_us: 0 }))
    }

    /// Changes the limits. What was spent stays spent.
    pub(crate) fn change(&mut self, max_events_per_second: Option<u64>, pace_wpm: Option<u64>) {
        self.pace_wpm = pace_wpm;
        match (&mut self.budget, max_events_per_second) {
            (Some(budget), Some(max)) => budget.set_max(max),
            (budget, max) => *budget = max.map(RateBudget::new),
        }
    }

    /// When the rate lets the next non-critical event pass. This may be now.
    pub(crate) fn next_us(&mut self, now_us: u64) -> u64 {
        self.budget.as_mut().map_or(now_us, |budget| budget.next_us(now_us))
    }

    /// When the pace lets the next text pass. This may be now.
    pub(super) fn next_text_us(&self, now_us: u64) -> u64 {
        self.announcing_until_us.saturating_sub(MAX_ANNOUNCING_US).max(now_us)
    }

    /// Notes whether the rate or the pace holds something. While it does, events leave one by one (ruling 6).
    pub(super) fn note_held(&mut self, is_held: bool) {
        if let Some(budget) = &mut self.budget {
            budget.note_held(is_held);
        }
    }

    /// Counts an event against the rate and the pace.
    pub(crate) fn spend(&mut self, now_us: u64, payload: &Payload) {
        if let Some(budget) = &mut self.budget {
            budget.spend(now_us);
        }
        self.announce(now_us, payload);
    }

    /// Counts the words of an event against the pace only.
    pub(super) fn announce(&mut self, now_us: u64, payload: &Payload) {
        if let Some(pace) = self.pace_wpm {
            let takes_us = words_of(payload) as u64 * 60 * SECOND_US / pace.max(1);
            self.announcing_until_us = self.announcing_until_us.max(now_us) + takes_us;
        }
    }
}

/// Roughly how many words a subscriber announces for an event.
fn words_of(payload: &Payload) -> usize {
    let text = match payload {
        Payload::OutputStreaming(it) => Some(&it.chunk),
        Payload::SessionStarted(it) => Some(&it.summary_normal),
        Payload::SessionCompleted(it) => Some(&it.summary_normal),
        Payload::SessionErrored(it) => Some(&it.summary_normal),
        Payload::SessionCancelled(it) => Some(&it.summary_normal),
        Payload::StateChanged(it) => it.summary_normal.as_ref(),
        Payload::ProgressUpdated(it) => it.summary_normal.as_ref(),
        Payload::ToolInvoked(it) => Some(&it.summary_normal),
        Payload::ToolCompleted(it) => it.summary_normal.as_ref(),
        Payload::AwaitingConfirmation(it) => it.summary_normal.as_ref().or(Some(&it.action)),
        Payload::AwaitingClarification(it) => Some(&it.question),
        Payload::HandoffRequested(it) => Some(&it.reason),
        Payload::Extension(_) => None,
    };
    // Without words, the name of a state or a tool is announced.
    text.map_or(3, |text| count_words(text, None)).max(1)
}
