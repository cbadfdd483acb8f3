//! Which replies count (§6.3.4, §6.5.5, rulings 12 to 15), and what an accept allows (ruling 17).

#[path = "common/support.rs"]
mod support;

use aaep::SubscriptionId;
use aaep::extension::{AskOutcome, DecidedBy};
use aaep::reply::Response;
use aaep_engine::order::OrderViolation;
use aaep_engine::{AskAnswerer, Output, PrincipalNumber, Refusal, ReplyRefusal};
use serde_json::json;
use support::*;

/// A running session with an open confirmation, and two people who can answer it.
fn asked() -> (World, Subscriber, Subscriber) {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let two = world.listen(2, everything());
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    (world, one, two)
}

/// A reply that did not count: nobody hears anything of it, and the question stays open.
fn assert_ignored(world: &mut World, outputs: &[Output], why: ReplyRefusal) {
    assert!(!replied(outputs));
    assert_eq!(audited(outputs), Some(why));
    let others =
        outputs.iter().filter(|it| !matches!(it, Output::Replied { .. } | Output::Audit(_)));
    assert_eq!(others.count(), 0, "{outputs:?}");
    assert_eq!(world.engine.open_asks(), 1);
}

#[test]
fn the_first_valid_reply_wins() {
    let (mut world, one, two) = asked();
    let outputs = world.confirm(&two, "rpl_1", "accept");
    assert!(replied(&outputs));
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Accept, DecidedBy::Reply)]);
    assert_eq!(world.engine.open_asks(), 0);
    let late = world.confirm(&one, "rpl_1", "reject");
    assert!(resolved(&late).is_empty());
}

#[test]
fn a_second_reply_changes_nothing_and_learns_nothing_specific() {
    let (mut world, one, two) = asked();
    world.confirm(&one, "rpl_1", "reject");
    for (who, decision) in [(&one, "accept"), (&two, "accept"), (&two, "reject")] {
        let outputs = world.confirm(who, "rpl_1", decision);
        assert_eq!(outputs.len(), 2, "{outputs:?}");
        assert!(!replied(&outputs));
        assert_eq!(audited(&outputs), Some(ReplyRefusal::AlreadySettled));
    }
    let unknown = world.confirm(&two, "rpl_never", "accept");
    assert_eq!(unknown.len(), 2, "the same answer whatever the reason");
    assert!(!replied(&unknown));
    assert_eq!(audited(&unknown), Some(ReplyRefusal::UnknownToken));
}

#[test]
fn a_reply_under_a_foreign_name_does_not_count() {
    let (mut world, one, _) = asked();
    let thief = Subscriber { principal: 99, ..one };
    let outputs = world.confirm(&thief, "rpl_1", "accept");
    assert_ignored(&mut world, &outputs, ReplyRefusal::NotYourSubscription);
}

#[test]
fn a_reply_on_a_subscription_that_never_was_does_not_count() {
    let (mut world, one, _) = asked();
    let ghost = Subscriber { id: SubscriptionId::parse("sub_ghost").expect("id"), ..one };
    let outputs = world.confirm(&ghost, "rpl_1", "accept");
    assert_ignored(&mut world, &outputs, ReplyRefusal::NotYourSubscription);
}

#[test]
fn a_reply_on_a_subscription_that_was_closed_does_not_count() {
    let (mut world, one, _) = asked();
    world.close(&one);
    let outputs = world.confirm(&one, "rpl_1", "accept");
    assert_ignored(&mut world, &outputs, ReplyRefusal::NotYourSubscription);
}

#[test]
fn a_reply_on_a_subscription_that_was_not_asked_does_not_count() {
    let mut world = World::started();
    let able = world.listen(1, everything());
    let deaf = world.listen(1, json!({}));
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    let outputs = world.confirm(&deaf, "rpl_1", "accept");
    assert_ignored(&mut world, &outputs, ReplyRefusal::NotAsked);
    assert!(replied(&world.confirm(&able, "rpl_1", "accept")));
}

#[test]
fn a_principal_that_may_listen_but_not_answer_is_not_asked_and_its_replies_do_not_count() {
    let mut world = World::started();
    let outputs = world.request(5, false, everything(), None);
    let guest = granted(5, &outputs);
    let honored = accepted(&outputs).map(|(_, message)| message.honored_capabilities.clone());
    assert_eq!(honored.and_then(|it| it.supports_confirmation_reply), Some(false));
    world.listen(1, everything());
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    assert!(!kinds(world.heard(&guest)).contains(&"awaiting.confirmation"));
    let outputs = world.confirm(&guest, "rpl_1", "accept");
    assert_ignored(&mut world, &outputs, ReplyRefusal::MayNotReply);
}

#[test]
fn a_principal_not_allowed_to_answer_cannot_renegotiate_into_being_asked() {
    let mut world = World::started();
    let outputs = world.request(5, false, json!({}), None);
    let guest = granted(5, &outputs);
    world.listen(1, everything());
    let outputs = world.renegotiate(&guest, json!({ "supports_confirmation_reply": true }));
    let honored = accepted(&outputs).map(|(_, message)| message.honored_capabilities.clone());
    assert_eq!(honored.and_then(|it| it.supports_confirmation_reply), Some(false));
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    assert!(!kinds(world.heard(&guest)).contains(&"awaiting.confirmation"));
}

#[test]
fn a_reply_exactly_at_the_deadline_is_too_late() {
    let (mut world, one, _) = asked();
    world.jump_us(30 * SECOND);
    let outputs = world.confirm(&one, "rpl_1", "accept");
    assert!(!replied(&outputs));
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Reject, DecidedBy::Timeout)]);
}

#[test]
fn a_reply_a_moment_before_the_deadline_counts() {
    let (mut world, one, _) = asked();
    world.jump_us(30 * SECOND - 1);
    let outputs = world.confirm(&one, "rpl_1", "accept");
    assert!(replied(&outputs));
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Accept, DecidedBy::Reply)]);
}

#[test]
fn a_reply_of_the_wrong_kind_does_not_count() {
    let (mut world, one, _) = asked();
    let outputs = world.clarify(&one, "rpl_1", json!("accept"));
    assert_ignored(&mut world, &outputs, ReplyRefusal::WrongKind);
    world.confirm(&one, "rpl_1", "reject");
    world.say("awaiting.clarification", clarification("rpl_2", json!({})));
    let outputs = world.confirm(&one, "rpl_2", "accept");
    assert_ignored(&mut world, &outputs, ReplyRefusal::WrongKind);
}

#[test]
fn a_decision_that_the_question_does_not_allow_does_not_count() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let only_no = json!({ "allowed_replies": ["reject"] });
    world.say("awaiting.confirmation", confirmation("rpl_1", only_no));
    let outputs = world.confirm(&one, "rpl_1", "accept");
    assert_ignored(&mut world, &outputs, ReplyRefusal::NotAllowed);
    assert!(replied(&world.confirm(&one, "rpl_1", "reject")));
}

#[test]
fn an_accept_of_a_changed_action_is_a_reject() {
    let (mut world, one, _) = asked();
    let changed = json!({ "modified_action": { "folder": "music" } });
    let outputs = world.confirm_with(&one, "rpl_1", "accept", changed);
    assert!(replied(&outputs));
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Reject, DecidedBy::Reply)]);
    let tool = world.offer_event(SESSION, "tool.invoked", irreversible_tool());
    assert!(matches!(refusal(&tool), Some(Refusal::Order(_))));
}

#[test]
fn each_kind_of_question_takes_answers_of_its_kind() {
    let choices = json!([{ "value": "a", "label": "A" }, { "value": "b", "label": "B" }]);
    let cases = [
        (json!(["freetext"]), json!("the red one"), vec![json!(true), json!(3)]),
        (json!(["yes_no"]), json!(false), vec![json!("yes"), json!(1)]),
        (json!(["numeric"]), json!(2.5), vec![json!("2.5"), json!(true)]),
        (json!(["multiple_choice"]), json!("b"), vec![json!("c"), json!("B"), json!(true)]),
        (json!(["numeric", "yes_no"]), json!(true), vec![json!("true")]),
    ];
    for (number, (kinds, right, wrong)) in cases.into_iter().enumerate() {
        let mut world = World::started();
        let one = world.listen(1, everything());
        let token = format!("rpl_{number}");
        let mut fields = json!({ "accepted_response_kinds": kinds });
        if kinds == json!(["multiple_choice"]) {
            fields["choices"] = choices.clone();
        }
        world.say("awaiting.clarification", clarification(&token, fields));
        for response in wrong {
            let outputs = world.clarify(&one, &token, response);
            assert_ignored(&mut world, &outputs, ReplyRefusal::NotAllowed);
        }
        let outputs = world.clarify(&one, &token, right.clone());
        assert!(replied(&outputs), "{kinds}");
        assert_eq!(resolved(&outputs)[0].1, AskOutcome::Answered);
        let answer = response(&outputs).expect("an answer");
        assert_eq!(serde_json::to_value(answer).expect("json"), right);
    }
}

#[test]
fn a_question_that_names_no_kind_takes_words() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.say("awaiting.clarification", clarification("rpl_1", json!({})));
    let outputs = world.clarify(&one, "rpl_1", json!(7));
    assert_ignored(&mut world, &outputs, ReplyRefusal::NotAllowed);
    let outputs = world.clarify(&one, "rpl_1", json!("the old one"));
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Answered, DecidedBy::Reply)]);
    assert_eq!(response(&outputs), Some(&Response::Text("the old one".to_owned())));
}

#[test]
fn a_choice_that_was_not_offered_is_as_if_no_reply_came() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let fields = json!({
        "accepted_response_kinds": ["multiple_choice"],
        "choices": [{ "value": "a", "label": "A" }, { "value": "b", "label": "B" }],
        "default_response": "a",
    });
    world.say("awaiting.clarification", clarification("rpl_1", fields));
    let outputs = world.clarify(&one, "rpl_1", json!("z"));
    assert_ignored(&mut world, &outputs, ReplyRefusal::NotAllowed);
    let outputs = world.pass_s(30);
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Answered, DecidedBy::Timeout)]);
    assert_eq!(response(&outputs), Some(&Response::Text("a".to_owned())));
}

#[test]
fn a_token_is_refused_while_its_question_is_open_and_ever_after() {
    let (mut world, one, _) = asked();
    let again =
        world.offer_event(SESSION, "awaiting.confirmation", confirmation("rpl_1", json!({})));
    assert_eq!(refusal(&again), Some(&Refusal::TokenOpen));
    assert_eq!(world.engine.open_asks(), 1);
    world.confirm(&one, "rpl_1", "reject");
    for kind in ["awaiting.confirmation", "awaiting.clarification"] {
        let fields = if kind.ends_with("confirmation") {
            confirmation("rpl_1", json!({}))
        } else {
            clarification("rpl_1", json!({}))
        };
        let again = world.offer_event(SESSION, kind, fields);
        assert_eq!(refusal(&again), Some(&Refusal::TokenUsed));
    }
    world.complete(SESSION);
    world.start("sess_2");
    let other =
        world.offer_event("sess_2", "awaiting.confirmation", confirmation("rpl_1", json!({})));
    assert_eq!(refusal(&other), Some(&Refusal::TokenUsed));
}

#[test]
fn tokens_that_the_engine_makes_are_unguessable_and_never_repeat() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let mut fields = confirmation("rpl_x", json!({}));
        fields.as_object_mut().and_then(|it| it.remove("reply_token"));
        world.say("awaiting.confirmation", fields);
        let heard = world.take(&one);
        let asked = heard.iter().find(|it| it.kind() == "awaiting.confirmation").expect("asked");
        let token = asked.text("reply_token").to_owned();
        assert_eq!(token.len(), "rpl_".len() + 32);
        world.confirm(&one, &token, "reject");
        assert!(seen.insert(token));
    }
}

#[test]
fn an_irreversible_tool_needs_an_accept_and_gets_one_use_of_it() {
    let (mut world, one, _) = asked();
    let early = world.offer_event(SESSION, "tool.invoked", irreversible_tool());
    let unasked = OrderViolation::IrreversibleWithoutAccept {
        tool: aaep::ToolName::parse("delete").expect("name"),
    };
    assert_eq!(refusal(&early), Some(&Refusal::Order(unasked.clone())), "before the reply");
    world.confirm(&one, "rpl_1", "accept");
    world.say("tool.invoked", irreversible_tool());
    world.say("tool.completed", json!({ "tool": "delete", "status": "success" }));
    let again = world.offer_event(SESSION, "tool.invoked", irreversible_tool());
    assert_eq!(refusal(&again), Some(&Refusal::Order(unasked)), "one accept, one use");
}

#[test]
fn a_tool_of_high_risk_needs_an_accept_even_if_it_can_be_undone() {
    let (mut world, one, _) = asked();
    let risky = || json!({ "tool": "move", "summary_normal": "Moves it.", "risk_level": "high" });
    let unasked = OrderViolation::HighRiskWithoutAccept {
        tool: aaep::ToolName::parse("move").expect("name"),
    };
    let early = world.offer_event(SESSION, "tool.invoked", risky());
    assert_eq!(refusal(&early), Some(&Refusal::Order(unasked.clone())), "before the reply");
    world.confirm(&one, "rpl_1", "reject");
    let rejected = world.offer_event(SESSION, "tool.invoked", risky());
    assert_eq!(refusal(&rejected), Some(&Refusal::Order(unasked)), "turned down");
    world.say("awaiting.confirmation", confirmation("rpl_2", json!({})));
    world.confirm(&one, "rpl_2", "accept");
    world.say("tool.invoked", risky());
}

#[test]
fn a_rejected_tool_is_refused_however_often_it_is_tried() {
    let (mut world, one, _) = asked();
    world.confirm(&one, "rpl_1", "reject");
    for _ in 0..3 {
        let tool = world.offer_event(SESSION, "tool.invoked", irreversible_tool());
        assert!(matches!(refusal(&tool), Some(Refusal::Order(_))));
    }
    world.say("tool.invoked", json!({ "tool": "list", "summary_normal": "Lists the folder." }));
}

#[test]
fn an_accept_in_one_session_allows_nothing_in_another() {
    let (mut world, one, _) = asked();
    world.start("sess_2");
    world.confirm(&one, "rpl_1", "accept");
    let tool = world.offer_event("sess_2", "tool.invoked", irreversible_tool());
    assert!(matches!(refusal(&tool), Some(Refusal::Order(_))));
    world.say("tool.invoked", irreversible_tool());
}

#[test]
fn a_default_that_accepts_allows_what_is_harmless_and_nothing_else() {
    let mut world = World::started();
    world.listen(1, everything());
    let low = json!({ "default_decision": "accept", "risk_level": "low", "irreversible": false });
    world.say("awaiting.confirmation", confirmation("rpl_1", low));
    let outputs = world.pass_s(30);
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Accept, DecidedBy::Timeout)]);
    let tool = world.offer_event(SESSION, "tool.invoked", irreversible_tool());
    let Some(Refusal::Order(why)) = refusal(&tool) else { panic!("{tool:?}") };
    assert_eq!(why.code(), "accepted_by_default");
    let harmless = json!({ "tool": "list", "summary_normal": "Lists.", "risk_level": "low" });
    world.say("tool.invoked", harmless);
}

#[test]
fn a_reply_stamped_after_the_deadline_does_not_count_unless_it_is_a_no() {
    let stamped = |world: &World, seconds: i64| {
        let at = aaep::Timestamp::from_unix_us(world.now.unix_us + seconds * 1_000_000);
        json!({ "timestamp": at.expect("a moment").as_str() })
    };
    for (decision, seconds, counts) in [
        ("accept", 3600, false),
        ("accept", 30, false),
        ("accept", 29, true),
        ("reject", 3600, true),
    ] {
        let mut world = World::started();
        let one = world.listen(1, everything());
        world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
        let stamp = stamped(&world, seconds);
        let outputs = world.confirm_with(&one, "rpl_1", decision, stamp);
        assert_eq!(replied(&outputs), counts, "{decision} {seconds}");
    }
}

#[test]
fn a_reject_counts_whatever_the_agent_allows() {
    for allowed in [json!(["accept"]), json!(["later"]), json!(["accept", "later"])] {
        let mut world = World::started();
        let one = world.listen(1, everything());
        let fields = json!({ "allowed_replies": allowed, "default_decision": "accept",
            "risk_level": "low", "irreversible": false });
        world.say("awaiting.confirmation", confirmation("rpl_1", fields));
        let outputs = world.confirm(&one, "rpl_1", "reject");
        assert!(replied(&outputs), "{allowed}");
        assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Reject, DecidedBy::Reply)]);
    }
}

/// The answer to a clarification, as its agent hears it.
fn response(outputs: &[Output]) -> Option<&Response> {
    outputs.iter().find_map(|output| match output {
        Output::Settled { response, .. } => response.as_ref(),
        _ => None,
    })
}

/// Who settled the ask, as the engine tells the hub.
fn answered_by(outputs: &[Output]) -> Option<AskAnswerer> {
    let settled = outputs.iter().find_map(|output| match output {
        Output::Settled { answered_by, .. } => Some(*answered_by),
        _ => None,
    });
    settled.expect("a settled ask")
}

#[test]
fn the_engine_names_the_subscribers_asked_and_the_one_that_answered() {
    let mut world = World::started();
    let two = world.listen(2, everything());
    for (ask, rule, is_automatic) in
        [("rpl_1", json!({}), false), ("rpl_2", json!({ "decided_by": "automatic: all" }), true)]
    {
        let fields = confirmation(ask, json!({ "risk_level": "low" }));
        let outputs = world.say("awaiting.confirmation", fields);
        let asked = outputs.iter().find_map(|output| match output {
            Output::Asked { principal, reply_token, event, told } => {
                assert_eq!(event.event_type().as_str(), "aaep:agent.awaiting.confirmation");
                Some((principal.0, reply_token.as_str(), *told))
            }
            _ => None,
        });
        assert_eq!(asked, Some((AGENT, ask, 1)));
        let outputs = world.confirm_with(&two, ask, "accept", rule);
        let answerer = AskAnswerer { principal: PrincipalNumber(2), is_automatic };
        assert_eq!(answered_by(&outputs), Some(answerer));
    }
    world.say("awaiting.confirmation", confirmation("rpl_3", json!({})));
    assert_eq!(answered_by(&world.close(&two)), None, "nobody answered");
}

#[test]
fn a_rule_accepts_only_what_a_rule_may_and_the_person_can_still_answer() {
    let rule = |who: &str| json!({ "decided_by": who });
    for (fields, may) in [
        (json!({}), false),
        (json!({ "risk_level": "medium" }), false),
        (json!({ "risk_level": "low" }), true),
        (json!({ "irreversible": false }), true),
    ] {
        let mut world = World::started();
        let one = world.listen(1, everything());
        world.say("awaiting.confirmation", confirmation("rpl_1", fields.clone()));
        for who in ["automatic: all", "auto:configured_policy"] {
            if !may {
                let outputs = world.confirm_with(&one, "rpl_1", "accept", rule(who));
                assert_ignored(&mut world, &outputs, ReplyRefusal::NotByRule);
            }
        }
        let who = if may { "automatic: all" } else { "user:folake" };
        let outputs = world.confirm_with(&one, "rpl_1", "accept", rule(who));
        assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Accept, DecidedBy::Reply)]);
    }
    let mut world = World::started();
    let one = world.listen(1, everything());
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    let outputs = world.confirm_with(&one, "rpl_1", "reject", rule("automatic: all"));
    assert!(replied(&outputs), "a rule may reject anything");
}

#[test]
fn a_clarification_never_allows_an_irreversible_tool() {
    let mut world = World::started();
    let one = world.listen(1, everything());
    let fields = json!({ "accepted_response_kinds": ["yes_no"] });
    world.say("awaiting.clarification", clarification("rpl_1", fields));
    assert!(replied(&world.clarify(&one, "rpl_1", json!(true))));
    let tool = world.offer_event(SESSION, "tool.invoked", irreversible_tool());
    assert!(matches!(refusal(&tool), Some(Refusal::Order(_))));
}

#[test]
fn an_action_that_is_being_asked_is_not_asked_again() {
    let (mut world, _, _) = asked();
    let again =
        world.offer_event(SESSION, "awaiting.confirmation", confirmation("rpl_2", json!({})));
    assert!(refusal(&again).is_some());
}

#[test]
fn the_principal_that_asked_may_not_answer() {
    let (mut world, person, _) = asked();
    let own = world.listen(AGENT, everything());
    let outputs = world.confirm(&own, "rpl_1", "accept");
    assert_ignored(&mut world, &outputs, ReplyRefusal::OwnAsk);
    assert!(replied(&world.confirm(&person, "rpl_1", "accept")));
}

#[test]
fn an_asker_that_is_the_only_subscriber_does_not_count_as_able_to_answer() {
    let mut world = World::started();
    world.listen(AGENT, everything());
    let outputs = world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    assert_eq!(resolved(&outputs), [("rpl_1", AskOutcome::Reject, DecidedBy::NoListener)]);
}
