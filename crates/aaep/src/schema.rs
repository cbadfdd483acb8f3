//! Our JSON Schemas (2020-12), with the folders and names of the public ones.
//!
//! Each is derived from the types that read the message, so both state the same. [`BEYOND_SCHEMA`]
//! lists what only the types can check. A property test verifies that both agree.

mod bundle;

use serde_json::{Map, Value as Json, json};

use crate::envelope::{Envelope, Extensions};
use crate::event::{CorePayload, PayloadVisitor, each_payload};
use crate::event_type::{CORE_TYPES, EventType};
use crate::extension::{
    self, AgentHello, AgentPrompt, AskCapabilities, AskExtend, AskPause, AskPresented, AskResume,
    AskWithdraw, Delivery, SessionCancel, SessionSteer,
};
use crate::handshake::{
    SubscriptionAccepted, SubscriptionClose, SubscriptionRejected, SubscriptionRenegotiate,
    SubscriptionRequest,
};
use crate::manifest::Manifest;
use crate::object::{DeclaredObject, description};
use crate::read::{ANY, FieldType};
use crate::reply::{ClarificationReply, ConfirmationReply};
use crate::violation::Code;

pub use bundle::bundled_schemas;

/// The rules that a schema cannot express, and why. A message that breaks only these passes the
/// schemas.
pub const BEYOND_SCHEMA: &[(Code, &str)] = &[
    (Code::TooLarge, "A schema does not see bytes."),
    (Code::TooDeep, "A schema does not count levels in free data."),
    (Code::DuplicateKey, "A schema sees one value per key, whichever its parser kept."),
    (Code::LoneSurrogate, "A schema sees characters, not escapes."),
    (Code::NumberTooBig, "A schema does not look at every number in free data."),
    (
        Code::TooLong,
        "A schema does not measure every string in free data and in fields without a bound.",
    ),
    (Code::TooShort, "A schema does not know which characters can be seen."),
    (
        Code::TooManyFields,
        "A schema does not add the prefixes in `extensions` to the fields of the event.",
    ),
    (
        Code::UndeclaredPrefix,
        "A schema does not compare `@context` with the prefixes that are used.",
    ),
    (Code::ReservedPrefix, "The envelope schema does not look into the prefix of a type."),
    (Code::UnknownType, "The envelope schema takes any type, because extensions have their own."),
    (
        Code::ReservedField,
        "The envelope schema takes any field, because extensions have their own payload.",
    ),
    (Code::UnpublishedVersion, "The schema would have to change with every published version."),
    (
        Code::WrongFormat,
        "A pattern does not see that a number in a version is too long to count with.",
    ),
    (Code::More, "A schema does not cut its list of what is wrong."),
];

/// One schema and its path.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaFile {
    /// The path in the schema folder, with `/`.
    pub path: String,
    /// The schema.
    pub schema: Json,
}

const BASE: &str = "https://aaep-protocol.org/schemas/v1/";
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of our own extension, under an id of our own.
const EXTENSION_SCHEMA: &str = "urn:uuid:157fba64-d710-4654-9c9d-f7d441dc3c27";

/// The ids of the other schemas of our own extension.
const OWN_SCHEMAS: &[(&str, &str)] = &[
    ("capabilities", "urn:uuid:e50711fd-da14-447a-abdc-5d4a53c89f21"),
    ("ask.presented", "urn:uuid:d5f5f079-9dee-407a-a132-a9324369b9c8"),
    ("ask.extend", "urn:uuid:e8d768fe-e66f-4bfd-a8aa-ee02e0bffeda"),
    ("ask.pause", "urn:uuid:4821ef1d-ae70-4a95-b07a-42fe88d74eef"),
    ("ask.resume", "urn:uuid:27ed2b44-327a-49f4-8930-4455257e4f41"),
    ("agent.prompt", "urn:uuid:808f23ee-f7a0-43de-b8d4-ccb99141bea2"),
    ("session.cancel", "urn:uuid:6c6b9d3b-c0f2-4727-8b3d-fea27a4daa9e"),
    ("session.steer", "urn:uuid:fb1c879b-c8bc-406c-a793-3a43b3ca8523"),
    ("agent.hello", "urn:uuid:8d61a343-b876-4e15-9115-bb15ad27de3f"),
    ("ask.withdraw", "urn:uuid:943cd0fb-1618-4aae-8f15-fc00079bff8d"),
];

/// All schemas: the envelope, the twelve events, the handshake, the replies, the manifest, and our
/// own extension.
pub fn schemas() -> Vec<SchemaFile> {
    let mut files = vec![envelope()];
    each_payload(SchemaCollector(&mut files));
    files.extend([
        message::<SubscriptionRequest>("A subscriber asks for a subscription (§5.2)."),
        message::<SubscriptionAccepted>("The producer grants a subscription (§5.4)."),
        message::<SubscriptionRejected>("The producer does not grant a subscription (§5.5)."),
        message::<SubscriptionRenegotiate>("A subscriber asks for other terms (§5.7)."),
        message::<SubscriptionClose>("Either side ends a subscription (§5.8)."),
        message::<ConfirmationReply>("What a person decided about an action (§6.3)."),
        message::<ClarificationReply>("What a person answered to a question (§6.5)."),
        message::<Manifest>("What a producer says of itself (§5.10)."),
    ]);
    let about = "What a hub tells a subscriber about delivery itself, in extensions.agentvoice.";
    // This separate schema covers the data of our extension on an event.
    files.push(SchemaFile {
        path: format!("extensions/{}.schema.json", extension::PREFIX),
        schema: document(EXTENSION_SCHEMA, "agentvoice", about, &Delivery::schema(&ANY)),
    });
    let about = "What a subscriber can say of agentvoice in its capabilities, under the prefix.";
    files.push(SchemaFile {
        path: format!("extensions/{}.capabilities.schema.json", extension::PREFIX),
        ..own("capabilities", about, &AskCapabilities::schema(&ANY))
    });
    files.extend([
        own_message::<AskPresented>("A question was presented to the person."),
        own_message::<AskExtend>("A person needs more time to answer."),
        own_message::<AskPause>("A person wants the time to answer to stand still."),
        own_message::<AskResume>("The time to answer goes on."),
        own_message::<AgentPrompt>("A person wants an agent to begin something."),
        own_message::<SessionCancel>("A person wants an agent to stop what it does."),
        own_message::<SessionSteer>("A person wants an agent to go on in another way."),
        own_message::<AgentHello>("An agent says who it is and what it can be told."),
        own_message::<AskWithdraw>("An agent no longer needs an answer to its question."),
    ]);
    files
}

/// A schema of our own extension besides the one for its data on events.
fn own(name: &str, about: &str, schema: &Json) -> SchemaFile {
    let id = OWN_SCHEMAS.iter().find(|it| it.0 == name).map_or(EXTENSION_SCHEMA, |it| it.1);
    SchemaFile {
        path: format!("{}/{name}.schema.json", extension::PREFIX),
        schema: document(id, &format!("{} {name}", extension::PREFIX), about, schema),
    }
}

fn own_message<T: FieldType + DeclaredObject>(about: &str) -> SchemaFile {
    let name = T::TYPE.and_then(|name| name.split_once(':')).map_or("", |(_, local)| local);
    own(name, about, &T::schema(&ANY))
}

fn document(id: &str, title: &str, about: &str, schema: &Json) -> Json {
    let mut document = json!({
        "$schema": DIALECT,
        "$id": id,
        "title": title,
        "description": about,
    });
    for (key, value) in schema.as_object().into_iter().flatten() {
        document[key] = value.clone();
    }
    document
}

/// The envelope allows other fields, because they depend on the type of the event.
fn envelope() -> SchemaFile {
    let (mut properties, mut required) = Envelope::properties();
    let mut of_type = EventType::schema(&ANY);
    of_type["description"] = "The type of the event, as prefix:name or as a URI.".into();
    properties.insert("type".to_owned(), of_type);
    required.insert(1, "type");
    let mut extensions = Extensions::schema(&ANY);
    extensions["description"] = "Data of extensions, each under its prefix.".into();
    properties.insert("extensions".to_owned(), extensions);
    let schema = json!({ "type": "object", "required": required, "properties": properties });
    let path = "envelope.schema.json".to_owned();
    let id = format!("{BASE}{path}");
    let about = "What every event carries, whatever its type (chapter 3).";
    SchemaFile { path, schema: document(&id, "AAEP event envelope", about, &schema) }
}

struct SchemaCollector<'f>(&'f mut Vec<SchemaFile>);

impl PayloadVisitor for SchemaCollector<'_> {
    fn visit<P: CorePayload>(&mut self) {
        self.0.push(event::<P>());
    }
}

/// An event consists of the envelope and its payload, and nothing else.
fn event<P: CorePayload>() -> SchemaFile {
    let (fields, mut required) = P::properties();
    let name = P::CORE.as_str();
    let local = P::CORE.local_name();
    let mut properties = Map::new();
    properties.insert(
        "type".to_owned(),
        json!({ "description": "Which event this is.", "enum": [name, format!("{CORE_TYPES}{local}")] }),
    );
    required.insert(0, "type");
    if P::CORE.is_critical() {
        let about = "A person must not miss this event.";
        properties
            .insert("urgency".to_owned(), json!({ "description": about, "const": "critical" }));
        required.push("urgency");
    }
    let variants = variants::<P>(&fields);
    properties.extend(fields);
    let mut all_of = vec![json!({ "$ref": format!("{BASE}envelope.schema.json") })];
    all_of.extend(P::schema_conditions());
    let mut schema = json!({
        "type": "object",
        "allOf": all_of,
        "required": required,
        "properties": properties,
        "unevaluatedProperties": false,
    });
    if !variants.is_empty() {
        schema["patternProperties"] = variants.into();
    }
    let path = format!("core/{local}.schema.json");
    let id = format!("{BASE}{path}");
    let about = format!("{} (§{}).", description(P::ABOUT).trim_end_matches('.'), P::SECTION);
    SchemaFile { path, schema: document(&id, &format!("AAEP event {local}"), &about, &schema) }
}

/// The same text in another language, such as `summary_normal_yo` (§11.5.1).
fn variants<P: DeclaredObject>(fields: &Map<String, Json>) -> Map<String, Json> {
    P::WORDS
        .iter()
        .map(|(word, _)| {
            let mut schema = fields.get(*word).cloned().unwrap_or_default();
            schema["minLength"] = 1.into();
            schema["description"] = format!("\"{word}\" in another language.").into();
            (format!("^{word}_{}", crate::language::SUFFIX_PATTERN), schema)
        })
        .collect()
}

fn message<T: FieldType + DeclaredObject>(about: &str) -> SchemaFile {
    let name = T::TYPE.unwrap_or_default();
    let path = match name.strip_prefix("aaep:") {
        Some(local) => format!("{local}.schema.json"),
        None => format!("handshake/{name}.schema.json"),
    };
    let id = format!("{BASE}{path}");
    SchemaFile {
        path,
        schema: document(&id, &format!("AAEP message {name}"), about, &T::schema(&ANY)),
    }
}
