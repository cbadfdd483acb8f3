//! The wire on real sockets: subscribers that behave and subscribers that do not.

mod closing;
mod delivery;
mod encrypted;
mod framed;
mod incoming;
mod slow;
mod support;
