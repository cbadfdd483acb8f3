//! The rate of a voice, in the steps of a speech server. Pure.

use std::ops::RangeInclusive;

use crate::utterance::Pace;

/// The slowest and the fastest rate of a speech server.
const RATES: RangeInclusive<i8> = -100..=100;

/// The size of a step. It is audible, and not too large to follow.
const STEP: i8 = 10;

/// The requested rate, starting from the current one.
pub(super) fn changed(rate: i8, wanted: Pace) -> i8 {
    let rate = match wanted {
        Pace::Slower => rate.saturating_sub(STEP),
        Pace::Faster => rate.saturating_add(STEP),
        Pace::Rate(rate) => rate,
    };
    rate.clamp(*RATES.start(), *RATES.end())
}

/// The new pace in percent of the previous one.
pub(super) fn percent(before: i8, after: i8) -> u32 {
    let percent = words_per_minute(after) * 100 / words_per_minute(before);
    // A change that rounds to nothing must still be visible as a change.
    match (percent, after.cmp(&before)) {
        (100, std::cmp::Ordering::Greater) => 101,
        (100, std::cmp::Ordering::Less) => 99,
        _ => percent,
    }
}

/// The approximate words per minute of a rate: 80 to 450, and 175 in the middle, as usual voices have it.
fn words_per_minute(rate: i8) -> u32 {
    let rate = i32::from(rate.clamp(*RATES.start(), *RATES.end()));
    let slope = if rate < 0 { 95 } else { 275 };
    u32::try_from(175 + rate * slope / 100).unwrap_or(175)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stay_within_the_bounds() {
        assert_eq!((changed(0, Pace::Faster), changed(0, Pace::Slower)), (10, -10));
        assert_eq!((changed(95, Pace::Faster), changed(-95, Pace::Slower)), (100, -100));
        assert_eq!((changed(0, Pace::Rate(i8::MAX)), changed(0, Pace::Rate(i8::MIN))), (100, -100));
        assert_eq!((changed(i8::MAX, Pace::Faster), changed(i8::MIN, Pace::Slower)), (100, -100));
    }

    #[test]
    fn every_change_is_told_as_one_in_its_direction_and_no_other_is() {
        for before in RATES {
            for after in RATES {
                let percent = percent(before, after);
                assert_eq!(percent.cmp(&100), after.cmp(&before), "{before} {after} {percent}");
            }
        }
        assert_eq!((percent(0, 100), percent(-100, 100), percent(100, -100)), (257, 562, 17));
    }
}
