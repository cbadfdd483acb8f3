//! Saboteurs that write wrong timestamps into what the hub itself makes.

use aaep::extension::Delivery;
use aaep::{Event, Timestamp};
use aaep_engine::{EngineInput, Now, Output};

use super::EngineSaboteur;
use super::hands::{event, frames, rewrite};
use crate::check::pace::{is_notice, is_summary};

/// Moves the time of the sent events that are meant.
fn move_times(outputs: &mut [Output], is_meant: impl Fn(&Event) -> bool, by_us: i64) {
    for (frame, _) in frames(outputs) {
        let Some(event) = event(frame).filter(|event| is_meant(event)) else { continue };
        let moved = event.envelope.timestamp.unix_us() + by_us;
        if let Some(moved) = Timestamp::from_unix_us(moved) {
            *frame = rewrite(frame, |json| json["timestamp"] = moved.as_str().into());
        }
    }
}

/// Dates merged events a second before they were made.
pub(super) struct DateBack;

impl EngineSaboteur for DateBack {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        let is_merged =
            |event: &Event| Delivery::of(event).is_some_and(|delivery| delivery.merged.is_some());
        move_times(outputs, is_merged, -1_000_000);
    }
}

/// Dates summaries and notices of outcomes a second after they were made.
pub(super) struct DateAhead;

impl EngineSaboteur for DateAhead {
    fn after(&mut self, _: Now, _: &EngineInput, outputs: &mut Vec<Output>) {
        move_times(outputs, |event| is_notice(event) || is_summary(event), 1_000_000);
    }
}
