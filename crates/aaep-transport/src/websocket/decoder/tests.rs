//! Tests the frame decoder against everything that a peer may send.

use proptest::prelude::*;

use super::super::{close, ping, pong, text};
use super::*;

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
const MAX_BYTES: u32 = 70_000;

/// A frame as a client would send it, right or wrong.
fn frame(first: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    let length = (content.len() as u64).to_be_bytes();
    match content.len() {
        0..126 => bytes.push(0x80 | length[7]),
        126..65_536 => {
            bytes.push(0xfe);
            bytes.extend_from_slice(&length[6..]);
        }
        _ => {
            bytes.push(0xff);
            bytes.extend_from_slice(&length);
        }
    }
    bytes.extend_from_slice(&MASK);
    bytes.extend(content.iter().enumerate().map(|(at, byte)| byte ^ MASK[at % 4]));
    bytes
}

/// Everything that was decoded, and the violation that ended it.
fn read_all(bytes: &[u8], cut: usize) -> (Vec<Incoming>, Option<WebSocketViolation>) {
    let mut decoder = Decoder::new(Role::Server, MAX_BYTES);
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

fn refused_with(bytes: &[u8], violation: WebSocketViolation) {
    for cut in [1, 2, 3, bytes.len()] {
        assert_eq!(read_all(bytes, cut).1, Some(violation), "cut every {cut}");
    }
}

#[test]
fn a_message_in_pieces_with_a_ping_between_them_is_one_message() {
    let bytes = [
        frame(0x01, "gr\u{fc}".as_bytes().split_at(3).0),
        frame(0x89, b"there?"),
        frame(0x00, b""),
        frame(0x80, &["\u{fc}".as_bytes()[1..].to_vec(), b"n".to_vec()].concat()),
        frame(0x81, b"next"),
    ]
    .concat();
    for cut in 1..=bytes.len() {
        let (all, violation) = read_all(&bytes, cut);
        assert_eq!(violation, None);
        assert_eq!(
            all,
            [
                Incoming::Ping(b"there?".to_vec()),
                Incoming::Text("grün".to_owned()),
                Incoming::Text("next".to_owned()),
            ]
        );
    }
}

#[test]
fn every_broken_rule_has_its_own_name() {
    refused_with(&[0x81, 0x02, b'h', b'i'], WebSocketViolation::Unmasked);
    for bits in [0x40, 0x20, 0x10] {
        refused_with(&frame(0x81 | bits, b"x"), WebSocketViolation::ReservedBits);
    }
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        refused_with(&frame(0x80 | opcode, b""), WebSocketViolation::UnknownOpcode);
    }
    refused_with(&frame(0x82, b"x"), WebSocketViolation::Binary);
    for opcode in [0x88, 0x89, 0x8a] {
        refused_with(&frame(opcode, &[b'x'; 126]), WebSocketViolation::LongControlFrame);
        refused_with(&frame(opcode & 0x0f, b""), WebSocketViolation::FragmentedControlFrame);
    }
    refused_with(&frame(0x80, b"x"), WebSocketViolation::NothingToContinue);
    refused_with(
        &[frame(0x01, b"a"), frame(0x81, b"b")].concat(),
        WebSocketViolation::UnfinishedMessage,
    );
    refused_with(&frame(0x81, b"\xff"), WebSocketViolation::InvalidText);
    refused_with(
        &[frame(0x01, b"\xc3"), frame(0x80, b"x")].concat(),
        WebSocketViolation::InvalidText,
    );
    refused_with(&frame(0x81, "grün".as_bytes().split_at(3).0), WebSocketViolation::InvalidText);
    refused_with(&frame(0x88, &[3]), WebSocketViolation::ShortClose);
    for code in [0_u16, 999, 1004, 1005, 1006, 1015, 2000, 5000, 65_535] {
        refused_with(&frame(0x88, &code.to_be_bytes()), WebSocketViolation::InvalidCloseCode);
    }
    refused_with(&frame(0x88, b"\x03\xe8\xff"), WebSocketViolation::InvalidCloseReason);
    refused_with(&[0x81, 0xfe, 0, 125], WebSocketViolation::LengthForm);
    refused_with(&[0x81, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff], WebSocketViolation::LengthForm);
    refused_with(&[0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0], WebSocketViolation::LengthForm);
    let masked = frame(0x81, b"x");
    let mut client = Decoder::new(Role::Client, MAX_BYTES);
    assert_eq!(client.next(&mut masked.as_slice()), Err(WebSocketViolation::Masked));
}

#[test]
fn a_length_of_a_gibibyte_is_refused_before_any_of_it_comes() {
    let header = [&[0x81, 0xff][..], &(1_u64 << 30).to_be_bytes()].concat();
    refused_with(&header, WebSocketViolation::TooBig);
    let mut decoder = Decoder::new(Role::Server, MAX_BYTES);
    assert_eq!(decoder.next(&mut header.as_slice()), Err(WebSocketViolation::TooBig));
    assert_eq!(decoder.message.capacity(), 0);
}

#[test]
fn an_announced_length_alone_takes_no_memory() {
    let mut decoder = Decoder::new(Role::Server, 1 << 30);
    let header = [&[0x81, 0xff][..], &(1_u64 << 29).to_be_bytes(), &MASK].concat();
    assert_eq!(decoder.next(&mut header.as_slice()), Ok(None));
    assert_eq!(decoder.message.capacity(), 0);
}

#[test]
fn the_bound_holds_across_pieces_but_not_for_control_frames() {
    let full = vec![b'x'; MAX_BYTES as usize];
    assert_eq!(read_all(&frame(0x81, &full), 1000).1, None);
    refused_with(&frame(0x81, &vec![b'x'; MAX_BYTES as usize + 1]), WebSocketViolation::TooBig);
    let pieces = [frame(0x01, &full), frame(0x89, b"still"), frame(0x80, b"x")].concat();
    assert_eq!(
        read_all(&pieces, 1000),
        (vec![Incoming::Ping(b"still".to_vec())], Some(WebSocketViolation::TooBig))
    );
    let mut small = Decoder::new(Role::Server, 10);
    let ping = frame(0x89, &[b'x'; 125]);
    assert_eq!(small.next(&mut ping.as_slice()), Ok(Some(Incoming::Ping(vec![b'x'; 125]))));
    let text = frame(0x81, &[b'x'; 11]);
    assert_eq!(small.next(&mut text.as_slice()), Err(WebSocketViolation::TooBig));
}

#[test]
fn endless_empty_pieces_are_refused() {
    let mut bytes = frame(0x01, b"");
    for _ in 0..MAX_FRAGMENTS {
        bytes.extend(frame(0x00, b""));
    }
    refused_with(&bytes, WebSocketViolation::TooManyFragments);
}

#[test]
fn nothing_is_read_after_a_close_or_a_violation() {
    let mut decoder = Decoder::new(Role::Server, MAX_BYTES);
    let bytes = [frame(0x88, b""), frame(0x81, b"late")].concat();
    let mut rest = bytes.as_slice();
    let ended = Incoming::Close { code: None, reason: String::new() };
    assert_eq!(decoder.next(&mut rest), Ok(Some(ended)));
    assert_eq!(decoder.next(&mut rest), Ok(None));
    assert!(rest.is_empty());
    let mut decoder = Decoder::new(Role::Server, MAX_BYTES);
    assert!(decoder.next(&mut [0xff].as_slice()).is_err());
    assert_eq!(decoder.next(&mut frame(0x81, b"late").as_slice()), Ok(None));
}

#[test]
fn an_idle_reader_owns_no_buffer() {
    let mut decoder = Decoder::new(Role::Server, MAX_BYTES);
    let bytes = [frame(0x81, &[b'x'; 5000]), frame(0x89, b"ping")].concat();
    let mut rest = bytes.as_slice();
    while decoder.next(&mut rest).expect("valid").is_some() {}
    assert!(!decoder.is_mid_message());
    assert_eq!(decoder.message.capacity() + decoder.control.capacity(), 0);
    assert!(size_of::<Decoder>() <= 104, "{}", size_of::<Decoder>());
}

proptest! {
    #[test]
    fn what_one_side_writes_the_other_reads_however_it_is_cut(
        message in ".{0,300}", content in prop::collection::vec(any::<u8>(), 0..125),
        code in 3000_u16..5000, reason in ".{0,30}", mask: [u8; 4], cut in 1_usize..50, is_client: bool,
    ) {
        let mask = is_client.then_some(mask);
        let mut bytes = Vec::new();
        text(message.as_bytes(), mask, &mut bytes);
        ping(&content, mask, &mut bytes);
        pong(&content, mask, &mut bytes);
        close(code, &reason, mask, &mut bytes);
        let role = if is_client { Role::Server } else { Role::Client };
        let mut decoder = Decoder::new(role, MAX_BYTES);
        let mut all = Vec::new();
        for mut piece in bytes.chunks(cut) {
            while let Some(incoming) = decoder.next(&mut piece).expect("valid") {
                all.push(incoming);
            }
        }
        let expected = [
            Incoming::Text(message), Incoming::Ping(content.clone()), Incoming::Pong(content),
            Incoming::Close { code: Some(code), reason },
        ];
        prop_assert_eq!(all, expected);
    }

    #[test]
    fn any_cut_of_any_bytes_gives_the_same(bytes: Vec<u8>, opcode in 0_u8..16, cut in 1_usize..20) {
        let bytes = [frame(0x80 | opcode, &bytes), bytes].concat();
        prop_assert_eq!(read_all(&bytes, cut), read_all(&bytes, bytes.len()));
    }
}
