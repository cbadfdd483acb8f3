//! What an agent learns when its event is refused: a code for machines, a sentence for people.

use std::fmt;

use aaep::{EventId, Severity, Violation};
use aaep_engine::Refusal;

use crate::access::LimitError;

/// Why an event was refused. It changed nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Refused {
    /// It is not a valid event.
    NotValid {
        /// All rules that it breaks.
        violations: Vec<Violation>,
    },
    /// It is a message but not an event. It has to be sent elsewhere.
    NotAnEvent,
    /// The rules of the engine do not allow it now.
    Rules {
        /// The event, as it was named.
        event_id: EventId,
        /// The rule.
        refusal: Refusal,
    },
    /// Another principal speaks under this `agent_id` at the moment (§3.2.6.1).
    NameTaken,
    /// The credential is bound to other names (ruling 36).
    NameNotYours,
    /// The `agent_id` is longer than the hub stores.
    NameTooLong,
    /// The `agent_id` is not in Normalization Form C, so two names that read the same could differ.
    NameNotComposed,
    /// There are more agents or people than the hub can tell apart.
    TooManyNames,
    /// A request with this idempotency key came before, and this event was refused then.
    Before,
    /// A different request came before under this idempotency key.
    KeyUsed,
    /// A different event came before under this id.
    EventIdUsed {
        /// The id.
        event_id: EventId,
    },
    /// The idempotency key is longer than the hub stores.
    KeyTooLong,
    /// The principal's running sessions have reached their limit of stored bytes.
    RunningBytes,
    /// It exceeds a rate limit.
    Limit(LimitError),
}

impl Refused {
    /// The stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Refused::NotValid { .. } => "not_valid",
            Refused::NotAnEvent => "not_an_event",
            Refused::Rules { refusal, .. } => code(refusal),
            Refused::NameTaken => "name_taken",
            Refused::NameNotYours => "name_not_yours",
            Refused::NameTooLong => "name_too_long",
            Refused::NameNotComposed => "name_not_composed",
            Refused::TooManyNames => "too_many",
            Refused::KeyTooLong => "too_large",
            Refused::Before => "refused_before",
            Refused::KeyUsed => "idempotency_key_used",
            Refused::EventIdUsed { .. } => "event_id_used",
            Refused::RunningBytes => "over_share",
            Refused::Limit(_) => "rate_limit",
        }
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Refused::NotValid { .. }
            | Refused::NotAnEvent
            | Refused::NameTooLong
            | Refused::NameNotComposed => 422,
            Refused::NameNotYours => 403,
            Refused::Limit(limit) => limit.status(),
            Refused::TooManyNames | Refused::Rules { refusal: Refusal::TooMany(_), .. } => 503,
            Refused::RunningBytes | Refused::Rules { refusal: Refusal::OverShare(_), .. } => 429,
            Refused::Rules { refusal: Refusal::TooLong { .. }, .. } | Refused::KeyTooLong => 413,
            Refused::Rules { .. }
            | Refused::Before
            | Refused::KeyUsed
            | Refused::EventIdUsed { .. }
            | Refused::NameTaken => 409,
        }
    }
}

fn code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Order(violation) => violation.code(),
        Refusal::NotYourSession => "not_your_session",
        Refusal::TokenUsed => "token_used",
        Refusal::TokenOpen => "token_open",
        Refusal::SpeaksForTheHub => "speaks_for_the_hub",
        Refusal::MisusesExtension(_) => "misuses_extension",
        Refusal::ClockDiffers { .. } => "clock_differs",
        Refusal::UnsafeDefault => "unsafe_default",
        Refusal::AlreadyAsked => "already_asked",
        Refusal::TooLong { .. } => "too_large",
        Refusal::TooMany(_) => "too_many",
        Refusal::OverShare(_) => "over_share",
        Refusal::Repeated => "repeated",
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NotValid { violations } => {
                f.write_str("The event is not valid.")?;
                let errors = violations.iter().filter(|it| it.severity == Severity::Error);
                errors.take(3).try_for_each(|violation| write!(f, " {violation}"))
            }
            Refused::NotAnEvent => {
                f.write_str("This is not an event. Agents publish events; replies go to /aaep/v1/replies.")
            }
            Refused::Rules { refusal, .. } => rule(refusal, f),
            Refused::NameTaken => {
                f.write_str("Another principal holds this name or one that reads like it, or did within the last week, or it reads like the hub's own. Choose another one.")
            }
            Refused::NameNotYours => f.write_str(
                "Your credential may not speak under this agent_id. Use a name that it is bound to; aaep tokens list shows them.",
            ),
            Refused::NameTooLong => f.write_str("The agent_id is longer than 1024 bytes. Choose a shorter one."),
            Refused::NameNotComposed => f.write_str(
                "The agent_id is not in Unicode Normalization Form C, so it could look like the name of another agent. \
                 Normalize it first.",
            ),
            Refused::TooManyNames => {
                f.write_str("There are too many different agents. Use the same agent_id for the same agent.")
            }
            Refused::Before => f.write_str(
                "This event was refused when the request first came. Send it with another idempotency key to try again.",
            ),
            Refused::KeyUsed => f.write_str(
                "This Idempotency-Key was used before for another request. Nothing was published. Send a new request with a new key.",
            ),
            Refused::EventIdUsed { .. } => f.write_str(
                "Another event with this event_id came before, and that one stands. Leave event_id out, or give the new event an id of its own.",
            ),
            Refused::KeyTooLong => write!(
                f,
                "The idempotency key is longer than {} bytes. Use a shorter one.",
                crate::bounds::MAX_KEY_BYTES
            ),
            Refused::RunningBytes => f.write_str(
                "Your running sessions take as much of the store as they may. End one, and go on in a new session.",
            ),
            Refused::Limit(limit) => limit.fmt(f),
        }
    }
}

fn rule(refusal: &Refusal, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match refusal {
        Refusal::Order(violation) => write!(f, "{violation} {}", violation.advice()),
        Refusal::NotYourSession => f.write_str(
            "The session belongs to another agent. Leave session_id out to start one of your own.",
        ),
        Refusal::TokenUsed => f.write_str(
            "This reply_token was used before. Leave it out, and the hub makes a new one.",
        ),
        Refusal::TokenOpen => f.write_str(
            "Another question with this reply_token is open. Leave it out, and the hub makes a new one.",
        ),
        Refusal::SpeaksForTheHub => f.write_str(
            "The event has data in extensions.agentvoice that only the hub may state. Leave it out.",
        ),
        Refusal::MisusesExtension(advice) => {
            write!(f, "The event has data in extensions.agentvoice that does not belong there. {advice}")
        }
        Refusal::ClockDiffers { ahead_us } => {
            let hours = ahead_us.unsigned_abs() / 3_600_000_000;
            let way = if *ahead_us < 0 { "behind" } else { "ahead of" };
            write!(
                f,
                "The timestamp is {hours} hours {way} the clock of the hub. Set the agent's clock, or leave the timestamp out."
            )
        }
        Refusal::UnsafeDefault => f.write_str(
            "Silence would accept this action. Only an action of low risk that can be undone may default to accept: \
             state risk_level \"low\" and irreversible false, or set default_decision to \"reject\".",
        ),
        Refusal::AlreadyAsked => f.write_str(
            "The same action waits for an answer already. Wait for that answer, or withdraw the question.",
        ),
        Refusal::TooLong { what, max_bytes } => {
            write!(f, "{what} is longer than {max_bytes} bytes. Use a shorter one.")
        }
        Refusal::TooMany(what) => {
            write!(f, "The hub has as many {what} as it takes. End some, then try again.")
        }
        Refusal::OverShare(what) => {
            write!(f, "You have as many {what} as one may have. End some, then try again.")
        }
        Refusal::Repeated => f.write_str("An event with this id came before. The first one stands."),
    }
}

impl std::error::Error for Refused {}
