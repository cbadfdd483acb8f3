//! Any bytes as messages by length and by line, cut anywhere: never a panic, never past the limit, the same
//! however they are cut, and what is understood survives being written again.
#![no_main]

use aaep_transport::framed::{Decoder, Framing, FrameViolation};
use libfuzzer_sys::fuzz_target;

const LIMIT_BYTES: u32 = 1000;

fn read(
    framing: Framing,
    pieces: impl Iterator<Item = Vec<u8>>,
) -> (Vec<String>, Option<FrameViolation>) {
    let mut decoder = Decoder::new(framing, LIMIT_BYTES);
    let mut messages = Vec::new();
    for piece in pieces {
        let mut bytes = piece.as_slice();
        loop {
            match decoder.next(&mut bytes) {
                Ok(Some(message)) => {
                    assert!(message.len() <= LIMIT_BYTES as usize);
                    messages.push(message);
                }
                Ok(None) => break,
                Err(violation) => return (messages, Some(violation)),
            }
        }
        assert!(bytes.is_empty(), "everything is read");
    }
    (messages, None)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    for framing in [Framing::Length, Framing::Lines] {
        let whole = read(framing, std::iter::once(bytes.to_vec()));
        let pieces = bytes.chunks(usize::from(cut).max(1)).map(<[u8]>::to_vec);
        assert_eq!(whole, read(framing, pieces), "a cut changes nothing");
        let mut written = Vec::new();
        for message in &whole.0 {
            framing.message(message.as_bytes(), &mut written);
        }
        let (again, violation) = read(framing, std::iter::once(written));
        assert_eq!(violation, None);
        let shown = |message: &String| message.replace('\r', " ");
        // Within a line, what could end it is white space.
        assert_eq!(
            again,
            whole
                .0
                .iter()
                .map(|it| if framing == Framing::Lines { shown(it) } else { it.clone() })
                .collect::<Vec<_>>()
        );
    }
});
