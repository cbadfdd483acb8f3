//! Any bytes as WebSocket frames, cut anywhere, for both sides: never a panic, never past the limit, the same
//! however they are cut, and what is understood survives being written again.
#![no_main]

use aaep_transport::websocket::{self, Decoder, Incoming, Role, FrameViolation};
use libfuzzer_sys::fuzz_target;

const MAX_BYTES: u32 = 1000;

fn read_all(role: Role, bytes: &[u8], cut: usize) -> (Vec<Incoming>, Option<FrameViolation>) {
    let mut decoder = Decoder::new(role, MAX_BYTES);
    let mut all = Vec::new();
    for mut piece in bytes.chunks(cut.max(1)) {
        loop {
            match decoder.next(&mut piece) {
                Ok(Some(incoming)) => all.push(incoming),
                Ok(None) => break,
                Err(violation) => return (all, Some(violation)),
            }
        }
        assert!(piece.is_empty(), "all bytes are read");
    }
    (all, None)
}

fuzz_target!(|input: (u8, bool, [u8; 4], &[u8])| {
    let (cut, is_server, mask, bytes) = input;
    let (role, other) =
        if is_server { (Role::Server, Role::Client) } else { (Role::Client, Role::Server) };
    let whole = read_all(role, bytes, bytes.len());
    assert_eq!(whole, read_all(role, bytes, usize::from(cut)), "a cut changes nothing");
    let mask = (!is_server).then_some(mask);
    let mut written = Vec::new();
    for incoming in &whole.0 {
        match incoming {
            Incoming::Text(text) => {
                assert!(text.len() <= MAX_BYTES as usize);
                websocket::text(text.as_bytes(), mask, &mut written);
            }
            Incoming::Ping(content) => websocket::ping(content, mask, &mut written),
            Incoming::Pong(content) => websocket::pong(content, mask, &mut written),
            Incoming::Close { code, reason } => {
                websocket::close(code.unwrap_or(1005), reason, mask, &mut written);
            }
        }
    }
    assert_eq!(read_all(other, &written, written.len()), (whole.0, None));
});
