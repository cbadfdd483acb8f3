//! Fields of our own extension in agents' events: how long an ask may stay open, and the exact
//! action that it asks for.

use aaep::ToolName;
use aaep::extension::action_digest;
use serde_json::{Value, json};

use crate::rng::SeededRng;

/// Adds a field of our extension to those already present.
pub(super) fn say_in_ours(words: &mut Value, field: &str, value: Value) {
    words["@context"] = json!([aaep::CORE_CONTEXT, aaep::extension::CONTEXT]);
    words["extensions"][aaep::extension::PREFIX][field] = value;
}

/// Some agents state how long they wait at most: no longer than the timeout, a little longer, or much longer.
pub(super) fn state_maximum(words: &mut Value, rng: &mut SeededRng) {
    if rng.chance(65) {
        let timeout = words["timeout_seconds"].as_u64().unwrap_or(1);
        let most = timeout + *rng.pick(&[0, 2, 10, 90]);
        say_in_ours(words, "max_timeout_seconds", most.into());
    }
}

/// States the digest of the requested action. Returns the digest that the agent will state when it
/// acts, right or wrong.
pub(super) fn state_action(words: &mut Value, number: u64, rng: &mut SeededRng) -> String {
    say_in_ours(words, "tool", "search".into());
    say_in_ours(words, "action_digest", digest_of(number).into());
    // Sometimes the arguments change after the answer.
    digest_of(if rng.chance(30) { number + 1 } else { number })
}

/// The digest of the tool call whose arguments hold this number.
pub(super) fn digest_of(number: u64) -> String {
    let tool = ToolName::parse("search").expect("the name of a tool");
    let digest = action_digest(&tool, &json!({ "seat": number })).expect("small arguments");
    digest.as_str().to_owned()
}
