//! SSIP, the protocol of the speech server, as functions over bytes.
//!
//! We send commands of our own, or text that cannot be anything but text. Received bytes are split into lines within
//! limits. Events, whose codes begin with 7, arrive between the lines of answers.

use crate::device::plain::one_line;

/// The longest line that we accept. The longest real ones name voices.
pub const MAX_LINE_BYTES: usize = 8 * 1024;

/// A line from the server: a code, whether it is the last line of its answer, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SsipLine {
    /// The code, of three digits.
    pub code: u16,
    /// Whether it is the last line of its answer or event.
    pub is_last: bool,
    /// The text after the code.
    pub text: String,
}

impl SsipLine {
    /// Whether it belongs to an event instead of an answer.
    pub fn is_event(&self) -> bool {
        (700..800).contains(&self.code)
    }
}

/// The received bytes are not an SSIP line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidSsipLine;

/// Splits received bytes into lines, in whatever pieces they arrive.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// Where the first line begins that was not returned yet.
    at: usize,
}

impl Lines {
    /// Adds received bytes. Memory is bounded if all lines are taken out before the next call.
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(piece);
    }

    /// The next complete line, if there is one. After an error there are no more.
    pub fn next_line(&mut self) -> Result<Option<SsipLine>, InvalidSsipLine> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = rest.iter().take(MAX_LINE_BYTES + 1).position(|byte| *byte == b'\n');
        match end {
            Some(end) => {
                let line = read_line(rest.get(..end).unwrap_or_default());
                self.at += end + 1;
                line.map(Some).ok_or(InvalidSsipLine)
            }
            None if rest.len() > MAX_LINE_BYTES => Err(InvalidSsipLine),
            None => Ok(None),
        }
    }
}

fn read_line(bytes: &[u8]) -> Option<SsipLine> {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let (code, rest) = bytes.split_at_checked(3)?;
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u16::from(*byte - b'0'));
    let code = code.iter().try_fold(0, |sum, byte| Some(sum * 10 + digit(byte)?))?;
    let (is_last, text) = match rest.split_first()? {
        (b'-', text) => (false, text),
        (b' ', text) => (true, text),
        _ => return None,
    };
    Some(SsipLine { code, is_last, text: String::from_utf8_lossy(text).into_owned() })
}

/// A command as a line. Its parts are ours or were checked. A line break in it would be a second command, so line
/// breaks are removed.
pub fn command(words: &str) -> Vec<u8> {
    let mut bytes = one_line(words).into_bytes();
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// Words as the body of a message, always one line, with the line that ends it. An initial dot is doubled, so that
/// nothing in the words can end the message early.
pub fn message(words: &str) -> Vec<u8> {
    let line = one_line(words);
    let dot = if line.starts_with('.') { "." } else { "" };
    [dot, &line, "\r\n.\r\n"].concat().into_bytes()
}

/// A name of a voice, a module or a client, or `None` if it cannot be sent to the server.
pub fn name(text: &str) -> Option<&str> {
    const MAX_BYTES: usize = 200;
    let is_fine = |c: char| !c.is_control() && !matches!(c, '"' | '\u{2028}' | '\u{2029}');
    (!text.trim().is_empty() && text.len() <= MAX_BYTES && text.chars().all(is_fine))
        .then(|| text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Result<Vec<SsipLine>, InvalidSsipLine> {
        let (mut lines, mut all) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines.push(piece);
            while let Some(line) = lines.next_line()? {
                all.push(line);
            }
        }
        Ok(all)
    }

    fn line(code: u16, is_last: bool, text: &str) -> SsipLine {
        SsipLine { code, is_last, text: text.to_owned() }
    }

    #[test]
    fn answers_and_events_are_told_apart_wherever_they_are_cut() {
        let whole = b"225-21\r\n701-21\r\n701-4\r\n701 BEGIN\r\n225 OK MESSAGE QUEUED\r\n";
        let expected = [
            line(225, false, "21"),
            line(701, false, "21"),
            line(701, false, "4"),
            line(701, true, "BEGIN"),
            line(225, true, "OK MESSAGE QUEUED"),
        ];
        for cut in 0..=whole.len() {
            let (one, two) = whole.split_at(cut);
            assert_eq!(lines(&[one, two]).expect("lines"), expected, "cut at {cut}");
        }
        assert_eq!(expected.iter().filter(|line| line.is_event()).count(), 3);
    }

    #[test]
    fn bytes_that_are_not_a_line_are_refused() {
        for bytes in ["\r\n", "22\r\n", "2x5 OK\r\n", "225\r\n", "225+OK\r\n", "SPEAK\r\n"] {
            assert_eq!(lines(&[bytes.as_bytes()]), Err(InvalidSsipLine), "{bytes}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let piece = vec![b'2'; 1000];
        let mut all = Lines::default();
        let refused_after = (1..100).find(|_| {
            all.push(&piece);
            all.next_line().is_err()
        });
        assert_eq!(refused_after, Some(MAX_LINE_BYTES / 1000 + 1));
    }

    #[test]
    fn a_lone_dot_and_commands_in_the_words_stay_words() {
        assert_eq!(message("."), b"..\r\n.\r\n");
        assert_eq!(
            message("hello\r\n.\r\nSET ALL VOLUME -100"),
            b"hello . SET ALL VOLUME -100\r\n.\r\n"
        );
        assert_eq!(message("...and\u{0}so\u{1b}on"), b"....and so on\r\n.\r\n");
    }

    #[test]
    fn a_message_is_two_lines_and_only_the_last_ends_it() {
        for words in [
            "",
            ".",
            "..",
            "\n.\n",
            "\r.\r",
            "a\n.",
            ".\u{85}.",
            "\u{2028}.",
            " . ",
            "\u{feff}.\n\u{200b}.",
        ] {
            let text = String::from_utf8(message(words)).expect("UTF-8");
            let lines: Vec<&str> = text.split("\r\n").collect();
            assert_eq!((lines.len(), &lines[1..]), (3, &[".", ""][..]), "{words:?}");
            assert!(lines[0] != "." && !lines[0].contains(['\r', '\n']), "{words:?}");
        }
    }

    #[test]
    fn a_command_is_one_line_whatever_is_in_it() {
        assert_eq!(command("SET SELF RATE 10\r\nQUIT"), b"SET SELF RATE 10 QUIT\r\n");
    }

    #[test]
    fn names_with_line_breaks_or_quotes_are_refused() {
        assert_eq!(name("Alan (high quality)"), Some("Alan (high quality)"));
        for wrong in ["", "  ", "a\r\nSTOP ALL", "a\"b", &"x".repeat(300)] {
            assert_eq!(name(wrong), None, "{wrong:?}");
        }
    }
}
