//! A subscription as the engine keeps it: its terms, how far its subscriber is, and where it can start again.

use std::sync::Arc;

use aaep::{Capabilities, EventId, SubscriptionId};

use super::asks::SubscriberAsks;
use super::delivery_state::SubscriberDelivery;
use crate::ids::IdDigest;
use crate::io::{HearingScope, PrincipalNumber};
use crate::member::{Cursor, CursorSnapshot, DeliveryLimits, LastSent};
use crate::terms::{AudienceKey, Terms};

/// One subscription. There may be very many, so common parts are shared.
#[derive(Debug)]
pub(crate) struct AudienceMember {
    pub(crate) id: SubscriptionId,
    pub(crate) principal: PrincipalNumber,
    pub(crate) may_reply: bool,
    pub(crate) delivery: SubscriberDelivery,
    pub(crate) agreed: Arc<SubscriptionTerms>,
    pub(crate) limits: Option<Box<DeliveryLimits>>,
    pub(crate) cursor: Cursor,
    /// What it missed since it connected, for the summaries to mention.
    pub(crate) missing: Option<Box<MissedEvents>>,
    /// Where its subscription started.
    pub(crate) start: SubscriptionStart,
    /// Every event after this one was sent in order. Used only without rate and pace.
    pub(crate) in_order_after: Option<EventId>,
    /// The asks that it was sent.
    pub(crate) asked: SubscriberAsks,
    /// How many summaries it was sent.
    pub(crate) summaries: u64,
    /// While it is away, the global order from which on it will need the log of its audience.
    pub(crate) needs_from: u64,
    /// The last event that was sent before the connection broke, if it was sent in order.
    pub(crate) sent_last: Option<Box<SentLast>>,
    /// The event that it was sent last before it began to receive every unit at once.
    pub(crate) last_sent: LastSent,
}

/// The last event that a subscriber was sent in order. It identifies the position even after the log has
/// dropped the event.
#[derive(Debug)]
pub(crate) struct SentLast {
    /// The position after the event.
    pub(crate) at: u64,
    /// The ids that the event may have had.
    pub(crate) ids: [IdDigest; 2],
}

/// Events that a subscriber missed and that can no longer be delivered.
#[derive(Debug)]
pub(crate) struct MissedEvents {
    /// The event after which they are missing, if known.
    pub(crate) after: Option<EventId>,
}

/// Where to restart a subscriber that reconnects without having received anything.
#[derive(Debug)]
pub(crate) enum SubscriptionStart {
    /// At the event with this global order.
    AtOrder(u64),
    /// Where an earlier subscription left off.
    AtSnapshot(Box<CursorSnapshot>),
    /// Before the hub stopped. What was sent before this global order is not known.
    BeforeStop(u64),
}

impl SubscriptionStart {
    /// What was sent before this global order is not known, or was nothing.
    pub(crate) fn known_from(&self) -> u64 {
        match self {
            SubscriptionStart::AtOrder(order) | SubscriptionStart::BeforeStop(order) => *order,
            SubscriptionStart::AtSnapshot(_) => 0,
        }
    }
}

/// The capabilities that were requested and the terms that were granted. Shared by all subscribers that
/// requested the same.
#[derive(Debug, PartialEq)]
pub(crate) struct SubscriptionTerms {
    pub(crate) asked: Capabilities,
    pub(crate) terms: Terms,
    pub(crate) hears: HearingScope,
    /// The audience that these terms belong to.
    pub(crate) audience: AudienceKey,
}

impl SubscriptionTerms {
    pub(crate) fn new(asked: Capabilities, terms: Terms, hears: HearingScope) -> Self {
        let audience = terms.audience_key().restricted_to(&hears);
        SubscriptionTerms { asked, terms, hears, audience }
    }
}
