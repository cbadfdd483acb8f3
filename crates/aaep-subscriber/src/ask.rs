//! An ask that waits for a person, as an object that a program can hold.

use std::sync::Arc;
use std::time::Duration;

use aaep::event::human::{AwaitingClarification, AwaitingConfirmation, Decision};
use aaep::extension::{AskOutcome, DecidedBy};
use aaep::reply::Response;
use aaep::{Event, Payload, ReplyToken, SessionId};
use aaep_engine::subscriber::{ClarificationDetails, ConfirmationDetails, WhyWithdrawn};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::command::{DoneSender, KitAnswer, TaskCommand, TimeRequest};
use crate::error::SayError;

/// A confirmation or a clarification that waits for a person. All clones refer to the same ask.
///
/// The kit applies no default. If nobody answers in time, the producer decides, as the ask itself says.
#[derive(Debug, Clone)]
pub struct Ask {
    pub(crate) reply_token: ReplyToken,
    pub(crate) event: Arc<Event>,
    pub(crate) can_reply: bool,
    pub(crate) standing: watch::Receiver<AskStanding>,
    pub(crate) commands: mpsc::Sender<TaskCommand>,
}

/// The state of an ask, and its deadline.
#[derive(Debug, Clone)]
pub(crate) struct AskStanding {
    pub(crate) state: AskState,
    pub(crate) deadline: Instant,
    pub(crate) is_paused: bool,
}

/// The state of an ask.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AskState {
    /// The ask waits for the person.
    Open,
    /// The ask waits for the person, but the link is broken, so it may already have been settled. An answer is
    /// held until the link is back.
    Unreached,
    /// The person's answer was sent. The producer has not reported the outcome yet.
    Answered,
    /// The person's answer was sent, but the link broke or the producer reported an error before it reported the
    /// outcome, so it is not known whether the answer counts. The answer is not sent again. If the producer reports
    /// more, the state changes again.
    Unknown,
    /// The ask was settled, by the person's own answer or otherwise.
    Resolved {
        /// How it ended.
        outcome: AskOutcome,
        /// What decided it.
        decided_by: DecidedBy,
    },
    /// The ask was withdrawn.
    Withdrawn(WhyWithdrawn),
    /// Nobody answered in time; the producer's default applies.
    Expired,
    /// The kit dropped the ask because there were too many.
    Forgotten,
}

impl AskState {
    /// Whether this state cannot change any more.
    pub fn is_final(&self) -> bool {
        !matches!(
            self,
            AskState::Open | AskState::Unreached | AskState::Answered | AskState::Unknown
        )
    }

    /// Whether the person can still answer.
    pub fn is_open(&self) -> bool {
        matches!(self, AskState::Open | AskState::Unreached)
    }
}

impl Ask {
    /// The event that carries the ask.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// All words to present before the person answers: the action or the question, and everything that a decision
    /// needs ([`Event::words`]). This is foreign text: pass it through `aaep::printable` before you write it to a
    /// terminal.
    pub fn words(&self) -> String {
        self.event.words().into_owned()
    }

    /// The confirmation that is asked for, if this is a confirmation.
    pub fn confirmation(&self) -> Option<&AwaitingConfirmation> {
        match &self.event.payload {
            Payload::AwaitingConfirmation(asked) => Some(asked),
            _ => None,
        }
    }

    /// The clarification that is asked for, if this is a clarification.
    pub fn clarification(&self) -> Option<&AwaitingClarification> {
        match &self.event.payload {
            Payload::AwaitingClarification(asked) => Some(asked),
            _ => None,
        }
    }

    /// The session of the agent that asks.
    pub fn session_id(&self) -> &SessionId {
        &self.event.envelope.session_id
    }

    /// The reply token of the ask. It is never a credential.
    pub fn reply_token(&self) -> &ReplyToken {
        &self.reply_token
    }

    /// Whether the terms that were in force when the ask arrived let this subscriber answer.
    pub fn can_reply(&self) -> bool {
        self.can_reply
    }

    /// The current state of the ask.
    pub fn state(&self) -> AskState {
        self.standing.borrow().state.clone()
    }

    /// How much time is left to answer.
    pub fn remaining(&self) -> Duration {
        let standing = self.standing.borrow();
        if standing.state.is_open() {
            standing.deadline.saturating_duration_since(Instant::now())
        } else {
            Duration::ZERO
        }
    }

    /// Whether the time to answer is paused.
    pub fn is_paused(&self) -> bool {
        self.standing.borrow().is_paused
    }

    /// Waits until the ask is no longer open, for example to remove a prompt while the person thinks. Sending the
    /// person's own answer also closes it.
    pub async fn closed(&self) -> AskState {
        self.wait(|state| !state.is_open()).await
    }

    /// Waits until the outcome of the ask is known. If the subscription ends before that, returns
    /// [`AskState::Unknown`].
    pub async fn settled(&self) -> AskState {
        self.wait(AskState::is_final).await
    }

    async fn wait(&self, is_it: impl Fn(&AskState) -> bool) -> AskState {
        let mut standing = self.standing.clone();
        let found = standing.wait_for(|standing| is_it(&standing.state)).await;
        let state = found.map(|standing| standing.state.clone());
        state.unwrap_or_else(|_| self.state())
    }

    /// Sends the person's consent. Returns when the reply is on its way; [`Ask::settled`] tells the
    /// outcome.
    ///
    /// While the link is broken, this waits until the link is back, at most until the time to answer is over.
    /// Dropping the future takes the answer back, unless it is already on its way.
    pub async fn accept(&self) -> Result<(), SayError> {
        self.decide(Decision::Accept, ConfirmationDetails::default()).await
    }

    /// Sends the person's refusal; otherwise like [`Ask::accept`].
    pub async fn reject(&self) -> Result<(), SayError> {
        self.decide(Decision::Reject, ConfirmationDetails::default()).await
    }

    /// Sends the person's decision with details; otherwise like [`Ask::accept`].
    pub async fn decide(
        &self,
        decision: Decision,
        details: ConfirmationDetails,
    ) -> Result<(), SayError> {
        self.reply(KitAnswer::Confirmation(decision, details)).await
    }

    /// Answers a clarification; otherwise like [`Ask::accept`].
    pub async fn answer(&self, response: Response) -> Result<(), SayError> {
        self.answer_with(response, ClarificationDetails::default()).await
    }

    /// Answers a clarification with details; otherwise like [`Ask::accept`].
    pub async fn answer_with(
        &self,
        response: Response,
        details: ClarificationDetails,
    ) -> Result<(), SayError> {
        self.reply(KitAnswer::Clarification(response, details)).await
    }

    /// Reports that the ask was spoken to the person or is on the display.
    pub async fn presented(&self) -> Result<(), SayError> {
        self.time(TimeRequest::Presented).await
    }

    /// Requests this many more seconds for the person. [`News::AskTimeChanged`](crate::News::AskTimeChanged)
    /// tells how many were granted.
    pub async fn extend(&self, by_seconds: u64) -> Result<(), SayError> {
        self.time(TimeRequest::Extend { by_seconds }).await
    }

    /// Requests that the time to answer be paused.
    pub async fn pause(&self) -> Result<(), SayError> {
        self.time(TimeRequest::Pause).await
    }

    /// Requests that the time to answer continue after a pause.
    pub async fn resume(&self) -> Result<(), SayError> {
        self.time(TimeRequest::Resume).await
    }

    async fn reply(&self, answer: KitAnswer) -> Result<(), SayError> {
        let (token, answer) = (self.reply_token.clone(), Box::new(answer));
        say(&self.commands, |done| TaskCommand::Reply { token, answer, done }).await
    }

    async fn time(&self, request: TimeRequest) -> Result<(), SayError> {
        let token = self.reply_token.clone();
        say(&self.commands, |done| TaskCommand::Time { token, request, done }).await
    }
}

/// Sends a command to the task and waits until the resulting message is on its way.
pub(crate) async fn say(
    commands: &mpsc::Sender<TaskCommand>,
    command: impl FnOnce(DoneSender) -> TaskCommand,
) -> Result<(), SayError> {
    let (done, was_done) = oneshot::channel();
    commands.send(command(done)).await.map_err(|_| SayError::Ended)?;
    was_done.await.unwrap_or(Err(SayError::Ended))
}
