//! The open asks, and the indexes by which the engine finds them; also the tokens of asks that are settled.
//!
//! All indexes change together, here and nowhere else. Nothing here decides anything about an ask.

use std::collections::{BTreeMap, BTreeSet};

use aaep::ReplyToken;

use super::super::shares::UsedTokens;
use crate::ask::PendingAsk;
use crate::io::{HearingScope, PrincipalNumber};
use crate::keys::SessionKey;

/// The open asks.
#[derive(Debug, Default)]
pub(in crate::engine) struct AskTable {
    asks: BTreeMap<ReplyToken, PendingAsk>,
    /// By global order, which is shorter than a token.
    by_order: BTreeMap<u64, ReplyToken>,
    /// By when they are due: for their default, or to announce how much time is left.
    by_due_us: BTreeSet<(u64, ReplyToken)>,
    /// By session. Most sessions have none.
    by_session: BTreeMap<SessionKey, BTreeSet<ReplyToken>>,
    /// For each tag, the global orders of the asks that subscribers with that tag hear.
    by_tag: BTreeMap<String, BTreeSet<u64>>,
    used: UsedTokens,
}

impl AskTable {
    pub(in crate::engine) fn get(&self, token: &ReplyToken) -> Option<&PendingAsk> {
        self.asks.get(token)
    }

    /// An ask, to change it. If that changes when it is due, call [`AskTable::file`] afterwards.
    pub(in crate::engine) fn get_mut(&mut self, token: &ReplyToken) -> Option<&mut PendingAsk> {
        self.asks.get_mut(token)
    }

    /// The ask with this global order.
    pub(super) fn at_order(&self, order: u64) -> Option<&PendingAsk> {
        self.by_order.get(&order).and_then(|token| self.asks.get(token))
    }

    pub(super) fn at_order_mut(&mut self, order: u64) -> Option<&mut PendingAsk> {
        self.by_order.get(&order).and_then(|token| self.asks.get_mut(token))
    }

    pub(super) fn token_at_order(&self, order: u64) -> Option<&ReplyToken> {
        self.by_order.get(&order)
    }

    pub(in crate::engine) fn contains(&self, token: &ReplyToken) -> bool {
        self.asks.contains_key(token)
    }

    pub(in crate::engine) fn len(&self) -> usize {
        self.asks.len()
    }

    /// All open asks with their tokens, in no useful order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ReplyToken, &PendingAsk)> {
        self.asks.iter()
    }

    /// The tokens of the open asks of a session.
    pub(super) fn in_session(&self, session: SessionKey) -> impl Iterator<Item = &ReplyToken> {
        self.by_session.get(&session).into_iter().flatten()
    }

    pub(in crate::engine) fn has_any_in(&self, session: SessionKey) -> bool {
        self.by_session.contains_key(&session)
    }

    /// The global orders of the asks that are heard, found without looking at any others.
    pub(super) fn heard_by(&self, hears: &HearingScope) -> Vec<u64> {
        match hears {
            HearingScope::All => self.by_order.keys().copied().collect(),
            HearingScope::Tagged(tags) => {
                let by_tag = tags.iter().filter_map(|tag| self.by_tag.get(tag));
                by_tag.flatten().copied().collect::<BTreeSet<u64>>().into_iter().collect()
            }
        }
    }

    /// Adds an ask to all indexes.
    pub(super) fn insert(&mut self, token: &ReplyToken, ask: PendingAsk) {
        self.by_order.insert(ask.order, token.clone());
        for tag in ask.tags.iter() {
            if let Some(orders) = self.by_tag.get_mut(tag) {
                orders.insert(ask.order);
            } else {
                self.by_tag.insert(tag.to_owned(), [ask.order].into());
            }
        }
        self.by_session.entry(ask.session).or_default().insert(token.clone());
        self.asks.insert(token.clone(), ask);
        self.file(token);
    }

    /// Removes an ask from all indexes.
    pub(super) fn remove(&mut self, token: &ReplyToken) -> Option<PendingAsk> {
        let ask = self.asks.remove(token)?;
        self.by_order.remove(&ask.order);
        for tag in ask.tags.iter() {
            if let Some(orders) = self.by_tag.get_mut(tag) {
                orders.remove(&ask.order);
                if orders.is_empty() {
                    self.by_tag.remove(tag);
                }
            }
        }
        if let Some(filed_us) = ask.filed_us {
            self.by_due_us.remove(&(filed_us, token.clone()));
        }
        if let Some(tokens) = self.by_session.get_mut(&ask.session) {
            tokens.remove(token);
            if tokens.is_empty() {
                self.by_session.remove(&ask.session);
            }
        }
        Some(ask)
    }

    /// Files an ask under the moment when it is next due.
    pub(super) fn file(&mut self, token: &ReplyToken) {
        let Some(ask) = self.asks.get_mut(token) else { return };
        let next_us = ask.next_us();
        if ask.filed_us == Some(next_us) {
            return;
        }
        if let Some(before) = ask.filed_us.replace(next_us) {
            self.by_due_us.remove(&(before, token.clone()));
        }
        self.by_due_us.insert((next_us, token.clone()));
    }

    /// When the next ask is due.
    pub(in crate::engine) fn next_due_us(&self) -> Option<u64> {
        self.by_due_us.first().map(|(at_us, _)| *at_us)
    }

    /// The asks that are due by now, in the order of their tokens and not of their times, so that late timers change
    /// nothing. Each has to be filed again.
    pub(super) fn take_due(&mut self, now_us: u64) -> Vec<ReplyToken> {
        let mut due = Vec::new();
        while let Some((at_us, _)) = self.by_due_us.first()
            && *at_us <= now_us
            && let Some((_, token)) = self.by_due_us.pop_first()
        {
            if let Some(ask) = self.asks.get_mut(&token) {
                ask.filed_us = None;
            }
            due.push(token);
        }
        due.sort_unstable();
        due
    }

    /// Whether an ask with this token was settled.
    pub(in crate::engine) fn was_used(&self, token: &ReplyToken) -> bool {
        self.used.contains(token)
    }

    /// Marks a token as used. `principal` is the one that asked, if known.
    pub(in crate::engine) fn mark_used(
        &mut self,
        principal: Option<PrincipalNumber>,
        token: &ReplyToken,
    ) {
        self.used.add(principal, token);
    }
}
