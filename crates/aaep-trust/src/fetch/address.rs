//! Where to fetch from: an http or https address, parsed once.

use std::fmt;
use std::net::IpAddr;

use http::Uri;

use super::FetchError;

/// The longest address, in bytes.
pub const MAX_ADDRESS_BYTES: usize = 2048;

/// An absolute http or https address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAddress {
    is_https: bool,
    /// Lower case; an IPv6 address without its brackets.
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
        let authority = uri.authority().ok_or(AddressError::Host)?;
        if authority.as_str().contains('@') {
            return Err(AddressError::Credentials);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(AddressError::Host);
        }
        // Parsed here, because the library treats a port that is out of range as missing.
        let after_host = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        let port = match after_host.strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| AddressError::Host)?,
            None if is_https => 443,
            None => 80,
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(HttpAddress { is_https, host: host.to_ascii_lowercase(), port, path })
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

    /// Whether it names this machine itself.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
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
    pub fn path(&self) -> &str {
        &self.path
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

    /// The target of a redirect from here, if it stays within the same origin.
    pub(super) fn redirect(&self, location: &str) -> Result<HttpAddress, FetchError> {
        let to = if location.starts_with('/') && !location.starts_with("//") {
            HttpAddress::parse(&format!("{}{location}", self.origin()))
        } else {
            HttpAddress::parse(location)
        };
        match to {
            Ok(to) if to.origin() == self.origin() => Ok(to),
            _ => Err(FetchError::RedirectElsewhere(location.chars().take(200).collect())),
        }
    }
}

impl fmt::Display for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("http://example.org", "http://example.org/m"),
        ] {
            let address = HttpAddress::parse_or_host(text, "/m").expect(text);
            assert_eq!(address.to_string(), expected);
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
            ("https://exa mple.org/", AddressError::Form),
            ("https://example.org/\r\nX: y", AddressError::Form),
        ] {
            assert_eq!(HttpAddress::parse(text), Err(expected), "{text:?}");
        }
        let long = format!("https://example.org/{}", "a".repeat(MAX_ADDRESS_BYTES));
        assert_eq!(HttpAddress::parse(&long), Err(AddressError::Form));
    }

    #[test]
    fn a_name_that_only_begins_like_this_machine_is_another_one() {
        for text in
            ["http://localhost.example.org/", "http://127.0.0.1.example.org/", "http://10.0.0.1/"]
        {
            assert!(!HttpAddress::parse(text).expect(text).is_loopback(), "{text}");
        }
    }

    #[test]
    fn a_redirect_stays_with_its_origin() {
        let from = HttpAddress::parse("https://example.org/a").expect("an address");
        assert_eq!(from.redirect("/b?c").expect("same").to_string(), "https://example.org/b?c");
        assert!(from.redirect("https://EXAMPLE.org:443/b").is_ok());
        for to in [
            "http://example.org/b",
            "https://example.com/b",
            "//example.com/b",
            "https://example.org:8443/b",
            "https://example.org@example.com/",
            "b",
            "",
        ] {
            assert!(matches!(from.redirect(to), Err(FetchError::RedirectElsewhere(_))), "{to}");
        }
    }
}
