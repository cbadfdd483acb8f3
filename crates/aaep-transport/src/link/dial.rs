//! Opening a link to a producer, over the wire that the target names.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;

use super::target::Target;
use super::{Link, LinkEnd, sse, stdio, unix, websocket};
use crate::framed::Framing;
use crate::wire::MAX_MESSAGE_BYTES;

/// How to open a link, and the limits on it.
#[derive(Clone)]
pub struct DialOptions {
    /// The token that identifies us.
    pub bearer: Option<String>,
    /// The TLS configuration, instead of the operating system's roots of trust.
    pub tls: Option<Arc<ClientConfig>>,
    /// Whether plain HTTP may leave this machine. Anyone on the network can then read and change it.
    pub insecure_allow_plain_http: bool,
    /// The longest message that is accepted from the producer.
    pub max_message_bytes: u32,
    /// How long finding and reaching the producer may take.
    pub connect_timeout: Duration,
    /// How long the producer may take to answer an HTTP request.
    pub answer_timeout: Duration,
    /// After how long without a sign of life a network connection counts as broken.
    pub silence_timeout: Duration,
    /// The producer has no handshake (level 1): its stream is at exactly this address and begins by itself. If
    /// the address is `…/events`, answers go to `…/messages`.
    pub without_handshake: bool,
    /// Where to resume. Server-sent events use it; on other wires it is part of the `subscription.request`.
    pub resume: Option<LinkResume>,
    /// How messages are separated on a Unix socket.
    pub framing: Framing,
}

/// Where a subscriber stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkResume {
    /// The previous subscription; `None` for a producer without a handshake.
    pub subscription_id: Option<String>,
    /// The last event that was received.
    pub last_event_id: Option<String>,
}

impl Default for DialOptions {
    fn default() -> Self {
        Self {
            bearer: None,
            tls: None,
            insecure_allow_plain_http: false,
            max_message_bytes: MAX_MESSAGE_BYTES,
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(30),
            silence_timeout: Duration::from_secs(45),
            without_handshake: false,
            resume: None,
            framing: Framing::Length,
        }
    }
}

impl fmt::Debug for DialOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token is a secret, and the TLS configuration may contain one.
        f.debug_struct("DialOptions")
            .field("has_bearer", &self.bearer.is_some())
            .field("without_handshake", &self.without_handshake)
            .field("resume", &self.resume)
            .finish_non_exhaustive()
    }
}

/// Why a link could not be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialError {
    /// The producer is on another machine and would be contacted in clear text.
    PlainHttp(String),
    /// The token is not valid as a header.
    Bearer,
    /// Nobody answers at this address.
    Unreachable {
        /// The address.
        place: String,
        /// The operating system's reason.
        why: String,
    },
    /// The operating system has no roots of trust.
    NoRoots,
    /// The certificate is not trusted, or the peer does not speak TLS.
    Tls(String),
    /// It took too long.
    TooSlow,
    /// The connection broke before an answer arrived.
    Cut(String),
    /// The producer does not let us in. Trying again with the same credentials does not help.
    Refused {
        /// The producer's reason. It is foreign text.
        reason: String,
    },
    /// The subscription to be resumed has ended. Dial again without it and subscribe again.
    NoSuchSubscription,
    /// The producer answered with an HTTP status that the wire does not use.
    Status {
        /// The status.
        status: u16,
        /// The producer's reason, perhaps empty. It is foreign text.
        reason: String,
    },
    /// The producer broke a rule of the wire.
    Violation(String),
    /// This program was built without this wire.
    NotBuilt(&'static str),
}

/// Opens a link. Must be called within a tokio runtime, in which the wire then lives.
pub async fn dial(target: &Target, options: &DialOptions) -> Result<Link, DialError> {
    match target {
        Target::Sse(place) => sse::dial(place, options).await,
        Target::WebSocket(place) => websocket::dial(place, options).await,
        Target::Unix(path) => unix::dial(path.as_deref(), options).await,
        #[cfg(feature = "grpc")]
        Target::Grpc(place) => super::grpc::dial(place, options).await,
        #[cfg(not(feature = "grpc"))]
        Target::Grpc(_) => Err(DialError::NotBuilt("gRPC")),
        Target::Stdio(words) => stdio::dial(words, options),
    }
}

impl From<DialError> for LinkEnd {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Refused { reason } => LinkEnd::Refused { reason },
            DialError::Violation(what) => LinkEnd::Violation(what),
            DialError::NoSuchSubscription => {
                LinkEnd::closed(None, "The subscription is over.".to_owned())
            }
            other => LinkEnd::Cut(other.to_string()),
        }
    }
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |f: &mut fmt::Formatter<'_>, reason: &str| match reason {
            "" => Ok(()),
            reason => write!(f, " It says: {}", aaep::printable(reason)),
        };
        match self {
            DialError::PlainHttp(host) => write!(
                f,
                "{} is another machine, and what is said in the clear can be read and changed on the way. \
                 Use an address with TLS, such as https:// or wss://",
                aaep::printable(host)
            ),
            DialError::Bearer => f.write_str(
                "The token has characters that no token has. Copy it again, without spaces and line ends",
            ),
            DialError::Unreachable { place, why } => write!(
                f,
                "Nobody answers at {}: {}. Check the address, and that the producer runs",
                aaep::printable(place),
                aaep::printable(why)
            ),
            DialError::NoRoots => f.write_str(
                "This computer has no certificates to trust. Install its ca-certificates package, or name a \
                 file of them in SSL_CERT_FILE",
            ),
            DialError::Tls(why) => write!(
                f,
                "No secure connection: {}. If the producer uses a certificate of its own organisation, name \
                 the file of that authority in SSL_CERT_FILE",
                aaep::printable(why)
            ),
            DialError::TooSlow => {
                f.write_str("The producer does not answer in time. Try again later")
            }
            DialError::Cut(why) => write!(
                f,
                "The connection broke before there was an answer: {}. Check the address, and try again",
                aaep::printable(why)
            ),
            DialError::Refused { reason } => {
                f.write_str("The producer does not let us in. Check the token.")?;
                said(f, reason)
            }
            DialError::NoSuchSubscription => {
                f.write_str("The subscription has ended. Subscribe again")
            }
            DialError::Status { status, reason } => {
                write!(f, "The producer answered with status {status}. Check the address.")?;
                said(f, reason)
            }
            DialError::Violation(what) => write!(
                f,
                "What answers there does not speak this wire: {} Check the address",
                aaep::printable(what)
            ),
            DialError::NotBuilt(wire) => {
                write!(f, "This program was built without {wire}. Use another kind of address")
            }
        }
    }
}

impl std::error::Error for DialError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_shown() {
        let options = DialOptions { bearer: Some("secret".to_owned()), ..DialOptions::default() };
        assert!(!format!("{options:?}").contains("secret"));
    }

    #[test]
    fn foreign_words_are_shown_harmlessly() {
        let reason = "\u{1b}[2J".to_owned();
        for error in [
            DialError::Refused { reason: reason.clone() },
            DialError::Status { status: 500, reason: reason.clone() },
            DialError::Violation(reason.clone()),
            DialError::Cut(reason),
        ] {
            assert!(!error.to_string().contains('\u{1b}'), "{error}");
            assert!(!LinkEnd::from(error).to_string().contains('\u{1b}'));
        }
    }
}
