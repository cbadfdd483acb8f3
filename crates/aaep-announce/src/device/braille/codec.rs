//! `BrlAPI`, the protocol of BRLTTY, as functions over bytes.
//!
//! A packet is its size, its type, and that many bytes of content; all numbers are big-endian. We send numbers and
//! one window of text. Received bytes are split into packets within limits.

/// The largest packet of the protocol.
pub const MAX_PACKET_BYTES: usize = 4096;

/// The largest display that we write to. A cell takes up to four bytes of text.
pub const MAX_CELLS: usize = 512;

/// The supported versions of the protocol. The parts that we use are the same in both.
pub const VERSIONS: [u32; 2] = [7, 8];

/// A packet from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrlapiPacket {
    /// The protocol version of the server.
    Version(u32),
    /// The authorization methods that the server accepts.
    Authorization(Vec<u32>),
    /// The number of cells of the display; 0 while there is no display.
    Cells(usize),
    /// The server carried out our request.
    Done,
    /// The server refused our request; the number says why.
    Refused(u32),
    /// The server cannot continue with us; the number says why.
    Exception(u32),
    /// A key was pressed.
    Key(Key),
    /// A packet that we do not use.
    Other(u32),
}

/// A key, as far as we use keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Go back one window.
    Back,
    /// Go on to the next window.
    On,
    /// Repeat the last utterance.
    Again,
    /// Go to the utterance before the last one.
    Before,
    /// Ask for more time to answer.
    MoreTime,
    /// The routing key above a cell, counted from 0.
    Cell(usize),
    /// Any other key.
    Other,
}

/// The authorization method without a credential.
pub const NONE: u32 = b'N' as u32;
/// The authorization method with the content of a protected key file.
pub const KEY: u32 = b'K' as u32;

/// Commands of BRLTTY: a line up and down, a window to the left and to the right. A display has one or the other pair
/// under the thumbs.
const LINE_UP: u64 = 0x2000_0001;
const LINE_DOWN: u64 = 0x2000_0002;
const WINDOW_LEFT: u64 = 0x2000_0017;
const WINDOW_RIGHT: u64 = 0x2000_0018;
/// Commands of BRLTTY: to the top of the screen, to its bottom, to the cursor, and back. Here they mean repeat, more
/// time, repeat, and the utterance before.
const TOP: u64 = 0x2000_0009;
const BOTTOM: u64 = 0x2000_000a;
const HOME: u64 = 0x2000_001d;
const RETURN: u64 = 0x2000_001e;
const ROUTING: u64 = 0x2001_0000;

/// The first and last key of each range that we use. All other keys stay with BRLTTY and other programs.
const OUR_KEYS: [(u64, u64); 5] = [
    (LINE_UP, LINE_DOWN),
    (TOP, BOTTOM),
    (WINDOW_LEFT, WINDOW_RIGHT),
    (HOME, RETURN),
    (ROUTING, ROUTING | 0xffff),
];

/// Splits received bytes into packets, in whatever pieces they arrive.
#[derive(Debug, Default)]
pub struct Packets {
    bytes: Vec<u8>,
    /// Where the first packet begins that was not returned yet.
    at: usize,
}

/// The received bytes are not a `BrlAPI` packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPacket;

impl Packets {
    /// Adds received bytes. Memory is bounded if all packets are taken out before the next call.
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(piece);
    }

    /// The next complete packet, if there is one. After an error there are no more.
    pub fn next_packet(&mut self) -> Result<Option<BrlapiPacket>, NoPacket> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some((size, rest)) = number(rest) else { return Ok(None) };
        let size =
            usize::try_from(size).ok().filter(|size| *size <= MAX_PACKET_BYTES).ok_or(NoPacket)?;
        let Some((kind, rest)) = number(rest) else { return Ok(None) };
        let Some(body) = rest.get(..size) else { return Ok(None) };
        let packet = read(kind, body).ok_or(NoPacket)?;
        self.at += 8 + size;
        Ok(Some(packet))
    }
}

/// The number at the beginning, and the bytes after it.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*number), rest))
}

fn read(kind: u32, body: &[u8]) -> Option<BrlapiPacket> {
    let first = number(body).map(|(number, _)| number);
    Some(match u8::try_from(kind).unwrap_or_default() {
        b'v' => BrlapiPacket::Version(first?),
        b'a' => BrlapiPacket::Authorization(numbers(body)),
        b's' => BrlapiPacket::Cells(cells(body)?),
        b'A' => BrlapiPacket::Done,
        b'e' => BrlapiPacket::Refused(first?),
        b'E' => BrlapiPacket::Exception(first?),
        b'k' => BrlapiPacket::Key(key(u64::from_be_bytes(body.try_into().ok()?))),
        _ => BrlapiPacket::Other(kind),
    })
}

fn numbers(mut body: &[u8]) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some((one, rest)) = number(body) {
        all.push(one);
        body = rest;
    }
    all
}

/// Columns times lines. Cells beyond our limit are not used.
fn cells(body: &[u8]) -> Option<usize> {
    let (columns, rest) = number(body)?;
    let (lines, _) = number(rest)?;
    let cells = usize::try_from(columns).ok()?.saturating_mul(usize::try_from(lines).ok()?);
    Some(cells.min(MAX_CELLS))
}

fn key(code: u64) -> Key {
    match code {
        LINE_UP | WINDOW_LEFT => Key::Back,
        LINE_DOWN | WINDOW_RIGHT => Key::On,
        TOP | HOME => Key::Again,
        RETURN => Key::Before,
        BOTTOM => Key::MoreTime,
        _ if code & !0xffff == ROUTING => Key::Cell(usize::from((code & 0xffff) as u16)),
        _ => Key::Other,
    }
}

fn packet(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + body.len());
    bytes.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend_from_slice(&u32::from(kind).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// Says which protocol version we use.
pub fn version(version: u32) -> Vec<u8> {
    packet(b'v', &version.to_be_bytes())
}

/// Authorizes us with the content of the key file.
pub fn authorization(key: &[u8]) -> Vec<u8> {
    packet(b'a', &[&KEY.to_be_bytes(), key].concat())
}

/// Asks for the number of cells.
pub fn ask_cells() -> Vec<u8> {
    packet(b's', &[])
}

/// Takes the display for this terminal, given as a path of numbers; an empty path means all terminals.
pub fn enter(terminal: &[u32]) -> Vec<u8> {
    let count = u32::try_from(terminal.len()).unwrap_or_default();
    let mut body: Vec<u8> =
        std::iter::once(&count).chain(terminal).flat_map(|number| number.to_be_bytes()).collect();
    // Without a driver name, keys arrive as commands, whatever the display.
    body.push(0);
    packet(b't', &body)
}

/// Gives the display back.
pub fn leave() -> Vec<u8> {
    packet(b'L', &[])
}

/// Ignores all keys. This comes first.
pub fn ignore_all_keys() -> Vec<u8> {
    packet(b'm', &ranges(&[(0, u64::MAX)]))
}

/// Accepts the keys that we use.
pub fn accept_our_keys() -> Vec<u8> {
    packet(b'u', &ranges(&OUR_KEYS))
}

fn ranges(all: &[(u64, u64)]) -> Vec<u8> {
    all.iter()
        .flat_map(|(first, last)| [first.to_be_bytes(), last.to_be_bytes()])
        .flatten()
        .collect()
}

/// Writes text, one character per cell, padded with blanks or cut to exactly this many cells. There is no cursor.
pub fn write(text: &str, cells: usize) -> Vec<u8> {
    const REGION_TEXT_CURSOR_CHARSET: u32 = 0x66;
    const CHARSET: &[u8] = b"\x05UTF-8";
    let cells = cells.clamp(1, MAX_CELLS);
    let text: String = text.chars().map(cell).chain(std::iter::repeat(' ')).take(cells).collect();
    let count = |length: usize| u32::try_from(length).unwrap_or_default().to_be_bytes();
    let head =
        [REGION_TEXT_CURSOR_CHARSET.to_be_bytes(), count(1), count(cells), count(text.len())];
    packet(b'w', &[head.as_flattened(), text.as_bytes(), &count(0), CHARSET].concat())
}

/// The character that a cell shows. An invisible character would be unreadable.
fn cell(c: char) -> char {
    if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(pieces: &[&[u8]]) -> Result<Vec<BrlapiPacket>, NoPacket> {
        let (mut packets, mut all) = (Packets::default(), Vec::new());
        for piece in pieces {
            packets.push(piece);
            while let Some(packet) = packets.next_packet()? {
                all.push(packet);
            }
        }
        Ok(all)
    }

    fn key_packet(code: u64) -> Vec<u8> {
        packet(b'k', &code.to_be_bytes())
    }

    #[test]
    fn packets_are_read_wherever_they_are_cut() {
        let whole = [
            packet(b'v', &[0, 0, 0, 8]),
            packet(b'a', &[0, 0, 0, b'N', 0, 0, 0, b'K']),
            packet(b's', &[0, 0, 0, 40, 0, 0, 0, 1]),
            packet(b'A', &[]),
            key_packet(0x2001_0007),
            packet(b'e', &[0, 0, 0, 5, 0, 0, 0, b't']),
            packet(b'?', b"whatever"),
        ]
        .concat();
        let expected = [
            BrlapiPacket::Version(8),
            BrlapiPacket::Authorization(vec![NONE, KEY]),
            BrlapiPacket::Cells(40),
            BrlapiPacket::Done,
            BrlapiPacket::Key(Key::Cell(7)),
            BrlapiPacket::Refused(5),
            BrlapiPacket::Other(u32::from(b'?')),
        ];
        for cut in 0..=whole.len() {
            let (one, two) = whole.split_at(cut);
            assert_eq!(packets(&[one, two]).expect("packets"), expected, "cut at {cut}");
        }
    }

    #[test]
    fn only_our_keys_without_flags_are_keys() {
        for (code, expected) in [
            (0x2000_0001, Key::Back),
            (0x2000_0002, Key::On),
            (0x2000_0017, Key::Back),
            (0x2000_0018, Key::On),
            (0x2001_0000, Key::Cell(0)),
            (0x2001_ffff, Key::Cell(0xffff)),
            (0x1_2001_0007, Key::Other),
            (0x2002_0007, Key::Other),
            (0x2000_0009, Key::Again),
            (0x2000_000a, Key::MoreTime),
            (0x2000_001d, Key::Again),
            (0x2000_001e, Key::Before),
            (0x2000_001f, Key::Other),
            (0, Key::Other),
            (u64::MAX, Key::Other),
        ] {
            assert_eq!(
                packets(&[&key_packet(code)]),
                Ok(vec![BrlapiPacket::Key(expected)]),
                "{code:x}"
            );
        }
    }

    #[test]
    fn packets_that_are_too_large_or_too_small_are_refused() {
        assert_eq!(packets(&[&[0xff; 4]]), Err(NoPacket), "refused before any of it is kept");
        assert_eq!(packets(&[&packet(b'v', &[8])]), Err(NoPacket));
        assert_eq!(packets(&[&packet(b's', &[0; 7])]), Err(NoPacket));
        assert_eq!(packets(&[&packet(b'k', &[0; 9])]), Err(NoPacket));
    }

    #[test]
    fn a_display_of_absurd_size_is_cut_to_what_can_be_written() {
        assert_eq!(packets(&[&packet(b's', &[0xff; 8])]), Ok(vec![BrlapiPacket::Cells(MAX_CELLS)]));
    }

    #[test]
    fn what_is_written_is_exactly_as_many_characters_as_there_are_cells() {
        for (text, expected) in [
            ("", "    "),
            ("ab", "ab  "),
            ("abcdef", "abcd"),
            ("\u{2801}é\n\u{1b}x", "\u{2801}é  "),
        ] {
            let bytes = write(text, 4);
            let length = expected.len();
            assert_eq!(
                &bytes[20..24],
                u32::try_from(length).expect("small").to_be_bytes(),
                "{text:?}"
            );
            assert_eq!(&bytes[24..24 + length], expected.as_bytes(), "{text:?}");
            assert_eq!(&bytes[24 + length..], b"\0\0\0\0\x05UTF-8", "{text:?}");
        }
        let largest = write(&"\u{10ffff}".repeat(MAX_CELLS * 2), usize::MAX);
        assert!(largest.len() - 8 <= MAX_PACKET_BYTES);
    }
}
