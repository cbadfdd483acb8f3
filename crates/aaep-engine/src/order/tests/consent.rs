//! What a grant covers (ruling 35): nothing worse than what was presented, only for the agent that
//! asked, in its turn, once.

use super::*;
use crate::order::OrderViolation::*;
use aaep::{StatedRisk, StatedUndo};

const RISKS: [(StatedRisk, Option<&str>); 4] = [
    (StatedRisk::Low, Some("low")),
    (StatedRisk::Medium, Some("medium")),
    (StatedRisk::High, Some("high")),
    (StatedRisk::Unknown, None),
];
const UNDOS: [(StatedUndo, Option<bool>); 3] = [
    (StatedUndo::Possible, Some(false)),
    (StatedUndo::Impossible, Some(true)),
    (StatedUndo::Unknown, None),
];

/// The grant for an accepted ask with these fields.
fn accepted(fields: &Json, granted_by: GrantedBy) -> Grant {
    let mut asked = json!({
        "action": "Sort the photos by date.", "consequence": "They are in another order.",
        "reply_token": "rpl_1", "timeout_seconds": 60, "default_decision": "reject",
    });
    fields.as_object().into_iter().flatten().for_each(|(key, it)| asked[key] = it.clone());
    Grant::asked_by(&event("awaiting.confirmation", asked), granted_by)
}

fn invocation(tool: &str, risk: Option<&str>, irreversible: Option<bool>) -> Event {
    let mut fields = json!({ "tool": tool, "summary_normal": "Wipes the disk." });
    if let Some(irreversible) = irreversible {
        fields["irreversible"] = irreversible.into();
    }
    event("tool.invoked", with(fields, "risk_level", risk))
}

/// A running session with this grant.
fn with_grant(grant: Grant) -> SessionOrder {
    let mut order = after(&[started()]);
    assert_eq!(order.accept(grant), None);
    order
}

#[test]
fn a_yes_to_something_harmless_does_not_cover_something_worse() {
    let sorted =
        || accepted(&json!({ "risk_level": "low", "irreversible": false }), GrantedBy::Reply);
    let wipe = invocation("wipe_disk", Some("high"), Some(true));
    let why = refusal(&mut with_grant(sorted()), &wipe);
    assert_eq!(why, AcceptedAsReversible { tool: tool("wipe_disk") });
    let why = refusal(&mut with_grant(sorted()), &risky("wipe_disk", "high"));
    assert_eq!(why, AcceptedAtLowerRisk { tool: tool("wipe_disk") });
}

#[test]
fn every_pair_of_presented_and_done_is_covered_only_if_it_is_no_worse() {
    for (risk, said_risk) in RISKS {
        for (undo, said_undo) in UNDOS {
            let presented = ActionStakes { risk, undo };
            for (_, done_risk) in RISKS {
                for (_, done_undo) in UNDOS {
                    let done = invocation("wipe", done_risk, done_undo);
                    let needs = done_undo == Some(true) || done_risk == Some("high");
                    let tells = undo == StatedUndo::Impossible || done_undo != Some(true);
                    let risks = match (said_risk, done_risk) {
                        (Some("high"), _) | (_, Some("low")) | (None, None) => true,
                        (Some("medium"), done) => done == Some("medium"),
                        _ => false,
                    };
                    let mut order = with_grant(Grant { presented, ..for_any_tool() });
                    let admitted = order.admit(&done).is_ok();
                    let case = format!("{said_risk:?} {said_undo:?} {done_risk:?} {done_undo:?}");
                    assert_eq!(admitted, !needs || (tells && risks), "{case}");
                }
            }
        }
    }
}

#[test]
fn an_unanswered_ask_covers_nothing_that_needs_an_accept() {
    for (risk, _) in RISKS {
        for (undo, _) in UNDOS {
            let presented = ActionStakes { risk, undo };
            let by_default = Grant { presented, granted_by: GrantedBy::Default, ..for_any_tool() };
            for (_, done_risk) in RISKS {
                let wipe = invocation("wipe", done_risk, Some(true));
                let why = refusal(&mut with_grant(by_default.clone()), &wipe);
                assert_eq!(why, AcceptedByDefault { tool: tool("wipe") });
            }
            let why = refusal(&mut with_grant(by_default), &risky("wipe", "high"));
            assert_eq!(why, AcceptedByDefault { tool: tool("wipe") });
        }
    }
}

#[test]
fn of_the_two_fields_that_say_whether_it_can_be_undone_the_stricter_counts() {
    let wipe = invocation("wipe", Some("low"), Some(true));
    for (fields, covers) in [
        (json!({ "reversibility": "irreversible", "irreversible": false }), true),
        (json!({ "reversibility": "reversible", "irreversible": true }), true),
        (json!({ "reversibility": "irreversible" }), true),
        (json!({ "reversibility": "reversible_with_effort" }), false),
        (json!({ "reversibility": "reversible", "irreversible": false }), false),
        (json!({}), false),
    ] {
        let mut order = with_grant(accepted(&fields, GrantedBy::Reply));
        assert_eq!(order.admit(&wipe).is_ok(), covers, "{fields}");
    }
}

#[test]
fn a_risk_that_the_invocation_leaves_out_counts_as_the_highest() {
    for (said, covers) in [("high", true), ("medium", false), ("low", false)] {
        let fields = json!({ "risk_level": said, "irreversible": true });
        let mut order = with_grant(accepted(&fields, GrantedBy::Reply));
        let done = order.admit(&invocation("wipe", None, Some(true)));
        let why = RiskNotStated { tool: tool("wipe") };
        assert_eq!(done.err(), (!covers).then_some(why), "{said}");
    }
    let silent = accepted(&json!({ "irreversible": true }), GrantedBy::Reply);
    let mut order = with_grant(silent.clone());
    order.admit(&invocation("wipe", None, Some(true))).expect("what was presented, no more");
    let why = refusal(&mut with_grant(silent), &invocation("wipe", Some("medium"), Some(true)));
    assert_eq!(why, AcceptedAtLowerRisk { tool: tool("wipe") });
}

#[test]
fn a_refused_invocation_leaves_the_accept_for_the_right_one() {
    let fields = json!({ "risk_level": "medium", "irreversible": true });
    let mut order = with_grant(accepted(&fields, GrantedBy::Reply));
    refusal(&mut order, &invocation("wipe", Some("high"), Some(true)));
    order.admit(&invocation("wipe", Some("medium"), Some(true))).expect("as presented");
    let again = refusal(&mut order, &invocation("wipe", Some("medium"), Some(true)));
    assert_eq!(again, IrreversibleWithoutAccept { tool: tool("wipe") });
}

#[test]
fn the_accept_that_covers_is_used_and_a_weaker_one_stays() {
    let mut order = with_grant(Grant { presented: ActionStakes::UNKNOWN, ..for_tool("wipe") });
    order.accept(for_tool("wipe"));
    order.accept(for_any_tool());
    order.admit(&irreversible("wipe")).expect("the second one covers it");
    order.admit(&irreversible("wipe")).expect("the third one covers it");
    let why = refusal(&mut order, &irreversible("wipe"));
    assert_eq!(why, AcceptedAsReversible { tool: tool("wipe") });
}

#[test]
fn an_accept_for_exact_arguments_covers_no_worse_action_with_the_same_arguments() {
    let digest = aaep::extension::action_digest(&tool("wipe"), &json!({})).expect("a digest");
    let exact = |presented, granted_by| Grant {
        digest: Some(digest.bytes()),
        presented,
        granted_by,
        ..for_tool("wipe")
    };
    let mut fields = json!({ "tool": "wipe", "summary_normal": "Wipes.", "irreversible": true });
    fields["extensions"] = json!({ "agentvoice": { "action_digest": digest.as_str() } });
    let wipe = event("tool.invoked", fields);
    let mut order = with_grant(exact(ActionStakes::UNKNOWN, GrantedBy::Reply));
    order.accept(for_any_tool());
    assert_eq!(refusal(&mut order, &wipe), AcceptedAsReversible { tool: tool("wipe") });
    let mut order = with_grant(exact(ActionStakes::WORST, GrantedBy::Default));
    assert_eq!(refusal(&mut order, &wipe), AcceptedByDefault { tool: tool("wipe") });
    order.accept(exact(ActionStakes::WORST, GrantedBy::Reply));
    order.admit(&wipe).expect("a person accepted exactly this");
}

#[test]
fn another_agent_of_the_session_cannot_use_an_accept() {
    let mut order = with_grant(for_any_tool());
    let why = refusal(&mut order, &irreversible("pay").by("b"));
    assert_eq!(why, AcceptedForAnotherAgent { tool: tool("pay") });
    // A harmless call of another agent does not use the grant either.
    let mut order = with_grant(for_tool("pay"));
    order.admit(&invoked("pay", None).by("b")).expect("a harmless tool");
    order.admit(&irreversible("pay")).expect("the agent that asked");
}

#[test]
fn an_accept_ends_with_the_turn_of_its_agent() {
    let mut order = with_grant(for_any_tool());
    order.accept(Grant { agent_id: "b".into(), ..for_any_tool() });
    order.admit(&changed("idle", "thinking")).expect("a state");
    order.admit(&changed("thinking", "idle")).expect("a state");
    let why = refusal(&mut order, &irreversible("pay"));
    assert_eq!(why, AcceptedForAnotherAgent { tool: tool("pay") });
    order.admit(&irreversible("pay").by("b")).expect("the turn of b goes on");
    let why = refusal(&mut order, &irreversible("pay"));
    assert_eq!(why, IrreversibleWithoutAccept { tool: tool("pay") });
}

#[test]
fn a_grant_remembers_the_ask() {
    let fields = json!({
        "risk_level": "medium", "reversibility": "irreversible",
        "extensions": { "agentvoice": { "tool": "wipe" } },
    });
    let grant = accepted(&fields, GrantedBy::Reply);
    let presented = ActionStakes { risk: StatedRisk::Medium, undo: StatedUndo::Impossible };
    assert_eq!(grant, Grant { presented, ..for_tool("wipe") });
}
