//! Entries of the audit log, made of what the engine says about questions.

use aaep::{Event, Payload, ReplyToken, SessionId};
use aaep_engine::{Audit, ReplyRefusal};
use serde_json::json;

use super::settlement::Settlement;
use crate::audit::Entry;

/// Who and where, as the owner knows it.
pub(super) struct About {
    pub(super) unix_us: i64,
    pub(super) session_id: Option<SessionId>,
    pub(super) who: Option<String>,
    /// The words that belong to it: what was asked.
    pub(super) words: Option<String>,
    /// The principal that asked.
    pub(super) asked_by: Option<String>,
}

/// The entry for what the engine said.
pub(super) fn entry(audit: Audit, about: About) -> Entry {
    let About { unix_us, session_id, who, words, asked_by } = about;
    let (kind, reply_token, outcome, details) = match audit {
        Audit::Asked { reply_token, told, .. } => {
            let people = if told == 1 { "subscriber" } else { "subscribers" };
            let by = shortened(asked_by.as_deref().unwrap_or("unknown"));
            let outcome = format!("told {told} {people} who can answer, asked by {by}");
            ("asked", reply_token, outcome, words)
        }
        Audit::Reply { reply_token, decided_by, refused, .. } => {
            let is_automatic = decided_by.as_deref().is_some_and(aaep::reply::is_automatic);
            let by = if is_automatic { ", automatic" } else { "" };
            let outcome = format!("{}{by}", counted(refused));
            // Words belong to a session, so that they can be deleted with it.
            let decided_by = decided_by.filter(|_| session_id.is_some());
            let details = decided_by.map(|it| json!({ "decided_by": it }).to_string());
            ("reply", reply_token, outcome, details)
        }
        Audit::Presented { reply_token, left_us, refused, .. } => {
            ("presented", reply_token, with_time(refused, left_us), None)
        }
        Audit::ClockStarted { reply_token } => {
            ("clock_started", reply_token, "someone is there who does not wait".to_owned(), None)
        }
        Audit::Extended { reply_token, by_seconds, left_us, refused, .. } => {
            let outcome = format!("{}, {by_seconds} s wanted", with_time(refused, left_us));
            ("extended", reply_token, outcome, None)
        }
        Audit::Paused { reply_token, left_us, refused, .. } => {
            ("paused", reply_token, with_time(refused, left_us), None)
        }
        Audit::Resumed { reply_token, left_us, refused, .. } => {
            ("resumed", reply_token, with_time(refused, left_us), None)
        }
        Audit::Settled { reply_token, resolution, decided_by } => {
            let settlement = Settlement::new(reply_token.clone(), &resolution, decided_by);
            let by = serde_json::to_value(&settlement.decided_by).unwrap_or_default();
            let outcome = format!("{} by {}", settlement.word(), by.as_str().unwrap_or("unknown"));
            let details = settlement.response.map(|it| json!({ "response": it }).to_string());
            ("settled", reply_token, outcome, details)
        }
    };
    Entry { unix_us, kind, session_id, reply_token: Some(reply_token), who, outcome, details }
}

/// The number of the principal in an entry that has one.
pub(super) fn principal(audit: &Audit) -> Option<u64> {
    match audit {
        Audit::Reply { principal, .. }
        | Audit::Presented { principal, .. }
        | Audit::Extended { principal, .. }
        | Audit::Paused { principal, .. }
        | Audit::Resumed { principal, .. } => Some(*principal),
        Audit::Asked { .. } | Audit::ClockStarted { .. } | Audit::Settled { .. } => None,
    }
}

/// The question that an entry is about.
pub(super) fn token(audit: &Audit) -> &ReplyToken {
    match audit {
        Audit::Asked { reply_token, .. }
        | Audit::Reply { reply_token, .. }
        | Audit::Presented { reply_token, .. }
        | Audit::ClockStarted { reply_token }
        | Audit::Extended { reply_token, .. }
        | Audit::Paused { reply_token, .. }
        | Audit::Resumed { reply_token, .. }
        | Audit::Settled { reply_token, .. } => reply_token,
    }
}

/// The token of an event that is a question.
pub(super) fn question(event: &Event) -> Option<&ReplyToken> {
    match &event.payload {
        Payload::AwaitingConfirmation(ask) => Some(&ask.reply_token),
        Payload::AwaitingClarification(ask) => Some(&ask.reply_token),
        _ => None,
    }
}

/// What a question asks, in its own words. Its token is no words, and nobody learns it from the log.
pub(super) fn words_of(event: &Event) -> Option<String> {
    let words = match &event.payload {
        Payload::AwaitingConfirmation(ask) => serde_json::to_value(ask),
        Payload::AwaitingClarification(ask) => serde_json::to_value(ask),
        _ => return None,
    };
    let mut words = words.ok()?;
    words.as_object_mut()?.remove("reply_token");
    Some(words.to_string())
}

/// As much of a principal's id as an outcome has room for. Ids are short but for those of an issuer.
pub(super) fn shortened(id: &str) -> &str {
    &id[..id.floor_char_boundary(256)]
}

fn counted(refused: Option<ReplyRefusal>) -> String {
    refused.map_or_else(|| "counted".to_owned(), |why| format!("refused, {}", word(why)))
}

fn with_time(refused: Option<ReplyRefusal>, left_us: u64) -> String {
    match refused {
        Some(_) => counted(refused),
        None => format!("counted, {} s left", left_us / 1_000_000),
    }
}

fn word(refusal: ReplyRefusal) -> &'static str {
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
