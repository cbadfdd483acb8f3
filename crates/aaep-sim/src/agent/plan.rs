//! The plan of a session, before anything gets in the agent's way.

use std::collections::VecDeque;

use super::consent::IntendedAction;
use crate::rng::SeededRng;

/// How a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlannedEnd {
    Completed,
    Errored,
    Cancelled,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PlannedAct {
    State(&'static str),
    Progress,
    Tool,
    Do {
        call: u64,
        deed: IntendedAction,
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
    End(PlannedEnd),
}

/// Makes the plan of one session.
pub(super) fn plan(rng: &mut SeededRng, is_chatty: bool) -> VecDeque<PlannedAct> {
    let count = if is_chatty { rng.size(10, 60) } else { rng.size(3, 14) };
    let mut acts = VecDeque::new();
    for _ in 0..count {
        acts.push_back(match rng.below(if is_chatty { 14 } else { 20 }) {
            0..=2 => {
                let state = *rng.pick(&["thinking", "planning", "deciding", "idle"]);
                PlannedAct::State(state)
            }
            3..=5 => PlannedAct::Progress,
            6..=9 => PlannedAct::Tool,
            10..=13 => PlannedAct::Output,
            14..=16 => PlannedAct::Confirm,
            17 | 18 => PlannedAct::Clarify,
            _ => PlannedAct::Handoff,
        });
    }
    let end = match rng.below(10) {
        0 | 1 => PlannedEnd::Errored,
        2 => PlannedEnd::Cancelled,
        _ => PlannedEnd::Completed,
    };
    if end != PlannedEnd::Completed && rng.chance(60) {
        // Some sessions end in the middle of an output or a tool call.
        let at = rng.size(0, acts.len());
        acts.truncate(at);
        acts.push_back(if rng.chance(50) { PlannedAct::Tool } else { PlannedAct::Output });
    }
    acts.push_back(PlannedAct::End(end));
    acts
}
