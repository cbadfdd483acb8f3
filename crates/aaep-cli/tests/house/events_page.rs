//! `docs/events.md`: the twelve events with every field, written from the declarations in `aaep`.

use std::path::Path;

use aaep_engine::FILLED_FIELDS;
use serde_json::{Value, json};

use super::{add, is_page_true, read};

/// Where the public specification is.
const SPECIFICATION: &str = "https://github.com/Ramseyxlil/aaep/blob/main/spec/";

/// The families of chapter 4, with the section of each.
const FAMILIES: [(&str, &str); 4] = [
    ("4.1", "How sessions begin and end"),
    ("4.2", "What the agent is busy with"),
    ("4.3", "Tools and output"),
    ("4.4", "What needs a person"),
];

const OPENING: &str = "\
# The twelve events

Everything that an agent can tell, with every field. This page is written from the declarations that `aaep validate`
and the hub check events with, so it says exactly what they say.

An event is one JSON object: the fields that [all events have](#what-every-event-has), and those of its type. A field
that is not listed is refused; data of your own goes into `extensions`, under a prefix that `@context` declares.
`[]` in the name of a field stands for each item of a list.

When you publish to a hub, you can leave out these fields, and the hub fills them in: FILLED_FIELDS. Ids may have any form
of your own; the hub gives them the form below and keeps yours in its extension. [agents.md](agents.md) shows how to
publish, [validate.md](validate.md) how to check what you wrote, [openapi.yaml](openapi.yaml) has the same for generators
of clients, and `aaep schema --bundle --out DIR` writes JSON Schemas that need no network.

The section signs lead to the public specification.

";

#[test]
fn the_page_of_events_is_true() {
    is_page_true(Path::new("docs/events.md"), &page());
}

/// The schema at this path, which comes from the declaration.
pub(crate) fn schema(path: &str) -> Value {
    let found = aaep::schemas().into_iter().find(|file| file.path == path);
    found.unwrap_or_else(|| panic!("there is no schema {path}")).schema
}

/// The schemas of the twelve events, in the order of chapter 4.
pub(crate) fn events() -> Vec<Value> {
    let is_event = |file: &aaep::SchemaFile| file.path.starts_with("core/");
    aaep::schemas().into_iter().filter(is_event).map(|file| file.schema).collect()
}

fn page() -> String {
    let filled = FILLED_FIELDS.map(|field| format!("`{field}`")).join(", ");
    let mut page = OPENING.replace("FILLED_FIELDS", &filled);
    let events = events();
    assert_eq!(events.len(), 12);
    let mut family = "";
    for event in &events {
        let name = type_name(event);
        let (about, section) = about_and_section(event);
        let (number, title) = FAMILIES
            .into_iter()
            .find(|(number, _)| section.starts_with(number))
            .unwrap_or_else(|| panic!("{name} is of no family"));
        if number != family {
            add(&mut page, &format!("## {title}\n\n"));
            family = number;
        }
        add(
            &mut page,
            &format!(
                "### `{name}`\n\n{about} ([§{section}]({SPECIFICATION}04-core-event-types.md#{}))\n\n",
                anchor(&section, &name)
            ),
        );
        page.push_str(&table(event));
        let words = words(event);
        if !words.is_empty() {
            add(
                &mut page,
                &format!(
                    "\nIn other languages too, as in `{}_yo` for Yoruba: {}.\n",
                    words.iter().find(|it| *it == "summary_normal").unwrap_or(&words[0]),
                    words.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
                ),
            );
        }
        add(&mut page, &format!("\n```json\n{}\n```\n\n", example(&name)));
    }
    add(
        &mut page,
        &format!(
            "## What every event has\n\nThe envelope, whatever the type ([chapter 3]({SPECIFICATION}03-event-envelope.md)).\n\n"
        ),
    );
    page.push_str(&table(&schema("envelope.schema.json")));
    page
}

/// The name by which an event is written.
pub(crate) fn type_name(event: &Value) -> String {
    event["properties"]["type"]["enum"][0].as_str().expect("a name").to_owned()
}

/// What the event tells, and the section that defines it.
fn about_and_section(event: &Value) -> (String, String) {
    let text = event["description"].as_str().expect("a description");
    let (about, rest) = text.split_once(" (§").expect("a section");
    (format!("{about}."), rest.trim_end_matches([')', '.']).to_owned())
}

/// The place of a heading such as "4.1.1 `aaep:agent.session.started`", as GitHub names it.
fn anchor(section: &str, name: &str) -> String {
    let heading = format!("{section} {name}").to_lowercase().replace(' ', "-");
    heading.chars().filter(|it| it.is_ascii_alphanumeric() || "-_".contains(*it)).collect()
}

/// The fields whose words may stand there in other languages.
fn words(event: &Value) -> Vec<String> {
    let patterns = event["patternProperties"].as_object().into_iter().flatten();
    patterns
        .filter_map(|(_, schema)| {
            schema["description"].as_str()?.split('"').nth(1).map(str::to_owned)
        })
        .collect()
}

fn table(schema: &Value) -> String {
    let mut rows = Vec::new();
    add_rows("", schema, &mut rows);
    let mut table =
        "| field | needed | what it holds | what it is for |\n|---|---|---|---|\n".to_owned();
    for row in rows {
        add(&mut table, &format!("| {} |\n", row.map(|cell| cell.replace('|', "\\|")).join(" | ")));
    }
    table
}

/// A row for each field, the required ones first, and after each the fields inside it.
fn add_rows(prefix: &str, schema: &Value, rows: &mut Vec<[String; 4]>) {
    let properties = schema["properties"].as_object().expect("fields");
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let optional = properties.keys().map(String::as_str).filter(|it| !required.contains(it));
    for name in required.iter().copied().chain(optional) {
        let Some(field) = properties.get(name) else { continue };
        let need = if required.contains(&name) { "yes" } else { "no" };
        let about = field["description"].as_str().unwrap_or_default();
        let place = format!("{prefix}{name}");
        rows.push([format!("`{place}`"), need.to_owned(), kind(field), about.to_owned()]);
        for (inside, prefix) in
            [(field, format!("{place}.")), (&field["items"], format!("{place}[]."))]
        {
            if inside["properties"].is_object() {
                add_rows(&prefix, inside, rows);
            }
        }
    }
}

/// What a field holds, in words.
fn kind(schema: &Value) -> String {
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(|it| format!("`{it}`")).collect();
        return match values.split_last() {
            Some((last, others)) if !others.is_empty() => {
                format!("{} or {last}", others.join(", "))
            }
            _ => values.concat(),
        };
    }
    if let Some(forms) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        return forms.iter().map(kind).collect::<Vec<_>>().join(", or ");
    }
    match schema["type"].as_str().unwrap_or_default() {
        "string" => text_kind(schema),
        "integer" => format!("a whole number{}", range(schema, "minimum", "maximum", "")),
        "number" => format!("a number{}", range(schema, "minimum", "maximum", "")),
        "boolean" => "`true` or `false`".to_owned(),
        "array" => {
            let items = kind(&schema["items"]);
            let once = if schema["uniqueItems"] == json!(true) { ", each once" } else { "" };
            format!("a list{} of: {items}{once}", range(schema, "minItems", "maxItems", " items"))
        }
        "object" => "an object".to_owned(),
        other => panic!("no words for {other:?}: {schema}"),
    }
}

fn text_kind(schema: &Value) -> String {
    let pattern = schema["pattern"].as_str();
    match (schema["format"].as_str(), pattern) {
        (Some("uri"), _) => "a URI".to_owned(),
        (Some("date-time"), _) => "a moment such as `2026-05-24T14:22:11.342Z`".to_owned(),
        // A language tag has a long pattern that says less than its name.
        (_, Some(pattern)) if pattern.len() > 60 => "a BCP 47 language tag".to_owned(),
        (_, Some(pattern)) => format!("text of the form `{pattern}`"),
        (_, None) => format!("text{}", range(schema, "minLength", "maxLength", " characters")),
    }
}

/// The bounds of a number, a length or a list, as far as they say something.
fn range(schema: &Value, least: &str, most: &str, unit: &str) -> String {
    let least = schema[least].as_u64().unwrap_or(0);
    let most = schema[most].as_u64().filter(|most| *most < aaep::MAX_SAFE_INTEGER);
    match (least, most) {
        (0, None) => String::new(),
        (1, None) => ", not empty".to_owned(),
        (least, None) => format!(", at least {least}{unit}"),
        (least, Some(most)) => format!(", {least} to {most}{unit}"),
    }
}

/// An event of the samples, laid out over several lines, `type` and what is needed first.
fn example(name: &str) -> String {
    let samples = ["samples/messages.jsonl", "samples/session.jsonl"].map(|it| read(Path::new(it)));
    let event = samples
        .iter()
        .flat_map(|text| text.lines())
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .find(|message| message["type"] == name)
        .unwrap_or_else(|| panic!("the samples have no {name}"));
    let first = [
        "@context",
        "aaep_version",
        "type",
        "event_id",
        "session_id",
        "sequence_number",
        "timestamp",
        "producer",
    ];
    let fields = event.as_object().expect("an object");
    let (of_envelope, of_type): (Vec<_>, Vec<_>) =
        fields.iter().partition(|(key, _)| first.contains(&key.as_str()));
    let place = |key: &str| first.iter().position(|it| *it == key);
    let mut of_envelope = of_envelope;
    of_envelope.sort_by_key(|(key, _)| place(key));
    let lines: Vec<String> = of_envelope
        .into_iter()
        .chain(of_type)
        .map(|(key, value)| format!("  {}: {value}", json!(key)))
        .collect();
    format!("{{\n{}\n}}", lines.join(",\n"))
}
