//! The messages in `docs/openapi.yaml`, written from the declarations in `aaep`, so that generated clients have
//! real types with real fields. The rest of that document is written by hand.

use std::path::Path;

use aaep_engine::FILLED_FIELDS;
use serde_json::{Map, Value, json};

use super::events_page::{events, schema, type_name};
use super::{add, is_page_true, read};

const BEGIN: &str =
    "    # From here on generated: AAEP_WRITE_DOCS=1 cargo test -p aaep-cli --test house\n";
const END: &str = "    # Here ends what is generated.\n";

#[test]
fn the_messages_in_the_openapi_document_are_true() {
    let path = Path::new("docs/openapi.yaml");
    let text = read(path);
    let (before, rest) = text.split_once(BEGIN).expect("where what is generated begins");
    let (_, after) = rest.split_once(END).expect("where what is generated ends");
    let mut expected = format!("{before}{BEGIN}");
    for (name, schema) in messages() {
        add(&mut expected, &format!("    {name}:\n"));
        write_fields(&schema, 6, &mut expected);
    }
    expected.push_str(END);
    expected.push_str(after);
    is_page_true(path, &expected);
}

/// Every schema that is written, with its name.
fn messages() -> Vec<(String, Value)> {
    let mut all = vec![("EventEnvelope".to_owned(), envelope())];
    let events = events();
    let mut names = Vec::new();
    for event in &events {
        let name = class_name(&type_name(event));
        names.push((type_name(event), name.clone()));
        all.push((name, event_schema(event)));
    }
    all.push(("ExtensionEvent".to_owned(), extension_event()));
    let about =
        "An event, by its type. What the hub fills in may be absent from what an agent sends.";
    all.push(("Event".to_owned(), any_of(about, &names, &["ExtensionEvent"])));
    let mut names = Vec::new();
    for file in aaep::schemas() {
        let Some(wire) = file.schema["properties"]["type"].get("const").and_then(Value::as_str)
        else {
            continue;
        };
        let name = class_name(wire);
        names.push((wire.to_owned(), name.clone()));
        all.push((name, without_ids(file.schema)));
    }
    let manifest = without_ids(schema("producer.manifest.schema.json"));
    all.push(("ProducerManifest".to_owned(), manifest));
    all.push((
        "Message".to_owned(),
        any_of("A message that is not an event, by its type.", &names, &[]),
    ));
    all
}

/// `aaep:agent.session.started` is a `SessionStarted`, `agentvoice:ask.extend` an `AskExtend`.
fn class_name(wire: &str) -> String {
    let local = wire.rsplit(':').next().unwrap_or_default();
    let local = if wire.starts_with("aaep:") { local.trim_start_matches("agent.") } else { local };
    local.split('.').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

fn envelope() -> Value {
    let mut schema = without_ids(schema("envelope.schema.json"));
    relax(&mut schema);
    schema["properties"]["type"] =
        json!({ "type": "string", "description": "The type of the event." });
    schema
}

/// The envelope and the fields of the type. The language variants and conditions are left to the JSON Schemas,
/// because generators of clients cannot use them.
fn event_schema(event: &Value) -> Value {
    let mut fields = json!({
        "type": "object",
        "required": event["required"],
        "properties": event["properties"],
    });
    fields["properties"]["type"] = json!({ "const": type_name(event) });
    relax(&mut fields);
    json!({
        "description": event["description"],
        "allOf": [{ "$ref": "#/components/schemas/EventEnvelope" }, fields],
    })
}

fn extension_event() -> Value {
    json!({
        "description": "An event of an extension. It has the fields that the extension gives it.",
        "allOf": [
            { "$ref": "#/components/schemas/EventEnvelope" },
            { "type": "object", "properties": { "type": { "type": "string", "pattern": "^(?!aaep:)" } } },
        ],
    })
}

fn any_of(about: &str, names: &[(String, String)], others: &[&str]) -> Value {
    let place = |name: &str| format!("#/components/schemas/{name}");
    let mapping: Map<String, Value> =
        names.iter().map(|(wire, name)| (wire.clone(), place(name).into())).collect();
    let all = names.iter().map(|(_, name)| name.as_str()).chain(others.iter().copied());
    let forms: Vec<Value> = all.map(|name| json!({ "$ref": place(name) })).collect();
    json!({
        "description": about,
        "oneOf": forms,
        "discriminator": { "propertyName": "type", "mapping": mapping },
    })
}

fn without_ids(mut schema: Value) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        for key in ["$schema", "$id", "title"] {
            fields.remove(key);
        }
    }
    schema
}

/// Takes what the hub fills in from the list of what is required.
fn relax(schema: &mut Value) {
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| !FILLED_FIELDS.iter().any(|it| name == it));
    }
}

/// Writes the fields of an object as YAML, one to a line.
fn write_fields(value: &Value, indent: usize, to: &mut String) {
    for (key, value) in value.as_object().expect("an object") {
        let is_plain = key.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
        let key = if is_plain { key.clone() } else { json!(key).to_string() };
        add(to, &format!("{:indent$}{key}:", ""));
        write_value(value, indent, to);
    }
}

fn write_value(value: &Value, indent: usize, to: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            to.push('\n');
            write_fields(value, indent + 2, to);
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            to.push('\n');
            for item in items {
                // JSON is YAML too, on one line.
                let short = item.to_string();
                let is_short = short.len() < 80;
                if is_short {
                    add(to, &format!("{:indent$}  - {short}\n", ""));
                } else {
                    add(to, &format!("{:indent$}  -\n", ""));
                    write_fields(item, indent + 4, to);
                }
            }
        }
        plain => add(to, &format!(" {plain}\n")),
    }
}
