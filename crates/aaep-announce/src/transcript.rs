//! A transcript: past events in the words of live listening.
//!
//! The announcer runs with a device that takes no time, so that nothing is summarized. Questions are worded as past
//! and followed by their outcome; nothing in a transcript can be answered.

use std::collections::VecDeque;
use std::time::Duration;

use aaep::extension::{DecidedBy, Delivery, Resolution};
use aaep::{CoreType, Event, Payload, ReplyToken, SessionId};

use crate::announcer::{
    Announcer, AnnouncerInput, AnsweredBy, AskEnding, AskNumber, Asked, MAX_QUESTIONS,
};
use crate::english::asks::THE_ANSWER_WAS;
use crate::profile::Preferences;
use crate::utterance::{DeviceReport, Order, Utterance, UtteranceKind};
use crate::words::{cut, exact};

/// The longest answer of a person that is repeated, in bytes.
const MAX_ANSWER: usize = 2 * 1024;

/// Turns past events into utterances, one after the other.
#[derive(Debug, Clone)]
pub struct Transcript {
    announcer: Announcer,
    now: Duration,
    /// The questions whose outcome has not been told yet, the oldest first.
    open: VecDeque<TranscriptAsk>,
    last_number: AskNumber,
}

#[derive(Debug, Clone)]
struct TranscriptAsk {
    number: AskNumber,
    reply_token: ReplyToken,
    session_id: SessionId,
}

/// The answer behind an event that settles a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered<'a> {
    /// Who answered.
    pub by: AnsweredBy,
    /// The answer, if the person may know it. Foreign text.
    pub response: Option<&'a str>,
}

impl Transcript {
    /// Creates a transcript for a person with these preferences.
    pub fn new(preferences: &Preferences) -> Self {
        Transcript {
            announcer: Announcer::of_the_past(preferences.clone()),
            now: Duration::ZERO,
            open: VecDeque::new(),
            last_number: 0,
        }
    }

    /// Takes the next event and its time, and returns what is said about it. `answered` is the answer, if the event
    /// settles a question and the answer is known.
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
                said.extend(self.handle(AnnouncerInput::Event(event)));
                said
            }
        }
    }

    /// The questions whose outcome has not been told.
    pub fn open(&self) -> impl Iterator<Item = &ReplyToken> {
        self.open.iter().map(|it| &it.reply_token)
    }

    fn ask(&mut self, event: &Event, reply_token: &ReplyToken) -> Vec<Utterance> {
        if self.open.len() >= MAX_QUESTIONS
            && let Some(oldest) = self.open.pop_front()
        {
            // More open questions than the announcer holds; it makes room in the same way.
            let (number, ending) = (oldest.number, AskEnding::Withdrawn);
            self.handle(AnnouncerInput::Over { number, ending });
        }
        self.last_number = self.last_number.wrapping_add(1);
        let number = self.last_number;
        self.open.push_back(TranscriptAsk {
            number,
            reply_token: reply_token.clone(),
            session_id: event.envelope.session_id.clone(),
        });
        let remaining = Duration::ZERO;
        self.handle(AnnouncerInput::Asked(Asked { number, event, remaining, can_answer: false }))
    }

    /// Announces the outcome of the questions that this event settles.
    fn settle(&mut self, event: &Event, answered: Option<Answered<'_>>) -> Vec<Utterance> {
        let resolution = Delivery::of(event).and_then(|it| it.resolution);
        let is_end = event.event_type().core().is_some_and(CoreType::is_terminal);
        let mut over = Vec::new();
        self.open.retain(|question| {
            let ending = match &resolution {
                Some(it) if it.reply_token == question.reply_token => ending(it, answered),
                _ if is_end && question.session_id == event.envelope.session_id => {
                    AskEnding::Withdrawn
                }
                _ => return true,
            };
            over.push((question.number, ending));
            false
        });
        let mut said = Vec::new();
        for (number, ending) in over {
            said.extend(self.handle(AnnouncerInput::Over { number, ending }));
        }
        let response = answered.and_then(|it| it.response);
        let settled = said.iter_mut().rev().find(|it| it.kind == UtteranceKind::Settled);
        if let (Some(settled), Some(response)) = (settled, response) {
            let response = exact(cut(response, MAX_ANSWER));
            settled.words.extend([" ", THE_ANSWER_WAS, " ", &response]);
        }
        said
    }

    /// Passes the input to the announcer and says everything at once.
    fn handle(&mut self, input: AnnouncerInput<'_>) -> Vec<Utterance> {
        let mut said = Vec::new();
        let mut orders: VecDeque<Order> = self.announcer.handle(self.now, input).orders.into();
        while let Some(order) = orders.pop_front() {
            let reports = match order {
                Order::Say(utterance) => {
                    let id = utterance.id;
                    said.push(utterance);
                    vec![DeviceReport::Began(id), DeviceReport::Ended(id)]
                }
                Order::Stop | Order::Withdraw(_) | Order::Sound(_) | Order::Pace(_) => Vec::new(),
            };
            for report in reports {
                let decided = self.announcer.handle(self.now, AnnouncerInput::Device(report));
                orders.extend(decided.orders);
            }
        }
        said
    }
}

/// How a question ended, from the hub's resolution and the known answer.
fn ending(resolution: &Resolution, answered: Option<Answered<'_>>) -> AskEnding {
    let by = match resolution.decided_by {
        DecidedBy::Timeout => AnsweredBy::Timeout,
        DecidedBy::NoListener => AnsweredBy::Nobody,
        DecidedBy::Reply => answered.map_or(AnsweredBy::Someone, |it| it.by),
        DecidedBy::Withdrawn | DecidedBy::Other(_) => AnsweredBy::Someone,
    };
    AskEnding::new(&resolution.outcome, by)
}
