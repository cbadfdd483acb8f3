//! The rules of AAEP, with no clock and no sockets.
//!
//! What each person hears and when, and that nothing irreversible happens unasked (chapters 4.5, 5
//! and 6). Time is an argument, randomness a seed: the same inputs give the same outputs.

pub mod boundary;
pub mod listener;
pub mod order;
pub mod terms;
