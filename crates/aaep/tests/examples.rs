//! Our own examples in `samples/messages.jsonl`, for the handshake and the asks (§4.4, §5.2 to §5.8, §6.3).
//!
//! Every one is accepted and written back as it came. Together they show every field and every value of
//! the messages whose schemas are seeds, and carry every constraint of those.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use support::assert_accepted;
use walk::{assert_honoured, list, properties};

#[path = "common/support.rs"]
mod support;
#[path = "common/walk.rs"]
mod walk;

/// The messages whose schemas are seeds, by the paths of our schemas for them.
const SHOWN: [&str; 4] = [
    "handshake/subscription.request.schema.json",
    "handshake/subscription.rejected.schema.json",
    "core/agent.awaiting.confirmation.schema.json",
    "core/agent.awaiting.clarification.schema.json",
];

fn examples() -> Vec<Json> {
    let lines = include_str!("../../../samples/messages.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// The schemas of those messages, each with the examples of it.
fn shown() -> Vec<(Json, Vec<Json>)> {
    let files = aaep::schemas();
    let of_path = |path: &str| files.iter().find(|file| file.path == path);
    let schemas = SHOWN.iter().map(|path| of_path(path).expect("a schema of ours").schema.clone());
    let with_examples = schemas.map(|schema| {
        let name = &schema["properties"]["type"];
        let is_of = |example: &Json| {
            name["const"] == example["type"] || list(name, "enum").contains(&example["type"])
        };
        let of_schema = examples().into_iter().filter(is_of).collect();
        (schema, of_schema)
    });
    with_examples.collect()
}

#[test]
fn every_example_is_accepted_and_written_back() {
    let all = examples();
    assert!(all.len() > 20, "the file has its examples");
    for example in &all {
        assert_accepted(example, "an example of ours");
    }
}

#[test]
fn every_constraint_is_honoured_with_our_own_examples() {
    for (schema, examples) in shown() {
        assert!(examples.len() >= 3, "{} has examples", schema["$id"]);
        assert_honoured(&schema, &examples);
    }
}

#[test]
fn the_examples_show_every_field_and_every_value() {
    for (schema, examples) in shown() {
        let (mut wanted, mut found) = (BTreeSet::new(), BTreeSet::new());
        want("", &schema, &mut wanted);
        for example in &examples {
            find("", example, &mut found);
        }
        let missing: Vec<_> = wanted.difference(&found).collect();
        assert!(missing.is_empty(), "the examples of {} lack {missing:?}", schema["title"]);
    }
}

/// Every field that a schema declares, and every value that one may have.
fn want(at: &str, schema: &Json, wanted: &mut BTreeSet<String>) {
    for value in list(schema, "enum").iter().filter(|_| at != "/type") {
        wanted.insert(format!("{at}={value}"));
    }
    if let Some(items) = schema.get("items") {
        want(at, items, wanted);
    }
    for (name, property) in properties(schema) {
        wanted.insert(format!("{at}/{name}"));
        want(&format!("{at}/{name}"), property, wanted);
    }
}

/// Every field of a document, and every value; items go by the name of their list.
fn find(at: &str, document: &Json, found: &mut BTreeSet<String>) {
    match document {
        Json::Object(fields) => {
            for (name, value) in fields {
                found.insert(format!("{at}/{name}"));
                find(&format!("{at}/{name}"), value, found);
            }
        }
        Json::Array(items) => items.iter().for_each(|item| find(at, item, found)),
        value => {
            found.insert(format!("{at}={value}"));
        }
    }
}
