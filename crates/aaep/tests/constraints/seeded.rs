//! The four messages whose schemas are seeds, completely: every pattern, bound, value, uniqueness,
//! required field, closed object and condition (§4.4.1, §4.4.2, §5.2, §5.3, §5.5).
//!
//! It does not read the seeds; `seeds.rs` does, and `examples.rs` holds our own examples to the same.

use aaep::Code;
use serde_json::{Value as Json, json};

use crate::documents::{
    accepted, clarification_reply, confirmation_reply, full, rejected, request,
};
use crate::support::{assert_accepted, assert_refused, drop, errors, set, strict};
use crate::table::{
    any_text, at_most, check, closed, free_object, id, items, one_of, optional, required, row,
    text, truth, unique, uri, whole,
};
use crate::{DAY_S, capabilities, nth_choice, nth_name, nth_of, summaries, version};

#[test]
fn a_subscription_request_keeps_to_its_constraints() {
    let of_request = [
        required(&["/aaep_version", "/subscriber_id", "/capabilities"]),
        closed(""),
        optional(&[
            "/subscriber_name",
            "/subscriber_version",
            "/subscriber_manifest_uri",
            "/correlation_id",
            "/extensions",
        ]),
        version("/aaep_version"),
        text("/subscriber_id", 1, 256),
        text("/subscriber_name", 0, 256),
        text("/subscriber_version", 0, 64),
        uri("/subscriber_manifest_uri"),
        any_text("/correlation_id"),
        free_object("/extensions/lumen"),
        vec![
            row(
                "all defaults",
                set("/capabilities", json!({})),
                set("/capabilities", json!([])),
                Code::WrongType,
            ),
            row(
                "extension data stands under a prefix that is free",
                set("/extensions/_x.Y-9", json!({})),
                set("/extensions/rdf", json!({})),
                Code::ReservedPrefix,
            ),
        ],
    ];
    check("request", &request(), of_request.into_iter().chain(capabilities("/capabilities")));
}

#[test]
fn coalescing_takes_all_five_boundaries_and_no_sixth() {
    let at = "/capabilities/coalesce_boundaries";
    let five = json!(["none", "word", "sentence", "paragraph", "completion"]);
    let all = set(at, five.clone()).on(&request());
    assert_accepted(&all, "all five");
    let mut six = five;
    six.as_array_mut().expect("a list").push(json!("none"));
    let document = set(at, six).on(&request());
    let sixth = format!("{at}/5");
    assert_refused(&document, &[(Code::TooManyItems, at), (Code::DuplicateItem, &sixth)], "six");
}

#[test]
fn an_empty_pattern_is_refused() {
    for list in ["include", "exclude"] {
        let at = format!("/capabilities/event_filters/{list}/0");
        let reading = strict(&set(&at, "").on(&request()));
        assert!(!reading.is_valid());
        assert!(errors(&reading).iter().all(|error| error.1 == at));
    }
}

#[test]
fn a_subscription_rejection_keeps_to_its_constraints() {
    check(
        "rejected",
        &rejected(),
        [
            required(&["/reason_code", "/reason_message"]),
            optional(&["/retry_after_seconds", "/alternative_manifest_uri"]),
            closed(""),
            one_of(
                "/reason_code",
                &[
                    "version_unsupported",
                    "manifest_signature_required",
                    "capabilities_incompatible",
                    "rate_limit",
                    "authentication_required",
                    "authorization_denied",
                    "transport_unavailable",
                    "unknown",
                ],
            ),
            text("/reason_message", 1, 4096),
            whole("/retry_after_seconds", 0, DAY_S),
            uri("/alternative_manifest_uri"),
        ],
    );
}

#[test]
fn a_confirmation_keeps_to_its_constraints() {
    let silence_accepts =
        |risk: &str| set("/risk_level", risk).and(set("/default_decision", "accept"));
    check(
        "confirmation",
        &full("awaiting.confirmation"),
        [
            required(&["/action", "/consequence", "/reply_token", "/timeout_seconds"]),
            required(&["/default_decision"]),
            optional(&["/summary_terse", "/summary_normal", "/summary_detailed", "/risk_level"]),
            optional(&["/irreversible", "/reversibility", "/allowed_replies", "/extra_context"]),
            closed(""),
            text("/action", 1, 16_384),
            text("/consequence", 1, 16_384),
            id("/reply_token", "rpl_"),
            whole("/timeout_seconds", 1, DAY_S),
            summaries(),
            one_of("/risk_level", &["low", "medium", "high"]),
            truth("/irreversible"),
            one_of("/reversibility", &["reversible", "reversible_with_effort", "irreversible"]),
            items("/allowed_replies", 1, 32, nth_name),
            at_most("/allowed_replies", 32, nth_name),
            unique("/allowed_replies", nth_name),
            any_text("/allowed_replies/0"),
            free_object("/extra_context"),
            one_of("/default_decision", &["reject"]),
            vec![
                row(
                    "it is critical, and says so",
                    set("/urgency", "critical"),
                    set("/urgency", "normal"),
                    Code::NotCritical,
                ),
                row(
                    "it does not leave out that it is critical",
                    set("/urgency", "critical"),
                    drop("/urgency"),
                    Code::NotCritical,
                ),
                row(
                    "silence accepts what is reversible",
                    set("/irreversible", false)
                        .and(set("/reversibility", "reversible"))
                        .and(set("/default_decision", "accept")),
                    set("/default_decision", "accept"),
                    Code::UnsafeDefault,
                ),
                row(
                    "silence accepts what is irreversible at low risk, not at medium risk",
                    silence_accepts("low"),
                    silence_accepts("medium"),
                    Code::UnsafeDefault,
                ),
                row(
                    "silence accepts what is irreversible at low risk, not at high risk",
                    silence_accepts("low"),
                    silence_accepts("high"),
                    Code::UnsafeDefault,
                ),
            ],
        ],
    );
}

#[test]
fn a_clarification_keeps_to_its_constraints() {
    const KINDS: &[&str] = &["freetext", "yes_no", "multiple_choice", "numeric"];
    check(
        "clarification",
        &full("awaiting.clarification"),
        [
            required(&["/question", "/reply_token", "/timeout_seconds"]),
            required(&["/choices/0/value", "/choices/0/label"]),
            optional(&["/summary_terse", "/summary_normal", "/summary_detailed"]),
            optional(&["/accepted_response_kinds", "/context", "/default_response"]),
            closed(""),
            closed("/choices/0"),
            text("/question", 1, 16_384),
            id("/reply_token", "rpl_"),
            whole("/timeout_seconds", 1, DAY_S),
            summaries(),
            items("/accepted_response_kinds", 1, 4, nth_of(KINDS)),
            unique("/accepted_response_kinds", nth_of(KINDS)),
            one_of("/accepted_response_kinds/0", &["freetext", "yes_no", "numeric"]),
            one_of("/accepted_response_kinds/1", &["yes_no", "multiple_choice", "numeric"]),
            items("/choices", 2, 32, nth_choice),
            at_most("/choices", 32, nth_choice),
            unique("/choices", nth_choice),
            text("/choices/0/value", 1, 256),
            text("/choices/0/label", 1, 1024),
            text("/context", 1, 4096),
            text("/default_response", 0, 4096),
            vec![
                row(
                    "it is critical, and says so",
                    set("/urgency", "critical"),
                    set("/urgency", "background"),
                    Code::NotCritical,
                ),
                row(
                    "it does not leave out that it is critical",
                    set("/urgency", "critical"),
                    drop("/urgency"),
                    Code::NotCritical,
                ),
                row(
                    "a question with choices offers some",
                    set("/accepted_response_kinds", json!(["freetext"])).and(drop("/choices")),
                    drop("/choices"),
                    Code::MissingChoices,
                ),
                row(
                    "a choice is an object",
                    set("/choices/0", json!({ "value": "a", "label": "a" })),
                    set("/choices/0", "a"),
                    Code::WrongType,
                ),
            ],
        ],
    );
}

#[test]
fn the_type_of_a_message_is_required_and_exact() {
    let cases = [
        (request(), "subscription.request"),
        (rejected(), "subscription.rejected"),
        (accepted(), "subscription.accepted"),
        (confirmation_reply(), "confirmation.reply"),
        (clarification_reply(), "clarification.reply"),
        (full("awaiting.confirmation"), "aaep:agent.awaiting.confirmation"),
        (full("awaiting.clarification"), "aaep:agent.awaiting.clarification"),
    ];
    for (document, name) in cases {
        assert_accepted(&set("/type", name).on(&document), name);
        let first = |document: &Json| errors(&strict(document)).remove(0);
        assert_eq!(first(&drop("/type").on(&document)), (Code::MissingField, "/type".to_owned()));
        let wrong = set("/type", format!("{name}ed")).on(&document);
        assert_eq!(first(&wrong), (Code::UnknownType, "/type".to_owned()));
    }
}
