//! The order in which several questions are announced.

use aaep::event::action::RiskLevel;
use aaep::event::human::Reversibility;
use aaep::{Event, Payload};

/// The rank of a question: a larger rank is announced sooner. The risk comes first, then whether the action can be
/// undone, for which the stricter field counts. A missing value ranks in the middle, because most agents give it when
/// it is high.
pub fn rank(event: &Event) -> (u8, u8) {
    let Payload::AwaitingConfirmation(asked) = &event.payload else { return (0, 0) };
    let risk = match &asked.risk_level {
        Some(RiskLevel::Low) => 1,
        Some(RiskLevel::Medium | RiskLevel::Other(_)) | None => 2,
        Some(RiskLevel::High) => 3,
    };
    let undo = match (&asked.reversibility, asked.irreversible) {
        (_, Some(true)) | (Some(Reversibility::Irreversible), _) => 3,
        (Some(Reversibility::ReversibleWithEffort), _) => 1,
        (Some(Reversibility::Reversible), _) | (None, Some(false)) => 0,
        _ => 2,
    };
    (risk, undo)
}
