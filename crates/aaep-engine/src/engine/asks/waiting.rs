//! The asks that wait now, for callers that look without subscribing.

use std::sync::Arc;

use aaep::{Event, ReplyToken};

use super::super::Engine;
use crate::clock::Now;
use crate::io::AgentTags;

/// An ask that waits for its answer.
#[derive(Debug, Clone)]
pub struct OpenAskView {
    /// Its token.
    pub reply_token: ReplyToken,
    /// The global order of its event.
    pub order: u64,
    /// Determines which subscribers hear the ask.
    pub tags: AgentTags,
    /// The event that asks, in all its languages.
    pub event: Arc<Event>,
    /// How long it can still be answered.
    pub left_us: u64,
    /// Whether its time is paused. Then `left_us` is the time until the pause ends at the latest, and the ask
    /// with it.
    pub is_paused: bool,
}

impl Engine {
    /// The asks that wait, oldest first.
    pub fn waiting_asks(&self, now: Now) -> Vec<OpenAskView> {
        let mut waiting: Vec<_> = self.asks.iter().collect();
        waiting.sort_unstable_by_key(|(_, ask)| ask.order);
        let shown = waiting.into_iter().map(|(token, ask)| OpenAskView {
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
