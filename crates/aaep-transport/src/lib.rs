//! The wires of AAEP: framing, sockets and who is there.
//!
//! It knows frames and identity, never what an event means, and does not depend on the engine.

pub mod chunk;
pub mod framed;
#[cfg(feature = "grpc")]
pub mod grpc;
pub mod link;
pub mod local;
pub mod packet;
pub mod sse;
pub mod steal;
pub mod websocket;
pub mod wire;

pub use packet::{Packet, Protocol};
