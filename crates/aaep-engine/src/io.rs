//! What goes into the engine and what comes out: closed lists, no callbacks.

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep::handshake::{
    SubscriptionAccepted, SubscriptionClose, SubscriptionRejected, SubscriptionRenegotiate,
    SubscriptionRequest,
};
use aaep::reply::{ClarificationReply, ConfirmationReply, Response};
use aaep::{Event, EventId, ReplyToken, SessionId, SubscriptionId};

use crate::audience::ListenerKey;
use crate::frame::Frame;
use crate::order::OrderViolation;
use crate::terms::Door;

/// An agent, by the number that the caller gave it: who may speak in a session and hears its answers.
pub type AgentKey = u64;

/// A person or program that was let in, by the number that the caller gave it (ruling 14).
pub type Principal = u64;

/// Whom a listener may hear: the rest does not exist for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hears {
    /// Every agent.
    #[default]
    All,
    /// These agents.
    Agents(Arc<BTreeSet<AgentKey>>),
}

impl Hears {
    /// Whether it may hear this agent.
    pub fn includes(&self, agent: AgentKey) -> bool {
        match self {
            Hears::All => true,
            Hears::Agents(agents) => agents.contains(&agent),
        }
    }
}

/// Where a listener wants to go on (ruling 20).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resume {
    /// Its earlier subscription, which the new one takes the place of. Only it knows what was held
    /// and merged; without it, a listener with a rate or a pace cannot go on exactly.
    pub subscription_id: Option<SubscriptionId>,
    /// The last event that it got.
    pub last_event_id: Option<EventId>,
}

/// Something happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// An agent offers an event. The caller has read it strictly; what the agent left out was filled
    /// in with [`crate::Engine::fill`].
    Publish {
        /// Which agent.
        agent: AgentKey,
        /// The event.
        event: Box<Event>,
    },
    /// An agent no longer needs an answer (§6.8).
    Withdraw {
        /// Which agent.
        agent: AgentKey,
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
    /// A listener wants other terms (§5.7).
    Renegotiate {
        /// Who says so.
        principal: Principal,
        /// What they want.
        change: Box<SubscriptionRenegotiate>,
    },
    /// A listener leaves for good (§5.8).
    Close {
        /// Who says so.
        principal: Principal,
        /// What they said.
        message: Box<SubscriptionClose>,
    },
    /// The connection of a listener broke; it may come back (ruling 4).
    Disconnect {
        /// Whose.
        listener: ListenerKey,
    },
    /// A listener is back on its subscription (ruling 20).
    Reconnect {
        /// Who says so.
        principal: Principal,
        /// The subscription.
        subscription_id: SubscriptionId,
        /// The last event that it got.
        last_event_id: Option<EventId>,
    },
    /// The wire of a listener takes nothing for now.
    Block {
        /// Whose.
        listener: ListenerKey,
    },
    /// It takes something again.
    Unblock {
        /// Whose.
        listener: ListenerKey,
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
    /// A listener has presented a question to the person (`docs/extension.md`, as those below).
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

/// An event as it is part of history.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The agent whose session it is.
    pub agent: AgentKey,
    /// The event as it was taken in.
    pub event: Arc<Event>,
    /// Whether it is told to everyone at once, past filter and rate.
    pub is_urgent: bool,
    /// Who made it.
    pub author: Author,
    /// When it was taken in, on the clock of the hub, in microseconds since 1970 began.
    pub unix_us: i64,
}

/// Who made an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The agent.
    Agent,
    /// The engine, for the agent's listeners.
    Hub,
}

/// The time of a question as it is stored, by the clock of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskTimeRecord {
    /// The question.
    pub reply_token: ReplyToken,
    /// When its default applies; none while its time stands still.
    pub ends_unix_us: Option<i64>,
    /// How much time is left while it stands still; none while the question waits to be presented.
    pub left_us: Option<u64>,
    /// When it ends at the latest.
    pub limit_unix_us: i64,
    /// How often its time was changed.
    pub changes: u32,
}

/// A subscription as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscription {
    /// Its id.
    pub subscription_id: SubscriptionId,
    /// Whose it is.
    pub principal: Principal,
    /// Whether they may answer.
    pub may_reply: bool,
    /// Whom they may hear.
    pub hears: Hears,
    /// The version that the listener speaks.
    pub aaep_version: aaep::Version,
    /// All that was asked for so far.
    pub asked: aaep::Capabilities,
    /// Everything after this event was sent in its place, or everything ever, if there is none. It counts
    /// for those without a rate or a pace; for others it means nothing.
    pub in_order_after: Option<EventId>,
}

/// Something is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// The event stands; the agent is told when it is stored.
    Published {
        /// Which agent.
        agent: AgentKey,
        /// The event.
        event_id: EventId,
    },
    /// The event was refused; nothing of it remains.
    Refused {
        /// Which agent.
        agent: AgentKey,
        /// The event.
        event_id: EventId,
        /// Why.
        refusal: Refusal,
    },
    /// An event is part of a session's history: an agent's, or one that the engine made. To be
    /// stored before anyone is told that it stands.
    Record(Record),
    /// Until when a question can be answered, to be stored in place of what was stored of it before.
    Time(AskTimeRecord),
    /// A subscription to be stored, in place of an earlier one with its id.
    Remember(Box<Subscription>),
    /// A subscription is over and needs not be stored any more.
    Forget {
        /// Which one.
        subscription_id: SubscriptionId,
    },
    /// A subscription is there again after a stop; its listener is away until it comes back.
    Recovered {
        /// The listener, from now on.
        listener: ListenerKey,
        /// Its subscription.
        subscription_id: SubscriptionId,
    },
    /// An encoded event goes to these listeners.
    Deliver {
        /// The event, shared by all.
        frame: Arc<Frame>,
        /// To whom.
        to: Vec<ListenerKey>,
    },
    /// Terms were granted: the answer to a request or a renegotiation.
    Accepted {
        /// The listener, from now on.
        listener: ListenerKey,
        /// The message for it.
        message: Box<SubscriptionAccepted>,
    },
    /// A listener goes on where it was: the answer to a return, after the terms if it wanted some.
    Resumed {
        /// The listener.
        listener: ListenerKey,
        /// Whether it is told everything that it missed; if not, it is told so.
        is_complete: bool,
    },
    /// Terms were not granted. A listener that had some has none any more.
    Rejected {
        /// The listener that lost its terms; none for a new one.
        listener: Option<ListenerKey>,
        /// The message for it.
        message: Box<SubscriptionRejected>,
    },
    /// A subscription is over.
    Closed {
        /// Whose.
        listener: ListenerKey,
    },
    /// An answer to whoever said something about a subscription that is not theirs, or not there.
    NoSuchSubscription,
    /// The answer to a reply: whether it counted, and nothing else (ruling 12).
    Replied {
        /// Whether it was the reply that counts.
        is_accepted: bool,
    },
    /// The answer to who said something about the time of a question: whether it counts, and nothing
    /// else (ruling 12).
    TimeReplied {
        /// Whether it counts.
        is_accepted: bool,
    },
    /// An answer to an agent that withdrew a question that is not open, or not its own; which of the
    /// two, it does not learn.
    NoSuchAsk {
        /// Which agent.
        agent: AgentKey,
        /// The question that it named.
        reply_token: ReplyToken,
    },
    /// A question is settled: this is the agent's answer.
    Resolved {
        /// Which agent.
        agent: AgentKey,
        /// The question.
        reply_token: ReplyToken,
        /// How it was settled.
        resolution: Resolution,
        /// What settled it.
        decided_by: aaep::extension::DecidedBy,
    },
    /// For the audit log: what happened to questions and why, without leaving anything out.
    Audit(Audit),
}

/// How a question was settled.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolution {
    /// The action may happen, once.
    Accept,
    /// The action must not happen.
    Reject,
    /// What was answered.
    Answer(Response),
    /// The agent's own default answer applies.
    DefaultAnswer(String),
    /// Nobody answered and there is no default.
    NoAnswer,
    /// The agent does not need to know any more.
    Withdrawn,
}

/// Why an event was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It breaks the order of its session.
    Order(OrderViolation),
    /// The session belongs to another agent.
    NotYourSession,
    /// The token of the question was used before (§6.2.2).
    TokenUsed,
    /// Another question with this token is open.
    TokenOpen,
    /// It has data of our own extension with which only the hub says how questions were settled, or
    /// how something was delivered.
    SpeaksForTheHub,
    /// It has data of our own extension that an agent may state, but not here or not so: what to do
    /// instead.
    MisusesExtension(&'static str),
    /// Its timestamp is further from our clock than [`crate::MAX_CLOCK_DIFFERENCE_US`]: set the clock
    /// of the agent, or leave the timestamp out and the hub stamps the event.
    ClockDiffers {
        /// How far the timestamp is ahead of our clock, or behind it if negative.
        ahead_us: i64,
    },
    /// The same action waits for an answer already; wait for it, or withdraw it (§6.1).
    AlreadyAsked,
    /// There are too many open questions, sessions or events.
    TooMany(&'static str),
    /// An event with this id came before; the first one stands.
    Repeated,
}

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq)]
pub enum Audit {
    /// A question was asked.
    Asked {
        /// The question.
        reply_token: ReplyToken,
        /// In which session.
        session_id: SessionId,
        /// How many who can answer were told.
        told: usize,
    },
    /// Someone replied, and what became of it.
    Reply {
        /// The question that it names.
        reply_token: ReplyToken,
        /// Who replied.
        principal: Principal,
        /// Why it did not count; none if it did.
        refused: Option<ReplyRefusal>,
    },
    /// Someone said that a question was presented.
    Presented {
        /// The question that it names.
        reply_token: ReplyToken,
        /// Who said so.
        principal: Principal,
        /// How much time is left from now; 0 if it did not count.
        left_us: u64,
        /// Why it did not count; none if it did.
        refused: Option<ReplyRefusal>,
    },
    /// The time of a question started because someone is there for whom it does not wait.
    ClockStarted {
        /// The question.
        reply_token: ReplyToken,
    },
    /// Someone wanted more time.
    Extended {
        /// The question that it names.
        reply_token: ReplyToken,
        /// Who.
        principal: Principal,
        /// How much more they wanted.
        by_seconds: u64,
        /// How much time is left from now; 0 if it did not count.
        left_us: u64,
        /// Why it did not count; none if it did.
        refused: Option<ReplyRefusal>,
    },
    /// Someone wanted the time to stand still.
    Paused {
        /// The question that it names.
        reply_token: ReplyToken,
        /// Who.
        principal: Principal,
        /// How long it can stand still at most; 0 if it did not count.
        left_us: u64,
        /// Why it did not count; none if it did.
        refused: Option<ReplyRefusal>,
    },
    /// Someone let the time go on.
    Resumed {
        /// The question that it names.
        reply_token: ReplyToken,
        /// Who.
        principal: Principal,
        /// How much time is left from now; 0 if it did not count.
        left_us: u64,
        /// Why it did not count; none if it did.
        refused: Option<ReplyRefusal>,
    },
    /// A question was settled.
    Settled {
        /// The question.
        reply_token: ReplyToken,
        /// How.
        resolution: Resolution,
        /// By what.
        decided_by: aaep::extension::DecidedBy,
    },
}

/// Why a reply, or a wish for more time, did not count. Only the audit log hears it (§6.3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyRefusal {
    /// There is no such subscription, or it is somebody else's.
    NotYourSubscription,
    /// Whoever replied may listen but not answer.
    MayNotReply,
    /// No question has this token.
    UnknownToken,
    /// The question is settled.
    AlreadySettled,
    /// The time is over.
    TooLate,
    /// This subscription was not asked.
    NotAsked,
    /// The reply is of the wrong kind for the question.
    WrongKind,
    /// The decision or answer is not one that the question allows.
    NotAllowed,
    /// This subscription was not granted what it takes to change the time.
    NotGranted,
    /// The agent stated no maximum, so that its timeout stands.
    NoMaximum,
    /// The question is open until the agent's maximum already.
    AtMaximum,
    /// It was presented or paused before, or is not paused.
    NotNow,
    /// The time of the question was changed too often.
    TooManyChanges,
}
