//! Requests that a foreign web page makes in the person's browser: rebinding, cross-site, CORS.
//!
//! The browser runs on this machine, so its requests come from loopback. The `Host` and the `Origin` tell
//! them apart: an attacker can point a name at this machine, but that name is not ours, and a foreign page
//! has a foreign origin. These are pure functions; the hub acts on their results.

use std::fmt;

use http::header::{HOST, HeaderName, ORIGIN, VARY};
use http::{HeaderMap, HeaderValue, Method, Uri, header};

use crate::access::{Authority, Origin};

/// The most host names and origins that may be configured.
pub const MAX_CONFIGURED: usize = 64;

const PRIVATE_NETWORK_ASKED: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const PRIVATE_NETWORK_ALLOWED: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");

/// The page that made a request, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    /// None: the request comes from a program, or from a person who opens the hub in a browser.
    None,
    /// A page that the hub itself serves.
    Ours,
    /// A page of a configured origin, with the header as received.
    Allowed(HeaderValue),
}

/// The host that a request names, if it is one of ours: a loopback name or a configured one.
pub fn check_host(
    headers: &HeaderMap,
    uri: &Uri,
    host_names: &[Authority],
) -> Result<Authority, RequestError> {
    let mut hosts = headers.get_all(HOST).iter();
    let header = hosts.next();
    if hosts.next().is_some() {
        return Err(RequestError::SeveralHosts);
    }
    let parse = |text: &str| Authority::parse(text).ok_or(RequestError::BadHost);
    let in_header = match header {
        Some(value) => Some(parse(value.to_str().map_err(|_| RequestError::BadHost)?)?),
        None => None,
    };
    let in_uri = uri.authority().map(|it| parse(it.as_str())).transpose()?;
    let host = match (in_header, in_uri) {
        (Some(header), Some(uri)) if header != uri => return Err(RequestError::SeveralHosts),
        (Some(host), _) | (None, Some(host)) => host,
        (None, None) => return Err(RequestError::NoHost),
    };
    // A configured name without a port matches all ports.
    let is_same = |ours: &Authority| {
        ours.host == host.host && ours.port.is_none_or(|port| host.port == Some(port))
    };
    if host.is_loopback() || host_names.iter().any(is_same) {
        Ok(host)
    } else {
        Err(RequestError::ForeignHost(host.host))
    }
}

/// The page that made the request, if that page may use the hub: none, one of ours, or a configured one.
pub fn check_origin(
    method: &Method,
    headers: &HeaderMap,
    host: &Authority,
    is_tls: bool,
    allowed: &[Origin],
) -> Result<Page, RequestError> {
    let mut origins = headers.get_all(ORIGIN).iter();
    let Some(header) = origins.next() else {
        let is_refused = is_cross_site(headers) && !is_link(method, headers);
        return if is_refused { Err(RequestError::CrossSite) } else { Ok(Page::None) };
    };
    if origins.next().is_some() {
        return Err(RequestError::SeveralOrigins);
    }
    let text = header.to_str().map_err(|_| RequestError::BadOrigin)?;
    if text.eq_ignore_ascii_case("null") {
        return Err(RequestError::NullOrigin);
    }
    let origin = Origin::parse(text).ok_or(RequestError::BadOrigin)?;
    if origin == Origin::of_host(host, is_tls) {
        Ok(Page::Ours)
    } else if allowed.contains(&origin) {
        Ok(Page::Allowed(header.clone()))
    } else {
        Err(RequestError::ForeignOrigin(text.to_owned()))
    }
}

/// The headers that let the page read the response. Empty except for configured origins.
pub fn cors_headers(page: &Page) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Page::Allowed(origin) = page {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        let readable = HeaderValue::from_static("Location, Retry-After, WWW-Authenticate");
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, readable);
    }
    headers
}

/// The response to a CORS preflight, or `None` if the request is not one. A preflight carries no
/// credentials, so it is answered before they are required.
pub fn preflight(method: &Method, headers: &HeaderMap, page: &Page) -> Option<HeaderMap> {
    let is_asking = method == Method::OPTIONS
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        && matches!(page, Page::Allowed(_));
    if !is_asking {
        return None;
    }
    let mut answer = cors_headers(page);
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, DELETE"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, Content-Type, Idempotency-Key, Last-Event-ID",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        answer.insert(name, HeaderValue::from_static(value));
    }
    if headers.contains_key(PRIVATE_NETWORK_ASKED) {
        answer.insert(PRIVATE_NETWORK_ALLOWED, HeaderValue::from_static("true"));
    }
    Some(answer)
}

/// Whether the browser reports that a page of another site made the request. Anything but a clear no counts as yes.
pub(crate) fn is_cross_site(headers: &HeaderMap) -> bool {
    let site = headers.get_all("sec-fetch-site").iter();
    site.map(HeaderValue::as_bytes)
        .any(|it| !it.eq_ignore_ascii_case(b"same-origin") && !it.eq_ignore_ascii_case(b"none"))
}

/// Whether a person follows a link to the hub: a page that opens in its own window, by a method that changes
/// nothing. A form that another site posts is not a link, and neither is a frame.
fn is_link(method: &Method, headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|it| it == value);
    let is_whole_page = !headers.contains_key("sec-fetch-dest") || is("sec-fetch-dest", "document");
    let changes_nothing = method == Method::GET || method == Method::HEAD;
    changes_nothing && is("sec-fetch-mode", "navigate") && is_whole_page
}

/// Why a request is refused before its credentials are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestError {
    /// The request does not say which host it is for.
    NoHost,
    /// The request names two hosts.
    SeveralHosts,
    /// The host cannot be read.
    BadHost,
    /// The request is for another host: perhaps a page points a name of its own at this machine.
    ForeignHost(String),
    /// The request has two origins.
    SeveralOrigins,
    /// The origin cannot be read.
    BadOrigin,
    /// The page hides its origin.
    NullOrigin,
    /// A page of another origin made the request.
    ForeignOrigin(String),
    /// A page of another site made the request, without an origin.
    CrossSite,
}

impl RequestError {
    /// The status of the HTTP response.
    pub fn status(&self) -> u16 {
        match self {
            RequestError::NoHost
            | RequestError::SeveralHosts
            | RequestError::BadHost
            | RequestError::SeveralOrigins
            | RequestError::BadOrigin => 400,
            RequestError::ForeignHost(_) => 421,
            RequestError::NullOrigin | RequestError::ForeignOrigin(_) | RequestError::CrossSite => {
                403
            }
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::NoHost => f.write_str("The header Host is missing. Send it."),
            RequestError::SeveralHosts => f.write_str("The request names two hosts. Send one."),
            RequestError::BadHost => {
                f.write_str("The header Host cannot be read. Send a name or address, and a port.")
            }
            RequestError::ForeignHost(host) => write!(
                f,
                "This hub does not go by the name {}. Use localhost, or add the name to host_names.",
                aaep::printable(host)
            ),
            RequestError::SeveralOrigins => f.write_str("The request has two origins. Send one."),
            RequestError::BadOrigin => f.write_str("The header Origin cannot be read. Leave it out."),
            RequestError::NullOrigin => f.write_str(
                "The page does not say where it comes from. Serve it from an origin and add that to allowed_origins.",
            ),
            RequestError::ForeignOrigin(origin) => write!(
                f,
                "Pages of {} may not use this hub. If they should, add it to allowed_origins.",
                aaep::printable(origin)
            ),
            RequestError::CrossSite => f.write_str(
                "A page of another site made the request. Use the hub from a page of its own.",
            ),
        }
    }
}

impl std::error::Error for RequestError {}

#[cfg(test)]
mod tests;
