//! The problems of a message in a stream: in the message, in the order of its session, or between messages.

use std::fmt;

use aaep::{Mode, Severity, Violation};
use aaep_engine::order::OrderViolation;

/// One problem to report.
#[derive(Debug, Clone)]
pub(crate) struct MessageProblem {
    pub(crate) severity: Severity,
    /// Its stable name, as listed in docs/violations.md.
    pub(crate) code: &'static str,
    /// Its JSON pointer in the message; empty for the message as a whole.
    pub(crate) pointer: String,
    pub(crate) section: &'static str,
    pub(crate) what: String,
    pub(crate) advice: &'static str,
}

impl MessageProblem {
    pub(crate) fn of_message(violation: Violation) -> Self {
        MessageProblem {
            severity: violation.severity,
            code: violation.code.name(),
            section: violation.section,
            advice: violation.advice(),
            pointer: violation.pointer,
            what: violation.problem,
        }
    }

    /// A subscriber keeps listening to a session that violates the order; a producer must not send it.
    pub(crate) fn of_order(violation: &OrderViolation, mode: Mode) -> Self {
        MessageProblem {
            severity: if mode == Mode::Tolerant { Severity::Note } else { Severity::Error },
            code: violation.code(),
            section: violation.section(),
            advice: violation.advice(),
            pointer: String::new(),
            what: violation.to_string(),
        }
    }

    /// Notes that the events of an input were judged one by one.
    pub(crate) fn order_not_judged() -> Self {
        MessageProblem {
            severity: Severity::Note,
            code: "order_not_judged",
            section: "4.5.1",
            advice: "Pass --order to judge the order as well.",
            pointer: String::new(),
            what:
                "The input has no valid agent.session.started, so each event was judged by itself, \
                   and not the order of events."
                    .to_owned(),
        }
    }

    /// Notes that a hub completes some fields, or normalises ids, when an agent publishes the event.
    pub(crate) fn hub_fills_in(fields: &[&str], is_all: bool) -> Self {
        let rest = if is_all {
            "Published to a hub, it is valid."
        } else {
            "The rest is wrong there too."
        };
        MessageProblem {
            severity: Severity::Note,
            code: "hub_fills_in",
            section: "3.2",
            advice: "Publish it as it is, or write it out for other producers.",
            pointer: String::new(),
            what: format!(
                "A hub fills in {} when an agent publishes this event. {rest}",
                fields.join(", ")
            ),
        }
    }

    pub(crate) fn between_messages(what: &str) -> Self {
        MessageProblem {
            severity: Severity::Error,
            code: "not_json",
            section: "3.8",
            advice: "Separate messages with line breaks, or put them into one array.",
            pointer: String::new(),
            what: what.to_owned(),
        }
    }
}

impl fmt::Display for MessageProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", aaep::printable(&self.pointer))?;
        }
        write!(f, "{} {} (§{}, {})", self.what, self.advice, self.section, self.code)
    }
}
