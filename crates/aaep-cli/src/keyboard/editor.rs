//! Turns keys into lines. Pure: takes bytes and moments; returns lines and what the terminal must show.
//!
//! It edits as the terminal itself does: backspace, Control-W and Control-U delete. A line that was deleted
//! completely begins again with the next key.

use std::time::Instant;

use super::TypedLine;

/// The longest line that is kept. Further bytes are ignored.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Erases one character on a terminal.
const RUB_OUT: &[u8] = b"\x08 \x08";

/// The effect of one key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KeyEffect {
    /// The bytes to echo to the terminal.
    pub(super) shown: Vec<u8>,
    /// The line that this key completed.
    pub(super) line: Option<TypedLine>,
    /// Whether the input has ended.
    pub(super) is_end: bool,
}

/// The line that is being typed.
#[derive(Debug)]
pub(super) struct LineEditor {
    /// Whether input comes from a terminal, where some keys edit.
    is_terminal: bool,
    line: Vec<u8>,
    begun: Option<Instant>,
    escape: EscapeState,
}

/// The position within an escape sequence, such as that of an arrow key. Escape sequences are not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EscapeState {
    None,
    Begun,
    Within,
}

impl LineEditor {
    pub(super) fn new(is_terminal: bool) -> Self {
        LineEditor { is_terminal, line: Vec::new(), begun: None, escape: EscapeState::None }
    }

    /// Sets whether keys edit from now on. The line typed so far is kept.
    #[cfg(unix)]
    pub(super) fn set_terminal(&mut self, is_terminal: bool) {
        self.is_terminal = is_terminal;
    }

    pub(super) fn is_half_typed(&self) -> bool {
        !self.line.is_empty()
    }

    /// Takes the next byte, which arrived at this moment.
    pub(super) fn take(&mut self, at: Instant, byte: u8) -> KeyEffect {
        if byte == b'\n' {
            return self.enter(at);
        }
        if !self.is_terminal {
            self.begun.get_or_insert(at);
            if self.line.len() < MAX_LINE_BYTES {
                self.line.push(byte);
            }
            return KeyEffect::default();
        }
        match (self.escape, byte) {
            (EscapeState::Begun, b'[' | b'O') => self.escape = EscapeState::Within,
            (EscapeState::Begun, _) | (EscapeState::Within, b'@'..=b'~') => {
                self.escape = EscapeState::None;
            }
            (EscapeState::Within, _) => {}
            (EscapeState::None, byte) => return self.key(at, byte),
        }
        KeyEffect::default()
    }

    fn enter(&mut self, at: Instant) -> KeyEffect {
        let text = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        let begun = self.begun.take().unwrap_or(at);
        self.escape = EscapeState::None;
        let shown = if self.is_terminal { b"\n".to_vec() } else { Vec::new() };
        KeyEffect { shown, line: Some(TypedLine { text, begun }), is_end: false }
    }

    fn key(&mut self, at: Instant, byte: u8) -> KeyEffect {
        let shown = match byte {
            0x1b => {
                self.escape = EscapeState::Begun;
                Vec::new()
            }
            0x04 => return KeyEffect { is_end: self.line.is_empty(), ..KeyEffect::default() },
            0x08 | 0x7f => self.rub_out(self.before_last(|_| true)),
            0x15 => self.rub_out(0),
            0x17 => {
                let blank = |byte: u8| byte == b' ';
                let word = self.line.iter().rposition(|it| !blank(*it)).map_or(0, |at| at + 1);
                let head = self.line.get(..word).unwrap_or_default();
                self.rub_out(head.iter().rposition(|it| blank(*it)).map_or(0, |at| at + 1))
            }
            b'\t' => self.put(at, b' '),
            0..b' ' => Vec::new(),
            _ => self.put(at, byte),
        };
        KeyEffect { shown, ..KeyEffect::default() }
    }

    fn put(&mut self, at: Instant, byte: u8) -> Vec<u8> {
        if self.line.len() >= MAX_LINE_BYTES {
            return Vec::new();
        }
        self.begun.get_or_insert(at);
        self.line.push(byte);
        vec![byte]
    }

    /// Where the last character begins.
    fn before_last(&self, is_wanted: impl Fn(u8) -> bool) -> usize {
        let begins = |byte: u8| !matches!(byte, 0x80..=0xbf) && is_wanted(byte);
        self.line.iter().rposition(|it| begins(*it)).unwrap_or(0)
    }

    /// Deletes everything from this position on.
    fn rub_out(&mut self, from: usize) -> Vec<u8> {
        let gone = self.line.split_off(from.min(self.line.len()));
        if self.line.is_empty() {
            self.begun = None;
        }
        let characters = gone.iter().filter(|it| !matches!(it, 0x80..=0xbf)).count();
        RUB_OUT.repeat(characters)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Types bytes, one per second; returns the lines, the second at which each was begun, and the echo.
    fn typed(is_terminal: bool, bytes: &[u8]) -> (Vec<(String, u64)>, String) {
        let (start, mut editor) = (Instant::now(), LineEditor::new(is_terminal));
        let (mut lines, mut shown) = (Vec::new(), Vec::new());
        for (second, byte) in (0..).zip(bytes) {
            let key = editor.take(start + Duration::from_secs(second), *byte);
            shown.extend(key.shown);
            lines.extend(key.line.map(|it| (it.text, (it.begun - start).as_secs())));
        }
        (lines, String::from_utf8(shown).expect("UTF-8"))
    }

    #[test]
    fn a_line_begins_with_its_first_key() {
        let (lines, shown) = typed(true, b"yes\nno\n");
        assert_eq!(lines, [("yes".to_owned(), 0), ("no".to_owned(), 4)]);
        assert_eq!(shown, "yes\nno\n");
        assert_eq!(typed(false, b"yes\nno\n"), (lines, String::new()));
    }

    #[test]
    fn a_line_that_was_taken_back_begins_again() {
        assert_eq!(typed(true, b"ye\x7f\x7fno\n").0, [("no".to_owned(), 4)]);
        assert_eq!(typed(true, b"yes\x15no\n").0, [("no".to_owned(), 4)]);
        assert_eq!(typed(true, b"yes \x17no\n").0, [("no".to_owned(), 5)]);
        assert_eq!(typed(true, b"yesx\x7f\n").0, [("yes".to_owned(), 0)], "not to nothing");
        assert_eq!(typed(true, b"1 yes\x17no\n").0, [("1 no".to_owned(), 0)]);
    }

    #[test]
    fn what_is_taken_back_is_taken_off_the_terminal_character_by_character() {
        assert_eq!(typed(true, "aé\u{7f}\n".as_bytes()).1, "aé\u{8} \u{8}\n");
        assert_eq!(typed(true, "aé\u{7f}\n".as_bytes()).0, [("a".to_owned(), 0)]);
        assert_eq!(typed(true, b"\x7f\x15\x17\n").1, "\n", "there is nothing to take back");
    }

    #[test]
    fn keys_that_type_nothing_are_no_part_of_a_line() {
        assert_eq!(typed(true, b"\x1b[A\x1bOB\x1b[1;5C\x07y\tn\n").0, [("y n".to_owned(), 13)]);
        let mut editor = LineEditor::new(true);
        assert!(editor.take(Instant::now(), 4).is_end, "Control-D");
        editor.take(Instant::now(), b'x');
        assert!(!editor.take(Instant::now(), 4).is_end);
    }

    #[test]
    fn a_line_is_never_too_long() {
        let (lines, _) = typed(true, &[vec![b'x'; MAX_LINE_BYTES + 9], b"\n".to_vec()].concat());
        assert_eq!(lines[0].0.len(), MAX_LINE_BYTES);
    }
}
