//! What an agent means to do in a session, before anything gets in its way.

use std::collections::VecDeque;

use super::consent::Deed;
use crate::rng::Rng;

/// How a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Completed,
    Errored,
    Cancelled,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    State(&'static str),
    Progress,
    Tool,
    Do {
        call: u64,
        deed: Deed,
    },
    Finish {
        call: u64,
    },
    Output,
    Chunk {
        output: Option<String>,
        position: usize,
        chunk: String,
        complete: bool,
        language: Option<&'static str>,
    },
    Confirm,
    Clarify,
    Handoff,
    End(End),
}

/// The plan of one session.
pub(super) fn plan(rng: &mut Rng, is_chatty: bool) -> VecDeque<Act> {
    let count = if is_chatty { rng.size(10, 60) } else { rng.size(3, 14) };
    let mut acts = VecDeque::new();
    for _ in 0..count {
        acts.push_back(match rng.below(if is_chatty { 14 } else { 20 }) {
            0..=2 => {
                let state = *rng.pick(&["thinking", "planning", "deciding", "idle"]);
                Act::State(state)
            }
            3..=5 => Act::Progress,
            6..=9 => Act::Tool,
            10..=13 => Act::Output,
            14..=16 => Act::Confirm,
            17 | 18 => Act::Clarify,
            _ => Act::Handoff,
        });
    }
    let end = match rng.below(10) {
        0 | 1 => End::Errored,
        2 => End::Cancelled,
        _ => End::Completed,
    };
    if end != End::Completed && rng.chance(60) {
        // Broken off in the middle of an output or a tool.
        let at = rng.size(0, acts.len());
        acts.truncate(at);
        acts.push_back(if rng.chance(50) { Act::Tool } else { Act::Output });
    }
    acts.push_back(Act::End(end));
    acts
}
