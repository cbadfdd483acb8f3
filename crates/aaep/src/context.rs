//! `@context`: which vocabularies an event uses, and whether its prefixes are among them.
//!
//! §3.2.1 and §3.4.3, without a network (ruling 29): a known context URI declares its prefix; each
//! unknown URI may declare one unknown prefix; a prefix that no URI can declare is an error.

use serde::ser::SerializeSeq;
use serde_json::{Value as Json, json};

use crate::extension;
use crate::form::Uri;
use crate::json::{JsonKind, JsonValue};
use crate::read::{FieldType, MessageReader, PathStep, ValueBounds};
use crate::violation::{Code, quoted};

/// The URI of the core vocabulary.
pub const CORE_CONTEXT: &str = "https://aaep-protocol.org/context/v1";

/// Context URIs whose prefix is published and need not be guessed.
const KNOWN: &[(&str, &str)] = &[
    (extension::CONTEXT, extension::PREFIX),
    ("https://aaep-protocol.org/extensions/multilingual-african-languages/v1", "azlearn"),
];

/// The vocabularies of an event: always the core, then those of its extensions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Context {
    /// The context URIs of the extensions, in order.
    pub extensions: Vec<Uri>,
    /// Whether a context with the core alone is written as an array, because it was received as
    /// one.
    is_array: bool,
}

impl Context {
    /// Adds the vocabulary of an extension, unless it is already there.
    pub fn declare(&mut self, uri: Uri) {
        if !self.extensions.contains(&uri) {
            self.extensions.push(uri);
        }
    }

    /// Those of the prefixes that nothing in the context can declare, in order.
    pub(crate) fn undeclared<'p>(
        &self,
        prefixes: impl Iterator<Item = &'p str>,
    ) -> impl Iterator<Item = &'p str> {
        let brings = |uri: &Uri| KNOWN.iter().find(|known| known.0 == uri.as_str());
        let known: Vec<&str> =
            self.extensions.iter().filter_map(brings).map(|known| known.1).collect();
        let is_unknown = |(at, uri): &(usize, &Uri)| {
            brings(uri).is_none()
                && uri.as_str() != CORE_CONTEXT
                && !self.extensions[..*at].contains(uri)
        };
        let mut unknown_uris = self.extensions.iter().enumerate().filter(is_unknown).count();
        let mut seen: Vec<&str> = Vec::new();
        prefixes.filter(move |prefix| {
            if known.contains(prefix) || seen.contains(prefix) {
                return false;
            }
            seen.push(prefix);
            let stands = unknown_uris > 0;
            unknown_uris = unknown_uris.saturating_sub(1);
            !stands
        })
    }
}

impl serde::Serialize for Context {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.extensions.is_empty() && !self.is_array {
            return serializer.serialize_str(CORE_CONTEXT);
        }
        let mut list = serializer.serialize_seq(Some(self.extensions.len() + 1))?;
        list.serialize_element(CORE_CONTEXT)?;
        for uri in &self.extensions {
            list.serialize_element(uri)?;
        }
        list.end()
    }
}

impl FieldType for Context {
    fn read<'t>(
        value: JsonValue<'t, '_>,
        bounds: &ValueBounds,
        reader: &mut MessageReader<'t>,
    ) -> Option<Self> {
        match value.kind() {
            JsonKind::String if value.as_str() == Some(CORE_CONTEXT) => Some(Context::default()),
            JsonKind::String => {
                no_core(value.as_str(), reader);
                None
            }
            JsonKind::Array => {
                let mut items = value.items();
                let first = items.next().and_then(JsonValue::as_str);
                if first != Some(CORE_CONTEXT) {
                    no_core(first, reader);
                    return None;
                }
                let mut extensions = Vec::new();
                let mut complete = true;
                for (index, item) in items.enumerate() {
                    let uri = reader.within(PathStep::Index(index + 1), None, |reader| {
                        Uri::read(item, bounds, reader)
                    });
                    complete &= uri.is_some();
                    extensions.extend(uri);
                }
                complete.then_some(Context { extensions, is_array: true })
            }
            other => reader.wrong_type("a string or an array of strings", other),
        }
    }

    fn schema(bounds: &ValueBounds) -> Json {
        json!({
            "oneOf": [
                { "const": CORE_CONTEXT },
                {
                    "type": "array",
                    "minItems": 1,
                    "prefixItems": [{ "const": CORE_CONTEXT }],
                    "items": Uri::schema(bounds),
                },
            ],
        })
    }
}

fn no_core(found: Option<&str>, reader: &mut MessageReader<'_>) {
    let problem = match found {
        Some(found) => format!("The context starts with {} and not with the core.", quoted(found)),
        None => "The context does not start with the core.".to_owned(),
    };
    reader.error(Code::NoCoreContext, problem);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undeclared(uris: &[&str], prefixes: &[&'static str]) -> Vec<&'static str> {
        let mut context = Context::default();
        for uri in uris {
            context.declare(Uri::parse(uri).expect("uri"));
        }
        context.undeclared(prefixes.iter().copied()).collect()
    }

    #[test]
    fn each_unknown_uri_stands_for_one_unknown_prefix() {
        assert_eq!(undeclared(&[], &["medai"]), ["medai"]);
        assert_eq!(
            undeclared(&["https://example.org/medai/context/v1"], &["medai", "medai"]),
            [""; 0]
        );
        assert_eq!(undeclared(&["https://example.org/a"], &["a", "b"]), ["b"]);
    }

    #[test]
    fn a_known_uri_brings_its_own_prefix_only() {
        assert_eq!(undeclared(&[extension::CONTEXT], &[extension::PREFIX]), [""; 0]);
        assert_eq!(undeclared(&[extension::CONTEXT], &["other"]), ["other"]);
    }
}
