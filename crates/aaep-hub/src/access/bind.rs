//! The addresses on which the hub may listen (§8.2.7, §8.2.8, §10.1.2, ruling 28).
//!
//! Failing to start is safer than starting open. This file does not open sockets.

use std::fmt;
use std::net::SocketAddr;

use crate::access::is_loopback;

/// The flag that allows plain HTTP beyond this machine. It lifts only this rule: requests from other
/// machines still need credentials.
pub const INSECURE_FLAG: &str = "--insecure-allow-plain-http";

/// Whether the hub may listen on this address.
pub fn may_bind(
    address: SocketAddr,
    has_tls: bool,
    has_authentication: bool,
    insecure_flag: bool,
) -> Result<(), BindError> {
    if is_loopback(address.ip()) || insecure_flag || (has_tls && has_authentication) {
        return Ok(());
    }
    Err(match (has_tls, has_authentication) {
        (false, false) => BindError::NeedsBoth(address),
        (false, true) => BindError::NeedsTls(address),
        _ => BindError::NeedsAuthentication(address),
    })
}

/// Why the hub refuses to listen on an address that other machines can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindError {
    /// There is neither TLS nor any credential. Set up both.
    NeedsBoth(SocketAddr),
    /// There are credentials, but they would cross the network unencrypted. Set up TLS.
    NeedsTls(SocketAddr),
    /// Connections would be encrypted, but anyone could open one. Make a token.
    NeedsAuthentication(SocketAddr),
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, missing, todo) = match self {
            BindError::NeedsBoth(address) => (
                address,
                "neither TLS nor authentication is set up",
                "Set a certificate and its key, and make a token",
            ),
            BindError::NeedsTls(address) => {
                (address, "TLS is not set up", "Set a certificate and its key")
            }
            BindError::NeedsAuthentication(address) => {
                (address, "authentication is not set up", "Make a token")
            }
        };
        write!(
            f,
            "Other machines can reach {address}, and {missing}. {todo}, or listen on a loopback \
             address such as 127.0.0.1. In a network where everyone may read and forge what agents \
             say, the flag {INSECURE_FLAG} listens all the same."
        )
    }
}

impl std::error::Error for BindError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn loopback_needs_nothing() {
        for it in ["127.0.0.1:7000", "127.9.9.9:7000", "[::1]:7000", "[::ffff:127.0.0.1]:7000"] {
            assert_eq!(may_bind(address(it), false, false, false), Ok(()), "{it}");
        }
    }

    #[test]
    fn any_other_address_needs_tls_and_authentication() {
        for it in ["0.0.0.0:7000", "[::]:7000", "192.168.0.2:7000", "[::ffff:10.0.0.1]:7000"] {
            let it = address(it);
            assert_eq!(may_bind(it, false, false, false), Err(BindError::NeedsBoth(it)));
            assert_eq!(may_bind(it, false, true, false), Err(BindError::NeedsTls(it)));
            assert_eq!(may_bind(it, true, false, false), Err(BindError::NeedsAuthentication(it)));
            assert_eq!(may_bind(it, true, true, false), Ok(()));
        }
    }

    #[test]
    fn the_flag_is_the_only_way_around() {
        assert_eq!(may_bind(address("0.0.0.0:7000"), false, false, true), Ok(()));
    }

    #[test]
    fn the_error_tells_both_ways() {
        let error = may_bind(address("0.0.0.0:7000"), false, true, false).expect_err("no TLS");
        let text = error.to_string();
        assert!(text.contains("Set a certificate"), "{text}");
        assert!(text.contains("--insecure-allow-plain-http"), "{text}");
    }
}
