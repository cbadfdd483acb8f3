//! The wires of AAEP: framing, sockets and who is there.
//!
//! It knows frames and identity, never what an event means, and does not depend on the engine.
