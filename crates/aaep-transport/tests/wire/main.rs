//! The wire on real sockets: listeners that behave and listeners that do not.

mod closing;
mod delivery;
mod encrypted;
mod framed;
mod incoming;
mod slow;
mod support;
