//! Unambiguous JSON: an object with the same member twice is refused.
//!
//! If two readers choose different members, they can be made to disagree about what was signed. `serde_json`
//! bounds the depth; the caller must bound the size.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

/// Why a text is not such JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotStrict {
    /// An object has the same member twice.
    DuplicateMember,
    /// It is not JSON, not UTF-8, or nested too deeply.
    NotJson,
}

/// Parses one JSON text; surrounding whitespace is allowed.
pub fn parse(bytes: &[u8]) -> Result<Value, NotStrict> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = StrictValue.deserialize(&mut deserializer).and_then(|value| {
        deserializer.end()?;
        Ok(value)
    });
    value.map_err(|error| {
        if error.to_string().starts_with(TWICE) {
            NotStrict::DuplicateMember
        } else {
            NotStrict::NotJson
        }
    })
}

const TWICE: &str = "the same member stands in its object twice";

struct StrictValue;

impl<'de> DeserializeSeed<'de> for StrictValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(StrictValue)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let Entry::Vacant(place) = object.entry(name) else {
                return Err(A::Error::custom(TWICE));
            };
            place.insert(members.next_value_seed(StrictValue)?);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_stands_twice_is_refused_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
            assert_eq!(parse(text.as_bytes()), Err(NotStrict::DuplicateMember), "{text}");
        }
        let text = r#"{"a":[1,-2,3.5,true,null,"x"],"b":{"a":{}}}"#;
        assert_eq!(parse(text.as_bytes()).expect("JSON").to_string(), text);
    }

    #[test]
    fn what_is_not_one_json_text_is_refused() {
        let deep = "[".repeat(100_000);
        for text in ["", "{", "{} {}", "{\"a\":1e999}", "\u{feff}{}", &deep] {
            assert_eq!(parse(text.as_bytes()), Err(NotStrict::NotJson));
        }
        assert_eq!(parse(b"\"\xff\""), Err(NotStrict::NotJson));
    }
}
