//! The text that waits to be cut, with a little of the text before it.
//!
//! Positions are counted from the beginning of the output, so they stay valid while text leaves.
//! Nothing beyond the last character that was read is ever visible.

use super::class;

/// How many characters before a position can be looked at, whether they were cut or not.
pub(super) const LOOK_BACK_CHARS: usize = 24;

/// How much of the text that was already cut is kept: enough to look back, at four bytes per
/// character.
const KEPT_BYTES: usize = LOOK_BACK_CHARS * 4;

/// Cut text is discarded in portions this large, so that moving the remaining text costs little.
const PORTION_BYTES: usize = 4_096;

/// A position in the output, counted from its beginning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct TextPosition {
    pub(super) byte: usize,
    pub(super) chars: usize,
}

/// The text that waits to be cut.
#[derive(Debug, Default)]
pub(super) struct HeldText {
    buffer: String,
    /// Where in the output the buffer begins.
    base: usize,
    start: TextPosition,
    end: TextPosition,
}

impl HeldText {
    /// Where the text not yet cut begins.
    pub(super) fn start(&self) -> TextPosition {
        self.start
    }

    /// Where the text read so far ends.
    pub(super) fn end(&self) -> TextPosition {
        self.end
    }

    /// How many characters wait to be cut.
    pub(super) fn chars(&self) -> usize {
        self.end.chars - self.start.chars
    }

    pub(super) fn push(&mut self, c: char) {
        self.buffer.push(c);
        self.end.byte += c.len_utf8();
        self.end.chars += 1;
    }

    /// Adds the characters at the front that can neither end nor begin anything, as long as fewer
    /// than `limit` wait, and returns the rest.
    pub(super) fn take_plain<'a>(&mut self, text: &'a str, limit: usize) -> &'a str {
        let room = limit - self.chars();
        let is_plain = |byte: &u8| class::is_plain(*byte);
        let length = text.bytes().take(room).take_while(is_plain).count();
        let (plain, rest) = text.split_at(length);
        self.buffer.push_str(plain);
        self.end.byte += length;
        self.end.chars += length;
        rest
    }

    /// The text between two positions. Both must not lie before the start of the waiting text.
    pub(super) fn slice(&self, from: TextPosition, to: TextPosition) -> &str {
        &self.buffer[from.byte - self.base..to.byte - self.base]
    }

    /// The last characters before a position, at most [`LOOK_BACK_CHARS`].
    pub(super) fn before(&self, position: TextPosition) -> &str {
        tail(&self.buffer[..position.byte - self.base], LOOK_BACK_CHARS)
    }

    /// Whether the line that ended before this position ended with a comma.
    pub(super) fn ends_with_comma(&self, position: TextPosition) -> bool {
        self.before(position).trim_end().ends_with([',', '،'])
    }

    /// Whether a cut at this position would split a grapheme cluster.
    pub(super) fn is_inside_cluster(&self, position: TextPosition) -> bool {
        let place = position.byte - self.base;
        let before = tail(&self.buffer[..place], 4);
        let Some(next) = self.buffer[place..].chars().next() else { return false };
        match before.chars().next_back() {
            None => false,
            // A joiner binds the next character, whatever is before the joiner.
            Some('\u{200D}') => true,
            Some(last) if last.is_ascii() && next.is_ascii() => last == '\r' && next == '\n',
            Some(_) => {
                let around = &self.buffer[place - before.len()..place + next.len_utf8()];
                !class::clusters(around).any(|boundary| boundary == before.len())
            }
        }
    }

    /// Where the last waiting grapheme cluster begins, if several wait.
    pub(super) fn last_cluster(&self) -> Option<TextPosition> {
        let text = &self.buffer[self.start.byte - self.base..];
        if let [.., before, last] = text.as_bytes()
            && before.is_ascii()
            && last.is_ascii()
            && (*before, *last) != (b'\r', b'\n')
        {
            return Some(self.last_char());
        }
        let inner = |boundary: &usize| (1..text.len()).contains(boundary);
        let boundary = class::clusters(text).filter(inner).last()?;
        Some(TextPosition {
            byte: self.start.byte + boundary,
            chars: self.end.chars - text[boundary..].chars().count(),
        })
    }

    /// Where the last character begins.
    fn last_char(&self) -> TextPosition {
        let length = self.buffer.chars().next_back().map_or(0, char::len_utf8);
        TextPosition { byte: self.end.byte - length, chars: self.end.chars - length.min(1) }
    }

    /// Marks the text up to this position as cut.
    pub(super) fn advance(&mut self, position: TextPosition) {
        self.start = position;
        let done = position.byte - self.base;
        if done > PORTION_BYTES {
            let gone = self.buffer.floor_char_boundary(done - KEPT_BYTES);
            self.buffer.drain(..gone);
            self.base += gone;
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

/// The last `chars` characters of the text.
fn tail(text: &str, chars: usize) -> &str {
    text.char_indices().rev().nth(chars - 1).map_or(text, |(byte, _)| &text[byte..])
}
