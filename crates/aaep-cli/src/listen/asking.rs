//! Questions as they come and go: a rule answers, or the person is asked under a number.

use std::cmp::Reverse;
use std::time::Duration;

use aaep_announce::{Asked, Ending, HubNumber, Input, rank};
use aaep_subscriber::Ask;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{sleep, timeout};

use super::open::ending;
use super::room::{Came, Room};
use crate::attention::asked::Asked as Known;
use crate::console::{self, Failure};
use crate::keys::now_unix_ms;
use crate::person::is_own_hub;
use crate::settings::rules::automatic;

/// How long a question may wait for a number that other programs know too. They share a file and its lock; the
/// question is told in any case, even while one of them hangs.
const NUMBER_PATIENCE: Duration = Duration::from_millis(500);

/// Questions that come within this time are told together, the riskiest first. Nobody hears it as a wait.
const TOGETHER: Duration = Duration::from_millis(30);

/// A question of a hub, with the number that the person shares between programs, if there is one.
pub(super) type Numbered = (HubNumber, Ask, Option<u16>);

impl Room {
    /// A question came: a rule answers it, or the person is asked.
    pub(super) fn asked(&mut self, hub: HubNumber, ask: Ask) {
        let is_own_hub = || is_own_hub(self.hubs.address(hub));
        if ask.can_reply()
            && let Some(answer) = automatic(&self.rules, ask.event(), is_own_hub)
        {
            let (decision, details) = (answer.decision, answer.details());
            let rule = answer.rule.name.clone();
            let is_yes = decision == aaep::event::human::Decision::Accept;
            let came = self.came.0.clone();
            tokio::spawn(async move {
                let sent = ask.decide(decision, details).await;
                let ask = Box::new(ask);
                // If nobody listens any more, nobody needs to know.
                let _ = came.send(Came::ByRule { hub, ask, rule, is_yes, sent }).await;
            });
            return;
        }
        self.ask(hub, ask);
    }

    /// The person is asked as soon as there is a number, together with what else is asked at this moment.
    pub(super) fn ask(&mut self, hub: HubNumber, ask: Ask) {
        self.gathered.push((hub, ask));
        if self.gathered.len() > 1 {
            return;
        }
        let came = self.came.0.clone();
        tokio::spawn(async move {
            sleep(TOGETHER).await;
            let _ = came.send(Came::Gathered).await;
        });
    }

    /// Gives numbers to all that was gathered. The disk is waited for elsewhere.
    pub(super) fn number(&mut self) {
        let gathered = std::mem::take(&mut self.gathered);
        let numbers = self.numbers.clone();
        let asked: Vec<(String, Option<Known>)> = gathered
            .iter()
            .map(|(hub, ask)| {
                let known = Known::of(ask.event()).filter(|_| ask.can_reply());
                (self.hubs.address(*hub).to_owned(), known)
            })
            .collect();
        let now = now_unix_ms() / 1000;
        let giving = spawn_blocking(move || {
            numbers.change(|numbers| {
                let give = |(address, known): &(String, Option<Known>)| {
                    known.as_ref().and_then(|known| numbers.give(now, address, known))
                };
                asked.iter().map(give).collect::<Vec<Option<u16>>>()
            })
        });
        let came = self.came.0.clone();
        tokio::spawn(async move {
            // Without shared numbers they can still be answered here.
            let shared = match timeout(NUMBER_PATIENCE, giving).await {
                Ok(given) => done(given).unwrap_or_default(),
                Err(_) => Vec::new(),
            };
            let shared = shared.into_iter().chain(std::iter::repeat(None));
            let mut all: Vec<Numbered> =
                gathered.into_iter().zip(shared).map(|((hub, ask), it)| (hub, ask, it)).collect();
            all.sort_by_key(|(_, ask, _)| Reverse(rank(ask.event())));
            let _ = came.send(Came::Numbered(all)).await;
        });
    }

    /// The person is asked now.
    pub(super) fn tell_ask(&mut self, (hub, ask, shared): &Numbered) {
        let Some(number) = self.open.add(*hub, *shared, ask.clone()) else { return };
        let (event, remaining, can_answer) = (ask.event(), ask.remaining(), ask.can_reply());
        self.tell_from(*hub, &Input::Asked(Asked { number, event, remaining, can_answer }));
        if let Some(known) = Known::of(event).filter(|_| shared.is_some()) {
            // Other programs of this person call the agent the same.
            let (numbers, label) = (self.numbers.clone(), self.agent_label(*hub, event));
            let noting = spawn_blocking(move || numbers.change(|it| it.heard_as(&known, &label)));
            tokio::spawn(async move { done(noting.await) });
        }
        if !ask.state().is_open() {
            // It ended while it waited for its number.
            self.over(*hub, ask);
        }
    }

    /// A question is over.
    pub(super) fn over(&mut self, hub: HubNumber, ask: &Ask) {
        let Some(number) = self.open.number_of(hub, ask) else { return };
        let was_ours = self.open.get(number).is_some_and(|it| it.is_answered);
        let ending = ending(ask.event(), &ask.state(), was_ours);
        if ask.state().is_final() {
            self.open.remove(self.note_moment(), number);
            let (numbers, token) = (self.numbers.clone(), ask.reply_token().clone());
            let now = now_unix_ms() / 1000;
            let noting =
                spawn_blocking(move || numbers.change(|numbers| numbers.over(now, &token)));
            tokio::spawn(async move { done(noting.await) });
        }
        self.tell_all(&Input::Over { number, ending });
    }

    /// Nothing more comes from a hub, so nobody knows any more how its questions stand.
    pub(super) fn give_up(&mut self, hub: HubNumber) {
        self.gathered.retain(|(it, _)| *it != hub);
        for number in self.open.at(hub) {
            self.open.remove(self.note_moment(), number);
            self.tell_all(&Input::Over { number, ending: Ending::Unknown });
        }
    }
}

/// What came of a change of the numbers. A failure is told, and then it goes on without.
fn done<T>(changed: Result<Result<T, Failure>, JoinError>) -> Option<T> {
    changed.ok()?.map_err(|failure| console::complain(&failure)).ok()
}
