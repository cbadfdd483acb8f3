//! Why a subscription could not be made, and why something could not be sent.

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
    /// The wishes do not make a valid request. Correct them.
    Wishes(Vec<Violation>),
    /// No link to the producer could be opened; with the reason in a sentence.
    NoLine(String),
    /// The link broke before the producer answered.
    Line(LinkEnd),
    /// The producer did not answer the request in time.
    NoAnswer,
    /// The producer rejected the request; it may say after how many seconds to try again.
    Rejected(Box<SubscriptionRejected>),
    /// The producer does not support the handshake.
    NoHandshake,
    /// The producer did not accept the request, for the given reason, which is foreign text.
    Refused(String),
    /// A signed manifest was required, and the producer's is not signed, or not by the right key.
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

/// Why something could not be sent to the producer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SayError {
    /// The ask cannot be answered, or not in this way. Nothing was sent.
    CannotReply(CannotReply),
    /// This cannot be requested. Nothing was sent.
    CannotAsk(CannotAsk),
    /// There is no link to the producer at the moment. Nothing was sent; try again when it is back.
    LineDown,
    /// The link broke during sending. It is not known whether the message arrived, and it is not sent again.
    LineBroke,
    /// The producer does not support the handshake and accepts only answers. Nothing was sent.
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
                "There is no connection to the producer. Nothing was sent; try again when it is back.",
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

/// Words for a person who can no longer answer.
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
