//! The schemas as self-contained files: none refers to another file, so ordinary tools can use them
//! without a network and without a list of files.

use serde_json::{Map, Value as Json, json};

use super::{BASE, DIALECT, SchemaFile, schemas};

/// The schema for any message, under an id of our own.
const ANY_MESSAGE: &str = "urn:uuid:7cfd824d-fc5a-4d6e-83c6-a41285ab6b66";

/// The path of the schema for any message.
const ANY_MESSAGE_PATH: &str = "aaep.schema.json";

/// The same schemas as [`schemas`], each with everything that it refers to inside it. The first is
/// one for any message, which chooses by `type`.
pub fn bundled_schemas() -> Vec<SchemaFile> {
    let mut files = schemas();
    let parts: Map<String, Json> =
        files.iter().filter_map(|file| Some((name(&file.path)?, part(&file.schema)))).collect();
    for file in &mut files {
        let needed = make_local(&mut file.schema);
        if !needed.is_empty() {
            let of_needed = needed.iter().map(|it| (it.clone(), parts[it].clone()));
            file.schema["$defs"] = of_needed.collect::<Map<_, _>>().into();
        }
    }
    files.insert(0, any_message(parts));
    files
}

/// The schema for any message. Its `type` decides which definition applies. For a type that we do
/// not define, the envelope applies.
fn any_message(mut parts: Map<String, Json>) -> SchemaFile {
    let mut known = Vec::new();
    let mut by_type = Vec::new();
    parts.retain(|name, schema| {
        make_local(schema);
        let of_type = &schema["properties"]["type"];
        let names = match (of_type.get("const"), of_type["enum"].as_array()) {
            (Some(name), _) => vec![name.clone()],
            (None, Some(names)) => names.clone(),
            (None, None) => return name == "envelope",
        };
        by_type.push(json!({
            "if": { "properties": { "type": { "enum": names } } },
            "then": { "$ref": format!("#/$defs/{name}") },
        }));
        known.extend(names);
        true
    });
    by_type.push(json!({
        "if": { "not": { "properties": { "type": { "enum": known } } } },
        "then": { "$ref": "#/$defs/envelope" },
    }));
    let schema = json!({
        "$schema": DIALECT,
        "$id": ANY_MESSAGE,
        "title": "Any AAEP message",
        "description": "Every message of AAEP and of agentvoice, judged by its type.",
        "type": "object",
        "required": ["type"],
        "allOf": by_type,
        "$defs": parts,
    });
    SchemaFile { path: ANY_MESSAGE_PATH.to_owned(), schema }
}

/// The name of a schema as a definition: its path without the folders of the public layout.
fn name(path: &str) -> Option<String> {
    let path = path.strip_suffix(".schema.json")?;
    let local = path.strip_prefix("core/").or(path.strip_prefix("handshake/")).unwrap_or(path);
    Some(local.replace('/', "."))
}

/// A schema as a definition inside another one, which has its own dialect and id.
fn part(schema: &Json) -> Json {
    let mut part = schema.clone();
    if let Some(fields) = part.as_object_mut() {
        fields.remove("$schema");
        fields.remove("$id");
    }
    part
}

/// Turns references to other files into references to definitions, and returns the names of these.
fn make_local(schema: &mut Json) -> Vec<String> {
    match schema {
        Json::Object(fields) => {
            let mut needed = Vec::new();
            for (key, value) in fields {
                let path = value.as_str().and_then(|it| it.strip_prefix(BASE));
                let found = path.filter(|_| key == "$ref").and_then(name);
                match found {
                    Some(name) => {
                        *value = format!("#/$defs/{name}").into();
                        needed.push(name);
                    }
                    None => needed.extend(make_local(value)),
                }
            }
            needed
        }
        Json::Array(items) => items.iter_mut().flat_map(make_local).collect(),
        _ => Vec::new(),
    }
}
