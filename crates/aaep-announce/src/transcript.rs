//! What was said, once more: events of the past in the words of live listening.
//!
//! The announcer is run against a device that says everything at once, so that nothing is summed up. Questions are
//! told as past, followed by what became of them; nothing in a transcript can be answered.

use std::collections::VecDeque;
use std::time::Duration;

use aaep::extension::{DecidedBy, Delivery, Outcome, Resolution};
use aaep::{CoreType, Event, Payload, ReplyToken, SessionId};

use crate::announcer::{Announcer, AskNumber, Asked, By, Ending, Input, MAX_QUESTIONS};
use crate::english::asks::THE_ANSWER_WAS;
use crate::profile::Preferences;
use crate::utterance::{Kind, Order, Report, Utterance};
use crate::words::{cut, exact};

/// The longest answer of a person that is told, in bytes.
const MAX_ANSWER: usize = 2 * 1024;

/// Tells events of the past, one after the other.
#[derive(Debug, Clone)]
pub struct Transcript {
    announcer: Announcer,
    now: Duration,
    /// The questions of which it was not told yet what became of them, the oldest first.
    open: VecDeque<Question>,
    last_number: AskNumber,
}

#[derive(Debug, Clone)]
struct Question {
    number: AskNumber,
    reply_token: ReplyToken,
    session_id: SessionId,
}

/// Who gave the answer of which an event tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered<'a> {
    /// Who it was.
    pub by: By,
    /// What was answered, where the person may know it. Foreign text.
    pub response: Option<&'a str>,
}

impl Transcript {
    /// One for a person with these preferences.
    pub fn new(preferences: &Preferences) -> Self {
        Transcript {
            announcer: Announcer::of_the_past(preferences.clone()),
            now: Duration::ZERO,
            open: VecDeque::new(),
            last_number: 0,
        }
    }

    /// The next event, and when it came; what was said of it. `answered` says who answered, if the event tells that a
    /// question was answered and that is known.
    pub fn take(
        &mut self,
        at: Duration,
        event: &Event,
        answered: Option<Answered<'_>>,
    ) -> Vec<Utterance> {
        self.now = self.now.max(at);
        match &event.payload {
            Payload::AwaitingConfirmation(it) => self.ask(event, &it.reply_token),
            Payload::AwaitingClarification(it) => self.ask(event, &it.reply_token),
            _ => {
                let mut said = self.settle(event, answered);
                said.extend(self.handle(Input::Event(event)));
                said
            }
        }
    }

    /// The questions of which it was not told what became of them.
    pub fn open(&self) -> impl Iterator<Item = &ReplyToken> {
        self.open.iter().map(|it| &it.reply_token)
    }

    fn ask(&mut self, event: &Event, reply_token: &ReplyToken) -> Vec<Utterance> {
        if self.open.len() >= MAX_QUESTIONS
            && let Some(oldest) = self.open.pop_front()
        {
            // Nobody can have had so many open; the announcer makes room in the same way.
            let (number, ending) = (oldest.number, Ending::Withdrawn);
            self.handle(Input::Over { number, ending });
        }
        self.last_number = self.last_number.wrapping_add(1);
        let number = self.last_number;
        self.open.push_back(Question {
            number,
            reply_token: reply_token.clone(),
            session_id: event.envelope.session_id.clone(),
        });
        let remaining = Duration::ZERO;
        self.handle(Input::Asked(Asked { number, event, remaining, can_answer: false }))
    }

    /// Tells of the questions that are over with this event.
    fn settle(&mut self, event: &Event, answered: Option<Answered<'_>>) -> Vec<Utterance> {
        let resolution = Delivery::of(event).and_then(|it| it.resolution);
        let is_end = event.event_type().core().is_some_and(CoreType::is_terminal);
        let mut over = Vec::new();
        self.open.retain(|question| {
            let ending = match &resolution {
                Some(it) if it.reply_token == question.reply_token => ending(it, answered),
                _ if is_end && question.session_id == event.envelope.session_id => {
                    Ending::Withdrawn
                }
                _ => return true,
            };
            over.push((question.number, ending));
            false
        });
        let mut said = Vec::new();
        for (number, ending) in over {
            said.extend(self.handle(Input::Over { number, ending }));
        }
        let response = answered.and_then(|it| it.response);
        let settled = said.iter_mut().rev().find(|it| it.kind == Kind::Settled);
        if let (Some(settled), Some(response)) = (settled, response) {
            let response = exact(cut(response, MAX_ANSWER));
            settled.words.extend([" ", THE_ANSWER_WAS, " ", &response]);
        }
        said
    }

    /// Lets the announcer decide; what it says is said at once.
    fn handle(&mut self, input: Input<'_>) -> Vec<Utterance> {
        let mut said = Vec::new();
        let mut orders: VecDeque<Order> = self.announcer.handle(self.now, input).orders.into();
        while let Some(order) = orders.pop_front() {
            let reports = match order {
                Order::Say(utterance) => {
                    let id = utterance.id;
                    said.push(utterance);
                    vec![Report::Began(id), Report::Ended(id)]
                }
                Order::Stop | Order::Withdraw(_) | Order::Sound(_) | Order::Pace(_) => Vec::new(),
            };
            for report in reports {
                let decided = self.announcer.handle(self.now, Input::Device(report));
                orders.extend(decided.orders);
            }
        }
        said
    }
}

/// How a question ended, from what the hub says of it and what is known of who answered.
fn ending(resolution: &Resolution, answered: Option<Answered<'_>>) -> Ending {
    let by = match resolution.decided_by {
        DecidedBy::Timeout => By::Timeout,
        DecidedBy::NoListener => By::Nobody,
        DecidedBy::Reply => answered.map_or(By::Someone, |it| it.by),
        DecidedBy::Withdrawn | DecidedBy::Other(_) => By::Someone,
    };
    match resolution.outcome {
        Outcome::Accept => Ending::Accepted(by),
        Outcome::Reject => Ending::Rejected(by),
        Outcome::Answered => Ending::Answered(by),
        Outcome::Unanswered => Ending::Unanswered,
        Outcome::Withdrawn => Ending::Withdrawn,
        Outcome::Other(_) => Ending::Unknown,
    }
}
