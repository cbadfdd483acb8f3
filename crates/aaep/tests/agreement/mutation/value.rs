//! Changes of a value by what its schema says: dropped, of another type, beyond a bound, respelt.

use serde_json::{Value as Json, json};

use super::place::{pick_place, replace};
use crate::generator::{Maker, text_of};
use crate::rng::Rng;
use crate::samples::Pools;

pub(super) fn drop_value(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
    let Some(mut place) = pick_place(document, schema, rng, |_, schema| schema.is_some()) else {
        return;
    };
    let Some(last) = place.steps.pop() else { return };
    match document.pointer_mut(&place.pointer()) {
        Some(Json::Object(fields)) => drop(fields.remove(&last)),
        Some(Json::Array(items)) => drop(items.remove(last.parse().expect("an index"))),
        _ => {}
    }
}

pub(super) fn add_unknown_field(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
    const NAMES: &[&str] = &[
        "mood",
        "aaep_x",
        "aaep_",
        "@id",
        "@graph",
        "@base",
        "@vocab",
        "@type",
        "",
        "Type",
        "type",
        "naïve",
        "😀",
        "EVENT_ID",
        "other",
        "summary",
        "constructor",
        "$ref",
        "a/b~c",
        "extension",
    ];
    let Some(place) = pick_place(document, schema, rng, |value, _| value.is_object()) else {
        return;
    };
    let value =
        rng.pick(&[json!(7), json!({}), json!("x"), json!(null), json!({ "a": [] })]).clone();
    if let Some(Json::Object(fields)) = document.pointer_mut(&place.pointer()) {
        fields.insert((*rng.pick(NAMES)).to_owned(), value);
    }
}

pub(super) fn put_wrong_type(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
    let values = [
        json!(true),
        json!(3),
        json!("x"),
        json!([]),
        json!({}),
        json!(0.5),
        json!(["x"]),
        json!({ "a": 1 }),
        json!("3"),
        json!([{}]),
    ];
    if let Some(place) = pick_place(document, schema, rng, |_, schema| schema.is_some())
        && !place.steps.is_empty()
    {
        replace(document, &place, rng.pick(&values).clone());
    }
}

pub(super) fn put_null(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
    if let Some(place) = pick_place(document, schema, rng, |_, _| true)
        && !place.steps.is_empty()
    {
        replace(document, &place, Json::Null);
    }
}

/// One past a bound: of a length, of a number, of a list.
pub(super) fn go_beyond_bound(document: &mut Json, schema: &Json, pools: &Pools, rng: &mut Rng) {
    const BOUNDS: &[&str] =
        &["minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"];
    let Some(place) = pick_place(document, schema, rng, |_, schema| {
        schema.is_some_and(|schema| BOUNDS.iter().any(|bound| schema.get(bound).is_some()))
    }) else {
        return;
    };
    let Some(schema) = place.schema else { return };
    let has: Vec<&str> =
        BOUNDS.iter().copied().filter(|bound| schema.get(bound).is_some()).collect();
    let keyword = *rng.pick(&has);
    let bound = schema[keyword].as_u64().unwrap_or(0);
    let value = match keyword {
        "minLength" => text_of(bound.saturating_sub(1), rng).into(),
        "maxLength" if bound > 2000 && rng.chance(75) => return,
        "maxLength" => text_of(bound + 1, rng).into(),
        "minimum" if bound == 0 => rng.pick(&[json!(-1), json!(-0.001), json!(-5e15)]).clone(),
        "minimum" => (bound - 1).into(),
        "maximum" => rng.pick(&[json!(bound + 1), json!(bound + 1000)]).clone(),
        "minItems" => Json::Array(
            document
                .pointer(&place.pointer())
                .and_then(Json::as_array)
                .into_iter()
                .flatten()
                .take(usize::try_from(bound.saturating_sub(1)).expect("small"))
                .cloned()
                .collect(),
        ),
        _ => {
            let mut maker = Maker { pools, rng, fullness: 50, has_delivery: false };
            maker.items(schema, bound + 1).into()
        }
    };
    replace(document, &place, value);
}

pub(super) fn put_bad_value_of_enum(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
    let Some(place) = pick_place(document, schema, rng, |_, schema| {
        schema.is_some_and(|schema| schema.get("enum").or_else(|| schema.get("const")).is_some())
    }) else {
        return;
    };
    let Some(right) = document.pointer(&place.pointer()).and_then(Json::as_str) else { return };
    let value = match rng.below(8) {
        0 => right.to_uppercase(),
        1 => format!("{right} "),
        2 => String::new(),
        3 => format!("{right}s"),
        4 => "critical".to_owned(),
        5 => "low".to_owned(),
        6 => "unknown".to_owned(),
        _ => "quite another".to_owned(),
    };
    replace(document, &place, value.into());
}

pub(super) fn put_tricky_string(document: &mut Json, schema: &Json, pools: &Pools, rng: &mut Rng) {
    let has_form = |_: &Json, schema: Option<&Json>| schema.and_then(|one| pools.of(one)).is_some();
    if let Some(place) = pick_place(document, schema, rng, has_form)
        && let Some(samples) = place.schema.and_then(|schema| pools.of(schema))
    {
        replace(document, &place, rng.pick(&samples.tricky).as_str().into());
    }
}

/// The same item once more, perhaps spelt otherwise.
pub(super) fn repeat_item(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
    let full = |value: &Json, _: Option<&Json>| value.as_array().is_some_and(|all| !all.is_empty());
    let Some(place) = pick_place(document, schema, rng, full) else { return };
    if let Some(Json::Array(items)) = document.pointer_mut(&place.pointer()) {
        let mut again = rng.pick(items).clone();
        if rng.chance(40) {
            again = match &again {
                Json::String(text) => text.to_uppercase().into(),
                Json::Number(number) => number.as_f64().into(),
                _ => again,
            };
        }
        let at = rng.below(items.len() + 1);
        items.insert(at, again);
    }
}

pub(super) fn empty_something(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
    let Some(place) = pick_place(document, schema, rng, |_, schema| schema.is_some()) else {
        return;
    };
    let empty = match document.pointer(&place.pointer()) {
        Some(Json::Object(_)) if !place.steps.is_empty() => json!({}),
        Some(Json::Array(_)) => json!([]),
        Some(Json::String(_)) => json!(""),
        _ => return,
    };
    replace(document, &place, empty);
}

/// A text of exactly the greatest or least length, counted in code points.
pub(super) fn put_text_at_bound(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
    let has_bound = |_: &Json, schema: Option<&Json>| {
        schema.is_some_and(|one| one.get("maxLength").is_some() && one.get("pattern").is_none())
    };
    let Some(place) = pick_place(document, schema, rng, has_bound) else { return };
    let Some(max) = place.schema.and_then(|schema| schema["maxLength"].as_u64()) else { return };
    let length = if max > 2000 && rng.chance(80) { 1 } else { max };
    replace(document, &place, text_of(length, rng).into());
}

pub(super) fn respell_number(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
    let numbers = [
        json!(3.0),
        json!(-3),
        json!(1000.0),
        json!(-0.0),
        json!(0),
        json!(0.0),
        json!(2.5),
        json!(1e15),
        json!(9_007_199_254_740_991_u64),
        json!(9_007_199_254_740_992_u64),
        json!(9_007_199_254_740_993_u64),
        json!(9_007_199_254_740_992.0),
        json!(1e16),
        json!(1e300),
        json!(5e-324),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1.000_000_000_000_000_2),
        json!(100.000_000_000_000_01),
    ];
    if let Some(place) = pick_place(document, schema, rng, |value, _| value.is_number()) {
        replace(document, &place, rng.pick(&numbers).clone());
    }
}

/// A declared field made anew, whether it was there or not.
pub(super) fn make_again(document: &mut Json, schema: &Json, pools: &Pools, rng: &mut Rng) {
    let Some(place) = pick_place(document, schema, rng, |value, schema| {
        value.is_object() && schema.is_some_and(|schema| schema.get("properties").is_some())
    }) else {
        return;
    };
    let Some(properties) = place.schema.and_then(|one| one["properties"].as_object()) else {
        return;
    };
    let fields: Vec<_> = properties.iter().collect();
    let (key, field) = *rng.pick(&fields);
    let mut maker = Maker { pools, rng, fullness: 50, has_delivery: false };
    let value = maker.value(field);
    if let Some(Json::Object(fields)) = document.pointer_mut(&place.pointer()) {
        fields.insert(key.clone(), value);
    }
}

pub(super) fn replace_document(document: &mut Json, _: &Json, _: &Pools, rng: &mut Rng) {
    let values =
        [json!([]), json!("x"), json!(7), json!(null), json!({}), json!([{}]), json!(true)];
    *document = rng.pick(&values).clone();
}
