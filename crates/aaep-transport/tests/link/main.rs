//! Links to producers on real sockets, most of which do not behave.

mod anyone;
mod http;
mod sse;
mod support;
#[cfg(unix)]
mod unix;
mod websocket;
