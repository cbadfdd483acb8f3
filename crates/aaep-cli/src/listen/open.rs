//! The questions that wait for the person here, and which of them typed words can be meant for (ruling 33). Pure but
//! for the questions themselves.
//!
//! Words count only for what the person knew when they began to type, and consent only to what they had been told to
//! its end by then.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use aaep::event::human::Decision;
use aaep::extension::{DecidedBy, Outcome};
use aaep::{Event, Payload};
use aaep_announce::device::lines;
use aaep_announce::{AskNumber, By, Ending, HubNumber};
use aaep_subscriber::{Ask, AskState};

/// How long a question must have been told before a yes without a number can be meant for it.
const HEARD_FOR: Duration = Duration::from_secs(1);

/// How long after the end of a question a yes without a number may still be meant for that one.
const MEANT_FOR_THE_LAST: Duration = Duration::from_secs(5);

/// How many questions that are over are remembered, for words that were begun before.
const MAX_OVER: usize = 64;

/// Numbers for questions that got none: beyond those that the person shares between programs.
const FIRST_OWN_NUMBER: AskNumber = 100;

/// A question that waits.
pub(super) struct Waiting {
    /// Where it is asked.
    pub(super) hub: HubNumber,
    pub(super) ask: Ask,
    /// Since when the person is being told.
    pub(super) told_since: Option<Duration>,
    /// Which devices told it to its end, and when.
    pub(super) whole: Vec<(&'static str, Duration)>,
    /// Whether the hub was told that it was presented.
    pub(super) is_presented: bool,
    /// Whether the person answered here.
    pub(super) is_answered: bool,
}

impl Waiting {
    /// Whether the person was told it to its end. Beside a device that takes its time, lines that were written at
    /// once prove nothing: `has_paced` says whether there is one that works.
    pub(super) fn is_whole(&self, has_paced: bool) -> bool {
        self.is_whole_at(Duration::MAX, has_paced)
    }

    /// Whether that was so at this moment.
    pub(super) fn is_whole_at(&self, at: Duration, has_paced: bool) -> bool {
        let counts = |device: &str| device != lines::NAME || !has_paced;
        self.whole.iter().any(|(device, since)| counts(device) && *since <= at)
    }

    /// Whether the person had begun to be told it at this moment.
    pub(super) fn is_told_at(&self, at: Duration) -> bool {
        self.told_since.is_some_and(|since| since <= at)
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct Open {
    waiting: BTreeMap<AskNumber, Waiting>,
    own_numbers: AskNumber,
    /// From when to when questions were told that are over, the newest last.
    over: VecDeque<(Duration, Duration)>,
}

/// Why words without a number are not taken as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotBare {
    /// Nothing waits.
    Nothing,
    /// Several wait.
    Several,
    /// Another question was there when the person began to type.
    Another,
    /// The question that was there when the person began to type is over, and nothing else waits.
    Over,
    /// It is not sure that the person means this one.
    Unsure(AskNumber),
}

impl Open {
    /// A question waits from now on, under the number that the person shares between programs or one of our own. None
    /// if the same question waits at another hub: the first one stands, so that no hub takes it from another.
    pub(super) fn add(
        &mut self,
        hub: HubNumber,
        shared: Option<u8>,
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
            FIRST_OWN_NUMBER + self.own_numbers
        });
        let waiting = Waiting {
            hub,
            ask,
            told_since: None,
            whole: Vec::new(),
            is_presented: false,
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
        if let Some(since) = waiting.told_since {
            self.over.push_back((since, now));
            if self.over.len() > MAX_OVER {
                self.over.pop_front();
            }
        }
        Some(waiting)
    }

    /// Which question words without a number are meant for that were begun at this moment: the only one that the
    /// person knew then, if nothing came or went since. Who says no needs less care than who says yes.
    pub(super) fn bare(&self, begun: Duration, is_refusal: bool) -> Result<AskNumber, NotBare> {
        let is_gone = self.over.iter().any(|(told, over)| *told <= begun && begun < *over);
        // One that nobody has been told of yet cannot be meant.
        let told = || self.waiting.iter().filter(|(_, it)| it.told_since.is_some());
        if is_gone || told().any(|(_, it)| !it.is_told_at(begun)) {
            return Err(if told().next().is_some() { NotBare::Another } else { NotBare::Over });
        }
        let mut all = told();
        let (Some((number, waiting)), another) = (all.next(), all.next()) else {
            return Err(NotBare::Nothing);
        };
        if another.is_some() {
            return Err(NotBare::Several);
        }
        let is_later = |at: Duration, pause| begun.saturating_sub(at) >= pause;
        let is_heard = waiting.told_since.is_some_and(|since| is_later(since, HEARD_FOR));
        let last_over = self.over.back().map(|(_, over)| *over);
        let is_alone = last_over.is_none_or(|at| is_later(at, MEANT_FOR_THE_LAST));
        if is_refusal || is_heard && is_alone { Ok(*number) } else { Err(NotBare::Unsure(*number)) }
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
