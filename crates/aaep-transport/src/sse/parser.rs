//! Reads a stream of server-sent events as WHATWG HTML §9.2.6 prescribes, however its bytes are split.
//!
//! It never holds more than the limit that the caller gives, and never reconnects by itself.

use std::fmt;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The value of the `event:` line, or `message` without one.
    pub name: String,
    /// The newest id of the stream, perhaps from an earlier event; empty if there was none.
    pub last_event_id: String,
    /// The data, with its lines joined by line feeds.
    pub data: String,
}

/// A line or an event is longer than the caller allows. The parser accepts nothing more; reconnect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooBig {
    /// The limit that was exceeded.
    pub limit_bytes: usize,
}

impl fmt::Display for TooBig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "An event of the stream is longer than {} bytes. Connect again; \
             if this happens again, the producer sends events that are too long.",
            self.limit_bytes
        )
    }
}

impl std::error::Error for TooBig {}

/// A stream of server-sent events, as far as it has been read.
#[derive(Debug, Default)]
pub struct Parser {
    /// The bytes of an incomplete line.
    line: Vec<u8>,
    data: Option<String>,
    name: String,
    last_event_id: String,
    retry_ms: Option<u64>,
    /// Whether the last byte was a carriage return, which already ended its line.
    after_return: bool,
    is_past_first_line: bool,
    is_broken: bool,
}

impl Parser {
    /// Takes the next bytes and returns the events that they complete.
    ///
    /// An incomplete event, and each line, stays within `limit_bytes`.
    pub fn push(&mut self, bytes: &[u8], limit_bytes: usize) -> Result<Vec<SseEvent>, TooBig> {
        let too_big = TooBig { limit_bytes };
        if self.is_broken {
            return Err(too_big);
        }
        let mut events = Vec::new();
        let mut rest = bytes;
        if self.after_return && !rest.is_empty() {
            self.after_return = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            self.keep(&rest[..at], limit_bytes)?;
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, &mut events);
            if self.held_bytes() > limit_bytes {
                self.is_broken = true;
                return Err(too_big);
            }
            let was_return = rest[at] == b'\r';
            rest = &rest[at + 1..];
            if was_return {
                self.after_return = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        self.keep(rest, limit_bytes)?;
        Ok(events)
    }

    /// The newest id of the stream, for `Last-Event-ID` when reconnecting; may be empty.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// How long the producer wants subscribers to wait before they reconnect.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    fn keep(&mut self, bytes: &[u8], limit_bytes: usize) -> Result<(), TooBig> {
        if self.held_bytes() + bytes.len() > limit_bytes {
            self.is_broken = true;
            return Err(TooBig { limit_bytes });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn held_bytes(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, String::len) + self.name.len()
    }

    fn take_line(&mut self, line: &[u8], events: &mut Vec<SseEvent>) {
        let is_first = !std::mem::replace(&mut self.is_past_first_line, true);
        let line = if is_first { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        if line.is_empty() {
            events.extend(self.dispatch());
            return;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, [].as_slice()),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match field {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(&value);
                }
                None => self.data = Some(value.into_owned()),
            },
            b"event" => self.name = value.into_owned(),
            b"id" if !value.contains('\0') => self.last_event_id = value.into_owned(),
            b"retry" if !value.is_empty() && value.bytes().all(|it| it.is_ascii_digit()) => {
                self.retry_ms = value.parse().ok().or(self.retry_ms);
            }
            // A comment, or a field that a later version of the format may add.
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let data = self.data.take().unwrap_or_default();
        let name = std::mem::take(&mut self.name);
        // An event whose only data line was empty is not delivered either: the format drops one final line feed,
        // and then nothing is left.
        (!data.is_empty()).then(|| SseEvent {
            name: if name.is_empty() { "message".to_owned() } else { name },
            last_event_id: self.last_event_id.clone(),
            data,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Vec<SseEvent> {
        Parser::default().push(text.as_bytes(), 1000).expect("small")
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        let events = read(
            "\u{feff}data\ndata\n\ndata: a\ndata:b\ndata:  c\nid: 1\nevent: n\nother: x\n\n:c\n\n",
        );
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].data, "\n");
        assert_eq!(events[0].name, "message");
        assert_eq!(events[1].data, "a\nb\n c");
        assert_eq!((events[1].name.as_str(), events[1].last_event_id.as_str()), ("n", "1"));
    }

    #[test]
    fn an_id_with_a_nul_and_a_retry_time_that_is_not_a_number_are_ignored() {
        let mut parser = Parser::default();
        let text = "id: 1\nid: 2\0\nretry: 10\nretry: 1x\nretry: -1\nretry\nretry: 99999999999999999999999\ndata: x\n\n";
        let events = parser.push(text.as_bytes(), 1000).expect("small");
        assert_eq!(events[0].last_event_id, "1");
        assert_eq!(parser.retry_ms(), Some(10));
    }

    #[test]
    fn an_event_that_was_cut_off_is_never_given() {
        assert_eq!(read("data: half"), []);
        assert_eq!(read("data: half\n"), []);
    }

    #[test]
    fn a_byte_order_mark_counts_only_at_the_very_start() {
        assert_eq!(read("\ndata: a\n\n\u{feff}data: b\n\n").len(), 1);
        assert_eq!(read("\u{feff}\u{feff}data: b\n\n"), []);
    }

    #[test]
    fn a_line_without_end_and_data_without_end_are_refused() {
        let mut parser = Parser::default();
        assert!(parser.push(&[b'x'; 60], 100).is_ok());
        assert_eq!(parser.push(&[b'x'; 60], 100), Err(TooBig { limit_bytes: 100 }));
        assert!(parser.push(b"\n", 100).is_err(), "a broken stream stays broken");
        let mut parser = Parser::default();
        let error = (0..100).find_map(|_| parser.push(b"data: 0123456789\n", 100).err());
        assert_eq!(error, Some(TooBig { limit_bytes: 100 }));
        let mut parser = Parser::default();
        let error = (0..200).find_map(|_| parser.push(b"data\n", 100).err());
        assert_eq!(error, Some(TooBig { limit_bytes: 100 }), "line feeds count");
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_replaced() {
        let events = Parser::default().push(b"data: a\xffb\n\n", 100).expect("small");
        assert_eq!(events[0].data, "a\u{fffd}b");
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just("data"),
            Just(":"),
            Just(" "),
            Just("\r"),
            Just("\n"),
            Just("\r\n"),
            Just("\n\n"),
            Just("id"),
            Just("event"),
            Just("retry: 7"),
            Just("\0"),
            Just("\u{feff}"),
            Just("é"),
            Just("data: x\n\n"),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn any_cut_of_the_bytes_gives_the_same_events(
            bytes in stream(), cuts in prop::collection::vec(0_usize..200, 0..10),
        ) {
            let whole = Parser::default().push(&bytes, 1000);
            let mut parser = Parser::default();
            let mut events = Vec::new();
            let mut rest = bytes.as_slice();
            for cut in cuts {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                events.extend(parser.push(now, 1000).expect("small"));
                rest = later;
            }
            events.extend(parser.push(rest, 1000).expect("small"));
            prop_assert_eq!(whole, Ok(events));
        }
    }
}
