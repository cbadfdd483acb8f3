//! Compares what everyone was told with what is stored. Knows nothing of the hub.

use std::collections::{BTreeMap, BTreeSet};

use crate::ledger::{Asked, Entries, Hearing, Text, Wants};
use crate::stored::{Kept, Stored, hash_of};
use crate::work::Plan;

/// Everything that is wrong, in sentences.
pub(crate) fn check(entries: &Entries, stored: &Stored) -> Vec<String> {
    let mut faults = entries.faults.clone();
    check_acknowledged(entries, stored, &mut faults);
    for (subscriber, hearing) in &entries.heard {
        check_heard(subscriber, hearing, stored, &mut faults);
        if hearing.wants == Wants::TheUsual && hearing.gaps == 0 {
            check_texts(subscriber, hearing, &mut faults);
        }
    }
    for (token, asked) in &entries.asked {
        check_ask(token, asked, &mut faults);
    }
    check_audit(entries, stored, &mut faults);
    faults
}

fn by_session<'a>(
    events: impl Iterator<Item = (&'a str, &'a str)>,
) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut sessions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (session, event) in events {
        sessions.entry(session).or_default().push(event);
    }
    sessions
}

/// Agents send everything until it is acknowledged. So what is stored of them is what was acknowledged:
/// nothing less, nothing twice, nothing else, in this order.
fn check_acknowledged(entries: &Entries, stored: &Stored, faults: &mut Vec<String>) {
    let acknowledged = entries.acknowledged.iter();
    let acknowledged =
        by_session(acknowledged.map(|it| (it.session_id.as_str(), it.event_id.as_str())));
    let by_agents = stored.events.iter().filter(|it| !it.by_hub);
    let stored = by_session(by_agents.map(|it| (it.session_id.as_str(), it.event_id.as_str())));
    let none = Vec::new();
    let sessions: BTreeSet<_> = acknowledged.keys().chain(stored.keys()).copied().collect();
    for session in sessions {
        let wanted = acknowledged.get(session).unwrap_or(&none);
        let found = stored.get(session).unwrap_or(&none);
        if wanted != found {
            faults.push(format!(
                "in {session} is stored what was not acknowledged so: {}",
                difference(wanted, found)
            ));
        }
    }
}

/// Where two lists begin to differ.
fn difference(wanted: &[&str], found: &[&str]) -> String {
    let at = wanted.iter().zip(found).take_while(|(one, other)| one == other).count();
    let part = |list: &[&str]| list.iter().skip(at).take(4).copied().collect::<Vec<_>>().join(", ");
    format!(
        "event {at} of {} should be [{}], is [{}] of {}",
        wanted.len(),
        part(wanted),
        part(found),
        found.len()
    )
}

/// A subscriber hears everything that is stored and nothing else, in the order of each session, and once;
/// something urgent may come again after a kill.
///
/// Who wants the usual hears some things merged, and what is urgent may overtake the rest; what is never
/// merged is all there too, unless it was told that something is missing.
fn check_heard(subscriber: &str, hearing: &Hearing, stored: &Stored, faults: &mut Vec<String>) {
    let first = first_heard(subscriber, hearing, stored, faults);
    let mut compare = |counts: &dyn Fn(&Kept) -> bool| {
        let heard = first.iter().filter(|it| counts(it)).map(|it| place_of(it));
        let heard = by_session(heard);
        let all = stored.events.iter().filter(|it| counts(it)).map(place_of);
        for (session, mut wanted) in by_session(all) {
            let found = heard.get(session).cloned().unwrap_or_default();
            if hearing.gaps > 0 {
                // What is missing is missing; the rest has to be in order.
                wanted.retain(|it| found.contains(it));
            }
            if wanted != found {
                faults.push(format!("{subscriber} in {session}: {}", difference(&wanted, &found)));
            }
        }
    };
    match hearing.wants {
        Wants::Everything => compare(&|_| true),
        Wants::TheUsual => {
            compare(&|event| event.is_whole && event.is_critical);
            compare(&|event| event.is_whole && !event.is_critical);
        }
    }
}

/// What a subscriber heard, each where it heard it first.
fn first_heard<'a>(
    subscriber: &str,
    hearing: &Hearing,
    stored: &'a Stored,
    faults: &mut Vec<String>,
) -> Vec<&'a Kept> {
    let known: BTreeMap<&str, &Kept> =
        stored.events.iter().map(|event| (event.event_id.as_str(), event)).collect();
    let may_hear_others = hearing.wants == Wants::TheUsual || hearing.gaps > 0;
    let mut last_life: BTreeMap<&str, u64> = BTreeMap::new();
    let mut first = Vec::new();
    for connection in &hearing.connections {
        for place in &connection.events {
            let known = known.get(place.event_id.as_str()).copied();
            let Some(event) = known.filter(|it| it.session_id == place.session_id) else {
                if !may_hear_others {
                    faults.push(format!("{subscriber} heard {place:?}, which is not stored"));
                }
                continue;
            };
            match last_life.insert(&event.event_id, connection.life) {
                None => first.push(event),
                Some(life) if event.is_critical && life != connection.life => {}
                Some(life) => faults.push(format!(
                    "{subscriber} heard {place:?} twice, in the lives {life} and {}",
                    connection.life
                )),
            }
        }
    }
    first
}

fn place_of(event: &Kept) -> (&str, &str) {
    (&event.session_id, &event.event_id)
}

/// The text of a session comes without holes and without repetition, up to its end.
fn check_texts(subscriber: &str, hearing: &Hearing, faults: &mut Vec<String>) {
    let mut told: BTreeMap<&str, &Text> = BTreeMap::new();
    for text in hearing.connections.iter().flat_map(|connection| &connection.texts) {
        let before = told.insert(&text.session_id, text);
        let (end, is_complete) = before.map_or((0, false), |it| (it.end, it.is_complete));
        if text.begin != end || is_complete {
            faults.push(format!("{subscriber} heard {text:?} after {before:?}"));
        }
    }
    for text in told.values().filter(|text| !text.is_complete) {
        faults.push(format!("{subscriber} heard nothing after {text:?}"));
    }
}

/// A question has one deadline and one outcome, however often it is requested, and that is the one that people
/// and agents decided.
fn check_ask(token: &str, asked: &Asked, faults: &mut Vec<String>) {
    let mut expect = |is_right: bool, what: &str| {
        if !is_right {
            faults.push(format!("{token} {what}: {asked:?}"));
        }
    };
    expect(asked.deadlines.len() <= 1, "had several deadlines");
    expect(asked.settled.len() <= 1, "had several outcomes");
    let Some(settled) = asked.settled.first() else {
        expect(false, "was never settled");
        return;
    };
    let (outcome, by) = (settled.outcome.as_str(), settled.decided_by.as_str());
    let plan = Plan::of(token);
    expect(matches!(outcome, "accept" | "reject" | "withdrawn"), "ended in a way that is none");
    if outcome == "accept" {
        expect(by == "reply", "was accepted by nobody's reply");
        expect(asked.said.contains("accept"), "was accepted, and nobody said so");
        expect(plan.decision() == Some("accept"), "was accepted against what people decide");
    }
    if by == "reply" {
        expect(asked.said.contains(outcome), "was decided by a reply that nobody sent");
    }
    for decision in &asked.counted {
        expect(outcome == *decision && by == "reply", "ended unlike the reply that counted");
    }
    if by == "timeout" || by == "no_listener" {
        expect(outcome == "reject", "ended by itself and not with its default");
    }
    if outcome == "withdrawn" {
        expect(by == "withdrawn" && plan == Plan::Withdrawn, "was withdrawn by nobody");
    }
    if asked.is_withdrawn {
        expect(outcome == "withdrawn", "was withdrawn and went on");
    }
}

/// The log has one entry for each question that was settled, and it says how.
fn check_audit(entries: &Entries, stored: &Stored, faults: &mut Vec<String>) {
    let mut logged: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (hash, outcome) in &stored.settled {
        logged.entry(hash).or_default().push(outcome);
    }
    for (token, asked) in &entries.asked {
        let wanted: Vec<String> = asked
            .settled
            .iter()
            .map(|settled| format!("{} by {}", settled.outcome, settled.decided_by))
            .collect();
        let found = logged.remove(hash_of(token).as_str()).unwrap_or_default();
        if found != wanted {
            faults.push(format!("{token} was settled as {wanted:?} and is logged as {found:?}"));
        }
    }
    for (hash, outcomes) in logged {
        faults.push(format!("a question that nobody knows is logged: {hash} {outcomes:?}"));
    }
}
