//! Every constraint on every message, as a table: each row has a change that passes and one that
//! fails, and the code and the place of the failure (§3.2 to §3.4, chapter 4, chapter 5, §6.3, §6.5,
//! §7.5, §11.1).
//!
//! The four messages whose schemas are seeds come first and are complete: every pattern, bound,
//! value, uniqueness, required field, closed object and condition. A failing row fails for one
//! reason only. Nothing here reads the seeds, and nothing is read as a subscriber reads it.

use aaep::{CORE_CONTEXT, Code};
use serde_json::{Value as Json, json};

use documents::{
    LUMEN, accepted, clarification_reply, close, confirmation_reply, delivery, full, manifest,
    rejected, renegotiate, request,
};
use support::{
    Row, any_text, assert_accepted, assert_refused, at_most, check, closed, count, drop, form,
    free_object, id, items, language, one_of, optional, required, row, set, some_text, text, truth,
    unique, uri, whole, words,
};

#[path = "documents.rs"]
mod documents;
#[path = "support.rs"]
mod support;

const DAY_S: i64 = 86_400;
const DAY_MS: i64 = 86_400_000;

fn nth_language(nth: usize) -> Json {
    json!(format!("cy-{nth:03}"))
}

fn nth_uri(nth: usize) -> Json {
    json!(format!("https://books.example/{nth}"))
}

fn nth_name(nth: usize) -> Json {
    json!(format!("name{nth}"))
}

fn nth_choice(nth: usize) -> Json {
    json!({ "value": format!("{nth}"), "label": "Shelf" })
}

/// One of several values by its position.
fn nth_of(values: &'static [&'static str]) -> impl Fn(usize) -> Json {
    |nth| json!(values[nth])
}

fn version(pointer: &str) -> Vec<Row> {
    let right = ["1.0.0", "0.1.0-draft", "10.20.30-a.b-c"];
    form(pointer, &right, &["1.0", "1.0.0.0", "v1.0.0", "1.0.0-", "1.0.0-ä", "", "1.0.x"])
}

/// The short, the usual and the long form.
fn summaries() -> Vec<Row> {
    let mut rows = text("/summary_terse", 1, 4096);
    rows.extend(text("/summary_normal", 1, 16_384));
    rows.extend(text("/summary_detailed", 1, 16_384));
    rows
}

/// The terms of a subscription, wherever they stand.
fn capabilities(at: &str) -> Vec<Vec<Row>> {
    const BOUNDARIES: &[&str] = &["none", "word", "sentence", "paragraph", "completion"];
    let at = |field: &str| format!("{at}/{field}");
    let patterns = |field: &str| {
        let (list, first) = (at(field), at(&format!("{field}/0")));
        let all = |count: usize| Json::Array((0..count).map(nth_name).collect());
        vec![
            vec![row("may be empty", set(&list, json!([])), set(&list, "x:y"), Code::WrongType)],
            vec![row("may be long", set(&list, all(300)), set(&list, json!({})), Code::WrongType)],
            unique(&list, nth_name),
            vec![row(
                "a pattern has at most 256 characters",
                set(&first, words(256)),
                set(&first, words(257)),
                Code::TooLong,
            )],
            form(&first, &["aaep:agent.tool.*", "*", "lumen:lamp.lit"], &["aaep:*.lit", "**"]),
        ]
    };
    let mut rows = vec![
        closed(&at("event_filters")),
        optional(&[
            &at("max_events_per_second"),
            &at("preferred_verbosity"),
            &at("languages"),
            &at("supports_confirmation_reply"),
            &at("supports_clarification_reply"),
            &at("coalesce_boundaries"),
            &at("event_filters"),
            &at("event_filters/include"),
            &at("event_filters/exclude"),
            &at("supported_conformance_levels"),
            &at("supported_extensions"),
            &at("cognitive_load"),
            &at("pace_wpm"),
            &at("accept_signed_manifests_only"),
        ]),
        whole(&at("max_events_per_second"), 1, 100_000),
        one_of(&at("preferred_verbosity"), &["terse", "normal", "detailed"]),
        items(&at("languages"), 1, 32, nth_language),
        at_most(&at("languages"), 32, nth_language),
        unique(&at("languages"), nth_language),
        language(&at("languages/0")),
        truth(&at("supports_confirmation_reply")),
        truth(&at("supports_clarification_reply")),
        items(&at("coalesce_boundaries"), 1, 5, nth_of(BOUNDARIES)),
        unique(&at("coalesce_boundaries"), nth_of(BOUNDARIES)),
        one_of(&at("coalesce_boundaries/0"), &["none", "word", "sentence", "paragraph"]),
        one_of(&at("coalesce_boundaries/1"), &["none", "word", "sentence", "completion"]),
        items(&at("supported_conformance_levels"), 1, 3, |nth| json!(nth + 1)),
        unique(&at("supported_conformance_levels"), |nth| json!(nth + 1)),
        items(&at("supported_extensions"), 0, 64, nth_uri),
        at_most(&at("supported_extensions"), 64, nth_uri),
        unique(&at("supported_extensions"), nth_uri),
        uri(&at("supported_extensions/0")),
        one_of(&at("cognitive_load"), &["low", "medium", "high"]),
        whole(&at("pace_wpm"), 50, 1000),
        truth(&at("accept_signed_manifests_only")),
        free_object(&at("lumen")),
        levels(&at("supported_conformance_levels/0")),
    ];
    rows.extend(patterns("event_filters/include"));
    rows.extend(patterns("event_filters/exclude"));
    rows
}

/// A conformance level: 1, 2 or 3.
fn levels(at: &str) -> Vec<Row> {
    let wrong = [
        (json!(0), Code::OutOfRange),
        (json!(4), Code::OutOfRange),
        (json!(1.5), Code::OutOfRange),
        (json!("1"), Code::WrongType),
    ];
    let rows = wrong.into_iter().map(|(wrong, code)| {
        row("a level is 1, 2 or 3", set(at, 3), set(at, wrong), code)
    });
    rows.collect()
}

#[test]
fn a_subscription_request_keeps_to_its_constraints() {
    check("request", &request(), [
        required(&["/type", "/aaep_version", "/subscriber_id", "/capabilities"][1..]),
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
        free_object("/capabilities"),
        free_object("/extensions/lumen"),
        vec![row(
            "extension data stands under a prefix that is free",
            set("/extensions/_x.Y-9", json!({})),
            set("/extensions/rdf", json!({})),
            Code::ReservedPrefix,
        )],
    ]
    .into_iter()
    .chain(capabilities("/capabilities"))
    // A level of their own is claimed further down, so that is not what is tested here.
    .filter(|rows| !rows.is_empty()));
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
fn an_empty_pattern_is_no_pattern() {
    for list in ["include", "exclude"] {
        let at = format!("/capabilities/event_filters/{list}/0");
        let reading = support::strict(&set(&at, "").on(&request()));
        assert!(!reading.is_valid());
        assert!(support::errors(&reading).iter().all(|error| error.1 == at));
    }
}

#[test]
fn a_subscription_rejection_keeps_to_its_constraints() {
    check("rejected", &rejected(), [
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
    ]);
}

#[test]
fn a_confirmation_keeps_to_its_constraints() {
    let silence_accepts = |risk: &str| {
        set("/risk_level", risk).and(set("/default_decision", "accept"))
    };
    check("confirmation", &full("awaiting.confirmation"), [
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
    ]);
}

#[test]
fn a_clarification_keeps_to_its_constraints() {
    const KINDS: &[&str] = &["freetext", "yes_no", "multiple_choice", "numeric"];
    check("clarification", &full("awaiting.clarification"), [
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
    ]);
}

#[test]
fn the_ids_of_messages_and_events_cannot_be_swapped() {
    for (document, other) in [(request(), "subscription.accept"), (full("state.changed"), "state")] {
        let reading = support::strict(&set("/type", other).on(&document));
        assert_eq!(support::errors(&reading)[0], (Code::UnknownType, "/type".to_owned()));
    }
}

#[test]
fn an_envelope_keeps_to_its_constraints() {
    let declared = |more: Json| set("/@context", json!([CORE_CONTEXT, LUMEN, more]));
    check("envelope", &full("state.changed"), [
        required(&["/@context", "/event_id", "/session_id", "/timestamp", "/producer"]),
        required(&["/producer/agent_id"]),
        optional(&["/aaep_version", "/sequence_number", "/verbosity", "/urgency"]),
        optional(&["/localization_hints", "/correlation_id", "/extensions"]),
        optional(&["/producer/agent_version", "/producer/agent_name", "/producer/model"]),
        optional(&["/producer/manifest_uri"]),
        closed(""),
        closed("/producer"),
        closed("/localization_hints"),
        id("/event_id", "evt_"),
        id("/session_id", "sess_"),
        form(
            "/timestamp",
            &["2031-03-09T08:15:42.107Z", "2031-03-09T08:15:42.107250-09:30"],
            &["2031-03-09T08:15:42Z", "2031-03-09T08:15:42.1Z", "2031-03-09T08:15:42.107", "now"],
        ),
        some_text("/producer/agent_id"),
        some_text("/producer/agent_version"),
        some_text("/producer/agent_name"),
        some_text("/producer/model"),
        uri("/producer/manifest_uri"),
        form("/aaep_version", &["1.0.0", "0.1.0-draft"], &["1", "one", ""]),
        count("/sequence_number", 0),
        one_of("/verbosity", &["terse", "normal", "detailed"]),
        one_of("/urgency", &["background", "normal", "critical"]),
        any_text("/correlation_id"),
        language("/localization_hints/primary_language"),
        one_of("/localization_hints/text_direction", &["ltr", "rtl", "auto"]),
        items("/localization_hints/available_languages", 0, 32, nth_language),
        at_most("/localization_hints/available_languages", 32, nth_language),
        unique("/localization_hints/available_languages", nth_language),
        items("/localization_hints/fallback_chain", 0, 16, nth_language),
        at_most("/localization_hints/fallback_chain", 16, nth_language),
        language("/localization_hints/fallback_chain/1"),
        form("/localization_hints/script", &["Latn", "Arab"], &["latn", "LATN", "Lat", ""]),
        any_text("/localization_hints/calendar"),
        free_object("/extensions/lumen"),
        vec![
            row(
                "a version was published",
                set("/aaep_version", "1.0.0"),
                set("/aaep_version", "1.0.1"),
                Code::UnpublishedVersion,
            ),
            row("a context is a URI", declared(json!("urn:x:y")), declared(json!("no")), Code::WrongFormat)
                .at("/@context/2"),
            row("a context is text", declared(json!("urn:x:y")), declared(json!(1)), Code::WrongType)
                .at("/@context/2"),
        ],
    ]);
}

#[test]
fn the_lifecycle_keeps_to_its_constraints() {
    check("started", &full("session.started"), [
        required(&["/summary_normal"]),
        optional(&["/summary_terse", "/summary_detailed", "/expected_duration_ms"]),
        optional(&["/requested_by", "/request_text", "/tools_available"]),
        closed(""),
        summaries(),
        whole("/expected_duration_ms", 0, DAY_MS),
        text("/requested_by", 1, 256),
        text("/request_text", 0, 16_384),
        items("/tools_available", 0, 256, nth_name),
        at_most("/tools_available", 256, nth_name),
        unique("/tools_available", nth_name),
        text("/tools_available/0", 1, 256),
    ]);
    check("completed", &full("session.completed"), [
        required(&["/summary_normal"]),
        optional(&["/duration_ms", "/tool_invocations_count", "/output_summary", "/result_uri"]),
        closed(""),
        summaries(),
        whole("/duration_ms", 0, DAY_MS),
        count("/tool_invocations_count", 0),
        text("/output_summary", 0, 16_384),
        uri("/result_uri"),
    ]);
    check("errored", &full("session.errored"), [
        required(&["/error_category", "/summary_normal"]),
        optional(&["/error_code", "/error_uri", "/recoverable", "/remediation_hint"]),
        closed(""),
        summaries(),
        one_of("/error_category", &["transient", "permanent", "requires_user", "unknown"]),
        form("/error_code", &["AB", "A_9"], &["A", "a_b", "9A", "A-B", ""]),
        uri("/error_uri"),
        truth("/recoverable"),
        text("/remediation_hint", 1, 4096),
        critical(),
    ]);
    check("cancelled", &full("session.cancelled"), [
        required(&["/cancelled_by", "/summary_normal"]),
        optional(&["/cancellation_reason", "/partial_result"]),
        closed(""),
        summaries(),
        one_of("/cancelled_by", &["user", "producer", "timeout", "system"]),
        form("/cancellation_reason", &["ab", "a_9"], &["a", "A_b", "9a", "a-b", ""]),
        text("/partial_result", 0, 16_384),
    ]);
}

/// A type that a person must not miss says so.
fn critical() -> Vec<Row> {
    let says = set("/urgency", "critical");
    vec![
        row("it is critical", says.clone(), set("/urgency", "normal"), Code::NotCritical),
        row("it says that it is critical", says, drop("/urgency"), Code::NotCritical),
    ]
}

#[test]
fn states_and_progress_keep_to_their_constraints() {
    check("state", &full("state.changed"), [
        required(&["/from_state", "/to_state"]),
        closed(""),
        text("/from_state", 1, 64),
        text("/to_state", 1, 64),
        summaries(),
        whole("/expected_duration_ms", 0, DAY_MS),
    ]);
    let percent = |value: f64| set("/progress/percent", value);
    check("progress", &full("progress.updated"), [
        required(&["/progress"]),
        optional(&["/progress/percent", "/progress/step", "/progress/total_steps"]),
        optional(&["/progress/description", "/eta_ms"]),
        closed(""),
        closed("/progress"),
        count("/progress/step", 1),
        count("/progress/total_steps", 1),
        text("/progress/description", 1, 4096),
        summaries(),
        whole("/eta_ms", 0, DAY_MS),
        vec![
            row("not below nothing", percent(0.0), percent(-0.5), Code::OutOfRange),
            row("not above all", percent(99.9), percent(100.1), Code::OutOfRange),
            row("all", set("/progress/percent", 100), set("/progress", 100), Code::WrongType),
            row(
                "it says something",
                set("/progress", json!({ "total_steps": 9 })),
                set("/progress", json!({})),
                Code::TooFewItems,
            ),
        ],
    ]);
}

#[test]
fn tools_and_output_keep_to_their_constraints() {
    let long = "t".repeat(256);
    let longer = "t".repeat(257);
    let tool = || {
        form("/tool", &["t", "_t.-9", &long], &["9t", "", "a b", "a:b", "é", &longer])
    };
    check("invoked", &full("tool.invoked"), [
        required(&["/tool", "/summary_normal"]),
        optional(&["/description", "/args_summary", "/expected_duration_ms", "/risk_level"]),
        optional(&["/irreversible", "/tool_call_id"]),
        closed(""),
        tool(),
        summaries(),
        text("/description", 1, 4096),
        text("/args_summary", 0, 16_384),
        whole("/expected_duration_ms", 0, DAY_MS),
        one_of("/risk_level", &["low", "medium", "high"]),
        truth("/irreversible"),
        id("/tool_call_id", "call_"),
    ]);
    check("completed", &full("tool.completed"), [
        required(&["/tool", "/status"]),
        optional(&["/tool_call_id", "/duration_ms", "/error_message", "/summary_normal"]),
        closed(""),
        tool(),
        one_of("/status", &["success", "error", "timeout"]),
        id("/tool_call_id", "call_"),
        whole("/duration_ms", 0, DAY_MS),
        summaries(),
        text("/error_message", 1, 4096),
    ]);
    check("streaming", &full("output.streaming"), [
        required(&["/chunk", "/position", "/complete"]),
        optional(&["/coalesce_hint", "/output_id", "/content_type", "/language"]),
        closed(""),
        text("/chunk", 0, 16_384),
        count("/position", 0),
        truth("/complete"),
        one_of("/coalesce_hint", &["none", "word", "sentence", "paragraph", "completion"]),
        id("/output_id", "out_"),
        form("/content_type", &["text/plain", "a/b.c+d_e-f"], &["text", "text/", "/x", "a/b;c=d"]),
        language("/language"),
    ]);
}

#[test]
fn a_handover_keeps_to_its_constraints() {
    check("handoff", &full("handoff.requested"), [
        required(&["/reason", "/target_kind"]),
        optional(&["/target_uri", "/packaged_context", "/urgency_for_handoff"]),
        closed(""),
        text("/reason", 1, 16_384),
        one_of("/target_kind", &["human", "specialist_agent", "escalation_queue"]),
        uri("/target_uri"),
        free_object("/packaged_context"),
        one_of("/urgency_for_handoff", &["low", "medium", "high"]),
        summaries(),
        critical(),
    ]);
}

#[test]
fn the_rest_of_the_handshake_keeps_to_its_constraints() {
    let of_grant = [
        required(&["/subscription_id", "/aaep_version", "/producer", "/honored_capabilities"]),
        required(&["/producer/agent_id"]),
        optional(&["/manifest_uri", "/signed_manifest", "/negotiation_notes"]),
        closed(""),
        closed("/producer"),
        id("/subscription_id", "sub_"),
        version("/aaep_version"),
        some_text("/producer/agent_id"),
        uri("/producer/manifest_uri"),
        uri("/manifest_uri"),
        form("/signed_manifest", &["a.b.c", "A-_9.b.c"], &["a.b", "a..c", "a.b.c.d", "a.b.c=", ""]),
        text("/negotiation_notes", 0, 4096),
    ];
    check("accepted", &accepted(), of_grant.into_iter().chain(capabilities("/honored_capabilities")));
    check("renegotiate", &renegotiate(), [
        required(&["/subscription_id", "/capabilities"]),
        optional(&["/correlation_id", "/extensions"]),
        closed(""),
        id("/subscription_id", "sub_"),
        whole("/capabilities/pace_wpm", 50, 1000),
        free_object("/extensions/lumen"),
    ]);
    check("close", &close(), [
        required(&["/subscription_id"]),
        optional(&["/reason_code", "/reason_message", "/correlation_id", "/extensions"]),
        closed(""),
        id("/subscription_id", "sub_"),
        form("/reason_code", &["ab", "a_9"], &["a", "A_b", "9a", "a-b", ""]),
        text("/reason_message", 1, 4096),
    ]);
}

#[test]
fn the_replies_keep_to_their_constraints() {
    let common = || {
        [
            required(&["/reply_token", "/subscription_id", "/timestamp"]),
            optional(&["/decided_by", "/correlation_id"]),
            closed(""),
            id("/reply_token", "rpl_"),
            id("/subscription_id", "sub_"),
            form(
                "/timestamp",
                &["2031-03-09T08:16:00Z", "2031-03-09T08:16:00.123456789+05:45"],
                &["2031-03-09", "2031-02-30T08:16:00Z", "2031-03-09T08:16:00", "then"],
            ),
            text("/decided_by", 1, 256),
            any_text("/correlation_id"),
        ]
    };
    let of_decision = [
        required(&["/decision"]),
        optional(&["/decision_rationale", "/modified_action"]),
        one_of("/decision", &["accept", "reject"]),
        text("/decision_rationale", 1, 4096),
        free_object("/modified_action"),
    ];
    check("decision", &confirmation_reply(), common().into_iter().chain(of_decision));
    let response = |value: Json| set("/response", value);
    let confidence = |value: f64| set("/confidence", value);
    let of_answer = [
        required(&["/response"]),
        optional(&["/confidence"]),
        vec![
            row("text", response(json!(words(16_384))), response(json!(words(16_385))), Code::TooLong),
            row("some text", response(json!("x")), response(json!("")), Code::TooShort),
            row("yes or no", response(json!(false)), response(Json::Null), Code::WrongType),
            row("a number", response(json!(-1.5)), response(json!([1])), Code::WrongType),
            row("not unsure", confidence(0.0), confidence(-0.1), Code::OutOfRange),
            row("quite sure", confidence(1.0), confidence(1.1), Code::OutOfRange),
        ],
    ];
    check("answer", &clarification_reply(), common().into_iter().chain(of_answer));
}

#[test]
fn a_manifest_keeps_to_its_constraints() {
    check("manifest", &manifest(), [
        required(&["/@context", "/agent_id", "/aaep_versions_supported"]),
        optional(&["/agent_version", "/agent_name", "/conformance_levels_supported"]),
        optional(&["/transports_supported", "/languages_supported", "/event_types_emitted"]),
        optional(&["/extensions_supported", "/default_verbosity", "/contact", "/extensions"]),
        optional(&["/max_concurrent_subscriptions"]),
        closed(""),
        some_text("/agent_id"),
        some_text("/agent_version"),
        some_text("/agent_name"),
        items("/aaep_versions_supported", 1, 9, |nth| json!(format!("1.{nth}.0"))),
        unique("/aaep_versions_supported", |nth| json!(format!("1.{nth}.0"))),
        version("/aaep_versions_supported/0"),
        items("/conformance_levels_supported", 1, 3, |nth| json!(nth + 1)),
        unique("/conformance_levels_supported", |nth| json!(nth + 1)),
        unique("/transports_supported", nth_name),
        text("/transports_supported/0", 1, 64),
        unique("/languages_supported", nth_language),
        language("/languages_supported/0"),
        unique("/event_types_emitted", nth_name),
        form("/event_types_emitted/0", &["aaep:agent.tool.*"], &["a*b"]),
        unique("/extensions_supported", nth_uri),
        uri("/extensions_supported/0"),
        one_of("/default_verbosity", &["terse", "normal", "detailed"]),
        count("/max_concurrent_subscriptions", 1),
        text("/contact", 1, 256),
    ]);
}

#[test]
fn our_own_extension_keeps_to_its_constraints() {
    let at = "/extensions/agentvoice";
    let below = |field: &str| format!("{at}/{field}");
    check("agentvoice", &delivery(), [
        required(&[&below("merged/count"), &below("merged/last_event_id")]),
        required(&[&below("resolution/reply_token"), &below("resolution/outcome")]),
        required(&[&below("resolution/decided_by")]),
        optional(&[&below("merged"), &below("resolution"), &below("gap"), &below("held_back")]),
        optional(&[&below("gap/after_event_id"), &below("gap/missed")]),
        closed(at),
        closed(&below("merged")),
        closed(&below("resolution")),
        closed(&below("gap")),
        count(&below("merged/count"), 2),
        id(&below("merged/last_event_id"), "evt_"),
        id(&below("resolution/reply_token"), "rpl_"),
        one_of(
            &below("resolution/outcome"),
            &["accept", "reject", "answered", "unanswered", "withdrawn"],
        ),
        one_of(
            &below("resolution/decided_by"),
            &["reply", "timeout", "no_listener", "withdrawn"],
        ),
        id(&below("gap/after_event_id"), "evt_"),
        count(&below("gap/missed"), 0),
        count(&below("held_back"), 1),
    ]);
}
