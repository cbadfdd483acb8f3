//! What the audit log hears of questions and answers, without leaving anything out.

use aaep::{ReplyToken, SessionId};

use super::{Principal, Resolution};

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
        /// Who decided, as the reply says it (§6.3.2): a person, or a rule of theirs. Foreign text.
        decided_by: Option<String>,
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
    /// The principal that asked may not answer (ruling 37).
    OwnAsk,
    /// The time is over.
    TooLate,
    /// By its own timestamp, it was decided after the time was over (ruling 13).
    StampedLate,
    /// This subscription was not asked.
    NotAsked,
    /// The reply is of the wrong kind for the question.
    WrongKind,
    /// The decision or answer is not one that the question allows.
    NotAllowed,
    /// A rule accepted what only a person may accept (ruling 35).
    NotByRule,
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
