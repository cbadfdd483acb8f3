//! Text that comes in pieces, as words that can be said: line by line, block by block.

use super::Style;
use super::code::{Code, is_diff};
use super::diff::{self, Diff, Taken};
use super::inline::prose;
use super::line::{Kind, definition, fence, is_decided, is_rule, kind};
use super::own::{own, without_own_marks};
use super::plain::Cleaner;
use super::sentence::{end_sentence, guarded, last_sentence_end};
use super::shorten::grouped;
use super::table::{Table, is_separator};
use crate::english::text;

/// The longest line that is held to find out what it is, in bytes.
const MAX_LINE: usize = 8 * 1024;
/// The longest run of characters without a space that is kept.
const MAX_RUN: usize = 2000;
/// How much is said of a longer one, in characters.
const RUN_HEAD: usize = 40;
/// How much prose waits for the end of its sentence, in bytes.
const MAX_PROSE: usize = 16 * 1024;
/// How much is said of one piece, in bytes. The rest is left out, and it is said so.
pub const MAX_SAID: usize = 32 * 1024;

/// Where a piece of text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Anywhere, perhaps within a word: only whole sentences are said.
    Anywhere,
    /// Anywhere, and all whole words are said.
    Words,
    /// Where something can be said.
    Sentence,
    /// At the end of the text.
    Completion,
}

/// Turns text that comes in pieces into words for ears and fingers. What a block is stays known from piece to
/// piece: code that is open stays code.
#[derive(Debug, Clone)]
pub struct Stream {
    style: Style,
    cleaner: Cleaner,
    /// The line that has not ended.
    line: String,
    /// How many characters came since the last space, and how many of them were not kept.
    run: (usize, usize),
    mode: Mode,
    /// A whole line that may be the heading of a table or the beginning of a diff: the next one tells.
    held: Option<String>,
    /// Prose that has not been said.
    prose: String,
    /// What the line is whose beginning is in `prose` already.
    open: Option<Kind>,
    in_quote: bool,
    /// Whether what is said next is another sentence.
    is_sentence_over: bool,
    out: String,
    left_out: usize,
}

#[derive(Debug, Clone)]
enum Mode {
    Text,
    Code(Code),
    /// A diff, alone or in a block of code.
    Diff(Box<Diff>, Option<Code>),
    Table(Table),
}

impl Stream {
    /// One at its beginning.
    pub fn new(style: Style) -> Self {
        Stream {
            style,
            cleaner: Cleaner::default(),
            line: String::new(),
            run: (0, 0),
            mode: Mode::Text,
            held: None,
            prose: String::new(),
            open: None,
            in_quote: false,
            is_sentence_over: false,
            out: String::new(),
            left_out: 0,
        }
    }

    /// Takes the next piece; the words that can be said now, on one line, or nothing.
    pub fn push(&mut self, text: &str, end: End) -> String {
        without_own_marks(&self.push_marked(text, end))
    }

    /// The same with our own words marked.
    pub(crate) fn push_marked(&mut self, text: &str, end: End) -> String {
        let mut cleaner = std::mem::take(&mut self.cleaner);
        cleaner.push(text, |c| self.character(c));
        if end == End::Completion {
            cleaner.finish(|c| self.character(c));
        }
        self.cleaner = cleaner;
        if end == End::Completion {
            self.finish();
        } else {
            self.pause(end);
        }
        self.said()
    }

    fn character(&mut self, c: char) {
        if c == '\n' {
            self.end_run();
            let line = std::mem::take(&mut self.line);
            return self.end_line(&line);
        }
        if c.is_whitespace() {
            self.end_run();
        } else {
            self.run.0 += 1;
            if self.run.0 > MAX_RUN {
                self.run.1 += 1;
                return;
            }
        }
        if self.line.len() >= MAX_LINE {
            match self.mode {
                Mode::Text => self.begin_line(),
                // The lines of code are counted, and say themselves that they are cut.
                Mode::Code(_) => return,
                Mode::Diff(..) | Mode::Table(_) => {
                    self.left_out += 1;
                    return;
                }
            }
        }
        self.line.push(if c.is_whitespace() { ' ' } else { c });
    }

    /// Says so where a run of characters was too long to be kept.
    fn end_run(&mut self) {
        let (length, dropped) = std::mem::take(&mut self.run);
        if dropped == 0 {
            return;
        }
        let start = self.line.rfind(' ').map_or(0, |at| at + 1);
        let mut run = self.line.split_off(start);
        if start == 0 && self.open.is_some() {
            // Its beginning came with an earlier piece and is in the prose already.
            let start = self.prose.rfind(' ').map_or(0, |at| at + 1);
            run.insert_str(0, &self.prose.split_off(start));
        }
        self.line.extend(run.chars().take(RUN_HEAD));
        let note = text::cut_of(&grouped(&length.to_string()));
        self.line.push_str(&own(&note));
    }

    fn end_line(&mut self, line: &str) {
        match self.open.take() {
            Some(kind) => {
                self.prose.push_str(line);
                if kind.ends_with_its_line() {
                    self.end_paragraph();
                } else {
                    self.prose.push(' ');
                }
            }
            None => self.whole_line(line),
        }
        self.bound_prose();
    }

    /// A sentence that does not end is told as far as it came.
    fn bound_prose(&mut self) {
        if self.prose.len() > MAX_PROSE {
            let length = self.prose.rfind(' ').map_or(self.prose.len(), |at| at + 1);
            self.say_prose(length);
        }
    }

    fn whole_line(&mut self, line: &str) {
        match std::mem::replace(&mut self.mode, Mode::Text) {
            Mode::Text => self.text_line(line),
            Mode::Code(mut code) => {
                if code.ends_with(line) {
                    self.say(&code.said());
                } else {
                    self.mode = Mode::Code(code);
                }
            }
            Mode::Diff(diff, code) => self.diff_line(diff, code, line),
            Mode::Table(mut table) => {
                if line.contains('|') {
                    if let Some(row) = table.row(line, self.style) {
                        self.say(&row);
                    }
                    self.mode = Mode::Table(table);
                } else {
                    self.end_table(&table);
                    self.text_line(line);
                }
            }
        }
    }

    fn diff_line(&mut self, mut diff: Box<Diff>, mut code: Option<Code>, line: &str) {
        if let Some(code) = &mut code
            && code.ends_with(line)
        {
            return self.say(&diff.said(self.style));
        }
        match diff.take(line, self.style) {
            Taken::Part => self.mode = Mode::Diff(diff, code),
            Taken::Next => {
                self.say(&diff.said(self.style));
                let mut next = Box::new(diff.next());
                next.take(line, self.style);
                self.mode = Mode::Diff(next, code);
            }
            Taken::No => {
                self.say(&diff.said(self.style));
                match code {
                    Some(code) => self.mode = Mode::Code(code),
                    None => self.text_line(line),
                }
            }
        }
    }

    fn text_line(&mut self, line: &str) {
        if let Some(held) = self.held.take() {
            if is_separator(line) && held.contains('|') {
                self.end_paragraph();
                let table = Table::new(&held, self.style);
                self.say(&table.opening());
                self.mode = Mode::Table(table);
                return;
            }
            if held.starts_with("--- ") && line.starts_with("+++ ") {
                return self.begin_diff(&[&held, line]);
            }
            self.plain_line(&held);
        }
        if diff::begins(line) {
            return self.begin_diff(&[line]);
        }
        if line.contains('|') || line.starts_with("--- ") && !is_rule(line) {
            self.held = Some(line.to_owned());
            return;
        }
        self.plain_line(line);
    }

    fn begin_diff(&mut self, lines: &[&str]) {
        self.end_paragraph();
        let mut diff = Box::new(Diff::default());
        for line in lines {
            diff.take(line, self.style);
        }
        self.mode = Mode::Diff(diff, None);
    }

    fn plain_line(&mut self, line: &str) {
        if line.trim().is_empty() || is_rule(line) {
            return self.end_paragraph();
        }
        if let Some((name, address)) = definition(line).filter(|_| !self.style.is_exact) {
            self.end_paragraph();
            self.prose.extend([&*own(text::LINK), " ", name, ": ", address]);
            return self.end_paragraph();
        }
        if let Some(fence) = fence(line) {
            self.end_paragraph();
            let code = Code::new(fence, self.style.reads_code || self.style.is_exact);
            let code = code.quoted(line.trim_start().starts_with('>'));
            self.mode = if is_diff(fence.2) {
                Mode::Diff(Box::new(Diff::loose()), Some(code))
            } else {
                Mode::Code(code)
            };
            return;
        }
        let (kind, text) = match kind(line) {
            // It may as well send the output of a command to a file.
            (Kind::Quote, _) if self.style.is_exact => (Kind::Text, line),
            other => other,
        };
        let ends = kind.ends_with_its_line();
        self.begin(&kind);
        self.prose.push_str(text);
        if ends { self.end_paragraph() } else { self.prose.push(' ') }
    }

    /// What comes before the text of a line.
    fn begin(&mut self, kind: &Kind) {
        match kind {
            Kind::Text => {}
            Kind::Heading => self.end_paragraph(),
            Kind::Item(mark) => {
                self.end_paragraph();
                if let Some(mark) = mark {
                    let is_number = mark.bytes().all(|it| it.is_ascii_digit());
                    let mark = if is_number { mark.clone() } else { own(mark) };
                    self.prose.extend([&*mark, ": "]);
                }
            }
            Kind::Quote if self.in_quote => {}
            Kind::Quote => {
                self.end_paragraph();
                self.in_quote = true;
                self.prose.extend([&*own(text::QUOTE), " "]);
            }
        }
    }

    /// Moves the beginning of a line to the prose, so that it can be said before the line ends.
    fn begin_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.open.is_some() {
            self.prose.push_str(&line);
            return self.bound_prose();
        }
        if let Some(held) = self.held.take() {
            self.plain_line(&held);
        }
        let (kind, text) = kind(&line);
        self.begin(&kind);
        self.prose.push_str(text);
        if line.ends_with(' ') {
            self.prose.push(' ');
        }
        self.open = Some(kind);
    }

    /// A piece ends here, and the text goes on.
    fn pause(&mut self, end: End) {
        if !matches!(self.mode, Mode::Text) || self.held.is_some() {
            return;
        }
        if !self.line.is_empty() && (self.open.is_some() || is_decided(&self.line)) {
            if end == End::Sentence {
                self.end_run();
                self.run = (0, 0);
            }
            self.begin_line();
        }
        let ready = match end {
            End::Sentence | End::Completion => self.prose.len(),
            End::Words => self.prose.rfind(' ').map_or(0, |at| at + 1),
            End::Anywhere => last_sentence_end(&self.prose),
        };
        self.say_prose(ready);
    }

    /// The text ends here; what comes next is another one.
    fn finish(&mut self) {
        self.end_run();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.end_line(&line);
        }
        if let Some(held) = self.held.take() {
            self.plain_line(&held);
        }
        match std::mem::replace(&mut self.mode, Mode::Text) {
            Mode::Text => {}
            Mode::Code(code) => self.say(&code.said()),
            Mode::Diff(diff, _) => self.say(&diff.said(self.style)),
            Mode::Table(table) => self.end_table(&table),
        }
        self.end_paragraph();
        (self.open, self.run) = (None, (0, 0));
    }

    fn end_table(&mut self, table: &Table) {
        if let Some(closing) = table.closing(self.style) {
            self.say(&closing);
        }
    }

    fn end_paragraph(&mut self) {
        self.say_prose(self.prose.len());
        self.in_quote = false;
        self.is_sentence_over = true;
    }

    /// Says so much of the prose.
    fn say_prose(&mut self, length: usize) {
        let rest = self.prose.split_off(length.min(self.prose.len()));
        let piece = std::mem::replace(&mut self.prose, rest);
        let said = prose(&piece, self.style);
        self.add(&said);
    }

    /// Says a block of its own.
    fn say(&mut self, words: &str) {
        self.is_sentence_over = true;
        self.add(words);
    }

    fn add(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        if std::mem::take(&mut self.is_sentence_over) {
            end_sentence(&mut self.out);
        }
        if self.out.len() + words.len() > MAX_SAID {
            self.left_out += words.chars().count();
            return;
        }
        if !self.out.is_empty() && !self.out.ends_with(' ') {
            self.out.push(' ');
        }
        self.out.push_str(words);
    }

    fn said(&mut self) -> String {
        let mut said = guarded(&std::mem::take(&mut self.out));
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            end_sentence(&mut said);
            let count = grouped(&left_out.to_string());
            said.push_str(&own(&text::left_out(&count)));
        }
        said
    }
}
