//! Requests from elsewhere: which are meant for this hub, and which pages may make them.

use super::*;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let value = HeaderValue::from_str(value).expect("a header value");
        headers.append(HeaderName::from_static(name), value);
    }
    headers
}

fn ours() -> Vec<Authority> {
    ["hub.example.org", "192.168.1.4:7443"].map(|it| Authority::parse(it).expect("a host")).into()
}

fn host(value: &str) -> Result<Authority, RequestError> {
    check_host(&headers(&[("host", value)]), &Uri::from_static("/events"), &ours())
}

#[test]
fn only_our_own_names_are_served() {
    for good in [
        "localhost",
        "localhost:7000",
        "LOCALHOST",
        "localhost.:7000",
        "127.0.0.1:7000",
        "127.1.2.3",
        "[::1]:7000",
        "[::1]",
        "hub.example.org",
        "HUB.example.org.:7443",
        "192.168.1.4:7443",
    ] {
        assert!(host(good).is_ok(), "{good}");
    }
    for foreign in [
        "evil.example",
        "localhost.evil.example",
        "hub.example.org.evil.example",
        "example.org",
        "192.168.1.4",
        "192.168.1.4:80",
        "192.168.1.5:7443",
        "0.0.0.0",
        "[::]",
        "[fe80::1]",
    ] {
        assert!(matches!(host(foreign), Err(RequestError::ForeignHost(_))), "{foreign}");
    }
    for bad in
        ["", "user@localhost", "localhost@evil.example", "localhost:x", "127.1", "[::1", "a b"]
    {
        assert_eq!(host(bad), Err(RequestError::BadHost), "{bad}");
    }
}

#[test]
fn a_request_names_exactly_one_host() {
    let path = Uri::from_static("/events");
    assert_eq!(check_host(&HeaderMap::new(), &path, &ours()), Err(RequestError::NoHost));
    let two = headers(&[("host", "localhost"), ("host", "localhost")]);
    assert_eq!(check_host(&two, &path, &ours()), Err(RequestError::SeveralHosts));
    let whole = Uri::from_static("http://evil.example/events");
    let local = headers(&[("host", "localhost")]);
    assert_eq!(check_host(&local, &whole, &ours()), Err(RequestError::SeveralHosts));
    let same = Uri::from_static("http://localhost:7000/events");
    let with_port = headers(&[("host", "LOCALHOST:7000")]);
    assert!(check_host(&with_port, &same, &ours()).is_ok());
    assert!(check_host(&HeaderMap::new(), &same, &ours()).is_ok());
    let user = Uri::from_static("http://user@localhost/events");
    assert_eq!(check_host(&HeaderMap::new(), &user, &ours()), Err(RequestError::BadHost));
}

fn origin(value: &str, host: &str, is_tls: bool) -> Result<Page, RequestError> {
    let host = Authority::parse(host).expect("a host");
    let allowed = [Origin::parse("https://reader.example").expect("an origin")];
    check_origin(&Method::GET, &headers(&[("origin", value)]), &host, is_tls, &allowed)
}

#[test]
fn only_our_own_pages_and_configured_ones_may_ask() {
    for (value, host, is_tls) in [
        ("http://localhost:7000", "localhost:7000", false),
        ("HTTP://LOCALHOST.:7000", "localhost:7000", false),
        ("http://localhost", "localhost:80", false),
        ("https://hub.example.org", "hub.example.org:443", true),
        ("http://[::1]:7000", "[0:0::1]:7000", false),
    ] {
        assert_eq!(origin(value, host, is_tls), Ok(Page::Ours), "{value} {host}");
    }
    for (value, host, is_tls) in [
        ("http://localhost:7001", "localhost:7000", false),
        ("http://localhost", "localhost:7000", false),
        ("https://localhost:7000", "localhost:7000", false),
        ("http://localhost:7000", "localhost:7000", true),
        ("http://127.0.0.1:7000", "localhost:7000", false),
        ("http://evil.example", "localhost:7000", false),
        ("http://reader.example", "localhost:7000", false),
        ("https://reader.example:8443", "localhost:7000", false),
        ("https://a.reader.example", "localhost:7000", false),
    ] {
        let refused = origin(value, host, is_tls);
        assert!(matches!(refused, Err(RequestError::ForeignOrigin(_))), "{value} {host}");
    }
    let reader = HeaderValue::from_static("https://reader.example");
    assert_eq!(
        origin("https://reader.example", "localhost:7000", false),
        Ok(Page::Allowed(reader))
    );
}

#[test]
fn hidden_double_and_unreadable_origins_are_refused() {
    for (value, expected) in [
        ("null", RequestError::NullOrigin),
        ("NULL", RequestError::NullOrigin),
        ("", RequestError::BadOrigin),
        ("localhost:7000", RequestError::BadOrigin),
        ("http://user@localhost:7000", RequestError::BadOrigin),
        ("http://localhost:7000/", RequestError::BadOrigin),
        ("http://localhost:7000 http://evil.example", RequestError::BadOrigin),
    ] {
        assert_eq!(origin(value, "localhost:7000", false), Err(expected), "{value}");
    }
    let host = Authority::parse("localhost").expect("a host");
    let two = headers(&[("origin", "http://localhost"), ("origin", "http://localhost")]);
    assert_eq!(
        check_origin(&Method::GET, &two, &host, false, &[]),
        Err(RequestError::SeveralOrigins)
    );
}

#[test]
fn without_an_origin_a_program_is_fine_and_a_foreign_page_is_not() {
    let host = Authority::parse("localhost").expect("a host");
    let check = |method: &Method, pairs: &[(&'static str, &str)]| {
        check_origin(method, &headers(pairs), &host, false, &[])
    };
    let post = Method::POST;
    for method in [&Method::GET, &post] {
        assert_eq!(check(method, &[]), Ok(Page::None));
        assert_eq!(check(method, &[("sec-fetch-site", "none")]), Ok(Page::None));
        assert_eq!(check(method, &[("sec-fetch-site", "same-origin")]), Ok(Page::None));
        for site in ["cross-site", "same-site", "Cross-Site", "cross-site, none", ""] {
            assert_eq!(check(method, &[("sec-fetch-site", site)]), Err(RequestError::CrossSite));
            let image = [("sec-fetch-site", site), ("sec-fetch-mode", "no-cors")];
            assert_eq!(check(method, &image), Err(RequestError::CrossSite));
        }
    }
    for site in ["cross-site", "same-site"] {
        let link = [("sec-fetch-site", site), ("sec-fetch-mode", "navigate")];
        assert_eq!(check(&Method::GET, &link), Ok(Page::None));
        assert_eq!(check(&post, &link), Err(RequestError::CrossSite), "a form of another site");
        let whole = [link[0], link[1], ("sec-fetch-dest", "document")];
        assert_eq!(check(&Method::GET, &whole), Ok(Page::None));
        for frame in ["iframe", "frame", "embed", "object"] {
            let framed = [link[0], link[1], ("sec-fetch-dest", frame)];
            assert_eq!(check(&Method::GET, &framed), Err(RequestError::CrossSite), "{frame}");
        }
    }
}

#[test]
fn cors_is_off_but_for_configured_origins() {
    let asking = headers(&[
        ("access-control-request-method", "POST"),
        ("access-control-request-private-network", "true"),
    ]);
    for page in [Page::None, Page::Ours] {
        assert!(cors_headers(&page).is_empty());
        assert_eq!(preflight(&Method::OPTIONS, &asking, &page), None);
    }
    let reader = Page::Allowed(HeaderValue::from_static("https://reader.example"));
    let answer = preflight(&Method::OPTIONS, &asking, &reader).expect("an answer");
    assert_eq!(answer["access-control-allow-origin"], "https://reader.example");
    assert_eq!(answer["vary"], "Origin");
    let readable = "Location, Retry-After, WWW-Authenticate";
    assert_eq!(cors_headers(&reader)["access-control-expose-headers"], readable);
    assert_eq!(answer["access-control-allow-private-network"], "true");
    assert!(!answer.contains_key("access-control-allow-credentials"));
    assert_eq!(preflight(&Method::GET, &asking, &reader), None);
    assert_eq!(preflight(&Method::OPTIONS, &HeaderMap::new(), &reader), None);
}

#[test]
fn what_a_stranger_wrote_reaches_no_terminal_unescaped() {
    let error = RequestError::ForeignOrigin("http://\u{1b}[2J".to_owned());
    assert!(!error.to_string().contains('\u{1b}'));
}
