//! The ways in which an event can break the order of its session (§3.2.5, §3.4.1, §4.5, §6.1).
//!
//! There is one variant per way, each with a stable name, the § that it breaks and advice. A
//! producer's mistake is data for its author: it never causes a panic, and quoted text can never
//! move a terminal's cursor.

use std::fmt;

use aaep::{OutputId, Timestamp, ToolCallId, ToolName, printable};

use super::outputs::{MAX_OPEN_OUTPUTS, MAX_OUTPUTS};
use super::producers::MAX_PRODUCERS;
use super::tools::{MAX_OPEN_TOOLS, MAX_TOOLS};

/// Why an event may not come now. A refused event leaves no trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderViolation {
    /// An event came before `agent.session.started`. Start the session first.
    NotStarted,
    /// A second `agent.session.started` came. Choose a new `session_id` for a new request.
    StartedTwice,
    /// An event came after the one that ended the session. Start a new session for further work.
    Ended,
    /// The event is older than the one before it, from whichever producer. Stamp all events of a
    /// session with one clock that never goes back.
    TimeWentBack {
        /// The timestamp of the event before it, in microseconds since 1970 began.
        last_us: i64,
    },
    /// The session is numbered and this event is not. Number every event, or none.
    SequenceMissing {
        /// The number that it should have had.
        expected: u64,
    },
    /// The session is not numbered and this event is. Number every event, or none.
    SequenceUnexpected,
    /// The number is not the next one. Start with 0 and add 1 for each event of the session.
    SequenceBroken {
        /// The number that it should have had.
        expected: u64,
    },
    /// The first state that a producer leaves is not idle. Leave idle first.
    FirstStateNotIdle,
    /// The producer leaves a state that it is not in, as far as subscribers know. Leave the state
    /// that was entered last, or the one that the events since then imply.
    StateDoesNotFollow {
        /// The states that could have been left.
        expected: Vec<String>,
    },
    /// A tool completed that is not running: never invoked, or completed before. Send
    /// `agent.tool.invoked` first, and complete each call once.
    ToolNotInvoked {
        /// The tool that completed.
        tool: ToolName,
        /// The id of the call, if it has one.
        tool_call_id: Option<ToolCallId>,
    },
    /// A tool was invoked under an id that the session has used before, even if that call is over.
    /// Give each call an id of its own.
    ToolCallIdReused {
        /// The id.
        tool_call_id: ToolCallId,
    },
    /// A call completed under another tool name than it was invoked with. Repeat the name.
    ToolNameDiffers {
        /// The name that it was invoked with.
        invoked: ToolName,
    },
    /// The session completed while a tool was running. Complete the tool first, with the status
    /// timeout if it was given up.
    ToolStillOpen {
        /// The tool that has been running longest.
        tool: ToolName,
        /// The id of its call, if it has one.
        tool_call_id: Option<ToolCallId>,
    },
    /// A producer left `calling_tool` while a tool that it invoked was running. Complete the tool
    /// first, with the status timeout if it was given up. Waiting for a person in between does not
    /// count as leaving.
    ToolLeftRunning {
        /// The tool that has been running longest.
        tool: ToolName,
        /// The id of its call, if it has one.
        tool_call_id: Option<ToolCallId>,
    },
    /// A chunk does not begin where the one before it ended. Count the code points (Unicode
    /// characters, not bytes) of all chunks of this output before it.
    PositionDoesNotFollow {
        /// The position that it should have had.
        expected: u64,
    },
    /// A chunk came for an output that was already complete. Use a new `output_id`.
    OutputAlreadyComplete {
        /// The id; `None` for the output without an id.
        output_id: Option<OutputId>,
    },
    /// The session completed while an output was unfinished. Send its last chunk first, with
    /// `complete` true; it may be empty.
    OutputNotComplete {
        /// The id; `None` for the output without an id.
        output_id: Option<OutputId>,
    },
    /// An irreversible tool was invoked and no accepted ask covers it. Ask with
    /// `agent.awaiting.confirmation`, wait for accept, then invoke it once.
    IrreversibleWithoutAccept {
        /// The tool.
        tool: ToolName,
    },
    /// A tool of high risk was invoked and no accepted ask covers it. Ask with
    /// `agent.awaiting.confirmation`, wait for accept, then invoke it once.
    HighRiskWithoutAccept {
        /// The tool.
        tool: ToolName,
    },
    /// A tool that needs an accept was invoked, but another tool was accepted. Ask for this one, or
    /// invoke the one that was accepted.
    OtherToolAccepted {
        /// The tool.
        tool: ToolName,
        /// The tool that was accepted.
        accepted: ToolName,
    },
    /// A tool that needs an accept was invoked with a different `action_digest` than the accepted
    /// one: its arguments have changed since. Ask again for what is to be done now.
    ActionDiffers {
        /// The tool.
        tool: ToolName,
    },
    /// A tool was accepted for exact arguments, and the invocation does not state which arguments
    /// it has. State the same `action_digest` as the ask.
    ActionDigestMissing {
        /// The tool.
        tool: ToolName,
    },
    /// A tool that needs an accept was invoked, but only the default accepted it: time was up, or
    /// nobody could be asked. A default covers only actions of low risk that can be undone.
    AcceptedByDefault {
        /// The tool.
        tool: ToolName,
    },
    /// An irreversible tool was invoked, and the accepted ask did not say that it is irreversible.
    /// Ask again with `irreversible` true.
    AcceptedAsReversible {
        /// The tool.
        tool: ToolName,
    },
    /// A tool was invoked whose risk is higher than the accepted ask said. Ask again with the
    /// actual risk of the tool.
    AcceptedAtLowerRisk {
        /// The tool.
        tool: ToolName,
    },
    /// A tool that needs an accept was invoked without its risk, which therefore counts as higher
    /// than the accepted ask said. State the risk on the invocation.
    RiskNotStated {
        /// The tool.
        tool: ToolName,
    },
    /// A tool that needs an accept was invoked, but the accepted ask came from another agent of the
    /// session. Each agent asks for itself.
    AcceptedForAnotherAgent {
        /// The tool.
        tool: ToolName,
    },
    /// More than [`MAX_OPEN_TOOLS`] tools are running at a time. Complete some of them first.
    TooManyOpenTools,
    /// The session has had more than [`MAX_TOOLS`] calls with an id. Start a new session, or leave
    /// `tool_call_id` out.
    TooManyTools,
    /// More than [`MAX_OPEN_OUTPUTS`] outputs are unfinished at a time. Finish some of them first.
    TooManyOpenOutputs,
    /// The session has had more than [`MAX_OUTPUTS`] outputs. Start a new session.
    TooManyOutputs,
    /// The session has more than [`MAX_PRODUCERS`] producers, or their names are too long in total.
    /// Give sub-agents sessions of their own (§2.2.5).
    TooManyProducers,
}

impl OrderViolation {
    /// The stable name, for machines and for searching.
    pub const fn code(&self) -> &'static str {
        self.facts().0
    }

    /// The section of the specification that is broken.
    pub const fn section(&self) -> &'static str {
        self.facts().1
    }

    /// One sentence that says what to do about it.
    pub const fn advice(&self) -> &'static str {
        self.facts().2
    }

    /// Name, section and advice. The limits cite §3.7, which lets us set them.
    #[rustfmt::skip]
    const fn facts(&self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::NotStarted => ("not_started", "4.5.1", "Send agent.session.started first."),
            Self::StartedTwice => ("started_twice", "4.1.1", "Choose a new session_id for a new request."),
            Self::Ended => ("ended", "4.5.1", "Start a new session for further work."),
            Self::TimeWentBack { .. } => ("time_went_back", "3.2.5", "Stamp events with a clock that never goes back within a session."),
            Self::SequenceMissing { .. } => ("sequence_missing", "3.4.1", "Number every event of a session, or none."),
            Self::SequenceUnexpected => ("sequence_unexpected", "3.4.1", "Number every event of a session, or none."),
            Self::SequenceBroken { .. } => ("sequence_broken", "3.4.1", "Start with 0 and add 1 for each event of the session."),
            Self::FirstStateNotIdle => ("first_state_not_idle", "4.2.1", "Set from_state to \"idle\" in a producer's first agent.state.changed."),
            Self::StateDoesNotFollow { .. } => ("state_does_not_follow", "4.2.1", "Set from_state to the state that was entered last."),
            Self::ToolNotInvoked { .. } => ("tool_not_invoked", "4.5.2", "Send agent.tool.invoked first, and complete each call once."),
            Self::ToolCallIdReused { .. } => ("tool_call_id_reused", "4.3.1", "Give each call of the session an id of its own."),
            Self::ToolNameDiffers { .. } => ("tool_name_differs", "4.3.2", "Repeat the name that the tool was invoked with."),
            Self::ToolStillOpen { .. } => ("tool_still_open", "4.3.2", "Complete the tool first, with the status \"timeout\" if it was given up."),
            Self::ToolLeftRunning { .. } => ("tool_left_running", "4.3.2", "Send agent.tool.completed before the state that follows the tool."),
            Self::PositionDoesNotFollow { .. } => ("position_does_not_follow", "4.3.3", "Count the code points of all chunks of this output before it."),
            Self::OutputAlreadyComplete { .. } => ("output_already_complete", "4.5.4", "Use a new output_id for a new output."),
            Self::OutputNotComplete { .. } => ("output_not_complete", "4.5.4", "Send a last chunk with complete set to true first; it may be empty."),
            Self::IrreversibleWithoutAccept { .. } => ("irreversible_without_accept", "4.3.1", "Ask with agent.awaiting.confirmation, wait for accept, then invoke the tool once."),
            Self::HighRiskWithoutAccept { .. } => ("high_risk_without_accept", "2.3.5", "Ask with agent.awaiting.confirmation, wait for accept, then invoke the tool once."),
            Self::OtherToolAccepted { .. } => ("other_tool_accepted", "4.3.1", "Ask for this tool, or invoke the one that was accepted."),
            Self::ActionDiffers { .. } => ("action_differs", "4.3.1", "Ask again for what is to be done now, with its own action_digest."),
            Self::ActionDigestMissing { .. } => ("action_digest_missing", "4.3.1", "State the action_digest of the question in extensions.agentvoice."),
            Self::AcceptedByDefault { .. } => ("accepted_by_default", "6.4.1", "Ask again and wait for the accept of a person, then invoke the tool once."),
            Self::AcceptedAsReversible { .. } => ("accepted_as_reversible", "4.3.1", "Ask again with irreversible set to true, wait for accept, then invoke the tool once."),
            Self::AcceptedAtLowerRisk { .. } => ("accepted_at_lower_risk", "2.3.5", "Ask again with the risk_level of the tool, wait for accept, then invoke the tool once."),
            Self::RiskNotStated { .. } => ("risk_not_stated", "2.3.5", "State on agent.tool.invoked the risk_level that the question had."),
            Self::AcceptedForAnotherAgent { .. } => ("accepted_for_another_agent", "4.3.1", "Ask as the agent that invokes the tool, wait for accept, then invoke it once."),
            Self::TooManyOpenTools => ("too_many_open_tools", "3.7", "Complete some of the running tools first."),
            Self::TooManyTools => ("too_many_tools", "3.7", "Start a new session, or leave tool_call_id out."),
            Self::TooManyOpenOutputs => ("too_many_open_outputs", "3.7", "Finish some of the outputs first."),
            Self::TooManyOutputs => ("too_many_outputs", "3.7", "Start a new session."),
            Self::TooManyProducers => ("too_many_producers", "3.7", "Give sub-agents sessions of their own."),
        }
    }
}

impl fmt::Display for OrderViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted => write!(f, "The session has not started."),
            Self::StartedTwice => write!(f, "The session has already started."),
            Self::Ended => write!(f, "The session has ended; nothing may follow."),
            Self::TimeWentBack { last_us } => {
                write!(f, "The event is older than the one before it, of {}.", moment(*last_us))
            }
            Self::SequenceMissing { expected } => {
                write!(
                    f,
                    "The session is numbered, but this event has no number; it is {expected}."
                )
            }
            Self::SequenceUnexpected => {
                write!(f, "The session is not numbered, but this event has a number.")
            }
            Self::SequenceBroken { expected } => {
                write!(f, "The number of the event should be {expected}.")
            }
            Self::FirstStateNotIdle => {
                write!(f, "The first state that a producer leaves should be \"idle\".")
            }
            Self::StateDoesNotFollow { expected } => {
                write!(f, "The state that is left should be {}.", alternatives(expected))
            }
            Self::ToolNotInvoked { tool, tool_call_id } => {
                write!(f, "{} is not running.", call(tool, tool_call_id.as_ref()))
            }
            Self::ToolCallIdReused { tool_call_id } => {
                write!(f, "The session has used {tool_call_id} before.")
            }
            Self::ToolNameDiffers { invoked } => {
                write!(f, "This call was invoked as the tool {invoked}.")
            }
            Self::ToolStillOpen { tool, tool_call_id } => {
                write!(f, "{} is still running.", call(tool, tool_call_id.as_ref()))
            }
            Self::ToolLeftRunning { tool, tool_call_id } => {
                let call = call(tool, tool_call_id.as_ref());
                write!(f, "{call} is still running, and \"calling_tool\" is left.")
            }
            Self::PositionDoesNotFollow { expected } => {
                write!(f, "The chunk should begin at position {expected}.")
            }
            Self::OutputAlreadyComplete { output_id } => {
                write!(f, "{} is already complete.", output(output_id.as_ref()))
            }
            Self::OutputNotComplete { output_id } => {
                write!(f, "{} is not complete.", output(output_id.as_ref()))
            }
            Self::IrreversibleWithoutAccept { tool } => {
                write!(f, "The tool {tool} cannot be undone and no accepted question covers it.")
            }
            Self::HighRiskWithoutAccept { tool } => {
                write!(f, "The risk of the tool {tool} is high and no accepted question covers it.")
            }
            Self::OtherToolAccepted { tool, accepted } => {
                write!(f, "The tool {accepted} was accepted, and not the tool {tool}.")
            }
            Self::ActionDiffers { tool } => {
                write!(f, "The tool {tool} was accepted with other arguments than these.")
            }
            Self::ActionDigestMissing { tool } => {
                write!(
                    f,
                    "The tool {tool} was accepted for exact arguments, and these are not stated."
                )
            }
            Self::AcceptedByDefault { tool } => write!(
                f,
                "Nobody answered the question for the tool {tool}, and silence accepts only what \
                 is of low risk and can be undone."
            ),
            Self::AcceptedAsReversible { tool } => write!(
                f,
                "The tool {tool} cannot be undone, and the question that was accepted did not say so."
            ),
            Self::AcceptedAtLowerRisk { tool } => write!(
                f,
                "The risk of the tool {tool} is higher than the question that was accepted said."
            ),
            Self::RiskNotStated { tool } => write!(
                f,
                "The risk of the tool {tool} is not stated, and the question that was accepted \
                 stated one."
            ),
            Self::AcceptedForAnotherAgent { tool } => write!(
                f,
                "The tool {tool} is invoked by another agent than the one whose question was accepted."
            ),
            bound => write!(f, "{}", bound.limit()),
        }
    }
}

impl OrderViolation {
    /// Which limit was exceeded; empty for violations that are not about a limit.
    fn limit(&self) -> String {
        match self {
            Self::TooManyOpenTools => format!("More than {MAX_OPEN_TOOLS} tools run at a time."),
            Self::TooManyTools => format!("The session has had {MAX_TOOLS} tool calls with an id."),
            Self::TooManyOpenOutputs => {
                format!("More than {MAX_OPEN_OUTPUTS} outputs are unfinished at a time.")
            }
            Self::TooManyOutputs => format!("The session has had {MAX_OUTPUTS} outputs."),
            Self::TooManyProducers => {
                format!("The session has more than {MAX_PRODUCERS} producers, or too long names.")
            }
            _ => String::new(),
        }
    }
}

impl std::error::Error for OrderViolation {}

/// A moment in the form of a timestamp, with microseconds if it has any.
fn moment(unix_us: i64) -> String {
    let text = Timestamp::from_unix_ms(unix_us.div_euclid(1000)).map(|at| at.to_string());
    match (text, unix_us.rem_euclid(1000)) {
        (Some(text), 0) => text,
        (Some(text), us) => format!("{}{us:03}Z", text.trim_end_matches('Z')),
        (None, _) => format!("{unix_us} µs after 1970 began"),
    }
}

fn alternatives(states: &[String]) -> String {
    let quoted: Vec<_> = states.iter().map(|state| format!("\"{}\"", printable(state))).collect();
    quoted.join(" or ")
}

fn call(tool: &ToolName, tool_call_id: Option<&ToolCallId>) -> String {
    match tool_call_id {
        Some(id) => format!("The call {id} of the tool {tool}"),
        None => format!("The tool {tool}, called without an id,"),
    }
}

fn output(output_id: Option<&OutputId>) -> String {
    match output_id {
        Some(id) => format!("The output {id}"),
        None => "The output of the session".to_owned(),
    }
}
