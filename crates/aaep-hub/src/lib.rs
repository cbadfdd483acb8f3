//! A producer endpoint, embedded in a Rust program or run as a daemon.

pub mod access;
pub mod redact;
pub mod tls;
