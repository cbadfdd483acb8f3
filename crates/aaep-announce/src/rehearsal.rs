//! Listening without a person: what would have been said, and when, at a given pace.
//!
//! The announcer is run against a device that speaks so many words per minute. Nothing is awaited; an hour of
//! listening is rehearsed in a moment, and always in the same way.

use std::collections::VecDeque;
use std::time::Duration;

use aaep::event::human::Decision;
use aaep::extension::{DecidedBy, Delivery, Outcome as Settlement};
use aaep::{CoreType, Event, Payload, ReplyToken, SessionId};

use crate::announcer::{Announcer, AskNumber, Asked, By, Ending, Input};
use crate::profile::Preferences;
use crate::utterance::{Order, Report, Utterance, UtteranceId};

/// What would have been said.
#[derive(Debug, Clone, Default)]
pub struct Rehearsal {
    /// Every order for the device, and when it was given.
    pub orders: Vec<(Duration, Order)>,
    /// Everything that was said, in order.
    pub said: Vec<Said>,
    /// Every question.
    pub asks: Vec<RehearsedAsk>,
}

/// Something that was said.
#[derive(Debug, Clone)]
pub struct Said {
    /// What was said.
    pub utterance: Utterance,
    /// When what it tells became known.
    pub arrived: Duration,
    /// When its first word was said.
    pub began: Duration,
    /// When it ended, whole or not.
    pub ended: Duration,
    /// Whether it was said whole.
    pub is_whole: bool,
    /// The same for an utterance that was cut off and for the one that said it again.
    pub(crate) serial: u64,
}

/// A question, and when the person heard of it.
#[derive(Debug, Clone)]
pub struct RehearsedAsk {
    /// Its number.
    pub number: AskNumber,
    /// When it was asked.
    pub asked: Duration,
    /// When its first word was said, if it was said before it was over.
    pub first_word: Option<Duration>,
    /// When it was over.
    pub over: Option<Duration>,
    token: ReplyToken,
    session_id: SessionId,
    /// When time is over, and what silence means.
    ends_at: Duration,
    default: Ending,
}

/// Rehearses events, each at its moment, in order, for a person with these preferences and a device that says so many
/// words per minute; with 0 it says everything at once.
pub fn rehearse(
    events: &[(Duration, Event)],
    preferences: &Preferences,
    words_per_minute: u64,
) -> Rehearsal {
    let mut stage = Stage {
        announcer: Announcer::new(preferences.clone()),
        words_per_minute,
        now: Duration::ZERO,
        speaking: None,
        reports: VecDeque::new(),
        rehearsal: Rehearsal::default(),
    };
    let mut events = events.iter().peekable();
    loop {
        let event = events.peek().map(|(at, _)| *at);
        let Some(next) = stage.next(event) else { return stage.rehearsal };
        stage.now = stage.now.max(next);
        if event.is_some_and(|at| at <= stage.now) {
            if let Some((_, event)) = events.next() {
                stage.event(event);
            }
        } else {
            stage.time();
        }
    }
}

struct Stage {
    announcer: Announcer,
    words_per_minute: u64,
    now: Duration,
    /// What is being said, and until when.
    speaking: Option<(UtteranceId, Duration)>,
    reports: VecDeque<Report>,
    rehearsal: Rehearsal,
}

impl Stage {
    /// When something happens next.
    fn next(&self, event: Option<Duration>) -> Option<Duration> {
        let end = self.speaking.map(|(_, end)| end);
        let open = self.rehearsal.asks.iter().filter(|it| it.over.is_none());
        let timeout = open.map(|it| it.ends_at).min();
        [event, end, timeout, self.announcer.deadline()].into_iter().flatten().min()
    }

    fn event(&mut self, event: &Event) {
        match &event.payload {
            Payload::AwaitingConfirmation(it) => {
                let default = match it.default_decision {
                    Decision::Accept => Ending::Accepted(By::Timeout),
                    Decision::Reject => Ending::Rejected(By::Timeout),
                };
                self.ask(event, &it.reply_token, it.timeout_seconds, default);
            }
            Payload::AwaitingClarification(it) => {
                let default = match it.default_response {
                    Some(_) => Ending::Answered(By::Timeout),
                    None => Ending::Unanswered,
                };
                self.ask(event, &it.reply_token, it.timeout_seconds, default);
            }
            _ => {
                self.handle(Input::Event(event));
                self.settle(event);
            }
        }
    }

    fn ask(&mut self, event: &Event, token: &ReplyToken, seconds: u64, default: Ending) {
        let number = AskNumber::try_from(self.rehearsal.asks.len()).unwrap_or(AskNumber::MAX);
        let (number, remaining) = (number.saturating_add(1), Duration::from_secs(seconds));
        self.rehearsal.asks.push(RehearsedAsk {
            number,
            asked: self.now,
            first_word: None,
            over: None,
            token: token.clone(),
            session_id: event.envelope.session_id.clone(),
            ends_at: self.now.saturating_add(remaining),
            default,
        });
        self.handle(Input::Asked(Asked { number, event, remaining, can_answer: true }));
    }

    /// Ends the questions of which an event tells that they are over.
    fn settle(&mut self, event: &Event) {
        let resolution = Delivery::of(event).and_then(|it| it.resolution);
        let is_end = event.event_type().core().is_some_and(CoreType::is_terminal);
        let mut over = Vec::new();
        for ask in self.rehearsal.asks.iter_mut().filter(|it| it.over.is_none()) {
            let ending = match &resolution {
                Some(it) if it.reply_token == ask.token => ending(&it.outcome, &it.decided_by),
                _ if is_end && ask.session_id == event.envelope.session_id => Ending::Withdrawn,
                _ => continue,
            };
            ask.over = Some(self.now);
            over.push((ask.number, ending));
        }
        for (number, ending) in over {
            self.handle(Input::Over { number, ending });
        }
    }

    /// Nothing came, and time has passed.
    fn time(&mut self) {
        if let Some((id, end)) = self.speaking
            && end <= self.now
        {
            self.speaking = None;
            self.end(id, true);
            return self.handle(Input::Device(Report::Ended(id)));
        }
        let now = self.now;
        let late = self.rehearsal.asks.iter_mut().find(|it| it.over.is_none() && it.ends_at <= now);
        if let Some(ask) = late {
            ask.over = Some(now);
            let (number, ending) = (ask.number, ask.default);
            return self.handle(Input::Over { number, ending });
        }
        self.handle(Input::Tick);
    }

    /// Lets the announcer decide, and plays the device.
    fn handle(&mut self, input: Input<'_>) {
        let decided = self.announcer.handle(self.now, input);
        decided.orders.into_iter().for_each(|order| self.carry_out(order));
        while let Some(report) = self.reports.pop_front() {
            let decided = self.announcer.handle(self.now, Input::Device(report));
            for outcome in &decided.outcomes {
                if let crate::announcer::Outcome::Presenting(number) = outcome {
                    self.heard_of(*number);
                }
            }
            decided.orders.into_iter().for_each(|order| self.carry_out(order));
        }
    }

    fn carry_out(&mut self, order: Order) {
        match &order {
            Order::Say(utterance) => self.say(utterance),
            Order::Stop => {
                if let Some((id, _)) = self.speaking.take() {
                    self.end(id, false);
                    self.reports.push_back(Report::Cut(id));
                }
            }
            Order::Withdraw(_) | Order::Sound(_) | Order::Pace(_) => {}
        }
        self.rehearsal.orders.push((self.now, order));
    }

    fn say(&mut self, utterance: &Utterance) {
        let (serial, arrived) = self.announcer.origin(utterance.id).unwrap_or((0, self.now));
        self.rehearsal.said.push(Said {
            utterance: utterance.clone(),
            arrived,
            began: self.now,
            ended: self.now,
            is_whole: false,
            serial,
        });
        self.reports.push_back(Report::Began(utterance.id));
        let words = utterance.words.split_whitespace().count() as u64;
        let takes = words.saturating_mul(60_000).checked_div(self.words_per_minute);
        if let Some(milliseconds) = takes {
            let end = self.now.saturating_add(Duration::from_millis(milliseconds));
            self.speaking = Some((utterance.id, end));
        } else {
            self.end(utterance.id, true);
            self.reports.push_back(Report::Ended(utterance.id));
        }
    }

    fn end(&mut self, id: UtteranceId, is_whole: bool) {
        let now = self.now;
        if let Some(said) = self.rehearsal.said.iter_mut().rev().find(|it| it.utterance.id == id) {
            (said.ended, said.is_whole) = (now, is_whole);
        }
    }

    fn heard_of(&mut self, number: AskNumber) {
        let now = self.now;
        if let Some(ask) = self.rehearsal.asks.iter_mut().find(|it| it.number == number) {
            ask.first_word.get_or_insert(now);
        }
    }
}

/// How a question ended, from what a producer says of it. Who answered is not recorded: it was the person.
fn ending(outcome: &Settlement, by: &DecidedBy) -> Ending {
    let by = match by {
        DecidedBy::Timeout => By::Timeout,
        DecidedBy::NoListener => By::Nobody,
        DecidedBy::Reply | DecidedBy::Withdrawn | DecidedBy::Other(_) => By::You,
    };
    match outcome {
        Settlement::Accept => Ending::Accepted(by),
        Settlement::Reject => Ending::Rejected(by),
        Settlement::Answered => Ending::Answered(by),
        Settlement::Unanswered => Ending::Unanswered,
        Settlement::Withdrawn => Ending::Withdrawn,
        Settlement::Other(_) => Ending::Unknown,
    }
}
