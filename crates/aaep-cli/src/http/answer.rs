//! Reads one HTTP/1.1 answer within bounds: the head, then a body of a stated length, in chunks, or until the end of
//! the stream.

use std::io::{self, Read};

use super::NoAnswer;

/// The largest head, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The largest body, in bytes.
pub(super) const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// How many bytes are read at a time.
const CHUNK: usize = 8 * 1024;

/// How many interim answers (100 to 199) are skipped.
const MAX_INTERIM: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HubAnswer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl HubAnswer {
    /// The body, if it is valid JSON.
    pub(crate) fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Whether the request succeeded.
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

pub(super) fn read(source: &mut impl Read) -> Result<HubAnswer, NoAnswer> {
    let mut source = AnswerSource { source: &mut *source, held: Vec::new() };
    let head = source.final_head()?;
    let body = source.body(&head)?;
    Ok(HubAnswer { status: head.status, body })
}

/// An answer whose body has no length limit.
pub(crate) struct BodyPieces {
    source: AnswerSource<Box<dyn Read + Send>>,
    head: AnswerHead,
    /// How many bytes of the current chunk are still missing.
    left: usize,
}

impl BodyPieces {
    /// Reads the head.
    pub(super) fn read(source: Box<dyn Read + Send>) -> Result<Self, NoAnswer> {
        let mut source = AnswerSource { source, held: Vec::new() };
        let head = source.final_head()?;
        Ok(BodyPieces { source, head, left: 0 })
    }

    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    /// The next bytes of the body as they arrive; `None` at its end.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, NoAnswer> {
        if self.head.is_chunked && self.left == 0 {
            self.left = self.source.chunk_size()?;
            if self.left == 0 {
                return Ok(None);
            }
        }
        if self.source.held.is_empty() && !self.source.more()? {
            let cut = NoAnswer::CutOff(io::ErrorKind::UnexpectedEof.into());
            return if self.head.is_chunked { Err(cut) } else { Ok(None) };
        }
        if !self.head.is_chunked {
            return Ok(Some(std::mem::take(&mut self.source.held)));
        }
        let count = self.left.min(self.source.held.len());
        self.left -= count;
        let piece = self.source.held.drain(..count).collect();
        if self.left == 0 {
            self.source.end_of_chunk()?;
        }
        Ok(Some(piece))
    }
}

/// The parts of the head that matter here.
#[derive(Debug, PartialEq, Eq)]
struct AnswerHead {
    status: u16,
    length: Option<usize>,
    is_chunked: bool,
}

struct AnswerSource<R> {
    source: R,
    /// Bytes that were read but not used yet.
    held: Vec<u8>,
}

impl<R: Read> AnswerSource<R> {
    /// The head of the final answer, after any interim ones.
    fn final_head(&mut self) -> Result<AnswerHead, NoAnswer> {
        for _ in 0..MAX_INTERIM {
            let head = self.head()?;
            if head.status >= 200 {
                return Ok(head);
            }
        }
        Err(NoAnswer::NotHttp("the server keeps us waiting without an answer"))
    }

    fn head(&mut self) -> Result<AnswerHead, NoAnswer> {
        loop {
            if let Some(end) = find(&self.held, b"\r\n\r\n") {
                let head: Vec<u8> = self.held.drain(..end + 4).collect();
                return parse(&head);
            }
            if self.held.len() > MAX_HEAD_BYTES {
                return Err(NoAnswer::NotHttp("the head of the answer is too long"));
            }
            self.more_or_cut()?;
        }
    }

    fn body(&mut self, head: &AnswerHead) -> Result<Vec<u8>, NoAnswer> {
        if matches!(head.status, 204 | 304) {
            return Ok(Vec::new());
        }
        if head.is_chunked {
            return self.chunks();
        }
        if let Some(length) = head.length {
            return self.exactly(length);
        }
        while self.more()? {
            within_bounds(self.held.len())?;
        }
        Ok(std::mem::take(&mut self.held))
    }

    fn chunks(&mut self) -> Result<Vec<u8>, NoAnswer> {
        let mut body = Vec::new();
        loop {
            let size = self.chunk_size()?;
            if size == 0 {
                return Ok(body);
            }
            within_bounds(body.len().saturating_add(size))?;
            body.extend(self.exactly(size)?);
            self.end_of_chunk()?;
        }
    }

    fn chunk_size(&mut self) -> Result<usize, NoAnswer> {
        let line = self.line()?;
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
        std::str::from_utf8(digits)
            .ok()
            .map(str::trim)
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|text| usize::from_str_radix(text, 16).ok())
            .ok_or(NoAnswer::NotHttp("a piece of the answer has no size"))
    }

    fn end_of_chunk(&mut self) -> Result<(), NoAnswer> {
        let longer = NoAnswer::NotHttp("a piece of the answer is longer than it says");
        if self.line()?.is_empty() { Ok(()) } else { Err(longer) }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>, NoAnswer> {
        within_bounds(length)?;
        while self.held.len() < length {
            self.more_or_cut()?;
        }
        Ok(self.held.drain(..length).collect())
    }

    /// A line without its line ending.
    fn line(&mut self) -> Result<Vec<u8>, NoAnswer> {
        loop {
            if let Some(end) = find(&self.held, b"\r\n") {
                let mut line: Vec<u8> = self.held.drain(..end + 2).collect();
                line.truncate(end);
                return Ok(line);
            }
            if self.held.len() > MAX_HEAD_BYTES {
                return Err(NoAnswer::NotHttp("a line of the answer is too long"));
            }
            self.more_or_cut()?;
        }
    }

    fn more_or_cut(&mut self) -> Result<(), NoAnswer> {
        let cut = || NoAnswer::CutOff(io::ErrorKind::UnexpectedEof.into());
        if self.more()? { Ok(()) } else { Err(cut()) }
    }

    /// Reads more bytes; returns false at the end.
    fn more(&mut self) -> Result<bool, NoAnswer> {
        let mut chunk = [0; CHUNK];
        loop {
            match self.source.read(&mut chunk) {
                Ok(count) => {
                    self.held.extend_from_slice(chunk.get(..count).unwrap_or_default());
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(NoAnswer::CutOff(error)),
            }
        }
    }
}

fn within_bounds(length: usize) -> Result<(), NoAnswer> {
    let too_large = NoAnswer::NotHttp("the answer is larger than is taken");
    if length > MAX_BODY_BYTES { Err(too_large) } else { Ok(()) }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn parse(head: &[u8]) -> Result<AnswerHead, NoAnswer> {
    let not_http = NoAnswer::NotHttp("what answers there does not speak HTTP");
    let Ok(text) = std::str::from_utf8(head) else { return Err(not_http) };
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| {
        let rest = line.strip_prefix("HTTP/1.")?.get(1..)?.strip_prefix(' ')?;
        rest.get(..3)?.parse().ok().filter(|status| (100..600).contains(status))
    });
    let Some(status) = status else { return Err(not_http) };
    let mut head = AnswerHead { status, length: None, is_chunked: false };
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            let wrong = NoAnswer::NotHttp("the length of the answer cannot be read");
            let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
            let length = value.parse().ok().filter(|_| is_number).ok_or(wrong)?;
            if head.length.is_some_and(|other| other != length) {
                return Err(NoAnswer::NotHttp("the answer has two lengths"));
            }
            head.length = Some(length);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case("chunked") {
                return Err(NoAnswer::NotHttp("the answer is packed in an unknown way"));
            }
            head.is_chunked = true;
        }
    }
    Ok(head)
}
