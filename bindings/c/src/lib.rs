//! The kit for assistive technology that is not written in Rust: a handful of functions with the C ABI, described
//! for C in `aaep.h`.
//!
//! A subscriber is a number, not a pointer, so that using one that is closed or never existed is only an error.
//! Texts are UTF-8 and end with a zero byte; news are JSON, one object per line. All unsafe code is in `abi`: it
//! reads texts from C, writes to addresses given by C, and frees texts. The other files are ordinary code.

mod abi;
mod line;
mod options;
mod reply;
mod subscribers;

pub use abi::{
    AAEP_ERROR, AAEP_NEWS, AAEP_NOTHING, AAEP_OVER, aaep_close, aaep_connect, aaep_free,
    aaep_last_error, aaep_next, aaep_reply, aaep_version,
};
