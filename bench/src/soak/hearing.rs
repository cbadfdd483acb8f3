//! What one subscriber has heard, compared with what it must have heard. Nothing here touches a socket.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::plan::{Plan, session_number, step_index};

/// What of an event is looked at.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
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
    extensions: Option<Extensions>,
}

#[derive(Deserialize)]
struct Extensions {
    agentvoice: Option<Delivery>,
}

#[derive(Deserialize)]
struct Delivery {
    gap: Option<IgnoredAny>,
    held_back: Option<IgnoredAny>,
    resolution: Option<IgnoredAny>,
}

impl Event<'_> {
    fn is(&self, kind: &str) -> bool {
        self.kind.strip_prefix("aaep:agent.") == Some(kind)
    }

    fn delivery(&self) -> Option<&Delivery> {
        self.extensions.as_ref()?.agentvoice.as_ref()
    }

    /// The session and the step of a question.
    pub(super) fn question(&self) -> Option<(u64, usize)> {
        let number = session_number(self.session_id.as_deref()?)?;
        let index = step_index(self.id.as_deref()?)?;
        self.is("awaiting.confirmation").then_some((number, index))
    }
}

/// What a subscriber must hear.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// Every event once, in order, and numbered without a hole.
    Numbered,
    /// Every event once and in order. After a cut, not all of them need a number, and a question that is
    /// still open may be asked ahead of what was missed.
    Everything,
    /// All of the text, at a rate; the rest may be merged.
    Text,
}

/// A session that has not ended yet.
struct Open {
    number: u64,
    /// Whether it was heard from its beginning.
    is_whole: bool,
    /// Which step of the agent comes next, where that is known.
    next: Option<usize>,
    /// Questions that were asked ahead of what was missed.
    ahead: Vec<usize>,
    sequence_number: Option<u64>,
    resolutions: usize,
    /// Up to where the text was heard.
    text_end: Option<usize>,
}

/// What one subscriber has heard.
pub(super) struct Hearing {
    wants: Wants,
    /// Whether what cannot be told any more may be told as a gap.
    may_have_gaps: bool,
    /// Sessions below this number may have begun before it came.
    began_before: u64,
    open: Vec<Open>,
    /// How many sessions it has heard to their end.
    pub(super) ended: u64,
    pub(super) gaps: u64,
    /// What is wrong with the last event.
    faults: Vec<String>,
}

impl Hearing {
    pub(super) fn new(wants: Wants, may_have_gaps: bool) -> Self {
        Hearing {
            wants,
            may_have_gaps,
            began_before: 0,
            open: Vec::new(),
            ended: 0,
            gaps: 0,
            faults: Vec::new(),
        }
    }

    /// It comes while sessions run that are below this number. One that ends before it is there is not summed
    /// up, and what still came of it after the subscription is told.
    pub(super) fn joins_before(&mut self, number: u64) {
        self.began_before = number;
    }

    /// The sessions of which it has not heard the end.
    pub(super) fn unended(&self) -> usize {
        self.open.len()
    }

    /// Takes the next event; what is wrong with it, in sentences.
    pub(super) fn take(&mut self, event: &Event<'_>) -> Vec<String> {
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
            // What ran before and still runs is summed up now.
            self.open.clear();
        }
        let mut open = self.session(number, event);
        if self.wants == Wants::Text {
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

    fn fault(&mut self, event: &Event<'_>, what: &str) {
        let id = event.id.as_deref().unwrap_or("without an id");
        let session = event.session_id.as_deref().unwrap_or("no session");
        self.faults.push(format!("the {} {id} of {session} {what}", event.kind));
    }

    /// What is known of its session.
    fn session(&mut self, number: u64, event: &Event<'_>) -> Open {
        if let Some(at) = self.open.iter().position(|open| open.number == number) {
            return self.open.swap_remove(at);
        }
        // Who joins while a session runs is told by an event of the hub what goes on in it.
        let index = event.id.as_deref().and_then(step_index);
        let is_whole = index == Some(0) || (index.is_some() && number >= self.began_before);
        let begin = is_whole.then_some(0);
        Open {
            number,
            is_whole,
            next: begin,
            ahead: Vec::new(),
            sequence_number: None,
            resolutions: 0,
            text_end: begin,
        }
    }

    fn take_number(&mut self, open: &mut Open, event: &Event<'_>) {
        let before = open.sequence_number;
        let is_question = event.question().is_some();
        let Some(number) = event.sequence_number else {
            if self.wants == Wants::Numbered && open.is_whole {
                self.fault(event, "has no number");
            }
            return;
        };
        let is_right = match before {
            Some(before) if self.wants == Wants::Numbered => number == before + 1,
            Some(before) => number > before || is_question,
            None if self.wants == Wants::Numbered && open.is_whole => number == 0,
            None => true,
        };
        if !is_right {
            self.fault(event, &format!("has the number {number} after {before:?}"));
        }
        open.sequence_number = Some(number.max(before.unwrap_or(0)));
    }

    fn take_step(&mut self, open: &mut Open, event: &Event<'_>) {
        let Some(index) = event.id.as_deref().and_then(step_index) else { return };
        let is_question = event.question().is_some();
        let Some(next) = open.next else {
            // One that is asked anew says nothing about where the session is.
            open.next = (!is_question).then_some(index + 1);
            return;
        };
        if index > next && is_question && self.wants == Wants::Everything {
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

    fn take_text(&mut self, open: &mut Open, event: &Event<'_>) {
        if event.is("session.started") {
            if open.text_end.is_some_and(|end| end > 0) {
                self.fault(event, "came after text of its session");
            }
            // Something urgent may have overtaken it.
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

    fn end(&mut self, open: &Open, event: &Event<'_>) {
        self.ended += 1;
        let plan = Plan::of(open.number);
        if self.wants == Wants::Text {
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
