//! How the program talks to people: plain lines, errors with a next step, untrusted text escaped.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use crate::english::failures;

/// The exit code when something could not be done.
pub(crate) const COULD_NOT: u8 = 2;

/// A command could not be carried out; `next` says what to try.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    what: String,
    next: String,
    is_reader_gone: bool,
}

impl CommandFailure {
    pub(crate) fn new(what: impl Into<String>, next: impl Into<String>) -> Self {
        CommandFailure { what: what.into(), next: next.into(), is_reader_gone: false }
    }

    /// Splits the sentences of a library's error: the last one is the next step, if there are several; otherwise
    /// `next` is.
    pub(crate) fn of_sentences(text: &str, next: &str) -> Self {
        match text.rsplit_once(". ") {
            Some((what, last)) => CommandFailure::new(what, last),
            None => CommandFailure::new(text.strip_suffix('.').unwrap_or(text), next),
        }
    }

    /// What failed, without the next step.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// The failure for a file that could not be used.
    pub(crate) fn of_file(verb: &str, path: &Path, error: &io::Error, next: &str) -> Self {
        CommandFailure::new(failures::cannot_use(verb, &name_of(path), &reason(error)), next)
    }

    /// The failure for standard output that could not be written to.
    pub(crate) fn of_output(error: &io::Error) -> Self {
        CommandFailure::from(failures::output_failed(&reason(error))).of_writing(error.kind())
    }

    /// Adds how writing to standard output failed.
    pub(crate) fn of_writing(mut self, kind: io::ErrorKind) -> Self {
        self.is_reader_gone = kind == io::ErrorKind::BrokenPipe;
        self
    }

    /// Whether the only problem is that the program reading our output has ended, as in `aaep … | head`. Then there
    /// is nothing to report and nobody to report it to.
    pub(crate) fn is_reader_gone(&self) -> bool {
        self.is_reader_gone
    }
}

/// What failed, and what to try.
impl<W: Into<String>, N: Into<String>> From<(W, N)> for CommandFailure {
    fn from((what, next): (W, N)) -> Self {
        CommandFailure::new(what, next)
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. {}", self.what, self.next)
    }
}

/// A system error in words, without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// The name of a file, safe to print on a terminal.
pub(crate) fn name_of(path: &Path) -> String {
    aaep::printable(&path.to_string_lossy()).into_owned()
}

/// JSON in ASCII over several lines, so that untrusted text cannot control a terminal.
pub(crate) fn ascii_json(value: &serde_json::Value) -> String {
    ascii(&format!("{value:#}"))
}

/// JSON in ASCII on one line.
pub(crate) fn ascii_json_line(value: &serde_json::Value) -> String {
    ascii(&value.to_string())
}

/// Escapes everything that is not plain ASCII. In JSON, that occurs only within strings.
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

/// Reports a failure on standard error. If that fails too, the exit code still tells.
pub(crate) fn complain(failure: &CommandFailure) {
    if !failure.is_reader_gone() {
        say(&format!("aaep: {failure}"));
    }
}

/// Prints a line on standard error.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Whether a line may be redrawn: only on a terminal, and only if the person did not ask for plain lines.
pub(crate) fn may_redraw() -> bool {
    let asked_for_plain = ["NO_COLOR", "ACCESSIBLE"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stderr().is_terminal() && !asked_for_plain && !is_dumb
}

/// A number with commas between the thousands, which voices read best.
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
        let of = |kind: io::ErrorKind| CommandFailure::of_output(&kind.into()).is_reader_gone();
        assert!(of(io::ErrorKind::BrokenPipe));
        assert!(!of(io::ErrorKind::StorageFull));
    }

    #[test]
    fn sentences_stay_as_they_are() {
        let text = |said| CommandFailure::of_sentences(said, "Help.").to_string();
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
