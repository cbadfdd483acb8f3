//! Event types and the patterns that filters are made of (§3.2.2, §5.3.1.7).

use std::borrow::Cow;

use crate::form::{WrongForm, string_field};
use crate::object::values;

/// The URI that the prefix `aaep:` stands for.
pub const CORE_TYPES: &str = "https://aaep-protocol.org/types/";

values! {
    /// The twelve core event types of chapter 4, as they are written after `aaep:`.
    closed CoreType {
        /// A session begins.
        SessionStarted = "aaep:agent.session.started",
        /// A session ended well.
        SessionCompleted = "aaep:agent.session.completed",
        /// A session ended in an error.
        SessionErrored = "aaep:agent.session.errored",
        /// A session was ended before it was done.
        SessionCancelled = "aaep:agent.session.cancelled",
        /// The agent went from one state to another.
        StateChanged = "aaep:agent.state.changed",
        /// A long task got further.
        ProgressUpdated = "aaep:agent.progress.updated",
        /// A tool is about to run.
        ToolInvoked = "aaep:agent.tool.invoked",
        /// A tool returned.
        ToolCompleted = "aaep:agent.tool.completed",
        /// A piece of the agent's answer.
        OutputStreaming = "aaep:agent.output.streaming",
        /// The agent is blocked until a person consents.
        AwaitingConfirmation = "aaep:agent.awaiting.confirmation",
        /// The agent is blocked until a person answers.
        AwaitingClarification = "aaep:agent.awaiting.clarification",
        /// The agent asks a person or another agent to take over.
        HandoffRequested = "aaep:agent.handoff.requested",
    }
}

impl CoreType {
    /// The name without its prefix, as schema files are named.
    pub fn local_name(self) -> &'static str {
        self.as_str().strip_prefix("aaep:").unwrap_or_default()
    }

    /// Whether a person must not miss it, whatever was negotiated (§5.5.4).
    pub const fn is_critical(self) -> bool {
        matches!(
            self,
            CoreType::SessionErrored
                | CoreType::AwaitingConfirmation
                | CoreType::AwaitingClarification
                | CoreType::HandoffRequested
        )
    }

    /// Whether it ends a session (§4.1).
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            CoreType::SessionCompleted | CoreType::SessionErrored | CoreType::SessionCancelled
        )
    }
}

/// The type of an event. Both the compact form and the URI are read; the compact form is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EventType {
    /// One of the twelve core types.
    Core(CoreType),
    /// A type of an extension, or of a newer version.
    Other(TypeName),
}

impl EventType {
    /// Parses a compact type or the URI of one.
    pub fn parse(text: &str) -> Result<Self, WrongForm> {
        if let Some(core) = CoreType::known(text) {
            return Ok(EventType::Core(core));
        }
        let name = TypeName::parse(text)?;
        match CoreType::known(&name.to_compact()) {
            Some(core) => Ok(EventType::Core(core)),
            None => Ok(EventType::Other(name)),
        }
    }

    /// The type in its compact form, or the URI of an extension's type.
    pub fn as_str(&self) -> &str {
        match self {
            EventType::Core(core) => core.as_str(),
            EventType::Other(name) => name.as_str(),
        }
    }

    /// The core type, if it is one.
    pub const fn core(&self) -> Option<CoreType> {
        match self {
            EventType::Core(core) => Some(*core),
            EventType::Other(_) => None,
        }
    }
}

impl From<CoreType> for EventType {
    fn from(core: CoreType) -> Self {
        EventType::Core(core)
    }
}

string_field!(EventType, "a type such as aaep:agent.session.started",
    { "pattern": "^[A-Za-z_][A-Za-z0-9_.-]{0,63}:[!-~]+$" });

/// The name of a type that is not one of the twelve core types.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TypeName(Box<str>);

impl TypeName {
    /// Parses `prefix:name` or a URI.
    pub fn parse(text: &str) -> Result<Self, WrongForm> {
        let wrong = WrongForm { name: "TypeName", expected: "prefix:name or a URI" };
        let Some((prefix, local)) = text.split_once(':') else { return Err(wrong) };
        let is_prefix = (1..=64).contains(&prefix.len())
            && prefix.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        let is_local = !local.is_empty() && local.bytes().all(|byte| byte.is_ascii_graphic());
        let is_uri = !local.starts_with("//") || fluent_uri::Uri::parse(text).is_ok();
        if is_prefix && is_local && is_uri { Ok(TypeName(text.into())) } else { Err(wrong) }
    }

    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The prefix of a compact name; none for a URI.
    pub fn prefix(&self) -> Option<&str> {
        let (prefix, local) = self.0.split_once(':')?;
        (!local.starts_with("//")).then_some(prefix)
    }

    /// The name with its core URI replaced by `aaep:`.
    pub(crate) fn to_compact(&self) -> Cow<'_, str> {
        match self.0.strip_prefix(CORE_TYPES) {
            Some(local) => format!("aaep:{local}").into(),
            None => self.as_str().into(),
        }
    }

    /// Whether the name claims to belong to the specification itself.
    pub fn is_in_core_namespace(&self) -> bool {
        self.prefix() == Some("aaep") || self.0.starts_with(CORE_TYPES)
    }
}

/// A pattern of event types: a literal type, or a prefix that ends in `*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TypePattern {
    text: Box<str>,
    /// The text without `*`, in the compact form.
    literal: Box<str>,
    is_prefix: bool,
}

impl TypePattern {
    /// Parses a pattern. `*` is allowed only at the end.
    pub fn parse(text: &str) -> Result<Self, WrongForm> {
        let literal = text.strip_suffix('*').unwrap_or(text);
        if text.is_empty() || literal.contains('*') {
            return Err(WrongForm {
                name: "TypePattern",
                expected: "a type, or the beginning of one and * at the end",
            });
        }
        let compact = match literal.strip_prefix(CORE_TYPES) {
            Some(local) => format!("aaep:{local}").into(),
            None => literal.into(),
        };
        Ok(TypePattern {
            text: text.into(),
            literal: compact,
            is_prefix: literal.len() < text.len(),
        })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern matches the type.
    pub fn matches(&self, event_type: &EventType) -> bool {
        if self.is_prefix {
            event_type.as_str().starts_with(&*self.literal)
        } else {
            event_type.as_str() == &*self.literal
        }
    }
}

string_field!(TypePattern, "a type, or the beginning of one and * at the end",
    { "pattern": "^[^*]*\\*?$" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_type_are_the_same_type() {
        for core in CoreType::ALL {
            let uri = format!("{CORE_TYPES}{}", core.local_name());
            assert_eq!(EventType::parse(core.as_str()), EventType::parse(&uri));
            assert_eq!(EventType::parse(&uri).expect("type").to_string(), core.as_str());
        }
    }

    #[test]
    fn extension_types_are_kept_and_core_ones_cannot_be_invented() {
        let consulted = TypeName::parse("medai:patient.consulted").expect("type");
        assert_eq!(consulted.prefix(), Some("medai"));
        assert!(!consulted.is_in_core_namespace());
        let uri =
            TypeName::parse("https://example.org/medai/agent.patient.consulted").expect("type");
        assert_eq!(uri.prefix(), None);
        assert!(
            TypeName::parse("aaep:agent.purple.flamingo").expect("form").is_in_core_namespace()
        );
        for wrong in ["", "started", ":x", "x:", "1x:y", "x:a b", "http://[", "x:\u{1b}"] {
            assert!(EventType::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_pattern_is_a_literal_or_a_beginning() {
        let matches = |pattern: &str, name: &str| {
            TypePattern::parse(pattern)
                .expect("pattern")
                .matches(&EventType::parse(name).expect("type"))
        };
        assert!(matches("aaep:agent.*", "aaep:agent.tool.invoked"));
        assert!(matches("aaep:agent.tool.*", "aaep:agent.tool.completed"));
        assert!(!matches("aaep:agent.tool.*", "aaep:agent.session.started"));
        assert!(matches("aaep:agent.session.started", "aaep:agent.session.started"));
        assert!(!matches("aaep:agent.session", "aaep:agent.session.started"));
        assert!(matches("https://aaep-protocol.org/types/agent.*", "aaep:agent.tool.invoked"));
        assert!(matches("*", "medai:patient.consulted"));
        assert!(TypePattern::parse("aaep:*.started").is_err());
        assert!(TypePattern::parse("").is_err());
    }
}
