//! What can be told of events that were heard and of what the engine gave out.

use aaep::EventId;
use aaep::extension::{AskOutcome, DecidedBy};
use aaep::handshake::{SubscriptionAccepted, SubscriptionRejected};
use aaep_engine::{Audit, Output, Refusal, ReplyRefusal, SubscriberKey};

use super::Heard;

pub(crate) fn kinds(heard: &[Heard]) -> Vec<&str> {
    heard.iter().map(Heard::kind).collect()
}

/// The id of the last event that was heard.
pub(crate) fn last_id(heard: &[Heard]) -> Option<EventId> {
    heard.last().map(|it| it.id().clone())
}

/// The text of an output as it was heard; every character must follow on the one before.
pub(crate) fn text_of(heard: &[Heard], output_id: Option<&str>) -> String {
    let mut text = String::new();
    for chunk in heard.iter().filter(|it| it.kind() == "output.streaming") {
        if chunk.json["output_id"].as_str() == output_id {
            let position = chunk.json["position"].as_u64().expect("a position");
            assert_eq!(position, text.chars().count() as u64, "after {text:?}: {}", chunk.json);
            text.push_str(chunk.text("chunk"));
        }
    }
    text
}

/// The notices of settled questions: token, outcome, what decided.
pub(crate) fn notices(heard: &[Heard]) -> Vec<(String, String, String)> {
    heard
        .iter()
        .filter_map(|it| it.delivery()?.resolution)
        .map(|it| {
            let token = it.reply_token.as_str().to_owned();
            (token, it.outcome.as_str().to_owned(), it.decided_by.as_str().to_owned())
        })
        .collect()
}

// Outputs.

pub(crate) fn refusal(outputs: &[Output]) -> Option<&Refusal> {
    outputs.iter().find_map(|output| match output {
        Output::Refused { refusal, .. } => Some(refusal),
        _ => None,
    })
}

pub(crate) fn accepted(outputs: &[Output]) -> Option<(SubscriberKey, &SubscriptionAccepted)> {
    outputs.iter().find_map(|output| match output {
        Output::Accepted { subscriber, message } => Some((*subscriber, &**message)),
        _ => None,
    })
}

pub(crate) fn rejected(outputs: &[Output]) -> Option<&SubscriptionRejected> {
    outputs.iter().find_map(|output| match output {
        Output::Rejected { message, .. } => Some(&**message),
        _ => None,
    })
}

/// How questions were settled, as their agent hears it.
pub(crate) fn resolved(outputs: &[Output]) -> Vec<(&str, AskOutcome, DecidedBy)> {
    outputs
        .iter()
        .filter_map(|output| match output {
            Output::Settled { reply_token, outcome, decided_by, .. } => {
                Some((reply_token.as_str(), outcome.clone(), decided_by.clone()))
            }
            _ => None,
        })
        .collect()
}

/// Whether a reply counted; a reply is answered exactly once.
pub(crate) fn replied(outputs: &[Output]) -> bool {
    let answers: Vec<bool> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Replied { is_accepted } => Some(*is_accepted),
            _ => None,
        })
        .collect();
    assert_eq!(answers.len(), 1, "{outputs:?}");
    answers[0]
}

/// Why a reply did not count, as the audit log has it.
pub(crate) fn audited(outputs: &[Output]) -> Option<ReplyRefusal> {
    outputs.iter().find_map(|output| match output {
        Output::Audit(Audit::Reply { refused, .. }) => *refused,
        _ => None,
    })
}
