//! Whole messages on a stream of bytes (§8.2.2, B.4.4): each after its length in four bytes, most significant
//! first, or one JSON document per line.
//!
//! The decoder grows with the bytes that arrived, never with a length that was only announced, and owns no buffer
//! between messages. It never looks into a message.

mod credential;
mod messages;

pub use credential::{MAX_CREDENTIAL_FRAME_BYTES, credential_frame, leading_credential};
pub use messages::{Messages, NoMessage};

use std::fmt;

/// The number of bytes of a length.
const LENGTH_BYTES: u8 = 4;

/// How messages are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Each message follows its length.
    Length,
    /// Each message is a line.
    Lines,
}

impl Framing {
    /// Recognises the framing of a peer by the first byte that it sends. The length of every allowed message
    /// begins with a zero byte, and a JSON object begins with a brace.
    pub fn recognise(first: u8) -> Option<Self> {
        match first {
            0 => Some(Self::Length),
            b'{' | b' ' | b'\t' | b'\r' | b'\n' => Some(Self::Lines),
            _ => None,
        }
    }

    /// The name of this framing in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Length => "length-prefixed",
            Self::Lines => "ndjson",
        }
    }

    /// Appends a whole JSON message.
    pub fn message(self, json: &[u8], into: &mut Vec<u8>) {
        into.reserve(json.len() + usize::from(LENGTH_BYTES));
        match self {
            Self::Length => {
                // A message of four gigabytes cannot be framed; sending nothing is better than sending something
                // wrong.
                let Ok(length) = u32::try_from(json.len()) else { return };
                into.extend_from_slice(&length.to_be_bytes());
                into.extend_from_slice(json);
            }
            Self::Lines => {
                // Within JSON a line break can only be white space.
                let is_break = |byte: u8| matches!(byte, b'\n' | b'\r');
                into.extend(json.iter().map(|byte| if is_break(*byte) { b' ' } else { *byte }));
                into.push(b'\n');
            }
        }
    }
}

/// A rule that a peer broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameViolation {
    /// A message is longer than allowed.
    TooBig,
    /// A message is not UTF-8 (B.6.1).
    InvalidText,
}

impl fmt::Display for FrameViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooBig => "A message is too long. Send a shorter one.",
            Self::InvalidText => "A message is not UTF-8. Send UTF-8.",
        })
    }
}

impl std::error::Error for FrameViolation {}

/// The reading half of one stream.
#[derive(Debug)]
pub struct Decoder {
    /// The message so far.
    message: Vec<u8>,
    max_message_bytes: u32,
    /// The length of the current message, perhaps incomplete.
    length: [u8; LENGTH_BYTES as usize],
    length_bytes: u8,
    framing: Framing,
    has_ended: bool,
    /// Whether the incoming bytes are the rest of a line that was too long.
    is_passing_over: bool,
}

impl Decoder {
    /// A decoder for messages of up to `max_message_bytes`.
    pub fn new(framing: Framing, max_message_bytes: u32) -> Self {
        Self {
            message: Vec::new(),
            max_message_bytes,
            length: [0; LENGTH_BYTES as usize],
            length_bytes: 0,
            framing,
            has_ended: false,
            is_passing_over: false,
        }
    }

    /// Reads from the front of `bytes` up to the end of one message. An empty message is a sign of life.
    ///
    /// Returns `None` when all bytes are read and the message is incomplete. After a violation it discards all
    /// input.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<String>, FrameViolation> {
        if self.has_ended {
            *bytes = &[];
            return Ok(None);
        }
        let message = match self.framing {
            Framing::Length => self.next_by_length(bytes),
            Framing::Lines => self.next_line(bytes),
        };
        let text = message.and_then(|message| {
            message.map(String::from_utf8).transpose().map_err(|_| FrameViolation::InvalidText)
        });
        if text.is_err() {
            *self = Self { has_ended: true, ..Self::new(self.framing, self.max_message_bytes) };
        }
        text
    }

    /// Continues after a violation with the next line. With length framing nothing changes, because the start of
    /// the next message is unknown.
    pub fn pass_over(&mut self, violation: FrameViolation) {
        if self.framing == Framing::Lines {
            self.has_ended = false;
            self.is_passing_over = violation == FrameViolation::TooBig;
        }
    }

    /// Whether a message has begun but not ended.
    pub fn is_mid_message(&self) -> bool {
        self.length_bytes > 0 || !self.message.is_empty()
    }

    fn next_by_length(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, FrameViolation> {
        while self.length_bytes < LENGTH_BYTES {
            let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
            *bytes = rest;
            self.length[usize::from(self.length_bytes)] = *first;
            self.length_bytes += 1;
        }
        let length = u32::from_be_bytes(self.length);
        if length > self.max_message_bytes {
            return Err(FrameViolation::TooBig);
        }
        let missing = (length as usize).saturating_sub(self.message.len());
        let (now, later) = bytes.split_at(missing.min(bytes.len()));
        self.message.extend_from_slice(now);
        *bytes = later;
        if self.message.len() < length as usize {
            return Ok(None);
        }
        self.length_bytes = 0;
        Ok(Some(std::mem::take(&mut self.message)))
    }

    fn next_line(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, FrameViolation> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (now, later) = bytes.split_at(end.unwrap_or(bytes.len()));
        if self.is_passing_over {
            self.is_passing_over = end.is_none();
            *bytes = later.get(1..).unwrap_or(&[]);
            // Nothing is left of the line, so it counts as an empty one.
            return Ok(end.map(|_| Vec::new()));
        }
        if self.message.len() + now.len() > self.max_message_bytes as usize {
            return Err(FrameViolation::TooBig);
        }
        self.message.extend_from_slice(now);
        *bytes = later.get(1..).unwrap_or(&[]);
        if end.is_none() {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.message);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_all(decoder: &mut Decoder, mut bytes: &[u8]) -> Result<Vec<String>, FrameViolation> {
        let mut all = Vec::new();
        while let Some(message) = decoder.next(&mut bytes)? {
            all.push(message);
        }
        Ok(all)
    }

    #[test]
    fn the_forms_are_those_of_the_specification() {
        let framed = |framing: Framing| {
            let mut bytes = Vec::new();
            framing.message(b"{\"a\":1}", &mut bytes);
            bytes
        };
        assert_eq!(framed(Framing::Length), b"\0\0\0\x07{\"a\":1}");
        assert_eq!(framed(Framing::Lines), b"{\"a\":1}\n");
        for framing in [Framing::Length, Framing::Lines] {
            assert_eq!(Framing::recognise(framed(framing)[0]), Some(framing));
        }
        assert_eq!(Framing::recognise(b'G'), None);
    }

    #[test]
    fn a_document_on_several_lines_becomes_one_line() {
        let mut bytes = Vec::new();
        Framing::Lines.message(b"{\r\n\"a\": 1\n}", &mut bytes);
        assert_eq!(bytes, b"{  \"a\": 1 }\n");
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_has_come() {
        let mut decoder = Decoder::new(Framing::Length, 100);
        assert_eq!(decoder.next(&mut b"\0\0\0\x65".as_slice()), Err(FrameViolation::TooBig));
        assert_eq!(decoder.next(&mut b"\0\0\0\x01x".as_slice()), Ok(None), "it hears no more");
        let mut decoder = Decoder::new(Framing::Lines, 100);
        assert_eq!(decoder.next(&mut [b'x'; 100].as_slice()), Ok(None));
        assert_eq!(decoder.next(&mut b"x".as_slice()), Err(FrameViolation::TooBig));
    }

    #[test]
    fn after_a_wrong_line_the_next_one_can_be_read() {
        let mut decoder = Decoder::new(Framing::Lines, 4);
        let mut bytes = b"xxxxx".as_slice();
        assert_eq!(decoder.next(&mut bytes), Err(FrameViolation::TooBig));
        decoder.pass_over(FrameViolation::TooBig);
        assert_eq!(decoder.next(&mut bytes), Ok(None));
        assert_eq!(read_all(&mut decoder, b"xx\nab\n"), Ok(vec![String::new(), "ab".to_owned()]));
        let mut bytes = b"\xff\ncd\n".as_slice();
        assert_eq!(decoder.next(&mut bytes), Err(FrameViolation::InvalidText));
        decoder.pass_over(FrameViolation::InvalidText);
        assert_eq!(decoder.next(&mut bytes), Ok(Some("cd".to_owned())));
        let mut decoder = Decoder::new(Framing::Length, 4);
        assert_eq!(decoder.next(&mut b"\0\0\0\x09".as_slice()), Err(FrameViolation::TooBig));
        decoder.pass_over(FrameViolation::TooBig);
        assert_eq!(decoder.next(&mut b"\0\0\0\x01x".as_slice()), Ok(None), "it hears no more");
    }

    #[test]
    fn an_announced_length_takes_no_memory() {
        let mut decoder = Decoder::new(Framing::Length, u32::MAX);
        assert_eq!(decoder.next(&mut b"\xff\xff\xff\xff{".as_slice()), Ok(None));
        assert!(decoder.message.capacity() < 100 && decoder.is_mid_message());
    }

    #[test]
    fn text_that_is_not_utf_8_is_refused() {
        for (framing, bytes) in
            [(Framing::Length, b"\0\0\0\x01\xff".as_slice()), (Framing::Lines, b"\xff\n")]
        {
            let mut decoder = Decoder::new(framing, 100);
            assert_eq!(read_all(&mut decoder, bytes), Err(FrameViolation::InvalidText));
        }
    }

    #[test]
    fn empty_messages_are_signs_of_life_and_line_ends_may_be_those_of_windows() {
        let mut decoder = Decoder::new(Framing::Length, 100);
        assert_eq!(read_all(&mut decoder, b"\0\0\0\0"), Ok(vec![String::new()]));
        let mut decoder = Decoder::new(Framing::Lines, 100);
        let read = read_all(&mut decoder, b"\r\n{}\r\n");
        assert_eq!(read, Ok(vec![String::new(), "{}".to_owned()]));
    }

    proptest! {
        #[test]
        fn messages_survive_however_the_bytes_are_cut(
            messages in prop::collection::vec("[^\r\n]{0,40}", 0..8),
            cuts in prop::collection::vec(1_usize..9, 1..60),
        ) {
            for framing in [Framing::Length, Framing::Lines] {
                let mut bytes = Vec::new();
                for message in &messages {
                    framing.message(message.as_bytes(), &mut bytes);
                }
                let mut decoder = Decoder::new(framing, 1000);
                let (mut rest, mut read) = (bytes.as_slice(), Vec::new());
                for cut in cuts.iter().cycle() {
                    if rest.is_empty() {
                        break;
                    }
                    let (now, later) = rest.split_at((*cut).min(rest.len()));
                    read.extend(read_all(&mut decoder, now).expect("valid"));
                    rest = later;
                }
                prop_assert_eq!(&read, &messages);
                prop_assert!(!decoder.is_mid_message());
            }
        }
    }
}
