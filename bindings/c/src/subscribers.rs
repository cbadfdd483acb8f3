//! The subscribers of a program, by number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use aaep::ReplyToken;
use aaep_subscriber::blocking::{NothingNew, Subscriber, connect as connect_to, wait};
use aaep_subscriber::{Ask, News, Voice};

use crate::line::line;
use crate::options::wishes;
use crate::reply::ReplyRequest;

/// How many subscribers a program may have.
const MAX_SUBSCRIBERS: usize = 1024;

static SUBSCRIBERS: Mutex<SubscriberTable> =
    Mutex::new(SubscriberTable { last: 0, subscribers: BTreeMap::new() });

struct SubscriberTable {
    /// The last number given. No number is given twice.
    last: u64,
    subscribers: BTreeMap<u64, Arc<HeldSubscriber>>,
}

/// A subscriber, and the asks that the program was told about.
struct HeldSubscriber {
    /// Locked by the thread that waits for news.
    subscriber: Mutex<Subscriber>,
    voice: Voice,
    asks: Mutex<BTreeMap<ReplyToken, Ask>>,
}

/// The result of waiting.
pub(crate) enum NextResult {
    News(String),
    Nothing,
    Over,
}

pub(crate) fn connect(url: &str, options: Option<&str>) -> Result<u64, String> {
    if locked(&SUBSCRIBERS).subscribers.len() >= MAX_SUBSCRIBERS {
        return Err("There are too many subscribers. Close those that are not needed.".to_owned());
    }
    let subscriber = connect_to(url, wishes(options)?).map_err(|error| error.to_string())?;
    let (voice, asks) = (subscriber.voice(), Mutex::default());
    let held = Arc::new(HeldSubscriber { subscriber: Mutex::new(subscriber), voice, asks });
    let mut table = locked(&SUBSCRIBERS);
    table.last += 1;
    let number = table.last;
    table.subscribers.insert(number, held);
    Ok(number)
}

pub(crate) fn next(number: u64, time: Option<Duration>) -> Result<NextResult, String> {
    let held = held(number)?;
    let mut subscriber = match held.subscriber.try_lock() {
        Ok(subscriber) => subscriber,
        Err(TryLockError::Poisoned(subscriber)) => subscriber.into_inner(),
        Err(TryLockError::WouldBlock) => {
            return Err("Another thread waits for the news of this subscriber.".to_owned());
        }
    };
    let news = match time {
        Some(time) => match subscriber.next_within(time) {
            Ok(news) => news,
            Err(NothingNew) => return Ok(NextResult::Nothing),
        },
        None => subscriber.next(),
    };
    let Some(news) = news else { return Ok(NextResult::Over) };
    let mut asks = locked(&held.asks);
    match &news {
        News::Ask(ask) => {
            asks.insert(ask.reply_token().clone(), ask.clone());
        }
        News::AskEnded(ask) if ask.state().is_final() => {
            asks.remove(ask.reply_token());
        }
        _ => {}
    }
    Ok(NextResult::News(line(&news)))
}

pub(crate) fn reply(number: u64, text: &str) -> Result<(), String> {
    let held = held(number)?;
    let reply = ReplyRequest::read(text)?;
    let ask = locked(&held.asks).get(&reply.reply_token).cloned();
    let ask = ask.ok_or("There is no such question, or it is over.")?;
    wait(reply.say(&ask)).map_err(|error| error.to_string())
}

pub(crate) fn close(number: u64) {
    let Some(held) = locked(&SUBSCRIBERS).subscribers.remove(&number) else { return };
    // A thread that waits for news is told that the subscription has ended. It does not matter if it had ended
    // before.
    let _ = wait(held.voice.close(None));
}

fn held(number: u64) -> Result<Arc<HeldSubscriber>, String> {
    let held = locked(&SUBSCRIBERS).subscribers.get(&number).cloned();
    held.ok_or_else(|| "There is no such subscriber, or it is closed.".to_owned())
}

/// Data left behind by a thread that panicked is still consistent: nothing here is changed in steps.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
