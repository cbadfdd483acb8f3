//! What the commands for listening and answering say to the person, in English, so that it can be translated in one
//! place. Help stands with the flags; sentences about agents are in `aaep-announce`.
//!
//! `asks` describes pending questions, `answers` the results of answers, `failures` what could not be done, `hubs` is
//! about hubs, devices and rules while listening, `telling` about instructions to agents, `typing` about what the
//! person typed. `instructing` belongs to `aaep tell` and `aaep cancel`, `replaying` to `aaep replay`, `checking` to
//! `aaep doctor`, `keeping` to the files that remember something for the person.

pub(crate) mod answers;
pub(crate) mod asks;
pub(crate) mod checking;
pub(crate) mod failures;
pub(crate) mod hubs;
pub(crate) mod instructing;
pub(crate) mod keeping;
pub(crate) mod replaying;
pub(crate) mod telling;
pub(crate) mod typing;

use std::time::Duration;

use crate::console::count;

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
