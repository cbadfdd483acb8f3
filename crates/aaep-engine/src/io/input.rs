//! What can happen to the engine.

use aaep::handshake::{SubscriptionClose, SubscriptionRenegotiate, SubscriptionRequest};
use aaep::reply::{ClarificationReply, ConfirmationReply};
use aaep::{Event, EventId, ReplyToken, SessionId, SubscriptionId};

use super::{AgentTags, Hears, Principal};
use crate::audience::SubscriberKey;
use crate::terms::Door;

/// Something happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// An agent offers an event. The caller has read it strictly; what the agent left out was filled
    /// in with [`crate::Engine::fill`].
    Publish {
        /// Who speaks. A session belongs to the principal that began it.
        principal: Principal,
        /// What decides who hears the session; of its first event they count for the whole session.
        tags: AgentTags,
        /// The event.
        event: Box<Event>,
    },
    /// The hub itself has something to say in a session, to everyone who hears it, past filter and rate.
    Announce {
        /// The session.
        session_id: SessionId,
        /// What it says.
        words: String,
    },
    /// An agent no longer needs an answer (§6.8).
    Withdraw {
        /// Who asked.
        principal: Principal,
        /// The question.
        reply_token: ReplyToken,
    },
    /// Someone wants to listen.
    Subscribe {
        /// Who.
        principal: Principal,
        /// Whether they may, and if not why.
        door: Door,
        /// Whether they may answer questions.
        may_reply: bool,
        /// Whom they may hear.
        hears: Hears,
        /// What they want.
        request: Box<SubscriptionRequest>,
        /// Where they want to go on, if they were here before.
        resume: Option<Resume>,
    },
    /// A subscriber sends another request on the connection that it has. From here on these terms take
    /// the place of those that it had; nothing is told twice. If they are not granted, the ones that it
    /// had stay.
    Replace {
        /// Which subscriber.
        subscriber: SubscriberKey,
        /// Whether it may, and if not why.
        door: Door,
        /// What it wants.
        request: Box<SubscriptionRequest>,
    },
    /// A subscriber wants other terms (§5.7).
    Renegotiate {
        /// Who says so.
        principal: Principal,
        /// What they want.
        change: Box<SubscriptionRenegotiate>,
    },
    /// A subscriber leaves for good (§5.8).
    Close {
        /// Who says so.
        principal: Principal,
        /// What they said.
        message: Box<SubscriptionClose>,
    },
    /// The producer ends a subscription (§5.8).
    End {
        /// Whose.
        subscriber: SubscriberKey,
        /// Why.
        reason: EndReason,
    },
    /// The connection of a subscriber broke; it may come back (ruling 4).
    Disconnect {
        /// Whose.
        subscriber: SubscriberKey,
    },
    /// A subscriber is back on its subscription (ruling 20).
    Reconnect {
        /// Who says so.
        principal: Principal,
        /// The subscription.
        subscription_id: SubscriptionId,
        /// The last event that it got.
        last_event_id: Option<EventId>,
    },
    /// The wire of a subscriber takes nothing for now.
    Block {
        /// Whose.
        subscriber: SubscriberKey,
    },
    /// The wire of a subscriber, which takes nothing for now, gave back everything that came after this event: none
    /// of it was sent. It is told again when the wire takes something, what is urgent first.
    TakeBack {
        /// Whose.
        subscriber: SubscriberKey,
        /// The last event that was sent, or is being sent.
        last_event_id: EventId,
    },
    /// It takes something again, or has taken all that it was sent before [`Output::More`](super::Output::More).
    Unblock {
        /// Whose.
        subscriber: SubscriberKey,
    },
    /// A session that is over is deleted: nobody is told any of it any more, not who comes back and not who is
    /// behind, who hears that something is missing. One that runs stays.
    DeleteSession {
        /// Which session.
        session_id: SessionId,
    },
    /// The hub ends a session that runs: everyone hears so, and its questions are withdrawn.
    EndSession {
        /// Which session.
        session_id: SessionId,
        /// Why.
        why: SessionEnd,
    },
    /// Someone answers a confirmation.
    Confirm {
        /// Who.
        principal: Principal,
        /// The answer.
        reply: Box<ConfirmationReply>,
    },
    /// Someone answers a clarification.
    Clarify {
        /// Who.
        principal: Principal,
        /// The answer.
        reply: Box<ClarificationReply>,
    },
    /// A subscriber has presented a question to the person (`docs/extension.md`, as those below).
    Presented {
        /// Who says so.
        principal: Principal,
        /// The subscription on which the question came.
        subscription_id: SubscriptionId,
        /// The question.
        reply_token: ReplyToken,
    },
    /// Someone needs more time to answer.
    Extend {
        /// Who.
        principal: Principal,
        /// The subscription on which the question came.
        subscription_id: SubscriptionId,
        /// The question.
        reply_token: ReplyToken,
        /// How much more; what goes beyond the agent's maximum is cut.
        by_seconds: u64,
    },
    /// Someone wants the time to answer to stand still.
    Pause {
        /// Who.
        principal: Principal,
        /// The subscription on which the question came.
        subscription_id: SubscriptionId,
        /// The question.
        reply_token: ReplyToken,
    },
    /// The time to answer goes on after a pause.
    Resume {
        /// Who says so.
        principal: Principal,
        /// The subscription on which the question came.
        subscription_id: SubscriptionId,
        /// The question.
        reply_token: ReplyToken,
    },
    /// Time has passed.
    Tick,
}

/// Where a subscriber wants to go on (ruling 20).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resume {
    /// Its earlier subscription, which the new one takes the place of. Only it knows what was held
    /// and merged; without it, a subscriber with a rate or a pace cannot go on exactly.
    pub subscription_id: Option<SubscriptionId>,
    /// The last event that it got.
    pub last_event_id: Option<EventId>,
}

/// Why the hub ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// Nothing was heard of its agent for so long, and it is not there.
    Silent {
        /// How long.
        after_us: u64,
    },
    /// Someone who looks after the hub said so.
    ByHand,
}

/// Why a producer ends a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// It stops. A hub says so when it stops, without ending the subscription: who comes back when it runs again goes on
    /// where it was.
    ProducerShutdown,
    /// Whoever listens may not any more.
    AccessEnded,
    /// What the subscriber may do has changed, such as whether it may answer.
    PermissionChanged,
    /// The subscriber took too little for too long.
    TooSlow,
    /// It was away, and a newer subscription of the same principal needed its place.
    GaveWay,
}

impl EndReason {
    /// As machines name it, of the form that [`aaep::ReasonName`] demands.
    pub fn code(self) -> &'static str {
        match self {
            EndReason::ProducerShutdown => "producer_shutdown",
            EndReason::AccessEnded => "access_ended",
            EndReason::PermissionChanged => "permission_changed",
            EndReason::TooSlow => "too_slow",
            EndReason::GaveWay => "gave_way",
        }
    }

    /// As people are told, with what they can do.
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
