//! The options of a subscriber, as JSON.

use aaep::{Capabilities, Message, Mode};
use aaep_subscriber::Wishes;
use serde_json::{Map, Value, json};

const NEXT: &str = "Write options like {\"subscriber_id\": \"my-reader\"}.";

/// Reads the options of a subscriber. Nothing is ignored: an unknown name is an error.
pub(crate) fn wishes(options: Option<&str>) -> Result<Wishes, String> {
    let options = match options {
        None => Map::new(),
        Some(text) => match serde_json::from_str(text) {
            Ok(Value::Object(options)) => options,
            _ => return Err(format!("The options are not a JSON object. {NEXT}")),
        },
    };
    let mut wishes = Wishes::new("aaep-c");
    for (name, value) in options {
        match (name.as_str(), value) {
            ("subscriber_id", Value::String(id)) => wishes.subscriber_id = id,
            ("subscriber_name", Value::String(name)) => wishes.subscriber_name = Some(name),
            ("subscriber_version", Value::String(it)) => wishes.subscriber_version = Some(it),
            ("bearer", Value::String(token)) => wishes.bearer = Some(token),
            ("pins", Value::String(path)) => wishes.pins = Some(path.into()),
            ("without_handshake", Value::Bool(it)) => wishes.without_handshake = it,
            ("insecure_allow_plain_http", Value::Bool(it)) => {
                wishes.insecure_allow_plain_http = it;
            }
            ("capabilities", value @ Value::Object(_)) => {
                let given = capabilities(&value)?;
                wishes.capabilities = wishes.capabilities.overlaid_with(&given);
            }
            (name, _) => {
                let name = aaep::printable(name);
                return Err(format!("The option {name} is not known or has a wrong value. {NEXT}"));
            }
        }
    }
    Ok(wishes)
}

/// Reads capabilities as a strict producer would (§5.3).
fn capabilities(value: &Value) -> Result<Capabilities, String> {
    let request = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "reader",
        "capabilities": value,
    });
    match aaep::read(request.to_string().as_bytes(), Mode::Strict).into_result() {
        Ok(Message::SubscriptionRequest(request)) => Ok(request.capabilities),
        Ok(_) => Err(format!("The capabilities are not valid. {NEXT}")),
        Err(wrong) => {
            let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            Err(format!("The capabilities are not valid. {}", wrong.join(" ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_say_who_listens_and_what_it_wants() {
        let text = r#"{"subscriber_id":"lamp","subscriber_name":"Lamp","bearer":"secret",
            "capabilities":{"max_events_per_second":3,"languages":["yo"]}}"#;
        let wishes = wishes(Some(text)).expect("wishes");
        assert_eq!((&*wishes.subscriber_id, wishes.bearer.as_deref()), ("lamp", Some("secret")));
        assert_eq!(wishes.capabilities.max_events_per_second, Some(3));
        assert_eq!(wishes.capabilities.supports_confirmation_reply, Some(true), "unless said");
        assert!(!format!("{wishes:?}").contains("secret"));
    }

    #[test]
    fn nothing_is_passed_over() {
        for text in [
            "",
            "[]",
            "{\"subscriber\":\"lamp\"}",
            "{\"bearer\":7}",
            "{\"capabilities\":{\"max_events_per_second\":0}}",
            "{\"capabilities\":{\"languges\":[\"en\"]}}",
        ] {
            let error = wishes(Some(text)).expect_err(text);
            assert!(error.contains(". "), "with more than one sentence: {error}");
        }
        assert_eq!(wishes(None).expect("wishes").subscriber_id, "aaep-c");
    }
}
