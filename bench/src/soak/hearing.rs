//! Compares what one subscriber received with what it must have received. Nothing here touches a socket.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::plan::{SessionPlan, session_number, step_index};

/// The fields of an event that are checked.
#[derive(Deserialize)]
pub(super) struct CheckedEvent<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(rename = "event_id", borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
    sequence_number: Option<u64>,
    position: Option<usize>,
    #[serde(borrow)]
    chunk: Option<Cow<'a, str>>,
    extensions: Option<CheckedExtensions>,
}

#[derive(Deserialize)]
struct CheckedExtensions {
    agentvoice: Option<DeliveryMarks>,
}

#[derive(Deserialize)]
struct DeliveryMarks {
    gap: Option<IgnoredAny>,
    held_back: Option<IgnoredAny>,
    resolution: Option<IgnoredAny>,
}

impl CheckedEvent<'_> {
    fn is(&self, kind: &str) -> bool {
        self.kind.strip_prefix("aaep:agent.") == Some(kind)
    }

    fn delivery(&self) -> Option<&DeliveryMarks> {
        self.extensions.as_ref()?.agentvoice.as_ref()
    }

    /// The session and the step of an ask, if the event is one.
    pub(super) fn ask_index(&self) -> Option<(u64, usize)> {
        let number = session_number(self.session_id.as_deref()?)?;
        let index = step_index(self.id.as_deref()?)?;
        self.is("awaiting.confirmation").then_some((number, index))
    }
}

/// What a subscriber must receive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedDelivery {
    /// Every event once, in order, and numbered without gaps.
    Numbered,
    /// Every event once and in order. After a broken connection, some events may lack a number, and
    /// an open ask may be sent again ahead of missed events.
    Everything,
    /// All of the text, at a limited rate; other events may be merged.
    Text,
}

/// A session that has not ended yet.
struct CheckedSession {
    number: u64,
    /// Whether it was received from its beginning.
    is_whole: bool,
    /// The agent's next step, if known.
    next: Option<usize>,
    /// Asks that were sent ahead of missed events.
    ahead: Vec<usize>,
    sequence_number: Option<u64>,
    resolutions: usize,
    /// The position up to which text was received, if known.
    text_end: Option<usize>,
}

/// What one subscriber has received so far.
pub(super) struct DeliveryCheck {
    wants: ExpectedDelivery,
    /// Whether events that are no longer available may be replaced by a gap.
    may_have_gaps: bool,
    /// Sessions below this number may have begun before the subscriber joined.
    began_before: u64,
    open: Vec<CheckedSession>,
    /// The number of sessions that it received to their end.
    pub(super) ended: u64,
    pub(super) gaps: u64,
    /// What is wrong with the last event.
    faults: Vec<String>,
}

impl DeliveryCheck {
    pub(super) fn new(wants: ExpectedDelivery, may_have_gaps: bool) -> Self {
        DeliveryCheck {
            wants,
            may_have_gaps,
            began_before: 0,
            open: Vec::new(),
            ended: 0,
            gaps: 0,
            faults: Vec::new(),
        }
    }

    /// Notes that the subscriber joins while sessions below this number run. A session that ends
    /// before the subscription begins has no summary, but its later events are still delivered.
    pub(super) fn joins_before(&mut self, number: u64) {
        self.began_before = number;
    }

    /// The number of sessions whose end it has not received.
    pub(super) fn unended(&self) -> usize {
        self.open.len()
    }

    /// Checks the next event. Returns its faults, in sentences.
    pub(super) fn take(&mut self, event: &CheckedEvent<'_>) -> Vec<String> {
        let number = event.session_id.as_deref().and_then(session_number);
        let Some(number) = number else {
            self.fault(event, "is of no session that there is");
            return std::mem::take(&mut self.faults);
        };
        if event.delivery().is_some_and(|it| it.gap.is_some()) {
            self.gaps += 1;
            if !self.may_have_gaps {
                self.fault(event, "says that something is missing");
            }
            // After a gap, the hub sends a summary of each running session.
            self.open.clear();
        }
        let mut open = self.session(number, event);
        if self.wants == ExpectedDelivery::Text {
            self.take_text(&mut open, event);
        } else {
            self.take_number(&mut open, event);
            self.take_step(&mut open, event);
        }
        open.resolutions += usize::from(event.delivery().is_some_and(|it| it.resolution.is_some()));
        if event.is("session.completed") {
            self.end(&open, event);
        } else {
            self.open.push(open);
        }
        std::mem::take(&mut self.faults)
    }

    fn fault(&mut self, event: &CheckedEvent<'_>, what: &str) {
        let id = event.id.as_deref().unwrap_or("without an id");
        let session = event.session_id.as_deref().unwrap_or("no session");
        self.faults.push(format!("the {} {id} of {session} {what}", event.kind));
    }

    /// The state of the event's session.
    fn session(&mut self, number: u64, event: &CheckedEvent<'_>) -> CheckedSession {
        if let Some(at) = self.open.iter().position(|open| open.number == number) {
            return self.open.swap_remove(at);
        }
        // A subscriber that joins a running session receives a summary made by the hub.
        let index = event.id.as_deref().and_then(step_index);
        let is_whole = index == Some(0) || (index.is_some() && number >= self.began_before);
        let begin = is_whole.then_some(0);
        CheckedSession {
            number,
            is_whole,
            next: begin,
            ahead: Vec::new(),
            sequence_number: None,
            resolutions: 0,
            text_end: begin,
        }
    }

    fn take_number(&mut self, open: &mut CheckedSession, event: &CheckedEvent<'_>) {
        let before = open.sequence_number;
        let is_ask = event.ask_index().is_some();
        let Some(number) = event.sequence_number else {
            if self.wants == ExpectedDelivery::Numbered && open.is_whole {
                self.fault(event, "has no number");
            }
            return;
        };
        let is_right = match before {
            Some(before) if self.wants == ExpectedDelivery::Numbered => number == before + 1,
            Some(before) => number > before || is_ask,
            None if self.wants == ExpectedDelivery::Numbered && open.is_whole => number == 0,
            None => true,
        };
        if !is_right {
            self.fault(event, &format!("has the number {number} after {before:?}"));
        }
        open.sequence_number = Some(number.max(before.unwrap_or(0)));
    }

    fn take_step(&mut self, open: &mut CheckedSession, event: &CheckedEvent<'_>) {
        let Some(index) = event.id.as_deref().and_then(step_index) else { return };
        let is_ask = event.ask_index().is_some();
        let Some(next) = open.next else {
            // An ask that is sent again does not show how far the session is.
            open.next = (!is_ask).then_some(index + 1);
            return;
        };
        if index > next && is_ask && self.wants == ExpectedDelivery::Everything {
            open.ahead.push(index);
            return;
        }
        if index > next {
            self.fault(event, &format!("came and {} before it did not", index - next));
        } else if index < next || open.ahead.contains(&index) {
            self.fault(event, "came twice or too late");
            return;
        }
        let mut next = index + 1;
        while open.ahead.contains(&next) {
            next += 1;
        }
        open.next = Some(next);
    }

    fn take_text(&mut self, open: &mut CheckedSession, event: &CheckedEvent<'_>) {
        if event.is("session.started") {
            if open.text_end.is_some_and(|end| end > 0) {
                self.fault(event, "came after text of its session");
            }
            // A critical event may have overtaken it.
            open.text_end = Some(0);
        }
        if let (Some(begin), Some(chunk)) = (event.position, &event.chunk) {
            if let Some(end) = open.text_end.filter(|end| *end != begin) {
                self.fault(
                    event,
                    &format!("begins at {begin}, and the text before ended at {end}"),
                );
            }
            open.text_end = Some(begin + chunk.chars().count());
        }
    }

    fn end(&mut self, open: &CheckedSession, event: &CheckedEvent<'_>) {
        self.ended += 1;
        let plan = SessionPlan::of(open.number);
        if self.wants == ExpectedDelivery::Text {
            let is_held_back = event.delivery().is_some_and(|it| it.held_back.is_some());
            let is_short = open.text_end.is_some_and(|end| end != plan.text_chars);
            if is_short && !is_held_back {
                let (end, all) = (open.text_end.unwrap_or(0), plan.text_chars);
                self.fault(event, &format!("came after {end} characters of {all}"));
            }
            return;
        }
        if open.is_whole && open.resolutions != plan.asks {
            let (found, wanted) = (open.resolutions, plan.asks);
            self.fault(event, &format!("came after {found} answers to {wanted} questions"));
        }
        if open.next.is_some_and(|next| next != plan.steps.len()) {
            self.fault(event, "is not the last of its session");
        }
    }
}
