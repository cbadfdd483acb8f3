//! Deciding whom to trust: signing keys, manifests that are signed, verified and pinned, and fetching one small
//! document over HTTP.
//!
//! A hub signs with this crate; subscribers and the command line verify with it.

pub mod fetch;
pub mod keys;
pub mod manifest;
mod quoted;
pub mod strict_json;

pub use quoted::quoted;
