//! Reads any message: bytes go in, a typed message and a list of everything that is wrong come out
//! (§3.9).

use crate::capabilities::Capabilities;
use crate::event::Event;
use crate::event_type::{CoreType, EventType};
use crate::extension::{
    AgentHello, AgentPrompt, AskExtend, AskPause, AskPresented, AskResume, AskWithdraw,
    SessionCancel, SessionSteer,
};
use crate::handshake::{
    SubscriptionAccepted, SubscriptionClose, SubscriptionRejected, SubscriptionRenegotiate,
    SubscriptionRequest,
};
use crate::json::{JsonDocument, JsonValue, LONG_STRING};
use crate::manifest::Manifest;
use crate::object::DeclaredObject;
use crate::read::{ANY, FieldType, MessageReader, Mode, Object};
use crate::reply::{ClarificationReply, ConfirmationReply};
use crate::violation::{Code, Severity, Violation, quoted};

/// The largest message that §3.7 allows, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// How deep arrays and objects may nest below the message itself according to §3.7.
const MAX_LEVELS: usize = 8;

macro_rules! messages {
    ($($(#[doc = $doc:literal])+ $message:ident,)+) => {
        /// Any message of the protocol.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Message {
            /// An event from a producer.
            Event(Box<Event>),
            $( $(#[doc = $doc])+ $message(Box<$message>), )+
        }

        impl serde::Serialize for Message {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    Message::Event(event) => event.serialize(serializer),
                    $( Message::$message(message) => message.serialize(serializer), )+
                }
            }
        }

        /// The names of the messages that are not events.
        const NAMES: &[Option<&str>] = &[$( <$message as DeclaredObject>::TYPE ),+];

        /// Reads the message with this name. The outer `None` means that no message has this name.
        fn read_named<'t>(name: &str, value: JsonValue<'t, '_>, reader: &mut MessageReader<'t>) -> Option<Option<Message>> {
            $(
                if Some(name) == <$message as DeclaredObject>::TYPE {
                    let message = <$message as FieldType>::read(value, &ANY, reader);
                    return Some(message.map(|message| Message::$message(Box::new(message))));
                }
            )+
            None
        }
    };
}

messages! {
    /// A subscriber requests a subscription.
    SubscriptionRequest,
    /// A producer grants it.
    SubscriptionAccepted,
    /// A producer does not grant it.
    SubscriptionRejected,
    /// A subscriber requests other terms.
    SubscriptionRenegotiate,
    /// A subscription ends.
    SubscriptionClose,
    /// The answer to a confirmation.
    ConfirmationReply,
    /// The answer to a clarification.
    ClarificationReply,
    /// What a producer states about itself.
    Manifest,
    /// An ask was presented to the person. This and all below belong to our own extension.
    AskPresented,
    /// A person needs more time to answer.
    AskExtend,
    /// A person wants the time to be paused.
    AskPause,
    /// The time runs again after a pause.
    AskResume,
    /// A person wants an agent to begin something.
    AgentPrompt,
    /// A person wants an agent to stop.
    SessionCancel,
    /// A person wants an agent to go on in another way.
    SessionSteer,
    /// An agent states which instructions it accepts.
    AgentHello,
    /// An agent no longer needs an answer.
    AskWithdraw,
}

impl Message {
    /// The message as JSON text on one line.
    ///
    /// # Panics
    /// Never: every message can be written as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("every message can be written as JSON")
    }
}

/// The result of reading a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The message, if it is valid in the mode it was read in.
    pub message: Option<Message>,
    /// Everything that is wrong or could be better.
    pub violations: Vec<Violation>,
    /// The `event_id` that the text claims, for reports on invalid messages. Untrusted text: escape
    /// it.
    pub event_id: Option<String>,
}

impl Reading {
    /// Whether the message is valid in the mode it was read in.
    pub fn is_valid(&self) -> bool {
        self.message.is_some()
    }

    /// The message, or the violations that make it invalid.
    pub fn into_result(self) -> Result<Message, Vec<Violation>> {
        self.message.ok_or(self.violations)
    }
}

/// Reads one message of any kind from JSON text.
///
/// ```
/// use aaep::{Message, Mode};
///
/// let text = br#"{"type":"subscription.request","aaep_version":"1.0.0",
///     "subscriber_id":"my-reader","capabilities":{"max_events_per_second":0}}"#;
/// let reading = aaep::read(text, Mode::Strict);
/// assert_eq!(reading.violations[0].pointer, "/capabilities/max_events_per_second");
/// assert_eq!(reading.violations[0].section, "5.3.1.1");
/// ```
pub fn read(bytes: &[u8], mode: Mode) -> Reading {
    let document = match JsonDocument::parse(bytes) {
        Ok(document) => document,
        Err(violation) => {
            return Reading { message: None, violations: vec![violation], event_id: None };
        }
    };
    read_document(&document, bytes.len(), mode)
}

/// Reads a message that is already an object in memory, as if it were written and read again.
pub fn read_object(object: &Object, mode: Mode) -> Reading {
    let bytes = length(object);
    match JsonDocument::of(object, bytes) {
        Ok(document) => read_document(&document, bytes, mode),
        Err(violation) => Reading { message: None, violations: vec![violation], event_id: None },
    }
}

/// Reads capabilities that stand alone, as strictly as in a request. Returns `None` if anything is
/// wrong with them.
pub fn read_capabilities(object: &Object) -> Option<Capabilities> {
    let bytes = length(object);
    let document = JsonDocument::of(object, bytes).ok()?;
    let mut reader = MessageReader::new(Mode::Strict);
    let capabilities = Capabilities::read(document.root(), &ANY, &mut reader);
    check_text(&document, bytes, &mut reader);
    let is_note = |violation: &Violation| violation.severity == Severity::Note;
    capabilities.filter(|_| reader.violations().iter().all(is_note))
}

/// How many bytes an object takes as text on one line.
fn length(object: &Object) -> usize {
    struct ByteCounter(usize);
    impl std::io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCounter(0);
    match serde_json::to_writer(&mut count, object) {
        Ok(()) => count.0,
        // An object that cannot be written counts as too long.
        Err(_) => usize::MAX,
    }
}

fn read_document(document: &JsonDocument<'_>, bytes: usize, mode: Mode) -> Reading {
    let mut reader = MessageReader::new(mode);
    let root = document.root();
    let message = read_value(root, &mut reader);
    check_text(document, bytes, &mut reader);
    let violations = reader.into_violations();
    let is_valid = violations.iter().all(|violation| violation.severity == Severity::Note);
    let event_id = if violations.is_empty() {
        None
    } else {
        root.field("event_id").and_then(JsonValue::as_str).map(str::to_owned)
    };
    Reading { message: message.filter(|_| is_valid), violations, event_id }
}

/// Everything that is wrong with a message, read as in [`read`].
pub fn validate(bytes: &[u8], mode: Mode) -> Vec<Violation> {
    read(bytes, mode).violations
}

/// Everything that is wrong with a message that was made in Rust, as a strict reader sees it.
pub fn check(message: &impl serde::Serialize) -> Vec<Violation> {
    match serde_json::to_vec(message) {
        Ok(text) => validate(&text, Mode::Strict),
        Err(error) => vec![Violation::of_text(Code::NotJson, format!("{error}."))],
    }
}

fn read_value<'t>(value: JsonValue<'t, '_>, reader: &mut MessageReader<'t>) -> Option<Message> {
    if value.kind() != crate::json::JsonKind::Object {
        let problem = format!("Expected an object, found {}.", value.kind());
        reader.add(Violation::of_text(Code::NotAnObject, problem));
        return None;
    }
    let Some(name) = value.field("type") else {
        reader.missing("type", Some("3.2.2"));
        return read_envelope_alone(value, reader);
    };
    let text = name.as_str().unwrap_or_default();
    match EventType::parse(text) {
        Ok(event_type) => {
            if let EventType::Other(other) = &event_type
                && let Some(message) = read_named(&other.to_compact(), value, reader)
            {
                return message;
            }
            Event::read(event_type, value, reader).map(|event| Message::Event(Box::new(event)))
        }
        Err(_) => read_named(text, value, reader).unwrap_or_else(|| {
            unknown_type(name, reader);
            read_envelope_alone(value, reader)
        }),
    }
}

fn unknown_type(name: JsonValue<'_, '_>, reader: &mut MessageReader<'_>) {
    let problem = match name.as_str() {
        Some(text) => {
            let names: Vec<&str> = NAMES.iter().copied().flatten().collect();
            format!("{} is neither a type of event nor one of: {}.", quoted(text), names.join(", "))
        }
        None => format!("Expected a string, found {}.", name.kind()),
    };
    reader.add(Violation::at(Code::UnknownType, "/type".to_owned(), problem));
}

/// Reads only the envelope of a message without a type, so that everything is reported at once.
fn read_envelope_alone<'t>(
    value: JsonValue<'t, '_>,
    reader: &mut MessageReader<'t>,
) -> Option<Message> {
    let mut aside = MessageReader::new(Mode::Strict);
    Event::read(EventType::Core(CoreType::StateChanged), value, &mut aside);
    let concerns_envelope = |it: &Violation| {
        it.section.starts_with("3.") && !matches!(it.code, Code::UnknownField | Code::ReservedField)
    };
    aside.into_violations().into_iter().filter(concerns_envelope).for_each(|it| reader.add(it));
    None
}

/// Checks the rules for the text itself: size, depth, keys, numbers, long strings (§3.7, §3.8).
fn check_text(document: &JsonDocument<'_>, bytes: usize, reader: &mut MessageReader<'_>) {
    for pointer in document.duplicate_keys() {
        let problem = "The key stands in its object twice.".to_owned();
        reader.add(Violation::at(Code::DuplicateKey, pointer, problem));
    }
    let borne = if reader.is_tolerant() { Severity::Note } else { Severity::Error };
    let mut add = |code, pointer, problem| {
        let mut violation = Violation::at(code, pointer, problem);
        violation.severity = borne;
        reader.add(violation);
    };
    for pointer in document.big_numbers() {
        add(Code::NumberTooBig, pointer, "The number is beyond 2^53.".to_owned());
    }
    if bytes > MAX_MESSAGE_BYTES {
        let problem = format!("{bytes} bytes are more than {MAX_MESSAGE_BYTES}.");
        add(Code::TooLarge, String::new(), problem);
    }
    let levels = document.deepest().saturating_sub(1);
    if levels > MAX_LEVELS {
        let problem = format!("{levels} levels below the message are more than {MAX_LEVELS}.");
        add(Code::TooDeep, String::new(), problem);
    }
    let long: Vec<_> = document.long_strings().collect();
    for (pointer, length) in long {
        let is_reported = |it: &Violation| it.code == Code::TooLong && it.pointer == pointer;
        if !reader.violations().iter().any(is_reported) {
            let problem = format!("{length} characters are more than {LONG_STRING}.");
            let mut violation = Violation::at(Code::TooLong, pointer, problem);
            violation.severity = borne;
            reader.add(violation);
        }
    }
}
