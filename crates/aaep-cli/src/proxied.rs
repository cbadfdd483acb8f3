//! What every program that stands between two others needs: lines that pass, a queue for the hub with which one thread
//! speaks, and the program that it started.
//!
//! Standard output carries nothing but the protocol of the two. Neither side ever waits for the hub, except for an
//! answer that it needs.

pub(crate) mod child;
pub(crate) mod hub;
mod inbox;
pub(crate) mod lines;
pub(crate) mod note;
pub(crate) mod queue;
