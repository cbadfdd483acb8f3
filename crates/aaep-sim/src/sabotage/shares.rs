//! Hands that take more than their share.

use aaep_engine::{Input, Now, Output, Record};

use super::Hand;

/// Keeps all events, however many there are.
#[derive(Default)]
pub(super) struct KeepAll {
    bytes: usize,
}

impl Hand for KeepAll {
    fn after(&mut self, _: Now, _: &Input, outputs: &mut Vec<Output>) {
        for output in outputs {
            if let Output::Record(Record { event, .. }) = output {
                self.bytes += serde_json::to_vec(&**event).map_or(0, |json| json.len());
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        self.bytes
    }
}
