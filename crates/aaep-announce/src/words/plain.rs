//! Cleans foreign text of everything that controls a terminal, reorders letters or is invisible.

/// The longest escape sequence, in characters. If it has not ended by then, it is text.
const MAX_SEQUENCE: usize = 512;

/// Whether a character is plainly visible or a space: those that `aaep::printable` does not change.
pub(crate) fn is_plain(c: char) -> bool {
    let mut bytes = [0; 4];
    matches!(aaep::printable(c.encode_utf8(&mut bytes)), std::borrow::Cow::Borrowed(_))
}

/// Takes text in pieces and passes on plain characters and line ends. An escape sequence may be split anywhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextCleaner {
    state: TerminalEscape,
    /// The skipped characters of the current sequence, in case it turns out to be text.
    swallowed: String,
    /// The length of that sequence.
    length: usize,
    after_return: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum TerminalEscape {
    #[default]
    Text,
    /// After the escape character.
    Escape,
    /// In a control sequence, which ends with a letter.
    Control,
    /// In a string for the terminal, which ends with a bell or a terminator.
    Payload,
    /// In such a string, after the escape character of its terminator.
    PayloadEscape,
}

impl TextCleaner {
    /// Passes on the plain characters of this piece.
    pub(crate) fn push(&mut self, text: &str, mut take: impl FnMut(char)) {
        for c in text.chars() {
            self.one(c, &mut take);
        }
    }

    /// The text is over: an unfinished sequence is text.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(char)) {
        self.give_back(&mut take);
        self.after_return = false;
    }

    fn one(&mut self, c: char, take: &mut impl FnMut(char)) {
        match self.state {
            TerminalEscape::Text => self.text(c, take),
            TerminalEscape::Escape => match c {
                '[' => self.begin(TerminalEscape::Control),
                ']' | 'P' | 'X' | '^' | '_' => self.begin(TerminalEscape::Payload),
                // Two-character sequences and those that choose a character set.
                ' '..='/' => {}
                '0'..='~' => self.state = TerminalEscape::Text,
                _ => {
                    self.state = TerminalEscape::Text;
                    self.text(c, take);
                }
            },
            TerminalEscape::Control => match c {
                '@'..='~' => self.end(),
                ' '..='?' if self.length < MAX_SEQUENCE => self.swallow(c),
                _ => self.not_a_sequence(c, take),
            },
            TerminalEscape::Payload => match c {
                '\u{7}' | '\u{9c}' => self.end(),
                '\u{1b}' => self.state = TerminalEscape::PayloadEscape,
                _ if c.is_control() || self.length >= MAX_SEQUENCE => self.not_a_sequence(c, take),
                _ => self.swallow(c),
            },
            TerminalEscape::PayloadEscape if c == '\\' => self.end(),
            TerminalEscape::PayloadEscape => {
                self.give_back(take);
                self.state = TerminalEscape::Escape;
                self.one(c, take);
            }
        }
    }

    fn text(&mut self, c: char, take: &mut impl FnMut(char)) {
        let after_return = std::mem::take(&mut self.after_return);
        match c {
            '\u{1b}' => self.state = TerminalEscape::Escape,
            '\u{9b}' => self.begin(TerminalEscape::Control),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.begin(TerminalEscape::Payload),
            '\n' if after_return => {}
            '\r' => {
                self.after_return = true;
                take('\n');
            }
            '\n' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => take('\n'),
            '\t' => take(' '),
            '\u{fffd}' => {}
            _ if is_plain(c) => take(c),
            _ => {}
        }
    }

    fn begin(&mut self, state: TerminalEscape) {
        self.state = state;
        self.swallowed.clear();
        self.length = 0;
    }

    fn end(&mut self) {
        self.begin(TerminalEscape::Text);
    }

    fn swallow(&mut self, c: char) {
        self.swallowed.push(c);
        self.length += 1;
    }

    fn not_a_sequence(&mut self, c: char, take: &mut impl FnMut(char)) {
        self.give_back(take);
        self.one(c, take);
    }

    fn give_back(&mut self, take: &mut impl FnMut(char)) {
        let swallowed = std::mem::take(&mut self.swallowed);
        self.begin(TerminalEscape::Text);
        swallowed.chars().filter(|c| is_plain(*c)).for_each(take);
    }
}

/// Foreign text on one line of plain characters, unchanged otherwise.
pub(crate) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut cleaner = TextCleaner::default();
    let mut take = |c: char| {
        let c = if c.is_whitespace() { ' ' } else { c };
        if c != ' ' || !(out.is_empty() || out.ends_with(' ')) {
            out.push(c);
        }
    };
    cleaner.push(text, &mut take);
    cleaner.finish(&mut take);
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(pieces: &[&str]) -> String {
        let (mut cleaner, mut out) = (TextCleaner::default(), String::new());
        for piece in pieces {
            cleaner.push(piece, |c| out.push(c));
        }
        cleaner.finish(|c| out.push(c));
        out
    }

    #[test]
    fn escape_sequences_are_gone_wherever_they_are_cut() {
        let text = "a\u{1b}[1;31mb\u{1b}]0;title\u{7}c\u{1b}]8;;http://x\u{1b}\\d\u{9b}2Je\u{1b}(Bf\u{1b}Pq\u{1b}\\g";
        assert_eq!(cleaned(&[text]), "abcdefg");
        for (at, _) in text.char_indices() {
            assert_eq!(cleaned(&[&text[..at], &text[at..]]), "abcdefg", "cut at {at}");
        }
    }

    #[test]
    fn what_only_looks_like_a_sequence_hides_nothing() {
        assert_eq!(cleaned(&["a\u{1b}]0;b c"]), "a0;b c");
        assert_eq!(cleaned(&["a\u{1b}]0;b\nc"]), "a0;b\nc");
        let long = "x".repeat(MAX_SEQUENCE + 1);
        assert_eq!(cleaned(&["\u{1b}]", &long]), long);
        assert_eq!(cleaned(&["a\u{1b}[12", ";3"]), "a12;3");
    }

    #[test]
    fn lines_end_in_one_way() {
        assert_eq!(cleaned(&["a\r\nb\rc\u{2028}d\u{85}e\r", "\nf"]), "a\nb\nc\nd\ne\nf");
        assert_eq!(one_line(" a\r\n\tb \u{202e}c\u{0} "), "a b c");
    }
}
