//! Who is asked: those who can answer get the question, the others hear of it, and whoever joins late
//! is not left out (rulings 1 and 19).

#[path = "common/support.rs"]
mod support;

use aaep::extension::{AskOutcome, DecidedBy};
use serde_json::json;
use support::*;

fn ask(world: &mut World) {
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
}

#[test]
fn a_subscriber_unable_to_reply_hears_of_the_action_but_is_not_asked() {
    let mut world = World::started();
    world.listen(1, everything());
    let filtered = json!({
        "max_events_per_second": 1,
        "event_filters": { "include": ["aaep:agent.tool.*"] },
    });
    let deaf = world.listen(2, filtered);
    let only_words = world.listen(3, json!({ "supports_clarification_reply": true }));
    ask(&mut world);
    for subscriber in [&deaf, &only_words] {
        let heard = world.heard(subscriber);
        assert!(!kinds(heard).contains(&"awaiting.confirmation"));
        let told = heard.iter().find(|it| it.is_critical).expect("something critical");
        assert_eq!((told.kind(), told.text("to_state")), ("state.changed", "awaiting_input"));
        assert_eq!(told.text("urgency"), "critical");
        assert!(told.text("summary_normal").contains("Delete the folder photos."));
        assert!(told.json.get("reply_token").is_none(), "a token is no business of theirs");
    }
    world.say("awaiting.clarification", clarification("rpl_2", json!({})));
    assert!(!kinds(world.heard(&deaf)).contains(&"awaiting.clarification"));
    let told = world.heard(&deaf).last().expect("something");
    assert!(told.text("summary_normal").contains("Which folder do you mean?"));
    assert!(kinds(world.heard(&only_words)).contains(&"awaiting.clarification"));
}

#[test]
fn a_late_subscriber_gets_the_open_question_unchanged_and_may_answer_it() {
    for wishes in [everything(), limited(1, json!({}))] {
        let mut world = World::started();
        let one = world.listen(1, everything());
        ask(&mut world);
        world.pass_s(20);
        let late = world.listen(2, wishes);
        let is_ask = |it: &&Heard| it.kind() == "awaiting.confirmation";
        let original = world.heard(&one).iter().find(is_ask).expect("asked").id().clone();
        let heard = world.heard(&late);
        assert_eq!(kinds(heard), ["state.changed", "awaiting.confirmation"]);
        assert_eq!(heard[1].id(), &original);
        let timeout_seconds = heard[1].json["timeout_seconds"].as_u64().expect("a time");
        let left = &heard[1].json["extensions"]["agentvoice"]["seconds_left"];
        assert_eq!(left, timeout_seconds - 20, "nobody believes to have longer than they do");
        let outputs = world.confirm(&late, "rpl_1", "accept");
        assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Accept, DecidedBy::Reply)]);
        let told = notices(world.heard(&late));
        assert_eq!(told, [("rpl_1".into(), "accept".into(), "reply".into())]);
    }
}

#[test]
fn a_late_subscriber_keeps_a_question_open_that_the_others_left() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    ask(&mut world);
    world.disconnect(&one);
    world.pass_s(5);
    let late = world.listen(2, everything());
    assert!(resolved(&world.pass_s(20)).is_empty());
    assert!(replied(&world.confirm(&late, "rpl_1", "reject")));
}

#[test]
fn a_late_subscriber_unable_to_answer_gets_no_question() {
    let mut world = World::started();
    world.listen(1, everything());
    ask(&mut world);
    let late = world.listen(2, json!({}));
    assert_eq!(kinds(world.heard(&late)), ["state.changed"]);
    assert!(!replied(&world.confirm(&late, "rpl_1", "accept")));
}

#[test]
fn a_subscriber_that_renegotiates_to_answer_gets_the_open_question() {
    let mut world = World::started();
    world.listen(1, everything());
    let two = world.listen(2, json!({}));
    ask(&mut world);
    world.take(&two);
    world.renegotiate(&two, json!({ "supports_confirmation_reply": true }));
    assert_eq!(kinds(world.heard(&two)), ["awaiting.confirmation"]);
    assert!(replied(&world.confirm(&two, "rpl_1", "accept")));
}

#[test]
fn a_late_subscriber_hears_in_one_event_what_each_running_session_does() {
    let mut world = World::started();
    world.change("idle", "thinking");
    world.start("sess_2");
    world.start("sess_3");
    world.complete("sess_3");
    let late = world.listen(1, everything());
    let heard = world.heard(&late);
    assert_eq!(kinds(heard), ["state.changed", "state.changed"]);
    let sessions: Vec<&str> = heard.iter().map(|it| it.text("session_id")).collect();
    assert_eq!(sessions, [SESSION, "sess_2"]);
    assert_eq!(heard[0].text("to_state"), "thinking");
    assert!(heard.iter().all(|it| !it.text("summary_normal").is_empty() && !it.is_critical));
}
