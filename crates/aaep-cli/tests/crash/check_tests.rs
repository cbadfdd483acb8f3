//! The comparison finds what it is there to find.

use crate::check::check;
use crate::ledger::{Asked, Entries, Heard, Hearing, Place, Settled, Text, Wants};
use crate::stored::{Kept, Stored, hash_of};
use crate::work::Plan;

fn token(plan: Plan) -> String {
    let mut tokens = (0..100).map(|number| format!("rpl_{number}"));
    tokens.find(|token| Plan::of(token) == plan).expect("a token for every plan")
}

fn settled(outcome: &str, decided_by: &str) -> Settled {
    Settled { outcome: outcome.to_owned(), decided_by: decided_by.to_owned() }
}

/// A small world in which all is well: five events, the third by the hub, the fourth urgent and heard again
/// after a kill, and one question that was accepted.
fn all_well() -> (Entries, Stored) {
    let event = |number: u64| Kept {
        session_id: "sess_a".to_owned(),
        event_id: format!("evt_{number}"),
        by_hub: number == 3,
        is_critical: number == 4,
        is_whole: number != 2,
    };
    let place = |number: u64| Place::new("sess_a", format!("evt_{number}"));
    let accepted = token(Plan::ByStream("accept"));
    let mut entries =
        Entries { acknowledged: [1, 2, 4, 5].map(place).into(), ..Entries::default() };
    entries.heard.insert(
        "reader".to_owned(),
        Hearing {
            connections: vec![
                Heard { life: 1, events: [1, 2, 3, 4].map(place).into(), ..Heard::default() },
                Heard { life: 2, events: [4, 5].map(place).into(), texts: texts() },
            ],
            ..Hearing::default()
        },
    );
    let asked = Asked {
        deadlines: ["2026-05-24T14:22:24.812Z".to_owned()].into(),
        settled: [settled("accept", "reply")].into(),
        said: ["accept"].into(),
        counted: ["accept"].into(),
        ..Asked::default()
    };
    entries.asked.insert(accepted.clone(), asked);
    let stored = Stored {
        events: (1..=5).map(event).collect(),
        settled: vec![(hash_of(&accepted), "accept by reply".to_owned())],
    };
    (entries, stored)
}

/// What is found after something was changed.
fn found(change: impl FnOnce(&mut Entries, &mut Stored)) -> String {
    let (mut entries, mut stored) = all_well();
    change(&mut entries, &mut stored);
    check(&entries, &stored).join("\n")
}

fn heard(entries: &mut Entries) -> &mut Vec<Heard> {
    &mut hearing(entries).connections
}

fn hearing(entries: &mut Entries) -> &mut Hearing {
    entries.heard.get_mut("reader").expect("a subscriber")
}

fn texts() -> Vec<Text> {
    let text =
        |begin, end, is_complete| Text { session_id: "sess_a".to_owned(), begin, end, is_complete };
    vec![text(0, 7, false), text(7, 9, false), text(9, 9, true)]
}

fn asked(entries: &mut Entries) -> &mut Asked {
    entries.asked.values_mut().next().expect("a question")
}

#[test]
fn a_world_in_which_all_is_well_has_no_faults() {
    assert_eq!(found(|_, _| ()), "");
}

#[test]
fn an_acknowledged_event_that_is_not_stored_is_found() {
    let faults = found(|_, stored| drop(stored.events.remove(1)));
    assert!(faults.contains("should be [evt_2, evt_4, evt_5], is [evt_4, evt_5]"), "{faults}");
}

#[test]
fn an_event_that_is_stored_twice_is_found() {
    let faults = found(|_, stored| {
        let again = stored.events[4].clone();
        stored.events.push(again);
    });
    assert!(faults.contains("is [evt_5] of 5"), "{faults}");
}

#[test]
fn events_that_are_stored_in_another_order_are_found() {
    let faults = found(|_, stored| stored.events.swap(0, 1));
    assert!(faults.contains("is [evt_2, evt_1"), "{faults}");
}

#[test]
fn a_stored_event_that_nobody_published_is_found() {
    let faults = found(|entries, _| drop(entries.acknowledged.pop()));
    assert!(faults.contains("should be [], is [evt_5]"), "{faults}");
}

#[test]
fn an_event_that_a_subscriber_did_not_hear_is_found() {
    for number in [2, 3, 4] {
        let id = format!("evt_{number}");
        let faults = found(|entries, _| {
            for connection in heard(entries) {
                connection.events.retain(|place| place.event_id != id);
            }
        });
        assert!(faults.contains(&format!("reader in sess_a: event {}", number - 1)), "{faults}");
    }
}

#[test]
fn an_event_that_a_subscriber_heard_twice_is_found() {
    let faults = found(|entries, _| heard(entries)[1].events.push(Place::new("sess_a", "evt_2")));
    assert!(faults.contains("evt_2\" } twice, in the lives 1 and 2"), "{faults}");
    // Something urgent may come again after a kill, but not without one.
    let faults = found(|entries, _| heard(entries)[1].events.push(Place::new("sess_a", "evt_4")));
    assert!(faults.contains("evt_4\" } twice, in the lives 2 and 2"), "{faults}");
}

#[test]
fn an_event_that_a_subscriber_heard_too_early_is_found() {
    let faults = found(|entries, _| heard(entries)[0].events.swap(0, 1));
    assert!(faults.contains("reader in sess_a: event 0"), "{faults}");
}

#[test]
fn an_event_that_a_subscriber_heard_and_that_is_not_stored_is_found() {
    let faults = found(|entries, _| heard(entries)[1].events.push(Place::new("sess_a", "evt_9")));
    assert!(faults.contains("evt_9\" }, which is not stored"), "{faults}");
}

#[test]
fn a_subscriber_with_default_terms_may_miss_only_merged_events() {
    let without = |number: u64, gaps: u64| {
        found(|entries, _| {
            let id = format!("evt_{number}");
            for connection in heard(entries) {
                connection.events.retain(|place| place.event_id != id);
            }
            hearing(entries).wants = Wants::TheUsual;
            hearing(entries).gaps = gaps;
        })
    };
    assert_eq!(without(2, 0), "");
    assert!(without(3, 0).contains("reader in sess_a"), "{}", without(3, 0));
    assert_eq!(without(3, 1), "", "it was told that something is missing");
}

#[test]
fn text_with_a_hole_a_repetition_or_no_end_is_found() {
    let with = |change: fn(&mut Vec<Text>)| {
        found(|entries, _| {
            hearing(entries).wants = Wants::TheUsual;
            change(&mut heard(entries)[1].texts);
        })
    };
    assert_eq!(with(|_| ()), "");
    let hole = with(|texts| drop(texts.remove(1)));
    assert!(hole.contains("begin: 9, end: 9, is_complete: true } after"), "{hole}");
    let again = with(|texts| texts.insert(1, texts[0].clone()));
    assert!(again.contains("begin: 0, end: 7, is_complete: false } after"), "{again}");
    let cut_off = with(|texts| drop(texts.pop()));
    assert!(cut_off.contains("heard nothing after"), "{cut_off}");
}

#[test]
fn an_accept_that_nobody_said_is_found() {
    let faults = found(|entries, _| asked(entries).said.clear());
    assert!(faults.contains("was accepted, and nobody said so"), "{faults}");
    let faults = found(|entries, _| {
        asked(entries).settled = [settled("accept", "timeout")].into();
    });
    assert!(faults.contains("was accepted by nobody's reply"), "{faults}");
}

#[test]
fn an_accept_of_what_people_reject_is_found() {
    for plan in [Plan::ByStream("reject"), Plan::BySocket("reject"), Plan::Ignored, Plan::Withdrawn]
    {
        let token = token(plan);
        let faults = found(|entries, stored| {
            let asked = asked(entries).clone();
            stored.settled = vec![(hash_of(&token), "accept by reply".to_owned())];
            entries.asked = [(token, asked)].into();
        });
        assert!(faults.contains("was accepted against what people decide"), "{faults}");
    }
}

#[test]
fn an_outcome_that_changes_or_is_missing_is_found() {
    let faults = found(|entries, _| asked(entries).settle(settled("reject", "reply")));
    assert!(faults.contains("had several outcomes"), "{faults}");
    let faults = found(|entries, _| asked(entries).settled.clear());
    assert!(faults.contains("was never settled"), "{faults}");
    let faults = found(|entries, _| {
        asked(entries).settled = [settled("reject", "timeout")].into();
    });
    assert!(faults.contains("ended unlike the reply that counted"), "{faults}");
}

#[test]
fn a_deadline_that_moves_is_found() {
    let faults = found(|entries, _| {
        asked(entries).deadlines.insert("2026-05-24T14:22:25.812Z".to_owned());
    });
    assert!(faults.contains("had several deadlines"), "{faults}");
}

#[test]
fn a_question_that_is_logged_twice_or_never_is_found() {
    let faults = found(|_, stored| stored.settled.clear());
    assert!(faults.contains("is logged as []"), "{faults}");
    let faults = found(|_, stored| {
        let again = stored.settled[0].clone();
        stored.settled.push(again);
    });
    assert!(faults.contains("is logged as [\"accept by reply\", \"accept by reply\"]"), "{faults}");
}
