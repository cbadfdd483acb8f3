//! What is remembered between two calls of an agent's hooks, which are processes of their own and may overtake each
//! other.
//!
//! Everything in it has a bound, so that no agent makes it grow.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::event::{AgentVoice, shortened_to};
use crate::gate::{AskAnswer, PlannedAsk};

/// The most tool calls that are remembered as not finished.
const MAX_PENDING_CALLS: usize = 256;
/// The most pieces of text that wait for an earlier one.
const MAX_WAITING_PIECES: usize = 256;
/// The longest text of a message that is remembered, to compare it with what the agent repeats at the end.
const MAX_REMEMBERED_BYTES: usize = 64 * 1024;

/// The most asks that are open, and the most answers that are remembered for a second time.
const MAX_OPEN_ASKS: usize = 64;

/// The longest piece of text in one event.
const MAX_CHUNK_CHARS: usize = 4000;

/// The memory of one session of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentMemory {
    /// The turn that is going on, in the agent's own form.
    pub(crate) turn: Option<String>,
    /// The folder in which the person gave their prompt. A tool can run elsewhere.
    pub(crate) project: Option<String>,
    /// When the turn began.
    pub(crate) turn_began_ms: i64,
    /// The last turn that ended. What comes late from it is not told again.
    pub(crate) ended_turn: Option<String>,
    /// Tool calls of this turn that have not ended, by the agent's own id.
    pub(crate) pending: BTreeMap<String, PendingCall>,
    /// Messages whose pieces came out of order.
    message: Option<StreamedMessage>,
    /// The last message of the agent, if it was told as a whole before its pieces came.
    told_whole: String,
    /// How often the turn ended. It goes on when a helper in the background is done.
    ends: u64,
    /// Whether the agent said that it is done but for helpers in the background.
    pub(crate) waits_for_helpers: bool,
    /// What happened in this turn.
    pub(crate) counts: TurnCounts,
    /// The asks that wait for an answer: their reply tokens, by what was asked.
    pub(crate) open_asks: BTreeMap<String, String>,
    /// What was decided about a call that comes by a second time, by its digest. It counts once.
    pub(crate) earlier: BTreeMap<String, EarlierAnswer>,
    /// Calls that were kept from running.
    pub(crate) refused: BTreeSet<String>,
    /// Questions at which the agent ended, by its own id of the tool call.
    pub(crate) left_open: BTreeMap<String, OpenQuestion>,
}

/// A question at which the agent ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenQuestion {
    /// The digest of the tool and its arguments.
    pub(crate) digest: String,
    /// Until when it can be answered.
    pub(crate) until_ms: i64,
    /// The question with its ids.
    pub(crate) event: Value,
}

impl OpenQuestion {
    pub(crate) fn reply_token(&self) -> String {
        self.event["reply_token"].as_str().unwrap_or_default().to_owned()
    }
}

/// What was decided about a call the first time that it came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EarlierAnswer {
    /// The person accepted here.
    Accepted,
    /// The person rejected here.
    Rejected,
    /// The agent asks the person in its own window. If it goes on, they accepted there.
    InWindow,
}

/// A tool call that has not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PendingCall {
    pub(crate) tool: String,
    /// The agent's own id of the call. Some agents have none.
    pub(crate) id: String,
    /// What it does, in words.
    pub(crate) words: String,
    /// The digest of the tool and its arguments.
    pub(crate) digest: String,
    /// Whether it was told that it runs.
    pub(crate) is_told: bool,
    /// Whether the person is asked, here or in the agent's own window.
    pub(crate) is_asked: bool,
    /// Whether the person accepted here, and it is not told yet that it runs.
    pub(crate) is_accepted: bool,
}

/// What happened in a turn, for its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TurnCounts {
    pub(crate) tools: u64,
    pub(crate) failed: u64,
    pub(crate) not_run: u64,
    /// Calls of which it was not reported how they ended.
    pub(crate) without_end: u64,
    /// Messages of the agent that are not known here.
    pub(crate) unknown: u64,
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
            project: self.project.take(),
            left_open: std::mem::take(&mut self.left_open),
            ..AgentMemory::default()
        };
    }

    /// Ends the turn, and returns what happened in it. Asks that are still open stay until they are withdrawn.
    pub(crate) fn end_turn(&mut self) -> TurnCounts {
        let counts = std::mem::take(&mut self.counts);
        self.ended_turn = self.turn.take();
        self.pending.clear();
        self.earlier.clear();
        self.refused.clear();
        self.message = None;
        self.waits_for_helpers = false;
        self.told_whole.clear();
        counts
    }

    pub(crate) fn remember_call(&mut self, id: &str, call: PendingCall) {
        if self.pending.len() < MAX_PENDING_CALLS {
            self.pending.insert(id.to_owned(), call);
        }
    }

    /// The newest call of this tool with these arguments.
    pub(crate) fn call_with_digest(&self, digest: &str) -> Option<&PendingCall> {
        self.pending.values().rev().find(|call| call.digest == digest)
    }

    /// Remembers what was decided about a call that comes by again.
    pub(crate) fn note_earlier(&mut self, digest: &str, answer: EarlierAnswer) {
        if self.earlier.len() < MAX_OPEN_ASKS {
            self.earlier.insert(digest.to_owned(), answer);
        }
    }

    /// Remembers a call that was kept from running.
    pub(crate) fn note_refused(&mut self, key: &str) {
        if self.refused.len() < MAX_PENDING_CALLS {
            self.refused.insert(key.to_owned());
        }
    }

    /// Counts a message that is not known here.
    pub(crate) fn note_unknown(&mut self) {
        self.counts.unknown = self.counts.unknown.saturating_add(1);
    }

    /// Remembers under which token something is asked, so that it can be withdrawn when it is answered elsewhere.
    pub fn note_asked(&mut self, about: &str, reply_token: &str) {
        if self.open_asks.len() < MAX_OPEN_ASKS {
            self.open_asks.insert(about.to_owned(), reply_token.to_owned());
        }
    }

    /// Remembers that what was asked under this token was answered here. Returns false if it was answered elsewhere
    /// before: then the answer counts for nothing.
    pub fn note_answered(
        &mut self,
        ask: &PlannedAsk,
        reply_token: &str,
        answers: &[AskAnswer],
    ) -> bool {
        let about = ask.about.as_str();
        if self.open_asks.get(about).is_none_or(|it| it != reply_token) {
            return false;
        }
        self.open_asks.remove(about);
        let is_yes = matches!(answers, [AskAnswer::Accepted]);
        let says_no = ask.says_no(answers).is_some();
        if ask.leaves_consent() {
            if is_yes {
                self.note_earlier(about, EarlierAnswer::Accepted);
            } else if says_no {
                self.note_earlier(about, EarlierAnswer::Rejected);
            }
        }
        let newest = self.pending.iter().rev().find(|(_, call)| call.digest == about);
        let key = newest.map(|(key, _)| key.clone());
        match key {
            Some(key) if is_yes => {
                let runs = ask.yes_runs();
                self.pending.entry(key).and_modify(|it| {
                    it.is_told |= runs;
                    it.is_accepted = !runs;
                });
            }
            Some(key) if says_no => {
                self.pending.remove(&key);
                self.counts.not_run += 1;
                self.note_refused(&key);
            }
            _ => {}
        }
        true
    }

    /// Remembers a question at which the agent ends. Returns false if it was answered elsewhere before, or cannot be
    /// remembered.
    pub fn note_left_open(&mut self, ask: &PlannedAsk, event: &Value) -> bool {
        let Some(later) = &ask.later else { return false };
        let token = event["reply_token"].as_str();
        let is_open = self.open_asks.get(&ask.about).map(String::as_str) == token;
        if !is_open || token.is_none() || self.left_open.len() >= MAX_OPEN_ASKS {
            return false;
        }
        self.open_asks.remove(&ask.about);
        let question = OpenQuestion {
            digest: ask.about.clone(),
            until_ms: later.until_ms,
            event: event.clone(),
        };
        self.left_open.insert(later.call.clone(), question);
        true
    }

    /// Whether a question is open at which the agent ended.
    pub fn has_left_open(&self, now_ms: i64) -> bool {
        self.left_open.values().any(|it| it.until_ms > now_ms)
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
            let told = std::mem::take(&mut self.told_whole);
            let piece = text.trim();
            // Pieces can come after the end at which the whole was told.
            let is_complete = !piece.is_empty() && told.contains(piece);
            let id = message.to_owned();
            self.message = Some(StreamedMessage { id, is_complete, ..Default::default() });
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
                    self.told_whole = whole.chars().take(MAX_CHUNK_CHARS).collect();
                    self.ends += 1;
                    let id = format!("last-of-{}-{}", voice.session_id, self.ends);
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

/// The event that a tool did not run which was told to run.
pub(crate) fn not_run_event(voice: &AgentVoice, call: &PendingCall, reason: &str) -> Value {
    completed_event(voice, call, "error", &format!("It was not run. {reason}"))
}

/// The event that a tool which was told to run is over, without success.
pub(crate) fn completed_event(
    voice: &AgentVoice,
    call: &PendingCall,
    status: &str,
    reason: &str,
) -> Value {
    let reason = shortened_to(reason, 1000);
    let mut fields = json!({ "tool": call.tool, "status": status, "error_message": reason });
    if !call.id.is_empty() {
        fields["tool_call_id"] = call.id.as_str().into();
    }
    voice.event("tool.completed", fields)
}
