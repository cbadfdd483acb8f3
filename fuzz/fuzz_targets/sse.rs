//! Any bytes as a stream of events, cut anywhere: never a panic, never past the limit, and what is
//! understood survives being written again.
#![no_main]

use aaep_transport::sse::{self, Parser};
use libfuzzer_sys::fuzz_target;

const LIMIT_BYTES: usize = 1000;

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    let Ok(events) = Parser::default().push(bytes, LIMIT_BYTES) else { return };
    let mut pieces = Parser::default();
    let mut again = Vec::new();
    for piece in bytes.chunks(usize::from(cut).max(1)) {
        again.extend(pieces.push(piece, LIMIT_BYTES).expect("the whole was within the limit"));
    }
    assert_eq!(events, again, "a cut changes nothing");
    for event in &events {
        assert!(event.data.len() <= LIMIT_BYTES);
        let mut written = Vec::new();
        sse::event(&event.last_event_id, Some(&event.name), event.data.as_bytes(), &mut written);
        let read = Parser::default().push(&written, usize::MAX).expect("no limit");
        assert_eq!(read.len(), 1, "{event:?}");
        assert_eq!(read[0].data, event.data);
        assert_eq!(read[0].last_event_id, event.last_event_id);
    }
    // Whatever the bytes are, written as data they are one event or none.
    let mut written = Vec::new();
    sse::event("id", None, bytes, &mut written);
    assert!(Parser::default().push(&written, usize::MAX).expect("no limit").len() <= 1);
});
