//! A hub: the engine with a disk and a network, embedded or run as a daemon.

#![doc = include_str!("../README.md")]

pub mod access;
pub mod audit;
pub mod bounds;
pub mod hub;
pub mod lines;
pub mod metrics;
mod name_reading;
pub mod redact;
pub mod relay;
pub mod server;
pub mod stdio;
pub mod store;
pub mod tls;
