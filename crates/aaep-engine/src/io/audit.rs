//! Entries for the audit log: everything that happened to open asks, without omission. That an ask
//! was made and how it was settled are outputs of their own.

use aaep::ReplyToken;

use super::PrincipalNumber;

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq)]
pub enum Audit {
    /// A subscriber replied; the entry says whether the reply counted.
    Reply {
        /// The token that the reply names.
        reply_token: ReplyToken,
        /// The principal that replied.
        principal: PrincipalNumber,
        /// Who decided, according to the reply (§6.3.2): a person, or one of the person's rules.
        /// Untrusted text.
        decided_by: Option<String>,
        /// Why the reply did not count; `None` if it did.
        refused: Option<ReplyRefusal>,
    },
    /// A subscriber reported that it presented an ask.
    Presented {
        /// The token that the report names.
        reply_token: ReplyToken,
        /// The principal that reported it.
        principal: PrincipalNumber,
        /// How much time is left from now; 0 if the report did not count.
        left_us: u64,
        /// Why the report did not count; `None` if it did.
        refused: Option<ReplyRefusal>,
    },
    /// The clock of an ask started because a subscriber is connected for which it does not wait.
    ClockStarted {
        /// The token of the ask.
        reply_token: ReplyToken,
    },
    /// A subscriber requested more time.
    Extended {
        /// The token that the request names.
        reply_token: ReplyToken,
        /// The principal that requested it.
        principal: PrincipalNumber,
        /// How much more time was requested.
        by_seconds: u64,
        /// How much time is left from now; 0 if the request did not count.
        left_us: u64,
        /// Why the request did not count; `None` if it did.
        refused: Option<ReplyRefusal>,
    },
    /// A subscriber requested a pause.
    Paused {
        /// The token that the request names.
        reply_token: ReplyToken,
        /// The principal that requested it.
        principal: PrincipalNumber,
        /// How long the clock can stay paused at most; 0 if the request did not count.
        left_us: u64,
        /// Why the request did not count; `None` if it did.
        refused: Option<ReplyRefusal>,
    },
    /// A subscriber ended a pause.
    Resumed {
        /// The token that the request names.
        reply_token: ReplyToken,
        /// The principal that requested it.
        principal: PrincipalNumber,
        /// How much time is left from now; 0 if the request did not count.
        left_us: u64,
        /// Why the request did not count; `None` if it did.
        refused: Option<ReplyRefusal>,
    },
}

/// Why a reply, or a request for more time, did not count. Only the audit log records this
/// (§6.3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyRefusal {
    /// The subscription does not exist, or belongs to another principal.
    NotYourSubscription,
    /// The principal may listen but not answer.
    MayNotReply,
    /// No ask has this token.
    UnknownToken,
    /// The ask is already settled.
    AlreadySettled,
    /// The principal that made the ask may not answer it (ruling 37).
    OwnAsk,
    /// The time is up.
    TooLate,
    /// By its own timestamp, the reply was decided after the time was up (ruling 13).
    StampedLate,
    /// This subscription was not sent the ask.
    NotAsked,
    /// The reply is of the wrong kind for the ask.
    WrongKind,
    /// The ask does not allow this decision or answer.
    NotAllowed,
    /// A rule accepted what only a person may accept (ruling 35).
    NotByRule,
    /// The terms of this subscription do not allow it to change the time.
    NotGranted,
    /// The agent stated no maximum, so its timeout stands.
    NoMaximum,
    /// The ask is already open until the agent's maximum.
    AtMaximum,
    /// The ask was presented or paused before, or is not paused.
    NotNow,
    /// The time of the ask was changed too often.
    TooManyChanges,
}
