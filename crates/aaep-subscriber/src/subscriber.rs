//! A subscription as a program holds it.

use std::pin::Pin;
use std::task::{Context, Poll};

use aaep::Capabilities;
use tokio::sync::{mpsc, oneshot};

use crate::ask::say;
use crate::command::{Command, Instruction, MAX_WAITING_COMMANDS};
use crate::dial::Dial;
use crate::error::{ConnectError, SayError};
use crate::news::News;
use crate::task::{MAX_WAITING_NEWS, Task};
use crate::wishes::Wishes;

/// A subscription that stays. Dropping it says goodbye to the producer.
///
/// A program that does not ask for news slows the producer; nothing is dropped for it.
#[derive(Debug)]
pub struct Subscriber {
    news: mpsc::Receiver<News>,
    voice: Voice,
}

/// Says something on a subscription, from wherever in the program. It does not keep the subscription.
#[derive(Debug, Clone)]
pub struct Voice {
    commands: mpsc::Sender<Command>,
}

/// Subscribes over lines that somebody else makes. Must be called within a tokio runtime.
pub async fn connect_with(dial: impl Dial, wishes: Wishes) -> Result<Subscriber, ConnectError> {
    let (news_sender, news) = mpsc::channel(MAX_WAITING_NEWS);
    let (commands, commands_receiver) = mpsc::channel(MAX_WAITING_COMMANDS);
    let (ready, is_ready) = oneshot::channel();
    let hands = (commands.downgrade(), commands_receiver);
    tokio::spawn(Task::new(dial, wishes, news_sender, hands, ready)?.run());
    let subscriber = Subscriber { news, voice: Voice { commands } };
    // Whoever stops waiting drops the subscriber, and the task ends.
    is_ready.await.unwrap_or(Err(ConnectError::NoAnswer))?;
    Ok(subscriber)
}

impl Subscriber {
    /// What is new; nothing after [`News::Ended`]. May be dropped while it waits; nothing is lost.
    pub async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }

    /// Another hand to say something with.
    pub fn voice(&self) -> Voice {
        self.voice.clone()
    }

    /// Asks for other terms, as [`Voice::renegotiate`] does.
    pub async fn renegotiate(&self, capabilities: Capabilities) -> Result<(), SayError> {
        self.voice.renegotiate(capabilities).await
    }

    /// Says goodbye, as [`Voice::close`] does.
    pub async fn close(&self, reason: Option<String>) -> Result<(), SayError> {
        self.voice.close(reason).await
    }
}

impl Voice {
    /// Tells an agent something that a person wants, where the agent accepts it. [`News::Instructed`] or
    /// [`News::Refused`] says what came of it.
    pub async fn instruct(&self, instruction: Instruction) -> Result<(), SayError> {
        say(&self.commands, |done| Command::Instruct { instruction, done }).await
    }

    /// Asks for other terms (§5.7); only what is named changes. [`News::TermsChanged`] says what was granted;
    /// a producer that refuses ends the subscription.
    pub async fn renegotiate(&self, capabilities: Capabilities) -> Result<(), SayError> {
        let capabilities = Box::new(capabilities);
        say(&self.commands, |done| Command::Renegotiate { capabilities, done }).await
    }

    /// Says goodbye, with a reason for people if there is one. [`News::Ended`] is the last thing that comes.
    pub async fn close(&self, reason: Option<String>) -> Result<(), SayError> {
        say(&self.commands, |done| Command::Close { reason, done }).await
    }
}

impl futures_core::Stream for Subscriber {
    type Item = News;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<News>> {
        self.news.poll_recv(context)
    }
}
