//! A line to each hub: reached, kept, and tried again, each for itself.

use std::time::Duration;

use aaep_announce::HubNumber;
use aaep_subscriber::{Ended, News, Voice, Wishes};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, sleep, timeout_at};

use super::reach;
use crate::console::{self, Failure};
use crate::hubs::Hub;

/// How many news may wait here, of all hubs together. They wait with the hubs otherwise, each with its own.
const MAX_WAITING_NEWS: usize = 16;

/// How long the others are waited for when the first hub is reached, and how much may come meanwhile.
const FOR_THE_OTHERS: Duration = Duration::from_secs(1);
const MAX_BEFORE: usize = 64;

/// How long it is waited before a hub is tried again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// What comes from a hub.
pub(super) enum FromHub {
    /// It is there, and this is how something is said to it.
    Reached(Voice),
    /// It could not be reached, and why. It is tried again.
    NotReached(Failure),
    News(Box<News>),
}

impl FromHub {
    fn failure(self) -> Option<Failure> {
        match self {
            FromHub::NotReached(failure) => Some(failure),
            _ => None,
        }
    }
}

/// Something from a hub.
pub(super) type Heard = (HubNumber, FromHub);

/// Begins to reach all of them.
pub(super) fn start(hubs: &[Hub], wishes: impl Fn(&Hub) -> Wishes) -> Receiver<Heard> {
    let (sender, receiver) = mpsc::channel(MAX_WAITING_NEWS);
    for (at, hub) in hubs.iter().enumerate() {
        tokio::spawn(keep(at, hub.address.clone(), wishes(hub), sender.clone()));
    }
    receiver
}

/// Waits until one of so many hubs is reached, and a moment longer for the others; gives all that came until then. If
/// none can be reached, that is why.
pub(super) async fn first(heard: &mut Receiver<Heard>, hubs: usize) -> Result<Vec<Heard>, Failure> {
    let mut all: Vec<Heard> = Vec::new();
    let (mut reached, mut missing) = (0, 0);
    let mut until = None;
    while reached + missing < hubs && all.len() < MAX_BEFORE {
        let next = match until {
            None => heard.recv().await,
            Some(until) => timeout_at(until, heard.recv()).await.unwrap_or_default(),
        };
        let Some(next) = next else { break };
        match next.1 {
            FromHub::Reached(_) => {
                reached += 1;
                until.get_or_insert_with(|| Instant::now() + FOR_THE_OTHERS);
            }
            FromHub::NotReached(_) => missing += 1,
            FromHub::News(_) => {}
        }
        all.push(next);
    }
    if reached > 0 {
        return Ok(all);
    }
    let mut failures: Vec<Failure> = all.into_iter().filter_map(|(_, it)| it.failure()).collect();
    let last = failures.pop();
    failures.iter().for_each(console::complain);
    Err(last.unwrap_or_else(|| Failure::new("no hub answers", "See whether it runs.")))
}

/// Keeps the line to a hub until it is over for good, or nobody wants to hear of it.
async fn keep(at: HubNumber, address: String, wishes: Wishes, to: Sender<Heard>) {
    let mut pause = FIRST_PAUSE;
    let mut is_told = false;
    loop {
        let began = Instant::now();
        match reach(&address, wishes.clone()).await {
            Err(failure) => {
                // That it is tried again and again is told once.
                let is_news = !std::mem::replace(&mut is_told, true);
                if is_news && to.send((at, FromHub::NotReached(failure))).await.is_err() {
                    return;
                }
            }
            Ok(mut subscriber) => {
                is_told = false;
                if to.send((at, FromHub::Reached(subscriber.voice()))).await.is_err() {
                    return;
                }
                loop {
                    let Some(news) = subscriber.next().await else { return };
                    let is_closed = matches!(news, News::Ended(Ended::ClosedByProducer(_)));
                    let is_over = matches!(news, News::Ended(_)) && !is_closed;
                    let is_heard = to.send((at, FromHub::News(Box::new(news)))).await.is_ok();
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
