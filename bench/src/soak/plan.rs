//! What an agent does in a session. The number of the session determines all of it, so that a
//! subscriber knows what it must receive without being told.

use serde_json::{Value, json};

use crate::random::SeededRandom;

/// The fewest and the most things that an agent does between the beginning and the end.
const FEWEST: u64 = 3;
const MOST: u64 = 8;

/// One event of a plan.
pub(super) enum PlannedStep {
    Started,
    Thinks,
    /// A piece of text, and its position in the whole.
    Words {
        chunk: String,
        position: usize,
        is_last: bool,
    },
    Progress(u64),
    ToolInvoked(usize),
    ToolCompleted(usize),
    Asks,
    Completed,
}

/// The plan of one session.
pub(super) struct SessionPlan {
    number: u64,
    pub(super) steps: Vec<PlannedStep>,
    /// The length of its text, in characters.
    pub(super) text_chars: usize,
    pub(super) asks: usize,
}

impl SessionPlan {
    pub(super) fn of(number: u64) -> Self {
        let mut random = SeededRandom::new(number);
        let mut plan = SessionPlan { number, steps: Vec::new(), text_chars: 0, asks: 0 };
        plan.steps.extend([PlannedStep::Started, PlannedStep::Thinks]);
        let rounds = random.between(FEWEST, MOST);
        for round in 0..rounds {
            match random.between(0, 7) {
                0 => {
                    plan.steps.push(PlannedStep::Asks);
                    plan.asks += 1;
                }
                1 => plan.steps.push(PlannedStep::Progress(100 * round / rounds)),
                2 => {
                    let call = plan.steps.len();
                    plan.steps
                        .extend([PlannedStep::ToolInvoked(call), PlannedStep::ToolCompleted(call)]);
                }
                _ => {
                    plan.say(format!("In round {round} "), false);
                    plan.say(format!("of session {number} "), false);
                    plan.say("I looked at ".to_owned(), false);
                    plan.say(format!("{} photos ", random.between(1, 100_000)), false);
                    plan.say("of the sea. ".to_owned(), false);
                }
            }
        }
        plan.say(format!("This was all of session {number}."), true);
        plan.steps.push(PlannedStep::Completed);
        plan
    }

    fn say(&mut self, chunk: String, is_last: bool) {
        let position = self.text_chars;
        self.text_chars += chunk.chars().count();
        self.steps.push(PlannedStep::Words { chunk, position, is_last });
    }

    /// The event of a step, in the form that the agent publishes.
    pub(super) fn event(&self, index: usize) -> Option<Value> {
        let number = self.number;
        let mut event = match self.steps.get(index)? {
            PlannedStep::Started => {
                json!({ "type": "aaep:agent.session.started", "summary_normal": "It begins." })
            }
            PlannedStep::Thinks => {
                json!({ "type": "aaep:agent.state.changed", "to_state": "thinking" })
            }
            PlannedStep::Words { chunk, position, is_last } => json!({
                "type": "aaep:agent.output.streaming", "output_id": format!("out_{number}"),
                "chunk": chunk, "position": position, "complete": is_last,
            }),
            PlannedStep::Progress(percent) => json!({
                "type": "aaep:agent.progress.updated", "progress": { "percent": percent },
                "summary_normal": format!("{percent} percent of the photos."),
            }),
            PlannedStep::ToolInvoked(call) => json!({
                "type": "aaep:agent.tool.invoked", "tool": "look",
                "tool_call_id": format!("call_{number}x{call}"),
                "summary_normal": "Looking at photos.",
            }),
            PlannedStep::ToolCompleted(call) => json!({
                "type": "aaep:agent.tool.completed", "tool": "look",
                "tool_call_id": format!("call_{number}x{call}"), "status": "success",
                "summary_normal": "Looked at photos.",
            }),
            PlannedStep::Asks => json!({
                "type": "aaep:agent.awaiting.confirmation",
                "reply_token": format!("rpl_soak{number}i{index}"),
                "action": "Delete the photos.", "consequence": "They are gone for good.",
                "risk_level": "high", "irreversible": true, "default_decision": "reject",
                "timeout_seconds": 300, "summary_normal": "May I delete the photos?",
            }),
            PlannedStep::Completed => {
                json!({ "type": "aaep:agent.session.completed", "summary_normal": "Done." })
            }
        };
        event["event_id"] = format!("evt_soak{number}i{index}").into();
        event["session_id"] = format!("sess_soak{number}").into();
        event["producer"] = json!({ "agent_id": "soak" });
        Some(event)
    }
}

/// Reads the number from a session id.
pub(super) fn session_number(session_id: &str) -> Option<u64> {
    session_id.strip_prefix("sess_soak")?.parse().ok()
}

/// Reads the step of an event from its id; none if the hub made the event.
pub(super) fn step_index(event_id: &str) -> Option<usize> {
    event_id.strip_prefix("evt_soak")?.split_once('i')?.1.parse().ok()
}

/// The answer to an ask, and which of this many people gives it.
pub(super) fn decision(number: u64, index: usize, people: usize) -> (&'static str, usize) {
    let sum = usize::try_from(number).unwrap_or(0) + index;
    (if sum.is_multiple_of(2) { "accept" } else { "reject" }, sum % people)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_gives_the_same_session_every_time() {
        for number in 0..100 {
            let (one, other) = (SessionPlan::of(number), SessionPlan::of(number));
            assert_eq!(one.steps.len(), other.steps.len());
            for index in 0..one.steps.len() {
                let event = one.event(index).expect("a step");
                assert_eq!(Some(&event), other.event(index).as_ref());
                assert_eq!(step_index(event["event_id"].as_str().expect("an id")), Some(index));
                let session = event["session_id"].as_str().expect("an id");
                assert_eq!(session_number(session), Some(number));
            }
            assert!(one.event(one.steps.len()).is_none());
        }
    }

    #[test]
    fn text_has_no_holes_and_one_end() {
        for number in 0..100 {
            let plan = SessionPlan::of(number);
            let (mut end, mut ends) = (0, 0);
            for step in &plan.steps {
                if let PlannedStep::Words { chunk, position, is_last } = step {
                    assert_eq!(*position, end);
                    end += chunk.chars().count();
                    ends += usize::from(*is_last);
                }
            }
            assert_eq!((end, ends), (plan.text_chars, 1));
        }
    }

    #[test]
    fn an_event_of_the_hub_is_not_a_step() {
        assert_eq!(step_index("evt_7k2m"), None);
        assert_eq!(step_index("evt_soak12"), None);
        assert_eq!(session_number("sess_other3"), None);
    }
}
