//! What is wrong with a message of a stream: in itself, in the order of its session, or around it.

use std::fmt;

use aaep::{Mode, Severity, Violation};
use aaep_engine::order::OrderViolation;

/// One thing to report.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) severity: Severity,
    /// The stable name, as docs/violations.md lists it.
    pub(crate) code: &'static str,
    /// Where in the message; empty for the message as a whole.
    pub(crate) pointer: String,
    pub(crate) section: &'static str,
    pub(crate) what: String,
    pub(crate) advice: &'static str,
}

impl Problem {
    pub(crate) fn of_message(violation: Violation) -> Self {
        Problem {
            severity: violation.severity,
            code: violation.code.name(),
            section: violation.section,
            advice: violation.advice(),
            pointer: violation.pointer,
            what: violation.problem,
        }
    }

    /// A subscriber goes on hearing a session that breaks its order; a producer must not send it.
    pub(crate) fn of_order(violation: &OrderViolation, mode: Mode) -> Self {
        Problem {
            severity: if mode == Mode::Tolerant { Severity::Note } else { Severity::Error },
            code: violation.code(),
            section: violation.section(),
            advice: violation.advice(),
            pointer: String::new(),
            what: violation.to_string(),
        }
    }

    /// The events of an input were judged one by one.
    pub(crate) fn order_not_judged() -> Self {
        Problem {
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

    /// A hub fills in some of what an event lacks, or gives its ids another form, when an agent publishes it.
    pub(crate) fn hub_fills_in(fields: &[&str], is_all: bool) -> Self {
        let rest = if is_all {
            "Published to a hub, it is valid."
        } else {
            "The rest is wrong there too."
        };
        Problem {
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
        Problem {
            severity: Severity::Error,
            code: "not_json",
            section: "3.8",
            advice: "Separate messages with line breaks, or put them into one array.",
            pointer: String::new(),
            what: what.to_owned(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", aaep::printable(&self.pointer))?;
        }
        write!(f, "{} {} (§{}, {})", self.what, self.advice, self.section, self.code)
    }
}
