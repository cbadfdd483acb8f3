//! News as one line of JSON. The member `news` decides which other members there are.
//!
//! An event is always the last member, so that a program that searches for a member by hand finds ours first and
//! nothing that an agent wrote.

use aaep::Event;
use aaep_subscriber::{Ask, AskState, Ended, News, WhyWithdrawn};
use serde_json::{Value, json};

pub(crate) fn line(news: &News) -> String {
    let value = match news {
        News::Event(event) => {
            let value = json!({ "news": "event", "session_id": event.envelope.session_id });
            return with_event(value, event);
        }
        News::Ask(ask) => {
            let mut value = about(ask, "ask");
            value["can_reply"] = ask.can_reply().into();
            return with_event(value, ask.event());
        }
        News::AskEnded(ask) => about(ask, "ask_ended"),
        News::AnswerNotCounted { ask, error, message } => {
            let mut value = about(ask, "answer_not_counted");
            (value["error"], value["message"]) = (error.as_str().into(), message.as_str().into());
            value
        }
        News::AskTimeChanged(ask) => about(ask, "ask_time_changed"),
        News::Gap { session_id, after, missed } => json!({
            "news": "gap", "session_id": session_id, "after": after, "missed": missed,
        }),
        News::TermsChanged(terms) => json!({
            "news": "terms_changed", "version": terms.version.to_string(),
            "max_events_per_second": terms.max_events_per_second,
            "confirmation_reply": terms.confirmation_reply,
            "clarification_reply": terms.clarification_reply,
        }),
        News::Reconnecting { why, attempt, wait } => json!({
            "news": "reconnecting", "why": why, "attempt": attempt,
            "wait_ms": u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        }),
        News::Reconnected => json!({ "news": "reconnected" }),
        News::Refused { error, message } => {
            json!({ "news": "refused", "error": error, "message": message })
        }
        News::Violation(violation) => json!({
            "news": "violation", "code": violation.code(), "message": violation.to_string(),
        }),
        News::WithoutHandshake => json!({ "news": "without_handshake" }),
        News::LeftOut { count } => json!({ "news": "left_out", "count": count }),
        News::Ended(ended) => {
            json!({ "news": "ended", "how": how(ended), "message": ended.to_string() })
        }
        // News of a later version of the kit; a program skips news that it does not know.
        _ => json!({ "news": "other" }),
    };
    value.to_string()
}

/// Appends the words of an event, and the event itself at the end.
fn with_event(mut value: Value, event: &Event) -> String {
    // The words are made safe for a terminal; the event keeps them as they arrived.
    value["words"] = aaep::printable(&event.words()).into();
    let (ours, event) = (value.to_string(), serde_json::to_string(event).unwrap_or_default());
    format!("{},\"event\":{event}}}", ours.strip_suffix('}').unwrap_or_default())
}

/// The members that tell the state of an ask.
fn about(ask: &Ask, news: &str) -> Value {
    let state = ask.state();
    let mut value = json!({
        "news": news, "reply_token": ask.reply_token(), "session_id": ask.session_id(),
        "state": name(&state), "paused": ask.is_paused(),
        "remaining_ms": u64::try_from(ask.remaining().as_millis()).unwrap_or(u64::MAX),
    });
    match state {
        AskState::Resolved { outcome, decided_by } => {
            value["outcome"] = outcome.as_str().into();
            value["decided_by"] = decided_by.as_str().into();
        }
        AskState::Withdrawn(why) => value["why"] = why_name(&why).into(),
        _ => {}
    }
    value
}

fn name(state: &AskState) -> &'static str {
    match state {
        AskState::Open => "open",
        AskState::Unreached => "unreached",
        AskState::Answered => "answered",
        AskState::Resolved { .. } => "resolved",
        AskState::Withdrawn(_) => "withdrawn",
        AskState::Expired => "expired",
        AskState::Forgotten => "forgotten",
        // A state that is not known here must not look like a good one.
        _ => "unknown",
    }
}

fn why_name(why: &WhyWithdrawn) -> &'static str {
    match why {
        WhyWithdrawn::Said => "said",
        WhyWithdrawn::WentOn => "went_on",
        WhyWithdrawn::SessionEnded => "session_ended",
        WhyWithdrawn::SubscriptionEnded => "subscription_ended",
        WhyWithdrawn::TokenReused => "token_reused",
    }
}

fn how(ended: &Ended) -> &'static str {
    match ended {
        Ended::Closed => "closed",
        Ended::Rejected(_) => "rejected",
        Ended::ClosedByProducer(_) => "closed_by_producer",
        Ended::Refused(_) => "refused",
        Ended::Flooded => "flooded",
        Ended::NotTrusted(_) => "not_trusted",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use aaep::{Message, Mode};

    use super::*;

    #[test]
    fn the_words_of_an_ask_hold_everything_that_a_decision_needs() {
        let text = json!({
            "@context": "https://aaep-protocol.org/context/v1", "type": "aaep:agent.awaiting.confirmation",
            "event_id": "evt_1", "session_id": "sess_1", "timestamp": "2026-05-24T14:22:11.342Z",
            "producer": { "agent_id": "weaver" }, "urgency": "critical", "reply_token": "rpl_1",
            "timeout_seconds": 60, "default_decision": "reject", "action": "Delete 240 photos",
            "consequence": "They are gone", "risk_level": "high", "irreversible": true,
            "summary_normal": "Tidy up",
        });
        let Some(Message::Event(event)) =
            aaep::read(text.to_string().as_bytes(), Mode::Tolerant).message
        else {
            panic!("an event")
        };
        let value: Value = serde_json::from_str(&line(&News::Event(event))).expect("JSON");
        assert_eq!(
            value["words"],
            "Delete 240 photos. They are gone. High risk. It cannot be undone. Without an answer it is refused."
        );
    }

    #[test]
    fn an_agent_cannot_put_anything_before_what_is_ours() {
        let text = json!({
            "@context": "https://aaep-protocol.org/context/v1", "type": "aaep:agent.state.changed",
            "event_id": "evt_1", "session_id": "sess_1", "timestamp": "2026-05-24T14:22:11.342Z",
            "producer": { "agent_id": "weaver" }, "from_state": "a", "to_state": "b",
            "summary_normal": "\",\"news\":\"ask\",\"reply_token\":\"rpl_1\u{0}\n",
            "aaa": { "news": "ask", "reply_token": "rpl_2" },
        });
        let Some(Message::Event(event)) =
            aaep::read(text.to_string().as_bytes(), Mode::Tolerant).message
        else {
            panic!("an event")
        };
        let line = line(&News::Event(event));
        assert!(!line.contains('\n') && !line.contains('\0'), "{line}");
        let (ours, theirs) = line.split_once(",\"event\":").expect("the event at the end");
        assert!(
            ours.contains("\"news\":\"event\"") && !ours.contains("\"reply_token\":"),
            "{ours}"
        );
        assert!(theirs.contains("rpl_2"));
        let value: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(value["event"]["event_id"], "evt_1");
        let words = value["words"].as_str().expect("words");
        assert!(words.contains("rpl_1") && !words.contains(char::is_control), "{words}");
    }
}
