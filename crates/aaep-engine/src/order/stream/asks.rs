//! The questions of a recorded session, and which of them were accepted (§6.3.4, §6.4, ruling 18).
//!
//! Each question is decided once, by whatever comes first in the stream. A reply's own timestamp is
//! not looked at (ruling 13). Whether the person who replied was allowed to is not known here.

use std::collections::{BTreeMap, BTreeSet};

use aaep::event::human::{AwaitingConfirmation, Decision};
use aaep::extension::{Outcome, Resolution};
use aaep::reply::ConfirmationReply;
use aaep::{Event, ReplyToken};

use crate::order::{Grant, GrantedBy};

/// About how much memory one question takes, its token kept three times and the name of a tool.
const BYTES_EACH: usize = 832;

/// A question. One that is decided stays, so that it is not counted twice.
#[derive(Debug)]
struct Ask {
    /// When the default applies, in microseconds since 1970 began.
    expires_us: i64,
    default_is_accept: bool,
    accept_is_allowed: bool,
    is_decided: bool,
    /// What an accept by reply allows.
    grant: Grant,
}

/// The questions of a session.
#[derive(Debug, Default)]
pub(super) struct Asks {
    asks: BTreeMap<ReplyToken, Ask>,
    /// Those that are not decided, by when their default applies.
    pending: BTreeSet<(i64, ReplyToken)>,
}

impl Asks {
    /// A question was asked. A token that comes a second time changes nothing (§6.2.2).
    ///
    /// A question that may be prolonged is not taken as over before its maximum: a hub tells when it
    /// is.
    pub(super) fn ask(&mut self, event: &Event, asked: &AwaitingConfirmation, most_seconds: u64) {
        let token = &asked.reply_token;
        if self.asks.contains_key(token) {
            return;
        }
        let asked_us = event.envelope.timestamp.unix_us();
        let timeout_s = i64::try_from(asked.timeout_seconds.max(most_seconds)).unwrap_or(i64::MAX);
        let expires_us = asked_us.saturating_add(timeout_s.saturating_mul(1_000_000));
        let allows = |replies: &Vec<String>| replies.iter().any(|it| it == "accept");
        let ask = Ask {
            expires_us,
            default_is_accept: asked.default_decision == Decision::Accept,
            accept_is_allowed: asked.allowed_replies.as_ref().is_none_or(allows),
            is_decided: false,
            grant: Grant::asked_by(event, GrantedBy::Reply),
        };
        self.pending.insert((expires_us, token.clone()));
        self.asks.insert(token.clone(), ask);
    }

    /// Applies the default of each question whose time has run out; what that accepts.
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

    /// A person replied; what that accepts.
    ///
    /// A reply that changes the action counts as it says: whether the producer can do that is not
    /// known here, and nobody is accused on a guess (ruling 15).
    pub(super) fn reply(&mut self, reply: &ConfirmationReply) -> Option<Grant> {
        let accepts = reply.decision == Decision::Accept;
        let counts = |ask: &Ask| ask.accept_is_allowed || !accepts;
        let is_valid = self.asks.get(&reply.reply_token).is_some_and(counts);
        let grant = if is_valid { self.decide(&reply.reply_token) } else { None };
        grant.filter(|_| accepts)
    }

    /// A hub says how a question was settled; what that accepts. Its subscriber may not have been
    /// asked itself (ruling 1), so the question need not be known.
    pub(super) fn resolve(&mut self, notice: &Event, resolution: &Resolution) -> Option<Grant> {
        let granted_by = GrantedBy::from(&resolution.decided_by);
        let unknown = Ask {
            expires_us: i64::MAX,
            default_is_accept: false,
            accept_is_allowed: true,
            is_decided: false,
            grant: Grant::unseen(&notice.envelope.producer.agent_id, granted_by),
        };
        self.asks.entry(resolution.reply_token.clone()).or_insert(unknown);
        let grant = self.decide(&resolution.reply_token)?;
        (resolution.outcome == Outcome::Accept).then_some(Grant { granted_by, ..grant })
    }

    pub(super) fn tokens(&self) -> impl Iterator<Item = &ReplyToken> {
        self.asks.keys()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.asks.len() * BYTES_EACH
    }

    /// Decides a question; what an accept of it allows. None if it was decided before or never asked.
    fn decide(&mut self, token: &ReplyToken) -> Option<Grant> {
        let ask = self.asks.get_mut(token).filter(|ask| !ask.is_decided)?;
        ask.is_decided = true;
        self.pending.remove(&(ask.expires_us, token.clone()));
        Some(ask.grant.clone())
    }
}
