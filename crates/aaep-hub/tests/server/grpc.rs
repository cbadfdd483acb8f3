//! Subscribers and other callers over gRPC.

mod calls;
mod connections;
mod endings;
mod links;
mod support;
