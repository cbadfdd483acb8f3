//! Changes documents in ways that may make them wrong. Never decides whether they are. The changes
//! are below: of any value by its schema, and of what has a meaning of its own.

#[path = "mutation/meaning.rs"]
mod meaning;
#[path = "mutation/place.rs"]
mod place;
#[path = "mutation/value.rs"]
mod value;

use serde_json::Value as Json;

use self::meaning::{
    add_variant, change_condition, change_context, change_extensions, change_free_data, change_type,
};
pub(crate) use self::place::{Place, places, replace};
use self::value::{
    add_unknown_field, drop_value, empty_something, go_beyond_bound, make_again,
    put_bad_value_of_enum, put_null, put_text_at_bound, put_tricky_string, put_wrong_type,
    repeat_item, replace_document, respell_number,
};
use crate::rng::Rng;
use crate::samples::Pools;

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
