//! How the program speaks: plain lines, errors with a next step, nothing foreign unescaped.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// The exit code when something could not be done.
pub(crate) const COULD_NOT: u8 = 2;

/// Something could not be done, and what to try next.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    next: String,
    is_reader_gone: bool,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, next: impl Into<String>) -> Self {
        Failure { what: what.into(), next: next.into(), is_reader_gone: false }
    }

    /// What a library says in whole sentences, of which the last is the next step; or else this one.
    pub(crate) fn of_sentences(text: &str, next: &str) -> Self {
        match text.rsplit_once(". ") {
            Some((what, last)) => Failure::new(what, last),
            None => Failure::new(text.strip_suffix('.').unwrap_or(text), next),
        }
    }

    /// What could not be done, without the next step.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// A file could not be used.
    pub(crate) fn of_file(verb: &str, path: &Path, error: &io::Error, next: &str) -> Self {
        Failure::new(format!("cannot {verb} {}: {}", name_of(path), reason(error)), next)
    }

    /// Standard output could not be written to.
    pub(crate) fn of_output(error: &io::Error) -> Self {
        Failure::new(
            format!("cannot write the report: {}", reason(error)),
            "Send the output somewhere with room.",
        )
        .of_writing(error.kind())
    }

    /// The same failure, with the way in which standard output could not be written to.
    pub(crate) fn of_writing(mut self, kind: io::ErrorKind) -> Self {
        self.is_reader_gone = kind == io::ErrorKind::BrokenPipe;
        self
    }

    /// Whether all that happened is that the program that reads our output has ended, as in `aaep … | head`.
    /// There is nothing to complain about and nobody to tell.
    pub(crate) fn is_reader_gone(&self) -> bool {
        self.is_reader_gone
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. {}", self.what, self.next)
    }
}

/// An error of the system in words, without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// The name of a file, fit for a terminal.
pub(crate) fn name_of(path: &Path) -> String {
    aaep::printable(&path.to_string_lossy()).into_owned()
}

/// JSON in ASCII over several lines, so that no character of someone else's text steers a terminal.
pub(crate) fn ascii_json(value: &serde_json::Value) -> String {
    ascii(&format!("{value:#}"))
}

/// The same on one line.
pub(crate) fn ascii_json_line(value: &serde_json::Value) -> String {
    ascii(&value.to_string())
}

/// Writes JSON with escapes for all that is not plain ASCII, which is within strings alone.
fn ascii(json: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, '\n' | ' '..='~') {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}").expect("writing to a string cannot fail");
            }
        }
    }
    out
}

/// Says on standard error what could not be done. If even that fails, the exit code still tells.
pub(crate) fn complain(failure: &Failure) {
    if !failure.is_reader_gone() {
        say(&format!("aaep: {failure}"));
    }
}

/// Says a line on standard error.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Whether a line may be drawn over again: on a terminal, for someone who did not ask for plain lines.
pub(crate) fn may_redraw() -> bool {
    let asked_for_plain = ["NO_COLOR", "ACCESSIBLE"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stderr().is_terminal() && !asked_for_plain && !is_dumb
}

/// A number with commas between the thousands, as voices read it best.
pub(crate) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// "1 message", "2 messages".
pub(crate) fn count(value: u64, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", number(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_nouns_counted() {
        assert_eq!(count(1, "message"), "1 message");
        assert_eq!(count(1_000_000, "message"), "1,000,000 messages");
        assert_eq!(number(999), "999");
    }

    #[test]
    fn a_reader_that_is_gone_is_told_from_a_full_disk() {
        let of = |kind: io::ErrorKind| Failure::of_output(&kind.into()).is_reader_gone();
        assert!(of(io::ErrorKind::BrokenPipe));
        assert!(!of(io::ErrorKind::StorageFull));
    }

    #[test]
    fn sentences_stay_as_they_are() {
        let text = |said| Failure::of_sentences(said, "Help.").to_string();
        assert_eq!(
            text("It failed: no. 7. Run: chmod 600 x"),
            "It failed: no. 7. Run: chmod 600 x"
        );
        assert_eq!(text("It failed. Try again."), "It failed. Try again.");
        assert_eq!(text("It failed."), "It failed. Help.");
    }

    #[test]
    fn json_is_ascii_and_means_the_same() {
        let value = serde_json::json!({ "é\u{7f}": ["\u{1b}[2J", "\u{202e}", "🦀\n"] });
        let text = ascii_json(&value);
        assert!(text.chars().all(|c| matches!(c, '\n' | ' '..='~')), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
        assert!(!ascii_json_line(&value).contains('\n'));
    }
}
