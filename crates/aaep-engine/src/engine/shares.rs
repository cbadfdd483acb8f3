//! How much each principal may take of what all share: running sessions, open asks and used tokens
//! (ruling 38).
//!
//! A principal at its limit is refused, and nobody else is affected. Nothing here ends or forgets
//! anything by itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aaep::{Event, ReplyToken};

use super::{Engine, MAX_OPEN_ASKS, MAX_SESSIONS, MAX_USED_TOKENS};
use crate::audience::SessionKey;
use crate::io::{PrincipalNumber, Refusal};
use crate::weight::weight;

/// How many used tokens of one principal are remembered.
const MAX_USED_TOKENS_EACH: usize = MAX_USED_TOKENS / 16;

/// One part in this many of the sessions and of the open asks is reserved for principals that have none.
const KEPT_FREE: usize = 8;

/// What one principal takes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct PrincipalShare {
    sessions: usize,
    asks: usize,
    ask_bytes: usize,
}

/// What each principal takes.
#[derive(Debug, Default)]
pub(crate) struct SharesByPrincipal(BTreeMap<PrincipalNumber, PrincipalShare>);

impl SharesByPrincipal {
    fn of(&self, principal: PrincipalNumber) -> PrincipalShare {
        self.0.get(&principal).copied().unwrap_or_default()
    }

    fn running_sessions(&self) -> usize {
        self.0.values().map(|share| share.sessions).sum()
    }

    fn change(&mut self, principal: PrincipalNumber, change: impl FnOnce(&mut PrincipalShare)) {
        let share = self.0.entry(principal).or_default();
        change(share);
        if *share == PrincipalShare::default() {
            self.0.remove(&principal);
        }
    }
}

/// The tokens of settled asks, the newest of each principal.
#[derive(Debug, Default)]
pub(crate) struct UsedTokens {
    known: BTreeSet<ReplyToken>,
    by_principal: BTreeMap<Option<PrincipalNumber>, VecDeque<ReplyToken>>,
}

impl UsedTokens {
    pub(super) fn contains(&self, token: &ReplyToken) -> bool {
        self.known.contains(token)
    }

    /// Marks a token as used. `principal` is the one that asked, if known.
    pub(super) fn add(&mut self, principal: Option<PrincipalNumber>, token: &ReplyToken) {
        if !self.known.insert(token.clone()) {
            return;
        }
        let own = self.by_principal.entry(principal).or_default();
        own.push_back(token.clone());
        let most = if principal.is_some() { MAX_USED_TOKENS_EACH } else { MAX_USED_TOKENS };
        let oldest = if own.len() > most {
            own.pop_front()
        } else if self.known.len() > MAX_USED_TOKENS {
            let most = self.by_principal.values_mut().max_by_key(|tokens| tokens.len());
            most.and_then(VecDeque::pop_front)
        } else {
            None
        };
        if let Some(oldest) = oldest {
            self.known.remove(&oldest);
        }
    }
}

impl Engine {
    /// Whether a principal may open one more ask.
    pub(super) fn check_ask_share(
        &self,
        principal: PrincipalNumber,
        event: &Event,
    ) -> Result<(), Refusal> {
        let share = self.shares.of(principal);
        let kept_free = if share.asks == 0 { 0 } else { MAX_OPEN_ASKS / KEPT_FREE };
        if self.asks.len() >= MAX_OPEN_ASKS - kept_free {
            return Err(Refusal::TooMany("open questions"));
        }
        let most_bytes = self.config.memory_bytes_per_principal / 4;
        let bytes = share.ask_bytes + weight(event);
        if share.asks >= self.config.asks_per_principal || bytes > most_bytes {
            return Err(Refusal::OverShare("open questions"));
        }
        Ok(())
    }

    /// Whether a principal may begin one more session.
    pub(super) fn check_session_share(&self, principal: PrincipalNumber) -> Result<(), Refusal> {
        let share = self.shares.of(principal);
        if share.sessions >= self.config.sessions_per_principal {
            return Err(Refusal::OverShare("running sessions"));
        }
        let kept_free = if share.sessions == 0 { 0 } else { MAX_SESSIONS / KEPT_FREE };
        if self.shares.running_sessions() >= MAX_SESSIONS - kept_free {
            return Err(Refusal::TooMany("sessions"));
        }
        Ok(())
    }

    /// Whether the running sessions of a principal may remember more ids and names. Unlike histories, these
    /// cannot leave memory before the sessions end.
    pub(super) fn check_own_bytes(&self, principal: PrincipalNumber) -> Result<(), Refusal> {
        let most = self.config.memory_bytes_per_principal / 2;
        if self.holdings.needed_bytes(principal) > most {
            return Err(Refusal::OverShare("tools and outputs in running sessions"));
        }
        Ok(())
    }

    /// Updates the count of running sessions when a session starts or ends.
    pub(super) fn count_session(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        let is_running = !session.order.is_ended();
        if std::mem::replace(&mut session.is_counted, is_running) == is_running {
            return;
        }
        self.shares.change(session.principal, |share| {
            share.sessions =
                if is_running { share.sessions + 1 } else { share.sessions.saturating_sub(1) };
        });
    }

    /// Updates the count of open asks when an ask is opened or settled.
    pub(super) fn count_ask(&mut self, principal: PrincipalNumber, event: &Event, is_open: bool) {
        let bytes = weight(event);
        self.shares.change(principal, |share| {
            if is_open {
                share.asks += 1;
                share.ask_bytes += bytes;
            } else {
                share.asks = share.asks.saturating_sub(1);
                share.ask_bytes = share.ask_bytes.saturating_sub(bytes);
            }
        });
    }
}
