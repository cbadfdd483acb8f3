//! The hub from outside, over real sockets: clients that behave well and clients that do not.

mod addresses;
mod agents;
mod bodies;
#[cfg(unix)]
mod children;
mod connections;
mod consent;
mod doors;
mod everyone;
#[cfg(feature = "grpc")]
mod grpc;
mod keeping;
mod legacy;
#[cfg(unix)]
mod local;
mod refusals;
mod rejections;
mod replies;
mod sessions;
mod shares;
mod sockets;
mod stopping;
mod subscribers;
mod support;
#[cfg(unix)]
mod tls;
mod trust;
mod waiting;
mod words;
