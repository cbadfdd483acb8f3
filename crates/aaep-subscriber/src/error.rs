//! Why there is no subscription, and why something was not said.

use std::fmt;

use aaep::handshake::SubscriptionRejected;
use aaep::{Violation, printable};
use aaep_engine::subscriber::{CannotAsk, CannotReply, NotAllowed, WhyWithdrawn};
use aaep_transport::link::LinkEnd;

/// Why there is no subscription.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address cannot be used.
    Address(String),
    /// The producer's manifest cannot be used or is not to be trusted.
    Manifest(String),
    /// The wishes make no valid request. Correct them.
    Wishes(Vec<Violation>),
    /// There is no line to the producer; with the reason in a sentence.
    NoLine(String),
    /// The line broke before the producer answered.
    Line(LinkEnd),
    /// The producer did not answer the request in time.
    NoAnswer,
    /// The producer refused; it may say after how many seconds it is worth trying again.
    Rejected(Box<SubscriptionRejected>),
    /// The producer knows no handshake.
    NoHandshake,
    /// The producer did not take the request, for the reason that it gives. It is foreign text.
    Refused(String),
    /// Only a signed manifest was acceptable, and the producer's is not, or not by the right key.
    NotTrusted(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Address(why)
            | ConnectError::Manifest(why)
            | ConnectError::NoLine(why) => f.write_str(&printable(why)),
            ConnectError::Wishes(wrong) => {
                f.write_str("What is wished for cannot be asked.")?;
                wrong.iter().try_for_each(|violation| write!(f, " {violation}"))
            }
            ConnectError::Line(end) => {
                write!(f, "The producer did not grant a subscription: {end}.")
            }
            ConnectError::NoAnswer => {
                f.write_str("The producer did not answer. See whether it runs and speaks AAEP.")
            }
            ConnectError::NoHandshake => f.write_str(
                "The producer knows no handshake. If it speaks at /events, give that address, and say that there is none.",
            ),
            ConnectError::Rejected(why) => {
                write!(f, "The producer refused: {}", printable(&why.reason_message))?;
                match why.retry_after_seconds {
                    Some(seconds) => write!(f, " Try again in {seconds} seconds."),
                    None => Ok(()),
                }
            }
            ConnectError::Refused(why) => {
                write!(f, "The producer did not take the request: {}", printable(why))
            }
            ConnectError::NotTrusted(why) => {
                write!(f, "The producer is not trusted: {}", printable(why))
            }
        }
    }
}

impl std::error::Error for ConnectError {}

/// Why something was not said to the producer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SayError {
    /// The question cannot be answered, or not so. Nothing was sent.
    CannotReply(CannotReply),
    /// It cannot be asked for. Nothing was sent.
    CannotAsk(CannotAsk),
    /// There is no line to the producer at the moment. Nothing was sent; try again when it is back.
    LineDown,
    /// The line broke meanwhile. Nobody knows whether it arrived, and it is not sent again.
    LineBroke,
    /// The producer knows no handshake, and nothing but answers can be said to it. Nothing was sent.
    OnlyAnswers,
    /// The subscription is over.
    Ended,
}

impl fmt::Display for SayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SayError::CannotReply(why) => f.write_str(cannot_reply(why)),
            SayError::CannotAsk(CannotAsk::NotSubscribed) => {
                f.write_str("There is no subscription whose terms could change.")
            }
            SayError::CannotAsk(CannotAsk::AlreadyAsked) => {
                f.write_str("The producer has not answered the last wish yet. Wait for it.")
            }
            SayError::CannotAsk(CannotAsk::Malformed(wrong)) => {
                f.write_str("That cannot be asked for.")?;
                wrong.iter().try_for_each(|violation| write!(f, " {violation}"))
            }
            SayError::LineDown => f.write_str(
                "There is no line to the producer. Nothing was sent; try again when it is back.",
            ),
            SayError::LineBroke => {
                f.write_str("The line broke. Nobody knows whether this arrived.")
            }
            SayError::OnlyAnswers => f.write_str(
                "This producer takes answers and nothing else, so the time of its questions stays as it is.",
            ),
            SayError::Ended => f.write_str("The subscription is over."),
        }
    }
}

impl std::error::Error for SayError {}

/// What a person is told who can no longer answer.
fn cannot_reply(why: &CannotReply) -> &'static str {
    match why {
        CannotReply::UnknownAsk => "There is no such question.",
        CannotReply::AlreadyAnswered => "This question has been answered already.",
        CannotReply::Withdrawn(WhyWithdrawn::TokenReused) => {
            "The agent used the same token for two questions, so neither can be answered."
        }
        CannotReply::Withdrawn(_) => "The agent no longer asks this.",
        CannotReply::Resolved { .. } => "This question has been settled already.",
        CannotReply::Expired => "The time to answer is over.",
        CannotReply::Forgotten => "There were too many questions, and this one was given up.",
        CannotReply::NotAllowed(NotAllowed::Decision) => {
            "The question does not offer this decision."
        }
        CannotReply::NotAllowed(NotAllowed::Rule) => "A rule may not accept this. Ask the person.",
        CannotReply::NotAllowed(NotAllowed::Response) => "The question takes another answer.",
        CannotReply::NotAllowed(NotAllowed::Kind) => {
            "Accept and reject are for confirmations, words for clarifications."
        }
        CannotReply::NotAllowed(NotAllowed::Terms) => "This subscriber may not answer questions.",
        CannotReply::NotSubscribed => "There is no subscription to answer on.",
        CannotReply::Malformed(_) => "The answer is too long or otherwise not valid.",
        CannotReply::TooManyAnswered => "Too many questions were answered in a day.",
        CannotReply::NoSuchMoment => "The clock of this machine is wrong. Set it and try again.",
    }
}
