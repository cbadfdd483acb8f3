//! Where a server is: an http or https address, parsed once.

use std::fmt;

use hyper::Uri;
use hyper::http::uri::PathAndQuery;

use crate::Authority;

/// The longest address, in bytes.
pub const MAX_ADDRESS_BYTES: usize = 4096;

/// An absolute http or https address. `Display` and `Debug` omit its query, which may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpAddress {
    is_https: bool,
    /// In its one written form; an IPv6 address without its brackets.
    host: String,
    port: u16,
    /// Includes the query.
    path: String,
}

/// Why a text is not such an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressError {
    /// It is not an absolute URI, or it is too long.
    Form,
    /// It is neither http nor https.
    Scheme,
    /// It contains a user name or password.
    Credentials,
    /// The host is missing or not valid.
    Host,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressError::Form => {
                "This is not an address. Write it like https://example.org/manifest.json"
            }
            AddressError::Scheme => "The address is neither http nor https. Use an https address",
            AddressError::Credentials => {
                "The address carries a name or a password. Leave out what stands before the @ sign"
            }
            AddressError::Host => {
                "The address names no host. Write it like https://example.org, in ASCII letters"
            }
        })
    }
}

impl std::error::Error for AddressError {}

impl HttpAddress {
    /// Parses an absolute address. A fragment is dropped, because it is never sent.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.len() > MAX_ADDRESS_BYTES {
            return Err(AddressError::Form);
        }
        let uri: Uri = text.parse().map_err(|_| AddressError::Form)?;
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) => return Err(AddressError::Scheme),
            None => return Err(AddressError::Form),
        };
        let authority = uri.authority().ok_or(AddressError::Host)?.as_str();
        if authority.contains('@') {
            return Err(AddressError::Credentials);
        }
        let Authority { host, port } = Authority::parse(authority).ok_or(AddressError::Host)?;
        let port = port.unwrap_or(if is_https { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(HttpAddress { is_https, host, port, path })
    }

    /// Parses an address, or a host alone, to which `path` is added. A host without a scheme uses https, this
    /// machine itself uses http.
    pub fn parse_or_host(text: &str, path: &str) -> Result<Self, AddressError> {
        let mut address = if text.contains("://") {
            HttpAddress::parse(text)?
        } else {
            let plain = HttpAddress::parse(&format!("http://{text}"))?;
            if plain.is_loopback() {
                plain
            } else {
                HttpAddress::parse(&format!("https://{text}"))?
            }
        };
        if address.path == "/" {
            path.clone_into(&mut address.path);
        }
        Ok(address)
    }

    /// Whether it is reached over TLS.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Whether it names this machine itself, in a way that no DNS server controls.
    pub fn is_loopback(&self) -> bool {
        Authority { host: self.host.clone(), port: None }.is_loopback()
    }

    /// The host; an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, given or implied.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path with its query.
    pub fn path_and_query(&self) -> &str {
        &self.path
    }

    /// The path alone.
    pub fn path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// Host and port as they are written in an address.
    pub fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.is_https, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// The whole address. Its query may be a secret, so it is not for errors.
    pub fn with_query(&self) -> String {
        format!("{}{}", self.origin(), self.path)
    }

    /// Another path on the same server; `None` if the text is not a path.
    pub fn at(&self, path_and_query: &str) -> Option<HttpAddress> {
        if !path_and_query.starts_with('/') || path_and_query.starts_with("//") {
            return None;
        }
        let path: PathAndQuery = path_and_query.parse().ok()?;
        Some(HttpAddress { path: path.to_string(), ..self.clone() })
    }

    /// What a server points to, as a path or as an absolute address, if it has the same origin.
    pub fn pointed_to(&self, location: &str) -> Option<HttpAddress> {
        let location = location.split('#').next().unwrap_or_default();
        if location.starts_with('/') {
            return self.at(location);
        }
        // A WebSocket is reached at an HTTP address.
        let (scheme, rest) = location.split_once(':')?;
        let to = match scheme.to_ascii_lowercase().as_str() {
            "ws" => HttpAddress::parse(&format!("http:{rest}")),
            "wss" => HttpAddress::parse(&format!("https:{rest}")),
            _ => HttpAddress::parse(location),
        };
        to.ok().filter(|to| to.origin() == self.origin())
    }
}

impl fmt::Display for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), aaep::printable(self.path()))
    }
}

impl fmt::Debug for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> HttpAddress {
        HttpAddress::parse(text).expect(text)
    }

    #[test]
    fn parts_are_found_and_the_port_is_implied() {
        let it = address("https://Example.org/a/b?c=d#e");
        assert_eq!((it.host(), it.port(), it.path_and_query()), ("example.org", 443, "/a/b?c=d"));
        assert_eq!(it.path(), "/a/b");
        assert_eq!(address("https://[::1]:8443").host(), "::1");
        assert_eq!(address("https://[::1]:8443").authority(), "[::1]:8443");
        assert_eq!(address("https://example.org?c=d").path_and_query(), "/?c=d");
        assert_eq!(address("http://example.org").port(), 80);
    }

    #[test]
    fn a_host_alone_gets_the_path_and_tls_unless_it_is_this_machine() {
        for (text, expected) in [
            ("Example.org", "https://example.org/m"),
            ("example.org:8443", "https://example.org:8443/m"),
            ("https://example.org:443", "https://example.org/m"),
            ("https://example.org/x?y=1#z", "https://example.org/x?y=1"),
            ("localhost:8080", "http://localhost:8080/m"),
            ("127.0.0.2:8080", "http://127.0.0.2:8080/m"),
            ("[::1]:8080", "http://[::1]:8080/m"),
            ("[::ffff:127.0.0.1]:8080", "http://127.0.0.1:8080/m"),
            ("http://example.org", "http://example.org/m"),
        ] {
            let address = HttpAddress::parse_or_host(text, "/m").expect(text);
            assert_eq!(address.with_query(), expected);
        }
    }

    #[test]
    fn an_invalid_address_is_reported_as_invalid() {
        for (text, expected) in [
            ("", AddressError::Form),
            ("/path", AddressError::Form),
            ("ftp://example.org", AddressError::Scheme),
            ("https://user:secret@example.org/", AddressError::Credentials),
            ("https://example.org:99999/", AddressError::Host),
            ("https://example.org:/", AddressError::Host),
            ("https://example.org:0/", AddressError::Host),
            ("https://127.1/", AddressError::Host),
            ("https://[::1]x/", AddressError::Host),
            ("https://exa mple.org/", AddressError::Form),
            ("https://example.org/\r\nX: y", AddressError::Form),
        ] {
            assert_eq!(HttpAddress::parse(text), Err(expected), "{text:?}");
        }
        for text in [":80", "a:", "a:x", "a:1:2", "-[]", "[a]", "[]"] {
            assert!(HttpAddress::parse(&format!("https://{text}")).is_err(), "{text:?}");
        }
        let long = format!("https://example.org/{}", "a".repeat(MAX_ADDRESS_BYTES));
        assert_eq!(HttpAddress::parse(&long), Err(AddressError::Form));
    }

    #[test]
    fn a_name_that_only_begins_like_this_machine_is_another_one() {
        for text in ["http://localhost", "http://127.9.9.9:1", "http://[::ffff:127.0.0.1]/"] {
            assert!(address(text).is_loopback(), "{text}");
        }
        for text in [
            "http://localhost.example.org/",
            "http://127.0.0.1.example.org/",
            "http://10.0.0.1/",
            "http://[::ffff:10.0.0.1]/",
        ] {
            assert!(!address(text).is_loopback(), "{text}");
        }
    }

    #[test]
    fn a_pointer_stays_with_its_origin() {
        let from = address("https://example.org/a");
        for (to, expected) in
            [("/b?c", "/b?c"), ("https://EXAMPLE.org:443/b", "/b"), ("wss://example.org/b", "/b")]
        {
            assert_eq!(from.pointed_to(to).expect(to).path_and_query(), expected);
        }
        for to in [
            "http://example.org/b",
            "ws://example.org/b",
            "https://example.com/b",
            "//example.com/b",
            "https://example.org:8443/b",
            "https://example.org@example.com/",
            "b",
            "",
        ] {
            assert_eq!(from.pointed_to(to), None, "{to}");
        }
    }

    #[test]
    fn a_query_is_shown_only_when_it_is_wanted() {
        let it = address("https://example.org/a?token=secret");
        assert!(!format!("{it} {it:?}").contains("secret"));
        assert_eq!(it.with_query(), "https://example.org/a?token=secret");
    }
}
