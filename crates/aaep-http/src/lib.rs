//! HTTP for the clients of AAEP: one address, one rule for clear text, one client.

#![doc = include_str!("../README.md")]

mod address;
mod authority;
mod call;
mod caller;
mod error;

use std::net::IpAddr;

pub use address::{AddressError, HttpAddress, MAX_ADDRESS_BYTES};
pub use authority::Authority;
pub use call::{AnswerBody, CallAnswer, CallConnection, ConnectionTask, HttpCall, MAX_HEAD_BYTES};
pub use caller::{ByteStream, CallOptions, HttpCaller, is_token, system_tls, tls_with_roots};
pub use error::CallError;

/// Whether an IP address reaches only this machine, including IPv4 written as IPv6.
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
