//! Outputs: chunks that follow each other without gaps until the last one (§4.3.3, §4.5.4, ruling
//! 11).
//!
//! Positions count code points, per `output_id`. Chunks without an id form one output per session.
//! An agent may count its own text or the text as it is sent; these differ where its text is not in
//! Normalization Form C (ruling 34). The text itself is never kept.

use std::sync::Arc;

use aaep::OutputId;
use aaep::event::action::OutputStreaming;

use super::seen::{MAX_SEEN, UsedIds};
use super::violation::OrderViolation;
use crate::ids::is_made_output;
use crate::nfc;

/// The most outputs of a session.
pub const MAX_OUTPUTS: usize = MAX_SEEN;

/// The most outputs of a session that may be unfinished at a time.
pub const MAX_OPEN_OUTPUTS: usize = 256;

/// About how much memory one unfinished output takes.
const BYTES_EACH: usize = 152;

/// The name under which the output without an id is remembered. No `output_id` is empty.
const OF_SESSION: &str = "";

/// An output that has begun and has not had its last chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOutput {
    /// The id; `None` for the output without an id.
    pub output_id: Option<OutputId>,
    /// Where its next chunk begins, in code points, counted in the text as it is sent.
    pub next_position: u64,
    /// The same position as the agent counts it, whose text may not be normalized (ruling 34).
    pub counted_to: u64,
    /// The agent that wrote the latest chunk.
    pub agent_id: Arc<str>,
}

/// The state of the output without an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamelessOutput {
    /// It has not begun.
    None,
    /// It has begun.
    Open,
    /// It has had its last chunk.
    Complete,
}

/// The outputs of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SessionOutputs {
    /// The unfinished outputs, in the order in which they began.
    open: Vec<OpenOutput>,
    /// The ids of the complete outputs.
    complete: UsedIds,
    /// Whether outputs may have begun that are not known here, because a part of the stream was not
    /// seen.
    pub(super) may_be_unknown: bool,
}

impl SessionOutputs {
    pub(super) fn open(&self) -> &[OpenOutput] {
        &self.open
    }

    pub(super) fn check(&self, chunk: &OutputStreaming) -> Result<(), OrderViolation> {
        let (expected, sent) = match self.find(chunk) {
            Some(at) => (self.open[at].counted_to, self.open[at].next_position),
            None if self.complete.contains(key(chunk)) => {
                let output_id = chunk.output_id.clone();
                return Err(OrderViolation::OutputAlreadyComplete { output_id });
            }
            // Unfinished outputs count too, so that there is room for each when it completes.
            None if self.open.len() + self.complete.len() >= MAX_OUTPUTS => {
                return Err(OrderViolation::TooManyOutputs);
            }
            None if self.open.len() >= MAX_OPEN_OUTPUTS && !chunk.complete => {
                return Err(OrderViolation::TooManyOpenOutputs);
            }
            None if self.may_be_unknown => (chunk.position, chunk.position),
            None => (0, 0),
        };
        if chunk.position == expected || chunk.position == sent {
            Ok(())
        } else {
            Err(OrderViolation::PositionDoesNotFollow { expected })
        }
    }

    /// The unfinished output of this agent that has an id made by the hub.
    pub(super) fn to_continue(&self, agent_id: &str) -> Option<&OutputId> {
        let own = self.open.iter().rev().filter(|open| *open.agent_id == *agent_id);
        own.filter_map(|open| open.output_id.as_ref()).find(|id| is_made_output(id))
    }

    /// The state of the output without an id.
    pub(super) fn nameless(&self) -> NamelessOutput {
        if self.open.iter().any(|open| open.output_id.is_none()) {
            NamelessOutput::Open
        } else if self.complete.contains(OF_SESSION) {
            NamelessOutput::Complete
        } else {
            NamelessOutput::None
        }
    }

    /// Where the next chunk of an output begins.
    pub(super) fn next_position(&self, output_id: &str) -> u64 {
        let name = |open: &OpenOutput| {
            open.output_id.as_ref().map_or(OF_SESSION, OutputId::as_str) == output_id
        };
        self.open.iter().find(|open| name(open)).map_or(0, |open| open.next_position)
    }

    /// Checks that no output is unfinished when the session completes.
    pub(super) fn check_none_open(&self) -> Result<(), OrderViolation> {
        self.open.first().map_or(Ok(()), |open| {
            Err(OrderViolation::OutputNotComplete { output_id: open.output_id.clone() })
        })
    }

    /// Where a chunk begins, counted in the text as it is sent.
    pub(super) fn begins_at(&self, chunk: &OutputStreaming) -> u64 {
        self.find(chunk).map_or(chunk.position, |at| self.open[at].next_position)
    }

    /// Takes a chunk. `recorded` says how far the agent has counted with it, if that was recorded.
    pub(super) fn take(
        &mut self,
        chunk: &OutputStreaming,
        agent_id: Arc<str>,
        counted_to: Option<u64>,
    ) {
        let sent = code_points(&nfc::chunk(&chunk.chunk));
        let next_position = self.begins_at(chunk).saturating_add(sent);
        let own = || chunk.position.saturating_add(code_points(&chunk.chunk));
        let counted_to = counted_to.unwrap_or_else(own);
        match (self.find(chunk), chunk.complete) {
            (found, true) => {
                if let Some(at) = found {
                    self.open.remove(at);
                }
                self.complete.insert(key(chunk));
            }
            (Some(at), false) => {
                self.open[at].next_position = next_position;
                self.open[at].counted_to = counted_to;
                self.open[at].agent_id = agent_id;
            }
            (None, false) => {
                if self.open.len() < MAX_OPEN_OUTPUTS && !self.complete.contains(key(chunk)) {
                    let output_id = chunk.output_id.clone();
                    self.open.push(OpenOutput { output_id, next_position, counted_to, agent_id });
                }
            }
        }
    }

    pub(super) fn take_open(&mut self) -> Vec<OpenOutput> {
        std::mem::take(&mut self.open)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.open.len() * BYTES_EACH + self.complete.memory_bytes()
    }

    fn find(&self, chunk: &OutputStreaming) -> Option<usize> {
        self.open.iter().position(|open| open.output_id == chunk.output_id)
    }
}

fn key(chunk: &OutputStreaming) -> &str {
    chunk.output_id.as_ref().map_or(OF_SESSION, OutputId::as_str)
}

fn code_points(text: &str) -> u64 {
    text.chars().count() as u64
}
