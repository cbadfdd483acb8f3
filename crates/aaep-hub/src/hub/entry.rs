//! Builds entries of the audit log from what the engine reports about asks.

use aaep::{Event, Payload, ReplyToken, SessionId};
use aaep_engine::{Audit, PrincipalNumber, ReplyRefusal};
use serde_json::json;

use super::settlement::Settlement;
use crate::audit::Entry;

/// What the owner knows about an audit record.
pub(super) struct AuditContext {
    pub(super) unix_us: i64,
    pub(super) session_id: Option<SessionId>,
    pub(super) who: Option<String>,
}

impl AuditContext {
    fn entry(
        self,
        kind: &'static str,
        reply_token: ReplyToken,
        outcome: String,
        details: Option<String>,
    ) -> Entry {
        let AuditContext { unix_us, session_id, who } = self;
        Entry { unix_us, kind, session_id, reply_token: Some(reply_token), who, outcome, details }
    }
}

/// The entry for an ask that was made: how many subscribers were told, and the principal that asked.
pub(super) fn asked(
    reply_token: &ReplyToken,
    event: &Event,
    (told, asked_by): (usize, &str),
    about: AuditContext,
) -> Entry {
    let people = if told == 1 { "subscriber" } else { "subscribers" };
    let by = shortened(asked_by);
    let outcome = format!("told {told} {people} who can answer, asked by {by}");
    about.entry("asked", reply_token.clone(), outcome, words_of(event))
}

/// The entry for an ask that was settled.
pub(super) fn settled(settlement: &Settlement, about: AuditContext) -> Entry {
    let outcome = format!("{} by {}", settlement.outcome.as_str(), settlement.decided_by.as_str());
    let details = settlement.response.as_ref().map(|it| json!({ "response": it }).to_string());
    about.entry("settled", settlement.reply_token.clone(), outcome, details)
}

/// Builds the entry for an audit record of the engine.
pub(super) fn build_entry(audit: Audit, about: AuditContext) -> Entry {
    let (kind, reply_token, outcome, details) = match audit {
        Audit::Reply { reply_token, decided_by, refused, .. } => {
            let is_automatic = decided_by.as_deref().is_some_and(aaep::reply::is_automatic);
            let by = if is_automatic { ", automatic" } else { "" };
            let outcome = format!("{}{by}", reply_outcome(refused));
            // Words must belong to a session, so that they can be deleted with it.
            let decided_by = decided_by.filter(|_| about.session_id.is_some());
            let details = decided_by.map(|it| json!({ "decided_by": it }).to_string());
            ("reply", reply_token, outcome, details)
        }
        Audit::Presented { reply_token, left_us, refused, .. } => {
            ("presented", reply_token, outcome_with_time(refused, left_us), None)
        }
        Audit::ClockStarted { reply_token } => {
            ("clock_started", reply_token, "someone is there who does not wait".to_owned(), None)
        }
        Audit::Extended { reply_token, by_seconds, left_us, refused, .. } => {
            let outcome = format!("{}, {by_seconds} s wanted", outcome_with_time(refused, left_us));
            ("extended", reply_token, outcome, None)
        }
        Audit::Paused { reply_token, left_us, refused, .. } => {
            ("paused", reply_token, outcome_with_time(refused, left_us), None)
        }
        Audit::Resumed { reply_token, left_us, refused, .. } => {
            ("resumed", reply_token, outcome_with_time(refused, left_us), None)
        }
    };
    about.entry(kind, reply_token, outcome, details)
}

/// The number of the acting principal, if the record has one.
pub(super) fn principal(audit: &Audit) -> Option<PrincipalNumber> {
    match audit {
        Audit::Reply { principal, .. }
        | Audit::Presented { principal, .. }
        | Audit::Extended { principal, .. }
        | Audit::Paused { principal, .. }
        | Audit::Resumed { principal, .. } => Some(*principal),
        Audit::ClockStarted { .. } => None,
    }
}

/// The reply token of the ask that a record is about.
pub(super) fn token(audit: &Audit) -> &ReplyToken {
    match audit {
        Audit::Reply { reply_token, .. }
        | Audit::Presented { reply_token, .. }
        | Audit::ClockStarted { reply_token }
        | Audit::Extended { reply_token, .. }
        | Audit::Paused { reply_token, .. }
        | Audit::Resumed { reply_token, .. } => reply_token,
    }
}

/// The reply token of an event, if it is an ask.
pub(super) fn ask_token(event: &Event) -> Option<&ReplyToken> {
    match &event.payload {
        Payload::AwaitingConfirmation(ask) => Some(&ask.reply_token),
        Payload::AwaitingClarification(ask) => Some(&ask.reply_token),
        _ => None,
    }
}

/// The content of an ask as JSON, without the reply token, which must not be in the log.
fn words_of(event: &Event) -> Option<String> {
    let words = match &event.payload {
        Payload::AwaitingConfirmation(ask) => serde_json::to_value(ask),
        Payload::AwaitingClarification(ask) => serde_json::to_value(ask),
        _ => return None,
    };
    let mut words = words.ok()?;
    words.as_object_mut()?.remove("reply_token");
    Some(words.to_string())
}

/// Cuts a principal's id to the length that fits into an outcome. Only ids from an issuer can be longer.
pub(super) fn shortened(id: &str) -> &str {
    &id[..id.floor_char_boundary(256)]
}

fn reply_outcome(refused: Option<ReplyRefusal>) -> String {
    refused.map_or_else(|| "counted".to_owned(), |why| format!("refused, {}", refusal_word(why)))
}

fn outcome_with_time(refused: Option<ReplyRefusal>, left_us: u64) -> String {
    match refused {
        Some(_) => reply_outcome(refused),
        None => format!("counted, {} s left", left_us / 1_000_000),
    }
}

fn refusal_word(refusal: ReplyRefusal) -> &'static str {
    match refusal {
        ReplyRefusal::NotYourSubscription => "not_your_subscription",
        ReplyRefusal::MayNotReply => "may_not_reply",
        ReplyRefusal::UnknownToken => "unknown_token",
        ReplyRefusal::AlreadySettled => "already_settled",
        ReplyRefusal::OwnAsk => "own_ask",
        ReplyRefusal::TooLate => "too_late",
        ReplyRefusal::StampedLate => "stamped_late",
        ReplyRefusal::NotAsked => "not_asked",
        ReplyRefusal::WrongKind => "wrong_kind",
        ReplyRefusal::NotAllowed => "not_allowed",
        ReplyRefusal::NotByRule => "not_by_rule",
        ReplyRefusal::NotGranted => "not_granted",
        ReplyRefusal::NoMaximum => "no_maximum",
        ReplyRefusal::AtMaximum => "at_maximum",
        ReplyRefusal::NotNow => "not_now",
        ReplyRefusal::TooManyChanges => "too_many_changes",
    }
}
