//! Writes an event: as it is, or shaped for one audience (§3.6, §5.3.1.2, §11.5.1).
//!
//! A view is written directly from the event, so nothing is copied to choose its text.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::envelope::{Envelope, LocalizationHints, Verbosity};
use crate::event::Event;
use crate::language::LanguageTag;
use crate::object::FieldWriter;
use crate::version::Version;

/// An event shaped for one audience: at most one summary besides the normal one, one language, and
/// a sequence number only if one is set here.
#[derive(Debug, Clone)]
pub struct View<'a> {
    event: &'a Event,
    /// The verbosity that the audience prefers.
    pub verbosity: Verbosity,
    /// The language of the variants to use; `None` for the event's own text.
    pub language: Option<&'a LanguageTag>,
    /// The localization hints to write in place of the event's own.
    pub hints: Option<LocalizationHints>,
    /// The position in the session.
    pub sequence_number: Option<u64>,
    /// The version of AAEP to state; `None` for the one that the event states.
    pub version: Option<&'a Version>,
}

impl<'a> View<'a> {
    /// The event in its own language and with normal verbosity.
    pub fn new(event: &'a Event) -> Self {
        View {
            event,
            verbosity: Verbosity::Normal,
            language: None,
            hints: None,
            sequence_number: None,
            version: None,
        }
    }

    /// The text of a field in the view's language, if there is one.
    fn variant(&self, field: &str) -> Option<&'a str> {
        let language = self.language?;
        let is_it = |it: &&crate::Variant| it.field == field && it.language == *language;
        self.event.variants.iter().find(is_it).map(|it| it.text.as_str())
    }

    /// Whether a field is left out: a summary of another verbosity, or one that does not exist in
    /// the view's language.
    fn leaves_out(&self, field: &str) -> bool {
        let length = match field {
            "summary_terse" => Verbosity::Terse,
            "summary_detailed" => Verbosity::Detailed,
            _ => return false,
        };
        self.verbosity != length || (self.language.is_some() && self.variant(field).is_none())
    }
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_event(self.event, Some(self), serializer)
    }
}

/// Writes an event in the order that §3.6 recommends.
pub(super) fn write_event<S: Serializer>(
    event: &Event,
    view: Option<&View<'_>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    // The pattern names every field, so that none can be forgotten.
    let Envelope {
        context,
        aaep_version,
        event_id,
        session_id,
        sequence_number,
        timestamp,
        producer,
        verbosity,
        urgency,
        localization_hints,
        correlation_id,
        other,
    } = &event.envelope;
    let sequence_number = view.map_or(*sequence_number, |view| view.sequence_number);
    let hints = view.and_then(|view| view.hints.as_ref()).or(localization_hints.as_ref());
    let mut map = serializer.serialize_map(None)?;
    map.field("@context", context)?;
    let version = view.and_then(|view| view.version).or(aaep_version.as_ref());
    optional(&mut map, "aaep_version", version)?;
    map.field("type", event.event_type().as_str())?;
    map.field("event_id", event_id)?;
    map.field("session_id", session_id)?;
    optional(&mut map, "sequence_number", sequence_number.as_ref())?;
    map.field("timestamp", timestamp)?;
    map.field("producer", producer)?;
    let verbosity = view.map_or(verbosity.as_ref(), |view| Some(&view.verbosity));
    optional(&mut map, "verbosity", verbosity)?;
    optional(&mut map, "urgency", urgency.as_ref())?;
    optional(&mut map, "localization_hints", hints)?;
    optional(&mut map, "correlation_id", correlation_id.as_ref())?;
    other.iter().try_for_each(|(key, value)| map.field(key, value))?;
    if let Some(view) = view {
        event.payload.write(&mut ViewWriter { view, map: &mut map })?;
    } else {
        event.payload.write(&mut map)?;
        event.variants.iter().try_for_each(|it| map.field(it.key(), &it.text))?;
    }
    optional(&mut map, "extensions", event.extensions.as_ref())?;
    map.end()
}

fn optional<M: SerializeMap>(
    map: &mut M,
    key: &str,
    value: Option<&impl Serialize>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.field(key, value))
}

/// Writes the fields that a view has, in the language of the view.
struct ViewWriter<'v, 'm, M> {
    view: &'v View<'v>,
    map: &'m mut M,
}

impl<M: SerializeMap> FieldWriter for ViewWriter<'_, '_, M> {
    type Error = M::Error;

    fn field<V: Serialize + ?Sized>(&mut self, name: &str, value: &V) -> Result<(), M::Error> {
        if self.view.leaves_out(name) {
            return Ok(());
        }
        match self.view.variant(name) {
            Some(text) => self.map.serialize_entry(name, text),
            None => self.map.serialize_entry(name, value),
        }
    }
}
