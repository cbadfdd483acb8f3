//! What is remembered between two calls of an agent's hooks, which are processes of their own and may overtake each
//! other.
//!
//! Everything in it has a bound, so that no agent makes it grow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::AgentVoice;
use crate::gate::AskAnswer;

/// The most tool calls that are remembered as not finished.
const MAX_PENDING_CALLS: usize = 256;
/// The most pieces of text that wait for an earlier one.
const MAX_WAITING_PIECES: usize = 256;
/// The longest text of a message that is remembered, to compare it with what the agent repeats at the end.
const MAX_REMEMBERED_BYTES: usize = 64 * 1024;

/// The longest piece of text in one event.
const MAX_CHUNK_CHARS: usize = 4000;

/// The memory of one session of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentMemory {
    /// The turn that is going on, in the agent's own form.
    pub(crate) turn: Option<String>,
    /// When the turn began.
    pub(crate) turn_began_ms: i64,
    /// The last turn that ended. What comes late from it is not told again.
    pub(crate) ended_turn: Option<String>,
    /// Tool calls of this turn that have not ended, by the agent's own id.
    pub(crate) pending: BTreeMap<String, PendingCall>,
    /// Messages whose pieces came out of order.
    message: Option<StreamedMessage>,
    /// What happened in this turn.
    pub(crate) counts: TurnCounts,
    /// The asks that wait for an answer: their reply tokens, by what was asked.
    pub(crate) open_asks: BTreeMap<String, String>,
}

/// A tool call that has not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingCall {
    pub(crate) tool: String,
    /// What it does, in words.
    pub(crate) words: String,
    /// The digest of the tool and its arguments.
    pub(crate) digest: String,
    /// Whether it was told that it runs.
    pub(crate) is_told: bool,
    /// Whether the person is asked, here or in the agent's own window.
    pub(crate) is_asked: bool,
}

/// What happened in a turn, for its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TurnCounts {
    pub(crate) tools: u64,
    pub(crate) failed: u64,
    pub(crate) not_run: u64,
    pub(crate) changed_files: Vec<String>,
}

/// A message that arrives in pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StreamedMessage {
    id: String,
    /// The index of the next piece.
    next: u64,
    /// Pieces that came too early: the text, and whether it is the last.
    waiting: BTreeMap<u64, (String, bool)>,
    /// What was told of it.
    said: String,
    is_complete: bool,
}

impl AgentMemory {
    /// Begins a turn.
    pub(crate) fn begin_turn(&mut self, turn: &str, now_ms: i64) {
        *self = AgentMemory {
            turn: Some(turn.to_owned()),
            turn_began_ms: now_ms,
            ended_turn: self.ended_turn.take(),
            ..AgentMemory::default()
        };
    }

    /// Ends the turn, and returns what happened in it. Asks that are still open stay until they are withdrawn.
    pub(crate) fn end_turn(&mut self) -> TurnCounts {
        let counts = std::mem::take(&mut self.counts);
        self.ended_turn = self.turn.take();
        self.pending.clear();
        self.message = None;
        counts
    }

    pub(crate) fn remember_call(&mut self, id: &str, call: PendingCall) {
        if self.pending.len() < MAX_PENDING_CALLS {
            self.pending.insert(id.to_owned(), call);
        }
    }

    /// The agent's id of the newest call of this tool with these arguments.
    pub(crate) fn call_with_digest(&self, digest: &str) -> Option<&str> {
        self.pending.iter().rev().find(|(_, call)| call.digest == digest).map(|(id, _)| id.as_str())
    }

    /// Remembers under which token something is asked, so that it can be withdrawn when it is answered elsewhere.
    pub fn note_asked(&mut self, about: &str, reply_token: &str) {
        const MAX_OPEN_ASKS: usize = 64;
        if self.open_asks.len() < MAX_OPEN_ASKS {
            self.open_asks.insert(about.to_owned(), reply_token.to_owned());
        }
    }

    /// Remembers that what was asked was answered here. Returns false if it was answered elsewhere before: then the
    /// answer counts for nothing.
    pub fn note_answered(&mut self, about: &str, answer: &AskAnswer) -> bool {
        let was_open = self.open_asks.remove(about).is_some();
        let id = self.call_with_digest(about).map(str::to_owned);
        if let (true, Some(id)) = (was_open, id) {
            match answer {
                AskAnswer::Accepted => {
                    self.pending.entry(id).and_modify(|it| it.is_told = true);
                }
                AskAnswer::Rejected => {
                    // A call that was told to run is told not to have run when its batch ends.
                    if self.pending.get(&id).is_some_and(|it| !it.is_told) {
                        self.pending.remove(&id);
                        self.counts.not_run += 1;
                    }
                }
                AskAnswer::Words(_) | AskAnswer::Nothing => {}
            }
        }
        was_open
    }

    /// Remembers that the person is asked about a call.
    pub(crate) fn note_ask_of(&mut self, digest: &str) {
        let asked = self.pending.values_mut().filter(|call| call.digest == digest);
        asked.for_each(|call| call.is_asked = true);
    }

    /// Remembers a changed file, for the end of the turn.
    pub(crate) fn note_changed(&mut self, path: &str) {
        const MAX_FILES: usize = 256;
        let files = &mut self.counts.changed_files;
        if files.len() < MAX_FILES && !files.iter().any(|it| it == path) {
            files.push(path.to_owned());
        }
    }

    /// Takes a piece of a message, and returns the events that can be told now, in order.
    pub(crate) fn take_piece(
        &mut self,
        voice: &AgentVoice,
        message: &str,
        (index, text, is_last): (u64, &str, bool),
    ) -> Vec<Value> {
        let mut events = Vec::new();
        if self.message.as_ref().is_none_or(|it| it.id != message) {
            // A message that was never finished ends where it is.
            events.extend(self.message.take().and_then(|it| it.cut_off(voice)));
            self.message = Some(StreamedMessage { id: message.to_owned(), ..Default::default() });
        }
        let Some(streamed) = &mut self.message else { return events };
        let is_known = index < streamed.next || streamed.is_complete;
        if is_known || streamed.waiting.len() >= MAX_WAITING_PIECES {
            return events;
        }
        streamed.waiting.insert(index, (text.to_owned(), is_last));
        while let Some((text, is_last)) = streamed.waiting.remove(&streamed.next) {
            streamed.next += 1;
            streamed.tell(voice, &text, is_last, &mut events);
        }
        events
    }

    /// Tells what is missing of the last message, which the agent repeats as a whole when its turn ends.
    pub(crate) fn finish_message(&mut self, voice: &AgentVoice, whole: &str) -> Vec<Value> {
        let mut events = Vec::new();
        let whole = whole.trim();
        match self.message.take() {
            Some(mut streamed)
                if whole.starts_with(streamed.said.trim()) && !streamed.said.is_empty() =>
            {
                if !streamed.is_complete {
                    let said = streamed.said.trim().len();
                    let rest = whole[said..].to_owned();
                    streamed.tell(voice, &rest, true, &mut events);
                }
            }
            other => {
                events.extend(other.and_then(|it| it.cut_off(voice)));
                if !whole.is_empty() {
                    let id = format!("last-of-{}", voice.session_id);
                    StreamedMessage { id, ..Default::default() }.tell(
                        voice,
                        whole,
                        true,
                        &mut events,
                    );
                }
            }
        }
        events
    }
}

impl StreamedMessage {
    fn tell(&mut self, voice: &AgentVoice, text: &str, is_last: bool, events: &mut Vec<Value>) {
        if self.said.len() + text.len() <= MAX_REMEMBERED_BYTES {
            self.said.push_str(text);
        }
        self.is_complete |= is_last;
        let mut rest = text;
        while let Some((end, _)) = rest.char_indices().nth(MAX_CHUNK_CHARS) {
            events.push(voice.said(&self.id, &rest[..end], false));
            rest = &rest[end..];
        }
        // An empty last piece only ends what was said.
        if !rest.is_empty() || (is_last && !self.said.is_empty()) {
            events.push(voice.said(&self.id, rest, is_last));
        }
    }

    /// The end of a message that stopped in the middle.
    fn cut_off(self, voice: &AgentVoice) -> Option<Value> {
        (!self.is_complete && !self.said.is_empty()).then(|| voice.said(&self.id, "", true))
    }
}
