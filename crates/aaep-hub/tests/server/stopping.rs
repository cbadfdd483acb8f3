//! How a hub stops and continues.

use serde_json::json;

use crate::support::*;

#[test]
fn a_hub_that_stops_lets_nobody_wait_and_ends_its_streams() {
    let hub = TestHub::new();
    let id = hub.subscribe("");
    let mut stream = hub.stream("", &id);
    let mut idle = hub.connect();
    idle.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_eq!(idle.reply().status, 200);
    hub.begin("sess_1");
    let mut asking = hub.connect();
    let ask = question("sess_1").to_string();
    asking.send(&request("", "POST", "/aaep/v1/asks?wait_seconds=60", &ask));
    stream.event_of("aaep:agent.awaiting.confirmation");
    let address = hub.address();
    hub.stop();
    let open = asking.reply();
    assert_eq!((open.status, &open.json()["status"]), (202, &json!("open")));
    stream.rest();
    idle.rest();
    let refused = std::net::TcpStream::connect(address);
    assert!(refused.is_err(), "nobody listens any more");
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    let hub = TestHub::in_folder(folder, |options| options.store = Some(store.clone()));
    let id = hub.subscribe("");
    let mut stream = hub.stream("", &id);
    hub.begin("sess_1");
    let last = stream.event()["event_id"].as_str().expect("an id").to_owned();
    let open = hub.post("/aaep/v1/asks?wait_seconds=0", &question("sess_1"));
    let place = open.header("location").expect("a place").to_owned();
    let token = open.json()["reply_token"].as_str().expect("a token").to_owned();
    let hub = TestHub::in_folder(hub.stop(), |options| options.store = Some(store));
    assert_eq!(hub.get(&format!("{place}?wait_seconds=0")).json()["status"], "open");
    let mut stream = hub.stream(&format!("last-event-id: {last}\r\n"), &id);
    let asked = stream.event_of("aaep:agent.awaiting.confirmation");
    assert_eq!(asked["reply_token"], token);
    assert_eq!(hub.post("/aaep/v1/replies", &reply(&token, &id, "accept")).status, 204);
    assert_eq!(hub.get(&place).json()["outcome"], "accept");
}
