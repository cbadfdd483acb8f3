//! Rules of every wire over the network, before the first message.

use std::time::Duration;

use aaep_transport::link::{DialError, DialOptions, Target, dial};

use crate::support::*;

#[tokio::test]
async fn nothing_goes_to_another_machine_in_the_clear() {
    for text in ["http://example.org", "ws://10.1.2.3:7117", "http://localhost.example.org"] {
        let target = Target::parse(text).expect("a target");
        let options = DialOptions { bearer: Some("secret".to_owned()), ..DialOptions::default() };
        let error = dial(&target, &options).await.expect_err("plain");
        assert!(matches!(error, DialError::PlainHttp(_)), "{error:?}");
        assert!(!error.to_string().contains("secret"));
    }
}

#[tokio::test]
async fn where_nobody_listens_is_said_with_the_place() {
    let producer = Producer::new().await;
    let targets = [producer.target("http", "/"), producer.target("ws", "/")];
    let port = producer.port();
    drop(producer);
    for target in targets {
        let error = dial(&target, &DialOptions::default()).await.expect_err("nobody");
        assert!(matches!(error, DialError::Unreachable { .. }), "{error:?}");
        assert!(error.to_string().contains(&port.to_string()), "{error}");
    }
}

#[tokio::test]
async fn a_peer_that_never_answers_is_given_up() {
    let producer = Producer::new().await;
    let options = DialOptions { without_handshake: true, ..impatient() };
    for scheme in ["http", "ws"] {
        let dialling = dialling(&producer.target(scheme, "/events"), options.clone());
        let mut peer = producer.accept().await;
        peer.request().await;
        peer.write("HTTP/1.1 200 OK\r\nx: y").await;
        assert_eq!(dialled(dialling).await.err(), Some(DialError::TooSlow), "{scheme}");
    }
}

#[tokio::test]
async fn a_peer_that_never_answers_the_tls_handshake_is_given_up() {
    let producer = Producer::new().await;
    let soon = Duration::from_millis(200);
    for scheme in ["https", "wss"] {
        let options = DialOptions { tls: Some(no_roots()), connect_timeout: soon, ..impatient() };
        let dialling = dialling(&producer.target(scheme, "/"), options);
        let _peer = producer.accept().await;
        assert_eq!(dialled(dialling).await.err(), Some(DialError::TooSlow), "{scheme}");
    }
}

fn no_roots() -> std::sync::Arc<rustls::ClientConfig> {
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    std::sync::Arc::new(config)
}

#[tokio::test]
async fn a_peer_that_does_not_speak_http_is_not_a_link() {
    let producer = Producer::new().await;
    let endless = "x".repeat(100 << 10);
    for answer in ["SSH-2.0-x\r\n\r\n", "", "HTTP/1.1 200 OK\r\n", "\0\0\0\0", &endless] {
        for scheme in ["http", "ws"] {
            let options = DialOptions { without_handshake: true, ..DialOptions::default() };
            let dialling = dialling(&producer.target(scheme, "/events"), options);
            let mut peer = producer.accept().await;
            peer.request().await;
            // The peer may be gone before everything is written.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, answer.as_bytes()).await;
            drop(peer);
            let error = dialled(dialling).await.expect_err("no HTTP");
            assert!(matches!(error, DialError::Cut(_)), "{error:?}");
        }
    }
}
