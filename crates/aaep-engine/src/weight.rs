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

/// How many bytes an event takes.
pub(crate) fn weight(event: &Event) -> usize {
    weight_of_json(&serde_json::to_vec(event).unwrap_or_default())
}

/// How many bytes an event takes that is encoded like this. A brace inside text is counted, too,
/// which errs on the safe side.
#[expect(clippy::naive_bytecount, reason = "an event is short, and another dependency is not")]
pub(crate) fn weight_of_json(json: &[u8]) -> usize {
    let count = |wanted: u8| json.iter().filter(|byte| **byte == wanted).count();
    EVENT_BYTES
        + json.len()
        + count(b'{').saturating_sub(TYPED_OBJECTS) * OBJECT_BYTES
        + count(b'[') * LIST_BYTES
        + count(b',') * VALUE_BYTES
}
