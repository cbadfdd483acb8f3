//! Listening itself: the connection, missed events, and repetitions.

pub(crate) const FOR_THE_REST: &str = "For the rest: more.";
pub(crate) const ONE_MISSED: &str = "1 event was missed.";
pub(crate) const SOMETHING_MISSED: &str = "Something may have been missed.";
pub(crate) const TOO_LONG_TO_TELL: &str = "The rest is too long to be told.";
pub(crate) const TOO_LONG_TO_REMEMBER: &str = "The rest is too long to be remembered.";
/// The device hangs.
pub(crate) const NO_ANSWER: &str = "It does not answer.";
pub(crate) const ONLY_DECISIONS: &str = "Only decisions.";
pub(crate) const EVERYTHING: &str = "Everything.";
pub(crate) const NOTHING_SAID: &str = "Nothing was said yet.";
pub(crate) const NOTHING_SKIPPED: &str = "Nothing was skipped.";
pub(crate) const NOTHING_BEFORE: &str = "Nothing was said before that.";
pub(crate) const NO_REPLY_YET: &str = "Nothing was said by an agent yet.";
pub(crate) const SLOWER: &str = "Slower.";
pub(crate) const FASTER: &str = "Faster.";
pub(crate) const NOT_SLOWER: &str = "It does not go slower.";
pub(crate) const NOT_FASTER: &str = "It does not go faster.";
pub(crate) const THAT_FAST_ALREADY: &str = "It is that fast already.";

pub(crate) fn missed(count: &str) -> String {
    format!("{count} events were missed.")
}

pub(crate) fn left_out(count: &str) -> String {
    format!("The agents sent too much. Events left out: {count}.")
}

pub(crate) fn line_broke(to: &str) -> String {
    format!("The line to {to} broke. Trying again.")
}

pub(crate) fn line_is_back(to: &str) -> String {
    format!("The line to {to} is back.")
}

/// More is waiting than can be said.
pub(crate) fn too_much(listed: &str) -> String {
    format!("Too much at once. Left out: {listed}. To hear what was left out: more.")
}

/// What was left out, by kind; `None` if nothing was.
pub(crate) fn kinds_left_out(errors: u64, replies: u64, steps: u64, others: u64) -> Option<String> {
    let count = |count: u64, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {many}")),
    };
    let listed: Vec<String> = [
        count(errors, "error", "errors"),
        count(replies, "part of a reply", "parts of replies"),
        count(steps, "step", "steps"),
        count(others, "notice", "notices"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let (last, before) = listed.split_last()?;
    Some(if before.is_empty() { last.clone() } else { format!("{} and {last}", before.join(", ")) })
}
