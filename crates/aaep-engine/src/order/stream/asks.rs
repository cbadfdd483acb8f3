//! The asks of a recorded session, and which of them were accepted (§6.3.4, §6.4, ruling 18).
//!
//! Each ask is decided once, by the first decision in the stream. The timestamp of a reply is
//! ignored (ruling 13). Whether the replying person was allowed to answer is not known here.

use std::collections::{BTreeMap, BTreeSet};

use aaep::event::human::{AwaitingConfirmation, Decision};
use aaep::extension::{AskOutcome, Resolution};
use aaep::reply::ConfirmationReply;
use aaep::{Event, ReplyToken};

use crate::order::{Grant, GrantedBy};

/// About how much memory one ask takes, including three copies of its token and a tool name.
const BYTES_EACH: usize = 832;

/// An ask of the stream. A decided ask stays, so that it is not counted twice.
#[derive(Debug)]
struct StreamAsk {
    /// When the default applies, in microseconds since 1970 began.
    expires_us: i64,
    default_is_accept: bool,
    accept_is_allowed: bool,
    is_decided: bool,
    /// What an accept by a reply allows.
    grant: Grant,
}

/// The asks of one recorded session.
#[derive(Debug, Default)]
pub(super) struct StreamAsks {
    asks: BTreeMap<ReplyToken, StreamAsk>,
    /// The asks that are not decided, by the time at which their default applies.
    pending: BTreeSet<(i64, ReplyToken)>,
}

impl StreamAsks {
    /// Records an ask. A token that comes a second time changes nothing (§6.2.2).
    ///
    /// An ask that may be extended does not expire here before its maximum; a hub announces the
    /// end.
    pub(super) fn ask(&mut self, event: &Event, asked: &AwaitingConfirmation, most_seconds: u64) {
        let token = &asked.reply_token;
        if self.asks.contains_key(token) {
            return;
        }
        let asked_us = event.envelope.timestamp.unix_us();
        let timeout_s = i64::try_from(asked.timeout_seconds.max(most_seconds)).unwrap_or(i64::MAX);
        let expires_us = asked_us.saturating_add(timeout_s.saturating_mul(1_000_000));
        let allows = |replies: &Vec<String>| replies.iter().any(|it| it == "accept");
        let ask = StreamAsk {
            expires_us,
            default_is_accept: asked.default_decision == Decision::Accept,
            accept_is_allowed: asked.allowed_replies.as_ref().is_none_or(allows),
            is_decided: false,
            grant: Grant::asked_by(event, GrantedBy::Reply),
        };
        self.pending.insert((expires_us, token.clone()));
        self.asks.insert(token.clone(), ask);
    }

    /// Applies the default of each ask whose time is up, and returns what that accepts.
    pub(super) fn expire(&mut self, now_us: i64) -> Vec<Grant> {
        let mut accepted = Vec::new();
        while let Some((expires_us, _)) = self.pending.first()
            && *expires_us <= now_us
            && let Some((_, token)) = self.pending.pop_first()
        {
            if let Some(ask) = self.asks.get_mut(&token) {
                ask.is_decided = true;
                if ask.default_is_accept {
                    accepted.push(Grant { granted_by: GrantedBy::Default, ..ask.grant.clone() });
                }
            }
        }
        accepted
    }

    /// Records the reply of a person, and returns what it accepts.
    ///
    /// A reply that modifies the action counts as stated: whether the producer supports that is not
    /// known here, and nobody is accused on a guess (ruling 15).
    pub(super) fn reply(&mut self, reply: &ConfirmationReply) -> Option<Grant> {
        let accepts = reply.decision == Decision::Accept;
        let counts = |ask: &StreamAsk| ask.accept_is_allowed || !accepts;
        let is_valid = self.asks.get(&reply.reply_token).is_some_and(counts);
        let grant = if is_valid { self.decide(&reply.reply_token) } else { None };
        grant.filter(|_| accepts)
    }

    /// Records how a hub settled an ask, and returns what that accepts. The subscriber may not have
    /// been sent the ask itself (ruling 1), so the ask may be unknown.
    pub(super) fn resolve(&mut self, notice: &Event, resolution: &Resolution) -> Option<Grant> {
        let granted_by = GrantedBy::from(&resolution.decided_by);
        let unknown = StreamAsk {
            expires_us: i64::MAX,
            default_is_accept: false,
            accept_is_allowed: true,
            is_decided: false,
            grant: Grant::unseen(&notice.envelope.producer.agent_id, granted_by),
        };
        self.asks.entry(resolution.reply_token.clone()).or_insert(unknown);
        let grant = self.decide(&resolution.reply_token)?;
        (resolution.outcome == AskOutcome::Accept).then_some(Grant { granted_by, ..grant })
    }

    pub(super) fn tokens(&self) -> impl Iterator<Item = &ReplyToken> {
        self.asks.keys()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.asks.len() * BYTES_EACH
    }

    /// Decides an ask, and returns what an accept allows. `None` if it was decided before or never
    /// asked.
    fn decide(&mut self, token: &ReplyToken) -> Option<Grant> {
        let ask = self.asks.get_mut(token).filter(|ask| !ask.is_decided)?;
        ask.is_decided = true;
        self.pending.remove(&(ask.expires_us, token.clone()));
        Some(ask.grant.clone())
    }
}
