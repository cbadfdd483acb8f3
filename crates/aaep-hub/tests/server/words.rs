//! Words as they are sent (ruling 34): normal forms, summaries and versions over HTTP, and that an event which comes
//! again is still the same one.

use serde_json::{Value, json};

use crate::support::*;

const PUBLISH: &str = "/aaep/v1/publish";

fn chunk(event_id: &str, text: &str, position: u64) -> Value {
    json!({
        "type": "aaep:agent.output.streaming", "session_id": "sess_1", "event_id": event_id,
        "producer": { "agent_id": "builder" }, "chunk": text, "position": position, "complete": false,
    })
}

/// The events of the session as the history has them.
fn history(hub: &TestHub) -> Vec<Value> {
    let who = person(hub);
    let reply = hub.as_someone(&who, "GET", "/aaep/v1/sessions/sess_1/events", "");
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()["events"].as_array().expect("events").clone()
}

#[test]
fn the_same_event_again_is_the_same_in_whatever_form_it_was_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    let mut hub = TestHub::in_folder(folder, |options| options.store = Some(store.clone()));
    hub.begin("sess_1");
    let mut event = progress("sess_1", "evt_1");
    event["summary_normal"] = "Le cafe\u{301} est pre\u{302}t.".into();
    let events = [event, chunk("evt_2", "Cafe\u{301} ", 0), chunk("evt_3", "noir. ", 6)];
    for event in &events {
        assert_eq!(hub.post(PUBLISH, event).status, 200);
    }
    for _ in 0..2 {
        for event in &events {
            let again = hub.post(PUBLISH, event);
            assert_eq!(again.status, 200, "{}", again.body);
            assert!(again.body.contains("\"repeated\":true"), "{}", again.body);
            let mut other = event.clone();
            let field = if event.get("chunk").is_some() { "chunk" } else { "summary_normal" };
            other[field] = "Something else.".into();
            hub.post(PUBLISH, &other).refuses(409, "event_id_used");
        }
        hub.post(PUBLISH, &chunk("evt_3", "noir. ", 5)).refuses(409, "event_id_used");
        hub = TestHub::in_folder(hub.stop(), |options| options.store = Some(store.clone()));
    }
    // The agent continues its own counting, also after the restarts.
    let reply = hub.post(PUBLISH, &chunk("evt_4", "Fin.", 12));
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[test]
fn with_none_the_chunks_arrive_as_they_came_and_the_last_hint_is_a_negotiated_one() {
    let hub = TestHub::new();
    let mut request = subscription_request();
    request["capabilities"]["coalesce_boundaries"] = json!(["none"]);
    let accepted = hub.post("/aaep/v1/subscriptions", &request);
    assert_eq!(accepted.status, 201, "{}", accepted.body);
    let granted = accepted.json();
    assert_eq!(granted["honored_capabilities"]["coalesce_boundaries"], json!(["none"]));
    let id = granted["subscription_id"].as_str().expect("an id").to_owned();
    let mut stream = hub.listening_stream("", &id);
    hub.begin("sess_1");
    let mut position = 0;
    for (number, text) in ["T", "he", " ", "cat"].into_iter().enumerate() {
        let mut piece = chunk(&format!("evt_{number}"), text, position);
        position += text.len() as u64;
        let is_last = number == 3;
        piece["complete"] = is_last.into();
        piece["coalesce_hint"] = if is_last { "completion" } else { "sentence" }.into();
        assert_eq!(hub.post(PUBLISH, &piece).status, 200);
        let heard = stream.event_of("aaep:agent.output.streaming");
        assert_eq!((&heard["chunk"], &heard["complete"]), (&json!(text), &json!(is_last)));
        assert_eq!(heard["event_id"], piece["event_id"], "it is the agent's own event");
        assert_eq!(heard["coalesce_hint"], "none");
    }
}

#[test]
fn an_ask_is_shown_as_it_is_stored_and_consent_to_its_arguments_holds() {
    let hub = TestHub::new();
    let id = hub.subscribe("");
    let mut stream = hub.listening_stream("", &id);
    hub.begin("sess_1");
    let arguments = json!({ "path": "cafe\u{301}" });
    let tool = aaep::ToolName::parse("delete").expect("a name");
    let digest = aaep::extension::action_digest(&tool, &arguments).expect("a digest");
    let own = json!({ "agentvoice": { "tool": "delete", "action_digest": digest.as_str() } });
    let context = json!([aaep::CORE_CONTEXT, aaep::extension::CONTEXT]);
    let mut ask = question("sess_1");
    let fields = ask.as_object_mut().expect("an object");
    fields.remove("summary_normal");
    fields.insert("@context".to_owned(), context.clone());
    fields.insert("action".to_owned(), "Supprimer cafe\u{301}".into());
    fields.insert("extra_context".to_owned(), json!({ "arguments": arguments }));
    fields.insert("extensions".to_owned(), own);
    let open = hub.post("/aaep/v1/asks?wait_seconds=0", &ask);
    assert_eq!(open.status, 202, "{}", open.body);
    let asked = stream.event_of("aaep:agent.awaiting.confirmation");
    assert_eq!(asked["action"], "Supprimer caf\u{e9}");
    assert_eq!(asked["summary_normal"], asked["action"]);
    assert_eq!(asked["aaep_version"], "1.0.0");
    assert_eq!(asked["extra_context"]["arguments"], arguments, "it is compared, not read");
    let stored = history(&hub);
    let is_ask = |it: &&Value| it.to_string().contains("awaiting.confirmation");
    let stored = stored.iter().find(is_ask).expect("the ask");
    assert!(stored.to_string().contains("Supprimer caf\u{e9}"), "{stored}");
    let token = asked["reply_token"].as_str().expect("a token");
    assert_eq!(hub.post("/aaep/v1/replies", &reply(token, &id, "accept")).status, 204);
    let invoked = json!({
        "@context": context, "type": "aaep:agent.tool.invoked", "session_id": "sess_1",
        "producer": { "agent_id": "builder" }, "tool": "delete", "summary_normal": "Deleting.",
        "irreversible": true, "risk_level": "high",
        "extensions": { "agentvoice": { "action_digest": digest.as_str() } },
    });
    let reply = hub.post(PUBLISH, &invoked);
    assert_eq!(reply.status, 200, "{}", reply.body);
}
