//! The bundled schemas, used as anyone would: one document, no registry of others, no network.

use aaep::{SchemaFile, bundled_schemas};
use jsonschema::Validator;
use serde_json::Value as Json;

const GOOD: [&str; 3] = [
    include_str!("../../../samples/session.jsonl"),
    include_str!("../../../samples/messages.jsonl"),
    include_str!("../../../samples/manifest.json"),
];

fn messages(text: &str) -> Vec<Json> {
    serde_json::Deserializer::from_str(text).into_iter().map(|it| it.expect("JSON")).collect()
}

fn compiled(file: &SchemaFile) -> Validator {
    let built = jsonschema::options().should_validate_formats(true).build(&file.schema);
    built.unwrap_or_else(|error| panic!("{}: {error}", file.path))
}

fn references(schema: &Json, found: &mut Vec<String>) {
    match schema {
        Json::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Json::as_str).map(str::to_owned));
            fields.values().for_each(|it| references(it, found));
        }
        Json::Array(items) => items.iter().for_each(|it| references(it, found)),
        _ => {}
    }
}

#[test]
fn no_bundled_schema_refers_to_another_file() {
    let files = bundled_schemas();
    assert_eq!(files.len(), aaep::schemas().len() + 1);
    for file in &files {
        let mut found = Vec::new();
        references(&file.schema, &mut found);
        for reference in found {
            let pointer = reference.strip_prefix('#').expect("a place in the same document");
            assert!(file.schema.pointer(pointer).is_some(), "{}: {reference}", file.path);
        }
        compiled(file);
    }
}

#[test]
fn one_schema_judges_every_message() {
    let files = bundled_schemas();
    let any = compiled(&files[0]);
    for message in GOOD.iter().flat_map(|text| messages(text)) {
        let wrong: Vec<String> = any.iter_errors(&message).map(|it| it.to_string()).collect();
        assert!(wrong.is_empty(), "{wrong:?}: {message}");
        let mut more = message.clone();
        more["colour"] = "red".into();
        assert!(!any.is_valid(&more), "a field that does not belong: {more}");
        let mut unknown = message;
        unknown["type"] = "subscription.wish".into();
        assert!(!any.is_valid(&unknown), "a type that there is not: {unknown}");
    }
    // What is JSON at all and breaks a rule that a schema can state.
    for line in include_str!("../../../samples/broken.jsonl").lines() {
        let Ok(message) = serde_json::from_str::<Json>(line) else { continue };
        assert!(!any.is_valid(&message), "{message}");
    }
}

#[test]
fn each_bundled_schema_judges_its_own_messages() {
    for file in bundled_schemas().iter().skip(1) {
        let validator = compiled(file);
        let of_type = &file.schema["properties"]["type"];
        let is_of = |it: &Json| {
            of_type.get("const") == Some(&it["type"])
                || of_type["enum"].as_array().is_some_and(|names| names.contains(&it["type"]))
        };
        for message in GOOD.iter().flat_map(|text| messages(text)).filter(is_of) {
            assert!(validator.is_valid(&message), "{}: {message}", file.path);
            let mut more = message;
            more["colour"] = "red".into();
            assert!(!validator.is_valid(&more), "{}: {more}", file.path);
        }
    }
}
