//! Converts the ids that agents bring along, such as UUIDs, to the form of the specification.
//!
//! An id in another form is replaced by a stand-in of the right form. The same id always gets the same
//! stand-in, so that a retry or the end of a tool call finds what it belongs to, and different ids get
//! different ones. Nothing has to be remembered for this, so it also holds after a restart. Ids that are unique
//! in the whole hub are derived from the principal too; ids of tool calls and outputs belong to their session.

use aaep::extension::{MAX_OWN_ID_CHARS, Original};
use aaep::{CoreType, EventId, Object, OutputId, ReplyToken, SessionId, ToolCallId};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// How many hexadecimal digits a stand-in has: 160 bits, so that no two ids collide.
const DIGITS: usize = 40;

/// A field that contains an id.
struct IdField {
    name: &'static str,
    prefix: &'static str,
    is_form: fn(&str) -> bool,
}

const EVENT: IdField = IdField { name: "event_id", prefix: "evt_", is_form: EventId::is_form_of };
const SESSION: IdField =
    IdField { name: "session_id", prefix: "sess_", is_form: SessionId::is_form_of };
const OUTPUT: IdField =
    IdField { name: "output_id", prefix: "out_", is_form: OutputId::is_form_of };
const CALL: IdField =
    IdField { name: "tool_call_id", prefix: "call_", is_form: ToolCallId::is_form_of };
const TOKEN: IdField =
    IdField { name: "reply_token", prefix: "rpl_", is_form: ReplyToken::is_form_of };

/// The id field of this event type, apart from those that every event has.
fn own_field(event: &Object) -> Option<&'static IdField> {
    match CoreType::known(event.get("type")?.as_str()?)? {
        CoreType::OutputStreaming => Some(&OUTPUT),
        CoreType::ToolInvoked | CoreType::ToolCompleted => Some(&CALL),
        CoreType::AwaitingConfirmation | CoreType::AwaitingClarification => Some(&TOKEN),
        _ => None,
    }
}

impl IdField {
    /// The id in this field, if it needs a stand-in.
    fn own_id<'e>(&self, event: &'e Object) -> Option<&'e str> {
        let text = event.get(self.name)?.as_str()?;
        (!(self.is_form)(text) && may_have_stand_in(text)).then_some(text)
    }

    /// Replaces the id in this field with a stand-in. Returns the original id.
    fn replace(&self, event: &mut Object, owners: &[&str]) -> Option<String> {
        let own = self.own_id(event)?.to_owned();
        event.insert(self.name.to_owned(), stand_in(self.prefix, owners, &own).into());
        Some(own)
    }
}

/// Whether an event has ids that need a stand-in.
pub(crate) fn has_own_ids(event: &Object) -> bool {
    [&EVENT, &SESSION].into_iter().chain(own_field(event)).any(|it| it.own_id(event).is_some())
}

/// Replaces ids that need a stand-in. Returns the original ids.
pub(crate) fn give_form(principal_id: &str, event: &mut Object) -> Option<Box<Original>> {
    if !has_own_ids(event) {
        return None;
    }
    let mut original = Box::new(Original::new());
    // An agent's event ids may be unique only within a session.
    let session = event.get("session_id").and_then(Value::as_str).unwrap_or_default().to_owned();
    original.event_id = EVENT.replace(event, &[principal_id, &session]);
    original.session_id = SESSION.replace(event, &[principal_id]);
    if let Some(field) = own_field(event) {
        let whose = [principal_id];
        let is_token = field.name == TOKEN.name;
        let own = field.replace(event, if is_token { &whose } else { &[] });
        match field.name {
            "output_id" => original.output_id = own,
            "tool_call_id" => original.tool_call_id = own,
            _ => original.reply_token = own,
        }
    }
    Some(original)
}

/// The reply token for the name that an agent uses: the name itself if it has the right form, otherwise its
/// stand-in.
pub(crate) fn token(principal_id: &str, text: &str) -> Option<ReplyToken> {
    if !ReplyToken::is_form_of(text) && may_have_stand_in(text) {
        return ReplyToken::parse(&stand_in(TOKEN.prefix, &[principal_id], text)).ok();
    }
    ReplyToken::parse(text).ok()
}

/// Whether an id can get a stand-in: it is neither empty nor too long.
fn may_have_stand_in(text: &str) -> bool {
    !text.is_empty() && text.chars().count() as u64 <= MAX_OWN_ID_CHARS
}

/// Derives the stand-in for an id. Each part is preceded by its length, so that two different lists never
/// produce the same bytes.
fn stand_in(prefix: &str, owners: &[&str], own: &str) -> String {
    let mut hasher = Sha256::new();
    for part in [prefix].iter().chain(owners).chain(&[own]) {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut id = prefix.to_owned();
    for byte in hasher.finalize().iter().take(DIGITS / 2) {
        for digit in [byte >> 4, byte & 15] {
            id.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    id
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(principal: &str, event: &Value) -> (Object, Option<Box<Original>>) {
        let mut event = event.as_object().cloned().expect("an object");
        let original = give_form(principal, &mut event);
        (event, original)
    }

    #[test]
    fn ids_of_the_right_form_are_left_alone() {
        let event = json!({
            "type": "aaep:agent.tool.invoked", "event_id": "evt_1", "session_id": "sess_a",
            "tool_call_id": "call_7",
        });
        assert_eq!(given("local", &event), (event.as_object().cloned().expect("object"), None));
    }

    #[test]
    fn own_ids_stand_for_the_same_every_time_and_are_kept() {
        let event = json!({
            "type": "aaep:agent.tool.invoked", "event_id": "7", "tool_call_id": "toolu_01A09q-x",
            "session_id": "0c6f3c1e-4d0b-4a52-9f3e-1b9b2a7d6c55",
        });
        let (one, original) = given("local", &event);
        let original = original.expect("the ids as they came");
        assert_eq!(original.event_id.as_deref(), Some("7"));
        assert_eq!(original.tool_call_id.as_deref(), Some("toolu_01A09q-x"));
        assert_eq!(original.session_id.as_deref(), event["session_id"].as_str());
        assert!(EventId::is_form_of(one["event_id"].as_str().expect("text")));
        assert!(SessionId::is_form_of(one["session_id"].as_str().expect("text")));
        assert!(ToolCallId::is_form_of(one["tool_call_id"].as_str().expect("text")));
        assert_eq!(given("local", &event).0, one);
        let mut completed = event.clone();
        completed["type"] = json!("aaep:agent.tool.completed");
        completed["event_id"] = json!("8");
        let (completed, _) = given("local", &completed);
        assert_eq!(completed["tool_call_id"], one["tool_call_id"]);
        assert_ne!(completed["event_id"], one["event_id"]);
    }

    #[test]
    fn ids_of_different_principals_and_sessions_never_meet() {
        let event = |session: &str| json!({ "type": "x", "event_id": "1", "session_id": session });
        let ids: std::collections::BTreeSet<String> =
            [("local", "a"), ("local", "b"), ("token:1", "a"), ("locala", ""), ("loca", "la")]
                .into_iter()
                .map(|(who, session)| given(who, &event(session)).0["event_id"].to_string())
                .collect();
        assert_eq!(ids.len(), 5);
    }

    #[test]
    fn ids_of_a_wrong_type_or_length_are_left_to_be_refused() {
        for id in [json!(7), json!(null), json!(""), json!("x".repeat(257))] {
            let event = json!({ "type": "x", "event_id": id });
            assert_eq!(given("local", &event).1, None, "{event}");
        }
    }

    #[test]
    fn a_token_is_found_by_the_name_that_its_agent_gave_it() {
        let event = json!({ "type": "aaep:agent.awaiting.confirmation", "reply_token": "ask-1" });
        let (event, _) = given("local", &event);
        let token = token("local", "ask-1").expect("a token");
        assert_eq!(event["reply_token"], token.as_str());
        assert_eq!(super::token("local", "rpl_1").map(|it| it.to_string()), Some("rpl_1".into()));
        assert_ne!(super::token("other", "ask-1"), Some(token));
    }
}
