//! Reasoning events: what the agent is doing internally, and its progress (§4.2).

use serde_json::{Number, Value as Json, json};

use crate::event::payload;
use crate::event::{DAY_MS, LONG, SHORT};
use crate::object::{DeclaredObject, object};
use crate::read::{MessageReader, between};
use crate::violation::Code;

/// The states that the specification recommends by name (§4.2.1). Others are allowed.
pub mod state {
    /// Nothing is going on. Every session starts here.
    pub const IDLE: &str = "idle";
    /// Reasoning.
    pub const THINKING: &str = "thinking";
    /// A tool is running.
    pub const CALLING_TOOL: &str = "calling_tool";
    /// The answer is being written.
    pub const WRITING_OUTPUT: &str = "writing_output";
    /// Blocked until a person answers.
    pub const AWAITING_INPUT: &str = "awaiting_input";
    /// Choosing what to do next.
    pub const DECIDING: &str = "deciding";
    /// Passing the work on.
    pub const HANDING_OFF: &str = "handing_off";
}

payload! {
    /// The agent went from one state to another.
    StateChanged in "4.2.1" {
        /// The state that is left; the first one of a session is idle.
        required from_state: String = between(1, 64);
        /// The state that is entered.
        required to_state: String = between(1, 64);
        /// The new state in a few words.
        optional summary_terse: String = between(1, SHORT) => words;
        /// The new state in a sentence.
        optional summary_normal: String = between(1, LONG) => words;
        /// The new state and why.
        optional summary_detailed: String = between(1, LONG) => words;
        /// How long the new state will probably last, in milliseconds.
        optional expected_duration_ms: u64 = between(0, DAY_MS);
    }
}

object! {
    /// How far a long task is; at least one of its fields is there.
    Progress in "4.2.2", others Refused, check check_progress {
        /// How much is done, in percent.
        optional percent: Number = between(0, 100);
        /// The step that is being done, from 1.
        optional step: u64 = between(1, u64::MAX);
        /// How many steps there are.
        optional total_steps: u64 = between(1, u64::MAX);
        /// What the current step is.
        optional description: String = between(1, SHORT);
    }
}

type ProgressParts = <Progress as DeclaredObject>::Parts;

fn check_progress(parts: &ProgressParts, reader: &mut MessageReader<'_>) {
    let says = |field: &&str| Progress::has(parts, field);
    if !["percent", "step", "total_steps", "description"].iter().any(says) {
        let problem = "Progress says neither percent, step, total_steps nor description.";
        reader.tolerable(Code::TooFewItems, problem.to_owned());
    }
}

payload! {
    /// A long task got further. To be used sparingly.
    ProgressUpdated in "4.2.2", also some_progress_schema {
        /// How far the task is.
        required progress: Progress;
        /// The progress in a few words.
        optional summary_terse: String = between(1, SHORT) => words;
        /// The progress in a sentence.
        optional summary_normal: String = between(1, LONG) => words;
        /// The progress with everything worth knowing.
        optional summary_detailed: String = between(1, LONG) => words;
        /// How long it will still take, in milliseconds.
        optional eta_ms: u64 = between(0, DAY_MS);
    }
}

fn some_progress_schema() -> Json {
    json!({ "properties": { "progress": { "minProperties": 1 } } })
}
