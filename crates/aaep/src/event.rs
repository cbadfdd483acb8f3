//! One event: envelope, payload, text in other languages, extension data (chapters 3 and 4).
//!
//! The twelve payloads are declared in the files below, one per family of chapter 4. This file puts
//! them together and holds the rules that concern an event as a whole.

use serde_json::Value as Json;

use crate::envelope::{Envelope, Extensions, LocalizationHints, Urgency};
use crate::event_type::{CoreType, EventType, TypeName};
use crate::extension;
use crate::form::Prefix;
use crate::json::JsonValue;
use crate::language::LanguageTag;
use crate::object::{DeclaredObject, FieldWriter, is_reserved, unknown_field};
use crate::read::{ANY, MessageReader, Object, PathStep, between};
use crate::violation::{Code, quoted};

pub mod action;
pub mod human;
pub mod lifecycle;
pub mod reasoning;
mod stakes;
mod view;
mod words;

use action::{OutputStreaming, ToolCompleted, ToolInvoked};
use human::{AwaitingClarification, AwaitingConfirmation, HandoffRequested};
use lifecycle::{SessionCancelled, SessionCompleted, SessionErrored, SessionStarted};
use reasoning::{ProgressUpdated, StateChanged};

pub use stakes::{ActionStakes, StatedRisk, StatedUndo};
pub use view::View;

/// The maximum length of a short text, in characters.
pub(crate) const SHORT: u64 = 4096;
/// The maximum length of a long text, in characters. This is also the limit of §3.7 for any string.
pub(crate) const LONG: u64 = 16384;
pub(crate) const DAY_S: u64 = 86_400;
pub(crate) const DAY_MS: u64 = 86_400_000;

/// The most fields that an event may have, including extension prefixes (§3.7).
const MAX_FIELDS: usize = 32;

/// Declares a payload: an object, and what its schema requires beyond its fields.
macro_rules! payload {
    (
        $(#[doc = $about:literal])+
        $name:ident in $section:literal $(, check $check:path)? $(, also $also:path)? { $($fields:tt)* }
    ) => {
        $crate::object::object! {
            $(#[doc = $about])+
            $name in $section, others Refused $(, check $check)? { $($fields)* }
        }

        impl $crate::event::CorePayload for $name {
            const CORE: $crate::event_type::CoreType = $crate::event_type::CoreType::$name;
            const ABOUT: &'static str = concat!($($about, "\n"),+);

            fn schema_conditions() -> Vec<serde_json::Value> {
                vec![$($also())?]
            }
        }
    };
}
use payload;

/// What the payload of a core event has besides its fields.
pub(crate) trait CorePayload: DeclaredObject {
    const CORE: CoreType;
    /// What the event says, for the schema.
    const ABOUT: &'static str;

    /// Conditions that the schema states besides the fields.
    fn schema_conditions() -> Vec<Json>;
}

/// One event of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The fields that every event has.
    pub envelope: Envelope,
    /// The fields of this type of event.
    pub payload: Payload,
    /// Text of the payload in other languages.
    pub variants: Vec<Variant>,
    /// Data of extensions, each under its prefix.
    pub extensions: Option<Extensions>,
}

/// The text of a field in another language, written as `summary_normal_yo` (§11.5.1).
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// The field to which this is a variant.
    pub field: &'static str,
    /// The language of the text.
    pub language: LanguageTag,
    /// The text.
    pub text: String,
    /// The name under which it was received.
    key: Box<str>,
}

impl Variant {
    /// The text of a field in another language.
    pub fn new(field: &'static str, language: LanguageTag, text: impl Into<String>) -> Self {
        let key = format!("{field}_{}", language.as_str().replace('-', "_")).into();
        Variant { field, language, text: text.into(), key }
    }

    /// The name under which it is written.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Reads `key` as a variant of one of these fields.
    fn find(
        key: &str,
        words: &'static [(&'static str, u64)],
    ) -> Option<(&'static str, u64, LanguageTag)> {
        words.iter().find_map(|&(field, max)| {
            let suffix = key.strip_prefix(field)?.strip_prefix('_')?;
            let language = LanguageTag::parse(&suffix.replace('_', "-")).ok()?;
            Some((field, max, language))
        })
    }
}

macro_rules! payloads {
    ($($core:ident,)+) => {
        /// The content of an event, by type.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Payload {
            $(
                #[doc = concat!("See [`", stringify!($core), "`].")]
                $core($core),
            )+
            /// An event of an extension, or of a newer version of the specification.
            Extension(ExtensionPayload),
        }

        $(
            impl From<$core> for Payload {
                fn from(payload: $core) -> Self {
                    Payload::$core(payload)
                }
            }
        )+

        impl Payload {
            /// The type of event that has this payload.
            pub fn event_type(&self) -> EventType {
                match self {
                    $( Payload::$core(_) => EventType::Core(CoreType::$core), )+
                    Payload::Extension(payload) => EventType::Other(payload.type_name.clone()),
                }
            }

            fn each_words(&mut self, visit: &mut dyn FnMut(&mut String)) {
                match self {
                    $( Payload::$core(payload) => payload.each_words(visit), )+
                    Payload::Extension(payload) => {
                        let summaries =
                            payload.fields.iter_mut().filter(|(key, _)| key.starts_with("summary_"));
                        for (_, value) in summaries {
                            if let Json::String(text) = value {
                                visit(text);
                            }
                        }
                    }
                }
            }

            fn write<W: FieldWriter>(&self, writer: &mut W) -> Result<(), W::Error> {
                match self {
                    $( Payload::$core(payload) => payload.write(writer), )+
                    Payload::Extension(payload) => {
                        payload.fields.iter().try_for_each(|(key, value)| writer.field(key, value))
                    }
                }
            }
        }

        fn read_core<'t>(core: CoreType, value: JsonValue<'t, '_>, reader: &mut MessageReader<'t>) -> Option<Event> {
            match core {
                $( CoreType::$core => read_event::<$core>(value, reader), )+
            }
        }

        /// Calls `visit` for the payload of each core type.
        pub(crate) fn each_payload(mut visit: impl PayloadVisitor) {
            $( visit.visit::<$core>(); )+
        }
    };
}

payloads! {
    SessionStarted, SessionCompleted, SessionErrored, SessionCancelled,
    StateChanged, ProgressUpdated,
    ToolInvoked, ToolCompleted, OutputStreaming,
    AwaitingConfirmation, AwaitingClarification, HandoffRequested,
}

/// An operation on the type of every payload.
pub(crate) trait PayloadVisitor {
    fn visit<P: CorePayload>(&mut self);
}

/// An event whose type is not one of the twelve. Its content is kept as received.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtensionPayload {
    /// The type.
    pub type_name: TypeName,
    /// The fields besides the envelope.
    pub fields: Object,
}

impl Event {
    /// An event with only an envelope and a payload.
    pub fn new(envelope: Envelope, payload: impl Into<Payload>) -> Self {
        Event { envelope, payload: payload.into(), variants: Vec::new(), extensions: None }
    }

    /// The type of the event.
    pub fn event_type(&self) -> EventType {
        self.payload.event_type()
    }

    /// The languages of the variants, each once.
    pub fn variant_languages(&self) -> Vec<&LanguageTag> {
        let mut languages: Vec<&LanguageTag> = Vec::new();
        for variant in &self.variants {
            if !languages.contains(&&variant.language) {
                languages.push(&variant.language);
            }
        }
        languages
    }

    /// Whether a person must not miss the event: because of its type, or because the producer says
    /// so.
    pub fn is_critical(&self) -> bool {
        self.envelope.urgency == Some(Urgency::Critical)
            || self.event_type().core().is_some_and(CoreType::is_critical)
    }

    /// Reads an event of any type.
    pub(crate) fn read<'t>(
        event_type: EventType,
        value: JsonValue<'t, '_>,
        reader: &mut MessageReader<'t>,
    ) -> Option<Event> {
        match event_type {
            EventType::Core(core) => read_core(core, value, reader),
            EventType::Other(type_name) => read_extension(type_name, value, reader),
        }
    }
}

impl serde::Serialize for Event {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        view::write_event(self, None, serializer)
    }
}

/// The parts of an event that do not depend on its type.
#[derive(Default)]
struct CommonParts {
    envelope: <Envelope as DeclaredObject>::Parts,
    envelope_other: Object,
    extensions: Option<Extensions>,
}

impl CommonParts {
    /// Reads a field that any event may have, and returns whether it is one.
    fn take<'t>(
        &mut self,
        key: &'t str,
        value: JsonValue<'t, '_>,
        reader: &mut MessageReader<'t>,
    ) -> bool {
        match key {
            "type" => true,
            "extensions" => {
                self.extensions = reader.field((key, Some("3.4.3")), value, &ANY, false);
                if self.extensions.is_none() {
                    self.envelope_other.insert(key.to_owned(), value.to_json());
                }
                true
            }
            _ => reader.defined_in(Envelope::SECTION, |reader| {
                Envelope::take(&mut self.envelope, key, value, &mut self.envelope_other, reader)
            }),
        }
    }

    /// Checks the rules that hold for every event, and returns its envelope and extension data.
    fn finish<'t>(
        self,
        event_type: &EventType,
        value: JsonValue<'t, '_>,
        reader: &mut MessageReader<'t>,
    ) -> Option<(Envelope, Option<Extensions>)> {
        self.check_urgency(event_type, reader);
        self.check_prefixes(event_type, reader);
        self.check_own_extension(value, reader);
        self.check_fields(value, reader);
        let envelope = reader.defined_in(Envelope::SECTION, |reader| {
            Envelope::finish(self.envelope, self.envelope_other, reader)
        })?;
        Some((envelope, self.extensions))
    }

    /// Checks that critical types are marked as critical (§5.5.4, ruling 24).
    fn check_urgency(&self, event_type: &EventType, reader: &mut MessageReader<'_>) {
        let must = event_type.core().is_some_and(CoreType::is_critical);
        if must && self.envelope.urgency != Some(Urgency::Critical) {
            let problem = "An event of this type is always critical.".to_owned();
            reader.tolerable_at(Code::NotCritical, Some("urgency"), problem);
        }
    }

    /// Checks that every prefix in use is declared and not reserved (§3.4.3, §3.9 step 5, §7.3.2,
    /// ruling 29).
    fn check_prefixes(&self, event_type: &EventType, reader: &mut MessageReader<'_>) {
        let foreign = match event_type {
            EventType::Other(name) if !name.is_in_core_namespace() => Some(name),
            _ => None,
        };
        let prefix = foreign.and_then(TypeName::prefix);
        if let Some(reserved) = prefix.filter(|prefix| Prefix::parse(prefix).is_err()) {
            let problem = format!("{} cannot be the prefix of an extension.", quoted(reserved));
            reader.tolerable_at(Code::ReservedPrefix, Some("type"), problem);
        }
        let Some(context) = &self.envelope.context else { return };
        let undeclared = |prefix| format!("Nothing in @context declares {}.", quoted(prefix));
        // A type written as a URI needs a vocabulary, but shares it with the prefix of its data.
        let uri = foreign.filter(|name| name.prefix().is_none()).map(TypeName::as_str);
        for uri in context.undeclared(uri.into_iter()) {
            reader.tolerable_at(Code::UndeclaredPrefix, Some("type"), undeclared(uri));
        }
        let used = self.extensions.iter().flat_map(|extensions| extensions.0.keys());
        for used in context.undeclared(prefix.into_iter().chain(used.map(Prefix::as_str))) {
            if prefix == Some(used) {
                reader.tolerable_at(Code::UndeclaredPrefix, Some("type"), undeclared(used));
            } else {
                reader.within(PathStep::Key("extensions"), None, |reader| {
                    reader.tolerable_at(Code::UndeclaredPrefix, Some(used), undeclared(used));
                });
            }
        }
    }

    /// Checks our own extension against its own definition (§3.9 step 8).
    fn check_own_extension<'t>(&self, value: JsonValue<'t, '_>, reader: &mut MessageReader<'t>) {
        if self.extensions.as_ref().is_some_and(extension::is_used) {
            extension::check(value, reader);
        }
    }

    /// Checks the number of fields (§3.7).
    fn check_fields(&self, value: JsonValue<'_, '_>, reader: &mut MessageReader<'_>) {
        let prefixes = self.extensions.as_ref().map_or(0, |extensions| extensions.0.len());
        let fields = value.fields().count() + prefixes;
        if fields > MAX_FIELDS {
            let problem = format!("{fields} fields are more than {MAX_FIELDS}.");
            reader.tolerable_at(Code::TooManyFields, None, problem);
        }
    }

    /// Whether the event states the language of its text (§11.1).
    fn declares_language(&self) -> bool {
        let primary = |hints: &LocalizationHints| hints.primary_language.is_some();
        self.envelope.localization_hints.as_ref().is_some_and(primary)
    }
}

fn note_language(field: &str, reader: &mut MessageReader<'_>) {
    let problem = format!("Nothing says in which language \"{field}\" is.");
    reader.note_at(Code::LanguageNotDeclared, Some("localization_hints"), problem);
}

fn read_event<'t, P: CorePayload + Into<Payload>>(
    value: JsonValue<'t, '_>,
    reader: &mut MessageReader<'t>,
) -> Option<Event> {
    let mut common = CommonParts::default();
    let mut parts = P::Parts::default();
    let mut other = Object::new();
    let mut variants = Vec::new();
    let mut words = None;
    reader.defined_in(P::SECTION, |reader| {
        for (key, field) in value.fields() {
            if common.take(key, field, reader) {
                continue;
            }
            if P::take(&mut parts, key, field, &mut other, reader) {
                words = words.or(P::WORDS.iter().map(|word| word.0).find(|word| *word == key));
            } else if let Some((word, max, language)) = Variant::find(key, P::WORDS) {
                let bounds = between(1, max);
                match reader.field((key, Some("11.5.1")), field, &bounds, false) {
                    Some(text) => {
                        variants.push(Variant { field: word, language, text, key: key.into() });
                    }
                    None => {
                        other.insert(key.to_owned(), field.to_json());
                    }
                }
            } else {
                unknown_field(key, reader);
                other.insert(key.to_owned(), field.to_json());
            }
        }
        if P::CORE == CoreType::OutputStreaming && !P::has(&parts, "language") {
            words = Some("chunk");
        }
    });
    if let Some(field) = words.filter(|_| !common.declares_language()) {
        note_language(field, reader);
    }
    let common = common.finish(&EventType::Core(P::CORE), value, reader);
    let payload = reader.defined_in(P::SECTION, |reader| P::finish(parts, other, reader));
    let (envelope, extensions) = common?;
    Some(Event { envelope, payload: payload?.into(), variants, extensions })
}

fn read_extension<'t>(
    type_name: TypeName,
    value: JsonValue<'t, '_>,
    reader: &mut MessageReader<'t>,
) -> Option<Event> {
    if type_name.is_in_core_namespace() {
        let problem = format!("{} is not a type of AAEP 1.0.", quoted(type_name.as_str()));
        reader.tolerable_at(Code::UnknownType, Some("type"), problem);
    }
    let mut common = CommonParts::default();
    let mut fields = Object::new();
    for (key, field) in value.fields() {
        if !common.take(key, field, reader) {
            if is_reserved(key) {
                unknown_field(key, reader);
            }
            fields.insert(key.to_owned(), field.to_json());
        }
    }
    let event_type = EventType::Other(type_name.clone());
    let (envelope, extensions) = common.finish(&event_type, value, reader)?;
    let payload = Payload::Extension(ExtensionPayload { type_name, fields });
    Some(Event { envelope, payload, variants: Vec::new(), extensions })
}
