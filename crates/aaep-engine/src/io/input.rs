//! Everything that can happen to the engine.

use aaep::handshake::{SubscriptionClose, SubscriptionRenegotiate, SubscriptionRequest};
use aaep::reply::{ClarificationReply, ConfirmationReply};
use aaep::{Event, EventId, ReplyToken, SessionId, SubscriptionId};

use super::{AgentTags, HearingScope, PrincipalNumber};
use crate::audience::SubscriberKey;
use crate::terms::Door;

/// Something that happened, for the engine to handle.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineInput {
    /// An agent publishes an event. The caller has read it strictly and has filled in what the
    /// agent left out with [`crate::Engine::fill`].
    Publish {
        /// The principal that publishes. A session belongs to the principal that began it.
        principal: PrincipalNumber,
        /// The tags that decide which subscribers hear the session. Those of its first event count
        /// for the whole session.
        tags: AgentTags,
        /// The event.
        event: Box<Event>,
    },
    /// The hub announces something in a session to everyone who hears it, past filters and rates.
    Announce {
        /// The session.
        session_id: SessionId,
        /// The text of the announcement.
        words: String,
    },
    /// An agent no longer needs an answer (§6.8).
    Withdraw {
        /// The principal that asked.
        principal: PrincipalNumber,
        /// The token of the ask.
        reply_token: ReplyToken,
    },
    /// A subscriber requests a subscription.
    Subscribe {
        /// The principal of the subscriber.
        principal: PrincipalNumber,
        /// Whether it may subscribe, and if not, why.
        door: Door,
        /// Whether it may answer asks.
        may_reply: bool,
        /// Which agents it may hear.
        hears: HearingScope,
        /// The handshake request.
        request: Box<SubscriptionRequest>,
        /// Where to continue, if it was subscribed before.
        resume: Option<ResumePoint>,
    },
    /// A subscriber sends another request on its connection. From here on the new terms replace the
    /// old ones, and nothing is sent twice. If the new terms are not granted, the old ones stay.
    Replace {
        /// The subscriber.
        subscriber: SubscriberKey,
        /// Whether it may subscribe, and if not, why.
        door: Door,
        /// The handshake request.
        request: Box<SubscriptionRequest>,
    },
    /// A subscriber requests other terms (§5.7).
    Renegotiate {
        /// The principal of the subscriber.
        principal: PrincipalNumber,
        /// The requested change.
        change: Box<SubscriptionRenegotiate>,
    },
    /// A subscriber leaves for good (§5.8).
    Close {
        /// The principal of the subscriber.
        principal: PrincipalNumber,
        /// The message from the subscriber.
        message: Box<SubscriptionClose>,
    },
    /// The producer ends a subscription (§5.8).
    End {
        /// The subscriber.
        subscriber: SubscriberKey,
        /// The reason for the subscriber.
        reason: EndReason,
    },
    /// The connection of a subscriber broke; it may come back (ruling 4).
    Disconnect {
        /// The subscriber.
        subscriber: SubscriberKey,
    },
    /// A subscriber reconnects to its subscription (ruling 20).
    Reconnect {
        /// The principal of the subscriber.
        principal: PrincipalNumber,
        /// The subscription.
        subscription_id: SubscriptionId,
        /// The last event that it received.
        last_event_id: Option<EventId>,
    },
    /// The wire of a subscriber accepts nothing for now.
    Block {
        /// The subscriber.
        subscriber: SubscriberKey,
    },
    /// A blocked wire returned everything after this event unsent. The engine sends it again when
    /// the wire accepts data, critical events first.
    TakeBack {
        /// The subscriber.
        subscriber: SubscriberKey,
        /// The last event that was sent or is being sent.
        last_event_id: EventId,
    },
    /// The wire of a subscriber accepts data again, or has taken everything that was sent before
    /// [`Output::More`](super::Output::More).
    Unblock {
        /// The subscriber.
        subscriber: SubscriberKey,
    },
    /// Deletes an ended session. It is no longer delivered to anyone; subscribers that reconnect or
    /// lag behind are told that something is missing. A running session is not deleted.
    DeleteSession {
        /// The session.
        session_id: SessionId,
    },
    /// The hub ends a running session. Everyone is told, and its asks are withdrawn.
    EndSession {
        /// The session.
        session_id: SessionId,
        /// Why the hub ends it.
        why: SessionEnd,
    },
    /// A subscriber answers a confirmation.
    Confirm {
        /// The principal that answers.
        principal: PrincipalNumber,
        /// The reply.
        reply: Box<ConfirmationReply>,
    },
    /// A subscriber answers a clarification.
    Clarify {
        /// The principal that answers.
        principal: PrincipalNumber,
        /// The reply.
        reply: Box<ClarificationReply>,
    },
    /// A subscriber has presented an ask to the person (`docs/extension.md`, like those below).
    Presented {
        /// The principal of the subscriber.
        principal: PrincipalNumber,
        /// The subscription on which the ask arrived.
        subscription_id: SubscriptionId,
        /// The token of the ask.
        reply_token: ReplyToken,
    },
    /// A subscriber requests more time to answer.
    Extend {
        /// The principal of the subscriber.
        principal: PrincipalNumber,
        /// The subscription on which the ask arrived.
        subscription_id: SubscriptionId,
        /// The token of the ask.
        reply_token: ReplyToken,
        /// How much more time; anything beyond the agent's maximum is cut off.
        by_seconds: u64,
    },
    /// A subscriber requests that the time to answer be paused.
    Pause {
        /// The principal of the subscriber.
        principal: PrincipalNumber,
        /// The subscription on which the ask arrived.
        subscription_id: SubscriptionId,
        /// The token of the ask.
        reply_token: ReplyToken,
    },
    /// A subscriber ends a pause.
    Resume {
        /// The principal of the subscriber.
        principal: PrincipalNumber,
        /// The subscription on which the ask arrived.
        subscription_id: SubscriptionId,
        /// The token of the ask.
        reply_token: ReplyToken,
    },
    /// The hub stops in an orderly way. It stores what the engine says, and handles nothing after this.
    Stop,
    /// Time has passed.
    Tick,
}

/// Where a subscriber wants to continue (ruling 20).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResumePoint {
    /// Its earlier subscription, which the new one replaces. Only that subscription knows what was
    /// held back and merged. Without it, a subscriber with a rate or a pace cannot continue
    /// exactly.
    pub subscription_id: Option<SubscriptionId>,
    /// The last event that it received.
    pub last_event_id: Option<EventId>,
}

/// Why the hub ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// Its agent is not connected and has sent nothing for a long time.
    Silent {
        /// How long the agent was silent.
        after_us: u64,
    },
    /// An administrator of the hub ended it.
    ByHand,
}

/// Why a producer ends a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The producer stops. A hub announces this without ending the subscription: a subscriber that
    /// reconnects to the restarted hub continues where it was.
    ProducerShutdown,
    /// The subscriber may not listen any more.
    AccessEnded,
    /// What the subscriber may do has changed, such as whether it may answer.
    PermissionChanged,
    /// The subscriber accepted too little data for too long.
    TooSlow,
    /// The subscriber was away, and a newer subscription of the same principal needed its slot.
    GaveWay,
}

impl EndReason {
    /// The reason for machines, in the form that [`aaep::ReasonName`] demands.
    pub fn code(self) -> &'static str {
        match self {
            EndReason::ProducerShutdown => "producer_shutdown",
            EndReason::AccessEnded => "access_ended",
            EndReason::PermissionChanged => "permission_changed",
            EndReason::TooSlow => "too_slow",
            EndReason::GaveWay => "gave_way",
        }
    }

    /// The reason for people, with what they can do.
    pub fn words(self) -> &'static str {
        match self {
            EndReason::ProducerShutdown => {
                "The producer stops. It can be heard again when it is back."
            }
            EndReason::AccessEnded => {
                "Listening here is no longer allowed with these credentials. Use others, or ask \
                 whoever runs the producer for access."
            }
            EndReason::PermissionChanged => {
                "What this program may do here has changed. Subscribe again."
            }
            EndReason::TooSlow => {
                "Too much was waiting for this subscriber for too long. Subscribe again, perhaps with \
                 a lower max_events_per_second."
            }
            EndReason::GaveWay => {
                "It was away, and a newer subscription needed its place. Subscribe again."
            }
        }
    }
}
