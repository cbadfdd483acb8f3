//! WebSocket frames (RFC 6455, appendix B.2): writing here, reading in `decoder`.
//!
//! Frame headers, the accept key and the list of close codes come from tungstenite. Reading is our own:
//! tungstenite's reader owns buffers for each connection, and its header parser needs the whole header and leaves
//! masks, reserved bits and limits to its caller. This module never touches a socket.

mod decoder;
mod violation;

pub use decoder::{Decoder, Incoming, MAX_FRAGMENTS, Role};
pub use violation::WebSocketViolation;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};

/// The subprotocol that both sides name in the handshake (B.2.1).
pub const SUBPROTOCOL: &str = "aaep.v1";

/// The longest content of a ping, a pong or a close (RFC 6455 §5.5).
pub const MAX_CONTROL_BYTES: usize = 125;

/// The longest reason of a close: its frame also holds the code.
pub const MAX_REASON_BYTES: usize = MAX_CONTROL_BYTES - 2;

/// The answer to a client's `Sec-WebSocket-Key`.
pub fn accept_key(key: &str) -> String {
    tungstenite::handshake::derive_accept_key(key.as_bytes())
}

/// Whether a close frame may carry this code (RFC 6455 §7.4).
pub fn may_close_with(code: u16) -> bool {
    CloseCode::from(code).is_allowed()
}

/// Appends a whole text message. A client passes four random bytes as `mask`, a server passes `None`.
pub fn text(text: &[u8], mask: Option<[u8; 4]>, into: &mut Vec<u8>) {
    frame(OpCode::Data(Data::Text), text, mask, into);
}

/// Appends a ping with at most [`MAX_CONTROL_BYTES`]; the rest is cut off.
pub fn ping(content: &[u8], mask: Option<[u8; 4]>, into: &mut Vec<u8>) {
    control(Control::Ping, content, mask, into);
}

/// Appends a pong with at most [`MAX_CONTROL_BYTES`]; the rest is cut off.
pub fn pong(content: &[u8], mask: Option<[u8; 4]>, into: &mut Vec<u8>) {
    control(Control::Pong, content, mask, into);
}

/// Appends a close. A code that must not be sent becomes an empty close; a reason longer than
/// [`MAX_REASON_BYTES`] is cut between two characters.
pub fn close(code: u16, reason: &str, mask: Option<[u8; 4]>, into: &mut Vec<u8>) {
    let mut content = Vec::new();
    if may_close_with(code) {
        content.extend_from_slice(&code.to_be_bytes());
        let end = reason.floor_char_boundary(MAX_REASON_BYTES);
        content.extend_from_slice(&reason.as_bytes()[..end]);
    }
    control(Control::Close, &content, mask, into);
}

fn control(kind: Control, content: &[u8], mask: Option<[u8; 4]>, into: &mut Vec<u8>) {
    let content = &content[..content.len().min(MAX_CONTROL_BYTES)];
    frame(OpCode::Control(kind), content, mask, into);
}

fn frame(opcode: OpCode, content: &[u8], mask: Option<[u8; 4]>, into: &mut Vec<u8>) {
    let header = FrameHeader { opcode, mask, ..FrameHeader::default() };
    let length = content.len() as u64;
    into.reserve(header.len(length) + content.len());
    header.format(length, into).expect("a vector takes all bytes");
    let start = into.len();
    into.extend_from_slice(content);
    if let Some(mask) = mask {
        apply_mask(&mut into[start..], mask, 0);
    }
}

/// Masks or unmasks bytes that begin `offset` bytes into the content of a frame.
fn apply_mask(bytes: &mut [u8], mask: [u8; 4], offset: usize) {
    let turned = [0, 1, 2, 3].map(|at| mask[(offset + at) % 4]);
    let word = u32::from_ne_bytes(turned);
    let mut words = bytes.chunks_exact_mut(4);
    for chunk in &mut words {
        let value = u32::from_ne_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        chunk.copy_from_slice(&(value ^ word).to_ne_bytes());
    }
    for (byte, key) in words.into_remainder().iter_mut().zip(turned) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_accept_key_is_that_of_the_specification() {
        assert_eq!(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn frames_have_the_shortest_header_that_fits() {
        for (length, header) in [(125, 2), (126, 4), (65_535, 4), (65_536, 10)] {
            let mut bytes = Vec::new();
            text(&vec![b'x'; length], None, &mut bytes);
            assert_eq!(bytes.len(), length + header);
            assert_eq!(bytes[0], 0x81);
        }
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let mut bytes = Vec::new();
        close(4004, &"é".repeat(100), None, &mut bytes);
        assert_eq!(bytes.len(), 2 + 2 + 122);
        let mut decoder = Decoder::new(Role::Client, 1000);
        let incoming = decoder.next(&mut bytes.as_slice()).expect("valid");
        assert_eq!(incoming, Some(Incoming::Close { code: Some(4004), reason: "é".repeat(61) }));
    }

    #[test]
    fn a_code_that_must_not_be_sent_is_not_sent() {
        for code in [0, 999, 1004, 1005, 1006, 1015, 2999, 5000] {
            let mut bytes = Vec::new();
            close(code, "reason", None, &mut bytes);
            assert_eq!(bytes, [0x88, 0], "{code}");
        }
        for code in [1000, 1001, 1009, 3000, 4000, 4005, 4999] {
            assert!(may_close_with(code), "{code}");
        }
    }

    proptest! {
        #[test]
        fn masking_in_pieces_is_masking(bytes: Vec<u8>, mask: [u8; 4], cut: prop::sample::Index) {
            let mut whole = bytes.clone();
            apply_mask(&mut whole, mask, 0);
            let mut pieces = bytes.clone();
            let cut = cut.index(bytes.len() + 1);
            let (first, second) = pieces.split_at_mut(cut);
            apply_mask(first, mask, 0);
            apply_mask(second, mask, cut);
            prop_assert_eq!(&whole, &pieces);
            let plain: Vec<u8> =
                whole.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]).collect();
            prop_assert_eq!(plain, bytes);
        }
    }
}
