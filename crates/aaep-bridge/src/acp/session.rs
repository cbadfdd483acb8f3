//! What is remembered of one session of an agent. Everything in it has a bound.

use std::collections::BTreeSet;

use serde_json::Value;

use super::tool_call::AcpToolCall;
use crate::event::{AgentVoice, count, shortened_to};
use crate::request_id::RequestId;
use crate::tool_words::duration_words;

/// The most tool calls of a turn that are remembered, and the most changed files.
const MAX_CALLS: usize = 256;
const MAX_CHANGED_FILES: usize = 256;
/// The most prompts that wait for the end of a turn.
const MAX_PROMPTS: usize = 64;
const MAX_MODES: usize = 32;
/// The longest piece of text in one event.
const MAX_CHUNK_CHARS: usize = 4000;

/// A session of the agent, which may have many turns.
#[derive(Debug, Clone, Default)]
pub(super) struct AcpSession {
    /// The id of the agent.
    pub(super) id: String,
    pub(super) folder: String,
    /// The modes of the agent: the id of each and its words.
    modes: Vec<(String, String)>,
    mode: String,
    told_mode: String,
    /// Whether the agent repeats an old session.
    pub(super) is_loading: bool,
    pub(super) turns: u64,
    pub(super) turn: Option<AcpTurn>,
}

/// A turn, from a prompt to its end.
#[derive(Debug, Clone)]
pub(super) struct AcpTurn {
    pub(super) voice: AgentVoice,
    began_ms: i64,
    /// The prompts that were not answered yet. Empty for a turn that the agent began by itself.
    pub(super) prompts: BTreeSet<RequestId>,
    calls: Vec<AcpToolCall>,
    made_calls: u64,
    output: Option<AcpText>,
    outputs: u64,
    pub(super) plan: String,
    pub(super) tools: u64,
    pub(super) failed: u64,
    pub(super) not_run: u64,
    /// Messages of the agent that are not known here.
    pub(super) unknown: u64,
    changed_files: Vec<String>,
}

/// A text of the agent that has not ended.
#[derive(Debug, Clone)]
struct AcpText {
    own_id: String,
    message: String,
}

impl AcpSession {
    pub(super) fn new(id: &str) -> Self {
        AcpSession { id: id.to_owned(), ..AcpSession::default() }
    }

    /// Takes over which modes there are, and which one is on.
    pub(super) fn read_modes(&mut self, result: &Value) {
        let modes = &result["modes"];
        if let Some(listed) = modes["availableModes"].as_array() {
            self.modes = listed.iter().take(MAX_MODES).filter_map(mode_words).collect();
        }
        if let Some(mode) = modes["currentModeId"].as_str() {
            self.mode = shortened_to(mode, 200);
        }
        self.read_options(&result["configOptions"]);
    }

    /// Takes over the mode from the settings of a session, where agents also put it.
    pub(super) fn read_options(&mut self, options: &Value) {
        let listed = options.as_array().into_iter().flatten();
        let Some(option) = listed.into_iter().find(|it| it["category"] == "mode") else { return };
        if let Some(values) = option["options"].as_array() {
            self.modes = values.iter().take(MAX_MODES).filter_map(mode_words).collect();
        }
        if let Some(mode) = option["currentValue"].as_str() {
            self.mode = shortened_to(mode, 200);
        }
    }

    pub(super) fn set_mode(&mut self, mode: &str) {
        self.mode = shortened_to(mode, 200);
    }

    /// The mode in words, if it was not told yet.
    pub(super) fn untold_mode(&mut self) -> Option<String> {
        if self.mode.is_empty() || self.mode == self.told_mode {
            return None;
        }
        self.told_mode.clone_from(&self.mode);
        let words = self.modes.iter().find(|(id, _)| *id == self.mode);
        Some(format!("Its mode: {}", words.map_or(self.mode.as_str(), |(_, words)| words)))
    }
}

fn mode_words(mode: &Value) -> Option<(String, String)> {
    let id = mode["id"].as_str().or(mode["value"].as_str())?;
    let name = shortened_to(mode["name"].as_str().unwrap_or(id), 100);
    let words = match mode["description"].as_str().filter(|it| !it.is_empty()) {
        Some(description) => format!("{name}. {}", shortened_to(description, 300)),
        None => format!("{name}."),
    };
    Some((shortened_to(id, 200), words))
}

impl AcpTurn {
    pub(super) fn new(voice: AgentVoice, now_ms: i64) -> Self {
        AcpTurn {
            voice,
            began_ms: now_ms,
            prompts: BTreeSet::new(),
            calls: Vec::new(),
            made_calls: 0,
            output: None,
            outputs: 0,
            plan: String::new(),
            tools: 0,
            failed: 0,
            not_run: 0,
            unknown: 0,
            changed_files: Vec::new(),
        }
    }

    /// Adds a prompt that this turn answers. Returns false if there are too many.
    pub(super) fn add_prompt(&mut self, id: RequestId) -> bool {
        let has_room = self.prompts.len() < MAX_PROMPTS;
        has_room && self.prompts.insert(id)
    }

    /// The place of a call, which is made if it is new. `None` if there are too many.
    pub(super) fn call_at(&mut self, id: &str) -> Option<usize> {
        if let Some(at) = self.calls.iter().position(|it| it.id == id) {
            return Some(at);
        }
        if id.is_empty() || id.len() > 1024 {
            return None;
        }
        if self.calls.len() >= MAX_CALLS {
            let ended = self.calls.iter().position(|it| it.has_ended)?;
            self.calls.remove(ended);
        }
        self.made_calls += 1;
        let own_id = format!("{}:c{}", self.voice.session_id, self.made_calls);
        self.calls.push(AcpToolCall::new(id, own_id));
        Some(self.calls.len() - 1)
    }

    pub(super) fn call(&mut self, at: usize) -> Option<&mut AcpToolCall> {
        self.calls.get_mut(at)
    }

    pub(super) fn call_named(&mut self, id: &str) -> Option<&mut AcpToolCall> {
        self.calls.iter_mut().find(|it| it.id == id)
    }

    /// The calls that were told to run, and not that they are over.
    pub(super) fn calls_without_end(&mut self) -> impl Iterator<Item = &mut AcpToolCall> {
        let is_open = |it: &&mut AcpToolCall| !it.has_ended && !it.is_told_over;
        self.calls.iter_mut().filter(is_open)
    }

    pub(super) fn note_changed(&mut self, path: String) {
        if self.changed_files.len() < MAX_CHANGED_FILES && !self.changed_files.contains(&path) {
            self.changed_files.push(path);
        }
    }

    /// Tells a piece of a text. Pieces with different messages are different texts.
    pub(super) fn say(&mut self, message: &str, text: &str) -> Vec<Value> {
        let mut events = Vec::new();
        if self.output.as_ref().is_some_and(|it| it.message != message) {
            events.extend(self.end_text());
        }
        if text.is_empty() {
            return events;
        }
        let output = self.output.get_or_insert_with(|| {
            self.outputs += 1;
            let own_id = format!("{}:o{}", self.voice.session_id, self.outputs);
            AcpText { own_id, message: shortened_to(message, 200) }
        });
        let mut rest = text;
        while let Some((end, _)) = rest.char_indices().nth(MAX_CHUNK_CHARS) {
            events.push(self.voice.said(&output.own_id, &rest[..end], false));
            rest = &rest[end..];
        }
        events.push(self.voice.said(&output.own_id, rest, false));
        events
    }

    /// Ends the text that is being told, if there is one.
    pub(super) fn end_text(&mut self) -> Option<Value> {
        self.output.take().map(|it| self.voice.said(&it.own_id, "", true))
    }

    /// How long the turn has taken.
    pub(super) fn took_ms(&self, now_ms: i64) -> u64 {
        const DAY_MS: u64 = 24 * 3600 * 1000;
        u64::try_from(now_ms.saturating_sub(self.began_ms)).unwrap_or(0).min(DAY_MS)
    }

    /// The end of the turn in words: what ran, what did not, what changed.
    pub(super) fn ended_words(&self, now_ms: i64) -> String {
        let mut parts = Vec::new();
        if self.tools > 0 {
            parts.push(format!("{} used", count(self.tools, "tool")));
        }
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        if self.not_run > 0 {
            parts.push(format!("{} not run", self.not_run));
        }
        match self.changed_files.as_slice() {
            [] => {}
            [one] => parts.push(format!("changed {one}")),
            [one, two] => parts.push(format!("changed {one} and {two}")),
            [one, two, rest @ ..] => {
                let more = count(rest.len() as u64, "other file");
                parts.push(format!("changed {one}, {two} and {more}"));
            }
        }
        if self.unknown > 0 {
            let messages = count(self.unknown, "message");
            parts.push(format!("{messages} of a form that is not known here"));
        }
        let took = duration_words(i64::try_from(self.took_ms(now_ms)).unwrap_or(i64::MAX));
        if parts.is_empty() {
            format!("Done after {took}.")
        } else {
            format!("Done after {took}: {}.", parts.join(", "))
        }
    }
}
