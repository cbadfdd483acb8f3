//! A subscriber's links to a real hub: the same conversation, whichever wire carries it.

#![cfg(unix)]

mod answers;
mod conversations;
mod doors;
mod endings;
mod handshakes;
mod support;
mod trust;
