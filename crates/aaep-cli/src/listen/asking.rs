//! Questions as they come and go: a rule answers, or the person is asked under a number.

use std::time::Duration;

use aaep_announce::{Asked, Input};
use aaep_subscriber::Ask;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

use super::open::ending;
use super::room::{Came, Room};
use crate::attention::asked::Asked as Known;
use crate::console::{self, Failure};
use crate::keys::now_unix_ms;
use crate::settings::rules::automatic;

/// How long a question may wait for a number that other programs know too. They share a file and its lock; the
/// question is told in any case, even while one of them hangs.
const NUMBER_PATIENCE: Duration = Duration::from_millis(500);

impl Room {
    /// A question came: a rule answers it, or the person is asked.
    pub(super) fn asked(&mut self, ask: Ask) {
        if ask.can_reply()
            && let Some(answer) = automatic(&self.rules, ask.event())
        {
            let (decision, details) = (answer.decision, answer.details());
            let rule = answer.rule.name.clone();
            let is_yes = decision == aaep::event::human::Decision::Accept;
            let came = self.came.0.clone();
            tokio::spawn(async move {
                let sent = ask.decide(decision, details).await;
                let ask = Box::new(ask);
                // If nobody listens any more, nobody needs to know.
                let _ = came.send(Came::ByRule { ask, rule, is_yes, sent }).await;
            });
            return;
        }
        self.ask(ask);
    }

    /// The person is asked as soon as there is a number. The disk is waited for elsewhere.
    pub(super) fn ask(&mut self, ask: Ask) {
        let Some(known) = Known::of(ask.event()).filter(|_| ask.can_reply()) else {
            return self.tell_ask(&ask, None);
        };
        let (numbers, address) = (self.numbers.clone(), self.address.clone());
        let now = now_unix_ms() / 1000;
        let giving =
            spawn_blocking(move || numbers.change(|numbers| numbers.give(now, &address, &known)));
        let came = self.came.0.clone();
        tokio::spawn(async move {
            // Without a shared number it can still be answered here.
            let shared = match timeout(NUMBER_PATIENCE, giving).await {
                Ok(given) => done(given).flatten(),
                Err(_) => None,
            };
            let _ = came.send(Came::Numbered(Box::new(ask), shared)).await;
        });
    }

    /// The person is asked now.
    pub(super) fn tell_ask(&mut self, ask: &Ask, shared: Option<u8>) {
        let number = self.open.add(shared, ask.clone());
        let (event, remaining, can_answer) = (ask.event(), ask.remaining(), ask.can_reply());
        self.tell_all(&Input::Asked(Asked { number, event, remaining, can_answer }));
        if !ask.state().is_open() {
            // It ended while it waited for its number.
            self.over(ask);
        }
    }

    /// A question is over.
    pub(super) fn over(&mut self, ask: &Ask) {
        let Some(number) = self.open.number_of(ask) else { return };
        let was_ours = self.open.get(number).is_some_and(|it| it.is_answered);
        let ending = ending(ask.event(), &ask.state(), was_ours);
        if ask.state().is_final() {
            self.open.remove(self.now(), number);
            let (numbers, token) = (self.numbers.clone(), ask.reply_token().clone());
            let noting = spawn_blocking(move || numbers.change(|numbers| numbers.over(&token)));
            tokio::spawn(async move { done(noting.await) });
        }
        self.tell_all(&Input::Over { number, ending });
    }
}

/// What came of a change of the numbers. A failure is told, and then it goes on without.
fn done<T>(changed: Result<Result<T, Failure>, JoinError>) -> Option<T> {
    changed.ok()?.map_err(|failure| console::complain(&failure)).ok()
}
