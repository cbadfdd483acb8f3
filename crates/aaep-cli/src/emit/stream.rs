//! `aaep emit stream`: publishes standard input while it arrives.

use std::io::{self, IsTerminal as _, Read};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::EmitReport;
use super::short::{PrintedId, ends, own_session, piece};
use crate::agent::{EventRefusal, SpeakerFlags, fresh_id, publish, publish_unless_busy};
use crate::console::{self, CommandFailure};
use crate::english::emitting;
use crate::http::HubClient;

/// How many bytes are read at a time. An event holds at most 16,384 characters.
const READ_BYTES: usize = 12 * 1024;

/// How long to pause when the hub is too busy, and how often.
const BUSY_PAUSE: Duration = Duration::from_millis(500);
const MAX_BUSY: u32 = 120;

/// Streams standard input to its end. Without a session, begins one of its own.
pub(super) fn run(
    client: &HubClient,
    speaker: &SpeakerFlags,
    output: Option<&str>,
    report: &mut EmitReport,
) -> Result<(), CommandFailure> {
    if io::stdin().is_terminal() {
        console::say(emitting::READING_WORDS);
    }
    let has_session = speaker.session.is_some();
    let speaker = if has_session {
        speaker.clone()
    } else {
        let (speaker, begins) = own_session(speaker)?;
        if !taken(publish(client, &[begins])?, report)? {
            return Ok(());
        }
        speaker
    };
    let made = fresh_id("out_")?;
    let output = output.unwrap_or(&made);
    let mut pieces = TextPieces::new(io::stdin().lock());
    let mut result = Ok(());
    loop {
        let text = match pieces.next() {
            Ok(text) => text,
            Err(error) => {
                result = Err(emitting::no_input(&error).into());
                None
            }
        };
        let is_last = text.is_none();
        let event = piece(&speaker, Some(output), &text.unwrap_or_default(), is_last);
        if !taken(send(client, event)?, report)? {
            return result;
        }
        if is_last {
            break;
        }
    }
    if !has_session {
        taken(publish(client, &[ends(&speaker)])?, report)?;
    }
    result
}

/// Publishes one chunk. While the hub is too busy, nothing more is read.
fn send(
    client: &HubClient,
    event: Value,
) -> Result<Vec<Result<Value, EventRefusal>>, CommandFailure> {
    let events = [event];
    for _ in 0..MAX_BUSY {
        if let Some(answers) = publish_unless_busy(client, &events)? {
            return Ok(answers);
        }
        sleep(BUSY_PAUSE);
    }
    publish(client, &events)
}

/// Reports refusals. Returns whether the hub took everything.
fn taken(
    answers: Vec<Result<Value, EventRefusal>>,
    report: &mut EmitReport,
) -> Result<bool, CommandFailure> {
    let is_taken = answers.iter().all(Result::is_ok);
    report.tell(answers, PrintedId::Nothing, &[])?;
    Ok(is_taken)
}

/// Cuts the input into pieces of whole characters, each as soon as it arrives.
struct TextPieces<R> {
    source: R,
    /// The first bytes of a character whose last bytes have not arrived yet.
    rest: Vec<u8>,
}

impl<R: Read> TextPieces<R> {
    fn new(source: R) -> Self {
        TextPieces { source, rest: Vec::new() }
    }

    /// The next piece; `None` at the end. Invalid bytes become the replacement character.
    fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            let mut buffer = vec![0; READ_BYTES];
            let count = match self.source.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let mut bytes = std::mem::take(&mut self.rest);
            bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
            if count == 0 {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                return Ok(Some(text).filter(|it| !it.is_empty()));
            }
            if let Err(error) = std::str::from_utf8(&bytes)
                && error.error_len().is_none()
            {
                self.rest = bytes.split_off(error.valid_up_to());
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if !text.is_empty() {
                return Ok(Some(text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns these bytes, one item per read.
    struct SlowText(Vec<Vec<u8>>);

    impl Read for SlowText {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let next = self.0.remove(0);
            buffer[..next.len()].copy_from_slice(&next);
            Ok(next.len())
        }
    }

    fn pieces(reads: &[&[u8]]) -> Vec<String> {
        let mut pieces = TextPieces::new(SlowText(reads.iter().map(|it| it.to_vec()).collect()));
        std::iter::from_fn(|| pieces.next().expect("readable")).collect()
    }

    #[test]
    fn characters_stay_whole_and_nothing_is_lost() {
        assert_eq!(pieces(&[b"The ", b"cat."]), ["The ", "cat."]);
        let rocket = "🚀".as_bytes();
        assert_eq!(pieces(&[&rocket[..1], &rocket[1..3], &rocket[3..]]), ["🚀"]);
        assert_eq!(pieces(&[b"a\xff", b"b"]), ["a\u{fffd}", "b"]);
        assert_eq!(pieces(&[&rocket[..2]]), ["\u{fffd}"], "the end of it never came");
        assert_eq!(pieces(&[]), Vec::<String>::new());
    }
}
