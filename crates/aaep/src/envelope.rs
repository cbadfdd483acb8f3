//! The envelope: the fields that every event has, whatever its type (chapter 3).

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::context::Context;
use crate::form::{EventId, Prefix, Script, SessionId, Uri};
use crate::json::{JsonKind, JsonValue};
use crate::language::LanguageTag;
use crate::object::{object, values};
use crate::read::{ANY, FieldType, MessageReader, Object, PathStep, ValueBounds, between};
use crate::time::Timestamp;
use crate::version::Version;
use crate::violation::{Code, quoted};

values! {
    /// How much detail words carry (§2.2.8).
    open Verbosity {
        /// A few words.
        Terse = "terse",
        /// A sentence or two.
        Normal = "normal",
        /// Everything, with reasons.
        Detailed = "detailed",
    }
}

values! {
    /// How soon a person should hear of an event (§2.2.9).
    open Urgency {
        /// When there is nothing else to say.
        Background = "background",
        /// In turn.
        Normal = "normal",
        /// At once, past every filter and rate.
        Critical = "critical",
    }
}

values! {
    /// In which direction text is written (§11.4.1).
    open TextDirection {
        /// Left to right.
        Ltr = "ltr",
        /// Right to left.
        Rtl = "rtl",
        /// As the characters themselves say.
        Auto = "auto",
    }
}

object! {
    /// Who emits events (§3.2.6).
    Producer in "3.2.6", others Refused {
        /// The stable name of the agent, the same in all its versions.
        required agent_id: String = between(1, u64::MAX), in "3.2.6.1";
        /// The version of the agent.
        optional agent_version: String = between(1, u64::MAX), in "3.2.6.2";
        /// The agent's name as it is told to people.
        optional agent_name: String = between(1, u64::MAX), in "3.2.6.3";
        /// The model behind the agent.
        optional model: String = between(1, u64::MAX), in "3.2.6.4";
        /// Where the agent's manifest can be fetched.
        optional manifest_uri: Uri, in "3.2.6.5";
    }
}

object! {
    /// In which language and script the words of an event are (§11.1.1).
    LocalizationHints in "11.1.1", others Refused {
        /// The language of the words in the event.
        optional primary_language: LanguageTag, in "11.1.2";
        /// The direction of the text; left to right if absent.
        optional text_direction: TextDirection, in "11.4.1";
        /// Other languages in which the producer could say the same.
        optional available_languages: Vec<LanguageTag> = ANY.items(0, 32).unique(), in "11.1.2";
        /// The languages to try in turn for someone who cannot use the primary one.
        optional fallback_chain: Vec<LanguageTag> = ANY.items(0, 16), in "11.1.2";
        /// The script of the text, where the language leaves it open.
        optional script: Script;
        /// The calendar for dates, such as gregorian or islamic.
        optional calendar: String;
    }
}

object! {
    /// The fields that all events have in common.
    Envelope in "3.2", others Refused, check check_version {
        /// The vocabularies of the event: the AAEP core context, alone or first of an array.
        required context as "@context": Context, in "3.2.1";
        /// The version of AAEP that the producer follows.
        optional aaep_version: Version, in "3.4.4";
        /// The unique id of the event.
        required event_id: EventId, in "3.2.3";
        /// The id of the session that the event belongs to.
        required session_id: SessionId, in "3.2.4";
        /// The position of the event in its session, from 0 and without gaps; on all of a session's events or on none.
        optional sequence_number: u64, in "3.4.1";
        /// When the event was emitted: RFC 3339 with 3 or 6 digits of a second and an offset.
        required timestamp: Timestamp, in "3.2.5";
        /// Who emits the event.
        required producer: Producer, in "3.2.6";
        /// How detailed the words of the event are; normal if absent.
        optional verbosity: Verbosity, in "3.3.1";
        /// How soon a person should hear of it; normal if absent.
        optional urgency: Urgency, in "3.3.2";
        /// The language of the words in the event.
        optional localization_hints: LocalizationHints, in "3.3.3";
        /// A trace id that ties the event to other systems.
        optional correlation_id: String, in "3.4.2";
    }
}

impl Envelope {
    /// An envelope with only the required fields.
    pub fn new(
        event_id: EventId,
        session_id: SessionId,
        timestamp: Timestamp,
        producer: Producer,
    ) -> Self {
        Envelope {
            context: Context::default(),
            aaep_version: None,
            event_id,
            session_id,
            sequence_number: None,
            timestamp,
            producer,
            verbosity: None,
            urgency: None,
            localization_hints: None,
            correlation_id: None,
            other: Object::new(),
        }
    }
}

impl Producer {
    /// A producer with nothing but its id.
    pub fn new(agent_id: impl Into<String>) -> Self {
        Producer {
            agent_id: agent_id.into(),
            agent_version: None,
            agent_name: None,
            model: None,
            manifest_uri: None,
            other: Object::new(),
        }
    }
}

impl LocalizationHints {
    /// Hints without any field set.
    pub fn new() -> Self {
        LocalizationHints {
            primary_language: None,
            text_direction: None,
            available_languages: None,
            fallback_chain: None,
            script: None,
            calendar: None,
            other: Object::new(),
        }
    }
}

impl Default for LocalizationHints {
    fn default() -> Self {
        LocalizationHints::new()
    }
}

type EnvelopeParts = <Envelope as crate::object::DeclaredObject>::Parts;

fn check_version(parts: &EnvelopeParts, reader: &mut MessageReader<'_>) {
    if let Some(version) = parts.aaep_version.as_ref().filter(|version| !version.is_published()) {
        let problem = format!("AAEP {} was never published.", quoted(version.as_str()));
        reader.tolerable_at(Code::UnpublishedVersion, Some("aaep_version"), problem);
    }
}

/// The data of extensions, each an object under its prefix (§3.4.3).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extensions(pub BTreeMap<Prefix, Object>);

impl serde::Serialize for Extensions {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(prefix, data)| (prefix.as_str(), data)))
    }
}

impl FieldType for Extensions {
    fn read<'t>(
        value: JsonValue<'t, '_>,
        bounds: &ValueBounds,
        reader: &mut MessageReader<'t>,
    ) -> Option<Self> {
        if value.kind() != JsonKind::Object {
            return reader.wrong_type("an object", value.kind());
        }
        let mut extensions = BTreeMap::new();
        let mut complete = true;
        for (key, data) in value.fields() {
            let entry = reader.within(PathStep::Key(key), None, |reader| {
                let Ok(prefix) = Prefix::parse(key) else {
                    let problem = format!("{} cannot be the prefix of an extension.", quoted(key));
                    reader.error(Code::ReservedPrefix, problem);
                    return None;
                };
                Some((prefix, Object::read(data, bounds, reader)?))
            });
            complete &= entry.is_some();
            extensions.extend(entry);
        }
        complete.then_some(Extensions(extensions))
    }

    fn schema(bounds: &ValueBounds) -> Json {
        json!({
            "type": "object",
            "propertyNames": Prefix::schema(bounds),
            "additionalProperties": { "type": "object" },
        })
    }
}
