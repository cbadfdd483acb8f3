//! Listening without a person: what would have been said, and when, at a given pace.
//!
//! The announcer runs with a simulated device of a given speed. Nothing waits for real time, so an hour of listening
//! is rehearsed in a moment, and always with the same result.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use aaep::event::human::Decision;
use aaep::event::reasoning::state;
use aaep::extension::{AskOutcome, Deadline, DecidedBy, Delivery};
use aaep::{CoreType, Event, Payload, ReplyToken, SessionId};

use crate::announcer::{Announcer, AnnouncerInput, AnsweredBy, AskEnding, AskNumber, Asked};
use crate::profile::Preferences;
use crate::utterance::{DeviceReport, Order, Utterance, UtteranceId, UtteranceKind};

/// The result: everything that would have been said.
#[derive(Debug, Clone, Default)]
pub struct Rehearsal {
    /// Every order for the device, and when it was given.
    pub orders: Vec<(Duration, Order)>,
    /// Everything that was said, in order.
    pub said: Vec<RehearsedUtterance>,
    /// Every question.
    pub asks: Vec<RehearsedAsk>,
}

/// An utterance that was said.
#[derive(Debug, Clone)]
pub struct RehearsedUtterance {
    /// The utterance.
    pub utterance: Utterance,
    /// When its content became known.
    pub arrived: Duration,
    /// When its first word was said.
    pub began: Duration,
    /// When it ended, whole or not.
    pub ended: Duration,
    /// Whether it was said whole.
    pub is_whole: bool,
    /// Whether it was skipped, and is still available on request.
    pub is_offered: bool,
    /// The same number for an interrupted utterance and for its repetition.
    pub(crate) serial: u64,
    /// Whether it is an end, a failure, how a question was settled, or what contradicts a claim.
    pub(crate) is_news: bool,
}

/// A question, and when the person heard about it.
#[derive(Debug, Clone)]
pub struct RehearsedAsk {
    /// Its number.
    pub number: AskNumber,
    /// When it was asked.
    pub asked: Duration,
    /// When its first word was said, if that was before it was over.
    pub first_word: Option<Duration>,
    /// When it was over, and how it ended.
    pub over: Option<(Duration, AskEnding)>,
    /// The question in the words of the agent. Foreign text.
    pub question: String,
    /// `None` if the recording has only the notice that something was asked.
    token: Option<ReplyToken>,
    session_id: SessionId,
    /// When its time is over, unless the recording has its outcome; and its default.
    ends_at: Option<Duration>,
    default: AskEnding,
}

/// Rehearses events, each with its time, in order, for a person with these preferences and a device with this many
/// words per minute. With 0 the device takes no time.
pub fn rehearse(
    events: &[(Duration, Event)],
    preferences: &Preferences,
    words_per_minute: u64,
) -> Rehearsal {
    let announcer = Announcer::new(preferences.clone());
    let announcer = if words_per_minute == 0 { announcer.without_pace() } else { announcer };
    let mut stage = RehearsalStage {
        announcer,
        words_per_minute,
        now: Duration::ZERO,
        speaking: None,
        reports: VecDeque::new(),
        open: Vec::new(),
        settled: events.iter().filter_map(|(_, event)| settled(event)).collect(),
        rehearsal: Rehearsal::default(),
    };
    let mut events = events.iter().peekable();
    loop {
        let event = events.peek().map(|(at, _)| *at);
        if event.is_none() {
            stage.end_of_recording();
        }
        let Some(next) = stage.next(event) else { return stage.end_of_rehearsal() };
        stage.now = stage.now.max(next);
        if event.is_some_and(|at| at <= stage.now) {
            if let Some((_, event)) = events.next() {
                stage.event(event);
            }
        } else {
            stage.advance_time();
        }
    }
}

struct RehearsalStage {
    announcer: Announcer,
    words_per_minute: u64,
    now: Duration,
    /// The current utterance, and when it ends.
    speaking: Option<(UtteranceId, Duration)>,
    reports: VecDeque<DeviceReport>,
    /// The indexes of the questions that are not over.
    open: Vec<usize>,
    /// The questions whose outcome is in the recording. Their timeout does not end them.
    settled: BTreeSet<ReplyToken>,
    rehearsal: Rehearsal,
}

/// The question that an event settles.
fn settled(event: &Event) -> Option<ReplyToken> {
    Delivery::of(event).and_then(|it| it.resolution).map(|it| it.reply_token)
}

impl RehearsalStage {
    /// When something happens next.
    fn next(&self, event: Option<Duration>) -> Option<Duration> {
        let end = self.speaking.map(|(_, end)| end);
        let timeout = self.open().filter_map(|(_, it)| it.ends_at).min();
        [event, end, timeout, self.announcer.deadline()].into_iter().flatten().min()
    }

    /// Marks the utterances that are still available on request.
    fn end_of_rehearsal(mut self) -> Rehearsal {
        for said in &mut self.rehearsal.said {
            said.is_offered = self.announcer.offers(said.serial);
        }
        self.rehearsal
    }

    /// After the end of the recording, it is not known how long its tools ran, so they are not mentioned any more.
    fn end_of_recording(&mut self) {
        let preferences = self.announcer.preferences();
        if preferences.long_tool_seconds > 0 {
            let preferences = Preferences { long_tool_seconds: 0, ..preferences.clone() };
            self.announcer.prefer(preferences);
        }
    }

    /// The questions that are not over, with their indexes.
    fn open(&self) -> impl Iterator<Item = (usize, &RehearsedAsk)> {
        self.open.iter().filter_map(|at| Some((*at, self.rehearsal.asks.get(*at)?)))
    }

    fn event(&mut self, event: &Event) {
        let (token, seconds, default) = match &event.payload {
            Payload::AwaitingConfirmation(it) => {
                let default = match it.default_decision {
                    Decision::Accept => AskEnding::Accepted(AnsweredBy::Timeout),
                    Decision::Reject => AskEnding::Rejected(AnsweredBy::Timeout),
                };
                (&it.reply_token, it.timeout_seconds, default)
            }
            Payload::AwaitingClarification(it) => {
                let default = match it.default_response {
                    Some(_) => AskEnding::Answered(AnsweredBy::Timeout),
                    None => AskEnding::Unanswered,
                };
                (&it.reply_token, it.timeout_seconds, default)
            }
            _ => return self.other_event(event),
        };
        // A producer sends an open question again to a subscriber that reconnects.
        if self.open().any(|(_, it)| it.token.as_ref() == Some(token)) {
            return;
        }
        let remaining = Duration::from_secs(seconds);
        let is_settled = self.settled.contains(token);
        let ends_at = (!is_settled).then(|| self.now.saturating_add(remaining));
        let number = self.ask(event, Some(token.clone()), ends_at, default);
        self.handle(AnnouncerInput::Asked(Asked { number, event, remaining, can_answer: true }));
    }

    fn other_event(&mut self, event: &Event) {
        let is_waiting = matches!(&event.payload, Payload::StateChanged(it)
            if it.to_state == state::AWAITING_INPUT && event.is_critical());
        // The recording of a subscriber that cannot answer has this notice instead of the question itself (ruling 1).
        if is_waiting {
            self.ask(event, None, None, AskEnding::Unknown);
        }
        self.handle(AnnouncerInput::Event(event));
        if let Some(deadline) = Delivery::of(event).and_then(|it| it.deadline) {
            self.time_changed(event, &deadline);
        }
        self.settle(event);
    }

    fn ask(
        &mut self,
        event: &Event,
        token: Option<ReplyToken>,
        ends_at: Option<Duration>,
        default: AskEnding,
    ) -> AskNumber {
        let number = AskNumber::try_from(self.rehearsal.asks.len()).unwrap_or(AskNumber::MAX);
        let number = number.saturating_add(1);
        self.open.push(self.rehearsal.asks.len());
        self.rehearsal.asks.push(RehearsedAsk {
            number,
            asked: self.now,
            first_word: None,
            over: None,
            question: event.summary().to_owned(),
            token,
            session_id: event.envelope.session_id.clone(),
            ends_at,
            default,
        });
        number
    }

    /// Applies a new deadline of a question.
    fn time_changed(&mut self, event: &Event, deadline: &Deadline) {
        let is_it = |it: &RehearsedAsk| it.token.as_ref() == Some(&deadline.reply_token);
        let Some(at) = self.open().find(|(_, it)| is_it(it)).map(|(at, _)| at) else { return };
        let left = deadline.at.unix_us().saturating_sub(event.envelope.timestamp.unix_us());
        let remaining = Duration::from_micros(u64::try_from(left).unwrap_or_default());
        let now = self.now;
        let Some(ask) = self.rehearsal.asks.get_mut(at) else { return };
        ask.ends_at = ask.ends_at.map(|_| now.saturating_add(remaining));
        let number = ask.number;
        let is_paused = deadline.paused;
        self.handle(AnnouncerInput::TimeChanged { number, remaining, is_paused, wanted: None });
    }

    /// Ends the questions that an event settles.
    fn settle(&mut self, event: &Event) {
        let resolution = Delivery::of(event).and_then(|it| it.resolution);
        let is_end = event.event_type().core().is_some_and(CoreType::is_terminal);
        let session_id = &event.envelope.session_id;
        let mut over = Vec::new();
        if let Some(it) = &resolution {
            let is_it = |ask: &RehearsedAsk| ask.token.as_ref() == Some(&it.reply_token);
            let is_perhaps =
                |ask: &RehearsedAsk| ask.token.is_none() && ask.session_id == *session_id;
            let found = self.open().find(|(_, ask)| is_it(ask));
            let found = found.or_else(|| self.open().find(|(_, ask)| is_perhaps(ask)));
            let ending = |ask: &RehearsedAsk| ending(&it.outcome, &it.decided_by, ask);
            over.extend(found.map(|(at, ask)| (at, ending(ask))));
        } else if is_end {
            let theirs = self.open().filter(|(_, ask)| ask.session_id == *session_id);
            over.extend(theirs.map(|(at, _)| (at, AskEnding::Withdrawn)));
        }
        for (at, ending) in over {
            self.end_ask(at, ending);
        }
    }

    fn end_ask(&mut self, at: usize, ending: AskEnding) {
        self.open.retain(|it| *it != at);
        let now = self.now;
        let Some(ask) = self.rehearsal.asks.get_mut(at) else { return };
        ask.over = Some((now, ending));
        if ask.token.is_some() {
            let number = ask.number;
            self.handle(AnnouncerInput::Over { number, ending });
        }
    }

    /// Advances the time without an event.
    fn advance_time(&mut self) {
        if let Some((id, end)) = self.speaking
            && end <= self.now
        {
            self.speaking = None;
            self.end(id, true);
            return self.handle(AnnouncerInput::Device(DeviceReport::Ended(id)));
        }
        let now = self.now;
        let late = self.open().find(|(_, it)| it.ends_at.is_some_and(|at| at <= now));
        if let Some((at, default)) = late.map(|(at, it)| (at, it.default)) {
            return self.end_ask(at, default);
        }
        self.handle(AnnouncerInput::Tick);
    }

    /// Passes the input to the announcer, and simulates the device.
    fn handle(&mut self, input: AnnouncerInput<'_>) {
        let decided = self.announcer.handle(self.now, input);
        decided.orders.into_iter().for_each(|order| self.carry_out(order));
        while let Some(report) = self.reports.pop_front() {
            let decided = self.announcer.handle(self.now, AnnouncerInput::Device(report));
            for outcome in &decided.outcomes {
                if let crate::announcer::AnnouncerOutcome::Presenting(number) = outcome {
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
                    self.reports.push_back(DeviceReport::Cut(id));
                }
            }
            Order::Withdraw(_) | Order::Sound(_) | Order::Pace(_) => {}
        }
        self.rehearsal.orders.push((self.now, order));
    }

    fn say(&mut self, utterance: &Utterance) {
        let origin = self.announcer.origin(utterance.id);
        let (serial, arrived, session_id, is_news) = origin.unwrap_or((0, self.now, None, false));
        if utterance.kind == UtteranceKind::Question {
            self.heard_unnumbered_ask(arrived, session_id.as_ref());
        }
        self.rehearsal.said.push(RehearsedUtterance {
            utterance: utterance.clone(),
            arrived,
            began: self.now,
            ended: self.now,
            is_whole: false,
            is_offered: false,
            serial,
            is_news,
        });
        self.reports.push_back(DeviceReport::Began(utterance.id));
        let words = utterance.words.split_whitespace().count() as u64;
        let takes = words.saturating_mul(60_000).checked_div(self.words_per_minute);
        if let Some(milliseconds) = takes {
            let end = self.now.saturating_add(Duration::from_millis(milliseconds));
            self.speaking = Some((utterance.id, end));
        } else {
            self.end(utterance.id, true);
            self.reports.push_back(DeviceReport::Ended(utterance.id));
        }
    }

    fn end(&mut self, id: UtteranceId, is_whole: bool) {
        let now = self.now;
        if let Some(said) = self.rehearsal.said.iter_mut().rev().find(|it| it.utterance.id == id) {
            (said.ended, said.is_whole) = (now, is_whole);
        }
    }

    /// A question without a number is announced by the event that was recorded in its place.
    fn heard_unnumbered_ask(&mut self, arrived: Duration, session_id: Option<&SessionId>) {
        let now = self.now;
        let is_it = |it: &RehearsedAsk| {
            it.token.is_none() && it.asked == arrived && Some(&it.session_id) == session_id
        };
        for at in &self.open {
            if let Some(ask) = self.rehearsal.asks.get_mut(*at).filter(|it| is_it(it)) {
                ask.first_word.get_or_insert(now);
            }
        }
    }

    fn heard_of(&mut self, number: AskNumber) {
        let at = self.open().find(|(_, it)| it.number == number).map(|(at, _)| at);
        if let Some(ask) = at.and_then(|at| self.rehearsal.asks.get_mut(at)) {
            ask.first_word.get_or_insert(self.now);
        }
    }
}

/// How a question ended, from the producer's resolution. The recording does not say which person answered: it counts
/// as the listening person, unless they had not heard the question.
fn ending(outcome: &AskOutcome, by: &DecidedBy, ask: &RehearsedAsk) -> AskEnding {
    let by = match by {
        DecidedBy::Timeout => AnsweredBy::Timeout,
        DecidedBy::NoListener => AnsweredBy::Nobody,
        _ if ask.first_word.is_none() => AnsweredBy::Elsewhere,
        DecidedBy::Reply | DecidedBy::Withdrawn | DecidedBy::Other(_) => AnsweredBy::You,
    };
    AskEnding::new(outcome, by)
}
