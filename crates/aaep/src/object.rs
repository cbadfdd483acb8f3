//! Two macros that turn one declaration into a type, its reader, its writer and its JSON Schema.
//!
//! `object!` declares an object of the protocol, `values!` an enumeration. The doc comments become
//! the descriptions in the schemas. No field is described anywhere else in the crate.

use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::{Map, Value as Json, json};

use crate::json::{JsonKind, JsonValue};
use crate::read::{MessageReader, Object, PathStep};
use crate::violation::{Code, quoted};

/// An object with declared fields, read field by field.
pub(crate) trait DeclaredObject: Sized {
    /// The fields read so far. All are optional, so that one bad field does not hide the next.
    type Parts: Default;

    /// The section that defines the object.
    const SECTION: &'static str;

    /// The value of `type`, if the object is a message.
    const TYPE: Option<&'static str>;

    /// The fields whose text is meant for people and may be given in several languages (§11.5.1),
    /// with the maximum length of each.
    const WORDS: &'static [(&'static str, u64)];

    /// Reads a field and returns whether the object declares it. An optional field that cannot be
    /// read is put into `other` by a tolerant reader.
    fn take<'t>(
        parts: &mut Self::Parts,
        key: &'t str,
        value: JsonValue<'t, '_>,
        other: &mut Object,
        reader: &mut MessageReader<'t>,
    ) -> bool;

    /// Whether a field was present, readable or not.
    fn has(parts: &Self::Parts, key: &str) -> bool;

    /// Reports missing and contradictory fields. Returns the object if all required fields are
    /// there.
    fn finish(parts: Self::Parts, other: Object, reader: &mut MessageReader<'_>) -> Option<Self>;

    /// Writes the declared fields, then those that were kept without being understood.
    fn write<W: FieldWriter>(&self, writer: &mut W) -> Result<(), W::Error>;

    /// Visits the text that is meant for people.
    fn each_words(&mut self, visit: &mut dyn FnMut(&mut String));

    /// The `properties` and `required` of the JSON Schema.
    fn properties() -> (Map<String, Json>, Vec<&'static str>);
}

/// The target to which fields are written.
pub(crate) trait FieldWriter {
    type Error;

    fn field<V: Serialize + ?Sized>(&mut self, name: &str, value: &V) -> Result<(), Self::Error>;
}

impl<M: SerializeMap> FieldWriter for M {
    type Error = M::Error;

    fn field<V: Serialize + ?Sized>(&mut self, name: &str, value: &V) -> Result<(), M::Error> {
        self.serialize_entry(name, value)
    }
}

/// How an object treats fields that it does not declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherFields {
    /// They are not allowed (`additionalProperties: false`).
    Refused,
    /// They are extension data: objects under a prefix (§5.3.2).
    Extensions,
}

/// Reads a whole object of declared fields.
pub(crate) fn read_object<'t, T: DeclaredObject>(
    value: JsonValue<'t, '_>,
    others: OtherFields,
    reader: &mut MessageReader<'t>,
) -> Option<T> {
    if value.kind() != JsonKind::Object {
        return reader.wrong_type("an object", value.kind());
    }
    reader.defined_in(T::SECTION, |reader| {
        let mut parts = T::Parts::default();
        let mut other = Object::new();
        for (key, field) in value.fields() {
            if !T::take(&mut parts, key, field, &mut other, reader) {
                match others {
                    OtherFields::Refused => unknown_field(key, reader),
                    OtherFields::Extensions => check_extension(key, field, reader),
                }
                other.insert(key.to_owned(), field.to_json());
            }
        }
        T::finish(parts, other, reader)
    })
}

/// Reports a field that the object does not have.
pub(crate) fn unknown_field(key: &str, reader: &mut MessageReader<'_>) {
    let code = if is_reserved(key) { Code::ReservedField } else { Code::UnknownField };
    let problem = format!("{} is not a field of this object.", quoted(key));
    reader.tolerable_at(code, Some(key), problem);
}

/// Whether the specification reserves this field name (§3.5).
pub(crate) fn is_reserved(key: &str) -> bool {
    key.starts_with("aaep_") || matches!(key, "@id" | "@graph" | "@base" | "@vocab")
}

fn check_extension<'t>(key: &'t str, value: JsonValue<'_, '_>, reader: &mut MessageReader<'t>) {
    if value.kind() != JsonKind::Object {
        reader.within(PathStep::Key(key), None, |reader| {
            let problem = format!("Extension data is an object, found {}.", value.kind());
            reader.tolerable(Code::WrongType, problem);
        });
    }
}

/// The JSON Schema of an object of declared fields.
pub(crate) fn object_schema<T: DeclaredObject>(others: OtherFields) -> Json {
    let (properties, required) = T::properties();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema["additionalProperties"] = match others {
        OtherFields::Refused => false.into(),
        OtherFields::Extensions => json!({ "type": "object" }),
    };
    schema
}

/// The schema of `type`: the one name and, for a name of the specification, also its URI.
pub(crate) fn type_schema(name: &str) -> Json {
    let about = "Which message this is.";
    match name.strip_prefix("aaep:") {
        Some(local) => {
            let uri = format!("{}{local}", crate::event_type::CORE_TYPES);
            json!({ "description": about, "enum": [name, uri] })
        }
        None => json!({ "description": about, "const": name }),
    }
}

/// The text of a doc comment on one line.
pub(crate) fn description(doc: &str) -> String {
    doc.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
}

macro_rules! field_type {
    (required, $type:ty) => { $type };
    (optional, $type:ty) => { Option<$type> };
}

macro_rules! is_required {
    (required) => {
        true
    };
    (optional) => {
        false
    };
}

macro_rules! wire_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $wire:literal) => {
        $wire
    };
}

macro_rules! or_none {
    () => {
        None
    };
    ($section:literal) => {
        Some($section)
    };
}

macro_rules! bounds_or_any {
    () => {
        $crate::read::ANY
    };
    ($bounds:expr) => {
        $bounds
    };
}

/// Unwraps a part that `finish` has checked to be there, or returns.
macro_rules! unpart {
    (required, $part:expr) => {
        $part?
    };
    (optional, $part:expr) => {
        $part
    };
}

macro_rules! write_field {
    (required, $writer:ident, $wire:expr, $value:expr) => {
        $writer.field($wire, &$value)?;
    };
    (optional, $writer:ident, $wire:expr, $value:expr) => {
        if let Some(value) = &$value {
            $writer.field($wire, value)?;
        }
    };
}

/// Declares an object. Each field states whether it is `required` or `optional`, its name, its
/// type, its bounds, the section that defines it if that is not the object's own, `words` if it is
/// text for people, and its purpose.
macro_rules! object {
    (
        $(#[doc = $about:literal])+
        $name:ident in $section:literal $(, type $wire_type:literal)?, others $others:ident
            $(, check $check:path)?
        {
            $(
                $(#[doc = $doc:literal])+
                $need:ident $field:ident $(as $wire:literal)? : $type:ty
                    $(= $bounds:expr)? $(, in $field_section:literal)? $(=> $words:ident)? ;
            )*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $( $(#[doc = $doc])+ pub $field: $crate::object::field_type!($need, $type), )*
            #[doc = "Fields that are not understood here; they are written back unchanged."]
            pub other: $crate::read::Object,
        }

        const _: () = {
            #[derive(Default)]
            pub(crate) struct ObjectParts {
                seen: u64,
                $( pub(crate) $field: Option<$type>, )*
            }

            #[derive(Clone, Copy)]
            #[expect(non_camel_case_types, reason = "each is the name of a field")]
            enum FieldBit { $( $field, )* }

            impl $crate::object::DeclaredObject for $name {
                type Parts = ObjectParts;
                const SECTION: &'static str = $section;
                const TYPE: Option<&'static str> = $crate::object::or_none!($($wire_type)?);
                const WORDS: &'static [(&'static str, u64)] = {
                    const COUNT: usize = 0 $( + $crate::object::count_words!($field $($words)?) )*;
                    const LIST: [(&str, u64); COUNT] = {
                        let mut list = [("", 0); COUNT];
                        let mut at = 0;
                        $(
                            if $crate::object::count_words!($field $($words)?) == 1 {
                                list[at] = (
                                    $crate::object::wire_name!($field $($wire)?),
                                    $crate::object::bounds_or_any!($($bounds)?).max,
                                );
                                at += 1;
                            }
                        )*
                        let _ = at;
                        list
                    };
                    &LIST
                };

                fn take<'t>(
                    parts: &mut ObjectParts,
                    key: &'t str,
                    value: $crate::json::JsonValue<'t, '_>,
                    other: &mut $crate::read::Object,
                    reader: &mut $crate::read::MessageReader<'t>,
                ) -> bool {
                    match key {
                        $(
                            $crate::object::wire_name!($field $($wire)?) => {
                                const REQUIRED: bool = $crate::object::is_required!($need);
                                parts.seen |= 1 << FieldBit::$field as u64;
                                parts.$field = reader.field(
                                    (key, $crate::object::or_none!($($field_section)?)),
                                    value,
                                    &$crate::object::bounds_or_any!($($bounds)?),
                                    REQUIRED,
                                );
                                if parts.$field.is_none() && !REQUIRED {
                                    other.insert(key.to_owned(), value.to_json());
                                }
                                true
                            }
                        )*
                        "type" => Self::TYPE.is_some(),
                        _ => false,
                    }
                }

                fn has(parts: &ObjectParts, key: &str) -> bool {
                    match key {
                        $(
                            $crate::object::wire_name!($field $($wire)?) =>
                                parts.seen & (1 << FieldBit::$field as u64) != 0,
                        )*
                        _ => false,
                    }
                }

                fn finish(
                    parts: ObjectParts,
                    other: $crate::read::Object,
                    reader: &mut $crate::read::MessageReader<'_>,
                ) -> Option<Self> {
                    $(
                        if $crate::object::is_required!($need)
                            && parts.seen & (1 << FieldBit::$field as u64) == 0
                        {
                            reader.missing(
                                $crate::object::wire_name!($field $($wire)?),
                                $crate::object::or_none!($($field_section)?),
                            );
                        }
                    )*
                    $( $check(&parts, reader); )?
                    Some($name {
                        $( $field: $crate::object::unpart!($need, parts.$field), )*
                        other,
                    })
                }

                fn write<W: $crate::object::FieldWriter>(&self, writer: &mut W) -> Result<(), W::Error> {
                    if let Some(name) = Self::TYPE {
                        writer.field("type", name)?;
                    }
                    $(
                        $crate::object::write_field!(
                            $need, writer, $crate::object::wire_name!($field $($wire)?), self.$field
                        );
                    )*
                    self.other.iter().try_for_each(|(key, value)| writer.field(key, value))
                }

                fn each_words(&mut self, visit: &mut dyn FnMut(&mut String)) {
                    let _ = visit;
                    $( $crate::object::visit_words!(self.$field, visit $(, $words)?); )*
                }

                fn properties() -> (serde_json::Map<String, serde_json::Value>, Vec<&'static str>) {
                    let mut properties = serde_json::Map::new();
                    let mut required = Vec::new();
                    if let Some(name) = Self::TYPE {
                        properties.insert("type".to_owned(), $crate::object::type_schema(name));
                        required.push("type");
                    }
                    $({
                        let name = $crate::object::wire_name!($field $($wire)?);
                        let mut schema = <$type as $crate::read::FieldType>::schema(
                            &$crate::object::bounds_or_any!($($bounds)?),
                        );
                        schema["description"] =
                            $crate::object::description(concat!($($doc, "\n"),+)).into();
                        properties.insert(name.to_owned(), schema);
                        if $crate::object::is_required!($need) {
                            required.push(name);
                        }
                    })*
                    (properties, required)
                }
            }
        };

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $crate::object::DeclaredObject::write(self, &mut map)?;
                map.end()
            }
        }

        impl $crate::read::FieldType for $name {
            fn read<'t>(
                value: $crate::json::JsonValue<'t, '_>,
                _: &$crate::read::ValueBounds,
                reader: &mut $crate::read::MessageReader<'t>,
            ) -> Option<Self> {
                $crate::object::read_object(value, $crate::object::OtherFields::$others, reader)
            }

            fn schema(_: &$crate::read::ValueBounds) -> serde_json::Value {
                $crate::object::object_schema::<$name>($crate::object::OtherFields::$others)
            }
        }
    };
}

macro_rules! count_words {
    ($field:ident) => {
        0
    };
    ($field:ident words) => {
        1
    };
}

macro_rules! visit_words {
    ($field:expr, $visit:ident) => {};
    ($field:expr, $visit:ident, words) => {
        $crate::object::HumanWords::each(&mut $field, $visit)
    };
}

/// A field whose text is meant for people.
pub(crate) trait HumanWords {
    fn each(&mut self, visit: &mut dyn FnMut(&mut String));
}

impl HumanWords for String {
    fn each(&mut self, visit: &mut dyn FnMut(&mut String)) {
        visit(self);
    }
}

impl HumanWords for Option<String> {
    fn each(&mut self, visit: &mut dyn FnMut(&mut String)) {
        self.iter_mut().for_each(visit);
    }
}

/// A value that this version of the specification does not know. Only a tolerant reader makes one,
/// so it never occurs in messages that we create ourselves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unrecognized(Box<str>);

impl Unrecognized {
    pub(crate) fn new(text: &str) -> Self {
        Unrecognized(text.into())
    }

    /// The value as received.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Declares an enumeration. An `open` one keeps unknown values when a subscriber reads (§12.2.1). A
/// `closed` one never does, because acting on a guess would be unsafe.
macro_rules! values {
    (
        $(#[doc = $about:literal])+
        open $name:ident { $( $(#[doc = $doc:literal])+ $variant:ident = $wire:literal, )+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[doc = $doc])+ $variant, )+
            /// A value that a newer version may know.
            Other($crate::object::Unrecognized),
        }

        impl $name {
            /// The value as it is written.
            pub fn as_str(&self) -> &str {
                match self {
                    $( $name::$variant => $wire, )+
                    $name::Other(other) => other.as_str(),
                }
            }
        }

        $crate::object::values!(@common $name, $($variant = $wire),+; |text: &str, reader: &$crate::read::MessageReader<'_>| {
            reader.is_tolerant().then(|| $name::Other($crate::object::Unrecognized::new(text)))
        });
    };
    (
        $(#[doc = $about:literal])+
        closed $name:ident { $( $(#[doc = $doc:literal])+ $variant:ident = $wire:literal, )+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[doc = $doc])+ $variant, )+
        }

        impl $name {
            /// The value as it is written.
            pub const fn as_str(&self) -> &'static str {
                match self { $( $name::$variant => $wire, )+ }
            }
        }

        $crate::object::values!(@common $name, $($variant = $wire),+; |_: &str, _: &$crate::read::MessageReader<'_>| None);
    };
    (@common $name:ident, $($variant:ident = $wire:literal),+; $otherwise:expr) => {
        impl $name {
            /// Every value that the specification knows, in order.
            pub const ALL: &[$name] = &[$($name::$variant),+];
            pub(crate) const NAMES: &[&str] = &[$($wire),+];

            /// The value with this text, if the specification knows it.
            pub fn known(text: &str) -> Option<Self> {
                match text {
                    $( $wire => Some($name::$variant), )+
                    _ => None,
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::read::FieldType for $name {
            fn read<'t>(
                value: $crate::json::JsonValue<'t, '_>,
                _: &$crate::read::ValueBounds,
                reader: &mut $crate::read::MessageReader<'t>,
            ) -> Option<Self> {
                let Some(text) = value.as_str() else {
                    return reader.wrong_type("a string", value.kind());
                };
                $name::known(text).or_else(|| {
                    let otherwise: fn(&str, &$crate::read::MessageReader<'_>) -> Option<$name> = $otherwise;
                    let kept = otherwise(text, reader);
                    $crate::object::unknown_value(text, Self::NAMES, kept.is_some(), reader);
                    kept
                })
            }

            fn schema(_: &$crate::read::ValueBounds) -> serde_json::Value {
                serde_json::json!({ "type": "string", "enum": Self::NAMES })
            }
        }
    };
}

pub(crate) use {
    bounds_or_any, count_words, field_type, is_required, object, or_none, unpart, values,
    visit_words, wire_name, write_field,
};

/// Reports an unknown value. It is tolerable only if it is kept.
pub(crate) fn unknown_value(
    text: &str,
    known: &[&str],
    is_kept: bool,
    reader: &mut MessageReader<'_>,
) {
    let problem = format!("{} is not one of: {}.", quoted(text), known.join(", "));
    if is_kept {
        reader.tolerable(Code::UnknownValue, problem);
    } else {
        reader.error(Code::UnknownValue, problem);
    }
}
