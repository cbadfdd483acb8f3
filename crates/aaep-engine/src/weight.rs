//! How much memory an event takes, as a safe estimate: what budgets in bytes are counted in.
//!
//! It is made from the event as JSON. A map or a list of a few bytes takes hundreds in memory, so each counts as
//! that, and nobody can hold far more than was counted. It measures and never decides.

use std::mem::size_of;

use aaep::Event;

/// What the map of one object takes, with room for a few fields.
const OBJECT_BYTES: usize = 640;
/// What a list takes, with room for a few values.
const LIST_BYTES: usize = 128;
/// What one more field or value takes.
const VALUE_BYTES: usize = 64;
/// What an event takes beside its words: in the history of its session, and in the lists of ids.
const EVENT_BYTES: usize = size_of::<Event>() + 256;
/// The objects of every event that are no maps in memory: itself and its producer.
const TYPED_OBJECTS: usize = 2;

/// How many bytes an event takes.
pub(crate) fn weight(event: &Event) -> usize {
    weight_of_json(&serde_json::to_vec(event).unwrap_or_default())
}

/// How many bytes an event takes that is written like this. A brace within words counts as well, which is on the safe
/// side.
#[expect(clippy::naive_bytecount, reason = "an event is short, and another dependency is not")]
pub(crate) fn weight_of_json(json: &[u8]) -> usize {
    let count = |wanted: u8| json.iter().filter(|byte| **byte == wanted).count();
    EVENT_BYTES
        + json.len()
        + count(b'{').saturating_sub(TYPED_OBJECTS) * OBJECT_BYTES
        + count(b'[') * LIST_BYTES
        + count(b',') * VALUE_BYTES
}
