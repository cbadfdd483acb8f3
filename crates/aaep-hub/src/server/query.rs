//! Reads the query and the path of a request: percent encoding, names, whole seconds.
//!
//! A value that cannot be read is refused by name, never guessed.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use http::{StatusCode, Uri};

use super::answer::{HttpResponse, refusal};

/// How long a request waits by default, in seconds.
const DEFAULT_WAIT_SECONDS: u64 = 30;
/// The longest wait, in seconds.
const MAX_WAIT_SECONDS: u64 = 60;

/// The decoded value of a parameter. `None` if it is absent.
pub(crate) fn parameter(uri: &Uri, name: &str) -> Result<Option<String>, Box<HttpResponse>> {
    let mut found = None;
    for pair in uri.query().unwrap_or_default().split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decode(key, true).as_deref() != Some(name) {
            continue;
        }
        if found.is_some() {
            return Err(wrong(name, "stands in the address twice. Give it once."));
        }
        match decode(value, true) {
            Some(text) => found = Some(text),
            None => {
                return Err(wrong(name, "cannot be read. Encode it as UTF-8 with percent signs."));
            }
        }
    }
    Ok(found)
}

/// The cursor from an earlier page. `None` to begin.
pub(super) fn cursor<C: FromStr<Err = ()>>(uri: &Uri) -> Result<Option<C>, Box<HttpResponse>> {
    let Some(text) = parameter(uri, "after")? else { return Ok(None) };
    let what = "is not the `next` of a page. Send it as it came, or leave it out to begin.";
    text.parse().map(Some).map_err(|()| wrong("after", what))
}

/// How long the request wants to wait.
pub(crate) fn wait(uri: &Uri) -> Result<Duration, Box<HttpResponse>> {
    let seconds = number_within(uri, "wait_seconds", 0..=MAX_WAIT_SECONDS)?;
    Ok(Duration::from_secs(seconds.unwrap_or(DEFAULT_WAIT_SECONDS)))
}

/// An optional number within bounds.
pub(crate) fn number_within(
    uri: &Uri,
    name: &str,
    bounds: RangeInclusive<u64>,
) -> Result<Option<u64>, Box<HttpResponse>> {
    let is_within = |text: String| {
        number(&text).filter(|it| bounds.contains(it)).ok_or_else(|| {
            let (least, most) = bounds.clone().into_inner();
            let what = format!("is not a whole number from {least} to {most}. Write digits alone.");
            wrong(name, &what)
        })
    };
    parameter(uri, name)?.map(is_within).transpose()
}

/// An optional number.
pub(crate) fn whole_number(uri: &Uri, name: &str) -> Result<Option<u64>, Box<HttpResponse>> {
    parameter(uri, name)?
        .map(|text| {
            number(&text).ok_or_else(|| wrong(name, "is not a whole number. Write only digits."))
        })
        .transpose()
}

/// Decodes percent encoding, if the result is UTF-8. In a query, `+` stands for a space.
pub(crate) fn decode(text: &str, in_query: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                high * 16 + low
            }
            b'+' if in_query => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok())
}

fn number(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// Refuses a parameter. The name comes from our own code.
pub(crate) fn wrong(name: &str, what: &str) -> Box<HttpResponse> {
    let message = format!("The parameter {name} {what}");
    Box::new(refusal(StatusCode::BAD_REQUEST, "wrong_parameter", &message))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(query: &str, name: &str) -> Option<String> {
        let uri: Uri = format!("/p?{query}").parse().expect("a URI");
        parameter(&uri, name).expect("readable")
    }

    #[test]
    fn parameters_are_decoded() {
        assert_eq!(of("a=1&b=x%20y+z", "b").as_deref(), Some("x y z"));
        assert_eq!(of("a=%C3%A9", "a").as_deref(), Some("é"));
        assert_eq!(of("a", "a").as_deref(), Some(""));
        assert_eq!(of("ab=1", "a"), None);
        assert_eq!(of("", "a"), None);
        assert_eq!(decode("a+b%2Fc", false).as_deref(), Some("a+b/c"));
    }

    #[test]
    fn what_cannot_be_read_is_refused_and_nothing_is_guessed() {
        for query in ["a=1&a=1", "a=%", "a=%4", "a=%zz", "a=%ff", "a=1&%61=2"] {
            let uri: Uri = format!("/p?{query}").parse().expect("a URI");
            assert_eq!(parameter(&uri, "a").expect_err(query).status(), 400, "{query}");
        }
        for query in ["wait_seconds=-1", "wait_seconds=61", "wait_seconds=1.5", "wait_seconds="] {
            let uri: Uri = format!("/p?{query}").parse().expect("a URI");
            assert!(wait(&uri).is_err(), "{query}");
        }
        for query in ["limit=0", "limit=1025", "limit=many"] {
            let uri: Uri = format!("/p?{query}").parse().expect("a URI");
            assert!(number_within(&uri, "limit", 1..=1024).is_err(), "{query}");
        }
        let uri = Uri::from_static("/p?limit=1024");
        assert_eq!(number_within(&uri, "limit", 1..=1024).expect("a number"), Some(1024));
        let uri = Uri::from_static("/p?wait_seconds=0");
        assert_eq!(wait(&uri).expect("a time"), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = (decode(&text, true), decode(&text, false));
        }
    }
}
