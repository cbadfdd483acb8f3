//! The questions that wait for the person here. Pure but for the questions themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use aaep::event::human::Decision;
use aaep::extension::{DecidedBy, Outcome};
use aaep::{Event, Payload};
use aaep_announce::{AskNumber, By, Ending, HubNumber, time_after_presentation};
use aaep_subscriber::{Ask, AskState};

use super::meant::{NotBare, Over, Told, bare};
use crate::attention::asked::word_count;
use crate::attention::numbers::HIGHEST;

/// A question that waits.
pub(super) struct Waiting {
    /// Where it is asked.
    pub(super) hub: HubNumber,
    pub(super) ask: Ask,
    /// How far the person was told.
    pub(super) told: Told,
    /// Whether the hub was told that it was presented.
    pub(super) is_presented: bool,
    /// Whether the hub has said until when it can be answered.
    pub(super) is_time_known: bool,
    /// Whether the person answered here.
    pub(super) is_answered: bool,
}

impl Waiting {
    /// How much time the person has, counted from when it was presented where the hub counts so.
    pub(super) fn remaining(&self) -> Duration {
        let left = self.ask.remaining();
        let own = time_after_presentation(self.ask.event()).filter(|_| !self.is_time_known);
        own.map_or(left, |own| own.min(left))
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct Open {
    waiting: BTreeMap<AskNumber, Waiting>,
    own_numbers: AskNumber,
    over: Over,
}

impl Open {
    /// A question waits from now on, under the number that the person shares between programs or one of our own. None
    /// if the same question waits at another hub: the first one stands, so that no hub takes it from another.
    pub(super) fn add(
        &mut self,
        hub: HubNumber,
        shared: Option<u16>,
        ask: Ask,
    ) -> Option<AskNumber> {
        let mut shared = shared.map(AskNumber::from);
        if let Some(other) = shared.and_then(|number| self.waiting.get(&number)) {
            let is_same = other.ask.reply_token() == ask.reply_token();
            if is_same && other.hub != hub {
                return None;
            }
            // A number never comes to mean another question while the first one waits.
            shared = shared.filter(|_| is_same);
        }
        let number = shared.unwrap_or_else(|| {
            self.own_numbers += 1;
            // Beyond those that the person shares between programs.
            AskNumber::from(HIGHEST) + self.own_numbers
        });
        let waiting = Waiting {
            hub,
            told: Told::new(word_count(ask.event())),
            ask,
            is_presented: false,
            is_time_known: false,
            is_answered: false,
        };
        self.waiting.insert(number, waiting);
        Some(number)
    }

    pub(super) fn get(&self, number: AskNumber) -> Option<&Waiting> {
        self.waiting.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: AskNumber) -> Option<&mut Waiting> {
        self.waiting.get_mut(&number)
    }

    /// The number of a question that waits.
    pub(super) fn number_of(&self, hub: HubNumber, ask: &Ask) -> Option<AskNumber> {
        let is_it = |it: &Waiting| it.hub == hub && it.ask.reply_token() == ask.reply_token();
        self.waiting.iter().find(|(_, it)| is_it(it)).map(|(number, _)| *number)
    }

    /// Those that wait at a hub.
    pub(super) fn at(&self, hub: HubNumber) -> Vec<AskNumber> {
        self.all().filter(|(_, it)| it.hub == hub).map(|(number, _)| number).collect()
    }

    /// All that wait, by number.
    pub(super) fn all(&self) -> impl Iterator<Item = (AskNumber, &Waiting)> {
        self.waiting.iter().map(|(number, it)| (*number, it))
    }

    /// A question is over.
    pub(super) fn remove(&mut self, now: Duration, number: AskNumber) -> Option<Waiting> {
        let waiting = self.waiting.remove(&number)?;
        self.over.add(number, &waiting.told, now);
        Some(waiting)
    }

    /// Whether a question had this number and is over.
    pub(super) fn was_asked(&self, number: AskNumber) -> bool {
        self.over.had(number)
    }

    /// Which question words without a number are meant for that were begun at this moment.
    pub(super) fn bare(
        &self,
        begun: Duration,
        is_refusal: bool,
        has_paced: bool,
    ) -> Result<AskNumber, NotBare> {
        let waiting = self.waiting.iter().map(|(number, it)| (*number, &it.told));
        bare(waiting, &self.over, begun, is_refusal, has_paced)
    }
}

/// How a question ended, for the announcer. `was_ours` says whether the person answered here.
pub(super) fn ending(event: &Event, state: &AskState, was_ours: bool) -> Ending {
    let AskState::Resolved { outcome, decided_by } = state else {
        return match state {
            AskState::Withdrawn(_) => Ending::Withdrawn,
            AskState::Expired => by_default(event),
            _ => Ending::Unknown,
        };
    };
    let by = match decided_by {
        DecidedBy::Reply if was_ours => By::You,
        DecidedBy::Timeout => By::Timeout,
        DecidedBy::NoListener => By::Nobody,
        _ => By::Elsewhere,
    };
    match outcome {
        Outcome::Accept => Ending::Accepted(by),
        Outcome::Reject => Ending::Rejected(by),
        Outcome::Answered => Ending::Answered(by),
        Outcome::Unanswered => Ending::Unanswered,
        Outcome::Withdrawn => Ending::Withdrawn,
        Outcome::Other(_) => Ending::Unknown,
    }
}

/// What silence means to a question.
fn by_default(event: &Event) -> Ending {
    match &event.payload {
        Payload::AwaitingConfirmation(asked) => match asked.default_decision {
            Decision::Accept => Ending::Accepted(By::Timeout),
            Decision::Reject => Ending::Rejected(By::Timeout),
        },
        Payload::AwaitingClarification(asked) if asked.default_response.is_some() => {
            Ending::Answered(By::Timeout)
        }
        Payload::AwaitingClarification(_) => Ending::Unanswered,
        _ => Ending::Unknown,
    }
}
