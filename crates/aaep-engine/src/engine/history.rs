//! Keeps the histories of sessions within their memory budget, for each principal and in total, by
//! dropping the oldest events.
//!
//! Dropped events stay in the store. A subscriber that returns to a point before them is told of a
//! gap. Nothing here decides what anyone is told.

use std::collections::{BTreeMap, BTreeSet};

use aaep::Envelope;

use super::{Engine, EngineSession, MAX_PRODUCER_BYTES, MAX_SESSION_EVENTS};
use crate::audience::{
    HearingScope, HistoryEntry, PastEvents, SessionKey, TextKey, is_before_ask, text_key,
};
use crate::clock::Now;
use crate::io::{AgentTags, PrincipalNumber};

/// How many bytes sessions take besides their histories.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnBytes {
    /// What the rules need: ids and names that must be distinguished.
    needed: usize,
    all: usize,
}

/// A principal's part of the budget for histories.
#[derive(Debug, Default)]
struct PrincipalHolding {
    bytes: usize,
    /// How many of the bytes its sessions take besides their histories. They leave memory only with the
    /// sessions.
    own: OwnBytes,
    /// Its events, oldest first.
    events: BTreeMap<u64, SessionKey>,
}

/// How much each principal holds.
#[derive(Debug, Default)]
pub(crate) struct HistoryHoldings {
    bytes: usize,
    held: BTreeMap<PrincipalNumber, PrincipalHolding>,
    /// The principals by how much they hold, largest last.
    by_bytes: BTreeSet<(usize, PrincipalNumber)>,
    /// The newest dropped events of sessions that are in memory.
    dropped: NewestByTags,
    /// The newest events of sessions that left memory completely without being deleted.
    gone: NewestByTags,
}

/// How many different tags [`NewestByTags`] distinguishes.
const MAX_TAGS: usize = 1024;

/// The newest of some events, by the tags of their agents.
#[derive(Debug, Default)]
struct NewestByTags {
    by_tags: BTreeMap<AgentTags, u64>,
    /// The newest of the events that are no longer distinguished by tags.
    other: Option<u64>,
}

impl NewestByTags {
    fn note(&mut self, tags: &AgentTags, order: u64) {
        if let Some(newest) = self.by_tags.get_mut(tags) {
            *newest = order.max(*newest);
            return;
        }
        if self.by_tags.len() >= MAX_TAGS {
            self.other = self.other.max(self.by_tags.values().max().copied());
            self.by_tags.clear();
        }
        self.by_tags.insert(tags.clone(), order);
    }

    fn heard(&self, hears: &HearingScope) -> Option<u64> {
        let wanted = self.by_tags.iter().filter(|(tags, _)| hears.includes(tags));
        wanted.map(|(_, order)| *order).max().max(self.other)
    }
}

impl HistoryHoldings {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn change(&mut self, owner: PrincipalNumber, change: impl FnOnce(&mut PrincipalHolding)) {
        let holding = self.held.entry(owner).or_default();
        let before = holding.bytes;
        change(holding);
        let after = holding.bytes;
        let is_empty = holding.events.is_empty() && holding.own.all == 0;
        self.by_bytes.remove(&(before, owner));
        self.bytes = self.bytes.saturating_sub(before) + after;
        if is_empty {
            self.held.remove(&owner);
        } else {
            self.by_bytes.insert((after, owner));
        }
    }

    fn hold(&mut self, owner: PrincipalNumber, entry: &HistoryEntry) {
        self.change(owner, |holding| {
            holding.bytes += entry.weight;
            holding.events.insert(entry.order, entry.session);
        });
    }

    /// Updates what a session takes besides its history.
    fn count_own(&mut self, owner: PrincipalNumber, before: OwnBytes, after: OwnBytes) {
        self.change(owner, |holding| {
            let own = &mut holding.own;
            own.needed = own.needed.saturating_sub(before.needed) + after.needed;
            own.all = own.all.saturating_sub(before.all) + after.all;
            holding.bytes = holding.bytes.saturating_sub(before.all) + after.all;
        });
    }

    /// How many bytes the rules need for the sessions of a principal.
    pub(super) fn needed_bytes(&self, owner: PrincipalNumber) -> usize {
        self.held.get(&owner).map_or(0, |holding| holding.own.needed)
    }

    /// The principal that holds most, among those with events that can be dropped.
    fn largest(&self) -> Option<PrincipalNumber> {
        let has_events =
            |owner: &PrincipalNumber| self.held.get(owner).is_some_and(|it| !it.events.is_empty());
        self.by_bytes.iter().rev().map(|(_, owner)| *owner).find(has_events)
    }

    fn release(&mut self, owner: PrincipalNumber, entry: &HistoryEntry) {
        self.change(owner, |holding| {
            holding.bytes = holding.bytes.saturating_sub(entry.weight);
            holding.events.remove(&entry.order);
        });
    }
}

/// What every session may take besides its history without being counted. There are at most 1024 sessions.
const FREE_BYTES: usize = 8 * 1024;

/// Roughly what an entry of a small map takes besides its strings.
const MAP_ENTRY_BYTES: usize = 96;

impl EngineSession {
    /// Roughly how many bytes the session takes besides its history, beyond the free allowance.
    fn own_bytes(&self) -> OwnBytes {
        let states = self.announced.iter().chain(&self.spoken);
        let words = states.map(|(agent_id, state)| agent_id.len() + state.len()).sum::<usize>()
            + self.producers.keys().map(|name| 2 * name.len()).sum::<usize>()
            + self.producers.len() * MAX_PRODUCER_BYTES;
        let entries = self.announced.len()
            + self.spoken.len()
            + self.producers.len()
            + self.dropped_texts.len();
        let needed = self.order.memory_bytes() + words + entries * MAP_ENTRY_BYTES;
        let all = needed + self.dropped_ids.memory_bytes();
        OwnBytes { needed: needed.saturating_sub(FREE_BYTES), all: all.saturating_sub(FREE_BYTES) }
    }

    pub(super) fn last_envelope(&self) -> Option<&Envelope> {
        let last = self.history.back().map(|entry| &entry.event.envelope);
        last.or(self.last_envelope.as_deref())
    }

    /// Drops the oldest event from memory. The end of its output stays known.
    fn drop_oldest(&mut self) -> Option<HistoryEntry> {
        let entry = self.history.pop_front()?;
        self.dropped_ids.add(&entry.event.envelope.event_id);
        if let aaep::Payload::OutputStreaming(chunk) = &entry.event.payload {
            let key = text_key(entry.session, chunk);
            if chunk.complete {
                self.dropped_texts.remove(&key);
            } else {
                let end = chunk.position + chunk.chunk.chars().count() as u64;
                self.dropped_texts.insert(key, end);
            }
        } else if ends_session(&entry) {
            self.dropped_texts.clear();
        }
        if self.history.is_empty() {
            self.last_envelope = Some(Box::new(entry.event.envelope.clone()));
        }
        self.dropped_before = entry.order + 1;
        Some(entry)
    }

    /// Whether an output that was open at this index of the history began with chunks that were dropped. Some
    /// of its text may have been held, even if none of its chunks are left.
    fn misses_text_before(&self, begin: usize) -> bool {
        if self.dropped_texts.is_empty() {
            return false;
        }
        let ends = self.history.range(..begin).filter(|entry| ends_text(entry));
        let complete: BTreeSet<TextKey> = ends.filter_map(text_of).collect();
        !self.dropped_texts.keys().all(|key| complete.contains(key))
    }

    /// Whether an output other than that of `but_of` may have been open at a global order.
    pub(super) fn may_have_open_text_at(&self, order: u64, but_of: &HistoryEntry) -> bool {
        if self.dropped_before > order {
            return true;
        }
        let mut open: BTreeSet<TextKey> = self.dropped_texts.keys().cloned().collect();
        for entry in self.history.iter().take_while(|entry| entry.order < order) {
            if ends_session(entry) {
                open.clear();
            } else if let Some(key) = text_of(entry) {
                if ends_text(entry) {
                    open.remove(&key);
                } else {
                    open.insert(key);
                }
            }
        }
        let own = text_of(but_of);
        open.iter().any(|key| Some(key) != own.as_ref())
    }

    /// The end of one of its outputs before a global order. None if it is no longer known.
    pub(super) fn text_end_before(&self, key: &TextKey, order: u64) -> Option<u64> {
        let mut before = self.history.iter().rev().filter(|entry| entry.order < order);
        let end = before.find_map(|entry| match &entry.event.payload {
            aaep::Payload::OutputStreaming(chunk) if text_key(entry.session, chunk) == *key => {
                Some(chunk.position + chunk.chunk.chars().count() as u64)
            }
            _ => None,
        });
        let dropped = || self.dropped_texts.get(key).copied().unwrap_or(0);
        end.or_else(|| (self.dropped_before <= order).then(dropped))
    }
}

impl Engine {
    /// How many bytes the histories and the logs of audiences take.
    pub fn memory_bytes(&self) -> usize {
        self.holdings.bytes()
            + self.audiences.values().map(crate::audience::Audience::bytes).sum::<usize>()
    }

    /// Half of the budget is for histories, and half for the logs of audiences.
    fn history_bytes(&self) -> usize {
        self.config.memory_bytes / 2
    }

    /// How many bytes the logs of all audiences may take together.
    pub(super) fn log_bytes(&self) -> usize {
        self.config.memory_bytes / 2
    }

    /// Counts an event that was added to the history of its session.
    pub(super) fn hold(&mut self, entry: &HistoryEntry) {
        let Some(session) = self.sessions.get(entry.session) else { return };
        let (owner, is_long) = (session.owner(), session.history.len() > MAX_SESSION_EVENTS);
        self.holdings.hold(owner, entry);
        self.count_own_bytes(entry.session);
        if is_long {
            self.drop_oldest_of(entry.session);
        }
    }

    /// Drops the oldest events beyond the budget: first those of this principal beyond its share, then those
    /// of the principal that holds most.
    pub(super) fn trim_history(&mut self, owner: PrincipalNumber) {
        let share = self.config.memory_bytes_per_principal.min(self.history_bytes());
        let held = |engine: &Engine| engine.holdings.held.get(&owner).map_or(0, |it| it.bytes);
        while held(self) > share && self.drop_oldest_held(owner) {}
        while self.holdings.bytes > self.history_bytes() {
            let Some(most) = self.holdings.largest() else { return };
            if !self.drop_oldest_held(most) {
                return;
            }
        }
    }

    fn drop_oldest_held(&mut self, owner: PrincipalNumber) -> bool {
        let oldest = self.holdings.held.get(&owner).and_then(|it| it.events.first_key_value());
        let Some((_, session)) = oldest.map(|(order, session)| (*order, *session)) else {
            return false;
        };
        self.drop_oldest_of(session)
    }

    fn drop_oldest_of(&mut self, key: SessionKey) -> bool {
        let Some(session) = self.sessions.get_mut(key) else { return false };
        let owner = session.owner();
        let Some(entry) = session.drop_oldest() else { return false };
        self.sessions.forget_event(&entry.event.envelope.event_id);
        self.holdings.release(owner, &entry);
        self.holdings.dropped.note(&entry.tags, entry.order);
        self.count_own_bytes(key);
        true
    }

    /// Recounts what a session takes besides its history.
    fn count_own_bytes(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        let after = session.own_bytes();
        let before = std::mem::replace(&mut session.counted_bytes, after);
        if before != after {
            self.holdings.count_own(session.principal, before, after);
        }
    }

    /// The global order after the newest event of the sessions that left memory completely, among those that
    /// are heard.
    pub(super) fn gone_before(&self, hears: &HearingScope) -> u64 {
        self.holdings.gone.heard(hears).map_or(0, |order| order + 1)
    }

    /// Removes an ended session from memory. It stays in the store.
    pub(super) fn drop_ended_session(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get(key) else { return };
        if let Some(last) = session.history.back() {
            self.holdings.gone.note(&session.tags, last.order);
        }
        self.forget(key);
    }

    /// Removes a session from memory and from all indexes.
    pub(super) fn forget(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.remove(key) else { return };
        self.holdings.count_own(session.owner(), session.counted_bytes, OwnBytes::default());
        for entry in &session.history {
            self.holdings.release(session.owner(), entry);
        }
        let orders: Vec<u64> = session.history.iter().map(|entry| entry.order).collect();
        for audience in self.audiences.values_mut() {
            if audience.hears.includes(&session.tags) {
                audience.note_gone(&orders);
            }
        }
    }

    /// The histories are complete from this global order on, which is never before `from`.
    pub(super) fn past_from(&self, hears: &HearingScope, from: u64) -> u64 {
        self.holdings.dropped.heard(hears).map_or(from, |dropped| from.max(dropped + 1))
    }

    /// What the histories have of the sessions that are heard, never from before `from`.
    pub(super) fn past(&self, hears: &HearingScope, from: u64) -> PastEvents<'_> {
        let from = self.past_from(hears, from);
        let mut past = PastEvents { from, chunks: Vec::new(), entries: Vec::new(), is_exact: true };
        for session in self.sessions.values().filter(|session| hears.includes(&session.tags)) {
            let is_before = session.history.back().is_none_or(|last| last.order < from);
            if is_before && session.order.is_ended() {
                continue;
            }
            let begin = session.history.partition_point(|entry| entry.order < from);
            let is_text_or_ask =
                |entry: &&HistoryEntry| text_of(entry).is_some() || is_before_ask(&entry.event);
            past.chunks.extend(session.history.range(..begin).filter(is_text_or_ask));
            past.entries.extend(session.history.range(begin..));
            past.is_exact &= !session.misses_text_before(begin);
        }
        self.work.count_events(past.chunks.len() + past.entries.len());
        past.entries.sort_unstable_by_key(|entry| entry.order);
        past
    }
}

impl Engine {
    /// After an event, drops what exceeds the budget and sessions that ended long enough ago.
    pub(super) fn trim_memory(&mut self, now: Now, entry: &HistoryEntry) {
        self.count_session(entry.session);
        if let Some(session) = self.sessions.get_mut(entry.session) {
            if session.order.is_ended() && session.ended_us.is_none() {
                session.ended_us = Some(now.monotonic_us);
                let leaves_us = now.monotonic_us.saturating_add(self.config.keep_ended_us);
                self.leaving.push_back((leaves_us, entry.session));
            }
            let owner = session.owner();
            self.trim_history(owner);
        }
        while let Some((at, key)) = self.leaving.front().copied()
            && at <= now.monotonic_us
        {
            self.leaving.pop_front();
            self.drop_ended_session(key);
        }
    }
}

fn ends_session(entry: &HistoryEntry) -> bool {
    entry.event.event_type().core().is_some_and(aaep::CoreType::is_terminal)
}

fn ends_text(entry: &HistoryEntry) -> bool {
    matches!(&entry.event.payload, aaep::Payload::OutputStreaming(chunk) if chunk.complete)
}

/// The output of which an event is a chunk.
fn text_of(entry: &HistoryEntry) -> Option<TextKey> {
    match &entry.event.payload {
        aaep::Payload::OutputStreaming(chunk) => Some(text_key(entry.session, chunk)),
        _ => None,
    }
}
