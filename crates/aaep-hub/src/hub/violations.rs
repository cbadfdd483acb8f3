//! What is wrong with a message, as JSON for whoever sent it.

use aaep::{Severity, Violation};
use serde_json::{Value, json};

/// The errors among the violations.
pub fn to_json(violations: &[Violation]) -> Value {
    let errors = violations.iter().filter(|violation| violation.severity == Severity::Error);
    errors
        .map(|violation| {
            json!({
                "pointer": violation.pointer,
                "code": violation.code.name(),
                "message": format!("{} {}", violation.problem, violation.advice()),
            })
        })
        .collect()
}
