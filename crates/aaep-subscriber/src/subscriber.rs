//! A subscription as a program holds it.

use std::pin::Pin;
use std::task::{Context, Poll};

use aaep::Capabilities;
use tokio::sync::{mpsc, oneshot};

use crate::ask::say;
use crate::command::{Instruction, MAX_WAITING_COMMANDS, TaskCommand};
use crate::dial::Dial;
use crate::error::{ConnectError, SayError};
use crate::news::News;
use crate::task::{MAX_WAITING_NEWS, SubscriptionTask};
use crate::wishes::Wishes;

/// A subscription that survives broken connections. Dropping it closes the subscription.
///
/// A program that does not ask for news slows the producer down; nothing is dropped.
#[derive(Debug)]
pub struct Subscriber {
    news: mpsc::Receiver<News>,
    voice: Voice,
}

/// Sends on a subscription, from anywhere in the program. It does not keep the subscription open.
#[derive(Debug, Clone)]
pub struct Voice {
    commands: mpsc::Sender<TaskCommand>,
}

/// Subscribes over links that the caller's [`Dial`] opens. Must be called within a tokio runtime.
pub async fn connect_with(dial: impl Dial, wishes: Wishes) -> Result<Subscriber, ConnectError> {
    let (news_sender, news) = mpsc::channel(MAX_WAITING_NEWS);
    let (commands, commands_receiver) = mpsc::channel(MAX_WAITING_COMMANDS);
    let (ready, is_ready) = oneshot::channel();
    let hands = (commands.downgrade(), commands_receiver);
    tokio::spawn(SubscriptionTask::new(dial, wishes, news_sender, hands, ready)?.run());
    let subscriber = Subscriber { news, voice: Voice { commands } };
    // Dropping this future drops the subscriber, which ends the task.
    is_ready.await.unwrap_or(Err(ConnectError::NoAnswer))?;
    Ok(subscriber)
}

impl Subscriber {
    /// The next piece of news; `None` after [`News::Ended`]. Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }

    /// Another handle for sending.
    pub fn voice(&self) -> Voice {
        self.voice.clone()
    }

    /// Requests other terms, as [`Voice::renegotiate`] does.
    pub async fn renegotiate(&self, capabilities: Capabilities) -> Result<(), SayError> {
        self.voice.renegotiate(capabilities).await
    }

    /// Closes the subscription, as [`Voice::close`] does.
    pub async fn close(&self, reason: Option<String>) -> Result<(), SayError> {
        self.voice.close(reason).await
    }
}

impl Voice {
    /// Sends a person's instruction to an agent, if the agent accepts instructions. [`News::Instructed`] or
    /// [`News::Refused`] tells the result.
    pub async fn instruct(&self, instruction: Instruction) -> Result<(), SayError> {
        say(&self.commands, |done| TaskCommand::Instruct { instruction, done }).await
    }

    /// Requests other terms (§5.7); only the named capabilities change. [`News::TermsChanged`] tells what was
    /// granted; a producer that rejects the request ends the subscription.
    pub async fn renegotiate(&self, capabilities: Capabilities) -> Result<(), SayError> {
        let capabilities = Box::new(capabilities);
        say(&self.commands, |done| TaskCommand::Renegotiate { capabilities, done }).await
    }

    /// Closes the subscription, with a reason for people if there is one. [`News::Ended`] is the last news.
    pub async fn close(&self, reason: Option<String>) -> Result<(), SayError> {
        say(&self.commands, |done| TaskCommand::Close { reason, done }).await
    }
}

impl futures_core::Stream for Subscriber {
    type Item = News;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<News>> {
        self.news.poll_recv(context)
    }
}
