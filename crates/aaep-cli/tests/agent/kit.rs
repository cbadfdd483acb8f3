//! The kit against a real hub, on each of its wires: questions answered, terms changed, goodbyes said.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::Duration;

use aaep::extension::{AskOutcome, DecidedBy};
use aaep::reply::Response;
use aaep_subscriber::blocking::{Subscriber, connect, wait};
use aaep_subscriber::{Ask, AskState, ConnectError, News, Wishes};

use crate::support::{Hub, aaep, err};

const PATIENCE: Duration = Duration::from_mins(1);

/// The addresses of a hub, one for each wire.
fn addresses(hub: &Hub, folder: &std::path::Path) -> Vec<String> {
    vec![
        hub.origin.clone(),
        format!("{}/aaep/v1/events", hub.origin),
        format!("{}/aaep/v1/ws", hub.origin.replace("http://", "ws://")),
        format!("unix:{}", folder.join("aaep/aaep-hub.sock").display()),
        hub.origin.replace("http://", "grpc://"),
    ]
}

fn next(subscriber: &mut Subscriber) -> News {
    subscriber.next_within(PATIENCE).expect("news in time").expect("news")
}

fn next_ask(subscriber: &mut Subscriber) -> Ask {
    loop {
        if let News::Ask(ask) = next(subscriber) {
            return ask;
        }
    }
}

fn asks(hub: &Hub, arguments: &[&str]) -> Child {
    let mut command = hub.aaep(&[&["ask"], arguments].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("aaep runs")
}

fn ended(child: Child) -> Output {
    child.wait_with_output().expect("aaep ends")
}

#[test]
fn a_person_confirms_and_clarifies_on_every_wire() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    for address in addresses(&hub, folder.path()) {
        let mut subscriber = connect(&address, Wishes::new("reader")).expect(&address);
        let accepted = asks(&hub, &["Delete it?", "--irreversible"]);
        let ask = next_ask(&mut subscriber);
        assert_eq!(ask.confirmation().expect("a confirmation").action, "Delete it?");
        wait(ask.accept()).expect("said");
        let state = wait(ask.settled());
        let (outcome, decided_by) = (AskOutcome::Accept, DecidedBy::Reply);
        assert_eq!(state, AskState::Resolved { outcome, decided_by }, "{address}");
        let output = ended(accepted);
        assert_eq!(output.status.code(), Some(0), "{address}: {}", err(&output));

        let rejected = asks(&hub, &["Delete it?"]);
        wait(next_ask(&mut subscriber).reject()).expect("said");
        assert_eq!(ended(rejected).status.code(), Some(1), "{address}");

        let choosing = asks(&hub, &["Which?", "--choices", "red,blue"]);
        let ask = next_ask(&mut subscriber);
        assert!(wait(ask.answer(Response::Text("green".to_owned()))).is_err());
        wait(ask.answer(Response::Text("blue".to_owned()))).expect("said");
        let output = ended(choosing);
        assert_eq!(output.status.code(), Some(0), "{address}: {}", err(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("blue"), "{output:?}");
    }
}

#[test]
fn one_of_two_people_answers_and_the_other_knows() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    let wires = addresses(&hub, folder.path());
    let mut one = connect(&wires[2], Wishes::new("one")).expect("a subscription");
    let mut other = connect(&wires[3], Wishes::new("other")).expect("a subscription");
    let asked = asks(&hub, &["Delete it?"]);
    let (first, second) = (next_ask(&mut one), next_ask(&mut other));
    let thinking = thread::spawn(move || wait(second.closed()));
    wait(first.reject()).expect("said");
    let state = thinking.join().expect("thought");
    assert!(matches!(state, AskState::Resolved { outcome: AskOutcome::Reject, .. }), "{state:?}");
    assert_eq!(ended(asked).status.code(), Some(1));
}

#[test]
fn a_person_who_needs_more_time_gets_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    for address in addresses(&hub, folder.path()) {
        let mut subscriber = connect(&address, Wishes::new("reader")).expect("a subscription");
        let asked = asks(&hub, &["Delete it?", "--timeout", "600", "--max-timeout", "3600"]);
        let ask = next_ask(&mut subscriber);
        wait(ask.extend(1200)).expect("said");
        while !matches!(next(&mut subscriber), News::AskTimeChanged(_)) {}
        assert!(ask.remaining() > Duration::from_mins(25), "{address}: {:?}", ask.remaining());
        wait(ask.reject()).expect("said");
        assert_eq!(ended(asked).status.code(), Some(1), "{address}");
    }
}

#[test]
fn when_the_only_subscriber_says_goodbye_nobody_is_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    for address in addresses(&hub, folder.path()) {
        let mut subscriber = connect(&address, Wishes::new("reader")).expect("a subscription");
        let asked = asks(&hub, &["Delete it?", "--timeout", "3600"]);
        let ask = next_ask(&mut subscriber);
        drop(subscriber);
        let output = ended(asked);
        assert_eq!(output.status.code(), Some(1), "{address}: {}", err(&output));
        assert!(!ask.state().is_open());
    }
}

#[test]
fn other_terms_hold_from_when_they_are_granted() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    for address in addresses(&hub, folder.path()) {
        let mut subscriber = connect(&address, Wishes::new("reader")).expect("a subscription");
        assert!(matches!(next(&mut subscriber), News::TermsChanged(_)));
        let mut change = aaep::Capabilities::new();
        change.max_events_per_second = Some(4);
        subscriber.renegotiate(change).expect("said");
        loop {
            if let News::TermsChanged(terms) = next(&mut subscriber) {
                assert_eq!(terms.max_events_per_second, Some(4), "{address}");
                break;
            }
        }
    }
}

#[test]
fn a_hub_that_is_killed_and_comes_back_goes_on_with_the_same_question() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    let place = hub.origin.replace("http://", "");
    let wishes = Wishes::new("reader").longest_wait(Duration::from_millis(50));
    let address = format!("{}/aaep/v1/events", hub.origin);
    let mut subscriber = connect(&address, wishes).expect("a subscription");
    let asked = asks(&hub, &["Delete it?", "--irreversible", "--timeout", "3600"]);
    let ask = next_ask(&mut subscriber);
    drop(hub);
    while !matches!(next(&mut subscriber), News::Reconnecting { .. }) {}
    let hub = Hub::serve(folder.path(), &place);
    wait(ask.accept()).expect("said once the hub was back");
    let output = ended(asked);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    drop(hub);
}

fn make_key(folder: &std::path::Path) {
    let output = aaep(&["keys", "new", "--folder"]).arg(folder.join("keys")).output();
    let output = output.expect("aaep runs");
    assert!(output.status.success(), "{}", err(&output));
}

#[test]
fn a_producer_is_known_by_its_key_from_the_first_time_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let pins = folder.path().join("pins.toml");
    let wishes = || Wishes::new("reader").signed_only().pins(&pins);
    let unsigned = Hub::serve(folder.path(), "127.0.0.1:0");
    let place = unsigned.origin.replace("http://", "");
    let refused = connect(&unsigned.origin, wishes());
    assert!(matches!(refused, Err(ConnectError::NotTrusted(_))), "{refused:?}");
    drop(unsigned);

    make_key(folder.path());
    let keys = folder.path().join("keys");
    let keys = keys.to_str().expect("UTF-8");
    let signed = Hub::serve_with(folder.path(), &place, &["--keys", keys]);
    drop(connect(&signed.origin, wishes()).expect("signed, and remembered"));
    drop(connect(&signed.origin, wishes()).expect("signed by the same key"));
    let socket = format!("{}/aaep/v1/ws", signed.origin.replace("http://", "ws://"));
    drop(connect(&socket, wishes()).expect("the same on a wire without a manifest"));
    drop(signed);

    // Somebody else with another key at the same place.
    let thief = tempfile::tempdir().expect("a folder");
    make_key(thief.path());
    let keys = thief.path().join("keys");
    let other = Hub::serve_with(thief.path(), &place, &["--keys", keys.to_str().expect("UTF-8")]);
    let not_signed_only = Wishes::new("reader").pins(&pins);
    for wishes in [wishes(), not_signed_only.clone()] {
        let refused = connect(&other.origin, wishes);
        assert!(matches!(refused, Err(ConnectError::NotTrusted(_))), "{refused:?}");
    }
    drop(other);
    let bare = Hub::serve(thief.path(), &place);
    let refused = connect(&bare.origin, not_signed_only);
    assert!(matches!(refused, Err(ConnectError::NotTrusted(_))), "no way back: {refused:?}");
}

/// A place that publishes this manifest and nothing else.
fn publishes(manifest: &serde_json::Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    let body = manifest.to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(stream, "{head}\r\ncontent-length: {length}\r\n\r\n{body}");
        }
    });
    origin
}

#[test]
fn the_wires_of_a_manifest_are_tried_in_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    let socket = folder.path().join("aaep/aaep-hub.sock");
    let endpoints = serde_json::json!([
        { "transport": "websocket", "uri": "ws://127.0.0.1:1/aaep/v1/ws" },
        { "transport": "stdio-jsonrpc", "uri": "stdio:false" },
        { "transport": "sse", "uri": "http://127.0.0.1:1/aaep/v1/events" },
        { "transport": "unix-socket", "uri": format!("unix:{}", socket.display()) },
    ]);
    let origin = publishes(&serde_json::json!({
        "@context": ["https://aaep-protocol.org/context/v1", aaep::extension::CONTEXT],
        "type": "aaep:producer.manifest", "agent_id": "somebody",
        "aaep_versions_supported": ["1.0.0"],
        "extensions": { "agentvoice": { "endpoints": endpoints } },
    }));
    let mut subscriber = connect(&origin, Wishes::new("reader")).expect("by the last of them");
    let asked = asks(&hub, &["Delete it?"]);
    wait(next_ask(&mut subscriber).reject()).expect("said");
    assert_eq!(ended(asked).status.code(), Some(1));
}
