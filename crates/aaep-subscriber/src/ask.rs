//! A question that waits for a person, as an object.

use std::sync::Arc;
use std::time::Duration;

use aaep::event::human::{AwaitingClarification, AwaitingConfirmation, Decision};
use aaep::extension::{DecidedBy, Outcome};
use aaep::reply::Response;
use aaep::{Event, Payload, ReplyToken, SessionId};
use aaep_engine::subscriber::{ClarificationDetails, ConfirmationDetails, WhyWithdrawn};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::command::{Answer, Command, Done, TimeWish};
use crate::error::SayError;

/// A question that waits for a person. Clones are the same question.
///
/// It has no default: what is not answered is decided by the producer when time is over, as the question
/// itself says.
#[derive(Debug, Clone)]
pub struct Ask {
    pub(crate) reply_token: ReplyToken,
    pub(crate) event: Arc<Event>,
    pub(crate) can_reply: bool,
    pub(crate) standing: watch::Receiver<Standing>,
    pub(crate) commands: mpsc::Sender<Command>,
}

/// How a question stands, and until when.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) state: AskState,
    pub(crate) deadline: Instant,
    pub(crate) is_paused: bool,
}

/// How a question stands.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AskState {
    /// It waits for the person.
    Open,
    /// It waits for the person, and the line is broken: it may have been settled meanwhile. An answer waits
    /// until the line is back.
    Unreached,
    /// The person's answer was sent. The producer has not said yet what came of it.
    Answered,
    /// The person's answer was sent, and the line broke or the producer complained before it said what came
    /// of it. The answer is not sent again. If the producer says more, the state changes once more.
    Unknown,
    /// It was settled, by the person's own answer or otherwise.
    Resolved {
        /// How it ended.
        outcome: Outcome,
        /// What decided it.
        decided_by: DecidedBy,
    },
    /// It is no longer asked.
    Withdrawn(WhyWithdrawn),
    /// Nobody answered in time; the producer's default applies.
    Expired,
    /// It was given up because there were too many.
    Forgotten,
}

impl AskState {
    /// Whether nothing more comes of it.
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
    /// The event with the question.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The words to present before the person answers, whole: the action or the question, and everything that a
    /// decision needs ([`Event::words`]). Foreign text: `aaep::printable` makes it fit for a terminal.
    pub fn words(&self) -> String {
        self.event.words().into_owned()
    }

    /// What is to be confirmed, if it is a confirmation.
    pub fn confirmation(&self) -> Option<&AwaitingConfirmation> {
        match &self.event.payload {
            Payload::AwaitingConfirmation(asked) => Some(asked),
            _ => None,
        }
    }

    /// What is to be answered, if it is a clarification.
    pub fn clarification(&self) -> Option<&AwaitingClarification> {
        match &self.event.payload {
            Payload::AwaitingClarification(asked) => Some(asked),
            _ => None,
        }
    }

    /// The session that asks.
    pub fn session_id(&self) -> &SessionId {
        &self.event.envelope.session_id
    }

    /// The token of the question. Never a credential.
    pub fn reply_token(&self) -> &ReplyToken {
        &self.reply_token
    }

    /// Whether the terms let this subscriber answer, as they were when the question came.
    pub fn can_reply(&self) -> bool {
        self.can_reply
    }

    /// How the question stands now.
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

    /// Whether the time to answer stands still.
    pub fn is_paused(&self) -> bool {
        self.standing.borrow().is_paused
    }

    /// Waits until the question is no longer open, such as while the person thinks. An answer of theirs that
    /// was sent ends it as well.
    pub async fn closed(&self) -> AskState {
        self.wait(|state| !state.is_open()).await
    }

    /// Waits until it is known what became of the question. If the subscription ends before, it is never
    /// known, and [`AskState::Unknown`] is what comes.
    pub async fn settled(&self) -> AskState {
        self.wait(AskState::is_final).await
    }

    async fn wait(&self, is_it: impl Fn(&AskState) -> bool) -> AskState {
        let mut standing = self.standing.clone();
        let found = standing.wait_for(|standing| is_it(&standing.state)).await;
        let state = found.map(|standing| standing.state.clone());
        state.unwrap_or_else(|_| self.state())
    }

    /// The person consents. Comes back when the reply is on its way; [`Ask::settled`] says what came of it.
    ///
    /// While the line is broken it waits, at most until time is over. Whoever stops waiting by dropping the
    /// future takes the answer back unless it is on its way.
    pub async fn accept(&self) -> Result<(), SayError> {
        self.decide(Decision::Accept, ConfirmationDetails::default()).await
    }

    /// The person does not consent; otherwise as [`Ask::accept`].
    pub async fn reject(&self) -> Result<(), SayError> {
        self.decide(Decision::Reject, ConfirmationDetails::default()).await
    }

    /// The person decides, and says more about it; otherwise as [`Ask::accept`].
    pub async fn decide(
        &self,
        decision: Decision,
        details: ConfirmationDetails,
    ) -> Result<(), SayError> {
        self.reply(Answer::Confirmation(decision, details)).await
    }

    /// The person answers a clarification; otherwise as [`Ask::accept`].
    pub async fn answer(&self, response: Response) -> Result<(), SayError> {
        self.answer_with(response, ClarificationDetails::default()).await
    }

    /// The person answers a clarification, and more is said about it; otherwise as [`Ask::accept`].
    pub async fn answer_with(
        &self,
        response: Response,
        details: ClarificationDetails,
    ) -> Result<(), SayError> {
        self.reply(Answer::Clarification(response, details)).await
    }

    /// The question was spoken to the person, or stands on the display.
    pub async fn presented(&self) -> Result<(), SayError> {
        self.time(TimeWish::Presented).await
    }

    /// The person needs so many seconds more. A [`News::AskTimeChanged`](crate::News::AskTimeChanged) says
    /// what was granted.
    pub async fn extend(&self, by_seconds: u64) -> Result<(), SayError> {
        self.time(TimeWish::Extend { by_seconds }).await
    }

    /// The person wants the time to answer to stand still.
    pub async fn pause(&self) -> Result<(), SayError> {
        self.time(TimeWish::Pause).await
    }

    /// The time to answer goes on after a pause.
    pub async fn resume(&self) -> Result<(), SayError> {
        self.time(TimeWish::Resume).await
    }

    async fn reply(&self, answer: Answer) -> Result<(), SayError> {
        let (token, answer) = (self.reply_token.clone(), Box::new(answer));
        say(&self.commands, |done| Command::Reply { token, answer, done }).await
    }

    async fn time(&self, wish: TimeWish) -> Result<(), SayError> {
        let token = self.reply_token.clone();
        say(&self.commands, |done| Command::Time { token, wish, done }).await
    }
}

/// Tells the task something and waits until it is on its way.
pub(crate) async fn say(
    commands: &mpsc::Sender<Command>,
    command: impl FnOnce(Done) -> Command,
) -> Result<(), SayError> {
    let (done, was_done) = oneshot::channel();
    commands.send(command(done)).await.map_err(|_| SayError::Ended)?;
    was_done.await.unwrap_or(Err(SayError::Ended))
}
