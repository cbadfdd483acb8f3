//! Waiting for the outcome of a question: asking again and again, also across a restart of the hub.
//!
//! The same event with the same ids finds the same question, so that nobody is asked twice. What cannot
//! be read as a settled outcome of exactly this question is not an outcome.

use std::time::{Duration, Instant};

use aaep::Timestamp;
use serde_json::Value;

use super::question::{self, Kind, Question};
use crate::agent::{not_answered, refused_in_terms_of, strange};
use crate::console::{self, Failure};
use crate::http::{Answer, Client, NoAnswer, Request};
use crate::keys::now_unix_ms;

/// How long the hub holds a request that has no outcome yet.
const WAIT_SECONDS: u64 = 25;

/// How much longer than that an answer may take.
const SLACK: Duration = Duration::from_secs(20);

/// How long after the end of the question's time a hub that does not answer is still tried.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// How much of that time is kept for the way of an answer that the hub holds back.
const MARGIN: Duration = Duration::from_secs(3);

/// How long after the last possible moment of an answer a hub is still asked that says it is open.
const LONG_GRACE: Duration = Duration::from_mins(1);

/// How long a hub is tried that may have heard the question, but has never answered.
const SHORT_GRACE: Duration = Duration::from_secs(10);

/// The first pause before the hub is tried again, and the longest.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// How a question was settled.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    kind: Kind,
    /// Whether silence may consent to what was asked.
    allows_default: bool,
    pub(super) answer: Value,
}

impl Outcome {
    /// The outcome in the hub's word.
    pub(super) fn word(&self) -> &str {
        match self.answer["outcome"].as_str() {
            Some(known @ ("accept" | "reject" | "answered" | "unanswered" | "withdrawn")) => known,
            _ => "unknown",
        }
    }

    /// The outcome for a script. An accept that is not consent is never printed as one.
    pub(super) fn printed(&self) -> &str {
        if self.is_unheard_accept() { "unanswered" } else { self.word() }
    }

    /// Whether the hub accepted by default what only a person may accept.
    fn is_unheard_accept(&self) -> bool {
        self.kind == Kind::Confirmation && self.word() == "accept" && !self.is_yes()
    }

    /// Whether that is what was asked for: consent, or an answer. A person's own rule answers as they do (ruling 35).
    pub(super) fn is_yes(&self) -> bool {
        match self.kind {
            Kind::Confirmation => {
                let is_consent = match self.answer["decided_by"].as_str() {
                    Some("reply") => true,
                    Some("timeout" | "no_listener") => self.allows_default,
                    _ => false,
                };
                is_consent && self.word() == "accept"
            }
            Kind::Clarification => self.word() == "answered" && self.response().is_some(),
        }
    }

    /// The answer to a clarification.
    pub(super) fn response(&self) -> Option<String> {
        if self.kind == Kind::Confirmation || self.word() != "answered" {
            return None;
        }
        match self.answer.get("response")? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// The outcome for people.
    pub(super) fn sentence(&self) -> String {
        if self.is_unheard_accept() {
            return "Not accepted. No person and no rule of theirs accepted it, and silence may accept only an action \
                    of low risk that can be undone: with --risk low and --reversible."
                .to_owned();
        }
        let by = match self.answer["decided_by"].as_str() {
            Some("timeout") => " Nobody answered in time, so the default applies.",
            Some("no_listener") => " Nobody was there who could answer, so the default applies.",
            _ => "",
        };
        let what = match self.word() {
            "accept" => "Accepted.",
            "reject" => "Not accepted.",
            "answered" => "Answered.",
            "unanswered" => "There is no answer.",
            "withdrawn" => "The question was withdrawn.",
            _ => "The outcome is unknown. That is no consent.",
        };
        format!("{what}{by}")
    }
}

/// Asks and waits until the question is settled. A hub that is gone is not waited for any longer than the
/// question's own time and a short grace.
pub(super) fn wait(client: &Client, question: &Question) -> Result<Outcome, Failure> {
    let mut patience = Patience::new(Instant::now(), question);
    // The first time, and whenever it may have been lost, the question itself is sent.
    let mut must_ask = true;
    loop {
        match turn(client, question, must_ask, patience.left(Instant::now())) {
            Ok(Turn::Settled(outcome)) => return Ok(outcome),
            Ok(Turn::Open { left }) => {
                patience.found(Instant::now(), left);
                must_ask = false;
            }
            Err(trouble) => {
                if !patience.bears(&trouble, Instant::now()) {
                    return Err(trouble.failure(client));
                }
                patience.rest();
                must_ask = true;
            }
        }
        if Instant::now() > patience.last {
            let what = "the hub has not said in time how the question ended";
            return Err(Failure::new(what, "Take it as a no, and look at the log of the hub."));
        }
    }
}

/// Whether the hub has heard the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    No,
    /// The connection broke before it answered.
    Perhaps,
    Yes,
}

/// How long trouble with the hub is tolerated: not at all before it can have heard the question, for a moment
/// when it may have, and when it has, until the time of the question is over.
#[derive(Debug)]
struct Patience {
    heard: Heard,
    has_lost: bool,
    pause: Duration,
    /// When the question ends unless the hub says otherwise, and when it ends at the latest.
    ends: Instant,
    longest: Instant,
    /// When a hub that says that the question is open is not believed any more.
    last: Instant,
    /// When trouble is not tolerated any more.
    give_up: Instant,
}

impl Patience {
    fn new(now: Instant, question: &Question) -> Self {
        let timeout = Duration::from_secs(question.timeout_seconds);
        let longest = now + Duration::from_secs(question.longest_seconds);
        Patience {
            heard: Heard::No,
            has_lost: false,
            pause: PAUSE,
            ends: now + timeout,
            longest,
            last: longest + LONG_GRACE,
            give_up: now + SHORT_GRACE.min(timeout + GRACE),
        }
    }

    /// How long one more try may take.
    fn left(&self, now: Instant) -> Duration {
        self.give_up.saturating_duration_since(now).max(PAUSE)
    }

    /// The hub says that the question is open, for so much longer; without a time while that stands still.
    fn found(&mut self, now: Instant, left: Option<Duration>) {
        if self.has_lost {
            console::say("The hub answers again. The question is still open.");
        }
        let until = left.and_then(|left| now.checked_add(left)).unwrap_or(self.longest);
        let until = until.min(self.longest);
        self.give_up = until.max(self.ends).max(now) + GRACE;
        (self.heard, self.has_lost, self.pause) = (Heard::Yes, false, PAUSE);
    }

    fn bears(&mut self, trouble: &Trouble, now: Instant) -> bool {
        if self.heard == Heard::No && matches!(trouble, Trouble::NoAnswer(NoAnswer::CutOff(_))) {
            self.heard = Heard::Perhaps;
        }
        self.heard != Heard::No && trouble.may_pass() && now + self.pause <= self.give_up
    }

    fn rest(&mut self) {
        if !self.has_lost {
            console::say("The hub does not answer now. Still trying.");
        }
        self.has_lost = true;
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

enum Turn {
    Settled(Outcome),
    Open {
        /// How long it can still be answered; none while its time stands still.
        left: Option<Duration>,
    },
}

enum Trouble {
    NoAnswer(NoAnswer),
    /// The hub refuses, for now or for good.
    Refused(Answer),
    /// The answer is not about this question, or not an answer at all.
    Strange,
}

impl Trouble {
    fn may_pass(&self) -> bool {
        match self {
            Trouble::NoAnswer(error) => error.may_pass(),
            // While a hub starts, it may not know its questions yet; the question itself finds out.
            Trouble::Refused(answer) => matches!(answer.status, 404 | 429 | 500..=599),
            Trouble::Strange => false,
        }
    }

    fn failure(&self, client: &Client) -> Failure {
        match self {
            Trouble::NoAnswer(error) => not_answered(client, error),
            Trouble::Refused(answer) => refused_in_terms_of(client, answer, &question::typed()),
            Trouble::Strange => strange(client),
        }
    }
}

/// One request, which takes no longer than is left.
fn turn(
    client: &Client,
    question: &Question,
    must_ask: bool,
    left: Duration,
) -> Result<Turn, Trouble> {
    let token = &question.reply_token;
    let body = question.event.to_string();
    let (method, path, body) = if must_ask {
        (
            "POST",
            "/aaep/v1/asks?wait_seconds=0".to_owned(),
            Some(("application/json", body.as_bytes())),
        )
    } else {
        let held = left.saturating_sub(MARGIN).as_secs().clamp(1, WAIT_SECONDS);
        ("GET", format!("/aaep/v1/asks/{token}?wait_seconds={held}"), None)
    };
    let timeout = (Duration::from_secs(WAIT_SECONDS) + SLACK).min(left);
    let request = Request { method, path: &path, body, timeout };
    let answer = client.send(&request).map_err(Trouble::NoAnswer)?;
    if !matches!(answer.status, 200 | 202) {
        return Err(Trouble::Refused(answer));
    }
    understand(&answer, question).ok_or(Trouble::Strange)
}

/// What an answer says of this question, if it says it of this question.
fn understand(answer: &Answer, question: &Question) -> Option<Turn> {
    let body = answer.json()?;
    if body["reply_token"].as_str() != Some(&question.reply_token)
        || body["event_id"].as_str() != Some(&question.event_id)
    {
        return None;
    }
    match (answer.status, body["status"].as_str()?) {
        (200, "settled") => {
            let Question { kind, allows_default, .. } = *question;
            Some(Turn::Settled(Outcome { kind, allows_default, answer: body }))
        }
        (202, "open") => {
            let deadline = body["deadline"].as_str().and_then(|it| Timestamp::parse(it).ok());
            let left = deadline.map(|at| {
                let left_us = at.unix_us().saturating_sub(now_unix_ms().saturating_mul(1000));
                Duration::from_micros(u64::try_from(left_us).unwrap_or(0))
            });
            Some(Turn::Open { left })
        }
        _ => None,
    }
}

/// Takes the question back; whether that succeeded.
pub(super) fn withdraw(client: &Client, question: &Question) -> bool {
    let path = format!("/aaep/v1/asks/{}", question.reply_token);
    let request = Request { method: "DELETE", path: &path, body: None, timeout: GRACE };
    client.send(&request).is_ok_and(|answer| answer.is_success())
}

#[cfg(test)]
mod tests;
