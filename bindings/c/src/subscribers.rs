//! The subscribers that a program has, by number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use aaep::ReplyToken;
use aaep_subscriber::blocking::{NothingNew, Subscriber, connect as connect_to, wait};
use aaep_subscriber::{Ask, News, Voice};

use crate::line::line;
use crate::options::wishes;
use crate::reply::Reply;

/// How many subscribers a program may have.
const MAX_LISTENERS: usize = 1024;

static LISTENERS: Mutex<Known> = Mutex::new(Known { last: 0, subscribers: BTreeMap::new() });

struct Known {
    /// The number that was given last. None is given twice.
    last: u64,
    subscribers: BTreeMap<u64, Arc<Held>>,
}

/// A subscriber, and the questions that the program was told of.
struct Held {
    /// Held by the thread that waits for news.
    subscriber: Mutex<Subscriber>,
    voice: Voice,
    asks: Mutex<BTreeMap<ReplyToken, Ask>>,
}

/// What came of waiting.
pub(crate) enum Next {
    News(String),
    Nothing,
    Over,
}

pub(crate) fn connect(url: &str, options: Option<&str>) -> Result<u64, String> {
    if locked(&LISTENERS).subscribers.len() >= MAX_LISTENERS {
        return Err("There are too many subscribers. Close those that are not needed.".to_owned());
    }
    let subscriber = connect_to(url, wishes(options)?).map_err(|error| error.to_string())?;
    let (voice, asks) = (subscriber.voice(), Mutex::default());
    let held = Arc::new(Held { subscriber: Mutex::new(subscriber), voice, asks });
    let mut known = locked(&LISTENERS);
    known.last += 1;
    let number = known.last;
    known.subscribers.insert(number, held);
    Ok(number)
}

pub(crate) fn next(number: u64, time: Option<Duration>) -> Result<Next, String> {
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
            Err(NothingNew) => return Ok(Next::Nothing),
        },
        None => subscriber.next(),
    };
    let Some(news) = news else { return Ok(Next::Over) };
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
    Ok(Next::News(line(&news)))
}

pub(crate) fn reply(number: u64, text: &str) -> Result<(), String> {
    let held = held(number)?;
    let reply = Reply::read(text)?;
    let ask = locked(&held.asks).get(&reply.reply_token).cloned();
    let ask = ask.ok_or("There is no such question, or it is over.")?;
    wait(reply.say(&ask)).map_err(|error| error.to_string())
}

pub(crate) fn close(number: u64) {
    let Some(held) = locked(&LISTENERS).subscribers.remove(&number) else { return };
    // Whoever waits for news in another thread is told that it is over. That it was over is no matter.
    let _ = wait(held.voice.close(None));
}

fn held(number: u64) -> Result<Arc<Held>, String> {
    let held = locked(&LISTENERS).subscribers.get(&number).cloned();
    held.ok_or_else(|| "There is no such subscriber, or it is closed.".to_owned())
}

/// What a thread left behind that panicked is still whole: nothing is changed in steps here.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
