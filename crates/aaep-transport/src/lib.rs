//! The wires of AAEP: framing, sockets, and who is at the other end.

#![doc = include_str!("../README.md")]

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

pub use packet::{Protocol, WirePacket};
