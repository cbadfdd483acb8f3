//! Whom the client calls, and what it never sends.

use tokio::net::TcpListener;

use super::*;

fn caller(address: &str, options: CallOptions) -> Result<HttpCaller, CallError> {
    HttpCaller::new(&HttpAddress::parse(address).expect(address), options)
}

fn with_token(token: &str) -> CallOptions {
    CallOptions { bearer: Some(token.to_owned()), ..CallOptions::default() }
}

#[test]
fn clear_text_does_not_leave_this_machine() {
    for address in [
        "http://192.0.2.7:7117",
        "http://hub.example.org",
        "http://localhost.example.org",
        "http://[::ffff:192.0.2.7]",
    ] {
        let refused = caller(address, with_token("secret")).expect_err("clear text");
        assert!(matches!(refused, CallError::PlainHttp), "{refused:?}");
        assert!(!format!("{refused} {refused:?}").contains("secret"));
        let allowed = CallOptions { insecure_allow_plain_http: true, ..with_token("secret") };
        assert!(caller(address, allowed).is_ok());
    }
    for address in ["http://localhost", "http://127.8.8.8:1", "http://[::ffff:127.0.0.1]:1"] {
        assert!(caller(address, CallOptions::default()).is_ok(), "{address}");
    }
}

#[test]
fn a_token_cannot_smuggle_a_header_and_is_never_shown() {
    for token in ["", "a\r\nx: y", "a b", "\u{fc}"] {
        let refused = caller("http://127.0.0.1", with_token(token)).expect_err("no token");
        assert!(matches!(refused, CallError::Token), "{token:?}");
    }
    let caller = caller("http://127.0.0.1", with_token("secret")).expect("a caller");
    assert!(!format!("{caller:?} {:?}", caller.options()).contains("secret"));
    assert!(caller.authorization().is_some_and(HeaderValue::is_sensitive));
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_told_apart_from_silence() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}/", listener.local_addr().expect("an address"));
    let options = CallOptions { answer_timeout: Duration::from_millis(50), ..with_token("t") };
    let silent = caller(&address, options).expect("a caller");
    let call = HttpCall {
        method: Method::GET,
        path: "/".to_owned(),
        headers: hyper::HeaderMap::new(),
        body: bytes::Bytes::new(),
    };
    let answer = silent.call(None, &call).await;
    assert!(matches!(answer, Err(CallError::TooSlowToAnswer)), "{answer:?}");
    drop(listener);
    let answer = silent.call(None, &call).await;
    assert!(matches!(answer, Err(CallError::Connect(_))), "{answer:?}");
}
