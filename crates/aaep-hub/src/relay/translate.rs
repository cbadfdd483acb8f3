//! Turns an event of a child into an event of an agent of this hub.

use aaep::Object;
use aaep::extension::{AGENT_FIELDS, PREFIX};
use serde_json::Value;

/// A field that agents may set and children may not: it would give people more time than the child waits.
const MORE_TIME: &str = "max_timeout_seconds";

/// Turns an event of a child into one of this hub. The hub has its own tokens, sequence numbers and notes
/// about delivery; everything else stays as it is.
pub(super) fn translate(event: &mut Object, agent_id: Option<&str>) {
    event.remove("reply_token");
    event.remove("sequence_number");
    if let Some(agent_id) = agent_id
        && let Some(Value::Object(producer)) = event.get_mut("producer")
    {
        producer.insert("agent_id".to_owned(), agent_id.into());
    }
    let Some(Value::Object(extensions)) = event.get_mut("extensions") else { return };
    if let Some(Value::Object(own)) = extensions.get_mut(PREFIX) {
        own.retain(|key, _| AGENT_FIELDS.contains(&key.as_str()) && key != MORE_TIME);
        if own.is_empty() {
            extensions.remove(PREFIX);
        }
    }
    if extensions.is_empty() {
        event.remove("extensions");
    }
}

/// The start event of a session whose first received event is this one.
pub(super) fn beginning(event: &Object) -> Object {
    let kept = ["@context", "session_id", "timestamp", "producer"];
    let kept = kept.iter().filter_map(|&name| Some((name.to_owned(), event.get(name)?.clone())));
    let mut beginning: Object = kept.collect();
    beginning.insert("type".to_owned(), "aaep:agent.session.started".into());
    let words = "A session is under way that began earlier.";
    beginning.insert("summary_normal".to_owned(), words.into());
    beginning
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn translated(event: &Value, agent_id: Option<&str>) -> Value {
        let mut event = event.as_object().cloned().expect("an object");
        translate(&mut event, agent_id);
        event.into()
    }

    #[test]
    fn the_token_and_the_numbers_are_those_of_the_hub() {
        let event = json!({ "event_id": "evt_1", "reply_token": "rpl_1", "sequence_number": 4 });
        assert_eq!(translated(&event, None), json!({ "event_id": "evt_1" }));
    }

    #[test]
    fn only_what_an_agent_may_say_is_said_and_nothing_gives_more_time() {
        let event = json!({ "extensions": {
            "other": { "a": 1 },
            "agentvoice": {
                "tool": "delete", "max_timeout_seconds": 3600,
                "resolution": { "reply_token": "rpl_1", "outcome": "accept", "decided_by": "reply" },
            },
        }});
        let expected =
            json!({ "extensions": { "other": { "a": 1 }, "agentvoice": { "tool": "delete" } } });
        assert_eq!(translated(&event, None), expected);
        let event = json!({ "extensions": { "agentvoice": { "gap": {} } } });
        assert_eq!(translated(&event, None), json!({}));
    }

    #[test]
    fn a_child_has_the_name_that_it_is_given() {
        let event = json!({ "producer": { "agent_id": "agent", "agent_version": "2" } });
        assert_eq!(translated(&event, None), event);
        let expected = json!({ "producer": { "agent_id": "photos", "agent_version": "2" } });
        assert_eq!(translated(&event, Some("photos")), expected);
    }
}
