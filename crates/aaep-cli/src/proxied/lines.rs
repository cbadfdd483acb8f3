//! Lines as they pass: read whole up to a bound, and beyond that passed on piece by piece.

use std::io::{self, BufRead, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::Value;

/// The longest line that is understood. A longer one is passed on unread.
pub(crate) const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

/// How much room for a line is kept for the next one.
const KEPT_BYTES: usize = 256 * 1024;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadLine {
    /// A whole line with its end, or the last one without.
    Whole,
    /// The beginning of a line that is too long.
    Beginning,
    /// There is nothing more.
    End,
}

/// Reads a line, or the beginning of one that is too long.
pub(crate) fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<ReadLine> {
    line.clear();
    line.shrink_to(KEPT_BYTES);
    loop {
        let piece = match input.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if piece.is_empty() {
            return Ok(if line.is_empty() { ReadLine::End } else { ReadLine::Whole });
        }
        let end = piece.iter().position(|it| *it == b'\n');
        let length = end.map_or(piece.len(), |it| it + 1).min(MAX_LINE_BYTES - line.len());
        line.extend_from_slice(&piece[..length]);
        input.consume(length);
        if line.ends_with(b"\n") {
            return Ok(ReadLine::Whole);
        }
        if line.len() == MAX_LINE_BYTES {
            return Ok(ReadLine::Beginning);
        }
    }
}

/// An output that several threads write whole lines to. It is gone once writing fails or it is closed.
pub(crate) struct SharedOutput<W>(Mutex<Option<W>>);

impl<W: Write> SharedOutput<W> {
    pub(crate) fn new(output: W) -> Self {
        SharedOutput(Mutex::new(Some(output)))
    }

    /// Writes a line. Returns false if nobody reads any more.
    pub(crate) fn write(&self, line: &[u8]) -> bool {
        self.with(|output| output.write_all(line).and_then(|()| output.flush()))
    }

    /// Writes the beginning of a line and the rest of it as it comes. Nobody else writes meanwhile.
    pub(crate) fn write_long(&self, beginning: &[u8], input: &mut (impl BufRead + ?Sized)) -> bool {
        self.with(|output| {
            output.write_all(beginning)?;
            loop {
                let piece = match input.fill_buf() {
                    Ok(piece) => piece,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                let end = piece.iter().position(|it| *it == b'\n');
                let length = end.map_or(piece.len(), |it| it + 1);
                output.write_all(&piece[..length])?;
                input.consume(length);
                if end.is_some() || length == 0 {
                    return output.flush();
                }
            }
        })
    }

    pub(crate) fn close(&self) {
        if let Ok(mut output) = self.0.lock() {
            *output = None;
        }
    }

    fn with(&self, write: impl FnOnce(&mut W) -> io::Result<()>) -> bool {
        let Ok(mut output) = self.0.lock() else { return false };
        let is_written = output.as_mut().is_some_and(|it| write(it).is_ok());
        if !is_written {
            *output = None;
        }
        is_written
    }
}

/// How long the last words of a program may take that has ended, while nothing arrives.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// How far the lines of a program have passed.
#[derive(Debug, Default)]
pub(crate) struct PassedLines {
    passed: AtomicU64,
    is_writing: AtomicBool,
}

impl PassedLines {
    /// Notes that a line begins or ends to be written.
    pub(crate) fn note(&self, is_writing: bool) {
        self.is_writing.store(is_writing, Ordering::SeqCst);
        self.passed.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits until everything that the program wrote has passed. A program that it left behind may keep its output
    /// open for ever.
    pub(crate) fn drain(&self, drained: &Receiver<()>) {
        let mut passed = self.passed.load(Ordering::SeqCst);
        while drained.recv_timeout(DRAIN_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            let now = self.passed.load(Ordering::SeqCst);
            if now == passed && !self.is_writing.load(Ordering::SeqCst) {
                return;
            }
            passed = now;
        }
    }
}

/// A message as a line.
pub(crate) fn line_of(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::ReadLine::{Beginning, Whole};
    use super::*;

    #[test]
    fn lines_of_any_length_pass_unchanged() {
        let long = [vec![b'x'; MAX_LINE_BYTES + 70_000], b"\n".to_vec()].concat();
        let text = [b"\n{\r\n".to_vec(), long, b"\xff\n".to_vec(), b"cut".to_vec()].concat();
        let mut input = io::BufReader::new(text.as_slice());
        let output = SharedOutput::new(Vec::new());
        let (mut line, mut kinds) = (Vec::new(), Vec::new());
        loop {
            let read = read_line(&mut input, &mut line).expect("a line");
            match read {
                ReadLine::End => break,
                ReadLine::Whole => assert!(output.write(&line)),
                ReadLine::Beginning => assert!(output.write_long(&line, &mut input)),
            }
            kinds.push(read);
        }
        let written = output.0.lock().expect("a lock").take().expect("an output");
        assert!(written == text, "{} bytes of {}", written.len(), text.len());
        assert_eq!(kinds, [Whole, Whole, Beginning, Whole, Whole]);
    }

    #[test]
    fn a_closed_output_takes_nothing() {
        let output = SharedOutput::new(Vec::new());
        output.close();
        assert!(!output.write(b"x\n"));
    }
}
