//! What is wrong with a message, as JSON for its sender.

use aaep::{Severity, Violation};
use serde_json::{Value, json};

/// How many violations an answer lists.
const MAX_LISTED: usize = 64;

/// The errors among the violations, up to the limit.
pub fn to_json(violations: &[Violation]) -> Value {
    let errors = violations.iter().filter(|violation| violation.severity == Severity::Error);
    errors
        .take(MAX_LISTED)
        .map(|violation| {
            json!({
                "pointer": violation.pointer,
                "code": violation.code.name(),
                "message": format!("{} {}", violation.problem, violation.advice()),
            })
        })
        .collect()
}
