//! The limits on each principal's use of the hub (T4 in §10.2.2).
//!
//! This file has only the numbers; [`Guard`](crate::access::Guard) enforces them.

use std::fmt;

use aaep::handshake::ReasonCode;
use serde::Deserialize;

/// The most events in one request, whatever is configured, because they are stored in one commit.
pub const MAX_EVENTS_AT_ONCE: u32 = 4096;

/// The limits of a hub. All of them can be configured.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The largest request body. §8.3 requires at least 64 KiB and recommends 1 MiB.
    pub body_bytes: usize,
    /// The largest request head.
    pub header_bytes: usize,
    /// The most connections at once, of all principals together.
    pub connections: usize,
    /// The most connections of one principal.
    pub connections_per_principal: usize,
    /// The most requests of one principal in progress at once.
    pub requests_per_principal: usize,
    /// The memory for session histories and for subscribers, in bytes.
    pub memory_bytes: usize,
    /// The part of the histories that one principal may use, in bytes. Events that leave memory stay stored.
    pub memory_bytes_per_principal: usize,
    /// The most running sessions of one principal.
    pub sessions_per_principal: usize,
    /// The most stored bytes of one principal's running sessions. They are never swept.
    pub running_bytes_per_principal: u64,
    /// The most open asks of one principal.
    pub asks_per_principal: usize,
    /// The time without an event after which a session whose agent is not connected ends by itself; 0 for
    /// never.
    pub silent_session_ms: u64,
    /// The most subscriptions of one principal.
    pub subscriptions_per_principal: usize,
    /// The most events per second that one principal may publish over time.
    pub publishes_per_second: u32,
    /// The most events that it may publish at once after being quiet; at most [`MAX_EVENTS_AT_ONCE`] in one
    /// request.
    pub publish_burst: u32,
    /// How long a connection may be silent before it is closed.
    pub idle_ms: u64,
    /// How long TLS and the first request may take.
    pub handshake_ms: u64,
}

impl Limits {
    /// The most events in one request.
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
    /// The hub has as many connections as it accepts.
    Connections,
    /// The principal has as many connections as it may have.
    ConnectionsOfPrincipal,
    /// The program has as many connections as it may have.
    ConnectionsOfProgram,
    /// The principal has as many requests in progress as it may have.
    RequestsOfPrincipal,
    /// The hub has as many subscriptions as it accepts.
    Subscriptions,
    /// The principal has as many subscriptions as it may have.
    SubscriptionsOfPrincipal,
    /// The principal publishes too fast. The same request succeeds after a while.
    PublishRate {
        /// How long to wait.
        retry_after_ms: u64,
    },
    /// The request has more events than will ever be accepted at once.
    TooManyAtOnce,
    /// There are more principals than the hub can count separately.
    Principals,
}

impl LimitError {
    /// The reason code in the handshake (§5.5.3).
    pub fn reason_code(self) -> ReasonCode {
        ReasonCode::RateLimit
    }

    /// The status of the HTTP response.
    pub fn status(self) -> u16 {
        match self {
            LimitError::Connections | LimitError::Subscriptions | LimitError::Principals => 503,
            LimitError::TooManyAtOnce => 413,
            _ => 429,
        }
    }

    /// How long to wait before trying again, for `retry_after_seconds` and `Retry-After`.
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
            LimitError::Subscriptions => {
                f.write_str("The hub has too many subscriptions. Close some, or try again later.")
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
