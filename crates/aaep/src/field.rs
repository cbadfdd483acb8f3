//! The basic types of fields: text, numbers, booleans, lists, free objects.

use serde_json::{Number, Value as Json, json};

use crate::json::{JsonValue, MAX_SAFE_INTEGER};
use crate::read::{FieldType, MessageReader, Object, PathStep, ValueBounds};
use crate::violation::{Code, quoted};

impl FieldType for String {
    fn read<'t>(
        value: JsonValue<'t, '_>,
        bounds: &ValueBounds,
        reader: &mut MessageReader<'t>,
    ) -> Option<Self> {
        let Some(text) = value.as_str() else {
            return reader.wrong_type("a string", value.kind());
        };
        check_length(text, bounds, reader);
        Some(text.to_owned())
    }

    fn schema(bounds: &ValueBounds) -> Json {
        let mut schema = json!({ "type": "string" });
        if bounds.min > 0 {
            schema["minLength"] = bounds.min.into();
        }
        if bounds.max < u64::MAX {
            schema["maxLength"] = bounds.max.into();
        }
        schema
    }
}

/// Checks a length in characters (code points), so that no script has less room than another.
pub(crate) fn check_length(text: &str, bounds: &ValueBounds, reader: &mut MessageReader<'_>) {
    let bytes = text.len() as u64;
    // Counting is needed only if a string has more bytes than it may have characters.
    if bytes > bounds.max {
        let length = text.chars().count() as u64;
        if length > bounds.max {
            let problem = format!("{length} characters are more than {}.", bounds.max);
            reader.tolerable(Code::TooLong, problem);
        }
    } else if bytes < bounds.min {
        reader.tolerable(Code::TooShort, "The text is empty.".to_owned());
    }
}

impl FieldType for bool {
    fn read<'t>(
        value: JsonValue<'t, '_>,
        _: &ValueBounds,
        reader: &mut MessageReader<'t>,
    ) -> Option<Self> {
        value.as_bool().or_else(|| reader.wrong_type("true or false", value.kind()))
    }

    fn schema(_: &ValueBounds) -> Json {
        json!({ "type": "boolean" })
    }
}

impl FieldType for u64 {
    fn read<'t>(
        value: JsonValue<'t, '_>,
        bounds: &ValueBounds,
        reader: &mut MessageReader<'t>,
    ) -> Option<Self> {
        let Some(number) = value.as_number() else {
            return reader.wrong_type("a whole number", value.kind());
        };
        let Some(whole) = as_whole(number) else {
            let problem = format!("{number} is not a whole number of 0 or more.");
            reader.error(Code::OutOfRange, problem);
            return None;
        };
        if whole < bounds.min || whole > bounds.max {
            reader.tolerable(Code::OutOfRange, out_of_range(number, bounds));
        }
        Some(whole)
    }

    fn schema(bounds: &ValueBounds) -> Json {
        let max = bounds.max.min(MAX_SAFE_INTEGER);
        json!({ "type": "integer", "minimum": bounds.min, "maximum": max })
    }
}

/// The number as an integer; 3.0 is 3, as in JSON Schema.
fn as_whole(number: &Number) -> Option<u64> {
    number.as_u64().or_else(|| {
        let float = number.as_f64()?;
        #[expect(clippy::cast_precision_loss, reason = "2^53 is exact as a double")]
        let fits = float.fract() == 0.0 && (0.0..=MAX_SAFE_INTEGER as f64).contains(&float);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above"
        )]
        fits.then_some(float as u64)
    })
}

fn out_of_range(number: &Number, bounds: &ValueBounds) -> String {
    let (min, max) = (bounds.min, bounds.max);
    if max == u64::MAX {
        format!("{number} is less than {min}.")
    } else {
        format!("{number} is not between {min} and {max}.")
    }
}

/// A number that need not be an integer. Its notation is kept: 60 stays 60.
impl FieldType for Number {
    fn read<'t>(
        value: JsonValue<'t, '_>,
        bounds: &ValueBounds,
        reader: &mut MessageReader<'t>,
    ) -> Option<Self> {
        let Some(number) = value.as_number() else {
            return reader.wrong_type("a number", value.kind());
        };
        let float = number.as_f64().unwrap_or(f64::NAN);
        #[expect(clippy::cast_precision_loss, reason = "the bounds of such fields are small")]
        let fits = (bounds.min as f64..=bounds.max as f64).contains(&float);
        if !fits {
            reader.tolerable(Code::OutOfRange, out_of_range(number, bounds));
        }
        Some(number.clone())
    }

    fn schema(bounds: &ValueBounds) -> Json {
        json!({ "type": "number", "minimum": bounds.min, "maximum": bounds.max })
    }
}

impl FieldType for Object {
    fn read<'t>(
        value: JsonValue<'t, '_>,
        _: &ValueBounds,
        reader: &mut MessageReader<'t>,
    ) -> Option<Self> {
        match value.kind() {
            crate::json::JsonKind::Object => Some(value.to_map()),
            other => reader.wrong_type("an object", other),
        }
    }

    fn schema(_: &ValueBounds) -> Json {
        json!({ "type": "object" })
    }
}

impl<T: FieldType> FieldType for Vec<T> {
    fn read<'t>(
        value: JsonValue<'t, '_>,
        bounds: &ValueBounds,
        reader: &mut MessageReader<'t>,
    ) -> Option<Self> {
        if value.kind() != crate::json::JsonKind::Array {
            return reader.wrong_type("an array", value.kind());
        }
        let length = value.items().count();
        if length < bounds.min_items {
            let problem = format!("{length} items are fewer than {}.", bounds.min_items);
            reader.tolerable(Code::TooFewItems, problem);
        }
        if length > bounds.max_items {
            let problem = format!("{length} items are more than {}.", bounds.max_items);
            reader.tolerable(Code::TooManyItems, problem);
        }
        if bounds.unique {
            check_unique(value, reader);
        }
        let mut items = Vec::with_capacity(length);
        for (index, item) in value.items().enumerate() {
            items.extend(
                reader.within(PathStep::Index(index), None, |reader| T::read(item, bounds, reader)),
            );
        }
        (items.len() == length).then_some(items)
    }

    fn schema(bounds: &ValueBounds) -> Json {
        let mut schema = json!({ "type": "array", "items": T::schema(bounds) });
        if bounds.min_items > 0 {
            schema["minItems"] = bounds.min_items.into();
        }
        if bounds.max_items < usize::MAX {
            schema["maxItems"] = bounds.max_items.into();
        }
        if bounds.unique {
            schema["uniqueItems"] = true.into();
        }
        schema
    }
}

/// How many items other than strings are compared with one another.
const COMPARED: usize = 64;

/// Reports each item that is repeated. Strings are sorted first, so that a long list does not cost
/// quadratic time. Lists of other values are short, or are refused because of their length.
fn check_unique(list: JsonValue<'_, '_>, reader: &mut MessageReader<'_>) {
    let mut texts: Vec<(&str, usize)> = list
        .items()
        .enumerate()
        .filter_map(|(index, item)| item.as_str().map(|text| (text, index)))
        .collect();
    texts.sort_unstable();
    for pair in texts.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let problem = format!("{} stands in the list twice.", quoted(pair[1].0));
        reader.within(PathStep::Index(pair[1].1), None, |reader| {
            reader.tolerable(Code::DuplicateItem, problem);
        });
    }
    let others: Vec<_> = list
        .items()
        .enumerate()
        .filter(|(_, item)| item.as_str().is_none())
        .take(COMPARED)
        .collect();
    for (position, (index, item)) in others.iter().enumerate() {
        if others[..position].iter().any(|(_, earlier)| earlier.same_as(*item)) {
            reader.within(PathStep::Index(*index), None, |reader| {
                let problem = "The same item stands in the list twice.".to_owned();
                reader.tolerable(Code::DuplicateItem, problem);
            });
        }
    }
}
