//! The questions that wait now, for whoever looks and does not listen.

use std::sync::Arc;

use aaep::{Event, ReplyToken};

use super::super::Engine;
use crate::clock::Now;
use crate::io::AgentTags;

/// A question that waits for its answer.
#[derive(Debug, Clone)]
pub struct WaitingAsk {
    /// Its token.
    pub reply_token: ReplyToken,
    /// The place of its event among all.
    pub order: u64,
    /// What decides who hears of it.
    pub tags: AgentTags,
    /// The event that asks, in all its languages.
    pub event: Arc<Event>,
    /// How long it can still be answered.
    pub left_us: u64,
    /// Whether its time stands still; then `left_us` is when it goes on at the latest, and ends.
    pub is_paused: bool,
}

impl Engine {
    /// The questions that wait, the oldest first.
    pub fn waiting_asks(&self, now: Now) -> Vec<WaitingAsk> {
        let mut waiting: Vec<_> = self.asks.iter().collect();
        waiting.sort_unstable_by_key(|(_, ask)| ask.order);
        let shown = waiting.into_iter().map(|(token, ask)| WaitingAsk {
            reply_token: token.clone(),
            order: ask.order,
            tags: ask.tags.clone(),
            event: Arc::clone(&ask.event),
            left_us: ask.time.deadline_us().saturating_sub(now.monotonic_us),
            is_paused: ask.time.is_paused(),
        });
        shown.collect()
    }
}
