//! What one listener has heard, compared with what it must have heard. Nothing here touches a socket.

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

/// What a listener must hear.
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

/// What one listener has heard.
pub(super) struct Hearing {
    wants: Wants,
    /// Whether what cannot be told any more may be told as a gap.
    may_have_gaps: bool,
    open: Vec<Open>,
    /// How many sessions it has heard to their end.
    pub(super) ended: u64,
    pub(super) gaps: u64,
    /// What is wrong with the last event.
    faults: Vec<String>,
}

impl Hearing {
    pub(super) fn new(wants: Wants, may_have_gaps: bool) -> Self {
        Hearing { wants, may_have_gaps, open: Vec::new(), ended: 0, gaps: 0, faults: Vec::new() }
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
        let is_of_hub = event.id.as_deref().and_then(step_index).is_none();
        let begin = (!is_of_hub).then_some(0);
        Open {
            number,
            is_whole: !is_of_hub,
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::plan::Step;
    use super::*;

    /// All events of a session as a listener without limits gets them.
    fn session(number: u64) -> Vec<Value> {
        let plan = Plan::of(number);
        let mut events = Vec::new();
        for (index, step) in plan.steps.iter().enumerate() {
            let mut event = plan.event(index).expect("a step");
            event["sequence_number"] = events.len().into();
            events.push(event);
            if matches!(step, Step::Asks) {
                events.push(json!({
                    "type": "aaep:agent.state.changed", "event_id": format!("evt_hub{index}"),
                    "session_id": format!("sess_soak{number}"), "sequence_number": events.len(),
                    "extensions": { "agentvoice": { "resolution": { "outcome": "accept" } } },
                }));
            }
        }
        events
    }

    /// A session in which something is asked.
    fn number_with_question() -> u64 {
        (0..100).find(|number| Plan::of(*number).asks > 0).expect("one of a hundred asks")
    }

    fn hear(wants: Wants, events: &[Value]) -> (Hearing, Vec<String>) {
        let mut hearing = Hearing::new(wants, false);
        let mut faults = Vec::new();
        for event in events {
            let text = event.to_string();
            faults.extend(hearing.take(&serde_json::from_str(&text).expect("an event")));
        }
        (hearing, faults)
    }

    #[test]
    fn whoever_hears_all_of_it_has_nothing_to_complain_about() {
        for wants in [Wants::Numbered, Wants::Everything, Wants::Text] {
            let events: Vec<Value> = (0..20).flat_map(session).collect();
            let (hearing, faults) = hear(wants, &events);
            assert_eq!(faults, Vec::<String>::new());
            assert_eq!((hearing.ended, hearing.unended()), (20, 0));
        }
    }

    #[test]
    fn an_event_that_is_missing_is_noticed_whichever_it_is() {
        let all = session(number_with_question());
        for at in 0..all.len() {
            let mut events = all.clone();
            events.remove(at);
            for wants in [Wants::Numbered, Wants::Everything] {
                let (hearing, faults) = hear(wants, &events);
                assert!(!faults.is_empty() || hearing.unended() > 0, "event {at}");
            }
        }
    }

    #[test]
    fn an_event_that_comes_twice_is_noticed_whichever_it_is() {
        let all = session(number_with_question());
        for at in 0..all.len() {
            let mut events = all.clone();
            events.insert(at, all[at].clone());
            for wants in [Wants::Numbered, Wants::Everything] {
                let (hearing, faults) = hear(wants, &events);
                assert!(!faults.is_empty() || hearing.unended() > 0, "event {at}");
            }
        }
    }

    #[test]
    fn events_in_another_order_are_noticed() {
        let all = session(3);
        for at in 1..all.len() {
            let mut events = all.clone();
            events.swap(at - 1, at);
            let (hearing, faults) = hear(Wants::Numbered, &events);
            assert!(!faults.is_empty() || hearing.unended() > 0, "event {at}");
        }
    }

    #[test]
    fn text_that_is_missing_or_repeated_is_noticed() {
        let all = session(3);
        let texts = (0..all.len()).filter(|at| all[*at].get("chunk").is_some());
        for at in texts {
            let (mut without, mut twice) = (all.clone(), all.clone());
            without.remove(at);
            twice.insert(at, all[at].clone());
            for events in [without, twice] {
                assert!(!hear(Wants::Text, &events).1.is_empty(), "event {at}");
            }
        }
    }

    #[test]
    fn whoever_joins_while_a_session_runs_hears_the_rest_of_it() {
        let all = session(5);
        let summary = json!({
            "type": "aaep:agent.state.changed", "event_id": "evt_hub1",
            "session_id": "sess_soak5",
        });
        let mut events = vec![summary];
        events.extend_from_slice(&all[3..]);
        for wants in [Wants::Numbered, Wants::Everything, Wants::Text] {
            assert_eq!(hear(wants, &events).1, Vec::<String>::new());
        }
        events.remove(3);
        assert!(!hear(Wants::Numbered, &events).1.is_empty());
    }

    #[test]
    fn a_gap_is_counted_and_only_some_may_have_one() {
        let mut event = session(5).remove(0);
        event["extensions"] = json!({ "agentvoice": { "gap": { "after_event_id": "evt_1" } } });
        let text = event.to_string();
        let event: Event<'_> = serde_json::from_str(&text).expect("an event");
        for may_have_gaps in [false, true] {
            let mut hearing = Hearing::new(Wants::Everything, may_have_gaps);
            assert_eq!(hearing.take(&event).is_empty(), may_have_gaps);
            assert_eq!(hearing.gaps, 1);
        }
    }
}
