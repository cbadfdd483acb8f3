//! Schemas made wrong on purpose, to see whether the harness notices. Never used for anything else.

use aaep::SchemaFile;
use serde_json::{Map, Value as Json, json};

/// One way to make the schemas wrong.
#[derive(Debug, Clone)]
pub(crate) struct Sabotage {
    /// The path of the schema.
    pub(crate) path: String,
    /// Where in it: a JSON Pointer to the schema that changes.
    pub(crate) pointer: String,
    pub(crate) keyword: String,
    /// What the keyword becomes; nothing if it goes.
    value: Option<Json>,
}

impl Sabotage {
    /// The schemas with this one thing wrong.
    pub(crate) fn apply(&self, files: &[SchemaFile]) -> Vec<SchemaFile> {
        let mut files = files.to_vec();
        let file = files.iter_mut().find(|file| file.path == self.path).expect("a schema");
        let place = file.schema.pointer_mut(&self.pointer).expect("a place in it");
        let keywords = place.as_object_mut().expect("a schema");
        match &self.value {
            Some(value) => keywords.insert(self.keyword.clone(), value.clone()),
            None => keywords.remove(&self.keyword),
        };
        files
    }
}

/// Every way to make a schema wrong by one keyword: each bound gone and each bound tighter, each
/// form gone, each enumeration with one value less, each required field optional, each closed
/// object open.
pub(crate) fn all(files: &[SchemaFile]) -> Vec<Sabotage> {
    let mut found = Vec::new();
    for file in files {
        visit(&file.path, &file.schema, "", &mut found);
    }
    found
}

fn visit(path: &str, schema: &Json, pointer: &str, found: &mut Vec<Sabotage>) {
    let Some(keywords) = schema.as_object() else { return };
    for (keyword, value) in keywords {
        if says_nothing_alone(path, pointer, schema, keyword) {
            continue;
        }
        let mut turn_into = |value: Option<Json>| {
            found.push(Sabotage {
                path: path.to_owned(),
                pointer: pointer.to_owned(),
                keyword: keyword.clone(),
                value,
            });
        };
        match keyword.as_str() {
            "minLength" | "minItems" | "minimum" | "minProperties" => {
                turn_into(None);
                turn_into(value.as_u64().map(|bound| (bound + 1).into()));
            }
            "maxLength" | "maxItems" | "maximum" => {
                turn_into(None);
                turn_into(value.as_u64().map(|bound| (bound - 1).into()));
            }
            "pattern"
            | "format"
            | "uniqueItems"
            | "propertyNames"
            | "const"
            | "unevaluatedProperties"
            | "patternProperties"
            | "oneOf"
            | "anyOf"
            | "not"
            | "then" => turn_into(None),
            "type" | "additionalProperties" if !value.is_object() => turn_into(None),
            "enum" => {
                turn_into(None);
                each_without(value, |fewer| turn_into(Some(fewer)));
            }
            "required" => each_without(value, |fewer| {
                // The envelope requires the type already.
                let of_core = path.starts_with("core/") && pointer.is_empty();
                if !of_core || fewer.as_array().is_some_and(|list| list.contains(&json!("type"))) {
                    turn_into(Some(fewer));
                }
            }),
            _ => {}
        }
    }
    let inside = |name: &str| format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
    for keyword in ["properties", "patternProperties"] {
        let fields: Option<&Map<String, Json>> = schema.get(keyword).and_then(Json::as_object);
        for (key, field) in fields.into_iter().flatten() {
            let key = key.replace('~', "~0").replace('/', "~1");
            visit(path, field, &format!("{}/{key}", inside(keyword)), found);
        }
    }
    for keyword in ["items", "additionalProperties", "propertyNames", "if", "then"] {
        if let Some(part) = schema.get(keyword) {
            visit(path, part, &inside(keyword), found);
        }
    }
    for keyword in ["oneOf", "allOf", "prefixItems"] {
        let parts = schema.get(keyword).and_then(Json::as_array);
        for (index, part) in parts.into_iter().flatten().enumerate() {
            visit(path, part, &format!("{}/{index}", inside(keyword)), found);
        }
    }
}

/// Whether the schema would mean the same without the keyword, because another says as much.
fn says_nothing_alone(path: &str, pointer: &str, schema: &Json, keyword: &str) -> bool {
    let has = |keyword: &str| schema.get(keyword).is_some();
    match keyword {
        "type" => {
            let is_root = pointer.is_empty() && !path.starts_with("handshake/");
            has("enum") || has("const") || pointer.ends_with("/propertyNames") || is_root
        }
        // Which schema counts for an event is found by its type.
        "enum" => path.starts_with("core/") && pointer == "/properties/type",
        "minLength" | "maxLength" => {
            schema["pattern"].as_str().is_some_and(|pattern| pattern.contains("{0,255}$"))
        }
        // There are no more values than that, and none may stand there twice.
        "maxItems" => {
            let items = &schema["items"];
            items.get("enum").is_some() || items["maximum"].as_u64().is_some_and(|max| max < 10)
        }
        _ => false,
    }
}

fn each_without(list: &Json, mut take: impl FnMut(Json)) {
    let items = list.as_array().expect("a list");
    for index in 0..items.len() {
        let mut fewer = items.clone();
        fewer.remove(index);
        take(fewer.into());
    }
}
