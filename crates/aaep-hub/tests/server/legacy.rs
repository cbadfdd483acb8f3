//! The legacy paths (ruling 27).

use serde_json::json;

use crate::support::*;

#[test]
fn a_legacy_stream_has_no_names_and_no_handshake() {
    let hub = TestHub::new();
    let mut stream = hub.open_stream("", "/events");
    hub.begin("sess_1");
    let text = stream.until("\n\n");
    let text = if text.contains("data: ") { text } else { stream.until("data: ") };
    assert!(!text.contains("event:"), "{text}");
    assert!(text.contains("id: evt_"), "{text}");
}

#[test]
fn everything_well_formed_is_taken() {
    let hub = TestHub::new();
    let mut stream = hub.open_stream("", "/events");
    assert_eq!(
        hub.post("/messages", &json!({ "kind": "user_input", "text": "Hello" })).status,
        202
    );
    let unknown = reply("rpl_00000000000000000000000000000000", "sub_neverIssued", "accept");
    for _ in 0..2 {
        assert_eq!(hub.post("/messages", &unknown).status, 202);
    }
    assert_eq!(hub.post("/messages", &subscription_request()).status, 202);
    stream.event_of("subscription.accepted");
    hub.as_someone("", "POST", "/messages", "{").refuses(400, "not_valid");
    hub.post("/messages", &json!({ "kind": "something" })).refuses(400, "not_valid");
    let mut client = hub.connect();
    client.send("POST /messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n");
    client.send_bytes(&[0xff, 0xfe]);
    client.reply().refuses(400, "not_utf8");
}

#[test]
fn a_prompt_reaches_an_agent_and_its_answer_the_stream() {
    let hub = TestHub::new();
    let mut stream = hub.open_stream("", "/events");
    let accepts = json!({ "accepts": ["prompt"] }).to_string();
    hub.as_someone("", "PUT", "/aaep/v1/agents/builder", &accepts);
    assert_eq!(
        hub.post("/messages", &json!({ "kind": "user_input", "text": "Hello" })).status,
        202
    );
    let accepted = stream.event_of("input.accepted");
    let inbox = hub.get("/aaep/v1/agents/builder/inbox?after=0").json();
    assert_eq!(inbox["instructions"][0]["session_id"], accepted["session_id"]);
    hub.begin(accepted["session_id"].as_str().expect("a session"));
    assert_eq!(stream.event()["type"], "aaep:agent.session.started");
}
