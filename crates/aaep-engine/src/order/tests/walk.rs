//! Random sessions: every valid one passes, a corrupted event is refused where it is, and a refused
//! event leaves no trace.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::StreamOrder;
use super::*;

const AGENTS: [&str; 2] = ["a", "b"];
const STATES: [&str; 4] = ["thinking", "deciding", "calling_tool", "writing_output"];
const TEXTS: [&str; 4] = ["", "abc", "ọ̀sán", "👋🏾 x"];

/// Writes a valid session, one choice per event, with its own simple model of what is valid.
#[derive(Default)]
struct SessionWriter {
    events: Vec<Event>,
    states: BTreeMap<&'static str, &'static str>,
    running: Vec<(String, Option<String>, &'static str)>,
    outputs: BTreeMap<Option<String>, u64>,
    names: usize,
    is_session_output_over: bool,
}

impl SessionWriter {
    fn session(choices: &[(u8, u8)], is_numbered: bool, ends_well: bool) -> Vec<Event> {
        let mut writer = SessionWriter { events: vec![started()], ..SessionWriter::default() };
        for &(kind, detail) in choices {
            writer.step(kind % 8, usize::from(detail));
        }
        if ends_well {
            writer.finish();
            writer.events.push(completed());
        } else {
            writer.events.push(errored());
        }
        let time = |(at, event): (usize, Event)| {
            let event = event.at_ms(i64::try_from(at / 2).expect("a small number"));
            if is_numbered { event.numbered(at as u64) } else { event }
        };
        writer.events.into_iter().enumerate().map(time).collect()
    }

    fn step(&mut self, kind: u8, detail: usize) {
        let agent = AGENTS[detail % 2];
        let event = match kind {
            0 | 1 => {
                let from = self.states.get(agent).copied().unwrap_or("idle");
                // A producer that called a tool stays in that state until the tool is done
                // (§4.3.2).
                let is_busy = self.running.iter().any(|(_, _, by)| *by == agent);
                let stays = is_busy && from == "calling_tool";
                let to = if stays { from } else { STATES[detail / 2 % STATES.len()] };
                self.states.insert(agent, to);
                changed(from, to)
            }
            2 => {
                let id = (!detail.is_multiple_of(3)).then(|| self.name("call_"));
                let name = ["search", "fetch"][detail / 3 % 2].to_owned();
                self.running.push((name.clone(), id.clone(), agent));
                invoked(&name, id.as_deref())
            }
            3 if !self.running.is_empty() => {
                let (name, id, _) = self.running.remove(detail % self.running.len());
                done(&name, id.as_deref())
            }
            4 | 5 => self.next_chunk(detail),
            6 => clarification(),
            _ => progress(),
        };
        self.events.push(event.by(agent));
    }

    fn next_chunk(&mut self, detail: usize) -> Event {
        let known = self.outputs.keys().nth(detail % 4).cloned();
        let id = match known {
            Some(id) => id,
            None if detail % 4 == 3 && !self.is_session_output_over => None,
            None => Some(self.name("out_")),
        };
        let position = self.outputs.get(&id).copied().unwrap_or(0);
        let (text, complete) = (TEXTS[detail / 4 % TEXTS.len()], detail.is_multiple_of(5));
        if complete {
            self.outputs.remove(&id);
            self.is_session_output_over |= id.is_none();
        } else {
            self.outputs.insert(id.clone(), position + text.chars().count() as u64);
        }
        chunk(id.as_deref(), position, text, complete)
    }

    fn finish(&mut self) {
        for (name, id, _) in std::mem::take(&mut self.running) {
            self.events.push(done(&name, id.as_deref()));
        }
        for (id, position) in std::mem::take(&mut self.outputs) {
            self.events.push(chunk(id.as_deref(), position, "", true));
        }
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }
}

/// Corrupts the event at this index in one way; `None` if this way does not apply to it.
fn corrupt(events: &mut Vec<Event>, at: usize, way: u8) -> Option<usize> {
    let event = events.get(at)?.clone();
    let number = event.envelope.sequence_number;
    let same_time = |mut other: Event| {
        other.envelope.timestamp = event.envelope.timestamp.clone();
        other.envelope.sequence_number = number;
        other
    };
    let is_inside = at > 0;
    match (way, event.payload.clone()) {
        (0, _) if is_inside => events[at] = event.clone().at_ms(-1),
        (1, _) if number.is_some() => events[at] = event.clone().numbered(number? + 1),
        (2, _) if is_inside => {
            let flipped = if number.is_some() { None } else { Some(at as u64) };
            events[at].envelope.sequence_number = flipped;
        }
        (3, _) if is_inside => events.insert(at, same_time(started())),
        (4, _) if !is_inside => events[0] = same_time(progress()),
        (5, Payload::StateChanged(mut wrong)) => {
            "nowhere".clone_into(&mut wrong.from_state);
            events[at].payload = wrong.into();
        }
        (6, Payload::OutputStreaming(mut wrong)) => {
            wrong.position += 1;
            events[at].payload = wrong.into();
        }
        (7, Payload::ToolCompleted(mut wrong)) => {
            wrong.tool = tool("never_invoked");
            events[at].payload = wrong.into();
        }
        (8, _) if is_inside => events.insert(at, same_time(irreversible("pay"))),
        (9, _) if is_inside => events.insert(at, same_time(done("never_invoked", None))),
        _ => return None,
    }
    Some(at)
}

fn choices() -> impl Strategy<Value = Vec<(u8, u8)>> {
    proptest::collection::vec(any::<(u8, u8)>(), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_right_session_is_admitted(choices in choices(), numbered: bool, well: bool) {
        let events = SessionWriter::session(&choices, numbered, well);
        let mut order = SessionOrder::new();
        let mut stream = StreamOrder::new();
        for (at, event) in events.iter().enumerate() {
            let admitted = order.admit(event);
            prop_assert!(admitted.is_ok(), "{at}: {admitted:?}");
            prop_assert_eq!(admitted.map(|it| it.sequence_number), Ok(at as u64));
            prop_assert_eq!(stream.observe_event(event), []);
        }
        prop_assert!(order.is_ended());
    }

    #[test]
    fn one_corruption_is_refused_where_it_is(
        choices in choices(),
        numbered: bool,
        place: prop::sample::Index,
        way in 0_u8..10,
    ) {
        let mut events = SessionWriter::session(&choices, numbered, true);
        let at = place.index(events.len());
        prop_assume!(corrupt(&mut events, at, way).is_some());
        let mut order = after(&events[..at]);
        refusal(&mut order, &events[at]);
    }

    #[test]
    fn nothing_of_a_refused_event_remains(
        choices in choices(),
        shuffle in proptest::collection::vec(any::<prop::sample::Index>(), 40),
        grants in proptest::collection::vec(any::<bool>(), 40),
    ) {
        // A valid session and a few invalid events, drawn in any order after the start.
        let mut deck = SessionWriter::session(&choices, false, true);
        deck.extend([irreversible("pay"), irreversible("search"), started(), cancelled()]);
        let mut order = after(&[started()]);
        for (drawn, granted) in shuffle.iter().zip(grants) {
            let event = drawn.get(&deck);
            if granted {
                order.accept(for_any_tool());
            }
            let before = order.clone();
            if order.admit(event).is_ok() {
                prop_assert_eq!(order.next_sequence_number(), before.next_sequence_number() + 1);
            } else {
                prop_assert_eq!(&order, &before);
            }
        }
    }
}
