//! Contracted braille with the liblouis program, if it is installed.
//!
//! Each text goes to a new child process, without a shell, with a time limit. If anything fails, the text is shown
//! uncontracted, and the person is told once.

use std::io::{self, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use aaep::LanguageTag;

use crate::device::plain::quoted;
use crate::english::devices;

/// The time limit for a text.
const PATIENCE: Duration = Duration::from_secs(2);

/// The most characters on one line of input. The limit of the program itself is far higher.
const MAX_LINE: usize = 400;

/// The most bytes to contract. Longer texts are shown uncontracted.
const MAX_BYTES: usize = 64 * 1024;

/// The most bytes to read back.
const MAX_ANSWER_BYTES: u64 = 16 * MAX_BYTES as u64;

/// The available tables, and whether the person was told that contraction does not work.
#[derive(Debug)]
pub(super) struct BrailleContraction {
    program: String,
    tables: Vec<(LanguageTag, String)>,
    is_failure_told: bool,
}

impl BrailleContraction {
    pub(super) fn new(program: String, tables: Vec<(LanguageTag, String)>) -> Self {
        BrailleContraction { program, tables, is_failure_told: false }
    }

    /// The words in contracted cells, or unchanged; and a message for the person, if there is one.
    pub(super) fn contract(
        &mut self,
        words: String,
        language: Option<&LanguageTag>,
    ) -> (String, Option<String>) {
        let Some(table) = self.table(language).filter(|_| can_be_contracted(&words)) else {
            return (words, None);
        };
        let why = match name(table) {
            None => devices::braille::NOT_A_TABLE.to_owned(),
            Some(table) => match run(&self.program, table, &lines(&words)) {
                Ok(cells) => return (cells, None),
                Err(error) => error.to_string(),
            },
        };
        let notice = devices::braille::shown_uncontracted(&quoted(table), &quoted(&why));
        let is_news = !std::mem::replace(&mut self.is_failure_told, true);
        (words, is_news.then_some(notice))
    }

    /// The table for words in this language. Words without a language get the first table.
    fn table(&self, language: Option<&LanguageTag>) -> Option<&str> {
        let Some(language) = language else {
            return self.tables.first().map(|(_, table)| table.as_str());
        };
        let exact = self.tables.iter().find(|(tag, _)| tag == language);
        let same = || {
            self.tables
                .iter()
                .find(|(tag, _)| tag.primary().eq_ignore_ascii_case(language.primary()))
        };
        exact.or_else(same).map(|(_, table)| table.as_str())
    }
}

/// Checks the name of a table. A table is a liblouis file, named without a folder, so that it cannot be anything
/// else.
fn name(table: &str) -> Option<&str> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = table.len() <= 100 && table.chars().all(is_fine);
    (is_name && table.starts_with(|c: char| c.is_ascii_alphanumeric())).then_some(table)
}

/// Whether words can be contracted. Braille text is not contracted, nor are words longer than a line.
fn can_be_contracted(words: &str) -> bool {
    let is_braille = |c: char| ('\u{2800}'..='\u{28ff}').contains(&c);
    !words.is_empty()
        && words.len() <= MAX_BYTES
        && !words.contains(is_braille)
        && words.split(' ').all(|word| word.chars().count() <= MAX_LINE)
}

/// The words on lines that the program accepts.
fn lines(words: &str) -> String {
    let mut text = String::with_capacity(words.len() + 1);
    let mut length = 0;
    for word in words.split(' ') {
        let next = word.chars().count();
        if length > 0 {
            let is_full = length + 1 + next > MAX_LINE;
            text.push(if is_full { '\n' } else { ' ' });
            length = if is_full { 0 } else { length + 1 };
        }
        text.push_str(word);
        length += next;
    }
    text.push('\n');
    text
}

fn run(program: &str, table: &str, input: &str) -> io::Result<String> {
    let mut child = Command::new(program)
        .arg("--forward")
        .arg(format!("unicode.dis,{table}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let answer = exchange(&mut child, input.to_owned());
    // It has ended, or its time is over.
    let _ = child.kill();
    child.wait()?;
    cells(&answer?).ok_or_else(|| io::Error::other(devices::braille::NO_BRAILLE))
}

/// Writes and reads at the same time, so that neither side blocks the other.
fn exchange(child: &mut Child, input: String) -> io::Result<String> {
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other(devices::braille::NO_PIPES));
    };
    // If the child stops reading, it also stops answering, which is noticed below.
    thread::Builder::new().spawn(move || to.write_all(input.as_bytes()))?;
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let mut answer = String::new();
        let read = from.take(MAX_ANSWER_BYTES).read_to_string(&mut answer);
        // If it took too long, nothing waits for the answer any more.
        let _ = sender.send(read.map(|_| answer));
    })?;
    receiver.recv_timeout(PATIENCE).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// The answer on one line, if it is braille and nothing else.
fn cells(answer: &str) -> Option<String> {
    let line: String = answer.trim_end().chars().map(blank).collect();
    let is_cell = |c: char| c == ' ' || ('\u{2801}'..='\u{28ff}').contains(&c);
    (!line.trim().is_empty() && line.chars().all(is_cell)).then_some(line)
}

fn blank(c: char) -> char {
    if matches!(c, '\u{2800}' | '\n' | '\r') { ' ' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contraction(tables: &[(&str, &str)]) -> BrailleContraction {
        let tables = tables
            .iter()
            .map(|(tag, table)| (LanguageTag::parse(tag).expect("a tag"), (*table).to_owned()))
            .collect();
        BrailleContraction::new("lou_translate".to_owned(), tables)
    }

    fn tag(text: &str) -> LanguageTag {
        LanguageTag::parse(text).expect("a tag")
    }

    #[test]
    fn the_table_follows_the_language_of_the_words() {
        let all = contraction(&[("en", "a.ctb"), ("de-AT", "b.ctb"), ("de", "c.ctb")]);
        for (language, expected) in [
            (None, Some("a.ctb")),
            (Some("de"), Some("c.ctb")),
            (Some("de-CH"), Some("b.ctb")),
            (Some("fr"), None),
        ] {
            assert_eq!(all.table(language.map(tag).as_ref()), expected, "{language:?}");
        }
    }

    #[test]
    fn a_table_is_a_plain_name() {
        assert_eq!(name("en-ueb-g2.ctb"), Some("en-ueb-g2.ctb"));
        for wrong in ["", "../x", "/etc/passwd", "--version", "a,b", "a b", ".hidden"] {
            assert_eq!(name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn text_that_is_not_braille_is_not_shown_as_braille() {
        assert_eq!(cells("⠓⠊⠀⠃\n⠙\n"), Some("⠓⠊ ⠃ ⠙".to_owned()));
        for wrong in ["", "\n", "could not be compiled", "⠓x"] {
            assert_eq!(cells(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn long_words_go_in_lines_and_nothing_gets_lost() {
        let words = ["word"; 500].join(" ");
        let text = lines(&words);
        assert!(text.lines().all(|line| line.chars().count() <= MAX_LINE));
        assert_eq!(text.trim_end().replace('\n', " "), words);
    }

    #[test]
    fn a_program_that_is_not_there_is_told_once_and_the_words_are_shown() {
        let mut all = contraction(&[("en", "en-ueb-g2.ctb")]);
        all.program = "no-such-program".to_owned();
        let (words, notice) = all.contract("hello".to_owned(), None);
        assert_eq!(words, "hello");
        assert!(notice.is_some_and(|it| it.contains("apt-get install liblouis-bin")));
        assert_eq!(all.contract("again".to_owned(), None), ("again".to_owned(), None));
    }
}
