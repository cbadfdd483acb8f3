//! Commands from the program to the task that keeps its subscription.

use aaep::event::human::Decision;
use aaep::reply::Response;
use aaep::{Capabilities, ReplyToken, SessionId};
use aaep_engine::subscriber::{ClarificationDetails, ConfirmationDetails};
use tokio::sync::oneshot;

use crate::error::SayError;

/// How many commands may be pending. When the queue is full, the caller waits.
pub(crate) const MAX_WAITING_COMMANDS: usize = 64;

/// Reports back to the caller whether the message was sent.
pub(crate) type DoneSender = oneshot::Sender<Result<(), SayError>>;

#[derive(Debug)]
pub(crate) enum TaskCommand {
    Reply { token: ReplyToken, answer: Box<KitAnswer>, done: DoneSender },
    Time { token: ReplyToken, request: TimeRequest, done: DoneSender },
    Instruct { instruction: Instruction, done: DoneSender },
    Renegotiate { capabilities: Box<Capabilities>, done: DoneSender },
    Close { reason: Option<String>, done: DoneSender },
}

/// An instruction from the person to an agent (`docs/extension.md`). An agent may refuse it, and it never answers
/// an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instruction {
    /// Start something, in the person's words. If no agent is named, the hub prompts its default agent.
    Prompt {
        /// The agent.
        agent_id: Option<String>,
        /// What the person wants.
        text: String,
    },
    /// Stop what the agent does in this session.
    Cancel {
        /// The session.
        session_id: SessionId,
    },
    /// Continue differently in this session.
    Steer {
        /// The session.
        session_id: SessionId,
        /// What the person wants.
        text: String,
    },
}

/// The person's answer to an ask.
#[derive(Debug, Clone)]
pub(crate) enum KitAnswer {
    Confirmation(Decision, ConfirmationDetails),
    Clarification(Response, ClarificationDetails),
}

/// A request that concerns the time to answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TimeRequest {
    Presented,
    Extend { by_seconds: u64 },
    Pause,
    Resume,
}
