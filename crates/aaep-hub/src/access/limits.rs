//! How much anyone may take of the hub, as numbers with names (T4 in §10.2.2).
//!
//! The numbers only; [`Guard`](crate::access::Guard) counts them.

use std::fmt;

use aaep::handshake::ReasonCode;
use serde::Deserialize;

/// How many events one request may have, whatever is configured: what they bring is stored in one commit.
pub const MAX_EVENTS_AT_ONCE: u32 = 4096;

/// The limits of a hub. Every one can be configured.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// How large the body of a request may be. §8.3 wants at least 64 KiB and advises 1 MiB.
    pub body_bytes: usize,
    /// How large the head of a request may be.
    pub header_bytes: usize,
    /// How many connections there may be at once, of everyone together.
    pub connections: usize,
    /// How many of them one principal may have.
    pub connections_per_principal: usize,
    /// How many requests of one principal may be under way at once.
    pub requests_per_principal: usize,
    /// How many bytes of memory the histories of sessions and what is kept for subscribers may take.
    pub memory_bytes: usize,
    /// How many bytes of the histories one principal may take. What leaves memory stays stored.
    pub memory_bytes_per_principal: usize,
    /// How many sessions of one principal may run at once.
    pub sessions_per_principal: usize,
    /// How many bytes of running sessions of one principal may be stored. They are never swept.
    pub running_bytes_per_principal: u64,
    /// How many questions of one principal may be open at once.
    pub asks_per_principal: usize,
    /// After how long without an event a session ends by itself, if its agent is not connected; 0 for never.
    pub silent_session_ms: u64,
    /// How many subscriptions one principal may have at once.
    pub subscriptions_per_principal: usize,
    /// How many events one principal may publish in a second, over time.
    pub publishes_per_second: u32,
    /// How many events it may publish at once, after it was quiet; in one request no more than
    /// [`MAX_EVENTS_AT_ONCE`].
    pub publish_burst: u32,
    /// How long a connection may say nothing before it is closed.
    pub idle_ms: u64,
    /// How long TLS and the first request may take.
    pub handshake_ms: u64,
}

impl Limits {
    /// How many events one request may have.
    pub fn events_at_once(&self) -> u32 {
        self.publish_burst.min(MAX_EVENTS_AT_ONCE)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes: 1024 * 1024,
            header_bytes: 16 * 1024,
            connections: 1024,
            connections_per_principal: 64,
            requests_per_principal: 128,
            memory_bytes: aaep_engine::MEMORY_BYTES,
            memory_bytes_per_principal: aaep_engine::MEMORY_BYTES / 4,
            sessions_per_principal: 128,
            running_bytes_per_principal: 128 << 20,
            asks_per_principal: 256,
            silent_session_ms: 24 * 3600 * 1000,
            subscriptions_per_principal: 64,
            publishes_per_second: 200,
            publish_burst: 1000,
            idle_ms: 90_000,
            handshake_ms: 10_000,
        }
    }
}

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitError {
    /// The hub has as many connections as it takes.
    Connections,
    /// The principal has as many connections as it may have.
    ConnectionsOfPrincipal,
    /// The program has as many connections as it may have.
    ConnectionsOfProgram,
    /// The principal has as many requests under way as it may have.
    RequestsOfPrincipal,
    /// The principal has as many subscriptions as it may have.
    SubscriptionsOfPrincipal,
    /// The principal publishes too fast; the same is welcome after a while.
    PublishRate {
        /// After how many milliseconds.
        retry_after_ms: u64,
    },
    /// More events came at once than will ever be taken at once.
    TooManyAtOnce,
    /// More different principals are here than the hub can keep apart.
    Principals,
}

impl LimitError {
    /// What the handshake says (§5.5.3).
    pub fn reason_code(self) -> ReasonCode {
        ReasonCode::RateLimit
    }

    /// The status of the HTTP answer.
    pub fn status(self) -> u16 {
        match self {
            LimitError::Connections | LimitError::Principals => 503,
            LimitError::TooManyAtOnce => 413,
            _ => 429,
        }
    }

    /// After how many seconds it is worth trying again, for `retry_after_seconds` and `Retry-After`.
    pub fn retry_after_seconds(self) -> u64 {
        match self {
            LimitError::PublishRate { retry_after_ms } => retry_after_ms.div_ceil(1000).max(1),
            _ => 5,
        }
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitError::Connections => {
                f.write_str("The hub has too many connections. Close some, or try again later.")
            }
            LimitError::ConnectionsOfPrincipal => {
                f.write_str("You have too many connections. Close one that is not used.")
            }
            LimitError::ConnectionsOfProgram => {
                f.write_str("This program has too many connections. Close one that is not used.")
            }
            LimitError::RequestsOfPrincipal => {
                f.write_str("You have too many requests under way. Wait for some of them.")
            }
            LimitError::SubscriptionsOfPrincipal => {
                f.write_str("You have too many subscriptions. Close one that is not used.")
            }
            LimitError::PublishRate { .. } => write!(
                f,
                "Events come too fast. Send them again after {} seconds.",
                self.retry_after_seconds()
            ),
            LimitError::TooManyAtOnce => {
                f.write_str("Too many events came at once. Send them in smaller groups.")
            }
            LimitError::Principals => {
                f.write_str("Too many different people and agents are here. Try again later.")
            }
        }
    }
}

impl std::error::Error for LimitError {}
