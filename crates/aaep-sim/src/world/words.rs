//! Describes inputs and outputs in plain words, for the story.

use aaep::{Event, EventId, Payload, SubscriptionId};
use aaep_engine::{EngineInput, Output, PrincipalNumber, SubscriberKey};

use crate::subscriber::SimulatedSubscriber;
use crate::truth::WorldTruth;

/// Describes an input.
pub(super) fn input(
    input: &EngineInput,
    truth: &WorldTruth,
    subscribers: &[SimulatedSubscriber],
) -> String {
    let name = |key: &SubscriberKey| name(*key, truth, subscribers);
    let person = |principal: &PrincipalNumber| {
        let found = subscribers.iter().find(|it| it.principal == *principal);
        found.map_or_else(|| format!("principal {principal}"), |it| it.name.clone())
    };
    match input {
        EngineInput::Announce { session_id, .. } => {
            format!("The hub says something in {session_id}.")
        }
        EngineInput::Publish { principal, event, .. } => {
            format!("Agent {principal} publishes {}.", about(event))
        }
        EngineInput::EndSession { session_id, .. } => format!("The hub ends {session_id}."),
        EngineInput::DeleteSession { session_id } => format!("Someone deletes {session_id}."),
        EngineInput::Withdraw { principal, reply_token } => {
            format!("Agent {principal} withdraws {reply_token}.")
        }
        EngineInput::Subscribe { principal, request, resume, .. } => {
            let wish = serde_json::to_string(&request.capabilities).unwrap_or_default();
            let after = resume.as_ref().map(|resume| {
                let name = |id: Option<&str>| id.unwrap_or("nothing").to_owned();
                let (id, last) = (resume.subscription_id.as_ref(), resume.last_event_id.as_ref());
                let (id, last) = (id.map(SubscriptionId::as_str), last.map(EventId::as_str));
                format!(" in place of {} after {}", name(id), name(last))
            });
            let after = after.unwrap_or_default();
            format!("The {} asks for a subscription{after}: {wish}.", person(principal))
        }
        EngineInput::Replace { subscriber, request, .. } => {
            let wish = serde_json::to_string(&request.capabilities).unwrap_or_default();
            format!("{} asks for new terms: {wish}.", name(subscriber))
        }
        EngineInput::Renegotiate { principal, change } => {
            let wish = serde_json::to_string(&change.capabilities).unwrap_or_default();
            format!("The {} asks for other terms: {wish}.", person(principal))
        }
        EngineInput::Close { principal, message } => {
            format!("The {} closes {}.", person(principal), message.subscription_id)
        }
        EngineInput::End { subscriber, reason } => {
            format!("The hub ends the subscription of {}: {}", name(subscriber), reason.words())
        }
        EngineInput::Disconnect { subscriber } => {
            format!("The hub notices that {} is gone.", name(subscriber))
        }
        EngineInput::Reconnect { principal, last_event_id, .. } => {
            let after = last_event_id.as_ref().map_or("nothing", |id| id.as_str());
            format!("The {} is back after {after}.", person(principal))
        }
        EngineInput::Block { subscriber } => format!("The wire of {} is full.", name(subscriber)),
        EngineInput::TakeBack { subscriber, last_event_id } => {
            format!("The wire of {} gives back what came after {last_event_id}.", name(subscriber))
        }
        EngineInput::Unblock { subscriber } => format!("The wire of {} is free.", name(subscriber)),
        EngineInput::Confirm { principal, reply } => format!(
            "The {} says {} to {} as {}.",
            person(principal),
            reply.decision.as_str(),
            reply.reply_token,
            reply.subscription_id
        ),
        EngineInput::Clarify { principal, reply } => format!(
            "The {} answers {:?} to {} as {}.",
            person(principal),
            reply.response,
            reply.reply_token,
            reply.subscription_id
        ),
        EngineInput::Presented { principal, subscription_id, reply_token } => {
            format!("The {} has presented {reply_token} as {subscription_id}.", person(principal))
        }
        EngineInput::Extend { principal, subscription_id, reply_token, by_seconds } => format!(
            "The {} wants {by_seconds} s more for {reply_token} as {subscription_id}.",
            person(principal)
        ),
        EngineInput::Pause { principal, subscription_id, reply_token } => {
            format!("The {} pauses {reply_token} as {subscription_id}.", person(principal))
        }
        EngineInput::Resume { principal, subscription_id, reply_token } => {
            format!("The {} lets {reply_token} go on as {subscription_id}.", person(principal))
        }
        EngineInput::Stop => "The hub is asked to stop.".to_owned(),
        EngineInput::Tick => "Time passes.".to_owned(),
    }
}

/// Describes an output, if the story should mention it.
pub(super) fn output(
    output: &Output,
    truth: &WorldTruth,
    subscribers: &[SimulatedSubscriber],
) -> Option<String> {
    Some(match output {
        Output::Deliver { frame, to } => {
            let names: Vec<String> = to.iter().map(|key| name(*key, truth, subscribers)).collect();
            let text = String::from_utf8_lossy(&frame.json);
            let what = match aaep::read(&frame.json, aaep::Mode::Tolerant).message {
                Some(aaep::Message::Event(event)) => about(&event),
                _ => text.into_owned(),
            };
            format!("  Sent to {}: {what}.", names.join(", "))
        }
        Output::Refused { event_id, refusal, .. } => {
            format!("  The hub refuses {event_id}: {refusal:?}.")
        }
        Output::Settled { reply_token, outcome, decided_by, .. } => {
            format!("  {reply_token} is settled: {outcome:?} by {}.", decided_by.as_str())
        }
        Output::Accepted { subscriber, message } => format!(
            "  Terms of {}: {}.",
            name(*subscriber, truth, subscribers),
            message.subscription_id
        ),
        Output::Rejected { message, .. } => format!("  Not granted: {}", message.reason_message),
        Output::Resumed { subscriber, is_complete } => {
            let how = if *is_complete { "where it was" } else { "with something missing" };
            format!("  The {} goes on {how}.", name(*subscriber, truth, subscribers))
        }
        Output::Ended { subscriber, message } => format!(
            "  The hub takes leave of {}: {}",
            name(*subscriber, truth, subscribers),
            message.reason_message.as_deref().unwrap_or_default()
        ),
        Output::Closed { subscriber } => {
            format!("  The subscription of {} is over.", name(*subscriber, truth, subscribers))
        }
        Output::TimeReplied { is_accepted } => {
            format!(
                "  The wish for time {}.",
                if *is_accepted { "counts" } else { "does not count" }
            )
        }
        Output::NoSuchAsk { principal, reply_token } => {
            format!("  Agent {principal} has no open question {reply_token}.")
        }
        Output::NoSuchSubscription => "  There is no such subscription.".to_owned(),
        Output::Replied { is_accepted } => {
            format!("  The reply {}.", if *is_accepted { "counts" } else { "does not count" })
        }
        Output::More { subscriber } => {
            format!("  There is more for {}.", name(*subscriber, truth, subscribers))
        }
        Output::Published { .. }
        | Output::Asked { .. }
        | Output::Record(_)
        | Output::Time(_)
        | Output::Remember(_)
        | Output::Forget { .. }
        | Output::Recovered { .. }
        | Output::Audit(_) => return None,
    })
}

fn name(key: SubscriberKey, truth: &WorldTruth, subscribers: &[SimulatedSubscriber]) -> String {
    match truth.of(key) {
        Some((_, it)) => subscribers[it.subscriber].name.clone(),
        None => format!("subscriber number {key}"),
    }
}

/// Describes an event in a few words.
fn about(event: &Event) -> String {
    let what = match &event.payload {
        Payload::OutputStreaming(it) => {
            let end = if it.complete { ", complete" } else { "" };
            format!(
                "{:?} at {} of {:?}{end}",
                it.chunk,
                it.position,
                it.output_id.as_ref().map(aaep::OutputId::as_str)
            )
        }
        Payload::StateChanged(it) => format!("{} to {}", it.from_state, it.to_state),
        Payload::AwaitingConfirmation(it) => {
            format!("{} for {} s", it.reply_token, it.timeout_seconds)
        }
        Payload::AwaitingClarification(it) => {
            format!("{} for {} s", it.reply_token, it.timeout_seconds)
        }
        Payload::ToolInvoked(it) => format!("tool, irreversible {:?}", it.irreversible),
        _ => String::new(),
    };
    let number =
        event.envelope.sequence_number.map(|it| format!(" number {it}")).unwrap_or_default();
    format!(
        "{}{number} in {}, {} {what}",
        event.envelope.event_id,
        event.envelope.session_id,
        event.event_type().as_str().trim_start_matches("aaep:agent.")
    )
}
