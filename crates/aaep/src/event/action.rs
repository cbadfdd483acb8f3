//! Tool and output events: what the agent does, and what it says (§4.3).

use crate::event::payload;
use crate::event::{DAY_MS, LONG, SHORT};
use crate::form::{ContentType, OutputId, ToolCallId, ToolName};
use crate::language::LanguageTag;
use crate::object::values;
use crate::read::between;

values! {
    /// How much harm an action could do, as the producer sees it (§4.3.1).
    open RiskLevel {
        /// Little.
        Low = "low",
        /// Some.
        Medium = "medium",
        /// Much.
        High = "high",
    }
}

payload! {
    /// A tool is about to run. Emitted before anything happens.
    ToolInvoked in "4.3.1" {
        /// The name of the tool.
        required tool: ToolName;
        /// What the agent is doing with it, in a sentence.
        required summary_normal: String = between(1, LONG) => words;
        /// The same in a few words.
        optional summary_terse: String = between(1, SHORT) => words;
        /// The same with the arguments.
        optional summary_detailed: String = between(1, LONG) => words;
        /// What the tool is for in general.
        optional description: String = between(1, SHORT) => words;
        /// The arguments in short, without secrets.
        optional args_summary: String = between(0, LONG) => words;
        /// How long the tool will probably take, in milliseconds.
        optional expected_duration_ms: u64 = between(0, DAY_MS);
        /// How much harm the action could do; low if absent.
        optional risk_level: RiskLevel;
        /// Whether the action cannot be undone; such a tool needs an accepted confirmation first.
        optional irreversible: bool;
        /// Ties the completion to this invocation.
        optional tool_call_id: ToolCallId;
    }
}

values! {
    /// How a tool ended (§4.3.2).
    open ToolStatus {
        /// It did what it was asked.
        Success = "success",
        /// It failed.
        Error = "error",
        /// It did not return in time, or was given up.
        Timeout = "timeout",
    }
}

payload! {
    /// A tool returned, or was given up.
    ToolCompleted in "4.3.2" {
        /// The name of the tool, as it was invoked.
        required tool: ToolName;
        /// How it ended.
        required status: ToolStatus;
        /// Ties the completion to its invocation.
        optional tool_call_id: ToolCallId;
        /// How long it took, in milliseconds.
        optional duration_ms: u64 = between(0, DAY_MS);
        /// The result in a few words.
        optional summary_terse: String = between(1, SHORT) => words;
        /// The result in a sentence.
        optional summary_normal: String = between(1, LONG) => words;
        /// The result with everything worth knowing.
        optional summary_detailed: String = between(1, LONG) => words;
        /// What went wrong, for an error or a timeout.
        optional error_message: String = between(1, SHORT) => words;
    }
}

values! {
    /// At what kind of boundary a chunk ends, or a subscriber wants chunks to end (§4.3.3, §5.3.1.6).
    open CoalesceBoundary {
        /// None: as it comes.
        None = "none",
        /// After a word.
        Word = "word",
        /// After a sentence.
        Sentence = "sentence",
        /// After a paragraph.
        Paragraph = "paragraph",
        /// When the output is complete.
        Completion = "completion",
    }
}

payload! {
    /// A piece of the agent's answer.
    OutputStreaming in "4.3.3" {
        /// The text of this piece.
        required chunk: String = between(0, LONG);
        /// How many characters (code points) of this output came before.
        required position: u64;
        /// Whether this is the last piece of the output.
        required complete: bool;
        /// At what boundary the piece ends.
        optional coalesce_hint: CoalesceBoundary;
        /// The output that the piece belongs to, where a session has several.
        optional output_id: OutputId;
        /// The media type of the text; text/plain if absent.
        optional content_type: ContentType;
        /// The language of this piece, where it is another than that of the event.
        optional language: LanguageTag;
    }
}
