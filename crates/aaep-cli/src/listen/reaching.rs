//! Keeps a link to each hub, independently: connects, and reconnects when it is lost.

use std::time::Duration;

use aaep_announce::HubNumber;
use aaep_subscriber::{Ended, News, Voice, Wishes};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, sleep, timeout_at};

use super::reach;
use crate::console::{self, CommandFailure};
use crate::english::failures;
use crate::hubs::HubTarget;

/// How many signals may be queued here, from all hubs together. Further ones wait at their hubs.
const MAX_WAITING_NEWS: usize = 16;

/// How long to wait for the other hubs after the first is reached, and how many signals to take meanwhile.
const FOR_THE_OTHERS: Duration = Duration::from_secs(1);
const MAX_BEFORE: usize = 64;

/// The first and the longest pause before a hub is tried again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// A signal from a hub.
pub(super) enum HubSignal {
    /// The hub is reached; with the handle for sending to it.
    Reached(Voice),
    /// The hub could not be reached. It is tried again.
    NotReached(CommandFailure),
    News(Box<News>),
}

impl HubSignal {
    fn failure(self) -> Option<CommandFailure> {
        match self {
            HubSignal::NotReached(failure) => Some(failure),
            _ => None,
        }
    }
}

/// A signal with the number of its hub.
pub(super) type NumberedSignal = (HubNumber, HubSignal);

/// Starts connecting to all hubs.
pub(super) fn start(
    hubs: &[HubTarget],
    wishes: impl Fn(&HubTarget) -> Wishes,
) -> Receiver<NumberedSignal> {
    let (sender, receiver) = mpsc::channel(MAX_WAITING_NEWS);
    for (at, hub) in hubs.iter().enumerate() {
        tokio::spawn(keep(at, hub.address.clone(), wishes(hub), sender.clone()));
    }
    receiver
}

/// Waits until one hub is reached, and a moment longer for the others; returns all signals until then. Fails if none
/// can be reached.
pub(super) async fn first(
    heard: &mut Receiver<NumberedSignal>,
    hubs: usize,
) -> Result<Vec<NumberedSignal>, CommandFailure> {
    let mut all: Vec<NumberedSignal> = Vec::new();
    let (mut reached, mut missing) = (0, 0);
    let mut until = None;
    while reached + missing < hubs && all.len() < MAX_BEFORE {
        let next = match until {
            None => heard.recv().await,
            Some(until) => timeout_at(until, heard.recv()).await.unwrap_or_default(),
        };
        let Some(next) = next else { break };
        match next.1 {
            HubSignal::Reached(_) => {
                reached += 1;
                until.get_or_insert_with(|| Instant::now() + FOR_THE_OTHERS);
            }
            HubSignal::NotReached(_) => missing += 1,
            HubSignal::News(_) => {}
        }
        all.push(next);
    }
    if reached > 0 {
        return Ok(all);
    }
    let mut failures: Vec<CommandFailure> =
        all.into_iter().filter_map(|(_, it)| it.failure()).collect();
    let last = failures.pop();
    failures.iter().for_each(console::complain);
    Err(last.unwrap_or_else(|| {
        CommandFailure::new(failures::NO_HUB_ANSWERS, failures::SEE_WHETHER_IT_RUNS)
    }))
}

/// Keeps the link to a hub until the subscription ends for good or the receiver is gone.
async fn keep(at: HubNumber, address: String, wishes: Wishes, to: Sender<NumberedSignal>) {
    let mut pause = FIRST_PAUSE;
    let mut is_told = false;
    loop {
        let began = Instant::now();
        match reach(&address, wishes.clone()).await {
            Err(failure) => {
                // Repeated attempts are reported only once.
                let is_news = !std::mem::replace(&mut is_told, true);
                if is_news && to.send((at, HubSignal::NotReached(failure))).await.is_err() {
                    return;
                }
            }
            Ok(mut subscriber) => {
                is_told = false;
                if to.send((at, HubSignal::Reached(subscriber.voice()))).await.is_err() {
                    return;
                }
                loop {
                    let Some(news) = subscriber.next().await else { return };
                    let is_closed = matches!(news, News::Ended(Ended::ClosedByProducer(_)));
                    let is_over = matches!(news, News::Ended(_)) && !is_closed;
                    let is_heard = to.send((at, HubSignal::News(Box::new(news)))).await.is_ok();
                    if is_over || !is_heard {
                        return;
                    }
                    if is_closed {
                        break;
                    }
                }
                if began.elapsed() >= LONGEST_PAUSE {
                    pause = FIRST_PAUSE;
                }
            }
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = to.closed() => return,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
