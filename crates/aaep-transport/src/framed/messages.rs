//! Reads messages from any source of bytes, one after the other.

use std::fmt;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::{Decoder, FrameViolation, Framing};

const READ_BYTES: usize = 16 << 10;

/// Reads whole messages.
#[derive(Debug)]
pub struct Messages<R> {
    source: R,
    decoder: Decoder,
    buffer: Box<[u8]>,
    /// The part of the buffer that is not yet decoded.
    unread: std::ops::Range<usize>,
}

/// Why there is no next message.
#[derive(Debug)]
pub enum NoMessage {
    /// The peer ended the stream between two messages.
    Ended,
    /// The peer ended the stream in the middle of a message.
    CutOff,
    /// The peer broke a rule.
    Violation(FrameViolation),
    /// Reading failed.
    Failed(io::Error),
}

impl<R: AsyncRead + Unpin> Messages<R> {
    /// Reads messages of up to `max_message_bytes`.
    pub fn new(source: R, framing: Framing, max_message_bytes: u32) -> Self {
        let decoder = Decoder::new(framing, max_message_bytes);
        Self { source, decoder, buffer: vec![0; READ_BYTES].into_boxed_slice(), unread: 0..0 }
    }

    /// The next message that is not empty. Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<String, NoMessage> {
        loop {
            let mut bytes = &self.buffer[self.unread.clone()];
            let read = self.decoder.next(&mut bytes);
            self.unread.start = self.unread.end - bytes.len();
            match read.map_err(NoMessage::Violation)? {
                Some(message) if message.is_empty() => continue,
                Some(message) => return Ok(message),
                None => {}
            }
            let count = self.source.read(&mut self.buffer).await.map_err(NoMessage::Failed)?;
            if count == 0 {
                let is_cut_off = self.decoder.is_mid_message();
                return Err(if is_cut_off { NoMessage::CutOff } else { NoMessage::Ended });
            }
            self.unread = 0..count;
        }
    }
}

impl<R> Messages<R> {
    /// Continues after a violation with the next line, if messages are lines.
    pub fn pass_over(&mut self, violation: FrameViolation) {
        self.decoder.pass_over(violation);
    }
}

impl fmt::Display for NoMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("The other side ended."),
            Self::CutOff => f.write_str("The other side ended in the middle of a message."),
            Self::Violation(violation) => violation.fmt(f),
            Self::Failed(error) => write!(f, "Reading failed: {error}."),
        }
    }
}

impl std::error::Error for NoMessage {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_come_one_by_one_and_the_end_is_told() {
        let bytes = b"{\"a\":1}\n\n{\"b\":2}\n".as_slice();
        let mut messages = Messages::new(bytes, Framing::Lines, 100);
        assert_eq!(messages.next().await.expect("one"), "{\"a\":1}");
        assert_eq!(messages.next().await.expect("two"), "{\"b\":2}");
        assert!(matches!(messages.next().await, Err(NoMessage::Ended)));
        let mut messages = Messages::new(b"{\"a\"".as_slice(), Framing::Lines, 100);
        assert!(matches!(messages.next().await, Err(NoMessage::CutOff)));
    }
}
