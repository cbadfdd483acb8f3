//! The open asks at this listener. Pure except for the asks themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use aaep::event::human::Decision;
use aaep::extension::DecidedBy;
use aaep::{Event, Payload};
use aaep_announce::{AnsweredBy, AskEnding, AskNumber, HubNumber, time_after_presentation};
use aaep_subscriber::{Ask, AskState};

use super::meant::{PastAsks, TellingProgress, UnnumberedRefusal, find_unnumbered};
use crate::attention::asked::word_count;
use crate::attention::numbers::HIGHEST;

/// An open ask.
pub(super) struct UnansweredAsk {
    /// The hub that asks.
    pub(super) hub: HubNumber,
    pub(super) ask: Ask,
    /// How far it was told to the person.
    pub(super) told: TellingProgress,
    /// Whether the hub was notified that it was presented.
    pub(super) is_presented: bool,
    /// Whether the hub has reported its deadline.
    pub(super) is_time_known: bool,
    /// Whether the person answered here.
    pub(super) is_answered: bool,
}

impl UnansweredAsk {
    /// Whether only a person may consent to it.
    pub(super) fn needs_person(&self) -> bool {
        match &self.ask.event().payload {
            Payload::AwaitingConfirmation(asked) => !asked.stakes().allows_default(),
            _ => false,
        }
    }

    /// How much time is left, counted from the presentation if the hub counts that way.
    pub(super) fn remaining(&self) -> Duration {
        let left = self.ask.remaining();
        let own = time_after_presentation(self.ask.event()).filter(|_| !self.is_time_known);
        own.map_or(left, |own| own.min(left))
    }
}

/// All open asks, by number.
#[derive(Default)]
pub(super) struct UnansweredAsks {
    waiting: BTreeMap<AskNumber, UnansweredAsk>,
    own_numbers: AskNumber,
    past: PastAsks,
}

impl UnansweredAsks {
    /// Adds an ask, under the number that the person's programs share or one of our own. `None` if the same ask is
    /// open at another hub: the first one stays, so that no hub takes it over.
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
            // A number never refers to another ask while the first one is open.
            shared = shared.filter(|_| is_same);
        }
        let number = shared.unwrap_or_else(|| {
            self.own_numbers += 1;
            // Above the numbers that programs share.
            AskNumber::from(HIGHEST) + self.own_numbers
        });
        let waiting = UnansweredAsk {
            hub,
            told: TellingProgress::new(word_count(ask.event())),
            ask,
            is_presented: false,
            is_time_known: false,
            is_answered: false,
        };
        self.waiting.insert(number, waiting);
        Some(number)
    }

    pub(super) fn get(&self, number: AskNumber) -> Option<&UnansweredAsk> {
        self.waiting.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: AskNumber) -> Option<&mut UnansweredAsk> {
        self.waiting.get_mut(&number)
    }

    /// The number of an open ask.
    pub(super) fn number_of(&self, hub: HubNumber, ask: &Ask) -> Option<AskNumber> {
        let is_it = |it: &UnansweredAsk| it.hub == hub && it.ask.reply_token() == ask.reply_token();
        self.waiting.iter().find(|(_, it)| is_it(it)).map(|(number, _)| *number)
    }

    /// The open asks of a hub.
    pub(super) fn at(&self, hub: HubNumber) -> Vec<AskNumber> {
        self.all().filter(|(_, it)| it.hub == hub).map(|(number, _)| number).collect()
    }

    /// All open asks, by number.
    pub(super) fn all(&self) -> impl Iterator<Item = (AskNumber, &UnansweredAsk)> {
        self.waiting.iter().map(|(number, it)| (*number, it))
    }

    /// Removes an ask that has ended.
    pub(super) fn remove(&mut self, now: Duration, number: AskNumber) -> Option<UnansweredAsk> {
        let waiting = self.waiting.remove(&number)?;
        self.past.add(number, &waiting.told, now);
        Some(waiting)
    }

    /// Whether an ended ask had this number.
    pub(super) fn was_asked(&self, number: AskNumber) -> bool {
        self.past.had(number)
    }

    /// Which ask words without a number refer to, if they were begun at this moment.
    pub(super) fn find_unnumbered(
        &self,
        begun: Duration,
        is_refusal: bool,
        has_paced: bool,
    ) -> Result<AskNumber, UnnumberedRefusal> {
        let waiting = self.waiting.iter().map(|(number, it)| (*number, &it.told));
        find_unnumbered(waiting, &self.past, begun, is_refusal, has_paced)
    }
}

/// How an ask ended, for the announcer. `was_ours` says whether the person answered here.
pub(super) fn ending(event: &Event, state: &AskState, was_ours: bool) -> AskEnding {
    let AskState::Resolved { outcome, decided_by } = state else {
        return match state {
            AskState::Withdrawn(_) => AskEnding::Withdrawn,
            AskState::Expired => by_default(event),
            _ => AskEnding::Unknown,
        };
    };
    let by = match decided_by {
        DecidedBy::Reply if was_ours => AnsweredBy::You,
        DecidedBy::Timeout => AnsweredBy::Timeout,
        DecidedBy::NoListener => AnsweredBy::Nobody,
        _ => AnsweredBy::Elsewhere,
    };
    AskEnding::new(outcome, by)
}

/// The ending of an ask that nobody answered.
fn by_default(event: &Event) -> AskEnding {
    match &event.payload {
        Payload::AwaitingConfirmation(asked) => match asked.default_decision {
            Decision::Accept => AskEnding::Accepted(AnsweredBy::Timeout),
            Decision::Reject => AskEnding::Rejected(AnsweredBy::Timeout),
        },
        Payload::AwaitingClarification(asked) if asked.default_response.is_some() => {
            AskEnding::Answered(AnsweredBy::Timeout)
        }
        Payload::AwaitingClarification(_) => AskEnding::Unanswered,
        _ => AskEnding::Unknown,
    }
}
