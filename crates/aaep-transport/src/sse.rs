//! Server-sent events (appendix B.1.3, WHATWG HTML §9.2): writing here, reading in `parser`.
//!
//! No input can break out of its line. The data itself is never interpreted.

mod parser;

pub use parser::{Parser, SseEvent, TooBig};

use std::io::Write;

/// The name on the `event:` line of every AAEP event (B.1.3).
pub const EVENT_NAME: &str = "aaep.event";

/// A line that only shows that the connection is alive. No empty line follows it: there is no event to end, and
/// some readers would turn it into an empty event.
pub const HEARTBEAT: &[u8] = b":\n";

/// Appends one event.
///
/// An id is omitted if it is empty or a subscriber would ignore it (because it has a line break or a NUL), and so
/// is a name with a line break: neither may start a line of its own. Each line of the data gets its own `data:`
/// line, so the subscriber sees every line break as a line feed.
pub fn event(id: &str, event: Option<&str>, json: &[u8], into: &mut Vec<u8>) {
    into.reserve(json.len() + id.len() + 48);
    if let Some(name) = event.filter(|name| fits_a_line(name)) {
        line(b"event: ", name.as_bytes(), into);
    }
    if fits_a_line(id) {
        line(b"id: ", id.as_bytes(), into);
    }
    let mut rest = json;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        line(b"data: ", &rest[..at], into);
        let is_pair = rest[at..].starts_with(b"\r\n");
        rest = &rest[at + 1 + usize::from(is_pair)..];
    }
    line(b"data: ", rest, into);
    into.push(b'\n');
}

/// Appends a comment, which subscribers skip. Line breaks in it become more comment lines.
pub fn comment(text: &str, into: &mut Vec<u8>) {
    for part in text.split(['\r', '\n']) {
        line(b": ", part.as_bytes(), into);
    }
    into.push(b'\n');
}

/// Appends how long a subscriber should wait before it reconnects. This is not an event, so no empty line ends
/// it.
pub fn retry(milliseconds: u32, into: &mut Vec<u8>) {
    writeln!(into, "retry: {milliseconds}").expect("a vector takes all bytes");
}

fn fits_a_line(text: &str) -> bool {
    !text.is_empty() && !text.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
}

fn line(field: &[u8], value: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(field);
    into.extend_from_slice(value);
    into.push(b'\n');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(id: &str, name: Option<&str>, data: &[u8]) -> String {
        let mut bytes = Vec::new();
        event(id, name, data, &mut bytes);
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn an_event_is_written_as_the_appendix_shows_it() {
        assert_eq!(
            written("evt_1", Some(EVENT_NAME), b"{}"),
            "event: aaep.event\nid: evt_1\ndata: {}\n\n"
        );
        assert_eq!(written("evt_1", None, b"{}"), "id: evt_1\ndata: {}\n\n");
    }

    #[test]
    fn no_input_starts_a_line_of_its_own() {
        assert_eq!(
            written("a\ndata: forged", Some("b\r\nid: forged"), b"{}\r\n\revent: forged\n"),
            "data: {}\ndata: \ndata: event: forged\ndata: \n\n"
        );
        let mut bytes = Vec::new();
        comment("well\ndata: forged\r", &mut bytes);
        assert_eq!(bytes, b": well\n: data: forged\n: \n\n");
    }

    #[test]
    fn a_message_without_an_id_leaves_the_subscribers_last_id_alone() {
        let mut parser = Parser::default();
        let text = written("evt_1", None, b"1") + &written("", None, b"2");
        let events = parser.push(text.as_bytes(), 100).expect("small");
        assert_eq!(events[1].last_event_id, "evt_1");
    }

    #[test]
    fn only_events_end_with_an_empty_line() {
        let mut bytes = HEARTBEAT.to_vec();
        retry(1500, &mut bytes);
        assert_eq!(bytes, b":\nretry: 1500\n");
        event("evt_1", None, b"1", &mut bytes);
        bytes.extend_from_slice(HEARTBEAT);
        event("evt_2", None, b"2", &mut bytes);
        let events = Parser::default().push(&bytes, 100).expect("small");
        let read: Vec<_> = events.iter().map(|it| (&*it.last_event_id, &*it.data)).collect();
        assert_eq!(read, [("evt_1", "1"), ("evt_2", "2")]);
    }

    #[test]
    fn the_wait_before_connecting_again_is_understood() {
        let mut bytes = Vec::new();
        retry(1500, &mut bytes);
        let mut parser = Parser::default();
        parser.push(&bytes, 100).expect("small");
        assert_eq!(parser.retry_ms(), Some(1500));
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_back(
            id in "[^\r\n\0]{1,20}", name in "[^\r\n\0]{1,20}", lines in prop::collection::vec("[^\r\n]{0,20}", 1..5),
        ) {
            let data = lines.join("\n");
            let text = written(&id, Some(&name), data.as_bytes());
            let events = Parser::default().push(text.as_bytes(), 1000).expect("small");
            let is_empty = data.is_empty();
            prop_assert_eq!(events.len(), usize::from(!is_empty));
            if let Some(event) = events.first() {
                prop_assert_eq!(&event.last_event_id, &id);
                prop_assert_eq!(&event.name, &name);
                prop_assert_eq!(&event.data, &data);
            }
        }
    }
}
