//! Lifecycle events: how sessions begin and end (§4.1).

use crate::event::payload;
use crate::event::{DAY_MS, LONG, SHORT};
use crate::form::{ErrorCode, ReasonName, Uri};
use crate::object::values;
use crate::read::between;

payload! {
    /// A session begins. The first event of every session, exactly once.
    SessionStarted in "4.1.1" {
        /// What the session will do, in a sentence.
        required summary_normal: String = between(1, LONG) => words;
        /// The same in a few words.
        optional summary_terse: String = between(1, SHORT) => words;
        /// The same with everything worth knowing.
        optional summary_detailed: String = between(1, LONG) => words;
        /// How long the session will probably take, in milliseconds.
        optional expected_duration_ms: u64 = between(0, DAY_MS);
        /// Who or what asked for the session.
        optional requested_by: String = between(1, 256);
        /// The request in the person's own words.
        optional request_text: String = between(0, LONG);
        /// The names of the tools that the agent may use.
        optional tools_available: Vec<String> = between(1, 256).items(0, 256).unique();
    }
}

payload! {
    /// A session ended well. The last event of its session.
    SessionCompleted in "4.1.2" {
        /// What was achieved, in a sentence.
        required summary_normal: String = between(1, LONG) => words;
        /// The same in a few words.
        optional summary_terse: String = between(1, SHORT) => words;
        /// The same with everything worth knowing.
        optional summary_detailed: String = between(1, LONG) => words;
        /// How long the session took, in milliseconds.
        optional duration_ms: u64 = between(0, DAY_MS);
        /// How many tools were invoked.
        optional tool_invocations_count: u64;
        /// What the final output is, in short.
        optional output_summary: String = between(0, LONG) => words;
        /// Where a fuller form of the result is.
        optional result_uri: Uri;
    }
}

values! {
    /// What kind of error ended a session (§4.1.3).
    open ErrorCategory {
        /// It will probably work later.
        Transient = "transient",
        /// It will not work however often it is tried.
        Permanent = "permanent",
        /// The person has to do something first.
        RequiresUser = "requires_user",
        /// The producer does not know.
        Unknown = "unknown",
    }
}

payload! {
    /// A session ended in an error. The last event of its session, and critical.
    SessionErrored in "4.1.3" {
        /// What kind of error it is.
        required error_category: ErrorCategory;
        /// What went wrong, in a sentence.
        required summary_normal: String = between(1, LONG) => words;
        /// The same in a few words.
        optional summary_terse: String = between(1, SHORT) => words;
        /// The same with the technical context.
        optional summary_detailed: String = between(1, LONG) => words;
        /// The producer's own short code for the error.
        optional error_code: ErrorCode;
        /// Where the error is explained.
        optional error_uri: Uri;
        /// Whether trying again may help.
        optional recoverable: bool;
        /// What the person can do about it.
        optional remediation_hint: String = between(1, SHORT) => words;
    }
}

values! {
    /// Who ended a session before it was done (§4.1.4).
    open CancelledBy {
        /// The person.
        User = "user",
        /// The agent itself.
        Producer = "producer",
        /// It took too long.
        Timeout = "timeout",
        /// A system in control of the agent.
        System = "system",
    }
}

payload! {
    /// A session was ended before it was done. The last event of its session.
    SessionCancelled in "4.1.4" {
        /// Who ended it.
        required cancelled_by: CancelledBy;
        /// Why it ended, in a sentence.
        required summary_normal: String = between(1, LONG) => words;
        /// The same in a few words.
        optional summary_terse: String = between(1, SHORT) => words;
        /// The same with everything worth knowing.
        optional summary_detailed: String = between(1, LONG) => words;
        /// The producer's own name for the reason.
        optional cancellation_reason: ReasonName;
        /// What had been done until then.
        optional partial_result: String = between(0, LONG) => words;
    }
}
