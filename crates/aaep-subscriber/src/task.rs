//! The loop that keeps a subscription: one link at a time, the rules, and the commands of the program.
//!
//! While news are pending for the program, nothing is read from the link, so that a slow program slows the
//! producer and loses nothing. Commands of the program are taken all the while.

mod asks;
mod hear;
mod link;
mod say;

use std::collections::VecDeque;
use std::future::Future;
use std::time::{Duration, SystemTime};

use aaep::SubscriptionId;
use aaep_engine::Now;
use aaep_engine::subscriber::{CannotAsk, SubscriberRules};
use aaep_transport::link::LinkEnd;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::backoff::RetryBackoff;
use crate::command::{DoneSender, TaskCommand};
use crate::dial::{Dial, DialFailure, Dialled};
use crate::error::ConnectError;
use crate::flood::FloodGuard;
use crate::news::{Ended, News};
use crate::reorder::ReorderBuffer;
use crate::wishes::Wishes;
use asks::KitAsks;
use link::{LinkState, LiveLink};
use say::{LinkStuck, PendingSend};

/// How many news may be pending for the program. Beyond that, nothing is read from the link.
pub const MAX_WAITING_NEWS: usize = 64;

/// How long the producer may take to answer a request.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the link may take to accept a message before it counts as broken.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a link must hold before the backoff starts over.
pub const SETTLED_AFTER: Duration = Duration::from_secs(5);

/// How long closing may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// Keeps one subscription.
pub(crate) struct SubscriptionTask<D> {
    wishes: Wishes,
    rules: SubscriberRules,
    began: Instant,
    link: LinkState<D>,
    news: mpsc::Sender<News>,
    /// News that the program has not taken yet. At most one message is processed while it is not empty.
    waiting: VecDeque<News>,
    commands: mpsc::Receiver<TaskCommand>,
    asks: KitAsks,
    sending: Option<PendingSend>,
    reorder: ReorderBuffer,
    flood: FloodGuard,
    backoff: RetryBackoff,
    /// The last granted subscription, to be resumed.
    before: Option<SubscriptionId>,
    /// Whether the producer no longer knows that subscription.
    is_lost: bool,
    /// The reason with which the program closed, and the channel that confirms it.
    goodbye: Option<(Option<String>, DoneSender)>,
    /// Reports the first subscription, or why there is none, to `connect`.
    ready: Option<oneshot::Sender<Result<(), ConnectError>>>,
}

/// Why the task woke up.
enum TaskWake<D> {
    /// The program dropped the subscriber.
    Gone,
    Said(TaskCommand),
    Sent(Result<bool, LinkStuck>),
    Heard(Result<String, LinkEnd>),
    Dialled(Box<(D, Result<Dialled, DialFailure>)>),
    Time,
    /// The program took a piece of news.
    Taken,
}

type CommandChannel = (mpsc::WeakSender<TaskCommand>, mpsc::Receiver<TaskCommand>);

impl<D: Dial> SubscriptionTask<D> {
    pub(crate) fn new(
        dial: D,
        wishes: Wishes,
        news: mpsc::Sender<News>,
        (own_commands, commands): CommandChannel,
        ready: oneshot::Sender<Result<(), ConnectError>>,
    ) -> Result<Self, ConnectError> {
        let mut rules = SubscriberRules::new(wishes.config());
        // Made once here to detect invalid wishes before the producer is contacted.
        match rules.request(wishes.capabilities.clone()) {
            Err(CannotAsk::Malformed(wrong)) if !wishes.without_handshake => {
                return Err(ConnectError::Wishes(wrong));
            }
            _ => {}
        }
        let (began, backoff) = (Instant::now(), RetryBackoff::new(wishes.longest_wait));
        Ok(SubscriptionTask {
            wishes,
            rules,
            began,
            link: LinkState::Down { dial, until: began },
            news,
            waiting: VecDeque::new(),
            commands,
            asks: KitAsks::new(own_commands, began),
            sending: None,
            reorder: ReorderBuffer::default(),
            flood: FloodGuard::default(),
            backoff,
            before: None,
            is_lost: false,
            goodbye: None,
            ready: Some(ready),
        })
    }

    /// Keeps the subscription until it ends.
    pub(crate) async fn run(mut self) {
        let ended = loop {
            let done = match self.wake().await {
                TaskWake::Gone => Err(Ended::Closed),
                TaskWake::Said(command) => self.said(command),
                TaskWake::Sent(result) => self.sent(result),
                TaskWake::Heard(Ok(text)) => self.heard(text),
                TaskWake::Heard(Err(end)) => self.link_ended(&end),
                TaskWake::Dialled(dialled) => self.dialled(*dialled),
                TaskWake::Time => self.time(),
                TaskWake::Taken => Ok(()),
            };
            match done {
                Ok(()) => {}
                Err(ended) => break ended,
            }
        };
        self.end(ended).await;
    }

    /// Waits for the first of all possible reasons to act.
    async fn wake(&mut self) -> TaskWake<D> {
        let timer = self.timer();
        let can_tell = !self.waiting.is_empty();
        // The answer to our own request is read even so, so that the link can hold before the program asks for
        // more.
        let can_hear = !can_tell || (self.link.is_asked() && self.waiting.len() < MAX_WAITING_NEWS);
        let SubscriptionTask { link, news, waiting, commands, sending, .. } = self;
        let can_take = sending.is_none();
        let (dialling, receiver) = match link {
            LinkState::Dialling(dialling) => (Some(dialling), None),
            LinkState::Up(up) => (None, Some(&mut up.receiver)),
            LinkState::Down { .. } | LinkState::Nowhere => (None, None),
        };
        tokio::select! {
            () = news.closed() => TaskWake::Gone,
            permit = news.reserve(), if can_tell => {
                if let (Ok(permit), Some(next)) = (permit, waiting.pop_front()) {
                    permit.send(next);
                }
                TaskWake::Taken
            }
            Some(command) = commands.recv(), if can_take => TaskWake::Said(command),
            result = when(sending.as_mut().map(|it| &mut it.future)) => TaskWake::Sent(result),
            dialled = when(dialling) => TaskWake::Dialled(Box::new(dialled)),
            heard = hear(receiver), if can_hear => TaskWake::Heard(heard),
            () = at(timer) => TaskWake::Time,
        }
    }

    /// The next time at which something is due.
    fn timer(&self) -> Option<Instant> {
        let rules = self.rules.deadline().map(|us| self.began + Duration::from_micros(us));
        let held = self.reorder.deadline().filter(|_| self.waiting.is_empty());
        let all = [rules, self.link.deadline(), held, self.flood.deadline()];
        all.into_iter().flatten().min()
    }

    /// Does what is due.
    fn time(&mut self) -> Result<(), Ended> {
        let now = Instant::now();
        let changes = self.rules.tick(self.now());
        self.tell_changes(changes)?;
        if let Some(count) = self.flood.left_out(now) {
            self.tell(News::LeftOut { count });
        }
        if self.waiting.is_empty() {
            for text in self.reorder.due(now) {
                self.receive(&text)?;
            }
        }
        self.link_due(now)
    }

    /// Queues a piece of news for the program. Outdated news about the link is removed, so that a program that
    /// does not read for days leaves only the latest behind.
    fn tell(&mut self, news: News) {
        match news {
            News::Reconnecting { .. } => self
                .waiting
                .retain(|it| !matches!(it, News::Reconnecting { .. } | News::Reconnected)),
            News::TermsChanged(_) => {
                self.waiting.retain(|it| !matches!(it, News::TermsChanged(_)));
            }
            _ => {}
        }
        self.waiting.push_back(news);
    }

    fn now(&self) -> Now {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Now {
            monotonic_us: u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX),
            unix_us: i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        }
    }

    /// Closes the subscription if that is ours to do, settles open asks, and delivers the last news.
    async fn end(mut self, ended: Ended) {
        let link = std::mem::replace(&mut self.link, LinkState::Nowhere);
        if matches!(ended, Ended::Closed | Ended::Flooded | Ended::NotTrusted(_))
            && let LinkState::Up(up) = link
        {
            let flooded = (ended == Ended::Flooded).then(|| ended.to_string());
            let reason = self.goodbye.as_mut().and_then(|(reason, _)| reason.take()).or(flooded);
            let message =
                self.rules.close(None, reason).ok().map(|(message, _)| say::json(&message));
            // Not sending a message also ends it: the producer notices that the link is gone.
            let _ = tokio::time::timeout(GOODBYE, say_goodbye(up, message)).await;
        }
        if let Some((_, done)) = self.goodbye.take() {
            let _ = done.send(Ok(()));
        }
        if let Some(count) = self.flood.left_out_so_far() {
            self.tell(News::LeftOut { count });
        }
        self.waiting.extend(self.asks.end_all());
        if let Some(ready) = self.ready.take() {
            let _ = ready.send(Err(connect_error(&ended)));
        }
        let SubscriptionTask { commands, mut waiting, news, .. } = self;
        // From here on, commands fail with [`SayError::Ended`](crate::SayError::Ended).
        drop(commands);
        waiting.push_back(News::Ended(ended));
        for last in waiting {
            if news.send(last).await.is_err() {
                return;
            }
        }
    }
}

/// Sends the closing message, and waits until the wire has carried it.
async fn say_goodbye<D>(up: LiveLink<D>, message: Option<String>) {
    let LiveLink { sender, mut receiver, .. } = up;
    if let Some(message) = message
        && sender.send(message).await.is_ok()
    {
        // Now the wire ends, after it has carried everything.
        drop(sender);
        while receiver.next().await.is_ok() {}
    }
}

fn connect_error(ended: &Ended) -> ConnectError {
    match ended {
        Ended::Rejected(why) => ConnectError::Rejected(why.clone()),
        Ended::Refused(why) => ConnectError::Refused(why.clone()),
        Ended::NotTrusted(why) => ConnectError::NotTrusted(why.clone()),
        Ended::NoHandshake => ConnectError::NoHandshake,
        Ended::ClosedByProducer(why) => ConnectError::Refused(why.clone().unwrap_or_default()),
        Ended::Closed | Ended::Flooded => ConnectError::NoAnswer,
    }
}

/// Waits for a future if there is one, and forever if there is none.
async fn when<F: Future + Unpin>(future: Option<&mut F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn hear(
    receiver: Option<&mut aaep_transport::link::LinkReceiver>,
) -> Result<String, LinkEnd> {
    match receiver {
        Some(receiver) => receiver.next().await,
        None => std::future::pending().await,
    }
}

async fn at(timer: Option<Instant>) {
    match timer {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
