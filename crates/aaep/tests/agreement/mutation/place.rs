//! The values of a document, each with the schema that describes it.

use serde_json::Value as Json;

use crate::generator::word_of;
use crate::rng::Rng;

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

/// A place that `fits`; only values that a schema describes, unless `anywhere`.
pub(super) fn pick_place<'s>(
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
