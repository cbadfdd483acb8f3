//! Changes of what has a meaning of its own: languages, extensions, contexts, types, and the fields
//! that rules across fields look at.

use aaep::{CORE_CONTEXT, extension};
use serde_json::{Map, Value as Json, json};

use super::place::{pick_place, replace};
use crate::generator::{Maker, text_of, word_of};
use crate::rng::Rng;
use crate::samples::Pools;

/// Words in another language, under names that are right, nearly right and wrong.
pub(super) fn add_variant(document: &mut Json, schema: &Json, pools: &Pools, rng: &mut Rng) {
    const SUFFIXES: &[&str] = &[
        "_yo",
        "_zz-ZZ-x",
        "_zz-ZZ-x-a",
        "_",
        "__",
        "_yo_",
        "_-yo",
        "-yo",
        "_YO",
        "_zh_Hans_CN",
        "_zh-Hans_CN",
        "_zh_cmn_Hans_CN",
        "_x_a",
        "_x",
        "_a_DE",
        "_i_klingon",
        "_en_GB_oed",
        "_de_1996_1996",
        "_de-1996_1996",
        "_en_a_bbb_A_ccc",
        "_en_a_bbb",
        "_message",
        "_abcdefghi",
        "_yo\n",
        "_ÿo",
        "_😀",
        "yo",
        "_e",
        "_419",
        "_en_419",
        "_sgn_BE_FR",
    ];
    let words: Vec<&str> = schema
        .get("patternProperties")
        .and_then(Json::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(pattern, _)| word_of(pattern))
        .collect();
    let word =
        if words.is_empty() || rng.chance(10) { "summary_normal" } else { *rng.pick(&words) };
    let text = match rng.below(12) {
        0 => json!(""),
        1 => json!(null),
        2 => json!(["Ẹ káàárọ̀"]),
        3 => text_of(4097, rng).into(),
        4 => text_of(4096, rng).into(),
        5 if rng.chance(40) => text_of(16385, rng).into(),
        _ => json!("Ẹ káàárọ̀"),
    };
    if let Some(fields) = document.as_object_mut() {
        if rng.chance(20) {
            let mut maker = Maker { pools, rng, fullness: 0, has_delivery: false };
            fields.extend(maker.variant(schema));
        } else {
            fields.insert(format!("{word}{}", rng.pick(SUFFIXES)), text);
        }
    }
}

/// Reserved and odd prefixes, data that is no object, and many prefixes at once.
pub(super) fn change_extensions(document: &mut Json, schema: &Json, pools: &Pools, rng: &mut Rng) {
    let prefixes = pools.prefixes();
    let holds_extensions = |value: &Json, schema: Option<&Json>| {
        let is_open = |schema: &Json| {
            schema.get("additionalProperties").is_some_and(Json::is_object)
                || schema.pointer("/properties/extensions").is_some()
        };
        value.is_object() && schema.is_some_and(is_open)
    };
    let Some(place) = pick_place(document, schema, rng, holds_extensions) else { return };
    let has_own = place.schema.is_some_and(|one| one.pointer("/properties/extensions").is_some());
    let Some(Json::Object(fields)) = document.pointer_mut(&place.pointer()) else { return };
    let map = if has_own {
        let extensions = fields.entry("extensions").or_insert_with(|| json!({}));
        let Some(map) = extensions.as_object_mut() else { return };
        map
    } else {
        fields
    };
    let values = [json!({}), json!({ "a": 1 }), json!(null), json!(7), json!([]), json!("x")];
    let data = rng.pick(&values);
    match rng.below(10) {
        0..=3 => drop(map.insert(rng.pick(&prefixes.tricky).clone(), json!({}))),
        4 | 5 => drop(map.insert(rng.pick(&prefixes.usual).clone(), data.clone())),
        6 => drop(map.insert(extension::PREFIX.to_owned(), data.clone())),
        7 => (0..rng.below(40)).for_each(|number| {
            map.insert(format!("many{number}"), json!({}));
        }),
        8 if rng.chance(20) => (0..70).for_each(|number| {
            map.insert(format!("crowd{number}"), json!({}));
        }),
        _ => drop(map.insert(rng.pick(&prefixes.usual).clone(), json!({}))),
    }
}

pub(super) fn change_context(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
    if schema.pointer("/properties/@context").is_none() && rng.chance(80) {
        return;
    }
    let extra = "https://example.org/vocabulary/9";
    let contexts = [
        json!(CORE_CONTEXT),
        json!([CORE_CONTEXT]),
        json!([CORE_CONTEXT, extra]),
        json!([CORE_CONTEXT, extra, extra]),
        json!([CORE_CONTEXT, CORE_CONTEXT]),
        json!([CORE_CONTEXT, extension::CONTEXT]),
        json!([extra, CORE_CONTEXT]),
        json!([extra]),
        json!(extra),
        json!([]),
        json!(""),
        json!({}),
        json!(null),
        json!([CORE_CONTEXT, "not a uri"]),
        json!([CORE_CONTEXT, 7]),
        json!([CORE_CONTEXT, null]),
        json!([CORE_CONTEXT, { "medai": extra }]),
        json!([[CORE_CONTEXT]]),
        json!(format!("{CORE_CONTEXT}/")),
        json!(CORE_CONTEXT.replace("https", "http")),
    ];
    if let Some(fields) = document.as_object_mut() {
        fields.insert("@context".to_owned(), rng.pick(&contexts).clone());
    }
}

pub(super) fn change_type(document: &mut Json, schema: &Json, pools: &Pools, rng: &mut Rng) {
    const TYPES: &[&str] = &[
        "aaep:agent.session.started",
        "https://aaep-protocol.org/types/agent.session.started",
        "https://aaep-protocol.org/types/agent.awaiting.confirmation",
        "aaep:agent.tool.invoked",
        "aaep:producer.manifest",
        "https://aaep-protocol.org/types/producer.manifest",
        "producer.manifest",
        "subscription.request",
        "subscription.close",
        "Subscription.request",
        "confirmation.reply",
        "medai:patient.waited",
        "aaep:agent.slept",
        "http://[",
        "x:a b",
        "",
    ];
    let form = schema.pointer("/properties/type").and_then(|one| pools.of(one));
    let value = match form {
        Some(samples) if rng.chance(70) => rng.pick(&samples.tricky).as_str(),
        _ => rng.pick(TYPES),
    };
    if let Some(fields) = document.as_object_mut() {
        fields.insert("type".to_owned(), value.into());
    }
}

/// Free data that is deep, long, or full of numbers that are too big; unbounded texts that are long.
pub(super) fn change_free_data(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
    let is_free = |value: &Json, schema: Option<&Json>| {
        let takes_all = |schema: &Json| {
            let bounds = ["properties", "propertyNames", "maxLength", "pattern", "enum", "const"];
            let type_fits = (schema["type"] == "object" && value.is_object())
                || (schema["type"] == "string" && value.is_string());
            type_fits && bounds.iter().all(|bound| schema.get(bound).is_none())
        };
        schema.is_some_and(takes_all)
    };
    let Some(place) = pick_place(document, schema, rng, is_free) else { return };
    let is_text = document.pointer(&place.pointer()).is_some_and(Json::is_string);
    let deep = |levels: usize| (0..levels).fold(json!({}), |inside, _| json!({ "in": inside }));
    let value = match rng.below(8) {
        0 if is_text => text_of(16385, rng).into(),
        1 if is_text => text_of(16384, rng).into(),
        _ if is_text => text_of(300, rng).into(),
        0 => json!({ "long": text_of(16385, rng) }),
        1 => json!({ "number": 9_007_199_254_740_993_u64, "other": 1e300 }),
        2 => Json::Object((0..70).map(|n| (format!("n{n}"), json!(1e300))).collect::<Map<_, _>>()),
        3 => deep(70),
        4 => deep(9),
        5 => deep(5),
        6 => {
            json!({ "big": text_of(16384, rng), "and": text_of(16384, rng), "so": "ẹ".repeat(16384) })
        }
        _ => deep(6),
    };
    replace(document, &place, value);
}

/// The fields that rules across fields look at.
pub(super) fn change_condition(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
    let changes = [
        ("irreversible", json!(true)),
        ("irreversible", json!(false)),
        ("reversibility", json!("irreversible")),
        ("reversibility", json!("reversible")),
        ("risk_level", json!("low")),
        ("risk_level", json!("medium")),
        ("risk_level", json!("high")),
        ("default_decision", json!("accept")),
        ("default_decision", json!("reject")),
        ("accepted_response_kinds", json!(["multiple_choice"])),
        ("accepted_response_kinds", json!(["freetext", "multiple_choice"])),
        ("accepted_response_kinds", json!(["yes_no"])),
        ("choices", json!([{ "value": "tea", "label": "A cup of tea" }])),
        (
            "choices",
            json!([{ "value": "tea", "label": "Tea" }, { "value": "mate", "label": "Mate" }]),
        ),
        (
            "choices",
            json!([{ "value": "tea", "label": "Tea" }, { "label": "Tea", "value": "tea" }]),
        ),
        ("urgency", json!("normal")),
        ("urgency", json!("critical")),
        ("progress", json!({})),
        ("supported_conformance_levels", json!([1, 1.0])),
        ("supported_conformance_levels", json!([2, 3])),
    ];
    let Some(place) = pick_place(document, schema, rng, |value, schema| {
        let knows = |schema: &Json| {
            changes.iter().any(|(key, _)| schema.pointer(&format!("/properties/{key}")).is_some())
        };
        value.is_object() && schema.is_some_and(knows)
    }) else {
        return;
    };
    let fitting: Vec<_> = changes
        .iter()
        .filter(|(key, _)| {
            place.schema.is_some_and(|one| one.pointer(&format!("/properties/{key}")).is_some())
        })
        .collect();
    for _ in 0..=rng.below(3) {
        let (key, value) = *rng.pick(&fitting);
        if let Some(Json::Object(fields)) = document.pointer_mut(&place.pointer()) {
            fields.insert((*key).to_owned(), value.clone());
        }
    }
}
