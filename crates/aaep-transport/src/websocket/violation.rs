//! Every way in which a peer can break RFC 6455 or our limits, with the close code that answers it.
//!
//! A violation describes the peer's error. It carries none of the peer's bytes.

use std::fmt;

/// A WebSocket rule that a peer broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebSocketViolation {
    /// A client sent a frame without a mask (§5.1).
    Unmasked,
    /// A server sent a frame with a mask (§5.1).
    Masked,
    /// A reserved bit was set although no extension was negotiated (§5.2).
    ReservedBits,
    /// The opcode does not exist (§5.2).
    UnknownOpcode,
    /// A length was written in more bytes than it needs, or is negative (§5.2).
    LengthForm,
    /// A ping, pong or close had more than 125 bytes (§5.5).
    LongControlFrame,
    /// A ping, pong or close was fragmented (§5.5).
    FragmentedControlFrame,
    /// A message began before the last one had ended (§5.4).
    UnfinishedMessage,
    /// A continuation arrived although no message had begun (§5.4).
    NothingToContinue,
    /// A message had too many fragments.
    TooManyFragments,
    /// A message is longer than allowed.
    TooBig,
    /// A message is binary; AAEP messages are text (B.2.2).
    Binary,
    /// A text message is not UTF-8 (§8.1).
    InvalidText,
    /// A close had only one byte, but a code has two (§5.5.1).
    ShortClose,
    /// A close carried a code that must not be sent (§7.4).
    InvalidCloseCode,
    /// The reason of a close is not UTF-8 (§5.5.1).
    InvalidCloseReason,
    /// More messages or pings arrived within a second than allowed.
    TooManyMessages,
}

impl WebSocketViolation {
    /// The code of the close frame that answers it (§7.4.1).
    pub fn close_code(self) -> u16 {
        match self {
            Self::TooBig => 1009,
            Self::Binary => 1003,
            Self::InvalidText | Self::InvalidCloseReason => 1007,
            Self::TooManyFragments | Self::TooManyMessages => 1008,
            _ => 1002,
        }
    }
}

impl fmt::Display for WebSocketViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unmasked => "A frame has no mask. Clients must mask every frame.",
            Self::Masked => "A frame has a mask. Servers must send frames without one.",
            Self::ReservedBits => "A reserved bit is set. No extension was agreed; set none.",
            Self::UnknownOpcode => "The kind of frame is unknown. Send text, ping, pong or close.",
            Self::LengthForm => "A length is not in its shortest form. Write it as short as it is.",
            Self::LongControlFrame => "A control frame is too long. Send at most 125 bytes.",
            Self::FragmentedControlFrame => "A control frame came in pieces. Send it whole.",
            Self::UnfinishedMessage => "A message began inside another. Finish the first one.",
            Self::NothingToContinue => "A continuation belongs to no message. Begin with text.",
            Self::TooManyFragments => "A message came in too many pieces. Send larger ones.",
            Self::TooBig => "A message is too long. Send a shorter one.",
            Self::Binary => "A message is binary. Send AAEP messages as text.",
            Self::InvalidText => "A text message is not UTF-8. Send UTF-8.",
            Self::ShortClose => "A close has half a code. Send two bytes or none.",
            Self::InvalidCloseCode => "The code of a close must not be sent. Use an allowed one.",
            Self::InvalidCloseReason => "The reason of a close is not UTF-8. Send UTF-8.",
            Self::TooManyMessages => "Too many messages came within a second. Send fewer.",
        })
    }
}

impl std::error::Error for WebSocketViolation {}
