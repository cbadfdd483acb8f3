//! Messages from the producer: put in order, checked by the rules, and passed on to the program.

use std::time::Duration;

use aaep::{Event, ReplyToken, SessionId, printable};
use aaep_engine::subscriber::{
    HeardMessage, HowEnded, Received, SubscriberChange, SubscriberViolation,
};
use aaep_transport::link::NO_HANDSHAKE;
use serde::Deserialize;
use tokio::time::Instant;

use super::SubscriptionTask;
use super::link::LinkState;
use crate::ask::AskState;
use crate::dial::Dial;
use crate::news::{Ended, News};

/// The fields of a message that are needed before the rules read it.
#[derive(Deserialize)]
struct MessageGlimpse {
    #[serde(rename = "type")]
    kind: Option<String>,
    session_id: Option<String>,
    sequence_number: Option<u64>,
    event_id: Option<serde_json::Value>,
    error: Option<String>,
    message: Option<String>,
    reply_token: Option<String>,
}

/// The errors of a hub which say that what was sent changed nothing. Any other error leaves it open whether an answer
/// counts.
const NOTHING_CHANGED: &[&str] =
    &["invalid_token", "not_counted", "not_taken", "no_such_subscription"];

/// The longest error text of a producer that is passed on, in characters.
const MAX_COMPLAINT: usize = 1024;

impl<D: Dial> SubscriptionTask<D> {
    /// Handles a message from the producer.
    pub(super) fn heard(&mut self, text: String) -> Result<(), Ended> {
        let Ok(glimpse) = serde_json::from_str::<MessageGlimpse>(&text) else {
            return self.receive(&text);
        };
        match glimpse.kind.as_deref() {
            Some("agentvoice:error") => return self.refused(glimpse),
            Some("agentvoice:instructed") => {
                let session_id = glimpse.session_id.and_then(|it| SessionId::parse(&it).ok());
                if let Some(session_id) = session_id {
                    self.tell(News::Instructed { session_id });
                }
                return Ok(());
            }
            // Answers of our own extension that are not events and change nothing.
            Some(kind) if kind.starts_with("agentvoice:") && glimpse.event_id.is_none() => {
                return Ok(());
            }
            _ => {}
        }
        let (Some(session), Some(number)) = (glimpse.session_id, glimpse.sequence_number) else {
            return self.receive(&text);
        };
        for text in self.reorder.take(Instant::now(), &session, number, text) {
            self.receive(&text)?;
        }
        Ok(())
    }

    /// Handles an error that the producer reports about something that we sent.
    fn refused(&mut self, glimpse: MessageGlimpse) -> Result<(), Ended> {
        let short =
            |text: Option<String>| text.unwrap_or_default().chars().take(MAX_COMPLAINT).collect();
        let (error, message): (String, String) = (short(glimpse.error), short(glimpse.message));
        if !self.link.holds() {
            if self.ready.is_some() {
                let is_missing = error == NO_HANDSHAKE;
                return Err(if is_missing { Ended::NoHandshake } else { Ended::Refused(message) });
            }
            self.link_down(&message, std::time::Duration::ZERO);
            return Ok(());
        }
        let is_lost = error == "no_such_subscription";
        let news = self.asks_refused(glimpse.reply_token, error, message);
        self.waiting.extend(news);
        if is_lost {
            self.is_lost = true;
            self.link_down(
                "The producer does not know the subscription any more.",
                std::time::Duration::ZERO,
            );
        }
        Ok(())
    }

    /// The news about a refusal. One that names an answer concerns that answer; any other may concern each answer
    /// that was sent, except the refusal of an instruction to an agent.
    fn asks_refused(
        &mut self,
        reply_token: Option<String>,
        error: String,
        message: String,
    ) -> Vec<News> {
        let token = reply_token.and_then(|token| ReplyToken::parse(&token).ok());
        let mut news = Vec::new();
        match &token {
            Some(token) if NOTHING_CHANGED.contains(&error.as_str()) => {
                let rules = &mut self.rules;
                if let Some(ask) = self.asks.not_counted(token, |ask| rules.reply_not_counted(ask))
                {
                    return vec![News::AnswerNotCounted { ask, error, message }];
                }
            }
            Some(token) => news.extend(self.asks.doubt_answer(token)),
            None if error == "not_accepted" => {}
            None => news.extend(self.asks.doubt_answers()),
        }
        news.push(News::Refused { error, message });
        news
    }

    /// Applies the rules to a message, and tells the program the result.
    pub(super) fn receive(&mut self, text: &str) -> Result<(), Ended> {
        let Received { heard, changes, violations } =
            self.rules.receive(self.now(), text.as_bytes());
        let now = Instant::now();
        let mut must_leave = None;
        for violation in violations {
            match &violation {
                SubscriberViolation::TooFast { .. } if self.flood.report(now) => {
                    must_leave = Some(Ended::Flooded);
                }
                SubscriberViolation::NotSigned => {
                    must_leave = Some(Ended::NotTrusted("its manifest is not signed".to_owned()));
                }
                _ => {}
            }
            self.tell(News::Violation(violation));
        }
        match heard {
            Some(HeardMessage::Event(event)) => self.tell_event(event, &changes, now),
            Some(HeardMessage::Other(message)) => {
                if let aaep::Message::SubscriptionAccepted(accepted) = *message
                    && let LinkState::Up(up) = &self.link
                    && changes.contains(&SubscriberChange::TermsChanged)
                    && let Err(why) = up.dial.judge(&accepted)
                {
                    must_leave = Some(Ended::NotTrusted(why));
                }
            }
            Some(HeardMessage::Repeated(_)) | None => {}
        }
        match must_leave {
            Some(ended) => Err(ended),
            None => self.tell_changes(changes),
        }
    }

    /// Tells an event to the program, except an ask, which is told as [`News::Ask`].
    fn tell_event(&mut self, event: Box<Event>, changes: &[SubscriberChange], now: Instant) {
        let is_question =
            changes.iter().any(|change| matches!(change, SubscriberChange::AskOpened { .. }));
        if is_question {
            return;
        }
        let most = self.rules.terms().and_then(|terms| terms.max_events_per_second);
        if event.is_critical() || self.flood.lets_pass(now, most) {
            self.tell(News::Event(event));
        }
    }

    /// Tells the program what changed.
    pub(super) fn tell_changes(&mut self, changes: Vec<SubscriberChange>) -> Result<(), Ended> {
        for change in changes {
            match change {
                SubscriberChange::AskOpened { reply_token } => self.ask_opened(&reply_token),
                SubscriberChange::AskTimeChanged { reply_token } => {
                    let open = self.rules.open_asks().find(|ask| ask.reply_token == reply_token);
                    if let Some(ask) = open.and_then(|open| self.asks.change_time(open)) {
                        self.tell(News::AskTimeChanged(ask));
                    }
                }
                SubscriberChange::AskResolved { reply_token, outcome, decided_by } => {
                    self.ask_ended(&reply_token, AskState::Resolved { outcome, decided_by });
                }
                SubscriberChange::AskWithdrawn { reply_token, why } => {
                    self.ask_ended(&reply_token, AskState::Withdrawn(why));
                }
                SubscriberChange::AskExpired { reply_token } => {
                    self.ask_ended(&reply_token, AskState::Expired);
                }
                SubscriberChange::AskForgotten { reply_token } => {
                    self.ask_ended(&reply_token, AskState::Forgotten);
                }
                SubscriberChange::Gap { session_id, after, missed } => {
                    self.tell(News::Gap { session_id, after, missed });
                }
                SubscriberChange::TermsChanged => {
                    if !self.link.holds() {
                        self.link_holds()?;
                    }
                    self.before = self.rules.subscription_id().cloned();
                    if let Some(terms) = self.rules.terms().cloned() {
                        self.tell(News::TermsChanged(Box::new(terms)));
                    }
                }
                SubscriberChange::SubscriptionEnded { how } => self.subscription_ended(how)?,
                // The producer may be back soon, as after any other interruption.
                SubscriberChange::ProducerStops { reason } => {
                    let reason = reason.unwrap_or_else(|| "The producer stops.".to_owned());
                    self.link_down(&reason, Duration::ZERO);
                }
                // The events themselves tell this.
                SubscriberChange::SessionStarted { .. }
                | SubscriberChange::SessionJoined { .. }
                | SubscriberChange::StateChanged { .. }
                | SubscriberChange::SessionEnded { .. }
                | SubscriberChange::SessionForgotten { .. } => {}
            }
        }
        Ok(())
    }

    fn ask_opened(&mut self, token: &ReplyToken) {
        let open = self.rules.open_asks().find(|ask| ask.reply_token == *token);
        if let Some(ask) = open.and_then(|open| self.asks.open(open)) {
            self.tell(News::Ask(ask));
        }
    }

    fn ask_ended(&mut self, token: &ReplyToken, state: AskState) {
        if let Some(news) = self.asks.end(token, state) {
            self.tell(news);
        }
    }

    fn subscription_ended(&mut self, how: HowEnded) -> Result<(), Ended> {
        match how {
            HowEnded::Rejected(rejected) => self.rejected(rejected),
            HowEnded::ClosedByProducer(reason) => {
                let reason = reason.map(|reason| printable(&reason).to_string());
                Err(Ended::ClosedByProducer(reason))
            }
            HowEnded::ClosedByUs => Err(Ended::Closed),
        }
    }
}
