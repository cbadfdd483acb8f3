//! Reads WebSocket frames in pieces of any size (RFC 6455 §5), for either side of a connection.
//!
//! It grows with the bytes that arrived, never with a length that was only announced, and owns no buffer between
//! messages. After a violation it ignores the peer.

use super::{WebSocketViolation, apply_mask, may_close_with};

/// The most fragments that one message may have.
pub const MAX_FRAGMENTS: u16 = 4096;

/// Which side reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// We are the server: every frame must be masked.
    Server,
    /// We are the client: no frame may be masked.
    Client,
}

/// A complete message or control frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// A text message.
    Text(String),
    /// A ping, to be answered with a pong of the same content.
    Ping(Vec<u8>),
    /// A pong.
    Pong(Vec<u8>),
    /// The peer closes the connection; nothing after it is read.
    Close {
        /// The code, if there was one.
        code: Option<u16>,
        /// The reason, perhaps empty.
        reason: String,
    },
}

/// The reading half of one connection.
#[derive(Debug)]
pub struct Decoder {
    /// The text so far, across fragments.
    message: Vec<u8>,
    /// The control frame so far.
    control: Vec<u8>,
    max_message_bytes: u32,
    /// How much of the current frame's content is still missing.
    remaining: u32,
    /// How much of it has arrived, for the mask.
    offset: u32,
    mask: [u8; 4],
    fragments: u16,
    role: Role,
    stage: DecodeStage,
    /// The header of the current frame, perhaps incomplete.
    header: [u8; 14],
    header_length: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecodeStage {
    Header,
    Content,
    Ended,
}

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

impl Decoder {
    /// A decoder for messages of up to `max_message_bytes`.
    pub fn new(role: Role, max_message_bytes: u32) -> Self {
        Self {
            message: Vec::new(),
            control: Vec::new(),
            max_message_bytes,
            remaining: 0,
            offset: 0,
            mask: [0; 4],
            fragments: 0,
            role,
            stage: DecodeStage::Header,
            header: [0; 14],
            header_length: 0,
        }
    }

    /// Reads from the front of `bytes` up to the end of one message or control frame.
    ///
    /// Returns `None` when all bytes are read and the frame is incomplete. After a close or a violation it
    /// discards all input.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Incoming>, WebSocketViolation> {
        let outcome = self.advance(bytes);
        if matches!(outcome, Err(_) | Ok(Some(Incoming::Close { .. }))) {
            *self =
                Self { stage: DecodeStage::Ended, ..Self::new(self.role, self.max_message_bytes) };
        }
        outcome
    }

    /// Whether a frame or a message has begun but not ended.
    pub fn is_mid_message(&self) -> bool {
        self.header_length > 0 || self.fragments > 0
    }

    fn advance(&mut self, bytes: &mut &[u8]) -> Result<Option<Incoming>, WebSocketViolation> {
        loop {
            match self.stage {
                DecodeStage::Ended => {
                    *bytes = &[];
                    return Ok(None);
                }
                DecodeStage::Header => {
                    let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
                    *bytes = rest;
                    self.header[usize::from(self.header_length)] = *first;
                    self.header_length += 1;
                    self.check_header()?;
                }
                DecodeStage::Content => {
                    self.take_content(bytes);
                    if self.remaining > 0 {
                        return Ok(None);
                    }
                    let incoming = self.finish_frame()?;
                    if incoming.is_some() {
                        return Ok(incoming);
                    }
                }
            }
        }
    }

    /// Checks the header as far as it has arrived, so that a bad byte is refused at once.
    fn check_header(&mut self) -> Result<(), WebSocketViolation> {
        let length = usize::from(self.header_length);
        if length == 1 {
            return self.check_first();
        }
        let is_masked = self.header[1] & 0x80 != 0;
        let extended_bytes = match self.header[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if length == 2 {
            match (self.role, is_masked) {
                (Role::Server, false) => return Err(WebSocketViolation::Unmasked),
                (Role::Client, true) => return Err(WebSocketViolation::Masked),
                _ => {}
            }
            if self.is_control() && extended_bytes > 0 {
                return Err(WebSocketViolation::LongControlFrame);
            }
        }
        let mask_at = 2 + extended_bytes;
        if length == mask_at {
            self.check_length(&self.header[2..mask_at])?;
        }
        if length < mask_at + if is_masked { 4 } else { 0 } {
            return Ok(());
        }
        // It was checked against the limit above, so it fits.
        self.remaining = u32::try_from(self.announced_bytes(&self.header[2..mask_at]))
            .map_err(|_| WebSocketViolation::TooBig)?;
        self.offset = 0;
        self.mask = [0; 4];
        if is_masked {
            self.mask.copy_from_slice(&self.header[mask_at..mask_at + 4]);
        }
        self.stage = DecodeStage::Content;
        Ok(())
    }

    fn check_first(&mut self) -> Result<(), WebSocketViolation> {
        let first = self.header[0];
        if first & 0x70 != 0 {
            return Err(WebSocketViolation::ReservedBits);
        }
        let is_last = first & 0x80 != 0;
        match first & 0x0f {
            CLOSE | PING | PONG if is_last => return Ok(()),
            CLOSE | PING | PONG => return Err(WebSocketViolation::FragmentedControlFrame),
            CONTINUATION if self.fragments == 0 => {
                return Err(WebSocketViolation::NothingToContinue);
            }
            TEXT | BINARY if self.fragments > 0 => {
                return Err(WebSocketViolation::UnfinishedMessage);
            }
            BINARY => return Err(WebSocketViolation::Binary),
            CONTINUATION | TEXT => {}
            _ => return Err(WebSocketViolation::UnknownOpcode),
        }
        self.fragments += 1;
        if self.fragments > MAX_FRAGMENTS {
            return Err(WebSocketViolation::TooManyFragments);
        }
        Ok(())
    }

    fn check_length(&self, extended: &[u8]) -> Result<(), WebSocketViolation> {
        let announced = self.announced_bytes(extended);
        let shortest = match extended.len() {
            0 => 0,
            2 => 126,
            _ => 1 << 16,
        };
        if announced < shortest || announced >> 63 != 0 {
            return Err(WebSocketViolation::LengthForm);
        }
        // A control frame is short anyway, whatever the limit for messages is.
        let so_far = self.message.len() as u64;
        if !self.is_control() && announced + so_far > u64::from(self.max_message_bytes) {
            return Err(WebSocketViolation::TooBig);
        }
        Ok(())
    }

    fn announced_bytes(&self, extended: &[u8]) -> u64 {
        if extended.is_empty() {
            return u64::from(self.header[1] & 0x7f);
        }
        extended.iter().fold(0, |length, byte| length << 8 | u64::from(*byte))
    }

    fn is_control(&self) -> bool {
        self.header[0] & 0x08 != 0
    }

    fn take_content(&mut self, bytes: &mut &[u8]) {
        let taken = u32::try_from(bytes.len()).unwrap_or(u32::MAX).min(self.remaining);
        let (now, later) = bytes.split_at(taken as usize);
        *bytes = later;
        let into = if self.is_control() { &mut self.control } else { &mut self.message };
        let start = into.len();
        into.extend_from_slice(now);
        apply_mask(&mut into[start..], self.mask, self.offset as usize);
        self.offset += taken;
        self.remaining -= taken;
    }

    fn finish_frame(&mut self) -> Result<Option<Incoming>, WebSocketViolation> {
        self.stage = DecodeStage::Header;
        self.header_length = 0;
        let is_last = self.header[0] & 0x80 != 0;
        let control = std::mem::take(&mut self.control);
        match self.header[0] & 0x0f {
            PING => Ok(Some(Incoming::Ping(control))),
            PONG => Ok(Some(Incoming::Pong(control))),
            CLOSE => read_close(&control).map(Some),
            _ if is_last => {
                self.fragments = 0;
                let text = String::from_utf8(std::mem::take(&mut self.message));
                text.map(|text| Some(Incoming::Text(text)))
                    .map_err(|_| WebSocketViolation::InvalidText)
            }
            _ => Ok(None),
        }
    }
}

fn read_close(content: &[u8]) -> Result<Incoming, WebSocketViolation> {
    let (code, reason) = match content {
        [] => (None, [].as_slice()),
        [_] => return Err(WebSocketViolation::ShortClose),
        [high, low, reason @ ..] => (Some(u16::from_be_bytes([*high, *low])), reason),
    };
    if code.is_some_and(|code| !may_close_with(code)) {
        return Err(WebSocketViolation::InvalidCloseCode);
    }
    let reason = std::str::from_utf8(reason).map_err(|_| WebSocketViolation::InvalidCloseReason)?;
    Ok(Incoming::Close { code, reason: reason.to_owned() })
}

#[cfg(test)]
mod tests;
