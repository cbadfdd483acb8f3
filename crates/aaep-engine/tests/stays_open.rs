//! Asks that can be answered until their time is over, also if nobody listens meanwhile (`docs/extension.md`).

#[path = "common/support.rs"]
mod support;

use aaep::extension::{AskOutcome, DecidedBy};
use aaep_engine::{Output, Refusal};
use serde_json::{Value as Json, json};
use support::*;

const HOUR_S: u64 = 3600;

fn stated(mut fields: Json, data: &Json) -> Json {
    merge(
        &mut fields,
        json!({
            "@context": [aaep::CORE_CONTEXT, aaep::extension::CONTEXT],
            "extensions": { "agentvoice": data },
        }),
    );
    fields
}

fn ask(world: &mut World) -> Vec<Output> {
    let fields = confirmation("rpl_1", json!({ "timeout_seconds": 8 * HOUR_S }));
    world.say("awaiting.confirmation", stated(fields, &json!({ "stays_open": true })))
}

#[test]
fn a_person_who_comes_hours_later_can_answer() {
    let mut world = World::started();
    assert_eq!(resolved(&ask(&mut world)), []);
    assert_eq!(resolved(&world.pass_s(5 * HOUR_S)), []);
    let person = world.listen(1, everything());
    assert!(kinds(world.heard(&person)).contains(&"awaiting.confirmation"));
    assert!(replied(&world.confirm(&person, "rpl_1", "accept")));
}

#[test]
fn when_everyone_leaves_it_stays_and_ends_with_its_time() {
    let mut world = World::started();
    let person = world.listen(1, everything());
    ask(&mut world);
    assert_eq!(resolved(&world.close(&person)), []);
    assert_eq!(resolved(&world.pass_s(7 * HOUR_S)), []);
    let outputs = world.pass_s(2 * HOUR_S);
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Reject, DecidedBy::Timeout)]);
}

#[test]
fn it_stays_through_a_restart() {
    let mut world = World::started();
    ask(&mut world);
    assert_eq!(resolved(&world.restart(60)), []);
    assert_eq!(resolved(&world.pass_s(HOUR_S)), []);
    let person = world.listen(1, everything());
    assert!(replied(&world.confirm(&person, "rpl_1", "accept")));
}

#[test]
fn only_questions_stay_open_and_only_confirmations_are_asked_elsewhere() {
    let mut world = World::started();
    let misused =
        |outputs: &[Output]| matches!(refusal(outputs), Some(Refusal::MisusesExtension(_)));
    for field in ["stays_open", "asked_elsewhere"] {
        let fields = json!({ "progress": { "description": "x" }, "summary_normal": "x" });
        let fields = stated(fields, &json!({ field: true }));
        assert!(misused(&world.offer_event(SESSION, "progress.updated", fields)), "{field}");
    }
    let fields = clarification("rpl_2", json!({}));
    let fields = stated(fields, &json!({ "asked_elsewhere": true }));
    assert!(misused(&world.offer_event(SESSION, "awaiting.clarification", fields)));
}
