//! Subscribers over gRPC, and who else calls.

mod calls;
mod connections;
mod endings;
mod links;
mod support;
