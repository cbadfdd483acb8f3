//! Questions of the bridges that stand between two programs: they are put while both programs go on.

use serde_json::{Value, json};

/// The number of a question, by which its answer comes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProxyAskNumber(u64);

impl ProxyAskNumber {
    /// Counts on, and returns the new number.
    pub(crate) fn count_on(&mut self) -> Self {
        self.0 += 1;
        *self
    }
}

/// A question for the person. Its event has no `event_id`, `reply_token` and times yet.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyAsk {
    /// Its number, for the answer.
    pub number: ProxyAskNumber,
    /// The event.
    pub event: Value,
    /// Whether it asks for consent, rather than for a choice.
    pub is_confirmation: bool,
}

/// The event with which a session begins whose beginning the hub does not know.
pub fn opening_of(event: &Value) -> Value {
    let name = event["producer"]["agent_name"].as_str().unwrap_or("An agent");
    let mut opening = json!({
        "type": "aaep:agent.session.started",
        "session_id": event["session_id"],
        "producer": event["producer"],
        "summary_normal": format!("{name} is at work."),
    });
    let project = &event["extensions"][aaep::extension::PREFIX]["project"];
    if project.is_string() {
        opening["@context"] = json!([aaep::CORE_CONTEXT, aaep::extension::CONTEXT]);
        opening["extensions"] = json!({ aaep::extension::PREFIX: { "project": project } });
    }
    opening
}

/// The name under which a hub can know an agent, from the name that it gives itself.
pub(crate) fn agent_id(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).find(|it| !it.is_empty()).unwrap_or_default();
    let plain = |it: char| {
        let it = it.to_ascii_lowercase();
        if it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | '-') { it } else { '-' }
    };
    let id: String = last.chars().take(80).map(plain).collect();
    let id = id.trim_matches(['-', '.']);
    if id.is_empty() { "agent".to_owned() } else { id.to_owned() }
}
