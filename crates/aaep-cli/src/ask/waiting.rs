//! Waits for the outcome of an ask by polling, also across a restart of the hub.
//!
//! The same event with the same ids finds the same ask, so nobody is asked twice. Anything that is not a settled
//! outcome of exactly this ask is not an outcome.

use std::time::{Duration, Instant};

use aaep::Timestamp;
use aaep::extension::AskOutcome;
use serde_json::Value;

use super::question::{self, AnswerKind, PreparedAsk};
use crate::agent::{not_answered, refused_in_terms_of, strange};
use crate::console::{self, CommandFailure};
use crate::english::asking;
use crate::http::{HubAnswer, HubClient, HubRequest, NoAnswer};
use crate::keys::now_unix_ms;

/// How long the hub holds a request that has no outcome yet.
const WAIT_SECONDS: u64 = 25;

/// How much longer than `WAIT_SECONDS` an answer may take.
const SLACK: Duration = Duration::from_secs(20);

/// How long after the end of the ask an unresponsive hub is still tried.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// The part of the grace period reserved for the transfer of an answer that the hub holds back.
const MARGIN: Duration = Duration::from_secs(3);

/// How long after the last possible moment of an answer to keep polling a hub that reports the ask as open.
const LONG_GRACE: Duration = Duration::from_mins(1);

/// How long to retry a hub that may have received the ask but has never answered.
const SHORT_GRACE: Duration = Duration::from_secs(10);

/// The first and the longest pause between retries.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// The outcome of an ask, as the hub reported it.
#[derive(Debug, Clone)]
pub(super) struct ReportedOutcome {
    kind: AnswerKind,
    /// Whether silence may consent to the action.
    allows_default: bool,
    pub(super) answer: Value,
}

impl ReportedOutcome {
    /// The outcome in the hub's own word.
    pub(super) fn word(&self) -> &str {
        let word = self.answer["outcome"].as_str();
        word.filter(|word| AskOutcome::known(word).is_some()).unwrap_or("unknown")
    }

    /// The outcome for a script. Never prints "accept" for an accept that is not consent.
    pub(super) fn printed(&self) -> &str {
        if self.is_unheard_accept() { "unanswered" } else { self.word() }
    }

    /// Whether the hub accepted by default an action that only a person may accept.
    fn is_unheard_accept(&self) -> bool {
        self.kind == AnswerKind::Confirmation && self.word() == "accept" && !self.is_yes()
    }

    /// Whether the command got what it asked for: consent, or an answer. A person's own rule counts as the person
    /// (ruling 35).
    pub(super) fn is_yes(&self) -> bool {
        match self.kind {
            AnswerKind::Confirmation => {
                let is_consent = match self.answer["decided_by"].as_str() {
                    Some("reply") => true,
                    Some("timeout" | "no_listener") => self.allows_default,
                    _ => false,
                };
                is_consent && self.word() == "accept"
            }
            AnswerKind::Clarification => self.word() == "answered" && self.response().is_some(),
        }
    }

    /// The answer to a clarification.
    pub(super) fn response(&self) -> Option<String> {
        if self.kind == AnswerKind::Confirmation || self.word() != "answered" {
            return None;
        }
        match self.answer.get("response")? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// The outcome as a sentence for people.
    pub(super) fn sentence(&self) -> String {
        if self.is_unheard_accept() {
            return asking::ACCEPTED_BY_NOBODY.to_owned();
        }
        let by = match self.answer["decided_by"].as_str() {
            Some("timeout") => asking::NOT_IN_TIME,
            Some("no_listener") => asking::NOBODY_LISTENED,
            _ => "",
        };
        let what = match self.word() {
            "accept" => asking::ACCEPTED,
            "reject" => asking::NOT_ACCEPTED,
            "answered" => asking::ANSWERED,
            "unanswered" => asking::NO_ANSWER,
            "withdrawn" => asking::QUESTION_WITHDRAWN,
            _ => asking::OUTCOME_UNKNOWN,
        };
        format!("{what} {by}").trim_end().to_owned()
    }
}

/// Asks and waits until the ask is settled. If the hub is gone, waits no longer than the ask's own time and a short
/// grace period.
pub(super) fn wait(
    client: &HubClient,
    question: &PreparedAsk,
) -> Result<ReportedOutcome, CommandFailure> {
    loop {
        if let Some(outcome) = wait_for(client, question, Duration::MAX)? {
            return Ok(outcome);
        }
    }
}

/// Does the same, but no longer than this while the ask is open. `None` if it still is.
pub(super) fn wait_for(
    client: &HubClient,
    question: &PreparedAsk,
    longest: Duration,
) -> Result<Option<ReportedOutcome>, CommandFailure> {
    let began = Instant::now();
    let mut patience = HubPatience::new(Instant::now(), question);
    // Send the ask itself the first time, and again whenever the hub may have lost it.
    let mut must_ask = true;
    loop {
        let rest = longest.saturating_sub(began.elapsed());
        match turn(client, question, must_ask, patience.left(Instant::now()), rest) {
            Ok(PollResult::Settled(outcome)) => return Ok(Some(outcome)),
            Ok(PollResult::Open { .. }) if began.elapsed() >= longest => return Ok(None),
            Ok(PollResult::Open { left }) => {
                patience.note_open(Instant::now(), left);
                must_ask = false;
            }
            Err(trouble) => {
                if !patience.tolerates(&trouble, Instant::now()) {
                    return Err(trouble.failure(client));
                }
                patience.pause_before_retry();
                must_ask = true;
            }
        }
        if Instant::now() > patience.last {
            return Err(asking::HUB_SAYS_NOTHING.into());
        }
    }
}

/// Whether the hub has received the ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AskReceipt {
    No,
    /// The connection broke before the hub answered.
    Perhaps,
    Yes,
}

/// How long to tolerate trouble with the hub: not at all before it can have received the ask, briefly when it may
/// have, and until the ask's time is over when it has.
#[derive(Debug)]
struct HubPatience {
    heard: AskReceipt,
    has_lost: bool,
    pause: Duration,
    /// When the ask ends unless the hub says otherwise, and when it ends at the latest.
    ends: Instant,
    longest: Instant,
    /// When to stop believing a hub that reports the ask as open.
    last: Instant,
    /// When to stop tolerating trouble.
    give_up: Instant,
}

impl HubPatience {
    fn new(now: Instant, question: &PreparedAsk) -> Self {
        let timeout = Duration::from_secs(question.timeout_seconds);
        let longest = now + Duration::from_secs(question.longest_seconds);
        HubPatience {
            heard: AskReceipt::No,
            has_lost: false,
            pause: PAUSE,
            ends: now + timeout,
            longest,
            last: longest + LONG_GRACE,
            give_up: now + SHORT_GRACE.min(timeout + GRACE),
        }
    }

    /// How long the next try may take.
    fn left(&self, now: Instant) -> Duration {
        self.give_up.saturating_duration_since(now).max(PAUSE)
    }

    /// Notes that the hub reports the ask as open, for this much longer; `None` while its time is paused.
    fn note_open(&mut self, now: Instant, left: Option<Duration>) {
        if self.has_lost {
            console::say(asking::HUB_FOUND);
        }
        let until = left.and_then(|left| now.checked_add(left)).unwrap_or(self.longest);
        let until = until.min(self.longest);
        self.give_up = until.max(self.ends).max(now) + GRACE;
        (self.heard, self.has_lost, self.pause) = (AskReceipt::Yes, false, PAUSE);
    }

    fn tolerates(&mut self, trouble: &PollTrouble, now: Instant) -> bool {
        if self.heard == AskReceipt::No
            && matches!(trouble, PollTrouble::NoAnswer(NoAnswer::CutOff(_)))
        {
            self.heard = AskReceipt::Perhaps;
        }
        self.heard != AskReceipt::No && trouble.is_temporary() && now + self.pause <= self.give_up
    }

    fn pause_before_retry(&mut self) {
        if !self.has_lost {
            console::say(asking::HUB_LOST);
        }
        self.has_lost = true;
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

enum PollResult {
    Settled(ReportedOutcome),
    Open {
        /// How long it can still be answered; `None` while its time is paused.
        left: Option<Duration>,
    },
}

enum PollTrouble {
    NoAnswer(NoAnswer),
    /// The hub refuses, temporarily or permanently.
    Refused(HubAnswer),
    /// The answer is not about this ask, or is not a valid answer.
    Strange,
}

impl PollTrouble {
    fn is_temporary(&self) -> bool {
        match self {
            PollTrouble::NoAnswer(error) => error.is_temporary(),
            // A hub that is starting may not know its asks yet. Sending the ask again finds out.
            PollTrouble::Refused(answer) => matches!(answer.status, 404 | 429 | 500..=599),
            PollTrouble::Strange => false,
        }
    }

    fn failure(&self, client: &HubClient) -> CommandFailure {
        match self {
            PollTrouble::NoAnswer(error) => not_answered(client, error),
            PollTrouble::Refused(answer) => refused_in_terms_of(client, answer, &question::typed()),
            PollTrouble::Strange => strange(client),
        }
    }
}

/// Sends one request, which takes no longer than the time left. The hub holds it no longer than the rest.
fn turn(
    client: &HubClient,
    question: &PreparedAsk,
    must_ask: bool,
    left: Duration,
    rest: Duration,
) -> Result<PollResult, PollTrouble> {
    let token = &question.reply_token;
    let body = question.event.to_string();
    let (method, path, body) = if must_ask {
        (
            "POST",
            "/aaep/v1/asks?wait_seconds=0".to_owned(),
            Some(("application/json", body.as_bytes())),
        )
    } else {
        let held = left.saturating_sub(MARGIN).min(rest).as_secs().clamp(1, WAIT_SECONDS);
        ("GET", format!("/aaep/v1/asks/{token}?wait_seconds={held}"), None)
    };
    let timeout = (Duration::from_secs(WAIT_SECONDS) + SLACK).min(left);
    let request = HubRequest { method, path: &path, body, timeout };
    let answer = client.send(&request).map_err(PollTrouble::NoAnswer)?;
    if !matches!(answer.status, 200 | 202) {
        return Err(PollTrouble::Refused(answer));
    }
    understand(&answer, question).ok_or(PollTrouble::Strange)
}

/// Reads an answer, if it is about this ask.
fn understand(answer: &HubAnswer, question: &PreparedAsk) -> Option<PollResult> {
    let body = answer.json()?;
    if body["reply_token"].as_str() != Some(&question.reply_token)
        || body["event_id"].as_str() != Some(&question.event_id)
    {
        return None;
    }
    match (answer.status, body["status"].as_str()?) {
        (200, "settled") => {
            let PreparedAsk { kind, allows_default, .. } = *question;
            Some(PollResult::Settled(ReportedOutcome { kind, allows_default, answer: body }))
        }
        (202, "open") => {
            let deadline = body["deadline"].as_str().and_then(|it| Timestamp::parse(it).ok());
            let left = deadline.map(|at| {
                let left_us = at.unix_us().saturating_sub(now_unix_ms().saturating_mul(1000));
                Duration::from_micros(u64::try_from(left_us).unwrap_or(0))
            });
            Some(PollResult::Open { left })
        }
        _ => None,
    }
}

/// Withdraws the ask and returns whether that succeeded.
pub(super) fn withdraw(client: &HubClient, question: &PreparedAsk) -> bool {
    let path = format!("/aaep/v1/asks/{}", question.reply_token);
    let request = HubRequest { method: "DELETE", path: &path, body: None, timeout: GRACE };
    client.send(&request).is_ok_and(|answer| answer.is_success())
}

#[cfg(test)]
mod tests;
