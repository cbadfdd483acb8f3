//! Turns text that arrives in pieces into words, line by line and block by block.

use super::Style;
use super::code::{CodeBlock, is_diff};
use super::diff::{self, DiffLine, FileDiff};
use super::inline::prose;
use super::line::{LineKind, definition, fence, is_decided, is_rule, kind};
use super::own::{own, without_own_marks};
use super::plain::TextCleaner;
use super::sentence::{end_sentence, guarded, last_sentence_end};
use super::shorten::grouped;
use super::table::{TextTable, is_separator};
use crate::english::text;

/// The longest line that is held back to find out its kind, in bytes.
const MAX_LINE: usize = 8 * 1024;
/// The longest run of characters without a space that is kept.
const MAX_RUN: usize = 2000;
/// How much of a longer run is said, in characters.
const RUN_HEAD: usize = 40;
/// How much prose waits for the end of its sentence, in bytes.
const MAX_PROSE: usize = 16 * 1024;
/// The most words from one piece, in bytes. The rest is omitted, and the words say so.
pub const MAX_SAID: usize = 32 * 1024;

/// Where a piece of text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PieceEnd {
    /// Anywhere, perhaps within a word: only complete sentences are said.
    Anywhere,
    /// Anywhere, and all complete words are said.
    Words,
    /// At a boundary where it can be said.
    Sentence,
    /// At the end of the text.
    Completion,
}

/// Turns text that arrives in pieces into words for speech and braille. The kind of a block is remembered from piece
/// to piece: an open code block stays code.
#[derive(Debug, Clone)]
pub struct Stream {
    style: Style,
    cleaner: TextCleaner,
    /// The line that has not ended.
    line: String,
    /// How many characters have arrived since the last space, and how many of them were not kept.
    run: (usize, usize),
    mode: StreamMode,
    /// A complete line that may be the heading of a table or the beginning of a diff; the next line decides.
    held: Option<String>,
    /// Prose that has not been said.
    prose: String,
    /// The kind of the line whose beginning is already in `prose`.
    open: Option<LineKind>,
    in_quote: bool,
    /// Whether the next words begin another sentence.
    is_sentence_over: bool,
    out: String,
    left_out: usize,
}

#[derive(Debug, Clone)]
enum StreamMode {
    Text,
    Code(CodeBlock),
    /// A diff, alone or in a block of code.
    Diff(Box<FileDiff>, Option<CodeBlock>),
    Table(TextTable),
}

impl Stream {
    /// Creates a stream at its beginning.
    pub fn new(style: Style) -> Self {
        Stream {
            style,
            cleaner: TextCleaner::default(),
            line: String::new(),
            run: (0, 0),
            mode: StreamMode::Text,
            held: None,
            prose: String::new(),
            open: None,
            in_quote: false,
            is_sentence_over: false,
            out: String::new(),
            left_out: 0,
        }
    }

    /// Takes the next piece and returns the words that can be said now, on one line; may be empty.
    pub fn push(&mut self, text: &str, end: PieceEnd) -> String {
        without_own_marks(&self.push_marked(text, end))
    }

    /// The same with our own words marked.
    pub(crate) fn push_marked(&mut self, text: &str, end: PieceEnd) -> String {
        let mut cleaner = std::mem::take(&mut self.cleaner);
        cleaner.push(text, |c| self.character(c));
        if end == PieceEnd::Completion {
            cleaner.finish(|c| self.character(c));
        }
        self.cleaner = cleaner;
        if end == PieceEnd::Completion {
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
                StreamMode::Text => self.begin_line(),
                // Lines of code are counted, and the block says itself that it is cut.
                StreamMode::Code(_) => return,
                StreamMode::Diff(..) | StreamMode::Table(_) => {
                    self.left_out += 1;
                    return;
                }
            }
        }
        self.line.push(if c.is_whitespace() { ' ' } else { c });
    }

    /// Notes if a run of characters was too long to be kept.
    fn end_run(&mut self) {
        let (length, dropped) = std::mem::take(&mut self.run);
        if dropped == 0 {
            return;
        }
        let start = self.line.rfind(' ').map_or(0, |at| at + 1);
        let mut run = self.line.split_off(start);
        if start == 0 && self.open.is_some() {
            // Its beginning came with an earlier piece and is already in the prose.
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

    /// Says as much as there is of a sentence that does not end.
    fn bound_prose(&mut self) {
        if self.prose.len() > MAX_PROSE {
            let length = self.prose.rfind(' ').map_or(self.prose.len(), |at| at + 1);
            self.say_prose(length);
        }
    }

    fn whole_line(&mut self, line: &str) {
        match std::mem::replace(&mut self.mode, StreamMode::Text) {
            StreamMode::Text => self.text_line(line),
            StreamMode::Code(mut code) => {
                if code.ends_with(line) {
                    self.say(&code.said());
                } else {
                    self.mode = StreamMode::Code(code);
                }
            }
            StreamMode::Diff(diff, code) => self.diff_line(diff, code, line),
            StreamMode::Table(mut table) => {
                if line.contains('|') {
                    if let Some(row) = table.row(line, self.style) {
                        self.say(&row);
                    }
                    self.mode = StreamMode::Table(table);
                } else {
                    self.end_table(&table);
                    self.text_line(line);
                }
            }
        }
    }

    fn diff_line(&mut self, mut diff: Box<FileDiff>, mut code: Option<CodeBlock>, line: &str) {
        if let Some(code) = &mut code
            && code.ends_with(line)
        {
            return self.say(&diff.said(self.style));
        }
        match diff.take(line, self.style) {
            DiffLine::Part => self.mode = StreamMode::Diff(diff, code),
            DiffLine::Next => {
                self.say(&diff.said(self.style));
                let mut next = Box::new(diff.next());
                next.take(line, self.style);
                self.mode = StreamMode::Diff(next, code);
            }
            DiffLine::No => {
                self.say(&diff.said(self.style));
                match code {
                    Some(code) => self.mode = StreamMode::Code(code),
                    None => self.text_line(line),
                }
            }
        }
    }

    fn text_line(&mut self, line: &str) {
        if let Some(held) = self.held.take() {
            if is_separator(line) && held.contains('|') {
                self.end_paragraph();
                let table = TextTable::new(&held, self.style);
                self.say(&table.opening());
                self.mode = StreamMode::Table(table);
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
        let mut diff = Box::new(FileDiff::default());
        for line in lines {
            diff.take(line, self.style);
        }
        self.mode = StreamMode::Diff(diff, None);
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
            let code = CodeBlock::new(fence, self.style.reads_code || self.style.is_exact);
            let code = code.quoted(line.trim_start().starts_with('>'));
            self.mode = if is_diff(fence.2) {
                StreamMode::Diff(Box::new(FileDiff::loose()), Some(code))
            } else {
                StreamMode::Code(code)
            };
            return;
        }
        let (kind, text) = match kind(line) {
            // It could also redirect the output of a command to a file.
            (LineKind::Quote, _) if self.style.is_exact => (LineKind::Text, line),
            other => other,
        };
        let ends = kind.ends_with_its_line();
        self.begin(&kind);
        self.prose.push_str(text);
        if ends { self.end_paragraph() } else { self.prose.push(' ') }
    }

    /// Writes the words before the text of a line.
    fn begin(&mut self, kind: &LineKind) {
        match kind {
            LineKind::Text => {}
            LineKind::Heading => self.end_paragraph(),
            LineKind::Item(mark) => {
                self.end_paragraph();
                if let Some(mark) = mark {
                    let is_number = mark.bytes().all(|it| it.is_ascii_digit());
                    let mark = if is_number { mark.clone() } else { own(mark) };
                    self.prose.extend([&*mark, ": "]);
                }
            }
            LineKind::Quote if self.in_quote => {}
            LineKind::Quote => {
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

    /// A piece ends here, and the text continues.
    fn pause(&mut self, end: PieceEnd) {
        if !matches!(self.mode, StreamMode::Text) || self.held.is_some() {
            return;
        }
        if !self.line.is_empty() && (self.open.is_some() || is_decided(&self.line)) {
            if end == PieceEnd::Sentence {
                self.end_run();
                self.run = (0, 0);
            }
            self.begin_line();
        }
        let ready = match end {
            PieceEnd::Sentence | PieceEnd::Completion => self.prose.len(),
            PieceEnd::Words => self.prose.rfind(' ').map_or(0, |at| at + 1),
            PieceEnd::Anywhere => last_sentence_end(&self.prose),
        };
        self.say_prose(ready);
    }

    /// The text ends here; the next piece begins another one.
    fn finish(&mut self) {
        self.end_run();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.end_line(&line);
        }
        if let Some(held) = self.held.take() {
            self.plain_line(&held);
        }
        match std::mem::replace(&mut self.mode, StreamMode::Text) {
            StreamMode::Text => {}
            StreamMode::Code(code) => self.say(&code.said()),
            StreamMode::Diff(diff, _) => self.say(&diff.said(self.style)),
            StreamMode::Table(table) => self.end_table(&table),
        }
        self.end_paragraph();
        (self.open, self.run) = (None, (0, 0));
    }

    fn end_table(&mut self, table: &TextTable) {
        if let Some(closing) = table.closing(self.style) {
            self.say(&closing);
        }
    }

    fn end_paragraph(&mut self) {
        self.say_prose(self.prose.len());
        self.in_quote = false;
        self.is_sentence_over = true;
    }

    /// Says this much of the prose.
    fn say_prose(&mut self, length: usize) {
        let rest = self.prose.split_off(length.min(self.prose.len()));
        let piece = std::mem::replace(&mut self.prose, rest);
        let said = prose(&piece, self.style);
        self.add(&said);
    }

    /// Says a separate block.
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
