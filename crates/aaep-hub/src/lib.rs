//! A producer endpoint, embedded in a Rust program or run as a daemon.

pub mod fetch;
pub mod keys;
pub mod manifest;
