//! A producer endpoint, embedded in a Rust program or run as a daemon.

pub mod access;
pub mod audit;
pub mod bounds;
pub mod hub;
pub mod lines;
pub mod metrics;
pub mod redact;
pub mod relay;
pub mod server;
pub mod stdio;
pub mod store;
pub mod tls;
