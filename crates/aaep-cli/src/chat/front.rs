//! Brings what the agent says and does to the loop, in one order. A flood waits at the agent's end.

use std::io::BufRead;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use aaep_bridge::ProxyAskNumber;
use aaep_bridge::acp::{AcpMenu, AcpMenuEnding, AcpPlan};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::acp::front::AcpFront;
use crate::proxied::note::ProxyNote;

/// How many bytes may wait for the loop before the agent has to wait, and how many everything counts at least.
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;
const LEAST_BYTES: usize = 1024;

/// Something for the loop.
#[derive(Debug)]
pub(super) enum FrontNews {
    /// What the bridge decided.
    Shown(Box<ShownPlan>),
    /// A message of the agent.
    Message(Value),
    /// A line of the agent that is not a message.
    NotAMessage,
    Note(ProxyNote),
}

/// The part of a plan that the person sees.
#[derive(Debug)]
pub(super) struct ShownPlan {
    pub(super) closed_menus: Vec<(ProxyAskNumber, AcpMenuEnding)>,
    pub(super) events: Vec<Value>,
    pub(super) menu: Option<AcpMenu>,
    pub(super) only_here: Option<ProxyAskNumber>,
}

/// How many bytes wait for the loop.
#[derive(Debug, Default)]
struct WaitingBytes {
    bytes: Mutex<usize>,
    changed: Condvar,
}

impl WaitingBytes {
    fn change(&self, change: impl FnOnce(usize) -> usize) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *bytes = change(*bytes);
        self.changed.notify_all();
    }
}

/// The end of the proxy.
pub(super) struct ChatFront {
    to: UnboundedSender<(FrontNews, usize)>,
    waiting: Arc<WaitingBytes>,
}

/// The end of the loop.
#[derive(Debug)]
pub(super) struct FrontReceiver {
    from: UnboundedReceiver<(FrontNews, usize)>,
    waiting: Arc<WaitingBytes>,
}

/// Both ends.
pub(super) fn front() -> (ChatFront, FrontReceiver) {
    let (to, from) = unbounded_channel();
    let waiting = Arc::new(WaitingBytes::default());
    (ChatFront { to, waiting: Arc::clone(&waiting) }, FrontReceiver { from, waiting })
}

impl FrontReceiver {
    /// Waits for the next news. `None` when the agent is gone and everything was told.
    pub(super) async fn next(&mut self) -> Option<FrontNews> {
        let (news, bytes) = self.from.recv().await?;
        self.waiting.change(|it| it.saturating_sub(bytes));
        Some(news)
    }
}

impl Drop for FrontReceiver {
    fn drop(&mut self) {
        // Nobody waits for a loop that has ended.
        self.from.close();
        self.waiting.change(|_| 0);
    }
}

impl ChatFront {
    fn send(&self, news: FrontNews, bytes: usize) -> bool {
        let bytes = bytes.max(LEAST_BYTES);
        let is_sent = self.to.send((news, bytes)).is_ok();
        if is_sent {
            self.waiting.change(|it| it.saturating_add(bytes));
        }
        is_sent
    }
}

impl AcpFront for ChatFront {
    fn pass(&self, line: &[u8]) -> bool {
        let line = line.trim_ascii();
        if line.is_empty() {
            return true;
        }
        let news = match serde_json::from_slice::<Value>(line) {
            Ok(message) if message.is_object() || message.is_array() => FrontNews::Message(message),
            _ => FrontNews::NotAMessage,
        };
        self.send(news, line.len())
    }

    fn pass_long(&self, _beginning: &[u8], input: &mut dyn BufRead) -> bool {
        loop {
            let (length, is_end) = match input.fill_buf() {
                Ok([]) => return false,
                Ok(piece) => match piece.iter().position(|it| *it == b'\n') {
                    Some(at) => (at + 1, true),
                    None => (piece.len(), false),
                },
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => (0, false),
                Err(_) => return false,
            };
            input.consume(length);
            if is_end {
                return true;
            }
        }
    }

    fn show(&self, plan: &AcpPlan) {
        let shown = ShownPlan {
            closed_menus: plan.closed_menus.clone(),
            events: plan.events.clone(),
            menu: plan.menu.clone(),
            only_here: plan.only_here,
        };
        let is_empty = shown.closed_menus.is_empty()
            && shown.events.is_empty()
            && shown.menu.is_none()
            && shown.only_here.is_none();
        if !is_empty {
            let bytes: usize = shown.events.iter().map(|it| it.to_string().len()).sum();
            self.send(FrontNews::Shown(Box::new(shown)), bytes);
        }
    }

    fn note(&self, note: &ProxyNote) {
        self.send(FrontNews::Note(note.clone()), 0);
    }

    fn wait_for_room(&self) {
        let bytes = self.waiting.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |bytes: &mut usize| *bytes > MAX_WAITING_BYTES && !self.to.is_closed();
        drop(self.waiting.changed.wait_while(bytes, is_full));
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read as _};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn lines_become_messages_and_what_is_too_long_is_left_out() {
        let (front, mut news) = front();
        for line in [&b"{\"a\":1}\n"[..], b" \r\n", b"log: \x1b[2J\n", b"7\n", b"[]"] {
            assert!(front.pass(line));
        }
        assert!(matches!(news.next().await, Some(FrontNews::Message(it)) if it["a"] == 1));
        for _ in 0..2 {
            assert!(matches!(news.next().await, Some(FrontNews::NotAMessage)));
        }
        assert!(matches!(news.next().await, Some(FrontNews::Message(it)) if it.is_array()));
        let text = [vec![b'x'; 100_000], b"\nnext".to_vec()].concat();
        let mut input = BufReader::with_capacity(7, text.as_slice());
        assert!(front.pass_long(b"x", &mut input));
        let mut rest = String::new();
        input.read_to_string(&mut rest).expect("text");
        assert_eq!(rest, "next");
        assert!(!front.pass_long(b"x", &mut input), "it ends in the middle");
    }

    #[tokio::test]
    async fn a_flood_waits_until_there_is_room_or_nobody_reads() {
        let (front, mut news) = front();
        let front = Arc::new(front);
        let line = format!("\"{}\"", "x".repeat(MAX_WAITING_BYTES));
        front.wait_for_room();
        front.pass(line.as_bytes());
        let waits = |front: &Arc<ChatFront>| {
            let (front, (done, is_done)) = (Arc::clone(front), std::sync::mpsc::channel());
            std::thread::spawn(move || {
                front.wait_for_room();
                done.send(())
            });
            is_done
        };
        let is_done = waits(&front);
        assert!(is_done.try_recv().is_err());
        news.next().await;
        assert!(is_done.recv_timeout(Duration::from_mins(1)).is_ok());
        front.pass(line.as_bytes());
        let is_done = waits(&front);
        drop(news);
        assert!(is_done.recv_timeout(Duration::from_mins(1)).is_ok());
        assert!(!front.pass(b"{}"));
    }
}
