//! Changes a document in one place at a time, in every way that its schema gives cause to. Never
//! decides what becomes of it.

use std::collections::HashSet;

use serde_json::{Value as Json, json};

use crate::generator::{Maker, word_of};
use crate::mutation::{places, replace};
use crate::samples::form_of;

/// The document itself, and every change of it. Inherited fields are only looked at; forms that
/// were `seen` before get only a few of their samples.
pub(crate) fn changes(
    document: &Json,
    schema: &Json,
    maker: &mut Maker<'_>,
    (inherited, seen): (&[String], &mut HashSet<String>),
) -> Vec<Json> {
    let mut changed = vec![document.clone()];
    for place in places(document, schema) {
        let Some(here) = place.schema else { continue };
        let Some(field) = place.steps.first() else { continue };
        let value = document.pointer(&place.pointer()).unwrap_or(&Json::Null);
        changed.extend(without(document, &place.steps));
        let instead = if inherited.contains(field) {
            vec![Json::Null]
        } else {
            instead_of(value, here, maker, seen)
        };
        for instead in instead {
            let mut document = document.clone();
            replace(&mut document, &place, instead);
            changed.push(document);
        }
    }
    let mut stranger = document.clone();
    stranger["mood"] = json!("fine");
    changed.push(stranger);
    changed.extend(with_variants(document, schema));
    if document.get("default_decision").is_some() {
        changed.extend(with_defaults(document));
    }
    changed
}

fn without(document: &Json, steps: &[String]) -> Option<Json> {
    let mut document = document.clone();
    let (last, parents) = steps.split_last()?;
    let parent = parents.iter().try_fold(&mut document, |value, step| match value {
        Json::Object(fields) => fields.get_mut(step),
        Json::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    })?;
    match parent {
        Json::Object(fields) => drop(fields.remove(last)),
        Json::Array(items) => drop(items.remove(last.parse().ok()?)),
        _ => return None,
    }
    Some(document)
}

/// What could stand in place of a value that this schema describes.
fn instead_of(
    value: &Json,
    schema: &Json,
    maker: &mut Maker<'_>,
    seen: &mut HashSet<String>,
) -> Vec<Json> {
    let mut instead =
        vec![json!(null), json!(true), json!(7), json!("x"), json!([]), json!({}), json!(0.5)];
    for words in [schema.get("enum"), schema.get("const")] {
        instead.extend(words.and_then(Json::as_array).into_iter().flatten().cloned());
        if words.is_some() {
            instead.extend(["normal", "low", "quite another", ""].map(Json::from));
        }
    }
    if let Some(samples) = maker.pools.of(schema) {
        // All of them where the form is met first, then a few in turn.
        let is_new = seen.insert(form_of(schema).unwrap_or_default());
        let few = if is_new { usize::MAX } else { 6 };
        let start = if is_new { 0 } else { maker.rng.below(samples.tricky.len()) };
        let tricky = samples.tricky.iter().cycle().skip(start).take(samples.tricky.len().min(few));
        let picked = samples.usual.iter().take(few).chain(tricky);
        instead.extend(picked.map(|text| Json::from(text.as_str())));
    }
    let bound = |keyword: &str| schema.get(keyword).and_then(Json::as_u64);
    let text = |length: u64| "ẹ".repeat(usize::try_from(length).expect("short")).into();
    if value.is_string() && maker.pools.of(schema).is_none() {
        let lengths = [bound("minLength"), bound("maxLength")].into_iter().flatten();
        instead.extend(lengths.flat_map(|at| [at.saturating_sub(1), at, at + 1]).map(text));
    }
    for at in [bound("minimum"), bound("maximum")].into_iter().flatten() {
        let at = i64::try_from(at).expect("within 2^53");
        instead.extend([json!(at - 1), json!(at), json!(at + 1)]);
        instead.extend(i32::try_from(at).map(|at| json!(f64::from(at) + 0.25)));
        instead.extend(i32::try_from(at).map(|at| json!(f64::from(at))));
    }
    if let Json::Array(items) = value {
        for at in [bound("minItems").unwrap_or(1), bound("maxItems").unwrap_or(40)] {
            for count in [at.saturating_sub(1), at, at + 1] {
                instead.push(maker.items(schema, count).into());
            }
        }
        instead.push(items.iter().chain(items.first()).cloned().collect());
        instead.push(json!([1, 1.0]));
    }
    if let Json::Object(fields) = value {
        let odd = maker.pools.prefixes().tricky.iter().map(|prefix| (prefix.as_str(), json!({})));
        let odd = odd.filter(|_| schema.get("propertyNames").is_some());
        let unknown = [("mood", json!("fine")), ("aaep_x", json!({})), ("@id", json!({}))];
        for (key, data) in unknown.into_iter().chain(odd) {
            let mut fields = fields.clone();
            fields.insert(key.to_owned(), data);
            instead.push(fields.into());
        }
    }
    instead
}

/// The document with each of its words in another language, short, long and wrong.
fn with_variants(document: &Json, schema: &Json) -> Vec<Json> {
    let mut changed = Vec::new();
    for (pattern, field) in schema["patternProperties"].as_object().into_iter().flatten() {
        let Some(word) = word_of(pattern) else { continue };
        let max = usize::try_from(field["maxLength"].as_u64().unwrap_or(16384)).expect("short");
        for text in [0, 1, max - 1, max, max + 1].map(|length| json!("ẹ".repeat(length))) {
            let mut document = document.clone();
            document[format!("{word}_yo")] = text;
            changed.push(document);
        }
        for suffix in ["_yo_NG", "_zh-Hans", "_", "_e", "yo", "_de_1996_1996"] {
            let mut document = document.clone();
            document[format!("{word}{suffix}")] = json!("Ẹ káàárọ̀");
            changed.push(document);
        }
        let mut wrong = document.clone();
        wrong[format!("{word}_yo")] = json!(7);
        changed.push(wrong);
    }
    changed
}

/// The document with every combination of what decides whether a default is safe.
fn with_defaults(document: &Json) -> Vec<Json> {
    let fields = [
        ("default_decision", vec![json!("accept"), json!("reject")]),
        ("irreversible", vec![json!(null), json!(true), json!(false)]),
        ("risk_level", vec![json!(null), json!("low"), json!("medium"), json!("high")]),
        (
            "reversibility",
            vec![
                json!(null),
                json!("reversible"),
                json!("reversible_with_effort"),
                json!("irreversible"),
            ],
        ),
    ];
    fields.iter().fold(vec![document.clone()], |documents, (field, values)| {
        let with = |document: &Json, value: &Json| {
            let mut fields = document.as_object().cloned().unwrap_or_default();
            // Null stands for a field that is not there.
            match value {
                Json::Null => fields.remove(*field),
                value => fields.insert((*field).to_owned(), value.clone()),
            };
            Json::from(fields)
        };
        let each =
            |document: &Json| values.iter().map(|value| with(document, value)).collect::<Vec<_>>();
        documents.iter().flat_map(each).collect()
    })
}
