//! What a program wants of the task that keeps its subscription.

use aaep::event::human::Decision;
use aaep::reply::Response;
use aaep::{Capabilities, ReplyToken, SessionId};
use aaep_engine::subscriber::{ClarificationDetails, ConfirmationDetails};
use tokio::sync::oneshot;

use crate::error::SayError;

/// How many commands may wait. Past it, whoever says something waits.
pub(crate) const MAX_WAITING_COMMANDS: usize = 64;

/// Who waits to know whether something was said.
pub(crate) type Done = oneshot::Sender<Result<(), SayError>>;

#[derive(Debug)]
pub(crate) enum Command {
    Reply { token: ReplyToken, answer: Box<Answer>, done: Done },
    Time { token: ReplyToken, wish: TimeWish, done: Done },
    Instruct { instruction: Instruction, done: Done },
    Renegotiate { capabilities: Box<Capabilities>, done: Done },
    Close { reason: Option<String>, done: Done },
}

/// What a person tells an agent (`docs/extension.md`). No agent is forced, and nothing of it answers a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instruction {
    /// To begin something, in the person's words; the agent that the hub prompts by default if none is named.
    Prompt {
        /// The agent.
        agent_id: Option<String>,
        /// What the person wants.
        text: String,
    },
    /// To stop what it does in this session.
    Cancel {
        /// The session.
        session_id: SessionId,
    },
    /// To go on in another way in this session.
    Steer {
        /// The session.
        session_id: SessionId,
        /// What the person wants.
        text: String,
    },
}

/// The person's answer.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Confirmation(Decision, ConfirmationDetails),
    Clarification(Response, ClarificationDetails),
}

/// What a person wants of the time to answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TimeWish {
    Presented,
    Extend { by_seconds: u64 },
    Pause,
    Resume,
}
