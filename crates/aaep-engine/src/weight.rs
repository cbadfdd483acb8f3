//! A safe estimate of how much memory an event takes. Budgets in bytes are counted with it.
//!
//! The estimate is made from the JSON of the event. A map or a list of a few bytes takes hundreds
//! of bytes in memory and is counted that way, so nobody can hold far more than was counted. This
//! module only measures and decides nothing.

use std::mem::size_of;

use aaep::Event;

/// The size of the map of one object, with room for a few fields.
const OBJECT_BYTES: usize = 640;
/// The size of a list, with room for a few values.
const LIST_BYTES: usize = 128;
/// The size of each further field or value.
const VALUE_BYTES: usize = 64;
/// The size of an event besides its text: in the history of its session, and in the lists of ids.
const EVENT_BYTES: usize = size_of::<Event>() + 256;
/// The objects of every event that are not maps in memory: the event itself and its producer.
const TYPED_OBJECTS: usize = 2;
/// How long the JSON of most events is at most.
const USUAL_JSON_BYTES: usize = 1024;
/// How many bytes are counted together. Their number fits into a byte.
const PART_BYTES: usize = 192;

/// How many bytes an event takes.
pub(crate) fn weight(event: &Event) -> usize {
    weight_of_json(&json_of(event))
}

/// The JSON of an event. Most events fit into the first allocation.
pub(crate) fn json_of(event: &Event) -> Vec<u8> {
    let mut json = Vec::with_capacity(USUAL_JSON_BYTES);
    if serde_json::to_writer(&mut json, event).is_err() {
        json.clear();
    }
    json
}

/// How many bytes an event takes that is encoded like this. A brace inside text is counted, too,
/// which errs on the safe side.
pub(crate) fn weight_of_json(json: &[u8]) -> usize {
    EVENT_BYTES
        + json.len()
        + count(json, b'{').saturating_sub(TYPED_OBJECTS) * OBJECT_BYTES
        + count(json, b'[') * LIST_BYTES
        + count(json, b',') * VALUE_BYTES
}

/// How often a byte occurs. Every event is counted three times, so the counts of a part are kept in
/// single bytes, which the processor adds many at a time.
fn count(json: &[u8], wanted: u8) -> usize {
    let of_part = |part: &[u8]| part.iter().map(|byte| u8::from(*byte == wanted)).sum::<u8>();
    json.chunks(PART_BYTES).map(|part| usize::from(of_part(part))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_in_texts_of_any_length() {
        for length in [0, 1, 31, 32, 191, 192, 193, 255, 256, 1000, 65_536] {
            assert_eq!(count(&vec![b','; length], b','), length);
            assert_eq!(count(&vec![b'.'; length], b','), 0);
            let mixed: Vec<u8> = (0..length).map(|at| if at % 3 == 0 { b',' } else { 0 }).collect();
            assert_eq!(count(&mixed, b','), length.div_ceil(3), "{length}");
        }
    }

    #[test]
    fn what_takes_memory_besides_its_text_weighs_more() {
        let flat = weight_of_json(br#"{"a":{"b":"cdefghi"}}"#);
        let deep = weight_of_json(br#"{"a":{"b":{"c":[1,2]}}}"#);
        assert_eq!(flat, EVENT_BYTES + 21);
        assert_eq!(deep, EVENT_BYTES + 23 + OBJECT_BYTES + LIST_BYTES + VALUE_BYTES);
    }
}
