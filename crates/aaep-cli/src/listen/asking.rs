//! Handles asks as they come and go: a rule answers, or the person is asked under a number.

use std::cmp::Reverse;
use std::time::Duration;

use aaep::printable;
use aaep_announce::words::exact;
use aaep_announce::{AnnouncerInput, AskEnding, Asked, HubNumber, rank};
use aaep_subscriber::{Ask, AskState};
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{sleep, timeout};

use super::open::ending;
use super::room::{ListeningRoom, RoomUpdate};
use crate::attention::asked::{self, PresentedAsk};
use crate::console::{self, CommandFailure};
use crate::english::answers;
use crate::keys::now_unix_ms;
use crate::person::is_own_hub;
use crate::settings::rules::automatic;

/// How long an ask may wait for a number that is shared with other programs. They share a file and its lock; the ask
/// is told in any case, even while another program hangs.
const NUMBER_PATIENCE: Duration = Duration::from_millis(500);

/// Asks that arrive within this time are told together, riskiest first. Nobody notices the delay.
const TOGETHER: Duration = Duration::from_millis(30);

/// An ask of a hub, with the number that the person's programs share, if there is one.
pub(super) type NumberedAsk = (HubNumber, Ask, Option<u16>);

impl ListeningRoom {
    /// Handles a new ask: a rule answers it, or the person is asked.
    pub(super) fn receive_ask(&mut self, hub: HubNumber, ask: Ask) {
        let is_own_hub = || is_own_hub(self.hubs.address(hub));
        if ask.can_reply()
            && let Some(answer) = automatic(&self.rules, ask.event(), is_own_hub)
        {
            let (decision, details) = (answer.decision, answer.details());
            let rule = answer.rule.name.clone();
            let is_yes = decision == aaep::event::human::Decision::Accept;
            let updates = self.updates.0.clone();
            tokio::spawn(async move {
                let sent = ask.decide(decision, details).await;
                let ask = Box::new(ask);
                // If the listening has ended, this does not matter.
                let _ = updates.send(RoomUpdate::ByRule { hub, ask, rule, is_yes, sent }).await;
            });
            return;
        }
        self.gather_ask(hub, ask);
    }

    /// Asks the person as soon as there is a number, together with other asks of the same moment.
    pub(super) fn gather_ask(&mut self, hub: HubNumber, ask: Ask) {
        self.gathered.push((hub, ask));
        if self.gathered.len() > 1 {
            return;
        }
        let updates = self.updates.0.clone();
        tokio::spawn(async move {
            sleep(TOGETHER).await;
            let _ = updates.send(RoomUpdate::Gathered).await;
        });
    }

    /// Assigns numbers to all gathered asks. A background task waits for the disk.
    pub(super) fn number_gathered(&mut self) {
        let gathered = std::mem::take(&mut self.gathered);
        let numbers = self.numbers.clone();
        let asked: Vec<(String, Option<PresentedAsk>)> = gathered
            .iter()
            .map(|(hub, ask)| {
                let known = PresentedAsk::of(ask.event()).filter(|_| ask.can_reply());
                (self.hubs.address(*hub).to_owned(), known)
            })
            .collect();
        let now = now_unix_ms() / 1000;
        let giving = spawn_blocking(move || {
            numbers.change(|numbers| {
                let give = |(address, known): &(String, Option<PresentedAsk>)| {
                    known.as_ref().and_then(|known| numbers.give(now, address, known))
                };
                asked.iter().map(give).collect::<Vec<Option<u16>>>()
            })
        });
        let updates = self.updates.0.clone();
        tokio::spawn(async move {
            // Without shared numbers they can still be answered here.
            let shared = match timeout(NUMBER_PATIENCE, giving).await {
                Ok(given) => done(given).unwrap_or_default(),
                Err(_) => Vec::new(),
            };
            let shared = shared.into_iter().chain(std::iter::repeat(None));
            let mut all: Vec<NumberedAsk> =
                gathered.into_iter().zip(shared).map(|((hub, ask), it)| (hub, ask, it)).collect();
            all.sort_by_key(|(_, ask, _)| Reverse(rank(ask.event())));
            let _ = updates.send(RoomUpdate::Numbered(all)).await;
        });
    }

    /// Asks the person now.
    pub(super) fn tell_ask(&mut self, (hub, ask, shared): &NumberedAsk) {
        let Some(number) = self.open.add(*hub, *shared, ask.clone()) else { return };
        let (event, remaining, can_answer) = (ask.event(), ask.remaining(), ask.can_reply());
        self.tell_from(
            *hub,
            &AnnouncerInput::Asked(Asked { number, event, remaining, can_answer }),
        );
        if let Some(known) = PresentedAsk::of(event).filter(|_| shared.is_some()) {
            // Other programs of this person then use the same name for the agent.
            let (numbers, label) = (self.numbers.clone(), self.agent_label(*hub, event));
            let noting = spawn_blocking(move || numbers.change(|it| it.heard_as(&known, &label)));
            tokio::spawn(async move { done(noting.await) });
        }
        if !ask.state().is_open() {
            // It ended while it waited for its number.
            self.ask_ended(*hub, ask);
        }
    }

    /// Handles the end of an ask.
    pub(super) fn ask_ended(&mut self, hub: HubNumber, ask: &Ask) {
        let Some(number) = self.open.number_of(hub, ask) else {
            if ask.state() == AskState::Unknown {
                // A rule had answered it.
                let told = answers::rule_not_known(&exact(asked::what(ask.event())));
                self.tell_all(&AnnouncerInput::Notice(&told));
            }
            return;
        };
        let was_ours = self.open.get(number).is_some_and(|it| it.is_answered);
        let ending = ending(ask.event(), &ask.state(), was_ours);
        if ask.state().is_final() {
            self.open.remove(self.note_moment(), number);
            let (numbers, token) = (self.numbers.clone(), ask.reply_token().clone());
            let now = now_unix_ms() / 1000;
            let noting =
                spawn_blocking(move || numbers.change(|numbers| numbers.mark_over(now, &token)));
            tokio::spawn(async move { done(noting.await) });
        }
        self.tell_all(&AnnouncerInput::Over { number, ending });
        if was_ours && ask.state() == AskState::Unknown {
            self.tell_all(&AnnouncerInput::Notice(&answers::may_not_count(number)));
        }
    }

    /// Handles an answer that does not count: the person is asked again, also if a rule had answered for them.
    pub(super) fn not_counted(&mut self, hub: HubNumber, ask: Ask, message: &str) {
        let why = printable(message);
        if let Some(number) = self.open.number_of(hub, &ask) {
            if let Some(waiting) = self.open.get_mut(number) {
                waiting.is_answered = false;
            }
            self.tell_all(&AnnouncerInput::AnswerFailed { number, why: &why });
        } else {
            let told = answers::rule_does_not_count(&exact(asked::what(ask.event())), &why);
            self.tell_all(&AnnouncerInput::Notice(&told));
            self.gather_ask(hub, ask);
        }
    }

    /// Ends all asks of a hub that sends nothing more, because their state is unknown from now on.
    pub(super) fn give_up(&mut self, hub: HubNumber) {
        self.gathered.retain(|(it, _)| *it != hub);
        for number in self.open.at(hub) {
            self.open.remove(self.note_moment(), number);
            self.tell_all(&AnnouncerInput::Over { number, ending: AskEnding::Unknown });
        }
    }
}

/// The result of changing the numbers. Reports a failure and continues without it.
fn done<T>(changed: Result<Result<T, CommandFailure>, JoinError>) -> Option<T> {
    changed.ok()?.map_err(|failure| console::complain(&failure)).ok()
}
