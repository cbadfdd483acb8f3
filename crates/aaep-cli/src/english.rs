//! What the commands for people say, in English, so that it can be translated in one place. Help stands with the flags;
//! sentences about agents are in `aaep-announce`.
//!
//! While listening and answering: `asks` describes pending questions, `answers` the results of answers, `hubs` is about
//! hubs, devices and rules, `telling` about instructions to agents, `typing` about what the person typed. `failures` is
//! what could not be done, in any command, and `keeping` belongs to the files that remember something for the person.
//! Each of the others belongs to a command: `admitting` to `aaep tokens`, `allowing` to `allow`, `archiving` to
//! `sessions`, `asking` to `ask`, `bridging` to `agents`, `chatting` to `chat`, `checking` to `doctor`, `configuring` to
//! `config`, `emitting` to `emit`, `examining` to `agents doctor`, `instructing` to `tell` and `cancel`, `replaying` to
//! `replay`, `reporting` to `report`, `signing` to `keys`.

pub(crate) mod admitting;
pub(crate) mod allowing;
pub(crate) mod answers;
pub(crate) mod archiving;
pub(crate) mod asking;
pub(crate) mod asks;
pub(crate) mod bridging;
pub(crate) mod chatting;
pub(crate) mod checking;
pub(crate) mod configuring;
pub(crate) mod emitting;
pub(crate) mod examining;
pub(crate) mod failures;
pub(crate) mod following;
pub(crate) mod hubs;
pub(crate) mod instructing;
pub(crate) mod keeping;
pub(crate) mod replaying;
pub(crate) mod reporting;
pub(crate) mod signing;
pub(crate) mod telling;
pub(crate) mod typing;

use std::time::Duration;

use crate::console::count;

pub(crate) const AGENT_WITHOUT_NAME: &str = "an agent without a name";

/// A duration in its two largest units.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let parts = [
        (seconds / 3600, "hour"),
        (seconds / 60 % 60, "minute"),
        // From one hour on, seconds are left out.
        (if seconds < 3600 { seconds % 60 } else { 0 }, "second"),
    ];
    let said: Vec<String> = parts
        .iter()
        .filter(|(value, _)| *value > 0)
        .map(|(value, unit)| count(*value, unit))
        .collect();
    if said.is_empty() { "less than a second".to_owned() } else { said.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_their_largest_units() {
        for (seconds, said) in [
            (0, "less than a second"),
            (1, "1 second"),
            (60, "1 minute"),
            (125, "2 minutes 5 seconds"),
            (3600, "1 hour"),
            (7384, "2 hours 3 minutes"),
        ] {
            assert_eq!(duration(Duration::from_secs(seconds)), said);
        }
    }
}
