//! The host and port that an address or a request names (RFC 9110).
//!
//! Every host has exactly one written form: lower case, no trailing dot, addresses in their shortest form.
//! Text that is not clearly a host is refused, never repaired.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::is_loopback;

/// The longest name that DNS allows, in characters.
const MAX_HOST_CHARS: usize = 253;

/// A host, and a port if one was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// The name in lower case, or the address in its shortest form without brackets.
    pub host: String,
    /// The port, if one was written.
    pub port: Option<u16>,
}

impl Authority {
    /// Reads `host`, `host:port`, `[address]` or `[address]:port`.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let address: Ipv6Addr = address.parse().ok()?;
            (IpAddr::V6(address).to_canonical().to_string(), rest)
        } else {
            let end = text.find(':').unwrap_or(text.len());
            (host_name(&text[..end])?, &text[end..])
        };
        let port = match port.strip_prefix(':') {
            Some(digits) => Some(port_number(digits)?),
            None if port.is_empty() => None,
            None => return None,
        };
        Some(Authority { host, port })
    }

    /// Whether this names the local machine in a way that no DNS server controls.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(is_loopback)
    }
}

fn host_name(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.is_empty() || text.len() > MAX_HOST_CHARS {
        return None;
    }
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if !text.split('.').all(is_label) {
        return None;
    }
    match text.parse::<Ipv4Addr>() {
        Ok(address) => Some(address.to_string()),
        // For example 127.1 or 2130706433, which some resolvers treat as an address.
        Err(_) if text.rsplit('.').next()?.bytes().all(|byte| byte.is_ascii_digit()) => None,
        Err(_) => Some(text.to_ascii_lowercase()),
    }
}

fn port_number(digits: &str) -> Option<u16> {
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|port| is_plain && *port != 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_host_is_written_in_one_way() {
        for (text, host, port) in [
            ("localhost", "localhost", None),
            ("LocalHost:7000", "localhost", Some(7000)),
            ("localhost.", "localhost", None),
            ("localhost.:7000", "localhost", Some(7000)),
            ("127.0.0.1:7000", "127.0.0.1", Some(7000)),
            ("127.0.0.1.", "127.0.0.1", None),
            ("[::1]", "::1", None),
            ("[0:0:0:0:0:0:0:1]:7000", "::1", Some(7000)),
            ("[::FFFF:127.0.0.1]", "127.0.0.1", None),
            ("Hub.Example.org", "hub.example.org", None),
        ] {
            let expected = Authority { host: host.to_owned(), port };
            assert_eq!(Authority::parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_clearly_a_host_is_refused() {
        for wrong in [
            "",
            ".",
            "..",
            "localhost..",
            "a..b",
            "user@localhost",
            "user:pass@localhost:1",
            "::1",
            "[::1",
            "::1]",
            "[::1]x",
            "[::1]:",
            "[fe80::1%25eth0]",
            "[127.0.0.1]",
            "localhost:",
            "localhost:0",
            "localhost:65536",
            "localhost:+1",
            "localhost:1:2",
            "localhost:1/",
            "localhost/",
            "local host",
            " localhost",
            "localhost\t",
            "a,b",
            "127.1",
            "2130706433",
            "0x7f000001.1",
            "127.0.0.256",
            "%6cocalhost",
            "löcalhost",
            "localhost#",
            "a\\b",
        ] {
            assert_eq!(Authority::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Authority::parse(&"a".repeat(254)), None);
    }

    #[test]
    fn loopback_is_a_matter_of_the_name_alone() {
        let is = |text: &str| Authority::parse(text).expect("a host").is_loopback();
        assert!(is("localhost:1") && is("127.3.2.1") && is("[::1]") && is("[::ffff:127.0.0.1]"));
        for other in ["localhost.example.org", "notlocalhost", "127.0.0.1.example.org", "0.0.0.0"] {
            assert!(!is(other), "{other}");
        }
    }

    proptest! {
        #[test]
        fn a_parsed_host_parses_the_same_again(text in "[\\[\\]:.0-9a-zA-Z@%-]{0,30}") {
            if let Some(once) = Authority::parse(&text) {
                let host = if once.host.contains(':') { format!("[{}]", once.host) } else { once.host.clone() };
                let again = once.port.map_or(host.clone(), |port| format!("{host}:{port}"));
                prop_assert_eq!(Authority::parse(&again), Some(once));
            }
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = Authority::parse(&text);
        }
    }
}
