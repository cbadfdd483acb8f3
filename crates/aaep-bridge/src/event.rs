//! Builds the events of an agent. The hub fills in what is left out: ids, times, states and positions.

use serde_json::{Map, Value, json};

/// The longest text that fits into every field for sentences.
const MAX_WORDS_CHARS: usize = 4000;

/// An agent at work: its name, its project and its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentVoice {
    /// The name by which the hub knows the agent.
    pub agent_id: String,
    /// The name that people hear.
    pub agent_name: String,
    /// Where it works, as people say it, such as `work/shop`.
    pub project: String,
    /// The session, in the agent's own form.
    pub session_id: String,
}

impl AgentVoice {
    /// An event of this agent.
    pub(crate) fn event(&self, name: &str, fields: Value) -> Value {
        let mut event = Map::new();
        event.insert("type".to_owned(), format!("aaep:agent.{name}").into());
        event.insert("session_id".to_owned(), self.session_id.as_str().into());
        let producer = json!({ "agent_id": self.agent_id, "agent_name": self.agent_name });
        event.insert("producer".to_owned(), producer);
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        if !self.project.is_empty() {
            let context = json!([aaep::CORE_CONTEXT, aaep::extension::CONTEXT]);
            event.insert("@context".to_owned(), context);
            let extensions = event.entry("extensions").or_insert_with(|| json!({}));
            extensions[aaep::extension::PREFIX]["project"] = self.project.as_str().into();
        }
        event.into()
    }

    /// An event that needs the context of our extension.
    pub(crate) fn extended(&self, name: &str, fields: Value, extension: Value) -> Value {
        let mut event = self.event(name, fields);
        event["@context"] = json!([aaep::CORE_CONTEXT, aaep::extension::CONTEXT]);
        if let Value::Object(extension) = extension {
            for (key, value) in extension {
                event["extensions"][aaep::extension::PREFIX][key] = value;
            }
        }
        event
    }

    pub(crate) fn started(&self, summary: &str) -> Value {
        self.event("session.started", json!({ "summary_normal": shortened(summary) }))
    }

    pub(crate) fn progress(&self, words: &str) -> Value {
        let words = shortened(words);
        let fields = json!({ "summary_normal": words, "progress": { "description": words } });
        self.event("progress.updated", fields)
    }

    /// A whole text of the agent, or a piece of it. `output` names the text in the agent's own form.
    pub(crate) fn said(&self, output: &str, text: &str, is_last: bool) -> Value {
        let fields = json!({ "output_id": output, "chunk": text, "complete": is_last });
        self.event("output.streaming", fields)
    }

    /// The agent waits for the person in a place where we cannot answer. Nobody may miss it.
    pub(crate) fn waits(&self, words: &str) -> Value {
        let fields = json!({
            "to_state": "awaiting_input",
            "summary_normal": shortened(words),
            "urgency": "critical",
        });
        self.event("state.changed", fields)
    }
}

/// The text, cut to what fits, with a sign that it was cut. Never used for what a person consents to.
pub(crate) fn shortened(text: &str) -> String {
    shortened_to(text, MAX_WORDS_CHARS)
}

/// The text, cut to this many characters.
pub(crate) fn shortened_to(text: &str, most: usize) -> String {
    let text = text.trim();
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
    }
}

/// "1 file", "2 files".
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
