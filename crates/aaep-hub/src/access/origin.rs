//! The origin of a web page (RFC 6454), in exactly one written form.

use aaep_http::Authority;

/// The origin of a web page: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    authority: Authority,
}

impl Origin {
    /// Reads `scheme://host` with an optional port and nothing after it.
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if scheme.is_empty() || !scheme.bytes().all(is_scheme) {
            return None;
        }
        let authority = Authority::parse(authority)?;
        Some(Origin::new(&scheme.to_ascii_lowercase(), authority))
    }

    /// The origin of the pages that this hub itself serves under a host.
    pub fn of_host(host: &Authority, is_tls: bool) -> Self {
        Origin::new(if is_tls { "https" } else { "http" }, host.clone())
    }

    fn new(scheme: &str, mut authority: Authority) -> Self {
        authority.port = authority.port.or(match scheme {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        });
        Origin { scheme: scheme.to_owned(), authority }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn origins_are_compared_with_their_default_ports() {
        let origin = |text: &str| Origin::parse(text).expect("an origin");
        assert_eq!(origin("http://localhost"), origin("HTTP://LOCALHOST:80"));
        assert_eq!(origin("https://a.example"), origin("https://a.example.:443"));
        assert_ne!(origin("http://localhost"), origin("https://localhost"));
        assert_ne!(origin("http://localhost:1"), origin("http://localhost:2"));
        assert_ne!(origin("http://localhost:443"), origin("https://localhost"));
        assert_eq!(origin("chrome-extension://abcdef").authority.port, None);
        for wrong in ["null", "", "localhost", "://localhost", "http://", "http://a/", "http://a b"]
        {
            assert_eq!(Origin::parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = Origin::parse(&text);
        }
    }
}
