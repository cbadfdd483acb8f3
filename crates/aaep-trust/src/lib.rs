//! Keys and signed manifests: who a producer is, and how a subscriber knows.

#![doc = include_str!("../README.md")]

pub mod fetch;
pub mod keys;
pub mod manifest;
mod quoted;
pub mod strict_json;

pub use quoted::quoted;
