//! What agents do, and the results.

use aaep::event::human::TargetKind;
use aaep::event::lifecycle::CancelledBy;

pub(crate) const STARTED: &str = "Started.";
pub(crate) const FINISHED: &str = "Finished.";
pub(crate) const HAS_FAILED: &str = "Failed.";
/// How summaries begin that say the same, in lower case.
pub(crate) const SAME_AS_STARTED: &[&str] = &["start"];
pub(crate) const SAME_AS_FINISHED: &[&str] = &["done", "finished", "complete"];
pub(crate) const SAME_AS_FAILED: &[&str] = &["failed"];
pub(crate) const THINKING: &str = "Thinking.";
pub(crate) const DECIDING: &str = "Deciding.";
pub(crate) const HANDING_OVER: &str = "Handing over.";
/// The agent is in an unknown state.
pub(crate) const SOMETHING_ELSE: &str = "Doing something else.";
pub(crate) const HIGH_RISK: &str = "High risk.";
pub(crate) const SOME_RISK: &str = "Some risk.";
/// Said with an end if earlier utterances of the agent still wait.
pub(crate) const MORE_FOLLOWS: &str = "What came before that follows.";
pub(crate) const NOBODY_AT_WORK: &str = "No agent is at work.";
/// Parts of sentences that contradict a claim.
pub(crate) const SOMETHING: &str = "something";
pub(crate) const NOT_ALLOWED: &str = "was not allowed";
pub(crate) const FAILED: &str = "failed";
pub(crate) const NOT_IN_TIME: &str = "did not finish in time";

pub(crate) fn stopped(by: &CancelledBy) -> &'static str {
    match by {
        CancelledBy::User => "Stopped by a person.",
        CancelledBy::Producer => "Stopped by the agent itself.",
        CancelledBy::Timeout => "Stopped because it took too long.",
        CancelledBy::System => "Stopped by the system.",
        CancelledBy::Other(_) => "Stopped.",
    }
}

pub(crate) fn take_over(who: &TargetKind) -> &'static str {
    match who {
        TargetKind::Human => "A person should take over.",
        TargetKind::SpecialistAgent => "Another agent should take over.",
        TargetKind::EscalationQueue | TargetKind::Other(_) => "Someone should take over.",
    }
}

pub(crate) fn percent(percent: f64) -> String {
    format!("{percent} percent")
}

pub(crate) fn step(step: u64) -> String {
    format!("Step {step}")
}

pub(crate) fn step_of(step: u64, total: u64) -> String {
    format!("Step {step} of {total}")
}

pub(crate) fn tool_failed(tool: &str) -> String {
    format!("{tool} failed.")
}

pub(crate) fn tool_not_in_time(tool: &str) -> String {
    format!("{tool} did not finish in time.")
}

pub(crate) fn tool_ended(tool: &str) -> String {
    format!("{tool} ended, and it is not known how.")
}

pub(crate) fn of_unknown_kind(name: &str) -> String {
    format!("Something of a kind that is not known here: {name}.")
}

/// The facts, and how many earlier ones there are.
pub(crate) fn in_fact(facts: &[String], more: usize) -> String {
    let more = if more > 0 { format!(" And {more} more before.") } else { String::new() };
    format!("In fact {}.{more}", facts.join(", and "))
}

pub(crate) fn read(count: u64) -> String {
    format!("Read {count} files.")
}

pub(crate) fn searched(count: u64) -> String {
    format!("Searched {count} times.")
}

pub(crate) fn listed(count: u64) -> String {
    format!("Listed {count} folders.")
}

pub(crate) fn edited(count: u64) -> String {
    format!("Edited {count} files.")
}

pub(crate) fn fetched(count: u64) -> String {
    format!("Fetched {count} pages.")
}

pub(crate) fn used(name: &str, count: u64) -> String {
    format!("Used {name} {count} times.")
}

/// How long a tool has been running.
pub(crate) fn still_after(since: &str) -> String {
    format!("Still at it after {since}.")
}

/// How long an agent has been doing something.
pub(crate) fn for_so_long(since: &str) -> String {
    format!("For {since}.")
}

pub(crate) fn silent_for(quiet: &str) -> String {
    format!("Nothing was heard for {quiet}.")
}

/// How many open sessions are idle.
pub(crate) fn idle(count: u64) -> String {
    match count {
        1 => "One session is open, and nothing happens in it. For its agent: status.".to_owned(),
        _ => format!(
            "{count} sessions are open, and nothing happens in them. For their agents: status."
        ),
    }
}
