//! What an accepted ask covers (ruling 35): one action of the agent that asked, in its turn, no worse than
//! what a person was presented, and the same after a restart.

#[path = "common/support.rs"]
mod support;

use aaep::extension::{AskOutcome, DecidedBy};
use aaep_engine::{Output, Refusal};
use serde_json::{Value as Json, json};
use support::*;

/// Something harmless, by the words of its agent.
fn sorting(more: Json) -> Json {
    let mut fields = confirmation(
        "rpl_1",
        json!({ "action": "Sort the photos by date.", "consequence": "The order changes.",
            "risk_level": "low", "irreversible": false }),
    );
    merge(&mut fields, more);
    fields
}

fn wiping() -> Json {
    json!({ "tool": "wipe_disk", "summary_normal": "Wipes the disk.", "irreversible": true,
        "risk_level": "high" })
}

fn as_agent(mut fields: Json, agent_id: &str) -> Json {
    fields["producer"] = json!({ "agent_id": agent_id });
    fields
}

/// How a tool fares.
fn code(outputs: &[Output]) -> Option<&'static str> {
    match refusal(outputs) {
        Some(Refusal::Order(violation)) => Some(violation.code()),
        Some(other) => panic!("{other:?}"),
        None => None,
    }
}

fn invoke(world: &mut World, fields: Json) -> Option<&'static str> {
    code(&world.offer_event(SESSION, "tool.invoked", fields))
}

/// A session in which a person accepted an ask with these fields.
fn accepted(more: Json) -> World {
    let mut world = World::started();
    let person = world.listen(1, everything());
    world.say("awaiting.confirmation", sorting(more));
    assert!(replied(&world.confirm(&person, "rpl_1", "accept")));
    world
}

#[test]
fn silence_cannot_be_made_to_accept_anything_that_could_hurt() {
    let stated = [
        json!({}),
        json!({ "risk_level": "low" }),
        json!({ "irreversible": false }),
        json!({ "risk_level": "medium", "irreversible": false }),
        json!({ "risk_level": "high", "irreversible": false }),
        json!({ "risk_level": "low", "irreversible": false, "reversibility": "irreversible" }),
        json!({ "risk_level": "low", "irreversible": true }),
    ];
    for more in stated {
        let mut asked = json!({ "action": "Move the photos.", "consequence": "They are elsewhere.",
            "reply_token": "rpl_1", "timeout_seconds": 30, "default_decision": "accept" });
        let fields = asked.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        let mut world = World::started();
        let outputs = world.offer_event(SESSION, "awaiting.confirmation", asked.clone());
        assert_eq!(refusal(&outputs), Some(&Refusal::UnsafeDefault), "{more}");
        asked["default_decision"] = "reject".into();
        let outputs = world.say("awaiting.confirmation", asked);
        assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Reject, DecidedBy::NoListener)]);
    }
}

#[test]
fn an_unanswered_ask_lets_nothing_grave_pass() {
    let by_default = json!({ "action": "List the photos.", "default_decision": "accept" });
    // Nobody is there at all.
    let mut world = World::started();
    let outputs = world.say("awaiting.confirmation", sorting(by_default.clone()));
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Accept, DecidedBy::NoListener)]);
    assert_eq!(invoke(&mut world, wiping()), Some("accepted_by_default"));
    // Somebody is there and does not answer.
    let mut world = World::started();
    world.listen(1, everything());
    world.say("awaiting.confirmation", sorting(by_default));
    let outputs = world.pass_s(30);
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Accept, DecidedBy::Timeout)]);
    assert_eq!(invoke(&mut world, wiping()), Some("accepted_by_default"));
    let high = json!({ "tool": "move", "summary_normal": "Moves.", "risk_level": "high" });
    assert_eq!(invoke(&mut world, high), Some("accepted_by_default"));
    let listing = json!({ "tool": "list", "summary_normal": "Lists the photos." });
    assert_eq!(invoke(&mut world, listing), None);
}

#[test]
fn a_yes_to_something_harmless_does_not_cover_something_worse() {
    let mut world = accepted(json!({}));
    assert_eq!(invoke(&mut world, wiping()), Some("accepted_as_reversible"));
    let mut world = accepted(json!({ "irreversible": true }));
    assert_eq!(invoke(&mut world, wiping()), Some("accepted_at_lower_risk"));
    let mut world = accepted(json!({ "irreversible": true, "risk_level": "high" }));
    assert_eq!(invoke(&mut world, wiping()), None);
}

#[test]
fn an_accept_is_used_once() {
    let mut world = accepted(json!({ "irreversible": true, "risk_level": "high" }));
    assert_eq!(invoke(&mut world, wiping()), None);
    assert_eq!(invoke(&mut world, wiping()), Some("irreversible_without_accept"));
}

#[test]
fn an_accept_ends_when_its_agent_is_idle() {
    let grave = json!({ "irreversible": true, "risk_level": "high" });
    let mut world = accepted(grave.clone());
    world.change("calling_tool", "thinking");
    assert_eq!(invoke(&mut world, wiping()), None, "the turn goes on");
    let mut world = accepted(grave.clone());
    world.change("calling_tool", "idle");
    assert_eq!(invoke(&mut world, wiping()), Some("irreversible_without_accept"));
    // So it is after a restart, whatever was recorded before.
    let mut world = accepted(grave);
    world.change("calling_tool", "idle");
    world.restart(1);
    assert_eq!(invoke(&mut world, wiping()), Some("irreversible_without_accept"));
}

#[test]
fn an_agent_that_is_idle_asks_nothing_any_more() {
    let mut world = World::started();
    let person = world.listen(1, everything());
    let grave = json!({ "irreversible": true, "risk_level": "high" });
    world.say("awaiting.confirmation", sorting(grave));
    let outputs = world.change("awaiting_input", "idle");
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Withdrawn, DecidedBy::Withdrawn)]);
    assert!(!replied(&world.confirm(&person, "rpl_1", "accept")));
    assert_eq!(invoke(&mut world, wiping()), Some("irreversible_without_accept"));
}

#[test]
fn another_agent_of_the_session_cannot_use_the_accept() {
    let mut world = accepted(json!({ "irreversible": true, "risk_level": "high" }));
    let other = invoke(&mut world, as_agent(wiping(), "sub-agent"));
    assert_eq!(other, Some("accepted_for_another_agent"));
    // Another agent being idle does not end the turn of this one either.
    let idle = json!({ "from_state": "idle", "to_state": "idle" });
    world.say("state.changed", as_agent(idle, "sub-agent"));
    assert_eq!(invoke(&mut world, wiping()), None);
}

#[test]
fn a_sub_agent_asks_for_itself() {
    let mut world = World::started();
    let person = world.listen(1, everything());
    let grave = sorting(json!({ "irreversible": true, "risk_level": "high" }));
    world.say("awaiting.confirmation", as_agent(grave, "sub-agent"));
    world.confirm(&person, "rpl_1", "accept");
    assert_eq!(invoke(&mut world, wiping()), Some("accepted_for_another_agent"));
    assert_eq!(invoke(&mut world, as_agent(wiping(), "sub-agent")), None);
}

#[test]
fn after_a_restart_an_accept_covers_what_it_covered_before() {
    // What a person accepted.
    let mut world = accepted(json!({ "irreversible": true, "risk_level": "medium" }));
    world.restart(1);
    assert_eq!(invoke(&mut world, wiping()), Some("accepted_at_lower_risk"));
    let medium = json!({ "risk_level": "medium" });
    let mut wipe = wiping();
    merge(&mut wipe, medium);
    assert_eq!(
        invoke(&mut world, as_agent(wipe.clone(), "other")),
        Some("accepted_for_another_agent")
    );
    assert_eq!(invoke(&mut world, wipe), None);
    // What nobody answered, at once or in time.
    for is_there in [false, true] {
        let mut world = World::started();
        if is_there {
            world.listen(1, everything());
        }
        world.say("awaiting.confirmation", sorting(json!({ "default_decision": "accept" })));
        world.pass_s(30);
        world.restart(1);
        assert_eq!(invoke(&mut world, wiping()), Some("accepted_by_default"));
    }
    // What ran out of time while the hub was down.
    let mut world = World::started();
    world.listen(1, everything());
    world.say("awaiting.confirmation", sorting(json!({ "default_decision": "accept" })));
    let outputs = world.restart(31);
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Accept, DecidedBy::Timeout)]);
    assert_eq!(invoke(&mut world, wiping()), Some("accepted_by_default"));
}

#[test]
fn a_notice_that_does_not_say_who_accepted_covers_nothing_grave_after_a_restart() {
    let mut world = accepted(json!({ "irreversible": true, "risk_level": "high" }));
    for record in &mut world.stored.records {
        let event = std::sync::Arc::make_mut(&mut record.event);
        let data = event.extensions.iter_mut().flat_map(|it| it.0.values_mut());
        for resolution in data.filter_map(|it| it.get_mut("resolution")) {
            resolution["decided_by"] = "an_oracle".into();
        }
    }
    world.restart(1);
    assert_eq!(invoke(&mut world, wiping()), Some("accepted_by_default"));
}
