//! An agent's last reply as a whole: its exact text, and words to be spoken.

use std::collections::VecDeque;

use aaep::event::action::OutputStreaming;
use aaep::{LanguageTag, OutputId};
use aaep_announce::words::{PieceEnd, Stream, Style, split};

use crate::english::replaying;

/// How many bytes of a reply are kept.
const MAX_REPLY: usize = 1 << 20;

/// How many unfinished replies of an agent are kept.
const MAX_OPEN: usize = 8;

/// How many bytes are turned into words at a time.
const PIECE: usize = 8 * 1024;

/// The longest part that is told at once, in bytes.
const MAX_PART: usize = 600;

/// A text that an agent said.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AgentReply {
    id: Option<OutputId>,
    is_complete: bool,
    /// When it was said or continued.
    pub(super) unix_us: i64,
    pub(super) turn: u32,
    /// The exact text. Untrusted.
    pub(super) text: String,
    /// Whether its end is missing because it is too long.
    pub(super) is_cut: bool,
    pub(super) language: Option<LanguageTag>,
}

/// The last replies of one session.
#[derive(Debug, Default)]
pub(super) struct AgentReplies {
    /// The unfinished ones, and the newest at the end.
    all: VecDeque<AgentReply>,
}

impl AgentReplies {
    /// Takes the next chunk.
    pub(super) fn take(&mut self, unix_us: i64, turn: u32, piece: &OutputStreaming) {
        let at = self.all.iter().position(|it| !it.is_complete && it.id == piece.output_id);
        let mut reply = at.and_then(|at| self.all.remove(at)).unwrap_or_else(|| AgentReply {
            id: piece.output_id.clone(),
            is_complete: false,
            unix_us,
            turn,
            text: String::new(),
            is_cut: false,
            language: piece.language.clone(),
        });
        let room = MAX_REPLY.saturating_sub(reply.text.len());
        let fits = if reply.is_cut { "" } else { head(&piece.chunk, room) };
        reply.text.push_str(fits);
        reply.is_cut |= fits.len() < piece.chunk.len();
        (reply.is_complete, reply.unix_us, reply.turn) = (piece.complete, unix_us, turn);
        self.all.push_back(reply);
        // Of the finished ones, only the newest counts.
        let newest = self.all.len().saturating_sub(1);
        let mut at = 0;
        self.all.retain(|it| {
            at += 1;
            at > newest || !it.is_complete
        });
        if self.all.len() > MAX_OPEN {
            self.all.pop_front();
        }
    }

    /// The newest reply.
    pub(super) fn last(mut self) -> Option<AgentReply> {
        self.all.pop_back()
    }
}

impl AgentReply {
    /// The words to be spoken, in parts.
    pub(super) fn parts(&self, style: Style) -> Vec<String> {
        let mut stream = Stream::new(style.in_language(self.language.as_ref()));
        let mut words = String::new();
        let mut rest = self.text.as_str();
        while !rest.is_empty() {
            let piece = head(rest, PIECE);
            rest = rest.get(piece.len()..).unwrap_or_default();
            let end = if rest.is_empty() { PieceEnd::Completion } else { PieceEnd::Anywhere };
            let more = stream.push(piece, end);
            if !words.is_empty() && !more.is_empty() {
                words.push(' ');
            }
            words.push_str(&more);
        }
        let mut parts: Vec<String> =
            split(&words, MAX_PART).into_iter().map(str::to_owned).collect();
        if self.is_cut {
            parts.push(replaying::REST_TOO_LONG.to_owned());
        }
        parts
    }
}

/// The longest prefix of a text that fits, without cutting a character.
fn head(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use aaep::Payload;
    use serde_json::json;

    use super::*;
    use crate::attention::asked::tests::read;

    fn piece(output: Option<&str>, chunk: &str, complete: bool) -> OutputStreaming {
        let mut event = json!({
            "@context": aaep::CORE_CONTEXT, "type": "aaep:agent.output.streaming",
            "event_id": "evt_1", "session_id": "sess_1", "timestamp": "2026-11-02T06:20:09.118Z",
            "producer": { "agent_id": "photos" }, "chunk": chunk, "position": 0, "complete": complete,
        });
        if let Some(output) = output {
            event["output_id"] = output.into();
        }
        match read(&event).payload {
            Payload::OutputStreaming(piece) => piece,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_last_reply_is_put_together_from_its_pieces() {
        let mut replies = AgentReplies::default();
        replies.take(1, 1, &piece(None, "The first.", true));
        replies.take(2, 2, &piece(Some("out_a"), "It is **the", false));
        replies.take(3, 2, &piece(Some("out_b"), "Another one.", true));
        replies.take(4, 2, &piece(Some("out_a"), " second**.", true));
        let last = replies.last().expect("a reply");
        assert_eq!((last.text.as_str(), last.unix_us), ("It is **the second**.", 4));
        assert_eq!(last.parts(Style::PLAIN), ["It is the second."]);
        assert_eq!(AgentReplies::default().last(), None);
    }

    #[test]
    fn a_reply_of_any_length_is_told_whole_up_to_its_bound() {
        let mut replies = AgentReplies::default();
        let sentence = "This is a sentence of eight plain words. ";
        for _ in 0..2000 {
            replies.take(1, 1, &piece(None, sentence, false));
        }
        let parts = replies.last().expect("a reply").parts(Style::PLAIN);
        let count: usize = parts.iter().map(|it| it.matches("eight plain").count()).sum();
        assert_eq!(count, 2000);
        assert!(parts.iter().all(|it| it.len() <= MAX_PART));

        let mut replies = AgentReplies::default();
        for at in 0..100 {
            let (output, chunk) = (format!("out_{at}"), "ä ".repeat(10_000));
            replies.take(1, 1, &piece(Some(&output), &chunk, false));
        }
        assert!(replies.all.len() <= MAX_OPEN);
        for _ in 0..100 {
            replies.take(1, 1, &piece(Some("out_long"), &"ä ".repeat(10_000), false));
        }
        let last = replies.last().expect("a reply");
        assert!(last.is_cut && last.text.len() <= MAX_REPLY);
        let parts = last.parts(Style::PLAIN);
        assert_eq!(parts.last().map(String::as_str), Some(replaying::REST_TOO_LONG));
    }
}
