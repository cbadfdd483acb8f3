//! What agents say in our own extension: how long a question may stay open, and for which action.

use aaep::ToolName;
use aaep::extension::action_digest;
use serde_json::{Value, json};

use crate::rng::Rng;

/// Says something in our extension, beside what is said there.
pub(super) fn say_in_ours(words: &mut Value, field: &str, value: Value) {
    words["@context"] = json!([aaep::CORE_CONTEXT, aaep::extension::CONTEXT]);
    words["extensions"][aaep::extension::PREFIX][field] = value;
}

/// Some agents say how long they wait at most: not at all longer, a little, or much.
pub(super) fn state_maximum(words: &mut Value, rng: &mut Rng) {
    if rng.chance(65) {
        let timeout = words["timeout_seconds"].as_u64().unwrap_or(1);
        let most = timeout + *rng.pick(&[0, 2, 10, 90]);
        say_in_ours(words, "max_timeout_seconds", most.into());
    }
}

/// States the action that is asked for; what will be stated when it is done, right or wrong.
pub(super) fn state_action(words: &mut Value, number: u64, rng: &mut Rng) -> String {
    say_in_ours(words, "tool", "search".into());
    say_in_ours(words, "action_digest", digest_of(number).into());
    // Now and then the arguments change after the answer.
    digest_of(if rng.chance(30) { number + 1 } else { number })
}

/// The digest of the tool with the arguments of this number.
pub(super) fn digest_of(number: u64) -> String {
    let tool = ToolName::parse("search").expect("the name of a tool");
    let digest = action_digest(&tool, &json!({ "seat": number })).expect("small arguments");
    digest.as_str().to_owned()
}
