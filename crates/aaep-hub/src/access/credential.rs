//! Finding the one credential in a request (§8.2.7, RFC 6750).
//!
//! A request may carry one credential: in the header, in an address that was made for one program, or, where
//! configured, in the query, for browsers whose `EventSource` and `WebSocket` cannot set headers. This file
//! does not check whether the credential is valid.

use http::header::AUTHORIZATION;
use http::{HeaderMap, Uri};

use crate::access::AccessError;
use crate::access::address::SecretPath;

/// The longest credential, in bytes. Signed tokens with many claims are the longest in use.
pub const MAX_CREDENTIAL_BYTES: usize = 8 * 1024;

const QUERY_PARAMETER: &str = "access_token";
const SCHEME: &str = "bearer";

/// Headers by which a proxy shows that it forwards a request.
const FORWARDING: [&str; 5] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/// The credential that a request presents.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestCredential<'r> {
    /// A token, or the person's key.
    Bearer(&'r str),
    /// The secret in an address that was made for one program.
    Address(&'r str),
}

impl<'r> RequestCredential<'r> {
    /// The secret text.
    pub(crate) fn secret(self) -> &'r str {
        let (RequestCredential::Bearer(secret) | RequestCredential::Address(secret)) = self;
        secret
    }
}

/// The credential of a request, if it has one.
pub(crate) fn find_credential<'r>(
    headers: &'r HeaderMap,
    uri: &'r Uri,
    is_query_allowed: bool,
) -> Result<Option<RequestCredential<'r>>, AccessError> {
    let bearer = bearer(headers, uri, is_query_allowed)?;
    match (bearer, SecretPath::find(uri.path())) {
        (Some(_), Some(_)) => Err(AccessError::SeveralCredentials),
        (None, Some(path)) => Ok(Some(RequestCredential::Address(path.secret))),
        (bearer, None) => Ok(bearer.map(RequestCredential::Bearer)),
    }
}

/// The bearer token of a request, if it has one.
fn bearer<'r>(
    headers: &'r HeaderMap,
    uri: &'r Uri,
    is_query_allowed: bool,
) -> Result<Option<&'r str>, AccessError> {
    let mut in_header = headers.get_all(AUTHORIZATION).iter();
    let header = in_header.next();
    let mut in_query = parameters(uri);
    let query = in_query.next();
    if in_header.next().is_some() || in_query.next().is_some() {
        return Err(AccessError::SeveralCredentials);
    }
    match (header, query) {
        (Some(_), Some(_)) => Err(AccessError::SeveralCredentials),
        (_, Some(_)) if !is_query_allowed => Err(AccessError::QueryNotAllowed),
        (None, Some(value)) => token68(value.as_bytes()).map(Some),
        (Some(value), None) => after_scheme(value.as_bytes()).map(Some),
        (None, None) => Ok(None),
    }
}

/// Whether a proxy passed the request on.
pub(crate) fn is_forwarded(headers: &HeaderMap) -> bool {
    FORWARDING.iter().any(|name| headers.contains_key(*name))
}

/// The values of the query parameter, as written. A token needs no percent signs, so nothing is decoded.
fn parameters(uri: &Uri) -> impl Iterator<Item = &str> {
    uri.query()
        .into_iter()
        .flat_map(|query| query.split('&'))
        .filter_map(|pair| pair.split_once('=').or(Some((pair, ""))))
        .filter(|(name, _)| name.eq_ignore_ascii_case(QUERY_PARAMETER))
        .map(|(_, value)| value)
}

/// The text after `Bearer` and at least one space. The scheme is matched without regard to case.
fn after_scheme(value: &[u8]) -> Result<&str, AccessError> {
    if value.len() > MAX_CREDENTIAL_BYTES {
        return Err(AccessError::TooLong);
    }
    let value = value.trim_ascii();
    let end = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
    let (scheme, rest) = value.split_at(end);
    if !scheme.eq_ignore_ascii_case(SCHEME.as_bytes()) {
        return Err(AccessError::UnsupportedScheme);
    }
    let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
    token68(&rest[spaces..])
}

/// The characters of RFC 6750: letters, digits, `-._~+/`, and `=` at the end.
fn token68(value: &[u8]) -> Result<&str, AccessError> {
    if value.len() > MAX_CREDENTIAL_BYTES {
        return Err(AccessError::TooLong);
    }
    let unpadded = value.len() - value.iter().rev().take_while(|byte| **byte == b'=').count();
    let is_fine = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(byte);
    if unpadded == 0 || !value[..unpadded].iter().all(is_fine) {
        return Err(AccessError::Malformed);
    }
    std::str::from_utf8(value).map_err(|_| AccessError::Malformed)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn header(value: &[u8]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_bytes(value).expect("a header value"));
        headers
    }

    #[test]
    fn the_header_is_read_as_the_standard_says() {
        let uri = Uri::from_static("/events");
        for (value, expected) in [
            (&b"Bearer abc"[..], Ok(Some("abc"))),
            (b"bearer abc", Ok(Some("abc"))),
            (b"BEARER   a.b-c_~+/==", Ok(Some("a.b-c_~+/=="))),
            (b"  Bearer abc \t ", Ok(Some("abc"))),
            (b"Bearer", Err(AccessError::Malformed)),
            (b"Bearer ==", Err(AccessError::Malformed)),
            (b"Bearer a b", Err(AccessError::Malformed)),
            (b"Bearer a,b", Err(AccessError::Malformed)),
            (b"Bearer a=b", Err(AccessError::Malformed)),
            (b"Bearer \"abc\"", Err(AccessError::Malformed)),
            (b"Bearer a\xc3\xa9", Err(AccessError::Malformed)),
            (b"Bearer\tabc", Err(AccessError::UnsupportedScheme)),
            (b"Bearerabc", Err(AccessError::UnsupportedScheme)),
            (b"Basic dXNlcjpwYXNz", Err(AccessError::UnsupportedScheme)),
            (b"Token abc", Err(AccessError::UnsupportedScheme)),
            (b"abc", Err(AccessError::UnsupportedScheme)),
            (b"", Err(AccessError::UnsupportedScheme)),
        ] {
            let headers = header(value);
            assert_eq!(bearer(&headers, &uri, false), expected, "{}", value.escape_ascii());
        }
        assert_eq!(bearer(&HeaderMap::new(), &uri, false), Ok(None));
    }

    #[test]
    fn two_credentials_are_refused_even_when_they_are_the_same() {
        let mut headers = header(b"Bearer abc");
        headers.append(AUTHORIZATION, HeaderValue::from_static("Bearer abc"));
        let uri = Uri::from_static("/events");
        assert_eq!(bearer(&headers, &uri, true), Err(AccessError::SeveralCredentials));
        let both = Uri::from_static("/events?access_token=abc");
        let one = header(b"Bearer abc");
        assert_eq!(bearer(&one, &both, true), Err(AccessError::SeveralCredentials));
        let twice = Uri::from_static("/events?access_token=abc&access_token=abc");
        assert_eq!(bearer(&HeaderMap::new(), &twice, true), Err(AccessError::SeveralCredentials));
    }

    #[test]
    fn a_huge_header_is_refused_before_it_is_read() {
        let mut value = b"Bearer ".to_vec();
        value.resize(MAX_CREDENTIAL_BYTES + 1, b'a');
        let headers = header(&value);
        let uri = Uri::from_static("/");
        assert_eq!(bearer(&headers, &uri, false), Err(AccessError::TooLong));
    }

    #[test]
    fn a_token_in_the_address_counts_only_where_it_is_configured() {
        let none = HeaderMap::new();
        for (uri, expected) in [
            ("/events?access_token=abc", Ok(Some("abc"))),
            ("/events?a=1&access_token=abc&b=2", Ok(Some("abc"))),
            ("/events?access_token=a%62c", Err(AccessError::Malformed)),
            ("/events?access_token=", Err(AccessError::Malformed)),
            ("/events?access_token", Err(AccessError::Malformed)),
            ("/events?my_access_token=abc", Ok(None)),
            ("/events?q=access_token", Ok(None)),
        ] {
            let uri: Uri = uri.parse().expect("an address");
            assert_eq!(bearer(&none, &uri, true), expected, "{uri}");
            if uri
                .query()
                .is_some_and(|query| parameters(&uri).next().is_some() && !query.is_empty())
            {
                assert_eq!(bearer(&none, &uri, false), Err(AccessError::QueryNotAllowed), "{uri}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_header_is_read_without_panic(value in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                let mut headers = HeaderMap::new();
                headers.insert(AUTHORIZATION, value);
                if let Ok(Some(token)) = bearer(&headers, &Uri::from_static("/"), true) {
                    prop_assert!(!token.is_empty() && token.is_ascii() && !token.contains(' '));
                }
            }
        }
    }
}
