//! Results that are a text with headings, as Gemini CLI and Qwen Code have them.

use serde_json::Value;

use crate::dialect::{ToolEnding, text_of};

/// How a tool ended.
pub(crate) fn ending(response: &Value, payload: &Value) -> ToolEnding {
    let text = response["llmContent"].as_str().or(response.as_str()).unwrap_or_default();
    let error = response["error"]["message"].as_str().or(response["error"].as_str());
    let failure = match (error, exit_code(text)) {
        (Some(error), _) => Some(error.to_owned()),
        (None, Some(code)) if code != 0 => {
            Some(format!("It ended with exit code {code}. {}", printed(text)))
        }
        _ => None,
    };
    ToolEnding {
        printed: Some(printed(text).to_owned()),
        failure,
        duration_ms: payload["duration_ms"].as_u64(),
        details: Value::Null,
        ..ToolEnding::default()
    }
}

/// How a tool ended of which the agent says itself that it failed.
pub(crate) fn failure(payload: &Value, response: &Value) -> ToolEnding {
    let error = ["error", "error_message"].map(|it| text_of(payload, it));
    let error = error.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
    ToolEnding { failure: Some(error.to_owned()), ..ending(response, payload) }
}

/// The exit code. The program writes it after everything that the command printed.
fn exit_code(text: &str) -> Option<i64> {
    let line = text.lines().rev().find_map(|it| it.strip_prefix("Exit Code: "))?;
    line.trim().parse().ok()
}

/// What the command printed.
fn printed(text: &str) -> &str {
    let Some(from) = text.find("Output: ").map(|it| it + "Output: ".len()) else { return "" };
    let rest = &text[from..];
    let ends = ["\nError: ", "\nExit Code: ", "\nSignal: ", "\nProcess Group PGID: "];
    let end = ends.iter().filter_map(|it| rest.rfind(it)).min().unwrap_or(rest.len());
    let printed = rest[..end].trim();
    if printed == "(empty)" { "" } else { printed }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(text: &str) -> ToolEnding {
        ending(&json!({ "llmContent": text }), &Value::Null)
    }

    #[test]
    fn the_exit_code_and_the_words_of_the_command_are_told_apart() {
        let failed =
            of("Command: make\nOutput: one\ntwo\nError: (none)\nExit Code: 2\nSignal: (none)");
        assert_eq!(failed.printed.as_deref(), Some("one\ntwo"));
        assert_eq!(failed.failure.as_deref(), Some("It ended with exit code 2. one\ntwo"));
        let claims = of("Output: Exit Code: 0\nExit Code: 3\nProcess Group PGID: 1");
        assert!(claims.failure.is_some());
        let empty = of(
            "<untrusted_context>\nOutput: (empty)\nProcess Group PGID: 180\n</untrusted_context>",
        );
        assert_eq!((empty.printed.as_deref(), empty.failure), (Some(""), None));
        let error = ending(&json!({ "error": { "message": "no such file" } }), &Value::Null);
        assert_eq!(error.failure.as_deref(), Some("no such file"));
    }
}
