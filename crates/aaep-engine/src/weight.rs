//! How much memory an event takes, as a safe estimate: what budgets in bytes are counted in.
//!
//! It is made from the event as JSON. A map or a list of a few bytes takes hundreds in memory, so each counts as
//! that, and nobody can hold far more than was counted. It measures and never decides.

use std::io;
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
    let mut count = Count::default();
    // Counting cannot fail, and every event can be written.
    let _ = serde_json::to_writer(&mut count, event);
    EVENT_BYTES
        + count.bytes
        + count.objects.saturating_sub(TYPED_OBJECTS) * OBJECT_BYTES
        + count.lists * LIST_BYTES
        + count.values * VALUE_BYTES
}

/// Counts what is written. A brace within words counts as well, which is on the safe side.
#[derive(Default)]
struct Count {
    bytes: usize,
    objects: usize,
    lists: usize,
    values: usize,
}

impl io::Write for Count {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.bytes += text.len();
        for byte in text {
            match byte {
                b'{' => self.objects += 1,
                b'[' => self.lists += 1,
                b',' => self.values += 1,
                _ => {}
            }
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
