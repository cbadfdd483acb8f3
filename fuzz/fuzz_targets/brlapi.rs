//! Any bytes as what BRLTTY says, cut anywhere; and any text as what it is given to show: never a panic, never
//! past the limit, and a window is always exactly as many characters as there are cells.
#![no_main]

use aaep_announce::device::braille::codec::{self, MAX_CELLS, MAX_PACKET_BYTES, NoPacket, BrlapiPacket, Packets};
use libfuzzer_sys::fuzz_target;

/// All packets, and whether they ended in an error.
fn packets(bytes: &[u8], size: usize) -> (Vec<BrlapiPacket>, bool) {
    let (mut packets, mut all) = (Packets::default(), Vec::new());
    for piece in bytes.chunks(size) {
        packets.push(piece);
        loop {
            match packets.next_packet() {
                Ok(Some(packet)) => all.push(packet),
                Ok(None) => break,
                Err(NoPacket) => return (all, true),
            }
        }
    }
    (all, false)
}

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (cut, cells, bytes) = input;
    let whole = packets(bytes, bytes.len().max(1));
    assert_eq!(whole, packets(bytes, usize::from(cut).max(1)), "a cut changes nothing");
    for packet in &whole.0 {
        assert!(!matches!(packet, BrlapiPacket::Cells(cells) if *cells > MAX_CELLS));
    }
    let text = String::from_utf8_lossy(bytes);
    let written = codec::write(&text, usize::from(cells));
    assert!(written.len() <= 8 + MAX_PACKET_BYTES);
    let number = |at: usize| u32::from_be_bytes(written[at..at + 4].try_into().expect("four bytes"));
    assert_eq!(number(0) as usize, written.len() - 8);
    let length = number(20) as usize;
    let shown = std::str::from_utf8(&written[24..24 + length]).expect("UTF-8");
    assert_eq!(shown.chars().count(), usize::from(cells).clamp(1, MAX_CELLS));
    assert!(!shown.contains(char::is_control));
    assert_eq!(&written[24 + length..], b"\0\0\0\0\x05UTF-8");
});
