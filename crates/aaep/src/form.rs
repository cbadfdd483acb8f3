//! Strings of a fixed form, parsed once into types that cannot hold an invalid one.
//!
//! Cloning shares the string and does not copy it, because ids are kept in many tables.
//!
//! `form!` declares such a type from a checking function and the equivalent pattern for a JSON
//! Schema. A property test checks that the two agree.

use std::fmt;

/// The error for a string that does not have the form that its type requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongForm {
    /// The name of the type.
    pub name: &'static str,
    /// What was expected, as the end of a sentence that begins with "Expected".
    pub expected: &'static str,
}

impl fmt::Display for WrongForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a {}: expected {}", self.name, self.expected)
    }
}

impl std::error::Error for WrongForm {}

/// Declares a string type: its documentation, what to expect, its pattern, and the check.
macro_rules! form {
    (
        $(#[doc = $about:literal])+
        $name:ident, $expected:literal, $schema:tt, $check:expr
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Parses the string; the error says what was expected.
            pub fn parse(text: &str) -> Result<Self, $crate::WrongForm> {
                if $name::is_form_of(text) {
                    Ok($name(text.into()))
                } else {
                    Err($crate::WrongForm { name: stringify!($name), expected: $expected })
                }
            }

            /// Whether the string has this form.
            pub fn is_form_of(text: &str) -> bool {
                let is_right: fn(&str) -> bool = $check;
                is_right(text)
            }

            /// The string as it is written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        $crate::form::string_field!($name, $expected, $schema);
    };
}

/// Implements what all types have in common that are written as a string.
macro_rules! string_field {
    ($name:ident, $expected:literal, $schema:tt) => {
        impl std::str::FromStr for $name {
            type Err = $crate::WrongForm;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $name::parse(text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl $crate::read::FieldType for $name {
            fn read<'t>(
                value: $crate::json::JsonValue<'t, '_>,
                bounds: &$crate::read::ValueBounds,
                reader: &mut $crate::read::MessageReader<'t>,
            ) -> Option<Self> {
                let Some(text) = value.as_str() else {
                    return reader.wrong_type("a string", value.kind());
                };
                $crate::field::check_length(text, bounds, reader);
                $name::parse(text).map_err(|_| $crate::form::report(text, $expected, reader)).ok()
            }

            fn schema(bounds: &$crate::read::ValueBounds) -> serde_json::Value {
                let mut schema = <String as $crate::read::FieldType>::schema(bounds);
                let form = serde_json::json!($schema);
                for (key, value) in form.as_object().into_iter().flatten() {
                    schema[key] = value.clone();
                }
                schema
            }
        }
    };
}

/// Reports a string of the wrong form.
pub(crate) fn report(text: &str, expected: &str, reader: &mut crate::read::MessageReader<'_>) {
    let problem = format!("{} is wrong; expected {expected}.", crate::violation::quoted(text));
    reader.error(crate::violation::Code::WrongFormat, problem);
}

pub(crate) use {form, string_field};

/// Whether the text is the prefix followed by 1 to 64 ASCII letters or digits (§3.2.3).
fn is_id(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|rest| {
        (1..=64).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Whether the text starts with a byte that `first` allows and continues with bytes that `then`
/// allows, `min` to `max` bytes in total.
fn is_name(
    text: &str,
    (min, max): (usize, usize),
    first: fn(u8) -> bool,
    then: fn(u8) -> bool,
) -> bool {
    let bytes = text.as_bytes();
    (min..=max).contains(&bytes.len())
        && bytes.first().copied().is_some_and(first)
        && bytes[1..].iter().copied().all(then)
}

form! {
    /// Identifies one event (§3.2.3).
    EventId, "evt_ and 1 to 64 letters or digits",
    { "pattern": "^evt_[A-Za-z0-9]{1,64}$" }, |text| is_id(text, "evt_")
}

form! {
    /// Identifies one session (§3.2.4).
    SessionId, "sess_ and 1 to 64 letters or digits",
    { "pattern": "^sess_[A-Za-z0-9]{1,64}$" }, |text| is_id(text, "sess_")
}

form! {
    /// Identifies one subscription (§5.4.1). Never a credential.
    SubscriptionId, "sub_ and 1 to 64 letters or digits",
    { "pattern": "^sub_[A-Za-z0-9]{1,64}$" }, |text| is_id(text, "sub_")
}

form! {
    /// Ties a reply to its question (§6.2). Opaque to subscribers, single use, never a credential.
    ReplyToken, "rpl_ and 1 to 64 letters or digits",
    { "pattern": "^rpl_[A-Za-z0-9]{1,64}$" }, |text| is_id(text, "rpl_")
}

form! {
    /// Ties a tool's completion to its invocation (§4.3.1).
    ToolCallId, "call_ and 1 to 64 letters or digits",
    { "pattern": "^call_[A-Za-z0-9]{1,64}$" }, |text| is_id(text, "call_")
}

form! {
    /// Groups the chunks of one output (§4.3.3).
    OutputId, "out_ and 1 to 64 letters or digits",
    { "pattern": "^out_[A-Za-z0-9]{1,64}$" }, |text| is_id(text, "out_")
}

form! {
    /// The identifier of a tool (§4.3.1).
    ToolName, "a letter or _, then up to 255 letters, digits, _, . or -",
    { "pattern": "^[A-Za-z_][A-Za-z0-9_.-]{0,255}$", "minLength": 1, "maxLength": 256 },
    |text| is_name(text, (1, 256),
        |byte| byte.is_ascii_alphabetic() || byte == b'_',
        |byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

form! {
    /// A producer's short code for an error, such as `TOOL_TIMEOUT` (§4.1.3).
    ErrorCode, "a capital, then 1 to 63 capitals, digits or _",
    { "pattern": "^[A-Z][A-Z0-9_]{1,63}$" },
    |text| is_name(text, (2, 64), |byte| byte.is_ascii_uppercase(),
        |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

form! {
    /// A reason in snake case, such as `user_pressed_escape` (§4.1.4, §5.8.1).
    ReasonName, "a small letter, then 1 to 63 small letters, digits or _",
    { "pattern": "^[a-z][a-z0-9_]{1,63}$" },
    |text| is_name(text, (2, 64), |byte| byte.is_ascii_lowercase(),
        |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

form! {
    /// A media type without parameters, such as `text/plain` (§4.3.3).
    ContentType, "a media type such as text/plain",
    { "pattern": "^[a-zA-Z][a-zA-Z0-9.+_-]*/[a-zA-Z][a-zA-Z0-9.+_-]*$" },
    |text| text.split_once('/').is_some_and(|(kind, subtype)| {
        [kind, subtype].iter().all(|half| is_name(half, (1, usize::MAX),
            |byte| byte.is_ascii_alphabetic(),
            |byte| byte.is_ascii_alphanumeric() || b".+_-".contains(&byte)))
    })
}

form! {
    /// An ISO 15924 script code, such as `Latn` (§11.1.1).
    Script, "four letters, the first a capital, such as Latn",
    { "pattern": "^[A-Z][a-z]{3}$" },
    |text| is_name(text, (4, 4), |byte| byte.is_ascii_uppercase(), |byte| byte.is_ascii_lowercase())
}

form! {
    /// A JSON Web Signature in its compact form (§10.4.1). Carried, not verified, here.
    CompactJws, "three base64url parts with dots between them",
    { "pattern": "^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$" },
    |text| {
        let mut parts = text.split('.');
        let is_part = |part: &str| !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        (&mut parts).take(3).filter(|part| is_part(part)).count() == 3 && parts.next().is_none()
    }
}

form! {
    /// An absolute URI (RFC 3986).
    Uri, "an absolute URI such as https://example.org/help",
    { "format": "uri" }, |text| fluent_uri::Uri::parse(text).is_ok()
}

form! {
    /// The prefix under which an extension keeps its data (§7.3). Never a reserved one.
    Prefix, "a letter or _, then up to 63 letters, digits, _, . or -, and not aaep, xsd, rdf or rdfs",
    { "pattern": "^(?!(?:aaep|xsd|rdf|rdfs)$)[A-Za-z_][A-Za-z0-9_.-]{0,63}$" },
    |text| is_name(text, (1, 64),
        |byte| byte.is_ascii_alphabetic() || byte == b'_',
        |byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        && !matches!(text, "aaep" | "xsd" | "rdf" | "rdfs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_its_prefix_and_one_to_sixty_four_letters_or_digits() {
        for right in ["evt_a", "evt_8a3f5b22c91e4d7a", &format!("evt_{}", "Z".repeat(64))] {
            assert_eq!(EventId::parse(right).expect(right).as_str(), right);
        }
        for wrong in [
            "",
            "evt_",
            "evt_a-b",
            "evt_é",
            "Evt_a",
            "sess_a",
            "evt_a ",
            &format!("evt_{}", "a".repeat(65)),
        ] {
            assert!(EventId::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ids_are_case_sensitive() {
        assert_ne!(EventId::parse("evt_a").expect("id"), EventId::parse("evt_A").expect("id"));
    }

    #[test]
    fn names_keep_to_their_alphabet() {
        assert!(ToolName::parse("fs.read-file_2").is_ok());
        assert!(ToolName::parse("2fast").is_err());
        assert!(ErrorCode::parse("AUTH_FAILED").is_ok());
        assert!(ErrorCode::parse("A").is_err());
        assert!(ReasonName::parse("user_pressed_escape").is_ok());
        assert!(ReasonName::parse("User").is_err());
        assert!(ContentType::parse("text/vnd.x+json").is_ok());
        assert!(ContentType::parse("text").is_err());
        assert!(Script::parse("Latn").is_ok());
        assert!(Script::parse("latn").is_err());
        assert!(CompactJws::parse("a.b-_.C9").is_ok());
        assert!(CompactJws::parse("a.b").is_err());
        assert!(CompactJws::parse("a.b.c.d").is_err());
        assert!(CompactJws::parse("a..c").is_err());
    }

    #[test]
    fn a_uri_is_absolute() {
        assert!(Uri::parse("https://example.com/.well-known/aaep-manifest.json").is_ok());
        assert!(Uri::parse("queue://customer-service/advisor").is_ok());
        assert!(Uri::parse("/relative").is_err());
        assert!(Uri::parse("not a uri").is_err());
    }

    #[test]
    fn reserved_prefixes_are_refused() {
        for reserved in ["aaep", "xsd", "rdf", "rdfs", "@id", ""] {
            assert!(Prefix::parse(reserved).is_err(), "{reserved}");
        }
        assert!(Prefix::parse("aaepx").is_ok());
        assert!(Prefix::parse("ext_medical_hipaa").is_ok());
    }
}
