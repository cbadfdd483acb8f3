//! Changes documents in ways that may make them wrong. Never decides whether they are.

use aaep::{CORE_CONTEXT, extension};
use serde_json::{Map, Value as Json, json};

use crate::generator::{Maker, text_of, word_of};
use crate::rng::Rng;
use crate::samples::Pools;

/// One value in a document: where it stands, and the schema that describes it.
#[derive(Debug)]
pub(crate) struct Place<'s> {
    /// The steps from the root, as in a JSON Pointer.
    pub(crate) steps: Vec<String>,
    pub(crate) schema: Option<&'s Json>,
}

impl Place<'_> {
    pub(crate) fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.steps {
            pointer.push('/');
            pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        }
        pointer
    }
}

/// Every place of a document, the root first.
pub(crate) fn places<'s>(document: &Json, schema: &'s Json) -> Vec<Place<'s>> {
    let mut places = Vec::new();
    visit(document, Some(schema), &mut Vec::new(), &mut places);
    places
}

fn visit<'s>(
    value: &Json,
    schema: Option<&'s Json>,
    steps: &mut Vec<String>,
    places: &mut Vec<Place<'s>>,
) {
    let schema = schema.map(|schema| branch_for(value, schema));
    places.push(Place { steps: steps.clone(), schema });
    let mut step = |name: String, value: &Json, schema: Option<&'s Json>| {
        steps.push(name);
        visit(value, schema, steps, places);
        steps.pop();
    };
    match value {
        Json::Object(fields) => {
            for (key, field) in fields {
                step(key.clone(), field, schema.and_then(|schema| field_schema(schema, key)));
            }
        }
        Json::Array(items) => {
            let of_items = schema.and_then(|schema| schema.get("items"));
            for (index, item) in items.iter().enumerate() {
                step(index.to_string(), item, of_items);
            }
        }
        _ => {}
    }
}

/// The branch of a choice of schemas that is about values of this kind.
fn branch_for<'s>(value: &Json, schema: &'s Json) -> &'s Json {
    let kind = match value {
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Number(_) => "number",
        _ => "",
    };
    let branches = schema.get("oneOf").and_then(Json::as_array);
    let branch = branches.and_then(|all| all.iter().find(|branch| branch["type"] == kind));
    branch.unwrap_or(schema)
}

fn field_schema<'s>(schema: &'s Json, key: &str) -> Option<&'s Json> {
    let declared = schema.get("properties").and_then(|properties| properties.get(key));
    let variant = || {
        schema.get("patternProperties")?.as_object()?.iter().find_map(|(pattern, field)| {
            key.strip_prefix(word_of(pattern)?)?.starts_with('_').then_some(field)
        })
    };
    let data = || schema.get("additionalProperties").filter(|data| data.is_object());
    declared.or_else(variant).or_else(data)
}

/// Changes the document in one way.
pub(crate) fn mutate(document: &mut Json, schema: &Json, pools: &Pools, rng: &mut Rng) {
    type Change = fn(&mut Json, &Json, &Pools, &mut Rng);
    const CHANGES: &[(usize, Change)] = &[
        (10, drop_value),
        (8, add_unknown_field),
        (6, put_wrong_type),
        (3, put_null),
        (16, go_beyond_bound),
        (6, put_bad_value_of_enum),
        (20, put_tricky_string),
        (4, repeat_item),
        (4, empty_something),
        (8, put_text_at_bound),
        (6, respell_number),
        (6, add_variant),
        (6, change_extensions),
        (4, change_context),
        (4, change_type),
        (4, change_free_data),
        (9, change_condition),
        (8, make_again),
        (1, replace_document),
    ];
    let total: usize = CHANGES.iter().map(|change| change.0).sum();
    let mut at = rng.below(total);
    for (weight, change) in CHANGES {
        if at < *weight {
            return change(document, schema, pools, rng);
        }
        at -= weight;
    }
}

/// A place that `fits`; only values that a schema describes, unless `anywhere`.
fn pick_place<'s>(
    document: &Json,
    schema: &'s Json,
    rng: &mut Rng,
    fits: impl Fn(&Json, Option<&Json>) -> bool,
) -> Option<Place<'s>> {
    let mut fitting: Vec<Place<'s>> = places(document, schema)
        .into_iter()
        .filter(|place| {
            document.pointer(&place.pointer()).is_some_and(|value| fits(value, place.schema))
        })
        .collect();
    if fitting.is_empty() {
        return None;
    }
    Some(fitting.swap_remove(rng.below(fitting.len())))
}

pub(crate) fn replace(document: &mut Json, place: &Place<'_>, value: Json) {
    if let Some(found) = document.pointer_mut(&place.pointer()) {
        *found = value;
    }
}

fn drop_value(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
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

fn add_unknown_field(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
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

fn put_wrong_type(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
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

fn put_null(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
    if let Some(place) = pick_place(document, schema, rng, |_, _| true)
        && !place.steps.is_empty()
    {
        replace(document, &place, Json::Null);
    }
}

/// One past a bound: of a length, of a number, of a list.
fn go_beyond_bound(document: &mut Json, schema: &Json, pools: &Pools, rng: &mut Rng) {
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

fn put_bad_value_of_enum(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
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

fn put_tricky_string(document: &mut Json, schema: &Json, pools: &Pools, rng: &mut Rng) {
    let has_form = |_: &Json, schema: Option<&Json>| schema.and_then(|one| pools.of(one)).is_some();
    if let Some(place) = pick_place(document, schema, rng, has_form)
        && let Some(samples) = place.schema.and_then(|schema| pools.of(schema))
    {
        replace(document, &place, rng.pick(&samples.tricky).as_str().into());
    }
}

/// The same item once more, perhaps spelt otherwise.
fn repeat_item(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
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

fn empty_something(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
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
fn put_text_at_bound(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
    let has_bound = |_: &Json, schema: Option<&Json>| {
        schema.is_some_and(|one| one.get("maxLength").is_some() && one.get("pattern").is_none())
    };
    let Some(place) = pick_place(document, schema, rng, has_bound) else { return };
    let Some(max) = place.schema.and_then(|schema| schema["maxLength"].as_u64()) else { return };
    let length = if max > 2000 && rng.chance(80) { 1 } else { max };
    replace(document, &place, text_of(length, rng).into());
}

fn respell_number(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
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

/// Words in another language, under names that are right, nearly right and wrong.
fn add_variant(document: &mut Json, schema: &Json, pools: &Pools, rng: &mut Rng) {
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
fn change_extensions(document: &mut Json, schema: &Json, pools: &Pools, rng: &mut Rng) {
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

fn change_context(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
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

fn change_type(document: &mut Json, schema: &Json, pools: &Pools, rng: &mut Rng) {
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
fn change_free_data(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
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
fn change_condition(document: &mut Json, schema: &Json, _: &Pools, rng: &mut Rng) {
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

/// A declared field made anew, whether it was there or not.
fn make_again(document: &mut Json, schema: &Json, pools: &Pools, rng: &mut Rng) {
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

fn replace_document(document: &mut Json, _: &Json, _: &Pools, rng: &mut Rng) {
    let values =
        [json!([]), json!("x"), json!(7), json!(null), json!({}), json!([{}]), json!(true)];
    *document = rng.pick(&values).clone();
}
