//! Holds messages to a schema, keyword by keyword: what the schema allows passes, and what it forbids fails.
//!
//! The schema is read as plain JSON and is not ours to trust; documents that it describes carry each value.

use serde_json::{Value as Json, json};

use crate::support::{Change, drop, errors, set, strict};

pub(crate) fn list<'j>(schema: &'j Json, key: &str) -> &'j [Json] {
    schema[key].as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn properties(schema: &Json) -> impl Iterator<Item = (&String, &Json)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// Changes the examples in every way of which the schema speaks. Each is right as it stands.
pub(crate) fn assert_honoured(schema: &Json, examples: &[Json]) {
    let filled = examples.iter().map(|example| {
        let mut filled = example.clone();
        fill(&mut filled, schema);
        filled
    });
    let carriers: Vec<Json> = examples.iter().cloned().chain(filled).collect();
    let mut walk = Walk { carriers, checks: 0 };
    for carrier in &walk.carriers {
        assert_eq!(errors(&strict(carrier)), [], "the carrier itself: {carrier}");
    }
    walk.object("", schema);
    for condition in list(schema, "allOf").iter().filter(|it| it["then"]["properties"].is_object())
    {
        walk.condition(condition, schema);
    }
    let least = 5 * properties(schema).count();
    assert!(walk.checks > least, "{}: {} checks", schema["$id"], walk.checks);
}

/// Adds every property that a document lacks.
fn fill(document: &mut Json, schema: &Json) {
    for (name, property) in properties(schema) {
        let fields = document.as_object_mut().expect("an object");
        let value = fields.entry(name).or_insert_with(|| sample(property, 0));
        if value.is_object() {
            fill(value, property);
        }
    }
}

/// The `nth` value that a property can have, each another one.
fn sample(schema: &Json, nth: usize) -> Json {
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(value) = list(schema, "enum").get(nth) {
        return value.clone();
    }
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    match schema["type"].as_str().unwrap_or_default() {
        "string" if schema["format"] == "uri" => json!(format!("https://books.example/{nth}")),
        "string" if pattern.starts_with("^rpl_") => json!(format!("rpl_Book{nth}")),
        "string" if pattern.starts_with("^[0-9]") => json!("1.0.0"),
        // The pattern of a language tag; ours is BCP 47 itself.
        "string" if !pattern.is_empty() => json!(format!("en-{nth:03}")),
        "string" => json!(format!("b{nth}")),
        "integer" => json!(schema["minimum"].as_u64().unwrap_or_default() + nth as u64),
        "boolean" => json!(false),
        "array" => {
            let count = schema["minItems"].as_u64().unwrap_or(1);
            (0..count).map(|n| sample(&schema["items"], usize::try_from(n).expect("few"))).collect()
        }
        "object" => {
            let mut object = json!({});
            for name in list(schema, "required").iter().filter_map(Json::as_str) {
                object[name] = sample(&schema["properties"][name], nth);
            }
            object
        }
        other => panic!("no sample of {other}: {schema}"),
    }
}

/// A walk over a schema, with documents that can carry what it speaks of.
struct Walk {
    carriers: Vec<Json>,
    checks: usize,
}

impl Walk {
    /// The carriers that have a place for this pointer.
    fn changed(&self, pointer: &str, change: &Change) -> Vec<Json> {
        let parent = pointer.rsplit_once('/').map_or("", |split| split.0);
        let has_place = |carrier: &&Json| carrier.pointer(parent).is_some();
        let changed: Vec<_> =
            self.carriers.iter().filter(has_place).map(|carrier| change.on(carrier)).collect();
        assert!(!changed.is_empty(), "nothing carries {pointer}");
        changed
    }

    fn passes(&mut self, pointer: &str, value: impl Into<Json>) {
        self.checks += 1;
        let changed = self.changed(pointer, &set(pointer, value));
        let accepted = changed.iter().any(|it| strict(it).is_valid());
        assert!(accepted, "{pointer} must pass: {:?}", strict(&changed[0]).violations);
    }

    fn fails(&mut self, pointer: &str, value: impl Into<Json>) {
        self.refuses(pointer, &set(pointer, value));
    }

    fn refuses(&mut self, pointer: &str, change: &Change) {
        self.checks += 1;
        for document in self.changed(pointer, change) {
            assert!(!strict(&document).is_valid(), "{pointer} must fail: {document}");
        }
    }

    fn object(&mut self, pointer: &str, schema: &Json) {
        for name in list(schema, "required").iter().filter_map(Json::as_str) {
            let field = format!("{pointer}/{name}");
            self.refuses(&field, &drop(&field));
        }
        let other = format!("{pointer}/shelf");
        match &schema["additionalProperties"] {
            Json::Bool(false) => self.fails(&other, json!({})),
            more if more["type"] == "object" => {
                self.passes(&other, json!({ "row": 3 }));
                self.fails(&other, 3);
            }
            _ => {}
        }
        for (name, property) in properties(schema) {
            self.value(&format!("{pointer}/{name}"), property);
        }
    }

    fn value(&mut self, pointer: &str, schema: &Json) {
        self.kind(pointer, schema);
        if let Some(value) = schema.get("const") {
            self.passes(pointer, value.clone());
            self.fails(pointer, "nothing of the kind");
        }
        for value in list(schema, "enum") {
            self.passes(pointer, value.clone());
            self.fails(pointer, format!("{value}x"));
        }
        let bound =
            |key: &str| schema[key].as_u64().map(|bound| usize::try_from(bound).expect("small"));
        if let Some(min) = bound("minLength") {
            self.passes(pointer, "é".repeat(min));
            self.fails(pointer, "é".repeat(min - 1));
        }
        if let Some(max) = bound("maxLength") {
            self.passes(pointer, "é".repeat(max));
            self.fails(pointer, "é".repeat(max + 1));
        }
        if let Some(min) = schema["minimum"].as_i64() {
            self.passes(pointer, min);
            self.fails(pointer, min - 1);
        }
        if let Some(max) = schema["maximum"].as_i64() {
            self.passes(pointer, max);
            self.fails(pointer, max + 1);
        }
        let items = |count: usize| -> Json { (0..count).map(|nth| item(schema, nth)).collect() };
        if let Some(min) = bound("minItems") {
            self.passes(pointer, items(min));
            self.fails(pointer, items(min - 1));
        }
        if let Some(max) = bound("maxItems") {
            self.passes(pointer, items(max));
            self.fails(pointer, items(max + 1));
        }
        if schema["uniqueItems"] == true {
            self.passes(pointer, items(2));
            self.fails(pointer, json!([item(schema, 0), item(schema, 1), item(schema, 0)]));
        }
        if let Some(of_item) = schema.get("items") {
            self.value(&format!("{pointer}/0"), of_item);
        }
        if schema["type"] == "object" {
            self.object(pointer, schema);
        }
    }

    /// The kind of JSON value that a property is, and the others that it is not.
    fn kind(&mut self, pointer: &str, schema: &Json) {
        let Some(kind) = schema["type"].as_str() else { return };
        let values = [
            ("string", json!("1")),
            ("integer", json!(1)),
            ("boolean", json!(true)),
            ("array", json!([])),
            ("object", json!({})),
            ("null", Json::Null),
            ("number", json!(1.5)),
        ];
        for (_, value) in values.into_iter().filter(|(name, _)| *name != kind) {
            self.fails(pointer, value);
        }
        self.passes(pointer, sample(schema, 0));
    }

    /// What must be so when something else is so.
    fn condition(&mut self, condition: &Json, schema: &Json) {
        let mut given = vec![self.carriers[0].clone()];
        for (name, property) in properties(&condition["if"]) {
            let one = property.get("const").map_or(list(property, "enum"), std::slice::from_ref);
            let pointer = format!("/{name}");
            let with = |carrier: &Json| -> Vec<Json> {
                one.iter().map(|value| set(&pointer, value.clone()).on(carrier)).collect()
            };
            given = given.iter().flat_map(with).collect();
        }
        self.carriers = given;
        for (name, property) in properties(&condition["then"]) {
            let pointer = format!("/{name}");
            let must = property["const"].clone();
            for value in list(&schema["properties"][name], "enum") {
                if *value == must {
                    self.passes(&pointer, must.clone());
                } else {
                    self.fails(&pointer, value.clone());
                }
            }
        }
    }
}

/// The `nth` item of an array; past the last value of an enumeration, one that came before.
fn item(schema: &Json, nth: usize) -> Json {
    let values = list(&schema["items"], "enum");
    if values.is_empty() {
        sample(&schema["items"], nth)
    } else {
        values[nth % values.len()].clone()
    }
}
