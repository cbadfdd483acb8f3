//! The kit for assistive technology that is not written in Rust: a handful of functions with the C ABI,
//! described for C in `aaep.h`.
//!
//! A subscriber is a number, not a pointer: one that was closed, or never was, is an error and no harm. Texts
//! are UTF-8 that ends with a zero byte; what comes is JSON, one object a line. All that is unsafe is in
//! `abi`: reading a text from C, writing where C says, and giving back a text. Everything else is ordinary
//! code in the files beside it.

mod abi;
mod line;
mod options;
mod reply;
mod subscribers;

pub use abi::{
    AAEP_ERROR, AAEP_NEWS, AAEP_NOTHING, AAEP_OVER, aaep_close, aaep_connect, aaep_free,
    aaep_last_error, aaep_next, aaep_reply, aaep_version,
};
