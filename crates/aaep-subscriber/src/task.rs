//! The loop that keeps a subscription: one line at a time, the rules, and what the program wants.
//!
//! While news wait for the program, nothing is read from the line, so that whoever is slow slows the
//! producer and loses nothing. What the program says is taken all the while.

mod asks;
mod hear;
mod line;
mod say;

use std::collections::VecDeque;
use std::future::Future;
use std::time::{Duration, SystemTime};

use aaep::SubscriptionId;
use aaep_engine::Now;
use aaep_engine::subscriber::{CannotAsk, Subscriber as Rules};
use aaep_transport::link::LinkEnd;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::backoff::Backoff;
use crate::command::{Command, Done};
use crate::dial::{Dial, Dialled, NoLine};
use crate::error::ConnectError;
use crate::flood::Flood;
use crate::news::{Ended, News};
use crate::reorder::Reorder;
use crate::wishes::Wishes;
use asks::Asks;
use line::{Line, Up};
use say::{Sending, Stuck};

/// How many news may wait for the program. Past it, nothing is read from the line.
pub const MAX_WAITING_NEWS: usize = 64;

/// How long the producer may take to answer a request.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the line may take to take a message. Then it counts as broken.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a line has to hold for the waits before another attempt to begin anew.
pub const SETTLED_AFTER: Duration = Duration::from_secs(5);

/// How long saying goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// What keeps a subscription.
pub(crate) struct Task<D> {
    wishes: Wishes,
    rules: Rules,
    began: Instant,
    line: Line<D>,
    news: mpsc::Sender<News>,
    /// What the program is told next. It is filled by one message at a time.
    waiting: VecDeque<News>,
    commands: mpsc::Receiver<Command>,
    asks: Asks,
    sending: Option<Sending>,
    reorder: Reorder,
    flood: Flood,
    backoff: Backoff,
    /// The subscription that was had last, to go on with.
    before: Option<SubscriptionId>,
    /// Whether the producer does not know that subscription any more.
    is_lost: bool,
    /// What the program says when it goes, and that it has gone.
    goodbye: Option<(Option<String>, Done)>,
    /// Who waits for the first subscription.
    ready: Option<oneshot::Sender<Result<(), ConnectError>>>,
}

/// What makes the task do something.
enum Wake<D> {
    /// The program is gone.
    Gone,
    Said(Command),
    Sent(Result<bool, Stuck>),
    Heard(Result<String, LinkEnd>),
    Dialled(Box<(D, Result<Dialled, NoLine>)>),
    Time,
    /// The program took something.
    Taken,
}

type Hands = (mpsc::WeakSender<Command>, mpsc::Receiver<Command>);

impl<D: Dial> Task<D> {
    pub(crate) fn new(
        dial: D,
        wishes: Wishes,
        news: mpsc::Sender<News>,
        (own_commands, commands): Hands,
        ready: oneshot::Sender<Result<(), ConnectError>>,
    ) -> Result<Self, ConnectError> {
        let mut rules = Rules::new(wishes.config());
        // Asked here once so that wishes that make no request are noticed before anyone is called.
        match rules.request(wishes.capabilities.clone()) {
            Err(CannotAsk::Malformed(wrong)) if !wishes.without_handshake => {
                return Err(ConnectError::Wishes(wrong));
            }
            _ => {}
        }
        let (began, backoff) = (Instant::now(), Backoff::new(wishes.longest_wait));
        Ok(Task {
            wishes,
            rules,
            began,
            line: Line::Down { dial, until: began },
            news,
            waiting: VecDeque::new(),
            commands,
            asks: Asks::new(own_commands, began),
            sending: None,
            reorder: Reorder::default(),
            flood: Flood::default(),
            backoff,
            before: None,
            is_lost: false,
            goodbye: None,
            ready: Some(ready),
        })
    }

    /// Keeps the subscription until it is over.
    pub(crate) async fn run(mut self) {
        let ended = loop {
            let done = match self.wake().await {
                Wake::Gone => Err(Ended::Closed),
                Wake::Said(command) => self.said(command),
                Wake::Sent(result) => self.sent(result),
                Wake::Heard(Ok(text)) => self.heard(text),
                Wake::Heard(Err(end)) => self.line_ended(&end),
                Wake::Dialled(dialled) => self.dialled(*dialled),
                Wake::Time => self.time(),
                Wake::Taken => Ok(()),
            };
            match done {
                Ok(()) => {}
                Err(ended) => break ended,
            }
        };
        self.end(ended).await;
    }

    /// Waits for whatever comes first.
    async fn wake(&mut self) -> Wake<D> {
        let timer = self.timer();
        let can_tell = !self.waiting.is_empty();
        // An answer to our request is heard all the same, so that the line holds when the program wants more.
        let can_hear = !can_tell || (self.line.is_asked() && self.waiting.len() < MAX_WAITING_NEWS);
        let Task { line, news, waiting, commands, sending, .. } = self;
        let can_take = sending.is_none();
        let (dialling, receiver) = match line {
            Line::Dialling(dialling) => (Some(dialling), None),
            Line::Up(up) => (None, Some(&mut up.receiver)),
            Line::Down { .. } | Line::Nowhere => (None, None),
        };
        tokio::select! {
            () = news.closed() => Wake::Gone,
            permit = news.reserve(), if can_tell => {
                if let (Ok(permit), Some(next)) = (permit, waiting.pop_front()) {
                    permit.send(next);
                }
                Wake::Taken
            }
            Some(command) = commands.recv(), if can_take => Wake::Said(command),
            result = when(sending.as_mut().map(|it| &mut it.future)) => Wake::Sent(result),
            dialled = when(dialling) => Wake::Dialled(Box::new(dialled)),
            heard = hear(receiver), if can_hear => Wake::Heard(heard),
            () = at(timer) => Wake::Time,
        }
    }

    /// When something is to be done without anything happening.
    fn timer(&self) -> Option<Instant> {
        let rules = self.rules.deadline().map(|us| self.began + Duration::from_micros(us));
        let held = self.reorder.deadline().filter(|_| self.waiting.is_empty());
        let all = [rules, self.line.deadline(), held, self.flood.deadline()];
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
        self.line_due(now)
    }

    /// What the program is told next. Of how the line stands it need not know what is over already, so that
    /// a program that does not listen for days leaves nothing behind but the last of it.
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

    /// Says goodbye if that is ours to say, settles what is open, and tells the program the last things.
    async fn end(mut self, ended: Ended) {
        let line = std::mem::replace(&mut self.line, Line::Nowhere);
        if matches!(ended, Ended::Closed | Ended::Flooded | Ended::NotTrusted(_))
            && let Line::Up(up) = line
        {
            let flooded = (ended == Ended::Flooded).then(|| ended.to_string());
            let reason = self.goodbye.as_mut().and_then(|(reason, _)| reason.take()).or(flooded);
            let message =
                self.rules.close(None, reason).ok().map(|(message, _)| say::json(&message));
            // Without a word is a goodbye too: the producer notices that the line is gone.
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
        let Task { commands, mut waiting, news, .. } = self;
        // Whoever wants to say something from here on is told that it is over.
        drop(commands);
        waiting.push_back(News::Ended(ended));
        for last in waiting {
            if news.send(last).await.is_err() {
                return;
            }
        }
    }
}

/// Says the last word, and waits until the wire has carried it.
async fn say_goodbye<D>(up: Up<D>, message: Option<String>) {
    let Up { sender, mut receiver, .. } = up;
    if let Some(message) = message
        && sender.send(message).await.is_ok()
    {
        // Now the wire ends, after what it has to carry.
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

/// What a future gives, if there is one; never, if there is none.
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
