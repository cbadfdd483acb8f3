//! Redirects and refusals, as both wires over HTTP see them.

use aaep_transport::link::{DialError, DialOptions};

use crate::support::*;

fn options() -> DialOptions {
    DialOptions {
        bearer: Some("secret".to_owned()),
        without_handshake: true,
        ..DialOptions::default()
    }
}

#[tokio::test]
async fn one_redirect_within_the_host_is_followed() {
    let producer = Producer::new().await;
    let whole = format!("http://127.0.0.1:{}/there?a=b", producer.port());
    for (scheme, location) in [("http", "/there?a=b"), ("http", whole.as_str()), ("ws", &whole)] {
        let dialling = dialling(&producer.target(scheme, "/here"), options());
        let mut first = producer.accept().await;
        assert!(first.request().await.0.starts_with("GET /here HTTP/1.1\r\n"));
        let headers = format!("location: {location}\r\n");
        first.answer("307 Temporary Redirect", &headers, "").await;
        let mut second = producer.accept().await;
        let (head, _) = second.request().await;
        assert!(head.starts_with("GET /there?a=b HTTP/1.1\r\n"), "{head}");
        assert_eq!(header(&head, "authorization"), Some("Bearer secret"));
        second.answer("307 Temporary Redirect", &headers, "").await;
        let error = dialled(dialling).await.expect_err("it goes in circles");
        assert!(matches!(error, DialError::Violation(_)), "{error:?}");
        assert!(producer.is_alone().await, "and no third time");
    }
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed_and_learns_no_token() {
    let (producer, other) = (Producer::new().await, Producer::new().await);
    let elsewhere = format!("http://127.0.0.1:{}/", other.port());
    let by_name = format!("http://localhost:{}/", producer.port());
    let encrypted = format!("https://127.0.0.1:{}/", producer.port());
    for location in [elsewhere.as_str(), &by_name, &encrypted, "//example.org/", "", "there"] {
        for scheme in ["http", "ws"] {
            let dialling = dialling(&producer.target(scheme, "/"), options());
            let mut peer = producer.accept().await;
            peer.request().await;
            peer.answer("307 Temporary Redirect", &format!("location: {location}\r\n"), "").await;
            let error = dialled(dialling).await.expect_err("not followed");
            assert!(matches!(error, DialError::Violation(_)), "{error:?}");
        }
    }
    assert!(other.is_alone().await && producer.is_alone().await);
}

#[tokio::test]
async fn refusals_and_failures_are_told_apart_and_shown_harmlessly() {
    let producer = Producer::new().await;
    let said = "{\"message\":\"\\u001b[2JNo. Get a new token.\"}";
    for scheme in ["http", "ws"] {
        for (status, body) in [
            ("401 Unauthorized", said),
            ("403 Forbidden", "<html>no</html>"),
            ("403 Forbidden", ""),
            ("404 Not Found", said),
            ("500 Oh", "\u{1b}[2J"),
            ("301 Moved", ""),
            ("204 No Content", ""),
        ] {
            let dialling = dialling(&producer.target(scheme, "/events"), options());
            let mut peer = producer.accept().await;
            peer.request().await;
            peer.answer(status, "", body).await;
            let error = dialled(dialling).await.expect_err(status);
            let shown = error.to_string();
            assert!(!shown.contains('\u{1b}') && !shown.contains("secret"), "{shown}");
            if status.starts_with("401") || status.starts_with("403") {
                assert!(matches!(error, DialError::Refused { .. }), "{error:?}");
            } else {
                let number: u16 = status[..3].parse().expect("a number");
                let is_it = matches!(&error, DialError::Status { status, .. } if *status == number);
                assert!(is_it, "{error:?}");
            }
            if body == said {
                assert!(shown.contains("Get a new token."), "{shown}");
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_without_end_is_a_refusal() {
    let producer = Producer::new().await;
    let dialling = dialling(&producer.target("ws", "/"), options());
    let mut peer = producer.accept().await;
    peer.request().await;
    peer.write("HTTP/1.1 401 No\r\ncontent-length: 999999999\r\n\r\n").await;
    let flood = tokio::spawn(async move {
        let piece = [b'x'; 4096];
        while tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &piece).await.is_ok() {}
    });
    let error = dialled(dialling).await.expect_err("refused");
    assert!(matches!(error, DialError::Refused { .. }), "{error:?}");
    patiently(flood).await.expect("it is hung up on");
}
