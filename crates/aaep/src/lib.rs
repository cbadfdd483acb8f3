//! The messages of AAEP as types. It touches nothing and decides nothing.

#![doc = include_str!("../README.md")]

mod capabilities;
mod context;
mod envelope;
pub mod event;
mod event_type;
pub mod extension;
mod field;
mod form;
pub mod handshake;
mod json;
mod language;
mod manifest;
mod message;
mod object;
mod read;
pub mod reply;
mod schema;
mod time;
mod version;
mod violation;
mod visible;

pub use capabilities::{Capabilities, CognitiveLoad, EventFilters};
pub use context::{CORE_CONTEXT, Context};
pub use envelope::{
    Envelope, Extensions, LocalizationHints, Producer, TextDirection, Urgency, Verbosity,
};
pub use event::{
    ActionStakes, Event, ExtensionPayload, Payload, StatedRisk, StatedUndo, Variant, View,
};
pub use event_type::{CORE_TYPES, CoreType, EventType, TypeName, TypePattern};
pub use form::{
    CompactJws, ContentType, ErrorCode, EventId, OutputId, Prefix, ReasonName, ReplyToken, Script,
    SessionId, SubscriptionId, ToolCallId, ToolName, Uri, WrongForm,
};
pub use json::{MAX_BYTES, MAX_DEPTH, MAX_SAFE_INTEGER};
pub use language::LanguageTag;
pub use manifest::Manifest;
pub use message::{
    MAX_MESSAGE_BYTES, Message, Reading, check, read, read_capabilities, read_object, validate,
};
pub use object::Unrecognized;
pub use read::{MAX_VIOLATIONS, Mode, Object};
pub use schema::{BEYOND_SCHEMA, SchemaFile, bundled_schemas, schemas};
pub use time::{DecisionTime, Timestamp};
pub use version::{PUBLISHED, Version};
pub use violation::{Code, Severity, Violation};
pub use visible::printable;
