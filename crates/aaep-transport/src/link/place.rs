//! A place on the network: a host, a port, and a path.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use hyper::Uri;
use hyper::http::uri::PathAndQuery;

/// Where on the network a producer is.
#[derive(Clone, PartialEq, Eq)]
pub struct NetworkPlace {
    is_tls: bool,
    /// Lower case; an IPv6 address without its brackets.
    host: String,
    port: u16,
    /// Includes the query.
    path: String,
}

/// Why a text does not name a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceError {
    Form,
    Credentials,
    NoHost,
}

impl NetworkPlace {
    /// Reads the part after the name of the wire: `//host`, `//host:port`, `//host:port/path?query`.
    pub(super) fn parse(is_tls: bool, rest: &str) -> Result<Self, PlaceError> {
        // A fragment is never sent.
        let rest = rest.split('#').next().unwrap_or_default();
        let rest = rest.strip_prefix("//").ok_or(PlaceError::Form)?;
        let uri: Uri = format!("http://{rest}").parse().map_err(|_| PlaceError::Form)?;
        let authority = uri.authority().ok_or(PlaceError::Form)?;
        if authority.as_str().contains('@') {
            return Err(PlaceError::Credentials);
        }
        let host = plain_host(authority.host()).ok_or(PlaceError::NoHost)?;
        let after_host = authority.as_str().strip_prefix(authority.host());
        let port = match after_host.ok_or(PlaceError::NoHost)? {
            "" if is_tls => 443,
            "" => 80,
            port => port.strip_prefix(':').and_then(|it| it.parse().ok()).unwrap_or(0),
        };
        if port == 0 {
            return Err(PlaceError::NoHost);
        }
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let path = format!("{}{query}", uri.path());
        Ok(NetworkPlace { is_tls, host: host.to_ascii_lowercase(), port, path })
    }

    /// Whether it is reached over TLS.
    pub fn is_tls(&self) -> bool {
        self.is_tls
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
        match (self.is_tls, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// Whether it names this machine itself.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }

    /// Another path on the same host; `None` if the text is not a path.
    pub(super) fn at(&self, path_and_query: &str) -> Option<NetworkPlace> {
        if !path_and_query.starts_with('/') {
            return None;
        }
        let path: PathAndQuery = path_and_query.parse().ok()?;
        Some(NetworkPlace { path: path.to_string(), ..self.clone() })
    }

    /// The place that a path or an absolute HTTP address refers to, if it is on the same host.
    pub(super) fn pointed_to(&self, location: &str) -> Option<NetworkPlace> {
        let location = location.split('#').next().unwrap_or_default();
        if location.starts_with('/') && !location.starts_with("//") {
            return self.at(location);
        }
        let (scheme, rest) = location.split_once(':')?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "http" | "ws" => false,
            "https" | "wss" => true,
            _ => return None,
        };
        let to = NetworkPlace::parse(is_tls, rest).ok()?;
        let is_same = (to.is_tls, &to.host, to.port) == (self.is_tls, &self.host, self.port);
        is_same.then_some(to)
    }
}

/// A host without the brackets of an IPv6 address.
fn plain_host(host: &str) -> Option<&str> {
    if let Some(inner) = host.strip_prefix('[') {
        return inner.strip_suffix(']').filter(|inner| inner.parse::<Ipv6Addr>().is_ok());
    }
    (!host.is_empty() && !host.contains(['[', ']', ':'])).then_some(host)
}

impl fmt::Display for NetworkPlace {
    /// Omits the query, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", aaep::printable(&self.authority()), aaep::printable(self.path()))
    }
}

impl fmt::Debug for NetworkPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(rest: &str) -> NetworkPlace {
        NetworkPlace::parse(true, rest).expect(rest)
    }

    #[test]
    fn parts_are_found_and_the_port_of_the_wire_is_implied() {
        let it = place("//Example.org/a/b?c=d#e");
        assert_eq!((it.host(), it.port(), it.path_and_query()), ("example.org", 443, "/a/b?c=d"));
        assert_eq!(place("//[::1]:8443").host(), "::1");
        assert_eq!(place("//[::1]:8443").authority(), "[::1]:8443");
        assert_eq!(place("//example.org?c=d").path_and_query(), "/?c=d");
        assert_eq!(NetworkPlace::parse(false, "//example.org").expect("a place").port(), 80);
        for wrong in
            ["//:80", "//a:", "//a:0", "//a:x", "//a:1:2", "//-[]", "//[a]", "//[::1]x", "//[]"]
        {
            assert!(NetworkPlace::parse(true, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_pointer_stays_with_its_host() {
        let from = place("//example.org/a");
        for (to, expected) in [("/b?c", "/b?c"), ("https://EXAMPLE.org:443/b", "/b")] {
            assert_eq!(from.pointed_to(to).expect(to).path_and_query(), expected);
        }
        for to in [
            "http://example.org/b",
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
    fn a_name_that_only_begins_like_this_machine_is_another_one() {
        assert!(place("//localhost").is_loopback() && place("//127.9.9.9:1").is_loopback());
        for text in ["//localhost.example.org", "//127.0.0.1.example.org", "//10.0.0.1"] {
            assert!(!place(text).is_loopback(), "{text}");
        }
    }
}
