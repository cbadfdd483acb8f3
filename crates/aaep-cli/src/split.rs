//! Cuts a stream of bytes into messages, in constant memory: JSON lines, an array, or documents one after the other.
//! The beginning of the stream shows which of these it is.
//!
//! It only finds where messages begin and end; whether they are valid JSON is checked later, when they are read. No
//! more of a message is kept than the size at which it is refused unread anyway.

use std::io::{self, Read};
use std::ops::Range;

/// How many bytes are read at a time, and roughly how large a batch is.
const CHUNK: usize = 128 * 1024;

/// One byte more than a message may have, so that it is refused for its size.
const ENOUGH: usize = aaep::MAX_BYTES + 1;

/// Consecutive messages, with the lines on which they begin.
#[derive(Debug, Default)]
pub(crate) struct MessageBatch {
    bytes: Vec<u8>,
    pieces: Vec<BatchPiece>,
    /// How many bytes of the stream were read when the batch was complete.
    pub(crate) read: u64,
}

#[derive(Debug)]
struct BatchPiece {
    line: u64,
    content: PieceContent,
}

#[derive(Debug)]
enum PieceContent {
    Message(Range<usize>),
    /// Something is wrong between messages.
    Fault(&'static str),
}

/// What was found at a line: a message, or a fault between messages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FoundPiece<'b> {
    Message(&'b [u8]),
    Fault(&'static str),
}

impl MessageBatch {
    /// The pieces found, with their lines.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (u64, FoundPiece<'_>)> {
        self.pieces.iter().map(|piece| {
            let found = match &piece.content {
                PieceContent::Message(range) => FoundPiece::Message(&self.bytes[range.clone()]),
                PieceContent::Fault(fault) => FoundPiece::Fault(fault),
            };
            (piece.line, found)
        })
    }
}

/// How the messages of a stream are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamLayout {
    Lines,
    Array,
    Documents,
}

/// Cuts a stream into batches.
#[derive(Debug)]
pub(crate) struct MessageSplitter<R> {
    source: R,
    layout: Option<StreamLayout>,
    scan: SplitScan,
    batch: MessageBatch,
    chunk: Vec<u8>,
    read: u64,
    ended: bool,
}

impl<R: Read> MessageSplitter<R> {
    pub(crate) fn new(source: R) -> Self {
        MessageSplitter {
            source,
            layout: None,
            scan: SplitScan::default(),
            batch: MessageBatch::default(),
            chunk: Vec::new(),
            read: 0,
            ended: false,
        }
    }

    /// The next batch; `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> io::Result<Option<MessageBatch>> {
        while !self.ended {
            self.fill()?;
            let layout = *self.layout.get_or_insert_with(|| detect(&self.chunk));
            let chunk = std::mem::take(&mut self.chunk);
            match layout {
                StreamLayout::Lines => self.scan.lines(&chunk, &mut self.batch),
                StreamLayout::Array => self.scan.array(&chunk, &mut self.batch),
                StreamLayout::Documents => self.scan.documents(&chunk, &mut self.batch),
            }
            if self.ended {
                self.scan.end(layout, &mut self.batch);
            }
            if !self.batch.pieces.is_empty() {
                return Ok(Some(self.take_batch()));
            }
        }
        Ok(None)
    }

    /// Reads the next chunk; the first one is filled until the layout can be seen.
    fn fill(&mut self) -> io::Result<()> {
        self.chunk.resize(CHUNK, 0);
        let mut filled = 0;
        while filled < CHUNK {
            match self.source.read(&mut self.chunk[filled..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // A person may be typing: complete lines do not wait for a full chunk.
            if self.is_in_lines(filled) && self.chunk[..filled].ends_with(b"\n") {
                break;
            }
        }
        self.chunk.truncate(filled);
        self.read += filled as u64;
        Ok(())
    }

    /// Whether the layout is lines, as far as the beginning already shows.
    fn is_in_lines(&self, filled: usize) -> bool {
        let beginning = self.chunk[..filled].trim_ascii();
        let layout = || (!beginning.is_empty()).then(|| detect(beginning));
        self.layout.or_else(layout) == Some(StreamLayout::Lines)
    }

    /// Returns the finished messages and keeps the beginning of the unfinished one.
    fn take_batch(&mut self) -> MessageBatch {
        let rest = self.batch.bytes.split_off(self.scan.start);
        self.scan.start = 0;
        let mut batch = std::mem::replace(
            &mut self.batch,
            MessageBatch { bytes: rest, ..MessageBatch::default() },
        );
        batch.read = self.read;
        batch
    }
}

/// JSON lines if the first line is complete or the second begins a message; an array if the first character is a
/// bracket; otherwise documents that span several lines.
fn detect(beginning: &[u8]) -> StreamLayout {
    let text = beginning.trim_ascii_start();
    if text.first() == Some(&b'[') {
        return StreamLayout::Array;
    }
    let mut lines = text.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let mut depth = JsonDepth::default();
    let is_complete = lines.next().is_none_or(|line| {
        for &byte in line {
            depth.step(byte);
        }
        depth.level == 0 && !depth.in_string
    });
    if is_complete || lines.next().is_some_and(|line| line.starts_with(b"{")) {
        StreamLayout::Lines
    } else {
        StreamLayout::Documents
    }
}

/// How deep inside brackets and strings a byte is.
#[derive(Debug, Default)]
struct JsonDepth {
    level: u64,
    in_string: bool,
    escaped: bool,
}

impl JsonDepth {
    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.level += 1,
                b'}' | b']' => self.level = self.level.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_outside(&self) -> bool {
        self.level == 0 && !self.in_string
    }
}

/// The state of the scan between chunks.
#[derive(Debug)]
struct SplitScan {
    /// The line of the next byte, and the line on which the current message began.
    line: u64,
    began: u64,
    /// Where the current message starts in the batch's bytes.
    start: usize,
    depth: JsonDepth,
    in_message: bool,
    array: ArrayState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArrayState {
    Before,
    /// After `[`: an item or the end may follow.
    Opened,
    /// After a comma: an item must follow.
    Comma,
    /// After an item: a comma or the end must follow.
    Item,
    Closed,
}

impl Default for SplitScan {
    fn default() -> Self {
        SplitScan {
            line: 1,
            began: 1,
            start: 0,
            depth: JsonDepth::default(),
            in_message: false,
            array: ArrayState::Before,
        }
    }
}

impl SplitScan {
    fn lines(&mut self, chunk: &[u8], batch: &mut MessageBatch) {
        for piece in chunk.split_inclusive(|&byte| byte == b'\n') {
            let (line, ended) = match piece.strip_suffix(b"\n") {
                Some(line) => (line, true),
                None => (piece, false),
            };
            self.hold(line, batch);
            if ended {
                self.finish_line(batch);
                self.line += 1;
            }
        }
    }

    fn finish_line(&mut self, batch: &mut MessageBatch) {
        let is_empty = batch.bytes[self.start..].iter().all(u8::is_ascii_whitespace);
        if is_empty {
            batch.bytes.truncate(self.start);
        } else {
            self.began = self.line;
            self.finish(batch);
        }
    }

    fn documents(&mut self, chunk: &[u8], batch: &mut MessageBatch) {
        for &byte in chunk {
            self.one_byte(byte, batch, |_, _, _| false);
        }
    }

    fn array(&mut self, chunk: &[u8], batch: &mut MessageBatch) {
        for &byte in chunk {
            self.one_byte(byte, batch, SplitScan::between_items);
        }
    }

    /// Takes a byte. Outside a message, `between` may consume it.
    fn one_byte(
        &mut self,
        byte: u8,
        batch: &mut MessageBatch,
        between: fn(&mut SplitScan, u8, &mut MessageBatch) -> bool,
    ) {
        if self.in_message {
            self.inside(byte, batch, between);
        } else if !byte.is_ascii_whitespace() && !between(self, byte, batch) {
            self.in_message = true;
            self.began = self.line;
            self.inside(byte, batch, between);
        }
        if byte == b'\n' {
            self.line += 1;
        }
    }

    fn inside(
        &mut self,
        byte: u8,
        batch: &mut MessageBatch,
        between: fn(&mut SplitScan, u8, &mut MessageBatch) -> bool,
    ) {
        // A bare word or number ends where something else begins; brackets and strings end themselves.
        let is_bare = self.depth.is_outside() && batch.bytes.len() > self.start;
        if is_bare && (byte.is_ascii_whitespace() || b",]}".contains(&byte)) {
            self.finish(batch);
            if !byte.is_ascii_whitespace() && !between(self, byte, batch) {
                batch.pieces.push(BatchPiece {
                    line: self.line,
                    content: PieceContent::Fault("Something that belongs to no message."),
                });
            }
            return;
        }
        self.hold(&[byte], batch);
        self.depth.step(byte);
        if self.depth.is_outside() && b"}]\"".contains(&byte) {
            self.finish(batch);
        }
    }

    /// Handles a byte between the items of an array; returns whether it was consumed.
    fn between_items(&mut self, byte: u8, batch: &mut MessageBatch) -> bool {
        let mut fault = |what| {
            batch.pieces.push(BatchPiece { line: self.line, content: PieceContent::Fault(what) });
        };
        let (next, used) = match (self.array, byte) {
            (ArrayState::Before, _) => (ArrayState::Opened, true),
            (ArrayState::Opened | ArrayState::Item, b']') => (ArrayState::Closed, true),
            (ArrayState::Item, b',') => (ArrayState::Comma, true),
            (ArrayState::Opened | ArrayState::Comma, b',') => {
                fault("A comma with no message before it.");
                (ArrayState::Comma, true)
            }
            (ArrayState::Comma, b']') => {
                fault("A comma with no message after it.");
                (ArrayState::Closed, true)
            }
            (ArrayState::Opened | ArrayState::Comma, _) => (ArrayState::Item, false),
            (ArrayState::Item, _) => {
                fault("No comma between two messages.");
                (ArrayState::Item, false)
            }
            (ArrayState::Closed, _) => {
                fault("Something after the end of the array.");
                (ArrayState::Closed, false)
            }
        };
        self.array = next;
        used
    }

    /// Keeps bytes of the current message, up to the size limit.
    fn hold(&mut self, bytes: &[u8], batch: &mut MessageBatch) {
        let room = ENOUGH.saturating_sub(batch.bytes.len() - self.start);
        batch.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn finish(&mut self, batch: &mut MessageBatch) {
        let end = batch.bytes.len();
        let content = PieceContent::Message(self.start..end);
        batch.pieces.push(BatchPiece { line: self.began, content });
        self.start = end;
        self.in_message = false;
        self.depth = JsonDepth::default();
    }

    /// The stream has ended: the current message is finished, complete or not.
    fn end(&mut self, layout: StreamLayout, batch: &mut MessageBatch) {
        if layout == StreamLayout::Lines {
            self.finish_line(batch);
        } else if self.in_message {
            self.finish(batch);
        }
        if layout == StreamLayout::Array && self.array != ArrayState::Closed {
            let content = PieceContent::Fault("The array has no end; the text may be cut off.");
            batch.pieces.push(BatchPiece { line: self.line, content });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything found in a text that arrives in pieces of `step` bytes.
    fn split(text: &str, step: usize) -> Vec<(u64, String)> {
        struct SlowReader<'t>(&'t [u8], usize);
        impl Read for SlowReader<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let count = self.1.min(self.0.len()).min(buffer.len());
                buffer[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let mut splitter = MessageSplitter::new(SlowReader(text.as_bytes(), step));
        let mut all = Vec::new();
        while let Some(batch) = splitter.next().expect("no I/O error") {
            all.extend(batch.pieces().map(|(line, found)| match found {
                FoundPiece::Message(bytes) => (line, String::from_utf8_lossy(bytes).into_owned()),
                FoundPiece::Fault(fault) => (line, format!("fault: {fault}")),
            }));
        }
        all
    }

    fn check(text: &str, expected: &[(u64, &str)]) {
        for step in [1, 3, 1 << 20] {
            let found = split(text, step);
            let found: Vec<(u64, &str)> =
                found.iter().map(|(line, text)| (*line, text.as_str())).collect();
            assert_eq!(found, expected, "in steps of {step}");
        }
    }

    #[test]
    fn lines_are_messages_even_broken_ones() {
        check(
            "{\"a\":1}\n\n{\"b\":\n{\"c\":3}",
            &[(1, "{\"a\":1}"), (3, "{\"b\":"), (4, "{\"c\":3}")],
        );
        check("{\"cut\":\n{\"c\":3}\n", &[(1, "{\"cut\":"), (2, "{\"c\":3}")]);
        check("{\"a\":1}\r\n{\"b\":2}\r\n", &[(1, "{\"a\":1}\r"), (2, "{\"b\":2}\r")]);
    }

    #[test]
    fn a_document_may_run_over_several_lines() {
        check(
            "{\n  \"a\": \"}{\\\"\"\n}\n{\n}\n",
            &[(1, "{\n  \"a\": \"}{\\\"\"\n}"), (4, "{\n}")],
        );
        check("{\n  \"a\": [1,\n", &[(1, "{\n  \"a\": [1,\n")]);
    }

    #[test]
    fn an_array_is_cut_into_its_items() {
        check(
            "[\n{\"a\":[1,2]},\n{\"b\":\"],\"} , 7]\n",
            &[(2, "{\"a\":[1,2]}"), (3, "{\"b\":\"],\"}"), (3, "7")],
        );
        check("[]", &[]);
        check("[ ]\n", &[]);
    }

    #[test]
    fn a_broken_array_is_named() {
        let fault = |line, text: &'static str| (line, text);
        check("[{},]", &[(1, "{}"), fault(1, "fault: A comma with no message after it.")]);
        check("[{}{}]", &[(1, "{}"), fault(1, "fault: No comma between two messages."), (1, "{}")]);
        check(
            "[{}\n",
            &[(1, "{}"), fault(2, "fault: The array has no end; the text may be cut off.")],
        );
        check(
            "[{\"a\":",
            &[(1, "{\"a\":"), fault(1, "fault: The array has no end; the text may be cut off.")],
        );
        check("[,{}]", &[fault(1, "fault: A comma with no message before it."), (1, "{}")]);
        check(
            "[{}] {}",
            &[(1, "{}"), fault(1, "fault: Something after the end of the array."), (1, "{}")],
        );
    }

    #[test]
    fn an_endless_message_is_not_held() {
        let text = format!("{{\"a\":\"{}\"}}\n{{}}\n", "x".repeat(3 * aaep::MAX_BYTES));
        let found = split(&text, 1 << 20);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].1.len(), ENOUGH);
        assert_eq!(found[1], (2, "{}".to_owned()));
        let found = split(&format!("[{text}]"), 1 << 20);
        assert_eq!(found[0].1.len(), ENOUGH);
    }

    #[test]
    fn nothing_is_found_in_nothing() {
        check("", &[]);
        check(" \n\n", &[]);
    }

    /// Returns one piece per read, and must not be read again after the last.
    struct PieceReader(std::collections::VecDeque<&'static [u8]>);

    impl Read for PieceReader {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let piece = self.0.pop_front().expect("nobody waits for more");
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    #[test]
    fn a_line_is_not_kept_waiting_for_the_next() {
        let typed: [&[u8]; 3] = [b"{\"a\"", b":1}\n", b"{\"b\":2}\n"];
        let mut splitter = MessageSplitter::new(PieceReader(typed.into()));
        for expected in [&b"{\"a\":1}"[..], b"{\"b\":2}"] {
            let batch = splitter.next().expect("readable").expect("a batch");
            let found: Vec<_> = batch.pieces().map(|(_, found)| found).collect();
            assert_eq!(found, [FoundPiece::Message(expected)]);
        }
    }

    #[test]
    fn a_document_that_comes_in_pieces_is_not_cut_into_lines() {
        let typed: [&[u8]; 4] = [b"\n", b"{\n", b"  \"a\": 1\n}\n", b""];
        let mut splitter = MessageSplitter::new(PieceReader(typed.into()));
        let batch = splitter.next().expect("readable").expect("a batch");
        let found: Vec<_> = batch.pieces().map(|(_, found)| found).collect();
        assert!(
            matches!(found[..], [FoundPiece::Message(text)] if text.starts_with(b"{")),
            "{found:?}"
        );
    }
}
