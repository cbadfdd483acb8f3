//! A subscriber's link over gRPC, against a real hub.

use aaep_hub::access::Scope;
use aaep_transport::link::{DialOptions, Link, LinkEnd, Target, dial};
use serde_json::{Value, json};

use super::support::*;
use crate::support::*;

fn link(hub: &TestHub, token: &str) -> Link {
    let target = Target::parse(&format!("grpc://{}", hub.address())).expect("a target");
    let bearer = token.trim().rsplit_once(' ').map(|(_, token)| token.to_owned());
    let options = DialOptions { bearer, ..DialOptions::default() };
    wait(dial(&target, &options)).expect("a link")
}

fn say(link: &Link, message: &Value) {
    wait(link.sender.send(message.to_string())).expect("the link is there");
}

fn next(link: &mut Link) -> Value {
    let message = wait(link.receiver.next()).expect("a message");
    serde_json::from_str(&message).expect("JSON")
}

fn subscribe(link: &mut Link) -> String {
    say(link, &subscription_request());
    let accepted = next(link);
    assert_eq!(accepted["type"], "subscription.accepted", "{accepted}");
    accepted["subscription_id"].as_str().expect("an id").to_owned()
}

fn end(link: &mut Link) -> LinkEnd {
    loop {
        if let Err(end) = wait(link.receiver.next()) {
            return end;
        }
    }
}

#[test]
fn a_link_hears_and_answers() {
    let hub = TestHub::new();
    let mut link = link(&hub, "");
    let id = subscribe(&mut link);
    hub.begin("sess_1");
    let open = asked(&hub);
    let asked = loop {
        let message = next(&mut link);
        if message["type"] == "aaep:agent.awaiting.confirmation" {
            break message;
        }
    };
    say(&link, &reply(asked["reply_token"].as_str().expect("a token"), &id, "accept"));
    assert_eq!(outcome(&hub, &open), (json!("accept"), json!("reply")));
    say(&link, &close(&id));
    let ended = end(&mut link);
    assert!(matches!(ended, LinkEnd::Closed { code: Some(4005), .. }), "{ended:?}");
}

#[test]
fn a_link_with_a_wrong_token_is_refused() {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    let good = token(&hub.folder, "listener", &[Scope::Listen]);
    for wrong in ["", "authorization: Bearer aaep_wrong"] {
        let mut link = link(&hub, wrong);
        let ended = end(&mut link);
        assert!(matches!(ended, LinkEnd::Refused { .. }), "{ended:?}");
    }
    subscribe(&mut link(&hub, &good));
}

#[test]
fn a_link_learns_that_the_hub_stops_and_a_link_that_is_dropped_is_gone() {
    let hub = TestHub::new();
    let mut stays = link(&hub, "");
    subscribe(&mut stays);
    let mut goes = link(&hub, "");
    subscribe(&mut goes);
    let (connections, guard) = (4, hub.daemon().hub().guard().clone());
    assert_eq!(guard.connections(), connections, "two connections with a call each");
    drop(goes);
    wait_until("the dropped link is gone", || guard.connections() <= connections / 2);
    hub.stop();
    let ended = end(&mut stays);
    assert!(matches!(ended, LinkEnd::Closed { code: Some(1001), .. }), "{ended:?}");
}

#[test]
fn a_link_says_who_it_is_and_sets_no_end() {
    use hyper_util::rt::{TokioExecutor, TokioIo};

    let (heads, seen) = std::sync::mpsc::channel();
    let listener = wait(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port");
    let address = listener.local_addr().expect("an address");
    CLIENTS.spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let service = hyper::service::service_fn(move |request: http::Request<_>| {
            let _: &hyper::body::Incoming = request.body();
            heads.send(request.headers().clone()).expect("somebody looks");
            let answer = tonic::Status::unimplemented("no").into_http::<tonic::body::Body>();
            async move { Ok::<_, std::convert::Infallible>(answer) }
        });
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
    });
    let target = Target::parse(&format!("grpc://{address}")).expect("a target");
    let options = DialOptions { bearer: Some("aaep_me".to_owned()), ..DialOptions::default() };
    let mut link = wait(dial(&target, &options)).expect("a link");
    let ended = end(&mut link);
    assert!(matches!(ended, LinkEnd::Violation(_)), "{ended:?}");
    let head = seen.recv_timeout(PATIENCE).expect("a call");
    assert_eq!(head["authorization"], "Bearer aaep_me");
    assert!(!head.contains_key("grpc-timeout"), "a subscriber listens until it is told to stop");
}

#[test]
fn a_link_to_something_that_is_not_a_hub_soon_ends() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        use std::io::Write as _;
        let (mut stream, _) = listener.accept().expect("a connection");
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    });
    let target = Target::parse(&format!("grpc://{address}")).expect("a target");
    if let Ok(mut link) = wait(dial(&target, &DialOptions::default())) {
        let ended = end(&mut link);
        assert!(matches!(ended, LinkEnd::Cut(_)), "{ended:?}");
    }
    server.join().expect("no panic");
}
