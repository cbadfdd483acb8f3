//! The wires of AAEP: framing, sockets, and the identity of peers.
//!
//! This crate knows frames and identity, never the meaning of an event, and does not depend on the engine.

pub mod chunk;
pub mod framed;
#[cfg(feature = "grpc")]
pub mod grpc;
pub mod jsonrpc;
pub mod link;
pub mod local;
pub mod packet;
pub mod sse;
pub mod steal;
pub mod websocket;
pub mod wire;

pub use packet::{Packet, Protocol};
